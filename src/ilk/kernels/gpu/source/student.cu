// Student components: memberships from squared distances, sums of their tails, and how much each row pulls.
// LANES lanes share a row, each with every LANES-th of COMPS components (PARTS of them), PITCH in memory; D columns.
// scores come in as minus half the squared distance. tables: [2 + (NODES or 1)][PARTS * LANES] constant, degrees of freedom,
// and those at which tails are summed (NODES of them), or the next ones, with which rows pull (NODES = 0): then memberships
// times pull are left where scores were. Infinite degrees of freedom: Gaussian. rules: limit of the cost, share of a row at it.
// partial: (warps, COMPS * (1 + NODES) + 1) sums of memberships, of tails, and the cost, added to. label, weight may be null.
#define KP (PARTS * LANES)
#define WIDTH (COMPS * (1 + NODES) + 1)
#define TAILS (NODES > 0 ? NODES : 1)
extern "C" __global__ __launch_bounds__(256)
void student_memberships(double* __restrict__ scores, i64 n, const double* __restrict__ weight, i64 hard, const double* __restrict__ rules,
                         const double* __restrict__ tables, int* __restrict__ label, double* __restrict__ top_score, double* __restrict__ row_cost,
                         double* __restrict__ partial) {
    const int lane = threadIdx.x & 31, part = lane % LANES;
    const double infinity = __longlong_as_double(0x7ff0000000000000ll), limit = rules[0], share = rules[1];
    const i64 warp = (i64)blockIdx.x * 8 + (threadIdx.x >> 5), pace = (i64)gridDim.x * 8 * (32 / LANES);
    double constant[PARTS], inverse[PARTS], half[PARTS], count[PARTS], tail[PARTS][TAILS], total = 0;
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        const int k = part + LANES * p;
        const double dof = tables[KP + k];
        constant[p] = tables[k];
        inverse[p] = dof < infinity ? 1.0 / dof : 0.0;
        half[p] = (dof + D) * 0.5;
        count[p] = 0;
#pragma unroll
        for (int j = 0; j < TAILS; ++j) tail[p][j] = 0;
    }
    for (i64 at = warp * (32 / LANES); at < n; at += pace) {
        const i64 row = at + lane / LANES;
        const bool there = row < n;
        double* mine = scores + min(row, n - 1) * PITCH;
        double squared[PARTS], s[PARTS], top = -infinity;
        int best = 0x7fffffff;
#pragma unroll
        for (int p = 0; p < PARTS; ++p) {
            const int k = part + LANES * p;
            squared[p] = k < COMPS ? -2.0 * mine[k] : 0.0;
            s[p] = k >= COMPS ? -infinity : constant[p] - (inverse[p] > 0 ? half[p] * log1p(squared[p] * inverse[p]) : 0.5 * squared[p]);
            if (k < COMPS && (s[p] > top || best == 0x7fffffff)) { top = s[p]; best = k; }
        }
#pragma unroll
        for (int m = LANES / 2; m; m >>= 1) {
            const double other = __shfl_xor_sync(FULL, top, m);
            const int theirs = __shfl_xor_sync(FULL, best, m);
            if (other > top || (other == top && theirs < best)) { top = other; best = theirs; }
        }
        const double base = top > -1e308 && top < 1e308 ? top : 0.0;
        double sum = 0, r[PARTS];
#pragma unroll
        for (int p = 0; p < PARTS; ++p) { r[p] = exp(s[p] - base); sum += r[p]; }
#pragma unroll
        for (int m = LANES / 2; m; m >>= 1) sum += __shfl_xor_sync(FULL, sum, m);
        const double own = hard ? -top : -(base + log(sum));
        double counted = there ? (weight ? weight[row] : 1.0) : 0.0;
        if (limit < infinity && fabs(own - limit) <= 1e-12 * (1 + fabs(limit))) counted *= share;  // at the limit, but for its last digits
        else if (own > limit) counted = 0;
        const double each = sum > 0 ? counted / sum : 0.0;
#pragma unroll
        for (int p = 0; p < PARTS; ++p) {
            const int k = part + LANES * p;
            const double membership = hard ? (k == best ? counted : 0.0) : r[p] * each;
            count[p] += membership;
#if NODES > 0
            if (k < COMPS && membership > 0)
#pragma unroll
                for (int j = 0; j < NODES; ++j) tail[p][j] += membership * log1p(squared[p] / tables[(2 + j) * KP + k]);
#else
            const double dof = tables[2 * KP + k];
            if (there && !label && k < PITCH) mine[k] = k < COMPS ? membership * (dof < infinity ? (dof + D) / (dof + squared[p]) : 1.0) : 0.0;
#endif
        }
#if NODES == 0
        if (there && !label) for (int k = KP + part; k < PITCH; k += LANES) mine[k] = 0;
#endif
        if (there && part == 0) {
            if (counted > 0) total += counted * own;
            if (label) { label[row] = best; top_score[row] = top; row_cost[row] = own; }
        }
    }
    double* out = partial + warp * WIDTH;
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        const int k = part + LANES * p;
#pragma unroll
        for (int m = 16; m >= LANES; m >>= 1) count[p] += __shfl_xor_sync(FULL, count[p], m);
        if (lane < LANES && k < COMPS) out[k] += count[p];
#pragma unroll
        for (int j = 0; j < NODES; ++j) {
#pragma unroll
            for (int m = 16; m >= LANES; m >>= 1) tail[p][j] += __shfl_xor_sync(FULL, tail[p][j], m);
            if (lane < LANES && k < COMPS) out[COMPS * (1 + j) + k] += tail[p][j];
        }
    }
#pragma unroll
    for (int m = 16; m; m >>= 1) total += __shfl_xor_sync(FULL, total, m);
    if (lane == 0) out[WIDTH - 1] += total;
}

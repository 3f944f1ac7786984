// EM for Gaussian mixtures, float64 tensor cores, any number of columns in blocks of 8 and of components in groups.
// gmm_scores: squared distances by whitening, y = W x - W m, W lower triangular in blocks of 8 x 8, or only its diagonal.
// gmm_memberships: scores to memberships, hard or soft, under weights and trimming; labels and costs of rows.
// gmm_sums: scatters about the current means, the symmetric half in blocks of 8 x 8, or only those on the diagonal.
// Macros: NB blocks of columns, REAL (float, double), DIAGONAL, PITCH components in memory (all groups); the rest below.
#define DIM (8 * NB)
#define FRAGS (DIAGONAL ? NB : NB * (NB + 1) / 2)  // (block of y, block of x) pairs on or below the diagonal
extern __shared__ __align__(128) u8 pool[];

#ifdef GROUP
// GROUP components at a time (a multiple of 4), E_WARPS; FUSED: these are all, and memberships are written, not scores;
// HELD: their matrices are in shared memory.
// whiten: (GROUP, FRAGS, 32 lanes, 2): lane 4g+q has W[8b+g][8t+q], W[8b+g][8t+4+q] for t <= b.
static_assert(HELD * GROUP * FRAGS * 512 + GROUP * DIM * 8 + GROUP * 8 == SMEM, "the plan counts other bytes");
extern "C" __global__ __launch_bounds__(E_WARPS * 32, 1)
void gmm_scores(const REAL* __restrict__ x, i64 n, const double2* __restrict__ whiten, const double* __restrict__ offset,
                const double* __restrict__ log_weight, double* __restrict__ out, i64 first, double* __restrict__ cost) {
    const double2* w = HELD ? (const double2*)pool : whiten;
    double* off = (double*)pool + HELD * GROUP * FRAGS * 64;
    double* lw = off + GROUP * DIM;
    for (int i = threadIdx.x; i < HELD * GROUP * FRAGS * 32; i += E_WARPS * 32) ((double2*)pool)[i] = whiten[i];
    for (int i = threadIdx.x; i < GROUP * DIM; i += E_WARPS * 32) off[i] = offset[i];
    for (int i = threadIdx.x; i < GROUP; i += E_WARPS * 32) lw[i] = log_weight[i];
    __syncthreads();
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    double total = 0;
    const i64 tiles = (n + 15) / 16;
    for (i64 tile = (i64)blockIdx.x * E_WARPS + warp; tile < tiles; tile += (i64)gridDim.x * E_WARPS) {
        const i64 row = tile * 16 + g;
        double v[NB][4];
        {
            const REAL *a = x + min(row, n - 1) * DIM + q, *b = x + min(row + 8, n - 1) * DIM + q;
#pragma unroll
            for (int t = 0; t < NB; ++t) { v[t][0] = a[8 * t]; v[t][1] = b[8 * t]; v[t][2] = a[8 * t + 4]; v[t][3] = b[8 * t + 4]; }
        }
        double score[FUSED ? GROUP / 4 : 1][2];
#pragma unroll(FUSED ? GROUP / 4 : 1)
        for (int c4 = 0; c4 < GROUP / 4; ++c4) {
            double s[4][2];
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                asm volatile("" ::: "memory");  // keeps the reads of W from piling up in registers
                const double2* wk = w + (c4 * 4 + c) * FRAGS * 32 + lane;
                s[c][0] = s[c][1] = 0;
#pragma unroll
                for (int b = 0; b < NB; ++b) {
                    const double2 o = *(const double2*)(off + (c4 * 4 + c) * DIM + 8 * b + 2 * q);
                    double y0 = o.x, y1 = o.y, y2 = o.x, y3 = o.y;
#pragma unroll
                    for (int t = DIAGONAL ? b : 0; t <= b; ++t) {
                        const double2 f = wk[(DIAGONAL ? b : b * (b + 1) / 2 + t) * 32];
                        dmma_16x8(y0, y1, y2, y3, v[t][0], v[t][1], v[t][2], v[t][3], f.x, f.y);
                    }
                    s[c][0] = fma(y0, y0, fma(y1, y1, s[c][0]));
                    s[c][1] = fma(y2, y2, fma(y3, y3, s[c][1]));
                }
            }
            // Add over the four lanes of a row; lane q keeps component q.
            const bool up = q & 2, odd = q & 1;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                double k0 = up ? s[2][h] : s[0][h], k1 = up ? s[3][h] : s[1][h];
                k0 += __shfl_xor_sync(FULL, up ? s[0][h] : s[2][h], 2);
                k1 += __shfl_xor_sync(FULL, up ? s[1][h] : s[3][h], 2);
                const double keep = (odd ? k1 : k0) + __shfl_xor_sync(FULL, odd ? k0 : k1, 1);
                const double value = fma(-0.5, keep, lw[c4 * 4 + q]);
                if (FUSED) score[FUSED ? c4 : 0][h] = value;
                else if (row + 8 * h < n) out[(row + 8 * h) * PITCH + first + 4 * c4 + q] = value;
            }
        }
        if (!FUSED) continue;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            double top = score[0][h];
#pragma unroll
            for (int c = 1; c < (FUSED ? GROUP / 4 : 1); ++c) top = fmax(top, score[c][h]);
            top = fmax(top, __shfl_xor_sync(FULL, top, 1));
            top = fmax(top, __shfl_xor_sync(FULL, top, 2));
            if (!(top > -1e308)) top = 0;  // a row impossible under all components
            double sum = 0;
#pragma unroll
            for (int c = 0; c < (FUSED ? GROUP / 4 : 1); ++c) { score[c][h] = exp(score[c][h] - top); sum += score[c][h]; }
            sum += __shfl_xor_sync(FULL, sum, 1);
            sum += __shfl_xor_sync(FULL, sum, 2);
            const double inverse = sum > 0 ? 1.0 / sum : 0.0;
            const i64 own = row + 8 * h;
            if (own < n) {
#pragma unroll
                for (int c = 0; c < (FUSED ? GROUP / 4 : 1); ++c) out[own * PITCH + 4 * c + q] = score[c][h] * inverse;
                if (q == 0) total -= top + log(sum);
            }
        }
    }
    if (!FUSED) return;
#pragma unroll
    for (int m = 16; m; m >>= 1) total += __shfl_xor_sync(FULL, total, m);
    if (lane == 0) cost[blockIdx.x * E_WARPS + warp] = total;
}
#endif

#ifdef LANES
// LANES that share a row, COMPS components that there are. rules: limit of the cost, share of a row that lies at it.
// label, top, row_cost may be null; so may weight. cost: (grid * 8). Scores become memberships where they stand.
extern "C" __global__ __launch_bounds__(256)
void gmm_memberships(double* __restrict__ scores, i64 n, const double* __restrict__ weight, i64 hard, const double* __restrict__ rules,
                     int* __restrict__ label, double* __restrict__ top_score, double* __restrict__ row_cost, double* __restrict__ cost) {
    const int lane = threadIdx.x & 31, part = lane % LANES;
    const double infinity = __longlong_as_double(0x7ff0000000000000ll), limit = rules[0], share = rules[1];
    double total = 0;
    const i64 pace = (i64)gridDim.x * 8 * (32 / LANES);
    const i64 begin = ((i64)blockIdx.x * 8 + (threadIdx.x >> 5)) * (32 / LANES);
    for (i64 at = begin; at < n; at += pace) {
        const i64 row = at + lane / LANES;
        const bool there = row < n;
        double* mine = scores + min(row, n - 1) * PITCH;
        double top = -infinity;
        int best = 0x7fffffff;
        for (int k = part; k < COMPS; k += LANES) if (mine[k] > top || best == 0x7fffffff) { top = mine[k]; best = k; }
#pragma unroll
        for (int m = LANES / 2; m; m >>= 1) {
            const double other = __shfl_xor_sync(FULL, top, m);
            const int theirs = __shfl_xor_sync(FULL, best, m);
            if (other > top || (other == top && theirs < best)) { top = other; best = theirs; }
        }
        const double base = top > -1e308 && top < 1e308 ? top : 0.0;
        double sum = 0;
        for (int k = part; k < COMPS; k += LANES) sum += exp(mine[k] - base);
#pragma unroll
        for (int m = LANES / 2; m; m >>= 1) sum += __shfl_xor_sync(FULL, sum, m);
        const double own = hard ? -top : -(base + log(sum));
        double counted = there ? (weight ? weight[row] : 1.0) : 0.0;
        if (own > limit) counted = 0;
        else if (own == limit) counted *= share;
        const double each = sum > 0 ? counted / sum : 0.0;
        if (there) {
            for (int k = part; k < COMPS; k += LANES) mine[k] = hard ? (k == best ? counted : 0.0) : exp(mine[k] - base) * each;
            for (int k = COMPS + part; k < PITCH; k += LANES) mine[k] = 0;
            if (part == 0) {
                if (counted > 0) total += counted * own;
                if (label) { label[row] = best; top_score[row] = top; row_cost[row] = own; }
            }
        }
    }
#pragma unroll
    for (int m = 16; m; m >>= 1) total += __shfl_xor_sync(FULL, total, m);
    if (lane == 0) cost[blockIdx.x * 8 + (threadIdx.x >> 5)] = total;
}
// Memberships of 0 and 1 times weight from labels, which may be null (all in the first component).
extern "C" __global__ __launch_bounds__(256)
void gmm_given(const int* __restrict__ label, const double* __restrict__ weight, i64 n, double* __restrict__ out) {
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < n * PITCH; i += (i64)gridDim.x * 256) {
        const i64 row = i / PITCH;
        out[i] = (int)(i - row * PITCH) == (label ? label[row] : 0) ? (weight ? weight[row] : 1.0) : 0.0;
    }
}
#endif

#ifdef PER
// A warp owns PER components of the group and their sums in registers, TILES (of SETS sets, one a warp) of 16 x 8 each;
// `add_tiles` is generated: which blocks of columns a tile multiplies. FIRST of the tiles (16 components x 8 columns) of
// the sums of x go to each warp. mean: (PITCH, DIM). partial: (ranges, PITCH, WIDTH), added to where `more`.
#define M_WARPS 8
#define CG (M_WARPS * PER / SETS)
#define CGP ((CG + 15) / 16 * 16)
#define PX (DIM + 4)                   // of rows in shared memory: four rows on different banks
#define PR (CGP + 4)
#define FIRST ((CGP / 16 * NB + M_WARPS - 1) / M_WARPS)
#define WIDTH (SETS * TILES * 128 + DIM + 1)
#define OFF_R (2 * M_ROWS * PX * (int)sizeof(REAL))
#define OFF_M (OFF_R + 2 * M_ROWS * PR * 8)
static_assert(OFF_M + CG * DIM * 8 == SMEM, "the plan counts other bytes");
extern "C" __global__ __launch_bounds__(M_WARPS * 32, 1)
void gmm_sums(const REAL* __restrict__ x, const double* __restrict__ resp, i64 n, const double* __restrict__ mean, double* __restrict__ partial, i64 more) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    const int groups = PITCH / CG, group = blockIdx.x % groups, range = blockIdx.x / groups, ranges = gridDim.x / groups;
    const int own = warp / SETS * PER, set = warp % SETS;
    REAL* xs = (REAL*)pool;                                        // [stage][row][PX]
    double* rs = (double*)(pool + OFF_R);
    double* means = (double*)(pool + OFF_M);
    for (int i = threadIdx.x; i < 2 * M_ROWS * PR; i += M_WARPS * 32) rs[i] = 0;
    for (int i = threadIdx.x; i < CG * DIM; i += M_WARPS * 32) means[i] = mean[(i64)group * CG * DIM + i];
    __syncthreads();
    const double* m = means + own * DIM + g;
    double acc[PER][TILES][4], first[FIRST][4], count[PER];
    double* out = partial + ((i64)range * PITCH + group * CG) * WIDTH;
    double* mine = out + own * WIDTH + set * TILES * 128 + g * 8 + 2 * q;
#pragma unroll
    for (int c = 0; c < PER; ++c) {
        count[c] = 0;
#pragma unroll
        for (int p = 0; p < TILES; ++p)
#pragma unroll
            for (int e = 0; e < 4; ++e) acc[c][p][e] = more ? mine[c * WIDTH + p * 128 + (e >> 1) * 64 + (e & 1)] : 0.0;
    }
    auto place = [&](int i, int e) {  // of a sum of x: null beyond the components
        const int id = warp + M_WARPS * i, component = id / NB * 16 + g + 8 * (e >> 1);
        return component < CG ? out + component * WIDTH + SETS * TILES * 128 + id % NB * 8 + 2 * q + (e & 1) : (double*)0;
    };
#pragma unroll
    for (int i = 0; i < FIRST; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) first[i][e] = more && place(i, e) ? *place(i, e) : 0.0;
    const i64 tiles = (n + M_ROWS - 1) / M_ROWS;
    auto load = [&](i64 tile, int stage) {
        if (tile < tiles) {
            constexpr int XC = DIM * (int)sizeof(REAL) / 16;  // pieces of a row
            for (int i = threadIdx.x; i < M_ROWS * XC; i += M_WARPS * 32) {
                const int r = i / XC, c = i % XC;
                copy16((u8*)(xs + (stage * M_ROWS + r) * PX) + c * 16, (const u8*)(x + min(tile * M_ROWS + r, n - 1) * DIM) + c * 16);
            }
            for (int i = threadIdx.x; i < M_ROWS * CG / 2; i += M_WARPS * 32) {
                const int r = i / (CG / 2), c = i % (CG / 2);
                const i64 row = tile * M_ROWS + r;
                double* to = rs + (stage * M_ROWS + r) * PR + c * 2;
                if (row < n) copy16(to, resp + row * PITCH + group * CG + c * 2);
                else { to[0] = 0; to[1] = 0; }
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    load(range, 0);
    int stage = 0;
    for (i64 tile = range; tile < tiles; tile += ranges) {
        load(tile + ranges, stage ^ 1);
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        const REAL* xt = xs + stage * M_ROWS * PX + q * PX + g;
        const double* rt = rs + stage * M_ROWS * PR + q * PR;
        for (int s = 0; s < M_ROWS / 4; ++s, xt += 4 * PX, rt += 4 * PR) {
            double v[NB];
#pragma unroll
            for (int b = 0; b < NB; ++b) v[b] = xt[8 * b];
#pragma unroll
            for (int i = 0; i < FIRST; ++i) {
                const int id = warp + M_WARPS * i, at = id / NB * 16 + g;
                if (id < CGP / 16 * NB) dmma_16x4(first[i][0], first[i][1], first[i][2], first[i][3], rt[at], rt[at + 8], (double)xt[8 * (id % NB)]);
            }
#pragma unroll
            for (int c = 0; c < PER; ++c) {
                const double r = rt[own + c];
                double y[NB], z[NB];
                count[c] += r;
#pragma unroll
                for (int b = 0; b < NB; ++b) { y[b] = v[b] - m[c * DIM + 8 * b]; z[b] = r * y[b]; }
                add_tiles(acc[c], z, y, set);
            }
        }
        __syncthreads();
        stage ^= 1;
    }
#pragma unroll
    for (int c = 0; c < PER; ++c) {
#pragma unroll
        for (int p = 0; p < TILES; ++p)
#pragma unroll
            for (int e = 0; e < 4; ++e) mine[c * WIDTH + p * 128 + (e >> 1) * 64 + (e & 1)] = acc[c][p][e];
        double s = count[c];
        s += __shfl_xor_sync(FULL, s, 1);
        s += __shfl_xor_sync(FULL, s, 2);
        double* to = out + (own + c) * WIDTH + SETS * TILES * 128 + DIM;
        if (lane == 0 && set == 0) *to = s + (more ? *to : 0.0);
    }
#pragma unroll
    for (int i = 0; i < FIRST; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) if (warp + M_WARPS * i < CGP / 16 * NB && place(i, e)) *place(i, e) = first[i][e];
}
#endif

// EM for Gaussian mixtures of few columns and many components, float64 tensor cores, one read of x: scores and sums are products with
// the moments of a row, x_i x_j for i <= j, x_i and 1. Eight warps take 64 rows at a time: four groups of 16 rows times two halves of
// the components for the scores, then each warp the sums of its own components over all 64.
// coef: B fragments [step of 8 moments][tile of 8 components][lane][2]; constant: (KP,). partial: (grid, MOMENTS * KP + 4): sums, costs.
// Macros: D columns, MOMENTS (a multiple of 16), KP components (a multiple of 16, up to 128), REAL, SMEM as the plan has counted it;
// `moments` is generated: the quarter of them that a warp makes of a row.
#define TALL 64
#define WARPS 8
#define KT (KP / 16)                   // tiles of 8 components of a half
#define TILES (KP / 8)
#define MT ((TILES + WARPS - 1) / WARPS)  // of a warp, for the sums
#define FT (MOMENTS / 16)
#define PF (MOMENTS + 4)               // four rows on different banks
#define PR (KP + 4)
#define OFF_BASE (MOMENTS * KP * 8)
#define OFF_F (OFF_BASE + KP * 8)
#define OFF_R (OFF_F + 2 * TALL * PF * 8)
#define OFF_S (OFF_R + TALL * PR * 8)
static_assert(OFF_S + 2 * TALL * 16 == SMEM, "the plan counts other bytes");
extern __shared__ __align__(128) u8 pool[];

extern "C" __global__ __launch_bounds__(WARPS * 32, 1)
void gmm_moments(const REAL* __restrict__ x, i64 n, const double2* __restrict__ coef, const double* __restrict__ constant, double* __restrict__ partial) {
    double2* w = (double2*)pool;
    double* base = (double*)(pool + OFF_BASE);
    double* rs = (double*)(pool + OFF_R);
    double2* stats = (double2*)(pool + OFF_S);  // [half][row]: largest score, sum
    for (int i = threadIdx.x; i < MOMENTS * KP / 2; i += WARPS * 32) w[i] = coef[i];
    for (int i = threadIdx.x; i < KP; i += WARPS * 32) base[i] = constant[i];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    const int group = warp & 3, half = warp >> 2;
    const i64 tiles = (n + TALL - 1) / TALL;
    double v[D];
    const int mine = half * 32 + lane;  // the row whose moments this thread makes, a quarter of them
    auto fetch = [&](i64 tile) {
        const REAL* from = x + min(tile * TALL + mine, n - 1) * 8;
#pragma unroll
        for (int d = 0; d < D; ++d) v[d] = from[d];
    };
    auto make = [&](int stage) { moments((double2*)((double*)(pool + OFF_F) + (stage * TALL + mine) * PF), v, group); };
    double acc[FT][MT][4] = {}, cost = 0;
    i64 tile = blockIdx.x;
    fetch(tile);
    make(0);
    __syncthreads();
    int stage = 0;
    for (; tile < tiles; tile += gridDim.x) {
        fetch(tile + gridDim.x);  // beyond the end: the last row, which counts nowhere
        const double* f = (const double*)(pool + OFF_F) + stage * TALL * PF;
        double s[KT][4];
#pragma unroll
        for (int c = 0; c < KT; ++c) { s[c][0] = s[c][2] = base[8 * (half * KT + c) + 2 * q]; s[c][1] = s[c][3] = base[8 * (half * KT + c) + 2 * q + 1]; }
#pragma unroll
        for (int b = 0; b < MOMENTS / 8; ++b) {
            const double* a = f + (group * 16 + g) * PF + 8 * b + q;
            const double a0 = a[0], a1 = a[8 * PF], a2 = a[4], a3 = a[8 * PF + 4];
#pragma unroll
            for (int c = 0; c < KT; ++c) {
                const double2 two = w[(b * TILES + half * KT + c) * 32 + lane];
                dmma_16x8(s[c][0], s[c][1], s[c][2], s[c][3], a0, a1, a2, a3, two.x, two.y);
            }
        }
        double top[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            double most = fmax(s[0][2 * h], s[0][2 * h + 1]);
#pragma unroll
            for (int c = 1; c < KT; ++c) most = fmax(most, fmax(s[c][2 * h], s[c][2 * h + 1]));
            most = fmax(most, __shfl_xor_sync(FULL, most, 1));
            most = fmax(most, __shfl_xor_sync(FULL, most, 2));
            if (!(most > -1e308)) most = -1e308;  // a row impossible under this half
            double sum = 0;
#pragma unroll
            for (int c = 0; c < KT; ++c) { s[c][2 * h] = exp(s[c][2 * h] - most); s[c][2 * h + 1] = exp(s[c][2 * h + 1] - most); sum += s[c][2 * h] + s[c][2 * h + 1]; }
            sum += __shfl_xor_sync(FULL, sum, 1);
            sum += __shfl_xor_sync(FULL, sum, 2);
            top[h] = most;
            if (q == 0) stats[half * TALL + group * 16 + g + 8 * h] = make_double2(most, sum);
        }
        __syncthreads();
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = group * 16 + g + 8 * h;
            const double2 one = stats[row], two = stats[TALL + row];
            const double most = fmax(one.x, two.x), sum = one.y * exp(one.x - most) + two.y * exp(two.x - most);
            const bool there = tile * TALL + row < n;
            const double each = there & sum > 0 ? exp(top[h] - most) / sum : 0.0;
            if (there && q == 0 && half == 0) cost -= most + log(sum);
#pragma unroll
            for (int c = 0; c < KT; ++c) *(double2*)(rs + row * PR + 8 * (half * KT + c) + 2 * q) = make_double2(s[c][2 * h] * each, s[c][2 * h + 1] * each);
        }
        make(stage ^ 1);
        __syncthreads();
        if (warp * MT < TILES) {
#pragma unroll 4
            for (int k = 0; k < TALL / 4; ++k) {  // four rows at a time
                const double* a = f + (4 * k + q) * PF + g;
                double r[MT];
#pragma unroll
                for (int c = 0; c < MT; ++c) r[c] = rs[(4 * k + q) * PR + 8 * min(warp * MT + c, TILES - 1) + g];
#pragma unroll
                for (int b = 0; b < FT; ++b)
#pragma unroll
                    for (int c = 0; c < MT; ++c) dmma_16x4(acc[b][c][0], acc[b][c][1], acc[b][c][2], acc[b][c][3], a[16 * b], a[16 * b + 8], r[c]);
            }
        }
        stage ^= 1;
    }
    double* out = partial + (i64)blockIdx.x * (MOMENTS * KP + 4);
#pragma unroll
    for (int b = 0; b < FT; ++b)
#pragma unroll
        for (int c = 0; c < MT; ++c)
            if (warp * MT + c < TILES)
#pragma unroll
                for (int e = 0; e < 4; ++e) out[(16 * b + g + 8 * (e >> 1)) * KP + 8 * (warp * MT + c) + 2 * q + (e & 1)] = acc[b][c][e];
#pragma unroll
    for (int m = 16; m; m >>= 1) cost += __shfl_xor_sync(FULL, cost, m);
    if (lane == 0 && half == 0) out[MOMENTS * KP + group] = cost;
}

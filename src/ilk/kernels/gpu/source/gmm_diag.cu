// EM for mixtures with diagonal covariances, few columns times components, float64 tensor cores, one read of x.
// Scores and sums are products with [x, x^2]; every warp takes 16 rows at a time and keeps all sums in registers.
// coef: B fragments [step of 8 rows of [x; x^2]][tile of 8 components][lane][2]; constant: (COMPS,). partial: (warps, WIDTH).
// Macros: NB blocks of 8 columns, KT tiles of 8 components (NB * KT at most 16), REAL, SMEM as the plan has counted it.
#define COMPS (8 * KT)
#define DIM (8 * NB)
#define WARPS 8
#define PX (DIM + 4)
#define PR (COMPS + 4)
#define WIDTH (2 * DIM * COMPS + COMPS + 1)  // [x, x^2] x components, counts, cost
#define OFF_C (2 * NB * KT * 32 * 16)
#define OFF_X (OFF_C + COMPS * 8)
#define OFF_R (OFF_X + WARPS * 2 * 16 * PX * (int)sizeof(REAL))
static_assert(OFF_R + WARPS * 16 * PR * 8 == SMEM, "the plan counts other bytes");
extern __shared__ __align__(128) u8 pool[];

extern "C" __global__ __launch_bounds__(WARPS * 32, 1)
void gmm_diag(const REAL* __restrict__ x, i64 n, const double2* __restrict__ coef, const double* __restrict__ constant, double* __restrict__ partial) {
    double2* w = (double2*)pool;
    double* base = (double*)(pool + OFF_C);
    for (int i = threadIdx.x; i < 2 * NB * KT * 32; i += WARPS * 32) w[i] = coef[i];
    for (int i = threadIdx.x; i < COMPS; i += WARPS * 32) base[i] = constant[i];
    __syncthreads();
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    REAL* xs = (REAL*)(pool + OFF_X) + warp * 2 * 16 * PX;
    double* rs = (double*)(pool + OFF_R) + warp * 16 * PR;
    const i64 tiles = (n + 15) / 16, pace = (i64)gridDim.x * WARPS;
    auto load = [&](i64 tile, int stage) {
        constexpr int XC = DIM * (int)sizeof(REAL) / 16;
        if (tile < tiles)
#pragma unroll
            for (int i = 0; i < XC / 2; ++i) {
                const int r = (i * 32 + lane) / XC, c = (i * 32 + lane) % XC;
                copy16((u8*)(xs + (stage * 16 + r) * PX) + c * 16, (const u8*)(x + min(tile * 16 + r, n - 1) * DIM) + c * 16);
            }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    double acc[NB][KT][4] = {};  // block of 8 columns (x above x^2), tile of components
    double count[KT] = {}, cost = 0;
    i64 tile = (i64)blockIdx.x * WARPS + warp;
    load(tile, 0);
    int stage = 0;
    for (; tile < tiles; tile += pace) {
        load(tile + pace, stage ^ 1);
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncwarp();
        const REAL* t = xs + stage * 16 * PX;
        double s[KT][4];
#pragma unroll
        for (int c = 0; c < KT; ++c) { s[c][0] = s[c][2] = base[8 * c + 2 * q]; s[c][1] = s[c][3] = base[8 * c + 2 * q + 1]; }
#pragma unroll
        for (int b = 0; b < NB; ++b) {
            const double a0 = t[g * PX + 8 * b + q], a1 = t[(g + 8) * PX + 8 * b + q], a2 = t[g * PX + 8 * b + q + 4], a3 = t[(g + 8) * PX + 8 * b + q + 4];
#pragma unroll
            for (int c = 0; c < KT; ++c) { const double2 f = w[(b * KT + c) * 32 + lane]; dmma_16x8(s[c][0], s[c][1], s[c][2], s[c][3], a0, a1, a2, a3, f.x, f.y); }
            const double z0 = a0 * a0, z1 = a1 * a1, z2 = a2 * a2, z3 = a3 * a3;
#pragma unroll
            for (int c = 0; c < KT; ++c) { const double2 f = w[((b + NB) * KT + c) * 32 + lane]; dmma_16x8(s[c][0], s[c][1], s[c][2], s[c][3], z0, z1, z2, z3, f.x, f.y); }
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            double top = fmax(s[0][2 * h], s[0][2 * h + 1]);
#pragma unroll
            for (int c = 1; c < KT; ++c) top = fmax(top, fmax(s[c][2 * h], s[c][2 * h + 1]));
            top = fmax(top, __shfl_xor_sync(FULL, top, 1));
            top = fmax(top, __shfl_xor_sync(FULL, top, 2));
            if (!(top > -1e308)) top = 0;  // a row impossible under all components
            double sum = 0;
#pragma unroll
            for (int c = 0; c < KT; ++c) { s[c][2 * h] = exp(s[c][2 * h] - top); s[c][2 * h + 1] = exp(s[c][2 * h + 1] - top); sum += s[c][2 * h] + s[c][2 * h + 1]; }
            sum += __shfl_xor_sync(FULL, sum, 1);
            sum += __shfl_xor_sync(FULL, sum, 2);
            const bool there = tile * 16 + g + 8 * h < n;
            const double inverse = there & sum > 0 ? 1.0 / sum : 0.0;
            if (there && q == 0) cost -= top + log(sum);
#pragma unroll
            for (int c = 0; c < KT; ++c) *(double2*)(rs + (g + 8 * h) * PR + 8 * c + 2 * q) = make_double2(s[c][2 * h] * inverse, s[c][2 * h + 1] * inverse);
        }
        __syncwarp();
#pragma unroll
        for (int k = 0; k < 4; ++k) {  // four rows at a time
            double r[KT];
#pragma unroll
            for (int c = 0; c < KT; ++c) { r[c] = rs[(4 * k + q) * PR + 8 * c + g]; count[c] += r[c]; }
#pragma unroll
            for (int b = 0; b < NB; ++b) {
                const double v = t[(4 * k + q) * PX + 8 * b + g], v2 = v * v;
#pragma unroll
                for (int c = 0; c < KT; ++c) dmma_16x4(acc[b][c][0], acc[b][c][1], acc[b][c][2], acc[b][c][3], v, v2, r[c]);
            }
        }
        __syncwarp();
        stage ^= 1;
    }
    double* out = partial + ((i64)blockIdx.x * WARPS + warp) * WIDTH;
#pragma unroll
    for (int b = 0; b < NB; ++b)
#pragma unroll
        for (int c = 0; c < KT; ++c)
#pragma unroll
            for (int e = 0; e < 4; ++e) out[((e >> 1) * DIM + 8 * b + g) * COMPS + 8 * c + 2 * q + (e & 1)] = acc[b][c][e];
#pragma unroll
    for (int c = 0; c < KT; ++c) {
        count[c] += __shfl_xor_sync(FULL, count[c], 1);
        count[c] += __shfl_xor_sync(FULL, count[c], 2);
        if (q == 0) out[2 * DIM * COMPS + 8 * c + g] = count[c];
    }
#pragma unroll
    for (int m = 16; m; m >>= 1) cost += __shfl_xor_sync(FULL, cost, m);
    if (lane == 0) out[(2 * DIM + 1) * COMPS] = cost;
}

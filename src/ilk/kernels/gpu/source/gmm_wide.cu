// EM for Gaussian mixtures of more columns than registers hold: float64 tensor cores, one component after the other.
// gmm_scores: a block keeps ROWS rows in shared memory; its warps share the blocks of 8 rows of each whitening matrix, read
// from the cache in the order of gmm.cu. gmm_sums: a block adds one tile of 64 x 64 of the scatter of one component.
// Macros: NB blocks of 8 columns, REAL (float, double), DIAGONAL, PITCH components in memory, COMPS that there are.
#define DIM (8 * NB)
#define FRAGS (DIAGONAL ? NB : NB * (NB + 1) / 2)
extern __shared__ __align__(128) u8 pool[];

#ifdef ROWS
#define WARPS 8
#define PX (DIM + 4)                   // of rows in shared memory: those of a product lie on different banks
#define OFF_PARTS (ROWS * PX * (int)sizeof(REAL))
static_assert(OFF_PARTS + 2 * WARPS * ROWS * 8 == SMEM, "the plan counts other bytes");
extern "C" __global__ __launch_bounds__(WARPS * 32, 1)
void gmm_scores(const REAL* __restrict__ x, i64 n, const double2* __restrict__ whiten, const double* __restrict__ offset,
                const double* __restrict__ log_weight, double* __restrict__ out, i64 first, double* __restrict__ cost) {
    REAL* xs = (REAL*)pool;
    double* parts = (double*)(pool + OFF_PARTS);  // [even or odd component][warp][row]: squares
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    for (i64 tile = blockIdx.x; tile * ROWS < n; tile += gridDim.x) {
        constexpr int PIECES = DIM * (int)sizeof(REAL) / 16;
        __syncthreads();
        for (int i = threadIdx.x; i < ROWS * PIECES; i += WARPS * 32) {
            const int r = i / PIECES, c = i % PIECES;
            copy16((u8*)(xs + r * PX) + c * 16, (const u8*)(x + min(tile * ROWS + r, n - 1) * DIM) + c * 16);
        }
        copies_end();
        copies_wait<0>();
        __syncthreads();
        const REAL* v = xs + g * PX + q;
        for (int k = 0; k < COMPS; ++k) {
            const double2* w = whiten + (i64)k * FRAGS * 32 + lane;
            double s[ROWS / 16][2] = {};
            for (int b = warp; b < NB; b += WARPS) {
                const double2 o = *(const double2*)(offset + k * DIM + 8 * b + 2 * q);
                double y[ROWS / 16][4];
#pragma unroll
                for (int m = 0; m < ROWS / 16; ++m) { y[m][0] = y[m][2] = o.x; y[m][1] = y[m][3] = o.y; }
                const double2* own = w + (DIAGONAL ? b : b * (b + 1) / 2) * 32;
#pragma unroll 4
                for (int t = DIAGONAL ? b : 0; t <= b; ++t) {
                    const double2 f = own[(DIAGONAL ? 0 : t) * 32];
#pragma unroll
                    for (int m = 0; m < ROWS / 16; ++m) {
                        const REAL* a = v + 16 * m * PX + 8 * t;
                        dmma_16x8(y[m][0], y[m][1], y[m][2], y[m][3], a[0], a[8 * PX], a[4], a[8 * PX + 4], f.x, f.y);
                    }
                }
#pragma unroll
                for (int m = 0; m < ROWS / 16; ++m) {
                    s[m][0] = fma(y[m][0], y[m][0], fma(y[m][1], y[m][1], s[m][0]));
                    s[m][1] = fma(y[m][2], y[m][2], fma(y[m][3], y[m][3], s[m][1]));
                }
            }
            double* mine = parts + ((k & 1) * WARPS + warp) * ROWS + g;
#pragma unroll
            for (int m = 0; m < ROWS / 16; ++m)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    double sum = s[m][h] + __shfl_xor_sync(FULL, s[m][h], 1);
                    sum += __shfl_xor_sync(FULL, sum, 2);
                    if (q == 0) mine[16 * m + 8 * h] = sum;
                }
            __syncthreads();  // the other half is read until the next one
            const i64 row = tile * ROWS + threadIdx.x;
            if (threadIdx.x < ROWS && row < n) {
                double sum = 0;
#pragma unroll
                for (int other = 0; other < WARPS; ++other) sum += parts[((k & 1) * WARPS + other) * ROWS + threadIdx.x];
                out[row * PITCH + first + k] = fma(-0.5, sum, log_weight[k]);
            }
        }
    }
}
#endif

#ifdef M_ROWS
// PAIRS of slabs of 64 columns, on or below the diagonal. mean: (PITCH, DIM). partial: (ranges, PITCH, WIDTH), added to where
// `more`: tiles of 64 x 64, then the sums of x and the weight, from the tiles on the diagonal.
#define SLAB 64
#define PS (SLAB + 4)
#define WIDTH (PAIRS * SLAB * SLAB + DIM + 1)
#define STAGE (2 * M_ROWS * PS)        // numbers of two slabs
#define OFF_R (2 * STAGE * (int)sizeof(REAL))
static_assert(OFF_R + 2 * M_ROWS * 8 == SMEM, "the plan counts other bytes");
extern "C" __global__ __launch_bounds__(128, 3)
void gmm_sums(const REAL* __restrict__ x, const double* __restrict__ resp, i64 n, const double* __restrict__ mean, double* __restrict__ partial, i64 more) {
    const int tasks = COMPS * PAIRS, task = blockIdx.x % tasks, range = blockIdx.x / tasks, ranges = gridDim.x / tasks;
    const int k = task / PAIRS, pair = task % PAIRS, warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    int tall = DIAGONAL ? pair : 0, flat = pair;
    if (!DIAGONAL) while (flat > tall) flat -= ++tall;
    REAL* xs = (REAL*)pool;                       // [stage][slab][row][PS]
    double* rs = (double*)(pool + OFF_R);
    const double* m = mean + (i64)k * DIM;
    auto centre = [&](int column) { return column < DIM ? m[column] : 0.0; };
    const int at = 16 * warp + g;
    const double low = centre(tall * SLAB + at), high = centre(tall * SLAB + at + 8);
    double across[8], acc[8][4], sum = 0, count = 0;
    double* out = partial + ((i64)range * PITCH + k) * WIDTH;
    double* mine = out + pair * SLAB * SLAB + at * SLAB + 2 * q;
#pragma unroll
    for (int c = 0; c < 8; ++c) {
        across[c] = centre(flat * SLAB + 8 * c + g);
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[c][e] = more ? mine[(e >> 1) * 8 * SLAB + 8 * c + (e & 1)] : 0.0;
    }
    const i64 tiles = (n + M_ROWS - 1) / M_ROWS;
    auto load = [&](i64 tile, int stage) {
        if (tile < tiles) {
            constexpr int PIECE = 16 / (int)sizeof(REAL), PIECES = SLAB / PIECE;
            for (int i = threadIdx.x; i < 2 * M_ROWS * PIECES; i += 128) {
                const int slab = i / (M_ROWS * PIECES), r = i / PIECES % M_ROWS, c = i % PIECES * PIECE;
                const int column = (slab ? flat : tall) * SLAB + c;
                REAL* to = xs + stage * STAGE + (slab * M_ROWS + r) * PS + c;
                if (column < DIM) copy16(to, x + min(tile * M_ROWS + r, n - 1) * DIM + column);
                else for (int e = 0; e < PIECE; ++e) to[e] = 0;
            }
            if (threadIdx.x < M_ROWS) {
                const i64 row = tile * M_ROWS + threadIdx.x;
                rs[stage * M_ROWS + threadIdx.x] = row < n ? resp[row * PITCH + k] : 0.0;
            }
        }
        copies_end();
    };
    load(range, 0);
    int stage = 0;
    for (i64 tile = range; tile < tiles; tile += ranges, stage ^= 1) {
        load(tile + ranges, stage ^ 1);
        copies_wait<1>();
        __syncthreads();
        const REAL *down = xs + stage * STAGE, *right = down + M_ROWS * PS;
        const double* r = rs + stage * M_ROWS;
#pragma unroll
        for (int s = 0; s < M_ROWS; s += 4) {
            const double own = r[s + q];
            const REAL *a = down + (s + q) * PS + at, *b = right + (s + q) * PS + g;
            const double z0 = own * (a[0] - low), z1 = own * (a[8] - high);
#pragma unroll
            for (int c = 0; c < 8; ++c) dmma_16x4(acc[c][0], acc[c][1], acc[c][2], acc[c][3], z0, z1, b[8 * c] - across[c]);
        }
        if (tall == flat)
            for (int i = threadIdx.x / SLAB; i < M_ROWS; i += 2) { sum = fma(r[i], (double)down[i * PS + threadIdx.x % SLAB], sum); count += r[i]; }
        __syncthreads();
    }
#pragma unroll
    for (int c = 0; c < 8; ++c)
#pragma unroll
        for (int e = 0; e < 4; ++e) mine[(e >> 1) * 8 * SLAB + 8 * c + (e & 1)] = acc[c][e];
    if (tall != flat) return;
    double* half = (double*)pool;                 // of the odd rows
    if (threadIdx.x >= SLAB) { half[threadIdx.x - SLAB] = sum; if (threadIdx.x == SLAB) half[SLAB] = count; }
    __syncthreads();
    if (threadIdx.x >= SLAB) return;
    double* to = out + PAIRS * SLAB * SLAB;
    const int column = tall * SLAB + threadIdx.x;
    if (column < DIM) to[column] = (more ? to[column] : 0.0) + sum + half[threadIdx.x];
    if (column == 0) to[DIM] = (more ? to[DIM] : 0.0) + count + half[SLAB];
}
#endif

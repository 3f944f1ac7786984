// Rows that the other kernels leave open, by differences in float64 as on the CPU: a warp a row, a lane a centre; ties
// go to the lowest label.
// Macros: D, DP (columns of x), K, LABELS, SUMS (whether sums are made too), SMEM as the plan has counted it; and those of numbers.cuh
// and digits.cuh.
#define WARPS 16
#define AT_ONCE (K > 64 ? 4 : K > 32 ? 2 : 1)  // centres of a lane
#define TALL (32 * AT_ONCE)          // centres at a time, read once for the rows of all warps
#define TILE (32 * TALL)
#define STEPS ((D + 31) / 32)        // tiles of columns
#define CHUNKS ((K + TALL - 1) / TALL)
extern __shared__ __align__(128) u8 pool[];
static_assert(SMEM == (SUMS ? (K * DP + K) * 8 : 0) + 32 * TALL * 8, "the plan counts other bytes");

// centres: (D, K). list: found[0] rows, `room` at most. x, units (2, DP): what the sums are made of. partial: (grid, K * DP + K).
extern "C" __global__ __launch_bounds__(WARPS * 32, 1)
void kmeans_exact(const RAW* __restrict__ raw, const double* __restrict__ encoding, const double* __restrict__ centres, const int* __restrict__ list,
                  const int* __restrict__ found, i64 room, int* __restrict__ labels, const float* __restrict__ x, const float* __restrict__ units,
                  i64* __restrict__ partial) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    double* tile = (double*)pool;  // [column][centre]
    u64* sums = (u64*)(pool + 32 * TALL * 8);
    if (SUMS) {
        for (int i = threadIdx.x; i < K * DP + K; i += WARPS * 32) sums[i] = 0;
        __syncthreads();
    }
    const i64 count = min((i64)*found, room);
    // Few rows are spread over all blocks. Tiles of 32 columns x TALL centres: the next is read while this one is worked on.
    const int each = (int)max((i64)1, min((i64)WARPS, (count + gridDim.x - 1) / gridDim.x));
    double next[TILE / (WARPS * 32)];
    auto fetch = [&](int step) {
        const int k0 = step / STEPS * TALL, first = step % STEPS * 32;
#pragma unroll
        for (int e = 0; e < TILE / (WARPS * 32); ++e) {
            const int i = threadIdx.x + e * WARPS * 32, column = first + i / TALL, k = k0 + i % TALL;
            next[e] = column < D && k < K ? centres[(i64)column * K + k] : 0.0;
        }
    };
    for (i64 batch = (i64)blockIdx.x * each; batch < count; batch += (i64)gridDim.x * each) {  // a row a warp
        const bool there = warp < each && batch + warp < count;
        const i64 row = list[there ? batch + warp : batch];
        double best = __longlong_as_double(0x7ff0000000000000ll), sum[AT_ONCE] = {};
        int label = K;
        fetch(0);
        for (int step = 0; step < STEPS * CHUNKS; ++step) {
            const int k0 = step / STEPS * TALL, first = step % STEPS * 32;
            __syncthreads();
#pragma unroll
            for (int e = 0; e < TILE / (WARPS * 32); ++e) tile[threadIdx.x + e * WARPS * 32] = next[e];
            __syncthreads();
            if (step + 1 < STEPS * CHUNKS) fetch(step + 1);
            if (!there) continue;
            const int column = min(first + lane, D - 1), last = min(32, D - first);
            const double mine = number_of(raw[row * D + column], encoding, column, D);
#pragma unroll 4
            for (int j = 0; j < last; ++j) {
                const double x_j = __shfl_sync(FULL, mine, j);
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i) {
                    const double away = __dsub_rn(x_j, tile[j * TALL + 32 * i + lane]);
                    sum[i] = __dadd_rn(sum[i], __dmul_rn(away, away));
                }
            }
            if (first + 32 < D) continue;
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) {
                if (k0 + 32 * i + lane < K && sum[i] < best) { best = sum[i]; label = k0 + 32 * i + lane; }
                sum[i] = 0;
            }
        }
#pragma unroll
        for (int m = 16; m; m >>= 1) {
            const double other = __shfl_xor_sync(FULL, best, m);
            const int theirs = __shfl_xor_sync(FULL, label, m);
            if (other < best || (other == best && theirs < label)) { best = other; label = theirs; }
        }
        if (!there) continue;
        if (LABELS && lane == 0) labels[row] = label;
        if (SUMS && label < K) {
            for (int c = lane; c < DP; c += 32) {
                const Digits d = digits_of(fmaf(x[row * DP + c], units[c], units[DP + c]));
                const i64 value = joined(__float_as_int(d.high) - __float_as_int(MAGIC), __float_as_int(d.low) - __float_as_int(LOW_MAGIC));
                atomicAdd(sums + label * DP + c, (u64)value);
            }
            if (lane == 0) atomicAdd(sums + K * DP + label, 1ull);
        }
    }
    if (SUMS) {
        __syncthreads();
        for (int i = threadIdx.x; i < K * DP + K; i += WARPS * 32) partial[(i64)blockIdx.x * (K * DP + K) + i] = (i64)sums[i];
    }
}

// Sums of weight * number by label for any type of numbers, with or without weights: 45 bits of the table's range as
// integers in three parts of 15, so that bits depend on no order. A CTA takes 16 columns and a range of rows.
// Macros: D, K (labels in this launch), WEIGHTED, SMEM as the plan has counted it, and those of numbers.cuh.
#define SLICES ((D + 15) / 16)
#define KR (K + 1)
#define OFF_COUNT (KR * 192)
static_assert(OFF_COUNT + KR * 12 == SMEM, "the plan counts other bytes");
#define THREADS 1024
extern __shared__ __align__(128) u8 pool[];
DEVICE void add_parts(int* to, int apart, double value) {  // |value| < 2^14
    const double p0 = rint(value), r1 = (value - p0) * 32768.0, p1 = rint(r1), p2 = rint((r1 - p1) * 32768.0);
    atomicAdd(to, (int)p0);
    atomicAdd(to + apart, (int)p1);
    atomicAdd(to + 2 * apart, (int)p2);
}
// units: what numbers and weights are multiplied by. sums: (ranges, 3, K, D), counts: (ranges, 3, K).
extern "C" __global__ __launch_bounds__(THREADS, 1)
void kmeans_sums_any(const RAW* __restrict__ raw, i64 n, const double* __restrict__ encoding, const int* __restrict__ labels,
                     const double* __restrict__ weight, const double* __restrict__ units, i64* __restrict__ sums, i64* __restrict__ counts,
                     i64 first_label) {
    const int slice = blockIdx.x % SLICES, range = blockIdx.x / SLICES, ranges = gridDim.x / SLICES;
    const int lane = threadIdx.x & 15, pair = threadIdx.x >> 4, column = slice * 16 + lane;
    int* acc = (int*)pool;
    int* count = (int*)(pool + OFF_COUNT);
    for (int i = threadIdx.x; i < SMEM / 4; i += THREADS) acc[i] = 0;
    __syncthreads();
    const double unit = units[0], weight_unit = units[1];
    i64* out = sums + (i64)range * 3 * K * D;
    i64* out_count = counts + (i64)range * 3 * K;
    const i64 each = (n + ranges - 1) / ranges, first = min(range * each, n), last = min(first + each, n);
    for (i64 begin = first; begin == first || begin < last; begin += 65536) {  // once also where there are no rows
        const i64 end = min(begin + 65536, last);
        for (i64 row = begin + pair; row < end; row += THREADS / 16) {
            const int label = labels[row] - (int)first_label;
            if ((u32)label >= K) continue;
            const double w = WEIGHTED ? weight[row] : 1.0;
            if (column < D) add_parts(acc + label * 48 + lane, 16, (double)number_of(raw[row * D + column], encoding, column, D) * w * unit);
            if (slice == 0 && lane == 0) { if (WEIGHTED) add_parts(count + label * 3, 1, w * weight_unit); else atomicAdd(count + label * 3, 1); }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < K * 48; i += THREADS) {
            const int k = i / 48, part = i % 48 / 16, c = slice * 16 + i % 16;
            if (c < D) { i64* to = out + ((i64)part * K + k) * D + c; *to = (begin == first ? 0 : *to) + acc[i]; }
            acc[i] = 0;
        }
        if (slice == 0)
            for (int i = threadIdx.x; i < K * 3; i += THREADS) {
                i64* to = out_count + (i64)(i % 3) * K + i / 3;
                *to = (begin == first ? 0 : *to) + count[i];
                count[i] = 0;
            }
        __syncthreads();
    }
}

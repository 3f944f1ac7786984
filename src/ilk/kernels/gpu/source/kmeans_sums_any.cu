// Sums of weight * number by label for any type of numbers, with or without weights, exact: integers in PARTS of 15 bits in shared
// memory, and what few numbers have below them in global memory; bits depend on no order. A CTA takes 16 columns and a range of rows.
// Macros: D, K (labels in this launch), PARTS, WEIGHTED, SMEM as the plan has counted it, and those of numbers.cuh.
#define SLICES ((D + 15) / 16)
#define KR (K + 1)
#define OFF_COUNT (KR * PARTS * 64)
static_assert(OFF_COUNT + KR * PARTS * 4 == SMEM, "the plan counts other bytes");
#define THREADS 1024
extern __shared__ __align__(128) u8 pool[];
// |value| < 2^14; what is left is less than half a unit of 2^-15 (PARTS - 1), and is counted in units 2^-32 of that.
DEVICE void add_parts(int* to, int apart, double value, u64* rest) {
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
        const double whole = rint(value);
        if (whole != 0.0) atomicAdd(to + part * apart, (int)whole);
        value -= whole;
        if (part < PARTS - 1) value *= 32768.0;
    }
    if (value != 0.0) atomicAdd(rest, (u64)__double2ll_rn(value * 0x1p32));
}
// units: what numbers and weights are multiplied by. sums: (ranges, PARTS, K, D), counts: (ranges, PARTS, K); rests: (K, D), then (K).
extern "C" __global__ __launch_bounds__(THREADS, 1)
void kmeans_sums_any(const RAW* __restrict__ raw, i64 n, const double* __restrict__ encoding, const int* __restrict__ labels,
                     const double* __restrict__ weight, const double* __restrict__ units, i64* __restrict__ sums, i64* __restrict__ counts,
                     u64* __restrict__ rests, i64 first_label) {
    const int slice = blockIdx.x % SLICES, range = blockIdx.x / SLICES, ranges = gridDim.x / SLICES;
    const int lane = threadIdx.x & 15, pair = threadIdx.x >> 4, column = slice * 16 + lane;
    int* acc = (int*)pool;
    int* count = (int*)(pool + OFF_COUNT);
    for (int i = threadIdx.x; i < SMEM / 4; i += THREADS) acc[i] = 0;
    __syncthreads();
    const double unit = units[0], weight_unit = units[1];
    i64* out = sums + (i64)range * PARTS * K * D;
    i64* out_count = counts + (i64)range * PARTS * K;
    const i64 each = (n + ranges - 1) / ranges, first = min(range * each, n), last = min(first + each, n);
    for (i64 begin = first; begin == first || begin < last; begin += 32768) {  // once also where there are no rows
        const i64 end = min(begin + 32768, last);
        for (i64 row = begin + pair; row < end; row += THREADS / 16) {
            const int label = labels[row] - (int)first_label;
            if ((u32)label >= K) continue;
            const double w = WEIGHTED ? weight[row] : 1.0;
            if (column < D) {
                const double own = (double)number_of(raw[row * D + column], encoding, column, D) * unit, product = own * w;
                int* to = acc + label * PARTS * 16 + lane;
                u64* rest = rests + (i64)label * D + column;
                add_parts(to, 16, product, rest);
                if (WEIGHTED) add_parts(to, 16, fma(own, w, -product), rest);
            }
            if (slice == 0 && lane == 0) { if (WEIGHTED) add_parts(count + label * PARTS, 1, w * weight_unit, rests + (i64)K * D + label); else atomicAdd(count + label * PARTS, 1); }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < K * PARTS * 16; i += THREADS) {
            const int k = i / (PARTS * 16), part = i / 16 % PARTS, c = slice * 16 + i % 16;
            if (c < D) { i64* to = out + ((i64)part * K + k) * D + c; *to = (begin == first ? 0 : *to) + acc[i]; }
            acc[i] = 0;
        }
        if (slice == 0)
            for (int i = threadIdx.x; i < K * PARTS; i += THREADS) {
                i64* to = out_count + (i64)(i % PARTS) * K + i / PARTS;
                *to = (begin == first ? 0 : *to) + count[i];
                count[i] = 0;
            }
        __syncthreads();
    }
}

// Sums of rows by label where they do not fit into shared memory at once: a CTA takes 16 columns and a range of rows.
// Whole numbers (digits.cuh), written out every 65,536 rows: bits depend on no order.
// Macros: D, K, HALF, that of digits.cuh, and SMEM as the plan has counted it. Labels less than `first` or K and more beyond it are left out.
#define BYTES (HALF ? 2 : 4)
#define SLICES (D / 16)
#define KR (K + 1)                   // one more for rows beyond the end
#define OFF_COUNT (KR * 128)
static_assert(OFF_COUNT + KR * 4 == SMEM, "the plan counts other bytes");
#define THREADS 1024
extern __shared__ __align__(1024) u8 pool[];
// grid: (SLICES * ranges). units: (2, D) and ran_over as in kmeans_few.cu. sums: (ranges, K, D), counts: (ranges, K), which start at zero here.
extern "C" __global__ __launch_bounds__(THREADS, 1)
void kmeans_sums(const u8* __restrict__ x, i64 n, const int* __restrict__ labels, const float* __restrict__ units,
                 i64* __restrict__ sums, i64* __restrict__ counts, int* __restrict__ ran_over, i64 first_label) {
    const int slice = blockIdx.x % SLICES, range = blockIdx.x / SLICES, ranges = gridDim.x / SLICES;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, half = lane >> 4, column = slice * 16 + (lane & 15);
    int* acc = (int*)pool;
    int* count = (int*)(pool + OFF_COUNT);
    for (int i = threadIdx.x; i < SMEM / 4; i += THREADS) acc[i] = 0;
    __syncthreads();
    const float unit = units[column], base = units[D + column];
    u8 *first_part = pool + (lane & 15) * 4 + half * 64, *second_part = pool + (lane & 15) * 4 + 64 - half * 64;
    i64* out = sums + (i64)range * K * D;
    i64* out_count = counts + (i64)range * K;
    const i64 groups = (n + 31) / 32, each = (groups + ranges - 1) / ranges;
    const i64 first = range * each, last = min(first + each, groups);
    for (i64 begin = first; begin == first || begin < last; begin += 2048) {  // 65,536 rows; once also where there are none
        const i64 end = min(begin + 2048, last);
        for (i64 group = begin + warp; group < end; group += THREADS / 32) {
            const i64 row = group * 32;
            int label = row + lane < n ? labels[row + lane] - (int)first_label : K;
            if ((u32)label >= K) label = K;
            atomicAdd(count + label, 1);
            float v[16];
            if (row + 32 <= n) {
                const u8* from = x + ((row + 16 * half) * D + column) * BYTES;
#pragma unroll
                for (int i = 0; i < 16; ++i) {
                    if (HALF) asm("cvt.f32.f16 %0, %1;" : "=f"(v[i]) : "h"(*(const u16*)(from + i * D * 2)));
                    else v[i] = *(const float*)(from + i * D * 4);
                }
            } else {
#pragma unroll
                for (int i = 0; i < 16; ++i) {
                    const u8* from = x + (min(row + i + 16 * half, n - 1) * D + column) * BYTES;
                    if (HALF) asm("cvt.f32.f16 %0, %1;" : "=f"(v[i]) : "h"(*(const u16*)from));
                    else v[i] = *(const float*)from;
                }
            }
            const int place = label * 128;
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                const int p = __shfl_sync(FULL, place, i + 16 * half);
                const Digits d = digits_of(fmaf(v[i], unit, base));
                // half of the lanes begin with the low parts: no bank twice
                atomicAdd((int*)(first_part + p), __float_as_int(half ? d.low : d.high));
                atomicAdd((int*)(second_part + p), __float_as_int(half ? d.high : d.low));
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < K * 16; i += THREADS) {
            const int k = i / 16, c = i % 16;
            const i64 value = joined(acc[k * 32 + c] - count[k] * __float_as_int(MAGIC), acc[k * 32 + 16 + c] - count[k] * __float_as_int(LOW_MAGIC));
            acc[k * 32 + c] = acc[k * 32 + 16 + c] = 0;
            i64* to = out + (i64)k * D + slice * 16 + c;
            *to = (begin == first ? 0 : *to) + value;
        }
        __syncthreads();
        for (int k = threadIdx.x; k < K; k += THREADS) {
            if (slice == 0) out_count[k] = (begin == first ? 0 : out_count[k]) + count[k];
            if (count[k] > 1 << HEADROOM) *ran_over = 1;
            count[k] = 0;
        }
        if (threadIdx.x == 0) count[K] = 0;
        __syncthreads();
    }
}

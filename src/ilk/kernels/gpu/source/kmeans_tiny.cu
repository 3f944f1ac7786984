// One pass of K-means for one to four columns, in plain float: a thread PER rows at a time straight from global memory;
// centres in shared memory, read once for all PER rows; sums by integer atomics, a lane a row.
// A row whose two least scores are nearer than `tolerance` * (|x|^2 + 2 max |c|^2) goes on a list for kmeans_exact.cu.
// Macros: D (1 to 4), K, PER (4), LABELS, BLOCK_ROWS, that of digits.cuh, and SMEM as the plan has counted it.
#define THREADS 512
#define KR (K + 1)
#define SPAN 8                       // centres whose least score is found before the index is
#define KP ((K + SPAN - 1) / SPAN * SPAN)
#define WIDTH (D <= 1 ? 2 : D <= 3 ? 4 : 8)
extern __shared__ __align__(1024) u8 pool[];
#define STRIDE (SPAN * WIDTH + 4)    // floats of a span in shared memory: spans that lanes look up lie on different banks
#define OFF_COUNT (KP / SPAN * STRIDE * 4)
#define OFF_SUM (OFF_COUNT + KR * 4)
static_assert(OFF_SUM + KR * D * 8 == SMEM, "the plan counts other bytes");
// units: as in kmeans_few.cu. centres: (KP, WIDTH): -2 c scaled, then the norm; norms beyond K are huge. One CTA a block of rows, several on an SM.
extern "C" __global__ __launch_bounds__(THREADS)
void kmeans_tiny(const float* __restrict__ x, i64 n, const float* __restrict__ given, const float* __restrict__ shift, const float* __restrict__ units,
                 i64* __restrict__ partial, int* __restrict__ labels, float tolerance, float largest, int* __restrict__ open, i64 room_open,
                 int* __restrict__ n_open) {
    float* c = (float*)pool;
    int* count = (int*)(pool + OFF_COUNT);
    int* sums = (int*)(pool + OFF_SUM);  // [column][high, low][label]: labels of a warp lie on different banks
    for (int i = threadIdx.x; i < KP * WIDTH; i += THREADS) c[i / (SPAN * WIDTH) * STRIDE + i % (SPAN * WIDTH)] = given[i];
    for (int i = threadIdx.x; i < KR + KR * D * 2; i += THREADS) count[i] = 0;
    __syncthreads();
    float sh[D], unit[D];
#pragma unroll
    for (int d = 0; d < D; ++d) { sh[d] = shift[d]; unit[d] = units[d]; }
    const i64 first = (i64)blockIdx.x * BLOCK_ROWS;
    const int rows = (int)min((i64)BLOCK_ROWS, n - first);
    for (int at = threadIdx.x * PER; at < rows; at += THREADS * PER) {
        float v[PER][D], raw[PER * D];
        if (at + PER <= rows) {
#pragma unroll
            for (int i = 0; i < PER * D / 4; ++i) { const float4 f = ((const float4*)(x + (first + at) * D))[i]; raw[4 * i] = f.x; raw[4 * i + 1] = f.y; raw[4 * i + 2] = f.z; raw[4 * i + 3] = f.w; }
        } else {
#pragma unroll
            for (int i = 0; i < PER * D; ++i) raw[i] = (at * D + i) < rows * D ? x[(first + at) * D + i] : 0.0f;
        }
#pragma unroll
        for (int r = 0; r < PER; ++r)
#pragma unroll
            for (int d = 0; d < D; ++d) v[r][d] = raw[r * D + d] - sh[d];
        float best[PER], second[PER];
        int span[PER];
#pragma unroll
        for (int r = 0; r < PER; ++r) { best[r] = second[r] = __int_as_float(0x7f800000); span[r] = 0; }
        auto take = [&](const float* from, float (&centre)[WIDTH]) {  // in as few reads as it can be
#pragma unroll
            for (int w = 0; w < WIDTH; w += WIDTH < 4 ? 2 : 4) {
                if (WIDTH < 4) { const float2 f = *(const float2*)(from + w); centre[w] = f.x; centre[w + 1] = f.y; }
                else { const float4 f = *(const float4*)(from + w); centre[w] = f.x; centre[w + 1] = f.y; centre[w + 2] = f.z; centre[w + 3] = f.w; }
            }
        };
        auto score = [&](int r, const float (&centre)[WIDTH]) {
            float s = centre[D];
#pragma unroll
            for (int d = 0; d < D; ++d) s = fmaf(v[r][d], centre[d], s);
            return s;
        };
        for (int k = 0; k < KP / SPAN; ++k) {
            float low[PER];
#pragma unroll
            for (int r = 0; r < PER; ++r) low[r] = __int_as_float(0x7f800000);
#pragma unroll
            for (int j = 0; j < SPAN; ++j) {
                float centre[WIDTH];
                take(c + k * STRIDE + j * WIDTH, centre);
#pragma unroll
                for (int r = 0; r < PER; ++r) low[r] = fminf(low[r], score(r, centre));
            }
#pragma unroll
            for (int r = 0; r < PER; ++r) { second[r] = fminf(second[r], fmaxf(best[r], low[r])); if (low[r] < best[r]) span[r] = k; best[r] = fminf(best[r], low[r]); }
        }
#pragma unroll
        for (int r = 0; r < PER; ++r) {
            int label = K, within = 0;
            float square = 2 * largest;
#pragma unroll
            for (int d = 0; d < D; ++d) square = fmaf(v[r][d], v[r][d], square);
            const float limit = fmaf(tolerance, square, best[r]);
#pragma unroll
            for (int j = SPAN - 1; j >= 0; --j) {
                float centre[WIDTH];
                take(c + span[r] * STRIDE + j * WIDTH, centre);
                if (score(r, centre) <= limit) { label = span[r] * SPAN + j; ++within; }
            }
            if (at + r >= rows) label = K;
            else if (within != 1 | second[r] <= limit) { label = K; note(open, room_open, n_open, first + at + r); }
            else if (LABELS) labels[first + at + r] = label;
            atomicAdd(count + label, 1);
#pragma unroll
            for (int d = 0; d < D; ++d) {
                const Digits own = digits_of(v[r][d] * unit[d]);
                atomicAdd(sums + 2 * d * KR + label, __float_as_int(own.high));
                atomicAdd(sums + (2 * d + 1) * KR + label, __float_as_int(own.low));
            }
        }
    }
    __syncthreads();
    i64* out = partial + (i64)blockIdx.x * (K * D + K);
    for (int i = threadIdx.x; i < K * D; i += THREADS) {
        const int k = i / D, *from = sums + i % D * 2 * KR + k;
        out[i] = joined(from[0] - count[k] * __float_as_int(MAGIC), from[KR] - count[k] * __float_as_int(LOW_MAGIC));
    }
    for (int i = threadIdx.x; i < K; i += THREADS) out[K * D + i] = count[i];
}

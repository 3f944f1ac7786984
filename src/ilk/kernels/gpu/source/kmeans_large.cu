// Labels where there are many centres: they stream through shared memory in chunks of NC, products by wgmma.
//
// Three warpgroups take 64 rows each (fragments stay in registers), so one warpgroup's products run under the search of
// the other two. One f16 number a value (TERMS 1) screens: a row with two scores nearer than the bound on its rounding
// goes on a list, which a second launch (GATHER 1, TERMS 3: split numbers, as good as float) settles; what that leaves
// open goes on a list for kmeans_exact.cu.
// Macros: D (multiple of 64), CHUNKS of NC centres, STAGES, TERMS, GATHER, HALF (data are f16: no shift, hi is exact), and
// SMEM as the plan has counted it.
#define KS (D / 16)
#define PARTS (TERMS == 3 ? 2 : 1)
#define BYTES (HALF ? 2 : 4)
#define CHUNK_BYTES (PARTS * NC * D * 2)
#define X_BYTES (64 * D * BYTES)
#define OFF_X (STAGES * CHUNK_BYTES)
#define OFF_NORM (OFF_X + 3 * X_BYTES)
#define OFF_SHIFT (OFF_NORM + CHUNKS * NC * 4)
#define OFF_BAR (OFF_SHIFT + D * 4)
static_assert(OFF_BAR + (2 * STAGES + 6) * 8 == SMEM, "the plan counts other bytes");
// Bound on the rounding of two scores: every step of the products, and what split numbers leave out.
#define ROUNDING (TERMS == 3 ? (3 * KS + 7) * 0x1p-21f : (KS + 3) * 0x1p-21f)
extern __shared__ __align__(1024) u8 pool[];
#define GLUE2(a, b) a##b
#define GLUE(a, b) GLUE2(a, b)

// image: per chunk, hi (and lo) parts of -2 c as wgmma reads them. limits: largest |c|, largest |c - hi|.
// found: how many rows are on the list (added to where TERMS is 1, read where GATHER is 1); open, n_open: those of TERMS 3.
extern "C" __global__ __launch_bounds__(512, 1)
void kmeans_large(const u8* __restrict__ x, i64 rows, const u8* __restrict__ image, const float* __restrict__ norms,
                  const float* __restrict__ shift, float scale, const float* __restrict__ limits, int* __restrict__ labels,
                  int* __restrict__ list, int* __restrict__ found, int* __restrict__ open, i64 room_open, int* __restrict__ n_open) {
    const int warp = __shfl_sync(FULL, threadIdx.x >> 5, 0), lane = threadIdx.x & 31;
    u64* bfull = (u64*)(pool + OFF_BAR);
    u64 *bempty = bfull + STAGES, *xfull = bempty + STAGES, *xempty = xfull + 3;
    float* norm = (float*)(pool + OFF_NORM);
    float* offset = (float*)(pool + OFF_SHIFT);  // -shift * scale
    for (int i = threadIdx.x; i < CHUNKS * NC; i += 512) norm[i] = norms[i];
    for (int i = threadIdx.x; i < D; i += 512) offset[i] = -shift[i] * scale;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) { barrier_init(bfull + s, 1); barrier_init(bempty + s, 12); }
        for (int w = 0; w < 3; ++w) { barrier_init(xfull + w, 1); barrier_init(xempty + w, 4); }
        barrier_fence();
    }
    __syncthreads();
    const i64 n = GATHER ? *found : rows;
    const int tiles = (int)((n + 63) / 64), rounds = (tiles + 3 * gridDim.x - 1) / (3 * gridDim.x);
    if (warp >= 12) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
        if (warp == 12 && lane == 0) {  // centres
            int stage = 0;
            u32 phase = 1;
            for (int r = 0; r < rounds; ++r)
                for (int c = 0; c < CHUNKS; ++c) {
                    barrier_wait(bempty + stage, phase);
                    barrier_expect(bfull + stage, CHUNK_BYTES);
                    bulk_load(pool + stage * CHUNK_BYTES, image + (i64)c * CHUNK_BYTES, CHUNK_BYTES, bfull + stage);
                    if (++stage == STAGES) { stage = 0; phase ^= 1; }
                }
        } else if (warp == 13) {  // rows
            for (int r = 0; r < rounds; ++r)
                for (int w = 0; w < 3; ++w) {
                    barrier_wait(xempty + w, (r & 1) ^ 1);
                    const i64 row = ((i64)(r * gridDim.x + blockIdx.x) * 3 + w) * 64;
                    const int there = row < n ? (int)min((i64)64, n - row) : 0;
                    if (lane == 0) barrier_expect(xfull + w, there * D * BYTES);
                    __syncwarp();
                    u8* to = pool + OFF_X + w * X_BYTES;
                    if (GATHER) {
                        for (int i = lane; i < there; i += 32) bulk_load(to + i * D * BYTES, x + (i64)list[row + i] * D * BYTES, D * BYTES, xfull + w);
                    } else if (lane == 0 && there) bulk_load(to, x + row * D * BYTES, there * D * BYTES, xfull + w);
                }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
        const int wg = warp >> 2, quarter = warp & 3, g = lane >> 2, q = lane & 3, odd = g & 1;
        const u64 b0 = operand(smem_address(pool), NC / 8 * 128, 128);
        const float cmax = limits[0], cdelta = limits[1];
        int stage = 0;
        u32 phase = 0;
        for (int round = 0; round < rounds; ++round) {
            u32 hi[KS][4], lo[TERMS == 3 && !HALF ? KS : 1][4];
            float square[2] = {0, 0}, delta[2] = {0, 0};
            barrier_wait(xfull + wg, round & 1);
            const u8* tile = pool + OFF_X + wg * X_BYTES + quarter * 16 * D * BYTES;
#pragma unroll
            for (int u = 0; u < D * BYTES / 128; ++u) {  // pieces 2q and 2q + 1 of every eight; odd rows in the other order
                float4 off[2];
                if (!HALF) { off[0] = ((const float4*)offset)[8 * u + 2 * q]; off[1] = ((const float4*)offset)[8 * u + 2 * q + 1]; }
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const uint4* line = (const uint4*)(tile + (g + 8 * h) * D * BYTES);
                    const uint4 one = line[8 * u + 2 * q + odd], two = line[8 * u + 2 * q + 1 - odd];
                    const uint4 first = odd ? two : one, second = odd ? one : two;
                    const u32 words[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
#pragma unroll
                    for (int v = 0; v < 2; ++v)
#pragma unroll
                        for (int e = 0; e < 2; ++e) {
                            if (HALF) {  // eight halves a piece: two steps along k
#pragma unroll
                                for (int f = 0; f < 2; ++f) {
                                    const u32 pair = words[4 * v + 2 * f + e];
                                    hi[(2 * u + v) * 2 + f < KS ? (2 * u + v) * 2 + f : 0][2 * e + h] = pair;
                                    const float a = low_half(pair), b = high_half(pair);
                                    square[h] = fmaf(a, a, fmaf(b, b, square[h]));
                                }
                            } else {
                                const int s = 2 * u + v < KS ? 2 * u + v : 0;
                                const float a = fmaf(__uint_as_float(words[4 * v + 2 * e]), scale, e ? off[v].z : off[v].x);
                                const float b = fmaf(__uint_as_float(words[4 * v + 2 * e + 1]), scale, e ? off[v].w : off[v].y);
                                const u32 pair = halves(a, b);
                                const float da = a - low_half(pair), db = b - high_half(pair);
                                hi[s][2 * e + h] = pair;
                                if (TERMS == 3) lo[s < (TERMS == 3 && !HALF ? KS : 1) ? s : 0][2 * e + h] = halves(da, db);
                                else delta[h] = fmaf(da, da, fmaf(db, db, delta[h]));
                                square[h] = fmaf(a, a, fmaf(b, b, square[h]));
                            }
                        }
                }
            }
            __syncwarp();
            if (lane == 0) barrier_arrive(xempty + wg);
            Search found_row[2];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
#pragma unroll
                for (int m = 1; m <= 2; m <<= 1) { square[h] += __shfl_xor_sync(FULL, square[h], m); delta[h] += __shfl_xor_sync(FULL, delta[h], m); }
                const float length = root(square[h]);
                found_row[h] = search_begun(length, HALF ? 0.0f : TERMS == 3 ? length * 0x1p-21f + 4e-7f : root(delta[h]), cmax, cdelta, ROUNDING);
            }
            for (int c = 0; c < CHUNKS; ++c) {
                float acc[NC / 2];
#pragma unroll
                for (int j = 0; j < NC / 8; ++j) {
                    const float2 two = *(const float2*)(norm + c * NC + 8 * j + 2 * q);
                    acc[4 * j] = acc[4 * j + 2] = two.x;
                    acc[4 * j + 1] = acc[4 * j + 3] = two.y;
                }
                barrier_wait(bfull + stage, phase);
                const u64 bs = b0 + (stage * CHUNK_BYTES >> 4);
                wgmma_fence();
#pragma unroll
                for (int s = 0; s < KS; ++s) {
                    const u64 b = bs + (s * 2 * (NC / 8) * 128 >> 4), b_lo = b + (D / 8 * (NC / 8) * 128 >> 4);
                    GLUE(wgmma_, NC)(acc, hi[s][0], hi[s][1], hi[s][2], hi[s][3], b, 1);
                    if (TERMS == 3) {
                        GLUE(wgmma_, NC)(acc, hi[s][0], hi[s][1], hi[s][2], hi[s][3], b_lo, 1);
                        if (!HALF) GLUE(wgmma_, NC)(acc, lo[s < (TERMS == 3 && !HALF ? KS : 1) ? s : 0][0], lo[s < (TERMS == 3 && !HALF ? KS : 1) ? s : 0][1], lo[s < (TERMS == 3 && !HALF ? KS : 1) ? s : 0][2], lo[s < (TERMS == 3 && !HALF ? KS : 1) ? s : 0][3], b, 1);
                    }
                }
                wgmma_commit();
                wgmma_wait<0>();
                if (lane == 0) barrier_arrive(bempty + stage);
                if (++stage == STAGES) { stage = 0; phase ^= 1; }
#pragma unroll
                for (int h = 0; h < 2; ++h) search_chunk(found_row[h], acc, h, c);
            }
            const i64 first = ((i64)(round * gridDim.x + blockIdx.x) * 3 + wg) * 64 + quarter * 16 + g;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const i64 row = first + 8 * h;
                bool unsure;
                const int label = search_ended(found_row[h], q, unsure);
                const int own = row < n ? (GATHER ? list[row] : (int)row) : 0;
                if (TERMS == 1) list_rows(unsure && row < n, lane, own, list, rows, found);
                else list_rows(unsure && row < n, lane, own, open, room_open, n_open);
                if (q == 0 && row < n) labels[own] = label;
            }
        }
    }
}

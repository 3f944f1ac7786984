// EM for latent classes over categorical columns: scores, memberships and weighted counts of levels from one read of the
// codes. 16 components, up to 128 levels in all, whole numbers on int8 tensor cores throughout, which add in any order.
//
// codes: (COLS, stride) bytes, a column after the other. A byte says where the level lies among the 32 places of its lane
// (columns are dealt out to the four lanes of a quad); 64 is a missing cell. n is a multiple of 32.
// E: scores = T * one-hot; T in units of 2^-20 bits as four signed bytes, the one-hot from a mask of 32 bits a lane.
// M: memberships in units of 2^-22 as parts of 7, 8 and 7 bits, times [code > threshold]; counts of levels are differences.
// The one-hot bytes are 1 for the first part and 128 for the second, so that both add into one sum.
// A warp takes 32 rows at a time and CHUNK rows in all before it writes its sums (int32 holds 65,536 rows of one component).
// Macros: COLS, BIN columns a lane at most, NT tiles of 8 thresholds, WARPS, CHUNK, SMEM as the plan has counted it.
#define TALL 128                     // rows copied at a time
#define SLOT ((COLS + 1) * TALL)
#define STAGES 2
#define WIDTH (NT * 128 + 1)         // thresholds x components, cost
#define OFF_T 0                      // digits: [digit][step][lane][4 words]
#define OFF_LIMIT (16 * 32 * 16)     // [tile][8]: the pattern to add, and the column's offset
#define OFF_BAR (OFF_LIMIT + NT * 64)
#define OFF_X ((OFF_BAR + WARPS * STAGES * 8 + 127) / 128 * 128)
#define SCALE 4194304.0f             // 2^22
extern __shared__ __align__(1024) u8 pool[];
static_assert(OFF_X + WARPS * STAGES * SLOT == SMEM, "the plan counts other bytes");

DEVICE void mma_s8(int (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
DEVICE void mma_u8(int (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
DEVICE u32 pick(u32 a, u32 b, u32 selector) {
    u32 d;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selector));
    return d;
}
DEVICE u32 bit(u32 place) {  // 0 from 32 on
    u32 d;
    asm("shl.b32 %0, 1, %1;" : "=r"(d) : "r"(place));
    return d;
}
DEVICE float exp2_fast(float v) {
    float d;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(v));
    return d;
}
DEVICE float log2_fast(float v) {
    float d;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(v));
    return d;
}

extern "C" __global__ __launch_bounds__(WARPS * 32, 1)
void latent_classes(const u8* __restrict__ codes, i64 stride, i64 n, const uint4* __restrict__ digits, const int* __restrict__ log_mixing,
                 const int* __restrict__ bins, const uint2* __restrict__ limits, int* __restrict__ next_chunk, i64* __restrict__ partial) {
    const int warp = __shfl_sync(FULL, threadIdx.x >> 5, 0), lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    u64* bar = (u64*)(pool + OFF_BAR) + warp * STAGES;
    u8* ring = pool + OFF_X + warp * STAGES * SLOT;
    for (int i = threadIdx.x; i < 16 * 32; i += WARPS * 32) ((uint4*)pool)[i] = digits[i];
    for (int i = threadIdx.x; i < NT * 8; i += WARPS * 32) ((uint2*)(pool + OFF_LIMIT))[i] = limits[i];
    for (int i = lane; i < TALL; i += 32) for (int s = 0; s < STAGES; ++s) ring[s * SLOT + COLS * TALL + i] = 64;  // a column that says nothing
    if (lane == 0) { for (int s = 0; s < STAGES; ++s) barrier_init(bar + s, AMPERE ? 32 : 1); barrier_fence(); }
    __syncthreads();
    int own[BIN];  // offsets of this lane's columns
#pragma unroll
    for (int b = 0; b < BIN; ++b) own[b] = bins[q * BIN + b] * TALL + 4 * (g >> 1);
    const u32 even = (g & 1) | 0x4440, odd = (2 + (g & 1)) | 0x4440;  // a byte of the first or second half of a word
    const int mix0 = log_mixing[g], mix1 = log_mixing[g + 8];
    const int chunks = (int)((n + CHUNK - 1) / CHUNK);
    int stage = 0;
    u32 phase = 0;
    for (;;) {
        int chunk = 0;
        if (lane == 0) chunk = atomicAdd(next_chunk, 1);
        chunk = __shfl_sync(FULL, chunk, 0);
        if (chunk >= chunks) break;
        const i64 begin = (i64)chunk * CHUNK;
        const int pieces = (int)((min(n, begin + CHUNK) - begin + TALL - 1) / TALL);
        auto copy = [&](int piece, int s) {
            const u8* from = codes + begin + (i64)piece * TALL;
#if AMPERE
            for (int i = lane; i < COLS * (TALL / 16); i += 32) copy16(ring + s * SLOT + i * 16, from + i / (TALL / 16) * stride + i % (TALL / 16) * 16);
            barrier_follow(bar + s);
#else
            if (lane == 0) barrier_expect(bar + s, COLS * TALL);
            __syncwarp();
            if (lane < COLS) bulk_load(ring + s * SLOT + lane * TALL, from + lane * stride, TALL, bar + s);
#endif
        };
        int first_stage = stage;
        for (int s = 0; s < STAGES && s < pieces; ++s) copy(s, (first_stage + s) % STAGES);
        int sums[NT][4], top[NT][4];
#pragma unroll
        for (int t = 0; t < NT; ++t)
#pragma unroll
            for (int e = 0; e < 4; ++e) sums[t][e] = top[t][e] = 0;
        double cost = 0;
        for (int piece = 0; piece < pieces; ++piece) {
            barrier_wait(bar + stage, phase);
            const u8* slot = ring + stage * SLOT;
            for (int group = 0; group < TALL / 32; ++group) {
                if (begin + piece * TALL + group * 32 >= n) break;
                const u8* x = slot + group * 32;
                u32 mask[4] = {0, 0, 0, 0};  // of four tiles of 8 rows: rows 16 (t / 2) + 4 (g / 2) + 2 (t % 2) + g % 2
#pragma unroll
                for (int b = 0; b < BIN; ++b) {
                    const u32 w0 = *(const u32*)(x + own[b]), w1 = *(const u32*)(x + own[b] + 16);
                    mask[0] |= bit(pick(w0, 0, even)); mask[1] |= bit(pick(w0, 0, odd));
                    mask[2] |= bit(pick(w1, 0, even)); mask[3] |= bit(pick(w1, 0, odd));
                }
                int score[4][4];
#pragma unroll
                for (int t = 0; t < 4; ++t)
#pragma unroll
                    for (int e = 0; e < 4; ++e) score[t][e] = 0;
#pragma unroll
                for (int digit = 3; digit >= 0; --digit) {
                    if (digit < 3) {
#pragma unroll
                        for (int t = 0; t < 4; ++t)
#pragma unroll
                            for (int e = 0; e < 4; ++e) score[t][e] = (score[t][e] << 8) + (digit == 0 ? (e < 2 ? mix0 : mix1) : 0);
                    }
#pragma unroll
                    for (int s = 0; s < 4; ++s) {
                        const uint4 a = ((const uint4*)(pool + OFF_T))[(digit * 4 + s) * 32 + lane];
#pragma unroll
                        for (int t = 0; t < 4; ++t) mma_s8(score[t], a.x, a.y, a.z, a.w, mask[t] >> (2 * s) & 0x01010101, mask[t] >> (2 * s + 1) & 0x01010101);
                    }
                }
                // Memberships: this thread has components g, g + 8 of rows 2q, 2q + 1 of each tile.
                u32 packed[4];
#pragma unroll
                for (int t = 0; t < 4; ++t) {  // the top 16 bits of the largest scores of two rows: enough to scale by
                    const int a = max(score[t][0], score[t][2]), b = max(score[t][1], score[t][3]);
                    packed[t] = pick(a, b, 0x7632);
                }
#pragma unroll
                for (int m = 4; m <= 16; m <<= 1)
#pragma unroll
                    for (int t = 0; t < 4; ++t) packed[t] = __vmaxs2(packed[t], __shfl_xor_sync(FULL, packed[t], m));
                float r[4][4], lse = 0;
#pragma unroll
                for (int t = 0; t < 4; ++t) {
                    const int ref0 = packed[t] << 16, ref1 = packed[t] & 0xffff0000;
#pragma unroll
                    for (int e = 0; e < 4; ++e) r[t][e] = exp2_fast((float)(score[t][e] - (e & 1 ? ref1 : ref0)) * 0x1p-20f);
                    float s0 = r[t][0] + r[t][2], s1 = r[t][1] + r[t][3];
#pragma unroll
                    for (int m = 4; m <= 16; m <<= 1) { s0 += __shfl_xor_sync(FULL, s0, m); s1 += __shfl_xor_sync(FULL, s1, m); }
                    lse += (float)ref0 * 0x1p-20f + log2_fast(s0) + ((float)ref1 * 0x1p-20f + log2_fast(s1));
                    const float i0 = __fdividef(SCALE, s0), i1 = __fdividef(SCALE, s1);
#pragma unroll
                    for (int e = 0; e < 4; ++e) r[t][e] = fmaf(r[t][e], e & 1 ? i1 : i0, 8388608.0f);  // low bits: units of 2^-22
                }
                cost += lse;  // the same in the lanes of one q
                u32 planes[3][4];
#pragma unroll
                for (int h = 0; h < 2; ++h)  // rows 0 to 15, 16 to 31
#pragma unroll
                    for (int m = 0; m < 2; ++m) {  // components g, g + 8
                        const u32 a = __float_as_uint(r[2 * h][2 * m]), b = __float_as_uint(r[2 * h][2 * m + 1]);
                        const u32 c = __float_as_uint(r[2 * h + 1][2 * m]), d = __float_as_uint(r[2 * h + 1][2 * m + 1]);
                        // bits 0 to 6, 7 to 14, 15 to 22 of four numbers
                        const u32 ab = pick(a, b, 0x5140), cd = pick(c, d, 0x5140);
                        planes[0][2 * h + m] = pick(ab, cd, 0x5410) & 0x7f7f7f7f;
                        const u32 ab2 = pick(a << 1, b << 1, 0x6251), cd2 = pick(c << 1, d << 1, 0x6251);  // bytes 1 and 2 of the doubles
                        planes[1][2 * h + m] = pick(ab2, cd2, 0x5410);
                        planes[2][2 * h + m] = pick(ab2, cd2, 0x7632);
                    }
                const u8* words = x + 4 * q;
#pragma unroll
                for (int t = 0; t < NT; ++t) {
                    const uint2 limit = ((const uint2*)(pool + OFF_LIMIT))[t * 8 + g];
                    const u32 b0 = (*(const u32*)(words + limit.y) + limit.x) & 0x80808080, b1 = (*(const u32*)(words + limit.y + 16) + limit.x) & 0x80808080;
                    mma_u8(sums[t], planes[1][0], planes[1][1], planes[1][2], planes[1][3], b0, b1);
                    mma_u8(sums[t], planes[0][0], planes[0][1], planes[0][2], planes[0][3], b0 >> 7, b1 >> 7);
                    mma_u8(top[t], planes[2][0], planes[2][1], planes[2][2], planes[2][3], b0 >> 7, b1 >> 7);
                }
            }
            __syncwarp();
            if (piece + STAGES < pieces) copy(piece + STAGES, stage);
            if (++stage == STAGES) { stage = 0; phase ^= 1; }
        }
        i64* out = partial + (i64)chunk * WIDTH;
#pragma unroll
        for (int t = 0; t < NT; ++t)
#pragma unroll
            for (int e = 0; e < 4; ++e)  // [tile][threshold][component]
                out[t * 128 + (2 * q + (e & 1)) * 16 + g + 8 * (e >> 1)] = (i64)sums[t][e] + ((i64)top[t][e] << 15);
        cost += __shfl_xor_sync(FULL, cost, 1); cost += __shfl_xor_sync(FULL, cost, 2);
        if (lane == 0) out[NT * 128] = (i64)(cost * 1048576.0);
    }
}

// Codes (COLS, n) as `product.cu` has them to bytes as above, rows beyond n missing; counts rows without a code, and cells.
extern "C" __global__ __launch_bounds__(256)
void class_codes(const u8* __restrict__ from, i64 n, i64 stride, const int* __restrict__ base, u8* __restrict__ codes, int* __restrict__ blank) {
    const i64 step = (i64)gridDim.x * blockDim.x;
    for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < stride; row += step) {
        bool told = row >= n;
        int missing = 0;
        for (int c = 0; c < COLS; ++c) {
            const u8 code = row < n ? from[c * n + row] : 255;
            told |= code != 255;
            missing += row < n && code == 255;
            codes[c * stride + row] = code == 255 ? 64 : (u8)(base[c] + code);
        }
        if (!told) atomicAdd(blank, 1);
        if (missing) atomicAdd(blank + 1, missing);
    }
}

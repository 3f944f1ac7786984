// Labels by `mma.sync`, for cards without the wgmma of Hopper (Ampere, Ada, Blackwell) and for wide tables. Centres in chunks of NC,
// TILES times 16 rows a warp, whose fragments come straight from memory and stay in registers; of more than 128 columns a slab at a
// time, read again for each chunk.
//
// As kmeans_large.cu: TERMS 1 screens, and rows with two scores nearer than the bound on its rounding go on a list, which a second
// launch (GATHER 1, TERMS 3: split numbers) settles; what that leaves open goes on a list for kmeans_exact.cu. The image of the centres
// is the same: its blocks of 8 centres x 8 columns are the operands of one product, a word of two halves a lane.
// Macros: D (multiple of 16), SLABS of D / SLABS columns (of 64 where there are several), CHUNKS of NC centres, TILES, TERMS, GATHER,
// and SMEM as the plan has counted it.
#define DS (D / SLABS)
#define KS (DS / 16)
#define PARTS (TERMS == 3 ? 2 : 1)
#define WARPS 8
#define PART_BYTES (NC * DS * 2)
#define CHUNK_BYTES (PARTS * PART_BYTES)
#define STAGE_BYTES (CHUNK_BYTES + NC * 4)  // and norms
static_assert(2 * STAGE_BYTES == SMEM, "the plan counts other bytes");
// As there, with two steps for each product: older tensor cores add eight terms at a time.
#define ROUNDING (TERMS == 3 ? (6 * (D / 16) + 7) * 0x1p-21f : (2 * (D / 16) + 3) * 0x1p-21f)
#define STEPS (CHUNKS * SLABS)
#define HELD (STEPS <= 2 && SLABS == 1)  // all centres stay in shared memory
extern __shared__ __align__(1024) u8 pool[];

DEVICE void mma_half(float* c, const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Arguments as those of kmeans_large.
extern "C" __global__ __launch_bounds__(WARPS * 32, 1)
void kmeans_mma(const float* __restrict__ x, i64 rows, const u8* __restrict__ image, const float* __restrict__ norms,
                const float* __restrict__ shift, float scale, const float* __restrict__ limits, int* __restrict__ labels,
                int* __restrict__ list, int* __restrict__ found, int* __restrict__ open, i64 room_open, int* __restrict__ n_open) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    const i64 n = GATHER ? *found : rows, tall = WARPS * TILES * 16, rounds = (n + tall - 1) / tall;
    auto load = [&](int step) {  // a slab of a chunk: its blocks lie one after the other in each part
        const int c = step / SLABS, slab = step % SLABS;
        u8* to = pool + (step & 1) * STAGE_BYTES;
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            const u8* from = image + ((i64)(c * PARTS + part) * SLABS + slab) * PART_BYTES;
            for (int i = threadIdx.x; i < PART_BYTES / 16; i += WARPS * 32) copy16(to + part * PART_BYTES + i * 16, from + i * 16);
        }
        for (int i = threadIdx.x; i < NC / 4; i += WARPS * 32) copy16(to + CHUNK_BYTES + i * 16, norms + c * NC + i * 4);
    };
    if (HELD) {
        for (int step = 0; step < STEPS; ++step) load(step);
        copies_end();
        copies_wait<0>();
    }
    __syncthreads();
    const float cmax = limits[0], cdelta = limits[1];
    for (i64 round = blockIdx.x; round < rounds; round += gridDim.x) {
        if (!HELD) { load(0); copies_end(); }
        const i64 first = round * tall + warp * TILES * 16 + g;
        u32 hi[TILES][KS][4], lo[TERMS == 3 ? TILES : 1][TERMS == 3 ? KS : 1][4];
        auto read = [&](int slab, int t, int h, float& square, float& delta) {  // the fragments of a row, and what they leave out
            const i64 row = min(first + t * 16 + 8 * h, n - 1);
            const float4* line = (const float4*)(x + (GATHER ? (i64)list[row] : row) * D + slab * DS);
#pragma unroll
            for (int s = 0; s < KS; ++s) {
                const int piece = D % 32 == 0 ? 8 * (s >> 1) + 2 * q + (s & 1) : 4 * s + q;
                const float4 v = line[piece], off = ((const float4*)(shift + slab * DS))[piece];
                const float a = fmaf(v.x, scale, -scale * off.x), b = fmaf(v.y, scale, -scale * off.y), c = fmaf(v.z, scale, -scale * off.z), d = fmaf(v.w, scale, -scale * off.w);
                const u32 one = halves(a, b), two = halves(c, d);
                const float da = a - low_half(one), db = b - high_half(one), dc = c - low_half(two), dd = d - high_half(two);
                hi[t][s][h] = one;
                hi[t][s][2 + h] = two;
                if (TERMS == 3) {
                    lo[TERMS == 3 ? t : 0][TERMS == 3 ? s : 0][h] = halves(da, db);
                    lo[TERMS == 3 ? t : 0][TERMS == 3 ? s : 0][2 + h] = halves(dc, dd);
                } else delta = fmaf(da, da, fmaf(db, db, fmaf(dc, dc, fmaf(dd, dd, delta))));
                square = fmaf(a, a, fmaf(b, b, fmaf(c, c, fmaf(d, d, square))));
            }
        };
        Search search[TILES][2];
#pragma unroll
        for (int t = 0; t < TILES; ++t)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float square = 0, delta = 0;
#pragma unroll 1
                for (int slab = 0; slab < SLABS; ++slab) read(slab, t, h, square, delta);
#pragma unroll
                for (int m = 1; m <= 2; m <<= 1) { square += __shfl_xor_sync(FULL, square, m); delta += __shfl_xor_sync(FULL, delta, m); }
                const float length = root(square);
                search[t][h] = search_begun(length, TERMS == 3 ? length * 0x1p-21f + 4e-7f : root(delta), cmax, cdelta, ROUNDING);
            }
        for (int c = 0; c < CHUNKS; ++c) {
            float acc[TILES][NC / 2];
#pragma unroll 1
            for (int slab = 0; slab < SLABS; ++slab) {
                const int step = c * SLABS + slab;
                if (!HELD) {
                    if (step + 1 < STEPS) load(step + 1);
                    copies_end();
                }
                if (SLABS > 1) {
                    float unused = 0;
#pragma unroll
                    for (int t = 0; t < TILES; ++t) { read(slab, t, 0, unused, unused); read(slab, t, 1, unused, unused); }
                }
                if (!HELD) {
                    copies_wait<1>();
                    __syncthreads();
                }
                const u8* stage = pool + (step & 1) * STAGE_BYTES;
                if (slab == 0)
#pragma unroll
                    for (int j = 0; j < NC / 8; ++j) {
                        const float2 two = *(const float2*)(stage + CHUNK_BYTES + (8 * j + 2 * q) * 4);
#pragma unroll
                        for (int t = 0; t < TILES; ++t) { acc[t][4 * j] = acc[t][4 * j + 2] = two.x; acc[t][4 * j + 1] = acc[t][4 * j + 3] = two.y; }
                    }
#pragma unroll
                for (int s = 0; s < KS; ++s)
#pragma unroll
                    for (int j = 0; j < NC / 8; ++j) {
                        const u8* b = stage + (2 * s * (NC / 8) + j) * 128 + lane * 4;
                        const u32 b0 = *(const u32*)b, b1 = *(const u32*)(b + NC / 8 * 128);
                        u32 l0 = 0, l1 = 0;
                        if (TERMS == 3) { l0 = *(const u32*)(b + PART_BYTES); l1 = *(const u32*)(b + PART_BYTES + NC / 8 * 128); }
#pragma unroll
                        for (int t = 0; t < TILES; ++t) {
                            mma_half(acc[t] + 4 * j, hi[t][s], b0, b1);
                            if (TERMS == 3) {
                                mma_half(acc[t] + 4 * j, hi[t][s], l0, l1);
                                mma_half(acc[t] + 4 * j, lo[TERMS == 3 ? t : 0][TERMS == 3 ? s : 0], b0, b1);
                            }
                        }
                    }
                if (!HELD) __syncthreads();  // before this stage is filled again
            }
#pragma unroll
            for (int t = 0; t < TILES; ++t)
#pragma unroll
                for (int h = 0; h < 2; ++h) search_chunk(search[t][h], acc[t], h, c);
        }
#pragma unroll
        for (int t = 0; t < TILES; ++t)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const i64 row = first + t * 16 + 8 * h;
                bool unsure;
                const int label = search_ended(search[t][h], q, unsure);
                const int own = row < n ? (GATHER ? list[row] : (int)row) : 0;
                if (TERMS == 1) list_rows(unsure && row < n, lane, own, list, rows, found);
                else list_rows(unsure && row < n, lane, own, open, room_open, n_open);
                if (q == 0 && row < n) labels[own] = label;
            }
    }
}

// One pass of K-means where sums of all centres fit in shared memory: label, sums, counts from one read of x.
//
// Every warp owns 16 rows of a tile of 64: bulk copy into its ring -> fragments in registers as f16 -> wgmma against all
// centres (resident; their norms are one more step along k) -> least score and its column -> sums, a lane a column.
//
// TERMS 1: one f16 number a value. Rows with two scores nearer than the bound on their rounding count nowhere and go on a
// list of their CTA, which a second launch takes up (GATHER 1, TERMS 3).
// TERMS 3: values and centres split into two f16 numbers, hi*hi + hi*lo + lo*hi, as good as float; what is still open
// goes on one list for kmeans_exact.cu. Also for all rows of data where more than an eighth would be on the first list.
//
// Sums are exact, in whole numbers (digits.cuh), so neither the grid nor the order of warps matters. Two buffers: the warp
// that is last to finish a stretch of FLUSH_ROWS rows writes its sums out while the others are in the next one.
// Macros: D (multiple of 16), K <= 248, NP (K up to a multiple of 8, at least 16), WGS warpgroups, STAGES, LABELS 0 or 1,
// TERMS 1 or 3, GATHER 0 or 1, that of digits.cuh, and SMEM, the bytes of shared memory that the plan has counted.
#define KS (D / 16)
#define CHUNKS (D / 4)
#ifndef FLUSH_ROWS
#define FLUSH_ROWS 16384             // rows of a CTA between writings: what int32 sums hold
#endif
#define WARPS (WGS * 4)
#define ROUNDS (FLUSH_ROWS / (64 * WGS))  // tiles of a warpgroup between writings
#define PARTS (TERMS == 3 ? 2 : 1)
#define IMAGE ((PARTS * D + 16) * NP * 2)
#define LANES (D < 32 ? D : 32)      // that share a row while sums are made
#define AT_ONCE (32 / LANES)         // rows
#define WIDE (D / LANES)             // columns of a lane
#define STEPS (16 / AT_ONCE)         // rows a lane adds
#define VALUES (NP / 4)              // scores of a row that a thread has
#define GROUPS ((VALUES + 2) / 3)
#define KR (K + 1)                   // one more for rows beyond the end
#define SLOT_X (16 * D * 4)
#define SUM_BYTES (KR * D * 8)       // of a buffer
#define OFF_BAR IMAGE
#define OFF_FLAG (OFF_BAR + WARPS * STAGES * 8)
#define OFF_FREED (OFF_FLAG + 16)    // barriers: a buffer is written out
#define OFF_COUNT (OFF_FREED + 16)
#define OFF_PLACE ((OFF_COUNT + 2 * KR * 4 + 127) / 128 * 128)
#define OFF_X (OFF_PLACE + WARPS * 64)
#define OFF_SUM (OFF_X + WARPS * STAGES * SLOT_X)
static_assert(OFF_SUM + 2 * SUM_BYTES == SMEM, "the plan counts other bytes");
// Bound on the rounding of two scores: every step of the products, hi*lo twice and lo*lo not at all.
#define ROUNDING (TERMS == 3 ? (3 * KS + 7) * 0x1p-21f : (KS + 3) * 0x1p-21f)
#define SPLIT (TERMS == 3 ? 0x1p-21f : 0x1p-11f)  // |x - what stands for it| / |x|
#define SUBNORMAL 4e-7f              // of a row, what f16 loses below its least normal number
extern __shared__ __align__(1024) u8 pool[];
#define GLUE2(a, b) a##b
#define GLUE(a, b) GLUE2(a, b)

DEVICE u32 largest(u32 a, u32 b, u32 c) { return max(max(a, b), c); }  // one instruction

// image: centres (hi, lo, norms) as wgmma reads them; norms are less one constant that makes nearly all scores negative.
// limits (scaled): largest |c|, largest |c' - c| of the centres c' in the image, the constant, error of norms. list: (grid, room) rows,
// found: how many of each CTA (more than `room` were not written: then do all rows again with TERMS 3). open: rows that
// TERMS 3 leaves open, n_open of them, `room_open` at most.
// units, ran_over: as in kmeans_few.cu. partial: (stretches * grid, K * D + K) whole numbers: sums, counts.
extern "C" __global__ __launch_bounds__(WARPS * 32, 1)
void kmeans_fused(const float* __restrict__ x, i64 n, const uint4* __restrict__ image, const float* __restrict__ shift,
                  const float* __restrict__ limits, float scale, const float* __restrict__ units, i64* __restrict__ partial, int* __restrict__ labels,
                  int* __restrict__ list, i64 room, int* __restrict__ found, i64 given_stretches, int* __restrict__ open,
                  i64 room_open, int* __restrict__ n_open, int* __restrict__ ran_over) {
    const int warp = __shfl_sync(FULL, threadIdx.x >> 5, 0), lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    const int wg = warp >> 2, quarter = warp & 3;
    u64* full = (u64*)(pool + OFF_BAR) + warp * STAGES;
    volatile int* flags = (volatile int*)(pool + OFF_FLAG);  // warps that finished with buffer 0, 1; nothing; rows on the list
    u64* freed = (u64*)(pool + OFF_FREED);
    int* counts = (int*)(pool + OFF_COUNT);
    int* place = (int*)(pool + OFF_PLACE) + warp * 16;
    u8* ring = pool + OFF_X + warp * STAGES * SLOT_X;
    for (int i = threadIdx.x; i < IMAGE / 16; i += WARPS * 32) ((uint4*)pool)[i] = image[i];
    for (int i = threadIdx.x; i < 2 * SUM_BYTES / 4; i += WARPS * 32) ((int*)(pool + OFF_SUM))[i] = 0;
    for (int i = threadIdx.x; i < 2 * KR; i += WARPS * 32) counts[i] = 0;
    if (threadIdx.x < 4) flags[threadIdx.x] = 0;
    if (lane == 0) { for (int s = 0; s < STAGES; ++s) barrier_init(full + s, 1); barrier_fence(); }
    if (threadIdx.x == 0) { barrier_init(freed, 1); barrier_init(freed + 1, 1); barrier_fence(); }
    proxy_fence();
    __syncthreads();

    // Tile t of 64 rows goes to warpgroup t % WGS of CTA t / WGS % grid; of the list, a CTA takes up its own part.
    const int* mine = list + blockIdx.x * room;
    if (GATHER) n = min((i64)found[blockIdx.x], room);
    const int tiles = (int)((n + 63) / 64), pace = GATHER ? WGS : gridDim.x * WGS, first_tile = GATHER ? 0 : blockIdx.x * WGS;
    int next_tile = first_tile;  // of the first warpgroup, to be copied
    const float* next = x + ((i64)(next_tile + wg) * 64 + quarter * 16) * D;
    auto copy = [&](int stage) {
        if (next_tile < tiles) {
            const i64 row = (i64)(next_tile + wg) * 64 + quarter * 16, left = n - row;
            if (GATHER) {
                if (lane == 0) barrier_expect(full + stage, SLOT_X);
                __syncwarp();
                if (lane < 16) bulk_load(ring + stage * SLOT_X + lane * D * 4, x + (i64)(lane < left ? mine[row + lane] : 0) * D, D * 4, full + stage);
            } else if (lane == 0) {  // a piece beyond the end is filled with any rows (there are at least 16), which count nowhere
                const u32 bytes = left >= 16 || left <= 0 ? SLOT_X : (u32)left * D * 4;
                barrier_expect(full + stage, bytes);
                bulk_load(ring + stage * SLOT_X, left > 0 ? next : x, bytes, full + stage);
            }
            next_tile += pace;
            next += (i64)pace * 64 * D;
        }
    };
    for (int s = 0; s < STAGES; ++s) copy(s);

    float offset[KS * 4];  // -shift * scale of this thread's columns of the products
#pragma unroll
    for (int s = 0; s < KS; ++s)
#pragma unroll
        for (int e = 0; e < 4; ++e) offset[s * 4 + e] = -scale * shift[4 * (D % 32 == 0 ? 8 * (s >> 1) + 2 * q + (s & 1) : 4 * s + q) + e];
    float unit[WIDE], base[WIDE];  // of this lane's columns of the sums
#pragma unroll
    for (int w = 0; w < WIDE; ++w) {
        const int c = lane % LANES + w * LANES;
        unit[w] = units[c]; base[w] = units[D + c];
    }
    const u64 b_hi = operand(smem_address(pool), NP / 8 * 128, 128);
    const u64 b_norm = b_hi + (PARTS * D / 8 * (NP / 8) * 128 >> 4);
    const u32 ones = q == 0 ? 0x4c004c00u : q == 1 ? 0x00004c00u : 0;  // 16, 16, 16, 0 ...
    const float cmax = limits[0], cdelta = limits[1], constant = limits[2], lost = limits[3];
    int stage = 0;
    u32 phase = 0;
    const int stretches = (int)given_stretches;  // as many as any CTA needs
    int tile = first_tile;  // of the first warpgroup: all go through the same rounds
    for (int done = 0; done < stretches; ++done) {
        int* count = counts + (done & 1) * KR;
        u8* buffer = pool + OFF_SUM + (done & 1) * SUM_BYTES;
        u8* sums = buffer + lane % LANES * 4;
        if (done >= 2) barrier_wait(freed + (done & 1), (done / 2 - 1) & 1);  // this buffer is written out
        const int end = min(tiles, (done + 1) * ROUNDS * pace);
        for (; tile < end; tile += pace) {
            const u8* slot = ring + stage * SLOT_X;
            const i64 tile_row = (i64)(tile + wg) * 64 + quarter * 16;
            barrier_wait(full + stage, phase);
            u32 hi[KS][4], lo[KS][4];
            float square[2] = {0, 0};
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float4 part[KS];
                const float4* line = (const float4*)slot + (g + 8 * h) * CHUNKS;
                if (D % 32 == 0) {  // rows lie bank on bank: odd ones are read in the other order
                    const int odd = g & 1;
#pragma unroll
                    for (int u = 0; u < KS / 2; ++u) {
                        const float4 one = line[8 * u + 2 * q + odd], two = line[8 * u + 2 * q + 1 - odd];
                        part[2 * u] = odd ? two : one;
                        part[2 * u + 1] = odd ? one : two;
                    }
                } else {
#pragma unroll
                    for (int s = 0; s < KS; ++s) part[s] = line[4 * s + q];
                }
#pragma unroll
                for (int s = 0; s < KS; ++s) {
                    const float a = fmaf(part[s].x, scale, offset[s * 4]), b = fmaf(part[s].y, scale, offset[s * 4 + 1]);
                    const float c = fmaf(part[s].z, scale, offset[s * 4 + 2]), d = fmaf(part[s].w, scale, offset[s * 4 + 3]);
                    hi[s][h] = halves(a, b);
                    hi[s][2 + h] = halves(c, d);
                    if (TERMS == 3) {
                        lo[s][h] = halves(a - low_half(hi[s][h]), b - high_half(hi[s][h]));
                        lo[s][2 + h] = halves(c - low_half(hi[s][2 + h]), d - high_half(hi[s][2 + h]));
                    }
                    square[h] = fmaf(a, a, fmaf(b, b, fmaf(c, c, fmaf(d, d, square[h]))));
                }
            }
            float acc[NP / 2];
            wgmma_fence();
            GLUE(wgmma_, NP)(acc, ones, ones, 0, 0, b_norm, 0);
#pragma unroll
            for (int s = 0; s < KS; ++s) {
                const u64 b = b_hi + (s * 2 * (NP / 8) * 128 >> 4), b_lo = b + (D / 8 * (NP / 8) * 128 >> 4);
                GLUE(wgmma_, NP)(acc, hi[s][0], hi[s][1], hi[s][2], hi[s][3], b, 1);
                if (TERMS == 3) {
                    GLUE(wgmma_, NP)(acc, hi[s][0], hi[s][1], hi[s][2], hi[s][3], b_lo, 1);
                    GLUE(wgmma_, NP)(acc, lo[s][0], lo[s][1], lo[s][2], lo[s][3], b, 1);
                }
            }
            wgmma_commit();
            float v[STEPS][WIDE];  // this lane's columns of all rows, read while the products run
#pragma unroll
            for (int r = 0; r < STEPS; ++r)
#pragma unroll
                for (int w = 0; w < WIDE; ++w) v[r][w] = ((const float*)slot)[(r * AT_ONCE + lane / LANES) * D + w * LANES + lane % LANES];
            float slope[2], level[2], ground[2];
            // How far above the least score another centre may be and yet be nearer: with f16 centres c' = c + e and
            // norms corrected by 2 c.e, a score is off by 2 (x - c).e and by 2 d.c for the rounding d of x; a centre
            // nearer than the one found, at distance r, then has a score at most 4 r (|d| + |e|) higher.
#pragma unroll
            for (int m = 1; m <= 2; m <<= 1) {
                const float a = __shfl_xor_sync(FULL, square[0], m), b = __shfl_xor_sync(FULL, square[1], m);
                square[0] += a; square[1] += b;
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const float size = root(square[h]), off = fmaf(size, SPLIT, cdelta + SUBNORMAL);
                slope[h] = 4.04f * off;
                level[h] = fmaf(slope[h], 2 * off, fmaf(ROUNDING, fmaf(2 * size + cmax, cmax, constant), lost));
                const float reach = fmaf(size, 1.0f + SPLIT, SUBNORMAL);  // of the row as it is rounded, whose distances scores are
                ground[h] = fmaf(reach * reach, 1.0001f, constant);
            }
            wgmma_wait<0>();
            // The least score: of negative floats, that with the largest bits. A thread has VALUES scores of a row, in
            // groups of three; the largest of each group and of each place in the groups tell where the least one is.
            int label[2];
            float least[2], limit[2];
            u32 group[2][GROUPS], spot[2][3];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                auto bits = [&](int i) { return i < VALUES ? __float_as_uint(acc[i / 2 * 4 + 2 * h + i % 2]) : 0u; };
#pragma unroll
                for (int t = 0; t < GROUPS; ++t) group[h][t] = largest(bits(3 * t), bits(3 * t + 1), bits(3 * t + 2));
#pragma unroll
                for (int p = 0; p < 3; ++p) {
                    spot[h][p] = bits(p);
#pragma unroll
                    for (int t = 1; t < GROUPS; t += 2) spot[h][p] = largest(spot[h][p], bits(3 * t + p), bits(3 * t + 3 + p));
                }
                least[h] = __uint_as_float(largest(spot[h][0], spot[h][1], spot[h][2]));
            }
#pragma unroll
            for (int m = 1; m <= 2; m <<= 1) {
                const float a = __shfl_xor_sync(FULL, least[0], m), b = __shfl_xor_sync(FULL, least[1], m);
                least[0] = fminf(least[0], a); least[1] = fminf(least[1], b);
            }
            u32 owners[2];
            bool unsure[2];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                limit[h] = least[h] + fmaf(slope[h], root(fmaxf(ground[h] + least[h], 0.0f)), level[h]);
                u32 above = 0, above2 = 0;  // a bit a group, the first the highest: set where all of the group is above the limit
#pragma unroll
                for (int t = 0; t < GROUPS / 2; ++t) above = funnel_left(__float_as_uint(limit[h] - __uint_as_float(group[h][t])), above);
#pragma unroll
                for (int t = GROUPS / 2; t < GROUPS; ++t) above2 = funnel_left(__float_as_uint(limit[h] - __uint_as_float(group[h][t])), above2);
                const u32 has = ~(above << (GROUPS - GROUPS / 2) | above2) & ((1u << GROUPS) - 1);
                const bool at0 = __uint_as_float(spot[h][0]) <= limit[h], at1 = __uint_as_float(spot[h][1]) <= limit[h], at2 = __uint_as_float(spot[h][2]) <= limit[h];
                const int i = 3 * (GROUPS - 32 + __clz(has)) + (at0 ? 0 : at1 ? 1 : 2);
                label[h] = i / 2 * 8 + i % 2 + 2 * q;
                owners[h] = __ballot_sync(FULL, has != 0) >> (lane & 28) & 15;  // lanes of the row with candidates
                // Of scores that are not negative the largest bits say nothing; they do not matter below a negative limit.
                unsure[h] = ((has & (has - 1)) | (owners[h] & (owners[h] - 1)) | (int)at0 + (int)at1 + (int)at2 > 1 | !(limit[h] < 0)) != 0;
            }
#pragma unroll
            for (int h = 0; h < 2; ++h)
                if ((owners[h] & -owners[h] & 15) == (1u << q) || (owners[h] == 0 && q == 0)) {  // one lane speaks for the row
                    const i64 row = tile_row + g + 8 * h;
                    const bool listed = unsure[h] && row < n;
                    if (label[h] >= K || row >= n || listed || owners[h] == 0) label[h] = K;
                    if (listed) {
                        if (TERMS == 1) note(list + blockIdx.x * room, room, (int*)flags + 3, row);
                        else note(open, room_open, n_open, GATHER ? mine[row] : row);
                    } else if (LABELS && row < n) labels[GATHER ? mine[row] : row] = label[h];
                    place[g + 8 * h] = label[h] * (D * 8);
                    atomicAdd(count + label[h], 1);
                }
            __syncwarp();
            copy(stage);  // v has what is needed of it
            if (++stage == STAGES) { stage = 0; phase ^= 1; }
            int p[STEPS];
            if (AT_ONCE == 1) {
#pragma unroll
                for (int r = 0; r < STEPS; r += 4) { const int4 four = *(const int4*)(place + r); p[r] = four.x; p[r + 1] = four.y; p[r + 2] = four.z; p[r + 3] = four.w; }
            } else {
#pragma unroll
                for (int r = 0; r < STEPS; ++r) p[r] = place[r * AT_ONCE + lane / LANES];
            }
            __syncwarp();
#pragma unroll
            for (int r = 0; r < STEPS; ++r)
#pragma unroll
                for (int w = 0; w < WIDE; ++w) {
                    const Digits d = digits_of(fmaf(v[r][w], unit[w], base[w]));
                    int* to = (int*)(sums + p[r] + w * LANES * 8);
                    atomicAdd(to, __float_as_int(d.high));
                    atomicAdd(to + LANES, __float_as_int(d.low));
                }
        }
        __threadfence_block();
        int before = 0;
        if (lane == 0) before = atomicAdd((int*)flags + (done & 1), 1);
        if (__shfl_sync(FULL, before, 0) == WARPS - 1) {  // the last warp: the stretch is complete
            __threadfence_block();
            i64* out = partial + ((i64)done * gridDim.x + blockIdx.x) * (K * D + K);
#pragma unroll 4
            for (int i = lane; i < K * D; i += 32) {
                const int k = i / D, c = i % D;
                int* from = (int*)buffer + k * 2 * D + c / LANES * 2 * LANES + c % LANES;
                const int high = from[0] - count[k] * __float_as_int(MAGIC), low = from[LANES] - count[k] * __float_as_int(LOW_MAGIC);
                from[0] = from[LANES] = 0;
                out[i] = joined(high, low);
            }
            __syncwarp();
            for (int i = lane; i < KR; i += 32) {
                if (i < K) { out[K * D + i] = count[i]; if (count[i] > 1 << HEADROOM) *ran_over = 1; }
                count[i] = 0;
            }
            if (lane == 0) flags[done & 1] = 0;
            __threadfence_block();
            __syncwarp();
            if (lane == 0) barrier_arrive(freed + (done & 1));
        }
    }
    if (TERMS == 1) {
        __syncthreads();
        if (threadIdx.x == 0) found[blockIdx.x] = flags[3];
    }
}

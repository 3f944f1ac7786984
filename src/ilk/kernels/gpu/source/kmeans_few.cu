// One pass of K-means for few centres times columns, in plain float: a thread a row, centres as constants of the
// multiply-adds (no loads), sums as in kmeans_fused.cu. D a multiple of 4 up to 32.
// A row whose two least scores are nearer than `tolerance` * (|x|^2 + 2 max |c|^2) goes on a list for kmeans_exact.cu.
// Macros: D, K, PER rows of a thread, WARPS, STAGES, LABELS, BLOCK_ROWS, that of digits.cuh, and SMEM as the plan has counted it.
#define PIECES (D / 4)               // of 16 bytes
#define PITCH (D * 4 + 16)           // bytes of a row in shared memory: banks apart
#define TALL (32 * PER)
#define SLOT (TALL * PITCH)
#define LANES D
#define AT_ONCE (32 / LANES)         // rows whose sums are made at once; the rest of the lanes idle if 32 % D
#define KR (K + 1)
#define COPY_BYTES ((KR * D * 8 + 127) / 128 * 128 + D * 4)  // copies for rows added at once, banks apart
#define SUM_BYTES (AT_ONCE * COPY_BYTES)
#define OFF_FLAG 0
#define OFF_FREED 16                 // barriers: a buffer is written out
#define OFF_COUNT 32
#define OFF_SUM ((OFF_COUNT + 2 * KR * 4 + 127) / 128 * 128)
#define OFF_PLACE (OFF_SUM + 2 * SUM_BYTES)
#define OFF_X ((OFF_PLACE + WARPS * TALL * 4 + 127) / 128 * 128)
static_assert(OFF_X + WARPS * STAGES * SLOT == SMEM, "the plan counts other bytes");
extern __shared__ __align__(1024) u8 pool[];
// units: (2, D), what a cell is multiplied by and what is added then. ran_over: set where a centre had too many rows between two writings.
// -2 c scaled, and its norm: (K, D + 1)
extern "C" { __constant__ float centres[K * (D + 1)]; __constant__ float offsets[D]; }

extern "C" __global__ __launch_bounds__(WARPS * 32, 1)
void kmeans_few(const float* __restrict__ x, i64 n, const float* __restrict__ units, i64* __restrict__ partial, int* __restrict__ labels,
                float tolerance, float largest, int* __restrict__ open, i64 room_open, int* __restrict__ n_open, int* __restrict__ ran_over) {
    const int warp = __shfl_sync(FULL, threadIdx.x >> 5, 0), lane = threadIdx.x & 31;
    volatile int* flags = (volatile int*)(pool + OFF_FLAG);
    u64* freed = (u64*)(pool + OFF_FREED);
    int* counts = (int*)(pool + OFF_COUNT);
    int* place = (int*)(pool + OFF_PLACE) + warp * TALL;
    u8* ring = pool + OFF_X + warp * STAGES * SLOT;
    for (int i = threadIdx.x; i < OFF_PLACE / 4; i += WARPS * 32) ((int*)pool)[i] = 0;
    __syncthreads();
    if (threadIdx.x == 0) { barrier_init(freed, 1); barrier_init(freed + 1, 1); barrier_fence(); }
    __syncthreads();
    const int blocks = (int)((n + BLOCK_ROWS - 1) / BLOCK_ROWS);
    const int own = blocks > (int)blockIdx.x ? (blocks - 1 - blockIdx.x) / gridDim.x + 1 : 0;
    constexpr int TILES = BLOCK_ROWS / TALL;
    i64 ahead = (i64)blockIdx.x * BLOCK_ROWS + warp * TALL;
    int ahead_tile = warp;
    auto copy = [&](int stage) {
        if (ahead < n) {
            const u8* from = (const u8*)(x + ahead * D) + lane * 16;
            u8* to = ring + stage * SLOT;
            const int pieces = ahead + TALL <= n ? TALL * PIECES : (int)(n - ahead) * PIECES;
            if (pieces == TALL * PIECES) {
#pragma unroll
                for (int i = 0; i < PIECES * PER; ++i) copy16(to + (i * 32 + lane) / PIECES * PITCH + (i * 32 + lane) % PIECES * 16, from + i * 512);
            } else {
                for (int i = 0; i * 32 + lane < pieces; ++i) copy16(to + (i * 32 + lane) / PIECES * PITCH + (i * 32 + lane) % PIECES * 16, from + i * 512);
            }
            ahead += WARPS * TALL;
            ahead_tile += WARPS;
            if (ahead_tile >= TILES) { ahead += (i64)(gridDim.x - 1) * BLOCK_ROWS + (TILES - ahead_tile + warp) * TALL; ahead_tile = warp; }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    for (int s = 0; s < STAGES - 1; ++s) copy(s);
    const int column = lane % LANES, part = lane / LANES;
    const float unit = units[column], base = units[D + column];
    int stage = 0, fill = STAGES - 1;
    for (int done = 0; done < own; ++done) {
        const i64 block = blockIdx.x + (i64)done * gridDim.x, first = block * BLOCK_ROWS;
        const int rows = (int)min((i64)BLOCK_ROWS, n - first);
        int* count = counts + (done & 1) * KR;
        u8* buffer = pool + OFF_SUM + (done & 1) * SUM_BYTES;
        if (done >= 2) barrier_wait(freed + (done & 1), (done / 2 - 1) & 1);
        for (int at = warp * TALL; at < rows; at += WARPS * TALL) {
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
            __syncwarp();
            copy(fill);
            if (++fill == STAGES) fill = 0;
            const u8* slot = ring + stage * SLOT;
            float v[PER][D], best[PER], second[PER];
            int label[PER];
#pragma unroll
            for (int r = 0; r < PER; ++r) {
#pragma unroll
                for (int c = 0; c < PIECES; ++c) {
                    const float4 four = *(const float4*)(slot + (r * 32 + lane) * PITCH + c * 16);
                    v[r][4 * c] = four.x; v[r][4 * c + 1] = four.y; v[r][4 * c + 2] = four.z; v[r][4 * c + 3] = four.w;
                }
#pragma unroll
                for (int c = 0; c < D; ++c) v[r][c] -= offsets[c];
                best[r] = second[r] = __int_as_float(0x7f800000);
                label[r] = K;
            }
#pragma unroll
            for (int k = 0; k < K; ++k) {
                float s[PER];
#pragma unroll
                for (int r = 0; r < PER; ++r) s[r] = centres[k * (D + 1) + D];
#pragma unroll
                for (int c = 0; c < D; ++c)
#pragma unroll
                    for (int r = 0; r < PER; ++r) s[r] = fmaf(v[r][c], centres[k * (D + 1) + c], s[r]);
#pragma unroll
                for (int r = 0; r < PER; ++r) {
                    second[r] = fminf(second[r], fmaxf(best[r], s[r]));
                    if (s[r] < best[r]) { best[r] = s[r]; label[r] = k; }
                }
            }
#pragma unroll
            for (int r = 0; r < PER; ++r) {
                const int row = at + r * 32 + lane;
                float square = 2 * largest;
#pragma unroll
                for (int c = 0; c < D; ++c) square = fmaf(v[r][c], v[r][c], square);
                if (row >= rows) label[r] = K;
                else if (!(second[r] - best[r] > tolerance * square)) { label[r] = K; note(open, room_open, n_open, first + row); }
                else if (LABELS) labels[first + row] = label[r];
                atomicAdd(count + label[r], 1);
                place[r * 32 + lane] = label[r] * (D * 8);
            }
            __syncwarp();
            if (part < AT_ONCE) {
                u8* sums = buffer + part * COPY_BYTES + column * 4;
#pragma unroll
                for (int r = 0; r < TALL / AT_ONCE; ++r) {
                    const int row = D == 16 ? (r / 4) * 8 + r % 4 + part * 4 : r * AT_ONCE + part;  // rows whose banks differ
                    const Digits d = digits_of(fmaf(*(const float*)(slot + row * PITCH + column * 4), unit, base));
                    int* to = (int*)(sums + place[row]);
                    atomicAdd(to, __float_as_int(d.high));
                    atomicAdd(to + D, __float_as_int(d.low));
                }
            }
            __syncwarp();
            if (++stage == STAGES) stage = 0;
        }
        __threadfence_block();
        int before = 0;
        if (lane == 0) before = atomicAdd((int*)flags + (done & 1), 1);
        if (__shfl_sync(FULL, before, 0) == WARPS - 1) {
            __threadfence_block();
            i64* out = partial + block * (K * D + K);
            for (int i = lane; i < K * D; i += 32) {
                const int k = i / D, c = i % D;
                int high = -count[k] * __float_as_int(MAGIC), low = -count[k] * __float_as_int(LOW_MAGIC);
#pragma unroll
                for (int a = 0; a < AT_ONCE; ++a) {
                    int* from = (int*)(buffer + a * COPY_BYTES) + k * 2 * D + c;
                    high += from[0]; low += from[D];
                    from[0] = from[D] = 0;
                }
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
}

// Mixtures of products over columns, float64 throughout: numbers (NaN where missing) and categories of any number of levels.
// LANES lanes share a row, each with every LANES-th component (PARTS of them). Tables of the components are [slot][KP]: a
// slot is a level, or one of three of a number. codes: (COLS, stride), a column after the other; NONE is a missing cell.
// Where COUNTS, counted[d] says that number d is a Poisson count: its slots are 0, the log of the rate and minus the rate.
// Macros: D numbers, COUNTS, COLS, LEVELS in all, K, LANES, PARTS, CODE (type of a code), RAW, REAL, FACTOR; of the sums WARPS.
#define KP (LANES * PARTS)
#define NONE ((CODE)~(CODE)0)
#define MISSING(x) ((x) != (x))
#define SLOTS (LEVELS + 3 * D)
#define SMALL ((i64)LEVELS * KP < (1ll << 30))
#define FEW_COLS (COLS <= 1024)

#if COUNTS
#define COUNTED(d) counted[d]
#else
#define COUNTED(d) false
#endif
template <class INPUT> DEVICE double cell_of(INPUT raw, const double* __restrict__ encoding, int column, bool count) {
    return count ? (double)widened(raw) : (double)number_of(raw, encoding, column, D);
}

// Codes as they came (rows, COLS) to columns; what is no level of its column is missing.
extern "C" __global__ __launch_bounds__(256)
void pack_codes(const int* __restrict__ from, i64 rows, i64 first, i64 stride, const i64* __restrict__ start, CODE* __restrict__ codes) {
    const i64 cells = rows * COLS, step = (i64)gridDim.x * blockDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < cells; i += step) {
        const i64 row = i / COLS, column = i - row * COLS, code = from[i];
        codes[column * stride + first + row] = code >= 0 && code < start[column + 1] - start[column] ? (CODE)code : NONE;
    }
}

// Memberships times weight (rows, KP), and what the rows cost; label, score of it and cost of each row where asked for.
// numbers: [D][3][KP] mean, half the precision, log norm; levels: [LEVELS][KP]. totals: (warps, 2) cost and entropy.
extern "C" __global__ __launch_bounds__(256)
void product_memberships(const RAW* __restrict__ raw, const double* __restrict__ encoding, const CODE* __restrict__ codes, i64 stride,
                         i64 n, const u8* __restrict__ counted, const double* __restrict__ weight, const double* __restrict__ log_mixing, const double* __restrict__ numbers,
                         const double* __restrict__ levels, const i64* __restrict__ start, i64 hard, const double* __restrict__ rules,
                         double* __restrict__ out, int* __restrict__ label, double* __restrict__ top_score, double* __restrict__ row_cost,
                         double* __restrict__ totals) {
    const int lane = threadIdx.x & 31, own = lane % LANES, sub = lane / LANES;
    const i64 warp = (i64)blockIdx.x * 8 + (threadIdx.x >> 5), warps = (i64)gridDim.x * 8;
    const double limit = rules[0], share = rules[1], infinity = __longlong_as_double(0x7ff0000000000000ll);
    __shared__ i64 first_level[FEW_COLS ? COLS + 1 : 1];
    for (int i = threadIdx.x; FEW_COLS && i <= COLS; i += 256) first_level[i] = start[i] * KP;
    __syncthreads();
    double base_score[PARTS], cost = 0, entropy = 0;
#pragma unroll
    for (int p = 0; p < PARTS; ++p) base_score[p] = log_mixing[own + LANES * p];
    for (i64 first = warp * (32 / LANES); first < n; first += warps * (32 / LANES)) {
        const bool there = first + sub < n;
        const i64 row = there ? first + sub : n - 1;
        double s[PARTS];
        bool told = false;
#pragma unroll
        for (int p = 0; p < PARTS; ++p) s[p] = base_score[p];
#if D > 0
        for (int d = 0; d < D; ++d) {
            const double x = cell_of(raw[row * D + d], encoding, d, COUNTED(d));
            if (MISSING(x)) continue;
            told = true;
            const double* at = numbers + (i64)d * 3 * KP + own;
            if (COUNTED(d)) {
                const double ways = lgamma(x + 1);
#pragma unroll
                for (int p = 0; p < PARTS; ++p) s[p] += at[2 * KP + LANES * p] + x * at[KP + LANES * p] - ways;
                continue;
            }
#pragma unroll
            for (int p = 0; p < PARTS; ++p) {
                const double away = x - at[LANES * p];
                s[p] += at[2 * KP + LANES * p] - away * away * at[KP + LANES * p];
            }
        }
#endif
#pragma unroll 4
        for (int c = 0; c < COLS; ++c) {
            const CODE code = codes[c * stride + row];
            if (code == NONE) continue;
            told = true;
            const i64 begin = FEW_COLS ? first_level[c] : start[c] * KP;
            const double* at = levels + (SMALL ? (int)begin + (int)code * KP + own : begin + (i64)code * KP + own);
#pragma unroll
            for (int p = 0; p < PARTS; ++p) s[p] += at[LANES * p];
        }
        double top = s[0];
        int best = own;
#pragma unroll
        for (int p = 1; p < PARTS; ++p) if (s[p] > top) { top = s[p]; best = own + LANES * p; }
#pragma unroll
        for (int m = LANES / 2; m; m >>= 1) {
            const double other = __shfl_xor_sync(FULL, top, m);
            const int theirs = __shfl_xor_sync(FULL, best, m);
            if (other > top || (other == top && theirs < best)) { top = other; best = theirs; }
        }
        const double base = top > -infinity && top < infinity ? top : 0.0;
        double r[PARTS], sum = 0;
#pragma unroll
        for (int p = 0; p < PARTS; ++p) { r[p] = own + LANES * p < K ? exp(s[p] - base) : 0.0; sum += r[p]; }
#pragma unroll
        for (int m = LANES / 2; m; m >>= 1) sum += __shfl_xor_sync(FULL, sum, m);
        const double mine = hard ? -top : -(base + log(sum));
        double counted = there && told ? (weight ? weight[row] : 1.0) : 0.0;
        if (limit < infinity && fabs(mine - limit) <= 1e-12 * (1 + fabs(limit))) counted *= share;  // at the limit, but for its last digits
        else if (mine > limit) counted = 0;
        const double each = sum > 0 ? counted / sum : 0.0;
#pragma unroll
        for (int p = 0; p < PARTS; ++p) {
            const int k = own + LANES * p;
            const double membership = hard ? (k == best ? counted : 0.0) : r[p] * each;
            if (there && out) out[row * KP + k] = membership;
            if (membership > 0) entropy -= membership * (s[p] + mine);
        }
        if (own == 0 && there) {
            if (counted > 0) cost += counted * mine;
            if (label) { label[row] = best; top_score[row] = top; row_cost[row] = mine; }
        }
    }
#pragma unroll
    for (int m = 16; m; m >>= 1) { cost += __shfl_xor_sync(FULL, cost, m); entropy += __shfl_xor_sync(FULL, entropy, m); }
    if (lane == 0) { totals[2 * warp] += cost; totals[2 * warp + 1] += entropy; }
}

#ifdef WARPS
// Sums under memberships: a block takes the slots begin .. end of LANES components, each of its warps a copy of them, to which
// it adds its rows in order. Lanes beyond LANES take other columns of the same row: two never meet at one slot.
// cut: begin, end, first and last column of categories, first and last of numbers. partial: (ranges, SLOTS + 1, KP).
#define AT_ONCE (32 / LANES)
#define OWN_COLS ((COLS + AT_ONCE - 1) / AT_ONCE)
#define SIDE (OWN_COLS > 5 ? 5 : OWN_COLS > 0 ? OWN_COLS : 1)  // columns of a lane at a time
extern __shared__ __align__(128) u8 pool[];
extern "C" __global__ __launch_bounds__(WARPS * 32)
void product_sums(const RAW* __restrict__ raw, const double* __restrict__ encoding, const CODE* __restrict__ codes, i64 stride, i64 n,
                  const u8* __restrict__ counted, const double* __restrict__ membership, const double* __restrict__ numbers, const i64* __restrict__ start,
                  const i64* __restrict__ cuts, i64 slices, i64 more, double* __restrict__ partial) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, own = lane % LANES, sub = lane / LANES;
    const int slice = blockIdx.x % slices, part = blockIdx.x / slices % PARTS, range = blockIdx.x / (slices * PARTS), ranges = gridDim.x / (slices * PARTS);
    const i64* cut = cuts + slice * 6;
    const int begin = (int)cut[0], end = (int)cut[1], size = (end - begin) * LANES;
    double* mine = (double*)pool + (i64)warp * size;
    for (int i = lane; i < size; i += 32) mine[i] = 0;
    __syncwarp();
    double count = 0;
    const i64 tiles = (n + 31) / 32, walkers = (i64)ranges * WARPS;
    for (i64 tile = (i64)range * WARPS + warp; tile < tiles; tile += walkers) {
        const int rows = (int)min((i64)32, n - tile * 32);
        const double* r = membership + tile * 32 * KP + part * LANES + own;
        for (int c = (int)cut[2] + sub; c < cut[3]; c += AT_ONCE * SIDE) {  // columns side by side: their slots are never the same
            const CODE* column[SIDE];
            int at[SIDE];
#pragma unroll
            for (int u = 0; u < SIDE; ++u) {
                const int own_column = c + AT_ONCE * u;
                column[u] = own_column < cut[3] ? codes + own_column * stride + tile * 32 : (const CODE*)0;
                at[u] = column[u] ? (int)start[own_column] - begin : 0;
            }
#pragma unroll 2
            for (int j = 0; j < rows; ++j) {
                const double w = r[j * KP];
                double sum[SIDE];
                int slot[SIDE];
#pragma unroll
                for (int u = 0; u < SIDE; ++u) {
                    const CODE code = column[u] ? column[u][j] : NONE;
                    slot[u] = code == NONE ? -1 : at[u] + (int)code;
                    if ((u32)slot[u] < (u32)(end - begin)) sum[u] = mine[slot[u] * LANES + own];
                }
#pragma unroll
                for (int u = 0; u < SIDE; ++u) if ((u32)slot[u] < (u32)(end - begin)) mine[slot[u] * LANES + own] = sum[u] + w;
            }
        }
#if D > 0
        for (int d = (int)cut[4] + sub; d < cut[5]; d += AT_ONCE) {
            const double mean = numbers[(i64)d * 3 * KP + part * LANES + own];
            double seen = 0, first = 0, second = 0;
#pragma unroll 4
            for (int j = 0; j < rows; ++j) {
                const double x = cell_of(raw[(tile * 32 + j) * D + d], encoding, d, COUNTED(d)), w = r[j * KP];
                if (MISSING(x)) continue;
                const double away = x - mean, weighted = w * away;
                seen += w; first += weighted; second += weighted * away;
            }
            double* to = mine + (LEVELS + 3 * d - begin) * LANES + own;
            to[0] += seen; to[LANES] += first; to[2 * LANES] += second;
        }
#endif
        if (slice == 0 && sub == 0) for (int j = 0; j < rows; ++j) count += r[j * KP];
        __syncwarp();
    }
    __shared__ double counts[WARPS][LANES];
    if (sub == 0) counts[warp][own] = count;
    __syncthreads();
    double* out = partial + (i64)range * (SLOTS + 1) * KP + part * LANES;
    for (int i = threadIdx.x; i < size; i += WARPS * 32) {
        double sum = 0;
        for (int w = 0; w < WARPS; ++w) sum += ((double*)pool)[w * size + i];
        double* to = out + (i64)(begin + i / LANES) * KP + i % LANES;
        *to = sum + (more ? *to : 0.0);
    }
    if (slice == 0 && threadIdx.x < LANES) {
        double sum = 0;
        for (int w = 0; w < WARPS; ++w) sum += counts[w][threadIdx.x];
        double* to = out + (i64)SLOTS * KP + threadIdx.x;
        *to = sum + (more ? *to : 0.0);
    }
}
#endif

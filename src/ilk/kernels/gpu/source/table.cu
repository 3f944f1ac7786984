// What is asked of all rows of a table besides models. Macros: D, and those of numbers.cuh.

// (n, DP) floats of encoded numbers, columns beyond D zero: what the kernels of K-means read where they cannot read raw.
extern "C" __global__ __launch_bounds__(256)
void encode(const RAW* __restrict__ raw, i64 n, const double* __restrict__ encoding, i64 wide, float* __restrict__ out) {
    const i64 cells = n * wide, step = (i64)gridDim.x * blockDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < cells; i += step) {
        const i64 row = i / wide;
        const int column = (int)(i - row * wide);
        out[i] = column < D ? (float)number_of(raw[row * D + column], encoding, column, D) : 0.0f;
    }
}
// The same in the type of the table.
extern "C" __global__ __launch_bounds__(256)
void encode_own(const RAW* __restrict__ raw, i64 n, const double* __restrict__ encoding, i64 wide, REAL* __restrict__ out) {
    const i64 cells = n * wide, step = (i64)gridDim.x * blockDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < cells; i += step) {
        const i64 row = i / wide;
        const int column = (int)(i - row * wide);
        out[i] = column < D ? number_of(raw[row * D + column], encoding, column, D) : (REAL)0;
    }
}
// Any strides (in cells) to rows one after the other.
extern "C" __global__ __launch_bounds__(256)
void pack(const RAW* __restrict__ from, i64 n, i64 row_stride, i64 column_stride, RAW* __restrict__ out) {
    const i64 cells = n * D, step = (i64)gridDim.x * blockDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < cells; i += step) out[i] = from[i / D * row_stride + i % D * column_stride];
}
extern "C" __global__ __launch_bounds__(256)
void gather(const RAW* __restrict__ raw, const i64* __restrict__ rows, i64 n, RAW* __restrict__ out) {
    const i64 cells = n * D, step = (i64)gridDim.x * blockDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < cells; i += step) out[i] = raw[rows[i / D] * D + i % D];
}
// What the numbers of each row say: the sum of the bits of its cells times `power`, each times the factor of its column, modulo 2^64, as
// `content_sums` of the CPU. As many lanes as there are columns read a row, 32 at most.
#define ACROSS (D > 16 ? 32 : D > 8 ? 16 : D > 4 ? 8 : D > 2 ? 4 : D > 1 ? 2 : 1)
extern "C" __global__ __launch_bounds__(256)
void content(const RAW* __restrict__ raw, i64 n, const double* __restrict__ power, const u64* __restrict__ factors, i64 missing, u64* __restrict__ out) {
    const int place = threadIdx.x % ACROSS;
    const i64 tall = 256 / ACROSS;
    const double unit = power[0];
    for (i64 base = blockIdx.x * tall; base < n; base += gridDim.x * tall) {  // all lanes of a warp together
        const i64 row = base + threadIdx.x / ACROSS;
        u64 sum = 0;
        for (int column = place; row < n && column < D; column += ACROSS) {
            const double value = __dadd_rn(__dmul_rn((double)widened(raw[row * D + column]), unit), 0.0);
            const u64 bits = value == value ? (u64)__double_as_longlong(value) : (u64)missing;
            sum += (bits ^ (bits >> 32)) * factors[column];
        }
#pragma unroll
        for (int away = ACROSS / 2; away > 0; away /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, away);
        if (place == 0 && row < n) out[row] = sum;
    }
}
// The key of a row (`spread` of table/content.py), from what it says and the offset of the seed.
DEVICE u64 key_of(u64 sum, i64 offset) {
    u64 key = sum + (u64)offset;
    key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ull;
    key = (key ^ (key >> 27)) * 0x94D049BB133111EBull;
    return key ^ (key >> 31);
}
// How many keys lie in each bucket: the first bits of a key name it, `shift` bits are left out.
extern "C" __global__ __launch_bounds__(256)
void count_keys(const u64* __restrict__ sums, i64 n, i64 offset, i64 shift, int* __restrict__ counts) {
    for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < n; row += (i64)gridDim.x * blockDim.x)
        atomicAdd(counts + (key_of(sums[row], offset) >> shift), 1);
}
// The rows whose key is at least the least one of its bucket, in any order, and their keys; where `rows` is null only how many they are.
extern "C" __global__ __launch_bounds__(256)
void reaching_keys(const u64* __restrict__ sums, i64 n, i64 offset, i64 shift, const u64* __restrict__ least, u64* __restrict__ found, i64* __restrict__ rows, u64* __restrict__ keys) {
    for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < n; row += (i64)gridDim.x * blockDim.x) {
        const u64 key = key_of(sums[row], offset);
        if (key < least[key >> shift]) continue;
        const u64 at = atomicAdd(found, (u64)1);
        if (rows) { rows[at] = row; keys[at] = key; }
    }
}
DEVICE void add_to(double& high, double& low, double v) {  // Knuth's sum of two
    const double total = __dadd_rn(high, v), part = __dsub_rn(total, high);
    low = __dadd_rn(low, __dadd_rn(__dsub_rn(high, __dsub_rn(total, part)), __dsub_rn(v, part)));
    high = total;
}
// The pairs of all threads of a block, added in order.
DEVICE void add_block(double high, double low, double* __restrict__ out) {
    __shared__ double highs[256], lows[256];
    highs[threadIdx.x] = high;
    lows[threadIdx.x] = low;
    __syncthreads();
    if (threadIdx.x) return;
    for (int t = 1; t < 256; ++t) { add_to(high, low, highs[t]); add_to(high, low, lows[t]); }
    out[0] = high;
    out[1] = low;
}
// Sum of weight * number^2, as pairs of doubles: partial (grid, 2). weight may be null.
extern "C" __global__ __launch_bounds__(256)
void squares(const RAW* __restrict__ raw, i64 n, const double* __restrict__ encoding, const double* __restrict__ weight, double* __restrict__ partial) {
    double high = 0, low = 0;
    const i64 cells = n * D, step = (i64)gridDim.x * blockDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < cells; i += step) {
        const double v = number_of(raw[i], encoding, (int)(i % D), D), w = weight ? weight[i / D] : 1.0;
        const double square = v * v, product = w * square;
        add_to(high, low, product);
        add_to(high, low, fma(w, square, -product) + w * fma(v, v, -square));
    }
    add_block(high, low, partial + 2 * blockIdx.x);
}
// Under trimming: the weight of each row that costs less than rules[0], of one that costs just that a share rules[1] of it, and
// of the others 0; and the sum of weight * cost, as pairs: partial (grid, 2). weight may be null.
extern "C" __global__ __launch_bounds__(256)
void kept(const double* __restrict__ cost, i64 n, const double* __restrict__ weight, const double* __restrict__ rules, double* __restrict__ out, double* __restrict__ partial) {
    double high = 0, low = 0;
    for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < n; row += (i64)gridDim.x * blockDim.x) {
        const double own = cost[row], whole = weight ? weight[row] : 1.0;
        const double w = own > rules[0] ? 0.0 : own == rules[0] ? whole * rules[1] : whole, product = w * own;
        out[row] = w;
        add_to(high, low, product);
        add_to(high, low, fma(w, own, -product));
    }
    add_block(high, low, partial + 2 * blockIdx.x);
}
// Per column from `first` on, `width` of them (1,024 at most): least, largest, sum about `pivot` (times `shrink`), and how many are missing.
// partial: (grid, D, 4).
extern "C" __global__ __launch_bounds__(1024)
void survey(const RAW* __restrict__ raw, i64 n, const double* __restrict__ pivot, const double* __restrict__ shrink, i64 first, i64 width, double* __restrict__ partial) {
    __shared__ double found[1024][4];
    const int wide = (int)width, tall = 1024 / wide;  // rows that a block takes at a time
    const int column = (int)first + threadIdx.x % wide, part = threadIdx.x / wide;
    const double infinity = __longlong_as_double(0x7ff0000000000000ll);
    double least = infinity, most = -infinity, sum = 0, missing = 0;
    if (part < tall)
        for (i64 row = (i64)blockIdx.x * tall + part; row < n; row += (i64)gridDim.x * tall) {
            const double v = widened(raw[row * D + column]);
            if (v != v) { missing += 1; continue; }
            least = fmin(least, v);
            most = fmax(most, v);
            sum += v * shrink[0] - pivot[column];
        }
    found[threadIdx.x][0] = least; found[threadIdx.x][1] = most; found[threadIdx.x][2] = sum; found[threadIdx.x][3] = missing;
    __syncthreads();
    if (part == 0) {
        for (int p = 1; p < tall; ++p) {
            const double* other = found[p * wide + threadIdx.x];
            least = fmin(least, other[0]); most = fmax(most, other[1]); sum += other[2]; missing += other[3];
        }
        double* out = partial + ((i64)blockIdx.x * D + column) * 4;
        out[0] = least; out[1] = most; out[2] = sum; out[3] = missing;
    }
}
// Squared distance of each row to the centre of its label, in the eight partial sums of kernels/plain.py.
extern "C" __global__ __launch_bounds__(256)
void row_cost(const RAW* __restrict__ raw, i64 n, const double* __restrict__ encoding, const double* __restrict__ centres, const int* __restrict__ labels, double* __restrict__ cost) {
    const i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    const double* centre = centres + (i64)labels[row] * D;
    double part[8] = {};
    for (int first = 0; first < D; first += 8)
#pragma unroll
        for (int j = 0; j < 8; ++j)
            if (first + j < D) {
                const double away = __dsub_rn((double)number_of(raw[row * D + first + j], encoding, first + j, D), centre[first + j]);
                part[j] = __dadd_rn(part[j], __dmul_rn(away, away));
            }
    const double a = __dadd_rn(part[0], part[4]), b = __dadd_rn(part[1], part[5]), c = __dadd_rn(part[2], part[6]), d = __dadd_rn(part[3], part[7]);
    cost[row] = __dadd_rn(__dadd_rn(a, c), __dadd_rn(b, d));
}

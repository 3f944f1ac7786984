// Partials of blocks, the first `width` of `pitch` numbers of each, added in block order: 32 runs of blocks, then the runs. NUMBER: double or i64.
template <class NUMBER> DEVICE void add_partials(const NUMBER* __restrict__ partial, i64 blocks, i64 pitch, i64 width, NUMBER* __restrict__ out) {
    __shared__ NUMBER runs[32][33];
    const int lane = threadIdx.x & 31, run = threadIdx.x >> 5;
    const i64 column = (i64)blockIdx.x * 32 + lane, each = (blocks + 31) / 32;
    NUMBER sum = 0;
    if (column < width) {
        const i64 last = min((run + 1) * each, blocks);
#pragma unroll 8
        for (i64 b = run * each; b < last; ++b) sum += partial[b * pitch + column];
    }
    runs[run][lane] = sum;
    __syncthreads();
    if (run == 0 && column < width) { NUMBER total = 0; for (int r = 0; r < 32; ++r) total += runs[r][lane]; out[column] = total; }
}
extern "C" __global__ __launch_bounds__(1024) void reduce_partials(const double* p, i64 blocks, i64 pitch, i64 width, double* out) { add_partials(p, blocks, pitch, width, out); }
extern "C" __global__ __launch_bounds__(1024) void reduce_whole(const i64* p, i64 blocks, i64 pitch, i64 width, i64* out) { add_partials(p, blocks, pitch, width, out); }

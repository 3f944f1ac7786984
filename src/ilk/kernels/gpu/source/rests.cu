// What cells have below the digits that digits.cuh adds: found once for a table, added by label in each pass.
// Macros: D (columns of x), HALF, and those of digits.cuh. units: (2, D), what a cell is multiplied by and what is added then.
#define REST_UNITS 0x1p33f
DEVICE float rest_of(const u8* __restrict__ x, i64 cell, const float* __restrict__ units) {
    const int column = (int)(cell % D);
    float value;
    if (HALF) asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(((const u16*)x)[cell]));
    else value = ((const float*)x)[cell];
    const float u = fmaf(value, units[column], units[D + column]), left = u - ((u + MAGIC) - MAGIC);
    return left - ((left + LOW_MAGIC) - LOW_MAGIC);
}
// list: (row, column, bits of the rest) of each cell that has one, in any order; null: they are only counted.
extern "C" __global__ __launch_bounds__(256)
void find_rests(const u8* __restrict__ x, i64 cells, const float* __restrict__ units, u64* __restrict__ found, int* __restrict__ list) {
    const i64 step = (i64)gridDim.x * blockDim.x;
    for (i64 first = (i64)blockIdx.x * blockDim.x; first < cells; first += step) {
        const i64 cell = first + threadIdx.x;
        const float rest = cell < cells ? rest_of(x, cell, units) : 0.0f;
        const u32 all = __ballot_sync(FULL, rest != 0.0f);
        if (!all) continue;
        const int lane = threadIdx.x & 31;
        u64 at = 0;
        if (lane == 0) at = atomicAdd(found, (u64)__popc(all));
        at = __shfl_sync(FULL, at, 0) + __popc(all & ((1u << lane) - 1));
        if (list && rest != 0.0f) { list[3 * at] = (int)(cell / D); list[3 * at + 1] = (int)(cell % D); list[3 * at + 2] = __float_as_int(rest); }
    }
}
// rests: (labels, D) in units of 2^-(LOW_BITS + 33).
extern "C" __global__ __launch_bounds__(256)
void add_rests(const int* __restrict__ list, i64 count, const int* __restrict__ labels, u64* __restrict__ rests) {
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (i64)gridDim.x * blockDim.x) {
        const i64 value = __float2ll_rn(__int_as_float(list[3 * i + 2]) * ((float)(1 << LOW_BITS) * REST_UNITS));
        atomicAdd(rests + (i64)labels[list[3 * i]] * D + list[3 * i + 1], (u64)value);
    }
}

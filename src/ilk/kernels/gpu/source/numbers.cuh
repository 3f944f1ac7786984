// The numbers of a table as the CPU makes them: (raw * power - centre) * factor, rounded in the type of the table.
// Macros: RAW (u16 for f16, float, double), REAL (float, double), FACTOR 0 or 1. encoding: power, centres, factors.
#define IS_HALF (sizeof(RAW) == 2)
DEVICE float widened(u16 bits) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits));
    return f;
}
DEVICE float widened(float v) { return v; }
DEVICE double widened(double v) { return v; }
DEVICE float rounded_product(float a, float b) { return __fmul_rn(a, b); }
DEVICE double rounded_product(double a, double b) { return __dmul_rn(a, b); }
DEVICE float rounded_difference(float a, float b) { return __fsub_rn(a, b); }
DEVICE double rounded_difference(double a, double b) { return __dsub_rn(a, b); }
template <class INPUT> DEVICE REAL number_of(INPUT raw, const double* __restrict__ encoding, int column, int columns) {
    REAL v = rounded_difference(rounded_product((REAL)widened(raw), (REAL)encoding[0]), (REAL)encoding[1 + column]);
    if (FACTOR) v = rounded_product(v, (REAL)encoding[1 + columns + column]);
    return v;
}

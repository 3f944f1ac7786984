// Sums kept as pairs of doubles, leading and trailing part, about 106 bits: once rounded they do not depend
// on the order of the rows, nor on writing a row twice instead of giving it weight 2.
// Knuth, The Art of Computer Programming 2, 4.2.2 (two_sum); Dekker, Numer. Math. 18 (1971) (two_product).
#pragma once

#include "vectors.hpp"

namespace ilk {
namespace {

template <class V>
struct Pair {
    V leading, trailing;
};

template <class V>
ILK_INLINE Pair<V> two_sum(V a, V b) {
    const V sum = a + b;
    const V b_rounded = sum - a;
    return {sum, (a - (sum - b_rounded)) + (b - b_rounded)};
}

#if defined(__AVX512F__)
// The same sums, to the bit; three of the six go through the multipliers, idle here, as a * 1 + b.
template <>
ILK_INLINE Pair<Eight> two_sum(Eight a, Eight b) {
    const Eight one = everywhere<Eight>(1.0);
    const Eight sum = a + b;
    const Eight b_rounded = sum - a;
    const Eight a_rest = _mm512_fnmadd_pd(_mm512_fnmadd_pd(b_rounded, one, sum), one, a);
    return {sum, _mm512_fmadd_pd(b - b_rounded, one, a_rest)};
}
#endif

// a * b = leading + trailing exactly (barring overflow and underflow).
template <class V>
ILK_INLINE Pair<V> two_product(V a, V b) {
    const V product = a * b;
#if defined(__AVX512F__)
    if constexpr (is_vector<V, double, 64>) return {product, _mm512_fmsub_pd(a, b, product)};
#endif
    const double splitter = 134217729.0;  // 2^27 + 1 cuts 53 bits in two halves
    const V a_scaled = a * splitter, b_scaled = b * splitter;
    const V a_high = a_scaled - (a_scaled - a), b_high = b_scaled - (b_scaled - b);
    const V a_low = a - a_high, b_low = b - b_high;
    return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

template <class V>
ILK_INLINE void add_to(Pair<V>& total, V value) {
    const Pair<V> sum = two_sum(total.leading, value);
    total.leading = sum.leading;
    total.trailing += sum.trailing;
}

inline void add_pairs(const double* a, const double* b, Index count, double* sum) {
    for (Index index = 0; index < 2 * count; index += 2) {
        const Pair<double> leading = two_sum(a[index], b[index]);
        const double rest = leading.trailing + (a[index + 1] + b[index + 1]);
        sum[index] = leading.leading + rest;
        sum[index + 1] = rest - (sum[index] - leading.leading);
    }
}

}  // namespace
}  // namespace ilk

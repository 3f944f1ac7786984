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

// a * b = leading + trailing exactly (barring overflow and underflow).
ILK_INLINE Pair<Eight> two_product(Eight a, Eight b) {
    const Eight product = a * b;
#if defined(__AVX512F__)
    return {product, _mm512_fmsub_pd(a, b, product)};
#else
    const double splitter = 134217729.0;  // 2^27 + 1 cuts 53 bits in two halves
    const Eight a_scaled = a * splitter, b_scaled = b * splitter;
    const Eight a_high = a_scaled - (a_scaled - a), b_high = b_scaled - (b_scaled - b);
    const Eight a_low = a - a_high, b_low = b - b_high;
    return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
#endif
}

template <class V>
ILK_INLINE void add_to(Pair<V>& total, V value) {
    const Pair<V> sum = two_sum(total.leading, value);
    total.leading = sum.leading;
    total.trailing += sum.trailing;
}

}  // namespace
}  // namespace ilk

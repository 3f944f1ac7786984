// Exponentials and logarithms of whole vectors, to about one unit in the last place.
#pragma once

#include "vectors.hpp"

namespace ilk {
namespace {

using Doubles = Vector<double>;
using Bits = IndexVector<double>;

constexpr double infinity = __builtin_huge_val();

// exp(x) for x <= 0; 0 below `vanishing`, where the square of the result would be, and where x is not a number.
//
// x = n log 2 + r with |r| <= log(2) / 2, exp(r) = 1 + r + r^2 q(r) with q of degree 9, fitted at Chebyshev's
// points: relative error 2e-17. No result is subnormal, so 2^n goes straight into the exponent.
ILK_INLINE Doubles exponential(Doubles x) {
    constexpr double vanishing = -372.57;
    constexpr double log_two_high = 0x1.62e42feep-1;  // 33 bits, so n times it is exact
    constexpr double log_two_low = 0x1.a39ef35793c76p-33;
    constexpr double rounder = 0x1.8p52;  // adding it leaves n, rounded, in the last bits
    constexpr double q[] = {0x1.0000000000001p-1,  0x1.5555555555556p-3,  0x1.5555555553d63p-5,  0x1.11111111109b3p-7,
                            0x1.6c16c1788bd90p-10, 0x1.a01a01a7c41d5p-13, 0x1.a019b90d2ae7ap-16, 0x1.71de0dae63bb3p-19,
                            0x1.289185613a3d6p-22, 0x1.af38a9b0ec855p-26};
    const auto all = [](double value) ILK_LAMBDA { return everywhere<Doubles>(value); };

    const Bits counts = x >= all(vanishing);
    x = larger(x, all(vanishing));
    const Doubles rounded = multiply_add(x, all(0x1.71547652b82fep0), all(rounder));  // 1 / log(2)
    const Doubles n = rounded - all(rounder);
    const Doubles r = multiply_add(n, all(-log_two_low), multiply_add(n, all(-log_two_high), x));
    Doubles sum = all(q[9]);
#pragma GCC unroll 9
    for (int degree = 8; degree >= 0; --degree) sum = multiply_add(sum, r, all(q[degree]));
    sum = multiply_add(multiply_add(sum, r, all(1.0)), r, all(1.0));
    const Doubles scaled = (Doubles)((Bits)sum + ((Bits)rounded << 52));
    return counts ? scaled : Doubles{};
}

// log(x) for normal x > 0: x = 2^n m with m between sqrt(1/2) and sqrt(2), log(m) = 2 artanh((m - 1) / (m + 1)),
// whose series has 2e-17 left after eleven terms.
ILK_INLINE Doubles logarithm(Doubles x) {
    constexpr Index bits_of_root_half = 0x3fe6a09e667f3bcd;
    const Bits above = (Bits)x - bits_of_root_half;
    const Bits n = above >> 52;
    const Doubles m = (Doubles)((above & 0x000fffffffffffff) + bits_of_root_half);
    const Doubles t = (m - 1.0) / (m + 1.0), squared = t * t;
    Doubles sum = everywhere<Doubles>(1.0 / 21);
#pragma GCC unroll 10
    for (int odd = 19; odd >= 3; odd -= 2) sum = multiply_add(sum, squared, everywhere<Doubles>(1.0 / odd));
    const Doubles small = (Doubles)(n + (Bits)everywhere<Doubles>(0x1.8p52)) - 0x1.8p52;  // n as a number
    return multiply_add(small, everywhere<Doubles>(0x1.62e42fefa39efp-1),
                        multiply_add(t * squared, 2.0 * sum, 2.0 * t));
}

}  // namespace
}  // namespace ilk

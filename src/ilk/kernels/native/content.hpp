// What the numbers of a row say, as one number of 64 bits: the sum of the bits of its cells, each times an odd factor
// of its column, modulo 2^64. Integers: the same in every instruction set and any order.
#pragma once

#include <cstring>

#include "interface.hpp"

namespace ilk {
namespace {

// The bits of a cell by its value: -0.0 is 0.0, every NaN is `missing`.
template <class Number>
inline std::uint64_t bits_of(Number raw, double power, std::uint64_t missing) {
    const double value = static_cast<double>(raw) * power + 0.0;
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits = value == value ? bits : missing;
    return bits ^ (bits >> 32);  // the low bits of short numbers are all zero
}

template <class Number>
void content_sums(const Table<Number>& table, const std::uint64_t* factors, std::uint64_t missing,
                  std::uint64_t* sums) {
    for (Index row = 0; row < table.rows; ++row) {
        const Number* cells = table.raw + row * table.row_step;
        std::uint64_t sum = 0;
        if (table.column_step == 1)  // a loop that the compiler can write in vectors
            for (Index column = 0; column < table.columns; ++column)
                sum += bits_of(cells[column], table.power, missing) * factors[column];
        else
            for (Index column = 0; column < table.columns; ++column)
                sum += bits_of(cells[column * table.column_step], table.power, missing) * factors[column];
        sums[row] = sum;
    }
}

}  // namespace
}  // namespace ilk

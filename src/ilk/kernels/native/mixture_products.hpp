// Sums over points of the products of every two rows of an array [row][point].
#pragma once

#include "mixture_tile.hpp"

namespace ilk {
namespace {

// Lane i of the first vector becomes the sum over the lanes of vectors[i]; called with half their number.
template <int block, int count>
ILK_INLINE void fold(Doubles (&vectors)[count]) {
    if constexpr (block > 0) {
#pragma GCC unroll 4
        for (int row = 0; row < block; ++row) {
            swap_blocks<block>(vectors[row], vectors[row + block], std::make_index_sequence<count>{});
            vectors[row] += vectors[row + block];
        }
        fold<block / 2>(vectors);
    }
}

// sums[i] += sum over the lanes of parts[i]; room for whole vectors is needed.
template <int count>
ILK_INLINE void add_lanes(const Doubles (&parts)[count], double* sums) {
    constexpr int width = lanes<double>;
#pragma GCC unroll 16
    for (int first = 0; first < count; first += width) {
        Doubles vectors[width] = {};
#pragma GCC unroll 8
        for (int index = 0; index < width; ++index)
            if (first + index < count) vectors[index] = parts[first + index];
        fold<width / 2>(vectors);
        store(sums + first, load<Doubles>(sums + first) + vectors[0]);
    }
}

class Products {
public:
    explicit Products(Index rows) : rows_(rows), blocks_((rows + block_columns - 1) / block_columns) {}

    // How many numbers the sums take.
    Index size() const { return blocks_ * (blocks_ + 1) / 2 * slot; }

    // Products of every block of rows with itself, then with every later one; rows stand `height` apart.
    void add(const double* values, Index height, Index points, double* sums) const {
        for_each_block(rows_, [&](Index first, auto size) {
            constexpr int rows = decltype(size)::value;
            const double* own = values + first * height;
            add_triangle<rows>(own, height, points, sums);
            sums += slot;
            if constexpr (rows == block_columns) {
                for_each_block(rows_ - first - rows, [&](Index next, auto other) {
                    add_rectangle<decltype(other)::value>(own, own + (rows + next) * height, height, points, sums);
                    sums += slot;
                });
            }
        });
    }

    // The sums as a symmetric matrix (rows, rows).
    void write(const double* sums, double* matrix) const {
        for (Index first = 0; first < rows_; first += block_columns)
            for (Index next = first; next < rows_; next += block_columns, sums += slot) {
                const Index left = rows_ - next, width = left < block_columns ? left : block_columns;
                for (Index row = 0; row < block_columns && first + row < rows_; ++row)
                    for (Index column = 0; column < width; ++column) {
                        if (next == first && column > row) break;
                        const double sum = next == first ? sums[row * (row + 1) / 2 + column] : sums[row * width + column];
                        matrix[(first + row) * rows_ + next + column] = sum;
                        matrix[(next + column) * rows_ + first + row] = sum;
                    }
            }
    }

private:
    static constexpr Index slot = 16;  // room for the products of two blocks, in whole vectors
    static_assert(block_columns * block_columns <= slot);

    template <int columns>
    static void add_triangle(const double* z, Index height, Index points, double* to) {
        Doubles sums[columns * (columns + 1) / 2] = {};
        for (Index point = 0; point < points; point += lanes<double>) {
            Doubles values[columns];
#pragma GCC unroll 4
            for (int column = 0; column < columns; ++column)
                values[column] = load<Doubles>(z + column * height + point);
#pragma GCC unroll 4
            for (int row = 0; row < columns; ++row)
#pragma GCC unroll 4
                for (int column = 0; column <= row; ++column) {
                    Doubles& sum = sums[row * (row + 1) / 2 + column];
                    sum = multiply_add(values[row], values[column], sum);
                }
        }
        add_lanes(sums, to);
    }

    template <int columns>
    static void add_rectangle(const double* a, const double* b, Index height, Index points, double* to) {
        Doubles sums[block_columns * columns] = {};
        for (Index point = 0; point < points; point += lanes<double>) {
            Doubles values[columns];
#pragma GCC unroll 4
            for (int column = 0; column < columns; ++column)
                values[column] = load<Doubles>(b + column * height + point);
#pragma GCC unroll 4
            for (int row = 0; row < block_columns; ++row) {
                const Doubles value = load<Doubles>(a + row * height + point);
#pragma GCC unroll 4
                for (int column = 0; column < columns; ++column) {
                    Doubles& sum = sums[row * columns + column];
                    sum = multiply_add(value, values[column], sum);
                }
            }
        }
        add_lanes(sums, to);
    }

    Index rows_, blocks_;
};

}  // namespace
}  // namespace ilk

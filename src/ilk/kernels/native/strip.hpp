// A strip of rows, encoded, in two layouts: row by row for the sums, and as tiles with the rows across the
// vector lanes for the ranking. Small enough to stay in the first-level cache for usual numbers of columns.
#pragma once

#include <utility>

#include "vectors.hpp"

namespace ilk {
namespace {

constexpr Index strip_rows = 48;  // a multiple of every tile and of eight
constexpr int tile_vectors = 3;

template <class Number>
constexpr Index tile_rows = tile_vectors * lanes<Number>;

// One step of a transposition: swap the off-diagonal blocks of size `block` between two vectors.
template <int block, class V, std::size_t... lane>
ILK_INLINE void swap_blocks(V& a, V& b, std::index_sequence<lane...>) {
    constexpr int count = sizeof...(lane);
    const V upper = __builtin_shufflevector(a, b, (lane & block ? count + (lane ^ block) : lane)...);
    const V lower = __builtin_shufflevector(a, b, (lane & block ? count + lane : (lane ^ block))...);
    a = upper;
    b = lower;
}

template <int block, class V, int count>
ILK_INLINE void transpose_steps(V (&vectors)[count]) {
    if constexpr (block > 0) {
#pragma GCC unroll 16
        for (int row = 0; row < count; ++row)
            if ((row & block) == 0)
                swap_blocks<block>(vectors[row], vectors[row + block], std::make_index_sequence<count>{});
        transpose_steps<block / 2>(vectors);
    }
}

// Transpose a square of lanes x lanes numbers.
template <class Number>
ILK_INLINE void transpose(const Number* from, Index from_step, Number* to, Index to_step) {
    constexpr int count = lanes<Number>;
    Vector<Number> vectors[count];
#pragma GCC unroll 16
    for (int row = 0; row < count; ++row) vectors[row] = load<Vector<Number>>(from + row * from_step);
    transpose_steps<count / 2>(vectors);
#pragma GCC unroll 16
    for (int row = 0; row < count; ++row) store(to + row * to_step, vectors[row]);
}

template <class Number>
class Strip {
public:
    explicit Strip(const Table<Number>& table)
        : table_(table),
          width_(rounded_up(table.columns, lanes<Number> < eight ? eight : lanes<Number>)),
          rows_(strip_rows * width_),
          tiles_(strip_rows * width_),
          centre_(width_),
          factor_(width_),
          power_(static_cast<Number>(table.power)) {
        for (Index column = 0; column < table.columns; ++column) {
            centre_[column] = static_cast<Number>(table.centre[column]);
            factor_[column] = static_cast<Number>(table.factor ? table.factor[column] : 1.0);
        }
    }

    Index width() const { return width_; }  // columns and zeros up to whole vectors
    const Number* row(Index index) const { return rows_ + index * width_; }
    const Number* tile(Index index) const { return tiles_ + index * tile_rows<Number> * width_; }

    // Encode `count` rows from `first` on; the rest of the strip becomes zeros.
    void fill(Index first, Index count) {
        const Number* raw = table_.raw + first * table_.row_step;
        if (count == strip_rows && table_.row_step == 1 && table_.columns > 1) {
            encode_columns(raw);
            tiles_to_rows();
            return;
        }
        if (table_.column_step == 1) encode_rows(raw, count);
        else encode_cells(raw, count);
        std::memset(rows_ + count * width_, 0, static_cast<std::size_t>((strip_rows - count) * width_) * sizeof(Number));
        rows_to_tiles();
    }

private:
    // A factor of one changes no bits, so scaled and unscaled tables share these lines.
    template <class V>
    ILK_INLINE V encode(V raw, V centre, V factor) const {
        return (raw * power_ - centre) * factor;
    }

    void encode_rows(const Number* raw, Index count) {
        using V = Vector<Number>;
        for (Index row = 0; row < count; ++row, raw += table_.row_step) {
            Number* to = rows_ + row * width_;
            Index column = 0;
            for (; column + lanes<Number> <= table_.columns; column += lanes<Number>)
                store(to + column, encode(load<V>(raw + column), load<V>(centre_ + column), load<V>(factor_ + column)));
            for (; column < table_.columns; ++column)
                to[column] = encode(raw[column], centre_[column], factor_[column]);
        }
    }

    void encode_cells(const Number* raw, Index count) {
        for (Index row = 0; row < count; ++row, raw += table_.row_step)
            for (Index column = 0; column < table_.columns; ++column)
                rows_[row * width_ + column] =
                    encode(raw[column * table_.column_step], centre_[column], factor_[column]);
    }

    void encode_columns(const Number* raw) {
        using V = Vector<Number>;
        for (Index column = 0; column < table_.columns; ++column, raw += table_.column_step) {
            const V centre = everywhere<V>(centre_[column]), factor = everywhere<V>(factor_[column]);
            for (Index row = 0; row < strip_rows; row += lanes<Number>)
                store(cell(row, column), encode(load<V>(raw + row), centre, factor));
        }
    }

    Number* cell(Index row, Index column) {
        constexpr Index height = tile_rows<Number>;
        return tiles_ + (row / height * width_ + column) * height + row % height;
    }

    void rows_to_tiles() {
        for (Index row = 0; row < strip_rows; row += lanes<Number>)
            for (Index column = 0; column < table_.columns; column += lanes<Number>)
                transpose<Number>(rows_ + row * width_ + column, width_, cell(row, column), tile_rows<Number>);
    }

    void tiles_to_rows() {
        for (Index row = 0; row < strip_rows; row += lanes<Number>)
            for (Index column = 0; column < table_.columns; column += lanes<Number>)
                transpose<Number>(cell(row, column), tile_rows<Number>, rows_ + row * width_ + column, width_);
    }

    const Table<Number>& table_;
    Index width_;
    Scratch<Number> rows_, tiles_, centre_, factor_;
    Number power_;
};

}  // namespace
}  // namespace ilk

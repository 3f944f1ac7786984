// A strip of rows, encoded, row by row; and the same rows as tiles, across the vector lanes, for the ranking.
#pragma once

#include <utility>

#include "vectors.hpp"

namespace ilk {
namespace {

constexpr Index strip_rows = 48;  // a multiple of every tile and of eight
constexpr int tile_vectors = 3;

template <class Score>
constexpr Index tile_rows = tile_vectors * lanes<Score>;

// One step of a transposition: swap the off-diagonal blocks of size `block` between two vectors.
template <int block, class V, std::size_t... lane>
ILK_INLINE void swap_blocks(V& a, V& b, std::index_sequence<lane...>) {
    constexpr int count = sizeof...(lane);
    const V upper = __builtin_shufflevector(a, b, (lane & block ? count + (lane ^ block) : lane)...);
    const V lower = __builtin_shufflevector(a, b, (lane & block ? count + lane : (lane ^ block))...);
    a = upper;
    b = lower;
}

// Transpose as many vectors as they have lanes; called with half that number.
template <int block, class V, int count>
ILK_INLINE void transpose(V (&vectors)[count]) {
    if constexpr (block > 0) {
#pragma GCC unroll 16
        for (int row = 0; row < count; ++row)
            if ((row & block) == 0)
                swap_blocks<block>(vectors[row], vectors[row + block], std::make_index_sequence<count>{});
        transpose<block / 2>(vectors);
    }
}

// Encoded rows stand `width` apart, and start at a multiple of eight numbers unless several fit in eight. Zeros
// fill what is left between them. Vectors may reach across the end of a row, and beyond the last row by less than
// `overhang` numbers, where finite numbers without meaning stand.
constexpr Index overhang = 16;

constexpr Index width_for(Index columns) {
    if (columns == 0) return eight;
    return eight % columns == 0 ? columns : rounded_up(columns, eight);
}

template <class Number>
class Encoder {
public:
    explicit Encoder(const Table<Number>& table)
        : table_(table),
          width_(width_for(table.columns)),
          centre_(width_ + in_run),
          factor_(width_ + in_run),
          power_(static_cast<Number>(table.power)) {
        // Narrow rows are encoded several at a time, so their columns repeat.
        for (Index column = 0; column < rounded_up(table.columns, in_run); ++column) {
            const Index own = in_run % width_ == 0 ? column % width_ : column;
            if (own >= table.columns) break;
            centre_[column] = static_cast<Number>(table.centre[own]);
            factor_[column] = static_cast<Number>(table.factor ? table.factor[own] : 1.0);
        }
    }

    Index width() const { return width_; }

    // Encode a strip of `count` rows from `first` on into `rows`; absent rows become zeros.
    void encode(Index first, Index count, Number* rows) const {
        const Number* raw = table_.raw + first * table_.row_step;
        const bool runs = table_.column_step == 1 && table_.row_step == width_ && count == strip_rows &&
                          (in_run % width_ == 0 || width_ % in_run == 0);
        if (runs && table_.factor == nullptr) encode_run<false>(raw, rows);
        else if (runs) encode_run<true>(raw, rows);
        else if (table_.column_step == 1) encode_rows(raw, count, rows);
        else if (table_.row_step == 1 && count == strip_rows) encode_columns(raw, rows);
        else encode_cells(raw, count, rows);
        const Index absent = (strip_rows - count) * width_;
        std::memset(rows + count * width_, 0, static_cast<std::size_t>(absent) * sizeof(Number));
    }

    // The strip after the next one of the strip at `first`.
    Ahead after(Index first) const { return ahead(first + 2 * strip_rows, strip_rows); }

    // Rows from `first` on, where they lie close together.
    Ahead ahead(Index first, Index count) const {
        const Number* begin = table_.raw + first * table_.row_step;
        const bool close = table_.column_step == 1 && table_.row_step > 0 && table_.row_step <= 2 * table_.columns;
        const Number* end = close ? begin + count * table_.row_step : begin;
        return {reinterpret_cast<const char*>(begin), reinterpret_cast<const char*>(end)};
    }

private:
    static constexpr Index in_run = 64 / static_cast<Index>(sizeof(Number));
    typedef Number EightNumbers __attribute__((vector_size(8 * sizeof(Number))));

    // A factor of one changes no bits, so scaled and unscaled tables share this line.
    template <class V>
    ILK_INLINE V encoded(V raw, V centre, V factor) const {
        return (raw * power_ - centre) * factor;
    }

    // Rows without gaps, several to a vector or several vectors to a row. A factor of one changes no bits, so it
    // may be left out.
    template <bool scaled>
    void encode_run(const Number* raw, Number* to) const {
        using V = Few<Number, in_run>;
        const Index period = width_ < in_run ? in_run : width_;
        for (Index done = 0; done < strip_rows * width_; done += period)
            for (Index column = 0; column < period; column += in_run) {
                V x = load<V>(raw + done + column) * power_ - load<V>(centre_ + column);
                if constexpr (scaled) x = x * load<V>(factor_ + column);
                store(to + done + column, x);
            }
    }

    void encode_rows(const Number* raw, Index count, Number* to) const {
        using V = EightNumbers;
        for (Index row = 0; row < count; ++row, raw += table_.row_step, to += width_) {
            Index column = 0;
            for (; column + eight <= table_.columns; column += eight)
                store(to + column,
                      encoded(load<V>(raw + column), load<V>(centre_ + column), load<V>(factor_ + column)));
            for (; column < table_.columns; ++column)
                to[column] = encoded(raw[column], centre_[column], factor_[column]);
        }
    }

    void encode_columns(const Number* raw, Number* to) const {
        using V = EightNumbers;
        for (Index first = 0; first < table_.columns; first += eight) {
            const Index some = table_.columns - first < eight ? table_.columns - first : eight;
            for (Index row = 0; row < strip_rows; row += eight) {
                V columns[8] = {};
                for (Index index = 0; index < some; ++index) {
                    const Index column = first + index;
                    columns[index] = encoded(load<V>(raw + column * table_.column_step + row),
                                             everywhere<V>(centre_[column]), everywhere<V>(factor_[column]));
                }
                transpose<4>(columns);
                // What a narrow row stores beyond its end, the next one overwrites.
                for (Index index = 0; index < eight; ++index)
                    store(to + (row + index) * width_ + first, columns[index]);
            }
        }
    }

    void encode_cells(const Number* raw, Index count, Number* to) const {
        for (Index row = 0; row < count; ++row, raw += table_.row_step, to += width_)
            for (Index column = 0; column < table_.columns; ++column)
                to[column] = encoded(raw[column * table_.column_step], centre_[column], factor_[column]);
    }

    const Table<Number>& table_;
    Index width_;
    Scratch<Number> centre_, factor_;
    Number power_;
};

template <class Score>
class Tiles {
public:
    explicit Tiles(Index columns)
        : columns_(columns), depth_(rounded_up(columns, lanes<Score>)), tiles_(strip_rows * depth_) {}

    const Score* operator[](Index tile) const { return tiles_ + tile * tile_rows<Score> * depth_; }  // [column][row]

    template <class Number>
    void fill(const Number* rows, Index width) {
        constexpr int count = lanes<Score>;
        if (width == 2) return split_in_two(rows, std::make_index_sequence<count>{});
        for (Index first = 0; first < strip_rows; first += count)
            for (Index column = 0; column < columns_; column += count) {
                Vector<Score> vectors[count];
#pragma GCC unroll 16
                for (int row = 0; row < count; ++row)
                    vectors[row] = load_as<Score>(rows + (first + row) * width + column);
                transpose<count / 2>(vectors);
                Score* to = cell(first, column);
#pragma GCC unroll 16
                for (int row = 0; row < count; ++row) store(to + row * tile_rows<Score>, vectors[row]);
            }
    }

private:
    Score* cell(Index row, Index column) {
        constexpr Index height = tile_rows<Score>;
        return tiles_ + (row / height * depth_ + column) * height + row % height;
    }

    // Two columns need no transposition: the even places are one column, the odd ones the other.
    template <class Number, std::size_t... lane>
    void split_in_two(const Number* rows, std::index_sequence<lane...>) {
        constexpr int count = lanes<Score>;
        for (Index first = 0; first < strip_rows; first += count, rows += 2 * count) {
            const Vector<Score> a = load_as<Score>(rows), b = load_as<Score>(rows + count);
            store(cell(first, 0), __builtin_shufflevector(a, b, (2 * lane)...));
            store(cell(first, 1), __builtin_shufflevector(a, b, (2 * lane + 1)...));
        }
    }

    Index columns_, depth_;
    Scratch<Score> tiles_;
};

}  // namespace
}  // namespace ilk

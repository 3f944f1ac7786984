// A tile of points across the vector lanes, and how well each component of a mixture explains them.
#pragma once

#include <type_traits>

#include "encode.hpp"
#include "mixture_functions.hpp"

namespace ilk {
namespace {

// Columns are taken a few at a time, so that all products of two such blocks stay in registers.
constexpr int block_columns = vector_registers == 32 ? 4 : 3;

// Points whose products with a block of whitening rows stay in registers; strips hold a multiple of these.
constexpr int group_vectors = 3;
constexpr Index group_points = group_vectors * lanes<double>;
static_assert(strip_rows % group_points == 0);

// Call visit(first column, number of columns as a type) for every block of columns.
template <class Visit>
ILK_INLINE void for_each_block(Index columns, Visit visit) {
    Index first = 0;
    for (; first + block_columns <= columns; first += block_columns)
        visit(first, std::integral_constant<int, block_columns>{});
    if (columns - first == 1) visit(first, std::integral_constant<int, 1>{});
    if (columns - first == 2) visit(first, std::integral_constant<int, 2>{});
    if (block_columns > 3 && columns - first == 3) visit(first, std::integral_constant<int, 3>{});
}

// Enough points to make adding up lanes at the end of a tile cheap, few enough for the second-level cache. Between
// 96 and 768 points no size was clearly faster for whole matrices. Components along the columns do so little with a
// number that they wait for the second level: their tiles fit the first.
constexpr Index matrix_tile = 24576, diagonal_tile = 3072;
constexpr Index points_for(Index columns, Index tile_numbers) {
    constexpr Index most = 192;
    const Index fitting = columns == 0 ? most : tile_numbers / columns / strip_rows * strip_rows;
    return fitting < strip_rows ? strip_rows : fitting > most ? most : fitting;
}

// Encoded points, [column][point]; columns stand `height` apart.
class Tile {
public:
    explicit Tile(Index columns, bool diagonal = false)
        : columns_(columns), height_(points_for(columns, diagonal ? diagonal_tile : matrix_tile)),
          values_(columns * height_) {}

    Index height() const { return height_; }
    Index points() const { return points_; }
    const double* column(Index column) const { return values_ + column * height_; }

    // Take `count` rows from `first` on; zeros make the last strip whole. They are encoded strip by strip into `rows`,
    // each strip `step` numbers after the last: 0 where nobody needs them afterwards.
    template <class Number>
    void fill(const Encoder<Number>& encoder, Index first, Index count, Number* rows, Index step) {
        points_ = rounded_up(count, strip_rows);
        for (Index done = 0; done < count; done += strip_rows, rows += step) {
            encoder.encode(first + done, count - done < strip_rows ? count - done : strip_rows, rows);
            if (columns_ == 2 && encoder.width() == 2)
                split_in_two(rows, done, std::make_index_sequence<lanes<double>>{});
            else turn(rows, encoder.width(), done);
        }
    }

private:
    template <class Number>
    void turn(const Number* rows, Index width, Index done) {
        constexpr int count = lanes<double>;
        for (Index row = 0; row < strip_rows; row += count)
            for (Index first = 0; first < columns_; first += count) {
                Doubles vectors[count];
#pragma GCC unroll 8
                for (int lane = 0; lane < count; ++lane)
                    vectors[lane] = load_as<double>(rows + (row + lane) * width + first);
                transpose<count / 2>(vectors);
#pragma GCC unroll 8
                for (int lane = 0; lane < count; ++lane)
                    if (first + lane < columns_) store(values_ + (first + lane) * height_ + done + row, vectors[lane]);
            }
    }

    // Two columns need no transposition: the even places are one column, the odd ones the other.
    template <class Number, std::size_t... lane>
    void split_in_two(const Number* rows, Index done, std::index_sequence<lane...>) {
        constexpr Index count = lanes<double>;
        for (Index row = 0; row < strip_rows; row += count, rows += 2 * count) {
            const Doubles a = load_as<double>(rows), b = load_as<double>(rows + count);
            store(values_ + done + row, __builtin_shufflevector(a, b, (2 * lane)...));
            store(values_ + height_ + done + row, __builtin_shufflevector(a, b, (2 * lane + 1)...));
        }
    }

    Index columns_, height_;
    Index points_ = 0;
    Scratch<double> values_;
};

// Scores of points under the components: log_weight - |whiten (x - mean)|^2 / 2. Tied components whiten a point once
// for all of them, and are round then; those along common axes turn it once, and are along the columns then.
class Densities {
public:
    Densities(const Components& components, Index columns)
        : components_(components), columns_(columns), turned_once_(components.tied || components.axes != nullptr),
          packed_columns_(components.axes ? columns * columns : packed_size(columns)),
          packed_(components.diagonal ? 0 : matrices() * packed_columns_), round_(components.count),
          whitened_mean_(turned_once_ ? components.count * columns : 0),
          whitened_(turned_once_ ? columns * points_for(columns, matrix_tile) : 0) {
        for (Index component = 0; component < components.count; ++component)
            round_[component] = components.tied || (components.diagonal && is_round(component));
        if (components.diagonal) return;
        double* to = packed_;
        for (Index matrix = 0; matrix < matrices(); ++matrix)
            for_each_block(columns, [&](Index first, auto size) {
                constexpr int rows = decltype(size)::value;
                for (Index column = 0; column < (components.axes ? columns : first + rows); ++column)
                    for (Index row = first; row < first + rows; ++row) *to++ = weight_of(matrix, row, column);
            });
        if (turned_once_) turn_means();
    }

    // Scores [component][point] of every point of the tile, components `tile.height()` apart. Two components along the
    // columns share what they load. Memory of the next tile is asked for in between.
    void score(const Tile& tile, double* scores, Ahead ahead) {
        const Index asks = (ahead.end - ahead.next) / (128 * components_.count) + 1;
        const Index count = components_.count;
        const bool along_columns = components_.diagonal || turned_once_;
        if (turned_once_) turn(tile);
        for (Index component = 0; component < count;) {
            for (Index ask = 0; ask < asks; ++ask) ahead.ask();
            double* own = scores + component * tile.height();
            const bool pair = component + 1 < count && round_[component] == round_[component + 1];
            if (!along_columns) score_matrix(component, tile, own);
            else if (pair && round_[component]) score_columns<true, 2>(component, tile, own);
            else if (pair) score_columns<false, 2>(component, tile, own);
            else if (round_[component]) score_columns<true, 1>(component, tile, own);
            else score_columns<false, 1>(component, tile, own);
            component += along_columns && pair ? 2 : 1;
        }
    }

private:
    // How many whitening matrices there are.
    Index matrices() const { return turned_once_ ? 1 : components_.count; }

    // By how much a column counts in a row of a whitening matrix, or along an axis.
    double weight_of(Index matrix, Index row, Index column) const {
        if (components_.axes) return components_.axes[column * columns_ + row];
        return components_.whiten[(matrix * columns_ + row) * columns_ + column];
    }

    // Means as differences to the first one, whitened or along the axes.
    void turn_means() {
        for (Index component = 0; component < components_.count; ++component)
            for (Index row = 0; row < columns_; ++row) {
                double sum = 0.0;
                for (Index column = 0; column < (components_.axes ? columns_ : row + 1); ++column) {
                    const double away = components_.mean[component * columns_ + column] - components_.mean[column];
                    sum += weight_of(0, row, column) * away;
                }
                whitened_mean_[component * columns_ + row] = sum;
            }
    }

    // The points of a tile likewise, [column][point].
    void turn(const Tile& tile) {
        for (Index point = 0; point < tile.points(); point += group_points) {
            const double* whiten = packed_;
            double* to = whitened_ + point;
            for_each_block(columns_, [&](Index first, auto size) ILK_LAMBDA {
                constexpr int rows = decltype(size)::value;
                Doubles y[rows][group_vectors] = {};
                if (components_.axes) add_turned<rows>(whiten, components_.mean, tile, point, y);
                else add_whitened<rows>(whiten, first, components_.mean, tile, point, y);
                whiten += (components_.axes ? columns_ : first + rows) * rows;
#pragma GCC unroll 4
                for (int row = 0; row < rows; ++row, to += tile.height())
#pragma GCC unroll 3
                    for (int part = 0; part < group_vectors; ++part) store(to + part * lanes<double>, y[row][part]);
            });
        }
    }

    void score_matrix(Index component, const Tile& tile, double* scores) const {
        const double* mean = components_.mean + component * columns_;
        for (Index point = 0; point < tile.points(); point += group_points) {
            Doubles squares[group_vectors] = {};
            const double* whiten = packed_ + component * packed_columns_;
            for_each_block(columns_, [&](Index first, auto size) ILK_LAMBDA {
                constexpr int rows = decltype(size)::value;
                Doubles y[rows][group_vectors] = {};
                add_whitened<rows>(whiten, first, mean, tile, point, y);
                whiten += (first + rows) * rows;
#pragma GCC unroll 4
                for (int row = 0; row < rows; ++row)
#pragma GCC unroll 3
                    for (int part = 0; part < group_vectors; ++part)
                        squares[part] = multiply_add(y[row][part], y[row][part], squares[part]);
            });
            write(component, -0.5, squares, scores + point);
        }
    }

    // Some components along the columns, scored together; `round` ones have one scale for all columns.
    template <bool round, int count>
    void score_columns(Index component, const Tile& tile, double* scores) const {
        const double* mean = (turned_once_ ? whitened_mean_ : components_.mean) + component * columns_;
        const double* whiten = components_.whiten + (components_.tied ? 0 : component * columns_);
        const double* points = turned_once_ ? whitened_ : tile.column(0);
        for (Index point = 0; point < tile.points(); point += group_points) {
            Doubles squares[count][group_vectors] = {};
            const double* x = points + point;
            for (Index column = 0; column < columns_; ++column, x += tile.height())
#pragma GCC unroll 2
                for (int own = 0; own < count; ++own) {
                    const Doubles centre = everywhere<Doubles>(mean[own * columns_ + column]);
#pragma GCC unroll 3
                    for (int part = 0; part < group_vectors; ++part) {
                        Doubles away = load<Doubles>(x + part * lanes<double>) - centre;
                        if constexpr (!round) away = away * whiten[own * columns_ + column];
                        squares[own][part] = multiply_add(away, away, squares[own][part]);
                    }
                }
#pragma GCC unroll 2
            for (int own = 0; own < count; ++own) {
                const double scale = round && !components_.tied ? whiten[own * columns_] : 1.0;
                write(component + own, -0.5 * scale * scale, squares[own], scores + own * tile.height() + point);
            }
        }
    }

    // What overflows is impossible, not undefined.
    ILK_INLINE void write(Index component, double factor, const Doubles (&squares)[group_vectors],
                          double* scores) const {
        const Doubles log_weight = everywhere<Doubles>(components_.log_weight[component]);
#pragma GCC unroll 3
        for (int part = 0; part < group_vectors; ++part) {
            const Doubles score = multiply_add(squares[part], everywhere<Doubles>(factor), log_weight);
            store(scores + part * lanes<double>, larger(score, everywhere<Doubles>(-infinity)));
        }
    }

    // Numbers in the packed lower triangle of one component, block by block, [column][row of the block].
    static Index packed_size(Index columns) {
        Index size = 0;
        for_each_block(columns, [&](Index first, auto rows) {
            size += (first + decltype(rows)::value) * decltype(rows)::value;
        });
        return size;
    }

    // One column after the other of some rows of a matrix times (x - mean), from its row `begin` on.
    template <int rows>
    struct Adding {
        const double *weight, *mean, *x;
        Index height;

        ILK_INLINE void next(int begin, Doubles (&y)[rows][group_vectors]) {
            Doubles away[group_vectors];
#pragma GCC unroll 3
            for (int part = 0; part < group_vectors; ++part)
                away[part] = load<Doubles>(x + part * lanes<double>) - *mean;
#pragma GCC unroll 4
            for (int row = begin; row < rows; ++row) {
                const Doubles factor = everywhere<Doubles>(weight[row]);
#pragma GCC unroll 3
                for (int part = 0; part < group_vectors; ++part)
                    y[row][part] = multiply_add(factor, away[part], y[row][part]);
            }
            x += height;
            weight += rows;
            ++mean;
        }
    };

    // Add some rows of whiten (x - mean) to y.
    template <int rows>
    static ILK_INLINE void add_whitened(const double* whiten, Index first, const double* mean, const Tile& tile,
                                        Index point, Doubles (&y)[rows][group_vectors]) {
        Adding<rows> adding{whiten, mean, tile.column(0) + point, tile.height()};
        for (Index column = 0; column < first; ++column) adding.next(0, y);
#pragma GCC unroll 4
        for (int column = 0; column < rows; ++column) adding.next(column, y);
    }

    // Add x - mean along some axes to y.
    template <int rows>
    ILK_INLINE void add_turned(const double* axes, const double* mean, const Tile& tile, Index point,
                               Doubles (&y)[rows][group_vectors]) const {
        Adding<rows> adding{axes, mean, tile.column(0) + point, tile.height()};
        for (Index column = 0; column < columns_; ++column) adding.next(0, y);
    }

    // Whether every column of a component is divided by the same number, not 0.
    bool is_round(Index component) const {
        const double* whiten = components_.whiten + component * columns_;
        for (Index column = 1; column < columns_; ++column)
            if (whiten[column] != whiten[0]) return false;
        return columns_ > 0 && whiten[0] > 0.0;
    }

    const Components& components_;
    Index columns_;
    bool turned_once_;
    Index packed_columns_;
    Scratch<double> packed_;
    Scratch<bool> round_;
    Scratch<double> whitened_mean_, whitened_;  // where points are turned once: (count, columns), [column][point]
};

}  // namespace
}  // namespace ilk

// What the next components are made of: sums of memberships, and of first and second powers of the differences
// to the current means.
#pragma once

#include "mixture_rows.hpp"
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

// All sums of one block of rows. For whole matrices points enter as z = sqrt(membership) (x - mean), so that
// scatter is the plain sum of z z', and shift that of sqrt(membership) z.
class MixtureSums {
public:
    MixtureSums(const Components& components, Index columns, Index rows, const Tile& tile)
        : components_(components),
          columns_(columns),
          rows_(rows),
          by_row_(components.diagonal && RowSums::suits(columns)),
          row_sums_(components, by_row_ ? columns : 0, tile.height()),
          blocks_((columns + block_columns - 1) / block_columns),
          products_(components.diagonal ? 0 : blocks_ * (blocks_ + 1) / 2),
          count_(components.count),
          shift_(components.count * blocks_ * slot),
          scatter_(components.count * products_ * product_slot),
          root_(tile.height()),
          scaled_(components.diagonal ? 0 : columns * tile.height()) {}

    // Whether `add` reads the encoded rows of the whole tile.
    bool by_row() const { return by_row_; }

    // Add the points of a tile to one component; roots of their memberships are likelihood * scale. None costs
    // more than `highest`, infinity where costs are not known.
    template <class Number>
    void add(Index component, const Tile& tile, const EncodedRows<Number>& rows, const double* likelihood,
             const double* scale, double highest) {
        if (!find_roots(component, tile, likelihood, scale)) return;
        if (by_row_) return row_sums_.add(component, rows, root_, tile.points(), negligible(component, highest));
        double* shift = shift_ + component * blocks_ * slot;
        const double* mean = components_.mean + component * columns_;
        for_each_block(columns_, [&](Index first, auto size) {
            constexpr int columns = decltype(size)::value;
            if (components_.diagonal) add_squares<columns>(tile, first, mean + first, shift);
            else scale_columns<columns>(tile, first, mean + first, shift);
            shift += slot;
        });
        if (!components_.diagonal) add_products(tile, scatter_ + component * products_ * product_slot);
    }

    void write(MixtureStep out) const {
        for (Index component = 0; component < components_.count; ++component) {
            out.count[component] = count_[component];
            if (by_row_) {
                row_sums_.write(component, out.shift + component * columns_, out.scatter + component * columns_);
                continue;
            }
            const double* shift = shift_ + component * blocks_ * slot;
            for_each_block(columns_, [&](Index, auto size) {
                constexpr int columns = decltype(size)::value;
                for (int column = 0; column < columns; ++column) *out.shift++ = shift[column];
                if (components_.diagonal)
                    for (int column = 0; column < columns; ++column) *out.scatter++ = shift[columns + column];
                shift += slot;
            });
            if (components_.diagonal) continue;
            write_products(scatter_ + component * products_ * product_slot, out.scatter);
            out.scatter += columns_ * columns_;
        }
    }

private:
    static constexpr Index slot = 8;           // room for the sums over one block of columns, in whole vectors
    static constexpr Index product_slot = 16;  // and over the products of two blocks
    static_assert(2 * block_columns <= slot && block_columns * block_columns <= product_slot);

    // Rows with memberships up to this need not be added: all of them together are less than 2^-53 of the count so far,
    // and of the scatter if that were the current one. A row lies within `reach` of the mean, squared and in units of
    // the spread, because log membership = log_weight - distance / 2 + cost, and it is no less than -746.
    double negligible(Index component, double highest) const {
        if (!(highest < infinity)) return 0.0;
        const double reach = 2.0 * (components_.log_weight[component] + highest + 746.0);
        return 0x1p-53 * count_[component] / (static_cast<double>(rows_) * (reach > 1.0 ? reach : 1.0));
    }

    // False when no point of the tile belongs to the component, which saves most of the work where clusters lie
    // far apart.
    bool find_roots(Index component, const Tile& tile, const double* likelihood, const double* scale) {
        Doubles total[1] = {};
        for (Index point = 0; point < tile.points(); point += lanes<double>) {
            const Doubles root = load<Doubles>(likelihood + point) * load<Doubles>(scale + point);
            const Doubles membership = root * root;
            store(root_ + point, components_.diagonal ? membership : root);
            total[0] += membership;
        }
        double added[slot] = {};
        add_lanes(total, added);
        count_[component] += added[0];
        return added[0] > 0.0;
    }

    template <int columns>
    ILK_INLINE void scale_columns(const Tile& tile, Index first, const double* mean, double* shift) {
        Doubles sums[columns] = {};
        const double* x = tile.column(first);
        double* z = scaled_ + first * tile.height();
        for (Index point = 0; point < tile.points(); point += lanes<double>) {
            const Doubles root = load<Doubles>(root_ + point);
#pragma GCC unroll 4
            for (int column = 0; column < columns; ++column) {
                const Index place = column * tile.height() + point;
                const Doubles scaled = (load<Doubles>(x + place) - mean[column]) * root;
                store(z + place, scaled);
                sums[column] = multiply_add(scaled, root, sums[column]);
            }
        }
        add_lanes(sums, shift);
    }

    template <int columns>
    ILK_INLINE void add_squares(const Tile& tile, Index first, const double* mean, double* sums_and_squares) {
        Doubles sums[2 * columns] = {};
        const double* x = tile.column(first);
        for (Index point = 0; point < tile.points(); point += lanes<double>) {
            const Doubles membership = load<Doubles>(root_ + point);
#pragma GCC unroll 4
            for (int column = 0; column < columns; ++column) {
                const Doubles away = load<Doubles>(x + column * tile.height() + point) - mean[column];
                const Doubles weighted = away * membership;
                sums[column] += weighted;
                sums[columns + column] = multiply_add(weighted, away, sums[columns + column]);
            }
        }
        add_lanes(sums, sums_and_squares);
    }

    // Products of every block of columns with itself, then with every later one.
    void add_products(const Tile& tile, double* scatter) {
        for_each_block(columns_, [&](Index first, auto size) {
            constexpr int rows = decltype(size)::value;
            const double* z = scaled_ + first * tile.height();
            add_triangle<rows>(z, tile, scatter);
            scatter += product_slot;
            if constexpr (rows == block_columns) {
                for_each_block(columns_ - first - rows, [&](Index next, auto other) {
                    add_rectangle<decltype(other)::value>(z, z + (rows + next) * tile.height(), tile, scatter);
                    scatter += product_slot;
                });
            }
        });
    }

    template <int columns>
    static void add_triangle(const double* z, const Tile& tile, double* scatter) {
        Doubles sums[columns * (columns + 1) / 2] = {};
        for (Index point = 0; point < tile.points(); point += lanes<double>) {
            Doubles values[columns];
#pragma GCC unroll 4
            for (int column = 0; column < columns; ++column)
                values[column] = load<Doubles>(z + column * tile.height() + point);
#pragma GCC unroll 4
            for (int row = 0; row < columns; ++row)
#pragma GCC unroll 4
                for (int column = 0; column <= row; ++column) {
                    Doubles& sum = sums[row * (row + 1) / 2 + column];
                    sum = multiply_add(values[row], values[column], sum);
                }
        }
        add_lanes(sums, scatter);
    }

    template <int columns>
    static void add_rectangle(const double* a, const double* b, const Tile& tile, double* scatter) {
        Doubles sums[block_columns * columns] = {};
        for (Index point = 0; point < tile.points(); point += lanes<double>) {
            Doubles values[columns];
#pragma GCC unroll 4
            for (int column = 0; column < columns; ++column)
                values[column] = load<Doubles>(b + column * tile.height() + point);
#pragma GCC unroll 4
            for (int row = 0; row < block_columns; ++row) {
                const Doubles value = load<Doubles>(a + row * tile.height() + point);
#pragma GCC unroll 4
                for (int column = 0; column < columns; ++column) {
                    Doubles& sum = sums[row * columns + column];
                    sum = multiply_add(value, values[column], sum);
                }
            }
        }
        add_lanes(sums, scatter);
    }

    void write_products(const double* sums, double* scatter) const {
        for (Index first = 0; first < columns_; first += block_columns)
            for (Index next = first; next < columns_; next += block_columns, sums += product_slot) {
                const Index left = columns_ - next, width = left < block_columns ? left : block_columns;
                for (Index row = 0; row < block_columns && first + row < columns_; ++row)
                    for (Index column = 0; column < width; ++column) {
                        if (next == first && column > row) break;
                        const double sum = next == first ? sums[row * (row + 1) / 2 + column] : sums[row * width + column];
                        scatter[(first + row) * columns_ + next + column] = sum;
                        scatter[(next + column) * columns_ + first + row] = sum;
                    }
            }
    }

    const Components& components_;
    Index columns_, rows_;
    bool by_row_;
    RowSums row_sums_;
    Index blocks_, products_;
    Scratch<double> count_, shift_, scatter_;
    Scratch<double> root_;  // of the memberships of a tile; the memberships themselves when diagonal
    Scratch<double> scaled_;
};

}  // namespace
}  // namespace ilk

// What the next components are made of: sums of memberships, and of first and second powers of the differences
// to the current means.
#pragma once

#include "mixture_few.hpp"
#include "mixture_pooled.hpp"
#include "mixture_rows.hpp"

namespace ilk {
namespace {

// All sums of one block of rows. For whole matrices points enter as z = sqrt(membership) (x - mean), so that
// scatter is the plain sum of z z', and shift that of sqrt(membership) z.
class MixtureSums {
public:
    MixtureSums(const Components& components, Index columns, Index rows, const Tile& tile)
        : components_(components),
          columns_(columns),
          rows_(rows),
          few_columns_(!components.diagonal && !components.tied && FewColumns::suits(columns)),
          own_matrices_(!components.diagonal && !components.tied && !few_columns_),
          by_row_(!few_columns_ && !own_matrices_ && RowSums::suits(columns)),
          few_(components, few_columns_ ? columns : 0),
          row_sums_(components, by_row_ ? columns : 0, tile.height()),
          pooled_(components, components.tied ? columns : 0, components.tied ? tile.height() : 0),
          blocks_((columns + block_columns - 1) / block_columns),
          products_(own_matrices_ ? columns : 0),
          count_(components.count),
          shift_(components.count * blocks_ * slot),
          scatter_(components.count * products_.size()),
          scale_(tile.height()),
          shares_(tile.height()),
          scaled_(own_matrices_ ? columns * tile.height() : 0),
          places_(own_matrices_ ? tile.height() + overhang : 0),
          listed_shares_(own_matrices_ ? tile.height() + overhang : 0) {}

    // Whether `add` reads the encoded rows of the whole tile.
    bool by_row() const { return by_row_; }

    // Memberships in the tile to come are roots * roots * scale.
    void begin(const Tile& tile, const double* scale) {
        for (Index point = 0; point < tile.points(); point += lanes<double>) {
            const Doubles value = load<Doubles>(scale + point);
            store(scale_ + point, own_matrices_ ? square_root(value) : value);
        }
    }

    // Add the points of the tile to one component. None costs more than `highest`, infinity where costs are not known.
    template <class Number>
    void add(Index component, const Tile& tile, const EncodedRows<Number>& rows, const double* root, double highest) {
        if (few_columns_) return few_.add(component, tile, root, scale_);
        double* shares = components_.tied ? pooled_.memberships(component) : shares_;
        if (!find_memberships(component, tile, root, shares)) return;
        if (by_row_) return row_sums_.add(component, rows, shares, tile.points(), negligible(component, highest));
        if (own_matrices_ && add_listed(component, tile, negligible(component, highest))) return;
        double* shift = shift_ + component * blocks_ * slot;
        const double* mean = components_.mean + component * columns_;
        for_each_block(columns_, [&](Index first, auto size) {
            constexpr int columns = decltype(size)::value;
            if (own_matrices_) scale_columns<columns>(tile, first, mean + first, shift);
            else add_squares<columns>(tile, first, mean + first, shares, shift);
            shift += slot;
        });
        if (own_matrices_)
            products_.add(scaled_, tile.height(), tile.points(), scatter_ + component * products_.size());
    }

    // What is left to do with a tile that was added to every component.
    void end(const Tile& tile) {
        if (components_.tied) pooled_.add(tile);
    }

    void write(MixtureStep out) const {
        if (components_.tied) pooled_.write(out.scatter);
        for (Index component = 0; component < components_.count; ++component) {
            out.count[component] = few_columns_ ? few_.count(component) : count_[component];
            write_shift(component, out.shift + component * columns_);
            if (components_.diagonal) write_squares(component, out.scatter + component * columns_);
            if (few_columns_) few_.write_scatter(component, out.scatter + component * columns_ * columns_);
            if (own_matrices_)
                products_.write(scatter_ + component * products_.size(), out.scatter + component * columns_ * columns_);
        }
    }

private:
    static constexpr Index slot = 8;  // room for the sums over one block of columns, in whole vectors
    static_assert(2 * block_columns <= slot);

    void write_shift(Index component, double* shift) const {
        if (few_columns_) return few_.write_shift(component, shift);
        if (by_row_) return row_sums_.write_shift(component, shift);
        const double* sums = shift_ + component * blocks_ * slot;
        for (Index column = 0; column < columns_; ++column)
            shift[column] = sums[column / block_columns * slot + column % block_columns];
    }

    void write_squares(Index component, double* scatter) const {
        if (by_row_) return row_sums_.write_scatter(component, scatter);
        const double* sums = shift_ + component * blocks_ * slot;
        for_each_block(columns_, [&](Index, auto size) {
            constexpr int columns = decltype(size)::value;
            for (int column = 0; column < columns; ++column) *scatter++ = sums[columns + column];
            sums += slot;
        });
    }

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
    bool find_memberships(Index component, const Tile& tile, const double* from, double* to) {
        Doubles total[1] = {};
        for (Index point = 0; point < tile.points(); point += lanes<double>) {
            const Doubles root = load<Doubles>(from + point), scale = load<Doubles>(scale_ + point);
            const Doubles scaled = root * scale, membership = own_matrices_ ? scaled * scaled : root * scaled;
            store(to + point, own_matrices_ ? scaled : membership);
            total[0] += membership;
        }
        double added[slot] = {};
        add_lanes(total, added);
        count_[component] += added[0];
        return added[0] > 0.0;
    }

    // Only the points of the tile whose membership exceeds `least`, where they are at most half of them: in many columns
    // most rows belong to one component. False where nothing was done.
    bool add_listed(Index component, const Tile& tile, double least) {
        const Doubles root = everywhere<Doubles>(__builtin_sqrt(least));
        Index listed = 0;
        for (Index point = 0; point < tile.points(); point += lanes<double>)
            listed += keep_lanes(load<Doubles>(shares_ + point), root, point, places_ + listed, listed_shares_ + listed);
        if (2 * listed > tile.points()) return false;
        const Index whole = rounded_up(listed, lanes<double>);
        for (Index extra = listed; extra < whole; ++extra) {
            places_[extra] = 0;
            listed_shares_[extra] = 0.0;
        }
        const double* mean = components_.mean + component * columns_;
        double* shift = shift_ + component * blocks_ * slot;
        for (Index column = 0; column < columns_; ++column) {
            const double *x = tile.column(column), centre = mean[column];
            double* z = scaled_ + column * tile.height();
            Doubles sums = {};
            for (Index point = 0; point < whole; ++point) z[point] = (x[places_[point]] - centre) * listed_shares_[point];
            for (Index point = 0; point < whole; point += lanes<double>)
                sums = multiply_add(load<Doubles>(z + point), load<Doubles>(listed_shares_ + point), sums);
            double& total = shift[column / block_columns * slot + column % block_columns];
            for (int lane = 0; lane < lanes<double>; ++lane) total += sums[lane];
        }
        products_.add(scaled_, tile.height(), whole, scatter_ + component * products_.size());
        return true;
    }

    template <int columns>
    ILK_INLINE void scale_columns(const Tile& tile, Index first, const double* mean, double* shift) {
        Doubles sums[columns] = {};
        const double* x = tile.column(first);
        double* z = scaled_ + first * tile.height();
        for (Index point = 0; point < tile.points(); point += lanes<double>) {
            const Doubles root = load<Doubles>(shares_ + point);
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
    ILK_INLINE void add_squares(const Tile& tile, Index first, const double* mean, const double* memberships,
                                double* sums_and_squares) {
        Doubles sums[2 * columns] = {};
        const double* x = tile.column(first);
        for (Index point = 0; point < tile.points(); point += lanes<double>) {
            const Doubles membership = load<Doubles>(memberships + point);
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

    const Components& components_;
    Index columns_, rows_;
    bool few_columns_;   // a scatter (columns, columns) for every component, in registers
    bool own_matrices_;  // the same for more columns
    bool by_row_;
    FewColumns few_;
    RowSums row_sums_;
    PooledScatter pooled_;
    Index blocks_;
    Products products_;
    Scratch<double> count_, shift_, scatter_;
    Scratch<double> scale_;  // of a tile, its root for whole matrices
    Scratch<double> shares_;  // memberships of a tile in one component, their roots for whole matrices
    Scratch<double> scaled_;
    Scratch<Index> places_;  // of the points that count, in the tile, and the roots of their memberships
    Scratch<double> listed_shares_;
};

}  // namespace
}  // namespace ilk

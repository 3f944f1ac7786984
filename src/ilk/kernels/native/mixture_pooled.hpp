// The scatter of all components together, for those that share one covariance, without a scatter per component.
//
// A row x with memberships m_k, w in all, r_k = m_k / w, has the residual e = sum_k r_k (x - mean_k), and
//   sum_k m_k (x - mean_k)(x - mean_k)' = w e e' + sum_{k < l} w r_k r_l (mean_k - mean_l)(mean_k - mean_l)'.
// One product of columns and one of components a row instead of one of columns for every component; and nothing is
// subtracted from a larger number, however far apart the means lie.
#pragma once

#include "mixture_products.hpp"

namespace ilk {
namespace {

class PooledScatter {
public:
    PooledScatter(const Components& components, Index columns, Index height)
        : components_(components),
          columns_(columns),
          height_(height),
          of_columns_(columns),
          of_components_(components.tied ? components.count : 0),
          membership_(components.count * height),
          root_(height),
          residual_(columns * height),
          within_(of_columns_.size()),
          between_(of_components_.size()) {}

    // Where the memberships of a component in the points of the tile belong, until `add`.
    double* memberships(Index component) { return membership_ + component * height_; }

    void add(const Tile& tile) {
        for (Index point = 0; point < tile.points(); point += lanes<double>) share(point);
        for_each_block(columns_, [&](Index first, auto size) {
            for (Index point = 0; point < tile.points(); point += group_points)
                find_residuals<decltype(size)::value>(tile, first, point);
        });
        of_columns_.add(residual_, height_, tile.points(), within_);
        for (Index component = 0; component < components_.count; ++component)
            for (Index point = 0; point < tile.points(); point += lanes<double>) {
                double* own = memberships(component) + point;
                store(own, load<Doubles>(own) * load<Doubles>(root_ + point));
            }
        of_components_.add(membership_, height_, tile.points(), between_);
    }

    // The scatter (columns, columns).
    void write(double* scatter) const {
        of_columns_.write(within_, scatter);
        const Index count = components_.count;
        Scratch<double> shared(count * count), apart(columns_);
        of_components_.write(between_, shared);
        for (Index one = 0; one < count; ++one)
            for (Index other = 0; other < one; ++other) {
                const double weight = shared[one * count + other];
                if (weight > 0.0) add_apart(one, other, weight, apart, scatter);
            }
    }

private:
    // Memberships become shares; `root_` is the root of what a point counts in all.
    void share(Index point) {
        Doubles total = {};
        for (Index component = 0; component < components_.count; ++component)
            total += load<Doubles>(memberships(component) + point);
        const Doubles inverse = total > 0.0 ? 1.0 / total : Doubles{};
        for (Index component = 0; component < components_.count; ++component) {
            double* own = memberships(component) + point;
            store(own, load<Doubles>(own) * inverse);
        }
        store(root_ + point, square_root(total));
    }

    // Residuals of some columns, times `root_`.
    template <int columns>
    ILK_INLINE void find_residuals(const Tile& tile, Index first, Index point) {
        Doubles sums[columns][group_vectors] = {};
        const double* x = tile.column(first) + point;
        for (Index component = 0; component < components_.count; ++component) {
            const double* shares = memberships(component) + point;
            const double* mean = components_.mean + component * columns_ + first;
#pragma GCC unroll 4
            for (int column = 0; column < columns; ++column)
#pragma GCC unroll 3
                for (int part = 0; part < group_vectors; ++part) {
                    const Index place = part * lanes<double>;
                    const Doubles away = load<Doubles>(x + column * height_ + place) - mean[column];
                    sums[column][part] = multiply_add(load<Doubles>(shares + place), away, sums[column][part]);
                }
        }
#pragma GCC unroll 4
        for (int column = 0; column < columns; ++column)
#pragma GCC unroll 3
            for (int part = 0; part < group_vectors; ++part) {
                const Index place = point + part * lanes<double>;
                store(residual_ + (first + column) * height_ + place, sums[column][part] * load<Doubles>(root_ + place));
            }
    }

    void add_apart(Index one, Index other, double weight, double* apart, double* scatter) const {
        for (Index column = 0; column < columns_; ++column)
            apart[column] = components_.mean[one * columns_ + column] - components_.mean[other * columns_ + column];
        for (Index row = 0; row < columns_; ++row)
            for (Index column = 0; column < columns_; ++column)
                scatter[row * columns_ + column] += weight * apart[row] * apart[column];
    }

    const Components& components_;
    Index columns_, height_;
    Products of_columns_, of_components_;
    Scratch<double> membership_;  // [component][point], then shares, then shares times root
    Scratch<double> root_;
    Scratch<double> residual_;  // [column][point]
    Scratch<double> within_, between_;
};

}  // namespace
}  // namespace ilk

// Sums of components with a scatter each over few columns: all sums of one component stay in registers while the
// points of a tile go by, and nothing is stored in between.
#pragma once

#include "mixture_products.hpp"

namespace ilk {
namespace {

class FewColumns {
public:
    static bool suits(Index columns) { return columns <= block_columns; }

    FewColumns(const Components& components, Index columns)
        : components_(components), columns_(columns), sums_(columns ? components.count * slot : 0) {}

    // Add the points of a tile to one component; their memberships are root * root * scale.
    void add(Index component, const Tile& tile, const double* root, const double* scale) {
        for_each_block(columns_, [&](Index, auto size) {
            add_all<decltype(size)::value>(component, tile, root, scale);
        });
    }

    double count(Index component) const { return of(component)[0]; }
    void write_shift(Index component, double* shift) const {
        std::memcpy(shift, of(component) + 1, static_cast<std::size_t>(columns_) * sizeof(double));
    }
    void write_scatter(Index component, double* scatter) const {
        const double* sum = of(component) + 1 + columns_;
        for (Index row = 0; row < columns_; ++row)
            for (Index column = 0; column <= row; ++column)
                scatter[row * columns_ + column] = scatter[column * columns_ + row] = *sum++;
    }

private:
    static constexpr Index slot = 16;  // room for count, shift and the lower triangle of the scatter
    static_assert(1 + block_columns + block_columns * (block_columns + 1) / 2 <= slot);

    const double* of(Index component) const { return sums_ + component * slot; }

    template <int columns>
    ILK_INLINE void add_all(Index component, const Tile& tile, const double* roots, const double* scale) {
        Doubles sums[1 + columns + columns * (columns + 1) / 2] = {};
        const double* mean = components_.mean + component * columns;
        for (Index point = 0; point < tile.points(); point += lanes<double>) {
            const Doubles root = load<Doubles>(roots + point);
            const Doubles membership = root * root * load<Doubles>(scale + point);
            Doubles away[columns], weighted[columns];
            Doubles* sum = sums;
            *sum++ += membership;
#pragma GCC unroll 4
            for (int column = 0; column < columns; ++column) {
                away[column] = load<Doubles>(tile.column(column) + point) - mean[column];
                weighted[column] = away[column] * membership;
                *sum++ += weighted[column];
            }
#pragma GCC unroll 4
            for (int row = 0; row < columns; ++row)
#pragma GCC unroll 4
                for (int column = 0; column <= row; ++column, ++sum)
                    *sum = multiply_add(weighted[row], away[column], *sum);
        }
        add_lanes(sums, sums_ + component * slot);
    }

    const Components& components_;
    Index columns_;
    Scratch<double> sums_;  // [component][slot]
};

}  // namespace
}  // namespace ilk

// Sums of components along the columns, gathered row by row with the columns across the lanes: a row that does not
// belong to a component costs it nothing, and nothing has to be added up over lanes.
#pragma once

#include "encode.hpp"
#include "mixture_functions.hpp"

namespace ilk {
namespace {

// Encoded rows as the encoder leaves them.
template <class Number>
struct EncodedRows {
    const Number* cells;
    Index width;
};

class RowSums {
public:
    // Whether few lanes stay empty.
    static bool suits(Index columns) { return 4 * rounded_up(columns, lanes<double>) <= 5 * columns; }

    RowSums(const Components& components, Index columns, Index height)
        : columns_(columns), depth_(rounded_up(columns, lanes<double>)), mean_(components.count * depth_),
          sums_(components.count * 2 * depth_), places_(height + overhang), shares_(height + overhang) {
        for (Index component = 0; component < components.count; ++component)
            for (Index column = 0; column < columns; ++column)
                mean_[component * depth_ + column] = components.mean[component * columns + column];
    }

    // Add the rows whose membership exceeds `negligible` to one component.
    template <class Number>
    void add(Index component, const EncodedRows<Number>& rows, const double* membership, Index points,
             double negligible) {
        const Index listed = list(membership, points, negligible);
        for (Index first = 0; first < depth_; first += most_vectors * lanes<double>) {
            const Index left = (depth_ - first) / lanes<double>;
            const EncodedRows<Number> part = {rows.cells + first, rows.width};
            const double* mean = mean_ + component * depth_ + first;
            double* sums = sums_ + component * 2 * depth_ + first;
            if (left >= 4) add_columns<4, 1>(part, listed, mean, sums);
            else if (left == 3) add_columns<3, 1>(part, listed, mean, sums);
            else if (left == 2) add_columns<2, 2>(part, listed, mean, sums);
            else add_columns<1, 4>(part, listed, mean, sums);
        }
    }

    // Sums and sums of squares of one component.
    void write_shift(Index component, double* shift) const { copy_columns(component * 2, shift); }
    void write_scatter(Index component, double* scatter) const { copy_columns(component * 2 + 1, scatter); }

private:
    static constexpr int most_vectors = 4;

    void copy_columns(Index row, double* to) const {
        std::memcpy(to, sums_ + row * depth_, static_cast<std::size_t>(columns_) * sizeof(double));
    }

    // List the rows that count, and four more of no weight.
    Index list(const double* membership, Index points, double negligible) {
        Index listed = 0;
        const Doubles least = everywhere<Doubles>(negligible);
        for (Index point = 0; point < points; point += lanes<double>) {
            const Doubles share = load<Doubles>(membership + point);
            listed += keep_lanes(share, least, point, places_ + listed, shares_ + listed);
        }
        for (Index extra = 0; extra < 4; ++extra) {
            places_[listed + extra] = 0;
            shares_[listed + extra] = 0.0;
        }
        return listed;
    }

    // Several rows at a time where a row has too few vectors to hide how long an addition takes.
    template <int vectors, int ways, class Number>
    ILK_INLINE void add_columns(const EncodedRows<Number>& rows, Index listed, const double* mean, double* sums) const {
        Doubles shift[ways][vectors] = {}, scatter[ways][vectors] = {}, centre[vectors];
#pragma GCC unroll 4
        for (int part = 0; part < vectors; ++part) {
            centre[part] = load<Doubles>(mean + part * lanes<double>);
            shift[0][part] = load<Doubles>(sums + part * lanes<double>);
            scatter[0][part] = load<Doubles>(sums + depth_ + part * lanes<double>);
        }
        for (Index index = 0; index < listed; index += ways)
#pragma GCC unroll 4
            for (int way = 0; way < ways; ++way) {
                const Number* row = rows.cells + places_[index + way] * rows.width;
                const Doubles share = everywhere<Doubles>(shares_[index + way]);
#pragma GCC unroll 4
                for (int part = 0; part < vectors; ++part) {
                    const Doubles away = load_as<double>(row + part * lanes<double>) - centre[part];
                    const Doubles weighted = away * share;
                    shift[way][part] += weighted;
                    scatter[way][part] = multiply_add(weighted, away, scatter[way][part]);
                }
            }
#pragma GCC unroll 4
        for (int part = 0; part < vectors; ++part) {
#pragma GCC unroll 4
            for (int way = 1; way < ways; ++way) {
                shift[0][part] += shift[way][part];
                scatter[0][part] += scatter[way][part];
            }
            store(sums + part * lanes<double>, shift[0][part]);
            store(sums + depth_ + part * lanes<double>, scatter[0][part]);
        }
    }

    Index columns_, depth_;  // numbers a row takes in whole vectors
    Scratch<double> mean_;   // (components, depth)
    Scratch<double> sums_;   // (components, 2, depth): of differences, and of their squares
    Scratch<Index> places_;  // of the rows that count, in the tile
    Scratch<double> shares_;
};

}  // namespace
}  // namespace ilk

// Lloyd's half steps on one block of rows: label, cost, and the sums from which the next centres are made.
#pragma once

#include "nearest_sums.hpp"
#include "ranking.hpp"
#include "tally.hpp"

namespace ilk {
namespace {

// Centres row by row with whole vectors of eight, to be read next to the encoded rows.
class PaddedCentres {
public:
    PaddedCentres(Centres centres, Index columns)
        : width_(rounded_up(columns, eight)), values_(centres.count * width_) {
        const Index in_last_eight = columns - (width_ - eight);
        for (Index lane = 0; lane < eight; ++lane) last_columns_[lane] = lane < in_last_eight ? -1 : 0;
        for (Index index = 0; index < centres.count; ++index)
            std::memcpy(values_ + index * width_, centres.values + index * columns,
                        static_cast<std::size_t>(columns) * sizeof(double));
    }

    Index width() const { return width_; }

    // Differences to eight columns of a centre, zero beyond the last column.
    template <class Number>
    ILK_INLINE Eight difference(const Number* row, Index index, Index column) const {
        const Eight whole = load_eight(row + column) - load<Eight>(values_ + index * width_ + column);
        return column + eight < width_ ? whole : (last_columns_ ? whole : Eight{});
    }

private:
    typedef Index EightFlags __attribute__((vector_size(64)));
    Index width_;
    EightFlags last_columns_;
    Scratch<double> values_;
};

// Add up the lanes of eight vectors: lane i of the result is the sum over vectors[i], in the order
// ((0+4)+(2+6)) + ((1+5)+(3+7)).
ILK_INLINE Eight sums_of_lanes(const Eight (&v)[8]) {
    const auto halves = [](Eight a, Eight b) ILK_LAMBDA {
        return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
               __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    };
    const auto quarters = [](Eight a, Eight b) ILK_LAMBDA {
        return __builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13) +
               __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15);
    };
    const Eight low = quarters(halves(v[0], v[1]), halves(v[2], v[3]));
    const Eight high = quarters(halves(v[4], v[5]), halves(v[6], v[7]));
    return __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14) +
           __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15);
}

// Squared distances of eight rows to the centres they are labelled with, by differences.
template <class Number>
ILK_INLINE Eight costs_of_eight(const Number* rows, Index width, const std::int32_t* labels,
                                const PaddedCentres& centres) {
    Eight parts[8];
#pragma GCC unroll 8
    for (Index index = 0; index < eight; ++index) {
        const Number* row = rows + index * width;
        Eight part = {};
        for (Index column = 0; column < centres.width(); column += eight) {
            const Eight difference = centres.difference(row, labels[index], column);
            part += difference * difference;
        }
        parts[index] = part;
    }
    return sums_of_lanes(parts);
}

template <class Number, class Visit>
ILK_INLINE void for_each_strip(const Table<Number>& table, Centres centres, Visit visit) {
    const Encoder<Number> encoder(table);
    Ranking ranking(centres, table.columns);
    const Index width = encoder.width();
    Scratch<Number> rows(strip_rows * width + overhang);
    Scratch<std::int32_t> labels(strip_rows);
    for (Index first = 0; first < table.rows; first += strip_rows) {
        const Index count = table.rows - first < strip_rows ? table.rows - first : strip_rows;
        encoder.encode(first, count, rows);
        const double norm = ranking.label<Number>(rows, width, count, encoder.after(first), labels);
        visit(LabelledRows<Number>{first, count, rows, width, labels, norm});
    }
}

// Squared distances of the rows of a strip to the centres they are labelled with.
template <class Number>
ILK_INLINE void costs_of(const LabelledRows<Number>& strip, const PaddedCentres& centres, double* costs) {
    for (Index row = 0; row < strip.count; row += eight)
        store(costs + row, costs_of_eight(strip.rows + row * strip.width, strip.width, strip.labels + row, centres));
}

// By the differences of every row.
template <class Number>
void step_by_costs(const Table<Number>& table, const double* weight, Centres centres, Trim trim, StepSums out) {
    const PaddedCentres padded(centres, table.columns);
    Sums sums(centres.count, table.columns, out.sums);
    Cost cost;
    double costs[strip_rows], counted[strip_rows];
    for_each_strip(table, centres, [&](const LabelledRows<Number>& strip) ILK_LAMBDA {
        costs_of(strip, padded, costs);
        for (Index row = 0; row < strip.count; ++row)
            counted[row] = trimmed(weight ? weight[strip.first + row] : 1.0, costs[row], trim);
        sums.add(strip, counted);
        cost.add(costs, strip.count, counted);
    });
    sums.finish();
    sums.write(out.weights);
    cost.write(out.cost);
}

// The cost follows from the sums, unless it is so small beside the squares that their digits do not suffice.
constexpr double least_share_of_squares = 0x1p-44;

template <class Number>
void nearest_step(const Table<Number>& table, const double* weight, Centres centres, Trim trim, StepSums out) {
    if (trim.limit != std::numeric_limits<double>::infinity())
        return step_by_costs(table, weight, centres, trim, out);
    Sums sums(centres.count, table.columns, out.sums);
    Squares squares;
    const bool squares_wanted = std::isnan(out.squares[0]);
    for_each_strip(table, centres, [&](const LabelledRows<Number>& strip) ILK_LAMBDA {
        const double* own = weight ? weight + strip.first : nullptr;
        if (own) sums.add(strip, own);
        else sums.add(strip);
        if (squares_wanted) squares.add(strip, own);
    });
    sums.finish();
    if (squares_wanted) squares.write(out.squares);
    const Pair<double> cost = sums.cost({out.squares[0], out.squares[1]}, centres);
    if (!(cost.leading > least_share_of_squares * out.squares[0]))
        return step_by_costs(table, weight, centres, trim, out);
    sums.write(out.weights);
    out.cost[0] = cost.leading;
    out.cost[1] = cost.trailing;
}

template <class Number>
void nearest(const Table<Number>& table, Centres centres, std::int32_t* labels, double* cost) {
    const PaddedCentres padded(centres, table.columns);
    double costs[strip_rows];
    for_each_strip(table, centres, [&](const LabelledRows<Number>& strip) ILK_LAMBDA {
        costs_of(strip, padded, costs);
        std::memcpy(labels + strip.first, strip.labels, static_cast<std::size_t>(strip.count) * sizeof(std::int32_t));
        std::memcpy(cost + strip.first, costs, static_cast<std::size_t>(strip.count) * sizeof(double));
    });
}

template <class Number>
void distances(const Table<Number>& table, Centres points, double* squared) {
    const Encoder<Number> encoder(table);
    const CentresByEight packed(points, table.columns);
    const Index width = encoder.width();
    Scratch<Number> rows(strip_rows * width + overhang);
    for (Index first = 0; first < table.rows; first += strip_rows) {
        const Index count = table.rows - first < strip_rows ? table.rows - first : strip_rows;
        encoder.encode(first, count, rows);
        for (Index point = 0; point < points.count; point += eight) {
            const Index some = points.count - point < eight ? points.count - point : eight;
            for (Index row = 0; row < count; ++row) {
                const Eight sums = packed.squared_distances(rows + row * width, point);
                for (Index index = 0; index < some; ++index)
                    squared[(point + index) * table.rows + first + row] = sums[index];
            }
        }
    }
}

}  // namespace
}  // namespace ilk

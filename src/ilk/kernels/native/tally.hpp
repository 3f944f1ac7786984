// What labels, costs and cells add up to, outside of Lloyd's steps.
#pragma once

#include <limits>

#include "pairs.hpp"

namespace ilk {
namespace {

inline double trimmed(double weight, double cost, Trim trim) {
    return cost > trim.limit ? 0.0 : cost == trim.limit ? weight * trim.share_at_limit : weight;
}

// The sum over the lanes of a pair.
inline void write_total(const Pair<Eight>& total, double* to) {
    Pair<double> sum = {0.0, 0.0};
    for (Index lane = 0; lane < eight; ++lane) {
        add_to(sum, total.leading[lane]);
        sum.trailing += total.trailing[lane];
    }
    sum = two_sum(sum.leading, sum.trailing);
    to[0] = sum.leading;
    to[1] = sum.trailing;
}

// The sum of weight * cost, as a pair; eight running sums, row i in the (i % 8)th.
class Cost {
public:
    void add(const double* costs, Index count) {
        Index row = 0;
        for (; row + eight <= count; row += eight) add_to(total_, load<Eight>(costs + row));
        Eight rest = {};
        for (Index lane = 0; row + lane < count; ++lane) rest[lane] = costs[row + lane];
        add_to(total_, rest);
    }

    void add(const double* costs, Index count, const double* weight) {
        for (Index row = 0; row < count; row += eight) {
            Eight cost = {}, counted = {};
            for (Index lane = 0; lane < eight && row + lane < count; ++lane) {
                counted[lane] = weight[row + lane];
                cost[lane] = counted[lane] == 0.0 ? 0.0 : costs[row + lane];
            }
            const Pair<Eight> product = two_product(counted, cost);
            add_to(total_, product.leading);
            total_.trailing += product.trailing;
        }
    }

    void write(double* cost) const { write_total(total_, cost); }

private:
    Pair<Eight> total_ = {};
};

ILK_INLINE double cell(const Cells& cells, Index row, Index column) {
    return cells.values[row * cells.row_step + column * cells.column_step];
}

// Sums per group of weight * value, cell by cell, as pairs (groups, columns, 2); nothing of a cell of weight 0.
inline void group_sums(const Cells& values, const Cells& weight, const std::int32_t* labels, Index n_groups,
                       double* sums) {
    std::memset(sums, 0, static_cast<std::size_t>(n_groups * values.columns * 2) * sizeof(double));
    for (Index row = 0; row < values.rows; ++row) {
        double* pair = sums + 2 * labels[row] * values.columns;
        for (Index column = 0; column < values.columns; ++column, pair += 2) {
            if (cell(weight, row, column) == 0.0) continue;
            const Pair<double> product = two_product(cell(values, row, column), cell(weight, row, column));
            const Pair<double> sum = two_sum(pair[0], product.leading);
            pair[0] = sum.leading;
            pair[1] += sum.trailing + product.trailing;
        }
    }
    for (Index index = 0; index < 2 * n_groups * values.columns; index += 2) {
        const Pair<double> sum = two_sum(sums[index], sums[index + 1]);
        sums[index] = sum.leading;
        sums[index + 1] = sum.trailing;
    }
}

// Weight and first row of each label, and the sum of what counts of weight * cost; labels below zero have neither
// weight nor place.
inline void tally(const std::int32_t* labels, const double* cost, const double* weight, Index rows, Index n_labels,
                  Trim trim, Tally out) {
    for (Index label = 0; label < n_labels; ++label) {
        out.sizes[label] = 0.0;
        out.first_rows[label] = std::numeric_limits<Index>::max();
    }
    for (Index row = rows - 1; row >= 0; --row)
        if (labels[row] >= 0) out.first_rows[labels[row]] = row;
    for (Index row = 0; row < rows; ++row)
        if (labels[row] >= 0) out.sizes[labels[row]] += weight ? weight[row] : 1.0;
    Cost total;
    if (weight == nullptr && trim.limit == std::numeric_limits<double>::infinity()) {
        total.add(cost, rows);
    } else {
        double counted[1024];  // rows at a time
        for (Index first = 0; first < rows; first += 1024) {
            const Index some = rows - first < 1024 ? rows - first : 1024;
            for (Index row = 0; row < some; ++row)
                counted[row] = trimmed(weight ? weight[first + row] : 1.0, cost[first + row], trim);
            total.add(cost + first, some, counted);
        }
    }
    total.write(out.cost);
}

// Smallest and largest value and the sum of value - pivot of each column of rows without gaps between them. Some
// rows side by side make whole vectors of eight.
template <class Number>
void column_ranges(const Number* cells, Index rows, Index columns, const double* pivot, Ranges out) {
    constexpr Index cells_at_once = 4096;  // within the first-level cache
    const double infinity = std::numeric_limits<double>::infinity();
    Index together = 1;
    while (together * columns % eight != 0) together *= 2;
    const Index period = together * columns;
    Scratch<double> low(period), high(period), total(period), own_pivot(period);
    for (Index place = 0; place < period; ++place) {
        low[place] = infinity;
        high[place] = -infinity;
        own_pivot[place] = pivot[place % columns];
    }
    const Index whole = rows / together * together;
    const Index some = (cells_at_once / period < 1 ? 1 : cells_at_once / period) * together;
    for (Index first = 0; first < whole; first += some) {
        const Index end = first + some < whole ? first + some : whole;
        for (Index place = 0; place < period; place += eight) {
            Eight least = load<Eight>(low + place), most = load<Eight>(high + place), sum = load<Eight>(total + place);
            const Eight middle = load<Eight>(own_pivot + place);
            const Number* cell = cells + first * columns + place;
            for (Index row = first; row < end; row += together, cell += period) {
                const Eight x = load_eight(cell);
                least = x < least ? x : least;
                most = x > most ? x : most;
                sum += x - middle;
            }
            store(low + place, least);
            store(high + place, most);
            store(total + place, sum);
        }
    }
    for (Index row = whole; row < rows; ++row)
        for (Index column = 0; column < columns; ++column) {
            const double x = cells[row * columns + column];
            if (x < low[column]) low[column] = x;
            if (x > high[column]) high[column] = x;
            total[column] += x - pivot[column];
        }
    for (Index column = 0; column < columns; ++column) {
        out.low[column] = low[column];
        out.high[column] = high[column];
        out.total[column] = total[column];
        for (Index place = column + columns; place < period; place += columns) {
            if (low[place] < out.low[column]) out.low[column] = low[place];
            if (high[place] > out.high[column]) out.high[column] = high[place];
            out.total[column] += total[place];
        }
    }
}

}  // namespace
}  // namespace ilk

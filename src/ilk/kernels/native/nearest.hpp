// Lloyd's half steps on one block of rows: label, cost, and the sums from which the next centres are made.
#pragma once

#include "pairs.hpp"
#include "ranking.hpp"

namespace ilk {
namespace {

// Centres row by row with whole vectors of eight, to be read next to the encoded rows.
class PaddedCentres {
public:
    PaddedCentres(Centres centres, Index columns)
        : width_(rounded_up(columns, eight)), values_(centres.count * width_) {
        for (Index index = 0; index < centres.count; ++index)
            std::memcpy(values_ + index * width_, centres.values + index * columns,
                        static_cast<std::size_t>(columns) * sizeof(double));
    }
    Index width() const { return width_; }
    const double* operator[](Index index) const { return values_ + index * width_; }

private:
    Index width_;
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
ILK_INLINE Eight costs_of_eight(const Strip<Number>& strip, Index first, const std::int32_t* labels,
                                const PaddedCentres& centres) {
    Eight parts[8];
#pragma GCC unroll 8
    for (Index index = 0; index < eight; ++index) {
        const Number* row = strip.row(first + index);
        const double* centre = centres[labels[first + index]];
        Eight part = {};
        for (Index column = 0; column < centres.width(); column += eight) {
            const Eight difference = load_eight(row + column) - load<Eight>(centre + column);
            part += difference * difference;
        }
        parts[index] = part;
    }
    return sums_of_lanes(parts);
}

// The sums of one block, as pairs, per centre: [centre][leading and trailing][padded columns].
class Sums {
public:
    Sums(Index count, Index columns)
        : count_(count), columns_(columns), width_(rounded_up(columns, eight)), pairs_(2 * count * width_), weights_(2 * count) {}

    template <class Number>
    ILK_INLINE void add(const Number* row, Index label) {
        double* leading = pairs_ + 2 * label * width_;
        double* trailing = leading + width_;
        for (Index column = 0; column < width_; column += eight)
            add_part(leading + column, trailing + column, load_eight(row + column), Eight{});
        weights_[2 * label] += 1.0;
    }

    template <class Number>
    ILK_INLINE void add(const Number* row, Index label, double weight) {
        if (weight == 0.0) return;
        double* leading = pairs_ + 2 * label * width_;
        double* trailing = leading + width_;
        for (Index column = 0; column < width_; column += eight) {
            const Pair<Eight> product = two_product(load_eight(row + column), everywhere<Eight>(weight));
            add_part(leading + column, trailing + column, product.leading, product.trailing);
        }
        Pair<double> total = {weights_[2 * label], weights_[2 * label + 1]};
        add_to(total, weight);
        weights_[2 * label] = total.leading;
        weights_[2 * label + 1] = total.trailing;
    }

    void write(double* sums, double* weights) const {
        for (Index label = 0; label < count_; ++label) {
            const double* leading = pairs_ + 2 * label * width_;
            for (Index column = 0; column < columns_; ++column, sums += 2) {
                const Pair<double> sum = two_sum(leading[column], leading[width_ + column]);
                sums[0] = sum.leading;
                sums[1] = sum.trailing;
            }
            weights[label] = weights_[2 * label] + weights_[2 * label + 1];
        }
    }

private:
    static ILK_INLINE void add_part(double* leading, double* trailing, Eight value, Eight rest) {
        Pair<Eight> total = {load<Eight>(leading), load<Eight>(trailing)};
        add_to(total, value);
        store(leading, total.leading);
        store(trailing, total.trailing + rest);
    }

    Index count_, columns_, width_;
    Scratch<double> pairs_, weights_;
};

// Weights of up to eight rows after trimming by cost; rows beyond `count` weigh nothing.
ILK_INLINE Eight trimmed_weights(const double* weight, Index count, Eight cost, Trim trim) {
    Eight weights = {};
    for (Index index = 0; index < count; ++index) {
        const double own = weight ? weight[index] : 1.0;
        weights[index] = cost[index] > trim.limit ? 0.0 : cost[index] == trim.limit ? own * trim.share_at_limit : own;
    }
    return weights;
}

inline Pair<double> total_of(Pair<Eight> lanes_total) {
    Pair<double> total = {0.0, 0.0};
    for (Index lane = 0; lane < eight; ++lane) {
        add_to(total, lanes_total.leading[lane]);
        total.trailing += lanes_total.trailing[lane];
    }
    return two_sum(total.leading, total.trailing);
}

template <class Number>
void nearest_step(const Table<Number>& table, const double* weight, Centres centres, Trim trim, StepSums out) {
    Strip<Number> strip(table);
    Ranking<Number> ranking(centres, table.columns);
    const PaddedCentres padded(centres, table.columns);
    Sums sums(centres.count, table.columns);
    Pair<Eight> cost = {};
    const bool all_count_one = weight == nullptr && trim.limit == std::numeric_limits<double>::infinity();
    std::int32_t labels[strip_rows];

    for (Index first = 0; first < table.rows; first += strip_rows) {
        const Index count = table.rows - first < strip_rows ? table.rows - first : strip_rows;
        strip.fill(first, count);
        ranking.label(strip, count, labels);
        for (Index row = count; row < strip_rows; ++row) labels[row] = 0;
        for (Index row = 0; row < count; row += eight) {
            const Eight costs = costs_of_eight(strip, row, labels, padded);
            if (all_count_one && row + eight <= count) {
                add_to(cost, costs);
                for (Index index = row; index < row + eight; ++index) sums.add(strip.row(index), labels[index]);
                continue;
            }
            const Index some = count - row < eight ? count - row : eight;
            const Eight weights = trimmed_weights(weight ? weight + first + row : nullptr, some, costs, trim);
            const Pair<Eight> product = two_product(weights, weights == 0.0 ? Eight{} : costs);
            add_to(cost, product.leading);
            cost.trailing += product.trailing;
            for (Index index = 0; index < some; ++index) sums.add(strip.row(row + index), labels[row + index], weights[index]);
        }
    }
    sums.write(out.sums, out.weights);
    const Pair<double> total = total_of(cost);
    out.cost[0] = total.leading;
    out.cost[1] = total.trailing;
}

template <class Number>
void nearest(const Table<Number>& table, Centres centres, std::int32_t* labels, double* cost) {
    Strip<Number> strip(table);
    Ranking<Number> ranking(centres, table.columns);
    const PaddedCentres padded(centres, table.columns);
    std::int32_t strip_labels[strip_rows];

    for (Index first = 0; first < table.rows; first += strip_rows) {
        const Index count = table.rows - first < strip_rows ? table.rows - first : strip_rows;
        strip.fill(first, count);
        ranking.label(strip, count, strip_labels);
        for (Index row = count; row < strip_rows; ++row) strip_labels[row] = 0;
        std::memcpy(labels + first, strip_labels, static_cast<std::size_t>(count) * sizeof(std::int32_t));
        for (Index row = 0; row < count; row += eight) {
            const Eight costs = costs_of_eight(strip, row, strip_labels, padded);
            const Index some = count - row < eight ? count - row : eight;
            std::memcpy(cost + first + row, &costs, static_cast<std::size_t>(some) * sizeof(double));
        }
    }
}

template <class Number>
void distances(const Table<Number>& table, Centres points, double* squared) {
    Strip<Number> strip(table);
    const CentresByEight packed(points, table.columns);
    for (Index first = 0; first < table.rows; first += strip_rows) {
        const Index count = table.rows - first < strip_rows ? table.rows - first : strip_rows;
        strip.fill(first, count);
        for (Index point = 0; point < points.count; point += eight) {
            const Index some = points.count - point < eight ? points.count - point : eight;
            for (Index row = 0; row < count; ++row) {
                const Eight sums = packed.squared_distances(strip.row(row), point);
                for (Index index = 0; index < some; ++index)
                    squared[(point + index) * table.rows + first + row] = sums[index];
            }
        }
    }
}

}  // namespace
}  // namespace ilk

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

// Encoded rows with their labels and costs; padding rows at the end have label 0.
template <class Number>
struct LabelledRows {
    Index first, count;  // in the table
    const Number* rows;
    Index width;
    const std::int32_t* labels;
    const double* costs;
};

// Rows are labelled in chunks that fit the second-level cache, large enough to hold several rows per centre.
constexpr Index chunk_bytes = 65536;
constexpr Index longest_chunk = 1008;

template <class Number, class Visit>
void for_each_chunk(const Table<Number>& table, Centres centres, Visit visit) {
    const Encoder<Number> encoder(table);
    Ranking ranking(centres, table.columns);
    const PaddedCentres padded(centres, table.columns);
    const Index width = encoder.width();
    const Index fitting = chunk_bytes / (width * static_cast<Index>(sizeof(Number))) / strip_rows * strip_rows;
    const Index chunk_rows = fitting < strip_rows ? strip_rows : fitting > longest_chunk ? longest_chunk : fitting;
    Scratch<Number> rows(chunk_rows * width + overhang);
    Scratch<std::int32_t> labels(chunk_rows);
    Scratch<double> costs(chunk_rows);

    for (Index first = 0; first < table.rows; first += chunk_rows) {
        const Index count = table.rows - first < chunk_rows ? table.rows - first : chunk_rows;
        for (Index done = 0; done < count; done += strip_rows) {
            const Index some = count - done < strip_rows ? count - done : strip_rows;
            encoder.encode(first + done, some, rows + done * width);
            ranking.label(rows + done * width, width, some, encoder.after(first + done), labels + done, costs + done);
            if (ranking.knows_costs()) continue;
            for (Index row = done; row < done + some; row += eight)
                store(costs + row, costs_of_eight(rows + row * width, width, labels + row, padded));
        }
        visit(LabelledRows<Number>{first, count, rows, width, labels, costs});
    }
}

// The rows of a chunk in the order of their labels, so that the sums of one centre stay in registers while its
// rows pass; going row by row, each addition would wait for the store of the one before.
class RowsByLabel {
public:
    explicit RowsByLabel(Index n_labels) : n_labels_(n_labels), ends_(n_labels + 1), order_(longest_chunk) {}

    void sort(const std::int32_t* labels, Index count) {
        std::memset(ends_, 0, static_cast<std::size_t>(n_labels_ + 1) * sizeof(std::int32_t));
        for (Index row = 0; row < count; ++row) ++ends_[labels[row] + 1];
        for (Index label = 0; label < n_labels_; ++label) ends_[label + 1] += ends_[label];
        // Placing a row moves the start of its label on, to the start of the next label in the end.
        for (Index row = 0; row < count; ++row) order_[ends_[labels[row]]++] = static_cast<std::int32_t>(row);
    }

    const std::int32_t* begin(Index label) const { return order_ + (label ? ends_[label - 1] : 0); }
    const std::int32_t* end(Index label) const { return order_ + ends_[label]; }

private:
    Index n_labels_;
    Scratch<std::int32_t> ends_, order_;
};

// The sums of one block, as pairs, per centre: [centre][leading and trailing][padded columns].
class Sums {
public:
    Sums(Index count, Index columns)
        : count_(count),
          columns_(columns),
          width_(rounded_up(columns, eight)),
          pairs_(2 * count * width_),
          weights_(2 * count),
          by_label_(count) {}

    // Add rows that count one each.
    template <class Number>
    void add(const LabelledRows<Number>& chunk) {
        add_terms(chunk, [](Pair<Eight>& total, Eight x, Index) ILK_LAMBDA { add_to(total, x); });
        for (Index label = 0; label < count_; ++label)
            weights_[2 * label] += static_cast<double>(by_label_.end(label) - by_label_.begin(label));
    }

    // Add rows with weights.
    template <class Number>
    void add(const LabelledRows<Number>& chunk, const double* weight) {
        add_terms(chunk, [=](Pair<Eight>& total, Eight x, Index row) ILK_LAMBDA {
            const Pair<Eight> product = two_product(x, everywhere<Eight>(weight[row]));
            add_to(total, product.leading);
            total.trailing += product.trailing;
        });
        for (Index row = 0; row < chunk.count; ++row) {
            double* pair = weights_ + 2 * chunk.labels[row];
            const Pair<double> sum = two_sum(pair[0], weight[row]);
            pair[0] = sum.leading;
            pair[1] += sum.trailing;
        }
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
    template <class Number, class AddTerm>
    ILK_INLINE void add_terms(const LabelledRows<Number>& chunk, AddTerm add_term) {
        by_label_.sort(chunk.labels, chunk.count);
        for (Index label = 0; label < count_; ++label) {
            if (by_label_.begin(label) == by_label_.end(label)) continue;
            Index column = 0;
            for (; column + 2 * eight <= width_; column += 2 * eight) add_columns<2>(chunk, label, column, add_term);
            if (column < width_) add_columns<1>(chunk, label, column, add_term);
        }
    }

    template <int vectors, class Number, class AddTerm>
    ILK_INLINE void add_columns(const LabelledRows<Number>& chunk, Index label, Index column, AddTerm add_term) {
        double* leading = pairs_ + 2 * label * width_ + column;
        double* trailing = leading + width_;
        Pair<Eight> total[vectors];
#pragma GCC unroll 2
        for (int part = 0; part < vectors; ++part)
            total[part] = {load<Eight>(leading + part * eight), load<Eight>(trailing + part * eight)};
        const std::int32_t* const end = by_label_.end(label);
        for (const std::int32_t* row = by_label_.begin(label); row != end; ++row) {
            const Number* x = chunk.rows + *row * chunk.width + column;
#pragma GCC unroll 2
            for (int part = 0; part < vectors; ++part) add_term(total[part], load_eight(x + part * eight), *row);
        }
#pragma GCC unroll 2
        for (int part = 0; part < vectors; ++part) {
            store(leading + part * eight, total[part].leading);
            store(trailing + part * eight, total[part].trailing);
        }
    }

    Index count_, columns_, width_;
    Scratch<double> pairs_, weights_;
    RowsByLabel by_label_;
};

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

    void write(double* cost) const {
        Pair<double> total = {0.0, 0.0};
        for (Index lane = 0; lane < eight; ++lane) {
            add_to(total, total_.leading[lane]);
            total.trailing += total_.trailing[lane];
        }
        total = two_sum(total.leading, total.trailing);
        cost[0] = total.leading;
        cost[1] = total.trailing;
    }

private:
    Pair<Eight> total_ = {};
};

inline double trimmed(double weight, double cost, Trim trim) {
    return cost > trim.limit ? 0.0 : cost == trim.limit ? weight * trim.share_at_limit : weight;
}

template <class Number>
void nearest_step(const Table<Number>& table, const double* weight, Centres centres, Trim trim, StepSums out) {
    Sums sums(centres.count, table.columns);
    Cost cost;
    const bool all_count_one = weight == nullptr && trim.limit == std::numeric_limits<double>::infinity();
    Scratch<double> counted(longest_chunk);
    for_each_chunk(table, centres, [&](const LabelledRows<Number>& chunk) {
        if (all_count_one) {
            sums.add(chunk);
            cost.add(chunk.costs, chunk.count);
            return;
        }
        for (Index row = 0; row < chunk.count; ++row)
            counted[row] = trimmed(weight ? weight[chunk.first + row] : 1.0, chunk.costs[row], trim);
        sums.add(chunk, counted);
        cost.add(chunk.costs, chunk.count, counted);
    });
    sums.write(out.sums, out.weights);
    cost.write(out.cost);
}

template <class Number>
void nearest(const Table<Number>& table, Centres centres, std::int32_t* labels, double* cost) {
    for_each_chunk(table, centres, [&](const LabelledRows<Number>& chunk) {
        const auto count = static_cast<std::size_t>(chunk.count);
        std::memcpy(labels + chunk.first, chunk.labels, count * sizeof(std::int32_t));
        std::memcpy(cost + chunk.first, chunk.costs, count * sizeof(double));
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

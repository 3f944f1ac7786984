// The nearest centre of each row of a strip: always the lowest index among the smallest sums of squared
// differences in double precision. Most rows are decided by a cheaper score,
//
//     score(x, c) = x . c - |c|^2 / 2,    largest where |x - c|^2 is smallest,
//
// and only rows whose two best scores lie closer than rounding can explain are decided by differences.
#pragma once

#include <limits>

#include "strip.hpp"

namespace ilk {
namespace {

// Scores of a tile against one group of centres live in registers; three rows of x and one centre beside them.
constexpr int group_centres = vector_registers == 32 ? 8 : 4;

template <class Number>
struct TileRanking {
    Vector<Number> best[tile_vectors], second[tile_vectors];
    IndexVector<Number> label[tile_vectors];
};

// Score a tile against `count` centres packed as [column][count], and keep the two best scores.
template <int count, class Number>
void rank_group(const Number* tile, Index columns, const Number* packed, const Number* half_norms, Index first,
                TileRanking<Number>& ranking) {
    using V = Vector<Number>;
    using Label = IndexVector<Number>;
    V score[count][tile_vectors];
#pragma GCC unroll 8
    for (int centre = 0; centre < count; ++centre)
#pragma GCC unroll 3
        for (int part = 0; part < tile_vectors; ++part) score[centre][part] = everywhere<V>(-half_norms[centre]);

    for (Index column = 0; column < columns; ++column, tile += tile_rows<Number>, packed += count) {
        V x[tile_vectors];
#pragma GCC unroll 3
        for (int part = 0; part < tile_vectors; ++part) x[part] = load<V>(tile + part * lanes<Number>);
#pragma GCC unroll 8
        for (int centre = 0; centre < count; ++centre) {
            const V c = everywhere<V>(packed[centre]);
#pragma GCC unroll 3
            for (int part = 0; part < tile_vectors; ++part)
                score[centre][part] = multiply_add(x[part], c, score[centre][part]);
        }
    }

#pragma GCC unroll 3
    for (int part = 0; part < tile_vectors; ++part) {
        V best = ranking.best[part], second = ranking.second[part];
        Label label = ranking.label[part];
#pragma GCC unroll 8
        for (int centre = 0; centre < count; ++centre) {
            const V value = score[centre][part];
            using Element = std::remove_reference_t<decltype(label[0])>;
            label = value > best ? everywhere<Label>(static_cast<Element>(first + centre)) : label;
            // Operands in the order that ignores a score that is not a number.
            second = larger(smaller(best, value), second);
            best = larger(value, best);
        }
        ranking.best[part] = best;
        ranking.second[part] = second;
        ranking.label[part] = label;
    }
}

// Centres as the ranking reads them: in groups, [group][column][centre of the group].
template <class Number>
class PackedCentres {
public:
    PackedCentres(Centres centres, Index columns)
        : count_(centres.count), columns_(columns), packed_(centres.count * columns), half_norms_(centres.count) {
        double largest = 0;
        for (Index first = 0; first < count_; first += group_centres) {
            const Index size = count_ - first < group_centres ? count_ - first : group_centres;
            for (Index index = 0; index < size; ++index) {
                const double* from = centres.values + (first + index) * columns;
                Number* to = packed_ + first * columns + index;
                double norm = 0;
                for (Index column = 0; column < columns; ++column) {
                    norm += from[column] * from[column];
                    to[column * size] = static_cast<Number>(from[column]);
                }
                half_norms_[first + index] = static_cast<Number>(norm / 2);
                if (norm > largest) largest = norm;
            }
        }
        // Each score is wrong by at most (columns + 3) * epsilon / 2 * (|x| |c| + |c|^2 / 2): one rounding
        // per column, those of c and of its norm. Twice that, with |x| |c| <= (|x|^2 + |c|^2) / 2, bounds the
        // error of a gap; four times the bound leaves a gap in which double-precision differences agree too.
        const double unit = 4.0 * static_cast<double>(columns + 4) * std::numeric_limits<Number>::epsilon();
        per_norm_ = static_cast<Number>(unit / 2);
        tolerance_ = static_cast<Number>(unit * largest);
    }

    // Labels of one tile; a row that the scores cannot decide gets the complement of a label, below zero.
    void rank(const Number* tile, std::int32_t* labels) const {
        using V = Vector<Number>;
        TileRanking<Number> ranking;
        V norm[tile_vectors];
        for (int part = 0; part < tile_vectors; ++part) {
            ranking.best[part] = ranking.second[part] = everywhere<V>(-std::numeric_limits<Number>::infinity());
            ranking.label[part] = IndexVector<Number>{};
            norm[part] = V{};
        }
        for (Index column = 0; column < columns_; ++column)
#pragma GCC unroll 3
            for (int part = 0; part < tile_vectors; ++part) {
                const V x = load<V>(tile + column * tile_rows<Number> + part * lanes<Number>);
                norm[part] = multiply_add(x, x, norm[part]);
            }

        Index first = 0;
        for (; first + group_centres <= count_; first += group_centres) rank_some<group_centres>(tile, first, ranking);
        rank_rest<group_centres - 1>(tile, first, ranking);

        for (int part = 0; part < tile_vectors; ++part) {
            const V tolerance = multiply_add(norm[part], everywhere<V>(per_norm_), everywhere<V>(tolerance_));
            const auto label = ranking.best[part] - ranking.second[part] > tolerance ? ranking.label[part]
                                                                                     : ~ranking.label[part];
            for (int lane = 0; lane < lanes<Number>; ++lane)
                labels[part * lanes<Number> + lane] = static_cast<std::int32_t>(label[lane]);
        }
    }

private:
    template <int count>
    ILK_INLINE void rank_some(const Number* tile, Index first, TileRanking<Number>& ranking) const {
        rank_group<count>(tile, columns_, packed_ + first * columns_, half_norms_ + first, first, ranking);
    }

    // The last group may hold fewer centres.
    template <int count>
    ILK_INLINE void rank_rest(const Number* tile, Index first, TileRanking<Number>& ranking) const {
        if constexpr (count > 0) {
            if (count_ - first == count) rank_some<count>(tile, first, ranking);
            else rank_rest<count - 1>(tile, first, ranking);
        }
    }

    Index count_, columns_;
    Scratch<Number> packed_, half_norms_;
    Number per_norm_, tolerance_;
};

// Centres as the differences read them: eight side by side, [eight][column][8], padded with infinity.
class CentresByEight {
public:
    CentresByEight(Centres centres, Index columns)
        : count_(rounded_up(centres.count, eight)), columns_(columns), packed_(count_ * columns) {
        for (Index index = 0; index < count_; ++index)
            for (Index column = 0; column < columns; ++column)
                packed_[(index / eight * columns + column) * eight + index % eight] =
                    index < centres.count ? centres.values[index * columns + column]
                                          : std::numeric_limits<double>::infinity();
    }

    Index count() const { return count_; }

    // Squared distances of a row to eight centres, summed column after column.
    template <class Number>
    ILK_INLINE Eight squared_distances(const Number* row, Index first) const {
        Eight sum = {};
        const double* packed = packed_ + first * columns_;
        for (Index column = 0; column < columns_; ++column, packed += eight) {
            const Eight difference = static_cast<double>(row[column]) - load<Eight>(packed);
            sum += difference * difference;
        }
        return sum;
    }

    template <class Number>
    std::int32_t nearest(const Number* row) const {
        double best = std::numeric_limits<double>::infinity();
        Index label = 0;
        for (Index first = 0; first < count_; first += eight) {
            const Eight squared = squared_distances(row, first);
            for (Index lane = 0; lane < eight; ++lane)
                if (squared[lane] < best) {
                    best = squared[lane];
                    label = first + lane;
                }
        }
        return static_cast<std::int32_t>(label);
    }

private:
    Index count_, columns_;
    Scratch<double> packed_;
};

template <class Number>
class Ranking {
public:
    Ranking(Centres centres, Index columns)
        : centres_(centres), columns_(columns), packed_(centres, columns) {}
    ~Ranking() { delete by_eight_; }
    Ranking(const Ranking&) = delete;
    Ranking& operator=(const Ranking&) = delete;

    void label(const Strip<Number>& strip, Index count, std::int32_t* labels) {
        for (Index tile = 0; tile * tile_rows<Number> < count; ++tile)
            packed_.rank(strip.tile(tile), labels + tile * tile_rows<Number>);
        for (Index row = 0; row < count; ++row)
            if (labels[row] < 0) labels[row] = by_difference().nearest(strip.row(row));
    }

private:
    const CentresByEight& by_difference() {
        if (by_eight_ == nullptr) by_eight_ = new CentresByEight(centres_, columns_);
        return *by_eight_;
    }

    Centres centres_;
    Index columns_;
    PackedCentres<Number> packed_;
    CentresByEight* by_eight_ = nullptr;  // made when the first row needs it
};

}  // namespace
}  // namespace ilk

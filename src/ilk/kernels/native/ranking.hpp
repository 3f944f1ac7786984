// The nearest centre of each row of a strip: always the lowest index among the smallest sums of squared
// differences in double precision. Most rows are decided by a cheaper score,
//
//     score(x, c) = x . c - |c|^2 / 2,    largest where |x - c|^2 is smallest,
//
// and only rows whose two best scores lie closer than rounding can explain are decided by differences.
#pragma once

#include <limits>
#include <type_traits>

#include "encode.hpp"

namespace ilk {
namespace {

// Scores of a tile against one group of centres live in registers; three rows of x and one centre beside them.
constexpr int group_centres = vector_registers == 32 ? 8 : 4;

enum class Labels { centre, group };  // what a tile is labelled with: its centre, or the first of its group

template <class Score>
struct TileRanking {
    Vector<Score> best[tile_vectors], second[tile_vectors];
    IndexVector<Score> label[tile_vectors];
};

template <class Score>
ILK_INLINE void keep_two_best(Vector<Score> score, Index label, TileRanking<Score>& ranking, int part) {
    using Label = IndexVector<Score>;
    using Element = std::remove_reference_t<decltype(std::declval<Label&>()[0])>;
    Vector<Score>& best = ranking.best[part];
    ranking.label[part] = score > best ? everywhere<Label>(static_cast<Element>(label)) : ranking.label[part];
    // Operands in the order that ignores a score that is not a number.
    ranking.second[part] = larger(smaller(best, score), ranking.second[part]);
    best = larger(score, best);
}

// The largest of scores [from, to), by halves: a chain of comparisons would take longer than the scores.
template <int from, int to, class V, int count>
ILK_INLINE V largest(const V (&score)[count][tile_vectors], int part) {
    if constexpr (to - from == 1) return score[from][part];
    else return larger(largest<from, (from + to) / 2>(score, part), largest<(from + to) / 2, to>(score, part));
}

// Score a tile against `count` centres packed as [column][count], and keep the two best scores.
template <Labels labels, int count, class Score>
void rank_group(const Score* tile, Index columns, const Score* packed, const Score* minus_half_norms, Index first,
                Ahead& ahead, TileRanking<Score>& ranking) {
    using V = Vector<Score>;
    V score[count][tile_vectors];
#pragma GCC unroll 8
    for (int centre = 0; centre < count; ++centre)
#pragma GCC unroll 3
        for (int part = 0; part < tile_vectors; ++part) score[centre][part] = everywhere<V>(minus_half_norms[centre]);

    for (Index column = 0; column < columns; ++column, tile += tile_rows<Score>, packed += count) {
        ahead.ask();
        V x[tile_vectors];
#pragma GCC unroll 3
        for (int part = 0; part < tile_vectors; ++part) x[part] = load<V>(tile + part * lanes<Score>);
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
        if constexpr (labels == Labels::group) {
            keep_two_best<Score>(largest<0, count>(score, part), first, ranking, part);
        } else {
#pragma GCC unroll 8
            for (int centre = 0; centre < count; ++centre)
                keep_two_best<Score>(score[centre][part], first + centre, ranking, part);
        }
    }
}

// Centres as the ranking reads them: in groups, [group][column][centre of the group].
template <class Score>
class PackedCentres {
public:
    PackedCentres(Centres centres, Index columns)
        : count_(centres.count),
          columns_(columns),
          packed_(centres.count * columns),
          minus_half_norms_(centres.count) {
        double largest = 0;
        for (Index first = 0; first < count_; first += group_centres) {
            const Index size = count_ - first < group_centres ? count_ - first : group_centres;
            for (Index index = 0; index < size; ++index) {
                const double* from = centres.values + (first + index) * columns;
                Score* to = packed_ + first * columns + index;
                double norm = 0;
                for (Index column = 0; column < columns; ++column) {
                    norm += from[column] * from[column];
                    to[column * size] = static_cast<Score>(from[column]);
                }
                minus_half_norms_[first + index] = static_cast<Score>(-norm / 2);
                if (norm > largest) largest = norm;
            }
        }
        // One rounding per column, and those of x, c and |c|^2, make the difference of two scores wrong by at most
        // (columns + 3) * epsilon * (|x|^2 / 2 + 3 |c|^2 / 2). To that comes the error of the differences, which
        // decide what the scores leave open: with it every score decides as the differences would.
        const double roundings = 1.02 * static_cast<double>(columns + 4);
        const double own_epsilon = std::numeric_limits<Score>::epsilon();
        const double unit = roundings * (own_epsilon + 2 * std::numeric_limits<double>::epsilon());
        per_norm_ = static_cast<Score>(unit / 2);
        tolerance_ = static_cast<Score>(unit * largest * 1.5 + roundings * std::numeric_limits<Score>::min());
    }

    // Labels of one tile; a row that the scores cannot decide gets the complement of a label, below zero.
    template <Labels labels_of>
    void rank(const Score* tile, Ahead& ahead, std::int32_t* labels) const {
        using V = Vector<Score>;
        TileRanking<Score> ranking;
        V norm[tile_vectors];
        for (int part = 0; part < tile_vectors; ++part) {
            ranking.best[part] = ranking.second[part] = everywhere<V>(-std::numeric_limits<Score>::infinity());
            ranking.label[part] = IndexVector<Score>{};
            norm[part] = V{};
        }
        for (Index column = 0; column < columns_; ++column)
#pragma GCC unroll 3
            for (int part = 0; part < tile_vectors; ++part) {
                const V x = load<V>(tile + column * tile_rows<Score> + part * lanes<Score>);
                norm[part] = multiply_add(x, x, norm[part]);
            }

        rank_groups<labels_of>(tile, ahead, ranking);

        for (int part = 0; part < tile_vectors; ++part) {
            const V tolerance = multiply_add(norm[part], everywhere<V>(per_norm_), everywhere<V>(tolerance_));
            const auto label = ranking.best[part] - ranking.second[part] > tolerance ? ranking.label[part]
                                                                                     : ~ranking.label[part];
            for (int lane = 0; lane < lanes<Score>; ++lane)
                labels[part * lanes<Score> + lane] = static_cast<std::int32_t>(label[lane]);
        }
    }

private:
    template <Labels labels_of>
    ILK_INLINE void rank_groups(const Score* tile, Ahead& ahead, TileRanking<Score>& ranking) const {
        Index first = 0;
        for (; first + group_centres <= count_; first += group_centres)
            rank_some<labels_of, group_centres>(tile, first, ahead, ranking);
        rank_rest<labels_of, group_centres - 1>(tile, first, ahead, ranking);
    }

    template <Labels labels_of, int count>
    ILK_INLINE void rank_some(const Score* tile, Index first, Ahead& ahead, TileRanking<Score>& ranking) const {
        rank_group<labels_of, count>(tile, columns_, packed_ + first * columns_, minus_half_norms_ + first, first,
                                     ahead, ranking);
    }

    // The last group may hold fewer centres.
    template <Labels labels_of, int count>
    ILK_INLINE void rank_rest(const Score* tile, Index first, Ahead& ahead, TileRanking<Score>& ranking) const {
        if constexpr (count > 0) {
            if (count_ - first == count) rank_some<labels_of, count>(tile, first, ahead, ranking);
            else rank_rest<labels_of, count - 1>(tile, first, ahead, ranking);
        }
    }

    Index count_, columns_;
    Scratch<Score> packed_, minus_half_norms_;
    Score per_norm_, tolerance_;
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
    std::int32_t nearest(const Number* row, double* cost) const {
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
        *cost = best;
        return static_cast<std::int32_t>(label);
    }

    // The nearest of the eight centres among which `labels[index]` is, for each of eight rows.
    template <class Number>
    void nearest_in_eight(const Number* rows, Index width, std::int32_t* labels, double* costs) const {
        Eight squared[8];
#pragma GCC unroll 8
        for (Index row = 0; row < eight; ++row)
            squared[row] = squared_distances(rows + row * width, labels[row] & ~std::int32_t{7});
        transpose<4>(squared);
        Eight best = squared[0], place = {};
#pragma GCC unroll 8
        for (int index = 1; index < 8; ++index) {
            place = squared[index] < best ? everywhere<Eight>(static_cast<double>(index)) : place;
            best = squared[index] < best ? squared[index] : best;
        }
        store(costs, best);
        for (Index row = 0; row < eight; ++row)
            labels[row] = (labels[row] & ~std::int32_t{7}) + static_cast<std::int32_t>(place[row]);
    }

private:
    Index count_, columns_;
    Scratch<double> packed_;
};

// Finding the place of the best score costs more than the score itself in few columns. Beyond so many centres
// per column it pays to find the best group of centres first, and the place within it by differences.
constexpr Index centres_per_column = 12;

// Labels strips of rows. Scores are taken in single precision first, twice as many to a vector, whatever the
// table holds; when they leave more than one row in sixteen open, the rest of the block is scored in double.
class Ranking {
public:
    Ranking(Centres centres, Index columns)
        : centres_(centres),
          columns_(columns),
          by_group_(centres.count >= centres_per_column * columns),
          single_(centres, columns),
          single_tiles_(columns) {}

    // Whether labelling yields the costs too. Up to two columns all orders of summation are one.
    bool knows_costs() const { return by_group_ && columns_ <= 2; }

    // Labels of a whole encoded strip, of which `count` rows are wanted, and costs if it knows them.
    template <class Number>
    void label(const Number* rows, Index width, Index count, Ahead ahead, std::int32_t* labels, double* costs) {
        if (16 * open_rows_ <= labelled_rows_) {
            rank(single_, single_tiles_, rows, width, ahead, labels);
        } else {
            rank(double_.get(centres_, columns_), double_tiles_.get(columns_), rows, width, ahead, labels);
        }
        std::uint64_t open = 0;
        for (Index row = 0; row < strip_rows; ++row) {
            open |= static_cast<std::uint64_t>(labels[row] < 0 && row < count) << row;
            labels[row] ^= labels[row] >> 31;
        }
        labelled_rows_ += count;
        open_rows_ += __builtin_popcountll(open);
        if (by_group_)
            for (Index row = 0; row < strip_rows; row += eight)
                by_eight().nearest_in_eight(rows + row * width, width, labels + row, costs + row);
        for (; open != 0; open &= open - 1) {
            const Index row = __builtin_ctzll(open);
            labels[row] = by_eight().nearest(rows + row * width, costs + row);
        }
    }

private:
    template <class Score, class Number>
    void rank(const PackedCentres<Score>& packed, Tiles<Score>& tiles, const Number* rows, Index width,
              Ahead ahead, std::int32_t* labels) const {
        tiles.fill(rows, width);
        for (Index tile = 0; tile * tile_rows<Score> < strip_rows; ++tile) {
            if (by_group_) packed.template rank<Labels::group>(tiles[tile], ahead, labels + tile * tile_rows<Score>);
            else packed.template rank<Labels::centre>(tiles[tile], ahead, labels + tile * tile_rows<Score>);
        }
    }

    const CentresByEight& by_eight() { return by_eight_.get(centres_, columns_); }

    Centres centres_;
    Index columns_;
    bool by_group_;
    PackedCentres<float> single_;
    Tiles<float> single_tiles_;
    Later<PackedCentres<double>> double_;
    Later<Tiles<double>> double_tiles_;
    Later<CentresByEight> by_eight_;
    Index labelled_rows_ = 0, open_rows_ = 0;
};

}  // namespace
}  // namespace ilk

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

// Score a tile against `count` centres packed as [column][group_centres], and keep the two best scores.
template <Labels labels, int count, int known_columns, class Score>
void rank_group(const Score* tile, Index any_columns, const Score* packed, const Score* minus_half_norms, Index first,
                Ahead& ahead, TileRanking<Score>& ranking) {
    using V = Vector<Score>;
    const Index columns = known_columns ? known_columns : any_columns;
    V score[count][tile_vectors];
#pragma GCC unroll 8
    for (int centre = 0; centre < count; ++centre)
#pragma GCC unroll 3
        for (int part = 0; part < tile_vectors; ++part) score[centre][part] = everywhere<V>(minus_half_norms[centre]);

    for (Index column = 0; column < columns; ++column, tile += tile_rows<Score>, packed += group_centres) {
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

// What a tile's ranking tells beside the labels.
struct Ranked {
    std::uint64_t open;   // rows that the scores cannot decide, as bits
    double largest_norm;  // of |x|^2, as far as the precision of the scores goes
};

// Centres as the ranking reads them: in groups, [group][column][centre of the group]; places that the last
// group leaves empty score minus infinity.
template <class Score>
class PackedCentres {
public:
    PackedCentres(Centres centres, Index columns)
        : count_(centres.count),
          columns_(columns),
          packed_(rounded_up(centres.count, group_centres) * columns),
          minus_half_norms_(rounded_up(centres.count, group_centres)) {
        double largest = 0;
        for (Index index = 0; index < count_; ++index) {
            const double* from = centres.values + index * columns;
            Score* to = packed_ + index / group_centres * group_centres * columns + index % group_centres;
            double norm = 0;
            for (Index column = 0; column < columns; ++column) {
                norm += from[column] * from[column];
                to[column * group_centres] = static_cast<Score>(from[column]);
            }
            minus_half_norms_[index] = static_cast<Score>(-norm / 2);
            if (norm > largest) largest = norm;
        }
        for (Index index = count_; index < rounded_up(count_, group_centres); ++index)
            minus_half_norms_[index] = -std::numeric_limits<Score>::infinity();
        // One rounding per column, and those of x, c, |c|^2 and the last difference, make the difference of two
        // scores wrong by at most (columns + 4) * epsilon * (|x|^2 / 2 + 3 |c|^2 / 2). To that comes the error of
        // the differences, which decide what the scores leave open: with it every score decides as they would.
        const double roundings = 1.02 * static_cast<double>(columns + 5);
        const double own_epsilon = std::numeric_limits<Score>::epsilon();
        const double unit = roundings * (own_epsilon + 2 * std::numeric_limits<double>::epsilon());
        per_norm_ = static_cast<Score>(unit / 2);
        tolerance_ = static_cast<Score>(unit * largest * 1.5 + roundings * std::numeric_limits<Score>::min());
    }

    // Labels of one tile.
    template <Labels labels_of>
    Ranked rank(const Score* tile, Ahead& ahead, std::int32_t* labels) const {
        using V = Vector<Score>;
        typedef std::int32_t Places __attribute__((vector_size(lanes<Score> * sizeof(std::int32_t))));
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

        std::uint64_t decided = 0;
        Score decisive[tile_rows<Score>];  // what no second score may reach
        V largest = norm[0];
#pragma GCC unroll 3
        for (int part = 0; part < tile_vectors; ++part) {
            const V tolerance = multiply_add(norm[part], everywhere<V>(per_norm_), everywhere<V>(tolerance_));
            const V enough = ranking.best[part] - tolerance;
            const std::uint64_t here = lanes_where_greater(enough, ranking.second[part]);
            decided |= here << (part * lanes<Score>);
            store(decisive + part * lanes<Score>, enough);
            store(labels + part * lanes<Score>, __builtin_convertvector(ranking.label[part], Places));
            largest = larger(norm[part], largest);
        }
        if constexpr (labels_of == Labels::group)
            decided &= columns_ == 2 ? place_in_groups<2>(tile, decisive, labels)
                                     : place_in_groups<0>(tile, decisive, labels);
        Score largest_norm = largest[0];
        for (int lane = 1; lane < lanes<Score>; ++lane)
            largest_norm = largest[lane] > largest_norm ? largest[lane] : largest_norm;
        return {~decided & ((std::uint64_t{1} << tile_rows<Score>) - 1), largest_norm};
    }

    // The nearest centre of one row by differences, which are taken only to centres whose scores come near the best.
    template <class Number>
    std::int32_t nearest(const Number* row, Centres centres) const {
        using V = Few<Score, group_centres>;
        Score norm = 0, best = -std::numeric_limits<Score>::infinity();
        for (Index column = 0; column < columns_; ++column)
            norm += static_cast<Score>(row[column]) * static_cast<Score>(row[column]);
        for (Index first = 0; first < count_; first += group_centres) {
            const V score = scores_of(row, first);
            for (Index lane = 0; lane < group_centres; ++lane) best = score[lane] > best ? score[lane] : best;
        }
        const Score enough = best - (norm * per_norm_ + tolerance_);
        double least = std::numeric_limits<double>::infinity();
        std::int32_t label = 0;
        for (Index first = 0; first < count_; first += group_centres) {
            const V score = scores_of(row, first);
            for (Index lane = 0; lane < group_centres && first + lane < count_; ++lane) {
                if (score[lane] < enough) continue;  // one that is not a number is not skipped
                const double squared = squared_distance(row, centres.values + (first + lane) * columns_);
                if (squared < least) {
                    least = squared;
                    label = static_cast<std::int32_t>(first + lane);
                }
            }
        }
        return label;
    }

private:
    template <class Number>
    ILK_INLINE Few<Score, group_centres> scores_of(const Number* row, Index first) const {
        using V = Few<Score, group_centres>;
        const Score* packed = packed_ + first * columns_;
        V score = load<V>(minus_half_norms_ + first);
        for (Index column = 0; column < columns_; ++column, packed += group_centres)
            score = multiply_add(everywhere<V>(static_cast<Score>(row[column])), load<V>(packed), score);
        return score;
    }

    // Summed column after column.
    template <class Number>
    ILK_INLINE double squared_distance(const Number* row, const double* centre) const {
        double sum = 0;
        for (Index column = 0; column < columns_; ++column) {
            const double difference = static_cast<double>(row[column]) - centre[column];
            sum += difference * difference;
        }
        return sum;
    }

    template <Labels labels_of>
    ILK_INLINE void rank_groups(const Score* tile, Ahead& ahead, TileRanking<Score>& ranking) const {
        Index first = 0;
        for (; first + group_centres <= count_; first += group_centres)
            rank_some<labels_of, group_centres>(tile, first, ahead, ranking);
        rank_rest<labels_of, group_centres - 1>(tile, first, ahead, ranking);
    }

    template <Labels labels_of, int count>
    ILK_INLINE void rank_some(const Score* tile, Index first, Ahead& ahead, TileRanking<Score>& ranking) const {
        const Score *packed = packed_ + first * columns_, *norms = minus_half_norms_ + first;
        constexpr int two = labels_of == Labels::group ? 2 : 0;  // columns, where the compiler is told their number
        if (two == columns_) rank_group<labels_of, count, two>(tile, two, packed, norms, first, ahead, ranking);
        else rank_group<labels_of, count, 0>(tile, columns_, packed, norms, first, ahead, ranking);
    }

    // The best centre of each row, within the group it is labelled with: its scores are taken once more, to the
    // same bits. Returns the rows in which just one of them is decisive.
    template <int known_columns>
    ILK_INLINE std::uint64_t place_in_groups(const Score* tile, const Score* decisive, std::int32_t* labels) const {
        using V = Few<Score, group_centres>;
        const Index columns = known_columns ? known_columns : columns_;
        std::int32_t high[tile_rows<Score>];  // the centres of the group with a decisive score, as bits
#pragma GCC unroll 4
        for (Index row = 0; row < tile_rows<Score>; ++row) {
            const Score* packed = packed_ + labels[row] * columns;
            V score = load<V>(minus_half_norms_ + labels[row]);
            for (Index column = 0; column < columns; ++column)
                score = multiply_add(everywhere<V>(tile[column * tile_rows<Score> + row]),
                                     load<V>(packed + column * group_centres), score);
            high[row] = static_cast<std::int32_t>(lanes_where_greater(score, everywhere<V>(decisive[row])));
        }
        std::uint64_t decided = 0;
        for (Index row = 0; row < tile_rows<Score>; row += lanes<Score>) {
            using Bits = Few<std::int32_t, lanes<Score>>;
            using Singles = Few<float, lanes<Score>>;
            const Bits bits = load<Bits>(high + row);
            const Bits some = bits > 1 ? bits : bits - bits + 1;
            // The place of a single bit is the exponent of the number it makes.
            const Bits place = (reinterpret_cast<Bits>(__builtin_convertvector(some, Singles)) >> 23) - 127;
            store(labels + row, load<Bits>(labels + row) + place);
            const Bits more = some & (some - 1);
            const Singles not_one = __builtin_convertvector(more | (some ^ bits), Singles);
            decided |= static_cast<std::uint64_t>(lanes_where_greater(everywhere<Singles>(0.5f), not_one)) << row;
        }
        return decided;
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

private:
    Index count_, columns_;
    Scratch<double> packed_;
};

// Finding the place of the best score costs more than the score itself in few columns. Beyond so many centres
// per column it pays to find the best group of centres first, and the place within it afterwards.
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

    // Labels of a whole encoded strip, of which `count` rows are wanted. Returns about the largest |x|^2.
    template <class Number>
    double label(const Number* rows, Index width, Index count, Ahead ahead, std::int32_t* labels) {
        const bool in_double = 16 * open_rows_ > labelled_rows_;
        Ranked ranked = in_double
            ? rank(double_.get(centres_, columns_), double_tiles_.get(columns_), rows, width, ahead, labels)
            : rank(single_, single_tiles_, rows, width, ahead, labels);
        ranked.open &= (std::uint64_t{1} << count) - 1;
        labelled_rows_ += count;
        open_rows_ += __builtin_popcountll(ranked.open);
        for (; ranked.open != 0; ranked.open &= ranked.open - 1) {
            const Index row = __builtin_ctzll(ranked.open);
            const Number* own = rows + row * width;
            labels[row] = in_double ? double_.get(centres_, columns_).nearest(own, centres_)
                                    : single_.nearest(own, centres_);
        }
        return ranked.largest_norm;
    }

private:
    template <class Score, class Number>
    Ranked rank(const PackedCentres<Score>& packed, Tiles<Score>& tiles, const Number* rows, Index width,
                Ahead ahead, std::int32_t* labels) const {
        tiles.fill(rows, width);
        Ranked strip = {0, 0.0};
        for (Index first = 0; first < strip_rows; first += tile_rows<Score>) {
            const Score* tile = tiles[first / tile_rows<Score>];
            const Ranked some = by_group_ ? packed.template rank<Labels::group>(tile, ahead, labels + first)
                                          : packed.template rank<Labels::centre>(tile, ahead, labels + first);
            strip.open |= some.open << first;
            strip.largest_norm = some.largest_norm > strip.largest_norm ? some.largest_norm : strip.largest_norm;
        }
        return strip;
    }

    Centres centres_;
    Index columns_;
    bool by_group_;
    PackedCentres<float> single_;
    Tiles<float> single_tiles_;
    Later<PackedCentres<double>> double_;
    Later<Tiles<double>> double_tiles_;
    Index labelled_rows_ = 0, open_rows_ = 0;
};

}  // namespace
}  // namespace ilk

// What labelled rows add up to in Lloyd's steps: sums per centre and squares, exact to about 106 bits.
#pragma once

#include <cmath>

#include "encode.hpp"
#include "tally.hpp"

namespace ilk {
namespace {

// A strip of encoded rows with their labels; padding rows at the end have some label too.
template <class Number>
struct LabelledRows {
    Index first, count;  // in the table
    const Number* rows;
    Index width;
    const std::int32_t* labels;
    double largest_norm;  // about the largest |x|^2
};

// The sums of one block, as pairs, per centre.
//
// Rows are added to running totals, coarse and fine. The coarse one begins at a number so large that it keeps its
// exponent, so all that it takes up is a multiple of one unit and adds exactly; what is finer than the unit goes to
// the fine one. This takes four additions where `two_sum` takes six and one more. Most strips of a float32 table
// have nothing finer than the unit: then it is one.
//
// The pairs themselves are kept where they will be written, if that has room for their padding.
class Sums {
public:
    Sums(Index count, Index columns, double* out)
        : count_(count),
          columns_(columns),
          width_(columns <= 2 ? 2 : columns <= 4 ? 4 : rounded_up(columns, eight)),
          size_(rounded_up(count * width_, eight)),
          coarse_(size_),
          fine_(size_),
          out_(out),
          pairs_(size_ == count * columns ? 0 : 2 * size_),
          leading_(size_ == count * columns ? out : pairs_),
          trailing_(leading_ + size_),
          weights_(2 * count),
          counts_(count) {
        std::memset(leading_, 0, static_cast<std::size_t>(2 * size_) * sizeof(double));
    }

    // Add rows that count one each.
    template <class Number>
    ILK_INLINE void add(const LabelledRows<Number>& strip) {
        make_room(strip, 1.0, nullptr);
        if (nothing_finer(strip)) add_rows(strip, Whole{});
        else add_rows(strip, Plain{});
        for (Index row = 0; row < strip.count; ++row) ++counts_[strip.labels[row]];
    }

    // Add rows with weights. One of weight 0 may lie so far out that its cells have no square.
    template <class Number>
    ILK_INLINE void add(const LabelledRows<Number>& strip, const double* weight) {
        double largest = 0;
        for (Index row = 0; row < strip.count; ++row) largest = weight[row] > largest ? weight[row] : largest;
        make_room(strip, largest, weight);
        add_rows(strip, Weighted{weight});
        for (Index row = 0; row < strip.count; ++row) {
            double* pair = weights_ + 2 * strip.labels[row];
            const Pair<double> sum = two_sum(pair[0], weight[row]);
            pair[0] = sum.leading;
            pair[1] += sum.trailing;
        }
    }

    // To be called once all rows are in.
    void finish() {
        empty_running();
        for (Index label = 0; label < count_; ++label) weights_[2 * label] += static_cast<double>(counts_[label]);
    }

    // To be called last: the pairs go through the running totals, empty by now, to their places side by side.
    void write(double* weights) {
        std::memcpy(coarse_, leading_, static_cast<std::size_t>(size_) * sizeof(double));
        std::memcpy(fine_, trailing_, static_cast<std::size_t>(size_) * sizeof(double));
        double* sums = out_;
        for (Index label = 0; label < count_; ++label) {
            for (Index column = 0; column < columns_; ++column, sums += 2) {
                const Index place = label * width_ + column;
                const Pair<double> sum = two_sum(coarse_[place], fine_[place]);
                sums[0] = sum.leading;
                sums[1] = sum.trailing;
            }
            weights[label] = weights_[2 * label] + weights_[2 * label + 1];
        }
    }

    // The sum of weight * |x - c|^2 from that of weight * |x|^2:  squares - sum of c . (2 S - W c)  over centres c
    // with sums S and weights W.
    Pair<double> cost(Pair<double> squares, Centres centres) const {
        Pair<Eight> total = {};
        Index label = 0, column = 0;
        for (Index place = 0; place < size_; place += eight) {
            Eight own = {}, weight = {}, weight_rest = {};
            for (Index lane = 0; lane < eight && label < count_; ++lane) {
                if (column < columns_) {
                    own[lane] = centres.values[label * columns_ + column];
                    weight[lane] = weights_[2 * label];
                    weight_rest[lane] = weights_[2 * label + 1];
                }
                if (++column == width_) column = 0, ++label;
            }
            add_product(total, {load<Eight>(leading_ + place), load<Eight>(trailing_ + place)}, {-2.0 * own, Eight{}});
            add_product(total, {weight, weight_rest}, two_product(own, own));
        }
        for (Index lane = 0; lane < eight; ++lane) {
            add_to(squares, total.leading[lane]);
            squares.trailing += total.trailing[lane];
        }
        return two_sum(squares.leading, squares.trailing);
    }

private:
    // How a row enters: as it is, with nothing finer than the unit; as it is; or times its weight.
    struct Whole {};
    struct Plain {};
    struct Weighted {
        const double* weight;
    };

    static constexpr int row_bits = 10;  // the running totals are emptied after 1024 rows
    static constexpr double least_norm = 1e-30;  // squares in single precision fail below, and above its inverse

    static ILK_INLINE void add_product(Pair<Eight>& total, Pair<Eight> a, Pair<Eight> b) {
        const Pair<Eight> product = two_product(a.leading, b.leading);
        add_to(total, product.leading);
        total.trailing += product.trailing + (a.leading * b.trailing + a.trailing * b.leading);
    }

    // See that the coarse totals keep their exponent while this strip is added.
    template <class Number>
    ILK_INLINE void make_room(const LabelledRows<Number>& strip, double weight, const double* weights) {
        const double norm = strip.largest_norm > least_norm ? strip.largest_norm : least_norm;
        if (norm * (weight * weight) < reach_square_ && rows_ + strip_rows <= Index{1} << row_bits) rows_ += strip_rows;
        else make_new_room(strip, weight, weights);
    }

    template <class Number>
    __attribute__((noinline)) void make_new_room(const LabelledRows<Number>& strip, double weight,
                                                 const double* weights) {
        empty_running();
        double largest = std::sqrt(strip.largest_norm) * weight;
        if (!(strip.largest_norm > least_norm && strip.largest_norm < 1 / least_norm)) {
            largest = 0;
            for (Index row = 0; row < strip.count; ++row)
                for (Index column = 0; column < columns_ && (!weights || weights[row] != 0.0); ++column) {
                    const double size = std::fabs(static_cast<double>(strip.rows[row * strip.width + column])) * weight;
                    largest = size > largest ? size : largest;
                }
        }
        // Room for 2^row_bits numbers below 2^exponent / 2; a factor of two more for the rounding of the squares, and
        // up to two for strips to come.
        int exponent = 0;
        std::frexp(4 * largest, &exponent);
        if (exponent < -500 || largest == 0) exponent = -500;
        const double reach = std::ldexp(1.0, exponent - 1);
        reach_square_ = reach * reach / 4 > reach_square_ ? reach * reach / 4 : reach_square_;
        exponent = std::ilogb(reach_square_) / 2 + 2;
        base_ = std::ldexp(1.5, exponent + row_bits);
        least_whole_ = static_cast<float>(std::ldexp(1.0, exponent + row_bits - 52 + 23));
        for (Index place = 0; place < size_; ++place) coarse_[place] = base_;
        rows_ = strip_rows;
    }

    // Whether all numbers of a strip are multiples of the unit of the coarse totals.
    ILK_INLINE bool nothing_finer(const LabelledRows<double>&) const { return false; }
    ILK_INLINE bool nothing_finer(const LabelledRows<float>& strip) const {
        using Bits = Few<std::uint32_t, 16>;
        Bits least = Bits{} - 1;
        for (Index place = 0; place < strip.count * strip.width; place += 16) {
            const Bits bits = (load<Bits>(strip.rows + place) & 0x7fffffff) - 1;  // of |x|; 0 becomes the largest
            least = bits < least ? bits : least;
        }
        std::uint32_t wanted;
        std::memcpy(&wanted, &least_whole_, sizeof wanted);
        bool whole = true;
        for (int lane = 0; lane < 16; ++lane) whole &= least[lane] >= wanted - 1;
        return whole;
    }

    void empty_running() {
        if (rows_ == 0) return;
        for (Index place = 0; place < size_; place += eight) {
            const Pair<Eight> sum = two_sum(load<Eight>(leading_ + place), load<Eight>(coarse_ + place) - base_);
            store(leading_ + place, sum.leading);
            store(trailing_ + place, load<Eight>(trailing_ + place) + (sum.trailing + load<Eight>(fine_ + place)));
            store(coarse_ + place, everywhere<Eight>(base_));
            store(fine_ + place, Eight{});
        }
        rows_ = 0;
    }

    template <class Number, class How>
    ILK_INLINE void add_rows(const LabelledRows<Number>& strip, How how) {
        if (width_ == 2) add_vectors<2, 1>(strip, how);
        else if (width_ == 4) add_vectors<4, 1>(strip, how);
        else if (width_ == 16) add_vectors<8, 2>(strip, how);
        else add_vectors<8, 0>(strip, how);
    }

    // `vectors` of `some` columns to a row, or as many as there are columns for if 0.
    template <int some, int vectors, class Number, class How>
    ILK_INLINE void add_vectors(const LabelledRows<Number>& strip, How how) {
        using V = Few<double, some>;
        const Index width = vectors == 0 ? width_ : some * vectors;
        for (Index row = 0; row < strip.count; ++row) {
            if constexpr (std::is_same_v<How, Weighted>)
                if (how.weight[row] == 0.0) continue;
            const Index place = strip.labels[row] * width;
            const Number* from = strip.rows + row * strip.width;
#pragma GCC unroll 2
            for (Index column = 0; column < width; column += some) {
                V x = __builtin_convertvector(load<Few<Number, some>>(from + column), V);
                double *coarse = coarse_ + place + column, *fine = fine_ + place + column;
                const V before = load<V>(coarse);
                if constexpr (std::is_same_v<How, Whole>) {
                    store(coarse, before + x);
                } else {
                    V rest = load<V>(fine);
                    if constexpr (std::is_same_v<How, Weighted>) {
                        const Pair<V> product = two_product(x, everywhere<V>(how.weight[row]));
                        x = product.leading;
                        rest += product.trailing;
                    }
                    const V after = before + x;
                    store(coarse, after);
                    store(fine, rest + (x - (after - before)));
                }
            }
        }
    }

    Index count_, columns_, width_, size_;
    Scratch<double> coarse_, fine_;
    double* out_;
    Scratch<double> pairs_;
    double *leading_, *trailing_;
    Scratch<double> weights_;
    Scratch<Index> counts_;
    double base_ = 0, reach_square_ = 0;
    float least_whole_ = 0;  // the least number with no digit below the unit
    Index rows_ = 0;         // in the running totals
};

// The sum of weight * |x|^2 over rows, as a pair.
class Squares {
public:
    template <class Number>
    void add(const LabelledRows<Number>& strip, const double* weight) {
        // Padding is zero, after the columns as after the rows.
        for (Index place = 0; place < strip.count * strip.width; place += eight) {
            const Eight x = load_eight(strip.rows + place);
            Pair<Eight> square = two_product(x, x);
            if (weight != nullptr) square = times_weight(square, weight, place, strip);
            add_to(total_, square.leading);
            total_.trailing += square.trailing;
        }
    }

    void write(double* squares) const { write_total(total_, squares); }

private:
    // Eight squares from `place` on, times the weights of their rows.
    template <class Number>
    static ILK_INLINE Pair<Eight> times_weight(Pair<Eight> square, const double* weight, Index place,
                                               const LabelledRows<Number>& strip) {
        Eight own;
        for (Index lane = 0; lane < eight; ++lane) {
            const Index row = (place + lane) / strip.width;
            own[lane] = row < strip.count ? weight[row] : 0.0;
        }
        Pair<Eight> product = two_product(square.leading, own);
        product.trailing += square.trailing * own;
        return {own == 0.0 ? Eight{} : product.leading, own == 0.0 ? Eight{} : product.trailing};
    }

    Pair<Eight> total_ = {};
};

}  // namespace
}  // namespace ilk

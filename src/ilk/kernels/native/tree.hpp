// The likelihood tree: groups merged two by two so that a Gaussian likelihood falls least. The meaning is in
// plain_tree.py, whose every tie this keeps: rises are compared on a grid, the lowest numbers win.
//
// What one merge costs is worked out for as many partners at once as a vector has lanes. So the groups stand
// column by column, in slots in the order of their first rows; a slot whose group has joined another is marked as
// empty until enough of them are to close the ranks. A rise that is no finite number, whatever the points and weights,
// counts as infinite, so every living group but the last has a living partner behind it.
#pragma once

#include "covariance_matrix.hpp"
#include "mixture_functions.hpp"

namespace ilk {
namespace {
namespace quick {

constexpr double tree_least = 0x1p-1022;  // plain_tree.py, LEAST: logarithms are taken of no less

// The nearest point of the grid, ties to even.
ILK_INLINE Doubles on_grid(Doubles rise) {
    constexpr double whole = 0x1p52;  // from here on every number is whole
    const Doubles scaled = rise * tree_grid, size = scaled < 0.0 ? -scaled : scaled;
    const Doubles rounded = (size + whole) - whole;
    return (size < whole ? (scaled < 0.0 ? -rounded : rounded) : scaled) / tree_grid;
}

class Tree {
public:
    Tree(const double* points, const double* weight, Index n, Index d)
        : d_(d), cells_(d * (d + 1) / 2), stride_(rounded_up(n, width)), slots_(n), living_(n), rows_(stride_), size_(stride_),
          cost_(stride_), rise_(stride_), mean_(stride_ * d), scatter_(stride_ * cells_), partner_(stride_),
          row_(stride_), empty_(stride_), slot_of_(n), order_(n), away_(d * width), joined_(cells_ * width), inverse_(d * width),
          own_mean_(d), own_scatter_(cells_) {
        begin(points, weight, n);
    }

    void grow(Index* first, Index* second) {
        for (Index slot = 0; slot + 1 < slots_; ++slot) find_partner(slot);
        for (Index merge = 0; living_ > 1; ++merge) {
            Index a = 0;  // the first row never joins another
            for (Index slot = 1; slot < slots_; ++slot)
                if (rise_[slot] < rise_[a]) a = slot;
            first[merge] = row_[a];
            second[merge] = partner_[a];
            join(a, slot_of_[partner_[a]]);
        }
    }

private:
    static constexpr Index width = lanes<double>;

    // A group taken out of the columns, to be compared with all the others.
    struct Group {
        double rows, size, cost;
        const double *mean, *scatter;
    };

    void begin(const double* points, const double* weight, Index n) {
        double spread = 0;
        const double total = sum_of(weight, n);
        for (Index j = 0; j < d_; ++j) {
            double mean = 0;
            for (Index i = 0; i < n; ++i) mean += weight[i] * points[i * d_ + j];
            mean /= total;
            for (Index i = 0; i < n; ++i) {
                const double value = mean_[j * stride_ + i] = points[i * d_ + j];
                const double away = value - mean;
                spread += weight[i] * away * away;
            }
        }
        alpha_ = spread > 0 ? spread / (total * static_cast<double>(d_)) : 1.0;  // all rows alike: any number will do
        for (Index i = 0; i < stride_; ++i) {
            rows_[i] = 1;
            size_[i] = i < n ? weight[i] : 1;
            cost_[i] = size_[i] * logarithm_of((d_ > 0 ? 0.0 : 1.0) + alpha_ / size_[i]);
            empty_[i] = i < n ? 0 : -1;
            rise_[i] = infinity;
            partner_[i] = -1;
            row_[i] = i;
            if (i < n) slot_of_[i] = i;
        }
    }

    bool empty(Index slot) const { return empty_[slot] != 0; }

    static double logarithm_of(double x) { return std::log(x < tree_least ? tree_least : x); }

    Group taken(Index slot) {
        for (Index j = 0; j < d_; ++j) own_mean_[j] = mean_[j * stride_ + slot];
        for (Index cell = 0; cell < cells_; ++cell) own_scatter_[cell] = scatter_[cell * stride_ + slot];
        return {rows_[slot], size_[slot], cost_[slot], own_mean_, own_scatter_};
    }

    // By how much the total cost rises when a group merges with each of those from `slot` on, on the grid. A
    // scatter of no more rows than columns has no volume.
    template <int columns>
    ILK_INLINE Doubles rises(const Group& group, Index slot) {
        const Index d = columns ? columns : d_;
        Doubles fixed_away[columns + 1], fixed_joined[columns * (columns + 1) / 2 + 1];
        Doubles* const away = columns ? fixed_away : reinterpret_cast<Doubles*>(static_cast<double*>(away_));
        Doubles* const joined = columns ? fixed_joined : reinterpret_cast<Doubles*>(static_cast<double*>(joined_));
        const Doubles others = load<Doubles>(size_ + slot), size = others + group.size;
        const Doubles scale = 1.0 / size, share = others * group.size * scale;
        for (Index j = 0; j < d; ++j) away[j] = load<Doubles>(mean_ + j * stride_ + slot) - group.mean[j];
        Doubles trace = {};
        Index cell = 0;
        for (Index i = 0; i < d; ++i) {
            const Doubles scaled = share * away[i];
            for (Index j = 0; j <= i; ++j, ++cell)
                joined[cell] = load<Doubles>(scatter_ + cell * stride_ + slot) + group.scatter[cell] + scaled * away[j];
            trace += joined[cell - 1];
        }
        Doubles volume = {};
        const Doubles enough = everywhere<Doubles>(static_cast<double>(d)), rows = load<Doubles>(rows_ + slot) + group.rows;
        if (lanes_where_greater(rows, enough)) volume = rows > enough ? determinant<columns>(joined, scale) : volume;
        Doubles spread = volume + (trace + alpha_) * scale;
        spread = spread < tree_least ? everywhere<Doubles>(tree_least) : spread;
        const Doubles rise = on_grid(size * logarithm(spread) - group.cost - load<Doubles>(cost_ + slot));
        // The logarithm is that of a finite number; comparisons with what is no number fail.
        const Bits known = (spread < infinity) & (rise > -infinity) & (rise < infinity) & ~load<Bits>(empty_ + slot);
        return known ? rise : everywhere<Doubles>(infinity);
    }

    // The product of the pivots of scale * matrix, a lower triangle that is lost on the way; 0 where one is not
    // above 0.
    template <int columns>
    ILK_INLINE Doubles determinant(Doubles* matrix, Doubles scale) {
        const Index d = columns ? columns : d_;
        Doubles fixed_inverse[columns + 1];
        Doubles* const inverse = columns ? fixed_inverse : reinterpret_cast<Doubles*>(static_cast<double*>(inverse_));
        Doubles product = everywhere<Doubles>(1.0);
        Bits sound = product == product;
        for (Index i = 0; i < d; ++i) {
            Doubles* const row = matrix + i * (i + 1) / 2;
            for (Index j = 0; j < i; ++j) {
                const Doubles* const other = matrix + j * (j + 1) / 2;  // multiples of the rows before
                Doubles rest = row[j] * scale;
                for (Index l = 0; l < j; ++l) rest -= row[l] * other[l];
                row[j] = rest;
            }
            Doubles pivot = row[i] * scale;
            for (Index j = 0; j < i; ++j) {
                const Doubles multiple = row[j] * inverse[j];
                pivot -= multiple * row[j];
                row[j] = multiple;
            }
            sound &= pivot > 0.0;
            pivot = sound ? pivot : everywhere<Doubles>(1.0);
            product *= pivot;
            inverse[i] = 1.0 / pivot;
        }
        return sound ? product : Doubles{};
    }

    // The cheapest partner in a higher slot.
    void find_partner(Index slot) {
        const Group group = taken(slot);
        Doubles least = everywhere<Doubles>(infinity);
        Bits where = {}, place = {};
        for (Index lane = 0; lane < width; ++lane) {
            where[lane] = -1;
            place[lane] = slot / width * width + lane;
        }
        const Bits behind = place > slot;
        with_columns(d_, [&](auto fixed) {
            for (Index at = slot / width * width; at < slots_; at += width, place += width) {
                Doubles rise = rises<decltype(fixed)::value>(group, at);
                if (at <= slot) rise = behind ? rise : everywhere<Doubles>(infinity);
                const Bits better = rise < least;
                least = better ? rise : least;
                where = better ? place : where;
            }
        });
        Index best = -1;
        for (Index lane = 0; lane < width; ++lane)
            if (where[lane] >= 0 && (best < 0 || least[lane] < rise_[slot] ||
                                     (least[lane] == rise_[slot] && where[lane] < best))) {
                best = where[lane];
                rise_[slot] = least[lane];
            }
        if (best < 0) rise_[slot] = infinity;
        for (Index next = slot + 1; best < 0 && next < slots_; ++next)  // every rise is infinite: any will do
            if (!empty(next)) best = next;
        partner_[slot] = best < 0 ? -1 : row_[best];
    }

    // The group in slot b joins that in slot a, before it.
    void join(Index a, Index b) {
        const Index kept = row_[a], gone = row_[b];
        merge_into(a, b);
        empty_[b] = -1;
        rise_[b] = infinity;
        --living_;
        if (slots_ - living_ > living_ / 8) close_ranks();
        for (Index slot = 0; slot < slots_; ++slot)
            if (row_[slot] == kept || partner_[slot] == kept || partner_[slot] == gone)
                if (!empty(slot)) find_partner(slot);
        offer(slot_of_[kept]);
    }

    void merge_into(Index a, Index b) {
        const double size = size_[a] + size_[b], share = size_[a] * size_[b] / size;
        double* const away = away_;
        for (Index j = 0; j < d_; ++j) away[j] = mean_[j * stride_ + b] - mean_[j * stride_ + a];
        Index cell = 0;
        for (Index i = 0; i < d_; ++i)
            for (Index j = 0; j <= i; ++j, ++cell)
                scatter_[cell * stride_ + a] += scatter_[cell * stride_ + b] + share * away[i] * away[j];
        for (Index j = 0; j < d_; ++j) mean_[j * stride_ + a] += away[j] * (size_[b] / size);
        rows_[a] += rows_[b];
        size_[a] = size;
        cost_[a] = cost_of(a);
    }

    double cost_of(Index slot) {
        const Group group = taken(slot);
        Doubles* const same = reinterpret_cast<Doubles*>(static_cast<double*>(joined_));
        double trace = 0, volume = 0;
        for (Index i = 0; i < d_; ++i) trace += group.scatter[i * (i + 3) / 2];
        for (Index cell = 0; cell < cells_; ++cell) same[cell] = everywhere<Doubles>(group.scatter[cell]);
        if (group.rows > static_cast<double>(d_)) volume = determinant<0>(same, everywhere<Doubles>(1 / group.size))[0];
        return group.size * logarithm_of(volume + (trace + alpha_) / group.size);
    }

    // A changed group as a partner for all those before it.
    void offer(Index slot) {
        const Group group = taken(slot);
        with_columns(d_, [&](auto fixed) {
            for (Index at = 0; at < slot; at += width) {
                const Doubles rise = rises<decltype(fixed)::value>(group, at);
                for (Index other = at; other < at + width && other < slot; ++other) {
                    const double offered = rise[other - at];
                    if (offered < rise_[other] || (offered == rise_[other] && row_[slot] < partner_[other])) {
                        if (empty(other)) continue;
                        rise_[other] = offered;
                        partner_[other] = row_[slot];
                    }
                }
            }
        });
    }

    // Empty slots are left out, the order stays.
    void close_ranks() {
        Index kept = 0;
        for (Index slot = 0; slot < slots_; ++slot) {
            if (empty(slot)) continue;
            order_[kept] = slot;
            slot_of_[row_[slot]] = kept++;
        }
        const auto close = [&](auto* values) {
            for (Index slot = 0; slot < kept; ++slot) values[slot] = values[order_[slot]];
        };
        for (Index j = 0; j < d_; ++j) close(mean_ + j * stride_);
        for (Index cell = 0; cell < cells_; ++cell) close(scatter_ + cell * stride_);
        close(static_cast<double*>(rows_));
        close(static_cast<double*>(size_));
        close(static_cast<double*>(cost_));
        close(static_cast<double*>(rise_));
        close(static_cast<Index*>(partner_));
        close(static_cast<Index*>(row_));
        for (Index slot = 0; slot < rounded_up(kept, width); ++slot) empty_[slot] = slot < kept ? 0 : -1;
        slots_ = kept;
    }

    const Index d_, cells_, stride_;
    Index slots_, living_;  // slots in use, and those of them that are not empty
    double alpha_ = 0;
    Scratch<double> rows_, size_, cost_, rise_, mean_, scatter_;
    Scratch<Index> partner_, row_;  // the partner's row (-1 behind the last group), the group's own first row
    Scratch<Index> empty_;          // -1 where a slot has no group, else 0: a mask for its lane
    Scratch<Index> slot_of_, order_;
    Scratch<double> away_, joined_, inverse_, own_mean_, own_scatter_;
};

inline void grow_tree(const double* points, const double* weight, Index rows, Index columns, Index* first,
                      Index* second) {
    Tree(points, weight, rows, columns).grow(first, second);
}

}  // namespace quick
}  // namespace
}  // namespace ilk

// The likelihood tree: groups merged two by two so that a Gaussian likelihood falls least. The meaning is in
// plain_tree.py, whose every tie this keeps: rises are compared on a grid, the lowest numbers win.
#pragma once

#include "covariance_matrix.hpp"

namespace ilk {
namespace {
namespace quick {

constexpr double tree_grid = 0x1p36;  // plain_tree.py, GRID

class Tree {
public:
    Tree(const double* points, const double* weight, Index n, Index d)
        : n_(n), d_(d), cells_(d * (d + 1) / 2), rows_(n), size_(n), cost_(n), rise_(n), mean_(n * d), scatter_(n * cells_),
          joined_(cells_), lower_(cells_), away_(d), partner_(n), alive_(n) {
        begin(points, weight);
    }

    void grow(Index* first, Index* second) {
        for (Index i = 0; i + 1 < n_; ++i) find_partner(i);  // positions among the living are row numbers at first
        for (Index merge = 0; merge + 1 < n_; ++merge) {
            Index a = alive_[0];
            for (Index i = 1; i < living_; ++i)
                if (rise_[alive_[i]] < rise_[a]) a = alive_[i];
            const Index b = partner_[a];
            join(a, b);
            first[merge] = a;
            second[merge] = b;
        }
    }

private:
    void begin(const double* points, const double* weight) {
        double spread = 0;
        const double total = sum_of(weight, n_);
        for (Index j = 0; j < d_; ++j) {
            double mean = 0;
            for (Index i = 0; i < n_; ++i) mean += weight[i] * points[i * d_ + j];
            mean /= total;
            for (Index i = 0; i < n_; ++i) {
                const double away = points[i * d_ + j] - mean;
                spread += weight[i] * away * away;
            }
        }
        alpha_ = spread > 0 ? spread / (total * static_cast<double>(d_)) : 1.0;  // all rows alike: any number will do
        living_ = n_;
        copy_numbers(points, n_ * d_, mean_);
        for (Index i = 0; i < n_; ++i) {
            rows_[i] = 1;
            size_[i] = weight[i];
            cost_[i] = cost_of(1, size_[i], scatter_ + i * cells_);
            rise_[i] = infinity;
            partner_[i] = -1;
            alive_[i] = i;
        }
    }

    // Cost of a group of so many rows, this weight and lower triangle of scatter. A scatter of no more rows than
    // columns has no volume.
    double cost_of(Index rows, double size, const double* scatter) {
        double trace = 0, volume = 0;
        for (Index i = 0; i < d_; ++i) trace += scatter[i * (i + 3) / 2];
        if (rows > d_) volume = determinant(scatter, 1 / size);
        return size * std::log(volume + (trace + alpha_) / size);
    }

    double determinant(const double* scatter, double scale) {
        double product = 1;
        for (Index i = 0; i < d_; ++i) {
            double* row = lower_ + i * (i + 1) / 2;
            for (Index j = 0; j <= i; ++j) {
                const double* other = lower_ + j * (j + 1) / 2;
                const double rest = scatter[i * (i + 1) / 2 + j] * scale - dot(row, other, j);
                if (j < i) {
                    row[j] = rest / other[j];
                } else {
                    if (!(rest > 0)) return 0;
                    row[j] = std::sqrt(rest);
                    product *= rest;
                }
            }
        }
        return product;
    }

    void join_scatters(Index a, Index b, double size) {
        const double share = size_[a] * size_[b] / size;
        const double *one = scatter_ + a * cells_, *other = scatter_ + b * cells_;
        for (Index j = 0; j < d_; ++j) away_[j] = mean_[b * d_ + j] - mean_[a * d_ + j];
        Index at = 0;
        for (Index i = 0; i < d_; ++i) {
            const double scaled = share * away_[i];
            for (Index j = 0; j <= i; ++j, ++at) joined_[at] = one[at] + other[at] + scaled * away_[j];
        }
    }

    // By how much the total cost rises when two groups merge, on the grid.
    double rise_of(Index a, Index b) {
        const double size = size_[a] + size_[b];
        join_scatters(a, b, size);
        return std::rint((cost_of(rows_[a] + rows_[b], size, joined_) - cost_[a] - cost_[b]) * tree_grid) / tree_grid;
    }

    // The cheapest partner with a higher number; `position` of the group among the living.
    void find_partner(Index position) {
        const Index group = alive_[position];
        partner_[group] = -1;
        rise_[group] = infinity;
        for (Index i = position + 1; i < living_; ++i) {
            const double rise = rise_of(group, alive_[i]);
            if (partner_[group] < 0 || rise < rise_[group]) {
                rise_[group] = rise;
                partner_[group] = alive_[i];
            }
        }
    }

    void join(Index a, Index b) {
        const double size = size_[a] + size_[b];
        join_scatters(a, b, size);
        copy_numbers(joined_, cells_, scatter_ + a * cells_);
        for (Index j = 0; j < d_; ++j) mean_[a * d_ + j] += away_[j] * (size_[b] / size);
        rows_[a] += rows_[b];
        size_[a] = size;
        cost_[a] = cost_of(rows_[a], size, joined_);
        Index kept = 0;
        for (Index i = 0; i < living_; ++i)
            if (alive_[i] != b) alive_[kept++] = alive_[i];
        living_ = kept;
        for (Index i = 0; i < living_; ++i) {
            const Index group = alive_[i];
            if (group == a || partner_[group] == a || partner_[group] == b) find_partner(i);
        }
        for (Index i = 0; i < living_ && alive_[i] < a; ++i) {
            const Index group = alive_[i];
            const double rise = rise_of(group, a);
            if (rise < rise_[group] || (rise == rise_[group] && a < partner_[group])) {
                rise_[group] = rise;
                partner_[group] = a;
            }
        }
    }

    const Index n_, d_, cells_;
    Scratch<Index> rows_;
    Scratch<double> size_, cost_, rise_, mean_, scatter_, joined_, lower_, away_;
    Scratch<Index> partner_, alive_;
    Index living_ = 0;
    double alpha_ = 0;
};

inline void grow_tree(const double* points, const double* weight, Index rows, Index columns, Index* first,
                      Index* second) {
    Tree(points, weight, rows, columns).grow(first, second);
}

}  // namespace quick
}  // namespace
}  // namespace ilk

// The first axes common to free shapes (EVE, VVE): searches from several axes, the best of them to the end. The
// meaning, and the reasons, are in families/orientation.py (`common_axes`).
#pragma once

#include "covariance_axes.hpp"
#include "mixture_functions.hpp"

namespace ilk {
namespace {
namespace quick {

constexpr Index most_starts = 7;    // four means and the three largest components
constexpr double tiny = std::numeric_limits<double>::min();
constexpr int n_grids = 1 + n_finer_grids;
constexpr double quarter_turn = 1.57079632679489661923;

enum class Move { scan, sweep };

struct SearchRule {
    Move move;
    double gain;  // a row, below which a move is not repeated
    int limit;
};

constexpr SearchRule scanning{Move::scan, scan_gain, scan_limit}, racing{Move::sweep, race_gain, race_limit},
    finishing{Move::sweep, sweep_gain, sweep_limit};

constexpr Index search_room(Index k, Index d) {
    return 2 * k * d * d + 3 * k * d + 4 * k + (most_starts + 14) * d * d + sweep_room(k, d);
}

class AxesSearch {
public:
    AxesSearch(const Shares& shares, const double* scatter, Room room)
        : shares_(shares), scatter_(scatter), k_(shares.components), d_(shares.columns),
          starts_(room.take(most_starts * d_ * d_)), turned_(room.take(k_ * d_ * d_)), across_(room.take(k_)),
          rest_(room.take(k_)), one_(room.take(k_)), other_(room.take(k_)), room_(room) {}

    void run(double* axes) {
        double cost[most_starts];
        Index best = 0;
        make_starts();
        make_grids();
        search(d_ <= scan_columns ? scanning : racing, starts_, n_starts_, cost);
        for (Index start = 1; start < n_starts_; ++start)
            if (cost[start] < cost[best]) best = start;
        search(finishing, starts_ + best * d_ * d_, 1, cost);
        copy_numbers(starts_ + best * d_ * d_, d_ * d_, axes);
    }

private:
    // Eigenvectors of four means over all components (of the scatters, of the scatters with equal traces, of
    // their logs and of their inverses), and of the three largest components.
    void make_starts() {
        Room room = room_;
        double *values = room.take(k_ * d_), *vectors = room.take(k_ * d_ * d_), *mean = room.take(d_ * d_);
        double* ignored = room.take(d_);
        for (Index c = 0; c < k_; ++c)
            eigen_descending(scatter_ + c * d_ * d_, d_, nullptr, values + c * d_, vectors + c * d_ * d_, room);
        const auto add_mean = [&](auto&& weight) {  // of each eigenvalue
            for (Index i = 0; i < d_ * d_; ++i) mean[i] = 0;
            for (Index c = 0; c < k_; ++c)
                for (Index l = 0; l < d_; ++l) {
                    const double factor = weight(c, values[c * d_ + l]);
                    const double* axes = vectors + c * d_ * d_ + l;
                    for (Index i = 0; i < d_; ++i)
                        for (Index j = 0; j <= i; ++j) mean[i * d_ + j] += factor * axes[i * d_] * axes[j * d_];
                }
            for (Index i = 0; i < d_; ++i)
                for (Index j = 0; j < i; ++j) mean[j * d_ + i] = mean[i * d_ + j];
            eigen_descending(mean, d_, nullptr, ignored, starts_ + n_starts_++ * d_ * d_, room);
        };
        const double* count = shares_.count;
        add_mean([](Index, double value) { return value; });
        add_mean([&](Index c, double value) { return value / sum_of(values + c * d_, d_); });
        add_mean([&](Index c, double value) { return count[c] * std::log(value / count[c]); });
        add_mean([&](Index c, double value) { return count[c] * count[c] / value; });
        Index last = -1;  // the largest components, the lower number first among equals
        for (Index number = 0; number < 3 && number < k_; ++number) {
            Index next = -1;
            for (Index c = 0; c < k_; ++c) {
                const bool before = last < 0 || count[c] < count[last] || (count[c] == count[last] && c > last);
                if (before && (next < 0 || count[c] > count[next])) next = c;
            }
            last = next;
            copy_numbers(vectors + next * d_ * d_, d_ * d_, starts_ + n_starts_++ * d_ * d_);
        }
    }

    // Repeat a move on each start until it gains no more.
    void search(const SearchRule& rule, double* starts, Index n_starts, double* cost) {
        const double enough = rule.gain * sum_of(shares_.count, k_);
        for (Index start = 0; start < n_starts; ++start) {
            double* axes = starts + start * d_ * d_;
            double before = infinity;
            cost[start] = cost_of(axes);
            for (int round = 0; round < rule.limit && before - cost[start] > enough; ++round) {
                if (rule.move == Move::sweep) sweep_axes(shares_, scatter_, axes, room_);
                else scan(axes);
                before = cost[start];
                cost[start] = cost_of(axes);
            }
        }
    }

    // The cost with the best log-variances put in, up to a constant.
    double cost_of(const double* axes) {
        Room room = room_;
        double* middle = room.take(k_);
        const double columns = static_cast<double>(d_);
        if (!turn_roots(shares_, scatter_, axes, turned_, room)) return infinity;
        double total = 0, top = -infinity;
        for (Index c = 0; c < k_; ++c) {
            middle[c] = 0;
            for (Index j = 0; j < d_; ++j) middle[c] += std::log(squared_length(c, j));
            total += shares_.count[c] * middle[c];
            middle[c] /= columns;
            top = std::fmax(top, middle[c]);
        }
        return shares_.volume == 'V' ? total : sum_of(shares_.count, k_) * columns * log_sum_exp(middle, top);
    }

    double log_sum_exp(const double* values, double top) const {
        double total = 0;
        for (Index c = 0; c < k_; ++c) total += std::exp(values[c] - top);
        return std::log(total) + top;
    }

    double squared_length(Index c, Index j) const {
        const double* column = turned_ + (c * d_ + j) * d_;
        return dot(column, column, d_);
    }

    // Every pair of axes once to the best of a grid of angles of the cost itself: the sweep, which holds the
    // variances, stalls in poor optima of ill-conditioned scatters.
    void scan(double* axes) {
        if (!turn_roots(shares_, scatter_, axes, turned_, room_)) return;
        for (Index first = 0; first < d_; ++first)
            for (Index second = first + 1; second < d_; ++second) {
                const double angle = best_angle(first, second);
                const double cosine = std::cos(angle), sine = std::sin(angle);
                for (Index c = 0; c < k_; ++c)
                    turn(turned_ + (c * d_ + first) * d_, turned_ + (c * d_ + second) * d_, d_, cosine, sine);
                for (Index i = 0; i < d_; ++i) {
                    const double a = axes[i * d_ + first], b = axes[i * d_ + second];
                    axes[i * d_ + first] = cosine * a + sine * b;
                    axes[i * d_ + second] = cosine * b - sine * a;
                }
            }
        orthogonalise(axes, d_, room_);
    }

    // Angles of a grid, as multiples of its spacing; a vector of them is tried at once.
    struct Grid {
        double spacing;
        Index count;
        double step[n_angles], cosine[n_angles], sine[n_angles];  // of twice the angle
    };

    // 32 angles in (-45, 45] degrees, then four grids of 9, each 4 times finer, around the best so far.
    void make_grids() {
        double spacing = quarter_turn / n_angles;
        for (int number = 0; number < n_grids; ++number, spacing /= 4) {
            Grid& grid = grids_[number];
            grid.spacing = spacing;
            grid.count = number == 0 ? 32 : 16;
            for (Index i = 0; i < grid.count; ++i) {
                const double step = number == 0 ? static_cast<double>(i) - 15 : i < 9 ? static_cast<double>(i) - 4 : 4;
                grid.step[i] = step;
                grid.cosine[i] = std::cos(2 * step * spacing);
                grid.sine[i] = std::sin(2 * step * spacing);
            }
        }
    }

    double best_angle(Index first, Index second) {
        for (Index c = 0; c < k_; ++c) {
            one_[c] = squared_length(c, first);
            other_[c] = squared_length(c, second);
            across_[c] = dot(turned_ + (c * d_ + first) * d_, turned_ + (c * d_ + second) * d_, d_);
            rest_[c] = 0;
            if (shares_.volume == 'E')
                for (Index j = 0; j < d_; ++j)
                    if (j != first && j != second) rest_[c] += std::log(squared_length(c, j));
        }
        double best = 0, cosine = 1, sine = 0, least = infinity, unturned = infinity;
        for (const Grid& grid : grids_) {
            double costs[n_angles], now = infinity;
            Index place = 0;
            for (Index i = 0; i < grid.count; i += lanes<double>)
                store(costs + i, pair_costs(cosine, sine, grid.cosine + i, grid.sine + i));
            for (Index i = 0; i < grid.count; ++i)
                if (costs[i] < now) now = costs[place = i];
            if (&grid == grids_) unturned = costs[15];
            const double turned_cosine = cosine * grid.cosine[place] - sine * grid.sine[place];
            sine = sine * grid.cosine[place] + cosine * grid.sine[place];
            cosine = turned_cosine;
            best += grid.step[place] * grid.spacing;
            least = now;
        }
        return least < unturned ? best : 0.0;
    }

    // Costs of a pair of axes turned on by some angles from a first one, all given by twice their angle.
    Doubles pair_costs(double cosine, double sine, const double* more_cosine, const double* more_sine) const {
        const Doubles a = load<Doubles>(more_cosine), b = load<Doubles>(more_sine);
        const Doubles twice_cosine = a * cosine - b * sine, twice_sine = a * sine + b * cosine;
        const Doubles least = everywhere<Doubles>(tiny);
        const double part = 1 / static_cast<double>(d_);
        Doubles total = {}, top = everywhere<Doubles>(-infinity);
        for (Index c = 0; c < k_; ++c) {
            const double middle = (one_[c] + other_[c]) / 2, half = (one_[c] - other_[c]) / 2;
            const Doubles change = twice_cosine * half + twice_sine * across_[c];
            const Doubles logs = logarithm(larger(middle + change, least)) + logarithm(larger(middle - change, least));
            if (shares_.volume == 'V') {
                total += logs * shares_.count[c];
                continue;
            }
            const Doubles value = (logs + rest_[c]) * part;  // sum of exponentials, about the largest so far
            const Doubles next = larger(value, top);
            total = total * exponential(top - next) + exponential(value - next);
            top = next;
        }
        return shares_.volume == 'V' ? total : logarithm(total) + top;
    }

    const Shares& shares_;
    const double* const scatter_;
    const Index k_, d_;
    double *const starts_, *const turned_, *const across_, *const rest_, *const one_, *const other_;
    Index n_starts_ = 0;
    Grid grids_[n_grids];
    const Room room_;
};

}  // namespace quick
}  // namespace
}  // namespace ilk

// Covariances of one structure from counts and scatters: families/covariance.py (`update_covariance`) for
// complete rows, with the same tests before and after.
#pragma once

#include "covariance_search.hpp"

namespace ilk {
namespace {
namespace quick {


constexpr Index covariance_room(Index k, Index d) {
    return 3 * k * d * d + 4 * k * d + 8 * k + 24 * d * d + 8 * d + search_room(k, d);
}

inline double trace_of(const double* matrix, Index d) {
    double trace = 0;
    for (Index i = 0; i < d; ++i) trace += matrix[i * (d + 1)];
    return trace;
}

// One update on its way; each step asks for room of its own.
class CovarianceStep {
public:
    CovarianceStep(const CovarianceSums& sums, const CovarianceResult& result, Room room)
        : sums_(sums), result_(result), k_(sums.components), d_(sums.columns),
          shares_{sums.letters.volume, sums.letters.shape, k_, d_, sums.count},
          log_volume_(room.take(k_)), along_(room.take(k_ * d_)), pooled_(room.take(d_ * d_)), room_(room) {}

    CovarianceStatus run() {
        for (Index c = 0; c < k_; ++c) result_.poor[c] = 0;
        if (sums_.previous_log_variance != nullptr)
            for (Index c = 0; c < k_; ++c)
                log_volume_[c] = sum_of(sums_.previous_log_variance + c * d_, d_) / static_cast<double>(d_);
        if (!finite() || starved()) return CovarianceStatus::starved;
        solve();
        return test_singular() ? CovarianceStatus::singular : CovarianceStatus::ok;
    }

private:
    bool along_columns() const { return sums_.letters.orientation == 'I'; }
    bool own_axes() const { return sums_.letters.orientation == 'V'; }
    bool proportional_or_equal() const { return sums_.letters.orientation == 'E' && shares_.shape == 'E'; }
    bool warm() const { return sums_.previous_log_variance != nullptr; }
    const double* scatter(Index c) const { return sums_.scatter + c * (along_columns() ? d_ : d_ * d_); }

    bool mark(Index c) {
        result_.poor[c] = 1;
        return true;
    }
    bool mark_all() {
        for (Index c = 0; c < k_; ++c) result_.poor[c] = 1;
        return true;
    }

    bool finite() {
        const Index size = along_columns() ? d_ : d_ * d_;
        bool all = true;
        for (Index c = 0; c < k_; ++c)
            for (Index i = 0; i < size; ++i)
                if (!__builtin_isfinite(scatter(c)[i]) && mark(c)) all = false;
        return all;
    }

    // Whether the scatter is too poor for the structure, before axes are sought; marks the components.
    bool starved() {
        bool poor = false, some = false;
        for (Index c = 0; c < k_; ++c) {
            const double total = along_columns() ? sum_of(scatter(c), d_) : trace_of(scatter(c), d_);
            some = some || total > 0;
            if (!(total > 0) && shares_.volume == 'V' && shares_.shape != 'V') poor = mark(c);
        }
        if (shares_.shape == 'V') {
            for (Index c = 0; c < k_; ++c)
                if (rank_of_component(c) < d_) poor = mark(c);
            return poor;
        }
        if (!some || (shares_.shape == 'E' && !every_axis())) return mark_all();
        return poor;
    }

    Index rank_of_component(Index c) {
        if (along_columns()) {
            Index rank = 0;
            for (Index j = 0; j < d_; ++j) rank += scatter(c)[j] > 0;
            return rank;
        }
        return own_axes() ? rank_in_units(scatter(c)) : numeric_rank(scatter(c), d_, room_);
    }

    // Whether there is scatter along every axis in at least one component; eigenvectors come largest first.
    bool every_axis() {
        if (along_columns()) {
            for (Index j = 0; j < d_; ++j) {
                bool some = false;
                for (Index c = 0; c < k_; ++c) some = some || scatter(c)[j] > 0;
                if (!some) return false;
            }
            return true;
        }
        if (proportional_or_equal()) {
            pool();
            return rank_in_units(pooled_) == d_;
        }
        for (Index c = 0; c < k_; ++c)
            if (numeric_rank(scatter(c), d_, room_) == d_) return true;
        return false;
    }

    void pool() {
        for (Index i = 0; i < d_ * d_; ++i) {
            pooled_[i] = 0;
            for (Index c = 0; c < k_; ++c) pooled_[i] += scatter(c)[i];
        }
    }

    // Rank of a matrix in units of the pooled scatter: for structures that do not depend on column units.
    Index rank_in_units(const double* matrix) {
        Room room = room_;
        double *unit = room.take(d_), *relative = room.take(d_ * d_);
        for (Index i = 0; i < d_; ++i) {
            unit[i] = 0;
            for (Index c = 0; c < k_; ++c) unit[i] += scatter(c)[i * (d_ + 1)];
            unit[i] = unit[i] > 0 ? 1 / std::sqrt(unit[i]) : 1.0;
        }
        for (Index i = 0; i < d_; ++i)
            for (Index j = 0; j < d_; ++j) relative[i * d_ + j] = matrix[i * d_ + j] * unit[i] * unit[j];
        return numeric_rank(relative, d_, room);
    }

    void solve() {
        double* const log_variance = result_.log_variance;
        const double* before = warm() ? log_volume_ : nullptr;
        if (along_columns()) return profile(shares_, sums_.scatter, before, log_variance, room_);
        if (own_axes()) {
            for (Index c = 0; c < k_; ++c) {
                const double* start = sums_.previous_axes ? sums_.previous_axes + c * d_ * d_ : nullptr;
                eigen_descending(scatter(c), d_, start, along_ + c * d_, result_.axes + c * d_ * d_, room_);
            }
            return profile(shares_, along_, before, log_variance, room_);
        }
        if (!proportional_or_equal()) return solve_common_axes();
        if (shares_.volume == 'E') {
            eigen_descending(pooled_, d_, sums_.previous_axes, along_, result_.axes, room_);
            const double total = sum_of(sums_.count, k_);
            for (Index i = 0; i < k_ * d_; ++i) log_variance[i] = log_ratio(along_[i % d_], total);
            return;
        }
        proportional(shares_, sums_.scatter, warm(), log_volume_, pooled_, room_);
        eigen_descending(pooled_, d_, sums_.previous_axes, along_, result_.axes, room_);
        for (Index i = 0; i < k_ * d_; ++i) {
            log_variance[i] = log_volume_[i / d_] + std::log(along_[i % d_]);
            if (__builtin_isnan(log_variance[i])) log_variance[i] = -infinity;
        }
        keep_if_worse();
    }

    // VEE: what there was before where rounding has made it worse.
    void keep_if_worse() {
        if (sums_.previous_axes == nullptr) return;
        Room room = room_;
        double* old_along = room.take(k_ * d_);
        scatter_along(sums_.scatter, result_.axes, k_, d_, along_, room);
        scatter_along(sums_.scatter, sums_.previous_axes, k_, d_, old_along, room);
        const double cost = cost_along(shares_, along_, result_.log_variance);
        if (!(cost_along(shares_, old_along, sums_.previous_log_variance) < cost)) return;
        copy_numbers(sums_.previous_axes, d_ * d_, result_.axes);
        copy_numbers(sums_.previous_log_variance, k_ * d_, result_.log_variance);
    }

    // EVE, VVE: the new axes, or the old ones where rounding has made the new ones worse.
    void solve_common_axes() {
        Room room = room_;
        double *old_along = room.take(k_ * d_), *old_log_variance = room.take(k_ * d_);
        if (sums_.previous_axes == nullptr) {
            AxesSearch(shares_, sums_.scatter, room).run(result_.axes);
        } else {
            copy_numbers(sums_.previous_axes, d_ * d_, result_.axes);
            sweep_axes(shares_, sums_.scatter, result_.axes, room);
        }
        scatter_along(sums_.scatter, result_.axes, k_, d_, along_, room);
        profile(shares_, along_, nullptr, result_.log_variance, room);
        if (sums_.previous_axes == nullptr) return;
        scatter_along(sums_.scatter, sums_.previous_axes, k_, d_, old_along, room);
        profile(shares_, old_along, nullptr, old_log_variance, room);
        const double cost = cost_along(shares_, along_, result_.log_variance);
        if (!(cost_along(shares_, old_along, old_log_variance) < cost)) return;
        copy_numbers(sums_.previous_axes, d_ * d_, result_.axes);
        copy_numbers(old_log_variance, k_ * d_, result_.log_variance);
    }

    // Least variance in units of the table's column variances below the limit; marks the components.
    bool test_singular() {
        for (Index j = 0; j < d_; ++j)
            if (!__builtin_isfinite(sums_.column_variances[j]) || !(sums_.column_variances[j] > 0)) return mark_all();
        bool poor = false;
        for (Index c = 0; c < k_; ++c) {
            bool all = true;
            for (Index j = 0; j < d_; ++j) all = all && __builtin_isfinite(result_.log_variance[c * d_ + j]);
            if ((!all || !(most_precise(c) <= 1 / singular)) && mark(c)) poor = true;
        }
        return poor;
    }

    // The largest eigenvalue of the inverse covariance in units of the table, or a bound on the safe side of
    // the limit: the trace is at least that eigenvalue and at most d times it.
    double most_precise(Index c) {
        Room room = room_;
        const double *variances = sums_.column_variances, *logs = result_.log_variance + c * d_;
        double trace = 0, most = 0;
        if (along_columns()) {
            for (Index j = 0; j < d_; ++j) most = std::fmax(most, variances[j] * std::exp(-logs[j]));
            return most;
        }
        const double* axes = result_.axes + (own_axes() ? c * d_ * d_ : 0);
        double *precision = room.take(d_), *half = room.take(d_ * d_), *inverse = room.take(d_ * d_);
        for (Index j = 0; j < d_; ++j) precision[j] = std::exp(-logs[j]);
        for (Index i = 0; i < d_; ++i) {
            double row = 0;
            for (Index j = 0; j < d_; ++j) row += axes[i * d_ + j] * axes[i * d_ + j] * precision[j];
            trace += variances[i] * row;
        }
        if (trace <= 1 / singular || !(trace <= static_cast<double>(d_) * 1.01 / singular)) return trace;
        for (Index i = 0; i < d_; ++i)
            for (Index j = 0; j < d_; ++j) half[i * d_ + j] = axes[i * d_ + j] * std::sqrt(precision[j] * variances[i]);
        for (Index i = 0; i < d_; ++i)
            for (Index j = 0; j < d_; ++j) inverse[i * d_ + j] = dot(half + i * d_, half + j * d_, d_);
        double *values = room.take(d_), *vectors = room.take(d_ * d_);
        eigen_descending(inverse, d_, nullptr, values, vectors, room);
        return values[0];
    }

    const CovarianceSums& sums_;
    const CovarianceResult& result_;
    const Index k_, d_;
    const Shares shares_;
    double *const log_volume_, *const along_, *const pooled_;
    const Room room_;
};

inline CovarianceStatus update_covariance(const CovarianceSums& sums, const CovarianceResult& result, double* room) {
    return CovarianceStep(sums, result, Room{room}).run();
}

// Whitening (components, d, d) of log-variances (components, d) and axes, common or one for each. Room: 2 d d + d.
inline void whiten_all(const double* log_variance, const double* axes, bool common, Index components, Index d,
                       double* result, double* room) {
    for (Index c = 0; c < components; ++c)
        whiten(log_variance + c * d, common ? axes : axes + c * d * d, d, result + c * d * d, {room});
}

}  // namespace quick
}  // namespace
}  // namespace ilk

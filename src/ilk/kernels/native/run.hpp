// A whole run of EM over a complete table of some thousand rows: fitting/loop.py with families/gaussian.py,
// without prior, noise or trimming. There the order of the checks has its reasons.
#pragma once

#include <ctime>

#include "covariance.hpp"
#include "mixture.hpp"

namespace ilk {
namespace {
namespace quick {

constexpr double log_two_pi = 1.8378770664093453;

inline double seconds_now() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class MixtureRun {
public:
    MixtureRun(const RunTask& task, const RunState& state)
        : task_(task), state_(state), k_(task.components), d_(task.columns),
          along_columns_(task.letters.orientation == 'I'), common_axes_(task.letters.orientation == 'E'),
          tied_(common_axes_ && task.letters.shape == 'E' && task.letters.volume == 'E'), axes_size_(axes_size()),
          origin_(d_), count_(k_),
          shift_(k_ * d_), scatter_(k_ * per_component()), whiten_(k_ * per_component()), log_weight_(k_),
          new_mixing_(k_), new_mean_(k_ * d_), new_log_variance_(k_ * d_), new_axes_(axes_size_), poor_(k_),
          room_(covariance_room(k_, d_)) {}

    RunEnd run() {
        const double end = seconds_now() + task_.seconds;
        RunEnd result{RunReason::running, RunStatus::ok, 0, state_.cost};
        while (result.passes < task_.max_passes && (result.passes == 0 || seconds_now() < end)) {
            prepare();
            const double cost = pass();
            const RunStatus status = cost >= result.cost ? RunStatus::ok : update();
            const bool lower = !(cost >= result.cost);
            if (lower && task_.hard && (status == RunStatus::singular || vacant())) {
                result.reason = RunReason::vacant;  // the loop itself reopens components at the dearest rows
                return result;
            }
            state_.costs[result.passes++] = cost;
            if (!lower) {
                keep(state_.measured_mixing, state_.mixing, state_.measured_mean, state_.mean,
                     state_.measured_log_variance, state_.log_variance, state_.measured_axes, state_.axes);
                result.reason = RunReason::no_lower_cost;
                return result;
            }
            const double fall = result.cost - cost;
            result.cost = cost;
            keep(state_.mixing, state_.measured_mixing, state_.mean, state_.measured_mean, state_.log_variance,
                 state_.measured_log_variance, state_.axes, state_.measured_axes);
            if (status != RunStatus::ok) {
                result.status = status;
                result.reason = RunReason::degenerate;
                return result;
            }
            const bool unchanged = same();
            keep(new_mixing_, state_.mixing, new_mean_, state_.mean, new_log_variance_, state_.log_variance, new_axes_,
                 state_.axes);
            if (unchanged) result.reason = RunReason::nothing_changed;
            else if (fall <= task_.tolerance * std::fabs(cost)) result.reason = RunReason::tolerance;
            if (result.reason != RunReason::running) return result;
        }
        return result;
    }

private:
    Index per_component() const { return along_columns_ ? d_ : d_ * d_; }
    Index axes_size() const {
        return task_.letters.orientation == 'I' ? 0 : d_ * d_ * (task_.letters.orientation == 'V' ? k_ : 1);
    }

    // Sums under the memberships that the parameters give; returns the cost.
    double pass() {
        double cost = 0;
        const Table<double> table{task_.numbers, task_.rows, d_, d_, 1, 1.0, origin_, nullptr};
        const double* axes = common_axes_ && !tied_ ? state_.axes : nullptr;
        mixture_step<double>(table, task_.weight, {state_.mean, whiten_, log_weight_, k_, along_columns_, tied_, axes},
                             task_.hard, {infinity, 1.0}, {count_, shift_, scatter_, &cost});
        return cost;
    }

    void keep(const double* mixing, double* to_mixing, const double* mean, double* to_mean, const double* log_variance,
              double* to_log_variance, const double* axes, double* to_axes) const {
        copy_numbers(mixing, k_, to_mixing);
        copy_numbers(mean, k_ * d_, to_mean);
        copy_numbers(log_variance, k_ * d_, to_log_variance);
        copy_numbers(axes, axes_size_, to_axes);
    }

    // Whitening and log weights of the parameters.
    void prepare() {
        for (Index c = 0; c < k_; ++c) {
            const double share = state_.mixing[c] > 0 ? std::log(state_.mixing[c]) : -infinity;
            const double* logs = state_.log_variance + c * d_;
            log_weight_[c] = share - (sum_of(logs, d_) + static_cast<double>(d_) * log_two_pi) / 2;
        }
        if (along_columns_ || (common_axes_ && !tied_))
            for (Index i = 0; i < k_ * d_; ++i) whiten_[i] = std::exp(-state_.log_variance[i] / 2);
        else
            whiten_all(state_.log_variance, state_.axes, common_axes_, tied_ ? 1 : k_, d_, whiten_, room_);
    }

    // New parameters from the sums; the scatter becomes that about the new means.
    RunStatus update() {
        const double total = sum_of(count_, k_);
        bool gone = false;
        for (Index c = 0; c < k_; ++c) {
            gone = gone || (!task_.hard && count_[c] < vanished * total);
            new_mixing_[c] = task_.equal_mixing ? 1.0 / static_cast<double>(k_) : count_[c] / total;
            const double* shift = shift_ + c * d_;
            for (Index i = 0; i < d_; ++i) {
                const double away = count_[c] > 0 ? shift[i] / count_[c] : 0.0;
                new_mean_[c * d_ + i] = state_.mean[c * d_ + i] + away;
                double* scatter = scatter_ + (tied_ ? 0 : c) * per_component() + (along_columns_ ? 0 : i * d_);
                if (along_columns_) scatter[i] -= shift[i] * away;
                else
                    for (Index j = 0; j < d_; ++j) scatter[j] -= shift[j] * away;
                if (scatter[i] < 0) scatter[i] = 0;  // a constant column, but for rounding
            }
        }
        const CovarianceSums sums{task_.letters,        k_,           d_, count_, scatter_, state_.log_variance,
                                  along_columns_ ? nullptr : state_.axes, task_.column_variances};
        const CovarianceStatus found =
            update_covariance(sums, {new_log_variance_, new_axes_, poor_}, room_);
        if (gone) return RunStatus::vanished;
        return found == CovarianceStatus::ok ? RunStatus::ok : RunStatus::singular;
    }

    bool vacant() const {
        for (Index c = 0; c < k_; ++c)
            if (count_[c] == 0) return true;
        return false;
    }

    bool same() const {
        for (Index c = 0; c < k_; ++c)
            if (new_mixing_[c] != state_.mixing[c]) return false;
        for (Index i = 0; i < k_ * d_; ++i)
            if (new_mean_[i] != state_.mean[i] || new_log_variance_[i] != state_.log_variance[i]) return false;
        return true;
    }

    const RunTask& task_;
    const RunState& state_;
    const Index k_, d_;
    const bool along_columns_, common_axes_;
    const bool tied_;  // one covariance for all: their scatter is the first one, and the others are zero
    const Index axes_size_;
    Scratch<double> origin_, count_, shift_, scatter_, whiten_, log_weight_;
    Scratch<double> new_mixing_, new_mean_, new_log_variance_, new_axes_;
    Scratch<std::uint8_t> poor_;
    Scratch<double> room_;
};

inline RunEnd mixture_run(const RunTask& task, const RunState& state) { return MixtureRun(task, state).run(); }

}  // namespace quick
}  // namespace
}  // namespace ilk

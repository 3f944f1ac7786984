// A run of the assorted family over a table of one block: the passes of fitting/loop.py, in its order, without coming
// back to Python.
#pragma once

#include <chrono>

#include "sharing.hpp"

namespace ilk {

struct SharedTask {
    Table<double> table;
    Levels levels;
    const double* weight;  // null: every row counts one
    ColumnCosts costs;
    SwitchCosts switches;
    Index count;
    double constants[4];  // of the penalty, in the order in which it is added up: columns, mixing, clusters, treatment
    bool hard;
    double vanished, tolerance, seconds;
    Index max_passes;
};

// Parameters with what is known of their penalty.
struct SharedState {
    SharedParameters at;
    SharedTerms terms;
};

enum class SharedReason { running, no_lower_cost, nothing_changed, tolerance, left };

struct SharedEnd {
    SharedReason reason;
    Index passes;
    double cost;
};

namespace {

using ProductStep = void (*)(const Table<double>&, Levels, const double*, Product, bool, Trim, ProductSums);

class SharedRun {
public:
    SharedRun(const SharedTask& task, ProductStep step)
        : task_(task), step_(step), k_(task.count), numbers_(k_ * task.costs.numbers), levels_(k_ * task.costs.levels()),
          size_(k_), moments_(5 * numbers_), counts_(levels_), new_mixing_(2 * k_), new_numbers_(4 * numbers_),
          new_levels_(levels_), new_group_(k_ * task.costs.columns()) {}

    // `now` are the parameters to go on from, `measured` the last whose cost is known; both are brought up to date.
    SharedEnd run(SharedState& now, SharedState& measured, double cost, double* costs) {
        const auto begin = std::chrono::steady_clock::now();
        SharedEnd end{SharedReason::running, 0, cost};
        while (end.passes < task_.max_passes) {
            if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >= task_.seconds) break;
            const double reached = pass(now.at) + penalty(now.terms);
            if (!std::isfinite(reached) || gone()) {  // for the loop to judge, or to drop clusters
                end.reason = SharedReason::left;
                break;
            }
            costs[end.passes++] = reached;
            if (reached >= end.cost) {
                copy(measured, now);
                end.reason = SharedReason::no_lower_cost;
                break;
            }
            const SharedState next{fresh(), update(now.at)};
            const double fall = end.cost - reached;
            const bool unchanged = same(now.at);
            copy(now, measured);
            end.cost = reached;
            copy(next, now);
            if (unchanged) end.reason = SharedReason::nothing_changed;
            else if (fall <= task_.tolerance * std::fabs(reached)) end.reason = SharedReason::tolerance;
            if (end.reason != SharedReason::running) break;
        }
        return end;
    }

private:
    double pass(const SharedParameters& at) {
        double cost = 0, entropy = 0;
        const Product product{at.log_mixing, at.mean, at.precision, at.log_norm, at.log_level, k_};
        step_(task_.table, task_.levels, task_.weight, product, task_.hard, {unbounded, 1.0},
              {size_.data(), observed(), first(), second(), counts_.data(), &cost, &entropy});
        return cost;
    }

    // As Assorted.penalty adds it up.
    double penalty(const SharedTerms& terms) const {
        const SwitchCosts& switches = task_.switches;
        double coded = switches.coins;
        if (switches.sparse) coded = k_ > 1 ? std::min(coded, switches.sparse[terms.relevant]) : 0.0;
        double total = terms.prior + terms.groups + task_.constants[0] + coded;
        for (int place = 1; place < 4; ++place) total += task_.constants[place];
        return total;
    }

    bool gone() const {
        return k_ > 1 && std::any_of(size_.begin(), size_.end(), [&](double size) { return size < task_.vanished; });
    }

    // New parameters, in the room for them, from the sums of the last pass.
    SharedTerms update(const SharedParameters& at) {
        double *mean = moments_.data() + 3 * numbers_, *scatter = moments_.data() + 4 * numbers_;
        for (Index place = 0; place < numbers_; ++place) {
            const double away = observed()[place] > 0 ? first()[place] / observed()[place] : 0.0;
            mean[place] = at.mean[place] + away;
            scatter[place] = std::max(second()[place] - first()[place] * away, 0.0);
        }
        std::copy_n(at.group, new_group_.size(), new_group_.data());
        return shared_update(task_.costs, {k_, size_.data(), observed(), mean, scatter, counts_.data()},
                             task_.switches, fresh());
    }

    SharedParameters fresh() {
        double* each = new_numbers_.data();
        return {new_group_.data(), new_mixing_.data(), new_mixing_.data() + k_, each, each + numbers_,
                each + 2 * numbers_, each + 3 * numbers_, new_levels_.data()};
    }

    bool same(const SharedParameters& at) const {
        return std::equal(new_mixing_.begin(), new_mixing_.begin() + k_, at.mixing) &&
               std::equal(new_numbers_.begin(), new_numbers_.begin() + numbers_, at.mean) &&
               std::equal(new_levels_.begin(), new_levels_.end(), at.log_level);
    }

    void copy(const SharedState& from, SharedState& to) const {
        std::copy_n(from.at.group, new_group_.size(), to.at.group);
        for (const auto part : {&SharedParameters::mixing, &SharedParameters::log_mixing})
            std::copy_n(from.at.*part, k_, to.at.*part);
        for (const auto part : {&SharedParameters::mean, &SharedParameters::variance, &SharedParameters::precision,
                                &SharedParameters::log_norm})
            std::copy_n(from.at.*part, numbers_, to.at.*part);
        std::copy_n(from.at.log_level, levels_, to.at.log_level);
        to.terms = from.terms;
    }

    double* observed() { return moments_.data(); }
    double* first() { return moments_.data() + numbers_; }
    double* second() { return moments_.data() + 2 * numbers_; }

    const SharedTask& task_;
    const ProductStep step_;
    const Index k_, numbers_, levels_;
    std::vector<double> size_, moments_, counts_;  // moments: observed, first, second; mean and scatter made of them
    std::vector<double> new_mixing_, new_numbers_, new_levels_;
    std::vector<Index> new_group_;
};

}  // namespace
}  // namespace ilk

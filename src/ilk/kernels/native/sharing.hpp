// The update of the assorted family: which clusters share a distribution in each column, and what it is. From sums of
// clusters alone, so it is compiled once, without wider instructions; assorted/sharing.py says what it means.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "interface.hpp"

namespace ilk {

// What costs need to know of the columns: numbers first, then categories.
struct ColumnCosts {
    Index numbers, categories;
    const Index* start;  // (categories + 1,)
    const double *floor, *share, *penalty;
    double spread_prior, level_prior;

    Index columns() const { return numbers + categories; }
    Index levels() const { return start[categories]; }
};

// Sums of the cells of each cluster: weight, mean and scatter about it (count, numbers), counts (count, levels); and
// the weight of its rows (count,).
struct ClusterSums {
    Index count;
    const double *size, *weight, *mean, *scatter, *counts;
};

// What the switches cost: a coin for each, or the relevant columns named (columns + 1,); null where nothing is shared.
struct SwitchCosts {
    double coins;
    const double* sparse;
};

// Where the parameters go: (count,) twice, (count, numbers) four times, (count, levels); the groups (count, columns)
// hold the previous ones at first, or -1.
struct SharedParameters {
    Index* group;
    double *mixing, *log_mixing, *mean, *variance, *precision, *log_norm, *log_level;
};

struct SharedTerms {
    double prior, groups;  // minus the log prior, and the penalties of the groups
    Index relevant;        // columns with more than one group
};

namespace {

constexpr double log_2_pi = 1.8378770664093454836, unbounded = std::numeric_limits<double>::infinity();
constexpr Index most_exhaustive = 6;  // as in assorted/sharing.py

inline double x_log_x(double x) { return x > 0 ? x * std::log(x) : 0.0; }

// A number, known by weight, mean and scatter.
class NumberColumn {
public:
    NumberColumn(const ColumnCosts& costs, const ClusterSums& sums, Index column)
        : prior_(costs.spread_prior), floor_(costs.floor[column]), width(3) {
        own.resize(sums.count * width);
        for (Index cluster = 0; cluster < sums.count; ++cluster) {
            const Index place = cluster * costs.numbers + column;
            own[3 * cluster] = sums.weight[place];
            own[3 * cluster + 1] = sums.mean[place];
            own[3 * cluster + 2] = sums.scatter[place];
        }
    }

    void join(const double* one, const double* other, double* both) const {
        const double weight = one[0] + other[0], share = weight > 0 ? other[0] / weight : 0.0, away = other[1] - one[1];
        both[2] = one[2] + other[2] + one[0] * share * away * away;
        both[1] = one[1] + away * share;
        both[0] = weight;
    }

    double variance(const double* sum) const {
        return std::max((sum[2] + prior_) / std::max(sum[0] + prior_, 1e-300), floor_);
    }

    double cost(const double* sum) const {
        const double s2 = variance(sum), total = sum[0] + prior_, spread = sum[2] + prior_;
        return sum[0] / 2 * log_2_pi + (total * std::log(s2) + spread / s2 - prior_) / 2;
    }

private:
    double prior_, floor_;

public:
    Index width;
    std::vector<double> own;  // (clusters, width)

    const double* of(Index cluster) const { return own.data() + cluster * width; }
};

// A category, known by the counts of its levels.
class LevelColumn {
public:
    LevelColumn(const ColumnCosts& costs, const ClusterSums& sums, Index category)
        : prior_(costs.level_prior), share_(costs.share + costs.start[category]),
          width(costs.start[category + 1] - costs.start[category]) {
        own.resize(sums.count * width);
        for (Index cluster = 0; cluster < sums.count; ++cluster)
            std::copy_n(sums.counts + cluster * costs.levels() + costs.start[category], width, own.data() + cluster * width);
        for (Index level = 0; level < width; ++level) constant_ += prior_ * x_log_x(share_[level]);
    }

    void join(const double* one, const double* other, double* both) const {
        for (Index level = 0; level < width; ++level) both[level] = one[level] + other[level];
    }

    double cost(const double* sum) const {
        double total = 0, terms = 0;
        for (Index level = 0; level < width; ++level) {
            const double heft = sum[level] + prior_ * share_[level];
            total += heft;
            terms += x_log_x(heft);
        }
        return x_log_x(total) - terms + constant_;
    }

    // Log shares; what the prior costs.
    double log_shares(const double* sum, double* result) const {
        double total = 0, gap = 0;
        for (Index level = 0; level < width; ++level) total += sum[level] + prior_ * share_[level];
        for (Index level = 0; level < width; ++level) {
            const double heft = sum[level] + prior_ * share_[level];
            result[level] = std::log(total > 0 ? heft / total : share_[level]);
            if (share_[level] > 0) gap += x_log_x(share_[level]) - share_[level] * result[level];
        }
        return prior_ * gap;
    }

private:
    double prior_, constant_ = 0.0;
    const double* share_;

public:
    Index width;
    std::vector<double> own;

    const double* of(Index cluster) const { return own.data() + cluster * width; }
};

// A column's cost with one group, the least with more, and who shares the background then.
struct Choice {
    double one, many;
    std::vector<char> inside;
};

// What the clusters outside a background, each alone, and the background cost together.
struct Alone {
    std::vector<double> cost;
    double penalty, sum = 0.0;

    template <class Column>
    Alone(const Column& column, Index count, double penalty) : cost(count), penalty(penalty) {
        for (Index cluster = 0; cluster < count; ++cluster) {
            cost[cluster] = column.cost(column.of(cluster));
            sum += cost[cluster];
        }
    }

    Index count() const { return static_cast<Index>(cost.size()); }
    double all() const { return sum + count() * penalty; }
};

// Every set of two or more clusters as the background, and none; of equal ones the first, but the previous before all.
template <class Column>
Choice every_background(const Column& column, const Alone& alone, const std::vector<char>* previous) {
    const Index count = alone.count(), sets = Index(1) << count, width = column.width;
    std::vector<double> sums(sets * width), term(sets), within(sets);
    for (Index set = 1; set < sets; ++set) {
        Index cluster = count - 1;  // the highest member last, as the twin adds them
        while (!(set >> cluster & 1)) --cluster;
        const Index rest = set ^ (Index(1) << cluster);
        const double* own = column.of(cluster);
        if (rest) column.join(sums.data() + rest * width, own, sums.data() + set * width);
        else std::copy_n(own, width, sums.data() + set * width);
        within[set] = within[rest] + alone.cost[cluster];
        term[set] = rest ? column.cost(sums.data() + set * width) : alone.cost[cluster];
    }
    const auto total = [&](Index set) {
        Index size = 0;
        for (Index rest = set; rest; rest &= rest - 1) ++size;
        return term[set] + within[sets - 1 - set] + (count - size + 1) * alone.penalty;
    };
    Index best = 0;
    double least = alone.all();
    for (Index set = 3; set < sets - 1; ++set)
        if (set & (set - 1))
            if (const double value = total(set); value < least) least = value, best = set;
    if (previous) {
        Index before = 0;
        for (Index cluster = 0; cluster < count; ++cluster) before |= Index((*previous)[cluster]) << cluster;
        const double value = before ? total(before) : alone.all();
        if (before != sets - 1 && value <= least) least = value, best = before;
    }
    Choice choice{term[sets - 1] + alone.penalty, least, std::vector<char>(count)};
    for (Index cluster = 0; cluster < count; ++cluster) choice.inside[cluster] = best >> cluster & 1;
    return choice;
}

// A background that grows by the cheapest cluster.
template <class Column>
class Background {
public:
    Background(const Column& column, const Alone& alone)
        : inside(alone.count()), column_(column), alone_(alone), sum_(column.width), trial_(column.width),
          outside_(alone.sum) {}

    double with(Index cluster) {  // its cost with one cluster more
        column_.join(sum_.data(), column_.of(cluster), trial_.data());
        return column_.cost(trial_.data());
    }

    void add(Index cluster) {
        const double* own = column_.of(cluster);
        if (size == 0) std::copy_n(own, column_.width, sum_.data());
        else column_.join(sum_.data(), own, sum_.data());
        inside[cluster] = 1;
        outside_ -= alone_.cost[cluster];
        ++size;
    }

    Index cheapest() {
        double least = unbounded;
        Index best = -1;
        for (Index cluster = 0; cluster < alone_.count(); ++cluster) {
            if (inside[cluster]) continue;
            const double rise = with(cluster) - alone_.cost[cluster];
            if (best < 0 || rise < least) least = rise, best = cluster;
        }
        return best;
    }

    double own() const { return column_.cost(sum_.data()); }
    double total() const { return own() + outside_ + (alone_.count() - size + 1) * alone_.penalty; }

    std::vector<char> inside;
    Index size = 0;

private:
    const Column& column_;
    const Alone& alone_;
    std::vector<double> sum_, trial_;
    double outside_;
};

// The cheapest pair, then always the cheapest cluster to add to it; the previous background; none.
template <class Column>
Choice few_backgrounds(const Column& column, const Alone& alone, const std::vector<char>* previous) {
    const Index count = alone.count(), width = column.width;
    Background<Column> background(column, alone);
    std::vector<double> both(width);
    double rise = unbounded;
    Index one = 0, other = 1;
    for (Index a = 0; a < count; ++a)
        for (Index b = a + 1; b < count; ++b) {
            column.join(column.of(a), column.of(b), both.data());
            const double value = column.cost(both.data()) - alone.cost[a] - alone.cost[b];
            if (value < rise) rise = value, one = a, other = b;
        }
    background.add(one);
    background.add(other);
    Choice choice{0.0, alone.all(), std::vector<char>(count)};
    while (background.size < count) {
        if (const double value = background.total(); value < choice.many)
            choice.many = value, choice.inside = background.inside;
        background.add(background.cheapest());
    }
    choice.one = background.own() + alone.penalty;
    if (previous && !std::all_of(previous->begin(), previous->end(), [](char in) { return in; })) {
        Background<Column> before(column, alone);
        for (Index cluster = 0; cluster < count; ++cluster)
            if ((*previous)[cluster]) before.add(cluster);
        const double value = before.size ? before.total() : alone.all();
        if (value <= choice.many) choice.many = value, choice.inside = *previous;
    }
    return choice;
}

// Calls visit(column, number of the column, place) for all columns; a place is where its parameters begin.
template <class Visit>
void for_each_column(const ColumnCosts& costs, const ClusterSums& sums, Visit visit) {
    for (Index column = 0; column < costs.numbers; ++column) visit(NumberColumn(costs, sums, column), column);
    for (Index category = 0; category < costs.categories; ++category)
        visit(LevelColumn(costs, sums, category), costs.numbers + category);
}

// The groups of all columns: with coins every column that gains by more than one, with the other code those that gain
// most.
inline void find_groups(const ColumnCosts& costs, const ClusterSums& sums, const SwitchCosts& switches, Index* group) {
    const Index count = sums.count, columns = costs.columns();
    std::vector<double> gain(columns);
    std::vector<Index> found(count * columns);
    const bool has_previous = columns > 0 && group[0] >= 0;
    for_each_column(costs, sums, [&](const auto& column, Index d) {
        std::vector<char> before(has_previous ? count : 0);
        for (Index a = 0; has_previous && a < count; ++a)
            for (Index b = 0; b < count; ++b)
                if (a != b && group[a * columns + d] == group[b * columns + d]) before[a] = 1;
        const Alone alone(column, count, costs.penalty[d]);
        const auto* previous = has_previous ? &before : nullptr;
        const Choice choice = count <= most_exhaustive ? every_background(column, alone, previous)
                                                       : few_backgrounds(column, alone, previous);
        gain[d] = choice.one - choice.many;
        Index lead = -1;
        for (Index a = 0; a < count; ++a) {
            if (choice.inside[a] && lead < 0) lead = a;
            found[a * columns + d] = choice.inside[a] ? lead : a;
        }
    });
    std::vector<Index> order(columns);
    for (Index d = 0; d < columns; ++d) order[d] = d;
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return gain[a] > gain[b]; });
    double by_coins = 0.0, sum = 0.0, reached = -switches.sparse[0];
    Index relevant = 0;
    for (Index q = 1; q <= columns; ++q) {
        sum += gain[order[q - 1]];
        if (sum - switches.sparse[q] > reached) reached = sum - switches.sparse[q], relevant = q;
    }
    for (const double value : gain) by_coins += value > 0 ? value : 0.0;
    if (!(reached > by_coins - switches.coins))
        relevant = std::count_if(gain.begin(), gain.end(), [](double value) { return value > 0; });
    for (Index q = 0; q < columns; ++q)
        for (Index a = 0; a < count; ++a)
            group[a * columns + order[q]] = q < relevant ? found[a * columns + order[q]] : 0;
}

}  // namespace

// The parameters of least cost; every cluster alone where nothing is shared.
inline SharedTerms shared_update(const ColumnCosts& costs, const ClusterSums& sums, const SwitchCosts& switches,
                                 const SharedParameters& out) {
    const Index count = sums.count, columns = costs.columns(), levels = costs.levels();
    if (switches.sparse && count > 1) find_groups(costs, sums, switches, out.group);
    else
        for (Index place = 0; place < count * columns; ++place) out.group[place] = place / columns;
    double rows = 0.0;
    for (Index cluster = 0; cluster < count; ++cluster) rows += sums.size[cluster];
    for (Index cluster = 0; cluster < count; ++cluster) {
        out.mixing[cluster] = sums.size[cluster] / rows;
        out.log_mixing[cluster] = std::log(out.mixing[cluster]);
    }
    SharedTerms terms{0.0, 0.0, 0};
    std::vector<double> pool;
    for_each_column(costs, sums, [&](const auto& column, Index d) {
        const auto group_of = [&](Index cluster) { return out.group[cluster * columns + d]; };
        bool apart = false;
        for (Index lead = 0; lead < count; ++lead) {
            if (group_of(lead) != lead) continue;
            apart |= lead > 0;
            pool.assign(column.of(lead), column.of(lead) + column.width);
            for (Index other = lead + 1; other < count; ++other)
                if (group_of(other) == lead) column.join(pool.data(), column.of(other), pool.data());
            terms.groups += costs.penalty[d];
            if constexpr (requires { column.variance(pool.data()); }) {
                const double s2 = column.variance(pool.data()), log_s2 = std::log(s2);
                terms.prior += (log_s2 + 1.0 / s2 - 1.0) * costs.spread_prior / 2;
                for (Index cluster = lead; cluster < count; ++cluster) {
                    if (group_of(cluster) != lead) continue;
                    const Index place = cluster * costs.numbers + d;
                    out.mean[place] = pool[0] > 0 ? pool[1] : column.own[cluster * column.width + 1];
                    out.variance[place] = s2;
                    out.precision[place] = 1.0 / s2;
                    out.log_norm[place] = -(log_2_pi + log_s2) / 2;
                }
            } else {
                double* first = out.log_level + lead * levels + costs.start[d - costs.numbers];
                terms.prior += column.log_shares(pool.data(), first);
                for (Index cluster = lead + 1; cluster < count; ++cluster)
                    if (group_of(cluster) == lead) std::copy_n(first, column.width, first + (cluster - lead) * levels);
            }
        }
        terms.relevant += apart;
    });
    return terms;
}

}  // namespace ilk

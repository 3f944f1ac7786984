// The Python face of the kernels of Gaussian mixtures; see module.cpp.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "arrays.hpp"
#include "parts.hpp"

using namespace nanobind::literals;

namespace ilk::face {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
const double log_tiny = std::log(std::numeric_limits<double>::min());

Components components_of(const Matrix& mean, const Numbers& whiten, const Vector& log_weight, Index columns) {
    const Index count = size_of(mean, 0);
    require(size_of(mean, 1) == columns, "means must have the columns of the table");
    require(count > 0, "at least one component is needed");
    require(size_of(log_weight, 0) == count, "log_weight must hold one number per component");
    const bool diagonal = whiten.ndim() == 2;
    const bool tied = !diagonal && count > 1 && size_of(whiten, 0) == 1;
    require((diagonal || whiten.ndim() == 3) && size_of(whiten, 0) == (tied ? 1 : count) &&
                size_of(whiten, 1) == columns && (diagonal || size_of(whiten, 2) == columns),
            "whiten must hold a matrix or a row of numbers per component, or one matrix for all");
    return {mean.data(), whiten.data(), log_weight.data(), count, diagonal, tied};
}

// Where the sums go; those of one part lie in a row of numbers, its cost as a pair.
struct Sums {
    const Filled<double, 1>& count;
    const Filled<double, 2>& shift;
    const FilledNumbers& scatter;
    double* cost;  // (2,)

    Index size() const { return static_cast<Index>(count.size() + shift.size() + scatter.size()); }
    MixtureStep part(double* sums, double* part_cost) const {
        return {sums, sums + count.size(), sums + count.size() + shift.size(), part_cost};
    }
    void fill(const double* total) const {
        total = copied(total, count);
        total = copied(total, shift);
        copied(total, scatter);
    }

private:
    static const double* copied(const double* from, const auto& to) {
        std::copy_n(from, to.size(), to.data());
        return from + to.size();
    }
};

// `gather` fills the sums of one part, given its table, the number of its first row and where they go.
template <class Number, class Gather>
void add_parts(const Table<Number>& table, Parts parts, const Sums& out, Gather gather) {
    const Index slots = parts.slots(table.rows), size = out.size();
    std::vector<double> sums(slots * size), costs(2 * slots), total(size);
    const auto work = [&](const Table<Number>& block, Index first, Index slot) {
        gather(block, first, out.part(&sums[slot * size], &costs[2 * slot]));
    };
    const auto fold = [&](Index part, Index slot) {
        const double *more = &sums[slot * size], *cost = &costs[2 * slot];
        if (part == 0) {
            std::copy_n(more, size, total.data());
            std::copy_n(cost, 2, out.cost);
        } else {
            for (Index place = 0; place < size; ++place) total[place] += more[place];
            chosen->add_pairs(out.cost, cost, 1, out.cost);
        }
    };
    share_parts(table, parts, work, fold);
    out.fill(total.data());
}

template <class Number>
void mixture_step(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
                  const std::optional<Vector>& weight, const Matrix& mean, const Numbers& whiten,
                  const Vector& log_weight, bool hard, double limit, double share_at_limit, Index part_rows,
                  Index threads, const Filled<double, 1>& count, const Filled<double, 2>& shift,
                  const FilledNumbers& scatter, const Filled<double, 1>& cost) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const auto components = components_of(mean, whiten, log_weight, table.columns);
    require(!weight || size_of(*weight, 0) == table.rows, "weight must hold one number per row");
    require(size_of(count, 0) == components.count && size_of(shift, 0) == components.count &&
                size_of(shift, 1) == table.columns && scatter.size() == whiten.size() && cost.shape(0) == 2,
            "the arrays for the sums have the wrong shape");
    const double* weights = weight ? weight->data() : nullptr;
    const Sums out{count, shift, scatter, cost.data()};
    add_parts(table, {part_rows, threads}, out, [&](const Table<Number>& block, Index first, MixtureStep to) {
        const double* mine = weights ? weights + first : nullptr;
        chosen_for<Number>().mixture_step(block, mine, components, hard, {limit, share_at_limit}, to);
    });
}

template <class Number>
void mixture_scores(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
                    const Matrix& mean, const Numbers& whiten, const Vector& log_weight,
                    const Filled<double, 2>& scores) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const auto components = components_of(mean, whiten, log_weight, table.columns);
    require(size_of(scores, 0) == table.rows && size_of(scores, 1) == components.count,
            "the array for the scores has the wrong shape");
    nb::gil_scoped_release released;
    chosen_for<Number>().mixture_scores(table, components, scores.data());
}

template <class Number>
void mixture_labels(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
                    const Matrix& mean, const Numbers& whiten, const Vector& log_weight, bool hard,
                    const Filled<std::int32_t, 1>& labels, const Filled<double, 1>& top,
                    const Filled<double, 1>& cost) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const auto components = components_of(mean, whiten, log_weight, table.columns);
    require(size_of(labels, 0) == table.rows && size_of(top, 0) == table.rows && size_of(cost, 0) == table.rows,
            "the arrays for labels, scores and cost must hold one number per row");
    nb::gil_scoped_release released;
    chosen_for<Number>().mixture_labels(table, components, hard, {labels.data(), top.data(), cost.data()});
}

// The sum of weight * log of the largest membership: the score of the best component and the cost of the row, that is,
// not a number where no component is possible.
double certainty_of(const double* top, const double* cost, const double* weight, Index rows) {
    constexpr Index lanes = 8;
    double sums[lanes] = {};
    for (Index first = 0; first < rows; first += lanes)
        for (Index lane = 0; lane < std::min(lanes, rows - first); ++lane) {
            const double sure = top[first + lane] + cost[first + lane];
            const double held = sure > log_tiny ? std::min(sure, 0.0) : log_tiny;
            sums[lane] += weight ? weight[first + lane] * held : held;
        }
    return std::accumulate(sums, sums + lanes, 0.0);
}

// The end of a fit: labels (the noise, if there is one, is the last component and becomes -1), weight and first row of
// each label, the cost, and the sum of weight * log of the largest membership.
template <class Number>
void mixture_ending(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
                    const std::optional<Vector>& weight, const Matrix& mean, const Numbers& whiten,
                    const Vector& log_weight, bool hard, Index part_rows, Index threads,
                    const Filled<std::int32_t, 1>& labels, const Filled<double, 1>& sizes,
                    const Filled<Index, 1>& first_rows, const Filled<double, 1>& cost,
                    const Filled<double, 1>& certainty) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const auto components = components_of(mean, whiten, log_weight, table.columns);
    const Index n_labels = size_of(sizes, 0);
    require(!weight || size_of(*weight, 0) == table.rows, "weight must hold one number per row");
    require(size_of(labels, 0) == table.rows && n_labels <= components.count && size_of(first_rows, 0) == n_labels &&
                cost.shape(0) == 2 && certainty.shape(0) == 1,
            "the arrays for the labels have the wrong shape");
    struct Slot {
        std::vector<double> sizes;
        std::vector<Index> first_rows;
        double total[2], certainty;
    };
    const Parts parts(part_rows, threads);
    std::vector<Slot> slots(parts.slots(table.rows));
    const double* weights = weight ? weight->data() : nullptr;
    const auto work = [&](const Table<Number>& block, Index first, Index number) {
        thread_local std::vector<double> top, row_cost;  // kept: memory that is new to the process is slow
        top.resize(block.rows);
        row_cost.resize(block.rows);
        Slot& slot = slots[number];
        slot.sizes.resize(n_labels);
        slot.first_rows.resize(n_labels);
        std::int32_t* mine = labels.data() + first;
        const double* own = weights ? weights + first : nullptr;
        chosen_for<Number>().mixture_labels(block, components, false, {mine, top.data(), row_cost.data()});
        slot.certainty = certainty_of(top.data(), row_cost.data(), own, block.rows);
        for (Index row = 0; hard && row < block.rows; ++row) row_cost[row] = -top[row];
        for (Index row = 0; row < block.rows; ++row) mine[row] = mine[row] < n_labels ? mine[row] : -1;
        chosen->tally(mine, row_cost.data(), own, block.rows, n_labels, {infinite, 1.0},
                      {slot.sizes.data(), slot.first_rows.data(), slot.total});
        for (Index& row : slot.first_rows)
            if (row < block.rows) row += first;
    };
    std::fill_n(sizes.data(), n_labels, 0.0);
    std::fill_n(first_rows.data(), n_labels, std::numeric_limits<Index>::max());
    std::fill_n(cost.data(), 2, 0.0);
    *certainty.data() = 0.0;
    share_parts(table, parts, work, [&](Index, Index number) {
        const Slot& slot = slots[number];
        for (Index label = 0; label < n_labels; ++label) {
            sizes.data()[label] += slot.sizes[label];
            first_rows.data()[label] = std::min(first_rows.data()[label], slot.first_rows[label]);
        }
        chosen->add_pairs(cost.data(), slot.total, 1, cost.data());
        *certainty.data() += slot.certainty;
    });
}

// Under memberships (rows, components), under a label per row, or, of one component, of all rows.
template <class Number>
void mixture_gather(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
                    const std::optional<Vector>& weight, const Matrix& mean, const std::optional<Matrix>& membership,
                    const std::optional<Labels>& labels, Index part_rows, Index threads,
                    const Filled<double, 1>& count, const Filled<double, 2>& shift, const FilledNumbers& scatter) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const Index components = size_of(mean, 0);
    const bool diagonal = scatter.ndim() == 2;
    const bool tied = scatter.ndim() == 3 && components > 1 && scatter.shape(0) == 1;
    require(components > 0 && size_of(mean, 1) == table.columns, "means must have the columns of the table");
    require(!weight || size_of(*weight, 0) == table.rows, "weight must hold one number per row");
    require(!membership || (size_of(*membership, 0) == table.rows && size_of(*membership, 1) == components),
            "membership must hold one number per row and component");
    require(!labels || size_of(*labels, 0) == table.rows, "labels must hold one number per row");
    require(membership || labels || components == 1, "several components need memberships or labels");
    require(size_of(count, 0) == components && size_of(shift, 0) == components && size_of(shift, 1) == table.columns &&
                (diagonal || scatter.ndim() == 3) &&
                static_cast<Index>(scatter.size()) ==
                    (tied ? 1 : components) * table.columns * (diagonal ? 1 : table.columns),
            "the arrays for the sums have the wrong shape");
    const double* weights = weight ? weight->data() : nullptr;
    const Given given{membership ? membership->data() : nullptr, labels ? labels->data() : nullptr};
    const Components about{mean.data(), nullptr, nullptr, components, diagonal, tied};
    double no_cost[2];
    const Sums out{count, shift, scatter, no_cost};
    add_parts(table, {part_rows, threads}, out, [&](const Table<Number>& block, Index first, MixtureStep to) {
        const double* mine = weights ? weights + first : nullptr;
        const Given own{given.membership ? given.membership + first * components : nullptr,
                        given.labels ? given.labels + first : nullptr};
        chosen_for<Number>().mixture_gather(block, mine, about, own, to);
    });
}

void memberships(const Matrix& scores, bool hard, const Filled<double, 2>& membership,
                 const Filled<double, 1>& cost) {
    require(scores.shape(1) > 0, "at least one component is needed");
    require(membership.shape(0) == scores.shape(0) && membership.shape(1) == scores.shape(1) &&
                cost.shape(0) == scores.shape(0),
            "the arrays for memberships and cost have the wrong shape");
    nb::gil_scoped_release released;
    chosen->memberships(scores.data(), size_of(scores, 0), size_of(scores, 1), hard, membership.data(), cost.data());
}

Letters letters_of(const char* name) {
    require(std::strlen(name) == 3, "a structure has three letters");
    return {name[0], name[1], name[2]};
}

Index axes_size(Letters letters, Index components, Index columns) {
    return letters.orientation == 'I' ? 0 : columns * columns * (letters.orientation == 'V' ? components : 1);
}

int update_covariance(const char* structure, const Vector& count, const Numbers& scatter,
                      const std::optional<Matrix>& previous_log_variance, const std::optional<Numbers>& previous_axes,
                      const Vector& column_variances, const Filled<double, 2>& log_variance, const FilledNumbers& axes,
                      const Filled<std::uint8_t, 1>& poor) {
    const Letters letters = letters_of(structure);
    const Index components = size_of(count, 0), columns = size_of(column_variances, 0);
    const auto axes_numbers = static_cast<std::size_t>(axes_size(letters, components, columns));
    const Index each = letters.orientation == 'I' ? columns : columns * columns;
    require(static_cast<Index>(scatter.size()) == components * each, "scatter has the wrong shape");
    require(!previous_log_variance || previous_log_variance->size() == log_variance.size(),
            "the previous log-variances have the wrong shape");
    require(!previous_axes || previous_axes->size() == axes_numbers, "the previous axes have the wrong shape");
    require(size_of(log_variance, 0) == components && size_of(log_variance, 1) == columns &&
                axes.size() == axes_numbers && size_of(poor, 0) == components,
            "the arrays for the covariances have the wrong shape");
    const CovarianceSums sums{letters,       components,
                                   columns,       count.data(),
                                   scatter.data(), previous_log_variance ? previous_log_variance->data() : nullptr,
                                   previous_axes ? previous_axes->data() : nullptr, column_variances.data()};
    std::vector<double> room(chosen->covariance_room(components, columns));
    nb::gil_scoped_release released;
    return static_cast<int>(chosen->update_covariance(sums, {log_variance.data(), axes.data(), poor.data()}, room.data()));
}

void whiten_all(const Matrix& log_variance, const Numbers& axes, const Filled<double, 3>& result) {
    const Index components = size_of(log_variance, 0), columns = size_of(log_variance, 1);
    const bool common = axes.ndim() == 2;
    require(static_cast<Index>(axes.size()) == columns * columns * (common ? 1 : components) &&
                size_of(result, 0) == components && size_of(result, 1) == columns && size_of(result, 2) == columns,
            "the axes or the result have the wrong shape");
    std::vector<double> room(static_cast<std::size_t>((2 * columns + 1) * columns));
    nb::gil_scoped_release released;
    chosen->whiten_all(log_variance.data(), axes.data(), common, components, columns, result.data(), room.data());
}

nb::tuple mixture_run(const Matrix& numbers, const std::optional<Vector>& weight, const char* structure,
                      const Filled<double, 2>& mixing, const Filled<double, 3>& mean,
                      const Filled<double, 3>& log_variance, const FilledNumbers& axes, const Vector& column_variances,
                      bool hard, bool equal_mixing, double tolerance, double seconds, double cost,
                      const Filled<double, 1>& costs) {
    const Letters letters = letters_of(structure);
    const Index columns = size_of(numbers, 1), components = size_of(mixing, 1), cells = components * columns;
    const Index axes_numbers = axes_size(letters, components, columns);
    require(!weight || weight->shape(0) == numbers.shape(0), "weight must hold one number per row");
    require(columns > 0 && components > 0, "at least one column and one component are needed");
    require(mixing.shape(0) == 2 && mean.shape(0) == 2 && log_variance.shape(0) == 2 &&
                static_cast<Index>(mean.size()) == 2 * cells && size_of(mean, 2) == columns &&
                static_cast<Index>(log_variance.size()) == 2 * cells &&
                static_cast<Index>(axes.size()) == 2 * axes_numbers && size_of(column_variances, 0) == columns,
            "the arrays for the parameters have the wrong shape");
    const RunTask task{numbers.data(), size_of(numbers, 0), columns,      weight ? weight->data() : nullptr,
                            letters,        components,          column_variances.data(), hard, equal_mixing,
                            tolerance,      size_of(costs, 0),   seconds};
    const RunState state{mixing.data(),
                              mean.data(),
                              log_variance.data(),
                              axes.data(),
                              mixing.data() + components,
                              mean.data() + cells,
                              log_variance.data() + cells,
                              axes.data() + axes_numbers,
                              cost,
                              costs.data()};
    RunEnd end;
    {
        nb::gil_scoped_release released;
        end = chosen->mixture_run(task, state);
    }
    return nb::make_tuple(static_cast<int>(end.reason), static_cast<int>(end.status), end.passes, end.cost);
}

template <class Number>
void define_for(nb::module_& module) {
    module.def("mixture_step", mixture_step<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a, "factor"_a.none(),
               "weight"_a.none(), "mean"_a, "whiten"_a, "log_weight"_a, "hard"_a, "limit"_a, "share_at_limit"_a,
               "part_rows"_a, "threads"_a, "count"_a.noconvert(), "shift"_a.noconvert(), "scatter"_a.noconvert(),
               "cost"_a.noconvert());
    module.def("mixture_scores", mixture_scores<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a,
               "factor"_a.none(), "mean"_a, "whiten"_a, "log_weight"_a, "scores"_a.noconvert());
    module.def("mixture_labels", mixture_labels<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a,
               "factor"_a.none(), "mean"_a, "whiten"_a, "log_weight"_a, "hard"_a, "labels"_a.noconvert(),
               "top"_a.noconvert(), "cost"_a.noconvert());
    module.def("mixture_ending", mixture_ending<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a,
               "factor"_a.none(), "weight"_a.none(), "mean"_a, "whiten"_a, "log_weight"_a, "hard"_a, "part_rows"_a,
               "threads"_a, "labels"_a.noconvert(), "sizes"_a.noconvert(), "first_rows"_a.noconvert(),
               "cost"_a.noconvert(), "certainty"_a.noconvert());
    module.def("mixture_gather", mixture_gather<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a,
               "factor"_a.none(), "weight"_a.none(), "mean"_a, "membership"_a.none(), "labels"_a.none(), "part_rows"_a,
               "threads"_a, "count"_a.noconvert(), "shift"_a.noconvert(), "scatter"_a.noconvert());
}

}  // namespace

void define_mixtures(nb::module_& module) {
    define_for<double>(module);
    define_for<float>(module);
    module.def("memberships", memberships, "scores"_a, "hard"_a, "membership"_a.noconvert(), "cost"_a.noconvert());
    module.def("update_covariance", update_covariance, "structure"_a, "count"_a, "scatter"_a,
               "previous_log_variance"_a.none(), "previous_axes"_a.none(), "column_variances"_a,
               "log_variance"_a.noconvert(), "axes"_a.noconvert(), "poor"_a.noconvert());
    module.def("whiten_all", whiten_all, "log_variance"_a, "axes"_a, "result"_a.noconvert());
    module.def("mixture_run", mixture_run, "numbers"_a, "weight"_a.none(), "structure"_a, "mixing"_a.noconvert(),
               "mean"_a.noconvert(), "log_variance"_a.noconvert(), "axes"_a.noconvert(), "column_variances"_a, "hard"_a,
               "equal_mixing"_a, "tolerance"_a, "seconds"_a, "cost"_a, "costs"_a.noconvert());
}

}  // namespace ilk::face

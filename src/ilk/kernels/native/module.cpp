// The Python face of the kernels. Checks shapes, lets other Python threads run, calls; the arrays to fill are
// made by compiled.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

#include "interface.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using ilk::Centres;
using ilk::Index;

template <class Number>
using Raw = nb::ndarray<const Number, nb::ndim<2>, nb::device::cpu>;
template <class Number>
using Rows = nb::ndarray<const Number, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Pairs = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Whiten = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Starts = nb::ndarray<const Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class Number, std::size_t dimensions>
using Filled = nb::ndarray<Number, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

const ilk::Kernels* const built[] = {
#if defined(ILK_X86)
    &ilk::avx512_kernels,
    &ilk::avx2_kernels,
#endif
    &ilk::plain_kernels,
};

bool runs_here(const ilk::Kernels& kernels) {
#if defined(ILK_X86)
    if (&kernels == &ilk::avx512_kernels)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    if (&kernels == &ilk::avx2_kernels) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return &kernels == &ilk::plain_kernels;
}

const ilk::Kernels* widest() {
    for (const ilk::Kernels* kernels : built)
        if (runs_here(*kernels)) return kernels;
    return &ilk::plain_kernels;
}

const ilk::Kernels* chosen = widest();

template <class Number>
const ilk::TableKernels<Number>& chosen_for();
template <>
const ilk::TableKernels<float>& chosen_for() { return chosen->float32; }
template <>
const ilk::TableKernels<double>& chosen_for() { return chosen->float64; }

void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

Index size_of(const auto& array, std::size_t axis) { return static_cast<Index>(array.shape(axis)); }

template <class Number>
ilk::Table<Number> table_of(const Raw<Number>& raw, double power, const Vector& centre,
                            const std::optional<Vector>& factor) {
    const Index columns = size_of(raw, 1);
    require(size_of(centre, 0) == columns, "centre must hold one number per column");
    require(!factor || size_of(*factor, 0) == columns, "factor must hold one number per column");
    return {raw.data(),    size_of(raw, 0), columns,       raw.stride(0),
            raw.stride(1), power,           centre.data(), factor ? factor->data() : nullptr};
}

Centres centres_of(const Matrix& centres, Index columns) {
    require(size_of(centres, 1) == columns, "centres must have the columns of the table");
    require(centres.shape(0) > 0, "at least one centre is needed");
    return {centres.data(), size_of(centres, 0)};
}

template <class Number>
void nearest_step(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
                  const std::optional<Vector>& weight, const Matrix& centres, double limit, double share_at_limit,
                  const Filled<double, 3>& sums, const Filled<double, 1>& weights, const Filled<double, 1>& cost,
                  const Filled<double, 1>& squares) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const Centres all = centres_of(centres, table.columns);
    require(!weight || size_of(*weight, 0) == table.rows, "weight must hold one number per row");
    require(size_of(sums, 0) == all.count && size_of(sums, 1) == table.columns && sums.shape(2) == 2 &&
                size_of(weights, 0) == all.count && cost.shape(0) == 2 && squares.shape(0) == 2,
            "the arrays for the sums have the wrong shape");
    const double* row_weights = weight ? weight->data() : nullptr;
    nb::gil_scoped_release released;
    chosen_for<Number>().nearest_step(table, row_weights, all, {limit, share_at_limit},
                                      {sums.data(), weights.data(), cost.data(), squares.data()});
}

template <class Number>
void nearest(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
             const Matrix& centres, const Filled<std::int32_t, 1>& labels, const Filled<double, 1>& cost) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const Centres all = centres_of(centres, table.columns);
    require(size_of(labels, 0) == table.rows && size_of(cost, 0) == table.rows,
            "the arrays for labels and cost must hold one number per row");
    nb::gil_scoped_release released;
    chosen_for<Number>().nearest(table, all, labels.data(), cost.data());
}

template <class Number>
void distances(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
               const Matrix& points, const Filled<double, 2>& squared) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const Centres all = centres_of(points, table.columns);
    require(size_of(squared, 0) == all.count && size_of(squared, 1) == table.rows,
            "the array for the distances has the wrong shape");
    nb::gil_scoped_release released;
    chosen_for<Number>().distances(table, all, squared.data());
}

ilk::Components components_of(const Matrix& mean, const Whiten& whiten, const Vector& log_weight, Index columns) {
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

template <class Number>
void mixture_step(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
                  const std::optional<Vector>& weight, const Matrix& mean, const Whiten& whiten,
                  const Vector& log_weight, bool hard, double limit, double share_at_limit,
                  const Filled<double, 1>& count, const Filled<double, 2>& shift,
                  const nb::ndarray<double, nb::c_contig, nb::device::cpu>& scatter, const Filled<double, 1>& cost) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const auto components = components_of(mean, whiten, log_weight, table.columns);
    require(!weight || size_of(*weight, 0) == table.rows, "weight must hold one number per row");
    require(size_of(count, 0) == components.count && size_of(shift, 0) == components.count &&
                size_of(shift, 1) == table.columns && scatter.size() == whiten.size() && cost.shape(0) == 1,
            "the arrays for the sums have the wrong shape");
    const double* row_weights = weight ? weight->data() : nullptr;
    nb::gil_scoped_release released;
    chosen_for<Number>().mixture_step(table, row_weights, components, hard, {limit, share_at_limit},
                                      {count.data(), shift.data(), scatter.data(), cost.data()});
}

template <class Number>
void mixture_scores(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
                    const Matrix& mean, const Whiten& whiten, const Vector& log_weight,
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
                    const Matrix& mean, const Whiten& whiten, const Vector& log_weight, bool hard,
                    const Filled<std::int32_t, 1>& labels, const Filled<double, 1>& top,
                    const Filled<double, 1>& cost) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const auto components = components_of(mean, whiten, log_weight, table.columns);
    require(size_of(labels, 0) == table.rows && size_of(top, 0) == table.rows && size_of(cost, 0) == table.rows,
            "the arrays for labels, scores and cost must hold one number per row");
    nb::gil_scoped_release released;
    chosen_for<Number>().mixture_labels(table, components, hard, {labels.data(), top.data(), cost.data()});
}

template <class Number>
void mixture_gather(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
                    const std::optional<Vector>& weight, const Matrix& mean, const Matrix& membership,
                    const Filled<double, 1>& count, const Filled<double, 2>& shift,
                    const nb::ndarray<double, nb::c_contig, nb::device::cpu>& scatter) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const Index components = size_of(mean, 0);
    const bool diagonal = scatter.ndim() == 2;
    const bool tied = scatter.ndim() == 3 && components > 1 && scatter.shape(0) == 1;
    require(components > 0 && size_of(mean, 1) == table.columns, "means must have the columns of the table");
    require(!weight || size_of(*weight, 0) == table.rows, "weight must hold one number per row");
    require(size_of(membership, 0) == table.rows && size_of(membership, 1) == components,
            "membership must hold one number per row and component");
    require(size_of(count, 0) == components && size_of(shift, 0) == components && size_of(shift, 1) == table.columns &&
                (diagonal || scatter.ndim() == 3) &&
                static_cast<Index>(scatter.size()) ==
                    (tied ? 1 : components) * table.columns * (diagonal ? 1 : table.columns),
            "the arrays for the sums have the wrong shape");
    const double* row_weights = weight ? weight->data() : nullptr;
    nb::gil_scoped_release released;
    chosen_for<Number>().mixture_gather(table, row_weights, {mean.data(), nullptr, nullptr, components, diagonal, tied},
                                        membership.data(), {count.data(), shift.data(), scatter.data(), nullptr});
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

using Codes = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

ilk::Levels levels_of(const std::optional<Codes>& codes, const Starts& start, Index rows) {
    const Index columns = size_of(start, 0) - 1;
    require(columns >= 0 && start(0) == 0, "level_start must begin with 0");
    for (Index column = 0; column < columns; ++column)
        require(start(column) <= start(column + 1), "level_start must not fall");
    require(!codes ? columns == 0 : size_of(*codes, 0) == rows && size_of(*codes, 1) == columns,
            "codes must hold one number per row and categorical column");
    return {codes ? codes->data() : nullptr, start.data(), columns};
}

ilk::Product product_of(const Vector& log_mixing, const Matrix& mean, const Matrix& precision, const Matrix& log_norm,
                        const Matrix& log_level, Index columns, const ilk::Levels& levels) {
    const Index count = size_of(log_mixing, 0);
    require(count > 0, "at least one component is needed");
    for (const Matrix* part : {&mean, &precision, &log_norm})
        require(size_of(*part, 0) == count && size_of(*part, 1) == columns,
                "means, precisions and norms must hold one number per component and numeric column");
    require(size_of(log_level, 0) == count && size_of(log_level, 1) == levels.start[levels.columns],
            "log_level must hold one number per component and level");
    return {log_mixing.data(), mean.data(), precision.data(), log_norm.data(), log_level.data(), count};
}

ilk::ProductSums product_sums_of(const Filled<double, 1>& weight, const Filled<double, 3>& moments,
                                 const Filled<double, 2>& counts, const Filled<double, 1>& totals, Index components,
                                 Index columns, const ilk::Levels& levels) {
    require(size_of(weight, 0) == components && moments.shape(0) == 3 && size_of(moments, 1) == components &&
                size_of(moments, 2) == columns && size_of(counts, 0) == components &&
                size_of(counts, 1) == levels.start[levels.columns] && totals.shape(0) == 2,
            "the arrays for the sums have the wrong shape");
    double* each = moments.data();
    const Index size = components * columns;
    return {weight.data(), each, each + size, each + 2 * size, counts.data(), totals.data(), totals.data() + 1};
}

template <class Number>
void product_scores(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
                    const std::optional<Codes>& codes, const Vector& log_mixing, const Matrix& mean,
                    const Matrix& precision, const Matrix& log_norm, const Matrix& log_level,
                    const Starts& level_start, const Filled<double, 2>& scores) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const auto levels = levels_of(codes, level_start, table.rows);
    const auto product = product_of(log_mixing, mean, precision, log_norm, log_level, table.columns, levels);
    require(size_of(scores, 0) == table.rows && size_of(scores, 1) == product.count,
            "the array for the scores has the wrong shape");
    nb::gil_scoped_release released;
    chosen_for<Number>().product_scores(table, levels, product, scores.data());
}

template <class Number>
void product_step(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
                  const std::optional<Codes>& codes, const std::optional<Vector>& weight, const Vector& log_mixing,
                  const Matrix& mean, const Matrix& precision, const Matrix& log_norm, const Matrix& log_level,
                  const Starts& level_start, bool hard, double limit, double share_at_limit,
                  const Filled<double, 1>& weights, const Filled<double, 3>& moments, const Filled<double, 2>& counts,
                  const Filled<double, 1>& totals) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const auto levels = levels_of(codes, level_start, table.rows);
    const auto product = product_of(log_mixing, mean, precision, log_norm, log_level, table.columns, levels);
    require(!weight || size_of(*weight, 0) == table.rows, "weight must hold one number per row");
    const auto out = product_sums_of(weights, moments, counts, totals, product.count, table.columns, levels);
    const double* row_weights = weight ? weight->data() : nullptr;
    nb::gil_scoped_release released;
    chosen_for<Number>().product_step(table, levels, row_weights, product, hard, {limit, share_at_limit}, out);
}

template <class Number>
void product_sums(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
                  const std::optional<Codes>& codes, const Matrix& membership, const Matrix& mean,
                  const Starts& level_start, const Filled<double, 1>& weights, const Filled<double, 3>& moments,
                  const Filled<double, 2>& counts, const Filled<double, 1>& totals) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const auto levels = levels_of(codes, level_start, table.rows);
    const Index components = size_of(mean, 0);
    require(size_of(mean, 1) == table.columns, "means must have the columns of the table");
    require(size_of(membership, 0) == table.rows && size_of(membership, 1) == components,
            "membership must hold one number per row and component");
    const auto out = product_sums_of(weights, moments, counts, totals, components, table.columns, levels);
    nb::gil_scoped_release released;
    chosen_for<Number>().product_sums(table, levels, membership.data(), mean.data(), components, out);
}

template <class Number>
void column_ranges(const Rows<Number>& cells, const Vector& pivot, const Filled<double, 1>& low,
                   const Filled<double, 1>& high, const Filled<double, 1>& total) {
    const Index columns = size_of(cells, 1);
    require(size_of(pivot, 0) == columns && size_of(low, 0) == columns && size_of(high, 0) == columns &&
                size_of(total, 0) == columns,
            "the arrays for the ranges must hold one number per column");
    if (columns == 0) return;
    nb::gil_scoped_release released;
    chosen_for<Number>().column_ranges(cells.data(), size_of(cells, 0), columns, pivot.data(),
                                       {low.data(), high.data(), total.data()});
}

void require_labels(const Labels& labels, Index least, Index n_labels) {
    for (std::size_t row = 0; row < labels.shape(0); ++row)
        require(labels(row) >= least && labels(row) < n_labels, "a label is out of range");
}

ilk::Cells cells_of(const Raw<double>& cells) {
    return {cells.data(), size_of(cells, 0), size_of(cells, 1), cells.stride(0), cells.stride(1)};
}

void group_sums(const Raw<double>& values, const Raw<double>& weight, const Labels& labels,
                const Filled<double, 3>& sums) {
    require(weight.shape(0) == values.shape(0) && weight.shape(1) == values.shape(1) &&
                labels.shape(0) == values.shape(0) && sums.shape(1) == values.shape(1) && sums.shape(2) == 2,
            "values, weight, label and sums differ in shape");
    require_labels(labels, 0, size_of(sums, 0));
    nb::gil_scoped_release released;
    chosen->group_sums(cells_of(values), cells_of(weight), labels.data(), size_of(sums, 0), sums.data());
}

void tally(const Labels& labels, const Vector& cost, const std::optional<Vector>& weight, double limit,
           double share_at_limit, const Filled<double, 1>& sizes, const Filled<Index, 1>& first_rows,
           const Filled<double, 1>& total) {
    require(cost.shape(0) == labels.shape(0) && (!weight || weight->shape(0) == labels.shape(0)) &&
                first_rows.shape(0) == sizes.shape(0) && total.shape(0) == 2,
            "labels, cost and weight differ in length");
    require_labels(labels, std::numeric_limits<std::int32_t>::min(), size_of(sizes, 0));
    const double* row_weights = weight ? weight->data() : nullptr;
    nb::gil_scoped_release released;
    chosen->tally(labels.data(), cost.data(), row_weights, size_of(labels, 0), size_of(sizes, 0),
                  {limit, share_at_limit}, {sizes.data(), first_rows.data(), total.data()});
}

void add_pairs(const Pairs& a, const Pairs& b, const nb::ndarray<double, nb::c_contig, nb::device::cpu>& sum) {
    require(a.size() == b.size() && a.size() == sum.size() && a.size() % 2 == 0, "the arrays of pairs differ in shape");
    chosen->add_pairs(a.data(), b.data(), static_cast<Index>(a.size() / 2), sum.data());
}

void silhouette_sums(const Matrix& rows, const Matrix& table, const Starts& starts,
                     const std::optional<Vector>& weight, const Filled<double, 2>& sums) {
    const Index columns = size_of(table, 1), clusters = size_of(starts, 0) - 1;
    require(size_of(rows, 1) == columns, "rows must have the columns of the table");
    require(!weight || size_of(*weight, 0) == size_of(table, 0),
            "weight must hold one number per row of the table");
    require(clusters >= 0 && starts(0) >= 0 && starts(static_cast<std::size_t>(clusters)) <= size_of(table, 0),
            "starts must lie within the table");
    require(sums.shape(0) == rows.shape(0) && size_of(sums, 1) == clusters,
            "the array for the sums has the wrong shape");
    const double* row_weights = weight ? weight->data() : nullptr;
    const ilk::SortedTable sorted = {table.data(), row_weights, starts.data(), columns, clusters};
    nb::gil_scoped_release released;
    chosen->silhouette_sums(rows.data(), size_of(rows, 0), sorted, sums.data());
}

ilk::Letters letters_of(const char* name) {
    require(std::strlen(name) == 3, "a structure has three letters");
    return {name[0], name[1], name[2]};
}

Index axes_size(ilk::Letters letters, Index components, Index columns) {
    return letters.orientation == 'I' ? 0 : columns * columns * (letters.orientation == 'V' ? components : 1);
}

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using FilledNumbers = nb::ndarray<double, nb::c_contig, nb::device::cpu>;

int update_covariance(const char* structure, const Vector& count, const Numbers& scatter,
                      const std::optional<Matrix>& previous_log_variance, const std::optional<Numbers>& previous_axes,
                      const Vector& column_variances, const Filled<double, 2>& log_variance, const FilledNumbers& axes,
                      const Filled<std::uint8_t, 1>& poor, const Filled<double, 1>& room) {
    const ilk::Letters letters = letters_of(structure);
    const Index components = size_of(count, 0), columns = size_of(column_variances, 0);
    const auto axes_numbers = static_cast<std::size_t>(axes_size(letters, components, columns));
    const Index each = letters.orientation == 'I' ? columns : columns * columns;
    require(static_cast<Index>(scatter.size()) == components * each, "scatter has the wrong shape");
    require(!previous_log_variance || previous_log_variance->size() == log_variance.size(),
            "the previous log-variances have the wrong shape");
    require(!previous_axes || previous_axes->size() == axes_numbers, "the previous axes have the wrong shape");
    require(size_of(log_variance, 0) == components && size_of(log_variance, 1) == columns &&
                axes.size() == axes_numbers && size_of(poor, 0) == components &&
                size_of(room, 0) >= chosen->covariance_room(components, columns),
            "the arrays for the covariances have the wrong shape");
    const ilk::CovarianceSums sums{letters,       components,
                                   columns,       count.data(),
                                   scatter.data(), previous_log_variance ? previous_log_variance->data() : nullptr,
                                   previous_axes ? previous_axes->data() : nullptr, column_variances.data()};
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
    const ilk::Letters letters = letters_of(structure);
    const Index columns = size_of(numbers, 1), components = size_of(mixing, 1), cells = components * columns;
    const Index axes_numbers = axes_size(letters, components, columns);
    require(!weight || weight->shape(0) == numbers.shape(0), "weight must hold one number per row");
    require(columns > 0 && components > 0, "at least one column and one component are needed");
    require(mixing.shape(0) == 2 && mean.shape(0) == 2 && log_variance.shape(0) == 2 &&
                static_cast<Index>(mean.size()) == 2 * cells && size_of(mean, 2) == columns &&
                static_cast<Index>(log_variance.size()) == 2 * cells &&
                static_cast<Index>(axes.size()) == 2 * axes_numbers && size_of(column_variances, 0) == columns,
            "the arrays for the parameters have the wrong shape");
    const ilk::RunTask task{numbers.data(), size_of(numbers, 0), columns,      weight ? weight->data() : nullptr,
                            letters,        components,          column_variances.data(), hard, equal_mixing,
                            tolerance,      size_of(costs, 0),   seconds};
    const ilk::RunState state{mixing.data(),
                              mean.data(),
                              log_variance.data(),
                              axes.data(),
                              mixing.data() + components,
                              mean.data() + cells,
                              log_variance.data() + cells,
                              axes.data() + axes_numbers,
                              cost,
                              costs.data()};
    ilk::RunEnd end;
    {
        nb::gil_scoped_release released;
        end = chosen->mixture_run(task, state);
    }
    return nb::make_tuple(static_cast<int>(end.reason), static_cast<int>(end.status), end.passes, end.cost);
}

void grow_tree(const Matrix& points, const Vector& weight, const Filled<Index, 1>& first,
               const Filled<Index, 1>& second) {
    require(points.shape(0) > 0, "a tree needs rows");
    require(weight.shape(0) == points.shape(0), "weight must hold one number per row");
    require(first.shape(0) + 1 == points.shape(0) && second.shape(0) + 1 == points.shape(0),
            "the arrays for the merges must hold one number less than there are rows");
    nb::gil_scoped_release released;
    chosen->grow_tree(points.data(), weight.data(), size_of(points, 0), size_of(points, 1), first.data(),
                      second.data());
}

template <class Number>
void define_for(nb::module_& module) {
    module.def("nearest_step", nearest_step<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a, "factor"_a.none(),
               "weight"_a.none(), "centres"_a, "limit"_a, "share_at_limit"_a, "sums"_a.noconvert(),
               "weights"_a.noconvert(), "cost"_a.noconvert(), "squares"_a.noconvert());
    module.def("nearest", nearest<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a, "factor"_a.none(), "centres"_a,
               "labels"_a.noconvert(), "cost"_a.noconvert());
    module.def("distances", distances<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a, "factor"_a.none(), "points"_a,
               "squared"_a.noconvert());
    module.def("mixture_step", mixture_step<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a, "factor"_a.none(),
               "weight"_a.none(), "mean"_a, "whiten"_a, "log_weight"_a, "hard"_a, "limit"_a, "share_at_limit"_a,
               "count"_a.noconvert(), "shift"_a.noconvert(), "scatter"_a.noconvert(), "cost"_a.noconvert());
    module.def("mixture_scores", mixture_scores<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a,
               "factor"_a.none(), "mean"_a, "whiten"_a, "log_weight"_a, "scores"_a.noconvert());
    module.def("mixture_labels", mixture_labels<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a,
               "factor"_a.none(), "mean"_a, "whiten"_a, "log_weight"_a, "hard"_a, "labels"_a.noconvert(),
               "top"_a.noconvert(), "cost"_a.noconvert());
    module.def("mixture_gather", mixture_gather<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a,
               "factor"_a.none(), "weight"_a.none(), "mean"_a, "membership"_a, "count"_a.noconvert(),
               "shift"_a.noconvert(), "scatter"_a.noconvert());
    module.def("product_scores", product_scores<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a, "factor"_a.none(),
               "codes"_a.none(), "log_mixing"_a, "mean"_a, "precision"_a, "log_norm"_a, "log_level"_a, "level_start"_a,
               "scores"_a.noconvert());
    module.def("product_step", product_step<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a, "factor"_a.none(),
               "codes"_a.none(), "weight"_a.none(), "log_mixing"_a, "mean"_a, "precision"_a, "log_norm"_a,
               "log_level"_a, "level_start"_a, "hard"_a, "limit"_a, "share_at_limit"_a, "weights"_a.noconvert(),
               "moments"_a.noconvert(), "counts"_a.noconvert(), "totals"_a.noconvert());
    module.def("product_sums", product_sums<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a, "factor"_a.none(),
               "codes"_a.none(), "membership"_a, "mean"_a, "level_start"_a, "weights"_a.noconvert(),
               "moments"_a.noconvert(), "counts"_a.noconvert(), "totals"_a.noconvert());
    module.def("column_ranges", column_ranges<Number>, "cells"_a.noconvert(), "pivot"_a, "low"_a.noconvert(),
               "high"_a.noconvert(), "total"_a.noconvert());
}

}  // namespace

NB_MODULE(_compiled, module) {
    define_for<double>(module);
    define_for<float>(module);
    module.def("group_sums", group_sums, "values"_a, "weight"_a, "labels"_a, "sums"_a.noconvert());
    module.def("tally", tally, "labels"_a, "cost"_a, "weight"_a.none(), "limit"_a, "share_at_limit"_a,
               "sizes"_a.noconvert(), "first_rows"_a.noconvert(), "total"_a.noconvert());
    module.def("add_pairs", add_pairs, "a"_a, "b"_a, "sum"_a.noconvert());
    module.def("memberships", memberships, "scores"_a, "hard"_a, "membership"_a.noconvert(), "cost"_a.noconvert());
    module.def("silhouette_sums", silhouette_sums, "rows"_a, "table"_a, "starts"_a, "weight"_a.none(),
               "sums"_a.noconvert());
    module.def("update_covariance", update_covariance, "structure"_a, "count"_a, "scatter"_a,
               "previous_log_variance"_a.none(), "previous_axes"_a.none(), "column_variances"_a,
               "log_variance"_a.noconvert(), "axes"_a.noconvert(), "poor"_a.noconvert(), "room"_a.noconvert());
    module.def("whiten_all", whiten_all, "log_variance"_a, "axes"_a, "result"_a.noconvert());
    module.def("covariance_room", [](Index components, Index columns) {
        return chosen->covariance_room(components, columns);
    }, "components"_a, "columns"_a);
    module.def("mixture_run", mixture_run, "numbers"_a, "weight"_a.none(), "structure"_a, "mixing"_a.noconvert(),
               "mean"_a.noconvert(), "log_variance"_a.noconvert(), "axes"_a.noconvert(), "column_variances"_a, "hard"_a,
               "equal_mixing"_a, "tolerance"_a, "seconds"_a, "cost"_a, "costs"_a.noconvert());
    module.def("grow_tree", grow_tree, "points"_a, "weight"_a, "first"_a.noconvert(), "second"_a.noconvert());
    module.def("instructions", [] { return chosen->instructions; });
    module.def("all_instructions", [] {
        nb::list names;
        for (const ilk::Kernels* kernels : built)
            if (runs_here(*kernels)) names.append(kernels->instructions);
        return names;
    });
    module.def("use_instructions", [](const char* name) {
        for (const ilk::Kernels* kernels : built)
            if (runs_here(*kernels) && std::strcmp(kernels->instructions, name) == 0) {
                chosen = kernels;
                return;
            }
        throw std::invalid_argument("this processor or this build has no such instruction set");
    }, "name"_a);
}

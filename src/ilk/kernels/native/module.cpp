// The Python face of the kernels. Checks shapes, lets other Python threads run, calls; the arrays to fill are
// made by compiled.py.
#include <cstring>
#include <limits>
#include <vector>

#include "arrays.hpp"
#include "hull.hpp"
#include "parts.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace ilk::face {
namespace {

const Kernels* const built[] = {
#if defined(ILK_X86)
    &avx512_kernels,
    &avx2_kernels,
#endif
    &plain_kernels,
};

bool runs_here(const Kernels& kernels) {
#if defined(ILK_X86)
    if (&kernels == &avx512_kernels)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    if (&kernels == &avx2_kernels) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return &kernels == &plain_kernels;
}

const Kernels* widest() {
    for (const Kernels* kernels : built)
        if (runs_here(*kernels)) return kernels;
    return &plain_kernels;
}

}  // namespace

const Kernels* chosen = widest();

namespace {

Centres centres_of(const Matrix& centres, Index columns) {
    require(size_of(centres, 1) == columns, "centres must have the columns of the table");
    require(centres.shape(0) > 0, "at least one centre is needed");
    return {centres.data(), size_of(centres, 0)};
}

template <class Number>
void nearest_step(const Raw<Number>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
                  const std::optional<Vector>& weight, const Matrix& centres, double limit, double share_at_limit,
                  Index part_rows, Index threads, const Filled<double, 3>& sums, const Filled<double, 1>& weights,
                  const Filled<double, 1>& cost, const Filled<double, 2>& squares) {
    const auto table = table_of<Number>(raw, power, centre, factor);
    const Centres all = centres_of(centres, table.columns);
    const Parts parts(part_rows, threads);
    require(!weight || size_of(*weight, 0) == table.rows, "weight must hold one number per row");
    require(size_of(sums, 0) == all.count && size_of(sums, 1) == table.columns && sums.shape(2) == 2 &&
                size_of(weights, 0) == all.count && cost.shape(0) == 2 &&
                size_of(squares, 0) == parts.count(table.rows) && squares.shape(1) == 2,
            "the arrays for the sums have the wrong shape");
    const double* row_weights = weight ? weight->data() : nullptr;
    const Index slots = parts.slots(table.rows), pairs = all.count * table.columns;
    std::vector<double> part_sums(2 * slots * pairs), part_weights(slots * all.count), part_costs(2 * slots);
    const auto work = [&](const Table<Number>& block, Index first, Index slot) {
        chosen_for<Number>().nearest_step(block, row_weights ? row_weights + first : nullptr, all,
                                          {limit, share_at_limit},
                                          {&part_sums[2 * slot * pairs], &part_weights[slot * all.count],
                                           &part_costs[2 * slot], squares.data() + 2 * (first / part_rows)});
    };
    share_parts(table, parts, work, [&](Index part, Index slot) {
        const double *more = &part_sums[2 * slot * pairs], *heft = &part_weights[slot * all.count];
        if (part == 0) {
            std::copy_n(more, 2 * pairs, sums.data());
            std::copy_n(heft, all.count, weights.data());
            std::copy_n(&part_costs[2 * slot], 2, cost.data());
            return;
        }
        chosen->add_pairs(sums.data(), more, pairs, sums.data());
        for (Index component = 0; component < all.count; ++component) weights.data()[component] += heft[component];
        chosen->add_pairs(cost.data(), &part_costs[2 * slot], 1, cost.data());
    });
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

using Words = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Number>
void content_sums(const Raw<Number>& raw, double power, const Words& factors, std::uint64_t missing,
                  const Filled<std::uint64_t, 1>& sums) {
    const Table<Number> table = {raw.data(),    size_of(raw, 0), size_of(raw, 1), raw.stride(0),
                                 raw.stride(1), power,           nullptr,         nullptr};
    require(size_of(factors, 0) == table.columns && size_of(sums, 0) == table.rows,
            "factors must hold one number per column, sums one per row");
    nb::gil_scoped_release released;
    chosen_for<Number>().content_sums(table, factors.data(), missing, sums.data());
}

using Codes = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

Levels levels_of(const std::optional<Codes>& codes, const Starts& start, Index rows) {
    const Index columns = size_of(start, 0) - 1;
    require(columns >= 0 && start(0) == 0, "level_start must begin with 0");
    for (Index column = 0; column < columns; ++column)
        require(start(column) <= start(column + 1), "level_start must not fall");
    require(!codes ? columns == 0 : size_of(*codes, 0) == rows && size_of(*codes, 1) == columns,
            "codes must hold one number per row and categorical column");
    return {codes ? codes->data() : nullptr, start.data(), columns};
}

Product product_of(const Vector& log_mixing, const Matrix& mean, const Matrix& precision, const Matrix& log_norm,
                        const Matrix& log_level, Index columns, const Levels& levels) {
    const Index count = size_of(log_mixing, 0);
    require(count > 0, "at least one component is needed");
    for (const Matrix* part : {&mean, &precision, &log_norm})
        require(size_of(*part, 0) == count && size_of(*part, 1) == columns,
                "means, precisions and norms must hold one number per component and numeric column");
    require(size_of(log_level, 0) == count && size_of(log_level, 1) == levels.start[levels.columns],
            "log_level must hold one number per component and level");
    return {log_mixing.data(), mean.data(), precision.data(), log_norm.data(), log_level.data(), count};
}

ProductSums product_sums_of(const Filled<double, 1>& weight, const Filled<double, 3>& moments,
                                 const Filled<double, 2>& counts, const Filled<double, 1>& totals, Index components,
                                 Index columns, const Levels& levels) {
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

Cells cells_of(const Raw<double>& cells) {
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

// Adds the weight of each row to the bin that it falls into, row after row.
void add_to_bins(const Filled<double, 1>& bins, const Starts& places, const Vector& weight) {
    require(places.shape(0) == weight.shape(0), "places and weight differ in length");
    const Index n_bins = size_of(bins, 0), rows = size_of(places, 0);
    const Index* place = places.data();
    const double* own = weight.data();
    double* total = bins.data();
    bool inside = true;
    {
        nb::gil_scoped_release released;
        for (Index row = 0; row < rows; ++row) inside &= place[row] >= 0 && place[row] < n_bins;
        for (Index row = 0; inside && row < rows; ++row) total[place[row]] += own[row];
    }
    require(inside, "a place is out of range");
}

void add_pairs(const Numbers& a, const Numbers& b, const FilledNumbers& sum) {
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
    for (std::size_t cluster = 0; static_cast<Index>(cluster) < clusters; ++cluster)
        require(starts(cluster) <= starts(cluster + 1), "starts must not fall");
    require(sums.shape(0) == rows.shape(0) && size_of(sums, 1) == clusters,
            "the array for the sums has the wrong shape");
    const double* row_weights = weight ? weight->data() : nullptr;
    const SortedTable sorted = {table.data(), row_weights, starts.data(), columns, clusters};
    nb::gil_scoped_release released;
    chosen->silhouette_sums(rows.data(), size_of(rows, 0), sorted, sums.data());
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

Index corners_below(const Vector& x, const Vector& y, const Filled<Index, 1>& corners) {
    require(x.shape(0) == y.shape(0) && corners.shape(0) == x.shape(0), "x, y and corners differ in length");
    nb::gil_scoped_release released;
    return lower_hull(x.data(), y.data(), size_of(x, 0), corners.data());
}

template <class Number>
void define_for(nb::module_& module) {
    module.def("nearest_step", nearest_step<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a, "factor"_a.none(),
               "weight"_a.none(), "centres"_a, "limit"_a, "share_at_limit"_a, "part_rows"_a, "threads"_a,
               "sums"_a.noconvert(), "weights"_a.noconvert(), "cost"_a.noconvert(), "squares"_a.noconvert());
    module.def("nearest", nearest<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a, "factor"_a.none(), "centres"_a,
               "labels"_a.noconvert(), "cost"_a.noconvert());
    module.def("distances", distances<Number>, "raw"_a.noconvert(), "power"_a, "centre"_a, "factor"_a.none(), "points"_a,
               "squared"_a.noconvert());
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
    module.def("content_sums", content_sums<Number>, "raw"_a.noconvert(), "power"_a, "factors"_a, "missing"_a,
               "sums"_a.noconvert());
}

}  // namespace
}  // namespace ilk::face

NB_MODULE(_compiled, module) {
    using namespace ilk::face;
    define_for<double>(module);
    define_for<float>(module);
    define_mixtures(module);
    define_assorted(module);
    module.def("group_sums", group_sums, "values"_a, "weight"_a, "labels"_a, "sums"_a.noconvert());
    module.def("tally", tally, "labels"_a, "cost"_a, "weight"_a.none(), "limit"_a, "share_at_limit"_a,
               "sizes"_a.noconvert(), "first_rows"_a.noconvert(), "total"_a.noconvert());
    module.def("add_to_bins", add_to_bins, "bins"_a.noconvert(), "places"_a, "weight"_a);
    module.def("add_pairs", add_pairs, "a"_a, "b"_a, "sum"_a.noconvert());
    module.def("silhouette_sums", silhouette_sums, "rows"_a, "table"_a, "starts"_a, "weight"_a.none(),
               "sums"_a.noconvert());
    module.def("grow_tree", grow_tree, "points"_a, "weight"_a, "first"_a.noconvert(), "second"_a.noconvert());
    module.def("lower_hull", corners_below, "x"_a, "y"_a, "corners"_a.noconvert());
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

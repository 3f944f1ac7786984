// The Python face of what assorted tables need beside the passes over their rows.
#include "arrays.hpp"
#include "shared_run.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace ilk::face {
namespace {

ColumnCosts costs_of(const Starts& start, const Vector& floor, const Vector& share, const Vector& penalty,
                     double spread_prior, double level_prior) {
    const Index numbers = size_of(floor, 0), categories = size_of(start, 0) - 1;
    require(categories >= 0 && start(0) == 0, "level_start must begin with 0");
    for (Index category = 0; category < categories; ++category)
        require(start(category) <= start(category + 1), "level_start must not fall");
    require(size_of(share, 0) == start(categories), "share must hold one number per level");
    require(size_of(penalty, 0) == numbers + categories, "penalty must hold one number per column");
    return {numbers, categories, start.data(), floor.data(), share.data(), penalty.data(), spread_prior, level_prior};
}

SwitchCosts switches_of(double coins, const std::optional<Vector>& sparse, Index columns) {
    require(!sparse || size_of(*sparse, 0) == columns + 1, "sparse must hold one number more than there are columns");
    return {coins, sparse ? sparse->data() : nullptr};
}

template <class Array>
void require_shape(const Array& array, Index rows, Index columns) {
    require(size_of(array, 0) == rows && size_of(array, 1) == columns, "sums and parameters differ in shape");
}

SharedParameters parameters_of(Index* group, double* mixing, double* numbers, double* log_level, Index count,
                               Index columns) {
    const Index size = count * columns;
    return {group,   mixing,         mixing + count,     numbers,
            numbers + size, numbers + 2 * size, numbers + 3 * size, log_level};
}

nb::tuple update(const Starts& start, const Vector& floor, const Vector& share, const Vector& penalty,
                 double spread_prior, double level_prior, const Vector& size, const Matrix& weight, const Matrix& mean,
                 const Matrix& scatter, const Matrix& counts, double coins, const std::optional<Vector>& sparse,
                 const Filled<Index, 2>& group, const Filled<double, 2>& mixing, const Filled<double, 3>& numbers,
                 const Filled<double, 2>& log_level) {
    const ColumnCosts costs = costs_of(start, floor, share, penalty, spread_prior, level_prior);
    const Index count = size_of(size, 0);
    require(count > 0, "at least one cluster is needed");
    for (const Matrix* part : {&weight, &mean, &scatter}) require_shape(*part, count, costs.numbers);
    require_shape(counts, count, costs.levels());
    require_shape(group, count, costs.columns());
    require_shape(mixing, 2, count);
    require_shape(log_level, count, costs.levels());
    require(numbers.shape(0) == 4 && size_of(numbers, 1) == count && size_of(numbers, 2) == costs.numbers,
            "sums and parameters differ in shape");
    const SwitchCosts switches = switches_of(coins, sparse, costs.columns());
    const SharedParameters out =
        parameters_of(group.data(), mixing.data(), numbers.data(), log_level.data(), count, costs.numbers);
    const ClusterSums sums = {count, size.data(), weight.data(), mean.data(), scatter.data(), counts.data()};
    SharedTerms terms;
    {
        nb::gil_scoped_release released;
        terms = shared_update(costs, sums, switches, out);
    }
    return nb::make_tuple(terms.prior, terms.groups, terms.relevant);
}

using Codes = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Parameters twice, those to go on from and the last whose cost is known: (2, ...) each, terms (2, 3).
nb::tuple run(const Raw<double>& raw, double power, const Vector& centre, const std::optional<Vector>& factor,
              const std::optional<Codes>& codes, const std::optional<Vector>& weight, const Starts& start,
              const Vector& floor, const Vector& share, const Vector& penalty, double spread_prior, double level_prior,
              double coins, const std::optional<Vector>& sparse, const Vector& constants, bool hard, double vanished,
              double tolerance, double seconds, double cost, const Filled<Index, 3>& group,
              const Filled<double, 3>& mixing, const Filled<double, 4>& numbers, const Filled<double, 3>& log_level,
              const Filled<double, 2>& terms, const Filled<double, 1>& reached) {
    const ColumnCosts costs = costs_of(start, floor, share, penalty, spread_prior, level_prior);
    const auto table = table_of<double>(raw, power, centre, factor);
    const Index count = size_of(group, 1);
    require(count > 0 && table.columns == costs.numbers, "parameters must have the columns of the table");
    require(!codes ? costs.categories == 0
                   : size_of(*codes, 0) == table.rows && size_of(*codes, 1) == costs.categories,
            "codes must hold one number per row and categorical column");
    require(!weight || size_of(*weight, 0) == table.rows, "weight must hold one number per row");
    require(group.shape(0) == 2 && size_of(group, 2) == costs.columns() && mixing.shape(0) == 2 &&
                mixing.shape(1) == 2 && size_of(mixing, 2) == count && numbers.shape(0) == 2 &&
                numbers.shape(1) == 4 && size_of(numbers, 2) == count && size_of(numbers, 3) == costs.numbers &&
                log_level.shape(0) == 2 && size_of(log_level, 1) == count && size_of(log_level, 2) == costs.levels() &&
                terms.shape(0) == 2 && terms.shape(1) == 3 && constants.shape(0) == 4,
            "sums and parameters differ in shape");
    SharedState states[2];
    for (Index which = 0; which < 2; ++which) {
        states[which].at = parameters_of(
            group.data() + which * count * costs.columns(), mixing.data() + 2 * which * count,
            numbers.data() + 4 * which * count * costs.numbers, log_level.data() + which * count * costs.levels(),
            count, costs.numbers);
        const double* known = terms.data() + 3 * which;
        states[which].terms = {known[0], known[1], static_cast<Index>(known[2])};
        require(states[which].terms.relevant >= 0 && states[which].terms.relevant <= costs.columns(),
                "there are not so many relevant columns");
    }
    for (Index place = 0; place < 2 * count * costs.columns(); ++place)
        require(group.data()[place] >= 0 && group.data()[place] < count, "a group is out of range");
    SharedTask task{table,
                    {codes ? codes->data() : nullptr, start.data(), costs.categories},
                    weight ? weight->data() : nullptr,
                    costs,
                    switches_of(coins, sparse, costs.columns()),
                    count,
                    {constants(0), constants(1), constants(2), constants(3)},
                    hard,
                    vanished,
                    tolerance,
                    seconds,
                    size_of(reached, 0)};
    SharedEnd end;
    {
        nb::gil_scoped_release released;
        end = SharedRun(task, chosen->float64.product_step).run(states[0], states[1], cost, reached.data());
    }
    for (Index which = 0; which < 2; ++which) {
        double* known = terms.data() + 3 * which;
        known[0] = states[which].terms.prior;
        known[1] = states[which].terms.groups;
        known[2] = static_cast<double>(states[which].terms.relevant);
    }
    return nb::make_tuple(static_cast<int>(end.reason), end.passes, end.cost);
}

}  // namespace

void define_assorted(nb::module_& module) {
    module.def("shared_update", update, "level_start"_a, "floor"_a, "share"_a, "penalty"_a, "spread_prior"_a,
               "level_prior"_a, "size"_a, "weight"_a, "mean"_a, "scatter"_a, "counts"_a, "coins"_a, "sparse"_a.none(),
               "group"_a.noconvert(), "mixing"_a.noconvert(), "numbers"_a.noconvert(), "log_level"_a.noconvert());
    module.def("shared_run", run, "raw"_a.noconvert(), "power"_a, "centre"_a, "factor"_a.none(), "codes"_a.none(),
               "weight"_a.none(), "level_start"_a, "floor"_a, "share"_a, "penalty"_a, "spread_prior"_a,
               "level_prior"_a, "coins"_a, "sparse"_a.none(), "constants"_a, "hard"_a, "vanished"_a, "tolerance"_a,
               "seconds"_a, "cost"_a, "group"_a.noconvert(), "mixing"_a.noconvert(), "numbers"_a.noconvert(),
               "log_level"_a.noconvert(), "terms"_a.noconvert(), "costs"_a.noconvert());
}

}  // namespace ilk::face

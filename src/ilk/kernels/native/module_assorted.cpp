// The Python face of what assorted tables need beside the passes over their rows.
#include "arrays.hpp"
#include "sharing.hpp"

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

nb::tuple update(const Starts& start, const Vector& floor, const Vector& share, const Vector& penalty,
                 double spread_prior, double level_prior, const Matrix& weight, const Matrix& mean,
                 const Matrix& scatter, const Matrix& counts, double coins, const std::optional<Vector>& sparse,
                 const Filled<Index, 2>& group, const Filled<double, 3>& numbers, const Filled<double, 2>& log_level) {
    const ColumnCosts costs = costs_of(start, floor, share, penalty, spread_prior, level_prior);
    const Index count = size_of(counts, 0);
    require(count > 0, "at least one cluster is needed");
    for (const Matrix* part : {&weight, &mean, &scatter}) require_shape(*part, count, costs.numbers);
    require_shape(counts, count, costs.levels());
    require_shape(group, count, costs.columns());
    require_shape(log_level, count, costs.levels());
    require(numbers.shape(0) == 4 && size_of(numbers, 1) == count && size_of(numbers, 2) == costs.numbers,
            "sums and parameters differ in shape");
    const SwitchCosts switches = switches_of(coins, sparse, costs.columns());
    const Index size = count * costs.numbers;
    double* each = numbers.data();
    const SharedParameters out = {group.data(), each, each + size, each + 2 * size, each + 3 * size, log_level.data()};
    SharedTerms terms;
    {
        nb::gil_scoped_release released;
        terms = shared_update(costs, {count, weight.data(), mean.data(), scatter.data(), counts.data()}, switches, out);
    }
    return nb::make_tuple(terms.prior, terms.groups, terms.relevant);
}

}  // namespace

void define_assorted(nb::module_& module) {
    module.def("shared_update", update, "level_start"_a, "floor"_a, "share"_a, "penalty"_a, "spread_prior"_a,
               "level_prior"_a, "weight"_a, "mean"_a, "scatter"_a, "counts"_a, "coins"_a, "sparse"_a.none(),
               "group"_a.noconvert(), "numbers"_a.noconvert(), "log_level"_a.noconvert());
}

}  // namespace ilk::face

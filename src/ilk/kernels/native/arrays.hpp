// What the parts of the Python face share: the arrays they take, their checks, and the kernels chosen.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>

#include "interface.hpp"

namespace ilk::face {

namespace nb = nanobind;

template <class Number>
using Raw = nb::ndarray<const Number, nb::ndim<2>, nb::device::cpu>;
template <class Number>
using Rows = nb::ndarray<const Number, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Starts = nb::ndarray<const Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class Number, std::size_t dimensions>
using Filled = nb::ndarray<Number, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using FilledNumbers = nb::ndarray<double, nb::c_contig, nb::device::cpu>;

extern const Kernels* chosen;

template <class Number>
const TableKernels<Number>& chosen_for() {
    if constexpr (sizeof(Number) == sizeof(float)) return chosen->float32;
    else return chosen->float64;
}

inline void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

inline Index size_of(const auto& array, std::size_t axis) { return static_cast<Index>(array.shape(axis)); }

template <class Number>
Table<Number> table_of(const Raw<Number>& raw, double power, const Vector& centre,
                       const std::optional<Vector>& factor) {
    const Index columns = size_of(raw, 1);
    require(size_of(centre, 0) == columns, "centre must hold one number per column");
    require(!factor || size_of(*factor, 0) == columns, "factor must hold one number per column");
    return {raw.data(),    size_of(raw, 0), columns,       raw.stride(0),
            raw.stride(1), power,           centre.data(), factor ? factor->data() : nullptr};
}

// Everything of Gaussian mixtures: module_mixture.cpp.
void define_mixtures(nb::module_& module);
// Everything of assorted tables: module_assorted.cpp.
void define_assorted(nb::module_& module);

}  // namespace ilk::face

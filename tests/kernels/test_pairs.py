"""Arithmetic on pairs of doubles against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ilk import kernels
from ilk.kernels import pairs

number = st.floats(-1e100, 1e100, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-100)


@given(number, number)
def test_two_product_loses_nothing(a: float, b: float) -> None:
    product, rest = pairs.two_product(np.float64(a), np.float64(b))
    assert Fraction(float(product)) + Fraction(float(rest)) == Fraction(a) * Fraction(b)


@given(st.lists(st.integers(-(2**80), 2**80), min_size=1, max_size=30), st.randoms())
def test_sums_of_pairs_do_not_depend_on_order(terms: list[int], random: object) -> None:
    def total(some: list[int]) -> float:
        result = np.zeros((1, 2))
        for term in some:
            high = float(term)
            result = kernels.add_pairs(result, np.array([[high, float(term - int(high))]]))
        return float(kernels.round_pairs(result)[0])

    shuffled = terms.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert total(terms) == total(shuffled) == float(sum(terms))


def test_both_paths_add_pairs_alike() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 7, 3, 2)) * [1.0, 2.0**-55]
    np.testing.assert_array_equal(kernels.add_pairs(a, b), pairs.add_pairs(a, b))

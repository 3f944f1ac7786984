"""The proven optima against brute force."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import ilk
from ilk.errors import UsageError
from ilk.fitting.exact import TINY_ROWS, solve_line, solve_tiny
from tests.oracles.partitions import best_line_ss, best_within_ss

cells = st.one_of(st.integers(-4, 4).map(float), st.floats(-5, 5, width=32))


def line_cost(values, weight, centres):
    return float(weight @ np.square(values[:, None] - centres).min(axis=1))


@settings(max_examples=150, deadline=None)
@given(values=arrays(np.float64, st.integers(1, 30), elements=cells), k=st.integers(1, 6), data=st.data())
def test_one_column_is_solved_exactly(values, k, data):
    weight = data.draw(arrays(np.float64, len(values), elements=st.integers(1, 4).map(float)))
    centres = solve_line(values, weight, k)
    assert len(centres) == min(k, len(np.unique(values)))
    assert (np.diff(centres) > 0).all()
    expected = best_line_ss(values, k, weight)
    assert line_cost(values, weight, centres) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    X=arrays(np.float64, st.tuples(st.integers(3, 8), st.integers(1, 3)), elements=cells),
    k=st.integers(1, 4),
    data=st.data(),
)
def test_tiny_tables_are_solved_exactly(X, k, data):
    weight = data.draw(arrays(np.float64, len(X), elements=st.integers(1, 3).map(float)))
    expected = best_within_ss(X, k, weight)
    _, cost = solve_tiny(X, weight, k, upper=best_within_ss(X, 1, weight))
    assert cost == pytest.approx(expected, rel=1e-9, abs=1e-9)
    if len(np.unique(X, axis=0)) >= k:
        model = ilk.KMeans(k, exact=True).fit(X, sample_weight=weight)
        assert model.inertia_ == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert model.converged_
        assert model.fit_.reason == "proven optimum"


def test_the_largest_tiny_table_is_quick_enough():
    X = np.random.default_rng(0).normal(size=(TINY_ROWS, 2))
    start = time.monotonic()
    model = ilk.KMeans(4, exact=True, random_state=0).fit(X)
    assert model.inertia_ <= ilk.KMeans(4, n_init=100, random_state=0).fit(X).inertia_ * (1 + 1e-12)
    assert time.monotonic() - start < 120  # a guard against hanging, not a measure of speed


def test_exact_is_refused_above_its_size():
    with pytest.raises(UsageError, match="at most 16 rows") as caught:
        ilk.KMeans(2, exact=True).fit(np.random.default_rng(0).normal(size=(60, 2)))
    assert caught.value.code == "exact-too-large"


def test_one_long_column_needs_no_asking():
    values = np.random.default_rng(0).normal(size=(20_000, 1))
    model = ilk.KMeans(5).fit(values)
    assert model.fit_.reason == "proven optimum"
    assert model.inertia_ <= ilk.KMeans(5, init="k-log-k", random_state=0).fit(values).inertia_ * (1 + 1e-12)

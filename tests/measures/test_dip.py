"""The dip against its definition, its known quantiles, and what must not change it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilk.measures.dip import dip
from tests.oracles.dip import dip_by_definition


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_distance_to_the_nearest_distribution_with_one_mode(seed):
    draws = np.random.default_rng(seed)
    n = int(draws.integers(1, 10))
    kinds = [draws.normal(size=n), draws.integers(0, 5, n), np.r_[draws.random(n), 3 + draws.random(3)]]
    values = np.asarray(kinds[seed % 3], dtype=float)
    weight = draws.integers(1, 4, len(values)) if seed % 2 else None
    assert dip(values, weight) == pytest.approx(dip_by_definition(values, weight), abs=1e-9)


@pytest.mark.parametrize("n", [50, 200, 1000])
def test_quantiles_on_uniform_values(n):
    draws = np.random.default_rng(n)
    values = np.array([dip(draws.random(n)) for _ in range(600)]) * np.sqrt(n)
    assert 0.33 < np.quantile(values, 0.5) < 0.39
    assert 0.47 < np.quantile(values, 0.95) < 0.56


def test_two_points_and_two_heaps():
    assert dip(np.array([0.0, 1.0])) == 0.25
    assert dip(np.array([3.0])) == 0.0
    assert dip(np.array([0.0, 1.0]), np.array([5.0, 5.0])) == 0.25  # the heap that is not the mode costs half
    assert dip(np.linspace(0, 1, 100)) == pytest.approx(1 / 200)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=60), st.integers(0, 2**32 - 1))
def test_order_units_direction_and_repeats_change_nothing(values, seed):
    draws = np.random.default_rng(seed)
    x = np.array(values, dtype=float)
    base = dip(x)
    weight = draws.integers(0, 4, len(x)) + (np.arange(len(x)) == 0)
    assert dip(draws.permutation(x)) == base
    assert dip(x * 4.0 - 64.0) == pytest.approx(base, abs=1e-12)
    assert dip(-x) == pytest.approx(base, abs=1e-12)
    assert dip(x, weight) == pytest.approx(dip(np.repeat(x, weight)), abs=1e-12)
    assert 0 <= base <= 0.25 + 1e-12

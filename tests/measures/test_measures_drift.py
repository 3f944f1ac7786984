"""Bins, divergence, chance and intervals, against SciPy's own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, chi2_contingency, entropy

from ilk.measures.drift import (
    binned_numbers,
    chance,
    divergence,
    effective,
    share_interval,
    tenths,
    tenths_of_rows,
)
from ilk.monitor import drift
from ilk.report.facts import Described


def test_chance_is_the_likelihood_ratio_test():
    draws = np.random.default_rng(0)
    for _ in range(20):
        table = draws.integers(1, 60, (2, 5)).astype(float)
        expected = chi2_contingency(table, correction=False, lambda_="log-likelihood").pvalue
        assert chance(*table) == pytest.approx(expected, rel=1e-9)


def test_divergence_of_many_rows_is_the_relative_entropy():
    now, before = np.array([600.0, 300, 100]) * 1e6, np.array([200.0, 500, 300]) * 1e6
    assert divergence(now, before) == pytest.approx(entropy(now, before), abs=1e-6)
    assert divergence(before, before) == 0
    assert np.isfinite(divergence(np.array([5.0, 5.0]), np.array([10.0, 0.0])))


def test_a_quarter_of_a_deviation_is_about_its_square_over_two():
    draws = np.random.default_rng(1)
    before, now = draws.normal(size=200_000), draws.normal(0.25, 1, 200_000)
    edges, ones = tenths(before), np.ones(200_000)
    found = divergence(binned_numbers(now, edges, ones), binned_numbers(before, edges, ones))
    assert found == pytest.approx(0.25**2 / 2, rel=0.1)  # tenths lose a little


@pytest.mark.parametrize(("count", "rows"), [(0, 20), (7, 50), (50, 50), (999, 12345)])
def test_interval_is_wilsons(count, rows):
    expected = binomtest(count, rows).proportion_ci(method="wilson")
    assert share_interval(count, rows) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_chance_is_even_where_nothing_moved():
    """One column in twenty falls below 0.05."""
    draws = np.random.default_rng(2)
    found = []
    for _ in range(400):
        before, now = draws.normal(size=300), draws.normal(size=200)
        edges = tenths(before)
        found.append(
            chance(binned_numbers(now, edges, np.ones(200)), binned_numbers(before, edges, np.ones(300)))
        )
    assert 0.02 <= np.mean(np.array(found) < 0.05) <= 0.09


def test_values_that_repeat_and_missing_cells_have_bins_of_their_own():
    values = np.array([0.0] * 80 + [1.0] * 15 + [np.nan] * 5)
    edges = tenths(values)
    counts = binned_numbers(values, edges, np.ones(100))
    assert counts[-1] == 5
    assert counts.sum() == 100
    assert sorted(counts[counts > 0]) == [5, 15, 80]


def test_weights_count_as_the_rows_they_are_worth():
    weight = np.array([1.0, 1.0, 8.0])
    assert effective(np.array([2.0, 8.0]), weight).sum() == pytest.approx(10**2 / 66)


@pytest.mark.parametrize("n_values", [1, 2, 9, 10, 137, 1000])
def test_tenths_of_many_rows_are_those_of_each(n_values: int) -> None:
    values = np.random.default_rng(n_values).normal(size=(7, n_values))
    edges, counts = tenths_of_rows(values)
    for row, own, count in zip(values, edges, counts, strict=True):
        if len(np.unique(own)) == len(own):
            np.testing.assert_array_equal(own, tenths(row))
            np.testing.assert_array_equal(count, binned_numbers(row, own, np.ones(n_values)))


def test_what_a_model_remembers_of_many_columns_is_that_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns taken together and one by one: to the bit, also where few fit at a time."""
    draws = np.random.default_rng(3)
    columns = [
        Described(f"x{i}", values)
        for i, values in enumerate(
            [
                draws.normal(size=137),
                np.round(draws.normal(size=137), 2),
                draws.integers(0, 5, 137).astype(np.float64),
                np.where(draws.random(137) < 0.1, np.nan, draws.normal(size=137)),
                1e300 * draws.normal(size=137),
                1e300 * draws.integers(1, 3, 137),
                np.zeros(137),
                draws.normal(size=137).astype(np.float32),
            ]
        )
    ]
    together = drift.baseline(columns, None)
    monkeypatch.setattr(drift, "MOST_CELLS", 300)
    in_twos = drift.baseline(columns, None)
    monkeypatch.setattr(drift, "_complete_numbers", lambda columns, threads: {})
    one_by_one = drift.baseline(columns, None)
    for many, two, one in zip(together, in_twos, one_by_one, strict=True):
        assert list(many) == list(two) == list(one)
        for key in one:
            np.testing.assert_array_equal(many[key], one[key])
            np.testing.assert_array_equal(two[key], one[key])

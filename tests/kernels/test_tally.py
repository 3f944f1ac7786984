"""What labels, costs and cells add up to."""

from __future__ import annotations

from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest

from ilk.kernels import round_pairs


@pytest.mark.parametrize("n", [0, 1, 100])
def test_group_sums_are_exact(path: ModuleType, n: int) -> None:
    rng = np.random.default_rng(n)
    values = rng.normal(size=(n, 2)) * 10.0 ** rng.integers(-6, 6, size=(n, 2))
    weight, label = np.broadcast_to(rng.random((n, 1)), (n, 2)), rng.integers(3, size=n).astype(np.int32)
    sums = round_pairs(path.group_sums(values, weight, label, 3))
    for group in range(3):
        for column in range(2):
            rows = np.flatnonzero(label == group).tolist()
            exact = sum((Fraction(values[i, column]) * Fraction(weight[i, column]) for i in rows), Fraction())
            assert sums[group, column] == float(exact)


@pytest.mark.parametrize("weighted", [False, True])
def test_tally_counts_labels_and_costs(path: ModuleType, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    label, cost = rng.integers(-1, 4, size=200).astype(np.int32), np.round(rng.random(200), 1)
    weight = rng.integers(0, 3, size=200).astype(float) if weighted else None
    size, first_row, total = path.tally(label, cost, weight, 5, 0.5, 0.25)
    heft = np.ones(200) if weight is None else weight
    counted = heft * np.where(cost > 0.5, 0.0, np.where(cost == 0.5, 0.25, 1.0))
    for k in range(5):
        rows = np.flatnonzero(label == k)
        assert size[k] == heft[rows].sum()
        assert first_row[k] == (rows[0] if len(rows) else np.iinfo(np.int64).max)
    assert round_pairs(total) == pytest.approx(float(counted @ cost), rel=1e-14)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 2), (1, 1), (5, 3), (100, 2), (8192, 16), (1000, 17), (3, 0)])
def test_column_ranges(path: ModuleType, kind: type, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    rows, pivot = rng.normal(size=shape).astype(kind), rng.normal(size=shape[1])
    low, high, total = path.column_ranges(rows, pivot)
    np.testing.assert_array_equal(low, rows.min(axis=0, initial=np.inf).astype(float))
    np.testing.assert_array_equal(high, rows.max(axis=0, initial=-np.inf).astype(float))
    np.testing.assert_allclose(total, (rows - pivot).sum(axis=0), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_a_cell_that_is_no_number_shows_in_the_total(path: ModuleType, odd: float) -> None:
    rows = np.ones((50, 3))
    rows[40, 1] = odd
    assert np.isfinite(path.column_ranges(rows, np.zeros(3))[2]).tolist() == [True, False, True]


def test_labels_out_of_range_are_refused(compiled_path: ModuleType) -> None:
    """NumPy refuses in its own words."""
    with pytest.raises(ValueError, match="out of range"):
        compiled_path.group_sums(np.ones((2, 1)), np.ones((2, 1)), np.array([0, 7], np.int32), 3)


def test_weights_are_added_to_bins_row_after_row(path: ModuleType) -> None:
    """Over any runs of rows the sums are those of NumPy over all, to the bit."""
    draw = np.random.default_rng(3)
    place, weight = draw.integers(0, 7, 5000), draw.random(5000)
    bins = np.zeros(9)
    for first in range(0, 5000, 701):
        path.add_to_bins(bins, place[first : first + 701], weight[first : first + 701])
    assert np.array_equal(bins, np.bincount(place, weights=weight, minlength=9))
    with pytest.raises((ValueError, IndexError)):
        path.add_to_bins(bins, np.array([9]), np.ones(1))

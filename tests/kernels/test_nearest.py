"""Nearest centres and the sums of a Lloyd step, against sums of squared differences written out."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ilk import kernels
from ilk.kernels import plain, round_pairs
from ilk.table.block import Encoding

Array = NDArray[np.floating]

LAYOUTS = {
    "rows": lambda raw: raw,
    "columns": np.asfortranarray,
    "backwards": lambda raw: raw[::-1, ::-1],
    "every second": lambda raw: np.repeat(np.repeat(raw, 2, axis=0), 2, axis=1)[::2, ::2],
    "wide rows": lambda raw: np.hstack([raw, raw])[:, : raw.shape[1]],
    "one row, many times": lambda raw: np.broadcast_to(raw[:1], raw.shape),
}


def nothing(n_columns: int) -> tuple[float, Array, None]:
    """The encoding that changes nothing."""
    return 1.0, np.zeros(n_columns), None


def squared_distances(numbers: Array, centres: Array) -> Array:
    """(rows, centres) in extended precision."""
    wide = numbers.astype(np.longdouble)[:, None, :] - centres.astype(np.longdouble)
    return np.square(wide).sum(axis=2)


def cases(seed: int) -> list[tuple[int, int, int]]:
    """Shapes (rows, columns, centres): every size at least once, not every combination, and none that the exact
    distances would take long for."""
    columns = [1, 2, 3, 4, 5, 7, 8, 16, 17, 64, 130]
    centres = [1, 2, 7, 8, 9, 100]
    rows = [0, 1, 5, 23, 24, 25, 48, 49, 100, 1000]
    drawn = np.random.default_rng(seed).choice(rows, size=len(columns) * len(centres))
    shapes = zip(drawn, product(columns, centres), strict=True)
    picked = [(min(int(n), 100) if d * k > 1000 else int(n), d, k) for n, (d, k) in shapes]
    return picked + [(n, 3, 40) for n in rows]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_labels_and_costs_are_those_of_the_differences(path: ModuleType, kind: type, layout: str) -> None:
    for n, d, k in cases(seed=len(layout)):
        rng = np.random.default_rng([n, d, k])
        raw = LAYOUTS[layout](rng.normal(size=(n, d)).astype(kind))
        raw.flags.writeable = False
        centres = rng.normal(size=(k, d))
        encoding = Encoding(0.5, rng.normal(size=d), None if k % 2 else rng.uniform(0.5, 2, size=d))
        before = raw.copy()

        labels, cost = path.nearest(raw, encoding.power, encoding.centre, encoding.factor, centres)

        exact = squared_distances(encoding.apply(raw), centres)
        assert labels.dtype == np.int32
        np.testing.assert_array_equal(labels, exact.argmin(axis=1), err_msg=f"{n, d, k}")
        np.testing.assert_allclose(cost, exact.min(axis=1).astype(float), rtol=1e-14)
        np.testing.assert_array_equal(raw, before)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("weights", ["none", "integer", "zero", "fractional"])
@pytest.mark.parametrize("trimmed", [False, True])
def test_step_sums_every_row_at_its_centre(path: ModuleType, kind: type, weights: str, trimmed: bool) -> None:
    for n, d, k in [
        (0, 3, 2),
        (1, 1, 1),
        (25, 2, 30),
        (100, 5, 7),
        (1000, 17, 9),
        (1100, 4, 100),
        (300, 130, 8),
    ]:
        rng = np.random.default_rng([n, d, k])
        raw, centres = rng.normal(size=(n, d)).astype(kind), rng.normal(size=(k, d))
        weight = {
            "none": None,
            "integer": rng.integers(0, 4, size=n).astype(float),
            "zero": np.zeros(n),
            "fractional": rng.random(n),
        }[weights]
        labels, cost = path.nearest(raw, *nothing(d), centres)
        limit = float(np.sort(cost)[n // 2]) if trimmed and n else np.inf

        sums, totals, total_cost = path.nearest_step(raw, *nothing(d), weight, centres, limit, 0.25)

        counted = np.ones(n) if weight is None else weight.copy()
        counted[cost > limit] = 0.0
        counted[cost == limit] *= 0.25
        member = (labels[:, None] == np.arange(k)).astype(np.longdouble) * counted[:, None]
        expected = member.T @ raw.astype(np.longdouble)
        assert sums.shape == (k, d, 2)
        np.testing.assert_allclose(
            round_pairs(sums), expected.astype(float), rtol=1e-15, atol=1e-16 * (n + 1)
        )
        np.testing.assert_allclose(totals, member.sum(axis=0).astype(float), rtol=1e-15)
        np.testing.assert_allclose(round_pairs(total_cost), float(counted @ cost), rtol=1e-14)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sums_are_exact(path: ModuleType, kind: type) -> None:
    rng = np.random.default_rng(1)
    raw = (rng.normal(size=(500, 2)) * 10.0 ** rng.integers(-6, 6, size=(500, 2))).astype(kind)
    weight = rng.random(500)
    sums, _, _ = path.nearest_step(raw, *nothing(2), weight, np.zeros((1, 2)))
    for column in range(2):
        pairs = zip(raw[:, column].tolist(), weight.tolist(), strict=True)
        exact = sum((Fraction(x) * Fraction(w) for x, w in pairs), Fraction())
        assert round_pairs(sums)[0, column] == float(exact)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_order_of_rows_changes_no_bit(path: ModuleType, kind: type) -> None:
    rng = np.random.default_rng(2)
    for d, k in [(2, 30), (3, 5), (16, 20)]:
        raw, centres, weight = (
            rng.normal(size=(3000, d)).astype(kind),
            rng.normal(size=(k, d)),
            rng.random(3000),
        )
        first = path.nearest_step(raw, *nothing(d), weight, centres)
        order = rng.permutation(3000)
        second = path.nearest_step(raw[order], *nothing(d), weight[order], centres)
        np.testing.assert_array_equal(round_pairs(first[0]), round_pairs(second[0]))
        np.testing.assert_array_equal(first[1], second[1])
        assert round_pairs(first[2]) == round_pairs(second[2])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("far", [0.0, 1e2, 1e8, 1e12])
def test_cost_keeps_its_digits_however_far_the_clusters(path: ModuleType, kind: type, far: float) -> None:
    rng = np.random.default_rng(8)
    truth = rng.integers(3, size=700)
    raw = (np.array([-far, 0.0, far])[truth, None] + rng.normal(size=(700, 4))).astype(kind)
    centres = np.array([raw[truth == k].astype(float).mean(axis=0) for k in range(3)])
    weight = rng.uniform(0.5, 2.0, size=700)
    _, _, cost = path.nearest_step(raw, *nothing(4), weight, centres)
    exact = float(weight.astype(np.longdouble) @ squared_distances(raw, centres).min(axis=1))
    assert round_pairs(cost) == pytest.approx(exact, rel=1e-15, abs=0)


def test_cost_of_rows_at_their_centres_is_zero(path: ModuleType) -> None:
    centres = np.random.default_rng(9).normal(size=(5, 3))
    _, _, cost = path.nearest_step(np.repeat(centres, 20, axis=0), *nothing(3), None, centres)
    assert round_pairs(cost) == 0


def test_squares_noted_in_one_step_serve_the_next(path: ModuleType) -> None:
    rng = np.random.default_rng(10)
    raw, weight, squares = rng.normal(size=(300, 3)), rng.random(300), np.full(2, np.nan)
    for centres in rng.normal(size=(2, 7, 3)):
        noted = path.nearest_step(raw, *nothing(3), weight, centres, squares=squares)
        afresh = path.nearest_step(raw, *nothing(3), weight, centres)
        assert round_pairs(noted[2]) == round_pairs(afresh[2])
    assert round_pairs(squares) == pytest.approx(float(weight @ np.square(raw).sum(axis=1)), rel=1e-14)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sums_are_exact_whatever_comes_later(path: ModuleType, kind: type) -> None:
    """Small numbers first, then large ones, then zeros: the running totals must move with them."""
    rng = np.random.default_rng(11)
    sizes = np.repeat([1e-20, 1e-3, 1.0, 1e9, 0.0, 1e-30, 1.0], 700)
    raw = (rng.normal(size=(len(sizes), 2)) * sizes[:, None]).astype(kind)
    sums, _, _ = path.nearest_step(raw, *nothing(2), None, np.zeros((1, 2)))
    for column in range(2):
        exact = sum(map(Fraction, raw[:, column].tolist()), Fraction())
        assert round_pairs(sums)[0, column] == float(exact)


def test_weight_counts_as_repetition(path: ModuleType) -> None:
    rng = np.random.default_rng(3)
    raw, centres = rng.normal(size=(700, 5)), rng.normal(size=(6, 5))
    weight = rng.integers(0, 4, size=700)
    weighted = path.nearest_step(raw, *nothing(5), weight.astype(float), centres)
    repeated = path.nearest_step(np.repeat(raw, weight, axis=0), *nothing(5), None, centres)
    np.testing.assert_array_equal(round_pairs(weighted[0]), round_pairs(repeated[0]))
    np.testing.assert_array_equal(weighted[1], repeated[1])
    assert round_pairs(weighted[2]) == round_pairs(repeated[2])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "k"), [(1, 5), (2, 7), (2, 60), (4, 9), (9, 16)])
def test_ties_go_to_the_lowest_index(path: ModuleType, kind: type, d: int, k: int) -> None:
    rng = np.random.default_rng([d, k])
    raw = rng.integers(-3, 4, size=(400, d)).astype(kind)
    centres = rng.integers(-2, 3, size=(k, d)).astype(float)  # with duplicates
    labels, cost = path.nearest(raw, *nothing(d), centres)
    exact = squared_distances(raw, centres)
    np.testing.assert_array_equal(labels, exact.argmin(axis=1))
    np.testing.assert_array_equal(cost, exact.min(axis=1).astype(float))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 16])
@pytest.mark.parametrize("far", [1e4, 1e8])
def test_structure_far_from_the_origin_is_seen(path: ModuleType, d: int, far: float) -> None:
    """Two pairs of clusters: the pairs stand `far` apart, the clusters of a pair ten standard deviations."""
    rng = np.random.default_rng(4)
    offset = np.repeat([far, -far], 2)[:, None]
    centres = offset + np.array([0.0, 10.0, 0.0, 10.0])[:, None] * np.ones(d)
    truth = rng.integers(4, size=500)
    raw = centres[truth] + rng.uniform(-1, 1, size=(500, d))
    labels, _ = path.nearest(raw, *nothing(d), centres)
    np.testing.assert_array_equal(labels, truth)


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e30, 1e100])
def test_numbers_beyond_single_precision_are_ranked(path: ModuleType, scale: float) -> None:
    rng = np.random.default_rng(5)
    raw, centres = rng.normal(size=(200, 4)) * scale, rng.normal(size=(9, 4)) * scale
    with np.errstate(over="ignore", invalid="ignore"):
        labels, _ = path.nearest(raw, *nothing(4), centres)
    np.testing.assert_array_equal(labels, squared_distances(raw, centres).argmin(axis=1))


def test_step_labels_as_nearest_does(path: ModuleType) -> None:
    rng = np.random.default_rng(6)
    raw, centres = rng.normal(size=(2000, 2)), rng.normal(size=(50, 2))
    labels, _ = path.nearest(raw, *nothing(2), centres)
    _, totals, _ = path.nearest_step(raw, *nothing(2), None, centres)
    np.testing.assert_array_equal(totals, np.bincount(labels, minlength=50))


def test_distances_are_those_of_the_differences(path: ModuleType) -> None:
    rng = np.random.default_rng(7)
    for n, d, m in [(0, 2, 3), (1, 1, 1), (50, 3, 9), (100, 17, 20)]:
        raw, points = rng.normal(size=(n, d)).astype(np.float32), rng.normal(size=(m, d))
        squared = path.distances(raw, *nothing(d), points)
        np.testing.assert_allclose(squared, squared_distances(raw, points).T.astype(float), rtol=1e-14)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), n=st.integers(0, 120), d=st.integers(1, 20), k=st.integers(1, 30))
def test_fastest_path_returns_the_bits_of_numpy(data: st.DataObject, n: int, d: int, k: int) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    kind = data.draw(st.sampled_from([np.float32, np.float64]))
    layout = LAYOUTS[data.draw(st.sampled_from(sorted(LAYOUTS)))]
    coarse = data.draw(st.sampled_from([1.0, 0.5, 1e-3]))
    raw = layout((np.round(rng.normal(size=(n, d)) / coarse) * coarse).astype(kind))
    centres = np.round(rng.normal(size=(k, d)) / coarse) * coarse
    arguments = raw, 2.0, rng.normal(size=d), rng.uniform(0.5, 2, size=d)
    weight = data.draw(st.sampled_from([None, rng.random(n)]))
    for ours, twin in zip(
        kernels.nearest(*arguments, centres), plain.nearest(*arguments, centres), strict=True
    ):
        np.testing.assert_array_equal(ours, twin)
    ours, twin = (module.nearest_step(*arguments, weight, centres) for module in (kernels, plain))
    np.testing.assert_array_equal(round_pairs(ours[0]), round_pairs(twin[0]))
    np.testing.assert_array_equal(ours[1], twin[1])
    assert round_pairs(ours[2]) == round_pairs(twin[2])
    np.testing.assert_array_equal(
        kernels.distances(*arguments, centres), plain.distances(*arguments, centres)
    )


def test_table_without_columns_has_one_place(path: ModuleType) -> None:
    labels, cost = path.nearest(np.zeros((5, 0)), *nothing(0), np.zeros((3, 0)))
    np.testing.assert_array_equal(labels, np.zeros(5))
    np.testing.assert_array_equal(cost, np.zeros(5))


def test_no_centre_is_an_error(path: ModuleType) -> None:
    with pytest.raises(ValueError, match="at least one centre"):
        path.nearest(np.zeros((3, 2)), *nothing(2), np.zeros((0, 2)))

"""The likelihood tree, compiled and in NumPy: the same merges, ties included, and the merges are the cheapest.

A row counts by its weight.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilk import kernels
from ilk.fitting.tree import drawn_rows, grow_tree, tree_axes
from ilk.kernels import plain_tree

Array = np.ndarray
compiled_only = pytest.mark.skipif(not kernels.COMPILED, reason="no compiled kernels here")
if kernels.COMPILED:
    from ilk.kernels import compiled


def cloud(seed: int, n: int, d: int) -> Array:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 4 * rng.integers(0, 3, n)[:, None]


def tables(seed: int, n: int, d: int) -> list[Array]:
    """Without ties, with many, with rows that stand there twice, as the starts see them, all rows alike."""
    points = cloud(seed, n, d)
    coarse = np.round(points, 1)
    return [
        points,
        coarse,
        np.round(points),
        np.repeat(points, 2, axis=0),
        tree_axes(points, np.ones(n)),
        tree_axes(coarse, weights(seed, n)),
        np.ones((n, d)),
        np.zeros((n, 0)),
    ]


def weights(seed: int, n: int) -> Array:
    return np.random.default_rng(seed).choice([0.5, 1.0, 2.0, 7.0], n)


def assert_same_merges(points: Array) -> None:
    points = np.ascontiguousarray(points)
    for weight in (np.ones(len(points)), weights(len(points), len(points))):
        both = compiled.grow_tree(points, weight), plain_tree.grow_tree(points, weight)
        for ours, twin in zip(*both, strict=True):
            np.testing.assert_array_equal(ours, twin)


@compiled_only
@pytest.mark.parametrize(("n", "d"), [(1, 2), (2, 3), (40, 1), (120, 2), (150, 4), (60, 7), (50, 12)])
def test_the_merges_are_those_of_the_twin(n: int, d: int) -> None:
    for points in tables(n, n, d) if n > 2 else [cloud(0, n, d)]:
        assert_same_merges(points)


@compiled_only
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 25), st.integers(1, 4), st.integers(0, 2))
def test_any_table_merges_as_the_twin(seed: int, n: int, d: int, digits: int) -> None:
    assert_same_merges(np.round(cloud(seed, n, d), digits))


EXTREMES = [0.0, 1e-300, 1e-10, 1e10, 1e200, 1e220, 1e300, 1e308]


@compiled_only
@pytest.mark.parametrize("weight", EXTREMES)
@pytest.mark.parametrize(("n", "d"), [(4, 2), (30, 1), (100, 2), (60, 7)])
def test_any_weight_merges_as_the_twin(n: int, d: int, weight: float) -> None:
    """The points as the starts see them, too: their axes are divided by what the weights add up to."""
    everywhere = np.full(n, weight)
    for points in (cloud(n, n, d), cloud(n, n, d) / np.sqrt(weight or 1.0)):
        both = compiled.grow_tree(points, everywhere), plain_tree.grow_tree(points, everywhere)
        for ours, twin in zip(*both, strict=True):
            np.testing.assert_array_equal(ours, twin)
        assert_tree(*both[0], n)


def assert_tree(first: Array, second: Array, n: int) -> None:
    """Every row but the first joins one before it, once, which has not yet joined another."""
    assert sorted(second.tolist()) == list(range(1, n))
    gone: set[int] = set()
    for a, b in zip(first.tolist(), second.tolist(), strict=True):
        assert 0 <= a < b
        assert a not in gone
        gone.add(b)


ANY_NUMBER = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.integers(1, 20), st.integers(0, 4))
def test_any_doubles_make_a_tree(data: st.DataObject, n: int, d: int) -> None:
    """Not numbers, infinities and the largest ones: whatever they mean, no index leaves the table."""
    cells = data.draw(st.lists(ANY_NUMBER, min_size=n * d, max_size=n * d))
    weight = data.draw(st.lists(ANY_NUMBER, min_size=n, max_size=n))
    points = np.array(cells, dtype=np.float64).reshape(n, d)
    for grown in (kernels.grow_tree, plain_tree.grow_tree):
        assert_tree(*grown(points, np.array(weight)), n)


def group_cost(points: Array, weight: Array, alpha: float) -> float:
    repeated = np.repeat(points, weight.astype(int), axis=0)
    n = len(repeated)
    scatter = (repeated - repeated.mean(axis=0)).T @ (repeated - repeated.mean(axis=0))
    volume = max(float(np.linalg.det(scatter / n)), 0.0)
    return n * float(np.log(volume + (np.trace(scatter) + alpha) / n))


def test_every_merge_is_the_cheapest_of_all_pairs() -> None:
    """Also where rows count several times: costs are those of the repeated rows."""
    points, weight = cloud(3, 18, 2), np.random.default_rng(3).integers(1, 4, 18).astype(float)
    repeated = np.repeat(points, weight.astype(int), axis=0)
    alpha = float(np.square(repeated - repeated.mean(axis=0)).sum()) / repeated.size
    groups = {i: [i] for i in range(len(points))}
    tree = grow_tree(points, weight)

    def cost(rows: list[int]) -> float:
        return group_cost(points[rows], weight[rows], alpha)

    for a, b in zip(tree.first.tolist(), tree.second.tolist(), strict=True):
        rises = {
            (i, j): cost(groups[i] + groups[j]) - cost(groups[i]) - cost(groups[j])
            for i in groups
            for j in groups
            if i < j
        }
        assert rises[a, b] <= min(rises.values()) + 1e-9
        groups[a] += groups.pop(b)
    assert list(groups) == [0]


def test_three_clouds_are_found() -> None:
    rng = np.random.default_rng(1)
    cluster = rng.integers(0, 3, 150)
    points = rng.normal(size=(150, 3)) + 12 * cluster[:, None]
    label = grow_tree(tree_axes(points, np.ones(150)), np.ones(150)).cut(3)
    assert len(set(zip(label.tolist(), cluster.tolist(), strict=True))) == 3


def test_axes_of_weighted_rows_are_those_of_repeated_ones() -> None:
    points, times = cloud(4, 30, 3), np.random.default_rng(4).integers(1, 4, 30)
    once = tree_axes(points, times.astype(float))
    each = tree_axes(np.repeat(points, times, axis=0), np.ones(times.sum()))
    # an axis has no sign
    np.testing.assert_allclose(np.abs(np.repeat(once, times, axis=0)), np.abs(each), rtol=1e-9)


def test_a_sample_draws_by_weight() -> None:
    weight = np.array([1.0, 0.0, 40.0, 1.0, 58.0])
    rows, times = drawn_rows(weight, 10, np.random.default_rng(0))
    assert times.sum() == 10
    assert 1 not in rows
    drawn = dict(zip(rows.tolist(), times.tolist(), strict=True))
    assert drawn[2] in (4, 5)
    assert drawn[4] in (5, 6)

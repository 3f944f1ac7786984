"""The likelihood tree, compiled and in NumPy: the same merges, ties included, and the merges are the cheapest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilk import kernels
from ilk.fitting.tree import grow_tree, tree_axes
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
        tree_axes(points),
        tree_axes(coarse),
        np.ones((n, d)),
        np.zeros((n, 0)),
    ]


def assert_same_merges(points: Array) -> None:
    points = np.ascontiguousarray(points)
    for ours, twin in zip(compiled.grow_tree(points), plain_tree.grow_tree(points), strict=True):
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


def group_cost(points: Array, alpha: float) -> float:
    n = len(points)
    scatter = (points - points.mean(axis=0)).T @ (points - points.mean(axis=0))
    volume = max(float(np.linalg.det(scatter / n)), 0.0)
    return n * float(np.log(volume + (np.trace(scatter) + alpha) / n))


def test_every_merge_is_the_cheapest_of_all_pairs() -> None:
    points = cloud(3, 18, 2)
    alpha = float(np.square(points - points.mean(axis=0)).sum()) / points.size
    groups = {i: [i] for i in range(len(points))}
    tree = grow_tree(points)
    for a, b in zip(tree.first.tolist(), tree.second.tolist(), strict=True):
        rises = {
            (i, j): group_cost(points[groups[i] + groups[j]], alpha)
            - group_cost(points[groups[i]], alpha)
            - group_cost(points[groups[j]], alpha)
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
    label = grow_tree(tree_axes(points)).cut(3)
    assert len(set(zip(label.tolist(), cluster.tolist(), strict=True))) == 3

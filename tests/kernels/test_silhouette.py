"""Sums of distances to clusters, and the silhouette they make."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest
from sklearn.metrics import silhouette_samples


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_the_distances(path: ModuleType, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    for m, n, d, k in [(1, 5, 1, 2), (30, 101, 3, 4), (25, 64, 16, 3), (3, 10, 40, 7), (0, 4, 2, 1)]:
        rows, table = rng.normal(size=(m, d)), rng.normal(size=(n, d))
        starts = np.concatenate([[0], np.sort(rng.integers(0, n + 1, size=k - 1)), [n]])
        weight = rng.random(n) if weighted else None
        sums = path.silhouette_sums(rows, table, starts, weight)
        wide = rows.astype(np.longdouble)[:, None, :] - table
        distance = np.sqrt(np.square(wide).sum(axis=2)) * (1.0 if weight is None else weight)
        expected = [distance[:, a:b].sum(axis=1) for a, b in pairwise(starts)]
        np.testing.assert_allclose(sums, np.array(expected, dtype=float).T, rtol=1e-14)


def test_silhouette_is_that_of_scikit_learn(path: ModuleType) -> None:
    rng = np.random.default_rng(1)
    labels = np.sort(rng.integers(0, 5, size=400))
    table = rng.normal(size=(400, 6)) + labels[:, None]
    sizes = np.bincount(labels)
    sums = path.silhouette_sums(table, table, np.concatenate([[0], np.cumsum(sizes)]))
    own = np.arange(400), labels
    inside = sums[own] / (sizes[labels] - 1)
    between = sums / sizes
    between[own] = np.inf
    nearest = between.min(axis=1)
    silhouette = (nearest - inside) / np.maximum(nearest, inside)
    np.testing.assert_allclose(silhouette, silhouette_samples(table, labels), atol=1e-9)

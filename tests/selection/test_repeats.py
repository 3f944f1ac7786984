"""From the starts to the verdict, a row that counts twice is one that stands there twice."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from ilk.fitting.split_merge import two_means


def blobs(seed):
    """Groups near enough for the search to have something to decide, and how often each row counts."""
    draws = np.random.default_rng(seed)
    d, k = 2 + seed % 2, 2 + seed % 3
    centres = 4 * draws.normal(size=(k, d))
    X = centres[draws.integers(0, k, 50)] + draws.normal(size=(50, d)) * draws.uniform(0.5, 1.5, d)
    return X, draws.integers(1, 4, 50), draws


def told(result):
    """All that the rule measured, to the bit."""
    cells = [(c.structure, c.k, c.bic, c.icl, c.status) for c in result.candidates]
    return cells, result.verdict


@pytest.mark.parametrize("seed", [0, 1])
def test_weights_are_repeated_rows_in_any_order(seed):
    X, weight, draws = blobs(seed)
    names = [f"x{j}" for j in range(X.shape[1])]
    table = dict(zip(names, X.T, strict=True))
    weighted = ilk.cluster({**table, "w": weight}, weight="w", k=range(1, 4))
    order = draws.permutation(weight.sum())
    rows = np.repeat(X, weight, axis=0)[order]
    repeated = ilk.cluster(dict(zip(names, rows.T, strict=True)), k=range(1, 4))
    assert told(repeated) == told(weighted)
    assert np.array_equal(repeated.labels, np.repeat(weighted.labels, weight)[order])


def test_a_cut_in_two_counts_weights():
    draws = np.random.default_rng(0)
    points, weight = draws.normal(size=(40, 3)) * [3, 1, 1], draws.integers(1, 5, 40)
    repeated = two_means(np.repeat(points, weight, axis=0), np.ones(weight.sum()))
    assert np.array_equal(repeated, np.repeat(two_means(points, weight.astype(float)), weight))
    assert not np.array_equal(two_means(points, weight.astype(float)), two_means(points, np.ones(40)))

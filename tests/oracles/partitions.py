"""Slow, plain K-means oracles: every partition of a tiny table, every cut of a sorted column."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def all_partitions(n: int, k: int) -> Iterator[np.ndarray]:
    """Every way to put n rows into at most k groups, once each (restricted growth strings)."""

    def grow(label: list[int], n_groups: int) -> Iterator[np.ndarray]:
        if len(label) == n:
            yield np.array(label)
            return
        for group in range(min(n_groups + 1, k)):
            yield from grow([*label, group], max(n_groups, group + 1))

    yield from grow([], 0)


def within_ss(X: np.ndarray, label: np.ndarray, weight: np.ndarray) -> float:
    total = 0.0
    for group in np.unique(label):
        rows = label == group
        mean = np.average(X[rows], axis=0, weights=weight[rows])
        total += float(weight[rows] @ ((X[rows] - mean) ** 2).sum(axis=1))
    return total


def best_within_ss(X: np.ndarray, k: int, weight: np.ndarray | None = None) -> float:
    weight = np.ones(len(X)) if weight is None else weight
    return min(within_ss(X, label, weight) for label in all_partitions(len(X), k))


def best_line_ss(values: np.ndarray, k: int, weight: np.ndarray) -> float:
    """Plain O(K n^2) dynamic programming over the sorted values."""
    order = np.argsort(values)
    x, w = values[order], weight[order]
    n = len(x)
    best = np.full((k + 1, n + 1), np.inf)
    best[0, 0] = 0.0
    for end in range(1, n + 1):
        for begin in range(end):
            mean = np.average(x[begin:end], weights=w[begin:end])
            cost = float(w[begin:end] @ (x[begin:end] - mean) ** 2)
            for m in range(1, k + 1):
                best[m, end] = min(best[m, end], best[m - 1, begin] + cost)
    return float(best[1:, n].min())

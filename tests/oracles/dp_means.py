"""Slow, plain DP-means: the published walk from row to row, and the best of all partitions of a tiny table."""

from __future__ import annotations

import numpy as np

from tests.oracles.partitions import all_partitions, within_ss


def walk(X: np.ndarray, open_cost: float) -> np.ndarray:
    """Kulis and Jordan 2012, algorithm 1, word for word; labels when nothing changes any more."""
    centres = [X.mean(axis=0)]
    label = np.zeros(len(X), dtype=int)
    while True:
        before = label.copy()
        for n, row in enumerate(X):
            distance = [((row - centre) ** 2).sum() for centre in centres]
            if min(distance) > open_cost:
                centres.append(row)
                label[n] = len(centres) - 1
            else:
                label[n] = int(np.argmin(distance))
        names, label = np.unique(label, return_inverse=True)
        centres = [X[label == k].mean(axis=0) for k in range(len(names))]
        if np.array_equal(label, before):
            return label


def cost_of(X: np.ndarray, label: np.ndarray, open_cost: float, weight: np.ndarray | None = None) -> float:
    """Sum of squared distances to the means of the groups, plus the open cost of each."""
    weight = np.ones(len(X)) if weight is None else weight
    return within_ss(X, label, weight) + open_cost * len(np.unique(label))


def least_cost(X: np.ndarray, open_cost: float) -> float:
    return min(cost_of(X, label, open_cost) for label in all_partitions(len(X), len(X)))

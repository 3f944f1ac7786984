"""Gaussian blurring mean shift: every row moves to the kernel mean of all rows, again and again, until groups of rows
have become points (Cheng 1995; Carreira-Perpinan 2006, with his rule for the end)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from ilk.table.block import Array

BLOCK = 1024  # rows moved at a time
SAME_ENTROPY = 1e-8
LEAST_STEP = 1e-3  # of the bandwidth: the mean move below which a pass was the last
ONE_POINT = 0.05  # of the bandwidth: rows that ended nearer than this to each other are one point


@dataclass(frozen=True, eq=False)
class Blurred:
    """`points` are where the rows ended, `labels` which of them ended together; `n_passes`, and whether they had to."""

    points: Array
    labels: Array
    n_passes: int
    converged: bool


def blur(points: Array, bandwidth: float, max_passes: int = 100) -> Blurred:
    """Move all rows at once until the entropy of the lengths of their moves stays the same.

    In the end the rows of each group move alike, so the histogram of the lengths no longer changes, long before the
    points themselves stand still and in particular before they all meet in one.
    """
    points = np.array(points, dtype=np.float64)
    before, converged, number = np.inf, False, 0
    while number < max_passes and not converged:
        number += 1
        moved = _kernel_means(points, bandwidth)
        length = np.sqrt(np.square(moved - points).sum(axis=1))
        points = moved
        entropy = _histogram_entropy(length)
        converged = abs(entropy - before) < SAME_ENTROPY or float(length.mean()) < LEAST_STEP * bandwidth
        before = entropy
    return Blurred(points, _met(points, ONE_POINT * bandwidth), number, converged)


def _kernel_means(points: Array, bandwidth: float) -> Array:
    moved = np.empty_like(points)
    for first in range(0, len(points), BLOCK):
        here = slice(first, first + BLOCK)
        kernel = np.exp(cdist(points[here], points, "sqeuclidean") / (-2 * bandwidth**2))
        moved[here] = kernel @ points / kernel.sum(axis=1, keepdims=True)
    return moved


def _histogram_entropy(length: Array) -> float:
    """Of a histogram with 0.9 bins a row, from 0 to the longest move."""
    top = float(length.max())
    if top == 0:
        return 0.0
    counts = np.histogram(length, max(1, int(0.9 * len(length))), (0.0, top))[0]
    share = counts[counts > 0] / len(length)
    return float(-(share * np.log(share)).sum())


def _met(points: Array, nearness: float) -> Array:
    """Numbers of the points that hang together in steps of about `nearness`; those of one small cell are taken as one,
    since at the end nearly all are and their pairs would be many."""
    cells, cell = np.unique(np.round(points * (4 / nearness)), axis=0, return_inverse=True)
    pairs = cKDTree(cells).query_pairs(4.0, output_type="ndarray")
    graph = csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(cells),) * 2)
    return np.asarray(connected_components(graph, directed=False)[1][cell.ravel()], dtype=np.int32)

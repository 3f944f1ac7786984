"""Judging a partition by the table alone: cohesion, separation, sums of squares and two ratios of them.

Groups are in the sorted order of their labels. Distances are Euclidean. A row of weight 2
counts twice.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilk.measures.labels import Labels
from ilk.measures.points import Points, checked_threads, need_two_clusters, points_of

Array = NDArray[Any]


def cohesion(X: Any, labels: Labels, *, weight: Any = None, threads: int = 1) -> Array:
    """Per group `1 / sum_x sum_y distance(x, y)` over ordered pairs, larger is tighter.

    Each pair enters twice, as in a double sum over all rows. Infinite for a group of one distinct row.

    >>> cohesion([[0.0], [2.0], [9.0]], [0, 0, 1]).tolist()
    [0.25, inf]
    """
    points = points_of(X, labels, weight)
    sums = np.diag(_pair_sums(points, checked_threads(threads)))
    inverse = np.divide(1.0, sums, where=sums > 0, out=np.full(sums.shape, np.inf))
    return _scaled(inverse, -points.exponent)


def cohesion_centres(X: Any, labels: Labels, *, weight: Any = None) -> Array:
    """Per group `sum_x distance(x, centre)`, smaller is tighter: the centroid form.

    >>> cohesion_centres([[0.0], [2.0], [9.0]], [0, 0, 1]).tolist()
    [2.0, 0.0]
    """
    points = points_of(X, labels, weight)
    return _scaled(points.by_cluster(np.sqrt(points.squares())), points.exponent)


def separation(X: Any, labels: Labels, *, weight: Any = None, threads: int = 1) -> Array:
    """Matrix (groups, groups) of `sum distance(x, y)`, x and y of different groups; diagonal 0.

    >>> separation([[0.0], [2.0], [9.0]], [0, 0, 1]).tolist()
    [[0.0, 16.0], [16.0, 0.0]]
    """
    points = points_of(X, labels, weight)
    sums = _pair_sums(points, checked_threads(threads))
    sums = (sums + sums.T) / 2
    np.fill_diagonal(sums, 0.0)
    return _scaled(sums, points.exponent)


def separation_centres(X: Any, labels: Labels, *, weight: Any = None) -> Array:
    """Matrix (groups, groups) of the distances between the centres.

    >>> separation_centres([[0.0], [2.0], [9.0]], [0, 0, 1]).tolist()
    [[0.0, 8.0], [8.0, 0.0]]
    """
    points = points_of(X, labels, weight)
    return _scaled(_centre_distances(points), points.exponent)


def sse(X: Any, labels: Labels, *, weight: Any = None) -> Array:
    """Per group the mean squared distance to the centre, which some texts call SSE.

    >>> sse([[0.0], [2.0], [9.0]], [0, 0, 1]).tolist()
    [1.0, 0.0]
    """
    points = points_of(X, labels, weight)
    # The centres come first: they refuse a cluster without weight.
    squares = points.squares()
    return _scaled(points.by_cluster(squares) / points.sizes, 2 * points.exponent)


def within_sum_of_squares(X: Any, labels: Labels, *, weight: Any = None) -> float:
    """Sum of squared distances to the centres over all rows: the cost of K-means.

    >>> within_sum_of_squares([[0.0], [2.0], [9.0]], [0, 0, 1])
    2.0
    """
    points = points_of(X, labels, weight)
    return float(_scaled(np.array(_within(points)), 2 * points.exponent))


def calinski_harabasz(X: Any, labels: Labels, *, weight: Any = None) -> float:
    """`(between / (K - 1)) / (within / (n - K))` in sums of squares, larger is better (1974).

    `n` is the sum of weights. Infinite if every row lies on its centre and the centres differ, else 0.

    >>> calinski_harabasz([[0.0], [2.0], [9.0], [11.0]], [0, 0, 1, 1])
    40.5
    """
    points = points_of(X, labels, weight)
    need_two_clusters(points, "Calinski-Harabasz")
    mean = points.sizes @ points.centres / points.sizes.sum()
    between = math.fsum(points.sizes * np.square(points.centres - mean).sum(axis=1))
    within = _within(points)
    freedom = float(points.sizes.sum()) - points.n_clusters
    if within == 0 or freedom <= 0:
        return math.inf if between > 0 else 0.0
    return between / (points.n_clusters - 1) / (within / freedom)


def davies_bouldin(X: Any, labels: Labels, *, weight: Any = None) -> float:
    """Mean over groups of the worst `(spread_i + spread_j) / distance_ij`, smaller is better (1979).

    `spread` is the mean distance to the centre. Infinite if two spread groups share their centre.

    >>> davies_bouldin([[0.0], [2.0], [9.0], [11.0]], [0, 0, 1, 1])
    0.2222222222222222
    """
    points = points_of(X, labels, weight)
    need_two_clusters(points, "Davies-Bouldin")
    spread = points.by_cluster(np.sqrt(points.squares())) / points.sizes
    worst = [_worst(cluster, spread, points.centres) for cluster in range(points.n_clusters)]
    return math.fsum(worst) / len(worst)


def _worst(cluster: int, spread: Array, centres: Array) -> float:
    distance = np.sqrt(np.square(centres - centres[cluster]).sum(axis=1))
    together = spread + spread[cluster]
    together[cluster] = 0.0
    touching = np.where(together > 0, np.inf, 0.0)
    return float(np.divide(together, distance, where=distance > 0, out=touching).max())


def _within(points: Points) -> float:
    return math.fsum(points.by_cluster(points.squares()))


def _centre_distances(points: Points) -> Array:
    return np.array([np.sqrt(np.square(points.centres - centre).sum(axis=1)) for centre in points.centres])


def _pair_sums(points: Points, threads: int) -> Array:
    """Weighted sums of distances (groups, groups) over ordered pairs, conditioned."""
    total = np.zeros((points.n_clusters, points.n_clusters))
    for span, sums in points.distance_sums(points.numbers, threads):
        weighted = sums if points.weight is None else sums * points.weight[span, None]
        np.add.at(total, points.codes[span], weighted)
    return total


def _scaled(values: Array, exponent: int) -> Array:
    """Back to the user's units; what no float64 can hold becomes infinite, without a warning."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(values, exponent))

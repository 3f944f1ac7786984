"""Judging a clustering by the table alone: cohesion, separation, sums of squares and two ratios of them.

Clusters are in the sorted order of their labels. Distances are Euclidean. A row of weight 2
counts twice.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilk.measures.labels import Labels
from ilk.measures.points import Points, checked_threads, need_two_clusters, points_of
from ilk.measures.texts import documented

Array = NDArray[Any]


@documented
def cohesion(X: Any, labels: Labels, *, weight: Any = None, threads: int = 1) -> Array:
    """Return for each cluster `1 / sum_x sum_y distance(x, y)` over ordered pairs; larger is tighter.

    Each pair enters twice, as the double sum of the lecture slides "How to evaluate clusters produced by k-means or
    hierarchical clustering?" says.

    Parameters
    ----------
    {X} {labels} {weight} {threads}

    Returns
    -------
    array of shape (n_clusters,)
        Cohesions; infinite for a cluster of one distinct row.

    Examples
    --------
    >>> cohesion([[0.0], [2.0], [9.0]], [0, 0, 1]).tolist()
    [0.25, inf]
    """
    points = points_of(X, labels, weight)
    sums = np.diag(_pair_sums(points, checked_threads(threads)))
    inverse = np.divide(1.0, sums, where=sums > 0, out=np.full(sums.shape, np.inf))
    return _scaled(inverse, -points.exponent)


@documented
def cohesion_centres(X: Any, labels: Labels, *, weight: Any = None) -> Array:
    """Return for each cluster `sum_x distance(x, centre)`, the centroid form of cohesion; smaller is tighter.

    Parameters
    ----------
    {X} {labels} {weight}

    Returns
    -------
    array of shape (n_clusters,)
        Sums of distances.

    Examples
    --------
    >>> cohesion_centres([[0.0], [2.0], [9.0]], [0, 0, 1]).tolist()
    [2.0, 0.0]
    """
    points = points_of(X, labels, weight)
    return _scaled(points.by_cluster(np.sqrt(points.squares())), points.exponent)


@documented
def separation(X: Any, labels: Labels, *, weight: Any = None, threads: int = 1) -> Array:
    """Return `sum distance(x, y)` over x and y of different clusters, for each pair of clusters.

    Parameters
    ----------
    {X} {labels} {weight} {threads}

    Returns
    -------
    array of shape (n_clusters, n_clusters)
        Sums of distances; 0 on the diagonal.

    Examples
    --------
    >>> separation([[0.0], [2.0], [9.0]], [0, 0, 1]).tolist()
    [[0.0, 16.0], [16.0, 0.0]]
    """
    points = points_of(X, labels, weight)
    sums = _pair_sums(points, checked_threads(threads))
    sums = (sums + sums.T) / 2
    np.fill_diagonal(sums, 0.0)
    return _scaled(sums, points.exponent)


@documented
def separation_centres(X: Any, labels: Labels, *, weight: Any = None) -> Array:
    """Return the distances between the centres of the clusters.

    Parameters
    ----------
    {X} {labels} {weight}

    Returns
    -------
    array of shape (n_clusters, n_clusters)
        Distances; 0 on the diagonal.

    Examples
    --------
    >>> separation_centres([[0.0], [2.0], [9.0]], [0, 0, 1]).tolist()
    [[0.0, 8.0], [8.0, 0.0]]
    """
    points = points_of(X, labels, weight)
    return _scaled(_centre_distances(points), points.exponent)


@documented
def sse(X: Any, labels: Labels, *, weight: Any = None) -> Array:
    """Return for each cluster the mean squared distance to the centre.

    The lecture slides "How to evaluate clusters produced by k-means or hierarchical clustering?" call it SSE.

    Parameters
    ----------
    {X} {labels} {weight}

    Returns
    -------
    array of shape (n_clusters,)
        Mean squared distances.

    Examples
    --------
    >>> sse([[0.0], [2.0], [9.0]], [0, 0, 1]).tolist()
    [1.0, 0.0]
    """
    points = points_of(X, labels, weight)
    # The centres come first: they refuse a cluster without weight.
    squares = points.squares()
    return _scaled(points.by_cluster(squares) / points.sizes, 2 * points.exponent)


@documented
def within_sum_of_squares(X: Any, labels: Labels, *, weight: Any = None) -> float:
    """Return the sum of squared distances to the centres over all rows: the cost of K-means.

    Parameters
    ----------
    {X} {labels} {weight}

    Returns
    -------
    float
        The sum.

    Examples
    --------
    >>> within_sum_of_squares([[0.0], [2.0], [9.0]], [0, 0, 1])
    2.0
    """
    points = points_of(X, labels, weight)
    return float(_scaled(np.array(_within(points)), 2 * points.exponent))


@documented
def calinski_harabasz(X: Any, labels: Labels, *, weight: Any = None) -> float:
    """Return `(between / (K - 1)) / (within / (n - K))` in sums of squares, larger is better.

    Parameters
    ----------
    {X} {labels} {weight}

    Returns
    -------
    float
        The ratio; `n` is the sum of weights. Infinite if every row lies on its centre and the centres differ, else 0.

    References
    ----------
    Caliński and Harabasz (1974). A dendrite method for cluster analysis. Communications in Statistics 3, 1-27.

    Examples
    --------
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


@documented
def davies_bouldin(X: Any, labels: Labels, *, weight: Any = None) -> float:
    """Return the mean over clusters of the worst `(spread_i + spread_j) / distance_ij`, smaller is better.

    Parameters
    ----------
    {X} {labels} {weight}

    Returns
    -------
    float
        The mean; `spread` is the mean distance to the centre. Infinite if two spread clusters share their centre.

    References
    ----------
    Davies and Bouldin (1979). A cluster separation measure. IEEE PAMI 1, 224-227.

    Examples
    --------
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
    """Weighted sums of distances (clusters, clusters) over ordered pairs, conditioned."""
    total = np.zeros((points.n_clusters, points.n_clusters))
    for span, sums in points.distance_sums(points.numbers, threads):
        weighted = sums if points.weight is None else sums * points.weight[span, None]
        np.add.at(total, points.codes[span], weighted)
    return total


def _scaled(values: Array, exponent: int) -> Array:
    """Back to the user's units; what no float64 can hold becomes infinite, without a warning."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(values, exponent))

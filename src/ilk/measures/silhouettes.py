"""Silhouettes (Rousseeuw 1987): exact, by centres, and from a sample with its standard error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilk.errors import UsageError
from ilk.measures.labels import Labels
from ilk.measures.points import BLOCK_ROWS, Points, checked_threads, need_two_clusters, points_of
from ilk.measures.texts import documented
from ilk.random import Seed, stream

Array = NDArray[Any]


@documented
def silhouette(X: Any, labels: Labels, *, weight: Any = None, threads: int = 1) -> Array:
    """Return the silhouette of each row, exact: `(other - own) / max(own, other)`.

    `own` is the mean distance to the other rows of the cluster, `other` the smallest mean distance to another
    cluster. A row of weight 0 counts in no mean and still gets its value. The average over the table is
    `numpy.average(silhouette(X, labels), weights=weight)`.

    Parameters
    ----------
    {X} {labels} {weight} {threads}

    Returns
    -------
    array of shape (n_rows,)
        Silhouettes between -1 and 1; 0 for a cluster of one row.

    References
    ----------
    Rousseeuw (1987). Silhouettes: a graphical aid to the interpretation and validation of cluster analysis. Journal of
    Computational and Applied Mathematics 20, 53-65.

    Examples
    --------
    >>> silhouette([[0.0], [1.0], [9.0], [10.0]], ["a", "a", "b", "b"]).round(3).tolist()
    [0.895, 0.882, 0.882, 0.895]
    """
    points = points_of(X, labels, weight)
    need_two_clusters(points, "the silhouette")
    return _of_rows(points, None, checked_threads(threads))


@documented
def silhouette_sample(
    X: Any, labels: Labels, n_rows: int, seed: Seed = 0, *, threads: int = 1
) -> tuple[float, float]:
    """Return the mean silhouette from `n_rows` rows drawn from every cluster by its size, and its standard error.

    The drawn rows are compared with the whole table, so each value is exact and only the mean is estimated:
    `error^2 = sum_k (n_k / n)^2 variance_k / m_k (1 - m_k / n_k)`.

    Parameters
    ----------
    {X} {labels}
    n_rows : int
        Number of rows to draw.
    seed : int, default=0
        Seed of the draw.
    {threads}

    Returns
    -------
    mean : float
        The mean silhouette.
    error : float
        Its standard error; 0 with all rows.

    Examples
    --------
    >>> silhouette_sample([[0.0], [1.0], [9.0], [10.0]], [0, 0, 1, 1], 4)[1]
    0.0
    """
    points = points_of(X, labels)
    need_two_clusters(points, "the silhouette")
    sizes = np.diff(points.starts)
    drawn = _shares(sizes, min(int(n_rows), len(points.codes)))
    total, variance, first = [], [], 0
    chosen = np.concatenate([_drawn(points, k, int(m), seed) for k, m in enumerate(drawn)])
    values = _of_rows(points, chosen, checked_threads(threads))
    for size, m in zip(sizes.tolist(), drawn.tolist(), strict=True):
        part, first = values[first : first + m], first + m
        share = size / len(points.codes)
        total.append(share * part.mean())
        if m < size:
            variance.append(share**2 * part.var(ddof=1) / m * (1 - m / size))
    return math.fsum(total), math.sqrt(math.fsum(variance))


@documented
def silhouette_centres(X: Any, labels: Labels, *, centres: Any = None, weight: Any = None) -> Array:
    """Return the silhouette of each row with distances to the centres in place of mean distances.

    Also called the simplified silhouette; its time is linear in the rows.

    Parameters
    ----------
    {X} {labels}
    centres : None or array of shape (n_clusters, n_columns), default=None
        Centres in the sorted order of the labels; None takes the means of the clusters.
    {weight}

    Returns
    -------
    array of shape (n_rows,)
        Silhouettes between -1 and 1; 0 for a cluster of one row.

    References
    ----------
    Hruschka, Campello and de Castro (2006). Evolving clusters in gene-expression data. Information Sciences 176,
    1898-1927.

    Examples
    --------
    >>> silhouette_centres([[0.0], [1.0], [9.0], [10.0]], [0, 0, 1, 1]).round(3).tolist()
    [0.947, 0.941, 0.941, 0.947]
    """
    points = points_of(X, labels, weight)
    need_two_clusters(points, "the silhouette")
    middle = points.centres if centres is None else _given(points, X, centres)
    result = np.empty(len(points.codes))
    alone = np.diff(points.starts) == 1
    for first in range(0, len(result), BLOCK_ROWS):
        span = slice(first, first + BLOCK_ROWS)
        own = points.codes[span]
        distance = np.column_stack([np.sqrt(np.square(points.numbers[span] - c).sum(axis=1)) for c in middle])
        result[span] = _ratio(*_own_and_other(distance, own), ~alone[own])
    return result


def _of_rows(points: Points, chosen: Array | None, threads: int) -> Array:
    """Silhouettes of all rows, or of the chosen ones."""
    rows = points.numbers if chosen is None else points.numbers[chosen]
    codes = points.codes if chosen is None else points.codes[chosen]
    weight = np.ones(len(points.codes)) if points.weight is None else points.weight
    itself = np.minimum(weight if chosen is None else weight[chosen], 1.0)
    result = np.empty(len(codes))
    for span, sums in points.distance_sums(rows, threads):
        own = codes[span]
        # One copy of the row is not its own neighbour; a row of weight 0 is not in the sums at all.
        left = points.sizes[own] - itself[span]
        mean = np.divide(sums, points.sizes, where=points.sizes > 0, out=np.full(sums.shape, np.inf))
        inside = sums[np.arange(len(own)), own]
        within = np.divide(inside, left, where=left > 0, out=np.zeros(len(own)))
        result[span] = _ratio(within, _own_and_other(mean, own)[1], left > 0)
    return result


def _own_and_other(distance: Array, own: Array) -> tuple[Array, Array]:
    """Distance to the own cluster and the smallest to another; overwrites `distance`."""
    rows = np.arange(len(own))
    within = distance[rows, own]
    distance[rows, own] = np.inf
    return within, distance.min(axis=1)


def _ratio(within: Array, other: Array, defined: Array) -> Array:
    largest = np.maximum(within, other)
    ratio = np.zeros(len(within))
    np.divide(other - within, largest, where=defined & (largest > 0), out=ratio)
    return ratio


def _given(points: Points, X: Any, centres: Any) -> Array:
    """Centres of the user in the conditioned units of the points."""
    given = np.asarray(centres, dtype=np.float64)
    shape = points.n_clusters, points.numbers.shape[1]
    if given.shape != shape or not np.isfinite(given).all():
        raise UsageError(
            "bad-centres",
            f"centres has shape {given.shape} or cells that are not finite",
            do=f"Give finite numbers of shape {shape}, in the sorted order of the labels",
        )
    # The first row is a point known in both units.
    offset = given - np.asarray(X, dtype=np.float64)[0]
    return np.asarray(np.ldexp(offset, -points.exponent) + points.numbers[0])


def _shares(sizes: Array, n_rows: int) -> Array:
    """How many rows to draw from each cluster: two at least (one where there is only one), else by size."""
    least = np.minimum(sizes, 2)
    if n_rows < least.sum():
        raise UsageError(
            "sample-too-small",
            f"n_rows={n_rows} is too small for {len(sizes)} groups",
            do=f"Give at least {int(least.sum())}: two rows of each group",
        )
    room = sizes - least
    wished = (n_rows - least.sum()) * room / max(1, room.sum())
    more = np.floor(wished).astype(np.int64)
    over = n_rows - int(least.sum()) - int(more.sum())
    more[np.argsort(more - wished, kind="stable")[:over]] += 1
    return np.asarray(least + more)


def _drawn(points: Points, cluster: int, n_rows: int, seed: Seed) -> Array:
    members = points.order[points.starts[cluster] : points.starts[cluster + 1]]
    if n_rows == len(members):
        return members
    return np.sort(stream(seed, "silhouette-sample", cluster).choice(members, n_rows, replace=False))

"""How far a column of new rows is from the same column of other rows: bins, divergence in nats, chance.

Numbers fall into the tenths of the first rows, categories into their levels; one more bin holds the missing cells and,
for categories, one the levels that were not there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

Array = NDArray[Any]

N_BINS = 10


def tenths(values: Array) -> Array:
    """Inner edges of bins that hold about as many values each; fewer where values repeat. NaN is not counted.

    >>> tenths(np.arange(1.0, 101.0)).tolist()[:3]
    [10.0, 20.0, 30.0]
    """
    present = np.asarray(values, dtype=np.float64)
    present = present[~np.isnan(present)]
    if not len(present):
        return np.empty(0)
    edges = np.sort(present)[_places(len(present))]
    return np.asarray(edges[np.concatenate([[True], edges[1:] != edges[:-1]])])


def tenths_of_rows(values: Array) -> tuple[Array, Array]:
    """`tenths` of each row of an array and the counts of its bins, as `binned_numbers` has them, for rows without NaN;
    repeated edges are kept.

    >>> edges, counts = tenths_of_rows(np.arange(1.0, 101.0)[None])
    >>> edges[0].tolist() == tenths(np.arange(1.0, 101.0)).tolist(), counts[0].tolist() == [10.0] * 10 + [0.0]
    (True, True)
    """
    n_rows, n_values = values.shape
    ordered = np.sort(values, axis=1)
    edges = ordered[:, _places(n_values)]
    within = np.stack([(ordered <= edge[:, None]).sum(axis=1) for edge in edges.T], axis=1)
    ends = np.column_stack([np.zeros(n_rows), within, np.full((n_rows, 2), n_values)])
    return edges, np.diff(ends, axis=1)


@cache
def _places(n_values: int) -> Array:
    """Where in so many sorted values the edges stand: the inverse of the shares."""
    place = np.ceil(n_values * (np.arange(1, N_BINS) / N_BINS) - 1).astype(np.intp)
    return np.maximum(place, 0)


def binned_numbers(values: Array, edges: Array, weight: Array) -> Array:
    """Weight in each bin (edge before, edge], then of the missing cells.

    >>> binned_numbers(np.array([1.0, 5.0, np.nan]), np.array([2.0]), np.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """
    missing = np.isnan(values)
    place = np.where(missing, len(edges) + 1, np.searchsorted(edges, values, side="left"))
    return np.bincount(place, weights=weight, minlength=len(edges) + 2)


def binned_levels(codes: Array, n_levels: int, weight: Array, unseen: Array | None = None) -> Array:
    """Weight of each level, of the missing cells (code -1), and of the cells that are `unseen`.

    >>> binned_levels(np.array([0, 1, -1, -1]), 2, np.ones(4), np.array([0, 0, 0, 1], dtype=bool)).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    place = np.where(codes < 0, n_levels, codes)
    if unseen is not None:
        place = np.where(unseen, n_levels + 1, place)
    return np.bincount(place, weights=weight, minlength=n_levels + 2)


def divergence(now: Array, before: Array) -> float:
    """Nats per row of counts `now` from counts `before`: sum p log(p / q), both smoothed by one row of their mixture.

    >>> round(divergence(np.array([60.0, 40.0]), np.array([30.0, 70.0])), 2)
    0.19
    """
    if now.sum() == 0 or before.sum() == 0:
        return 0.0
    both = (now + before) / (now.sum() + before.sum())
    p, q = ((counts + both) / (counts.sum() + 1) for counts in (now, before))
    there = both > 0
    return max(0.0, float((p[there] * np.log(p[there] / q[there])).sum()))


def chance(now: Array, before: Array) -> float:
    """Probability of counts at least so far apart by chance alone (likelihood-ratio test of equal shares).

    >>> chance(np.array([5.0, 5.0]), np.array([50.0, 50.0]))
    1.0
    """
    there = now + before > 0
    if there.sum() < 2 or now.sum() == 0 or before.sum() == 0:
        return 1.0
    table = np.vstack([now[there], before[there]])
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(table > 0, table * np.log(table / expected), 0.0)
    return float(chdtrc(int(there.sum()) - 1, max(0.0, 2 * terms.sum())))


def share_interval(count: float, n_rows: float) -> tuple[float, float]:
    """Limits between which a share lies in 95 of 100 samples (Wilson, J. Am. Stat. Assoc. 22, 1927, 209-212).

    >>> low, high = share_interval(10, 100)
    >>> round(low, 3), round(high, 3)
    (0.055, 0.174)
    """
    if n_rows <= 0:
        return 0.0, 1.0
    z = 1.959963984540054
    share, spread = count / n_rows, z * z / n_rows
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * float(np.sqrt(share * (1 - share) / n_rows + spread / (4 * n_rows)))
    return max(0.0, middle - half), min(1.0, middle + half)


def effective(counts: Array, weight: Array) -> Array:
    """Weights in bins as numbers of rows: scaled so that they add up to Kish's effective number."""
    total = float(weight.sum())
    rows = total**2 / float(np.square(weight).sum()) if total > 0 else 0.0
    return counts * (rows / total) if total > 0 else counts

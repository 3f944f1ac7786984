"""The kernels in NumPy: what the compiled ones mean, and what runs where there was no compiler.

Each takes `raw` (rows, columns), float32 or float64 with any strides, and the encoding `power`, `centre`,
`factor`: the numbers are `(raw * power - centre) * factor` in the dtype of `raw`. Work goes by strips of
rows, so nothing as large as the table is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf

import numpy as np

from ilk.kernels.pairs import Array, add_pairs, round_pairs, two_product, two_sum

STRIP_NUMBERS = 1 << 17  # numbers in the largest temporary of a strip: 1 MB, about half a second-level cache


def nearest_step(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    weight: Array | None,
    centres: Array,
    limit: float = inf,
    share_at_limit: float = 1.0,
) -> tuple[Array, Array, Array]:
    """Give each row to its nearest centre and gather what the next centres are made of.

    Returns the sums of `weight * row` per centre (centres, columns, 2) as pairs, the weights per centre
    (centres,), and the sum of `weight * cost` (2,) as a pair. Cost is the squared distance; a row that costs
    more than `limit` does not count, one that costs just `limit` counts with `share_at_limit` of its weight.
    """
    sums = np.zeros((*centres.shape, 2))
    weights = np.zeros((len(centres), 1, 2))
    total_cost = np.zeros((1, 1, 2))
    for rows, numbers in _strips(raw, power, centre, factor, len(centres)):
        labels = _labels(numbers, centres)
        cost = _cost(numbers, centres, labels)
        counted = np.ones(len(cost)) if weight is None else weight[rows]
        counted = np.where(cost > limit, 0.0, np.where(cost == limit, counted * share_at_limit, counted))
        kept = counted != 0
        numbers, labels, cost, counted = numbers[kept], labels[kept], cost[kept], counted[kept]
        member = np.zeros((len(labels), len(centres)))
        member[np.arange(len(labels)), labels] = 1.0
        everyone = np.ones((len(labels), 1))
        for part in two_product(numbers.astype(np.float64), counted[:, None]):
            sums = add_pairs(sums, _exact_sums(member, part))
        for part in two_product(cost[:, None], counted[:, None]):
            total_cost = add_pairs(total_cost, _exact_sums(everyone, part))
        weights = add_pairs(weights, _exact_sums(member, counted[:, None]))
    return sums, round_pairs(weights)[:, 0], total_cost[0, 0]


def nearest(
    raw: Array, power: float, centre: Array, factor: Array | None, centres: Array
) -> tuple[Array, Array]:
    """Number of the nearest centre of each row, the lowest among equals, and the squared distance to it."""
    labels, cost = np.empty(len(raw), dtype=np.int32), np.empty(len(raw))
    for rows, numbers in _strips(raw, power, centre, factor, len(centres)):
        labels[rows] = _labels(numbers, centres)
        cost[rows] = _cost(numbers, centres, labels[rows])
    return labels, cost


def distances(raw: Array, power: float, centre: Array, factor: Array | None, points: Array) -> Array:
    """Squared distances (points, rows) of every row to every point, by differences."""
    squared = np.empty((len(points), len(raw)))
    for rows, numbers in _strips(raw, power, centre, factor, len(points)):
        squared[:, rows] = _squared_distances(numbers, points).T
    return squared


def silhouette_sums(rows: Array, table: Array, starts: Array, weight: Array | None = None) -> Array:
    """Sums (rows, clusters) of distances to the rows of cluster k, `table[starts[k] : starts[k + 1]]`."""
    sums = np.zeros((len(rows), len(starts) - 1))
    step = max(1, STRIP_NUMBERS // max(1, len(rows)))
    for cluster, (start, end) in enumerate(pairwise(starts.tolist())):
        for first in range(start, end, step):
            last = min(first + step, end)
            distance = np.sqrt(_squared_distances(rows, table[first:last]))
            sums[:, cluster] += distance.sum(axis=1) if weight is None else distance @ weight[first:last]
    return sums


def _strips(
    raw: Array, power: float, centre: Array, factor: Array | None, n_centres: int
) -> Iterator[tuple[slice, Array]]:
    """Row ranges and their encoded numbers."""
    if n_centres == 0:
        raise ValueError("at least one centre is needed")
    kind = raw.dtype.type
    centre = centre.astype(kind)
    factor = None if factor is None else factor.astype(kind)
    step = max(16, STRIP_NUMBERS // max(n_centres, raw.shape[1], 1))
    for first in range(0, len(raw), step):
        numbers = raw[first : first + step] * kind(power)
        numbers -= centre
        if factor is not None:
            numbers *= factor
        yield slice(first, first + len(numbers)), numbers


def _labels(numbers: Array, centres: Array) -> Array:
    """Nearest centres by `score = x . c - |c|^2 / 2`, by differences where rounding leaves a row open."""
    norms = np.square(centres).sum(axis=1)
    score = numbers @ centres.T.astype(numbers.dtype)
    score -= (norms / 2).astype(numbers.dtype)
    everyone = np.arange(len(numbers))
    labels: Array = np.argmax(score, axis=1)
    best = score[everyone, labels]
    score[everyone, labels] = -inf
    # The bound is derived in native/ranking.hpp.
    unit = 1.02 * (centres.shape[1] + 4) * (np.finfo(numbers.dtype).eps + 2 * np.finfo(np.float64).eps)
    tolerance = unit * (np.square(numbers).sum(axis=1) / 2 + 1.5 * norms.max()) + np.finfo(numbers.dtype).tiny
    undecided = np.flatnonzero(~(best - score.max(axis=1) > tolerance))
    labels[undecided] = np.argmin(_squared_distances(numbers[undecided], centres), axis=1)
    return labels


def _squared_distances(numbers: Array, points: Array) -> Array:
    """Squared distances (rows, points) in double precision, summed column after column."""
    squared = np.zeros((len(numbers), len(points)))
    for values, coordinates in zip(numbers.T.astype(np.float64), points.T, strict=True):
        difference = values[:, None] - coordinates
        squared += np.square(difference, out=difference)
    return squared


def _cost(numbers: Array, centres: Array, labels: Array) -> Array:
    """Squared distance of each row to its centre, in the eight partial sums of native/nearest.hpp."""
    partial = np.zeros((len(numbers), 8))
    for column in range(0, numbers.shape[1], 8):
        difference = numbers[:, column : column + 8] - centres[labels, column : column + 8]
        partial[:, : difference.shape[1]] += np.square(difference, out=difference)
    halves = partial[:, :4] + partial[:, 4:]
    quarters = halves[:, :2] + halves[:, 2:]
    return np.asarray(quarters[:, 0] + quarters[:, 1])


def _exact_sums(member: Array, values: Array) -> Array:
    """Sums of values (rows, columns) over the rows of each component, `member` (rows, components), as pairs.

    Values are cut into layers of so few bits that sums of one layer are exact in any order (Rump, Ogita,
    Oishi, SIAM J. Sci. Comput. 31, 2008, algorithm 3.2); three layers hold about 120 bits.
    """
    sums = np.zeros((member.shape[1], values.shape[1], 2))
    for _ in range(3):
        peak = np.abs(values).max(initial=0.0)
        if not 0.0 < peak < inf:
            break
        grain = 2.0 ** (np.ceil(np.log2(peak)) + np.ceil(np.log2(len(values))) + 2)
        layer = (values + grain) - grain
        values = values - layer
        total, rest = two_sum(sums[..., 0], member.T @ layer)
        sums = np.stack([total, sums[..., 1] + rest], axis=-1)
    return sums

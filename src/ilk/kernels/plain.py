"""The kernels in NumPy: what the compiled ones mean, and what runs where there was no compiler.

Those of Lloyd's steps take `raw` (rows, columns), float32 or float64 with any strides, and the encoding
`power`, `centre`, `factor`: the numbers are `(raw * power - centre) * factor` in the dtype of `raw`. Work goes
by strips of rows, so nothing as large as the table is made.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import reduce
from math import inf

import numpy as np

from ilk.kernels.pairs import Array, add_pairs, round_pairs, two_product, two_sum

STRIP_NUMBERS = 1 << 17  # numbers in the largest temporary of a strip: 1 MB, about half a second-level cache
LEAST_SHARE_OF_SQUARES = 2.0**-44  # below it, the 106 bits of a pair leave less than a double's to the cost


def nearest_step(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    weight: Array | None,
    centres: Array,
    limit: float = inf,
    share_at_limit: float = 1.0,
    squares: Array | None = None,
    part_rows: int | None = None,
    threads: int = 1,
) -> tuple[Array, Array, Array]:
    """Give each row of a block, or of all in parts of so many rows, to its nearest centre and gather what the next
    centres are made of.

    Returns the sums of `weight * row` per centre (centres, columns, 2) as pairs, the weights per centre
    (centres,), and the sum of `weight * cost` (2,) as a pair. Cost is the squared distance; a row that costs
    more than `limit` does not count, one that costs just `limit` counts with `share_at_limit` of its weight.

    Where all rows count, the cost follows from the sums and from `squares`, the sum of `weight * |row|^2`. This
    is a note (2,) for each part that the caller may keep for the next step on the same rows, NaN at first.
    """
    if part_rows is not None and part_rows < len(raw):
        notes = itertools.repeat(None) if squares is None else squares.reshape(-1, 2)
        parts = [
            nearest_step(
                raw[first : first + part_rows],
                *(power, centre, factor),
                None if weight is None else weight[first : first + part_rows],
                *(centres, limit, share_at_limit),
                note,
            )
            for first, note in zip(range(0, len(raw), part_rows), notes, strict=False)
        ]
        by_part = zip(*parts, strict=True)
        return (
            reduce(add_pairs, next(by_part)),
            reduce(np.add, next(by_part)),
            reduce(add_pairs, next(by_part)),
        )
    if limit != inf:
        return _step_by_rows(raw, power, centre, factor, weight, centres, limit, share_at_limit)
    n_centres = len(centres)
    sums, weights = np.zeros((*centres.shape, 2)), np.zeros((n_centres, 1, 2))
    total = np.zeros((1, 1, 2))
    for rows, numbers in _strips(raw, power, centre, factor, n_centres):
        labels = _labels(numbers, centres)
        counted = np.ones((len(numbers), 1)) if weight is None else weight[rows, None]
        sums = add_pairs(sums, group_sums(numbers, counted, labels, n_centres))
        weights = add_pairs(weights, group_sums(np.ones_like(counted), counted, labels, n_centres))
        if squares is None or np.isnan(squares[0]):
            for part in two_product(numbers.astype(np.float64), numbers.astype(np.float64)):
                total = add_pairs(total, _sum_of_products(part, counted))
    if squares is None:
        squares = np.full(2, np.nan)
    if np.isnan(squares[0]):
        squares[:] = total[0, 0]
    cost = _cost_from_sums(squares, sums, weights, centres)
    if not cost[0] > LEAST_SHARE_OF_SQUARES * squares[0]:
        return _step_by_rows(raw, power, centre, factor, weight, centres, limit, share_at_limit)
    return sums, round_pairs(weights)[:, 0], cost


def _step_by_rows(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    weight: Array | None,
    centres: Array,
    limit: float,
    share_at_limit: float,
) -> tuple[Array, Array, Array]:
    """The step with the cost summed row by row."""
    n_centres = len(centres)
    sums, weights = np.zeros((*centres.shape, 2)), np.zeros((n_centres, 1, 2))
    total_cost = np.zeros((1, 1, 2))
    for rows, numbers in _strips(raw, power, centre, factor, n_centres):
        labels = _labels(numbers, centres)
        cost = _cost(numbers, centres, labels)
        counted = np.ones(len(cost)) if weight is None else weight[rows]
        counted = np.where(cost > limit, 0.0, np.where(cost == limit, counted * share_at_limit, counted))
        cost[counted == 0] = 0.0
        counted = counted[:, None]
        sums = add_pairs(sums, group_sums(numbers, counted, labels, n_centres))
        weights = add_pairs(weights, group_sums(np.ones_like(counted), counted, labels, n_centres))
        total_cost = add_pairs(total_cost, _sum_of_products(cost[:, None], counted))
    return sums, round_pairs(weights)[:, 0], total_cost[0, 0]


def _cost_from_sums(squares: Array, sums: Array, weights: Array, centres: Array) -> Array:
    """`squares - sum of c . (2 S - W c)` over the centres c, their sums S and weights W, as a pair."""
    total = squares[None, None]
    for part in (0, 1):
        total = add_pairs(total, _sum_of_products(sums[..., part], -2.0 * centres))
        for square in two_product(centres, centres):
            total = add_pairs(total, _sum_of_products(square, weights[..., part]))
    return np.asarray(total[0, 0])


def _sum_of_products(values: Array, weight: Array) -> Array:
    """Sum of `weight * value` over all cells, (1, 1, 2)."""
    cells, by_cell = values.reshape(-1, 1), np.broadcast_to(weight, values.shape).reshape(-1, 1)
    return group_sums(cells, by_cell, np.zeros(len(cells), dtype=np.int32), 1)


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
    for cluster, (start, end) in enumerate(itertools.pairwise(starts.tolist())):
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


def group_sums(values: Array, weight: Array, label: Array, n_groups: int) -> Array:
    """Sums of `weight * value` over the rows of each group, as pairs (n_groups, columns, 2).

    `values` is (rows, columns), `weight` the same or one column for all. Of a cell of weight 0, nothing.

    >>> group_sums(np.array([[1e16], [1.0], [-1e16]]), np.ones((3, 1)), np.zeros(3, int), 1).sum()
    np.float64(1.0)
    """
    n_columns = values.shape[1]
    group = (label[:, None].astype(np.intp) * n_columns + np.arange(n_columns)).ravel()
    sums = np.zeros((n_groups * n_columns, 2))
    values = values.astype(np.float64, copy=False)
    if not weight.all():
        values = np.where(weight == 0, 0.0, values)
    for terms in two_product(values, weight):
        for part in _sums_by_layers(terms.ravel(), group, len(sums)):
            total, rest = two_sum(sums[:, 0], part)
            sums = np.stack([total, sums[:, 1] + rest], axis=-1)
    total, rest = two_sum(sums[:, 0], sums[:, 1])
    return np.stack([total, rest], axis=-1).reshape(n_groups, n_columns, 2)


def _sums_by_layers(terms: Array, group: Array, n_groups: int) -> Iterator[Array]:
    """Terms cut into layers of so few bits that sums of one layer are exact in any order.

    Rump, Ogita, Oishi, SIAM J. Sci. Comput. 31, 2008, algorithm 3.2; three layers hold about 120 bits.
    """
    for _ in range(3):
        peak = np.abs(terms).max(initial=0.0)
        if not 0.0 < peak < inf:
            return
        grain = 2.0 ** (np.frexp(peak)[1] + np.ceil(np.log2(len(terms) + 1)) + 1)
        layer = (terms + grain) - grain
        yield np.bincount(group, weights=layer, minlength=n_groups)
        terms = terms - layer


def tally(
    label: Array,
    cost: Array,
    weight: Array | None,
    n_labels: int,
    limit: float = inf,
    share_at_limit: float = 1.0,
) -> tuple[Array, Array, Array]:
    """Weight (n_labels,) and first row of each label, and the sum of `weight * cost` (2,) as a pair.

    A label below zero belongs to none; `limit` and `share_at_limit` as in `nearest_step`.
    """
    counted = np.ones(len(label)) if weight is None else weight
    placed = label >= 0
    size = np.bincount(label[placed], weights=counted[placed], minlength=n_labels)
    first_row = np.full(n_labels, np.iinfo(np.int64).max)
    first_row[label[placed][::-1]] = np.flatnonzero(placed)[::-1]
    counted = np.where(cost > limit, 0.0, np.where(cost == limit, counted * share_at_limit, counted))
    everyone = np.zeros(len(label), dtype=np.int32)
    return size, first_row, group_sums(cost[:, None], counted[:, None], everyone, 1)[0, 0]


def add_to_bins(bins: Array, place: Array, weight: Array) -> None:
    """Adds the weight of each row to the bin that it falls into, row after row: as `np.bincount` does, over any runs of
    rows."""
    np.add.at(bins, place, weight)


def column_ranges(rows: Array, pivot: Array) -> tuple[Array, Array, Array]:
    """Smallest and largest value of each column and the sum of `value - pivot`.

    The sum is not finite where a cell is not, and only then may the other two be wrong. Several rows of a narrow
    table are taken as one wide row, which NumPy reduces several times faster.
    """
    n_rows, n_columns = rows.shape
    together = 1 << max(0, min(64, 128 // max(n_columns, 1)).bit_length() - 1)

    def over_rows(reduction: np.ufunc, cells: Array, initial: float) -> Array:
        if together > 1 and n_rows % together == 0 and cells.flags.c_contiguous:
            cells = cells.reshape(n_rows // together, together * n_columns)
            cells = reduction.reduce(cells, axis=0, initial=initial).reshape(together, n_columns)
        return np.asarray(reduction.reduce(cells, axis=0, initial=initial), dtype=np.float64)

    offset = np.subtract(rows, pivot, dtype=np.float64, order="C")
    low, high = over_rows(np.minimum, rows, inf), over_rows(np.maximum, rows, -inf)
    return low, high, over_rows(np.add, offset, 0.0)


def content_sums(raw: Array, power: float, factors: Array, missing: int) -> Array:
    """The sum of the bits of each row's cells times `power`, each times the factor of its column, modulo 2^64.

    >>> content_sums(np.array([[0.0], [-0.0], [np.nan]]), 1.0, np.array([3], dtype=np.uint64), 7).tolist()
    [0, 0, 21]
    """
    return np.asarray((bits_of(raw, power, missing) * factors).sum(axis=1, dtype=np.uint64))


def bits_of(cells: Array, power: float, missing: int) -> Array:
    """The bits of cells by their value: -0.0 is 0.0, every NaN is `missing`, a float32 is the double of its value."""
    numbers = np.ascontiguousarray(cells, dtype=np.float64) * power
    numbers += 0.0  # -0.0 becomes 0.0
    bits = numbers.view(np.uint64)
    bits[np.isnan(numbers)] = missing
    bits ^= bits >> np.uint64(32)  # the low bits of short numbers are all zero
    return bits

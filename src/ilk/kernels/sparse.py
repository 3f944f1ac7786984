"""The kernels for rows in compressed form (CSR): what is not stored is 0, or the first level of its category.

An encoded cell that is not stored is the same number in every row, `zero_d`. So with y = x - zero and e = centre - zero

    |x - centre|^2 = |y|^2 - 2 y . e + |e|^2             over the stored cells, and one |e|^2 for each centre
    log density    = base_k + sum over stored codes of (log_level_k[code] - log_level_k[first])

and a pass costs what is stored times K. Distances that nearly cancel are taken anew by differences, so that a row at a
centre is at distance 0 exactly. Numbers beside compressed codes go to the kernel for arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from ilk.kernels.pairs import Array, round_pairs, two_product
from ilk.kernels.plain_mixture import LOG_TINY
from ilk.kernels.plain_product import ProductSums

CANCELLED = 1e-6  # of |y|^2 + |e|^2: a distance below has lost six digits, and is taken anew


def or_sparse(dense: Callable[..., Any], sparse: Callable[..., Any], place: int = 0) -> Callable[..., Any]:
    """The kernel for arrays, and the other where argument `place` is in compressed form."""

    def kernel(*given: Any, **named: Any) -> Any:
        compressed = hasattr(given[place], "indptr")
        return sparse(dense, *given, **named) if compressed else dense(*given, **named)

    kernel.__doc__, kernel.__name__ = dense.__doc__, dense.__name__
    return kernel


# --- numbers


def zero_of(centre: Array, factor: Array | None, dtype: Any) -> Array:
    """What a cell that is not stored is in encoded units, rounded as the encoding of an array would."""
    kind = np.dtype(dtype).type
    zero = kind(0) - centre.astype(kind)
    return np.asarray(zero if factor is None else zero * factor.astype(kind), dtype=np.float64)


def encoded(raw: Any, power: float, centre: Array, factor: Array | None) -> Array:
    """The stored cells in encoded units, to the bit those of an array."""
    kind = raw.dtype.type
    values = raw.data * kind(power)
    if centre.any():
        values -= centre.astype(kind)[raw.indices]
    if factor is not None:
        values *= factor.astype(kind)[raw.indices]
    return np.asarray(values, dtype=np.float64)


def above_zero(raw: Any, power: float, centre: Array, factor: Array | None) -> tuple[Any, Array]:
    """The stored cells as y = x - zero, in compressed form, and zero."""
    values, zero = encoded(raw, power, centre, factor), zero_of(centre, factor, raw.dtype)
    if zero.any():
        values = values - zero[raw.indices]
    return type(raw)((values, raw.indices, raw.indptr), shape=raw.shape), zero


def distances(
    dense: Any, raw: Any, power: float, centre: Array, factor: Array | None, points: Array
) -> Array:
    """Squared distances (points, rows)."""
    cells, zero = above_zero(raw, power, centre, factor)
    away = points - zero
    squares, norms = _row_squares(cells), np.square(away).sum(axis=1)
    found = np.asarray((cells @ np.ascontiguousarray(away.T)).T, order="C")
    found *= -2.0
    found += squares
    found += norms[:, None]
    close = found < CANCELLED * (squares + norms[:, None])
    for point in np.flatnonzero(close.any(axis=1)):
        rows = np.flatnonzero(close[point])
        found[point, rows] = _differences(cells[rows], away, np.full(len(rows), point))
    return found


def nearest(
    dense: Any, raw: Any, power: float, centre: Array, factor: Array | None, centres: Array
) -> tuple[Array, Array]:
    """Number of the nearest centre of each row, the lowest among equals, and the squared distance to it."""
    cells, zero = above_zero(raw, power, centre, factor)
    return _nearest(cells, centres - zero)


def _nearest(cells: Any, away: Array) -> tuple[Array, Array]:
    norms = np.square(away).sum(axis=1)
    score = cells @ np.ascontiguousarray(away.T)
    score *= -2.0
    score += norms
    label = score.argmin(axis=1).astype(np.int32)
    squares = _row_squares(cells)
    cost = squares + np.take_along_axis(score, label[:, None], axis=1)[:, 0]
    close = np.flatnonzero(cost < CANCELLED * (squares + norms[label]))
    if len(close):
        cost[close] = _differences(cells[close], away, label[close])
    return label, cost


def nearest_step(
    dense: Any,
    raw: Any,
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
    """Sums (K, columns, 2) and weights (K,) of the rows nearest to each centre, and their cost as a pair."""
    from ilk import kernels

    cells, zero = above_zero(raw, power, centre, factor)
    label, cost = _nearest(cells, centres - zero)
    counted = np.ones(len(cost)) if weight is None else weight
    counted = np.where(cost > limit, 0.0, np.where(cost == limit, counted * share_at_limit, counted))
    cost = np.where(counted == 0, 0.0, cost)
    sums, weights = group_totals(cells, zero, counted, label, len(centres))
    everyone = np.zeros(len(cost), dtype=np.int32)
    total = kernels.group_sums(cost[:, None], counted[:, None], everyone, 1)[0, 0]
    return sums, round_pairs(weights)[:, 0], total


def group_totals(cells: Any, zero: Array, weight: Array, label: Array, n_groups: int) -> tuple[Array, Array]:
    """Sums of the encoded numbers (groups, columns, 2) and weights (groups, 1, 2) of each group, as pairs."""
    from ilk import kernels

    n_columns = cells.shape[1]
    stored = np.diff(cells.indptr)
    group = np.repeat(label.astype(np.int64) * n_columns, stored) + cells.indices
    values, by_cell = cells.data[:, None], np.repeat(weight, stored)[:, None]
    sums = kernels.group_sums(values, by_cell, group.astype(np.int32), n_groups * n_columns)
    sums = sums.reshape(n_groups, n_columns, 2)
    weights = kernels.group_sums(np.ones((len(label), 1)), weight[:, None], label, n_groups)
    if zero.any():
        offset = np.stack(two_product(zero[None], round_pairs(weights)), axis=-1)
        sums = kernels.add_pairs(sums, np.ascontiguousarray(offset))
    return sums, weights


def _row_squares(cells: Any) -> Array:
    return _by_row(cells, np.square(cells.data))


def _by_row(cells: Any, values: Array) -> Array:
    """Sums of the stored values of each row."""
    row = np.repeat(np.arange(cells.shape[0]), np.diff(cells.indptr))
    return np.bincount(row, weights=values, minlength=cells.shape[0])


def _differences(cells: Any, away: Array, label: Array) -> Array:
    """Squared distances of the rows to their centres: 0 where they are equal, and only there."""
    there = away[np.repeat(label, np.diff(cells.indptr)), cells.indices]
    near = _by_row(cells, np.square(cells.data - there))
    kinds, mine = np.unique(label, return_inverse=True)
    norms, n_filled = np.square(away[kinds]).sum(axis=1), np.count_nonzero(away[kinds], axis=1)
    rest = np.maximum(norms[mine] - _by_row(cells, np.square(there)), 0.0)
    rest[_by_row(cells, there != 0) == n_filled[mine]] = 0.0
    return np.asarray(near + rest)


# --- categories


def product_scores(
    dense: Any,
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    codes: Any,
    log_mixing: Array,
    mean: Array,
    precision: Array,
    log_norm: Array,
    log_level: Array,
    level_start: Array,
) -> Array:
    """Log of mixing share times density of the observed cells (rows, components)."""
    scores = _numbers_alone(dense, raw, power, centre, factor, log_mixing, mean, precision, log_norm)
    log_level = np.maximum(
        log_level, LOG_TINY
    )  # of a level that no row has: an infinite one has no difference
    first = log_level[:, level_start[:-1]]
    levels, gone = _levels(codes, level_start)
    scores += levels @ np.ascontiguousarray((log_level - np.repeat(first, np.diff(level_start), axis=1)).T)
    if gone is not None:
        scores -= gone @ np.ascontiguousarray(first.T)
    scores += first.sum(axis=1)
    return np.asarray(scores)


def _numbers_alone(
    dense: Any, raw: Any, power: float, centre: Array, factor: Array | None, *components: Array
) -> Array:
    log_mixing = components[0]
    if not raw.shape[1]:
        return np.tile(log_mixing, (raw.shape[0], 1))
    nothing = np.empty((len(log_mixing), 0)), np.zeros(1, dtype=np.int64)
    scores: Array = dense(raw, power, centre, factor, None, *components, *nothing)
    return scores


def product_step(
    dense: Any,
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    codes: Any,
    weight: Array | None,
    log_mixing: Array,
    mean: Array,
    precision: Array,
    log_norm: Array,
    log_level: Array,
    level_start: Array,
    hard: bool = False,
    limit: float = inf,
    share_at_limit: float = 1.0,
) -> tuple[ProductSums, float, float]:
    """Memberships of one block: their sums, their cost and their entropy."""
    from ilk import kernels

    coding = (raw, power, centre, factor, codes)
    scores = kernels.product_scores(*coding, log_mixing, mean, precision, log_norm, log_level, level_start)
    membership, cost = kernels.memberships(scores, hard)
    counted = np.ones(len(cost)) if weight is None else weight
    if limit < inf:
        counted = np.where(cost > limit, 0.0, np.where(cost == limit, counted * share_at_limit, counted))
    counted = np.where(says_nothing(raw, codes), 0.0, counted)
    membership *= counted[:, None]
    sums = kernels.product_sums(*coding, membership, mean, level_start)
    with np.errstate(invalid="ignore"):
        surprise = np.where(membership > 0, -(scores + cost[:, None]), 0.0)
    total = float(counted @ np.where(counted > 0, cost, 0.0))
    return sums, total, float((membership * surprise).sum())


def product_sums(
    dense: Any,
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    codes: Any,
    membership: Array,
    mean: Array,
    level_start: Array,
) -> ProductSums:
    """The sums of one block under given memberships (rows, components), its weights already in them."""
    weight = membership.sum(axis=0)
    none = np.zeros((len(mean), 0))
    numbers = ProductSums(weight, none, none, none, none)
    if raw.shape[1]:
        numbers = dense(raw, power, centre, factor, None, membership, mean, np.zeros(1, dtype=np.int64))
    levels, gone = _levels(codes, level_start)
    counts = np.asarray((levels.T @ membership).T, order="C")
    seen = weight[:, None] if gone is None else weight[:, None] - (gone.T @ membership).T
    counts[:, level_start[:-1]] = np.maximum(seen - np.add.reduceat(counts, level_start[:-1], axis=1), 0.0)
    return numbers._replace(counts=counts)


def says_nothing(raw: Any, codes: Any) -> Array:
    """Mask of the rows without an observed cell."""
    lost: Array = np.bincount(_row_of(codes)[codes.data < 0], minlength=codes.shape[0]) == codes.shape[1]
    return np.asarray(lost & np.isnan(raw).all(axis=1) if raw.shape[1] else lost)


def _row_of(cells: Any) -> Array:
    return np.repeat(np.arange(cells.shape[0]), np.diff(cells.indptr))


def _levels(codes: Any, level_start: Array) -> tuple[Any, Any]:
    """Stored codes as ones in the columns of their levels, and those that are no level as ones in their columns."""
    column, code = codes.indices, codes.data
    size = np.diff(level_start)
    known = (code >= 0) & (code < size[column])
    n_rows, n_levels = codes.shape[0], int(level_start[-1])
    if known.all():
        level = level_start[column] + code
        return type(codes)((np.ones(len(code)), level, codes.indptr), shape=(n_rows, n_levels)), None
    row = _row_of(codes)
    level = level_start[column[known]] + code[known]
    there = type(codes)((np.ones(len(level)), (row[known], level)), shape=(n_rows, n_levels))
    gone = (np.ones(int((~known).sum())), (row[~known], column[~known]))
    return there, type(codes)(gone, shape=codes.shape)

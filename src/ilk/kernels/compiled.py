"""The compiled kernels: the arrays they fill are made here. See `plain`, `plain_mixture` and `plain_product` for
what each function means."""

from __future__ import annotations

from math import inf

import numpy as np

import ilk.kernels._compiled as native
from ilk.kernels.pairs import Array
from ilk.kernels.plain_mixture import Ending, scatter_shape
from ilk.kernels.plain_product import ProductSums

# Those of the assorted family fill arrays that are its parameters: assorted/compiled_update.py and compiled_run.py.
shared_update, shared_run = native.shared_update, native.shared_run


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
    part_rows = part_rows or max(len(raw), 1)
    notes = (max(-(-len(raw) // part_rows), 1), 2)
    squares = np.full(notes, np.nan) if squares is None else squares.reshape(notes)
    sums, weights, cost = np.empty((*centres.shape, 2)), np.empty(len(centres)), np.empty(2)
    rules, parts = (limit, share_at_limit), (part_rows, threads)
    native.nearest_step(
        raw, power, centre, factor, weight, centres, *rules, *parts, sums, weights, cost, squares
    )
    return sums, weights, cost


def nearest(
    raw: Array, power: float, centre: Array, factor: Array | None, centres: Array
) -> tuple[Array, Array]:
    labels, cost = np.empty(len(raw), dtype=np.int32), np.empty(len(raw))
    native.nearest(raw, power, centre, factor, centres, labels, cost)
    return labels, cost


def distances(raw: Array, power: float, centre: Array, factor: Array | None, points: Array) -> Array:
    squared = np.empty((len(points), len(raw)))
    native.distances(raw, power, centre, factor, points, squared)
    return squared


def mixture_step(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    weight: Array | None,
    mean: Array,
    whiten: Array,
    log_weight: Array,
    hard: bool = False,
    limit: float = inf,
    share_at_limit: float = 1.0,
    part_rows: int | None = None,
    threads: int = 1,
) -> tuple[Array, Array, Array, Array]:
    count, cost = np.empty(len(mean)), np.empty(2)
    shift, scatter = np.empty(mean.shape), np.empty(whiten.shape)
    encoding, components = (power, centre, factor), (mean, whiten, log_weight)
    rules, parts = (hard, limit, share_at_limit), (part_rows or max(len(raw), 1), threads)
    native.mixture_step(raw, *encoding, weight, *components, *rules, *parts, count, shift, scatter, cost)
    return count, shift, scatter, cost


def mixture_scores(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    mean: Array,
    whiten: Array,
    log_weight: Array,
) -> Array:
    scores = np.empty((len(raw), len(mean)))
    native.mixture_scores(raw, power, centre, factor, mean, whiten, log_weight, scores)
    return scores


def mixture_labels(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    mean: Array,
    whiten: Array,
    log_weight: Array,
    hard: bool = False,
) -> tuple[Array, Array, Array]:
    label, (top, cost) = np.empty(len(raw), dtype=np.int32), np.empty((2, len(raw)))
    native.mixture_labels(raw, power, centre, factor, mean, whiten, log_weight, hard, label, top, cost)
    return label, top, cost


def mixture_ending(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    weight: Array | None,
    mean: Array,
    whiten: Array,
    log_weight: Array,
    n_labels: int,
    hard: bool = False,
    part_rows: int | None = None,
    threads: int = 1,
) -> Ending:
    found = Ending(
        np.empty(len(raw), dtype=np.int32),
        np.empty(n_labels),
        np.empty(n_labels, dtype=np.int64),
        np.empty(2),
        np.empty(1),
    )
    encoding, components = (power, centre, factor), (mean, whiten, log_weight)
    parts = part_rows or max(len(raw), 1), threads
    native.mixture_ending(raw, *encoding, weight, *components, hard, *parts, *found)
    return found


def mixture_gather(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    weight: Array | None,
    mean: Array,
    membership: Array | None,
    scatters: str = "full",
    part_rows: int | None = None,
    threads: int = 1,
) -> tuple[Array, Array, Array]:
    k, d = mean.shape
    count, shift, scatter = np.empty(k), np.empty((k, d)), np.empty(scatter_shape(scatters, k, d))
    is_label = membership is not None and membership.ndim == 1
    given = (None, membership) if is_label else (membership, None)
    parts = part_rows or max(len(raw), 1), threads
    native.mixture_gather(raw, power, centre, factor, weight, mean, *given, *parts, count, shift, scatter)
    return count, shift, scatter


def memberships(scores: Array, hard: bool) -> tuple[Array, Array]:
    membership, cost = np.empty(scores.shape), np.empty(len(scores))
    native.memberships(scores, hard, membership, cost)
    return membership, cost


def product_scores(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    codes: Array | None,
    log_mixing: Array,
    mean: Array,
    precision: Array,
    log_norm: Array,
    log_level: Array,
    level_start: Array,
) -> Array:
    scores = np.empty((len(raw), len(log_mixing)))
    components = (log_mixing, mean, precision, log_norm, log_level, level_start)
    native.product_scores(raw, power, centre, factor, codes, *components, scores)
    return scores


def product_step(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    codes: Array | None,
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
    room = _room_for_product(mean, level_start)
    components = (log_mixing, mean, precision, log_norm, log_level, level_start)
    rule = (hard, limit, share_at_limit)
    native.product_step(raw, power, centre, factor, codes, weight, *components, *rule, *room)
    weights, moments, counts, totals = room
    return (
        ProductSums(weights, moments[0], moments[1], moments[2], counts),
        float(totals[0]),
        float(totals[1]),
    )


def product_sums(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    codes: Array | None,
    membership: Array,
    mean: Array,
    level_start: Array,
) -> ProductSums:
    room = _room_for_product(mean, level_start)
    native.product_sums(raw, power, centre, factor, codes, membership, mean, level_start, *room)
    weights, moments, counts, _ = room
    return ProductSums(weights, moments[0], moments[1], moments[2], counts)


def _room_for_product(mean: Array, level_start: Array) -> tuple[Array, Array, Array, Array]:
    """Weights, the three moments of the numbers, counts of levels, and cost and entropy."""
    n_components = len(mean)
    counts = np.empty((n_components, int(level_start[-1])))
    return np.empty(n_components), np.empty((3, *mean.shape)), counts, np.empty(2)


def column_ranges(rows: Array, pivot: Array) -> tuple[Array, Array, Array]:
    low, high, total = np.empty((3, rows.shape[1]))
    native.column_ranges(rows, pivot, low, high, total)
    return low, high, total


def content_sums(raw: Array, power: float, factors: Array, missing: int) -> Array:
    sums = np.empty(len(raw), dtype=np.uint64)
    native.content_sums(raw, power, factors, missing, sums)
    return sums


def group_sums(values: Array, weight: Array, label: Array, n_groups: int) -> Array:
    sums = np.empty((n_groups, values.shape[1], 2))
    native.group_sums(values, weight, label, sums)
    return sums


def add_to_bins(bins: Array, place: Array, weight: Array) -> None:
    native.add_to_bins(bins, np.ascontiguousarray(place, np.int64), np.ascontiguousarray(weight, np.float64))


def tally(
    label: Array,
    cost: Array,
    weight: Array | None,
    n_labels: int,
    limit: float = inf,
    share_at_limit: float = 1.0,
) -> tuple[Array, Array, Array]:
    size, first_row, total = np.empty(n_labels), np.empty(n_labels, dtype=np.int64), np.empty(2)
    native.tally(label, cost, weight, limit, share_at_limit, size, first_row, total)
    return size, first_row, total


def add_pairs(a: Array, b: Array, out: Array | None = None) -> Array:
    total = np.empty(a.shape) if out is None else out
    native.add_pairs(a, b, total)
    return total


def silhouette_sums(rows: Array, table: Array, starts: Array, weight: Array | None = None) -> Array:
    sums = np.empty((len(rows), len(starts) - 1))
    native.silhouette_sums(rows, table, starts, weight, sums)
    return sums


def update_covariance(
    structure: str,
    count: Array,
    scatter: Array,
    previous: tuple[Array, Array | None] | None,
    column_variances: Array,
) -> tuple[Array, Array | None, str, Array]:
    """`families.covariance.update_covariance` for complete rows and three letters: log-variances, axes, status
    ("ok", "singular", or "starved": then the first two mean nothing) and the components it names.
    """
    n_components, d = len(count), len(column_variances)
    log_variance, poor = np.empty((n_components, d)), np.empty(n_components, dtype=np.uint8)
    axes = np.empty({"I": (0,), "E": (d, d), "V": (n_components, d, d)}[structure[2]])
    before, before_axes = previous or (None, None)
    if (
        before_axes is not None and before_axes.shape != axes.shape
    ):  # of another structure: nothing to go on from
        before_axes = None
    status = native.update_covariance(
        structure, count, scatter, before, before_axes, column_variances, log_variance, axes, poor
    )
    found = None if structure[2] == "I" else axes
    return log_variance, found, ("ok", "singular", "starved")[status], poor.nonzero()[0]


def whitening(log_variance: Array, axes: Array) -> Array:
    """`families.gaussian.whitening` of log-variances (K, d) along axes (d, d) or (K, d, d)."""
    result = np.empty((*log_variance.shape, log_variance.shape[1]))
    native.whiten_all(np.ascontiguousarray(log_variance), np.ascontiguousarray(axes), result)
    return result


def mixture_run(
    numbers: Array,
    weight: Array | None,
    structure: str,
    state: tuple[Array, Array, Array, Array],
    cost: float,
    column_variances: Array,
    hard: bool,
    equal_mixing: bool,
    tolerance: float,
    max_passes: int,
    seconds: float,
) -> tuple[list[float], str, str, float]:
    """A run of EM over complete rows: the costs of its passes, why it ended, a status, the last lower cost.

    `state` holds mixing (2, K), mean (2, K, d), log-variance (2, K, d) and axes (2, ...), changed in place:
    first the parameters to go on from, then the last ones whose cost is known, `cost` (at first infinite).
    Reasons: "" when passes or seconds ran out, "vacant" when a component lost its rows: that pass is then left
    undone, for the caller.
    """
    costs = np.empty(max_passes)
    reason, status, n_passes, cost = native.mixture_run(
        numbers,
        weight,
        structure,
        *state,
        column_variances,
        hard,
        equal_mixing,
        tolerance,
        seconds,
        cost,
        costs,
    )
    reasons = ("", "no lower cost", "degenerate", "nothing changed", "tolerance", "vacant")
    statuses = ("ok", "singular", "component_vanished")
    return costs[:n_passes].tolist(), reasons[reason], statuses[status], cost


def grow_tree(points: Array, weight: Array) -> tuple[Array, Array]:
    first, second = np.empty(len(points) - 1, dtype=np.int64), np.empty(len(points) - 1, dtype=np.int64)
    native.grow_tree(points, weight, first, second)
    return first, second


def lower_hull(x: Array, y: Array) -> Array:
    corners = np.empty(len(x), dtype=np.int64)
    return corners[: native.lower_hull(np.ascontiguousarray(x), np.ascontiguousarray(y), corners)]

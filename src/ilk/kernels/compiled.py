"""The compiled kernels: the arrays they fill are made here. See `plain` and
`plain_mixture` for what each function means."""

from __future__ import annotations

from math import inf

import numpy as np

import ilk.kernels._compiled as native
from ilk.kernels.pairs import Array


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
    sums, weights, cost = np.empty((*centres.shape, 2)), np.empty(len(centres)), np.empty(2)
    native.nearest_step(
        raw, power, centre, factor, weight, centres, limit, share_at_limit, sums, weights, cost
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
) -> tuple[Array, Array, Array, float]:
    count, cost = np.empty(len(mean)), np.empty(1)
    shift, scatter = np.empty(mean.shape), np.empty(whiten.shape)
    encoding, components = (power, centre, factor), (mean, whiten, log_weight)
    native.mixture_step(
        raw, *encoding, weight, *components, hard, limit, share_at_limit, count, shift, scatter, cost
    )
    return count, shift, scatter, float(cost[0])


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


def memberships(scores: Array, hard: bool) -> tuple[Array, Array]:
    membership, cost = np.empty(scores.shape), np.empty(len(scores))
    native.memberships(scores, hard, membership, cost)
    return membership, cost


def add_pairs(a: Array, b: Array) -> Array:
    total = np.empty(a.shape)
    native.add_pairs(a, b, total)
    return total


def silhouette_sums(rows: Array, table: Array, starts: Array, weight: Array | None = None) -> Array:
    sums = np.empty((len(rows), len(starts) - 1))
    native.silhouette_sums(rows, table, starts, weight, sums)
    return sums

"""Products over columns in NumPy: components whose columns are independent, Gaussian or categorical each.

    log score_k = log_mixing_k + sum over observed numbers d  (log_norm_kd - precision_kd (x_d - mean_kd)^2 / 2)
                               + sum over observed categories c  log_level_k[level_start_c + code_c]

A number that `counts` names is a Poisson count in the user's units: log_norm_kd + precision_kd x_d - log x_d!, with
minus the rate and its log as the two; its mean is 0, so that the sums are those of the count itself. The compiled
kernels know no counts, those of a GPU do.

A missing number is NaN, a missing category -1 (or any code that is no level of its column); neither says
anything. The compiled kernels mean the same, and hold nothing of the size of the table.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from ilk.kernels.pairs import Array
from ilk.kernels.plain_mixture import encoded, memberships


class ProductSums(NamedTuple):
    """What the next components are made of, under memberships r (times the weights of the rows)."""

    weight: Array  # (K,) sum of r
    observed: Array  # (K, numbers) sum of r over the rows that have the cell
    first: Array  # (K, numbers) sum of r (x - mean)
    second: Array  # (K, numbers) sum of r (x - mean)^2
    counts: Array  # (K, levels) sum of r over the rows of each level


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
    counts: Array | None = None,
) -> Array:
    """Log of mixing share times density of the observed cells (rows, components)."""
    numbers = _numbers(raw, power, centre, factor, counts)
    scores = np.tile(log_mixing, (len(raw), 1))
    for d in range(raw.shape[1]):
        for k in range(len(log_mixing)):
            away = numbers[:, d] - mean[k, d]
            if counts is not None and counts[d]:
                cell = log_norm[k, d] + away * precision[k, d] - gammaln(away + 1)
            else:
                cell = log_norm[k, d] - away * away * precision[k, d] / 2
            scores[:, k] += np.where(np.isnan(away), 0.0, cell)
    for begin, code, seen in _levels(codes, level_start):
        scores[seen] += log_level[:, begin + code[seen]].T
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
    counts: Array | None = None,
) -> tuple[ProductSums, float, float]:
    """Memberships of one block: their sums, their cost and their entropy.

    The cost is minus the weighted sum of log densities (of the best component's score when `hard`). A row that
    costs more than `limit` does not count, one that costs exactly `limit` counts with `share_at_limit` of its
    weight, and one without an observed cell counts nothing.
    """
    components = log_mixing, mean, precision, log_norm, log_level, level_start
    scores = product_scores(raw, power, centre, factor, codes, *components, counts)
    membership, cost = memberships(scores, hard)
    counted = np.ones(len(cost)) if weight is None else weight
    if limit < inf:
        counted = np.where(cost > limit, 0.0, np.where(cost == limit, counted * share_at_limit, counted))
    told = ~np.isnan(raw).all(axis=1) if raw.shape[1] else np.zeros(len(raw), dtype=bool)
    for _, _, seen in _levels(codes, level_start):
        told = told | seen
    counted = np.where(told, counted, 0.0)
    membership *= counted[:, None]
    sums = product_sums(raw, power, centre, factor, codes, membership, mean, level_start, counts)
    with np.errstate(invalid="ignore"):
        surprise = np.where(membership > 0, -(scores + cost[:, None]), 0.0)
    total = float(counted @ np.where(counted > 0, cost, 0.0))
    return sums, total, float((membership * surprise).sum())


def product_sums(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    codes: Array | None,
    membership: Array,
    mean: Array,
    level_start: Array,
    counts: Array | None = None,
) -> ProductSums:
    """The sums of one block under given memberships (rows, components), its weights already in them."""
    numbers = _numbers(raw, power, centre, factor, counts)
    seen_numbers = ~np.isnan(numbers)
    first, second = np.empty(mean.shape), np.empty(mean.shape)
    for k in range(len(mean)):
        away = np.where(seen_numbers, numbers - mean[k], 0.0)
        weighted = away * membership[:, k, None]
        first[k], second[k] = weighted.sum(axis=0), (weighted * away).sum(axis=0)
    of_level = np.zeros((len(mean), int(level_start[-1])))
    for begin, code, seen in _levels(codes, level_start):
        np.add.at(of_level.T, begin + code[seen], membership[seen])
    return ProductSums(membership.sum(axis=0), membership.T @ seen_numbers, first, second, of_level)


def _numbers(raw: Array, power: float, centre: Array, factor: Array | None, counts: Array | None) -> Array:
    """Encoded numbers, counts as they are."""
    found = encoded(raw, power, centre, factor)
    if counts is not None:
        found[:, counts] = raw[:, counts]
    return found


def _levels(codes: Array | None, level_start: Array) -> list[tuple[int, Array, Array]]:
    """Per categorical column: its first level, its codes, and which of them are levels."""
    if codes is None:
        return []
    return [
        (int(begin), codes[:, c], (codes[:, c] >= 0) & (codes[:, c] < end - begin))
        for c, (begin, end) in enumerate(pairwise(level_start))
    ]

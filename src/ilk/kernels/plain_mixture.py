"""The mixture kernels in NumPy: what the compiled ones mean, and what runs where there was no compiler.

A component is `log_weight_k - |whiten_k (x - mean_k)|^2 / 2`, with `whiten` (K, d, d) lower triangular, or (K, d)
for components along the columns, or (1, d, d) for tied ones, which share it. A row of zeros in `whiten` is a
component of constant density.
"""

from __future__ import annotations

from functools import reduce
from math import inf
from typing import NamedTuple

import numpy as np

from ilk.kernels.pairs import Array, add_pairs
from ilk.kernels.plain import tally

LOG_TINY = float(np.log(np.finfo(np.float64).tiny))


def mixture_scores(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    mean: Array,
    whiten: Array,
    log_weight: Array,
) -> Array:
    """Log of mixing share times density of every row under every component (rows, components)."""
    numbers = encoded(raw, power, centre, factor)
    scores = np.empty((len(numbers), len(mean)))
    for k in range(len(mean)):
        scaled = _whitened(numbers - mean[k], whiten[k % len(whiten)])
        scores[:, k] = log_weight[k] - np.square(scaled, out=scaled).sum(axis=1) / 2
    return scores


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
    """Memberships of one block, or of all in parts of so many rows, and what the next components are made of.

    Returns count (K,), shift (K, d) = sum of membership * (x - mean), scatter (K, d, d) or (K, d) = sum of
    membership * (x - mean)(x - mean)', for tied components summed over them (1, d, d), and the cost as a pair: minus
    the weighted sum of log densities (of the best component's score when `hard`). A row that costs more than `limit`
    does not count, one that costs exactly `limit` counts with `share_at_limit` of its weight.
    """
    if part_rows is not None and part_rows < len(raw):
        rest = mean, whiten, log_weight, hard, limit, share_at_limit
        parts = [
            mixture_step(raw[part], power, centre, factor, None if weight is None else weight[part], *rest)
            for part in _parts(len(raw), part_rows)
        ]
        count, shift, scatter, costs = zip(*parts, strict=True)
        return reduce(np.add, count), reduce(np.add, shift), reduce(np.add, scatter), reduce(add_pairs, costs)
    scores = mixture_scores(raw, power, centre, factor, mean, whiten, log_weight)
    membership, cost = memberships(scores, hard)
    counted = np.ones(len(cost)) if weight is None else weight
    if limit < inf:
        counted = np.where(cost > limit, 0.0, np.where(cost == limit, counted * share_at_limit, counted))
    scatters = "diagonal" if whiten.ndim == 2 else "full" if len(whiten) == len(mean) else "pooled"
    sums = mixture_gather(raw, power, centre, factor, counted, mean, membership, scatters)
    return *sums, np.array([counted @ np.where(counted > 0, cost, 0.0), 0.0])


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
    """The sums of `mixture_step` under given memberships (rows, K) or int32 labels (rows,), all rows in the only
    component where there is none; `scatters` as in `scatter_shape`."""
    if membership is None:
        membership = np.ones((len(raw), 1))
    if part_rows is not None and part_rows < len(raw):
        parts = [
            mixture_gather(
                raw[part],
                power,
                centre,
                factor,
                None if weight is None else weight[part],
                mean,
                membership[part],
                scatters,
            )
            for part in _parts(len(raw), part_rows)
        ]
        count, shift, scatter = (reduce(np.add, each) for each in zip(*parts, strict=True))
        return count, shift, scatter
    if membership.ndim == 1:
        membership = (membership[:, None] == np.arange(len(mean))).astype(np.float64)
    if weight is not None:
        membership = membership * weight[:, None]
    numbers = encoded(raw, power, centre, factor)
    k, d = mean.shape
    shift, scatter = np.empty((k, d)), np.zeros(scatter_shape(scatters, k, d))
    for component in range(k):
        away = numbers - mean[component]
        weighted = away * membership[:, component, None]
        shift[component] = weighted.sum(axis=0)
        own = np.einsum("ij,ij->j", weighted, away) if scatters == "diagonal" else weighted.T @ away
        scatter[component % len(scatter)] += own
    return membership.sum(axis=0), shift, scatter


def _parts(n_rows: int, part_rows: int) -> list[slice]:
    return [slice(first, first + part_rows) for first in range(0, n_rows, part_rows)]


def scatter_shape(scatters: str, k: int, d: int) -> tuple[int, ...]:
    """Of K "full" scatters, of their "diagonal"s, or of the "pooled" one."""
    return {"full": (k, d, d), "diagonal": (k, d), "pooled": (1, d, d)}[scatters]


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
    """The component of highest score of each row, the lowest number among equals; that score; the row's cost."""
    scores = mixture_scores(raw, power, centre, factor, mean, whiten, log_weight)
    return scores.argmax(axis=1).astype(np.int32), scores.max(axis=1), memberships(scores, hard)[1]


class Ending(NamedTuple):
    """What the last pass of a fit tells: label of each row (-1 for noise), weight and first row of each label (beyond
    all where it has none), cost as a pair, and the sum of weight * log of the largest membership (1,)."""

    label: Array
    size: Array
    first_row: Array
    cost: Array
    certainty: Array


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
    """Labels, and what they add up to; components beyond the first `n_labels` are noise. Memberships are soft in what
    is said of certainty, also where they are `hard` in the cost."""
    if part_rows is not None and part_rows < len(raw):
        rest, parts = (mean, whiten, log_weight, n_labels, hard), _parts(len(raw), part_rows)
        found = [
            mixture_ending(raw[part], power, centre, factor, None if weight is None else weight[part], *rest)
            for part in parts
        ]
        for ending, part in zip(found, parts, strict=True):
            ending.first_row[ending.first_row < len(raw)] += part.start
        label, size, first_row, costs, certainty = zip(*found, strict=True)
        sums = reduce(np.add, size), reduce(np.minimum, first_row), reduce(add_pairs, costs)
        return Ending(np.concatenate(label), *sums, reduce(np.add, certainty))
    told = mixture_labels(raw, power, centre, factor, mean, whiten, log_weight)
    return ending_of(*told, weight, n_labels, hard)


def ending_of(
    label: Array, top: Array, cost: Array, weight: Array | None, n_labels: int, hard: bool
) -> Ending:
    """What soft labels, their scores and the costs of rows add up to."""
    label[label >= n_labels] = -1
    with np.errstate(invalid="ignore"):  # a row impossible under all components belongs to none
        sure = np.fmin(np.fmax(top + cost, LOG_TINY), 0.0)
    counted = np.ones(len(label)) if weight is None else weight
    tallied = tally(label, -top if hard else cost, counted, n_labels)
    return Ending(label, *tallied, np.array([sure @ counted]))


def memberships(scores: Array, hard: bool) -> tuple[Array, Array]:
    """Memberships (rows, components) and cost of each row; ties of hard memberships go to the lowest number."""
    top = scores.max(axis=1)
    if hard:
        membership = np.zeros_like(scores)
        membership[np.arange(len(scores)), scores.argmax(axis=1)] = 1.0
        return membership, -top
    finite = np.where(
        np.isfinite(top), top, 0.0
    )  # a row impossible under all components shows as infinite cost
    membership = np.exp(scores - finite[:, None])
    total = membership.sum(axis=1)
    with np.errstate(divide="ignore"):
        cost = -(finite + np.log(total))
    membership /= np.where(total > 0, total, 1.0)[:, None]
    return membership, cost


def encoded(raw: Array, power: float, centre: Array, factor: Array | None) -> Array:
    """Cells as the kernels see them: (raw * power - centre) * factor in the type of raw, then float64."""
    kind = raw.dtype.type
    numbers = raw * kind(power)
    numbers -= centre.astype(kind)
    if factor is not None:
        numbers *= factor.astype(kind)
    return np.asarray(numbers, dtype=np.float64)


def _whitened(away: Array, whiten: Array) -> Array:
    return away @ whiten.T if whiten.ndim == 2 else away * whiten

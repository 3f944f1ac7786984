"""The mixture kernels in NumPy: what the compiled ones mean, and what runs where there was no compiler.

A component is `log_weight_k - |whiten_k (x - mean_k)|^2 / 2`, with `whiten` (K, d, d) lower triangular, or (K, d)
for components along the columns, or (1, d, d) for tied ones, which share it. A row of zeros in `whiten` is a
component of constant density.
"""

from __future__ import annotations

from math import inf

import numpy as np

from ilk.kernels.pairs import Array


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
) -> tuple[Array, Array, Array, float]:
    """Memberships of one block and what the next components are made of.

    Returns count (K,), shift (K, d) = sum of membership * (x - mean), scatter (K, d, d) or (K, d) = sum of
    membership * (x - mean)(x - mean)', for tied components summed over them (1, d, d), and the cost: minus the
    weighted sum of log densities (of the best component's score when `hard`). A row that costs more than `limit`
    does not count, one that costs exactly `limit` counts with `share_at_limit` of its weight.
    """
    scores = mixture_scores(raw, power, centre, factor, mean, whiten, log_weight)
    membership, cost = memberships(scores, hard)
    counted = np.ones(len(cost)) if weight is None else weight
    if limit < inf:
        counted = np.where(cost > limit, 0.0, np.where(cost == limit, counted * share_at_limit, counted))
    scatters = "diagonal" if whiten.ndim == 2 else "full" if len(whiten) == len(mean) else "pooled"
    sums = mixture_gather(raw, power, centre, factor, counted, mean, membership, scatters)
    return *sums, float(counted @ np.where(counted > 0, cost, 0.0))


def mixture_gather(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    weight: Array | None,
    mean: Array,
    membership: Array,
    scatters: str = "full",
) -> tuple[Array, Array, Array]:
    """The sums of `mixture_step` under given memberships (rows, K); `scatters` as in `scatter_shape`."""
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

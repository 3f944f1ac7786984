"""Student components in NumPy, of complete rows: the oracle of the GPU's kernels, and what runs where these are not.

A component is `constant_k - (dof_k + d)/2 log1p(distance_k / dof_k)`, the distance `|whiten_k (x - mean_k)|^2`; one of
infinite degrees of freedom is Gaussian, `constant_k - distance_k / 2`. A row pulls `(dof + d) / (dof + distance)`.
"""

from __future__ import annotations

from functools import reduce
from math import inf
from typing import Any

import numpy as np

from ilk.kernels.pairs import Array
from ilk.kernels.plain_mixture import memberships, mixture_gather, mixture_scores

PART_ROWS = 1 << 16  # at a time, so that nothing of the size of the table is made


def student_tails(raw: Array, power: float, centre: Array, factor: Array | None, *given: Any) -> Any:
    """Sums for the next degrees of freedom: of the memberships r (K,), of r log1p(distance / nodes) (K, nodes), and the
    cost as a pair. Given are weight, mean, whiten, constant, dof, nodes, hard, limit and share at the limit."""
    return _added(_tails, raw, (power, centre, factor), *given)


def student_step(raw: Array, power: float, centre: Array, factor: Array | None, *given: Any) -> Any:
    """Sums for means and covariances: of the memberships r (K,), of r times pull (K,), of these times x - mean and its
    products, and the cost as a pair. Given are weight, mean, whiten, constant, dof, next dof, hard, limit and share."""
    return _added(_step, raw, (power, centre, factor), *given)


def student_labels(
    raw: Array,
    power: float,
    centre: Array,
    factor: Array | None,
    mean: Array,
    whiten: Array,
    constant: Array,
    dof: Array,
    hard: bool = False,
) -> tuple[Array, Array, Array]:
    """The component of highest score of each row, the lowest number among equals; that score; the row's cost."""
    found = []
    for first in range(0, len(raw), PART_ROWS):
        squared = _squared(raw[first : first + PART_ROWS], (power, centre, factor), mean, whiten)
        scores = _scores(squared, mean.shape[1], constant, dof)
        cost = memberships(scores, hard)[1]
        found.append((scores.argmax(axis=1).astype(np.int32), scores.max(axis=1), cost))
    label, top, costs = map(np.concatenate, zip(*found, strict=True))
    return label, top, costs


def _added(part: Any, raw: Array, code: Any, weight: Array | None, *given: Any) -> tuple[Array, ...]:
    """What the parts of the table tell, added up."""
    cuts = [slice(first, first + PART_ROWS) for first in range(0, len(raw), PART_ROWS)]
    found = [part(raw[cut], code, None if weight is None else weight[cut], *given) for cut in cuts]
    return tuple(reduce(np.add, each) for each in zip(*found, strict=True))


def _tails(raw: Array, code: Any, weight: Any, mean: Array, whiten: Array, *given: Any) -> tuple[Array, ...]:
    constant, dof, nodes, *rules = given
    squared = _squared(raw, code, mean, whiten)
    membership, cost = _counted(_scores(squared, mean.shape[1], constant, dof), weight, *rules)
    tails = [np.einsum("ik,ik->k", membership, np.log1p(squared / node)) for node in nodes.T]
    return membership.sum(axis=0), np.stack(tails, axis=1), cost


def _step(
    raw: Array, code: tuple[Any, Any, Any], weight: Any, mean: Array, whiten: Array, *given: Any
) -> tuple[Array, ...]:
    constant, dof, next_dof, *rules = given
    d, squared = mean.shape[1], _squared(raw, code, mean, whiten)
    membership, cost = _counted(_scores(squared, d, constant, dof), weight, *rules)
    with np.errstate(invalid="ignore"):
        pull = np.where(np.isinf(next_dof), 1.0, (next_dof + d) / (next_dof + squared))
    scatters = "diagonal" if whiten.ndim == 2 else "full"
    pulled, shift, scatter = mixture_gather(raw, *code, None, mean, membership * pull, scatters)
    return membership.sum(axis=0), pulled, shift, scatter, cost


def _squared(raw: Array, code: tuple[Any, Any, Any], mean: Array, whiten: Array) -> Array:
    return -2 * mixture_scores(raw, *code, mean, whiten, np.zeros(len(mean)))


def _scores(squared: Array, d: int, constant: Array, dof: Array) -> Array:
    with np.errstate(invalid="ignore"):
        tail = np.where(np.isinf(dof), squared / 2, (dof + d) / 2 * np.log1p(squared / dof))
    return np.asarray(constant - tail)


def _counted(
    scores: Array, weight: Array | None, hard: bool = False, limit: float = inf, share: float = 1.0
) -> tuple[Array, Array]:
    """Memberships times weight of the rows that count, and what these cost."""
    membership, cost = memberships(scores, hard)
    counted = np.ones(len(cost)) if weight is None else weight
    if limit < inf:
        counted = np.where(cost > limit, 0.0, np.where(cost == limit, counted * share, counted))
    total = float(counted @ np.where(counted > 0, cost, 0.0))
    return membership * counted[:, None], np.array([total, 0.0])

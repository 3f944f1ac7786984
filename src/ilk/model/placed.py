"""Where rows belong: group, second group and probability, and how unusual a row is among its group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ilk import kernels
from ilk.engines.base import Rows
from ilk.families.base import Family
from ilk.fitting.fit import Fit
from ilk.table.block import Array, Block

N_QUANTILES = 201  # costs at every half per cent of the rows of a group


def novelty_of(cost: Array, quantiles: Array) -> Array:
    """Share of the training rows that cost less; equal costs count half.

    >>> novelty_of(np.array([0.0, 1.5, 9.0]), np.array([1.0, 2.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    below, upto = (np.searchsorted(quantiles, cost, side=side) for side in ("left", "right"))
    return np.asarray((below + upto) / (2 * len(quantiles)))


def cost_quantiles(rows: Rows, family: Family[Any], found: Fit, weight: Array | None) -> Array:
    """Per group, the costs of its training rows at equal steps of their weight."""
    cost = np.concatenate([*rows.scan(partial(_visit_cost), (family, found.params))])
    weight = np.ones(len(cost)) if weight is None else weight
    steps = np.linspace(0.0, 1.0, N_QUANTILES)
    made = np.zeros((len(found.size), N_QUANTILES))
    for g in range(len(found.size)):
        mine = (found.labels == g) & (weight > 0)
        if mine.any():
            order = np.argsort(cost[mine], kind="stable")
            reached = np.cumsum(weight[mine][order])
            at = np.searchsorted(reached, steps * reached[-1], side="left")
            made[g] = cost[mine][order][np.minimum(at, len(order) - 1)]
    return made


def _visit_cost(state: tuple[Family[Any], Any], block: Block) -> Array:
    return state[0].assign(state[1], block)[1]


@dataclass(frozen=True)
class Placed:
    """Where rows belong: group and second group (-1 for none), probability and novelty (NaN likewise).

    Hard methods give no probability: it is NaN throughout, and has no column.
    """

    group: Array
    second: Array
    novelty: Array
    probability: Array


def visit_placed(model: Any, block: Block) -> tuple[Array, Array, Array, Array]:
    grouped = model.grouped
    _, cost = grouped.family.assign(model.params, block)
    label, costs = grouped.label(block), grouped.costs(block)
    everyone = np.arange(block.n_rows)
    probability = np.full(block.n_rows, np.nan)
    if grouped.soft:
        probability = kernels.memberships(-costs, False)[0][everyone, label]
    costs = np.minimum(costs, np.finfo(costs.dtype).max)  # infinite ones, too, come before the own
    costs[everyone, label] = np.inf
    second = costs.argmin(axis=1).astype(np.int32) if model.k > 1 else np.full(block.n_rows, -1, np.int32)
    novelty = np.empty(block.n_rows)
    for g in range(model.k):
        mine = label == g
        novelty[mine] = novelty_of(cost[mine], model.quantiles[g])
    lost = block.blank
    if lost is not None:
        label, second = np.where(lost, -1, label), np.where(lost, -1, second)
        novelty[lost] = probability[lost] = np.nan
    return label, second, novelty, probability

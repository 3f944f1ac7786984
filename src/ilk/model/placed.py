"""Where rows belong: group, second group and probability, and how unusual a row is among its group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ilk.engines.base import Rows
from ilk.families.mixture import shares_of
from ilk.model.grouped import Grouped
from ilk.table.block import Array, Block
from ilk.threads import in_order

N_QUANTILES = 201  # costs at every half per cent of the rows of a group


def novelty_of(cost: Array, quantiles: Array) -> Array:
    """Share of the training rows that cost less; equal costs count half.

    >>> novelty_of(np.array([0.0, 1.5, 9.0]), np.array([1.0, 2.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    below, upto = (np.searchsorted(quantiles, cost, side=side) for side in ("left", "right"))
    return np.asarray((below + upto) / (2 * len(quantiles)))


def cost_quantiles(
    cost: Array, labels: Array, n_groups: int, weight: Array | None, threads: int = 1
) -> Array:
    """Per group, the costs of its training rows at equal steps of their weight."""
    weight = np.ones(len(cost)) if weight is None else weight
    steps = np.linspace(0.0, 1.0, N_QUANTILES)

    def of_group(g: int) -> Array:
        mine = (labels == g) & (weight > 0)
        if not mine.any():
            return np.zeros(N_QUANTILES)
        order = np.argsort(cost[mine], kind="stable")
        reached = np.cumsum(weight[mine][order])
        at = np.searchsorted(reached, steps * reached[-1], side="left")
        return np.asarray(cost[mine][order][np.minimum(at, len(order) - 1)])

    return np.array([*in_order(of_group, range(n_groups), threads)]).reshape(n_groups, N_QUANTILES)


@dataclass(frozen=True)
class Placed:
    """Where rows belong: group and second group (-1 for none), probability and novelty (NaN likewise).

    Hard methods give no probability: it is NaN throughout, and has no column.
    """

    group: Array
    second: Array
    novelty: Array
    probability: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class Scored:
    """Rows under a model, each scored once: what is told of where they belong is made from this."""

    group: Array
    second: Array
    cost: Array  # in the model, whatever the group
    probability: Array  # of the group; NaN for hard methods
    memberships: Array | None  # (rows, groups), of soft methods
    lost: Array  # mask of the rows without a value

    @classmethod
    def of_block(cls, grouped: Grouped, block: Block) -> Scored:
        piece, cost = grouped.family.assign(grouped.params, block)
        costs = grouped.costs(block)
        label, everyone = grouped.label_of(piece, costs), np.arange(block.n_rows)
        shares = shares_of(-costs) if grouped.soft else None
        probability = np.full(block.n_rows, np.nan) if shares is None else shares[everyone, label]
        costs = np.minimum(costs, np.finfo(costs.dtype).max)  # infinite ones, too, come before the own
        costs[everyone, label] = np.inf
        several = grouped.n_groups > 1
        second = costs.argmin(axis=1).astype(np.int32) if several else np.full(block.n_rows, -1, np.int32)
        lost = np.zeros(block.n_rows, dtype=bool) if block.blank is None else block.blank
        return cls(
            group=label, second=second, cost=cost, probability=probability, memberships=shares, lost=lost
        )

    @classmethod
    def of(cls, rows: Rows, grouped: Grouped) -> Scored:
        """All rows in one pass."""
        parts = [*rows.scan(visit_scored, grouped)]
        soft = parts[0].memberships is not None

        def joined(name: str) -> Array:
            return np.concatenate([getattr(part, name) for part in parts])

        return cls(
            group=joined("group"),
            second=joined("second"),
            cost=joined("cost"),
            probability=joined("probability"),
            memberships=joined("memberships") if soft else None,
            lost=joined("lost"),
        )

    def placed(self, quantiles: Array) -> Placed:
        """Where the rows belong; `quantiles` are those of the costs of each group."""
        novelty, probability = np.empty(len(self.cost)), self.probability.copy()
        for g in range(len(quantiles)):
            mine = self.group == g
            novelty[mine] = novelty_of(self.cost[mine], quantiles[g])
        novelty[self.lost] = probability[self.lost] = np.nan
        group, second = (np.where(self.lost, -1, number) for number in (self.group, self.second))
        return Placed(group, second, novelty, probability)


def visit_scored(grouped: Grouped, block: Block) -> Scored:
    return Scored.of_block(grouped, block)


def visit_placed(model: Any, block: Block) -> tuple[Array, Array, Array, Array]:
    placed = Scored.of_block(model.grouped, block).placed(model.quantiles)
    return placed.group, placed.second, placed.novelty, placed.probability


def settled(placed: Placed, labels: Array, memberships: Array | None = None) -> Placed:
    """Where rows were put, which under a limit of size is not always their best group: that is then the second."""
    moved = np.flatnonzero((placed.group != labels) & (labels >= 0))
    if not len(moved):
        return placed
    second, probability = placed.second.copy(), placed.probability.copy()
    second[moved] = placed.group[moved]
    if memberships is not None:
        probability[moved] = memberships[moved, labels[moved]]
    return replace(placed, group=labels, second=second, probability=probability)

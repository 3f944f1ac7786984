"""A fit of an assorted table on its way: from partitions to parameters, and from those to costs, labels and sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import xlogy

from ilk import kernels
from ilk.assorted.problem import AssortedProblem
from ilk.families.base import GrowingFamily, Partial
from ilk.fitting.loop import NOTHING_CHANGED, Record, Run
from ilk.fitting.restarts import gathered
from ilk.table.block import Array, Block


@dataclass(frozen=True)
class FitState:
    """A fit on its way: where, the parameters, J under them, and how its last run ended."""

    scene: AssortedProblem
    params: Any
    cost: float
    reason: str = NOTHING_CHANGED
    trace: tuple[Record, ...] = ()

    @property
    def k(self) -> int:
        return len(self.params)

    @property
    def cost_without_prior(self) -> float:
        return self.cost - self.scene.family.prior_cost(self.params)

    @cached_property
    def size(self) -> Array:
        """Weight of the rows of which each cluster is the likeliest."""
        return np.asarray(self.scene.rows.reduce(_visit_size, (self.scene.family, self.params)))

    @property
    def full(self) -> bool:
        """Whether every cluster holds rows."""
        return bool((self.size > 0).all())


def from_labels(rows: Any, family: GrowingFamily[Any], label: Array, k: int) -> Any:
    """Parameters from a partition."""
    blank = family.blank(k)
    return family.update(blank, gathered(rows, family, blank, label))


def from_membership(rows: Any, family: GrowingFamily[Any], membership: Array) -> Any:
    """Parameters from memberships (rows, K)."""
    blank = family.blank(membership.shape[1])
    return family.update(blank, gathered(rows, family, blank, membership))


def step_of(scene: AssortedProblem, params: Any, heat: float = 1.0) -> Partial:
    """Sums of all rows under parameters, memberships at a temperature."""
    return scene.rows.reduce(visit_step, (scene.family, params, heat))


def visit_step(state: Any, block: Block) -> Partial:
    family, params, heat = state
    partial: Partial = family.heated_step(params, block, heat)
    return partial


def visit_assign(state: Any, block: Block) -> Any:
    family, params = state
    return family.assign(params, block)


def labels_of(scene: AssortedProblem, params: Any) -> Array:
    """The likeliest cluster of each row."""
    parts = scene.rows.scan(visit_assign, (scene.family, params))
    return np.concatenate([label for label, _ in parts])


def _visit_size(state: Any, block: Block) -> Array:
    family, params = state
    label, _ = family.assign(params, block)
    return np.bincount(label, block.weights, minlength=len(params))


def visit_overlap(state: Any, block: Block) -> Array:
    """What memberships add to the cost of a merge (K, K): sum over rows of h(r_i + r_j) - h(r_i) - h(r_j),
    h(r) = r log r."""
    family, params = state
    membership, _ = kernels.memberships(family.scores(params, block), family.hard)
    own = xlogy(membership, membership)
    k = membership.shape[1]
    overlap = np.zeros((k, k))
    for i in range(k):
        both = membership[:, [i]] + membership
        overlap[i] = block.weights @ (xlogy(both, both) - own[:, [i]] - own)
    np.fill_diagonal(overlap, 0.0)
    return overlap


def state_of(scene: AssortedProblem, run: Run) -> FitState:
    """Where a run ended."""
    params = run.params if run.measured is None else run.measured
    return FitState(scene, params, run.cost, run.reason, tuple(run.trace))


Half = tuple[float, int, Any]
"""What a cluster gains in two, its number, and the two."""


def with_halves(state: FitState, halves: Sequence[Half]) -> Any:
    """The parameters of a state with some clusters in two, which come last."""
    params, family = state.params, state.scene.family.ungrouped
    rest = np.delete(np.arange(state.k), [k for _, k, _ in halves])
    joined, share = (family.select(params, rest), params.mixing[rest]) if len(rest) else (None, np.empty(0))
    for _, k, two in halves:
        share = np.append(share, two.mixing * params.mixing[k])
        joined = two if joined is None else family.joined(joined, two, share)
    return joined

"""Births among the rows of a table of any size: the rows that the model explains worst make a cluster of their own.

Which rows those are is one number, the cost above which a share of the weight lies, found as for trimming; so no array
of the size of the table is made, and any engine serves. What is proposed is only a start: `growth.Search` runs it on
all rows and takes it if the cost J falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk.assorted.embedding import EmbeddedRows
from ilk.assorted.problem import AssortedProblem
from ilk.assorted.state import visit_assign
from ilk.families.base import GrowingFamily, Sums
from ilk.fitting.restarts import memberships_of
from ilk.fitting.trim import find_cuts
from ilk.table.block import Array, Block


def births_of(scene: AssortedProblem, params: Any, shares: tuple[float, ...]) -> list[Any]:
    """Parameters with one cluster more, of the dearest rows that hold each of these shares of the weight."""
    proposals = []
    for share in shares:
        limit = find_cuts(scene.rows, [scene.family], [params], 1.0 - share)[0].limit
        family = scene.family if scene.family.wide else scene.family.ungrouped
        blank = family.blank(len(params) + 1)
        sums = scene.rows.reduce(_visit_birth, _Birth(scene.family, params, family, blank, limit))
        proposals.append(family.update(blank, sums.values))
    return proposals


def born_labels(
    scene: AssortedProblem,
    points: EmbeddedRows,
    family: GrowingFamily[Any],
    params: Any,
    shares: tuple[float, ...],
) -> list[Array]:
    """As `birth_labels`, of the rows under parameters."""
    parts = [*scene.rows.scan(visit_assign, (family, params))]
    label, cost = (np.concatenate(part) for part in zip(*parts, strict=True))
    return birth_labels(points, label, cost, shares)


def birth_labels(points: EmbeddedRows, label: Array, cost: Array, shares: tuple[float, ...]) -> list[Array]:
    """Labels of rows in memory with one cluster more: of the dearest rows that hold each of these shares of the weight,
    or of the neighbours of the dearest."""
    weight = np.ones(len(cost)) if points.weight is None else points.weight
    order = np.argsort(-cost, kind="stable")
    sets = [_first_rows(order, weight, share) for share in shares]
    distance = points.squares_from(int(order[0]))
    sets.append(_first_rows(np.argsort(distance, kind="stable"), weight, shares[0]))
    return [np.where(np.isin(np.arange(len(label)), rows), label.max() + 1, label) for rows in sets]


def _first_rows(order: Array, weight: Array, share: float) -> Array:
    """The first rows in an order that hold a share of the weight, two rows' worth at least."""
    before = np.cumsum(weight[order]) - weight[order]
    return np.asarray(order[before < max(2.0, share * float(weight.sum()))])


@dataclass(frozen=True)
class _Birth:
    family: GrowingFamily[Any]
    params: Any
    wider: GrowingFamily[Any]
    blank: Any
    limit: float


def _visit_birth(state: _Birth, block: Block) -> Sums:
    label, cost = state.family.assign(state.params, block)
    label[cost > state.limit] = len(state.params)
    return Sums(state.wider.gather(state.blank, block, memberships_of(label, len(state.params) + 1)))

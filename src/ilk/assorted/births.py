"""Births among the rows of a table of any size: the rows that the model explains worst make a cluster of their own.

Which rows those are is one number, the cost above which a share of the weight lies, found as for trimming; so no array
of the size of the table is made, and any engine serves. What is proposed is only a start: `growth.Search` runs it on
all rows and takes it if the cost J falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ilk.assorted.problem import AssortedProblem
from ilk.families.base import GrowingFamily, Sums
from ilk.fitting.restarts import memberships_of
from ilk.fitting.trim import find_cuts
from ilk.table.block import Block


def births_of(scene: AssortedProblem, params: Any, shares: tuple[float, ...]) -> list[Any]:
    """Parameters with one cluster more, of the dearest rows that hold each of these shares of the weight."""
    proposals = []
    for share in shares:
        limit = find_cuts(scene.rows, [scene.family], [params], 1.0 - share)[0].limit
        family = scene.family.ungrouped
        blank = family.blank(len(params) + 1)
        sums = scene.rows.reduce(_visit_birth, _Birth(scene.family, params, family, blank, limit))
        proposals.append(family.update(blank, sums.values))
    return proposals


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

"""Births among the rows of a table of any size: the rows that the model explains worst make a cluster of their own.

Which rows those are is one number, the cost above which a share of the weight lies, found as for trimming; so no array
of the size of the table is made, and any engine serves. What is proposed is only a start: `growth.Search` runs it on
all rows and takes it if the cost J falls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ilk.assorted.embedding import EmbeddedRows
from ilk.assorted.problem import AssortedProblem
from ilk.assorted.state import FitState, visit_assign
from ilk.families.base import GrowingFamily, Sums
from ilk.fitting.loop import PASS_LIMIT, Stop
from ilk.fitting.restarts import memberships_of
from ilk.fitting.trim import find_cuts
from ilk.table.block import Array, Block

TRIAL_FIT = Stop(tolerance=1e-6, max_passes=100)
LEG = 5  # passes of a birth among all rows before it is asked whether it may pay
LEEWAY = 2.0  # times what a run would still gain at the rate of its last passes


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


def while_hopeful(
    run: Callable[[Sequence[Any], Stop], list[FitState]], starts: Sequence[Any], below: float
) -> list[FitState]:
    """Trial fits of births, some passes at a time; one whose falls say that it ends above a cost goes no further."""
    leg = replace(TRIAL_FIT, max_passes=LEG)
    found, going = run(starts, leg), [*range(len(starts))]
    for _ in range(TRIAL_FIT.max_passes // LEG - 1):
        going = [place for place in going if found[place].reason == PASS_LIMIT]
        going = [p for p in going if not hopeless([record.cost for record in found[p].trace], below)]
        if not going:
            break
        for place, state in zip(going, run([found[p].params for p in going], leg), strict=True):
            found[place] = state
    return found


def hopeless(costs: Sequence[float], below: float) -> bool:
    """Whether a run is likely to end above a cost: each pass gains a share of what the one before gained, and twice the
    sum of what that leaves is not enough.

    >>> hopeless([90.0, 60.0, 50.0, 47.0], below=44.0), hopeless([90.0, 60.0, 50.0, 47.0], below=45.0)
    (True, False)
    """
    if len(costs) < 3:
        return False
    before, last = costs[-3] - costs[-2], costs[-2] - costs[-1]
    if not 0 <= last < before:
        return False
    return costs[-1] - LEEWAY * last * last / (before - last) > below


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

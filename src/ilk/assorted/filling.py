"""As many groups as were asked for: clusters that hold no row give way to halves of others.

Where a table has fewer clusters than a user wants, the cost J prefers some that are the likeliest of no row. They are
dropped, and a cluster is cut in two where J is least then, though it may rise: by a soft fit if both halves keep rows
in it, else by a hard one, which cannot let a half dissolve in the other, else by the cut itself.
If no cut will do, the rows are parted anew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ilk.assorted.embedding import HALVES, KINDS
from ilk.assorted.growth import TRIAL_FIT, GrowthSearch
from ilk.assorted.problem import AssortedProblem
from ilk.assorted.state import FitState, from_labels, labels_of, step_of
from ilk.fitting.loop import Record
from ilk.table.block import Array

LABELS_FITTED = 12  # the others are taken as they are


def filled(search: GrowthSearch, state: FitState, k: int) -> FitState:
    """A state of K clusters that all hold rows, or of as many as can be had."""
    found = state = occupied(state)
    while state.k < k and (wider := _best_fit(search, state.scene, _cuts(search, state), state.k + 1)):
        state = wider
    if state.k < k and (other := _best_fit(search, state.scene, _partitions(search, state.scene, k), k)):
        state = other
    if state is found or search.stopped:
        return state
    polished = search.polished(state.scene, state.params)
    return polished if polished.k == state.k and polished.full else state


def occupied(state: FitState) -> FitState:
    """Without the clusters that are the likeliest of no row."""
    while not state.full:
        kept = np.flatnonzero(state.size > 0)
        state = _measured(state.scene, state.scene.family.select(state.params, kept))
    return state


def _best_fit(search: GrowthSearch, scene: AssortedProblem, labels: list[Array], k: int) -> FitState | None:
    """Of fits from partitions the one of least cost whose K clusters all hold rows, by the first way that has one."""
    for fits, most in ((_soft, LABELS_FITTED), (_hard, LABELS_FITTED), (_as_labelled, len(labels))):
        if search.stopped and fits is not _as_labelled:
            continue
        found = [one for one in fits(search, scene, labels[:most], k) if one.k == k and one.full]
        if found:
            best = min(found, key=lambda one: one.cost)
            return replace(best, trace=best.trace or (Record(1, best.cost, k, n_reopened=1),))
    return None


def _cuts(search: GrowthSearch, state: FitState) -> list[Array]:
    """Labels of all rows with one of the clusters in two, the largest first, each in several ways."""
    label, points = labels_of(state.scene, state.params), search.points(state.scene)
    cuts = []
    for k in np.argsort(-state.size, kind="stable"):
        mine = np.flatnonzero(label == k)
        for kind in HALVES:
            half = kind(points.rows_of(mine), 2, search.seed, int(k))
            cut = label.copy()
            cut[mine[half == 1]] = state.k
            if 0 < np.count_nonzero(half) < len(half):
                cuts.append(cut)
    return cuts


def _partitions(search: GrowthSearch, scene: AssortedProblem, k: int) -> list[Array]:
    """All rows in K parts, for tables where small clusters cannot stand beside large ones."""
    points = search.points(scene)
    labels = [kind(points, k, search.seed, number) for number, kind in enumerate(KINDS) if kind is not None]
    return [label for label in labels if len(np.unique(label)) == k]


def _soft(search: GrowthSearch, scene: AssortedProblem, labels: list[Array], k: int) -> list[FitState]:
    return search.fits(scene, [search.from_labels(scene, label, k) for label in labels])


def _hard(search: GrowthSearch, scene: AssortedProblem, labels: list[Array], k: int) -> list[FitState]:
    """The parameters of hard fits, with what they cost in the scene as it is."""
    hard = replace(scene, options=replace(scene.options, membership="hard"))
    states = search.run_all(
        hard, [from_labels(hard.rows, hard.family, label, k) for label in labels], TRIAL_FIT
    )
    return [_measured(scene, state.params) for state in states]


def _as_labelled(search: GrowthSearch, scene: AssortedProblem, labels: list[Array], k: int) -> list[FitState]:
    """Every cell chosen, since few rows seldom pay for one; unless the cells have a budget."""
    family = scene.family.ungrouped if scene.options.budget is None else scene.family
    return [_measured(scene, from_labels(scene.rows, family, label, k)) for label in labels]


def _measured(scene: AssortedProblem, params: Any) -> FitState:
    cost = float(step_of(scene, params).cost.value) + scene.family.penalty(params)
    return FitState(scene, params, cost)

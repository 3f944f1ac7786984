"""From an assorted table to a finished fit: the search on a sample, the best polished on all rows, the K table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ilk.assorted.anchors import fitted_anchors
from ilk.assorted.family import Clusters
from ilk.assorted.filling import filled
from ilk.assorted.growth import FINAL_FIT, LEAST_FALL, N_STARTS, GrowthSearch
from ilk.assorted.problem import CELLS, AssortedProblem, ColumnTransform, ModelOptions
from ilk.assorted.state import FitState, labels_of, step_of
from ilk.assorted.transform import TransformPlan
from ilk.assorted.width import is_wide
from ilk.engines.base import Rows
from ilk.engines.memory import held
from ilk.families.base import GrowingFamily
from ilk.fitting.coreset import coreset
from ilk.fitting.fit import Fit, finish
from ilk.fitting.interrupt import exposed, keep
from ilk.fitting.loop import INTERRUPTED, Event, Run, Stop
from ilk.table.block import Array

ROWS_PER_CLUSTER = 4  # of a search without a limit
SEARCH_ROWS = 20_000  # moves and starts are tried on a coreset of so many rows
COOLING = (0.5, 0.25, 0.125)  # temperatures between soft and hard memberships
AUTO_BLOCKS = ("EEE",)  # blocks of numbers tried besides cells; VVV was tried and lost
ANCHORINGS = 3  # at most: the second finds clusters that the first parted
NEAR_CELLS = 0.02  # of what the cells gained: how near a short fit of a block must come


@dataclass(frozen=True)
class SearchOptions:
    """How clusters are sought: K (None to find it, between `least` and `most`), which criterion chooses it, and
    what may be spent."""

    k: int | None = None
    _: KW_ONLY
    criterion: str = "bic"
    least: int = 1
    most: int | None = None  # as many as pay
    n_starts: int = N_STARTS
    rescale: bool = True
    stop: Stop = FINAL_FIT
    search_rows: int = SEARCH_ROWS
    anchorings: int = ANCHORINGS


@dataclass(frozen=True)
class AssortedCandidate:
    """The best fit of one K on the rows searched: J, the priors in it, the entropy of its memberships, its model of
    the numbers."""

    k: int
    cost: float
    prior: float
    entropy: float
    numbers: str = "cells"

    @property
    def icl(self) -> float:
        """J plus entropy: dear where clusters overlap."""
        return self.cost + self.entropy

    def criterion(self, name: str) -> float:
        """ "bic" is J, "icl" J plus entropy, "plain" J without its priors, for models that have none."""
        return {"bic": self.cost, "icl": self.icl, "plain": self.cost - self.prior}[name]


@dataclass(frozen=True, eq=False)
class AssortedFit:
    """A finished fit: on which scene, what was found, J of it, and the best of every K on the way, with its
    treatment of the columns and its parameters."""

    scene: AssortedProblem
    fit: Fit
    cost: float
    candidates: tuple[AssortedCandidate, ...]
    kept: Mapping[int, tuple[ColumnTransform, Any]] = field(default_factory=dict)

    @property
    def family(self) -> GrowingFamily[Any]:
        return self.scene.family

    @property
    def params(self) -> Any:
        return self.fit.params

    @cached_property
    def entropy(self) -> float:
        """Of the memberships, in nats."""
        return float(step_of(self.scene, self.params).sums["entropy"])

    @cached_property
    def clusters(self) -> Clusters:
        """The clusters as cells, which have switches and a distribution per column."""
        return self._reading[0]

    @cached_property
    def _reading(self) -> tuple[Clusters, Mapping[str, Any]]:
        return self.scene.reading(self.params)

    @cached_property
    def relevance(self) -> Array:
        """Nats per row that each cluster gains by its own distribution (K, treated columns)."""
        clusters, sums = self._reading
        about = clusters if self.scene.options.numbers == "cells" else self.scene.cells.blank(len(clusters))
        return self.scene.cells.relevance(clusters, self.scene.cells.cells(about, sums))

    @cached_property
    def chosen(self) -> Array:
        """Mask (K, treated columns): the cluster has its own distribution there."""
        return self.scene.cells.chosen(self.clusters)


def fit_assorted(
    table: Rows,
    plan: TransformPlan,
    options: ModelOptions,
    quest: SearchOptions,
    seed: int,
    *,
    callback: Callable[[Event], None] | None = None,
) -> AssortedFit:
    """The clusters of an assorted table; the same for the same seed, whatever the engine."""
    if table.n_rows <= quest.search_rows:
        table = held(table, quest.search_rows, seed)  # hundreds of passes over few rows
    whole = AssortedProblem.plain(table, plan, _first_options(options))
    scene = _searched(whole, quest.search_rows, seed)
    search = GrowthSearch(
        seed,
        deadline=quest.stop.deadline,
        callback=callback,
        n_starts=quest.n_starts,
        rescale=quest.rescale,
        most=_most(scene, quest),
        final=quest.stop,
    )
    for model in (scene, *_blocks(scene, options)):
        search = _better(search, _searched_in(model, search, quest), quest)
    candidates = _candidates(search)
    state = _best(search, quest)
    try:
        with exposed():
            if scene is not whole:
                there = whole.like(state.scene)
                state = FitState(there, state.params, state.cost, search.stopped or state.reason, state.trace)
                if not search.stopped:
                    state = _polished(search, state, quest)
                if quest.k is None and not search.stopped:
                    state = search.born(state)
                    candidates = _with_born(candidates, scene, state)
            if cools(options):
                state = _cooled(search, state)
                state = state if quest.k is None else _refilled(search, scene, state, quest)
            return _finished(search, state, candidates)
    except KeyboardInterrupt:  # what the last whole step gave is there
        search.stopped = INTERRUPTED
        return _finished(search, state, candidates)


def _most(scene: AssortedProblem, quest: SearchOptions) -> int:
    """The most clusters: one beside those asked for, and no more than rows allow."""
    if quest.k is not None:
        return quest.k + 1
    return quest.most or max(quest.least, scene.rows.n_rows // ROWS_PER_CLUSTER)


def glimpse(table: Rows, plan: TransformPlan, label: Array, k: int) -> tuple[float, float]:
    """J without priors of a single cluster and of a short fit from a partition, each on its best scales: what the
    cells may come to, before a search."""
    scene, search = AssortedProblem.plain(table, plan, ModelOptions()), GrowthSearch(seed=0)
    states = [search.single(scene), search.trial(scene, search.from_labels(scene, label, k))]
    single, near = (search.settled(state).cost_without_prior for state in states)
    return single, near


def cost_from(found: AssortedFit, label: Array, k: int) -> float:
    """J of the fit that starts from a partition of the same rows, in the same model of the numbers."""
    search = GrowthSearch(seed=0)
    start = search.from_labels(found.scene, label, k)
    return search.polished(found.scene, start).cost


def _first_options(options: ModelOptions) -> ModelOptions:
    """What the search begins with: cells where blocks are tried after them, soft where it is cooled at the end."""
    numbers = "cells" if options.numbers == "auto" else options.numbers
    return replace(options, numbers=numbers, membership="soft" if cools(options) else options.membership)


def cools(options: ModelOptions) -> bool:
    """Whether a soft fit is cooled to a hard one."""
    return options.membership == "annealed"


def _searched(whole: AssortedProblem, most_rows: int, seed: int) -> AssortedProblem:
    """The scene of the search: the table, or a coreset of a large one."""
    if whole.table.n_rows <= most_rows:
        return whole
    few = coreset(whole.table, most_rows, seed)
    assert few.weight is not None
    return whole.on(few, float(few.weight.sum()) / whole.plan.total_weight)


def _blocks(scene: AssortedProblem, options: ModelOptions) -> list[AssortedProblem]:
    """The models of the numbers to try after the cells."""
    if options.numbers != "auto" or len(scene.plan.numbers) < 2 or scene.collinear:
        return []
    return [replace(scene, options=replace(scene.options, numbers=name)) for name in AUTO_BLOCKS]


def _searched_in(model: AssortedProblem, before: GrowthSearch, quest: SearchOptions) -> GrowthSearch:
    """A search in one model of the numbers. After the cells a block is searched only where it may pay, and with no
    more clusters than the cells needed."""
    if not before.best:
        search = before
    elif before.stopped or not _promises(before, model, best := _best(before, quest)):
        return before
    else:
        search = before.anew(best.k)
    try:
        with exposed():
            _search_scales(search, model, quest)
            if quest.k is None:
                _search_anchors(search, quest)
            if quest.k is not None:
                search.keep(filled(search, _best(search, quest), quest.k))
        keep()
    except KeyboardInterrupt:
        if not search.best:
            raise
        keep()
        search.stopped = INTERRUPTED
    return search


def _polished(search: GrowthSearch, state: FitState, quest: SearchOptions) -> FitState:
    """A state of the sample on all rows; as it is where clusters that were asked for would lose their rows."""
    polished = search.polished(state.scene, state.params)
    if quest.k is None or (polished.k == state.k and polished.full):
        return polished
    cost = float(step_of(state.scene, state.params).cost.value) + state.scene.family.penalty(state.params)
    return replace(state, cost=cost)


def _better(one: GrowthSearch, other: GrowthSearch, quest: SearchOptions) -> GrowthSearch:
    """The search whose answer has the lower J, priors aside: those of a block and of cells do not weigh the same."""
    if other is one:
        return one
    costs = [_best(search, quest).cost_without_prior for search in (one, other)]
    better = other if costs[1] < costs[0] else one
    better.stopped = one.stopped or other.stopped
    return better


def _search_scales(search: GrowthSearch, scene: AssortedProblem, quest: SearchOptions) -> None:
    """From every number as it is and, where one cluster prefers other scales, on those too."""
    single = search.keep(search.single(scene))
    settled = search.settled(single)
    if search.stopped:
        return
    if quest.k is None:
        search.grown(scene)
    if quest.k is not None or max(search.best) < quest.least:
        search.fixed(scene, quest.k or quest.least)
    if settled.scene.scales == scene.scales or search.stopped:
        return
    if quest.k is not None:
        search.fixed(settled.scene, quest.k)
    else:
        _grown_on(search, settled, _best(search, quest))


def _grown_on(search: GrowthSearch, settled: FitState, best: FitState) -> None:
    """The growth on the scales that one cluster prefers. Accepted moves have settled their scales on the way, so where
    clusters were found their partition is fitted there, and moves go on only if that is lower."""
    state = search.keep(settled) if best.k == 1 else search.from_other(settled.scene, best)
    if best.k == 1 or state.cost < best.cost - LEAST_FALL * abs(best.cost):
        search.moved(state)


def _search_anchors(search: GrowthSearch, quest: SearchOptions) -> None:
    """On with the prior of spreads anchored at those of the clusters, as often as J is lower there."""
    for _ in range(quest.anchorings):
        best = _best(search, quest)
        scene, n = best.scene, len(best.scene.plan.numbers)
        wide = is_wide(scene.rows.n_rows, scene.rows.n_columns)
        if best.k == 1 or not n or search.stopped or scene.options.numbers != CELLS or wide:
            return
        anchors = fitted_anchors(best.params, scene.options.anchors, n)
        if anchors == scene.options.anchors:
            return
        state = search.from_other(scene.anchored(anchors), best)
        if not state.cost < best.cost - LEAST_FALL * abs(best.cost):
            return
        search.moved(state)


def _promises(search: GrowthSearch, block: AssortedProblem, cells: FitState) -> bool:
    """Whether a short fit of a block from the partition of the cells comes near their cost, measured by what
    the cells gained on a single cluster."""
    near = search.trial(block, search.from_labels(block, labels_of(cells.scene, cells.params), cells.k))
    gained = search.best[1].cost - cells.cost
    return near.cost_without_prior < cells.cost_without_prior + NEAR_CELLS * gained


def _best(search: GrowthSearch, quest: SearchOptions) -> FitState:
    """The answer of a search: that of most groups up to the K asked for, else the one of least criterion."""
    if quest.k is not None:
        asked = [state for state in search.best.values() if state.k <= quest.k]
        return max(asked, key=lambda state: (np.count_nonzero(state.size), -state.k))
    candidates = _candidates(search)
    allowed = [c for c in candidates if c.k >= quest.least] or candidates[-1:]
    return search.best[min(allowed, key=lambda c: c.criterion(quest.criterion)).k]


def _candidates(search: GrowthSearch) -> tuple[AssortedCandidate, ...]:
    """The best state of every K visited."""
    return tuple(_candidate(search.best[k]) for k in sorted(search.best))


def _with_born(
    candidates: tuple[AssortedCandidate, ...], sample: AssortedProblem, state: FitState
) -> tuple[AssortedCandidate, ...]:
    """With a K that only all rows show; what it costs is measured on the rows searched, as for the others."""
    if state.k in {candidate.k for candidate in candidates}:
        return candidates
    scene = sample.like(state.scene)
    cost = float(step_of(scene, state.params).cost.value) + scene.family.penalty(state.params)
    return (*candidates, _candidate(FitState(scene, state.params, cost)))


def _candidate(state: FitState) -> AssortedCandidate:
    entropy = float(step_of(state.scene, state.params).sums["entropy"])
    prior = state.cost - state.cost_without_prior
    return AssortedCandidate(state.k, state.cost, prior, entropy, state.scene.options.numbers)


def _cooled(search: GrowthSearch, state: FitState) -> FitState:
    """Passes of falling temperature, then the hard fit."""
    params = state.params
    for heat in COOLING:
        params = state.scene.family.update(params, step_of(state.scene, params, heat).sums)
    hard = replace(state.scene, options=replace(state.scene.options, membership="hard"))
    return search.polished(hard, params)


def _refilled(
    search: GrowthSearch, searched: AssortedProblem, state: FitState, quest: SearchOptions
) -> FitState:
    """Clusters that hard memberships emptied give way to halves of others. They are cut on the rows searched: beyond
    those, rows are not made points."""
    assert quest.k is not None
    if state.k == quest.k and state.full:
        return state
    few = searched.like(state.scene)
    found = filled(search, replace(state, scene=few), quest.k)
    there = replace(found, scene=state.scene)
    return found if few.rows.n_rows == state.scene.rows.n_rows else _polished(search, there, quest)


def _finished(
    search: GrowthSearch, state: FitState, candidates: tuple[AssortedCandidate, ...]
) -> AssortedFit:
    family = state.scene.family
    reason = search.stopped or state.reason
    run = Run(
        family, state.params, measured=state.params, cost=state.cost, reason=reason, trace=list(state.trace)
    )
    fit = replace(finish(state.scene.rows, run, [run]), starts=tuple(search.starts))
    kept = {k: (found.scene.treat, found.params) for k, found in sorted(search.best.items())}
    return AssortedFit(state.scene, fit, fit.cost + family.penalty(fit.params), candidates, kept)

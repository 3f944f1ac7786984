"""From an assorted table to a finished fit: the search on a sample, the best polished on all rows, the K table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.families.assorted import Assorted, Clusters
from ilk.fitting.fit import Fit, finish
from ilk.fitting.growth import FINAL_FIT, MOST_CLUSTERS, N_STARTS, Search, State, step_of
from ilk.fitting.loop import INTERRUPTED, Event, Run, Stop
from ilk.fitting.scene import Options, Scene
from ilk.table.block import Array
from ilk.table.treat import Plan

SEARCH_ROWS = 20_000  # moves and starts are tried on a sample of so many rows
COOLING = (0.5, 0.25, 0.125)  # temperatures between soft and hard memberships


@dataclass(frozen=True)
class Quest:
    """How clusters are sought: K (None to find it), which criterion chooses it, and what may be spent."""

    k: int | None = None
    criterion: str = "bic"
    most: int = MOST_CLUSTERS
    n_starts: int = N_STARTS
    rescale: bool = True
    stop: Stop = FINAL_FIT


@dataclass(frozen=True)
class Candidate:
    """The best fit of one K on the rows searched: J, and the entropy of its memberships."""

    k: int
    cost: float
    entropy: float

    @property
    def icl(self) -> float:
        """J plus entropy: dear where clusters overlap."""
        return self.cost + self.entropy


@dataclass(frozen=True, eq=False)
class Assortment:
    """A finished fit: on which scene, what was found, J of it, and the best of every K on the way."""

    scene: Scene
    fit: Fit
    cost: float
    candidates: tuple[Candidate, ...]

    @property
    def family(self) -> Assorted:
        return self.scene.family

    @property
    def params(self) -> Clusters:
        params: Clusters = self.fit.params
        return params

    @cached_property
    def sums(self) -> dict[str, Any]:
        """Sums of the rows under the final parameters."""
        return dict(step_of(self.scene, self.params).sums)

    @cached_property
    def relevance(self) -> Array:
        """Nats per row that each cluster gains by its own distribution (K, treated columns)."""
        return self.family.relevance(self.params, self.sums)

    @cached_property
    def chosen(self) -> Array:
        return self.family.chosen(self.params)


def fit_assorted(
    table: Rows,
    plan: Plan,
    options: Options,
    quest: Quest,
    seed: int,
    *,
    callback: Callable[[Event], None] | None = None,
) -> Assortment:
    """The clusters of an assorted table; the same for the same seed, whatever the engine."""
    whole = Scene.plain(table, plan, replace(options, membership="soft") if cools(options) else options)
    scene = _searched(whole, seed)
    search = Search(
        seed, quest.stop.seconds, callback, quest.n_starts, quest.rescale, replace(quest.stop, seconds=inf)
    )
    try:
        _search(search, scene, quest)
    except KeyboardInterrupt:
        if not search.best:
            raise
        search.stopped = INTERRUPTED
    candidates = tuple(_candidate(search.best[k]) for k in sorted(search.best))
    state = search.best[_best_k(candidates, quest)]
    if scene is not whole:
        there = replace(whole, scales=state.scene.scales)
        state = State(there, state.params, state.cost, search.stopped or state.reason, state.trace)
        state = state if search.stopped else search.polished(there, state.params)
    if cools(options):
        state = _cooled(search, state, options)
    return _finished(search, state, candidates)


def cools(options: Options) -> bool:
    """Whether a soft fit is cooled to a hard one."""
    return options.membership == "annealed"


def _searched(whole: Scene, seed: int) -> Scene:
    """The scene of the search: the table, or a sample of a large one."""
    if whole.table.n_rows <= SEARCH_ROWS:
        return whole
    block = whole.table.sample(SEARCH_ROWS, seed)
    return whole.on(MemoryRows.of_block(block), float(block.weights.sum()) / whole.plan.total_weight)


def _search(search: Search, scene: Scene, quest: Quest) -> None:
    """From every number as it is and, where one cluster prefers other scales, from those too."""
    single = search.keep(search.single(scene))
    settled = search.settled(single)
    for begun in (scene,) if settled.scene.scales == scene.scales else (scene, settled.scene):
        if search.stopped:
            return
        if quest.k is None:
            search.grown(begun, quest.most)
        else:
            search.fixed(begun, quest.k)


def _candidate(state: State) -> Candidate:
    entropy = float(step_of(state.scene, state.params).sums["entropy"])
    return Candidate(state.k, state.cost, entropy)


def _best_k(candidates: tuple[Candidate, ...], quest: Quest) -> int:
    """The K asked for, or the largest below it that the rows allow; else the one of least criterion."""
    if quest.k is not None:
        return max(c.k for c in candidates if c.k <= quest.k)
    return min(candidates, key=lambda c: c.icl if quest.criterion == "icl" else c.cost).k


def _cooled(search: Search, state: State, options: Options) -> State:
    """Passes of falling temperature, then the hard fit."""
    params = state.params
    for heat in COOLING:
        params = state.scene.family.update(params, step_of(state.scene, params, heat).sums)
    hard = replace(state.scene, options=replace(options, membership="hard"))
    return search.polished(hard, params)


def _finished(search: Search, state: State, candidates: tuple[Candidate, ...]) -> Assortment:
    family = state.scene.family
    reason = search.stopped or state.reason
    run = Run(family, state.params, state.params, state.cost, reason, trace=list(state.trace))
    fit = replace(finish(state.scene.rows, run, [run]), starts=tuple(search.starts))
    return Assortment(state.scene, fit, fit.cost + family.penalty(fit.params), candidates)

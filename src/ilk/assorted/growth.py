"""How clusters of an assorted table are found: short fits from many starts, splits, merges and births.

Every move is an ordinary fit from parameters that differ in one cluster, accepted only when the cost J falls; so J
never rises, and the best fit of every number of clusters visited is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np

from ilk.assorted.births import births_of, born_labels
from ilk.assorted.compiled_run import run_all_starts
from ilk.assorted.embedding import HALVES, EmbeddedRows
from ilk.assorted.first_params import first_params
from ilk.assorted.problem import AssortedProblem
from ilk.assorted.racing import gain_on_one, halved, raced, ranked
from ilk.assorted.screening import screened
from ilk.assorted.sparse import has_sparse_codes, sparse_points
from ilk.assorted.state import (
    FitState,
    Half,
    from_labels,
    labels_of,
    state_of,
    step_of,
    visit_overlap,
    with_halves,
)
from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.families.base import GrowingFamily
from ilk.fitting.deadline import Deadline
from ilk.fitting.fit import StartRecord
from ilk.fitting.loop import INTERRUPTED, OK, TIME_LIMIT, Event, Run, Stop
from ilk.fitting.recall import recall
from ilk.random import stream
from ilk.table.block import Array, is_sparse

N_STARTS = 12
LONG_WARM_UP = 20  # passes with every cell chosen; a vague start needs them
SHORT_FIT = Stop(tolerance=1e-5, max_passes=15)
N_POLISHED = 3
LOCAL_FIT = Stop(tolerance=1e-5, max_passes=40)
TRIAL_FIT = Stop(tolerance=1e-6, max_passes=100)
FINAL_FIT = Stop(tolerance=1e-7, max_passes=300)
MOVE_WARM_UP = 2
SPLITS_TRIED, MERGES_TRIED = 3, 2
SPLIT_MERGE_ROUNDS, SPLIT_MERGE_SPLITS = 3, 2
EXCHANGES = 2  # of a split and a merge, when no move lowers J
LEAST_FALL = 1e-6  # relative; a move must lower J by more
SEVERAL_FROM = 9  # clusters from which several are split at once
BIRTH_SHARES = (0.05, 0.15)
LEAST_SPLIT = 4.0  # rows; smaller clusters are not split
SETTLE_ROUNDS = 5
DIRECT_CLUSTERS = (2, 3, 4, 5)  # sought at once in wide tables: three groups may pay where two do not
# and in compressed ones, whose rows are parted at once
SPARSE_CLUSTERS = (2, 3, 4, 5, 8, 12, 16, 24, 32, 48, 64)
DIRECT_ROWS = 8  # for each of them


@dataclass
class GrowthSearch:
    """One search; what it may spend, and what it has found: the best state of every K visited."""

    seed: int
    _: KW_ONLY
    deadline: Deadline = field(default_factory=Deadline.none)
    callback: Callable[[Event], None] | None = None
    n_starts: int = N_STARTS
    rescale: bool = True
    most: int = sys.maxsize
    final: Stop = FINAL_FIT
    best: dict[int, FitState] = field(default_factory=dict)
    stopped: str = ""
    starts: list[StartRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.n_moves = 0
        self._points: dict[tuple[int, tuple[int, ...]], EmbeddedRows] = {}

    def anew(self, most: int) -> GrowthSearch:
        """Another search with what is left of the time and the same points to start from."""
        other = replace(self, best={}, starts=list(self.starts), most=most)
        other._points = self._points
        return other

    # --- fits

    def fixed(self, scene: AssortedProblem, k: int) -> None:
        """The best fit with K clusters: short fits from varied starts, the best go on, then split and merge."""
        if k == 1:
            self.keep(self.single(scene))
            return
        starts = self._from_starts(scene, k)
        self.starts += [StartRecord(s.cost, len(s.trace), s.reason, OK) for s in starts]
        ranked = sorted(starts, key=lambda state: (state.k != k, not state.full, state.cost))[:N_POLISHED]
        states = [self.polished(scene, state.params) for state in ranked]
        for state in states:
            self.keep(state)
        state = min(states, key=lambda state: (state.k != k, not state.full, state.cost))
        for _ in range(SPLIT_MERGE_ROUNDS):
            better = self._split_merge(state)
            if better is None or self.stopped:
                return
            state = better

    def grown(self, scene: AssortedProblem) -> None:
        """From one cluster on: splits, merges and births as long as J falls, then the same K by other ways."""
        state = self.keep(self.single(scene))
        state, exchanges = (self._direct(state), 1) if scene.family.wide else (state, EXCHANGES)
        state = self.moved(state)
        for _ in range(exchanges):
            better = None if self.stopped else self._split_merge(state)
            if better is None:
                return
            state = self.moved(better)

    def moved(self, state: FitState) -> FitState:
        """Splits, merges and births from a state as long as J falls."""
        while not self.stopped:
            better = self._one_move(state)
            if better is None:
                break
            state = better
        return state

    def from_other(self, scene: AssortedProblem, other: FitState) -> FitState:
        """The fit on the scales of a scene from the partition of a state on others."""
        start = self.from_labels(scene, labels_of(other.scene, other.params), other.k)
        return self.keep(self.polished(scene, self._switched(scene, start)))

    def _direct(self, state: FitState) -> FitState:
        """The best of a few numbers of clusters of a wide table, each sought at once."""
        scene, in_vain = state.scene, 0
        for k in SPARSE_CLUSTERS if has_sparse_codes(scene.rows) else DIRECT_CLUSTERS:
            rows_enough = scene.rows.n_rows >= DIRECT_ROWS * k
            if k > self.most or self.stopped or not rows_enough or (in_vain >= 2 and k > 3):
                break
            found = [self.keep(self.polished(scene, run.measured)) for run in self._raced(scene, k)[:1]]
            better = bool(found) and found[0].cost < state.cost
            state, in_vain = (found[0], 0) if better else (state, in_vain + 1)
        return state

    def born(self, state: FitState) -> FitState:
        """Births among all rows of a table whose search was on a sample, as long as J falls."""
        while state.k < self.most and not self.stopped:
            proposals = births_of(state.scene, state.params, BIRTH_SHARES)
            better = self._accepted(state, self.fits(state.scene, proposals))
            if better is None:
                break
            state = better
        return state

    def polished(self, scene: AssortedProblem, params: Any) -> FitState:
        """A fit to its end, on the best scales."""
        return self.settled(self.run_all(scene, [params], self.final)[0])

    def trial(self, scene: AssortedProblem, params: Any) -> FitState:
        """A short fit."""
        return self.run_all(scene, [params], SHORT_FIT)[0]

    def single(self, scene: AssortedProblem) -> FitState:
        """All rows in one cluster."""
        everyone = np.zeros(scene.rows.n_rows, dtype=np.int32)
        return self.run_all(scene, [self.from_labels(scene, everyone, 1)], self.final)[0]

    def settled(self, state: FitState) -> FitState:
        """The state on the scales that are best for it, each change followed by a fit."""
        for _ in range(SETTLE_ROUNDS):
            moved = state.scene.rescaled(state.params) if self.rescale and not self.stopped else None
            if moved is None:
                break
            after = self.run_all(moved[0], [moved[1]], self.final)[0]
            if not after.cost < state.cost:
                break
            state = after
        return state

    def keep(self, state: FitState) -> FitState:
        """Note a state if it is the best of its K, and K is no more than may be found; one whose clusters all hold
        rows before others."""
        known = self.best.get(state.k)
        if state.k <= self.most and (
            known is None or (not state.full, state.cost) < (not known.full, known.cost)
        ):
            self.best[state.k] = state
        return state

    # --- moves

    def _one_move(self, state: FitState) -> FitState | None:
        """The best of splits and merges, or else of births; None when none lowers J."""
        several = state.k >= SEVERAL_FROM and not state.scene.family.wide
        if several and (better := self._several(state)) is not None:
            return better
        splits = self.fits(state.scene, self.splits(state)[:SPLITS_TRIED]) if state.k < self.most else []
        merges = self.fits(state.scene, self.merges(state)[:MERGES_TRIED], warm_up=0)
        better = self._accepted(state, splits + merges)
        if better is None and state.k < self.most and not self.stopped:
            better = self._accepted(state, self.fits(state.scene, self.births(state)))
        return better

    def _split_merge(self, state: FitState) -> FitState | None:
        """Split a cluster, fit, merge the cheapest pair, fit: the same K by another way."""
        wider = self.fits(state.scene, self.splits(state)[:SPLIT_MERGE_SPLITS])
        found = []
        for other in wider:
            self.keep(other)
            if other.k == state.k + 1 and not self.stopped:
                found += self.fits(other.scene, self.merges(other)[:MERGES_TRIED], warm_up=0)
        return self._accepted(state, [other for other in found if other.k == state.k])

    def _accepted(self, state: FitState, others: Sequence[FitState]) -> FitState | None:
        """The lowest of the others, on its best scales, if it lies below the state."""
        for other in others:
            self.keep(other)
        if not others:
            return None
        lowest = min(others, key=lambda other: other.cost)
        if not lowest.cost < state.cost - LEAST_FALL * abs(state.cost):
            return None
        return self.keep(self.polished(lowest.scene, lowest.params))

    def splits(self, state: FitState) -> list[Any]:
        """Each cluster in two, by the best of three fits on its own rows; the most promising first."""
        if state.scene.family.wide:
            return self._screened_splits(state)
        return [with_halves(state, [half]) for half in self._parted(state)]

    def _several(self, state: FitState) -> FitState | None:
        """All clusters in two at once that are cheaper so, or the best half of them and so on; None when that does
        not lower J. From one cluster to a hundred it is few steps."""
        paying = [half for half in self._parted(state) if half[0] > 0][: self.most - state.k]
        while len(paying) > 1 and not self.stopped:
            better = self._accepted(state, self.fits(state.scene, [with_halves(state, paying)]))
            if better is not None:
                return better
            paying = paying[: len(paying) // 2]
        return None

    def _parted(self, state: FitState) -> list[Half]:
        """What each cluster gains in two, its number, and the two; the most first."""
        self.n_moves += 1
        by = state.scene.family.ungrouped, state.params, self.n_moves, self.seed
        return recall("halves", state.scene.rows, by, lambda: self._halved(state))

    def _halved(self, state: FitState) -> list[Half]:
        scene = state.scene
        label = labels_of(scene, state.params)
        points, family = self.points(scene), scene.family.ungrouped
        found: list[Half] = []
        for k in range(state.k):
            mine = np.flatnonzero(label == k)
            block = scene.rows.take(mine)
            if block.weights.sum() < LEAST_SPLIT:
                continue
            halves = self._halves(MemoryRows.of_block(block, threads=1), points.rows_of(mine), family)
            if halves is not None:
                found.append((halves[0], k, halves[1]))
        return sorted(found, key=lambda half: -half[0])

    def _screened_splits(self, state: FitState) -> list[Any]:
        """Each cluster of a wide table in two, by a race from the columns that matter among its rows."""
        self.n_moves += 1
        scene, by = state.scene, (state.scene.family, state.params, self.n_moves, self.seed)
        proposals = recall("screened halves", scene.rows, by, lambda: self._screened_halves(state))
        return [self.from_labels(scene, moved, state.k + 1) for _, moved in proposals]

    def _screened_halves(self, state: FitState) -> list[tuple[float, Array]]:
        scene, points = state.scene, self.points(state.scene)
        label = labels_of(scene, state.params)
        proposals: list[tuple[float, Array]] = []
        for k in range(state.k):
            mine = np.flatnonzero(label == k)
            if len(mine) < DIRECT_ROWS or self.stopped:
                continue
            starts = screened(points.rows_of(mine), 2, stream(self.seed, "screened split", self.n_moves, k))
            rows = MemoryRows.of_block(scene.rows.take(mine), threads=1)
            if (halves := halved(rows, scene.family, starts, self._run)) is not None:
                moved = label.copy()
                moved[mine[halves[1] == 1]] = state.k
                proposals.append((halves[0], moved))
        return sorted(proposals, key=lambda pair: -pair[0])

    def _halves(
        self, rows: MemoryRows, points: EmbeddedRows, family: GrowingFamily[Any]
    ) -> tuple[float, Any] | None:
        """The best fit of two clusters to some rows, and by how much it beats one."""
        number = self.n_moves
        labels = [kind(points, 2, self.seed, number) for kind in HALVES]
        starts = [from_labels(rows, family, label, 2) for label in labels if label.max() > 0]
        if not starts:
            return None
        runs = run_all_starts(rows, [family] * len(starts), starts, stop=LOCAL_FIT)
        self._note(runs)
        best = ranked(runs, 2)[:1]
        return (gain_on_one(rows, family, best[0].cost), best[0].measured) if best else None

    def merges(self, state: FitState) -> list[Any]:
        """Two clusters made one, the cheapest first."""
        if state.k == 1:
            return []
        family, params = state.scene.family, state.params
        partial = step_of(state.scene, params)
        overlap = state.scene.rows.reduce(visit_overlap, (family, params))
        costs = family.merge_costs(params, partial.sums) + overlap
        one, other = np.triu_indices(state.k, 1)
        order = np.argsort(costs[one, other], kind="stable")[: 2 * MERGES_TRIED]
        return [family.merged(params, partial.sums, int(one[p]), int(other[p])) for p in order]

    def births(self, state: FitState) -> list[Any]:
        """A new cluster of the rows that the model explains worst, or of the neighbours of the worst."""
        scene, k = state.scene, state.k
        by = scene.family, state.params, BIRTH_SHARES
        labels = recall("births", scene.rows, by, lambda: born_labels(scene, self.points(scene), *by))
        return [self.from_labels(scene, moved, k + 1) for moved in labels if len(np.unique(moved)) == k + 1]

    # --- from memberships to fits

    def points(self, scene: AssortedProblem) -> EmbeddedRows:
        """The rows of a scene as points; a search knows a table and perhaps a sample of it, with fewer rows."""
        key = scene.rows.n_rows, scene.scales
        if key not in self._points:
            block = scene.rows.take(np.arange(scene.rows.n_rows))
            compressed = is_sparse(block.codes) and scene.family.wide
            self._points[key] = (
                sparse_points(block) if compressed else EmbeddedRows.of_block(block, scene.columns)
            )
        return self._points[key]

    def from_labels(self, scene: AssortedProblem, label: Array, k: int) -> Any:
        family = scene.family
        return from_labels(scene.rows, family if family.wide else family.ungrouped, label, k)

    def _from_starts(self, scene: AssortedProblem, k: int) -> list[FitState]:
        """Short fits, half of them after one pass with every cell chosen and half after many; of a wide table those
        that won a race, if there are."""
        if scene.family.wide and (runs := self._raced(scene, k)):
            return [state_of(scene, run) for run in runs]
        by = scene.family.ungrouped, k, self.n_starts, self.seed
        rows, points = scene.rows, self.points(scene)
        ready, vague = recall("first parameters", rows, by, lambda: first_params(points, rows, *by))
        ready += self._warmed(scene, vague, LONG_WARM_UP - 1)
        return self.run_all(scene, [self._switched(scene, params) for params in ready], SHORT_FIT)

    def _raced(self, scene: AssortedProblem, k: int) -> list[Run]:
        """Fits of K clusters from the screened columns of a wide table, the best first."""

        def work() -> list[Run]:
            parts = screened(self.points(scene), k, stream(self.seed, "screened", k))
            return raced(scene.rows, scene.family, parts, k, self._run)

        return recall("race", scene.rows, (scene.family, k, self.seed), work)

    def fits(
        self, scene: AssortedProblem, proposals: Sequence[Any], warm_up: int = MOVE_WARM_UP
    ) -> list[FitState]:
        """Trial fits of what moves propose, after a few passes with every cell chosen."""
        if not proposals or self.stopped:
            return []
        if warm_up and not scene.family.wide:
            warmed = self._warmed(scene, proposals, warm_up - 1)
            proposals = [self._switched(scene, params) for params in warmed]
        return self.run_all(scene, proposals, TRIAL_FIT)

    def _warmed(self, scene: AssortedProblem, starts: Sequence[Any], n_passes: int) -> list[Any]:
        """Some passes with every cell chosen."""
        if not starts or not n_passes or self.stopped:
            return list(starts)
        families = [scene.family.ungrouped] * len(starts)
        stop = Stop(max_passes=n_passes, deadline=self.deadline)
        runs = run_all_starts(scene.rows, families, starts, stop=stop, callback=self.callback)
        self._note(runs)
        return [run.params for run in runs]

    def _switched(self, scene: AssortedProblem, params: Any) -> Any:
        """One pass with every cell chosen whose update groups the clusters."""
        return scene.family.update(params, step_of(scene, params).sums)

    def run_all(self, scene: AssortedProblem, starts: Sequence[Any], stop: Stop) -> list[FitState]:
        return [state_of(scene, run) for run in self._run(scene.rows, scene.family, starts, stop)]

    def _run(self, rows: Rows, family: GrowingFamily[Any], starts: Sequence[Any], stop: Stop) -> list[Run]:
        stop = replace(stop, deadline=self.deadline)
        runs = run_all_starts(rows, [family] * len(starts), starts, stop=stop, callback=self.callback)
        self._note(runs)
        return runs

    def _note(self, runs: Sequence[Run]) -> None:
        """An interrupt or the end of the time ends the search, not only the run."""
        for reason in (INTERRUPTED, TIME_LIMIT):
            if any(run.reason == reason for run in runs):
                self.stopped = self.stopped or reason

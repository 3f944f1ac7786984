"""The search over covariance structures and K: every cell with its status, several starts each.

For each K all structures start from the same partitions (tree, K-means, K-log-K), so that sums are gathered once;
structures with axes also start from their best fit with one component less, each component in turn cut in two
(the split start: where clusters are stretched, it finds what the others miss). After all structures of a K have
run, each starts once more from the memberships of the best few, so that no structure ends below one that it
contains. At the end the best cell is joined up: all structures with one component less start from it with two of
its components made one, as long as that is better. Tables of more than `SEARCH_ROWS` rows are searched on a coreset;
the best few then see all rows, several models in each pass.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ilk import kernels
from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.errors import NoModelError
from ilk.families.covariance import STRUCTURES, Structure
from ilk.families.gaussian import Gaussian, Mixture
from ilk.fitting.deadline import Deadline
from ilk.fitting.interrupt import exposed, heard, keep
from ilk.fitting.loop import INTERRUPTED, OK, PASS_LIMIT, Run, Stop
from ilk.fitting.mixture import best_run, distinct, rank_of
from ilk.fitting.partitions import Partitioner, start_names
from ilk.fitting.recall import recall
from ilk.fitting.restarts import memberships_of
from ilk.fitting.small_tables import run_quick
from ilk.fitting.split_merge import SPLIT_PASSES, joined_labels, split_labels
from ilk.fitting.table_moments import table_moments
from ilk.measures.criteria import adjusted_bic, aic, bic, icl
from ilk.selection.candidates import Candidate, Model, Search
from ilk.selection.finalists import FINAL_STOP, decide
from ilk.selection.first_sums import FirstSums
from ilk.selection.grid_cell import GridCell
from ilk.selection.growing import Growth
from ilk.selection.k_range import ladder
from ilk.selection.progress import Progress, told
from ilk.selection.search import end_of_search
from ilk.selection.search_rows import each_once, searched
from ilk.table.block import Array

N_DONORS = 4
N_STARTS, N_STARTS_LINE = 8, 100  # partitions a cell starts from; one column costs little
QUICK_SPLITS = ("EEE", "VVV")  # structures that a quick search also starts from splits
N_IMPROVED = 6  # cells of one K that get other starts in a quick search
REACH = 0.2  # of what the best cell gains on one component: cells further behind get no other starts
RACE_STOP = Stop(tolerance=1e-5, max_passes=10)  # how far the other starts of a quick search go before
MOST_JOINED = 12  # components of which every two are tried as one; beyond, growth tries the nearest
N_RACED = 1  # the best so many of a cell go on
HOPELESS = 0.5  # of what the best cell gains: a structure further behind after a few passes is not run out
SEARCH_STOP = Stop(tolerance=1e-6, max_passes=500)
AT_ONCE = Stop(max_passes=1)
QUICK_STOP = Stop(tolerance=1e-5, max_passes=500)
SAME_OPTIMUM = 1e-5  # relative difference of costs below which two runs ended in the same place


class Grid:
    """The cells while they are filled, K after K."""

    def __init__(self, rows: Rows, structures: Sequence[Structure], ks: Sequence[int], seed: int) -> None:
        self.rows, self.ks, self.seed = rows, ks, seed
        self.moments = table_moments(rows)
        if not (self.moments.variance > 0).all():
            raise NoModelError(
                "no-valid-model",
                "a column is constant among the rows that count, so no Gaussian has a spread there",
                do="Leave the column out, or use another method",
            )
        self.structures = tuple(dict.fromkeys(s.for_columns(rows.n_columns) for s in structures))
        self.block = rows.take(np.arange(rows.n_rows))
        self.partitioner = Partitioner(self.block, seed)
        self.cells: dict[tuple[Structure, int], GridCell] = {}
        self.log_unit = float(self.moments.cells @ rows.encoding.log_unit)

    def fill(self, k: int, structures: Sequence[Structure], stop: Stop, *, thorough: bool) -> list[GridCell]:
        """Fit all `structures` with K components: from all starts, or from the first and one split."""
        clock = Deadline.none()
        cells = [self.blank(s, k) for s in structures]
        if thorough:
            self._run(cells, self._partitions(k, slice(None)), stop, thorough=True)
        else:
            self._race_structures(cells, self._partitions(k, slice(1)), stop)
        if k > 1:
            self._run_splits([c for c in cells if thorough or c.structure.name in QUICK_SPLITS], stop)
        if k > 1 and thorough:
            self._exchange(cells, stop)
            able = [cell for cell in cells if cell.fits]
            self._advance(
                able, [cell.best.params for cell in able], replace(FINAL_STOP, deadline=stop.deadline)
            )
        for cell in cells:
            cell.seconds = clock.spent / len(cells)
            self.cells[cell.structure, k] = cell
        return cells

    def blank(self, structure: Structure, k: int) -> GridCell:
        return GridCell(structure, k, Gaussian(structure, self.moments.variance), [])

    def run_from(self, cells: Sequence[GridCell], labels: Sequence[Array], stop: Stop) -> None:
        """Cells of one K from partitions of the rows."""
        self._run(cells, [memberships_of(label, int(label.max()) + 1) for label in labels], stop)

    def run_on(self, cells: Sequence[GridCell], stop: Stop) -> None:
        """On with the best run of each cell."""
        self._advance(cells, [cell.best.params for cell in cells], stop)

    def _partitions(self, k: int, which: slice) -> list[Array]:
        """Memberships of the starts `which` of the automatic mix."""
        n_starts = N_STARTS_LINE if self.rows.n_columns == 1 else N_STARTS
        mix = start_names("auto", self.partitioner.mix, n_starts) if k > 1 else ("k-means",)
        part, names = self.partitioner.labels, list(enumerate(mix))[which]
        by = k, names, self.seed
        labels = recall("partitions", self.rows, by, lambda: distinct([part(n, k, i) for i, n in names]))
        return [memberships_of(label, k) for label in labels if len(np.unique(label)) == k]

    def wanted(self, k: int) -> bool:
        """Whether K was asked for; smaller ones are there to be cut in two."""
        return k in self.ks or k > self.ks[-1]

    @property
    def ranked(self) -> list[GridCell]:
        """The cells that may be chosen, the best first."""
        return sorted((cell for cell in self.cells.values() if self.wanted(cell.k)), key=self.bic)

    @property
    def models(self) -> dict[int, Model]:
        """The best mixture of every K that may be chosen."""
        best = {cell.k: cell for cell in reversed(self.ranked) if math.isfinite(self.bic(cell))}
        return {k: (cell.family, cell.best.params) for k, cell in best.items()}

    def improve(self, stop: Stop) -> None:
        """The promising cells of the best K and of those beside it once more from other starts and from each other's
        memberships; again as long as that finds another best K.

        A K that was given is searched in the same way, so that a cell is the same however it was reached.
        """
        done: set[int] = set()
        while fresh := [k for k in self._near_best() if k not in done]:
            reach = self._reach()
            done.update(fresh)
            for k in fresh:
                of_k = [cell for cell in self.ranked if cell.k == k]
                cells = [cell for cell in of_k if self.bic(cell) <= reach][:N_IMPROVED]
                if not cells:
                    continue
                self._race(cells, self._partitions(k, slice(1, None)), stop)
                self._run_splits([c for c in cells if c.structure.name not in QUICK_SPLITS], stop)
                self._exchange(cells, stop)

    def _near_best(self) -> list[int]:
        """The K of the best cell and those beside it, the smallest first: larger ones are cut from them."""
        best = self.ranked[0].k
        return [k for k in (best - 1, best, best + 1) if k > 1 and any(c.k == k for c in self.ranked)]

    def _reach(self) -> float:
        """The highest BIC that is worth other starts: any finite one where K was given."""
        lowest = self.bic(self.ranked[0])
        alone = min(self.bic(cell) for cell in self.cells.values() if cell.k == 1)
        far = len(self.ks) == 1 or not lowest < alone < math.inf
        return sys.float_info.max if far else lowest + REACH * (alone - lowest)

    def _run(
        self, cells: Sequence[GridCell], memberships: Sequence[Array], stop: Stop, *, thorough: bool = False
    ) -> None:
        """Every cell from every membership; `thorough` seeks the first common axes from several sides."""
        self._advance(*self._starts(cells, memberships, thorough=thorough), stop)

    def _starts(
        self, cells: Sequence[GridCell], memberships: Sequence[Array], *, thorough: bool
    ) -> tuple[list[GridCell], list[Mixture]]:
        whose, starts = [], []
        for number, membership in enumerate(memberships):
            sums = FirstSums(self.block, membership)
            for cell in cells:
                for start in sums.first(cell.family, thorough=thorough and number == 0):
                    whose.append(cell)
                    starts.append(start)
        return whose, starts

    def _race(self, cells: Sequence[GridCell], memberships: Sequence[Array], stop: Stop) -> None:
        """Every cell from every membership for some passes; the best of each cell go on."""
        n_before = [len(cell.runs) for cell in cells]
        short = replace(RACE_STOP, deadline=stop.deadline)
        self._advance(*self._starts(cells, memberships, thorough=True), short)
        going: list[tuple[GridCell, Run]] = []
        for cell, first in zip(cells, n_before, strict=True):
            mine = sorted((run for run in cell.runs[first:] if run.status == OK), key=rank_of)
            going += [(cell, run) for run in mine[:N_RACED]]
            chosen = {id(run) for run in mine[:N_RACED]}
            cell.runs[first:] = [run for run in cell.runs[first:] if id(run) not in chosen]
        self._advance([cell for cell, _ in going], [run.params for _, run in going], stop)

    def _race_structures(self, cells: Sequence[GridCell], memberships: Sequence[Array], stop: Stop) -> None:
        """All structures of a K from one partition for some passes; what is not hopelessly behind goes on, where a cell
        has several starts (EVE and VVE) with the best of them."""
        short = replace(stop, max_passes=min(RACE_STOP.max_passes, stop.max_passes))
        self._advance(*self._starts(cells, memberships, thorough=False), short)
        if short.max_passes == stop.max_passes:
            return
        behind = self._hopeless(cells)
        halfway = [cell for cell in cells if cell.fits and cell.best.reason == PASS_LIMIT]
        going = [cell for cell in halfway if self.bic(cell) <= behind]
        raced = [cell.best for cell in going]
        for cell, run in zip(going, raced, strict=True):
            cell.runs = [other for other in cell.runs if other is not run]
        self._advance(going, [run.params for run in raced], stop)

    def _hopeless(self, cells: Sequence[GridCell]) -> float:
        """The BIC above which a structure is left after a few passes: half of what the best cell gains on one component
        behind it, and so far that every row would have to be likelier by an eighth."""
        alone = min((self.bic(cell) for cell in self.cells.values() if cell.k == 1), default=math.inf)
        lowest = min(self.bic(cell) for cell in [*cells, *self.cells.values()])
        if not lowest < alone < math.inf:
            return math.inf
        return lowest + max(HOPELESS * (alone - lowest), self.moments.row_weight / 4)

    def _advance(self, whose: Sequence[GridCell], starts: Sequence[Mixture], stop: Stop) -> None:
        good = [i for i, start in enumerate(starts) if start.status == OK]
        runs = run_quick(self.rows, [whose[i].family for i in good], [starts[i] for i in good], stop)
        for i, run in zip(good, runs, strict=True):
            whose[i].runs.append(run)
        for i in set(range(len(starts))) - set(good):
            whose[i].runs.append(
                Run(whose[i].family, starts[i], reason="degenerate", status=starts[i].status)
            )

    def _run_splits(self, cells: Sequence[GridCell], stop: Stop) -> None:
        """The best fit with one component less, each component in turn cut in two; the best cut is run out."""
        trials: list[tuple[GridCell, Mixture]] = []
        for cell in cells:
            before = self.cells.get((cell.structure, cell.k - 1))
            if cell.structure.orientation == "I" or before is None or not before.fits:
                continue
            trials += self._first([cell], self.split_labels(before))
        self._run_trials(trials, stop)

    def split_labels(self, cell: GridCell) -> list[Array]:
        """Each component of a cell in turn cut in two."""
        by = cell.family, cell.best.params
        return recall("splits", self.rows, by, lambda: split_labels(self.block, *by))

    def join(self, stop: Stop) -> None:
        """The promising cells with one component less than the best one, from its partition with two components
        joined; again as long as one of them is better."""
        joined: set[int] = set()
        while 2 < (best := self.ranked[0]).k <= MOST_JOINED and best.k not in joined and best.fits:
            joined.add(best.k)
            reach = self._reach()
            below = [cell for cell in self.ranked if cell.k == best.k - 1 and self.bic(cell) <= reach]
            labels = joined_labels(self.block, best.family, best.best.params)
            self._run_trials(self._first(below, labels), stop)

    def _first(self, cells: Sequence[GridCell], labels: Sequence[Array]) -> list[tuple[GridCell, Mixture]]:
        """First parameters of every cell from every partition, where there are any."""
        firsts = []
        for label in labels:
            sums = FirstSums(self.block, memberships_of(label, int(label.max()) + 1))
            firsts += [(cell, start) for cell in cells for start in sums.first(cell.family)[:1]]
        return [(cell, start) for cell, start in firsts if start.status == OK]

    def _run_trials(self, trials: Sequence[tuple[GridCell, Mixture]], stop: Stop) -> None:
        """A few passes from each of the starts; the best of every cell is run out."""
        short = replace(stop, max_passes=SPLIT_PASSES)
        families, starts = [cell.family for cell, _ in trials], [start for _, start in trials]
        runs = run_quick(self.rows, families, starts, short)
        good = [(cell, run) for (cell, _), run in zip(trials, runs, strict=True) if run.status == OK]
        cells = list({id(cell): cell for cell, _ in good}.values())
        chosen = [best_run([run for owner, run in good if owner is cell]).params for cell in cells]
        self._advance(cells, chosen, stop)

    def _exchange(self, cells: Sequence[GridCell], stop: Stop) -> None:
        """Every cell once more from the memberships of the best other cells of this K."""
        scored = sorted((self.bic(cell), i) for i, cell in enumerate(cells) if cell.fits)
        donors = [cells[i] for _, i in scored[:N_DONORS]]
        for donor in donors:
            membership = kernels.memberships(donor.family.scores(donor.best.params, self.block), False)[0]
            self._run([cell for cell in cells if cell is not donor], [membership], stop)

    def bic(self, cell: GridCell) -> float:
        if not cell.fits:
            return math.inf
        run = cell.best
        parameters = cell.family.free_parameters(run.params)
        return bic(-run.cost + self.log_unit, parameters, self.moments.row_weight)

    def candidate(self, cell: GridCell) -> Candidate:
        empty = Candidate("gaussian", cell.structure.name, cell.k, cell.status, n_starts=len(cell.runs))
        if not cell.fits:
            return empty
        run = cell.best
        loglik, n_rows = -run.cost + self.log_unit, self.moments.row_weight
        parameters = cell.family.free_parameters(run.params)
        certainty = float(cell.family.labelled(run.params, self.block)[2] @ self.block.weights)
        near = SAME_OPTIMUM * abs(run.cost)
        return replace(
            empty,
            loglik=loglik,
            parameters=parameters,
            bic=bic(loglik, parameters, n_rows),
            icl=icl(loglik, parameters, n_rows, certainty),
            aic=aic(loglik, parameters),
            adjusted_bic=adjusted_bic(loglik, parameters, n_rows),
            cost=run.cost,
            n_starts_at_best=sum(r.status == OK and r.cost <= run.cost + near for r in cell.runs),
            n_passes=len(run.trace),
            seconds=cell.seconds,
        )


def search_mixtures(
    rows: Rows,
    ks: Sequence[int],
    seed: int,
    *,
    structures: Sequence[Structure] = STRUCTURES,
    thorough: bool = True,
    patience: int | None = None,
    most: int | None = None,
    deadline: Deadline | None = None,
    callback: Callable[[Progress], None] | None = None,
    few: MemoryRows | None = None,
) -> Search:
    """All structures at every K, and the lowest BIC; a structure whose BIC rose `patience` times is left.

    A `thorough` search gives every cell all starts; a quick one gives them to the most promising cells only.
    With `most` above the last K the search goes on from there for as long as more components pay.
    `few` are the rows to search on, where they have been drawn before.
    """
    deadline = (deadline or Deadline.none()).within()
    few = searched(rows, seed) if few is None else few
    grid = Grid(each_once(few), structures, ks, seed)
    rises = dict.fromkeys(grid.structures, 0)
    least = dict.fromkeys(grid.structures, math.inf)
    interrupted = False
    candidates: list[Candidate] = []
    every = ladder(ks)
    for done, k in enumerate(every, start=1):
        active = [s for s in grid.structures if patience is None or rises[s] < patience or k in (1, *ks[:1])]
        enough = any(known in ks for _, known in grid.cells)
        if enough and (interrupted or deadline.over):
            status = "cancelled" if interrupted else "did_not_start"
            candidates += [Candidate("gaussian", s.name, k, status) for s in active]
            continue
        try:
            stop = replace(SEARCH_STOP if thorough else QUICK_STOP, deadline=deadline)
            if deadline.over and (grid.cells or not heard()):  # the first K has an answer whatever the time
                stop = AT_ONCE
            with exposed():
                cells = grid.fill(k, active, stop, thorough=thorough and k in ks)
            keep()
            interrupted |= any(run.reason == INTERRUPTED for cell in cells for run in cell.runs)
        except KeyboardInterrupt:
            if not grid.cells:
                raise
            interrupted = True
            if enough:
                candidates += [Candidate("gaussian", s.name, k, "cancelled") for s in active]
                continue
            grid.fill(k, active, AT_ONCE, thorough=False)
        for structure in active:
            value = grid.bic(grid.cells[structure, k])
            rises[structure] = 0 if value < least[structure] else rises[structure] + 1
            least[structure] = min(least[structure], value)
        best = min(least.values())
        told(
            callback,
            Progress(
                done=done, total=len(every), method="gaussian", k=k, best_bic=best, seconds=deadline.spent
            ),
        )
    try:
        with exposed():
            if not thorough and not interrupted and not deadline.over:
                grid.improve(replace(SEARCH_STOP, deadline=deadline))
            if not interrupted and not deadline.over:
                Growth(grid, ks[-1], most or ks[-1], replace(QUICK_STOP, deadline=deadline)).run()
            if not interrupted and not deadline.over:
                grid.join(replace(SEARCH_STOP, deadline=deadline))
    except KeyboardInterrupt:
        interrupted = True
    for cell in grid.cells.values():
        found = grid.candidate(cell)
        outside = cell.k not in ks and cell.k <= ks[-1] and found.eligible
        candidates.append(replace(found, status="reference") if outside else found)
    won = decide(rows, grid, candidates, interrupted, deadline)
    return replace(won, few=few, ended_by=end_of_search(won.chosen.k, ks, most, deadline))

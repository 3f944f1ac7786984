"""The search over covariance structures and K: every cell with its status, several starts each.

For each K all structures start from the same partitions (tree, K-means, K-log-K), so that sums are gathered once;
structures with axes also start from their best fit with one component less, each component in turn cut in two
(the split start: where clusters are stretched, it finds what the others miss). After all structures of a K have
run, each starts once more from the memberships of the best two, so that no structure ends below one that it
contains. Tables of more than `SEARCH_ROWS` rows are searched on a sample; the best few then see all rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ilk import kernels
from ilk.engines.memory import MemoryRows
from ilk.families.covariance import STRUCTURES, Covariance, Structure
from ilk.families.gaussian import Gaussian, Mixture
from ilk.fitting.fit import finish
from ilk.fitting.loop import INTERRUPTED, OK, PASS_LIMIT, TIME_LIMIT, Run, Stop, run_starts
from ilk.fitting.mixture import best_run, distinct
from ilk.fitting.partitions import Partitioner, start_names
from ilk.fitting.restarts import Recipe
from ilk.fitting.table_moments import TableMoments, table_moments
from ilk.measures.criteria import adjusted_bic, aic, bic, icl, log_certainty
from ilk.random import stream
from ilk.selection.search import Candidate, Progress, Search, choose, told
from ilk.table.block import Array, Block

SEARCH_ROWS = 2000
N_POLISHED = 3  # cells of a search on a sample that are fitted to all rows
N_DONORS = 2
SPLIT_PASSES = 5
SEARCH_STOP = Stop(tolerance=1e-6, max_passes=500)
FINAL_STOP = Stop(tolerance=1e-8, max_passes=1000)
SAME_OPTIMUM = 1e-5  # relative difference of costs below which two runs ended in the same place


def run_quick(
    rows: MemoryRows, families: Sequence[Gaussian], starts: Sequence[Mixture], stop: Stop
) -> list[Run]:
    return run_starts(rows, families, starts, stop=stop)


@dataclass
class Cell:
    """One structure at one K: its runs, best first once they have ended."""

    structure: Structure
    k: int
    family: Gaussian
    runs: list[Run]
    seconds: float = 0.0

    @property
    def best(self) -> Run:
        return best_run(self.runs)

    @property
    def status(self) -> str:
        """Of the best run that is an answer, else the commonest failure."""
        if not self.runs:
            return "did_not_start"
        best = self.best
        if best.status == OK:
            limits = {
                PASS_LIMIT: "ok_iteration_limit",
                TIME_LIMIT: "ok_time_limit",
                INTERRUPTED: "ok_interrupted",
            }
            return limits.get(best.reason, OK)
        failures = [run.status for run in self.runs]
        return max(set(failures), key=failures.count)


class Grid:
    """The cells while they are filled, K after K."""

    def __init__(self, rows: MemoryRows, structures: Sequence[Structure], seed: int) -> None:
        self.rows, self.seed = rows, seed
        self.moments = table_moments(rows)
        self.structures = tuple(dict.fromkeys(s.for_columns(rows.n_columns) for s in structures))
        self.block = rows.take(np.arange(rows.n_rows))
        self.partitioner = Partitioner(self.block, seed)
        self.cells: dict[tuple[Structure, int], Cell] = {}
        self.log_unit = float(self.moments.cells @ np.log(rows.encoding.unit))

    def fill(self, k: int, structures: Sequence[Structure], stop: Stop) -> list[Cell]:
        """Fit all `structures` with K components."""
        began = time.monotonic()
        cells = [Cell(s, k, Gaussian(s, self.moments.variance), []) for s in structures]
        names = start_names("auto", self.rows.n_columns, None) if k > 1 else ("k-means",)
        partitions = distinct([self.partitioner.labels(name, k, i) for i, name in enumerate(names)])
        memberships = [_one_hot(label, k) for label in partitions if len(np.unique(label)) == k]
        self._run(cells, memberships, stop)
        if k > 1:
            self._run_splits(cells, stop)
            self._exchange(cells, stop)
        for cell in cells:
            cell.seconds = (time.monotonic() - began) / len(cells)
            self.cells[cell.structure, k] = cell
        return cells

    def _run(self, cells: Sequence[Cell], memberships: Sequence[Array], stop: Stop) -> None:
        """Every cell from every membership, in shared passes."""
        whose, starts = [], []
        for number, membership in enumerate(memberships):
            sums = _Sums(self.block, membership)
            for cell in cells:
                whose.append(cell)
                starts.append(sums.first(cell.family, thorough=number == 0))
        self._advance(whose, starts, stop)

    def _advance(self, whose: Sequence[Cell], starts: Sequence[Mixture], stop: Stop) -> None:
        good = [i for i, start in enumerate(starts) if start.status == OK]
        runs = run_quick(self.rows, [whose[i].family for i in good], [starts[i] for i in good], stop)
        for i, run in zip(good, runs, strict=True):
            whose[i].runs.append(run)
        for i in set(range(len(starts))) - set(good):
            whose[i].runs.append(
                Run(whose[i].family, starts[i], reason="degenerate", status=starts[i].status)
            )

    def _run_splits(self, cells: Sequence[Cell], stop: Stop) -> None:
        """The best fit with one component less, each component in turn cut in two; the best cut is run out."""
        trials: list[tuple[Cell, Mixture]] = []
        for cell in cells:
            before = self.cells.get((cell.structure, cell.k - 1))
            if cell.structure.orientation == "I" or before is None or before.best.status != OK:
                continue
            for label in split_labels(self.block, before.family, before.best.params, self.seed):
                start = _Sums(self.block, _one_hot(label, cell.k)).first(cell.family, thorough=False)
                if start.status == OK:
                    trials.append((cell, start))
        short = replace(stop, max_passes=SPLIT_PASSES)
        runs = run_quick(
            self.rows, [cell.family for cell, _ in trials], [start for _, start in trials], short
        )
        chosen = []
        for cell in cells:
            mine = [
                run
                for (owner, _), run in zip(trials, runs, strict=True)
                if owner is cell and run.status == OK
            ]
            if mine:
                chosen.append((cell, best_run(mine).params))
        self._advance([cell for cell, _ in chosen], [params for _, params in chosen], stop)

    def _exchange(self, cells: Sequence[Cell], stop: Stop) -> None:
        """Every cell once more from the memberships of the best other cells of this K."""
        scored = sorted((self.bic(cell), i) for i, cell in enumerate(cells) if cell.best.status == OK)
        donors = [cells[i] for _, i in scored[:N_DONORS]]
        for donor in donors:
            membership = kernels.memberships(donor.family.scores(donor.best.params, self.block), False)[0]
            self._run([cell for cell in cells if cell is not donor], [membership], stop)

    def bic(self, cell: Cell) -> float:
        run = cell.best
        if run.status != OK:
            return math.inf
        parameters = cell.family.free_parameters(run.params)
        return bic(-run.cost + self.log_unit, parameters, self.moments.row_weight)

    def candidate(self, cell: Cell) -> Candidate:
        run = cell.best
        empty = Candidate("gaussian", cell.structure.name, cell.k, cell.status, n_starts=len(cell.runs))
        if run.status != OK:
            return empty
        loglik, n_rows = -run.cost + self.log_unit, self.moments.row_weight
        parameters = cell.family.free_parameters(run.params)
        membership = kernels.memberships(cell.family.scores(run.params, self.block), False)[0]
        near = SAME_OPTIMUM * abs(run.cost)
        return replace(
            empty,
            loglik=loglik,
            parameters=parameters,
            bic=bic(loglik, parameters, n_rows),
            icl=icl(loglik, parameters, n_rows, log_certainty(membership, self.block.weight)),
            aic=aic(loglik, parameters),
            adjusted_bic=adjusted_bic(loglik, parameters, n_rows),
            cost=run.cost,
            n_starts_at_best=sum(r.status == OK and r.cost <= run.cost + near for r in cell.runs),
            n_passes=len(run.trace),
            seconds=cell.seconds,
        )


class _Sums:
    """Sums of one membership, gathered once for all structures."""

    def __init__(self, block: Block, membership: Array) -> None:
        self.block, self.membership = block, membership
        weighted = membership * block.weights[:, None]
        numbers = block.numbers.astype(np.float64, copy=False)
        observed = ~np.isnan(numbers)
        total = weighted.T @ np.where(observed, numbers, 0.0)
        count = weighted.T @ observed
        self.mean = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
        self._gathered: dict[str, Any] = {}

    def first(self, family: Gaussian, *, thorough: bool) -> Mixture:
        """First parameters of a family; `thorough` searches the common axes of EVE and VVE from several sides."""
        start = family.start(self.mean)
        kind = "diagonal" if family.structure.orientation == "I" else "full"
        if kind not in self._gathered:
            self._gathered[kind] = family.gather(start, self.block, self.membership)
        sums = self._gathered[kind]
        if not thorough and family.structure.name in ("EVE", "VVE"):
            pooled = sums["scatter"].sum(axis=0)
            axes = np.linalg.eigh(pooled)[1][:, ::-1]
            start = replace(start, covariance=Covariance(start.covariance.log_variance, axes), status=OK)
        return family.update(start, sums)


def _one_hot(label: Array, k: int) -> Array:
    membership = np.zeros((len(label), k))
    membership[np.arange(len(label)), label] = 1.0
    return membership


def split_labels(block: Block, family: Gaussian, params: Mixture, seed: int) -> list[Array]:
    """Partitions with one component more: each component cut in two by 2-means on its own whitened rows."""
    label, _ = family.assign(params, block)
    k = len(params.mean)
    numbers = np.where(np.isnan(block.numbers), 0.0, block.numbers).astype(np.float64)
    made = []
    for component in range(k):
        rows = np.flatnonzero(label == component)
        if len(rows) < 4:
            continue
        away = numbers[rows] - params.mean[component]
        whiten = params.whiten[component]
        scaled = away @ whiten.T if whiten.ndim == 2 else away * whiten
        half = two_means(scaled, stream(seed, "split", component, k))
        split = label.copy()
        split[rows[half]] = k
        if half.any() and not half.all():
            made.append(split)
    return made


def two_means(points: Array, draws: np.random.Generator) -> Array:
    """Which rows belong to the second of two groups: the best of 2-means from the longest axis and two draws."""
    centred = points - points.mean(axis=0)
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    starts = [centred @ axis > 0]
    for _ in range(2):
        a, b = points[draws.choice(len(points), 2, replace=False)]
        starts.append(np.square(points - b).sum(axis=1) < np.square(points - a).sum(axis=1))
    best, least = starts[0], math.inf
    for half in starts:
        for _ in range(20):
            if half.all() or not half.any():
                break
            a, b = points[~half].mean(axis=0), points[half].mean(axis=0)
            new = np.square(points - b).sum(axis=1) < np.square(points - a).sum(axis=1)
            if np.array_equal(new, half):
                break
            half = new
        if half.any() and not half.all():
            parts = (points[half], points[~half])
            cost = sum(float(np.square(part - part.mean(axis=0)).sum()) for part in parts)
            if cost < least:
                best, least = half, cost
    return best


def search_mixtures(
    rows: MemoryRows,
    ks: Sequence[int],
    seed: int,
    *,
    structures: Sequence[Structure] = STRUCTURES,
    patience: int | None = None,
    budget: float | None = None,
    callback: Callable[[Progress], None] | None = None,
) -> Search:
    """All structures at every K, and the lowest BIC; a structure whose BIC rose `patience` times is left."""
    began = time.monotonic()
    end = math.inf if budget is None else began + budget
    few = rows
    if rows.n_rows > SEARCH_ROWS:
        few = MemoryRows.of_block(rows.sample(SEARCH_ROWS, seed), rows.threads)
    grid = Grid(few, structures, seed)
    rises = dict.fromkeys(grid.structures, 0)
    least = dict.fromkeys(grid.structures, math.inf)
    interrupted = False
    candidates: list[Candidate] = []
    every = ks if 1 in ks else (1, *ks)
    for done, k in enumerate(every, start=1):
        active = [s for s in grid.structures if patience is None or rises[s] < patience or k in (1, *ks[:1])]
        left = end - time.monotonic()
        if interrupted or (left <= 0 and candidates):
            status = "cancelled" if interrupted else "did_not_start"
            candidates += [Candidate("gaussian", s.name, k, status) for s in active]
            continue
        try:
            cells = grid.fill(k, active, replace(SEARCH_STOP, seconds=max(left, 0.0)))
        except KeyboardInterrupt:
            if not candidates:
                raise
            interrupted = True
            candidates += [Candidate("gaussian", s.name, k, "cancelled") for s in active]
            continue
        for cell in cells:
            value = grid.bic(cell)
            rises[cell.structure] = 0 if value < least[cell.structure] else rises[cell.structure] + 1
            least[cell.structure] = min(least[cell.structure], value)
            found = grid.candidate(cell)
            candidates.append(replace(found, status="reference") if k not in ks and found.eligible else found)
        best = min((c.bic for c in candidates if c.bic is not None), default=None)
        told(callback, Progress(done, len(every), "gaussian", k, best, time.monotonic() - began))
    return _decide(rows, grid, candidates, interrupted, end)


def _decide(
    rows: MemoryRows, grid: Grid, candidates: list[Candidate], interrupted: bool, end: float
) -> Search:
    """The winner, fitted to the end on all rows; after a search on a sample the best few decide there."""
    order = choose(candidates)
    whole = grid.rows.n_rows == rows.n_rows
    finalists = order[:1] if whole else order[:N_POLISHED]
    cells = [grid.cells[Structure(candidates[i].structure or ""), candidates[i].k] for i in finalists]
    moments = grid.moments if whole else table_moments(rows)
    families = [replace(cell.family, column_variances=moments.variance) for cell in cells]
    left = 0.0 if interrupted else max(0.0, end - time.monotonic())
    runs = run_starts(
        rows, families, [cell.best.params for cell in cells], stop=replace(FINAL_STOP, seconds=left)
    )
    values = [_full_bic(moments, rows, run) for run in runs]
    place = int(np.argmin(values))
    run, winner = runs[place], finalists[place]
    if not whole:
        for i, value in zip(finalists, values, strict=True):
            candidates[i] = replace(candidates[i], bic_all_rows=value if math.isfinite(value) else None)
    found = finish(rows, run, cells[place].runs)
    recipe = Recipe(f"gaussian {run.family.structure.name}", run.family, stop=FINAL_STOP)
    rest = [i for i in order if i != winner]
    return Search(
        tuple(candidates),
        winner,
        rest[0] if rest else None,
        found,
        recipe,
        None,
        grid.rows.n_rows,
        interrupted,
    )


def _full_bic(moments: TableMoments, rows: MemoryRows, run: Run) -> float:
    if run.status != OK:
        return math.inf
    loglik = -run.cost + float(moments.cells @ np.log(rows.encoding.unit))
    return bic(loglik, run.family.free_parameters(run.params), moments.row_weight)  # type: ignore[attr-defined]

"""The end of a search of mixtures: the best few cells run to their end on all rows, and the lowest BIC there wins.

A cell whose fit breaks down on all rows is no answer, whatever its BIC on the rows searched: it keeps the status that
says why, and the next few take its place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ilk.engines.base import Rows
from ilk.families.covariance import Structure
from ilk.families.gaussian import Gaussian
from ilk.fitting.deadline import Deadline
from ilk.fitting.fit import finish
from ilk.fitting.interrupt import exposed
from ilk.fitting.loop import INTERRUPTED, OK, Run, Stop
from ilk.fitting.restarts import Recipe
from ilk.fitting.small_tables import run_quick
from ilk.fitting.table_moments import TableMoments, table_moments
from ilk.measures.criteria import bic
from ilk.selection.candidates import Candidate, Search
from ilk.selection.grid_cell import GridCell
from ilk.selection.kept_fits import KeptFit, of_tables
from ilk.selection.search import choose, no_model, runner_up
from ilk.selection.search_rows import SEARCH_ROWS

if TYPE_CHECKING:
    from ilk.selection.mixtures import Grid

N_POLISHED = 3  # cells of a search that are fitted to all rows, where there are more
MOST_ROUNDS = 6  # of so many cells, while not one bears all rows
FINAL_STOP = Stop(tolerance=1e-8, max_passes=1000)


def decide(
    rows: Rows, grid: Grid, candidates: list[Candidate], interrupted: bool, deadline: Deadline
) -> Search:
    """The winner, fitted to the end on all rows; after a search on a coreset the best few decide there."""
    order = choose(candidates)
    whole = rows.n_rows <= SEARCH_ROWS
    on = grid.rows if whole else rows
    moments = grid.moments if whole else table_moments(rows)
    n_at_once = 1 if whole else N_POLISHED
    for first in range(0, min(len(order), MOST_ROUNDS * n_at_once), n_at_once):
        finalists = order[first : first + n_at_once]
        cells = [_cell(grid, candidates[i]) for i in finalists]
        runs, stopped = _run_out(on, cells, moments, deadline.within(0.0 if interrupted else math.inf))
        interrupted |= stopped
        values = [full_bic(moments, rows, run) for run in runs]
        for i, run, value in zip(finalists, runs, values, strict=True):
            candidates[i] = _seen_by_all(candidates[i], run, None if whole else value)
        if any(run.status == OK for run in runs):  # without a value where there was no time for a pass
            break
    else:
        raise no_model(candidates)
    place = min(range(len(runs)), key=lambda i: (runs[i].status != OK, values[i]))
    run, winner = runs[place], finalists[place]
    found = finish(rows, run, cells[place].runs)
    near = [i for i in order[:N_POLISHED] if i != winner and candidates[i].eligible]
    rivals = [_cell(grid, candidates[i]) for i in near]
    return Search(
        candidates=tuple(candidates),
        winner=winner,
        runner_up=runner_up(candidates, winner),
        fit=found,
        recipe=_recipe(cast(Gaussian, run.family)),
        sharpness=None,
        n_rows_searched=min(rows.n_rows, SEARCH_ROWS),
        interrupted=interrupted or found.reason == INTERRUPTED,
        rivals=tuple((cell.family, cell.best.params) for cell in rivals),
        models=grid.models,
        kept=_kept(grid),
    )


def _kept(grid: Grid) -> dict[int, KeptFit]:
    """The best mixture of every K, in the units of the rows searched."""
    best = {cell.k: cell for cell in reversed(grid.ranked) if math.isfinite(grid.bic(cell))}
    fits = [(k, grid.bic(cell), cell.best.params, _recipe(cell.family)) for k, cell in best.items()]
    return of_tables(fits, grid.rows.encoding)


def _recipe(family: Gaussian) -> Recipe:
    return Recipe(family.name, family, stop=FINAL_STOP)


def _cell(grid: Grid, candidate: Candidate) -> GridCell:
    return grid.cells[Structure(candidate.structure or ""), candidate.k]


def _run_out(
    rows: Rows, cells: Sequence[GridCell], moments: TableMoments, deadline: Deadline
) -> tuple[list[Run], bool]:
    """The best run of each cell on to its end, and whether that was interrupted before a pass was done."""
    families = [replace(cell.family, column_variances=moments.variance) for cell in cells]
    starts = [cell.best.params for cell in cells]
    try:
        with exposed():
            return run_quick(rows, families, starts, stop=replace(FINAL_STOP, deadline=deadline)), False
    except KeyboardInterrupt:
        stop = replace(FINAL_STOP, deadline=deadline.within(0.0))
        return run_quick(rows, families, starts, stop=stop), True


def _seen_by_all(candidate: Candidate, run: Run, value: float | None) -> Candidate:
    """A candidate after its run on all rows, with its BIC there or why it has none."""
    if run.status != OK:
        return replace(candidate, status=run.status)
    return candidate if value is None or value == math.inf else replace(candidate, bic_all_rows=value)


def full_bic(moments: TableMoments, rows: Rows, run: Run) -> float:
    """BIC of a mixture that was run on `rows`, in the user's units; infinite where it is no answer."""
    if run.status != OK:
        return math.inf
    loglik = -run.cost + float(moments.cells @ rows.encoding.log_unit)
    family = cast(Gaussian, run.family)
    return bic(loglik, family.free_parameters(run.params), moments.row_weight)

"""Mixtures in the units that suit their groups: standard deviations of the table, then those within the groups found.

Six of the fourteen structures (round ones, common axes, common shapes) mean something else in other units. In
standard deviations of the whole table a column that parts the groups well counts for little, since most of its spread
lies between them. So those of the six that come near the best model so far, with every column in the standard
deviation that it has within the groups of that model, are searched once more in these units; each cell keeps the
better of its two fits. The user's units play no part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from ilk import kernels
from ilk.engines.base import Rows
from ilk.engines.derived import reencoded
from ilk.engines.memory import MemoryRows
from ilk.errors import NoModelError
from ilk.families.covariance import STRUCTURES, Structure
from ilk.families.gaussian import Gaussian
from ilk.fitting.deadline import Deadline
from ilk.fitting.fit import finish
from ilk.fitting.interrupt import exposed
from ilk.fitting.loop import OK
from ilk.fitting.small_tables import run_quick
from ilk.fitting.table_moments import table_moments
from ilk.selection.candidates import Candidate, Model, Search
from ilk.selection.finalists import FINAL_STOP, full_bic
from ilk.selection.first_sums import FirstSums
from ilk.selection.kept_fits import best_of_each
from ilk.selection.mixtures import RACE_STOP, search_mixtures
from ilk.selection.progress import Progress
from ilk.selection.search import runner_up
from ilk.selection.search_rows import SEARCH_ROWS, searched
from ilk.table.block import Array, Encoding
from ilk.table.condition import short

UNIT_BOUND = tuple(Structure(name) for name in ("EII", "VII", "EVE", "VVE", "EEV", "VEV"))
NEAR = 0.15  # of what the best model gained on one cluster: a structure further behind, in the new units too, is left
CLOSE = 0.05  # the same for the K beside the best, each in the units of its own best model
PATIENCE = 3  # a structure is left once its BIC has risen at so many K in a row


def search_in_units(
    rows: Rows,
    ks: Sequence[int],
    seed: int,
    *,
    most: int | None = None,
    deadline: Deadline | None = None,
    callback: Callable[[Progress], None] | None = None,
) -> tuple[Search, Rows]:
    """The quick search over all structures, and the rows in the units of its winner."""
    deadline = deadline or Deadline.none()
    few = searched(rows, seed)
    quick = partial(search_mixtures, seed=seed, thorough=False, patience=PATIENCE, deadline=deadline)
    first = quick(rows, ks, most=most, callback=callback, few=few)
    if first.interrupted or first.chosen.k == 1 or rows.n_columns == 1 or deadline.over:
        return first, rows
    contest = UnitContest(rows, few, first, quick, deadline)
    try:
        with exposed():
            contest.enter((cast(Gaussian, first.recipe.family), first.fit.params), ks, most, NEAR)
            best = contest.won.chosen.k
            for k in (best - 1, best, best + 1):  # as they are searched where they are given
                if k not in (1, first.chosen.k) and k in first.models:
                    contest.enter(first.models[k], (k,), None, CLOSE)
    except KeyboardInterrupt:  # before a cell was fitted: what was found before is there
        return replace(contest.won, interrupted=True), contest.own
    return contest.won, contest.own


@dataclass
class UnitContest:
    """The best search so far and the rows in its units, while others in other units are held against it."""

    rows: Rows
    few: MemoryRows
    first: Search
    quick: Callable[..., Search]
    deadline: Deadline

    def __post_init__(self) -> None:
        self.won, self.own = self.first, self.rows

    def enter(self, model: Model, ks: Sequence[int], most: int | None, near: float) -> None:
        """A search of some K in the standard deviations within the components of a model, by the structures that
        come near the best so far there."""
        if self.won.interrupted or self.deadline.over:
            return
        encoding = rescaled(self.rows.encoding, deviations_within(self.few, model))
        few = self.few.reencoded(encoding)
        structures = self._came_near(few, memberships_in(self.few, model), near)
        if not structures:
            return
        try:
            found = self.quick(few, ks, most=most, structures=structures)
        except NoModelError:
            return
        self._hold(found, reencoded(self.rows, encoding))

    def _hold(self, found: Search, own: Rows) -> None:
        """Whichever has the lower BIC, on all rows where there are more than were searched."""
        if self.rows.n_rows > SEARCH_ROWS:  # those that decide have seen all rows
            seen = [c.bic for c in self.won.candidates if c.bic_all_rows is not None and c.bic is not None]
            if found.interrupted or (found.chosen.bic or math.inf) >= max(seen, default=math.inf):
                self.won = _joined(self.won, found)
                return
            found = _on_all_rows(found, own, self.deadline)
        if found.chosen.eligible and found.chosen.last_bic < self.won.chosen.last_bic:
            self.won, self.own = _joined(found, self.won), own
        else:
            self.won = _joined(self.won, found)

    def _came_near(self, few: MemoryRows, membership: Array, near: float) -> list[Structure]:
        """The structures that mean something else in the units of `few`, and that come near the best model there: by
        a short fit from these memberships."""
        moments, sums = table_moments(few), FirstSums(few.take(np.arange(few.n_rows)), membership)
        families = [Gaussian(structure, moments.variance) for structure in UNIT_BOUND]
        pairs = [(family, start) for family in families for start in sums.first(family) if start.status == OK]
        stop = replace(RACE_STOP, deadline=self.deadline)
        runs = run_quick(few, [family for family, _ in pairs], [start for _, start in pairs], stop)
        lowest = dict.fromkeys(UNIT_BOUND, math.inf)
        for (family, _), run in zip(pairs, runs, strict=True):
            lowest[family.structure] = min(lowest[family.structure], full_bic(moments, few, run))
        alone = min((c.bic for c in self.won.candidates if c.k == 1 and c.bic is not None), default=math.inf)
        best = math.inf if self.won.chosen.bic is None else self.won.chosen.bic
        reach = best + near * (alone - best) if math.isfinite(best) else math.inf
        return [structure for structure, value in lowest.items() if value <= reach]


def memberships_in(rows: Rows, model: Model) -> Array:
    """Of the rows in the components of a model."""
    family, params = model
    return kernels.memberships(family.scores(params, rows.take(np.arange(rows.n_rows))), False)[0]


def _on_all_rows(found: Search, rows: Rows, deadline: Deadline) -> Search:
    """A search on a sample with the fit of its winner to all rows; as it is where they do not bear that model."""
    moments = table_moments(rows)
    family = replace(cast(Gaussian, found.recipe.family), column_variances=moments.variance)
    stop = replace(FINAL_STOP, deadline=deadline)
    run = run_quick(rows, [family], [found.fit.params], stop)[0]
    value = full_bic(moments, rows, run)
    cells = list(found.candidates)
    cells[found.winner] = replace(
        found.chosen,
        status=found.chosen.status if run.status == OK else run.status,
        bic_all_rows=value if math.isfinite(value) else None,
    )
    if run.status != OK:
        return replace(found, candidates=tuple(cells))
    fit = replace(finish(rows, run, [run]), starts=found.fit.starts)
    return replace(
        found,
        candidates=tuple(cells),
        fit=fit,
        recipe=replace(found.recipe, family=family),
        n_rows_searched=min(rows.n_rows, SEARCH_ROWS),
    )


def deviations_within(rows: Rows, model: Model) -> Array:
    """Standard deviation of each encoded column about the mean of the row's component, 1 where there is none."""
    block = rows.take(np.arange(rows.n_rows))
    counted = block.weights > 0  # of others cells may be of any size
    label = model[0].assign(model[1], block)[0][counted]
    numbers, weight = block.numbers[counted].astype(np.float64), block.weights[counted]
    size = np.bincount(label, weights=weight)
    within = np.zeros(rows.n_columns)
    for j, column in enumerate(numbers.T):
        sums = np.bincount(label, weights=weight * column)
        mean = np.divide(sums, size, out=np.zeros_like(size), where=size > 0)
        within[j] = weight @ (column - mean[label]) ** 2
    deviation = short(np.sqrt(within / weight.sum()))
    return np.where(deviation > 0, deviation, 1.0)


def rescaled(encoding: Encoding, unit: Array) -> Encoding:
    """The same columns, each divided by its `unit`, unless that is too small to divide by."""
    factor = np.ones(len(unit)) if encoding.factor is None else encoding.factor
    with np.errstate(over="ignore"):
        divided = factor / unit
    return replace(encoding, factor=np.where(np.isfinite(divided), divided, factor))


def _lower(one: Candidate, other: Candidate) -> bool:
    return (math.inf if one.bic is None else one.bic) < (math.inf if other.bic is None else other.bic)


def _joined(won: Search, lost: Search) -> Search:
    """The search that won, its candidates those of both: of each cell the better one."""
    cells = {(c.structure, c.k): c for c in lost.candidates}
    for candidate in won.candidates:
        key = candidate.structure, candidate.k
        if candidate is won.chosen or key not in cells or not _lower(cells[key], candidate):
            cells[key] = candidate
    order = {structure.name: i for i, structure in enumerate(STRUCTURES)}
    candidates = sorted(cells.values(), key=lambda c: (c.k, order.get(c.structure or "", -1)))
    winner = next(i for i, candidate in enumerate(candidates) if candidate is won.chosen)
    return replace(
        won,
        candidates=tuple(candidates),
        winner=winner,
        runner_up=runner_up(candidates, winner),
        interrupted=won.interrupted or lost.interrupted,
        kept=best_of_each((won.kept, lost.kept)),
    )

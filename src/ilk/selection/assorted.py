"""The search of the assorted model: clusters grown as long as the cost falls, the best of every K on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ilk.assorted.columns import assort
from ilk.assorted.fit import ANCHORINGS, SEARCH_ROWS, AssortedFit, SearchOptions, fit_assorted
from ilk.assorted.fit import AssortedCandidate as Cell
from ilk.assorted.growth import FINAL_FIT
from ilk.assorted.problem import CELLS, ColumnTransform, ModelOptions
from ilk.assorted.transform import TransformPlan
from ilk.engines.base import Rows
from ilk.fitting.deadline import Deadline
from ilk.fitting.fit import finish
from ilk.fitting.loop import INTERRUPTED, Event, run_starts
from ilk.fitting.restarts import Recipe
from ilk.selection.candidates import OK, REFERENCE, Candidate, Search
from ilk.selection.kept_fits import KeptFit
from ilk.selection.progress import Progress, told
from ilk.selection.search import STATUS_OF_REASON, end_of_search, ranking
from ilk.table.schema import Schema

ASSORTED = "assorted"


@dataclass(frozen=True, eq=False)
class AssortedSearch:
    """What was found; the rows as the model sees them, how other rows are treated alike, and that in words."""

    search: Search
    rows: Rows
    treat: ColumnTransform
    words: dict[str, str]


def search_assorted(
    rows: Rows,
    schema: Schema,
    ks: Sequence[int],
    seed: int,
    *,
    plan: TransformPlan | None = None,
    numbers: str = CELLS,
    search_rows: int = SEARCH_ROWS,
    anchorings: int = ANCHORINGS,
    criterion: str = "bic",
    most: int | None = None,
    deadline: Deadline | None = None,
    callback: Callable[[Progress], None] | None = None,
) -> AssortedSearch:
    """The assorted model with one K, or with the K of least cost between the least and the most of `ks`.

    Numbers are independent within a cluster, so that every column has its switches; with `numbers="auto"` they may be
    one block. The criterion is twice J, a BIC that also counts priors and switches; "plain" leaves out the priors.
    `plan` is the treatment of the table, where it is known already.
    """
    deadline = (deadline or Deadline.none()).within()
    plan = plan_of(rows, schema) if plan is None else plan
    stop = replace(FINAL_FIT, deadline=deadline)
    k = ks[0] if len(ks) == 1 else None
    quest = SearchOptions(k=k, criterion=criterion, least=ks[0], most=most or ks[-1], stop=stop)
    quest = replace(quest, search_rows=search_rows, anchorings=anchorings)
    done = 0

    def tell(event: Event) -> None:
        nonlocal done
        done += 1
        best, seconds = 2 * event.best_cost, deadline.spent
        told(callback, Progress(done=done, total=0, method=ASSORTED, k=0, best_bic=best, seconds=seconds))

    found = _without_empty(
        fit_assorted(rows, plan, ModelOptions(numbers=numbers), quest, seed, callback=tell)
    )
    treated = found.scene.rows
    words = plan.in_words(found.scene.scales, together=found.scene.options.numbers != CELLS)
    told_search = _as_search(found, quest, min(rows.n_rows, search_rows), deadline.spent)
    told_search = replace(told_search, ended_by=end_of_search(told_search.chosen.k, ks, most, deadline))
    return AssortedSearch(told_search, treated, found.scene.treat, words)


def plan_of(rows: Rows, schema: Schema) -> TransformPlan:
    """What is made of the columns of a table."""
    levels = [(c.name, c.levels or ()) for c in schema.coded]
    return assort(rows, [c.name for c in schema.numeric], levels)


def _without_empty(found: AssortedFit) -> AssortedFit:
    """Without the clusters that are the likeliest of no row: they would be groups of nobody."""
    fit, family, rows = found.fit, found.family, found.scene.rows
    while not (fit.size > 0).all():
        left = family.select(fit.params, np.flatnonzero(fit.size > 0))
        run = run_starts(rows, [family], [left], stop=FINAL_FIT)[0]
        fit = replace(finish(rows, run, [run]), starts=fit.starts)
    if fit is found.fit:
        return found
    smaller = replace(found, fit=fit, cost=fit.cost + family.penalty(fit.params))
    own = Cell(len(fit.size), smaller.cost, family.prior_cost(fit.params), smaller.entropy)
    cells = [cell for cell in found.candidates if cell.k not in (own.k, len(found.fit.size))]
    return replace(smaller, candidates=tuple(sorted([*cells, own], key=lambda cell: cell.k)))


def _as_search(found: AssortedFit, quest: SearchOptions, n_searched: int, seconds: float) -> Search:
    """The K table as candidates; the seconds are those of the whole search, which fits no K on its own."""
    k, fit = len(found.fit.size), found.fit
    family = found.family
    whole = Cell(k, found.cost, family.prior_cost(fit.params), found.entropy)
    candidates = tuple(
        Candidate(
            ASSORTED,
            None,
            cell.k,
            _status(cell.k, k, fit.reason, quest),
            bic=2 * cell.criterion(quest.criterion),
            icl=2 * (cell.criterion(quest.criterion) + cell.entropy),
            bic_all_rows=2 * whole.criterion(quest.criterion)
            if cell.k == k and n_searched < fit.n_rows
            else None,
            loglik=-fit.cost if cell.k == k else None,
            parameters=family.free_parameters(fit.params) if cell.k == k else None,
            cost=cell.cost,
            n_starts=max(1, len(fit.starts)),
            n_starts_at_best=1,
            n_passes=fit.n_passes if cell.k == k else 0,
            seconds=seconds if cell.k == k else 0.0,
        )
        for cell in found.candidates
    )
    winner = min(range(len(candidates)), key=lambda i: abs(candidates[i].k - k))
    others = [i for i in ranking(candidates) if i != winner]
    return Search(
        candidates=candidates,
        winner=winner,
        runner_up=others[0] if others else None,
        fit=fit,
        recipe=Recipe(ASSORTED, family),
        sharpness=None,
        n_rows_searched=n_searched,
        interrupted=fit.reason == INTERRUPTED,
        kept=_kept(found, candidates),
    )


def _kept(found: AssortedFit, candidates: Sequence[Candidate]) -> dict[int, KeptFit]:
    """The best state of every K, with the treatment of the rows that it was found with."""
    bics, encoding = {c.k: c.bic for c in candidates}, found.scene.table.encoding
    return {
        k: KeptFit(None, params, bics[k] or 0.0, encoding, treat)
        for k, (treat, params) in found.kept.items()
        if k in bics
    }


def _status(k: int, chosen: int, reason: str, quest: SearchOptions) -> str:
    """How the fit with K clusters stands: those on the way to the one that was asked for are for reference."""
    if k == chosen:
        return STATUS_OF_REASON.get(reason, OK)
    return OK if quest.least <= k and (quest.most is None or k <= quest.most) else REFERENCE

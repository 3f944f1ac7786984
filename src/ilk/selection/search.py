"""The search over methods and K: every cell with its status, the winner, the runner-up and by how much.

The rule. Lowest BIC wins (`measures.criteria`: for K-means that of round Gaussians of one variance), the
smaller K among equals; K = 1 is a legal answer and means "no clear groups". A cell in which every row lies on
its centre has no finite likelihood. In a table of several columns so few distinct rows are the groups, and
the smallest such K wins outright; in a single column they are only its values, and the cell cannot win
unless no other K was asked for. Cells that found fewer distinct rows than groups, or never ran, cannot win
either. The silhouette stands beside the BIC and does not choose: it cannot say K = 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from ilk.engines.base import Rows
from ilk.errors import NoModelError
from ilk.families.base import Family
from ilk.families.centroid import Means
from ilk.fitting.coreset import coreset
from ilk.fitting.deadline import Deadline
from ilk.fitting.fit import Fit, fit
from ilk.fitting.interrupt import exposed, keep
from ilk.fitting.loop import FEWER_DISTINCT_ROWS, INTERRUPTED, PASS_LIMIT, TIME_LIMIT
from ilk.fitting.recall import recall
from ilk.fitting.restarts import Recipe, fit_exact, fit_recipe, solves_line
from ilk.measures.criteria import bic, spherical_loglik, spherical_parameters
from ilk.selection.candidates import EXACT, OK, REFERENCE, SINGULAR, Candidate, Search
from ilk.selection.kept_fits import of_tables
from ilk.selection.more_groups import MoreGroups
from ilk.selection.progress import Progress, told
from ilk.selection.sharpness import Sharpness, sharpness_of

SEARCH_ROWS = 20_000  # a larger table is searched on a coreset of so many rows; the winner then sees all rows
SAME_OPTIMUM = 1e-6  # starts whose costs differ relatively by less ended in the same place


STATUS_OF_REASON = {
    PASS_LIMIT: "ok_iteration_limit",
    TIME_LIMIT: "ok_time_limit",
    INTERRUPTED: "ok_interrupted",
}


def search(
    rows: Rows,
    recipes: Sequence[Recipe],
    ks: Sequence[int],
    seed: int,
    *,
    most: int | None = None,
    deadline: Deadline | None = None,
    callback: Callable[[Progress], None] | None = None,
) -> Search:
    """Fit every recipe at every K, score the cells and choose; on a sample where the table is large.

    With `most` above the last K the search goes on from there for as long as more groups pay.
    """
    deadline = (deadline or Deadline.none()).within()
    few = coreset(rows, SEARCH_ROWS, seed)
    cells = [(recipe, k) for recipe in recipes for k in _with_single(ks)]
    table = _CandidateTable(few, seed, frozenset(ks), deadline)
    for done, (recipe, k) in enumerate(cells, start=1):
        table.add(recipe, k)
        told(
            callback,
            Progress(
                done=done,
                total=len(cells),
                method=recipe.name,
                k=k,
                best_bic=table.best_bic,
                seconds=deadline.spent,
            ),
        )
    for recipe in recipes:
        table.grow(recipe, ks[-1], most or ks[-1])
    found = table.choose()
    ended = end_of_search(found.chosen.k, ks, most, deadline)
    if ended is None and table.tiled and found.chosen.k >= ks[-1]:
        ended = "no dips"
    found = replace(found, ended_by=ended)
    return found if few.n_rows == rows.n_rows else _on_all_rows(found, rows, deadline)


def _with_single(ks: Sequence[int]) -> list[int]:
    """One group is always fitted: it is what every other answer is held against."""
    return [*ks] if 1 in ks else [1, *ks]


class _CandidateTable:
    """The table of candidates while it is filled."""

    def __init__(self, rows: Rows, seed: int, asked: frozenset[int], deadline: Deadline) -> None:
        self.rows, self.seed, self.asked, self.deadline = rows, seed, asked, deadline
        self.candidates: list[Candidate] = []
        self.fits: list[Fit | None] = []
        self.recipes: list[Recipe] = []
        self.sharpness: list[Sharpness | None] = []
        self.interrupted = False
        self.tiled = False  # whether more groups were not tried, since those found lie side by side

    @property
    def best_bic(self) -> float | None:
        return min((c.bic for c in self.candidates if c.eligible and c.bic is not None), default=None)

    def add(self, recipe: Recipe, k: int) -> None:
        started = any(candidate.eligible for candidate in self.candidates)
        if self.interrupted or (self.deadline.over and started):
            status = "cancelled" if self.interrupted else "did_not_start"
            self._keep(Candidate(recipe.name, None, k, status), None, recipe, None)
            return
        clock = Deadline.none()
        try:
            with exposed():
                found = fit_cell(self.rows, recipe, k, self.seed, deadline=self.deadline)
                self.interrupted |= found.reason == INTERRUPTED
                sharp = self._sharpness(recipe, found)
            keep()
        except KeyboardInterrupt:
            if not started:
                raise
            self.interrupted = True
            self._keep(Candidate(recipe.name, None, k, "cancelled"), None, recipe, None)
            return
        candidate = scored(self.rows, recipe, k, found, sharp)
        if k not in self.asked and candidate.eligible:
            candidate = replace(candidate, status=REFERENCE)
        self._keep(replace(candidate, seconds=clock.spent), found, recipe, sharp)

    def grow(self, recipe: Recipe, last: int, most: int) -> None:
        """On from the last K, as long as that pays."""
        if self.interrupted or self.deadline.over:
            return
        recipe = replace(recipe, stop=replace(recipe.stop, deadline=self.deadline))
        try:
            more = MoreGroups(self, recipe, last, most)
            with exposed():
                more.run()
            self.tiled |= more.tiled
        except KeyboardInterrupt:
            self.interrupted = True

    def keep(self, recipe: Recipe, k: int, found: Fit) -> Candidate:
        """A fit of K groups, if it is the best of them."""
        sharp = self._sharpness(recipe, found)
        candidate = scored(self.rows, recipe, k, found, sharp)
        known = [i for i, c in enumerate(self.candidates) if (c.method, c.k) == (recipe.name, k)]
        if not known:
            self._keep(candidate, found, recipe, sharp)
        elif k in self.asked or k > max(self.asked):
            (at,) = known
            if (candidate.bic or math.inf) < (self.candidates[at].bic or math.inf):
                self.candidates[at], self.fits[at], self.sharpness[at] = candidate, found, sharp
        return candidate

    def _sharpness(self, recipe: Recipe, found: Fit) -> Sharpness | None:
        costs, k = partial(recipe.family.cost, found.params), len(found.size)
        given = recipe.family, found.params, found.labels, self.seed
        return recall(
            "silhouettes",
            self.rows,
            given,
            lambda: sharpness_of(self.rows, found.labels, k, costs, self.seed),
        )

    def best_of(self, recipe: Recipe) -> tuple[Candidate, Fit] | None:
        """The best candidate of a recipe and its fit."""
        for i in ranking(self.candidates):
            found = self.fits[i]
            if self.candidates[i].method == recipe.name and found is not None:
                return self.candidates[i], found
        return None

    def _keep(self, candidate: Candidate, found: Fit | None, recipe: Recipe, sharp: Sharpness | None) -> None:
        self.candidates.append(candidate)
        self.fits.append(found)
        self.recipes.append(recipe)
        self.sharpness.append(sharp)

    @property
    def _fits(self) -> Iterator[tuple[int, float | None, Any, Recipe]]:
        """K, BIC, parameters and recipe of every cell that was fitted."""
        for candidate, found, recipe in zip(self.candidates, self.fits, self.recipes, strict=True):
            if found is not None and len(found.size) == candidate.k:
                yield candidate.k, candidate.bic, found.params, recipe

    def choose(self) -> Search:
        order = ranking(self.candidates)
        if not order:  # one K was asked for and the table cannot fill it: what was found is the answer
            last = (FEWER_DISTINCT_ROWS, SINGULAR)
            order = [i for i, c in enumerate(self.candidates) if c.status in last and c.k in self.asked]
        if not order:
            raise no_model(self.candidates)
        winner = order[0]
        found = self.fits[winner]
        assert found is not None
        return Search(
            candidates=tuple(self.candidates),
            winner=winner,
            runner_up=runner_up(self.candidates, winner),
            fit=found,
            recipe=self.recipes[winner],
            sharpness=self.sharpness[winner],
            n_rows_searched=self.rows.n_rows,
            interrupted=self.interrupted,
            kept=of_tables(self._fits, self.rows.encoding),
        )


def choose(candidates: Sequence[Candidate]) -> list[int]:
    """As `ranking`, but no valid candidate at all is an error."""
    order = ranking(candidates)
    if not order:
        raise no_model(candidates)
    return order


FAILURES = {
    SINGULAR: "a component shrank onto rows that are alike in a column or lie on a plane",
    "component_vanished": "a component lost all its rows",
    "did_not_start": "the time was over before a fit began",
    "cancelled": "the run was interrupted before a fit ended",
    FEWER_DISTINCT_ROWS: "the table has fewer distinct rows than groups",
}


def no_model(candidates: Sequence[Candidate]) -> NoModelError:
    failed = [c.status for c in candidates if c.status != REFERENCE]
    counts = {status: failed.count(status) for status in sorted(set(failed), key=failed.count, reverse=True)}
    told = [
        f"{FAILURES.get(status, status.replace('_', ' '))} ({n} of {len(failed)} fits)"
        for status, n in counts.items()
    ]
    return NoModelError(
        "no-valid-model",
        "no model could be fitted to this table",
        where="; ".join(told),
        do="Try fewer groups or another method",
    )


def ranking(candidates: Sequence[Candidate]) -> list[int]:
    """Numbers of the candidates that can win, best first.

    >>> cells = [Candidate("m", None, 1, OK, bic=9.0), Candidate("m", None, 2, OK, bic=5.0)]
    >>> ranking(cells)
    [1, 0]
    """
    able = [i for i, c in enumerate(candidates) if c.eligible and (c.bic is not None or c.status == EXACT)]
    exact_first = {
        i: (candidates[i].status != EXACT, candidates[i].bic or 0.0, candidates[i].k) for i in able
    }
    for i in able:
        if candidates[i].status == EXACT:
            exact_first[i] = (False, 0.0, candidates[i].k)
    return sorted(able, key=exact_first.__getitem__)


def end_of_search(chosen: int, ks: Sequence[int], most: int | None, deadline: Deadline) -> str | None:
    """What ended a search at its largest K: the limit that was given, or the time; None where it ended by itself."""
    if len(ks) > 1 and chosen == max(ks[-1], most or 0) > 2:
        return "limit"
    return "time" if deadline.over and len(ks) > 1 and chosen >= ks[-1] else None


def runner_up(candidates: Sequence[Candidate], winner: int) -> int | None:
    """The best candidate beside the winner, by the same rows: among those fitted to all of them, where the winner was
    and another is; else among those that the rows searched put behind it."""
    others = [i for i in ranking(candidates) if i != winner]
    chosen = candidates[winner]
    if chosen.bic_all_rows is not None:
        seen = [i for i in others if candidates[i].bic_all_rows is not None]
        if seen:
            return min(seen, key=lambda i: candidates[i].last_bic)
        least = math.inf if chosen.bic is None else chosen.bic
        others = [i for i in others if (candidates[i].bic or -math.inf) >= least]
    return others[0] if others else None


def fit_cell(rows: Rows, recipe: Recipe, k: int, seed: int, *, deadline: Deadline) -> Fit:
    """One candidate: the proven optimum where one column allows it, else the best of the recipe's starts."""
    if recipe.name == "k-means" and solves_line(rows, recipe):
        return fit_exact(rows, recipe, k, seed)
    if k == 1:
        recipe = replace(recipe, n_starts=1)  # one group has one optimum
    return fit_recipe(rows, replace(recipe, stop=replace(recipe.stop, deadline=deadline)), k, seed)


def scored(rows: Rows, recipe: Recipe, k: int, found: Fit, sharp: Sharpness | None) -> Candidate:
    """The cell's figures; the likelihood is in the user's units, or in standard deviations where scaled."""
    n_groups = int(np.count_nonzero(found.size))
    loglik = log_likelihood(rows, recipe, found)
    parameters = spherical_parameters(n_groups, rows.n_columns)
    value = bic(loglik, parameters, float(found.size.sum()))
    status = STATUS_OF_REASON.get(found.reason, OK)
    if found.status == FEWER_DISTINCT_ROWS:
        status = FEWER_DISTINCT_ROWS
    elif loglik == math.inf:
        status = EXACT if rows.n_columns > 1 else SINGULAR
    best = min(start.cost for start in found.starts)
    at_best = sum(start.cost <= best + SAME_OPTIMUM * abs(best) for start in found.starts)
    return Candidate(
        recipe.name,
        None,
        k,
        status,
        loglik=_finite(loglik),
        parameters=parameters,
        bic=_finite(value),
        cost=found.cost,
        silhouette=None if sharp is None else sharp.mean,
        silhouette_error=None if sharp is None else sharp.error,
        n_starts=len(found.starts),
        n_starts_at_best=at_best,
        n_passes=found.n_passes,
    )


def log_likelihood(rows: Rows, recipe: Recipe, found: Fit) -> float:
    """Of the hard-assigned rows, in the user's units: `log p(x) = log p(encoded x) + columns log power`."""
    kept = found.size * (1.0 - recipe.trim)
    value = LIKELIHOODS[cast(Means, recipe.family).density](found.cost, kept, rows.n_columns)
    if rows.encoding.factor is None:
        value += float(kept.sum()) * rows.n_columns * math.log(rows.encoding.power)
    return value


def laplace_loglik(cost: float, sizes: Any, n_columns: int) -> float:
    """K-medians as Laplace components of one scale b: `sum n_k log(n_k / n) - n d (log(2 b) + 1)`.

    >>> round(laplace_loglik(2.0, [2.0], 1), 4)
    -3.3863
    """
    counts = np.asarray(sizes, dtype=np.float64)
    counts = counts[counts > 0]
    cells = float(counts.sum()) * n_columns
    if cost == 0:
        return math.inf
    scale = cost / cells  # where it is below all doubles its logarithm is not
    log_scale = math.log(2 * scale) if scale > 0 else math.log(2) + math.log(cost) - math.log(cells)
    return float((counts * np.log(counts / counts.sum())).sum()) - cells * (log_scale + 1)


LIKELIHOODS: dict[str, Callable[[float, Any, int], float]] = {
    "normal": spherical_loglik,
    "laplace": laplace_loglik,
}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _on_all_rows(found: Search, rows: Rows, deadline: Deadline) -> Search:
    """The winner of a search on a sample, run to its end on the whole table."""
    family: Family[Any] = found.recipe.family
    if found.interrupted:
        stop = replace(found.recipe.stop, max_passes=0)
    else:
        stop = replace(found.recipe.stop, deadline=deadline)
    whole = fit(rows, family, [found.fit.params], trim=found.recipe.trim, stop=stop)
    return replace(
        found,
        fit=replace(whole, starts=found.fit.starts),
        interrupted=found.interrupted or whole.reason == INTERRUPTED,
    )

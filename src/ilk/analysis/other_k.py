"""The answer at another number of groups: the fit that the search had there, grouped, judged and told as any.

A search fits every K on its way. What it had is kept as models, so that another K can be looked at without a fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

import ilk
from ilk.analysis.assemble import answer_of
from ilk.analysis.findings import Findings
from ilk.analysis.folder import FITS
from ilk.analysis.job import Job
from ilk.analysis.prepare import Input, Seen
from ilk.analysis.result import Result
from ilk.analysis.run import untreat_of
from ilk.analysis.shown import Shown, rows_at_a_glance, shown_rows
from ilk.assorted.problem import CELLS, ColumnTransform
from ilk.engines.derived import derive, reencoded
from ilk.errors import Caution, NoModelError, UsageError, shown
from ilk.fitting.deadline import Deadline
from ilk.fitting.fit import Fit, finish
from ilk.fitting.loop import NOTHING_CHANGED, Run
from ilk.fitting.restarts import Recipe
from ilk.model.file import kept_names, read_kept
from ilk.model.model import Model
from ilk.model.placed import N_QUANTILES
from ilk.model.registry import fitted_as
from ilk.report.figures import letter
from ilk.selection.assorted import ASSORTED
from ilk.selection.candidates import Candidate, Search
from ilk.selection.grouping import GroupingOptions, group
from ilk.selection.kept_fits import KeptFit
from ilk.selection.sharpness import sharpness_of
from ilk.table.block import Array, Encoding
from ilk.table.weights import in_unit
from ilk.threads import one_blas_thread

NOT_YET = Caution(
    "not-tested-yet", "stability is not tested yet: these groups are a first look at a fit of the search"
)


@dataclass(frozen=True, eq=False)
class Searched:
    """A table and what was tried on it, of which the answer at any K is made."""

    job: Job
    given: Input
    candidates: tuple[Candidate, ...]
    n_rows: int  # of the search

    @classmethod
    def of(cls, findings: Findings) -> Searched:
        return cls(findings.job, findings.given, findings.search.candidates, findings.search.n_rows_searched)


def kept_models(findings: Findings | None, result: Result) -> dict[int, Model]:
    """By K the fits of a search as models, each group one component, larger ones first; `result` is its answer.
    A fit that leaves a component without rows of its own is none of so many groups, and is left out; so are all where
    nothing was searched, or no time is left for the pass that each takes."""
    if findings is None or result.interrupted or findings.clock.over:
        return {}
    made = {k: _kept_model(findings, result.model, kept) for k, kept in findings.search.kept.items()}
    return {k: model for k, model in made.items() if model is not None}


def _kept_model(findings: Findings, own: Model, kept: KeptFit) -> Model | None:
    given, treat = findings.given, kept.treat
    if treat is not None and own.treat is not None:
        treat = replace(treat, factors=own.treat.factors)
    recipe = kept.recipe
    if recipe is None:
        assert treat is not None
        recipe = Recipe(ASSORTED, treat.family)
    fit = _finished(_seen(given, kept.encoding, treat), recipe, kept.params)
    k = len(fit.size)
    if not (fit.size > 0).all():
        return None
    letters = tuple(letter(number) for number in range(k))
    return Model(
        method=recipe.name,
        family=recipe.family.name,
        options={"scale": findings.job.scale, "trim": recipe.trim, "bic": _finite(kept.bic)},
        schema=given.used,
        encoding=kept.encoding,
        params=fit.params,
        group_of=tuple(range(k)),
        letters=letters,
        names=letters,
        sizes=in_unit(np.asarray(fit.size, dtype=np.float64), given.weight_unit),
        quantiles=np.zeros((k, N_QUANTILES)),
        training={"rows": fit.n_rows, "source": given.table.source, "ilk": ilk.__version__},
        treat=treat,
        transforms=given.transforms,
    )


def _finished(seen: Seen, recipe: Recipe, params: object) -> Fit:
    """Parameters as a fit to all rows: labels, sizes and cost, without a pass more."""
    return finish(seen.rows, Run(recipe.family, params, reason=NOTHING_CHANGED), [], trim=recipe.trim)


def _seen(given: Input, encoding: Encoding, treat: ColumnTransform | None) -> Seen:
    """The rows as a model with these units or this treatment sees them."""
    if treat is None:
        return Seen(reencoded(given.rows, encoding), encoding)
    words = treat.plan.in_words(treat.scales, together=treat.numbers != CELLS)
    return Seen(derive(given.rows, treat), given.encoding, treat, words)


def at_k(searched: Searched, model: Model, earlier: Model) -> Result:
    """The answer of a kept model; groups that are those of `earlier` have their letters and names."""
    return _answer(searched, model, earlier, _Closeness(Deadline.none(), shown_rows, (_told(model.k),)))


def glance_at_k(searched: Searched, model: Model, earlier: Model) -> Result:
    """The same at once: stability is not tested, and groups of a large table are described from a sample."""
    return _answer(
        searched, model, earlier, _Closeness(Deadline.after(0), rows_at_a_glance, (_told(model.k), NOT_YET))
    )


@dataclass(frozen=True)
class _Closeness:
    """How closely groups are looked at."""

    clock: Deadline
    look: Callable[[Input, Seen, Array, int], Shown]
    notes: tuple[Caution, ...]


@one_blas_thread()
def _answer(searched: Searched, model: Model, earlier: Model, how: _Closeness) -> Result:
    job, given = replace(searched.job, k=model.k, merge="none", callback=None, budget=None), searched.given
    seen = _seen(given, model.encoding, model.treat)
    recipe = Recipe(model.method, model.grouped.family, trim=float(model.options.get("trim") or 0.0))
    search = _search(searched, seen, recipe, model)
    wish = GroupingOptions(
        merge="none",
        least=model.k,
        asked=model.k,
        min_size=job.min_size,
        max_size=job.max_size,
        deadline=how.clock,
    )
    findings = Findings(
        job=job,
        given=given,
        seen=seen,
        search=search,
        grouping=group(seen.rows, search, wish, job.seed, untreat_of(seen)),
        notes=how.notes,
        earlier=earlier,
        clock=how.clock,
        search_seconds=0.0,
    )
    return answer_of(findings, how.look(given, seen, findings.grouping.labels, job.seed))


def _search(searched: Searched, seen: Seen, recipe: Recipe, model: Model) -> Search:
    """The search, its choice the model of this K."""
    fit = _finished(seen, recipe, model.params)
    sharp = None
    if fitted_as(model.family) == "recipe":
        costs = partial(recipe.family.cost, fit.params)
        sharp = sharpness_of(seen.rows, fit.labels, model.k, costs, searched.job.seed)
    winner, cells = _number(searched.candidates, model), list(searched.candidates)
    known = model.options.get("bic")
    cells[winner] = replace(cells[winner], bic=cells[winner].bic if known is None else float(known))
    return Search(
        candidates=tuple(cells),
        winner=winner,
        runner_up=None,
        fit=fit,
        recipe=recipe,
        sharpness=sharp,
        n_rows_searched=searched.n_rows,
        interrupted=False,
    )


def _number(candidates: Sequence[Candidate], model: Model) -> int:
    """Which candidate a model is."""
    same = [
        i
        for i, c in enumerate(candidates)
        if c.k == len(model.group_of) and " ".join(filter(None, (c.method, c.structure))) == model.method
    ]
    if not same:
        raise NoModelError("no-valid-model", f"no fit with {model.k} groups was tried", do="Choose another K")
    return same[0]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _told(k: int) -> Caution:
    groups = f"{k} group{'s' * (k != 1)}"
    return Caution(
        "fit-of-the-search", f"{groups} as the search had them on its way; a fit with --k {k} searches longer"
    )


def kept_ks(run: Path) -> tuple[int, ...]:
    """The numbers of groups whose fits a run keeps."""
    if not (run / FITS).is_file() or (run / FITS).is_symlink():
        return ()
    return tuple(sorted(int(name) for name in kept_names(run / FITS) if name.isdecimal()))


def read_fit(run: Path, k: int) -> Model:
    """The model that the search of a run had with so many groups."""
    model = read_kept(run / FITS, str(k)) if k in kept_ks(run) else None
    if model is None:
        raise UsageError(
            "no-fit",
            f"{shown(run, 80)} keeps no fit with {k} groups",
            do=f"Fit the table with it: ilk fit TABLE --k {k}",
        )
    if len(model.group_of) != k:
        raise UsageError("no-fit", f"the fit with {k} groups is one with {model.k}", do="Fit the table again")
    return model

"""The main job: read, type the columns, choose a model, fit it, say what the groups are."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from ilk.analysis.asked import check_weights_are, known, ks_to_try, seconds_of
from ilk.analysis.assemble import answer_of
from ilk.analysis.column_weights import times
from ilk.analysis.factor_view import SeenTable, clearer
from ilk.analysis.findings import Findings
from ilk.analysis.given import labelled, named
from ilk.analysis.job import Job
from ilk.analysis.matching import earlier
from ilk.analysis.on_cluster import ClusterFrame
from ilk.analysis.prepare import Input, Seen, prepare, with_weights
from ilk.analysis.result import Result
from ilk.analysis.shown import rows_at_a_glance, shown_rows
from ilk.analysis.steadier import steadier
from ilk.assorted.problem import CELLS, InverseTransform
from ilk.assorted.width import is_crowded
from ilk.engines.base import Rows
from ilk.errors import Caution, NoModelError, Option, ResourceError, UsageError, shown
from ilk.fitting.deadline import Deadline
from ilk.fitting.interrupt import exposed, heard, listening
from ilk.fitting.restarts import Recipe
from ilk.fitting.weights import row_weights
from ilk.methods import K_MEANS, METHODS, names, parted
from ilk.model.model import Model
from ilk.random import seed_of
from ilk.selection.assorted import AssortedSearch, plan_of, search_assorted
from ilk.selection.candidates import Search
from ilk.selection.grouping import MERGES, Grouping, GroupingOptions, group, groups_by_rule
from ilk.selection.k_range import k_most
from ilk.selection.mixture_vs_assorted import better, mostly_repeated, search_rival
from ilk.selection.mixtures import search_mixtures
from ilk.selection.progress import Progress, told
from ilk.selection.search import search
from ilk.selection.units import PATIENCE, search_in_units
from ilk.table.out_of_core.table import PieceTable
from ilk.table.own_transforms import transforms_elsewhere
from ilk.threads import one_blas_thread

N_STARTS = 30  # of K-means and its kin, for each K
TELLING = 2e-4  # seconds that it takes to describe a column; kept from a budget
SEARCH_SHARE = 0.75  # of a budget after reading; the rest is for resamples and the description


def run(job: Job) -> Result:
    """Read, type, encode, search, group, describe; a signal to stop at any moment leaves a mark on the result."""
    return run_and_keep(job)[0]


@one_blas_thread()
def run_and_keep(job: Job) -> tuple[Result, Findings | None]:
    """The result, and what it was made of, for who wants to look at other K; None where the groups are not searched."""
    with listening():
        searches = job.labels is None and not job.keeps
        result, findings = _found(job) if searches else (_as_known(job), None)
        return (result.stopped() if heard() else result), findings


def _found(job: Job) -> tuple[Result, Findings]:
    began = Deadline.none()
    known("method", job.method, names())
    known("merge", job.merge, MERGES)
    check_weights_are(job)
    if job.checkpoint is not None:
        job.checkpoint.check(job.budget)
    job = replace(job, seed=seed_of(job.seed))  # a generator gives one number only once
    deadline = began.till(seconds_of(job.budget))
    old = None if job.match_to is None else earlier(job.match_to)
    job = with_weights(job)
    afar = ClusterFrame.of(job.data, job.seed)
    if afar is not None and job.transforms is not None:
        raise transforms_elsewhere()
    given = prepare(job if afar is None else replace(job, data=afar.table))
    deadline = deadline.less(TELLING * len(given.schema.columns))
    with nullcontext() if job.checkpoint is None else job.checkpoint.during(job, given):
        return _found_and_told(job, given, _Circumstances(afar, old, deadline))


@dataclass(frozen=True)
class _Circumstances:
    """What a run has beside its table: the cluster that it lies on, the model to match, the time."""

    afar: ClusterFrame | None
    earlier: Model | None
    deadline: Deadline


def _found_and_told(job: Job, given: Input, setting: _Circumstances) -> tuple[Result, Findings]:
    afar, deadline = setting.afar, setting.deadline
    ks, notes = ks_to_try(job.k, given.rows, job.min_size, job.max_size)
    searching = deadline.part(SEARCH_SHARE)
    if parted(given.method):
        counted, found, grouping = _parted(job, given, ks, deadline)
        view = SeenTable(counted, Seen(counted.rows, counted.encoding), found, grouping)
        searched = searching.spent
    else:
        counted, seen, sampled, own = _pieces(job, given, ks, searching)
        found = sampled if afar is None else afar.polished(counted, seen, sampled, searching)
        notes += [] if afar is None else afar.cautions(sampled, found)
        searched = searching.spent
        found = _with_its_end(found, searching)
        if own is None or afar is not None:
            wish, least = (job, ks[0]) if own is None else (replace(job, k="auto"), 1)
            own = _grouped(wish, seen, found, least, deadline)
        view = SeenTable(counted, seen, found, own)
        if afar is None and not searching.over:
            view = clearer(view, lambda rest: _grown_view(job, rest, ks, deadline))
        if afar is None and not deadline.over and job.merge != "none":
            view = steadier(view, lambda k: _with_components(job, given, k, deadline))
    findings = Findings(
        job=job,
        given=view.given,
        seen=view.seen,
        search=view.search,
        grouping=view.grouping,
        notes=(*notes, *view.notes),
        earlier=setting.earlier,
        clock=deadline,
        search_seconds=searched,
    )
    return _answer(findings), findings


def _with_its_end(found: Search, deadline: Deadline) -> Search:
    """A search that the time has ended says so, whatever it was at."""
    if heard() or found.interrupted or not deadline.over:
        return found
    return replace(found, ended_by=found.ended_by or "time")


def _as_known(job: Job) -> Result:
    """The same of groups that came from elsewhere, or that keep what is known of rows."""
    from ilk.analysis.kept import kept  # imports SciPy's graphs, which take a while

    clock = Deadline.none()
    known("method", job.method, names())
    check_weights_are(job)
    job = with_weights(replace(job, seed=seed_of(job.seed)))
    findings, group_names = (kept if job.keeps else labelled)(job, clock)
    return named(_answer(findings), group_names)


def _answer(findings: Findings) -> Result:
    """What is told of the groups: at a glance where the run was stopped, before or now, or has no time left."""
    job, labels = findings.job, findings.grouping.labels
    if not findings.grouping.interrupted:
        try:
            with exposed():
                _at(job, findings.search, "describing", findings.clock)
                look = rows_at_a_glance if findings.clock.over else shown_rows
                return answer_of(findings, look(findings.given, findings.seen, labels, job.seed))
        except KeyboardInterrupt:
            findings = replace(findings, grouping=replace(findings.grouping, interrupted=True))
    return answer_of(findings, rows_at_a_glance(findings.given, findings.seen, labels, job.seed))


def _grouped(job: Job, seen: Seen, found: Search, least: int, deadline: Deadline) -> Grouping:
    """The groups; after an interrupt without what takes time."""
    wish = GroupingOptions(
        merge=job.merge,
        least=least,
        asked=job.asked,
        min_size=job.min_size,
        max_size=job.max_size,
        deadline=deadline,
    )
    untreat = untreat_of(seen)
    try:
        with exposed():
            _at(job, found, "resampling", deadline)
            return group(
                seen.rows, replace(found, interrupted=found.interrupted or heard()), wish, job.seed, untreat
            )
    except KeyboardInterrupt:
        return group(seen.rows, replace(found, interrupted=True), wish, job.seed, untreat)


def _grown_view(job: Job, given: Input, ks: Sequence[int], deadline: Deadline) -> SeenTable:
    """What the assorted model sees in a table, numbers as cells of their own."""
    counted, seen, found = _by_growth(job, given, ks, deadline)
    return SeenTable(counted, seen, found, _grouped(job, seen, found, ks[0], deadline))


def _with_components(job: Job, given: Input, k: int, deadline: Deadline) -> SeenTable:
    """What the best model of K components shows, each a group."""
    wish = replace(job, k=k, merge="none", callback=None)
    counted, seen, found = _searched(wish, given, (k,), deadline)
    return SeenTable(counted, seen, found, _grouped(wish, seen, found, k, deadline))


def _at(job: Job, found: Search, stage: str, clock: Deadline) -> None:
    """Tell the callback that a stage begins."""
    chosen, tried = found.chosen, len({c.k for c in found.candidates})
    told(
        job.callback,
        Progress(
            done=tried,
            total=tried,
            method=chosen.method,
            k=chosen.k,
            best_bic=chosen.bic,
            seconds=clock.spent,
            stage=stage,
        ),
    )


def _pieces(
    job: Job, given: Input, ks: Sequence[int], deadline: Deadline
) -> tuple[Input, Seen, Search, Grouping | None]:
    """The search; where one K was given at which "auto" ends, that of "auto" with its groups: what was found is found
    again when it is asked for. Any other K is a number of components."""
    if job.asked in (None, 1) or job.merge == "none" or METHODS[given.method].recipe is not None:
        return *_searched(job, given, ks, deadline), None
    try:
        free = _searched(replace(job, k="auto"), given, ks_to_try("auto", given.rows)[0], deadline)
    except NoModelError:  # a search of this K alone may have one
        return *_searched(job, given, ks, deadline), None
    _, seen, found = free
    n_components = len(found.fit.size)
    if found.interrupted and n_components == job.asked:
        return *free, None
    if n_components >= (job.asked or 0):
        by_dips = groups_by_rule(seen.rows, found, job.seed, untreat_of(seen))
        if by_dips >= (job.asked or 0):
            own = _grouped(replace(job, k="auto", callback=None), seen, found, 1, deadline)
            if own.n_groups == job.asked:
                return *free, own
            if by_dips == job.asked:  # of which some dissolve, and they are asked for
                return *free, None
    if not found.interrupted:
        with contextlib.suppress(KeyboardInterrupt):
            return *_searched(job, given, ks, deadline), None
    # the least that has so many groups
    counted, seen, found = _searched(job, given, ks, deadline.within(0.0))
    return counted, seen, replace(found, interrupted=True), None


def untreat_of(seen: Seen) -> InverseTransform | None:
    """What gives back the columns of the table, where the model has others."""
    return None if seen.treat is None else InverseTransform(seen.treat, seen.encoding)


def _searched(job: Job, given: Input, ks: Sequence[int], deadline: Deadline) -> tuple[Input, Seen, Search]:
    """The search of the method; where "auto" meant mixtures and not one is valid, K-means gives the answer."""
    method = METHODS[given.method]
    if method.search == "growth":
        return _by_growth(job, given, ks, deadline, CELLS if job.asked is None else "auto")
    if method.recipe is not None:
        return _by_recipe(job, given, method.recipe, ks, deadline)
    if job.method != "auto":
        found, own = _mixtures(job, given, ks, deadline)
        return given, Seen(own, own.encoding), found
    if _crowded(given.rows):  # no covariances, and the cells contain what is left
        return _by_growth(job, given, ks, deadline)
    plan = plan_of(given.rows, given.used)
    if mostly_repeated(plan, given.rows):  # no densities
        return _by_growth(job, given, ks, deadline)
    try:
        found, own = _mixtures(job, given, ks, deadline)
    except NoModelError:
        return _without_mixture(job, given, ks, deadline)
    rival = search_rival(
        found,
        given.rows,
        given.used,
        ks,
        job.seed,
        plan=plan,
        most=_most(job, given, ks),
        deadline=deadline,
        callback=job.callback,
    )
    both, winner = better(found, rival)
    return given, Seen(own, own.encoding) if winner is None else _treated(given, winner), both


def _without_mixture(
    job: Job, given: Input, ks: Sequence[int], deadline: Deadline
) -> tuple[Input, Seen, Search]:
    """Where no mixture is valid: the assorted model, which can take repeated values as such, else K-means."""
    what = "no Gaussian mixture is valid on all rows of this table, so the groups are those of"
    note = Caution("no-mixture", f"{what} the assorted model")
    try:
        return _by_growth(job, replace(given, warnings=(*given.warnings, note)), ks, deadline)
    except NoModelError:
        other = prepare(replace(job, data=given.table, method=K_MEANS.name))
    warnings = (*other.warnings, Caution("no-mixture", f"{what} K-means"))
    return _by_recipe(job, replace(other, warnings=warnings), K_MEANS, ks, deadline)


def _crowded(rows: Rows) -> bool:
    return is_crowded(row_weights(rows).effective_rows, rows.n_columns)


def _by_growth(
    job: Job, given: Input, ks: Sequence[int], deadline: Deadline, numbers: str = CELLS
) -> tuple[Input, Seen, Search]:
    """The search of the assorted model, on the rows as it treats them."""
    often, locked = times(job.column_weights or {}), tuple(given.transforms.of)
    grown = search_assorted(
        given.rows,
        given.used,
        ks,
        job.seed,
        plan=plan_of(given.rows, given.used).locked(locked).repeated(often) if often or locked else None,
        numbers=CELLS if often else numbers,
        most=_most(job, given, ks),
        deadline=deadline,
        callback=job.callback,
    )
    return given, _treated(given, grown), grown.search


def _by_recipe(
    job: Job, given: Input, recipe: Recipe, ks: Sequence[int], deadline: Deadline
) -> tuple[Input, Seen, Search]:
    """The search of K-means and its variants, on the rows as they are."""
    recipes = [replace(recipe, n_starts=N_STARTS)]
    most = _most(job, given, ks)
    found = search(given.rows, recipes, ks, job.seed, most=most, deadline=deadline, callback=job.callback)
    return given, Seen(given.rows, given.encoding), found


def _parted(
    job: Job, given: Input, ks: tuple[int, ...], deadline: Deadline
) -> tuple[Input, Search, Grouping]:
    """The groups of a paradigm beside the loop; rows in groups too small to count are set aside."""
    from ilk.selection.from_partition import part_rows  # imports scikit-learn, which takes a second

    if given.weight is not None:
        option = Option("weight", shown(job.weight))
        raise UsageError(
            "weight-not-taken",
            f"{given.method} counts every row once, and {option} was given",
            do="Leave the weights out, or use k-means, k-medians or a mixture method",
            options=[option],
        )
    if isinstance(given.table, PieceTable) or ClusterFrame.of(job.data, job.seed) is not None:
        raise ResourceError(
            "not-in-memory",
            f"{given.method} needs all rows in memory, and the table is larger or elsewhere",
            do="Give a sample of the rows, or use k-means, k-medians or a mixture method",
        )
    sizes = [
        Option(name, size)
        for name, size in (("min_size", job.min_size), ("max_size", job.max_size))
        if size is not None
    ]
    if sizes:
        raise UsageError(
            "sizes-not-taken",
            f"{given.method} cannot limit the sizes of groups, and {' and '.join(map(str, sizes))} was given",
            do="Leave it out, or use k-means, k-medians or a mixture method",
            options=sizes,
        )
    found = part_rows(given.rows, given.used, given.method, job.k, ks, job.seed, deadline=deadline)
    counted = given.only(found.counted, "in groups too small to count")
    return counted, found.search, found.grouping


def _treated(given: Input, grown: AssortedSearch) -> Seen:
    """The table as the assorted model sees it."""
    return Seen(grown.rows, given.encoding, grown.treat, grown.words)


def _mixtures(job: Job, given: Input, ks: Sequence[int], deadline: Deadline) -> tuple[Search, Rows]:
    """Units that were left to ilk are those that suit the groups."""
    if job.scale is not None:
        return search_in_units(
            given.rows, ks, job.seed, most=_most(job, given, ks), deadline=deadline, callback=job.callback
        )
    found = search_mixtures(
        given.rows,
        ks,
        job.seed,
        thorough=False,
        patience=PATIENCE,
        most=_most(job, given, ks),
        deadline=deadline,
        callback=job.callback,
    )
    return found, given.rows


def _most(job: Job, given: Input, ks: Sequence[int]) -> int:
    """The largest K that a search may reach."""
    return k_most(job.k, tuple(ks), row_weights(given.rows).n_counting)

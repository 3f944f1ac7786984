"""The main job: read, type the columns, choose a model, fit it, say what the groups are."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ilk.analysis.assemble import answer_of
from ilk.analysis.matching import earlier
from ilk.analysis.on_cluster import ClusterFrame
from ilk.analysis.prepare import Job, Prepared, at_a_glance, only_rows, prepare, with_every_group
from ilk.analysis.result import Result
from ilk.assorted.problem import CELLS, InverseTransform
from ilk.deadline import Deadline
from ilk.engines.base import Rows
from ilk.errors import NoModelError, ResourceError, UsageError, shown
from ilk.fitting.weights import row_weights
from ilk.random import seed_of
from ilk.recipes import CATALOGUE, K_MEANS, PARADIGMS
from ilk.selection.assorted import ASSORTED, AssortedSearch, search_assorted
from ilk.selection.candidates import Search
from ilk.selection.grouping import MERGES, Grouping, GroupingOptions, group
from ilk.selection.k_range import k_range
from ilk.selection.mixture_vs_assorted import with_assorted
from ilk.selection.mixtures import search_mixtures
from ilk.selection.progress import Progress, told
from ilk.selection.search import search
from ilk.selection.sizing import check_sizes, least_groups
from ilk.selection.units import PATIENCE, search_in_units
from ilk.table.ledger import Caution

GAUSSIAN = "gaussian"
METHODS = ("auto", GAUSSIAN, ASSORTED, *CATALOGUE, *PARADIGMS)
N_STARTS = 30  # of K-means and its kin, for each K


def run(job: Job) -> Result:
    """Read, type, encode, search, describe."""
    clock = Deadline.none()
    known("method", job.method, METHODS)
    known("merge", job.merge, MERGES)
    seed, seconds = seed_of(job.seed), seconds_of(job.budget)
    job = replace(job, seed=seed)  # a generator gives one number only once
    old = None if job.match_to is None else earlier(job.match_to)
    afar = ClusterFrame.of(job.data, seed)
    ready = prepare(job if afar is None else replace(job, data=afar.table))
    ks, notes = ks_to_try(job.k, ready.rows, job.min_size, job.max_size)
    deadline = Deadline.after(seconds)  # the table is read, however long that took
    if ready.method in PARADIGMS:
        ready, found, grouping = _parted(job, ready, ks, seed)
        searched = deadline.spent
    else:
        ready, found = _searched(job, ready, ks, seed, deadline)
        if afar is not None:
            sampled, found = found, afar.polished(ready, found, deadline)
            notes = [*notes, *afar.cautions(sampled, found)]
        searched = deadline.spent
        _at(job, found, "resampling", clock)
        wish = GroupingOptions(
            merge=job.merge,
            least=ks[0],
            as_asked=job.asked is not None,
            min_size=job.min_size,
            max_size=job.max_size,
            deadline=deadline,
        )
        untreat = None if ready.treat is None else InverseTransform(ready.treat, ready.encoding)
        grouping = _grouped(ready.rows, found, wish, seed, untreat)
    if not grouping.interrupted:
        try:
            _at(job, found, "describing", clock)
            ready = with_every_group(ready, grouping.labels)
            return answer_of(job, ready, found, grouping, notes, (clock, searched), old)
        except KeyboardInterrupt:
            grouping = replace(grouping, interrupted=True)
    ready = at_a_glance(ready, grouping.labels, seed)
    return answer_of(job, ready, found, grouping, notes, (clock, searched), old)


def _grouped(
    rows: Rows, found: Search, wish: GroupingOptions, seed: int, untreat: InverseTransform | None
) -> Grouping:
    """The groups; after an interrupt without what takes time."""
    try:
        return group(rows, found, wish, seed, untreat)
    except KeyboardInterrupt:
        return group(rows, replace(found, interrupted=True), wish, seed, untreat)


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


def _searched(
    job: Job, ready: Prepared, ks: Sequence[int], seed: int, deadline: Deadline
) -> tuple[Prepared, Search]:
    """The search of the method; where "auto" meant mixtures and not one is valid, K-means gives the answer."""
    if ready.method == ASSORTED:
        numbers = CELLS if job.asked is None else "auto"
        grown = search_assorted(
            ready.rows, ready.used, ks, seed, numbers=numbers, deadline=deadline, callback=job.callback
        )
        return _treated(ready, grown), grown.search
    if ready.method != GAUSSIAN:
        recipes = [replace(CATALOGUE[ready.method], n_starts=N_STARTS)]
        return ready, search(ready.rows, recipes, ks, seed, deadline=deadline, callback=job.callback)
    mixtures = partial(_mixtures, job, ready, ks, seed, deadline)
    if job.method != "auto":
        found, own = mixtures()
        return _in_units(ready, own), found
    try:
        found, own, winner = with_assorted(
            mixtures, ready.rows, ready.used, ks, seed, deadline=deadline, callback=job.callback
        )
        return _in_units(ready, own) if winner is None else _treated(ready, winner), found
    except NoModelError:
        ready = prepare(replace(job, data=ready.table, method=K_MEANS.name))
    note = ("no-mixture", "no Gaussian mixture is valid for this table, so K-means gives the groups")
    ready = replace(ready, warnings=(*ready.warnings, note))
    recipes = [replace(K_MEANS, n_starts=N_STARTS)]
    return ready, search(ready.rows, recipes, ks, seed, deadline=deadline, callback=job.callback)


def _parted(job: Job, ready: Prepared, ks: tuple[int, ...], seed: int) -> tuple[Prepared, Search, Grouping]:
    """The groups of a paradigm beside the loop; rows in clusters too small to count are set aside."""
    from ilk.selection.from_partition import part_rows  # imports scikit-learn, which takes a second

    if ready.weight is not None:
        raise UsageError(
            "weight-not-taken",
            f"{ready.method} counts every row once, and weight={shown(job.weight)!r} was given",
            do="Leave the weights out, or take a method of centres or mixtures",
        )
    if ready.looked is not None or ClusterFrame.of(job.data, seed) is not None:
        raise ResourceError(
            "not-in-memory",
            f"{ready.method} looks at all rows at once, and the table is not in memory",
            do="Give a sample of the rows, or take a method of centres or mixtures",
        )
    if job.min_size is not None or job.max_size is not None:
        raise UsageError(
            "sizes-not-taken",
            f"{ready.method} has groups of its own sizes, and min_size or max_size was given",
            do="Leave them out, or take a method of centres or mixtures",
        )
    parted = part_rows(ready.rows, ready.used, ready.method, job.k, ks, seed)
    why = "in clusters too small to count"
    return only_rows(ready, parted.counted, why), parted.search, parted.grouping


def _treated(ready: Prepared, grown: AssortedSearch) -> Prepared:
    """The table as the assorted model sees it."""
    return replace(ready, rows=grown.rows, treat=grown.treat, treatment=grown.words, method=ASSORTED)


def _in_units(ready: Prepared, rows: Rows) -> Prepared:
    """The table in the units that suit the groups of a mixture."""
    return replace(ready, rows=rows, encoding=rows.encoding)


def _mixtures(
    job: Job, ready: Prepared, ks: Sequence[int], seed: int, deadline: Deadline
) -> tuple[Search, Rows]:
    """Units that were left to ilk are those that suit the groups."""
    if job.scale is not None:
        return search_in_units(ready.rows, ks, seed, deadline=deadline, callback=job.callback)
    found = search_mixtures(
        ready.rows, ks, seed, thorough=False, patience=PATIENCE, deadline=deadline, callback=job.callback
    )
    return found, ready.rows


def known(option: str, value: str, allowed: Sequence[str]) -> None:
    """A refusal of a value that an option does not have, with the one that was perhaps meant."""
    if value not in allowed:
        near = difflib.get_close_matches(str(value).lower().replace(" ", "-"), allowed, 1)
        meant = "".join(f"Did you mean {name}? " for name in near)
        what = f"{option}={shown(value)!r} is not known"
        raise UsageError(f"bad-{option}", what, do=f"{meant}Use {', '.join(allowed)}")


def seconds_of(budget: float | None) -> float | None:
    if budget is None:
        return None
    if (
        isinstance(budget, bool)
        or not isinstance(budget, (int, float))
        or not (math.isfinite(budget) and budget > 0)
    ):
        raise UsageError("bad-budget", f"budget={budget!r} is not a time", do="Give seconds, above 0")
    return float(budget)


def ks_to_try(
    k: Any, rows: Rows, min_size: int | None = None, max_size: int | None = None
) -> tuple[tuple[int, ...], list[Caution]]:
    """The numbers of groups to try, none so low that the rows would not fit in."""
    check_sizes(min_size, max_size, rows.n_rows)
    least = least_groups(max_size, rows.n_rows)
    n_rows = row_weights(rows).n_counting
    ks = k_range(k, n_rows)
    if least > 1:
        enough = tuple(number for number in ks if number >= least)
        if not enough and k != "auto":
            raise UsageError(
                "too-few-groups",
                f"{max(ks)} groups cannot hold {rows.n_rows} rows within max_size",
                do=f"Give k={least} or more, or a larger max_size",
            )
        return enough or (least,), []
    if isinstance(k, (range, list, tuple)) and len(ks) < len(k):
        return ks, [("k-trimmed", f"K above {n_rows}, the number of rows, cannot be; tried up to {ks[-1]}")]
    return ks, []

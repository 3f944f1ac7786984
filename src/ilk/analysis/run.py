"""The main job: read, type the columns, choose a model, fit it, say what the groups are."""

from __future__ import annotations

import difflib
import math
import time
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
from ilk.engines.base import Rows
from ilk.errors import NoModelError, ResourceError, UsageError, shown
from ilk.fitting.weights import row_weights
from ilk.methods import K_MEANS, METHODS, names, parted
from ilk.random import seed_of
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

N_STARTS = 30  # of K-means and its kin, for each K


def run(job: Job) -> Result:
    """Read, type, encode, search, describe."""
    began = time.monotonic()
    known("method", job.method, names())
    known("merge", job.merge, MERGES)
    seed, budget = seed_of(job.seed), seconds_of(job.budget)
    job = replace(job, seed=seed)  # a generator gives one number only once
    old = None if job.match_to is None else earlier(job.match_to)
    afar = ClusterFrame.of(job.data, seed)
    ready = prepare(job if afar is None else replace(job, data=afar.table))
    ks, notes = ks_to_try(job.k, ready.rows, job.min_size, job.max_size)
    searched = time.monotonic()
    if parted(ready.method):
        ready, found, grouping = _parted(job, ready, ks, seed)
        searched = time.monotonic() - searched
    else:
        ready, found = _searched(job, ready, ks, seed, budget)
        if afar is not None:
            left = math.inf if budget is None else max(0.0, budget - (time.monotonic() - began))
            sampled, found = found, afar.polished(ready, found, left)
            notes = [*notes, *afar.cautions(sampled, found)]
        searched = time.monotonic() - searched
        _at(job, found, "resampling", began)
        end = math.inf if budget is None else began + budget
        wish = GroupingOptions(job.merge, ks[0], job.asked is not None, job.min_size, job.max_size, end)
        untreat = None if ready.treat is None else InverseTransform(ready.treat, ready.encoding)
        grouping = _grouped(ready.rows, found, wish, seed, untreat)
    if not grouping.interrupted:
        try:
            _at(job, found, "describing", began)
            ready = with_every_group(ready, grouping.labels)
            return answer_of(job, ready, found, grouping, notes, (began, searched), old)
        except KeyboardInterrupt:
            grouping = replace(grouping, interrupted=True)
    ready = at_a_glance(ready, grouping.labels, seed)
    return answer_of(job, ready, found, grouping, notes, (began, searched), old)


def _grouped(
    rows: Rows, found: Search, wish: GroupingOptions, seed: int, untreat: InverseTransform | None
) -> Grouping:
    """The groups; after an interrupt without what takes time."""
    try:
        return group(rows, found, wish, seed, untreat)
    except KeyboardInterrupt:
        return group(rows, replace(found, interrupted=True), wish, seed, untreat)


def _at(job: Job, found: Search, stage: str, began: float) -> None:
    """Tell the callback that a stage begins."""
    chosen, tried = found.chosen, len({c.k for c in found.candidates})
    seconds = time.monotonic() - began
    told(job.callback, Progress(tried, tried, chosen.method, chosen.k, chosen.bic, seconds, stage))


def _searched(
    job: Job, ready: Prepared, ks: Sequence[int], seed: int, budget: float | None
) -> tuple[Prepared, Search]:
    """The search of the method; where "auto" meant mixtures and not one is valid, K-means gives the answer."""
    method = METHODS[ready.method]
    if method.search == "growth":
        numbers = CELLS if job.asked is None else "auto"
        grown = search_assorted(
            ready.rows, ready.used, ks, seed, numbers=numbers, budget=budget, callback=job.callback
        )
        return _treated(ready, grown), grown.search
    if method.recipe is not None:
        recipes = [replace(method.recipe, n_starts=N_STARTS)]
        return ready, search(ready.rows, recipes, ks, seed, budget=budget, callback=job.callback)
    mixtures = partial(_mixtures, job, ready, ks, seed, budget)
    if job.method != "auto":
        found, own = mixtures()
        return _in_units(ready, own), found
    try:
        found, own, winner = with_assorted(
            mixtures, ready.rows, ready.used, ks, seed, budget=budget, callback=job.callback
        )
        return _in_units(ready, own) if winner is None else _treated(ready, winner), found
    except NoModelError:
        ready = prepare(replace(job, data=ready.table, method=K_MEANS.name))
    note = (
        "no-mixture",
        "no Gaussian mixture could be fitted to this table, so the groups are those of K-means",
    )
    ready = replace(ready, warnings=(*ready.warnings, note))
    recipes = [replace(K_MEANS, n_starts=N_STARTS)]
    return ready, search(ready.rows, recipes, ks, seed, budget=budget, callback=job.callback)


def _parted(job: Job, ready: Prepared, ks: tuple[int, ...], seed: int) -> tuple[Prepared, Search, Grouping]:
    """The groups of a paradigm beside the loop; rows in groups too small to count are set aside."""
    from ilk.selection.from_partition import part_rows  # imports scikit-learn, which takes a second

    if ready.weight is not None:
        raise UsageError(
            "weight-not-taken",
            f"{ready.method} counts every row once, and weight={shown(job.weight)!r} was given",
            do="Leave the weights out, or use k-means, k-medians or a mixture method",
        )
    if ready.looked is not None or ClusterFrame.of(job.data, seed) is not None:
        raise ResourceError(
            "not-in-memory",
            f"{ready.method} needs all rows in memory, and the table is larger or elsewhere",
            do="Give a sample of the rows, or use k-means, k-medians or a mixture method",
        )
    if job.min_size is not None or job.max_size is not None:
        raise UsageError(
            "sizes-not-taken",
            f"{ready.method} cannot limit the sizes of groups, and min_size or max_size was given",
            do="Leave them out, or use k-means, k-medians or a mixture method",
        )
    parted = part_rows(ready.rows, ready.used, ready.method, job.k, ks, seed)
    why = "in groups too small to count"
    return only_rows(ready, parted.counted, why), parted.search, parted.grouping


def _treated(ready: Prepared, grown: AssortedSearch) -> Prepared:
    """The table as the assorted model sees it."""
    return replace(ready, rows=grown.rows, treat=grown.treat, treatment=grown.words, method=ASSORTED)


def _in_units(ready: Prepared, rows: Rows) -> Prepared:
    """The table in the units that suit the groups of a mixture."""
    return replace(ready, rows=rows, encoding=rows.encoding)


def _mixtures(
    job: Job, ready: Prepared, ks: Sequence[int], seed: int, budget: float | None
) -> tuple[Search, Rows]:
    """Units that were left to ilk are those that suit the groups."""
    if job.scale is not None:
        return search_in_units(ready.rows, ks, seed, budget=budget, callback=job.callback)
    found = search_mixtures(
        ready.rows, ks, seed, thorough=False, patience=PATIENCE, budget=budget, callback=job.callback
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
        return ks, [
            ("k-trimmed", f"K above {n_rows}, the number of rows, is not possible; tried up to {ks[-1]}")
        ]
    return ks, []

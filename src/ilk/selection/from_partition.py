"""Groups of a paradigm beside the loop as the answer of any other method: found, grouped, measured for the verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.errors import DataError, Option, UsageError
from ilk.fitting.deadline import Deadline
from ilk.fitting.fit import Fit, StartRecord
from ilk.fitting.interrupt import exposed, keep
from ilk.fitting.loop import NOTHING_CHANGED, OK, PASS_LIMIT
from ilk.fitting.restarts import Recipe
from ilk.fitting.start import in_cell_order
from ilk.measures.counts import contingency
from ilk.measures.repeats import jaccard_per_cluster
from ilk.methods import METHODS, Method
from ilk.model.grouped import Grouped
from ilk.model.registry import is_soft
from ilk.random import stream
from ilk.selection.candidates import Candidate, Search
from ilk.selection.grouping import Grouping
from ilk.selection.merging import Merge, valley_matrix, weakest_pair
from ilk.selection.paradigm_input import Material
from ilk.selection.paradigms import Parting, spectral_parts
from ilk.selection.projection import Projection
from ilk.selection.resampling import LEAST_RESAMPLES, N_RESAMPLES
from ilk.selection.search import STATUS_OF_REASON
from ilk.selection.sharpness import Sharpness, by_distances
from ilk.selection.valley import MOST_ROWS, NumberGround
from ilk.selection.verdict import CLEAR_GAP
from ilk.table.block import Array
from ilk.table.schema import Schema

RESAMPLED_ROWS = 400  # at most: most paradigms compare all pairs of rows, ten times over
WINDING_MOST = 20  # groups that are looked for when it is asked whether they wind around each other
ASTRAY = 0.05  # share of rows on the wrong side of a straight cut from which it parts nothing
LONELY = 0.05  # share of the rows of a group that outliers may be
NEIGHBOUR = 5  # the neighbour whose distance is the yardstick of a gap


@dataclass(frozen=True, eq=False)
class Parted:
    """`counted` are the places of the rows that belong to a group; search and grouping speak of these alone."""

    counted: Array
    search: Search
    grouping: Grouping


def part_rows(
    rows: Rows,
    schema: Schema,
    method: str,
    k: Any,
    ks: tuple[int, ...],
    seed: int,
    *,
    deadline: Deadline | None = None,
) -> Parted:
    """The groups that the paradigm `method` makes of all rows, and what the verdict needs to know of them."""
    paradigm, clock = METHODS[method], (deadline or Deadline.none()).within()
    wanted = wanted_k(paradigm, k, ks)
    # What is drawn for a row depends on what it says, not on where it stands.
    order = in_cell_order(rows.take(np.arange(rows.n_rows)))
    material = Material.of(rows.take(order), schema)
    parting = paradigm.part(material, wanted, ks[-1], seed)
    counted = np.flatnonzero(parting.labels >= 0)
    few = material.take(counted) if len(counted) < rows.n_rows else material
    labels = parting.labels[counted]
    seconds = clock.spent
    keep()
    try:
        with exposed():
            sharp = _silhouettes(few, labels, parting.n_groups)
            found = search_of(paradigm, parting, labels, seconds, sharp)
            grouping = _grouping(few, paradigm, parting, labels, found, seed, deadline=clock)
    except KeyboardInterrupt:  # the groups are there: once more without what takes time
        found = replace(search_of(paradigm, parting, labels, seconds, None), interrupted=True)
        grouping = _grouping(few, paradigm, parting, labels, found, seed, deadline=clock)
    return _as_given(order[counted], found, grouping)


def _as_given(places: Array, found: Search, grouping: Grouping) -> Parted:
    """What is known of rows, in the order in which the user gave them."""
    back = np.argsort(places)
    sharp = None if found.sharpness is None else replace(found.sharpness, values=found.sharpness.values[back])
    fit = replace(found.fit, labels=found.fit.labels[back])
    search = replace(found, fit=fit, sharpness=sharp)
    return Parted(places[back], search, replace(grouping, labels=grouping.labels[back]))


def wanted_k(paradigm: Method, k: Any, ks: tuple[int, ...]) -> int | None:
    """The one K asked for, None where the method is to find it; refused where it cannot be asked for."""
    if isinstance(k, str) or (paradigm.k != "found" and len(ks) > 1):
        return None
    if paradigm.k == "fixed":
        return ks[0]
    options = [Option("k", range(1, 9))] if paradigm.k == "most" else []
    raise UsageError(
        "k-not-taken",
        f"{paradigm.name} finds K itself: {paradigm.how_k}",
        do="Leave K out" + "".join(f", or give a range up to the most: {option}" for option in options),
        options=options,
    )


def search_of(
    paradigm: Method, parting: Parting, labels: Array, seconds: float, sharp: Sharpness | None
) -> Search:
    k, size = parting.n_groups, np.bincount(labels).astype(np.float64)
    reason = NOTHING_CHANGED if parting.settled else PASS_LIMIT
    start = StartRecord(float("nan"), 0, reason, OK)
    fit = Fit(
        params=parting.params,
        labels=labels,
        cost=float("nan"),
        size=size,
        n_rows=len(labels),
        n_passes=parting.n_passes,
        reason=reason,
        status=OK,
        trace=(),
        starts=(start,),
    )
    scores = parting.bic_of or ((k, None),)
    order = sorted(range(len(scores)), key=lambda i: scores[i][1] or 0.0)
    status = STATUS_OF_REASON.get(reason, OK)
    candidates = tuple(
        Candidate(
            paradigm.name,
            None,
            number,
            status if i == order[0] else OK,
            bic=value,
            silhouette=sharp.mean if sharp is not None and i == order[0] else None,
            n_starts=1,
            n_starts_at_best=1,
            seconds=seconds / len(scores),
        )
        for i, (number, value) in enumerate(scores)
    )
    runner_up = order[1] if len(order) > 1 else None
    recipe = Recipe(paradigm.name, parting.family)
    return Search(
        candidates=candidates,
        winner=order[0],
        runner_up=runner_up,
        fit=fit,
        recipe=recipe,
        sharpness=sharp,
        n_rows_searched=len(labels),
        interrupted=False,
    )


def _silhouettes(material: Material, labels: Array, k: int) -> Sharpness | None:
    """By the distances that the groups were made from, where they were; None otherwise, and for a single group."""
    known = material.measured
    if known is None or k < 2:
        return None
    everyone = np.arange(len(labels))
    return by_distances(known.matrix, labels, np.ones(len(labels)), everyone, k, len(labels))


def _grouping(
    material: Material,
    paradigm: Method,
    parting: Parting,
    labels: Array,
    found: Search,
    seed: int,
    *,
    deadline: Deadline,
) -> Grouping:
    k = parting.n_groups
    looked = some_rows(len(labels), MOST_ROWS, seed)
    sample = material.take(looked).block
    of = NumberGround.of if sample.codes is None else NumberGround.of_mixed
    ground = of(sample, labels[looked], seed=seed)
    groups = tuple((group,) for group in range(k))
    valleys = valley_matrix(ground, groups)
    gap, stable, interrupted = None, None, found.interrupted
    if k > 1 and not interrupted and not deadline.over:
        try:
            with exposed():
                gap = gap_between(material.take(looked), labels[looked]) if paradigm.any_shape else None
                stable = _returns(material, paradigm, labels, seed, deadline)
        except KeyboardInterrupt:  # only the verdict knows less
            interrupted = True
    return Grouping(
        grouped=Grouped(parting.family, parting.params, np.arange(k), is_soft(parting.family.name)),
        labels=labels,
        size=np.bincount(labels).astype(np.float64),
        n_groups=k,
        merge=Merge(None, groups, ()),
        thresholds=ground.thresholds,
        valleys=valleys,
        weakest=weakest_pair(ground, groups, valleys),
        stable=stable,
        n_rows=float(len(labels)),
        skewness=np.zeros(0),
        split_gain=0.0,
        interrupted=interrupted,
        signs=parting.signs,
        gap=gap,
    )


def winding(rows: Rows, schema: Schema, most: int, seed: int) -> float | None:
    """The gap between groups that no straight cut parts, seen on at most so many rows; None where there are none."""
    some = MemoryRows.of_block(rows.sample(most, seed))
    material = Material.of(some.take(in_cell_order(some.take(np.arange(some.n_rows)))), schema)
    labels = spectral_parts(material, None, WINDING_MOST, seed).labels
    k = int(labels.max()) + 1
    if k < 2:
        return None
    ground = (NumberGround.of if material.block.codes is None else NumberGround.of_mixed)(
        material.block, labels, seed=seed
    )
    pairs = [(one, other) for one in range(k) for other in range(one)]
    astray = max(_astray(ground.project((one,), (other,))) for one, other in pairs)
    gap = gap_between(material, labels)
    return gap if astray > ASTRAY and gap > CLEAR_GAP else None


def _astray(seen: Projection) -> float:
    """Share of the rows of two groups on the wrong side of the best cut of the line between them."""
    second = seen.of_second[np.argsort(seen.position, kind="stable")]
    wrong = np.cumsum(np.where(second, 1, -1)) + int((~second).sum())  # where the second lies above the cut
    least = min(int(wrong.min()), int((len(second) - wrong).min()), int(second.sum()), int((~second).sum()))
    return least / len(second)


def some_rows(n_rows: int, most: int, seed: int) -> Array:
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(stream(seed, "parted").choice(n_rows, most, replace=False))


def _returns(
    material: Material, paradigm: Method, labels: Array, seed: int, deadline: Deadline
) -> tuple[float, ...] | None:
    """Per group the mean Jaccard index of the group most like it among the rows that a bootstrap draws; a group of
    which no row was drawn counts for nothing there. None where there was no time for the least number of them."""
    looked, k = some_rows(len(labels), RESAMPLED_ROWS, seed), int(labels.max()) + 1
    part, total, times = paradigm.part, np.zeros(k), np.zeros(k)
    for number in range(N_RESAMPLES):
        if deadline.over:
            if number < LEAST_RESAMPLES:
                return None
            break
        draws = stream(seed, "resample", number)
        drawn = np.unique(draws.choice(looked, len(looked)))
        try:
            again = part(
                material.take(drawn), k if paradigm.k == "fixed" else None, max(k, 9), seed + number
            ).labels
        except DataError:  # rows of which the method finds no groups are one
            again = np.zeros(len(drawn), dtype=np.int32)
        both = contingency(labels[drawn], again)
        there = np.array([int(name) for name in both.cluster_names])
        total[there] += jaccard_per_cluster(both)
        times[there] += 1
    return tuple(float(value) for value in total / np.maximum(times, 1))


def gap_between(material: Material, labels: Array) -> float:
    """How clearly the groups lie apart whatever their shape: the least, over all rows of two groups, of their distance
    over the distance to the fifth neighbour within their groups. Above 1 nobody has a stranger so near. The loneliest
    rows of each group, which have no near neighbours at all, are not asked."""
    matrix = material.distances.matrix
    same = labels[:, None] == labels
    within = np.sort(np.where(same, matrix, np.inf), axis=1)
    size = np.bincount(labels)[labels]
    reach = within[np.arange(len(labels)), np.minimum(NEIGHBOUR, size - 1)]  # the row itself comes first
    lonely = np.zeros(len(labels), dtype=bool)
    for group in np.unique(labels):
        mine = labels == group
        lonely[mine] = reach[mine] > np.quantile(reach[mine], 1 - LONELY)
    yard = np.maximum(reach[:, None], reach)
    asked = (yard > 0) & ~same & ~lonely & ~lonely[:, None]
    with np.errstate(over="ignore"):  # so far apart that no double says it
        ratio = np.divide(matrix, yard, out=np.full_like(matrix, np.inf), where=asked)
    return float(ratio.min())

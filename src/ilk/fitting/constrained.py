"""K-means and EM under what is known of the rows: chunklets are assigned whole, and apart where they must be.

The steps are those of the law, with the assignment between score and sums made for all rows at once: what one row may
have depends on others. So the rows are in memory.

    K-means   the cheapest assignment of chunklets that was found, never dearer than the one before: cost never rises
    EM        membership of a chunklet ~ product over its rows of share times density; of a known label, its own
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from ilk import kernels
from ilk.engines.memory import MemoryRows
from ilk.errors import DataError
from ilk.families.centroid import Means
from ilk.fitting.constraints import Constraints
from ilk.fitting.fit import Fit, start_records
from ilk.fitting.loop import (
    DEGENERATE,
    FEWER_DISTINCT_ROWS,
    NO_LOWER_COST,
    NOTHING_CHANGED,
    OK,
    PASS_LIMIT,
    TOLERANCE,
    Record,
    Run,
    Stop,
)
from ilk.fitting.mixture import MixturePlan, rank_of
from ilk.fitting.restarts import Recipe, all_from_labels, label_means, named_starts
from ilk.fitting.start import sample_rows
from ilk.table.block import Array, Block

N_STARTS = 4  # of a mixture, each from its own constrained K-means
START_STOP = Stop(tolerance=1e-4, max_passes=50)


@dataclass(frozen=True, eq=False)
class _Ended:
    """A run with the assignment that its cost is of: a component for each chunklet, or memberships of them."""

    run: Run
    of_chunklets: Array


def fit_means(rows: MemoryRows, recipe: Recipe, k: int, seed: int, kept: Constraints) -> Fit:
    """K-means under constraints, the best of its starts."""
    block = rows.take(np.arange(rows.n_rows))
    starts = _centres(rows, recipe, k, seed, kept)
    ends = [_run_means(block, Means(), centres, kept, recipe.stop) for centres in starts]
    best = min(ends, key=lambda end: end.run.cost)
    return _finished(block, best, best.of_chunklets[kept.chunklet], [end.run for end in ends])


def fit_components(
    rows: MemoryRows, family: Any, k: int, seed: int, plan: MixturePlan, kept: Constraints
) -> Fit:
    """A mixture under constraints, from partitions that keep them."""
    block = rows.take(np.arange(rows.n_rows))
    scaled = rows.reencoded(replace(rows.encoding, factor=_unit_factor(rows, family)))
    recipe = Recipe("start", Means(), n_starts=plan.n_init or N_STARTS)
    whole = scaled.take(np.arange(rows.n_rows))
    ends = []
    for centres in _centres(scaled, recipe, k, seed, kept):
        begun = _run_means(whole, Means(), centres, kept, START_STOP).of_chunklets
        if len(np.unique(begun)) < k:
            continue
        for params in all_from_labels(rows, family, begun[kept.chunklet].astype(np.int32), k):
            ends.append(_run_mixture(block, family, params, kept, plan.stop, begun))
    if not ends:
        raise DataError(
            "fewer-rows-than-groups",
            f"the rows that must be together leave fewer different ones than the {k} groups asked for",
            do="Ask for fewer groups",
        )
    best = min(ends, key=lambda end: rank_of(end.run))
    share = best.of_chunklets
    label = (share if share.ndim == 1 else share.argmax(axis=1))[kept.chunklet]
    found = _finished(block, best, label, [end.run for end in ends])
    if share.ndim == 1:
        return found
    with np.errstate(divide="ignore"):
        certainty = np.log(share.max(axis=1))[kept.chunklet]
    return replace(found, log_certainty=float(block.weights @ certainty))


def _unit_factor(rows: MemoryRows, family: Any) -> Array:
    """A factor for each column by which K-means sees it in standard deviations."""
    factor = np.ones(rows.n_columns) if rows.encoding.factor is None else rows.encoding.factor
    return np.asarray(factor / np.sqrt(family.column_variances))


def _centres(rows: MemoryRows, recipe: Recipe, k: int, seed: int, kept: Constraints) -> list[Array]:
    """The centres of each start; those nearest to the rows of known labels lie at their means."""
    sample = rows.sample(sample_rows(rows.n_columns, k), seed)
    drawn = named_starts(sample, recipe, k, seed)
    if not kept.n_known:
        return drawn
    known = kept.chunklet < kept.n_known
    which = np.flatnonzero(known)
    means = label_means(
        MemoryRows.of_block(rows.take(which)), kept.chunklet[which].astype(np.int32), kept.n_known
    )
    made = []
    for centres in drawn:
        own, near = linear_sum_assignment(cdist(means, centres, "sqeuclidean"))
        others = np.delete(centres, near, axis=0)
        made.append(np.vstack([means[own], others]))
    return made


def _run_means(block: Block, family: Means, centres: Array, kept: Constraints, stop: Stop) -> _Ended:
    run = Run(family, family.start(centres))
    label: Array | None = None
    weight = block.weights[:, None]
    while not run.reason:
        costs = kept.pinned(kept.added(family.cost(run.params, block) * weight))
        new = kept.assigned(costs, label)
        own = costs[np.arange(len(costs)), new]
        cost, before = float(own.sum()), run.cost
        same = label is not None and np.array_equal(new, label)
        label, run.cost = new, cost
        run.trace.append(Record(len(run.trace) + 1, cost, len(centres)))
        filled = _fill_empty(label, own, len(centres), kept.n_known)
        if same and not filled:
            run.reason = NOTHING_CHANGED
        elif (
            not filled
            and before - cost <= stop.tolerance * abs(cost)
            and len(run.trace) > 1
            and stop.tolerance
        ):
            run.reason = TOLERANCE
        elif len(run.trace) >= stop.max_passes:
            run.reason = PASS_LIMIT
        else:
            rows_label = label[kept.chunklet].astype(np.int32)
            run.params = family.update(run.params, family.gather(run.params, block, rows_label))
    assert label is not None
    return _Ended(run, label)


def _fill_empty(label: Array, own: Array, k: int, n_known: int) -> bool:
    """Give every component without rows the dearest chunklet that is not alone in its own: nothing forbids that."""
    filled = False
    for empty in np.setdiff1d(np.arange(k), label):
        size = np.bincount(label, minlength=k)
        free = (size[label] > 1) & (own > 0) & (np.arange(len(label)) >= n_known)
        if not free.any():
            break
        dearest = int(np.where(free, own, -1.0).argmax())
        label[dearest], own[dearest], filled = empty, 0.0, True
    return filled


def _run_mixture(
    block: Block, family: Any, params: Any, kept: Constraints, stop: Stop, begun: Array
) -> _Ended:
    """EM, or classification EM, from parameters of a partition of the chunklets (`begun`) that keeps everything."""
    run, share = Run(family, params), begun
    if family.status(params) != OK:
        run.status, run.reason = family.status(params), DEGENERATE
    while not run.reason:
        new_share, cost = _memberships(family, run.params, block, kept, share)
        if not cost < run.cost:
            run.reason = NO_LOWER_COST if np.isfinite(run.cost) else DEGENERATE
            run.params = run.measured if run.measured is not None else run.params
            break
        gain, share = run.cost - cost, new_share
        run.cost, run.measured = cost, run.params
        run.trace.append(Record(len(run.trace) + 1, cost, len(family.centres(params))))
        of_rows = share[kept.chunklet]
        if of_rows.ndim == 1:
            of_rows = np.eye(len(family.centres(params)))[of_rows]
        new = family.update(run.params, family.gather(run.params, block, of_rows))
        if family.status(new) != OK or len(family.vacant(new)):
            run.status = family.status(new) if family.status(new) != OK else "component_vanished"
            run.reason = DEGENERATE
        elif gain <= stop.tolerance * abs(cost):
            run.reason = TOLERANCE
        elif len(run.trace) >= stop.max_passes:
            run.reason = PASS_LIMIT
        else:
            run.params = new
    return _Ended(run, share)


def _memberships(
    family: Any, params: Any, block: Block, kept: Constraints, before: Array
) -> tuple[Array, float]:
    """Of the chunklets (chunklets, K), or their components where the family is hard; and what that costs."""
    weight = block.weights
    scores = family.scores(params, block)
    many = np.bincount(kept.chunklet, minlength=kept.n_chunklets) > 1
    single = ~many[kept.chunklet]
    with np.errstate(invalid="ignore"):
        weighed = np.where(weight[:, None] > 0, scores * weight[:, None], 0.0)
    added = -kept.pinned(-kept.added(weighed))
    if family.hard:
        label = kept.assigned(-added, before)
        return label, float(-added[np.arange(len(label)), label].sum()) + family.penalty(params)
    alone = kept.chunklet[
        single
    ]  # a row by itself is weighed after the sum over components, as without constraints
    free = alone >= kept.n_known
    added[alone[free]] = scores[single][free]
    factor = np.ones(kept.n_chunklets)
    factor[alone[free]] = weight[single][free]
    share, cost = kernels.memberships(np.ascontiguousarray(added), False)
    return share, float(factor @ np.where(factor > 0, cost, 0.0)) + family.penalty(params)


def _finished(block: Block, best: _Ended, label: Array, runs: Sequence[Run]) -> Fit:
    """Components by size, larger first, ties by their first row; centres without rows are dropped."""
    family, run = best.run.family, best.run
    k = len(family.centres(run.params))
    rows, size = np.bincount(label, minlength=k), np.bincount(label, block.weights, k)
    first = np.full(k, block.n_rows)
    np.minimum.at(first, label, np.arange(len(label)))
    order = np.lexsort((first, -size))
    if not family.starts_from_partition:
        order = order[rows[order] > 0]
    rank = np.full(k, -1, dtype=np.int32)
    rank[order] = np.arange(len(order))
    return Fit(
        params=family.select(run.params, order),
        labels=rank[label],
        cost=run.cost,
        size=size[order],
        n_rows=block.n_rows,
        n_passes=len(run.trace),
        reason=run.reason,
        status=FEWER_DISTINCT_ROWS if len(order) < k else run.status,
        trace=tuple(run.trace),
        starts=start_records(runs),
    )

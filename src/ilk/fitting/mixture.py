"""From a family with spreads to a fit: starts on a sample, short runs, the best polished on all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, cast

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows, held
from ilk.families.base import KEEP_ALL, ExactPair, Family
from ilk.families.mixture import MixtureFamily
from ilk.fitting.fit import Fit, Labelled, LabelState, finish, told
from ilk.fitting.loop import COMPONENT_VANISHED, OK, Event, Run, Stop, run_starts
from ilk.fitting.partitions import Partitioner, start_names
from ilk.fitting.restarts import from_labels, given_params
from ilk.table.block import Array, Block

SEARCH_ROWS = 10_000  # starts are compared on a sample of so many rows
SEARCH_STOP = Stop(tolerance=1e-6, max_passes=500)
N_POLISHED = 2  # of the starts compared, so many run to the end
SAME_OPTIMUM = 1e-5  # relative difference of costs below which two starts ended in the same place
MORE_STARTS = ("k-log-k", "k-log-k whitened", "projection", "k-log-k")  # once more, other draws
MOST_ROUNDS = 3  # of these, while the best is seldom reached
SELDOM = 0.25  # of the starts; two at least
FAR_FROM_BEST = 1e-3  # of the cost: a start so much dearer on a sample would only cost passes over all rows


@dataclass(frozen=True)
class MixturePlan:
    """How a mixture is sought: which starts, and when the last run ends."""

    init: str = "auto"
    n_init: int | None = None
    stop: Stop = Stop(tolerance=1e-8, max_passes=1000)
    trim: float = 0.0
    further: Callable[[MemoryRows, Any, int, Partitioner], list[Any]] | None = (
        None  # starts beside the partitions
    )


def fit_mixture(
    rows: Rows,
    family: Family[Any],
    k: int,
    seed: int,
    plan: MixturePlan,
    *,
    init: Array | Sequence[Any] | None = None,
    callback: Callable[[Event], None] | None = None,
    partitions: Callable[[Block, int], Partitioner] = Partitioner,
) -> Fit:
    """The best fit over the plan's starts; `init` gives means (K, columns), a label per row, or parameters instead."""
    if init is not None:
        first = given_params(rows, family, init, k) if isinstance(init, np.ndarray) else list(init)
        runs = run_starts(
            rows, [family] * len(first), first, trim=plan.trim, stop=plan.stop, callback=callback
        )
        return finish_mixture(rows, best_run(runs), runs, trim=plan.trim)
    sample = held(rows, SEARCH_ROWS, seed)
    partitioner = partitions(sample.take(np.arange(sample.n_rows)), seed)
    names = start_names(plan.init, partitioner.mix, plan.n_init) if k > 1 else ("k-means",)
    labels = [partitioner.labels(name, k, number) for number, name in enumerate(names)]
    starts = [from_labels(sample, family, part, int(part.max()) + 1) for part in distinct(labels)]
    starts += [] if plan.further is None else plan.further(sample, family, k, partitioner)
    families = [family] * len(starts)
    found = run_starts(sample, families, starts, trim=plan.trim, stop=SEARCH_STOP, callback=callback)
    if plan.further is not None and k > 1 and sample.n_columns > 1:
        found += _until_often(sample, found, partitioner, k, plan)
    chosen = sorted(found, key=rank_of)[:N_POLISHED]
    if not chosen[0].usable:  # not one start is usable: report the commonest failure with what it reached
        return finish_mixture(rows, chosen[0], found, trim=plan.trim)
    far = inf if sample.n_rows == rows.n_rows else chosen[0].cost + FAR_FROM_BEST * abs(chosen[0].cost)
    chosen = [run for run in chosen if run.usable and run.cost <= far]
    polished = run_starts(
        rows,
        [family] * len(chosen),
        [run.params for run in chosen],
        trim=plan.trim,
        stop=plan.stop,
        callback=callback,
    )
    for before, after in zip(chosen, polished, strict=True):
        if before.status == COMPONENT_VANISHED and after.status == OK:
            after.status = COMPONENT_VANISHED
    if sample.n_rows == rows.n_rows:
        for before, after in zip(chosen, polished, strict=True):
            later = [replace(record, number=record.number + len(before.trace)) for record in after.trace]
            after.trace = before.trace + later
    return finish_mixture(rows, best_run(polished), found, trim=plan.trim)


def _until_often(
    sample: MemoryRows, found: Sequence[Run], partitioner: Partitioner, k: int, plan: MixturePlan
) -> list[Run]:
    """Runs from further starts, as long as few of all reach the best."""
    more: list[Run] = []
    for number in range(1, MOST_ROUNDS + 1):
        if not seldom_reached([run.cost for run in (*found, *more) if run.usable]):
            break
        family = found[0].family
        labels = [partitioner.labels(name, k, 10 * number + i) for i, name in enumerate(MORE_STARTS)]
        starts = [from_labels(sample, family, part, int(part.max()) + 1) for part in distinct(labels)]
        more += run_starts(sample, [family] * len(starts), starts, trim=plan.trim, stop=SEARCH_STOP)
    return more


def seldom_reached(costs: Sequence[float]) -> bool:
    """Whether few of several starts ended at the least cost: another may then end lower.

    >>> seldom_reached([1.0, 2.0, 3.0]), seldom_reached([1.0, 1.0, 3.0]), seldom_reached([1.0, 2.0])
    (True, False, False)
    """
    return len(costs) > 2 and reached_best(costs) < max(2.0, SELDOM * len(costs))


def reached_best(costs: Sequence[float]) -> int:
    """How many starts ended at the least cost."""
    least = min(costs, default=0.0)
    return sum(cost <= least + SAME_OPTIMUM * abs(least) for cost in costs)


def finish_mixture(rows: Rows, best: Run, runs: Sequence[Run], *, trim: float = 0.0) -> Fit:
    """The last pass over the rows, in which a mixture also tells how certain they are."""
    shared = best.family.shares_blocks and not trim
    return finish(rows, best, runs, trim=trim, visit=_visit_certain, shared=shared)


def _visit_certain(state: LabelState, block: Block) -> Labelled:
    family = cast(MixtureFamily[Any], state.family)
    ending = family.ending(state.params, block) if state.cut == KEEP_ALL else None
    if ending is not None:
        label, size, _, cost, log_certainty = ending
        found = block.first_row, label, np.empty(0), size, ExactPair(cost)
        return Labelled(*found, float(log_certainty[0]))
    label, row_cost, certainty = family.labelled(state.params, block)
    if block.weight is not None:
        certainty = certainty * block.weight
    if state.cut != KEEP_ALL:
        certainty = certainty * state.cut.kept(row_cost)
    return replace(told(state, block, label, row_cost), log_certainty=float(certainty.sum()))


def distinct(partitions: Sequence[Array]) -> list[Array]:
    """Partitions without those that an earlier one repeats."""
    kept: dict[bytes, Array] = {}
    for part in partitions:
        kept.setdefault(_by_first_row(part).tobytes(), part)
    return list(kept.values())


def _by_first_row(label: Array) -> Array:
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return np.asarray(rank[inverse], dtype=np.int32)


def rank_of(run: Run) -> tuple[bool, bool, float]:
    """Usable runs first, those that kept all components before the others, then by cost; the earlier start wins
    ties because sorting is stable."""
    return not run.usable, run.status == COMPONENT_VANISHED, run.cost


def best_run(runs: Sequence[Run]) -> Run:
    return min(runs, key=rank_of)

"""Short cut for runs of the assorted family over tables of one block: each run whole in one compiled call.

What a run means, and the order of its checks, is `fitting/loop.py`; from the same start both give the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ilk import kernels
from ilk.assorted.clusters import Clusters
from ilk.assorted.compiled_update import made_of, switches_of
from ilk.assorted.family import VANISHED, Assorted
from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.families.base import GrowingFamily
from ilk.families.centroid import coded
from ilk.fitting.deadline import Deadline
from ilk.fitting.loop import (
    INTERRUPTED,
    NO_LOWER_COST,
    NOTHING_CHANGED,
    PASS_LIMIT,
    TIME_LIMIT,
    TOLERANCE,
    Event,
    Kept,
    Record,
    Run,
    Stop,
    advance,
    as_kept,
    as_runs,
    run_starts,
)
from ilk.fitting.recall import recall
from ilk.table.block import Block, is_sparse

if kernels.COMPILED:
    from ilk.kernels.compiled import shared_run

LEG_SECONDS = 0.1  # how long a compiled call may keep an interrupt waiting
LEFT = "left to the loop"
REASONS = ("", NO_LOWER_COST, NOTHING_CHANGED, TOLERANCE, LEFT)


def run_all_starts(
    rows: Rows,
    families: Sequence[GrowingFamily[Any]],
    starts: Sequence[Any],
    *,
    stop: Stop,
    callback: Callable[[Event], None] | None = None,
) -> list[Run]:
    """`run_starts`, by compiled runs where they can be; the callback then hears of every run that ends."""
    compiled = all(family.updates_compiled for family in families)
    if not compiled or not isinstance(rows, MemoryRows) or rows.n_blocks != 1 or is_sparse(rows.codes):
        return run_starts(rows, families, starts, stop=stop, callback=callback)

    def work() -> Kept:
        return as_kept(
            _run_each(rows, [Run(*pair) for pair in zip(families, starts, strict=True)], stop, callback)
        )

    of = list(families)
    return as_runs(of, recall("shared runs", rows, (of, list(starts), stop), work))


def _run_each(
    rows: MemoryRows, runs: list[Run], stop: Stop, callback: Callable[[Event], None] | None
) -> list[Run]:
    block, clock = rows.block(0), Deadline.none()
    try:
        for ended, run in enumerate(runs, start=1):
            while not run.reason:
                _leg(rows, block, run, stop)
            if callback is not None:
                best = min(other.cost for other in runs)
                callback(Event(len(run.trace), len(runs) - ended, len(runs), best, clock.spent))
    except KeyboardInterrupt:
        if not any(run.trace for run in runs):
            raise
        for run in [run for run in runs if not run.reason] or runs[-1:]:  # somebody has to tell
            run.reason = INTERRUPTED
    return runs


def _leg(rows: MemoryRows, block: Block, run: Run, stop: Stop) -> None:
    """Passes of one run until it ends or a little time is over."""
    n_left = stop.max_passes - len(run.trace)
    if n_left <= 0 or stop.deadline.over:
        run.reason = PASS_LIMIT if n_left <= 0 else TIME_LIMIT
        return
    family = cast(Assorted, run.family)
    k, d = run.params.group.shape
    state, costs = _state(family, run), np.empty(n_left)
    number, n_passes, cost = shared_run(
        *coded(block),
        block.codes,
        block.weight,
        *family.columns.compiled,
        *switches_of(k, d, sharing=family.two_codes),
        np.array(family.constants(k)),
        family.hard,
        VANISHED,
        stop.tolerance,
        min(LEG_SECONDS, stop.deadline.left),
        run.cost,
        *state,
        costs,
    )
    run.trace += [
        Record(len(run.trace) + 1 + i, value, k) for i, value in enumerate(costs[:n_passes].tolist())
    ]
    if n_passes:
        run.params = _clusters(family, state, 0)
        if cost < run.cost:
            run.measured, run.cost = _clusters(family, state, 1), cost
        if REASONS[number] == NO_LOWER_COST:
            run.params = run.measured
    if REASONS[number] == LEFT:
        advance(rows, [run], len(run.trace) + 1, 0.0, stop)
    else:
        run.reason = REASONS[number]


State = tuple[Any, Any, Any, Any, Any]


def _state(family: Assorted, run: Run) -> State:
    """Parameters and measured parameters as arrays for the kernel to change; twice the same where the measured ones
    are none yet, or had clusters that are gone: the kernel then needs no more than their cost."""
    alike = run.measured is not None and len(run.measured) == len(run.params)
    pair: list[Clusters] = [run.params, run.measured if alike else run.params]
    return (
        np.array([params.group for params in pair], dtype=np.int64),
        np.array([(params.mixing, params.log_mixing) for params in pair]),
        np.array([(params.mean, params.variance, params.precision, params.log_norm) for params in pair]),
        np.array([params.log_level for params in pair]),
        np.array([family.terms(params) for params in pair], dtype=np.float64),
    )


def _clusters(family: Assorted, state: State, which: int) -> Clusters:
    group, mixing, numbers, log_level, terms = (part[which] for part in state)
    known = float(terms[0]), float(terms[1]), int(terms[2])
    return Clusters.of(family.columns, made_of(group, mixing, numbers, log_level, known))

"""Short cut for many runs on a small table: each run whole in one compiled call, several on as many threads.

What a run means, and the order of its checks, is `loop.py`; from the same start both give the same run. Searches
over structures and K make tens of thousands of passes over some thousand rows, where what Python does between
two kernels would take most of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from ilk import kernels
from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.families.base import Family
from ilk.families.covariance import Covariance
from ilk.families.gaussian import Gaussian, Mixture
from ilk.fitting.deadline import Deadline
from ilk.fitting.interrupt import heard
from ilk.fitting.loop import (
    DEGENERATE,
    INTERRUPTED,
    PASS_LIMIT,
    TIME_LIMIT,
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
from ilk.table.block import Array

if kernels.COMPILED:
    from ilk.kernels.compiled import mixture_run

QUICK_ROWS = 20_000  # beyond, a pass is long enough for the loop, and worth sharing among threads
QUICK_COLUMNS = 64  # beyond, LAPACK's eigenvectors are faster than rotations
OWN_AXES_COLUMNS = 40  # beyond, EEV and VEV take the loop: axes without any spread are chance there
LEG_SECONDS = 0.1  # how long a compiled call may keep an interrupt waiting


def run_quick(
    rows: Rows,
    families: Sequence[Family[Any]],
    starts: Sequence[Any],
    stop: Stop | None = None,
    *,
    callback: Callable[[Event], None] | None = None,
) -> list[Run]:
    """`run_starts` without trimming, by compiled runs for all the starts that can be; the others take the loop.

    The callback hears of every run that ends, not of every pass.
    """
    stop = stop or Stop()
    whole = [_quick_rows(rows) and _quick_start(*pair) for pair in zip(families, starts, strict=True)]
    runs: dict[int, Run] = {}
    slow = [number for number, quick in enumerate(whole) if not quick]
    if slow:
        through = [families[number] for number in slow], [starts[number] for number in slow]
        runs.update(zip(slow, run_starts(rows, *through, stop=stop, callback=callback), strict=True))
    if quick := [number for number, is_quick in enumerate(whole) if is_quick]:
        through = [families[number] for number in quick], [starts[number] for number in quick]
        runs.update(zip(quick, _run_compiled(rows, *through, stop, callback), strict=True))
    return [runs[number] for number in range(len(whole))]


def _run_compiled(
    rows: Rows,
    families: list[Family[Any]],
    starts: list[Any],
    stop: Stop,
    callback: Callable[[Event], None] | None,
) -> list[Run]:
    def work() -> Kept:
        runs = [Run(*pair) for pair in zip(families, starts, strict=True)]
        _run_all(_SharedTable.of(rows, stop), runs, callback)
        return as_kept(runs)

    return as_runs(families, recall("compiled runs", rows, (families, starts, stop), work))


def _quick_rows(rows: Rows) -> bool:
    return (
        kernels.COMPILED
        and isinstance(rows, MemoryRows)
        and rows.complete
        and 0 < rows.n_rows <= QUICK_ROWS
        and 0 < rows.n_columns <= QUICK_COLUMNS
    )


def _quick_start(family: Family[Any], params: Any) -> bool:
    """Whether a run can be compiled: plain Gaussians, parameters that an update has made and found good."""
    return (
        family.runs_compiled
        and params.status == "ok"
        and not (
            params.mean.shape[1] > OWN_AXES_COLUMNS
            and _letters(cast(Gaussian, family), params) in ("EEV", "VEV")
        )
        and bool(np.isfinite(params.covariance.log_variance).all())
        and _axes_shape(_letters(cast(Gaussian, family), params), params) == np.shape(params.covariance.axes)
    )


def _letters(family: Gaussian, params: Mixture) -> str:
    """Three letters, also for the structures of one column."""
    return family.structure.for_columns(params.mean.shape[1]).name.ljust(3, "I")


def _axes_shape(letters: str, params: Mixture) -> tuple[int, ...]:
    k, d = params.mean.shape
    return {"I": (), "E": (d, d), "V": (k, d, d)}[letters[2]]


@dataclass(kw_only=True)
class _SharedTable:
    """What all runs share."""

    rows: MemoryRows
    numbers: Array
    weight: Array | None
    stop: Stop
    clock: Deadline
    interrupted: bool = field(default=False)

    @classmethod
    def of(cls, rows: Rows, stop: Stop) -> _SharedTable:
        assert isinstance(rows, MemoryRows)
        block = rows.take(np.arange(rows.n_rows))
        numbers = np.ascontiguousarray(block.numbers, dtype=np.float64)
        return cls(rows=rows, numbers=numbers, weight=block.weight, stop=stop, clock=Deadline.none())


def _run_all(table: _SharedTable, runs: list[Run], callback: Callable[[Event], None] | None) -> None:
    """All runs on the table's threads; an interrupt ends them at their next leg."""

    def work(run: Run) -> Run:
        _run_one(table, run)
        return run

    ended = 0
    try:
        for run in table.rows.map(work, runs):
            ended += 1
            if callback is not None:
                best = min(other.cost for other in runs)
                callback(Event(len(run.trace), len(runs) - ended, len(runs), best, table.clock.spent))
    except KeyboardInterrupt:
        table.interrupted = True
        for _ in table.rows.map(work, runs):  # threads on their way stop by themselves; nothing new begins
            pass
        if not any(run.trace for run in runs):
            raise


def _run_one(table: _SharedTable, run: Run) -> None:
    while not run.reason:
        if table.interrupted:
            run.reason = INTERRUPTED
        elif len(run.trace) >= table.stop.max_passes:
            run.reason = PASS_LIMIT
        elif table.stop.deadline.over:
            run.reason = INTERRUPTED if heard() else TIME_LIMIT
        elif run.reopened:  # the loop knows when a cost may rise
            advance(table.rows, [run], len(run.trace) + 1, 0.0, table.stop)
        else:
            _run_leg(table, run)


def _run_leg(table: _SharedTable, run: Run) -> None:
    """Passes of one run until it ends or a little time is over."""
    family, params, stop = cast(Gaussian, run.family), run.params, table.stop
    letters = _letters(family, params)
    state = _state_of(run)
    costs, reason, status, cost = mixture_run(
        table.numbers,
        table.weight,
        letters,
        state,
        run.cost,
        family.column_variances,
        family.hard,
        family.equal_mixing,
        stop.tolerance,
        stop.max_passes - len(run.trace),
        min(LEG_SECONDS, stop.deadline.left),
    )
    k = len(params.mean)
    run.trace += [Record(len(run.trace) + 1 + i, cost_then, k) for i, cost_then in enumerate(costs)]
    if cost < run.cost:
        run.measured, run.cost = _mixture(letters, state, 1), cost
    run.params = _mixture(letters, state, 0)
    if reason == "vacant":
        advance(table.rows, [run], len(run.trace) + 1, 0.0, stop)
    else:
        run.reason = reason
        if reason == DEGENERATE:
            run.status = status


def _state_of(run: Run) -> tuple[Array, Array, Array, Array]:
    """Parameters and measured parameters, twice the same before the first pass."""

    def both(get: Callable[[Mixture], Array | None]) -> Array:
        now, measured = get(run.params), get(run.measured or run.params)
        return np.empty((2, 0)) if now is None else np.array([now, measured], dtype=np.float64)

    return (
        both(lambda mixture: mixture.mixing),
        both(lambda mixture: mixture.mean),
        both(lambda mixture: mixture.covariance.log_variance),
        both(lambda mixture: mixture.covariance.axes),
    )


def _mixture(letters: str, state: tuple[Array, Array, Array, Array], which: int) -> Mixture:
    mixing, mean, log_variance, axes = (part[which] for part in state)
    return Mixture(mixing, mean, Covariance(log_variance, None if letters[2] == "I" else axes))

"""The law: look at each block of rows, gather weighted sums, add them, update the parameters, repeat.

All starts advance together: one pass over the rows serves every start that has not ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum, auto
from functools import partial
from math import inf
from typing import Any

import numpy as np

from ilk.engines.base import Rows
from ilk.families.base import KEEP_ALL, Family, Partial, Trim
from ilk.fitting.deadline import Deadline
from ilk.fitting.interrupt import heard
from ilk.fitting.on_device import device_steps, on_device
from ilk.fitting.recall import under_way
from ilk.fitting.trim import find_cuts
from ilk.store.journal import Piece
from ilk.table.block import Array, Block
from ilk.table.content import content_keys

# Reasons for the end of a run; `CONVERGED` names those that are an answer.
NOTHING_CHANGED = "nothing changed"
TOLERANCE = "tolerance"
NO_LOWER_COST = "no lower cost"
PASS_LIMIT = "pass limit"
TIME_LIMIT = "time limit"
INTERRUPTED = "interrupted"
PROVEN = "proven optimum"
DEGENERATE = "degenerate"
CONVERGED = frozenset({NOTHING_CHANGED, TOLERANCE, NO_LOWER_COST, PROVEN})

ROUNDING = 1e-12  # of a cost: reopening components is in vain where it lowers it by no more

# Status of a run, machine-readable.
OK = "ok"
FEWER_DISTINCT_ROWS = "fewer_distinct_rows"
COMPONENT_VANISHED = "component_vanished"
NO_COST = "singular"  # a row that no component can hold: one of them has no spread


@dataclass(frozen=True)
class Stop:
    """When a run ends, besides when nothing changes: relative fall of the cost, passes, time."""

    tolerance: float = 0.0
    max_passes: int = 300
    deadline: Deadline = field(default_factory=Deadline.none, compare=False)


@dataclass(frozen=True)
class Record:
    """One pass of one run: the cost under the parameters it began with, and how many of its components were
    reopened before it: only then may the cost have risen, or where there are fewer components than before."""

    number: int
    cost: float
    n_components: int
    n_reopened: int = 0


@dataclass(frozen=True)
class Event:
    """What the `callback` of an estimator is told after each pass.

    Attributes
    ----------
    pass_number : int
        Number of the pass, from 1.
    n_running : int
        Starts that still run.
    n_starts : int
        Starts in all.
    best_cost : float
        Lowest cost so far.
    seconds : float
        Time since the fit began.

    See Also
    --------
    Progress : What the callback of `cluster` and `select` is told.

    Examples
    --------
    >>> import ilk
    >>> events = []
    >>> model = ilk.KMeans(2, random_state=0, init="random", callback=events.append).fit([[0.0, 0], [1, 0], [9, 1]])
    >>> events[0].pass_number
    1
    """

    pass_number: int
    n_running: int
    n_starts: int
    best_cost: float
    seconds: float


@dataclass
class Run:
    """One start on its way. Plain data once it has ended."""

    family: Family[Any]
    params: Any
    _: KW_ONLY
    measured: Any = None  # the last parameters whose cost is known, and that cost
    cost: float = inf
    reason: str = ""
    status: str = OK
    trace: list[Record] = field(default_factory=list)
    reopened: list[int] = field(default_factory=list)  # rows where components of `params` were just reopened
    in_vain: list[int] = field(default_factory=list)  # rows where that did not lower the cost

    @property
    def usable(self) -> bool:
        """Whether its parameters are an answer, perhaps with fewer components than asked for."""
        return self.reason != DEGENERATE


OF_RUN = ("params", "measured", "cost", "reason", "status", "trace", "reopened", "in_vain")


@dataclass(frozen=True)
class _Pass:
    """All that a visit needs to know: one entry per running start."""

    families: Sequence[Family[Any]]
    params: Sequence[Any]
    cuts: Sequence[Trim]


class _Partials(list[Partial]):
    """Partials of all running starts; adding is start by start."""

    def __add__(self, other: list[Partial]) -> _Partials:  # type: ignore[override]
        return _Partials(mine + theirs for mine, theirs in zip(self, other, strict=True))

    def __iadd__(self, other: list[Partial]) -> _Partials:  # type: ignore[override]
        for number, theirs in enumerate(other):
            self[number] += theirs
        return self


def _visit(state: _Pass, block: Block) -> _Partials:
    steps = zip(state.families, state.params, state.cuts, strict=True)
    return _Partials(family.step(params, block, cut) for family, params, cut in steps)


def run_starts(
    rows: Rows,
    families: Sequence[Family[Any]],
    starts: Sequence[Any],
    *,
    trim: float = 0.0,
    stop: Stop | None = None,
    callback: Callable[[Event], None] | None = None,
) -> list[Run]:
    """Advance every start until it ends; an interrupt ends them all with what they have reached.

    `families` holds one for each start: several structures and several K may share the passes.
    """
    stop, of = stop or Stop(), list(families)

    def work(piece: Piece) -> Kept:
        before: Kept = piece.reached() or ([(params, None, inf, "", OK, [], [], []) for params in starts], 0)
        runs = as_runs(of, before)
        return as_kept(_run_on(_Loop(rows, runs, trim, stop, piece), before[1], callback))

    return as_runs(of, under_way("runs", rows, (of, list(starts), trim, stop), work))


Kept = tuple[list[tuple[Any, ...]], int]
"""Runs without their families, and how many passes they had: what a checkpoint keeps of them."""


def as_kept(runs: Sequence[Run], number: int = 0) -> Kept:
    """Runs as a checkpoint keeps them."""
    return [tuple(getattr(run, name) for name in OF_RUN) for run in runs], number


def as_runs(families: Sequence[Family[Any]], kept: Kept) -> list[Run]:
    """The runs again."""
    made = zip(families, kept[0], strict=True)
    return [
        Run(family, values[0], **dict(zip(OF_RUN[1:], values[1:], strict=True))) for family, values in made
    ]


@dataclass(frozen=True)
class _Loop:
    """What the passes of some starts have to do with."""

    rows: Rows
    runs: list[Run]
    trim: float
    stop: Stop
    piece: Piece


def _run_on(loop: _Loop, number: int, callback: Callable[[Event], None] | None) -> list[Run]:
    """Passes until every run has ended; `number` of them are done."""
    runs, stop, clock = loop.runs, loop.stop, Deadline.none()
    try:
        while running := [run for run in runs if not run.reason]:
            if number == stop.max_passes:
                _end(running, PASS_LIMIT)
            elif stop.deadline.over:
                _end(running, INTERRUPTED if heard() else TIME_LIMIT)
            else:
                number += 1
                advance(loop.rows, running, number, loop.trim, stop)
                loop.piece.note(partial(as_kept, runs, number))
                if callback is not None:
                    best = min(run.cost for run in runs)
                    n_running = sum(not run.reason for run in runs)
                    callback(Event(number, n_running, len(runs), best, clock.spent))
    except KeyboardInterrupt:
        if not any(run.trace for run in runs):
            raise
        _end([run for run in runs if not run.reason], INTERRUPTED)
    return runs


def _end(runs: Sequence[Run], reason: str) -> None:
    for run in runs:
        run.reason = reason


def walked_block(rows: Rows, family: Family[Any], alone: bool) -> Block | None:
    """All rows as one block, where the kernels of the family walk it: on a device for every start; in memory for one
    that is alone, since a block is in the cache for all starts."""
    there = on_device(rows, family)
    return rows.whole if there is None and family.shares_blocks and alone else there


def _gathered(rows: Rows, state: _Pass) -> _Partials:
    """What one pass tells all starts."""
    if rows.resident is not None:
        return _Partials(device_steps(rows, state.families, state.params, state.cuts))
    whole = walked_block(rows, state.families[0], len(state.families) == 1)
    return rows.reduce(_visit, state) if whole is None else _visit(state, whole)


def advance(rows: Rows, runs: Sequence[Run], number: int, trim: float, stop: Stop) -> None:
    """One update of every running start; parameters change only once the whole update is known."""
    families = [run.family for run in runs]
    after = [run.params for run in runs]
    cuts = find_cuts(rows, families, after, 1.0 - trim) if trim else [KEEP_ALL] * len(runs)
    for _ in range(families[0].n_phases):
        partials = _gathered(rows, _Pass(families, after, cuts))
        updates = zip(families, after, partials, strict=True)
        after = [family.update(old, gathered.sums) for family, old, gathered in updates]
    for run, cut, new, gathered in zip(runs, cuts, after, partials, strict=True):
        cost = float(gathered.cost.value) + run.family.penalty(run.params)
        n_components = len(run.family.centres(run.params))
        run.trace.append(Record(number, cost, n_components, len(run.reopened)))
        _settle(rows, run, new, cost, cut, stop)


class _Outcome(Enum):
    """What an update came to: six ends and turns of a run, in the order they are looked for, or a lower cost.

    `cost` is that of the parameters before the update, which its pass has measured.
    """

    NO_COST = auto()  # no cost at all, and nothing that stood before: degenerate
    NOT_LOWER = auto()  # the update before gained nothing but rounding: what stood before it stands
    NO_UPDATE = auto()  # the new parameters are none: degenerate, the last good ones are kept for inspection
    VACANT = auto()  # components without rows: they move, and the run goes on; or they are dropped
    SAME = auto()  # nothing changed
    LITTLE = auto()  # the cost fell by no more than the tolerance
    LOWER = auto()  # the run goes on


def _outcome(run: Run, new: Any, cost: float, tolerance: float) -> _Outcome:
    family, moved = run.family, run.reopened and run.family.starts_from_partition
    if not moved:  # with components where there were others the cost may rise
        if run.measured is None and cost == inf:
            return _Outcome.NO_COST
        if cost >= run.cost:
            return _Outcome.NOT_LOWER
    if family.status(new) != OK:
        return _Outcome.NO_UPDATE
    if len(family.vacant(new)):
        return _Outcome.VACANT
    if family.same(run.params, new):
        return _Outcome.SAME
    comparable = not (moved and _in_vain(run, cost))
    return _Outcome.LITTLE if comparable and run.cost - cost <= tolerance * abs(cost) else _Outcome.LOWER


def _in_vain(run: Run, cost: float) -> bool:
    """Whether moving components has not lowered the cost."""
    return cost >= run.cost - ROUNDING * abs(run.cost)


def _settle(rows: Rows, run: Run, new: Any, cost: float, cut: Trim, stop: Stop) -> None:
    """What follows for a run from the outcome of its update."""
    family, outcome = run.family, _outcome(run, new, cost, stop.tolerance)
    if run.reopened and family.starts_from_partition and _in_vain(run, cost):
        run.in_vain += run.reopened
    if outcome not in (_Outcome.NO_COST, _Outcome.NOT_LOWER):
        run.cost, run.measured = cost, run.params
    match outcome:
        case _Outcome.NO_COST:
            run.status, run.reason = NO_COST if family.status(new) == OK else family.status(new), DEGENERATE
        case _Outcome.NOT_LOWER:
            run.params, run.reason = run.measured, NO_LOWER_COST
        case _Outcome.NO_UPDATE:
            run.status, run.reason = family.status(new), DEGENERATE
        case _Outcome.VACANT | _Outcome.SAME | _Outcome.LITTLE | _Outcome.LOWER:
            run.reopened = []
            run.params = fill_vacant(rows, run, new, cut)  # `new` itself where none is vacant
            run.reason = run.reason or _REASONS.get(outcome, "")


_REASONS = {_Outcome.SAME: NOTHING_CHANGED, _Outcome.LITTLE: TOLERANCE}


TIE_DIGITS = 2.0**30  # costs that agree in so many bits are a tie: sums in another order round differently


def fill_vacant(rows: Rows, run: Run, params: Any, cut: Trim) -> Any:
    """Components without rows, or with too few, move to the dearest rows.

    They are dropped where no row has a cost, and after as many rises of the cost by reopening as there are
    components: rows where it was in vain are not tried again. Without spreads reopening never raises the cost.
    """
    family = run.family
    vacant = family.vacant(params)
    if not len(vacant):
        return params
    occupied = np.setdiff1d(np.arange(len(family.centres(params))), vacant)
    least = -inf if family.starts_from_partition else 0.0  # where a cost is no distance, any row is dear
    n_wanted = 4 * len(vacant) + len(run.in_vain)
    far = rows.reduce(_visit_far, _FarSearch(family, params, cut, n_wanted, least))
    row = far.row[~np.isin(far.row, run.in_vain)]
    spent = not len(row) or len(run.in_vain) >= len(family.centres(params))
    if spent and not len(occupied):  # no component has rows, and none would get some
        run.status, run.reason = NO_COST, DEGENERATE
        return run.measured
    if not len(far.row):
        run.status, run.reason = FEWER_DISTINCT_ROWS, NOTHING_CHANGED
        return family.select(params, occupied)
    if spent:
        run.status = COMPONENT_VANISHED
        run.cost, run.measured = inf, None  # costs of other numbers of components
        return family.select(params, occupied)
    points = rows.take(row).numbers
    _, first = np.unique(points, axis=0, return_index=True)
    first = np.sort(first)[: len(vacant)]
    run.reopened = row[first].tolist()
    return family.move(params, vacant[: len(first)], points[first])


@dataclass(frozen=True)
class _FarSearch:
    family: Family[Any]
    params: Any
    cut: Trim
    n_wanted: int
    least: float  # cost, above which a row is dear


@dataclass(frozen=True)
class Far:
    """The dearest rows, dearest first, ties by what they say."""

    cost: Array
    row: Array
    key: Array  # of content
    n_wanted: int

    def __add__(self, other: Far) -> Far:
        cost, row = np.append(self.cost, other.cost), np.append(self.row, other.row)
        return Far.of(cost, row, np.append(self.key, other.key), self.n_wanted)

    @classmethod
    def of(cls, cost: Array, row: Array, key: Array, n_wanted: int) -> Far:
        order = np.lexsort((row, key, -cost))[:n_wanted]
        return cls(cost[order], row[order], key[order], n_wanted)


def _visit_far(state: _FarSearch, block: Block) -> Far:
    _, cost = state.family.assign(state.params, block)
    counts = (cost > state.least) & (block.weights > 0) & (state.cut.kept(cost) > 0)
    digits, power = np.frexp(cost)
    cost = np.ldexp(np.round(digits * TIE_DIGITS), power) / TIE_DIGITS
    row = np.flatnonzero(counts)
    if len(row) > state.n_wanted:  # those that are as dear as the last one wanted, or dearer
        row = row[cost[row] >= -np.partition(-cost[row], state.n_wanted - 1)[state.n_wanted - 1]]
    codes = None if block.codes is None else block.codes[row]
    key = content_keys(replace(block, raw=block.raw[row], codes=codes), 0)
    return Far.of(cost[row], row + block.first_row, key, state.n_wanted)

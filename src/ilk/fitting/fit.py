"""A finished fit: the best of the starts, its labels in canonical order, and how each start ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ilk import kernels
from ilk.engines.base import Rows
from ilk.families.base import KEEP_ALL, ExactPair, Family, Trim
from ilk.fitting.loop import CONVERGED, Event, Record, Run, Stop, run_starts, walked_block
from ilk.fitting.size_order import by_size
from ilk.fitting.trim import find_cuts
from ilk.table.block import BLOCK_ROWS, Array, Block
from ilk.table.weights import in_unit


@dataclass(frozen=True)
class StartRecord:
    """How one start ended."""

    cost: float
    n_passes: int
    reason: str
    status: str


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A finished fit, as the attribute `fit_` of an estimator and as `Search.fit`: plain data.

    Components are numbered by size, the largest first, ties by their least row.

    Attributes
    ----------
    params : object
        Parameters of the components, in conditioned units.
    labels : int array of shape (n_rows,)
        Component of each row.
    cost : float
        What was minimised, in conditioned units.
    size : array of shape (n_components,)
        Sum of the weights of the rows of each component.
    n_rows : int
        Number of rows.
    n_passes : int
        Passes of the start that won.
    reason : str
        Why it ended, such as "nothing changed" or "pass limit".
    status : str
        "ok", or what is wrong with it.
    trace : tuple of Record
        Cost and number of components of each pass.
    starts : tuple of StartRecord
        Cost, passes, reason and status of each start.
    cut : Cut
        The cost beyond which rows were trimmed.
    row_cost : None or array of shape (n_rows,)
        Cost of each row, where rows were trimmed.
    log_certainty : float
        Of a mixture: the sum over rows of the log of the largest membership.
    converged : bool
        Whether it ended by itself, and not at a limit.

    See Also
    --------
    KMeans : One of the estimators that keep it.

    Examples
    --------
    >>> import ilk
    >>> fit = ilk.KMeans(2, random_state=0).fit([[0.0, 0], [1, 0], [9, 1]]).fit_
    >>> fit.converged, fit.size.tolist()
    (True, [2.0, 1.0])
    """

    params: Any
    labels: Array
    cost: float
    size: Array  # weight of the rows of each component
    n_rows: int
    n_passes: int
    reason: str
    status: str
    trace: tuple[Record, ...]
    starts: tuple[StartRecord, ...]
    cut: Trim = KEEP_ALL
    row_cost: Array | None = None
    log_certainty: float = 0.0  # of a mixture: sum over the kept rows of the log of the largest membership

    @property
    def converged(self) -> bool:
        """Whether it ended by itself, and not at a limit."""
        return self.reason in CONVERGED

    def in_unit(self, unit: float) -> Fit:
        """Return the same fit in the unit that the weights had before they were divided.

        Parameters
        ----------
        unit : float
            What they were divided by.

        Returns
        -------
        Fit
            The fit with its sums in that unit.
        """
        if unit == 1:
            return self
        return replace(
            self,
            cost=in_unit(self.cost, unit),
            size=in_unit(self.size, unit),
            trace=tuple(replace(record, cost=in_unit(record.cost, unit)) for record in self.trace),
            starts=tuple(replace(start, cost=in_unit(start.cost, unit)) for start in self.starts),
            log_certainty=in_unit(self.log_certainty, unit),
        )


def start_records(runs: Sequence[Run]) -> tuple[StartRecord, ...]:
    return tuple(StartRecord(run.cost, len(run.trace), run.reason, run.status) for run in runs)


def fit(
    rows: Rows,
    family: Family[Any],
    starts: Sequence[Any],
    *,
    trim: float = 0.0,
    stop: Stop | None = None,
    callback: Callable[[Event], None] | None = None,
) -> Fit:
    """Run all starts, keep the one of least cost (the first among equals) and label the rows by it."""
    runs = run_starts(rows, [family] * len(starts), starts, trim=trim, stop=stop, callback=callback)
    best = min(runs, key=lambda run: (not run.usable, run.cost))
    return finish(rows, best, runs, trim=trim)


@dataclass(frozen=True)
class LabelState:
    """What the last pass needs to know."""

    family: Family[Any]
    params: Any
    cut: Trim
    tells_costs: bool  # of single rows


@dataclass(frozen=True)
class Labelled:
    """What the last pass tells of one block."""

    first: int
    label: Array
    row_cost: Array
    size: Array
    cost: ExactPair
    log_certainty: float = 0.0


def labelled(state: LabelState, block: Block) -> Labelled:
    """The last pass over a block, with what every family has."""
    return told(state, block, *state.family.assign(state.params, block))


def told(state: LabelState, block: Block, label: Array, row_cost: Array) -> Labelled:
    """What labels and costs add up to."""
    n_components = len(state.family.centres(state.params))
    cut = state.cut
    size, _, cost = kernels.tally(label, row_cost, block.weight, n_components, cut.limit, cut.share)
    kept = row_cost if state.tells_costs else row_cost[:0]
    return Labelled(block.first_row, label, kept, size, ExactPair(cost))


def finish(
    rows: Rows,
    best: Run,
    runs: Sequence[Run],
    *,
    trim: float = 0.0,
    visit: Callable[[LabelState, Block], Labelled] = labelled,
    shared: bool = False,
) -> Fit:
    """One last pass under the best parameters: labels, cost, canonical order; `visit` may be `shared` by threads."""
    family = best.family
    cut = find_cuts(rows, [family], [best.params], 1.0 - trim)[0] if trim else KEEP_ALL
    n_components = len(family.centres(best.params))
    labels, row_cost = np.empty(rows.n_rows, np.int32), np.empty(rows.n_rows if trim else 0)
    size, cost, log_certainty = np.zeros(n_components), ExactPair(np.zeros(2)), 0.0
    state = LabelState(family, best.params, cut, bool(trim))
    whole = (rows.whole if shared else None) or walked_block(rows, family, False)
    for part in rows.scan(visit, state) if whole is None else [visit(state, whole)]:
        here = slice(part.first, part.first + len(part.label))
        labels[here] = part.label
        if trim:
            row_cost[here] = part.row_cost
        size += part.size
        cost = cost + part.cost
        log_certainty += part.log_certainty
    order = by_size(rows, labels, size)
    rank = np.full(n_components + 1, -1, dtype=np.int32)  # the last stands for -1, noise
    rank[order] = np.arange(n_components, dtype=np.int32)
    for first in range(0, rows.n_rows, BLOCK_ROWS):  # block by block, so that no index of all rows is made
        labels[first : first + BLOCK_ROWS] = rank.take(labels[first : first + BLOCK_ROWS], mode="wrap")
    return Fit(
        params=family.select(best.params, order),
        labels=labels,
        cost=float(cost.value),
        size=size[order],
        n_rows=rows.n_rows,
        n_passes=len(best.trace),
        reason=best.reason,
        status=best.status,
        trace=tuple(best.trace),
        starts=start_records(runs),
        cut=cut,
        row_cost=row_cost if trim else None,
        log_certainty=log_certainty,
    )


def label_counts(labels: Array, k: int) -> Array:
    """Rows of each of K labels; block by block, so that no index of all rows is made."""
    counts = np.zeros(k, dtype=np.int64)
    for first in range(0, len(labels), BLOCK_ROWS):
        block = labels[first : first + BLOCK_ROWS]
        counts += np.bincount(block[block >= 0], minlength=k)
    return counts

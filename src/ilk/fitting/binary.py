"""BinaryDPMeans from one component to the end: passes until nothing changes, then moves that lower the cost.

Moves are births (of the dearest rows), splits (by the column that gains most; by two rows far apart) and merges (of
the pairs that lose least). All moves of a round run as starts of one loop, so they share their passes, and the one
that ends lowest is taken if it lowers the cost. All that moves need are sums over blocks. Nothing is random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log

import numpy as np

from ilk.engines.base import Rows
from ilk.families.base import ExactPair
from ilk.families.bernoulli import Bernoulli, ones_of
from ilk.families.centroid import Centroids
from ilk.families.opening import Dear
from ilk.fitting.fit import Fit, finish
from ilk.fitting.loop import CONVERGED, INTERRUPTED, Event, Record, Run, Stop, run_starts
from ilk.fitting.trim import find_cuts
from ilk.table.block import Array, Block

BIRTH_SHARES = (0.02, 0.1, 0.3)  # of the rows, the dearest
MOST_SPLITS = 5  # of each kind, and the three cheapest merges
MOST_MERGES = 3
MOST_PIVOTS = 64  # columns tried for a split of a component: those most evenly divided
TRIAL_PASSES = 20
TRIAL_SHARE = 0.01
LEAST_FALL = 1e-9  # of the cost, below which a move is rounding


def default_open_cost(n_rows: float, n_columns: int) -> float:
    """N log 2 + (columns + 1)/2 log N: what two groups must gain over one before they say more than chance.

    The first term names the group of every row, one bit each; hard groups of pure noise gain about N/pi of their own
    labels and would open without end if labels were free. The second is the BIC of a group's means and share.
    """
    return n_rows * log(2) + (n_columns + 1) / 2 * log(max(n_rows, 1.0))


def pooled_shares(rows: Rows) -> tuple[Array, float]:
    """Share of ones per column, kept half a row off 0 and 1, and the weight of all rows."""
    total = rows.reduce(_visit_pooled, None)
    ones, zeros = total.ones.value[0], total.zeros.value[0]
    seen, n_rows = ones + zeros, float(total.weight.value[0, 0])
    share = np.divide(ones, seen, out=np.full(len(ones), 0.5), where=seen > 0)
    edge = min(0.5, 1 / (2 * n_rows))
    return np.clip(share, edge, 1 - edge), n_rows


@dataclass(frozen=True)
class _Counts:
    """Ones and zeros of each group (groups, columns) and the weight of its rows."""

    ones: ExactPair
    zeros: ExactPair
    weight: ExactPair

    def __add__(self, other: _Counts) -> _Counts:
        return _Counts(self.ones + other.ones, self.zeros + other.zeros, self.weight + other.weight)

    @classmethod
    def of(cls, family: Bernoulli, block: Block, label: Array, n_groups: int) -> _Counts:
        return cls(**family.counts(block, block.weights, label, n_groups))


def _visit_pooled(state: None, block: Block) -> _Counts:
    everyone = np.zeros(block.n_rows, dtype=np.int32)
    return _Counts.of(Bernoulli(np.full(block.n_columns, 0.5)), block, everyone, 1)


def fit_binary(
    rows: Rows, family: Bernoulli, stop: Stop, callback: Callable[[Event], None] | None = None
) -> Fit:
    """One component, passes, moves; ends when no move lowers the cost."""
    start = Centroids(family.pooled[None], np.ones(1))
    best = run_starts(rows, [family], [start], stop=stop, callback=callback)[0]
    trace, n_passes, reason = list(best.trace), len(best.trace), best.reason
    while reason in CONVERGED:
        moves = list(proposals(rows, family, best.params))
        runs = run_starts(rows, [family] * len(moves), moves, stop=_trial(family, best), callback=callback)
        lowest = min(runs, key=lambda run: run.cost)
        found = run_starts(rows, [family], [lowest.params], stop=stop, callback=callback)[0]
        n_passes += max(len(run.trace) for run in runs) + len(found.trace)
        interrupted = any(run.reason == INTERRUPTED for run in (*runs, found))
        if found.cost < best.cost - LEAST_FALL * abs(best.cost):
            best, reason = found, found.reason
            trace.append(Record(n_passes, best.cost, len(best.params.centre)))
        elif not interrupted:
            break
        if interrupted:
            reason = INTERRUPTED
    run = Run(
        family,
        best.params,
        measured=best.params,
        cost=best.cost,
        reason=reason,
        status=best.status,
        trace=trace,
    )
    return finish(rows, run, [run])


def _trial(family: Bernoulli, run: Run) -> Stop:
    """Moves are compared once a pass gains them little of what is at stake, an open cost."""
    return Stop(TRIAL_SHARE * family.open_cost / max(abs(run.cost), 1.0), TRIAL_PASSES)


def proposals(rows: Rows, family: Bernoulli, params: Centroids) -> Iterator[Centroids]:
    """The parameters that every move of a round starts from."""
    seen = rows.reduce(_visit_round, _SplitRound(family, params, _pivots(params)))
    yield from _merges(family, seen.counts)
    yield from _splits_by_column(family, seen)
    yield from _splits_by_rows(rows, family, params, seen)
    yield from _births(rows, family, params, seen)


# --- what a round looks at


def _pivots(params: Centroids) -> Array:
    """Per component the columns (K, at most 64) that divide it most evenly."""
    uneven = np.abs(params.centre - 0.5)
    return np.argsort(uneven, axis=1, kind="stable")[:, :MOST_PIVOTS]


@dataclass(frozen=True)
class _SplitRound:
    family: Bernoulli
    params: Centroids
    pivots: Array


@dataclass(frozen=True)
class _SplitFacts:
    """Counts of each component, those of its rows with a one in each pivot column, and its dearest row."""

    counts: _Counts
    halves: _Counts  # groups are component * pivots + pivot
    dearest: Dear

    def __add__(self, other: _SplitFacts) -> _SplitFacts:
        return _SplitFacts(
            self.counts + other.counts, self.halves + other.halves, self.dearest + other.dearest
        )


def _visit_round(state: _SplitRound, block: Block) -> _SplitFacts:
    family, params, pivots = state.family, state.params, state.pivots
    label, cost = family.assign(params, block)
    ones = ones_of(block)
    zeros = (block.numbers == 0).astype(np.float64)
    n_components, n_pivots = pivots.shape
    shape = (n_components * n_pivots, block.n_columns)
    parts = np.zeros((2, *shape, 2))
    weight = np.zeros((shape[0], 1, 2))
    for k in range(n_components):
        mine = label == k
        chosen = ones[mine][:, pivots[k]].T * block.weights[mine]
        here = slice(k * n_pivots, (k + 1) * n_pivots)
        parts[0, here, :, 0], parts[1, here, :, 0] = chosen @ ones[mine], chosen @ zeros[mine]
        weight[here, 0, 0] = chosen.sum(axis=1)
    halves = _Counts(ExactPair(parts[0]), ExactPair(parts[1]), ExactPair(weight))
    return _SplitFacts(_Counts.of(family, block, label, n_components), halves, _dearest(block, label, cost))


def _dearest(block: Block, label: Array, cost: Array) -> Dear:
    counts = np.flatnonzero(block.weights > 0)
    return Dear.of(label[counts], cost[counts], block.weights[counts], block.numbers[counts], 1)


# --- the moves


def _merges(family: Bernoulli, counts: _Counts) -> Iterator[Centroids]:
    """The pairs whose joint cost is least above their own."""
    ones, zeros, weight = counts.ones.value, counts.zeros.value, counts.weight.value[:, 0]
    own = family.group_cost(ones, zeros)
    first, second = np.triu_indices(len(own), 1)
    together = [
        family.group_cost(ones[i] + ones[j], zeros[i] + zeros[j]) for i, j in zip(first, second, strict=True)
    ]
    loss = np.array(together) - own[first] - own[second]
    for pair in np.argsort(loss, kind="stable")[:MOST_MERGES]:
        i, j = first[pair], second[pair]
        joined = [np.delete(part, j, axis=0) for part in (ones, zeros, weight)]
        for part, whole in zip(joined, (ones, zeros, weight), strict=True):
            part[i] += whole[j]
        yield family.means_of(*joined)


def _splits_by_column(family: Bernoulli, seen: _SplitFacts) -> Iterator[Centroids]:
    """Of each component the best division by one column; those that gain most."""
    ones, zeros, weight = (part.value for part in (seen.counts.ones, seen.counts.zeros, seen.counts.weight))
    n_components, n_columns = ones.shape
    with_one = seen.halves.ones.value.reshape(n_components, -1, n_columns)
    with_zero = seen.halves.zeros.value.reshape(n_components, -1, n_columns)
    heft = seen.halves.weight.value.reshape(n_components, -1)
    rest_one, rest_zero = ones[:, None] - with_one, zeros[:, None] - with_zero
    divided = family.group_cost(with_one, with_zero) + family.group_cost(rest_one, rest_zero)
    divided[(heft == 0) | (heft == weight)] = np.inf
    pivot = divided.argmin(axis=1)
    each = np.arange(n_components)
    gain = family.group_cost(ones, zeros) - divided[each, pivot]
    for k in np.argsort(-gain, kind="stable")[:MOST_SPLITS]:
        if np.isfinite(gain[k]):
            at = (k, pivot[k])
            yield family.means_of(
                _parted(ones, k, with_one[at]),
                _parted(zeros, k, with_zero[at]),
                _parted(weight[:, 0], k, heft[at]),
            )


def _parted(whole: Array, k: int, part: Array) -> Array:
    """Sums of groups with `part` taken out of group k and put behind all others."""
    rest = whole.copy()
    rest[k] -= part
    return np.concatenate([rest, np.asarray(part)[None]])


def _splits_by_rows(
    rows: Rows, family: Bernoulli, params: Centroids, seen: _SplitFacts
) -> Iterator[Centroids]:
    """The dearest row of a component and the row of it that is farthest from that one; dearest rows first."""
    dear = seen.dearest
    ends = family.start(dear.cells)
    far = rows.reduce(_visit_far_ends, _Ends(family, params, ends, dear.donor))
    for at in np.argsort(-dear.cost, kind="stable")[:MOST_SPLITS]:
        k = dear.donor[at]
        other = far.cells[far.donor == k]
        if len(other):
            pair = family.start(np.concatenate([dear.cells[at][None], other]))
            yield _with(params, pair, dropped=int(k))


@dataclass(frozen=True)
class _Ends:
    family: Bernoulli
    params: Centroids
    ends: Centroids
    donor: Array


def _visit_far_ends(state: _Ends, block: Block) -> Dear:
    label, _ = state.family.assign(state.params, block)
    place = np.searchsorted(state.donor, label)  # every component that has a row has a dearest one
    place = np.minimum(place, len(state.donor) - 1)
    distance = state.family.cost(state.ends, block)[np.arange(block.n_rows), place]
    return _dearest(block, label, distance)


def _births(rows: Rows, family: Bernoulli, params: Centroids, seen: _SplitFacts) -> Iterator[Centroids]:
    """A component for the dearest rows, and one about the dearest of all."""
    for share in BIRTH_SHARES:
        cut = find_cuts(rows, [family], [params], 1.0 - share)[0]
        beyond = rows.reduce(_visit_beyond, _Beyond(family, params, cut.limit))
        if beyond.weight.value[1, 0] > 0:
            born = family.means_of(beyond.ones.value[1:], beyond.zeros.value[1:], beyond.weight.value[1:, 0])
            yield _with(params, born)
    at = int(np.argmax(seen.dearest.cost))
    yield _with(params, family.start(seen.dearest.cells[at][None]))


@dataclass(frozen=True)
class _Beyond:
    family: Bernoulli
    params: Centroids
    limit: float


def _visit_beyond(state: _Beyond, block: Block) -> _Counts:
    """Rows up to the limit are group 0, those that cost more group 1."""
    _, cost = state.family.assign(state.params, block)
    return _Counts.of(state.family, block, (cost > state.limit).astype(np.int32), 2)


def _with(params: Centroids, born: Centroids, dropped: int | None = None) -> Centroids:
    """The components but for `dropped`, then those born."""
    kept = np.flatnonzero(np.arange(len(params.centre)) != dropped)
    return Centroids(
        np.concatenate([params.centre[kept], born.centre]), np.append(params.weight[kept], born.weight)
    )

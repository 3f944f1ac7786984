"""DP-means from the start to the end: what an open cost is for a wished K, the batched fit, the published one.

The batched fit is the loop with a family that opens components (`families.opening`), so every engine runs it. The
sequential one holds the whole table and goes from row to row as published; it is the oracle of the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.families.centroid import Centroids, Means
from ilk.families.opening import OpenMeans, group_moments, means_of
from ilk.fitting.fit import Fit, finish
from ilk.fitting.loop import NOTHING_CHANGED, PASS_LIMIT, Event, Record, Run, Stop, run_starts
from ilk.fitting.start import in_content_order, sample_rows
from ilk.table.block import Array, Block


def table_mean(rows: Rows) -> Array:
    """The mean of all rows (1, columns), in encoded units."""
    origin = Means().start(np.zeros((1, rows.n_columns)))
    only = run_starts(rows, [Means()], [origin], stop=Stop(max_passes=1))[0]
    return np.asarray(only.params.centre)


def open_cost_for(rows: Rows, k: int, seed: int) -> float:
    """The open cost that a wish for K components suggests, in encoded units: farthest-first from the mean, the
    squared distance at which the K-th row is met (Kulis and Jordan 2012, section 3.1)."""
    sample = in_content_order(rows.sample(sample_rows(rows.n_columns, k), seed))
    family, counts = Means(), sample.weights > 0
    closest = family.assign(family.start(table_mean(rows)), sample)[1]
    met = 0.0
    for _ in range(k):
        row = int(np.argmax(np.where(counts, closest, -1.0)))
        met = float(closest[row])
        point = np.nan_to_num(sample.numbers[row : row + 1])  # its own missing cells cost it nothing
        closest = np.minimum(closest, family.cost(family.start(point), sample)[:, 0])
    return met


def fit_batched(
    rows: Rows,
    family: OpenMeans,
    start: Array | None,
    seed: int,
    stop: Stop,
    callback: Callable[[Event], None] | None = None,
) -> Fit:
    """The loop from the centres `start`; else from what the mean of the table opens on a sample, which is the whole
    table unless that is large, and then a run to the end on the sample, where passes are cheap."""
    params = _start_from_sample(rows, family, seed, stop) if start is None else family.start(start)
    run = run_starts(rows, [family], [params], stop=stop, callback=callback)[0]
    return finish(rows, run, [run])


def _start_from_sample(rows: Rows, family: OpenMeans, seed: int, stop: Stop) -> Centroids:
    mean = family.start(table_mean(rows))
    sample = rows.sample(sample_rows(rows.n_columns, 1), seed)
    if sample.n_rows == rows.n_rows:
        return family.opened(mean, sample)
    if not _opens(rows, family, mean):  # nor may it on the sample, whose mean lies elsewhere
        return mean
    start = family.opened(mean, sample)
    params: Centroids = run_starts(MemoryRows.of_block(sample, rows.threads), [family], [start], stop=stop)[
        0
    ].params
    return params


def _opens(rows: Rows, family: OpenMeans, params: Centroids) -> bool:
    """Whether a row is dear to these components."""
    after = run_starts(rows, [family], [params], stop=Stop(max_passes=1))[0].params
    return len(after.centre) > len(params.centre)


def fit_sequential(rows: Rows, family: OpenMeans, start: Array | None, stop: Stop) -> Fit:
    """Row after row, each opens a component if it is dear to all there are; then the means; until no row changes
    its component (Kulis and Jordan 2012, algorithm 1). Depends on the order of the rows."""
    everything = rows.take(np.arange(rows.n_rows))
    params = family.start(table_mean(rows) if start is None else start)
    run = Run(family, params)
    before = np.full(rows.n_rows, -1)
    while not run.reason:
        if len(run.trace) == stop.max_passes:
            run.reason = PASS_LIMIT
            break
        opened, label, cost = sequential_pass(family, run.params, everything)
        run.cost = float(everything.weights @ cost) + family.penalty(opened)
        run.trace.append(Record(len(run.trace) + 1, run.cost, len(opened.centre)))
        sums = group_moments(everything.numbers, everything.weights, label, len(opened.centre))
        means = means_of(sums, opened)
        occupied = np.flatnonzero(means.weight > 0)
        run.params = family.select(means, occupied)
        if np.array_equal(label, before) and len(occupied) == len(means.centre):
            run.reason = NOTHING_CHANGED
        before = label
    return finish(rows, run, [run])


def sequential_pass(family: OpenMeans, params: Centroids, block: Block) -> tuple[Centroids, Array, Array]:
    """One walk over the rows: components with those opened on the way, label and cost of each row when it was met."""
    label, cost = family.assign(params, block)
    centres, met = params.centre, 0
    while len(dear := np.flatnonzero(family.is_dear(cost[met:], block.weights[met:]))):
        row = met + int(dear[0])
        cells = block.numbers[row]
        point = np.where(np.isnan(cells), centres[label[row]], cells)
        own = family.cost(family.start(point[None]), block)[:, 0]
        moves = (own < cost) & (np.arange(len(cost)) >= row)
        label[moves], cost[moves] = len(centres), own[moves]
        centres, met = np.concatenate([centres, point[None]]), row + 1
    return family.start(centres), label, cost

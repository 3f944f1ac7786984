"""The Dirichlet process mixture of a table: its family, its starts, and the fit of the highest bound."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.families.covariance import Structure
from ilk.families.dirichlet import DirichletProcess
from ilk.families.product import Categories
from ilk.fitting.fit import Fit, finish
from ilk.fitting.loop import Event, Stop, run_starts
from ilk.fitting.mixture import SEARCH_ROWS, SEARCH_STOP, best_run, distinct
from ilk.fitting.product import partitioner_for, table_counts
from ilk.fitting.restarts import from_labels
from ilk.fitting.table_moments import table_moments
from ilk.table.block import Array

STARTS = ("ward", "k-means")


def make_process(rows: Rows, level_start: Array, concentration: float) -> DirichletProcess:
    """The family, its priors placed by the table."""
    moments = table_moments(rows)
    counts = table_counts(rows, level_start, np.zeros(rows.n_columns, dtype=bool))
    pooled = np.zeros_like(counts.levels)
    if len(pooled):
        pooled = Categories(level_start, pooled).shares(counts.levels[None])[0]
    variance = np.where(moments.variance > 0, moments.variance, 1.0)
    return DirichletProcess(
        Structure.parse("VVI"),
        variance,
        concentration=concentration,
        column_means=moments.mean,
        categories=Categories(level_start, pooled),
    )


def fit_process(
    rows: Rows,
    family: DirichletProcess,
    most: int,
    seed: int,
    stop: Stop,
    *,
    callback: Callable[[Event], None] | None = None,
) -> Fit:
    """At most so many components. Partitions in 1, 2, 3, 5, ... groups are the starts, the other components empty:
    variational Bayes empties components more easily than it fills them, and either may be a local optimum."""
    sample = MemoryRows.of_block(rows.sample(SEARCH_ROWS, seed), rows.threads)
    partitioner = partitioner_for(sample, family.categories.level_start)(
        sample.take(np.arange(sample.n_rows)), seed
    )
    parts = [
        partitioner.labels(name, k, number)
        for k in occupied(min(most, sample.n_rows))
        for number, name in enumerate(STARTS)
    ]
    starts = [from_labels(sample, family, part, most) for part in distinct(parts)]
    runs = run_starts(sample, [family] * len(starts), starts, stop=SEARCH_STOP, callback=callback)
    best = best_run(runs)
    near = best.cost + SEARCH_STOP.tolerance * abs(best.cost)
    equals = (run for run in runs if run.usable and run.cost <= near)  # whichever rounding puts in front
    first = next(equals, best)  # none, where no run is usable or no cost a number
    last = run_starts(rows, [family], [first.params], stop=stop, callback=callback)
    return finish(rows, last[0], runs)


def occupied(most: int) -> list[int]:
    """Numbers of groups that starts have: each half as large again as the one before, and the most.

    >>> occupied(20)
    [1, 2, 3, 5, 8, 12, 18, 20]
    """
    made = [1]
    while made[-1] < most:
        made.append(min(most, max(made[-1] + 1, -(-made[-1] * 3 // 2))))
    return made

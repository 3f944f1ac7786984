"""Fits from many partitions of a wide table: a few passes each, the best go on.

The clusters are grouped from the first update on. With every cell chosen, as ordinary fits warm up, each row's own
cells in hundreds of columns would hold it where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ilk.assorted.compiled_run import run_all_starts
from ilk.assorted.screening import Partitions
from ilk.assorted.state import from_labels, visit_assign, visit_step
from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.families.base import GrowingFamily
from ilk.fitting.loop import Run, Stop
from ilk.table.block import Array

HEAT = Stop(tolerance=1e-5, max_passes=4)
FINAL_HEAT = Stop(tolerance=1e-5, max_passes=30)
N_FINAL = 3


class Runner(Protocol):
    """Runs starts of a family on rows; a search knows when to end them."""

    def __call__(
        self, rows: Rows, family: GrowingFamily[Any], starts: Sequence[Any], stop: Stop
    ) -> list[Run]: ...


def run_plainly(rows: Rows, family: GrowingFamily[Any], starts: Sequence[Any], stop: Stop) -> list[Run]:
    """Without a limit of time."""
    return run_all_starts(rows, [family] * len(starts), starts, stop=stop)


def raced(
    rows: Rows, family: GrowingFamily[Any], partitions: Partitions, k: int, run: Runner = run_plainly
) -> list[Run]:
    """The finalists with K clusters, the best first; of a sample they end on all rows."""
    if partitions.rows is None:
        return _heats(rows, family, partitions.labels, k, run)
    block = replace(rows.take(partitions.rows), weight=partitions.weight, memo=None)
    found = _heats(MemoryRows.of_block(block, threads=1), family, partitions.labels, k, run)
    return ranked(run(rows, family, [one.measured for one in found], FINAL_HEAT), k) if found else []


def halved(
    rows: MemoryRows, family: GrowingFamily[Any], partitions: Partitions, run: Runner
) -> tuple[float, Array] | None:
    """The best two clusters of some rows: by how much they beat one, and their labels; None where one has no row."""
    found = raced(rows, family, partitions, 2, run)
    if not found:
        return None
    labels = np.concatenate([label for label, _ in rows.scan(visit_assign, (family, found[0].measured))])
    return (gain_on_one(rows, family, found[0].cost), labels) if 0 < labels.sum() < len(labels) else None


def gain_on_one(rows: MemoryRows, family: GrowingFamily[Any], cost: float) -> float:
    """By how much a fit of some rows beats one cluster."""
    everyone = from_labels(rows, family, np.zeros(rows.n_rows, dtype=np.int32), 1)
    one = rows.reduce(visit_step, (family, everyone, 1.0))
    return float(one.cost.value) + family.penalty(everyone) - cost


def _heats(rows: Rows, family: GrowingFamily[Any], labels: Sequence[Array], k: int, run: Runner) -> list[Run]:
    starts = [from_labels(rows, family, label, k) for label in labels]
    starts = [start for start in starts if len(start) == k]
    best = ranked(run(rows, family, starts, HEAT), k)[:N_FINAL] if starts else []
    return ranked(run(rows, family, [one.params for one in best], FINAL_HEAT), k) if best else []


def ranked(runs: Sequence[Run], k: int) -> list[Run]:
    """Those that kept K clusters, least cost first."""
    whole = [run for run in runs if run.measured is not None and len(run.measured) == k]
    return sorted(whole, key=lambda run: run.cost)

"""k-means||: starting centres from passes over all rows, for tables too large or groups too rare for a sample.

In each round rows are drawn by weight times cost, which takes one pass (Bahmani and others 2012 need two). These
candidates are weighed by the rows nearest to them, and K of them chosen by k-means++.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilk.engines.base import Rows
from ilk.families.base import KEEP_ALL
from ilk.families.centroid import Centroids, Means
from ilk.fitting.on_device import on_device
from ilk.fitting.reservoir import Draws, Repeats, Reservoir
from ilk.fitting.start import start_centres
from ilk.table.block import Array, Block, Encoding

NAME = "k-means||"
ROUNDS = 5
PER_ROUND = 2  # candidates of a round, times K


@dataclass(frozen=True)
class _SeedingRound:
    candidates: Centroids | None  # None in the first, in which rows are drawn by weight alone
    n_wanted: int
    draws: Draws
    costs: Array | None = None  # of all rows, where a device has told them: those of the CPU to the bit


def _visit_round(state: _SeedingRound, block: Block) -> Reservoir:
    worth = np.ones(block.n_rows)
    if state.costs is not None:
        worth = state.costs[block.first_row : block.first_row + block.n_rows]
    elif state.candidates is not None:
        worth = Means().assign(state.candidates, block)[1]
    return Reservoir.of(block, worth, state.draws, state.n_wanted)


def _visit_weight(candidates: Centroids, block: Block) -> Array:
    weight: Array = Means().step(candidates, block, KEEP_ALL).sums["weight"]
    return weight


def parallel_centres(rows: Rows, k: int, repeats: Repeats, number: int) -> Array:
    """K centres of start `number`, from `ROUNDS` + 2 passes; fewer where there are no more different rows."""
    family = Means()
    there = on_device(rows, family)
    points = _points(rows, _SeedingRound(None, 1, Draws(repeats, NAME, (number, 0))))
    for turn in range(1, ROUNDS + 1):
        draws, centres = Draws(repeats, NAME, (number, turn)), family.start(points)
        costs = None if there is None else family.assign(centres, there)[1]
        state = _SeedingRound(centres, PER_ROUND * k, draws, costs)
        points = np.concatenate([points, _points(rows, state)])
    candidates = family.start(points)
    weight = rows.reduce(_visit_weight, candidates) if there is None else _visit_weight(candidates, there)
    pool = Block(points, Encoding(1.0, np.zeros(rows.n_columns)), weight=weight)
    return start_centres("k-means++", pool, k, repeats.seed, number)


def _points(rows: Rows, state: _SeedingRound) -> Array:
    """The rows drawn in a round, filled where cells are missing."""
    raw = rows.reduce(_visit_round, state).raw
    return np.nan_to_num(rows.encoding.apply(raw).astype(np.float64), nan=0.0)

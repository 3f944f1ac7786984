"""k-means||: starting centres from passes over all rows, for tables too large or groups too rare for a sample.

In each round every row draws a key, log(u) / (weight * cost), and the rows of largest key are candidates: an exact
weighted draw without replacement (Efraimidis and Spirakis 2006) that needs no total and merges over blocks, so that a
round is one pass (Bahmani and others 2012 need two). Candidates are weighed by the rows nearest to them, and K of them
chosen by k-means++. Every row has its own place in the stream of draws: the same on every engine, whatever the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilk.engines.base import Rows
from ilk.families.base import KEEP_ALL
from ilk.families.centroid import Centroids, Means
from ilk.fitting.start import start_centres
from ilk.random import stream
from ilk.table.block import Array, Block, Encoding

NAME = "k-means||"
ROUNDS = 5
PER_ROUND = 2  # candidates of a round, times K


@dataclass(frozen=True)
class Reservoir:
    """The rows of largest key: their points, filled where cells are missing; `key` falls, ties by row number."""

    key: Array
    row: Array
    points: Array
    n_wanted: int

    def __add__(self, other: Reservoir) -> Reservoir:
        key, row = np.append(self.key, other.key), np.append(self.row, other.row)
        order = np.lexsort((row, -key))[: self.n_wanted]
        return Reservoir(
            key[order], row[order], np.concatenate([self.points, other.points])[order], self.n_wanted
        )


@dataclass(frozen=True)
class _Round:
    candidates: Centroids | None  # None in the first, in which rows are drawn by weight alone
    n_wanted: int
    seed: int
    indices: tuple[int, int]  # start and round


def draws_of(draws: np.random.Generator, first: int, n: int) -> Array:
    """The draws from number `first` on of a fresh stream; Philox makes four with each step of its counter.

    >>> whole = stream(0, "example").random(20)
    >>> bool((draws_of(stream(0, "example"), 7, 9) == whole[7:16]).all())
    True
    """
    draws.bit_generator.advance(first // 4)  # type: ignore[attr-defined]
    return draws.random(n + first % 4)[first % 4 :]


def _visit_round(state: _Round, block: Block) -> Reservoir:
    worth = block.weights
    if state.candidates is not None:
        worth = worth * Means().assign(state.candidates, block)[1]
    draws = draws_of(stream(state.seed, NAME, *state.indices), block.first_row, block.n_rows)
    able = np.flatnonzero(worth > 0)
    key = np.log(draws[able]) / worth[able]
    best = np.lexsort((able, -key))[: state.n_wanted]
    chosen = able[best]
    points = np.nan_to_num(block.encoding.apply(block.raw[chosen]).astype(np.float64), nan=0.0)
    return Reservoir(key[best], chosen + block.first_row, points, state.n_wanted)


def _visit_weight(candidates: Centroids, block: Block) -> Array:
    weight: Array = Means().step(candidates, block, KEEP_ALL).sums["weight"]
    return weight


def parallel_centres(rows: Rows, k: int, seed: int, number: int) -> Array:
    """K centres of start `number`, from `ROUNDS` + 2 passes; fewer where there are no more different rows."""
    family = Means()
    points = rows.reduce(_visit_round, _Round(None, 1, seed, (number, 0))).points
    for turn in range(1, ROUNDS + 1):
        state = _Round(family.start(points), PER_ROUND * k, seed, (number, turn))
        points = np.concatenate([points, rows.reduce(_visit_round, state).points])
    weight = rows.reduce(_visit_weight, family.start(points))
    pool = Block(points, Encoding(1.0, np.zeros(rows.n_columns)), weight=weight)
    return start_centres("k-means++", pool, k, seed, number)

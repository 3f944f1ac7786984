"""Few rows that stand for a large table, with weights: those far from its mean are drawn more often and weigh less.

A plain sample of some thousand rows has a handful of a group of one row in a thousand, or none. Here half of a row's
chance is even, and half goes by its squared distance from the mean in standard deviations (Bachem, Lucic and Krause
2018), in one pass over any engine after that for the moments; categories have no distance. A row weighs one over the
chance to be among those drawn, given the key of the first that was not; all weights together, as many rows as they are
worth (Kish), and no more than were asked for. Equal rows are one, with the weight of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows, held
from ilk.fitting.recall import recall
from ilk.fitting.reservoir import Draws, Repeats, Reservoir
from ilk.fitting.table_moments import table_moments
from ilk.table.block import Array, Block
from ilk.table.condition import short

EVEN = 0.5  # of the chance of a row


@dataclass(frozen=True)
class _Draw:
    mean: Array
    variance: Array
    n_wanted: int
    draws: Draws


def coreset(rows: Rows, n_rows: int, seed: int) -> MemoryRows:
    """At most `n_rows` of the rows as a table in memory: a coreset, or all of them where there are no more."""
    if rows.n_rows <= n_rows:
        return held(rows, n_rows, seed)
    mean = variance = np.zeros(0)
    if rows.n_columns:
        moments = table_moments(rows)
        mean, variance = short(moments.mean), short(moments.variance)

    def work() -> Reservoir:
        draws = Draws(Repeats.of(rows, seed), "coreset")
        return rows.reduce(_visit, _Draw(mean, variance, n_rows + 1, draws))

    drawn = recall("coreset", rows, (mean, variance, n_rows, seed), work)
    weight, square = drawn.weight[:n_rows], drawn.square[:n_rows]
    if len(drawn.key) > n_rows:
        chance = -np.expm1(drawn.worth[:n_rows] * drawn.key[n_rows])
        weight, square = weight / chance, square / chance**2
    worth = min(float(weight.sum()) ** 2 / float(square.sum()), n_rows)
    return MemoryRows(
        drawn.raw[:n_rows],
        rows.encoding,
        weight=weight * (worth / weight.sum()),
        codes=None if drawn.codes is None else drawn.codes[:n_rows],
        complete=rows.complete,
        threads=rows.threads,
    )


def _visit(state: _Draw, block: Block) -> Reservoir:
    worth = EVEN + (1 - EVEN) * _distance(state, block)
    return Reservoir.of(block, worth, state.draws, state.n_wanted)


def _distance(state: _Draw, block: Block) -> Array:
    """Squared distance from the mean, in variances, over the cells that are there: 1 on average over a table."""
    varies = np.flatnonzero(state.variance > 0)
    away = block.numbers[:, varies].astype(np.float64, copy=False) - state.mean[varies]
    square: Array = away * away / state.variance[varies]
    if not block.complete:
        there = ~np.isnan(square)
        return np.asarray(np.where(there, square, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1))
    return np.asarray(square.mean(axis=1)) if len(varies) else np.zeros(block.n_rows)

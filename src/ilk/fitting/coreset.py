"""Few rows that stand for a large table, with weights: those far from its mean are drawn more often and weigh less.

A plain sample of some thousand rows has a handful of a group of one row in a thousand, or none. Here half of a row's
chance is even, and half goes by its squared distance from the mean in standard deviations (Bachem, Lucic and Krause
2018), in one pass over any engine after that for the moments; categories have no distance. A row weighs one over the
chance to be among those drawn, given the key of the first that was not; all weights together, as many rows as they are
worth (Kish).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows, held
from ilk.fitting.recall import recall
from ilk.fitting.reservoir import Reservoir, draws_for
from ilk.fitting.table_moments import table_moments
from ilk.table.block import Array, Block

EVEN = 0.5  # of the chance of a row


@dataclass(frozen=True)
class _Draw:
    mean: Array
    variance: Array
    n_wanted: int
    seed: int


def coreset(rows: Rows, n_rows: int, seed: int) -> MemoryRows:
    """At most `n_rows` of the rows as a table in memory: a coreset, or all of them where there are no more."""
    if rows.n_rows <= n_rows:
        return held(rows, n_rows, seed)
    mean = variance = np.zeros(0)
    if rows.n_columns:
        moments = table_moments(rows)
        mean, variance = moments.mean, moments.variance
    draw = _Draw(mean, variance, n_rows + 1, seed)
    drawn = recall("coreset", rows, (draw,), lambda: rows.reduce(_visit, draw))
    order = np.argsort(drawn.row[:n_rows])
    weight = drawn.weight[:n_rows]
    if len(drawn.key) > n_rows:
        weight = weight / -np.expm1(drawn.worth[:n_rows] * drawn.key[n_rows])
    weight = weight * (weight.sum() / (weight @ weight))
    return MemoryRows(
        drawn.raw[order],
        rows.encoding,
        weight=weight[order],
        codes=None if drawn.codes is None else drawn.codes[order],
        complete=rows.complete,
        threads=rows.threads,
    )


def _visit(state: _Draw, block: Block) -> Reservoir:
    worth = block.weights * (EVEN + (1 - EVEN) * _distance(state, block))
    return Reservoir.of(block, worth, draws_for(block, state.seed, "coreset"), state.n_wanted)


def _distance(state: _Draw, block: Block) -> Array:
    """Squared distance from the mean, in variances, over the cells that are there: 1 on average over a table."""
    varies = np.flatnonzero(state.variance > 0)
    away = block.numbers[:, varies].astype(np.float64, copy=False) - state.mean[varies]
    square: Array = away * away / state.variance[varies]
    if not block.complete:
        there = ~np.isnan(square)
        return np.asarray(np.where(there, square, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1))
    return np.asarray(square.mean(axis=1)) if len(varies) else np.zeros(block.n_rows)

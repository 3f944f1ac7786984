"""Where an assorted fit begins: rows of mixed columns as points, and partitions of them of several kinds.

A number is its standardised value, a category its levels as (present - share) / sqrt(share), scaled so that every
column has inertia one. In a mixture of products a column that no cluster chooses is independent of all others;
so a column's mean squared correlation with the others, its *dependence*, says how much it may know of clusters.
No single kind of start is near the best optimum often enough: variety is what counts (assorted.md, section 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ilk.assorted.sharing import ColumnCosts
from ilk.engines.memory import MemoryRows
from ilk.families.centroid import Means
from ilk.fitting.loop import Stop
from ilk.fitting.restarts import Recipe, fit_recipe
from ilk.fitting.start import distinct_rows, draw_rows, in_content_order, k_log_k
from ilk.random import stream
from ilk.table.block import Array, Block, Encoding, is_sparse

LLOYD = Recipe("k-means", Means(), n_starts=1, stop=Stop(max_passes=20))


@dataclass(frozen=True)
class EmbeddedRows:
    """Rows as points (rows, axes); `column` names the table's column of each axis."""

    points: Array
    column: Array
    weight: Array | None

    @classmethod
    def of_block(cls, block: Block, columns: ColumnCosts) -> EmbeddedRows:
        numbers = np.nan_to_num(block.raw, nan=0.0)
        n, size = numbers.shape[1], np.diff(columns.level_start)
        if block.codes is None or not len(size):
            return cls(numbers, np.arange(n), block.weight)
        of, level = columns.column_of_level, np.arange(len(columns.share))
        codes = block.codes.toarray() if is_sparse(block.codes) else block.codes  # type: ignore[attr-defined]
        code, share = codes[:, of], columns.share
        away = np.where(code >= 0, (code == level - columns.level_start[of]) - share, 0.0) / np.sqrt(share)
        levels = away / np.sqrt(np.maximum(size - 1, 1))[of]
        return cls(np.hstack([numbers, levels]), np.concatenate([np.arange(n), n + of]), block.weight)

    @property
    def n_columns(self) -> int:
        return int(self.column.max(initial=-1)) + 1

    @cached_property
    def dependence(self) -> Array:
        """Mean squared correlation of each column's axes with those of the other columns, less 1/rows, in nine
        decimals: starts order rows by the bits of their points."""
        heft = np.ones(len(self.points)) if self.weight is None else self.weight
        centred = self.points - np.average(self.points, axis=0, weights=heft)
        deviation = np.sqrt(np.average(centred**2, axis=0, weights=heft))
        unit = centred / np.where(deviation > 0, deviation, np.inf)
        squares = np.square((unit * heft[:, None]).T @ unit / heft.sum())
        n_axes = np.bincount(self.column, minlength=self.n_columns)
        member = (self.column[:, None] == np.arange(self.n_columns)).astype(np.float64)
        between = member.T @ squares @ member / np.outer(n_axes, n_axes)
        np.fill_diagonal(between, 0.0)
        mean = between.sum(axis=1) / max(self.n_columns - 1, 1)
        return np.asarray(np.round(np.maximum(mean - 1 / heft.sum(), 0.0), 9))

    def rows_of(self, which: Array) -> EmbeddedRows:
        weight = None if self.weight is None else self.weight[which]
        return EmbeddedRows(self.points[which], self.column, weight)

    def squares_from(self, row: int) -> Array:
        """Squared distances of all rows from one."""
        return np.asarray(np.square(self.points - self.points[row]).sum(axis=1))

    # --- partitions: labels 0 .. at most k - 1, one per row

    def by_k_means(self, k: int, seed: int, number: int) -> Array:
        return self._lloyd(np.ones(self.n_columns), k, seed, number)

    def by_dependence(self, k: int, seed: int, number: int) -> Array:
        return self._lloyd(self.dependence, k, seed, number)

    def by_drawn_columns(self, k: int, seed: int, number: int) -> Array:
        """Half of the columns, drawn by their dependence."""
        chance = self.dependence + 1e-12
        return self._lloyd(self._drawn(chance / chance.sum(), seed, number), k, seed, number)

    def by_half(self, k: int, seed: int, number: int) -> Array:
        """A random half of the columns."""
        return self._lloyd(self._drawn(None, seed, number), k, seed, number)

    def by_k_log_k(self, k: int, seed: int, number: int) -> Array:
        block = self._block(np.ones(self.n_columns))
        means = Means()
        centres = k_log_k(in_content_order(block), k, stream(seed, "k-log-k", number))
        return means.assign(means.start(centres), block)[0]

    def by_two_rows(self, k: int, seed: int, number: int) -> Array:
        """Rows nearest to each of K random ones."""
        block, means = self._block(np.ones(self.n_columns)), Means()
        ordered = in_content_order(block)
        drawn = draw_rows(ordered.weights, k, stream(seed, "random rows", number))
        return means.assign(means.start(ordered.raw[drawn]), block)[0]

    def random_memberships(self, k: int, seed: int, number: int) -> Array:
        """Soft memberships drawn evenly over the simplex (rows, K), the same for equal rows."""
        distinct, where = distinct_rows(self._block(np.ones(self.n_columns)))
        draws = stream(seed, "memberships", number).exponential(size=(distinct.n_rows, k))
        return np.asarray((draws / draws.sum(axis=1, keepdims=True))[where])

    def _drawn(self, chance: Array | None, seed: int, number: int) -> Array:
        n = self.n_columns
        drawn = stream(seed, "columns", number).choice(n, max(1, (n + 1) // 2), replace=False, p=chance)
        return np.isin(np.arange(n), drawn).astype(np.float64)

    def _lloyd(self, scale: Array, k: int, seed: int, number: int) -> Array:
        block = self._block(scale)
        rows = MemoryRows(block.raw, block.encoding, weight=block.weight, threads=1)
        draw = int(stream(seed, "lloyd", number).integers(2**62))
        return fit_recipe(rows, LLOYD, k, draw).labels

    def _block(self, scale: Array) -> Block:
        """The points with each column's axes scaled, axes of no scale left out."""
        by_axis = scale[self.column]
        if not (by_axis > 0).any():
            by_axis = np.ones(len(by_axis))
        kept = by_axis > 0
        points = np.ascontiguousarray(self.points[:, kept] * by_axis[kept])
        return Block(points, Encoding(1.0, np.zeros(points.shape[1])), weight=self.weight)


Partition = Callable[[EmbeddedRows, int, int, int], Array]
KINDS: tuple[Partition | None, ...] = (  # None stands for random memberships
    EmbeddedRows.by_k_means,
    EmbeddedRows.by_dependence,
    EmbeddedRows.by_drawn_columns,
    EmbeddedRows.by_half,
    None,
    EmbeddedRows.by_k_log_k,
)
HALVES: tuple[Partition, ...] = (EmbeddedRows.by_k_means, EmbeddedRows.by_half, EmbeddedRows.by_two_rows)

"""Compressed tables of zeros and ones in the assorted model: the plan of their columns, and rows as points.

Every column is a category of two levels, so that nothing but the stored cells is ever looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ilk.assorted.embedding import LLOYD, EmbeddedRows
from ilk.assorted.transform import Category, TransformPlan
from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.errors import DataError
from ilk.families.base import Sums
from ilk.families.centroid import Means
from ilk.fitting.restarts import fit_recipe
from ilk.fitting.sparse_partitions import along_axes, scaled
from ilk.fitting.start import distinct_rows, draw_rows, in_content_order
from ilk.random import stream
from ilk.table.block import Array, Block, Encoding, is_sparse

NAMES = ("0", "1")


def has_sparse_codes(rows: Rows) -> bool:
    """Whether the categories of a table are compressed."""
    return is_sparse(rows.take(np.arange(0)).codes)


def sparse_plan(rows: Rows, names: list[str]) -> TransformPlan:
    """Every column that varies over the rows that count as a category of 0 and 1."""
    seen = rows.reduce(_visit_ones, None).values
    total, ones = float(seen["total"]), seen["ones"]
    varies = (ones > 0) & (ones < total)
    if not varies.any():
        raise DataError("no-columns", "no column varies", do="Give a table with a column that does")
    categories = tuple(
        Category(
            name=names[j],
            source=int(j),
            kind="levels",
            keys=(0.0, 1.0),
            names=NAMES,
            weight=(total - float(ones[j]), float(ones[j])),
        )
        for j in np.flatnonzero(varies)
    )
    aside = tuple((names[j], "constant") for j in np.flatnonzero(~varies))
    return TransformPlan((), categories, aside, total)


def _visit_ones(state: None, block: Block) -> Sums:
    weight, codes = block.weights, block.codes
    assert codes is not None
    return Sums({"ones": np.asarray(weight @ (codes == 1)), "total": weight.sum()})


def sparse_points(block: Block) -> SparsePoints:
    """The rows of a block as points: their cells."""
    codes: Any = block.codes
    cells = type(codes)(
        ((codes.data == 1).astype(np.float64), codes.indices, codes.indptr), shape=codes.shape
    )
    return SparsePoints(cells, np.arange(codes.shape[1]), block.weight)


class SparsePoints(EmbeddedRows):
    """Rows as compressed points, an axis for each column."""

    @property
    def dependence(self) -> Array:
        """Alike for all columns: what they say together is told by the axes of correspondence analysis."""
        return np.ones(self.n_columns)

    @property
    def n_columns(self) -> int:
        return int(self.points.shape[1])

    def rows_of(self, which: Array) -> SparsePoints:
        return SparsePoints(
            self.points[which], self.column, None if self.weight is None else self.weight[which]
        )

    def squares_from(self, row: int) -> Array:
        block, means = self._block(np.ones(self.n_columns)), Means()
        return means.cost(means.start(self.points[[row]].toarray()), block)[:, 0]  # type: ignore[attr-defined]

    def by_two_rows(self, k: int, seed: int, number: int) -> Array:
        block, means = self._block(np.ones(self.n_columns)), Means()
        ordered: Any = in_content_order(block)
        drawn = draw_rows(ordered.weights, k, stream(seed, "random rows", number))
        return means.assign(means.start(ordered.raw[drawn].toarray()), block)[0]

    def _block(self, scale: Array) -> Block:
        cells = scaled(self.points, np.ones(len(self)), scale)
        return Block(cells, Encoding(1.0, np.zeros(self.n_columns)), weight=self.weight)

    def __len__(self) -> int:
        return int(self.points.shape[0])

    def along(self, k: int, draws: np.random.Generator) -> list[Array]:
        """Partitions in K parts along the leading axes of correspondence analysis, few and more of them; the same for
        equal rows and for a row of their weight, in any order."""
        block, where = distinct_rows(self._block(np.ones(self.n_columns)))
        labels = []
        for n_axes in (max(k - 1, 1), 2 * k):
            for even in (True, False):
                points = along_axes(block.raw, block.weights, n_axes, draws, even)
                encoding = Encoding(1.0, np.zeros(points.shape[1]))
                rows = MemoryRows(points, encoding, weight=block.weight, threads=1)
                labels.append(fit_recipe(rows, LLOYD, k, int(draws.integers(2**62))).labels[where])
        return labels

"""Partitions of compressed rows, from which mixtures of zeros and ones and of counts start.

Where few cells are filled, two rows of one group share hardly any, and distances between rows say little. The leading
axes of correspondence analysis gather what many columns say together: with z = x / sqrt(total of its row and column),
they are the singular vectors of z but for the first, and K-means runs along them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ilk.engines.memory import MemoryRows
from ilk.errors import UsageError
from ilk.families.centroid import Means
from ilk.fitting.fit import fit
from ilk.fitting.partitions import Partitioner
from ilk.fitting.restarts import from_centres
from ilk.fitting.start import start_centres
from ilk.random import stream
from ilk.table.block import Array, Block, Encoding, is_sparse

STARTS = ("principal", "k-means", "k-log-k", "k-means++", "random", "farthest-first")
AUTO = ("principal", "principal", "k-means", "k-means", "k-log-k", "random")
RUNS = 3  # of K-means for one partition
ROUNDS = 8  # of subspace iteration
SPARE_AXES = 5  # beyond those wanted, so that these are found in few rounds


class SparsePartitioner(Partitioner):
    """Partitions of compressed rows, codes of two levels and counts side by side.

    Of each kind the first, third, ... sees rows of one length along the axes, or cells as they are; the others see rows
    as they lie, or cells in units of the deviation of their column: the latter are led by the rare columns.
    """

    @property
    def mix(self) -> tuple[str, ...]:
        return AUTO

    def _distinct_labels(self, name: str, k: int, number: int) -> Array:
        if name not in STARTS:
            raise UsageError(
                "sparse-start",
                f"init={name!r} is no start for a sparse matrix",
                do=f"Choose one of {', '.join(['auto', *STARTS])}",
            )
        if name == "principal":
            draws = stream(self.seed, "principal", k, number)
            points = along_axes(self.plain.raw, self.sample.weights, k - 1, draws, even=number % 2 == 0)
            return self._lloyd(self._held(points), k, number)
        block = self.standardised if number % 2 else self.plain
        if name == "k-means":
            return self._lloyd(block, k, number)
        return self._nearest(block, start_centres(name, block, k, self.seed, number))

    def _lloyd(self, block: Block, k: int, number: int) -> Array:
        rows = MemoryRows(block.raw, block.encoding, weight=block.weight, threads=1)
        drawn = [start_centres("k-means++", block, k, self.seed + number, i) for i in range(RUNS)]
        return fit(rows, Means(), [from_centres(rows, Means(), centres) for centres in drawn]).labels

    @cached_property
    def plain(self) -> Block:
        """The cells as they are."""
        from scipy.sparse import hstack

        parts: list[Any] = [cells for cells in (self.sample.raw, self.sample.codes) if is_sparse(cells)]
        return self._held(hstack(parts, format="csr", dtype=np.float64))

    @cached_property
    def standardised(self) -> Block:
        cells: Any = self.plain.raw
        share = self.sample.weights / self.sample.weights.sum()
        mean, squares = share @ cells, share @ cells.power(2)
        deviation = np.sqrt(np.maximum(squares - mean**2, 0.0))
        return self._held(scaled(cells, np.ones(cells.shape[0]), _inverse(deviation)))

    def _held(self, cells: Any) -> Block:
        return Block(cells, Encoding(1.0, np.zeros(cells.shape[1])), weight=self.sample.weight)


def along_axes(cells: Any, weight: Array, n_axes: int, draws: np.random.Generator, even: bool) -> Array:
    """Rows along the axes after the first, of which all rows have the same share; `even` makes them of one length."""
    of_row, of_column = cells.sum(axis=1), weight @ cells
    profile = scaled(cells, _inverse(of_row), _inverse(np.sqrt(of_column)))
    heavy = scaled(profile, np.sqrt(weight * of_row), np.ones(cells.shape[1]))
    points = profile @ _leading(heavy, min(n_axes + 1, *cells.shape), draws)
    points = np.ascontiguousarray(points[:, 1:] if points.shape[1] > 1 else points)
    return points * _inverse(np.linalg.norm(points, axis=1))[:, None] if even else points


def _leading(cells: Any, n_axes: int, draws: np.random.Generator) -> Array:
    """The leading right singular vectors (columns, axes), by subspace iteration."""
    width = min(n_axes + SPARE_AXES, *cells.shape)
    turned = cells.T.tocsr()
    axes = np.linalg.qr(draws.standard_normal((cells.shape[1], width)))[0]
    for _ in range(ROUNDS):
        axes = np.linalg.qr(turned @ (cells @ axes))[0]
    turn = np.linalg.svd(cells @ axes, full_matrices=False)[2]
    return np.asarray(axes @ turn.T[:, :n_axes])


def _inverse(values: Array) -> Array:
    """One over each value, 0 for 0."""
    return np.divide(1.0, values, out=np.zeros(len(values)), where=values > 0)


def scaled(cells: Any, by_row: Array, by_column: Array) -> Any:
    """Compressed cells times a number for their row and one for their column."""
    data = cells.data * np.repeat(by_row, np.diff(cells.indptr)) * by_column[cells.indices]
    return type(cells)((data, cells.indices, cells.indptr), shape=cells.shape)

"""Blocks of rows, the only thing numeric code sees, and the encoding that conditions their numbers.

Blocks are cut by global row number, `BLOCK_ROWS` each, whatever the chunks in which the table arrived, so
sums over blocks do not depend on threads, chunks or engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilk.kernels import sparse as kernels

Array = NDArray[Any]


def is_sparse(cells: Any) -> bool:
    """Whether cells are in compressed form (`ilk.table.sparse`) rather than an array, or none."""
    return hasattr(cells, "indptr")


def stacked(parts: Sequence[Any]) -> Any:
    """Rows below each other, compressed where they are."""
    if not is_sparse(parts[0]):
        return np.concatenate(parts)
    from scipy.sparse import vstack

    return vstack(parts, format="csr")


BLOCK_ROWS = 16384
FEW_BLOCKS = 64  # up to here blocks are of equal size, and a multiple of four of them
ROUND_ROWS = 64
FARTHEST = 1e100  # that an encoded number of a row without weight may lie away: its square is a number


def block_rows(n_rows: int, n_columns: int) -> int:
    """Rows in a block: fewer where they are wide, so that threads have enough blocks to share; more where they are
    narrow, so that a block is worth its handling. Few blocks are cut so that no thread waits for the last.

    >>> block_rows(100_000, 2), block_rows(10_000, 2), block_rows(10_000_000, 8)
    (25024, 32768, 16384)
    """
    size = BLOCK_ROWS * 2 if n_columns <= 4 else BLOCK_ROWS if n_columns <= 32 else BLOCK_ROWS // 4
    n_blocks = -(-n_rows // size)
    if not 1 < n_blocks <= FEW_BLOCKS:
        return size
    share = -(-n_rows // (-(-n_blocks // 4) * 4))
    return -(-share // ROUND_ROWS) * ROUND_ROWS


@dataclass(frozen=True)
class Encoding:
    """How a column's values become the numbers of a block: `numbers = (raw * power - centre) * factor`.

    `power` is one power of two for all columns, so the multiplication is exact and no method changes its
    meaning; `centre` (already multiplied by `power`) takes the offset away. `factor` is one per column when
    the user asked for standardised columns, else None. Weights are the user's divided by `weight_unit`.
    """

    power: float
    centre: Array
    factor: Array | None = None
    weight_unit: float = 1.0

    @property
    def unit(self) -> Array:
        """Encoded units in one unit of the user, per column; infinite where values are below all doubles."""
        with np.errstate(over="ignore"):
            return self.power * (np.ones(len(self.centre)) if self.factor is None else self.factor)

    @property
    def log_unit(self) -> Array:
        """The logarithm of `unit`, which itself may be beyond all doubles where values are below them."""
        with np.errstate(all="ignore"):
            unit = self.unit
            apart = np.log(self.power) + np.log(np.ones(len(unit)) if self.factor is None else self.factor)
            return np.where((unit > 0) & np.isfinite(unit), np.log(unit), apart)

    def columns(self, which: Array) -> Encoding:
        """The encoding of some of the columns."""
        factor = None if self.factor is None else self.factor[which]
        return replace(self, centre=self.centre[which], factor=factor)

    def weights(self, given: Array) -> Array:
        """The user's weights of some rows, conditioned."""
        return given if self.weight_unit == 1 else given / self.weight_unit

    def apply(self, raw: Array) -> Array:
        """Encoded copy of raw values (..., columns), in the dtype of `raw`; an array too where they are compressed, so
        only for few rows of those."""
        raw = raw.toarray() if is_sparse(raw) else raw  # type: ignore[attr-defined]
        kind = raw.dtype.type
        with np.errstate(over="ignore"):
            numbers = raw * kind(self.power)
            numbers -= self.centre.astype(kind)
            if self.factor is not None:
                numbers *= self.factor.astype(kind)
        if kind is np.float64:
            np.clip(numbers, -FARTHEST, FARTHEST, out=numbers)
        return np.ascontiguousarray(numbers)

    def undo(self, numbers: Array) -> Array:
        """Back to the user's units (positions such as means; float64)."""
        numbers = np.asarray(numbers, dtype=np.float64)
        if self.factor is not None:
            # A factor of zero marks a constant column, whose every value is its centre.
            numbers = np.divide(numbers, self.factor, out=np.zeros_like(numbers), where=self.factor != 0)
        return np.asarray((numbers + self.centre) / self.power)


@dataclass(frozen=True)
class Block:
    """A run of consecutive rows.

    `raw` (rows, columns) holds the numeric cells as the user gave them, float64 or float32, any strides, NaN
    where missing; `numbers` is its encoded form, made on demand (kernels encode on the fly instead).
    `codes` (rows, categorical columns) holds level numbers, -1 where missing.
    Both may be CSR arrays, in which a cell that is not stored is 0 (`ilk.table.sparse`).
    `weight` is None when every row counts one. `complete` says that no numeric cell is missing.
    `memo` keeps what one pass may spare the next; an engine without memory for it leaves None. `part_rows` says
    that this is a whole table of blocks of so many rows, to be shared among `threads` and added up in order.
    """

    raw: Array
    encoding: Encoding
    _: KW_ONLY
    first_row: int = 0
    weight: Array | None = None
    codes: Array | None = None
    complete: bool = True
    memo: dict[str, Array] | None = None
    part_rows: int | None = None
    threads: int = 1

    @property
    def n_rows(self) -> int:
        return int(self.raw.shape[0])

    @property
    def n_columns(self) -> int:
        return int(self.raw.shape[1])

    @property
    def on_device(self) -> bool:
        """Whether the cells lie on a device, where kernels alone see them."""
        return hasattr(self.raw, "run")

    @property
    def n_parts(self) -> int:
        """Blocks in this one: 1 but for a whole table."""
        return 1 if self.part_rows is None else max(-(-self.n_rows // self.part_rows), 1)

    @cached_property
    def numbers(self) -> Array:
        return self.encoding.apply(self.raw)

    @cached_property
    def observed(self) -> Array | None:
        """Mask of the numeric cells that are there, None when all are."""
        return None if self.complete else ~np.isnan(self.raw)

    @property
    def blank(self) -> Array | None:
        """Mask of the rows without a single cell, None when no cell is missing."""
        if self.complete and (self.codes is None or self.n_columns):
            return None
        if is_sparse(self.codes):
            return kernels.says_nothing(self.raw, self.codes)
        lost = np.asarray(np.isnan(self.raw).all(axis=1))
        return lost if self.codes is None else np.asarray(lost & (self.codes < 0).all(axis=1))

    def recall(self, name: str, size: int) -> Array | None:
        """The numbers noted under this name in an earlier pass, NaN until something is; None without memory."""
        if self.memo is None:
            return None
        if name not in self.memo:
            self.memo[name] = np.full(size, np.nan)
        return self.memo[name]

    @property
    def weights(self) -> Array:
        """Weight per row as an array, ones when the table has none."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

"""Rows that lie in packs on other machines: what such engines share.

A pack is a run of consecutive rows as plain arrays, made once from the user's table; later passes see packs only. Row
numbers go through the packs in the order of the parts of the table, so that samples, labels and proposals name the
same rows as in memory. Where rows travel, `visit` and `state` travel to them, and results come back as values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np

from ilk.engines.base import Result, State, SummableT
from ilk.engines.draw import drawn_by_content
from ilk.engines.stream import StreamRows
from ilk.table.block import Array, Block, Encoding, block_rows
from ilk.threads import thread_count

BROUGHT_BYTES = 16 << 20  # of packed rows, that come to this process


@dataclass(frozen=True)
class PackLayout:
    """What the cells of all packs of a table are."""

    dtype: str  # of the numbers: "float64" or "float32"
    n_columns: int
    n_codes: int = 0
    weighted: bool = False

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return np.dtype(self.dtype).itemsize * self.n_columns + 4 * self.n_codes + 8 * self.weighted


@dataclass(frozen=True)
class Pack:
    """Consecutive rows: numbers with NaN where missing, weights, level numbers."""

    raw: Array
    weight: Array | None = None
    codes: Array | None = None

    @property
    def n_rows(self) -> int:
        return len(self.raw)

    def to_bytes(self) -> bytes:
        """Weights first, so that all parts are aligned; the layout says what is what."""
        parts = (self.weight, self.raw, self.codes)
        return b"".join(np.ascontiguousarray(part).tobytes() for part in parts if part is not None)

    @classmethod
    def from_bytes(cls, data: Any, n_rows: int, layout: PackLayout) -> Pack:
        """The arrays as views of a buffer."""
        weight = np.frombuffer(data, np.float64, n_rows) if layout.weighted else None
        at = 8 * n_rows if layout.weighted else 0
        raw = np.frombuffer(data, layout.dtype, n_rows * layout.n_columns, at).reshape(n_rows, -1)
        at += raw.nbytes
        codes = None
        if layout.n_codes:
            codes = np.frombuffer(data, np.int32, n_rows * layout.n_codes, at).reshape(n_rows, -1)
        return cls(raw.reshape(n_rows, layout.n_columns), weight, codes)

    @classmethod
    def joined(cls, packs: Sequence[Pack]) -> Pack:
        """Packs one after the other."""
        if len(packs) == 1:
            return packs[0]
        first = packs[0]
        weight = None if first.weight is None else np.concatenate([pack.weight for pack in packs])
        codes = None if first.codes is None else np.concatenate([pack.codes for pack in packs])
        return cls(np.concatenate([pack.raw for pack in packs]), weight, codes)


@dataclass(frozen=True)
class Cutter:
    """Cuts packs into blocks."""

    encoding: Encoding
    complete: bool
    block_rows: int

    def blocks(self, pack: Pack, first_row: int) -> Iterator[Block]:
        for start in range(0, pack.n_rows, self.block_rows):
            here = slice(start, start + self.block_rows)
            yield Block(
                pack.raw[here],
                self.encoding,
                first_row=first_row + start,
                weight=None if pack.weight is None else self.encoding.weights(pack.weight[here]),
                codes=None if pack.codes is None else pack.codes[here],
                complete=self.complete,
            )


@dataclass(frozen=True)
class Visit(Generic[State, Result]):
    """What travels to the packs: a function, what it needs to know, and how packs are cut."""

    function: Callable[[State, Block], Result]
    state: State
    cutter: Cutter

    def total(self, packs: Iterator[tuple[int, Pack]]) -> Any:
        """Results of all blocks of packs (with the number of their first row) added up; None without a row."""
        total: Any = None
        for first_row, pack in packs:
            for block in self.cutter.blocks(pack, first_row):
                partial = self.function(self.state, block)
                if total is None:
                    total = partial
                else:
                    total += partial
        return total

    def each(self, pack: Pack, first_row: int) -> list[Result]:
        """The results of the blocks of one pack."""
        return [self.function(self.state, block) for block in self.cutter.blocks(pack, first_row)]


class PackedRows(ABC):
    """Rows in packs; engines say how a visit comes to them."""

    whole = None  # rows are seen block by block
    resident: Block | None = None

    def __init__(
        self,
        sizes: Sequence[int],
        layout: PackLayout,
        encoding: Encoding,
        complete: bool,
        threads: int | None,
    ) -> None:
        self.layout, self.encoding, self.complete = layout, encoding, complete
        self.threads = thread_count(threads)
        self.n_columns, self.weighted = layout.n_columns, layout.weighted
        self.first_row = np.cumsum([0, *sizes])  # of each part, and the number of all rows
        self.n_rows = int(self.first_row[-1])

    @property
    def cutter(self) -> Cutter:
        return Cutter(self.encoding, self.complete, block_rows(self.n_rows, self.n_columns))

    @abstractmethod
    def _total(self, visit: Visit[Any, Any]) -> Any:
        """The partials of all rows, added part by part in their order."""

    @abstractmethod
    def _each(self, visit: Visit[Any, Any], parts: Sequence[int]) -> Iterator[list[Any]]:
        """The results of the blocks of these parts, part by part."""

    def reduce(self, visit: Callable[[State, Block], SummableT], state: State) -> SummableT:
        total: SummableT = self._total(Visit(visit, state, self.cutter))
        return total

    def scan(self, visit: Callable[[State, Block], Result], state: State) -> Iterator[Result]:
        return self._scan_parts(visit, state, range(len(self.first_row) - 1))

    def _scan_parts(
        self, visit: Callable[[State, Block], Result], state: State, parts: Sequence[int]
    ) -> Iterator[Result]:
        for results in self._each(Visit(visit, state, self.cutter), parts):
            yield from results

    def take(self, rows: Array) -> Block:
        rows = np.asarray(rows, dtype=np.int64)
        wanted = np.unique(rows)
        parts = np.unique(np.searchsorted(self.first_row, wanted, side="right") - 1)
        found = [*self._scan_parts(_visit_rows, wanted, [int(part) for part in parts])]
        empty = Pack(
            np.empty((0, self.n_columns), self.layout.dtype),
            np.empty(0) if self.layout.weighted else None,
            np.empty((0, self.layout.n_codes), np.int32) if self.layout.n_codes else None,
        )
        pack = Pack.joined([empty, *found])
        places = np.searchsorted(wanted, rows)
        return Block(
            pack.raw[places],
            self.encoding,
            first_row=0,
            weight=None if pack.weight is None else pack.weight[places],
            codes=None if pack.codes is None else pack.codes[places],
            complete=self.complete,
        )

    def sample(self, n_rows: int, seed: int) -> Block:
        if self.n_rows <= n_rows:
            return self.take(np.arange(self.n_rows))
        return replace(self.take(drawn_by_content(self, n_rows, seed)), weight=None)


def brought(rows: PackedRows) -> PackedRows | StreamRows:
    """The rows in this process where they are few: a pass over them then takes less than a job or a task."""
    if rows.n_rows * rows.layout.row_bytes > BROUGHT_BYTES:
        return rows
    few = rows.take(np.arange(rows.n_rows))  # as the user gave them: not yet conditioned
    return StreamRows(
        few.raw,
        few.encoding,
        weight=few.weight,
        codes=few.codes,
        complete=few.complete,
        threads=rows.threads,
    )


def _visit_rows(wanted: Array, block: Block) -> Pack:
    low, high = np.searchsorted(wanted, [block.first_row, block.first_row + block.n_rows])
    here = wanted[low:high] - block.first_row
    return Pack(
        block.raw[here],
        None if block.weight is None else block.weight[here],
        None if block.codes is None else block.codes[here],
    )


@dataclass(frozen=True)
class NumberPacker:
    """Packs Arrow tables of numbers, the weight last where there is one."""

    layout: PackLayout

    def __call__(self, table: Any) -> Pack:
        columns = [column.cast("float64", safe=False).to_numpy() for column in table.columns]
        weight = columns.pop() if self.layout.weighted else None
        raw = np.empty((table.num_rows, self.layout.n_columns), self.layout.dtype)
        for j, column in enumerate(columns):
            raw[:, j] = column
        return Pack(raw, weight)

"""The table in memory, walked by threads in fixed blocks.

Threads take blocks as they come free, but partials are added strictly in block order, so the bits of a
result do not depend on how many threads there are. Kernels release the interpreter lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ilk.engines.base import Result, Rows, State, SummableT
from ilk.engines.draw import drawn_by_content
from ilk.table.block import Array, Block, Encoding, block_rows, is_sparse
from ilk.threads import Item, in_order, thread_count


class MemoryRows:
    """Rows held as arrays: `raw` (n, columns) numbers with NaN where missing, and category codes.

    Nothing is copied: a block is a view, encoded by the kernel that visits it. Compressed rows (CSR) stay so.
    """

    resident: Block | None = None

    def __init__(
        self,
        raw: Array,
        encoding: Encoding,
        *,
        weight: Array | None = None,
        codes: Array | None = None,
        complete: bool = True,
        threads: int | None = None,
    ) -> None:
        self.raw, self.encoding, self.weight, self.codes = raw, encoding, weight, codes
        self.complete, self.weighted = complete, weight is not None
        self.threads = thread_count(threads)
        self.n_rows, self.n_columns = raw.shape
        self.block_rows = block_rows(self.n_rows, self.cells_per_row)
        self._memos: list[dict[str, Array]] = [{} for _ in range(self.n_blocks)]
        self._whole_memo: dict[str, Array] = {}

    @classmethod
    def of_block(cls, block: Block, threads: int | None = None) -> MemoryRows:
        """A block, such as a sample, as a table of its own."""
        return cls(
            block.raw,
            block.encoding,
            weight=block.weight,
            codes=block.codes,
            complete=block.complete,
            threads=threads,
        )

    def reencoded(self, encoding: Encoding) -> MemoryRows:
        """The same rows in other units."""
        return MemoryRows(
            self.raw,
            encoding,
            weight=self.weight,
            codes=self.codes,
            complete=self.complete,
            threads=self.threads,
        )

    def beside(self, made: MemoryRows) -> MemoryRows:
        """Rows made of these, put where these are."""
        return made

    @property
    def cells_per_row(self) -> int:
        """Cells that are stored, on average: all columns of an array."""
        stored: list[int] = [cells.nnz for cells in (self.raw, self.codes) if is_sparse(cells)]  # type: ignore[union-attr]
        return int(-(-sum(stored) // max(self.n_rows, 1))) if stored else int(self.n_columns)

    def block(self, number: int) -> Block:
        first = number * self.block_rows
        return self._slice(slice(first, first + self.block_rows), first, self._memos[number])

    @property
    def whole(self) -> Block | None:
        if not self.complete or is_sparse(self.raw) or is_sparse(self.codes):
            return None
        return Block(
            self.raw,
            self.encoding,
            weight=self.weight,
            codes=self.codes,
            memo=self._whole_memo,
            part_rows=self.block_rows,
            threads=self.threads,
        )

    def _slice(self, which: slice | Array, first_row: int = 0, memo: dict[str, Array] | None = None) -> Block:
        return Block(
            self.raw[which],
            self.encoding,
            first_row=first_row,
            weight=None if self.weight is None else self.weight[which],
            codes=None if self.codes is None else self.codes[which],
            complete=self.complete,
            memo=memo,
        )

    @property
    def n_blocks(self) -> int:
        return int(-(-self.n_rows // self.block_rows))

    def reduce(self, visit: Callable[[State, Block], SummableT], state: State) -> SummableT:
        partials = self.scan(visit, state)
        total = next(partials)
        for _ in range(1, self.n_blocks):
            total += next(partials)  # no name for it: the next is made when this one is gone
        return total

    def scan(self, visit: Callable[[State, Block], Result], state: State) -> Iterator[Result]:
        def visit_block(number: int) -> Result:
            return visit(state, self.block(number))

        return self.map(visit_block, range(self.n_blocks))

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Results in order, a few items ahead at a time so that memory stays bounded."""
        return in_order(function, items, self.threads)

    def sample(self, n_rows: int, seed: int) -> Block:
        if self.n_rows <= n_rows:
            return self._slice(slice(0, self.n_rows))
        return replace(self.take(drawn_by_content(self, n_rows, seed)), weight=None)

    def take(self, rows: Array) -> Block:
        return self._slice(np.asarray(rows))


def held(rows: Rows, n_rows: int, seed: int) -> MemoryRows:
    """At most `n_rows` of the rows as a table in memory: a sample, or all of them where there are no more. Of rows that
    lie on a device too it is what the CPU has, so that starts are compared by the same numbers."""
    if isinstance(rows, MemoryRows) and rows.n_rows <= n_rows and rows.resident is None:
        return rows
    return MemoryRows.of_block(rows.sample(n_rows, seed), rows.threads)

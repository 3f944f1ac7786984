"""The table on disk, walked by threads in fixed blocks: for tables larger than memory.

Blocks are cut by global row number as in memory and partials are added in block order, so a fit has the same bits. A
thread reads the rows of its block when it comes to it; no more blocks are in memory than threads work on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Self

import numpy as np

from ilk.engines.base import Result, State, SummableT
from ilk.engines.draw import drawn_by_content
from ilk.table.block import Array, Block, Encoding, block_rows
from ilk.table.out_of_core.disk import Sliceable
from ilk.threads import in_order, thread_count


class StreamRows:
    """Rows whose cells are read when a block is visited; `raw`, `codes` and the user's `weight` give slices of them."""

    whole = None  # rows are seen block by block
    resident: Block | None = None

    def __init__(
        self,
        raw: Sliceable,
        encoding: Encoding,
        *,
        weight: Sliceable | None = None,
        codes: Sliceable | None = None,
        complete: bool = True,
        threads: int | None = None,
    ) -> None:
        self.raw, self.encoding, self.weight, self.codes = raw, encoding, weight, codes
        self.complete, self.weighted = complete, weight is not None
        self.threads = thread_count(threads)
        self.n_rows, self.n_columns = raw.shape
        self.block_rows = block_rows(self.n_rows, self.n_columns)

    def encoded(self, encoding: Encoding, complete: bool) -> Self:
        """The same rows, conditioned."""
        return type(self)(
            self.raw,
            encoding,
            weight=self.weight,
            codes=self.codes,
            complete=complete,
            threads=self.threads,
        )

    def _cells(self, which: slice | Array, first_row: int = 0) -> Block:
        return Block(
            self.raw[which],
            self.encoding,
            first_row=first_row,
            weight=None if self.weight is None else self.encoding.weights(self.weight[which]),
            codes=None if self.codes is None else self.codes[which],
            complete=self.complete,
        )

    def reduce(self, visit: Callable[[State, Block], SummableT], state: State) -> SummableT:
        partials = self.scan(visit, state)
        total = next(partials)
        for partial in partials:
            total += partial
        return total

    def scan(self, visit: Callable[[State, Block], Result], state: State) -> Iterator[Result]:
        def visit_block(first: int) -> Result:
            return visit(state, self._cells(slice(first, first + self.block_rows), first))

        return in_order(visit_block, range(0, self.n_rows, self.block_rows), self.threads)

    def sample(self, n_rows: int, seed: int) -> Block:
        if self.n_rows <= n_rows:
            return self._cells(slice(0, self.n_rows))
        return replace(self.take(drawn_by_content(self, n_rows, seed)), weight=None)

    def take(self, rows: Array) -> Block:
        return self._cells(np.asarray(rows))

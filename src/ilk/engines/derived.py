"""Rows made from other rows block by block: kept where the table is in memory, made anew in each pass elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ilk.engines.base import Result, Rows, State, SummableT
from ilk.engines.draw import drawn_by_content
from ilk.engines.memory import MemoryRows
from ilk.table.block import Array, Block, Encoding, is_sparse


class Change(Protocol):
    """Makes one block of another with the same rows; plain data, so that it can be shipped."""

    def __call__(self, block: Block) -> Block: ...


@dataclass(frozen=True)
class ColumnSubset:
    """Some of the columns of numbers."""

    which: Array

    def __call__(self, block: Block) -> Block:
        chosen = block.raw[:, self.which]
        return replace(block, raw=chosen, encoding=block.encoding.columns(self.which), memo=None)


def derive(rows: Rows, change: Change) -> Rows:
    """The changed rows."""
    if isinstance(rows, MemoryRows):
        return rows.beside(_held(rows, change))
    return DerivedRows(rows, change)


def _held(rows: MemoryRows, change: Change) -> MemoryRows:
    first = change(rows.take(np.arange(0)))
    if is_sparse(first.raw) or is_sparse(first.codes):
        return MemoryRows.of_block(change(rows.take(np.arange(rows.n_rows))), rows.threads)
    raw = np.empty((rows.n_rows, first.n_columns), dtype=first.raw.dtype)
    codes = None if first.codes is None else np.empty((rows.n_rows, first.codes.shape[1]), first.codes.dtype)
    complete = True
    for block in rows.scan(_visit_change, change):
        here = slice(block.first_row, block.first_row + block.n_rows)
        raw[here] = block.raw
        complete = complete and block.complete
        if codes is not None:
            codes[here] = block.codes
    return MemoryRows(
        raw, first.encoding, weight=rows.weight, codes=codes, complete=complete, threads=rows.threads
    )


@dataclass(frozen=True)
class Reencoded:
    """The same raw cells, encoded otherwise."""

    encoding: Encoding

    def __call__(self, block: Block) -> Block:
        return replace(block, encoding=self.encoding, memo=None)


def reencoded(rows: Rows, encoding: Encoding) -> Rows:
    """The same rows in other units; nothing is copied."""
    if not isinstance(rows, MemoryRows):
        return DerivedRows(rows, Reencoded(encoding))
    return rows.reencoded(encoding)


def _visit_change(change: Change, block: Block) -> Block:
    return change(block)


class DerivedRows:
    """Rows whose blocks are changed on the fly."""

    whole = None  # rows are seen block by block
    resident: Block | None = None

    def __init__(self, rows: Rows, change: Change) -> None:
        self.rows, self.change = rows, change
        first = change(rows.take(np.arange(0)))
        self.encoding: Encoding = first.encoding
        self.n_rows, self.n_columns = rows.n_rows, first.n_columns
        self.weighted, self.threads = rows.weighted, rows.threads
        # One word for all blocks, as in memory: kernels may take another way, and other bits, where cells are missing.
        self.complete = all(rows.scan(_visit_complete, change))

    def reduce(self, visit: Callable[[State, Block], SummableT], state: State) -> SummableT:
        total: SummableT = self.rows.reduce(_visit_changed, (self.change, self.complete, visit, state))
        return total

    def scan(self, visit: Callable[[State, Block], Result], state: State) -> Iterator[Result]:
        return self.rows.scan(_visit_changed, (self.change, self.complete, visit, state))

    def sample(self, n_rows: int, seed: int) -> Block:
        if self.n_rows <= n_rows:
            return self._changed(self.rows.sample(n_rows, seed))
        return replace(self.take(drawn_by_content(self, n_rows, seed)), weight=None)

    def take(self, rows: Array) -> Block:
        return self._changed(self.rows.take(rows))

    def _changed(self, block: Block) -> Block:
        return replace(self.change(block), complete=self.complete)


def _visit_changed(state: Any, block: Block) -> Any:
    change, complete, visit, inner = state
    return visit(inner, replace(change(block), complete=complete))


def _visit_complete(change: Change, block: Block) -> bool:
    return change(block).complete

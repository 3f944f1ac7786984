"""The table in memory, walked by threads in fixed blocks.

Threads take blocks as they come free, but partials are added strictly in block order, so the bits of a
result do not depend on how many threads there are. Kernels release the interpreter lock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Generic, TypeVar

import numpy as np

from ilk.engines.base import Result, State, SummableT
from ilk.errors import UsageError
from ilk.random import stream
from ilk.table.block import Array, Block, Encoding, block_rows

Item = TypeVar("Item")


def thread_count(threads: int | None) -> int:
    """Threads to use: None or -1 for all the process may run on; at most 256."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads is None or threads == -1:
        return available
    if isinstance(threads, bool) or threads < 1:
        raise UsageError(
            "bad-threads", f"threads={threads!r}", do="Give a number of 1 or more, or -1 for all"
        )
    return min(int(threads), 256)


class MemoryRows:
    """Rows held as arrays: `raw` (n, columns) numbers with NaN where missing, and category codes.

    Nothing is copied: a block is a view, encoded by the kernel that visits it.
    """

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
        self.complete = complete
        self.threads = thread_count(threads)
        self.n_rows, self.n_columns = raw.shape
        self.block_rows = block_rows(self.n_columns)
        self._memos: list[dict[str, Array]] = [{} for _ in range(self.n_blocks)]

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

    def block(self, number: int) -> Block:
        first = number * self.block_rows
        return self._slice(slice(first, first + self.block_rows), first, self._memos[number])

    def _slice(self, which: slice | Array, first_row: int = 0, memo: dict[str, Array] | None = None) -> Block:
        return Block(
            self.raw[which],
            self.encoding,
            first_row,
            None if self.weight is None else self.weight[which],
            None if self.codes is None else self.codes[which],
            self.complete,
            memo,
        )

    @property
    def n_blocks(self) -> int:
        return int(-(-self.n_rows // self.block_rows))

    def reduce(self, visit: Callable[[State, Block], SummableT], state: State) -> SummableT:
        def visit_block(number: int) -> SummableT:
            return visit(state, self.block(number))

        return _fold(visit_block, self.n_blocks, self.threads)

    def scan(self, visit: Callable[[State, Block], Result], state: State) -> Iterator[Result]:
        def visit_block(number: int) -> Result:
            return visit(state, self.block(number))

        yield from self.map(visit_block, range(self.n_blocks))

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Results in order, a few items ahead at a time so that memory stays bounded."""
        if self.threads == 1 or len(items) == 1:
            yield from map(function, items)
            return
        pool = _pool(self.threads)
        ahead = 2 * self.threads
        waiting = [pool.submit(function, item) for item in items[:ahead]]
        for position in range(len(items)):
            yield waiting.pop(0).result()
            if position + ahead < len(items):
                waiting.append(pool.submit(function, items[position + ahead]))

    def sample(self, n_rows: int, seed: int) -> Block:
        if self.n_rows <= n_rows:
            return self._slice(slice(0, self.n_rows))
        draws = stream(seed, "sample")
        if self.weight is None:
            return self.take(np.sort(draws.choice(self.n_rows, n_rows, replace=False)))
        # By inverse cumulative weight, so that a row of weight 2 is drawn as if it stood there twice.
        cumulative = np.cumsum(self.weight)
        positions = np.sort(draws.random(n_rows)) * cumulative[-1]
        chosen = self._slice(np.minimum(np.searchsorted(cumulative, positions, "right"), self.n_rows - 1))
        return Block(chosen.raw, chosen.encoding, 0, None, chosen.codes, chosen.complete)

    def take(self, rows: Array) -> Block:
        return self._slice(np.asarray(rows))


def _fold(visit: Callable[[int], SummableT], n_blocks: int, threads: int) -> SummableT:
    """Sum of visit(0), visit(1), ... added in that order by whichever thread closes the gap."""
    total = visit(0)
    if threads == 1 or n_blocks <= 2:
        for number in range(1, n_blocks):
            total = total + visit(number)
        return total
    return _Fold(visit, n_blocks, total).run(threads)


class _Fold(Generic[SummableT]):
    """Shared state of one threaded fold: the next block to take, and finished partials out of order."""

    def __init__(self, visit: Callable[[int], SummableT], n_blocks: int, first: SummableT) -> None:
        self.visit, self.n_blocks = visit, n_blocks
        self.total = first
        self.taken = self.added = 1
        self.finished: dict[int, SummableT] = {}
        self.lock = threading.Lock()
        self.stopped = False

    def work(self) -> None:
        while True:
            with self.lock:
                if self.stopped or self.taken == self.n_blocks:
                    return
                number, self.taken = self.taken, self.taken + 1
            partial = self.visit(number)
            with self.lock:
                self.finished[number] = partial
                while self.added in self.finished:
                    self.total = self.total + self.finished.pop(self.added)
                    self.added += 1

    def run(self, threads: int) -> SummableT:
        others = [_pool(threads).submit(self.work) for _ in range(min(threads, self.n_blocks) - 1)]
        try:
            self.work()
            for other in others:
                other.result()
        finally:  # an interrupt or an error in one thread ends the others at their next block
            self.stopped = True
        return self.total


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """One pool per size for the life of the process; starting threads anew costs more than a small pass."""
    return ThreadPoolExecutor(threads, thread_name_prefix="ilk")


# A forked child has none of the parent's threads: it must make its own pools.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)

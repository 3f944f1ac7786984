"""The table in memory, walked by threads in fixed blocks.

Threads take blocks as they come free, but partials are added strictly in block order, so the bits of a
result do not depend on how many threads there are. Kernels release the interpreter lock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Generic, TypeVar

import numpy as np

from ilk.engines.base import Result, Rows, State, SummableT
from ilk.engines.draw import drawn_by_weight, drawn_rows
from ilk.errors import UsageError
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
        self.complete, self.weighted = complete, weight is not None
        self.threads = thread_count(threads)
        self.n_rows, self.n_columns = raw.shape
        self.block_rows = block_rows(self.n_rows, self.n_columns)
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
        if self.threads == 1 or len(items) == 1:
            return map(function, items)
        return _Walk(function, items, self.threads).results()

    def sample(self, n_rows: int, seed: int) -> Block:
        if self.n_rows <= n_rows:
            return self._slice(slice(0, self.n_rows))
        weight = self.weight
        if weight is None:
            return self.take(drawn_rows(self.n_rows, n_rows, seed))
        return replace(self.take(drawn_by_weight(lambda: [weight], n_rows, seed)), weight=None)

    def take(self, rows: Array) -> Block:
        return self._slice(np.asarray(rows))


def held(rows: Rows, n_rows: int, seed: int) -> MemoryRows:
    """At most `n_rows` of the rows as a table in memory: a sample, or all of them where there are no more."""
    if isinstance(rows, MemoryRows) and rows.n_rows <= n_rows:
        return rows
    return MemoryRows.of_block(rows.sample(n_rows, seed), rows.threads)


class _Walk(Generic[Item, Result]):
    """Items done by several threads, their results told in order; the thread that asks for them works too."""

    def __init__(self, function: Callable[[Item], Result], items: Sequence[Item], threads: int) -> None:
        self.function, self.items, self.threads = function, items, threads
        self.ahead = 4 * threads  # results that may wait to be told
        self.taken = self.told = 0
        self.finished: dict[int, Result] = {}
        self.change = threading.Condition()
        self.error: BaseException | None = None
        self.stopped = False

    def results(self) -> Iterator[Result]:
        pool = _pool(self.threads)
        for _ in range(min(self.threads, len(self.items)) - 1):
            pool.submit(self._help)
        try:
            for number in range(len(self.items)):
                yield self._wait_for(number)
        finally:  # an interrupt or an error in one thread ends the others at their next item
            with self.change:
                self.stopped = True
                self.change.notify_all()

    def _wait_for(self, number: int) -> Result:
        while True:
            with self.change:
                while number not in self.finished and not self._may_take() and self.error is None:
                    self.change.wait()
                if self.error is not None:
                    raise self.error
                if number in self.finished:
                    self.told = number + 1
                    self.change.notify_all()
                    return self.finished.pop(number)
                mine, self.taken = self.taken, self.taken + 1
            self._do(mine)

    def _may_take(self) -> bool:
        return self.taken < min(len(self.items), self.told + self.ahead)

    def _help(self) -> None:
        while True:
            with self.change:
                while not self._may_take():
                    if self.stopped or self.taken == len(self.items):
                        return
                    self.change.wait()
                if self.stopped:
                    return
                mine, self.taken = self.taken, self.taken + 1
            try:
                self._do(mine)
            except BaseException as error:
                with self.change:
                    self.error = error
                    self.change.notify_all()
                return

    def _do(self, number: int) -> None:
        result = self.function(self.items[number])
        with self.change:
            self.finished[number] = result
            self.change.notify_all()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """One pool per size for the life of the process; starting threads anew costs more than a small pass."""
    return ThreadPoolExecutor(threads, thread_name_prefix="ilk")


# A forked child has none of the parent's threads: it must make its own pools.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)

"""Rows held by the workers of a task scheduler: one pack for each part of a Dask frame or array.

A pool of workers does four things: put a value, submit a function of values that are there, get a value, free it. Every
value is the result of a task, the parameters of a pass too, so a scheduler that loses a worker makes it anew; nothing
is scattered. Partials are added up on the workers in a tree, always in the same order.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from ilk.engines.packed import Pack, PackedRows, PackLayout, Visit
from ilk.errors import DataError, EngineError, shown
from ilk.table.block import Encoding

FAN_IN = 8  # partials added up by one task
AHEAD = 16  # results of parts that wait for the driver at a time, at the least

Reference = Any


class Pool(Protocol):
    """Workers that keep values."""

    def put(self, value: Any) -> Reference: ...

    def submit(self, function: Callable[..., Any], *values: Reference) -> Reference: ...

    def get(self, reference: Reference) -> Any: ...

    def free(self, references: Sequence[Reference]) -> None: ...


class FuturesRows(PackedRows):
    """Rows whose packs are values kept by a pool, one for each part that has rows."""

    def __init__(self, packs: _PoolPacks, encoding: Encoding, complete: bool, threads: int | None) -> None:
        super().__init__(packs.sizes, packs.layout, encoding, complete, threads)
        self._packs, self._pool = packs, packs.pool

    @classmethod
    def of_parts(
        cls, pool: Pool, parts: Sequence[Reference], layout: PackLayout, *, threads: int | None = None
    ) -> FuturesRows:
        """Rows of packs in the making; not conditioned, and taken for incomplete until it is known."""
        packs = _PoolPacks.of_parts(pool, parts, layout)
        return cls(packs, Encoding(1.0, np.zeros(layout.n_columns)), False, threads)

    def encoded(self, encoding: Encoding, complete: bool) -> FuturesRows:
        """The same rows, conditioned."""
        return FuturesRows(self._packs, encoding, complete, self.threads)

    def _total(self, visit: Visit[Any, Any]) -> Any:
        pool, shipped = self._pool, self._pool.put(visit)
        partials = [
            pool.submit(partial(_total_of, first_row=int(first)), shipped, pack)
            for pack, first in zip(self._packs.packs, self.first_row[:-1], strict=True)
        ]
        made = [shipped, *partials]
        while len(partials) > 1:
            partials = [
                pool.submit(_added, *partials[i : i + FAN_IN]) for i in range(0, len(partials), FAN_IN)
            ]
            made += partials
        try:
            return pool.get(partials[0])
        finally:
            pool.free(made)

    def _each(self, visit: Visit[Any, Any], parts: Sequence[int]) -> Iterator[list[Any]]:
        pool, shipped = self._pool, self._pool.put(visit)
        ahead = max(AHEAD, 2 * len(self._packs.packs) // AHEAD)
        waiting: list[Reference] = []
        left = iter(parts)
        try:
            while True:
                for part in left:
                    begin = partial(_results_of, first_row=int(self.first_row[part]))
                    waiting.append(pool.submit(begin, shipped, self._packs.packs[part]))
                    if len(waiting) >= ahead:
                        break
                if not waiting:
                    return
                first = waiting.pop(0)
                yield pool.get(first)
                pool.free([first])
        finally:
            pool.free([shipped, *waiting])


class _PoolPacks:
    """References to the packs that have rows, and how many those are."""

    def __init__(
        self, pool: Pool, packs: Sequence[Reference], sizes: Sequence[int], layout: PackLayout
    ) -> None:
        self.pool, self.packs, self.sizes, self.layout = pool, tuple(packs), tuple(sizes), layout
        weakref.finalize(self, pool.free, self.packs)

    @classmethod
    def of_parts(cls, pool: Pool, parts: Sequence[Reference], layout: PackLayout) -> _PoolPacks:
        counts = [pool.submit(_size_of, part) for part in parts]
        sizes = [pool.get(count) for count in counts]
        pool.free(counts)
        if not any(sizes):
            raise DataError("no-rows", "the table has no rows", do="Give at least one row")
        held = [part for part, size in zip(parts, sizes, strict=True) if size]
        return cls(pool, held, [size for size in sizes if size], layout)


def _size_of(pack: Pack) -> int:
    return pack.n_rows


def _total_of(visit: Visit[Any, Any], pack: Pack, *, first_row: int) -> Any:
    return visit.total(iter([(first_row, pack)]))


def _results_of(visit: Visit[Any, Any], pack: Pack, *, first_row: int) -> list[Any]:
    return visit.each(pack, first_row)


def _added(first: Any, *others: Any) -> Any:
    total = first
    for other in others:
        total = total + other  # not in place: the scheduler may want the first once more
    return total


def _same(value: Any) -> Any:
    return value


class DaskPool:
    """The workers of a `distributed.Client`."""

    def __init__(self, client: Any) -> None:
        self.client = client

    @classmethod
    def current(cls) -> DaskPool:
        """The client in use; else one of threads in this process."""
        try:
            from distributed import get_client
        except ImportError:
            raise EngineError(
                "package-missing",
                "Dask tables need the package distributed",
                do='Install it: pip install "ilk[dask]"',
            ) from None
        try:
            return cls(get_client())
        except ValueError:
            return cls(_own_client())

    def put(self, value: Any) -> Reference:
        return self.client.submit(_same, value, pure=False)

    def submit(self, function: Callable[..., Any], *values: Reference) -> Reference:
        return self.client.submit(function, *values, pure=False)

    def get(self, reference: Reference) -> Any:
        from distributed.scheduler import KilledWorker

        try:
            return reference.result()
        except KilledWorker as error:
            raise EngineError(
                "workers-lost",
                f"Dask workers died on the same task again and again: {shown(str(error), 120)}",
                do="Give workers more memory, or the table more partitions",
            ) from None
        except ModuleNotFoundError as error:
            raise EngineError(
                "worker-lacks-package",
                f"a Dask worker has no module {error.name!r}",
                do="Install ilk and what it needs on every worker",
            ) from None

    def free(self, references: Sequence[Reference]) -> None:
        with contextlib.suppress(Exception):  # the client may have gone before us
            for reference in references:
                reference.release()


_own_clients: list[Any] = []  # one at most


def _own_client() -> Any:
    """A client of threads in this process, kept for later tables as long as it runs."""
    from distributed import Client

    if not _own_clients or _own_clients[0].status != "running":
        _own_clients[:] = [Client(processes=False, dashboard_address=None, set_as_default=False)]
    return _own_clients[0]


def is_dask_frame(data: Any) -> bool:
    import narwhals.dependencies as known

    return bool(known.is_dask_dataframe(data))


def is_dask_array(data: Any) -> bool:
    arrays = sys.modules.get("dask.array")
    return arrays is not None and isinstance(data, arrays.Array)

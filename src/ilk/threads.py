"""Work done by several threads, its results told in order: the same whatever the number of threads."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from numbers import Integral
from typing import Any, Generic, TypeVar

from threadpoolctl import ThreadpoolController

from ilk.errors import Option, UsageError

Item = TypeVar("Item")
Result = TypeVar("Result")


def address_space() -> int | None:
    """Bytes that this process may map (`ulimit -v`); None without a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    found = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if found == resource.RLIM_INFINITY else found


def database_config() -> dict[str, str | bool | int | float | list[str]]:
    """How DuckDB is to be opened: under a limit of address space with one thread, for each takes its share."""
    limit = address_space()
    return {} if limit is None else {"threads": 1, "memory_limit": f"{limit // 4 // 2**20}MiB"}


def thread_count(threads: int | None) -> int:
    """Threads to use: None or -1 for all the process may run on; at most 256."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads is None or threads == -1:
        return available
    if isinstance(threads, bool) or threads < 1:
        given = Option("threads", threads)
        raise UsageError(
            "bad-threads", f"{given}", do="Give a number of 1 or more, or -1 for all", options=[given]
        )
    return min(int(threads), 256)


def threads_or_jobs(threads: int | None, n_jobs: int | None) -> int | None:
    """`threads`, or scikit-learn's spelling `n_jobs` where that is given.

    >>> threads_or_jobs(2, None), threads_or_jobs(None, -1)
    (2, -1)
    """
    if n_jobs is None:
        return threads
    if threads is not None:
        raise UsageError(
            "threads-twice",
            f"threads={threads!r} and n_jobs={n_jobs!r} are two spellings of one option",
            do="Give one of them",
        )
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or (n_jobs < 1 and n_jobs != -1):
        raise UsageError("bad-n_jobs", f"n_jobs={n_jobs!r}", do="Give a number of 1 or more, or -1 for all")
    return int(n_jobs)


def in_order(function: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    """Results in the order of the items, a few items ahead at a time so that memory stays bounded.

    >>> [*in_order(abs, [-1, 2, -3], threads=2)]
    [1, 2, 3]
    """
    if threads == 1 or len(items) == 1:
        return map(function, items)
    return _Walk(function, items, threads).results()


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
            pool.submit(copy_context().run, self._help)  # what the caller keeps, its threads keep
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


# --- the threads of linear algebra ------------------------------------------------------------------------

# A mixture asks for thousands of factorizations of small matrices. The threads of a BLAS have nothing to gain on
# these and wait for each other: with other work on the machine a search of 569 x 30 took four times as long.

_blas_lock = threading.Lock()
_blas_jobs = 0
_blas_threads: list[tuple[Any, int]] = []  # libraries and what they had before the first of the jobs that run
_here = threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold the BLAS of NumPy and SciPy to one thread; a BLAS may keep its number for each thread that calls it."""
    global _blas_jobs
    if getattr(_here, "held", False):
        yield
        return
    with _blas_lock:
        if not _blas_jobs:
            _blas_threads[:] = [
                (library, library.num_threads) for library in _libraries("scipy.linalg" in sys.modules)
            ]
        _blas_jobs += 1
        for library, _ in _blas_threads:
            library.set_num_threads(1)
    _here.held = True
    try:
        yield
    finally:
        _here.held = False
        with _blas_lock:
            _blas_jobs -= 1
            for library, threads in _blas_threads:
                library.set_num_threads(threads)


@cache
def _libraries(with_scipy: bool) -> list[Any]:
    """The libraries that are loaded; SciPy brings its own, once it is asked for linear algebra."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)

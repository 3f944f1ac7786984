"""Weights by group, over runs of rows that stay in the cache; columns side by side in threads.

Rows are added one after the other whatever the runs, and a column is one thread's: neither changes a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ilk import kernels
from ilk.kernels.pairs import Array
from ilk.threads import Item, Result, in_order

RUN = 1 << 15  # rows at a time
ALONE = 1 << 16  # rows up to which one thread is as fast
HELD = 1 << 26  # rows of all columns that are looked at together: copies of them are in memory


def each_column(
    function: Callable[[Item], Result], items: Sequence[Item], n_rows: int, threads: int
) -> list[Result]:
    """What a function tells of each column, in order."""
    at_once = 1 if n_rows <= ALONE else max(1, min(threads, HELD // n_rows))
    return [*in_order(function, items, at_once)]


def runs(n_rows: int) -> Iterator[slice]:
    """All rows, some at a time."""
    return (slice(first, first + RUN) for first in range(0, n_rows, RUN))


def batches(n_columns: int, n_rows: int) -> Iterator[slice]:
    """All columns, so many at a time that their cells stay in the cache."""
    most = max(1, RUN // max(1, n_rows))
    return (slice(first, first + most) for first in range(0, n_columns, most))


def binned(n_rows: int, n_bins: int, of: Callable[[slice], tuple[Any, Any]]) -> Array:
    """The weight in each bin; `of` gives bin and weight of the rows of a run.

    >>> binned(3, 2, lambda run: (np.array([0, 1, 1])[run], np.array([0.5, 2.0, 1.0])[run])).tolist()
    [0.5, 3.0]
    """
    bins = np.zeros(n_bins)
    for run in runs(n_rows):
        kernels.add_to_bins(bins, *of(run))
    return bins

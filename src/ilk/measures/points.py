"""Rows and their groups, checked and conditioned, as the internal measures need them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilk import kernels
from ilk.errors import DataError, Option, UsageError, rows_shown
from ilk.measures.labels import Labels, complete_codes, same_length

Array = NDArray[Any]

BLOCK_ROWS = 1024
BLOCK_SUMS = 1 << 18  # 2 MiB of distance sums a block.


@dataclass(frozen=True)
class Points:
    """Conditioned rows: `numbers = (X - mean) * 2**-exponent`, so that no square overflows or vanishes."""

    numbers: Array
    exponent: int
    codes: Array
    names: list[Any]
    weight: Array | None

    @property
    def n_clusters(self) -> int:
        return len(self.names)

    @cached_property
    def order(self) -> Array:
        """Rows by group; those of weight 0 come last in theirs."""
        return np.lexsort(
            (np.zeros(len(self.codes)) if self.weight is None else self.weight == 0, self.codes)
        )

    @cached_property
    def table(self) -> Array:
        """The rows sorted by group."""
        return self.numbers[self.order]

    @cached_property
    def table_weight(self) -> Array | None:
        return None if self.weight is None else self.weight[self.order]

    @cached_property
    def starts(self) -> Array:
        """Where each group begins in `table`, and the end."""
        counts = np.bincount(self.codes, minlength=self.n_clusters)
        return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)

    @cached_property
    def sizes(self) -> Array:
        """Rows, or sums of weights, per group."""
        return np.bincount(self.codes, weights=self.weight, minlength=self.n_clusters).astype(np.float64)

    @cached_property
    def centres(self) -> Array:
        """Means of the groups, conditioned."""
        if not (self.sizes > 0).all():
            empty = self.names[int(np.flatnonzero(self.sizes <= 0)[0])]
            raise DataError(
                "cluster-without-weight",
                f"all rows of the group {empty!r} have weight 0",
                do="Leave the group out",
            )
        # Means of the differences to one row each: equal rows have exactly themselves as their centre. With digits to
        # spare, so that the order of the rows does not show where centres nearly meet.
        anchor = self.table[self.starts[:-1]].astype(np.longdouble)
        apart = self.table - np.repeat(anchor, np.diff(self.starts), axis=0)
        if self.table_weight is not None:
            apart *= self.table_weight[:, None]
        mean = np.add.reduceat(apart, self.starts[:-1], axis=0) / self.sizes[:, None]
        return np.asarray(anchor + mean, dtype=np.float64)

    def squares(self) -> Array:
        """Squared distance of each row to its centre, conditioned."""
        return np.asarray(np.square(self.numbers - self.centres[self.codes]).sum(axis=1))

    def by_cluster(self, values: Array) -> Array:
        """Weighted sum per group of a value per row."""
        weighted = values if self.weight is None else values * self.weight
        return np.bincount(self.codes, weights=weighted, minlength=self.n_clusters)

    def distance_sums(self, rows: Array, threads: int) -> Iterator[tuple[slice, Array]]:
        """Block by block which of `rows` (conditioned), and their sums of distances to every group."""
        step = max(1, min(BLOCK_ROWS, BLOCK_SUMS // self.n_clusters))
        spans = [slice(first, min(first + step, len(rows))) for first in range(0, len(rows), step)]
        table, starts, weight = self.table, self.starts, self.table_weight

        def sums(span: slice) -> Array:
            return kernels.silhouette_sums(rows[span], table, starts, weight)

        yield from zip(spans, in_order(sums, spans, threads), strict=True)


def in_order(function: Callable[[slice], Array], spans: list[slice], threads: int) -> Iterator[Array]:
    """Results in the order of the spans, at most `threads` at work and as many waiting."""
    if threads == 1 or len(spans) < 2:
        yield from map(function, spans)
        return
    waiting: deque[Future[Array]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for span in spans:
            waiting.append(pool.submit(function, span))
            if len(waiting) == 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def points_of(X: Any, labels: Labels, weight: Any = None) -> Points:
    """Check a table, its labels and weights, and condition the numbers."""
    rows = _checked(X)
    codes, names = complete_codes(labels)
    same_length(len(rows), len(codes), "X", "labels")
    numbers, exponent = _conditioned(rows)
    return Points(numbers, exponent, codes, names, _weights(weight, len(rows)))


def need_two_clusters(points: Points, measure: str) -> None:
    """Refuse what only two groups or more can have."""
    if int((points.sizes > 0).sum()) < 2:
        raise DataError(
            "one-cluster",
            f"{measure} is not defined for one group",
            do="Give labels with two groups or more",
        )


def checked_threads(threads: int) -> int:
    """A whole number of threads from 1."""
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        given = Option("threads", threads)
        raise UsageError(
            "bad-threads", f"{given} cannot be", do="Give a whole number from 1", options=[given]
        )
    return int(threads)


def _checked(X: Any) -> Array:
    try:
        rows = np.asarray(X)
        if rows.dtype.kind not in "biuf":
            raise ValueError
        rows = rows.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise DataError(
            "not-numbers",
            "X is not a table of numbers",
            do="Give numeric columns only; text and dates have no distance here",
        ) from None
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise UsageError(
            "bad-shape",
            f"X has shape {rows.shape}",
            do="Give a table (rows, columns); X.reshape(-1, 1) for one column",
        )
    for code, what, bad in (("data-missing", "missing", np.isnan), ("data-infinite", "infinite", np.isinf)):
        found = np.flatnonzero(bad(rows).any(axis=1))
        if found.size:
            raise DataError(
                code,
                f"X has {what} cells",
                where=rows_shown(found.tolist()),
                do="Leave those rows out or fill in the values",
            )
    return rows


def _conditioned(rows: Array) -> tuple[Array, int]:
    numbers, first = _to_unit(rows)
    numbers -= numbers.mean(axis=0, dtype=np.longdouble).astype(np.float64)  # the same in any order of rows
    numbers, second = _to_unit(numbers)
    return numbers, first + second


def _to_unit(rows: Array) -> tuple[Array, int]:
    """Multiply by the power of two that brings the largest number into [1/2, 1)."""
    exponent = int(np.frexp(np.abs(rows).max())[1])
    return np.ldexp(rows, -exponent, order="C"), exponent


def _weights(weight: Any, n_rows: int) -> Array | None:
    if weight is None:
        return None
    values = np.asarray(weight, dtype=np.float64)
    if values.shape != (n_rows,):
        raise UsageError(
            "bad-weight",
            f"weight has shape {values.shape}, X has {n_rows} rows",
            do="Give one weight per row",
        )
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        raise DataError(
            "bad-weight",
            "weights are finite numbers from 0",
            where=rows_shown(bad.tolist()),
            do="Correct those rows",
        )
    if not (values > 0).any():
        raise DataError("bad-weight", "all weights are 0", do="Give at least one row a weight above 0")
    return values

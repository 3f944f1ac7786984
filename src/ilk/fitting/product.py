"""Mixtures over mixed columns: the family that a table calls for, and partitions of its rows to start from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ilk import kernels
from ilk.engines.base import Rows
from ilk.errors import DataError, UsageError
from ilk.families.covariance import Structure
from ilk.families.mixture import anything_observed
from ilk.families.prior import Prior
from ilk.families.product import Categories, Product, counted_events
from ilk.fitting.partitions import Partitioner
from ilk.fitting.sparse_partitions import SparsePartitioner
from ilk.fitting.table_moments import table_moments
from ilk.table.block import Array, Block, is_sparse

MIXED = (
    "ward",
    "principal",
    "k-means",
    "k-log-k",
    "principal",
    "k-log-k",
    "random",
    "k-log-k",
    "random",
    "random",
)
"""Starts of `init="auto"` where there are categories: no single one is near the best optimum in more than half of
the tables (assorted.md, section 4), so many short ones of different kinds."""

LEAST_VARIANCE = 1e-250  # beside that of the widest column; densities of less overflow


@dataclass(frozen=True)
class TableCounts:
    """Sums over the rows: weight of each level, of the observed cells and of the rows with any, total of the counts."""

    levels: Array
    cells: Array  # of the numeric columns
    total: Array  # of the count columns
    row_weight: float

    def __add__(self, other: TableCounts) -> TableCounts:
        return TableCounts(
            self.levels + other.levels,
            self.cells + other.cells,
            self.total + other.total,
            self.row_weight + other.row_weight,
        )


def table_counts(rows: Rows, level_start: Array, is_count: Array) -> TableCounts:
    """One pass over the table."""
    return rows.reduce(_visit_counts, (level_start, is_count))


def _visit_counts(state: tuple[Array, Array], block: Block) -> TableCounts:
    level_start, is_count = state
    weight = block.weights
    none = np.empty((block.n_rows, 0))
    nothing = (none, 1.0, np.empty(0), None)
    levels = kernels.product_sums(*nothing, block.codes, weight[:, None], none[:1], level_start)
    told = float(weight @ anything_observed(block))
    events, seen = counted_events(block, is_count)
    if seen is None:
        cells = np.full(block.n_columns, weight.sum())
        return TableCounts(levels.counts[0], cells, np.asarray(weight @ events), told)
    return TableCounts(levels.counts[0], weight @ ~np.isnan(block.raw), weight @ events, told)


def make_product(
    rows: Rows,
    level_start: Array,
    is_count: Array,
    *,
    structure: Structure,
    membership: str = "soft",
    smoothing: float = 0.0,
    prior: Callable[[Array, Array, float], Prior | None] = lambda mean, covariance, weight: None,
) -> tuple[Product, TableCounts]:
    """The family of products over the columns of a table, with the table's own shares, rates and variances.

    `prior` makes that of the Gaussians from the mean, the covariance and the weight of the measured cells.
    """
    counts = table_counts(rows, level_start, is_count)
    measured = np.flatnonzero(~is_count)
    mean, variance, covariance = _moments(rows, measured)
    if (variance < LEAST_VARIANCE * variance.max(initial=0.0)).any() or not (variance > 0).all():
        raise DataError(
            "no-spread",
            "a column varies so much less than the widest one that nothing is left of its values in common units",
            do='Give columns of similar width, or scale="standard"',
        )
    seen = counts.cells[is_count]
    rate = np.divide(counts.total, seen, out=np.zeros_like(counts.total), where=seen > 0)
    pooled = np.zeros_like(counts.levels)
    if len(pooled):
        blank = Categories(level_start, pooled)
        pooled = blank.shares(counts.levels[None])[0]
    family = Product(
        structure,
        variance,
        membership,
        prior=prior(mean, covariance, counts.row_weight),
        categories=Categories(level_start, pooled, smoothing),
        is_count=is_count,
        pooled_rate=rate,
    )
    return family, counts


def _moments(rows: Rows, measured: Array) -> tuple[Array, Array, Array]:
    """Mean, variance and covariance of the measured columns; of counts alone they are not asked for."""
    if not len(measured):
        return np.empty(0), np.empty(0), np.empty((0, 0))
    moments = table_moments(rows)
    return moments.mean[measured], moments.variance[measured], moments.covariance[np.ix_(measured, measured)]


class MixedPartitioner(Partitioner):
    """Partitions of rows with categories, by K-means and its kin on standardised numbers and weighted dummies.

    The dummies of a column are (indicator - share) / sqrt(share), scaled to a total variance of one: a category
    weighs as much as a number. A missing cell lies at the mean.
    """

    def __init__(self, sample: Block, seed: int, level_start: Array) -> None:
        super().__init__(sample, seed)
        self.level_start = level_start

    @property
    def mix(self) -> tuple[str, ...]:
        return MIXED

    def labels(self, name: str, k: int, number: int) -> Array:
        if name == "tree":
            raise UsageError("bad-start", 'init="tree" is for numbers alone', do='Choose "ward" or "auto"')
        return super().labels(name, k, number)

    @cached_property
    def standard(self) -> Array:
        numbers = super().standardise() if self.sample.n_columns else np.empty((self.sample.n_rows, 0))
        codes, weight = self.sample.codes, self.sample.weights
        assert codes is not None
        parts = [numbers]
        for column, size in enumerate(np.diff(self.level_start)):
            dummy = np.zeros((len(codes), size + 1))
            dummy[np.arange(len(codes)), codes[:, column]] = 1.0  # -1 is the last, cut off
            dummy, seen = dummy[:, :-1], dummy[:, -1] == 0
            share = weight @ dummy / max(float(weight @ seen), np.finfo(np.float64).tiny)
            occurs = share > 0
            inertia = max(int(occurs.sum()) - 1, 1)
            parts.append((dummy - share)[:, occurs] * seen[:, None] / np.sqrt(share[occurs] * inertia))
        return np.hstack(parts)


def partitioner_for(rows: Rows, level_start: Array) -> Callable[[Block, int], Partitioner]:
    """How starts are made: as for Gaussian mixtures where all columns are numbers."""
    few = rows.take(np.arange(0))
    if is_sparse(few.raw) or is_sparse(few.codes):
        return SparsePartitioner
    return partial(MixedPartitioner, level_start=level_start) if len(level_start) > 1 else Partitioner

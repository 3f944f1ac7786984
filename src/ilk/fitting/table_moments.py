"""What mixtures need to know of the whole table: means, covariance and extent of its encoded columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk import kernels
from ilk.engines.base import Rows
from ilk.families.centroid import coded
from ilk.families.gaussian import LOG_2_PI, Noise
from ilk.fitting.recall import recall
from ilk.table.block import Array, Block

BROAD = 3.0  # standard deviations of the table that one of the broad Gaussian noise has


@dataclass(frozen=True, kw_only=True)
class TableMoments:
    """Sums over the rows, in encoded units; pairs of columns over the rows that have both cells."""

    weight: Array  # (d, d)
    total: Array  # (d, d): sum of column i over the rows that have i and j
    product: Array  # (d, d)
    low: Array
    high: Array
    row_weight: float  # of rows with an observed cell

    def __add__(self, other: TableMoments) -> TableMoments:
        return TableMoments(
            weight=self.weight + other.weight,
            total=self.total + other.total,
            product=self.product + other.product,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
            row_weight=self.row_weight + other.row_weight,
        )

    @property
    def mean(self) -> Array:
        weight = np.diagonal(self.weight)
        return np.diagonal(self.total) / np.where(weight > 0, weight, 1.0)

    @property
    def covariance(self) -> Array:
        """Divisor rows; encoded columns are centred near zero, so sums about zero keep their digits."""
        weight = np.where(self.weight > 0, self.weight, 1.0)
        return np.asarray(self.product / weight - (self.total / weight) * (self.total.T / weight))

    @property
    def variance(self) -> Array:
        """Of the columns; 0 for a constant one."""
        varies = self.high > self.low
        return np.where(varies, np.maximum(np.diagonal(self.covariance), 0.0), 0.0)

    @property
    def cells(self) -> Array:
        """Weight of the observed cells of each column."""
        return np.diagonal(self.weight)


def _visit(state: None, block: Block) -> TableMoments:
    return _complete_moments(block) if block.complete else _observed_moments(block)


def _complete_moments(block: Block) -> TableMoments:
    """By compiled sums about zero."""
    d, parts = block.n_columns, (block.part_rows, block.threads)
    count, total, product = kernels.mixture_gather(
        *coded(block), block.weight, np.zeros((1, d)), None, "full", *parts
    )
    low, high = _extremes(block)
    return TableMoments(
        weight=np.full((d, d), count[0]),
        total=np.tile(total[0][:, None], d),
        product=product[0],
        low=low,
        high=high,
        row_weight=float(count[0]),
    )


def _extremes(block: Block) -> tuple[Array, Array]:
    """Least and largest of each column, part by part; the encoding keeps the order, so that raw extremes will do."""
    low, high = np.full(block.n_columns, np.inf), np.full(block.n_columns, -np.inf)
    size, zero = block.part_rows or max(block.n_rows, 1), np.zeros(block.n_columns)
    for first in range(0, block.n_rows, size):
        part = block.raw[first : first + size]
        if block.weight is not None:
            part = part[block.weight[first : first + size] > 0]
        if len(part):
            least, most, _ = kernels.column_ranges(np.ascontiguousarray(part), zero)
            ends = block.encoding.apply(np.array([least, most], dtype=part.dtype)).astype(np.float64)
            low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
    return low, high


def _observed_moments(block: Block) -> TableMoments:
    numbers = block.numbers.astype(np.float64, copy=False)
    observed = ~np.isnan(numbers)
    values = np.where(observed, numbers, 0.0)
    weighted = values * block.weights[:, None]
    counted = observed * block.weights[:, None]
    present = observed & (block.weights > 0)[:, None]
    return TableMoments(
        weight=counted.T @ observed,
        total=weighted.T @ observed,
        product=weighted.T @ values,
        low=np.where(present, numbers, np.inf).min(axis=0),
        high=np.where(present, numbers, -np.inf).max(axis=0),
        row_weight=float(block.weights @ observed.any(axis=1)),
    )


def table_moments(rows: Rows) -> TableMoments:
    """One pass over the table."""
    whole = rows.whole if kernels.COMPILED else None
    return recall(
        "moments", rows, (), lambda: rows.reduce(_visit, None) if whole is None else _visit(None, whole)
    )


@dataclass(frozen=True)
class _Extent:
    low: Array
    high: Array

    def __add__(self, other: _Extent) -> _Extent:
        return _Extent(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


def _visit_extent(axes: Any, block: Block) -> _Extent:
    scores = block.numbers.astype(np.float64, copy=False)[block.weights > 0] @ axes
    return _Extent(scores.min(axis=0, initial=np.inf), scores.max(axis=0, initial=-np.inf))


def bounding_noise(rows: Rows, moments: TableMoments) -> Noise:
    """Uniform noise over the smaller of two boxes: along the columns, or along the principal axes (as mclust).

    With missing cells the box along the columns, so that a missing cell drops out.
    """
    d = rows.n_columns
    along_columns = np.log(moments.high - moments.low)
    log_range = along_columns
    if rows.complete:
        _, axes = np.linalg.eigh(moments.covariance)
        extent = rows.reduce(_visit_extent, axes)
        with np.errstate(divide="ignore"):
            along_axes = np.log(extent.high - extent.low)
        if np.isfinite(along_axes).all() and along_axes.sum() < along_columns.sum():
            log_range = np.full(d, along_axes.sum() / d)
    return Noise(moments.mean, np.zeros(d), -log_range)


def broad_noise(moments: TableMoments) -> Noise:
    """A Gaussian along the columns, `BROAD` times as wide as the table."""
    deviation = BROAD * np.sqrt(moments.variance)
    return Noise(moments.mean, 1 / deviation, -(np.log(deviation) + LOG_2_PI / 2))

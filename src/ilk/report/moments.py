"""Mean and deviation of numbers in every group and in all rows, of many columns at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ilk import kernels
from ilk.kernels.pairs import Array
from ilk.report.bins import runs


@dataclass(frozen=True)
class GroupMoments:
    """Of one column, about its first value and in units of its range: no digits lost, no overflow."""

    middle: float
    unit: float
    size: Array  # weight of each group
    mean: Array
    spread: Array
    whole_mean: float
    whole_spread: float


def moments_without_gaps(
    columns: Sequence[Array], label: Array, heft: Array, k: int
) -> list[GroupMoments | None]:
    """Of the columns in which no cell is missing."""
    if not len(label):
        return [None] * len(columns)
    values = np.asarray(columns, dtype=np.float64)
    complete = np.asarray(~np.isnan(values).any(axis=1))
    values = values if complete.all() else values[complete]
    known = iter(moments_of(values, label, heft, k) if len(values) else ())
    return [next(known) if whole else None for whole in complete.tolist()]


def moments_of(values: Array, label: Array, heft: Array, k: int) -> list[GroupMoments]:
    """Of columns without gaps (columns, rows); rows are added one after the other, so that a column alone has the same
    bits.

    >>> (one,) = moments_of(np.array([[1.0, 3.0, 7.0]]), np.array([0, 0, 1]), np.ones(3), 2)
    >>> (one.mean * one.unit + one.middle).tolist(), (one.spread * one.unit).tolist()
    ([2.0, 7.0], [1.0, 0.0])
    """
    middle = values[:, 0].copy()
    offset, unit = _all_offsets(values, middle)
    size = np.zeros(k)
    for run in runs(len(label)):
        kernels.add_to_bins(size, label[run], heft[run])
    mean, spread = _group_moments(offset, label, heft, size)
    all_mean, all_spread = _group_moments(offset, np.zeros_like(label), heft, heft.sum()[None])
    return [
        GroupMoments(
            middle=float(middle[j]),
            unit=float(unit[j]),
            size=size,
            mean=mean[j],
            spread=spread[j],
            whole_mean=float(all_mean[j, 0]),
            whole_spread=float(all_spread[j, 0]),
        )
        for j in range(len(values))
    ]


def offsets(values: Array, middle: float) -> tuple[Array, float]:
    """About a value of the column and in units of its range, and that unit.

    >>> offsets(np.array([1e308, -1e308]), 1e308)[0].round(2).tolist()
    [0.0, -1.11]
    """
    with np.errstate(over="ignore"):
        unit = float(np.abs(values - middle).max(initial=0.0)) or 1.0
    if np.isfinite(unit):
        return (values - middle) / unit, unit
    unit = float(np.finfo(np.float64).max)
    return (values / 2 - middle / 2) / (unit / 2), unit


def _all_offsets(values: Array, middle: Array) -> tuple[Array, Array]:
    """The same of each column (columns, rows)."""
    with np.errstate(over="ignore", invalid="ignore"):
        offset = values - middle[:, None]
        unit = np.abs(offset).max(axis=1)
        unit = np.where(unit > 0, unit, 1.0)
        offset /= unit[:, None]
    for j in np.flatnonzero(~np.isfinite(unit)):
        offset[j], unit[j] = offsets(values[j], float(middle[j]))
    return offset, unit


def _group_moments(values: Array, label: Array, heft: Array, size: Array) -> tuple[Array, Array]:
    """Weighted mean and standard deviation (columns, groups), in two passes."""
    first = np.arange(len(values))[:, None] * len(size)  # the bins of each column
    safe, sums = np.where(size > 0, size, 1.0), np.zeros((2, len(values) * len(size)))
    for run in runs(len(label)):
        place = first + label[run]
        kernels.add_to_bins(sums[0], place.ravel(), (heft[run] * values[:, run]).ravel())
    mean = sums[0].reshape(len(values), -1) / safe
    for run in runs(len(label)):
        place = first + label[run]
        square = heft[run] * (values[:, run] - mean.ravel()[place]) ** 2
        kernels.add_to_bins(sums[1], place.ravel(), square.ravel())
    return mean, np.sqrt(sums[1].reshape(len(values), -1) / safe)

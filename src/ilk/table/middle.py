"""Medians and robust spreads of columns, from some rows of a table."""

from __future__ import annotations

import numpy as np

from ilk.table.block import Array, Block, Encoding
from ilk.table.content import content_keys
from ilk.table.least_keys import least_keys
from ilk.table.out_of_core.disk import Sliceable

SAMPLE_ROWS = 2_000
"""Rows looked at for the median of columns with far outliers."""
SHARES = (0.16, 0.5, 0.84)
TOGETHER = 1 << 21  # cells of a table whose columns are looked at together


def middle_rows(n_rows: int) -> Array:
    """The rows looked at for medians, evenly through the table.

    >>> middle_rows(3).tolist(), middle_rows(10 * SAMPLE_ROWS)[:3].tolist()
    ([0, 1, 2], [0, 10, 20])
    """
    return np.arange(min(n_rows, SAMPLE_ROWS)) * n_rows // min(n_rows, SAMPLE_ROWS)


def content_rows(keys: Array) -> Array:
    """The rows looked at where it matters which: by what they say, in order."""
    return np.sort(least_keys(keys, None, min(len(keys), SAMPLE_ROWS)))


def number_keys(raw: Array, power: float) -> Array:
    """Keys of content of rows that are not conditioned yet."""
    return content_keys(Block(raw, Encoding(power, np.zeros(raw.shape[1])), complete=False), 0)


def middle_and_spread(
    raw: Sliceable, power: float, weight: Sliceable | None, rows: Array
) -> tuple[Array, Array]:
    """Weighted median and robust spread (median to the 16 and 84 % points, the larger) of some rows."""
    heft = None if weight is None else weight[rows].astype(np.float64)
    middle, spread = np.zeros(raw.shape[1]), np.zeros(raw.shape[1])
    done = np.zeros(raw.shape[1], dtype=bool)
    if heft is None and isinstance(raw, np.ndarray) and raw.size <= TOGETHER:
        sample = raw[rows].astype(np.float64) * power
        done = np.asarray(~np.isnan(sample).any(axis=0))
        low, middle[done], high = _low_ranks(np.ascontiguousarray(sample[:, done].T), SHARES).T
        spread[done] = np.maximum(middle[done] - low, high - middle[done])
    for j in np.flatnonzero(~done):
        with np.errstate(over="ignore"):  # of rows that do not count; a column at a time: all would be a copy
            sample = raw[rows, j].astype(np.float64) * power
        keep = ~np.isnan(sample)
        if heft is not None:
            keep &= heft > 0
        if keep.any():
            part = None if heft is None else heft[keep]
            low, middle[j], high = quantiles(sample[keep], part, SHARES)
            spread[j] = max(middle[j] - low, high - middle[j])
    return middle, spread


def quantiles(values: Array, heft: Array | None, shares: tuple[float, ...]) -> Array:
    """Lower weighted quantiles: always values of the data, so equal for repeated and for weighted rows."""
    if heft is None:
        return _low_ranks(values, shares)
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(heft[order])
    places = np.searchsorted(reached, np.asarray(shares) * reached[-1])
    return np.asarray(values[order[np.minimum(places, len(values) - 1)]])


def _low_ranks(values: Array, shares: tuple[float, ...]) -> Array:
    """Lower quantiles over the last axis."""
    ranks = [max(int(np.ceil(share * values.shape[-1])) - 1, 0) for share in shares]
    return np.asarray(np.partition(values, ranks, axis=-1)[..., ranks])

"""Sums whose rounded value does not depend on the order of the terms, in plain NumPy.

A term is cut into slices that are multiples of a unit coarse enough for a float64 to add all of them without
rounding; slices of equal unit are added exactly by `bincount`, and the slice sums make a (high, low) pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Each slice takes 53 - log2(rows) bits of the largest term; three cover more than a pair can hold.
_N_SLICES = 3


def group_sums(values: Array, weight: Array, label: Array, n_groups: int) -> Array:
    """Pairs (n_groups, columns, 2): sum of weight * value over the rows of each group, `weight` per cell.

    >>> round_pair = group_sums(np.array([[1e16], [1.0], [-1e16]]), np.ones((3, 1)), np.zeros(3, int), 1)
    >>> float(round_pair.sum())
    1.0
    """
    values = np.asarray(values, dtype=np.float64)
    n_columns = values.shape[1]
    size = n_groups * n_columns
    group = (np.asarray(label)[:, None] * n_columns + np.arange(n_columns)).ravel()
    product, error = two_product(values.ravel(), np.asarray(weight, dtype=np.float64).ravel())
    high, low = np.zeros(size), np.zeros(size)
    for terms in (product, error):
        for part in _slice_sums(terms, group, size):
            high, slip = two_sum(high, part)
            low += slip
    high, low = two_sum(high, low)
    return np.stack([high, low], axis=-1).reshape(n_groups, n_columns, 2)


def _slice_sums(terms: Array, group: Array, size: int) -> list[Array]:
    """Exact sums per group of the slices of `terms`, coarsest first."""
    sums = []
    for _ in range(_N_SLICES):
        largest = float(np.abs(terms).max(initial=0.0))
        if largest == 0.0:
            break
        anchor = 2.0 ** (np.frexp(largest)[1] + int(np.ceil(np.log2(len(terms) + 1))) + 1)
        coarse = (terms + anchor) - anchor
        sums.append(np.bincount(group, weights=coarse, minlength=size))
        terms = terms - coarse
    return sums


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Rounded sum and its exact error."""
    total = a + b
    seen = total - a
    return total, (a - (total - seen)) + (b - seen)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Rounded product and its exact error, by splitting each factor in two halves (Dekker 1971)."""
    product = a * b
    a_high, b_high = _upper_half(a), _upper_half(b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _upper_half(a: Array) -> Array:
    spread = a * 134217729.0  # 2^27 + 1
    return np.asarray(spread - (spread - a))

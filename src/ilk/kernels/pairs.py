"""Sums kept as pairs of doubles (leading, trailing) in the last axis, about 106 bits.

Once rounded, such a sum does not depend on the order in which it was made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum and what rounding took from it (Knuth, TAOCP 2, 4.2.2)."""
    total = a + b
    b_rounded = total - a
    return total, (a - (total - b_rounded)) + (b - b_rounded)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded product and what rounding took from it (Dekker, Numer. Math. 18, 1971)."""
    splitter = 134217729.0  # 2**27 + 1 cuts 53 bits in two halves
    a_scaled, b_scaled = a * splitter, b * splitter
    a_high, b_high = a_scaled - (a_scaled - a), b_scaled - (b_scaled - b)
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def add_pairs(a: Array, b: Array, out: Array | None = None) -> Array:
    """Sum of two arrays of pairs (..., 2); `out` may be one of them.

    >>> add_pairs(np.array([1.0, 2.0**-60]), np.array([2.0**-70, 0.0])).tolist() == [1.0, 2.0**-60 + 2.0**-70]
    True
    """
    total, rest = two_sum(a[..., 0], b[..., 0])
    rest += a[..., 1] + b[..., 1]
    result = np.empty(np.broadcast_shapes(a.shape, b.shape)) if out is None else out
    np.add(total, rest, out=result[..., 0])
    np.subtract(rest, result[..., 0] - total, out=result[..., 1])
    return result


def round_pairs(pairs: Array) -> Array:
    """Nearest doubles to pairs (..., 2)."""
    return np.asarray(pairs[..., 0] + pairs[..., 1])

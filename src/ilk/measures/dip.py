"""Hartigan's dip: how far the values of a sample are from having a single mode.

    dip = min over distributions G with one mode of  max over x of |F(x) - G(x)|

F is the distribution of the sample. G is convex up to its mode and concave from there on. On uniform values, the
worst that has one mode, `dip * sqrt(n)` has its median at 0.36 and 95 % below 0.50 to 0.54, at any n from 50 on.
(J. A. Hartigan and P. M. Hartigan, The dip test of unimodality, Annals of Statistics 13, 1985.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilk import kernels

Array = NDArray[Any]


def dip(values: Array, weight: Array | None = None) -> float:
    """The dip of `values`; a whole weight is the value that many times.

    >>> dip(np.array([0.0, 1.0])), dip(np.array([0.0, 0.01, 1.0, 1.01])) > 0.2
    (0.25, True)
    """
    x, low, high = _steps(values, weight)
    first, last = 0, len(x) - 1
    widest = 0.0  # of what the parts outside the modal interval need
    while last > first:
        here = slice(first, last + 1)
        below, below_knots = _convex(x[here], low[here])
        above, above_knots = _convex(-x[here][::-1], -high[here][::-1])
        above, above_knots = -above[::-1], (last - first) - above_knots[::-1]
        knots = np.union1d(below_knots, above_knots)
        apart = (above - below)[knots]  # concave between knots, so widest at one of them
        if apart.max() <= widest:
            break
        middle = knots[apart.argmax()]
        start = below_knots[np.searchsorted(below_knots, middle, "right") - 1]
        end = above_knots[np.searchsorted(above_knots, middle, "left")]
        left = (high[here] - below)[:start].max(initial=0.0)
        right = (above - low[here])[end + 1 :].max(initial=0.0)
        widest = max(widest, float(left), float(right))
        first, last = first + int(start), first + int(end)
    return widest / 2


def _steps(values: Array, weight: Array | None) -> tuple[Array, Array, Array]:
    """Distinct values, and the share of the weight below each and up to each."""
    heft = np.ones(len(values)) if weight is None else np.asarray(weight, dtype=np.float64)
    values = np.asarray(values, dtype=np.float64)[heft > 0]
    x, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place, weights=heft[heft > 0], minlength=len(x))
    reached = np.cumsum(mass)
    total = reached[-1] if len(x) else 1.0
    return x, (reached - mass) / total, reached / total


def _convex(x: Array, y: Array) -> tuple[Array, Array]:
    """Greatest convex function below the points, at the points, and the numbers of those it touches."""
    knots = kernels.lower_hull(x, y)
    return np.interp(x, x[knots], y[knots]), knots

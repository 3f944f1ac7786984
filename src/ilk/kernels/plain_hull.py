"""The corners of the greatest convex function below points: the NumPy twin of the compiled kernel."""

from __future__ import annotations

import numpy as np

from ilk.kernels.pairs import Array


def lower_hull(x: Array, y: Array) -> Array:
    """Numbers of the points, `x` rising, that the greatest convex function below all of them turns at.

    >>> lower_hull(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 2.0, 1.0, 3.0])).tolist()
    [0, 2, 3]
    """
    corner: list[int] = []
    for point in range(len(x)):
        while len(corner) > 1 and _slope(x, y, corner[-2], corner[-1]) >= _slope(x, y, corner[-1], point):
            corner.pop()
        corner.append(point)
    return np.array(corner, dtype=np.int64)


def _slope(x: Array, y: Array, one: int, other: int) -> float:
    return float((y[other] - y[one]) / (x[other] - x[one]))

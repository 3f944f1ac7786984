"""Made tables: overlapping round groups, so that Lloyd and EM are still moving after twenty passes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
CHUNK = 16_384


def groups(n_rows: int, n_columns: int, k: int, spread: float, dtype: str) -> tuple[Array, Array]:
    """Rows around k centres drawn with standard deviation `spread`; unit noise. Rows and their group."""
    random = np.random.default_rng(20)
    centres = random.normal(scale=spread, size=(k, n_columns))
    label = random.integers(k, size=n_rows)
    rows = np.empty((n_rows, n_columns), dtype=dtype)
    for first in range(0, n_rows, CHUNK):
        part = label[first : first + CHUNK]
        rows[first : first + CHUNK] = centres[part] + random.normal(size=(len(part), n_columns))
    return rows, label


def some_rows(rows: Array, k: int) -> Array:
    """k rows as a start, the same for everyone."""
    return rows[np.sort(np.random.default_rng(1).choice(len(rows), k, replace=False))].copy()


def inertia(rows: Array, centres: Array) -> float:
    """Sum of squared distances to the nearest centre, the same sum for every contender, in float64."""
    centres = np.asarray(centres, dtype=np.float64)
    squares = np.square(centres).sum(axis=1)
    total = 0.0
    for first in range(0, len(rows), CHUNK):
        part = rows[first : first + CHUNK].astype(np.float64)
        nearest = (squares - 2.0 * (part @ centres.T)).min(axis=1)
        total += float((nearest + np.square(part).sum(axis=1)).sum())
    return total

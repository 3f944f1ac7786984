"""The steps in which the values of a column were recorded."""

from __future__ import annotations

import numpy as np

from ilk.table.block import Array


def recording_step(column: Array) -> float:
    """The recording step of a rounded column, 0 of one where most values are distinct."""
    distinct = np.unique(column)
    return float(np.median(np.diff(distinct))) if 1 < len(distinct) < len(column) / 2 else 0.0

"""Constant columns: set aside before a mixture is fitted, and put back into what it tells."""

from __future__ import annotations

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.derived import ColumnSubset, derive
from ilk.errors import DataError, warn
from ilk.fitting.table_moments import TableMoments, table_moments
from ilk.table.block import Array

LEAST_VARIANCE = 1e-290  # beside columns 1e145 times as wide, or as far out, doubles hold no variance


def full_matrices(matrices: Array, unit: Array, varies: Array) -> Array:
    """Matrices (K, d, d) in the user's units, zero for constant columns."""
    k, d = len(matrices), len(varies)
    full = np.zeros((k, d, d))
    with np.errstate(over="ignore", under="ignore"):
        full[:, varies[:, None] & varies] = (matrices * unit[:, None] * unit).reshape(
            k, int(varies.sum()) ** 2
        )
    return full


def set_constant_aside(rows: Rows) -> tuple[Rows, TableMoments, Array]:
    """The rows without constant columns, their moments, and the constants (NaN for a column that varies)."""
    moments = table_moments(rows)
    varies = moments.variance > LEAST_VARIANCE
    constants = np.full(rows.n_columns, np.nan)
    if varies.all():
        return rows, moments, constants
    if not varies.any():
        raise DataError(
            "no-spread",
            "every column is constant, so there is nothing to group",
            do="Give at least one column that varies",
        )
    fixed = np.flatnonzero(~varies)
    constants[fixed] = rows.encoding.undo(moments.mean)[fixed]
    narrow = ", or 1e145 times as narrow as others," if moments.variance[fixed].any() else ""
    columns = f"columns {', '.join(map(str, fixed))}"
    warn("constant-column", f"{columns} are constant{narrow} and were left out.", depth=4)
    kept = derive(rows, ColumnSubset(varies))
    return kept, table_moments(kept), constants

"""The update of the assorted family in one compiled call; `sharing.py` and `switches.py` are its twin and say what it
means."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ilk import kernels
from ilk.assorted.sharing import CellSums, ColumnCosts
from ilk.assorted.switches import coins, sparse_costs
from ilk.table.block import Array

if kernels.COMPILED:
    import ilk.kernels._compiled as native


class Update(NamedTuple):
    """Parameters of least cost, and what is then known of their penalty: minus the log prior, the penalties of the
    groups, the number of relevant columns."""

    group: Array
    mean: Array
    variance: Array
    precision: Array
    log_norm: Array
    log_level: Array
    prior: float
    groups: float
    relevant: int


def compiled_update(
    cells: CellSums, columns: ColumnCosts, previous: Array | None, *, sharing: bool
) -> Update:
    """Groups and parameters from the sums of clusters; `sharing` by backgrounds, else every cluster alone."""
    k, d = len(cells), columns.n_columns
    group = np.full((k, d), -1) if previous is None else np.array(previous, dtype=np.int64, order="C")
    numbers, log_level = np.empty((4, k, columns.n_numbers)), np.empty((k, len(columns.share)))
    terms = native.shared_update(
        *columns.compiled,
        *cells.parts,
        coins(k, d),
        sparse_costs(k, d) if sharing and k > 1 else None,
        group,
        numbers,
        log_level,
    )
    return Update(group, *numbers, log_level, *terms)

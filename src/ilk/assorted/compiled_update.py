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
    from ilk.kernels.compiled import shared_update


class Update(NamedTuple):
    """Parameters of least cost, and what is then known of their penalty: minus the log prior, the penalties of the
    groups, the number of relevant columns."""

    group: Array
    mixing: Array
    log_mixing: Array
    mean: Array
    variance: Array
    precision: Array
    log_norm: Array
    log_level: Array
    prior: float
    groups: float
    relevant: int

    @property
    def terms(self) -> tuple[float, float, int]:
        return self.prior, self.groups, self.relevant


def compiled_update(
    cells: CellSums, weight: Array, columns: ColumnCosts, previous: Array | None, *, sharing: bool
) -> Update:
    """Groups and parameters from the sums of clusters and the weight of their rows; `sharing` by backgrounds, else
    every cluster alone."""
    k, d = len(cells), columns.n_columns
    group = np.full((k, d), -1) if previous is None else np.array(previous, dtype=np.int64, order="C")
    mixing, numbers = np.empty((2, k)), np.empty((4, k, columns.n_numbers))
    log_level = np.empty((k, len(columns.share)))
    prior, groups, n_relevant = shared_update(
        *columns.compiled,
        weight,
        *cells.parts,
        *switches_of(k, d, sharing=sharing),
        group,
        mixing,
        numbers,
        log_level,
    )
    return made_of(group, mixing, numbers, log_level, (prior, groups, n_relevant))


def switches_of(k: int, n_columns: int, *, sharing: bool) -> tuple[float, Array | None]:
    """What the switches cost, as kernels take it: nats of all coins, and of the other code where there is one."""
    return coins(k, n_columns), sparse_costs(k, n_columns) if sharing and k > 1 else None


def made_of(
    group: Array, mixing: Array, numbers: Array, log_level: Array, terms: tuple[float, float, int]
) -> Update:
    """An update of the arrays that kernels fill."""
    mean, variance, precision, log_norm = numbers
    return Update(
        group,
        mixing[0],
        mixing[1],
        mean,
        variance,
        precision,
        log_norm,
        log_level,
        terms[0],
        terms[1],
        terms[2],
    )

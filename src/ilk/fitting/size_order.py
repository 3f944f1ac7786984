"""The numbers of components and groups: larger ones first, and of two of one size that with the least row.

Rows are compared by their first column of numbers, then by the next ones, then by categories; missing cells are last.
So the numbers do not depend on the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ilk.engines.base import Rows
from ilk.fitting.start import in_cell_order
from ilk.table.block import Array, Block, is_sparse
from ilk.table.condition import short


def by_size(rows: Rows, label: Array, size: Array) -> Array:
    """The old numbers of groups in their new order; one pass over the rows where sizes are equal."""
    about = short(size)  # sums of weights in another order differ in the last digits
    values, counts = np.unique(about, return_counts=True)
    tied = np.flatnonzero(np.isin(about, values[counts > 1]))
    first = np.zeros(len(size), dtype=np.intp)
    if len(tied):
        place = np.full(len(size) + 1, -1)  # the last stands for -1, noise
        place[tied] = np.arange(len(tied))
        order = _sparse_order if _is_compressed(rows) else _cell_order
        first[tied[order(rows, _Tied(label, place))]] = np.arange(len(tied))
    return np.lexsort((first, -about))


def _is_compressed(rows: Rows) -> bool:
    none = rows.take(np.arange(0))
    return is_sparse(none.raw) or is_sparse(none.codes)


def _cell_order(rows: Rows, tied: _Tied) -> Array:
    if rows.resident is None:
        least = rows.reduce(_visit_least, tied)
    else:  # a card hands over the rows of tied groups, which are few, sooner than all
        chosen = np.flatnonzero(tied.place.take(tied.label, mode="wrap") >= 0)
        least = _visit_least(replace(tied, label=tied.label[chosen]), rows.take(chosen))
    return np.lexsort(least.cells.T[::-1])


def _sparse_order(rows: Rows, tied: _Tied) -> Array:
    """The same, of rows that lie in memory: those of all tied groups are sorted."""
    group = tied.place.take(tied.label, mode="wrap")
    block = rows.take(np.flatnonzero(group >= 0))
    group = group[group >= 0]
    order = in_cell_order(block)
    order = order[block.weights[order] > 0]
    first = np.full(int(tied.place.max()) + 1, len(order))
    np.minimum.at(first, group[order], np.arange(len(order)))
    return np.argsort(first, kind="stable")


@dataclass(frozen=True)
class _Tied:
    label: Array
    place: Array  # of each label among those that are tied, -1 for the others


@dataclass(frozen=True)
class LeastRows:
    """The cells (groups, columns) of the least row of each group, infinite where it has none."""

    cells: Array

    def __add__(self, other: LeastRows) -> LeastRows:
        differs = self.cells != other.cells
        at = differs.argmax(axis=1)[:, None]
        less = np.take_along_axis(self.cells, at, 1) <= np.take_along_axis(other.cells, at, 1)
        return LeastRows(np.where(less, self.cells, other.cells))


def _visit_least(state: _Tied, block: Block) -> LeastRows:
    group = state.place.take(state.label[block.first_row : block.first_row + block.n_rows], mode="wrap")
    rows = np.flatnonzero((group >= 0) & (block.weights > 0))
    group, columns = group[rows], _columns(block)
    least = np.full((int(state.place.max()) + 1, len(columns)), np.inf)
    for column in range(len(columns)):
        if column and len(rows) == np.count_nonzero(np.bincount(group)):  # one row of each group is left
            least[group, column:] = np.transpose([_comparable(values[rows]) for values in columns[column:]])
            break
        own = _comparable(columns[column][rows])
        np.minimum.at(least[:, column], group, own)
        rows, group = (kept[own == least[group, column]] for kept in (rows, group))
    return LeastRows(least)


def _comparable(cells: Array) -> Array:
    """Cells as numbers, missing ones last."""
    numbers = cells.astype(np.float64)
    numbers[np.isnan(numbers)] = np.inf
    return numbers


def _columns(block: Block) -> list[Array]:
    return [*block.raw.T, *(() if block.codes is None else block.codes.T)]

"""Rows with blanks where cells depend on each other: the density of the cells a row has, whichever these are.

Column by column, what the cells before explain is taken out of the covariance and of the distance from the mean
(a Cholesky factorisation over the observed cells); a blank explains nothing:

    rest_ij = covariance_ij - sum over m < j of rest_im rest_jm / rest_mm          0 (1 where i = j) if cell j is blank
    away_j  = x_j - mean_j  - sum over m < j of rest_jm away_m / rest_mm           0 if cell j is blank
    score   = log share - sum over j of (away_j^2 / rest_jj + log rest_jj) / 2

A constant per observed cell, the same for all components, is left out. Each column is a step of its own, since an
expression cannot name another of the same SELECT in every dialect.
"""

from __future__ import annotations

from ilk.export.cells import CellExpression
from ilk.export.dialects import less, number
from ilk.export.scores import Terms
from ilk.table.block import Array


def steps(
    cells: tuple[CellExpression, ...], mean: Array, covariance: Array, mark: str
) -> list[list[tuple[str, str]]]:
    """For each column the (name, expression) pairs of its step; names begin with `mark`."""
    return [
        [pair for k in range(len(mean)) for pair in _step(cells, j, mean[k], covariance[k], f"{mark}{k + 1}")]
        for j in range(len(cells))
    ]


def _step(
    cells: tuple[CellExpression, ...], j: int, mean: Array, covariance: Array, mark: str
) -> list[tuple[str, str]]:
    made = []
    for i in range(j, len(cells)):
        value = less_all(
            number(covariance[i, j]), mark, i, j, [f"{mark}_rest_{j + 1}_{m + 1}" for m in range(j)]
        )
        blank = "1e0" if i == j else "0e0"
        made.append((f"{mark}_rest_{i + 1}_{j + 1}", _unless_blank(cells[j], value, blank)))
    value = less_all(
        less(cells[j].name, float(mean[j])), mark, j, j, [f"{mark}_away_{m + 1}" for m in range(j)]
    )
    return [*made, (f"{mark}_away_{j + 1}", _unless_blank(cells[j], value, "0e0"))]


def less_all(value: str, mark: str, i: int, j: int, others: list[str]) -> str:
    """`value` less `rest_im other_m / rest_mm` over the columns m before j."""
    for m in range(j):
        rest = f"{mark}_rest_{i + 1}_{m + 1}"
        value += f" - {rest} * {others[m]} / {mark}_rest_{m + 1}_{m + 1}"
    return value


def _unless_blank(cell: CellExpression, value: str, otherwise: str) -> str:
    return f"CASE WHEN {cell.name} IS NULL THEN {otherwise} ELSE {value} END"


def terms(n_columns: int, log_share: float, mark: str) -> Terms:
    """The score of one component from the names that `steps` made."""
    made = [number(log_share)]
    for j in range(1, n_columns + 1):
        away, rest = f"{mark}_away_{j}", f"{mark}_rest_{j}_{j}"
        made.append(f"-0.5e0 * ({away} * {away} / {rest} + LN({rest}))")
    return made

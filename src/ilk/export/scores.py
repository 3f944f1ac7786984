"""What each component gives a row, as expressions over the cells: log of share times density, or minus a distance.

Every expression is that of `Family.cost` with the sign changed, over the cells a row has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from ilk.assorted.blended import Blend
from ilk.assorted.family import Clusters
from ilk.errors import Option, UsageError, shown
from ilk.export.cells import CellExpression, TableExpressions
from ilk.export.dialects import less, number
from ilk.families.centroid import Centroids
from ilk.families.gaussian import LOG_2_PI, Mixture
from ilk.model.model import Model
from ilk.model.registry import saved
from ilk.table.block import Array

CHARACTERS = 40  # of a number and the signs around it
MOST_CHARACTERS = 2**24
Terms = list[str]
"""Expressions that are added."""


@dataclass(frozen=True)
class ScoreTerms:
    """The terms of every component; `sign` is that of the score, -1 for distances, of which the least is best.

    `block` is there where numbers depend on each other: the terms then hold for rows without a blank in them alone,
    and `levels` are those of the other cells.
    """

    components: tuple[Terms, ...]
    sign: int
    what: str
    block: Mixture | None = None
    levels: tuple[Terms, ...] = ()


def check_exportable(model: Model) -> None:
    """A refusal where a model has no scores that a SELECT could hold."""
    params: Any = model.params
    odd = getattr(params, "noise_share", 0.0) > 0 or getattr(params, "dof", None) is not None
    if _formula(model) is None or odd:
        raise _cannot(model)


def _formula(model: Model) -> str | None:
    kind = saved(model.family)
    return None if kind is None else kind.formula


def _block(model: Model) -> Mixture | None:
    """The numbers that depend on each other, if any."""
    params: Any = model.params
    block: dict[str | None, Any] = {"gaussians": params, "blocks": getattr(params, "numbers", None)}
    return cast("Mixture | None", block.get(_formula(model)))


def check_length(model: Model, cells: TableExpressions) -> None:
    """A refusal of a SELECT that no database would read: every name, key and step stands in it for each piece."""
    d, names = len(cells.numbers), sum(len(cell.name) for cell in cells.made)
    keys = sum(len(key) + CHARACTERS for cell in cells.categories for key in cell.keys)
    each = keys + 3 * names + 3 * d * CHARACTERS
    block = _block(model)
    if block is not None and block.covariance.axes is not None:
        each += d * (names + d * CHARACTERS) + 8 * d**3
    if each * len(model.group_of) > MOST_CHARACTERS:
        raise UsageError(
            "not-exportable",
            f"a SELECT of this model would have more than {MOST_CHARACTERS:,} characters",
            do="Place rows with ilk assign, or fit with fewer columns or groups",
        )


def scores_of(model: Model, cells: TableExpressions) -> ScoreTerms:
    """The scores of a model that can be exported."""
    return SCORES[_formula(model) or ""](model.params, cells)


def _from_centres(
    distance: Callable[[CellExpression, float], str], what: str, params: Centroids, cells: TableExpressions
) -> ScoreTerms:
    made = tuple([distance(cell, c) for cell, c in _zip(cells, row)] for row in params.centre)
    return ScoreTerms(made, -1, what)


def _of_cells(params: Clusters, cells: TableExpressions) -> ScoreTerms:
    return ScoreTerms(tuple(_product(params, k, cells) for k in range(len(params))), 1, _DENSITY)


def _of_blocks(params: Blend, cells: TableExpressions) -> ScoreTerms:
    every = range(len(params))
    levels = tuple(_levels(params.levels, k, cells) for k in every)
    made = tuple(_whitened(params.numbers, k, cells) + levels[k] for k in every)
    return ScoreTerms(made, 1, _DENSITY, params.numbers, levels)


def _of_gaussians(params: Mixture, cells: TableExpressions) -> ScoreTerms:
    if params.covariance.axes is None:
        made = tuple(_along_columns(params, k, cells) for k in range(len(params.mean)))
        return ScoreTerms(made, 1, _DENSITY)
    made = tuple(_whitened(params, k, cells) for k in range(len(params.mean)))
    return ScoreTerms(made, 1, _DENSITY, params, ([],) * len(made))


_DENSITY = "log of share times density"


def _cannot(model: Model) -> UsageError:
    option = Option("method", "gaussian")
    return UsageError(
        "not-exportable",
        f"{shown(model.method)} has no formula per row that a SELECT could hold",
        do=("Place rows with ilk assign, or fit" if model.has_rule else "Fit")
        + f" with {option}, or assorted, k-means, k-medians",
        options=[option],
    )


def _zip(cells: TableExpressions, row: Array) -> list[tuple[CellExpression, float]]:
    return [(cell, float(value)) for cell, value in zip(cells.numbers, row, strict=True)]


def squared(expression: str) -> str:
    return f"({expression}) * ({expression})"


def _square(cell: CellExpression, centre: float) -> str:
    return f"COALESCE({squared(less(cell.name, centre))}, 0e0)"


def _size(cell: CellExpression, centre: float) -> str:
    return f"COALESCE(ABS({less(cell.name, centre)}), 0e0)"


def _bell(cell: CellExpression, mean: float, precision: float, log_norm: float) -> str:
    """`log_norm - precision (x - mean)^2 / 2`, 0 for a blank."""
    if not np.isfinite([mean, precision, log_norm]).all():
        raise UsageError(
            "not-exportable",
            "the model has a component so narrow that SQL cannot hold its precision",
            do="Place rows with ilk assign",
        )
    square = squared(less(cell.name, mean))
    return f"COALESCE({number(log_norm)} - {number(precision / 2)} * {square}, 0e0)"


def _product(params: Clusters, k: int, cells: TableExpressions) -> Terms:
    terms = [number(params.log_mixing[k])]
    for d, cell in enumerate(cells.numbers):
        figures = (float(a[k, d]) for a in (params.mean, params.precision, params.log_norm))
        terms.append(_bell(cell, *figures))
    return terms + _levels(params, k, cells)


def _levels(params: Clusters, k: int, cells: TableExpressions) -> Terms:
    terms, begin = [], 0
    for cell in cells.categories:
        end = begin + len(cell.keys) + cell.never_blank
        levels = [number(value) for value in params.log_level[k, begin:end]]
        cases = " ".join(f"WHEN {key} THEN {value}" for key, value in zip(cell.keys, levels, strict=False))
        terms.append(f"CASE {cell.name} {cases} ELSE {levels[-1] if cell.never_blank else '0e0'} END")
        begin = end
    return terms


def _along_columns(params: Mixture, k: int, cells: TableExpressions) -> Terms:
    logs = params.covariance.log_variance[k]
    with np.errstate(over="ignore"):  # what is not finite is refused
        precision = np.exp(-logs)
    terms = [number(params.log_mixing[k])]
    for d, (cell, mean) in enumerate(_zip(cells, params.mean[k])):
        terms.append(_bell(cell, mean, float(precision[d]), float(-(logs[d] + LOG_2_PI) / 2)))
    return terms


def _whitened(params: Mixture, k: int, cells: TableExpressions) -> Terms:
    """`log_weight - |whiten (x - mean)|^2 / 2`, row by row of the triangle."""
    whiten, away = params.whiten[k], [f"({less(c.name, m)})" for c, m in _zip(cells, params.mean[k])]
    terms = [number(params.log_weight[k])]
    rows = [weighted(whiten[row, : row + 1], away) for row in range(len(away))]
    return terms + [f"-0.5e0 * POWER({row}, 2e0)" for row in rows]


def weighted(weights: Sequence[float] | Array, expressions: Sequence[str]) -> str:
    """`w1 * x1 + w2 * x2 - ...`, terms of weight 0 left out."""
    text = ""
    for weight, expression in zip(weights, expressions, strict=False):
        if weight != 0:
            sign = "-" if weight < 0 else "+" if text else ""
            gap = " " if text else ""
            text += f"{gap}{sign}{gap}{number(abs(weight))} * {expression}"
    return text or "0e0"


SCORES: dict[str, Callable[[Any, TableExpressions], ScoreTerms]] = {
    "squares": partial(_from_centres, _square, "squared distance over the cells a row has"),
    "distances": partial(_from_centres, _size, "distance over the cells a row has"),
    "gaussians": _of_gaussians,
    "cells": _of_cells,
    "blocks": _of_blocks,
}
"""By formula (`SavedFamily.formula`): the scores of parameters."""

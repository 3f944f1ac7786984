"""The fits of a search, kept: of every K the best model, as the rows of the search left it. Parameters, no rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ilk.assorted.problem import ColumnTransform
from ilk.fitting.restarts import Recipe
from ilk.table.block import Encoding


@dataclass(frozen=True, eq=False)
class KeptFit:
    """The best model of one K: its recipe and parameters, and the units and the treatment of the rows that it takes."""

    recipe: Recipe | None  # None where the family follows from the treatment
    params: Any = field(repr=False)
    bic: float
    encoding: Encoding = field(repr=False)
    treat: ColumnTransform | None = field(default=None, repr=False)


Kept = Mapping[int, KeptFit]


def best_of_each(searches: Iterable[Kept]) -> dict[int, KeptFit]:
    """Of every K the fit of lowest BIC; the first among equals."""
    made: dict[int, KeptFit] = {}
    for kept in searches:
        for k, one in kept.items():
            if k not in made or one.bic < made[k].bic:
                made[k] = one
    return dict(sorted(made.items()))


def of_tables(
    cells: Iterable[tuple[int, float | None, Any, Recipe]], encoding: Encoding
) -> dict[int, KeptFit]:
    """The same of K, BIC, parameters and recipe; those without parameters are not kept."""
    fits = [
        {k: KeptFit(recipe, params, math.inf if bic is None else bic, encoding)}
        for k, bic, params, recipe in cells
        if params is not None
    ]
    return best_of_each(fits)

"""How much columns count: a weight of 2 is the column twice, a weight of 0 leaves it out.

Distances take `weight * (difference)^2`, or `weight * |difference|` for K-medians: a factor of the encoding. The
assorted model takes the log-likelihood of a column as often as its weight says, so that this is a whole number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ilk.errors import Caution, Option, UsageError, often, shown
from ilk.methods import AUTO, GAUSSIAN, K_MEDIANS, METHODS
from ilk.selection.assorted import ASSORTED
from ilk.table.block import Encoding
from ilk.table.schema import Schema


def checked_weights(given: Any, table: Any) -> dict[str, float]:
    """The weights by column, those of 1 left out; refused where they are no weights or name no column."""
    from ilk.table.schema import check_name

    if given is None:
        return {}
    option = Option("column_weights", {"income": 2})
    if not isinstance(given, Mapping):
        raise UsageError(
            "bad-column_weights",
            f"column_weights={shown(repr(given))} is no mapping",
            do=f"Give weights by column: {option}",
            options=[option],
        )
    made: dict[str, float] = {}
    for name, weight in given.items():
        named = Option("column_weights", {shown(name): weight})
        check_name(table, name, named)
        real = isinstance(weight, (int, float, np.number)) and not isinstance(weight, bool)
        if not real or not math.isfinite(weight) or weight < 0:
            raise UsageError(
                "bad-column_weights",
                f"{named}: a column cannot count {shown(repr(weight))} times",
                do="Give a number of 0 or more",
                options=[named],
            )
        made[name] = float(weight)
    return {name: weight for name, weight in made.items() if weight != 1}


def weighing_method(method: str, asked: str, weights: Mapping[str, float]) -> str:
    """The method that can take the weights: "auto" is never a Gaussian mixture, whose covariances undo them."""
    counted = {name: weight for name, weight in weights.items() if weight}
    if not counted:
        return method
    if method == GAUSSIAN and asked == AUTO:
        method = ASSORTED
    option = Option("column_weights", {shown(name): weight for name, weight in counted.items()})
    if method == ASSORTED:
        broken = [name for name, weight in counted.items() if not weight.is_integer()]
        if broken:
            raise UsageError(
                "bad-column_weights",
                f"the assorted model takes a column a whole number of times, and {shown(broken[0])!r} has "
                f"{counted[broken[0]]:g}",
                do="Give whole numbers, or use k-means",
                options=[option],
            )
    elif not METHODS[method].measures_distances:
        raise UsageError(
            "weights-not-taken",
            f"{method} cannot weigh columns, and {option} was given",
            do="Use assorted, k-means, k-medians or a method of distances; a weight of 0 works with all",
            options=[option],
        )
    return method


def need_numbers(method: str, weights: Mapping[str, float]) -> None:
    """A refusal of Gower's dissimilarity, which counts every column once."""
    if any(weights.values()) and METHODS[method].search == "parts":
        raise UsageError(
            "weights-not-taken",
            f"{method} compares mixed columns by Gower's dissimilarity, which counts each once",
            do="Use assorted, or leave categories and rows with missing values out",
        )


def weighed(encoding: Encoding, schema: Schema, method: str, weights: Mapping[str, float]) -> Encoding:
    """The encoding of the numbers of a method of distances, in which columns count by their weights."""
    if not any(weights.values()):
        return encoding
    names = [c.name for c in schema.numeric] + [c.name for c in schema.coded]
    own = np.array([weights.get(name, 1.0) for name in names[: len(encoding.centre)]])
    power = 1.0 if method == K_MEDIANS.name else 0.5
    factor = np.ones(len(own)) if encoding.factor is None else encoding.factor
    return replace(encoding, factor=factor * own**power)


def times(weights: Mapping[str, float]) -> dict[str, int]:
    """How often the assorted model takes each column."""
    return {name: int(weight) for name, weight in weights.items() if weight not in (0, 1)}


def told_weights(weights: Mapping[str, float], left: Sequence[str]) -> list[Caution]:
    """What to say of them."""
    if not weights:
        return []
    parts = [f"{shown(name)} counts {often(weight)}" for name, weight in weights.items() if weight]
    parts += [f"{shown(name)} is left out" for name in left]
    return [Caution("column-weights", "as asked, " + ", ".join(parts))]

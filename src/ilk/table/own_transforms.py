"""Transforms of single columns that a user asked for: what methods see of a column, while it is described as it is.

log    the natural logarithm; a value of 0 or less is a missing one, and refused in the table that is fitted
rank   the share of the rows of the fit below a value, half of those that are equal; straight between known values
none   as it is, also where the assorted model would put it on another scale
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ilk.errors import Caution, DataError, Option, UsageError, rows_shown, shown
from ilk.table.block import Array
from ilk.table.encode import Encoded
from ilk.table.schema import Schema

KINDS_OF_TRANSFORM = ("log", "rank", "none")
MOST_KNOTS = 1_000  # of a column of ranks: more values are known by so many quantiles
WORDS = {"log": "by its logarithm", "rank": "by its rank", "none": "as it is"}


@dataclass(frozen=True)
class OwnTransform:
    """One of the kinds; `values` and `ranks` are the knots of a column of ranks."""

    kind: str
    values: tuple[float, ...] = ()
    ranks: tuple[float, ...] = ()

    def __call__(self, x: Array) -> Array:
        if self.kind == "log":
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(x > 0, np.log(x), np.nan)
        if self.kind == "rank":
            return np.where(np.isnan(x), np.nan, np.interp(x, self.values, self.ranks))
        return x

    @classmethod
    def of(cls, kind: str, x: Array, weight: Array | None) -> OwnTransform:
        """The transform of a column; ranks are those of its values."""
        if kind != "rank":
            return cls(kind)
        known = ~np.isnan(x)
        values, inverse = np.unique(x[known], return_inverse=True)
        heft = np.bincount(inverse, None if weight is None else weight[known])
        ranks = (np.cumsum(heft) - heft / 2) / heft.sum()
        if len(values) > MOST_KNOTS:
            places = np.unique(np.linspace(0, len(values) - 1, MOST_KNOTS).astype(np.intp))
            values, ranks = values[places], ranks[places]
        return cls(kind, tuple(values.tolist()), tuple(ranks.tolist()))


@dataclass(frozen=True)
class OwnTransforms:
    """The transforms of some columns, by name."""

    of: Mapping[str, OwnTransform] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.of)

    def __call__(self, numbers: Array, schema: Schema) -> Array:
        """The numbers (rows, numeric columns) as methods see them."""
        if not any(one.kind != "none" for one in self.of.values()):
            return numbers
        made = np.array(numbers, dtype=np.float64)
        for j, column in enumerate(schema.numeric):
            if column.name in self.of:
                made[:, j] = self.of[column.name](made[:, j])
        return made

    @classmethod
    def learned(cls, asked: Mapping[str, str], encoded: Encoded) -> OwnTransforms:
        """Those that were asked for, with what they need to know of the table."""
        numbers, weight, schema = encoded.numbers, encoded.weight, encoded.schema
        made: dict[str, OwnTransform] = {}
        names = [column.name for column in schema.numeric]
        for name, kind in asked.items():
            option = Option("transforms", {shown(name): kind})
            if name not in names:
                raise UsageError(
                    "bad-transforms",
                    f"{option}: {shown(name)!r} is not used as a number",
                    do="Transform columns of numbers",
                    options=[option],
                )
            x = np.asarray(numbers[:, names.index(name)], dtype=np.float64)
            low = np.flatnonzero(x <= 0) if kind == "log" else np.empty(0, dtype=np.intp)
            if len(low):
                raise DataError(
                    "not-positive",
                    f"{option}: there is no logarithm of the {len(low)} values of {shown(name)!r} that are 0 or less",
                    where=rows_shown(low.tolist()),
                    do='Use "rank", or add an amount to the column first',
                )
            made[name] = OwnTransform.of(kind, x, weight)
        return cls(made)

    def told(self) -> list[Caution]:
        """What to say of them."""
        parts = [f"{shown(name)} {WORDS[one.kind]}" for name, one in self.of.items()]
        return [Caution("transforms", "as asked, " + ", ".join(parts))] if parts else []


def asked_transforms(given: Any, names: Sequence[str]) -> dict[str, str]:
    """Kinds of transforms by column, checked."""
    if given is None:
        return {}
    option = Option("transforms", {"income": "log"})
    if not isinstance(given, Mapping):
        raise UsageError(
            "bad-transforms",
            f"transforms={shown(repr(given))} is no mapping",
            do=f"Give them by column: {option}",
            options=[option],
        )
    for name, kind in given.items():
        named = Option("transforms", {shown(name): shown(kind)})
        if name not in names:
            raise UsageError(
                "unknown-column",
                f"{named} names a column that is not there",
                do=f"The columns are {', '.join(shown(other) for other in names[:10])}",
                options=[named],
            )
        if kind not in KINDS_OF_TRANSFORM:
            raise UsageError(
                "bad-transforms",
                f"{named} is not known",
                do=f"Use {', '.join(KINDS_OF_TRANSFORM)}",
                options=[named],
            )
    return dict(given)


def transforms_elsewhere() -> UsageError:
    """The refusal of transforms of rows that are not in memory."""
    return UsageError(
        "transforms-in-parts",
        "transforms need all rows in memory, and the table is larger or elsewhere",
        do="Transform the columns in a query first, or give a sample",
    )

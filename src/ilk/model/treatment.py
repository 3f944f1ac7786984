"""What a model file may say of the treatment of columns: every figure that a cell passes through."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilk.assorted.dense_factors import LEAST_NOISE, MOST_FACTORS, DenseFactors
from ilk.assorted.family import Assorted
from ilk.assorted.problem import BLOCKS, CELLS, ColumnTransform
from ilk.assorted.scales import SCALES, Number
from ilk.assorted.transform import Category, TransformPlan
from ilk.store.check import (
    Check,
    flag,
    listed,
    maybe,
    need,
    number,
    one_of,
    record,
    rises,
    text,
    whole,
)
from ilk.table.schema import Schema

LARGEST = 1e300
POSITIVE = number(1e-300, LARGEST)
PER_SCALE = len(SCALES)
FAR_LOADING = 100.0  # deviations of a column that one of a factor makes


def _figures(each: Check) -> Check:
    return listed(each, PER_SCALE, PER_SCALE)


NUMBER = record(
    {
        "name": text(),
        "source": whole(0),
        "atom": maybe(number()),
        "unit": number(above=0.0),
        "low": number(),
        "high": number(),
        "deviation": number(above=0.0),
        "weight": POSITIVE,
        "step": number(0.0),
        "centre": _figures(number()),
        "spread": _figures(number(above=0.0)),
        "log_jacobian": _figures(number()),
    }
)
CATEGORY = record(
    {
        "name": text(),
        "source": whole(0),
        "kind": one_of("levels", "values", "atom"),
        "keys": listed(number(), 1),
        "names": listed(text(), 1),
        "weight": listed(number(0.0, LARGEST), 1),
        "missing_level": flag,
        "of": text(),
    }
)
BLOCK = record({"structure": one_of(CELLS, *BLOCKS), "anchor": listed(listed(number()))})
FACTORS = record(
    {
        "source": listed(whole(0), 1),
        "mean": listed(number(), 1),
        "deviation": listed(number(above=0.0), 1),
        "loading": listed(listed(number(-FAR_LOADING, FAR_LOADING), 1, MOST_FACTORS), 1),
        "noise": listed(number(LEAST_NOISE, 1.0), 1),
    }
)
TREATMENT = record(
    {
        "numbers": listed(NUMBER),
        "categories": listed(CATEGORY),
        "set_aside": listed(listed(text(), 2, 2)),
        "total_weight": POSITIVE,
        "scales": listed(whole(0, PER_SCALE - 1)),
    },
    {"block": BLOCK, "factors": FACTORS},  # files from before there were blocks have none
)


def treatment(value: Any, schema: Schema, family: str) -> ColumnTransform:
    """What is made of the columns; every column it names must be one of the table, its block that of the family."""
    plain = TREATMENT(value, "treatment")
    numbers = tuple(_number(entry, schema) for entry in plain["numbers"])
    categories = tuple(_category(entry, schema) for entry in plain["categories"])
    need(numbers or categories, "treatment", "it has no column")
    sources = {("number", n.source) for n in numbers} | {(c.kind, c.source) for c in categories}
    alike = len(set(numbers)) + len(
        set(categories)
    )  # a column that counts twice is there twice, and the same
    need(len(sources) == alike, "treatment", "a column is there in two ways")
    need(len(plain["scales"]) == len(numbers), "treatment scales", "they are not those of the numbers")
    aside = tuple((name, reason) for name, reason in plain["set_aside"])
    plan = TransformPlan(numbers, categories, aside, plain["total_weight"])
    block = plain.get("block", {"structure": CELLS, "anchor": []})
    structure = block["structure"]
    own = Assorted.name if structure == CELLS else f"{Assorted.name} {structure}"
    need(family == own, "treatment", "its block of numbers is not that of the family")
    factors = _factors(plain["factors"], schema) if "factors" in plain else None
    if structure == CELLS:
        return ColumnTransform(plan, tuple(plain["scales"]), factors=factors)
    anchor = _anchor(block["anchor"], len(numbers))
    return ColumnTransform(plan, tuple(plain["scales"]), structure, anchor, factors)


def _factors(entry: dict[str, Any], schema: Schema) -> DenseFactors:
    """What is taken out of numbers of the table before they are treated."""
    source, n = entry["source"], len(entry["source"])
    rises(source, "treatment factors source")
    need(source[-1] < len(schema.numeric), "treatment factors", "their columns are not those of the table")
    fits = all(len(entry[name]) == n for name in ("mean", "deviation", "loading", "noise"))
    fits = fits and len({len(row) for row in entry["loading"]}) == 1
    need(fits, "treatment factors", "their figures are not those of their columns")
    loading = tuple(tuple(row) for row in entry["loading"])
    return DenseFactors(**{**_frozen(entry), "loading": loading})


def _anchor(rows: list[list[float]], n: int) -> tuple[tuple[float, ...], ...]:
    square = n > 0 and len(rows) == n and all(len(row) == n for row in rows)
    need(square, "treatment anchor", f"it is not a matrix of {n}x{n} numbers")
    matrix = np.array(rows)
    need(np.abs(matrix).max() <= 1e100, "treatment anchor", "it holds a number out of range")
    need(np.allclose(matrix, matrix.T), "treatment anchor", "it is not symmetric")
    need(np.linalg.eigvalsh(matrix)[0] > 0, "treatment anchor", "it is not positive definite")
    return tuple(tuple(row) for row in rows)


def _frozen(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a record, lists as tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def _number(entry: dict[str, Any], schema: Schema) -> Number:
    made = Number(**_frozen(entry))
    need(made.source < len(schema.numeric), "treatment", "its columns are not those of the table")
    need(made.name == schema.numeric[made.source].name, "treatment name", "it is not that of its column")
    need(made.low <= made.high, "treatment low", "it is above the highest value")
    return made


def _category(entry: dict[str, Any], schema: Schema) -> Category:
    made = Category(**_frozen(entry))
    columns = schema.coded if made.kind == "levels" else schema.numeric
    need(made.source < len(columns), "treatment", "its columns are not those of the table")
    column = columns[made.source]
    n_levels = len(made.keys) + made.missing_level
    need(len(made.names) == n_levels == len(made.weight), "treatment names", "they are not those of the keys")
    need(0 < sum(made.weight) <= LARGEST, "treatment weight", "no category has a row")
    if made.kind == "atom":
        need(len(made.keys) == 2 and not made.missing_level, "treatment keys", "an atom has two")
        need(made.of == column.name, "treatment of", "it is not the number of the atom")
        return made
    need(made.name == column.name, "treatment name", "it is not that of its column")
    rises(made.keys, "treatment keys")
    if made.kind == "levels":
        known = all(key.is_integer() and 0 <= key < len(column.levels or ()) for key in made.keys)
        need(known, "treatment keys", "they are no categories of the column")
    return made

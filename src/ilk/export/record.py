"""The parameters of a model as a plain document, in the user's units; `docs/model-json.md` says what it holds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from typing import Any, cast

import numpy as np

import ilk
from ilk.assorted.blended import Blend
from ilk.assorted.family import Clusters
from ilk.assorted.problem import ColumnTransform
from ilk.assorted.scales import SCALES, Number
from ilk.assorted.transform import Category
from ilk.errors import UsageError, shown
from ilk.export.cells import refuse_factors
from ilk.families.centroid import Centroids
from ilk.families.gaussian import Mixture
from ilk.model.model import Model
from ilk.model.registry import saved
from ilk.table.block import Array
from ilk.table.schema import ColumnInfo

SCHEMA, VERSION = "ilk-model", (3, 2)


def record(model: Model) -> dict[str, Any]:
    """All that is needed to place a row: columns, what is made of them, components, and the group of each component."""
    if any(one.kind != "none" for one in model.transforms.of.values()):
        raise UsageError(
            "not-exportable",
            "the model sees columns by transforms that were asked for, which this format does not have",
            do="Transform the columns first and fit again, or place rows with ilk assign",
        )
    with np.errstate(all="ignore"):  # what is not finite is refused
        made = _made(model)
    for component, group in zip(made["components"], model.group_of, strict=True):
        component["group"] = model.letters[group]
    groups = zip(model.letters, model.names, model.sizes, strict=True)
    if not all_finite(made):
        raise _beyond()
    return {
        "schema": SCHEMA,
        "version": list(VERSION),
        "ilk": ilk.__version__,
        "method": model.method,
        "family": model.family,
        "columns": [
            {
                "name": c.name,
                "type": c.kind,
                "dtype": c.type,
                "categories": None if c.levels is None else list(c.levels),
                "missing_codes": list(c.missing_codes),
                "source": c.source or None,
                "topic": None if c.topic is None else c.topic.to_dict(),
                "written": None if c.written is None else asdict(c.written),
            }
            for c in model.schema.used
        ],
        **made,
        "groups": [{"letter": mark, "name": name, "rows": float(size)} for mark, name, size in groups],
    }


def _beyond() -> UsageError:
    return UsageError(
        "not-exportable",
        "the model has a figure that is too large or too small in the units of the table",
        do="Place rows with ilk assign, or fit with columns in other units",
    )


def _made(model: Model) -> dict[str, list[dict[str, Any]]]:
    """The cells, and the components."""
    kind = saved(model.family)
    if kind is None or kind.formula is None:
        raise UsageError("not-exportable", f"{shown(model.method)} has no parameters that could be written")
    cells, components = WRITTEN[kind.formula]
    return {"cells": cells(model), "components": components(model)}


def all_finite(value: Any) -> bool:
    """Whether every number of a document is one that JSON has."""
    if isinstance(value, dict):
        return all(all_finite(item) for item in value.values())
    if isinstance(value, list):
        return all(all_finite(item) for item in value)
    return not isinstance(value, float) or math.isfinite(value)


def _columns(model: Model) -> tuple[ColumnInfo, ...]:
    """The columns of a method of numbers in the order of its parameters."""
    return (*model.schema.numeric, *(c for c in model.schema.coded if c.kind == "binary"))


def _plain_cells(model: Model) -> list[dict[str, Any]]:
    """A column of two categories is 0 for the first and 1 for the second."""
    return [{"column": c.name, "type": "number" if c.levels is None else "0 or 1"} for c in _columns(model)]


def _scaled_cells(model: Model) -> list[dict[str, Any]]:
    """With the unit that distances are taken in; None for a column that counts for nothing."""
    units = model.encoding.unit
    return [
        {**cell, "unit": None if unit == 0 else 1 / float(unit)}
        for cell, unit in zip(_plain_cells(model), units, strict=True)
    ]


def _centroids(model: Model) -> list[dict[str, Any]]:
    params = cast(Centroids, model.params)
    return [{"centre": row.tolist()} for row in model.encoding.undo(params.centre)]


def _gaussians(model: Model) -> list[dict[str, Any]]:
    params = cast(Mixture, model.params)
    unit = model.encoding.unit
    covariance = params.covariance.matrices() / np.outer(unit, unit)
    if (np.diagonal(covariance, axis1=1, axis2=2) < np.finfo(np.float64).tiny).any():
        raise _beyond()  # a variance that has lost its digits, or is 0
    means = model.encoding.undo(params.mean)
    return [
        {"share": float(share), "mean": mean.tolist(), "covariance": matrix.tolist()}
        for share, mean, matrix in zip(params.mixing, means, covariance, strict=True)
    ]


def _treated_cells(model: Model) -> list[dict[str, Any]]:
    treat = _treat(model)
    numbers = [
        _number(model, number, scale) for number, scale in zip(treat.plan.numbers, treat.scales, strict=True)
    ]
    return numbers + [_category(model, category) for category in treat.plan.categories]


def _treat(model: Model) -> ColumnTransform:
    assert model.treat is not None
    refuse_factors(model.treat)
    return model.treat


def _number(model: Model, number: Number, scale: int) -> dict[str, Any]:
    """value = (on scale - centre) / spread, with all lengths in the user's units."""
    encoding, unit = model.encoding.columns(np.array([number.source])), number.unit
    side, shift = SCALES[scale].side, SCALES[scale].shift
    made: dict[str, Any] = {
        "column": model.schema.numeric[number.source].name,
        "type": "number",
        "scale": {"plain": "as it is", "low": "log above low", "high": "log below high"}[side],
        "atom": number.atom,
    }
    centre, spread = number.centre[scale], number.spread[scale]
    if side == "plain":
        return {**made, "centre": float(encoding.undo(np.array([centre]))[0]), "spread": spread / unit}
    low, high = encoding.undo(np.array([[number.low], [number.high]]))[:, 0].tolist()
    ends = {"low": low, "high": high, "deviation": number.deviation / unit, "shift": shift}
    return {**made, **ends, "centre": centre, "spread": spread}


def _category(model: Model, category: Category) -> dict[str, Any]:
    schema = model.schema
    if category.kind != "levels":
        keys: list[Any] = [float(key) for key in category.keys]
        column = schema.numeric[category.source]
        kind = "value" if category.kind == "values" else "atom"
        return {
            "column": column.name,
            "type": kind,
            "keys": keys,
            "missing_is_a_category": category.missing_level,
        }
    column = schema.coded[category.source]
    keys = [(column.levels or ())[int(key)] for key in category.keys]
    return {
        "column": column.name,
        "type": "category",
        "keys": keys,
        "missing_is_a_category": category.missing_level,
    }


def _clusters(model: Model) -> list[dict[str, Any]]:
    params, treat = cast(Clusters, model.params), _treat(model)
    return [
        {
            "share": float(params.mixing[k]),
            "mean": params.mean[k].tolist(),
            "variance": params.variance[k].tolist(),
            "categories": _levels(params, k, treat),
        }
        for k in range(len(params))
    ]


def _blended(model: Model) -> list[dict[str, Any]]:
    params, treat = cast(Blend, model.params), _treat(model)
    covariance = params.numbers.covariance.matrices()
    return [
        {
            "share": float(params.mixing[k]),
            "mean": params.mean[k].tolist(),
            "covariance": covariance[k].tolist(),
            "categories": _levels(params.levels, k, treat),
        }
        for k in range(len(params))
    ]


def _levels(params: Clusters, k: int, treat: ColumnTransform) -> list[list[float]]:
    return [_shares(params.log_level[k, a:b]) for a, b in pairwise(treat.plan.level_start)]


def _shares(logs: Array) -> list[float]:
    return [float(value) for value in np.exp(logs)]


Part = Callable[[Model], list[dict[str, Any]]]
WRITTEN: dict[str, tuple[Part, Part]] = {
    "squares": (_scaled_cells, _centroids),
    "distances": (_scaled_cells, _centroids),
    "gaussians": (_plain_cells, _gaussians),
    "cells": (_treated_cells, _clusters),
    "blocks": (_treated_cells, _blended),
}
"""By formula (`SavedFamily.formula`): the cells, and the components."""

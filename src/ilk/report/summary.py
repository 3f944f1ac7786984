"""The summary: everything that is known of a run as one plain, versioned document.

The terminal and the page print from it and from nothing else. It is valid JSON: what is not finite or was not
measured is null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from ilk.errors import shown
from ilk.measures import external
from ilk.measures.counts import Contingency, contingency
from ilk.table.schema import ColumnInfo, Schema

SCHEMA = "ilk-summary"
VERSION = (2, 4)
NULL_MEANS = "not measured, or not a finite number"
FINER = 0.9  # purity from which more groups than classes read as a finer division

_AS_IT_IS = frozenset({str, int, bool, type(None)})


def plain(value: Any) -> Any:
    """The value as JSON can hold it: arrays and tuples as lists, NaN and infinity as None.

    >>> plain({"a": np.float64("nan"), "b": (1, np.int64(2))})
    {'a': None, 'b': [1, 2]}
    """
    if type(value) in _AS_IT_IS:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else None
    if type(value) is dict:
        return {str(key): item if type(item) in _AS_IT_IS else plain(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def column_entries(schema: Schema, used: Schema) -> list[dict[str, Any]]:
    """One entry per column of the table: what it was taken for, and what it served for."""
    return [
        {
            "name": column.name,
            "type": column.kind,
            "role": _role(column, schema, used),
            "reason": column.reason + (f"; {column.note}" if column.note else ""),
            "dtype": column.type,
            "missing": column.missing,
            "distinct": column.distinct,
            "categories": None if column.levels is None else list(column.levels),
        }
        for column in schema.columns
    ]


def _role(column: ColumnInfo, schema: Schema, used: Schema) -> str:
    for role in ("weight", "truth", "id"):
        if getattr(schema, role) == column.name:
            return role
    if not column.used:
        return "left out"
    return "used" if used[column.name].used else "described"


def missing_entry(schema: Schema, n_rows: int) -> dict[str, Any]:
    """Share of missing cells over the columns that are used or described, and the column with most."""
    shares = {c.name: c.missing / n_rows for c in schema.used} if n_rows else {}
    worst = max(shares, key=shares.__getitem__, default=None)
    share = sum(shares.values()) / len(shares) if shares else 0.0
    if worst is None or share == 0:
        return {"share": 0.0, "worst": None}
    return {"share": share, "worst": {"column": worst, "share": shares[worst]}}


MEASURES = ("entropy", "precision", "recall", "f_measure", "purity", "ari", "nmi")


def truth_entry(
    labels: Sequence[Any] | np.ndarray[Any, Any], truth: Sequence[Any], column: str
) -> dict[str, Any]:
    """Agreement with known classes, with the counts behind it and one sentence of what is found."""
    counts = contingency(labels, truth)
    entry: dict[str, Any] = {"column": column}
    entry.update({name: getattr(external, name)(counts) for name in MEASURES})
    entry["base_rate"] = (
        float(counts.table.sum(axis=0).max() / max(counts.n_rows, 1)) if counts.table.size else None
    )
    entry["groups"] = [str(name) for name in counts.cluster_names]
    entry["classes"] = [str(name) for name in counts.class_names]
    entry["counts"] = counts.table.tolist()
    entry["rows"] = counts.n_rows
    entry["rows_without"] = counts.n_left_out
    entry["finding"] = _finding(counts, entry, column)
    return entry


def _finding(counts: Contingency, entry: Mapping[str, Any], column: str) -> str:
    n_groups, n_classes = len(counts.cluster_names), len(counts.class_names)
    name = shown(column)
    if n_groups == n_classes and entry["ari"] >= FINER:
        return f"groups match {name}"
    if n_groups > n_classes and entry["purity"] >= FINER:
        return f"groups are finer than {name}"
    # Classes as clusters: do whole classes lie together in a group?
    together = counts.table.max(axis=0).sum() / counts.n_rows
    if 1 < n_groups < n_classes and together >= FINER:
        return f"groups are coarser than {name}: classes share a group"
    return ""

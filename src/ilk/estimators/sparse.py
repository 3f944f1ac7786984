"""Sparse matrices of zeros and ones, and of counts, at the face of the estimators of mixed columns.

A column of 0 and 1 is a category of two levels, one of other whole numbers of 0 or more a count; `types` may say
otherwise by the names x0, x1, ... Rows stay compressed: the codes of a binary column are its cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ilk.engines.memory import MemoryRows
from ilk.errors import DataError, Option, UsageError, names_shown, shown, warn
from ilk.estimators.base import checked_sparse, given_weight
from ilk.table.block import Array, Encoding
from ilk.table.schema import ColumnInfo, Schema, read_types
from ilk.table.sparse import refuse_cells, survey

KINDS = ("binary", "count", "ignore")


def sparse_table(
    estimator: Any, X: Any, sample_weight: Any, types: Any, threads: int | None
) -> tuple[MemoryRows, Schema]:
    """The rows of a fit, their codes and counts compressed, and what each column is taken for."""
    cells = checked_sparse(estimator, X, reset=True)
    weight, unit = given_weight(sample_weight, cells.shape[0])
    schema = schema_of(cells, [f"x{j}" for j in range(cells.shape[1])], types, weight)
    rows = _rows(cells, schema, weight, threads)
    return rows.reencoded(replace(rows.encoding, weight_unit=unit)), schema


def new_sparse_rows(estimator: Any, X: Any, schema: Schema, threads: int | None) -> MemoryRows:
    """Rows of another matrix, by the kinds of the columns that were fitted."""
    if any(column.kind not in ("binary", "count", "left out") for column in schema.columns):
        raise UsageError(
            "sparse-input",
            "the model was fitted to columns that are neither 0 and 1 nor counts, and a sparse matrix has only these",
            do="Give the rows as they were given to fit, or make them an array with .toarray()",
        )
    return _rows(checked_sparse(estimator, X, reset=False), schema, None, threads)


def schema_of(cells: Any, names: list[str], types: Any, weight: Array | None) -> Schema:
    """What every column is taken for; those that do not vary over the rows that count are left out."""
    facts = survey(cells, weight)
    asked = _asked(types, names)
    n_rows, n_columns = cells.shape
    other = np.zeros(n_columns, dtype=bool)
    other[cells.indices[cells.data != 1]] = True
    columns = [
        _column(name, asked.get(name), bool(other[j]), float(facts.low[j]), float(facts.high[j]))
        for j, name in enumerate(names)
    ]
    _refuse_others(cells, columns)
    fixed = [c.name for c in columns if c.reason == "constant"]
    if len(fixed) == n_columns:
        raise DataError(
            "no-spread",
            f"every column is constant over n_samples={n_rows} rows, so there is nothing to group",
            do="Give at least one column that varies",
        )
    if fixed:
        warn("constant-column", f"columns {names_shown(fixed)} are constant and were left out.", depth=6)
    return Schema(tuple(columns))


def _asked(types: Any, names: list[str]) -> dict[str, Any]:
    asked: dict[str, Any] = (
        {} if types is None else dict(types) if isinstance(types, Mapping) else read_types(types)
    )
    known = set(names)
    for name, kind in asked.items():
        option = Option("types", {shown(name): kind})
        if name not in known:
            raise UsageError(
                "unknown-column",
                f"{option} names a column that the sparse matrix lacks",
                do=f"Columns are {names[0]} to {names[-1]}",
                options=[option],
            )
        if kind not in KINDS:
            raise UsageError(
                "sparse-type",
                f"{option}: columns of a sparse matrix are binary or counts",
                do='Ask for "binary", "count" or "ignore", or make it an array with .toarray()',
                options=[option],
            )
    return asked


def _column(name: str, asked: str | None, other: bool, low: float, high: float) -> ColumnInfo:
    """Its kind as asked, or by its cells; `other` says that some are neither 0 nor 1."""
    reason = (
        "as asked" if asked else "0 and 1 in a sparse matrix" if not other else "counts in a sparse matrix"
    )
    if asked == "ignore":
        return ColumnInfo(name, "left out", "as asked", "double")
    if not low < high:
        return ColumnInfo(name, "left out", "constant", "double", distinct=1, note=repr(low))
    if asked == "count" or (asked is None and other):
        return ColumnInfo(name, "count", reason, "double")
    return ColumnInfo(name, "binary", reason, "double", levels=("0", "1"), distinct=2)


def _refuse_others(cells: Any, columns: list[ColumnInfo]) -> None:
    """Cells that are not of the kind of their column."""
    binary = np.array([c.kind == "binary" for c in columns])
    refuse_cells(
        cells,
        binary[cells.indices] & (cells.data != 1),
        "not-binary",
        "of binary columns are neither 0 nor 1",
        'Ask for "count", or give X > 0',
    )


def _refuse_no_counts(cells: Any) -> None:
    wrong = (cells.data < 0) | (cells.data != np.floor(cells.data))
    what = "are negative" if (cells.data < 0).any() else "are not whole numbers"
    refuse_cells(
        cells,
        wrong,
        "not-counts",
        f"{what}, and columns of a sparse matrix are taken as 0 and 1 or as counts",
        "Give 0 and 1 or counts, use KMeans, or make it an array with .toarray()",
    )


def _rows(cells: Any, schema: Schema, weight: Array | None, threads: int | None) -> MemoryRows:
    """Counts and codes of the columns that are used."""
    _refuse_no_counts(cells)
    kind = np.array([column.kind for column in schema.columns])
    by_column = cells.tocsc()
    counts, codes = (by_column[:, np.flatnonzero(kind == name)].tocsr() for name in ("count", "binary"))
    raw = counts if counts.shape[1] else np.empty((cells.shape[0], 0))
    strange = codes.data != 1
    if strange.any():
        n = int(strange.sum())
        warn(
            "unseen-category",
            f"{n} cells are neither 0 nor 1, as they were in fit, and count as missing",
            depth=6,
        )
    codes.data = np.where(strange, -1, 1)
    coded = codes.astype(np.int32) if codes.shape[1] else None
    return MemoryRows(raw, Encoding(1.0, np.zeros(raw.shape[1])), weight=weight, codes=coded, threads=threads)

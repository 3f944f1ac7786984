"""Tables of mixed columns at the estimators' face: from what the user gave to rows, when fitting and afterwards.

A frame (pandas, Polars, Arrow, Spark, Dask, ...), a dictionary, a path, or an array with text in it is a table: every
column gets a kind, by the rules of `table.kinds` or by `types`, and new tables are matched by column name. An array of
numbers has numeric columns only, but for those that `types` names (x0, x1, ...); new arrays are matched by position.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.condition import conditioned
from ilk.engines.derived import ColumnSubset, derive
from ilk.engines.devices import asked_rows, check_device
from ilk.engines.memory import MemoryRows, held
from ilk.errors import DataError, UsageError, warn
from ilk.estimators.base import checked_array, given_weight, refuse_sparse, takes_sparse
from ilk.estimators.frames import (
    Answer,
    Reply,
    answered_mixed,
    fitted_names,
    is_frame,
    mixed_rows,
    opened,
    without_weight,
)
from ilk.estimators.sparse import new_sparse_rows, sparse_table
from ilk.table.block import BLOCK_ROWS, Array, Encoding
from ilk.table.condition import Survey, encoding_of, precision_cautions, survey
from ilk.table.encode import decode, encode_new
from ilk.table.read import Table, from_array, read
from ilk.table.schema import Schema, infer, read_types


@dataclass(frozen=True)
class Format:
    """How the tables of a fitted estimator become rows; `backend` is the frame library, None for arrays."""

    schema: Schema
    encoding: Encoding
    by_position: bool
    backend: Any = None

    @cached_property
    def level_start(self) -> Array:
        return self.schema.level_start

    @cached_property
    def is_count(self) -> Array:
        """Which of the numeric columns are counts."""
        return np.array([c.kind == "count" for c in self.schema.numeric], dtype=bool)

    def frame(self, raw: Array, codes: Array | None) -> Any:
        """Rows in the user's units as a table of the kind that was fitted; constant columns are restored."""
        columns: dict[str, Any] = {}
        numeric = {c.name: raw[:, j] for j, c in enumerate(self.schema.numeric)}
        coded = {c.name: j for j, c in enumerate(self.schema.coded)}
        for info in self.schema.columns:
            if info.name in numeric:
                columns[info.name] = numeric[info.name]
            elif info.name in coded:
                assert codes is not None
                columns[info.name] = decode(codes[:, coded[info.name]], info)
            elif self.by_position:  # a constant column, its value in the note
                columns[info.name] = np.full(len(raw), float(info.note or "nan"))
        if self.by_position:
            return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns.values()])
        import narwhals as nw

        return nw.from_dict(columns, backend=self.backend or "pyarrow").to_native()


def table_rows(
    estimator: Any,
    X: Any,
    sample_weight: Any = None,
    *,
    types: Any = None,
    scale: str | None = None,
    threads: int | None = None,
    k: int = 1,
    device: str = "cpu",
) -> tuple[Rows, Format]:
    """The rows of a fit with numbers and codes, and how later tables become such rows. No row is set aside."""
    check_device(device)
    X = opened(X)
    if is_frame(X):
        return _frame_rows(estimator, X, sample_weight, types=types, scale=scale, threads=threads, k=k)
    if takes_sparse(estimator, X):
        rows, schema = sparse_table(estimator, X, sample_weight, types, threads)
        _check_rows(rows.n_rows if rows.weight is None else int(np.count_nonzero(rows.weight)), k)
        return rows, Format(schema, rows.encoding, by_position=True)
    if is_table(X):
        table = read(X)
        if isinstance(sample_weight, str):
            table, sample_weight = without_weight(table, sample_weight)
        told = infer(table, types=types)
        estimator.n_features_in_ = table.n_columns
        estimator.feature_names_in_ = np.array(table.names, dtype=object)
        cautions = [*table.warnings, *told.warnings]
    else:
        table = from_array(checked_array(estimator, X, reset=True))
        told, cautions = _array_schema(table, types), []
    if table.n_rows == 0:
        raise DataError("no-rows", f"{table.source} has no rows", do="Give at least one row")
    raw, codes = _cells(table, told)
    weight, unit = given_weight(sample_weight, table.n_rows)
    _check_rows(table.n_rows if weight is None else int(np.count_nonzero(weight)), k)
    facts = survey(raw, weight=weight, names=[c.name for c in told.numeric])
    for caution in [*cautions, *precision_cautions(facts, [c.name for c in told.numeric])]:
        caution.warn(depth=4)
    schema, varies = _without_constants(told, facts, table.n_rows)
    if not varies.all():
        raw, facts = raw[:, varies], _part(facts, varies)
    encoding = replace(encoding_of(raw, facts, scale=scale, weight=weight), weight_unit=unit)
    form = Format(schema, encoding, not is_table(X), _backend(table))
    rows = MemoryRows(raw, encoding, weight=weight, codes=codes, complete=facts.complete, threads=threads)
    return asked_rows(rows, device, cells=True), form


def held_rows(estimator: Any, X: Any, sample_weight: Any = None, **options: Any) -> tuple[MemoryRows, Format]:
    """The same in memory, wherever the table lies: for methods that go from row to row."""
    rows, form = table_rows(estimator, X, sample_weight, **options)
    return held(rows, rows.n_rows, 0), form


def _frame_rows(
    estimator: Any,
    frame: Any,
    sample_weight: Any,
    *,
    types: Any,
    scale: str | None,
    threads: int | None,
    k: int,
) -> tuple[Rows, Format]:
    """The same of a table that is larger than memory or lies on a cluster."""
    found = mixed_rows(frame, types, sample_weight, threads)
    names = [name for name in frame.schema.names if name != sample_weight]
    estimator.n_features_in_, estimator.feature_names_in_ = len(names), np.array(names, dtype=object)
    _check_rows(found.n_counting, k)
    cautions = precision_cautions(found.facts, [c.name for c in found.schema.numeric])
    for caution in [*found.cautions, *cautions]:
        caution.warn(depth=5)
    rows: Rows = conditioned(found.rows, found.facts, scale)
    schema, varies = _without_constants(found.schema, found.facts, rows.n_rows)
    if not varies.all():
        rows = derive(rows, ColumnSubset(varies))
    return rows, Format(schema, rows.encoding, by_position=False)


def told(
    estimator: Any,
    X: Any,
    form: Format,
    answer: tuple[Any, Any],
    reply: Reply,
    threads: int | None = None,
) -> Any:
    """What a visit with its state tells of the rows of another table: an array, or columns beside those of a frame on a
    cluster.

    Columns are matched by name, or by position where numbers were fitted. A level that was not seen before counts as
    missing and a column that was not is ignored, both with a warning; a column that is absent is refused.
    """
    visit, state = answer
    X = opened(X)
    if is_frame(X):
        names = [column.name for column in form.schema.columns]
        own_names = dict(zip(names, fitted_names(estimator, X) if form.by_position else names, strict=True))
        return answered_mixed(X, own_names, form.schema, Answer(form.encoding, visit, state), reply, threads)
    return np.concatenate([*new_rows(estimator, X, form, threads=threads).scan(visit, state)])


def new_rows(estimator: Any, X: Any, form: Format, *, threads: int | None = None) -> MemoryRows:
    """Rows of another table in memory, by the rules of `told`."""
    if takes_sparse(estimator, X):
        if not form.by_position:
            refuse_sparse(estimator, X)
        return new_sparse_rows(estimator, X, form.schema, threads)
    table = from_array(checked_array(estimator, X, reset=False)) if form.by_position else read(X)
    raw, codes = _cells(table, form.schema)
    facts = survey(raw, names=[c.name for c in form.schema.numeric])
    return MemoryRows(raw, form.encoding, codes=codes, complete=facts.complete, threads=threads)


def is_table(X: Any) -> bool:
    """Whether X is a table whose columns have names and kinds, rather than an array of numbers."""
    import narwhals.dependencies as known

    if hasattr(X, "tocsr"):  # a sparse matrix, of which one kind is a dictionary
        return False
    if isinstance(X, (str, os.PathLike, Mapping, Table)) or hasattr(X, "__arrow_c_stream__"):
        return True
    if known.is_into_dataframe(X) or known.is_polars_lazyframe(X) or hasattr(X, "to_arrow_table"):
        return True
    if isinstance(X, (list, tuple)):
        return any(isinstance(row, Mapping) or _holds_text(row) for row in X)
    if isinstance(X, np.ndarray) and X.dtype.kind == "O":
        return _holds_text(X.ravel())
    return isinstance(X, np.ndarray) and (X.dtype.kind in "US" or X.dtype.names is not None)


def _holds_text(cells: Any) -> bool:
    return isinstance(cells, (list, tuple, np.ndarray)) and any(isinstance(cell, str) for cell in cells)


def _cells(table: Table, schema: Schema) -> tuple[Array, Array | None]:
    """Numbers and codes of all rows, with warnings of what a new table has that the model does not know."""
    if table.array is not None and not schema.coded and not any(c.kind == "count" for c in schema.numeric):
        places = [table.names.index(c.name) for c in schema.numeric]  # numbers need no second look
        raw = table.array
        return (raw if len(places) == raw.shape[1] else raw[:, places]), None
    untouched = Encoding(1.0, np.zeros(len(schema.numeric)))
    encoded = encode_new(table, schema, untouched)
    for caution in encoded.warnings:
        caution.warn(depth=5)
    return encoded.numbers, encoded.codes


def _array_schema(table: Table, types: Any) -> Schema:
    """Every column of an array is numeric, but for those that `types` names."""
    if types is None:
        return Schema.numbers(table.names)
    asked = dict(types) if isinstance(types, Mapping) else read_types(types)
    return infer(table, types=dict.fromkeys(table.names, "numeric") | asked)


def _check_rows(n_counting: int, k: int) -> None:
    if n_counting == 1:
        raise DataError("one-row", "n_samples=1: one row has no spread", do="Give at least 2 rows")
    if n_counting < k:
        raise DataError(
            "fewer-rows-than-groups",
            f"n_samples={n_counting} rows with weight are fewer than the {k} groups asked for",
            do="Ask for fewer groups",
        )


def _without_constants(schema: Schema, facts: Survey, n_rows: int) -> tuple[Schema, Array]:
    """The schema with constant numeric columns left out, their value in the note, and which columns vary."""
    varies = facts.high > facts.low
    fixed = [c for c, moves in zip(schema.numeric, varies, strict=True) if not moves]
    if not fixed:
        return schema, varies
    if not varies.any() and not schema.coded:
        raise DataError(
            "no-spread",
            f"every column is constant over n_samples={n_rows} rows, so there is nothing to group",
            do="Give at least one column that varies",
        )
    value = {c.name: facts.low[j] for j, c in enumerate(schema.numeric) if not varies[j]}
    left = tuple(
        replace(c, kind="left out", reason="constant", note=repr(float(value[c.name])))
        if c.name in value
        else c
        for c in schema.columns
    )
    listed = ", ".join(c.name.removeprefix("x") if c.name[1:].isdigit() else c.name for c in fixed)
    warn("constant-column", f"columns {listed} are constant and were left out.", depth=5)
    return replace(schema, columns=left), varies


def _part(facts: Survey, which: Array) -> Survey:
    return Survey(
        low=facts.low[which],
        high=facts.high[which],
        mean=facts.mean[which],
        missing=facts.missing[which],
        total_weight=facts.total_weight[which],
        dtype=facts.dtype,
    )


def _backend(table: Table) -> Any:
    if table.native is None:
        return None
    import narwhals as nw

    return nw.from_native(table.native, eager_only=True).implementation


def given_groups(init: Any, n_rows: int, k: int) -> Array:
    """What the user gave to start from: labels as 0 .. K-1 (rows,), or memberships (rows, K) that add up to one."""
    start = np.asarray(init)
    if start.shape == (n_rows,):
        names = np.unique(start)
        if len(names) == k:
            label = np.empty(n_rows, dtype=np.int32)
            for first in range(0, n_rows, BLOCK_ROWS):  # block by block, so that no index of all rows is made
                label[first : first + BLOCK_ROWS] = np.searchsorted(names, start[first : first + BLOCK_ROWS])
            return label
        problem = f"init has {len(names)} different labels for {k} groups"
    elif start.shape == (n_rows, k):
        membership = start.astype(np.float64)
        total = membership.sum(axis=1, keepdims=True)
        if np.isfinite(membership).all() and (membership >= 0).all() and (total > 0).all():
            return np.asarray(membership / total)
        problem = "init holds memberships that are not finite, negative, or 0 for a whole row"
    else:
        problem = f"init has shape {start.shape}"
    raise UsageError(
        "bad-start",
        problem,
        do=f"Give one label per row, memberships of shape ({n_rows}, {k}), or the name of a start",
    )

"""Encoding: a table and its schema become arrays of numbers and level codes, and levels values again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ilk.errors import SHOWN_ROWS, Caution, DataError, Option, UsageError, names_shown, rows_shown, shown
from ilk.table.block import BLOCK_ROWS, Array, Block, Encoding
from ilk.table.cells import EXACT_WHOLE, as_numbers, is_number, level_codes, type_name
from ilk.table.columns import Column, number_text
from ilk.table.condition import Survey, condition, encoding_of, precision_cautions, survey
from ilk.table.ledger import Ledger
from ilk.table.read import Table
from ilk.table.schema import ColumnInfo, Schema
from ilk.table.weights import WeightFacts, check_weight, conditioned_weight

__all__ = ["Encoded", "condition", "decode", "encode", "encode_array", "encode_new"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Encoded:
    """The rows as numeric code sees them.

    `numbers` (rows, numeric columns) are the user's values, NaN where missing; `encoding` conditions them.
    `codes` (rows, coded columns) hold level numbers, -1 where missing, None without such columns.
    `weight` is conditioned, too.
    `kept` holds the global numbers of the rows used, None when all are.
    """

    numbers: Array
    codes: Array | None
    weight: Array | None
    complete: bool
    encoding: Encoding
    schema: Schema
    ledger: Ledger
    kept: Array | None = None
    warnings: tuple[Caution, ...] = ()

    @property
    def n_rows(self) -> int:
        return int(self.numbers.shape[0])

    @property
    def row_numbers(self) -> Array:
        """Global numbers of the rows used, in order."""
        return np.arange(self.n_rows) if self.kept is None else self.kept

    def block(self, first_row: int = 0, n_rows: int | None = None) -> Block:
        """A run of rows as a block (views, nothing copied); all rows by default."""
        rows = slice(first_row, None if n_rows is None else first_row + n_rows)
        return Block(
            self.numbers[rows],
            self.encoding,
            first_row=first_row,
            weight=None if self.weight is None else self.weight[rows],
            codes=None if self.codes is None else self.codes[rows],
            complete=self.complete,
        )


def encode(
    table: Table,
    schema: Schema,
    *,
    weight: Any = None,
    scale: str | None = None,
    weights_are: str | None = None,
) -> Encoded:
    """The rows of a table for fitting: rows without any value are set aside, and the ledger says so.

    >>> from ilk.table.read import read
    >>> from ilk.table.schema import infer
    >>> table = read({"size": [1.5, None, 3.5], "kind": ["a", "b", None]})
    >>> encode(table, infer(table)).codes.tolist()
    [[0], [1], [-1]]
    """
    if table.n_rows == 0:
        raise DataError("no-rows", f"{table.source} has no rows", do="Give at least one row")
    names = [c.name for c in schema.numeric]
    numbers = numbers_of(table, schema.numeric)
    codes, _ = codes_of(table, schema.coded)
    given = _weight_of(table, schema, weight)
    heft, unit = (None, 1.0) if given is None else _meant(given, weights_are)
    facts = survey(numbers, weight=heft, names=names)
    ledger, kept = table.ledger, None
    empty = _empty_rows(numbers, codes, facts)
    warnings = precision_cautions(facts, names)
    if table.array is not None:
        warnings += whole_number_cautions(table.array)
    if len(empty):
        kept = np.setdiff1d(np.arange(table.n_rows), empty, assume_unique=True)
        if len(kept) == 0:
            raise DataError("no-rows", f"no row of {table.source} has a value in the columns used")
        numbers, codes = numbers[kept], None if codes is None else codes[kept]
        if given is not None:
            heft, unit = _meant(check_weight(given[kept], len(kept)), weights_are)
        facts = survey(numbers, weight=heft, names=names)
        ledger = ledger.without("entirely missing", empty)
        warnings.append(
            Caution(
                "empty-rows",
                f"{rows_shown(empty.tolist())} have no value in the columns used and were left out",
            )
        )
    encoding = replace(encoding_of(numbers, facts, scale=scale, weight=heft), weight_unit=unit)
    return Encoded(
        numbers=numbers,
        codes=codes,
        weight=heft,
        complete=facts.complete,
        encoding=encoding,
        schema=schema,
        ledger=ledger,
        kept=kept,
        warnings=tuple(warnings),
    )


def _meant(weight: Array, weights_are: str | None) -> tuple[Array, float]:
    return conditioned_weight(weight, WeightFacts.of(weight).unit_as(weights_are))


def encode_array(
    array: Array, *, weight: Any = None, scale: str | None = None, names: Sequence[str] | None = None
) -> Encoded:
    """A plain 2-D number array, every column numeric and none left out; floats are not copied.

    >>> x = np.arange(6.0).reshape(3, 2)
    >>> encode_array(x).numbers is x
    True
    """
    from ilk.table.read import from_array

    table = from_array(array)
    schema = Schema.numbers(table.names if names is None else names)
    if names is not None:
        if len(names) != table.n_columns:
            raise UsageError("bad-names", f"{len(names)} names for {table.n_columns} columns")
        table = Table(
            table.source,
            tuple(names),
            table.ledger,
            table.columns,
            array=table.array,
            warnings=table.warnings,
        )
    return encode(table, schema, weight=weight, scale=scale)


def encode_new(
    table: Table,
    schema: Schema,
    encoding: Encoding,
    *,
    weight: Any = None,
    absent: str = "error",
) -> Encoded:
    """Rows of a new table by the schema and the conditioning of the old: columns by name, levels by value.

    No row is set aside. A level not seen before is code -1 and counted in a warning; a column not seen before
    is ignored; a column that is missing is refused, or with `absent="missing"` a column of missing cells.

    >>> from ilk.table.read import read
    >>> from ilk.table.schema import infer
    >>> old = read({"kind": ["a", "b", "a"], "size": [1.5, 2.5, 4.0]})
    >>> schema = infer(old)
    >>> new = read({"size": [2.0], "kind": ["c"]})
    >>> encode_new(new, schema, encode(old, schema).encoding).codes.tolist()
    [[-1]]
    """
    there = set(table.names)
    lacking = list(dict.fromkeys(c.origin for c in schema.used if c.origin not in there))
    if lacking and absent != "missing":
        option = Option("absent", "missing")
        raise DataError(
            "absent-column",
            f"{table.source} lacks {len(lacking)} column{'s' if len(lacking) > 1 else ''} of the model: "
            + names_shown(lacking),
            do=f"Add them, or treat them as missing: {option}",
            options=[option],
        )
    warnings: list[Caution] = []
    if lacking:
        warnings.append(Caution("absent-column", f"{len(lacking)} columns are absent and treated as missing"))
    known = {c.name for c in schema.columns}
    extra = [name for name in table.names if name not in known]
    if extra:
        text = f"{len(extra)} columns are not part of the model and ignored: {names_shown(extra)}"
        warnings.append(Caution("extra-column", text))
    for info in schema.used:
        if info.origin not in lacking:
            _check_type(table, info)
    numbers = numbers_of(table, schema.numeric)
    codes, unseen = codes_of(table, schema.coded)
    warnings += unseen
    names = [c.name for c in schema.numeric]
    facts = survey(numbers, names=names)
    heft = None if weight is None else check_weight(weight, table.n_rows)
    return Encoded(
        numbers=numbers,
        codes=codes,
        weight=heft,
        complete=facts.complete,
        encoding=encoding,
        schema=schema,
        ledger=table.ledger,
        kept=None,
        warnings=tuple(warnings),
    )


def decode(codes: Any, column: ColumnInfo) -> list[Any]:
    """The user's values for level numbers, in the type they came in; None for -1.

    >>> decode([1, -1], ColumnInfo("seen", "binary", "", type="bool", levels=("false", "true")))
    [True, None]
    """
    levels = [level_value(level, column.type) for level in column.levels or ()]
    return [levels[int(code)] if code >= 0 else None for code in codes]


def level_value(level: str, kind: str) -> Any:
    """One level in the type its column had: whole number, number, truth value or text."""
    if kind == "bool":
        return level == "true"
    if kind.startswith(("int", "uint")):
        return int(level)
    if kind.startswith(("float", "double", "halffloat", "decimal")):
        return float(level)
    return level


def cells_as_read(table: Table, info: ColumnInfo) -> Column:
    """One column, its cells read as they are written."""
    column = table.column(info.origin)
    if info.topic is not None:
        return info.topic.numbers(column)
    return column if info.written is None else info.written.read(column, info.name)


def numbers_of(table: Table, columns: Sequence[ColumnInfo]) -> Array:
    """The numeric cells, (rows, columns); the user's own float array wherever it can serve."""
    numbers = _as_they_are(table, columns)
    coded = [j for j, info in enumerate(columns) if info.missing_codes]
    if coded:
        numbers = np.array(numbers)  # the array may be the user's
        for j in coded:
            numbers[np.isin(numbers[:, j], columns[j].missing_codes), j] = np.nan
    return numbers


def _as_they_are(table: Table, columns: Sequence[ColumnInfo]) -> Array:
    at = {name: place for place, name in enumerate(table.names)}
    if table.array is not None and all(c.name in at for c in columns):
        places = [at[c.name] for c in columns]
        array = (
            table.array if table.array.dtype in (np.float32, np.float64) else table.array.astype(np.float64)
        )
        if places == list(range(table.n_columns)):
            return array
        run = slice(places[0], places[0] + len(places)) if places else slice(0, 0)
        return array[:, run] if places == list(range(table.n_columns))[run] else array[:, places]
    present = [table.column(c.origin) for c in columns if c.origin in at]
    single = bool(present) and len(present) == len(columns) and all(c.type == pa.float32() for c in present)
    kind, shape = np.float32 if single else np.float64, (table.n_rows, len(columns))
    wide = len(columns) > table.n_rows  # a column at a time, then all of them in order: nearer in memory
    numbers = np.empty(shape[::-1], dtype=kind).T if wide else np.empty(shape, dtype=kind)
    for j, info in enumerate(columns):
        known = info.origin in at
        numbers[:, j] = as_numbers(cells_as_read(table, info), info.name) if known else np.nan
    return np.ascontiguousarray(numbers)


def codes_of(table: Table, columns: Sequence[ColumnInfo]) -> tuple[Array | None, list[Caution]]:
    """Level numbers by value, with a count of the cells whose level the schema does not know."""
    if not columns:
        return None, []
    codes = np.full((table.n_rows, len(columns)), -1, dtype=np.int32)
    unseen: list[str] = []
    for j, info in enumerate(columns):
        if info.origin not in table.names:
            continue
        place = {level: code for code, level in enumerate(info.levels or ())}
        texts, places = level_codes(cells_as_read(table, info))
        lookup = np.array([-1 if t is None else place.get(t, -1) for t in texts] + [-1], dtype=np.int32)
        codes[:, j] = lookup[places]
        known = {*place, *map(number_text, info.missing_codes)}
        strange = {i for i, t in enumerate(texts) if t is not None and t not in known}
        count = int(np.isin(places, list(strange)).sum()) if strange else 0
        if count:
            seen = sorted({str(texts[i]) for i in np.unique(places) if i in strange})
            listed = ", ".join(repr(shown(t)) for t in seen[:SHOWN_ROWS])
            unseen.append(f"{count} cells of {shown(info.name)!r} ({listed})")
    if not unseen:
        return codes, []
    return codes, [
        Caution(
            "unseen-category",
            "categories that the model has not seen are treated as missing: " + "; ".join(unseen),
        )
    ]


def _check_type(table: Table, info: ColumnInfo) -> None:
    """Refuse a column whose cells cannot be what they were when the model was made."""
    problem = table.problems.get(info.origin)
    if problem is not None:
        raise problem
    column = cells_as_read(table, info)
    if column.null_count == len(column) or info.reason.startswith("as asked"):
        return
    if info.levels is None and not is_number(column.type):
        raise _other_type(info, "numbers", type_name(column.type), column)
    if info.levels is not None and pa.types.is_temporal(column.type):
        raise _other_type(info, "levels", type_name(column.type), column)


def _other_type(info: ColumnInfo, wanted: str, given: str, column: Column) -> DataError:
    return DataError(
        "type-changed",
        f"column {shown(info.name)!r} held {wanted} ({info.type}) in the model and now holds {given}",
        where=f"{len(column) - column.null_count} cells",
        do="Convert the column to the type it had",
    )


def _empty_rows(numbers: Array, codes: Array | None, facts: Survey) -> Array:
    """Numbers of the rows in which no used cell has a value, looked for only where that is possible."""
    n_rows = numbers.shape[0]
    if numbers.shape[1] and not (facts.missing > 0).all():
        return np.empty(0, dtype=np.int64)
    found: list[Array] = []
    for start in range(0, n_rows, BLOCK_ROWS):
        empty = np.isnan(numbers[start : start + BLOCK_ROWS]).all(axis=1)
        if codes is not None:
            empty &= (codes[start : start + BLOCK_ROWS] < 0).all(axis=1)
        found.append(np.flatnonzero(empty) + start)
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def _weight_of(table: Table, schema: Schema, weight: Any) -> Array | None:
    if weight is not None:
        return check_weight(weight, table.n_rows)
    heft = weight_cells(table, schema)
    return None if heft is None else check_weight(heft, table.n_rows)


def weight_cells(table: Table, schema: Schema) -> Array | None:
    """The weight column as numbers, not yet checked; None where the table has none."""
    if schema.weight is None:
        return None
    column = table.column(schema.weight)
    if not is_number(column.type):
        raise DataError(
            "bad-weight",
            f"weight column {shown(schema.weight)!r} holds {type_name(column.type)}, not numbers",
        )
    return np.asarray(as_numbers(column, schema.weight))


def whole_number_cautions(array: Array) -> list[Caution]:
    """A warning when an array of whole numbers has some that float64 rounds."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or array.size == 0:
        return []
    if max(abs(int(array.min())), abs(int(array.max()))) <= EXACT_WHOLE:
        return []
    return [Caution("precision-lost", "whole numbers above 2^53 are rounded by float64")]

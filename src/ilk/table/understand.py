"""What a table is taken for where nobody has looked at it: cells as they are written, types, codes for missing cells,
times that only count the rows, columns said twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ilk.errors import Caution, Option, names_shown, shown
from ilk.table.as_read import AsRead, counts_rows, read_cells
from ilk.table.cells import TableColumns, type_name
from ilk.table.columns import number_text
from ilk.table.doubles import counted_once, same_columns
from ilk.table.missing_codes import WithoutCodes, code_cautions, missing_codes
from ilk.table.schema import ColumnInfo, Schema, asked_kinds, infer

COUNTS_ROWS = "evenly spaced in the order of the rows: it only counts them"


def understand(table: TableColumns, **asked: Any) -> Schema:
    """The schema of a table, as `infer` has it, with cells read as they are written, codes for "no answer" as missing
    cells and every column once.

    >>> from ilk.table.read import read
    >>> schema = understand(read({"age": [30 + i % 40 for i in range(97)] + [-99] * 3}))
    >>> schema["age"].missing, schema["age"].missing_codes
    (3, (-99.0,))
    """
    given = asked_kinds(asked.get("types"), asked.get("ignore", ()))
    roles = [asked.get(role) for role in ("id", "weight", "truth")]
    free = [n for n in table.names if n not in given and n not in roles and n not in table.problems]
    read = read_cells(table, given, roles)
    dates = {name for name, column in read.read.items() if column.spelling.kind in ("date", "time")}
    codes = missing_codes(read, [name for name in free if name not in dates])
    seen = WithoutCodes(read, codes)
    schema = infer(seen, **asked)
    columns = tuple(
        _with_codes(c, tuple(codes[c.name])) if c.name in codes and c.used else c
        for c in (_as_read(c, read) for c in schema.columns)
    )
    schema = replace(schema, columns=columns, warnings=(*code_cautions(codes), *schema.warnings))
    schema = _without_counters(schema, seen, free)
    used = [c.name for c in schema.used]
    told = (*read.unread(used), *read.cautions(used))
    schema = replace(schema, warnings=(*told, *schema.warnings))
    return counted_once(schema, same_columns(seen, schema, given))


def _with_codes(column: ColumnInfo, codes: tuple[float, ...]) -> ColumnInfo:
    told = f"{', '.join(map(number_text, codes))} taken as missing"
    return replace(column, missing_codes=codes, note=f"{column.note}; {told}" if column.note else told)


def _as_read(column: ColumnInfo, read: AsRead) -> ColumnInfo:
    """With how its cells are written, and the type that they have in the table."""
    if column.name not in read.read or not column.used:
        return column
    one = read.read[column.name]
    kind = type_name(read.table.cells(column.name).type)
    told = {"date": "date", "time": "time of day"}.get(one.spelling.kind)
    reason = told if told and column.reason == "number" else column.reason
    return replace(column, written=one.spelling, type=kind, note=one.note, reason=reason)


def _without_counters(schema: Schema, seen: TableColumns, free: list[str]) -> Schema:
    """Without times that only count the rows, where other columns are left."""
    may = set(free)
    found = [
        c.name
        for c in schema.numeric
        if c.name in may and not c.missing and counts_rows(seen.cells(c.name), c.written, c.name)
    ]
    if not found or len(found) == len(schema.used):
        return schema
    columns = tuple(
        replace(c, kind="left out", reason=COUNTS_ROWS, note="", written=None) if c.name in found else c
        for c in schema.columns
    )
    option = Option("types", {shown(found[0]): "numeric"})
    text = f"left out, as times that only count the rows: {names_shown(found)}; to use them: {option}"
    return replace(
        schema, columns=columns, warnings=(Caution("counts-rows", text, [option]), *schema.warnings)
    )

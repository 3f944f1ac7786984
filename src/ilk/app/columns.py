"""The columns of a table before a fit: what each is taken for, what is missing, a small picture of its cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from ilk.app.asked import READ_BY, Options
from ilk.errors import IlkError, shown, typed
from ilk.report.figures import value_text
from ilk.report.summary import column_entries, plain
from ilk.table.block import Array
from ilk.table.encode import encode
from ilk.table.read import Table, read
from ilk.table.schema import ColumnInfo, Schema
from ilk.table.understand import understand

BARS = 24
LEVELS = 6
TEXT_CHARACTERS = 60
PICTURED = 200_000  # rows that a picture of texts is made of


def reading_of(options: Options) -> dict[str, Any]:
    """The options that say how a file is read."""
    return {name: options[name] for name in READ_BY if name in options}


def look(path: Path, options: Options) -> dict[str, Any]:
    """What a table holds, as the fit with these options would take it."""
    return look_at(read(str(path), **reading_of(options)), options)


def look_at(table: Table, options: Options) -> dict[str, Any]:
    """The same of a table that was read with these options."""
    asked = {name: options.get(name) for name in ("types", "id", "weight", "truth")}
    schema = understand(table, ignore=_set_aside(options), **asked)
    pictures = _pictures(table, schema)
    entries = column_entries(schema, schema)
    for entry in entries:
        levels = entry.pop("categories")
        entry["n_categories"] = None if levels is None else len(levels)
        entry["picture"] = pictures.get(entry["name"])
    told = (*table.warnings, *schema.warnings)
    cautions = [{"code": c[0], "text": typed(c[1], c.options)} for c in told]
    return {"rows": table.n_rows, "columns": plain(entries), "cautions": cautions}


def _set_aside(options: Options) -> tuple[str, ...]:
    known = options.get("known")
    return (*options.get("ignore", ()), *((known,) if known else ()))


def _pictures(table: Table, schema: Schema) -> dict[str, Any]:
    made: dict[str, Any] = {}
    try:
        encoded = encode(table, schema)
        for j, column in enumerate(schema.numeric):
            made[column.name] = _bars(encoded.numbers[:, j], column)
        codes = np.empty((0, 0), np.int32) if encoded.codes is None else encoded.codes
        for j, column in enumerate(schema.coded):
            made[column.name] = _levels(codes[:, j], column.levels or ())
    except IlkError:  # the fit says why; the columns are shown all the same
        pass
    for name in table.names:
        if name not in made and name not in table.problems:
            made[name] = _texts(table.column(name))
    return made


def _bars(values: Array, column: ColumnInfo) -> dict[str, Any] | None:
    there = values[np.isfinite(values)]
    if not len(there):
        return None
    low, high = float(there.min()), float(there.max())
    counts, _ = np.histogram(there, BARS, (low, high if high > low else low + 1.0))
    digits = 0 if (there[:1000] == np.round(there[:1000])).all() else 2
    ends = [value_text(end, digits, column.clock) for end in (low, high)]
    return {"bars": counts.tolist(), "low": ends[0], "high": ends[1]}


def _levels(codes: Array, levels: tuple[str, ...]) -> dict[str, Any]:
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    order = np.argsort(-counts, kind="stable")[:LEVELS]
    shown_ones = [[shown(levels[i], TEXT_CHARACTERS), int(counts[i])] for i in order]
    return {"levels": shown_ones, "more": max(len(levels) - LEVELS, 0)}


def _texts(cells: Any) -> dict[str, Any] | None:
    try:
        found = pc.value_counts(cells.slice(0, PICTURED).drop_null())
        order = sorted(found.to_pylist(), key=lambda entry: -entry["counts"])
    except (NotImplementedError, ValueError, TypeError):  # a type that Arrow does not count
        return None
    some = [[shown(entry["values"], TEXT_CHARACTERS), entry["counts"]] for entry in order[:3]]
    return {"levels": some, "more": max(len(order) - 3, 0)}

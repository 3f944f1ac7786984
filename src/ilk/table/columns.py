"""Columns as they come: names made usable, cells of any Python kind turned into Arrow."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow as pa

from ilk.errors import SHOWN_ROWS, Caution, DataError, Option, rows_shown, shown

Column = Any
"""A pyarrow Array or ChunkedArray."""


def usable_names(names: Iterable[object], *, text: bool = False) -> tuple[tuple[str, ...], list[Caution]]:
    """Text names for columns; empty ones are generated, repeated ones refused (in a text file made unique).

    Both as DuckDB names the columns of a text file, so that the SELECT of `ilk export` reads the same file.

    >>> usable_names(["a", "", None])[0]
    ('a', 'column1', 'column2')
    """
    given = list(names)
    cautions: list[Caution] = []
    plain = [_plain_name(name) for name in given]
    blank = [i for i, name in enumerate(plain) if not name.strip()]
    taken = {name for name in plain if name.strip()}
    for i in blank:
        plain[i] = _free(f"column{i:0{len(str(len(given) - 1))}}", taken)
        taken.add(plain[i])
    if blank:
        made = ", ".join(plain[i] for i in blank[:SHOWN_ROWS])
        cautions.append(Caution("column-names", f"{len(blank)} columns have no name and are called {made}"))
    numbers = [n for n in given if not isinstance(n, (str, tuple)) and n is not None]
    if numbers:
        told = f"{len(numbers)} column names are not text and are written as {plain[0]!r} …"
        cautions.append(Caution("column-names", told))
    return _unique(plain, cautions, text=text), cautions


def _plain_name(name: object) -> str:
    if isinstance(name, tuple):  # pandas MultiIndex columns
        return sound("_".join(str(part) for part in name if str(part)))
    if name is None or (isinstance(name, float) and math.isnan(name)):
        return ""
    return sound(str(name))


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


def _unique(names: list[str], cautions: list[Caution], *, text: bool) -> tuple[str, ...]:
    seen: set[str] = set()
    repeated = [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if not repeated:
        return tuple(names)
    listed = ", ".join(repr(shown(name)) for name in list(dict.fromkeys(repeated))[:SHOWN_ROWS])
    if not text:
        raise DataError(
            "duplicate-columns",
            f"{len(repeated)} column names occur more than once: {listed}",
            do="Give every column a name of its own",
        )
    taken, unique, done = set(names), [], set()
    for name in names:
        free = _free(name, taken) if name in done else name
        done.add(name)
        taken.add(free)
        unique.append(free)
    told = f"column names repeated in the file were numbered: {listed}"
    cautions.append(Caution("duplicate-columns", told))
    return tuple(unique)


def plain_or_list(values: Any) -> Any:
    """A column as a list of cells, or the array that it is where no cell needs a look of its own."""
    plain = tuple(map(np.dtype, (np.float64, np.int64, np.bool_)))
    return (
        values
        if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype in plain
        else list(values)
    )


def from_objects(values: Sequence[Any], name: str) -> tuple[Column, DataError | None]:
    """An Arrow column from Python cells; with it the reason why it cannot be used, if any.

    >>> from_objects([1, "a"], "mixed")[1].code
    'data-mixed'
    """
    kinds = _kinds(values)
    if len(kinds) > 1:
        return _as_text(values), _mixed(values, kinds, name)
    kind = next(iter(kinds), "missing")
    if kind in ("complex number", "nested", "bytes", "object"):
        return pa.nulls(len(values)), unsupported(name, f"cells of type {kind}")
    if kind == "Decimal":
        return pa.nulls(len(values)), DataError(
            "unsupported-type",
            f"column {shown(name)!r} holds Decimal objects",
            do="Convert it to float first; that says where its exactness ends",
        )
    if kind == "number":
        return _numbers(values), None
    if kind == "text":
        return _texts(values), None
    cells = [None if _missing(v) else v for v in values]
    try:
        return pa.array(_midnights(cells) if kind == "date" else cells), None
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.nulls(len(values)), unsupported(name, f"cells of type {kind} that do not go together")


def _midnights(cells: list[Any]) -> list[Any]:
    """Dates as their midnights where times stand beside them: Arrow would cut the times off, or refuse them."""
    if len({type(cell) for cell in cells if cell is not None}) < 2:
        return cells
    plain = [
        cell.astype("datetime64[us]").item() if isinstance(cell, np.datetime64) else cell for cell in cells
    ]
    return [datetime.combine(cell, time()) if type(cell) is date else cell for cell in plain]


def unsupported(name: str, what: str) -> DataError:
    """The refusal of a column whose type no model can use."""
    out = Option("ignore", [shown(name)])
    return DataError(
        "unsupported-type",
        f"column {shown(name)!r} holds {what}, which cannot be clustered",
        do=f"Take the parts you need into columns of their own, or leave the column out: {out}",
        options=[out],
    )


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    ((bool, np.bool_), "bool"),
    (Decimal, "Decimal"),
    ((Real, np.number), "number"),
    (str, "text"),
    ((date, datetime, np.datetime64), "date"),
    ((time, timedelta, np.timedelta64), "time"),
    ((bytes, bytearray, memoryview), "bytes"),
    ((list, tuple, dict, set, np.ndarray), "nested"),
)


def _kind(of: type) -> str:
    if issubclass(of, (complex, np.complexfloating)):
        return "complex number"
    return next((word for kinds, word in _KINDS if issubclass(of, kinds)), "object")


MARKS = ("NoneType", "NAType", "NaTType")  # types of which every cell is missing


def _missing(value: Any) -> bool:
    """None, a float NaN, and the not-a-value marks of frame libraries (NaT, NA: not equal to themselves)."""
    if type(value).__name__ in MARKS:
        return True
    return isinstance(value, (float, np.floating)) and bool(value != value)


def _kinds(values: Sequence[Any]) -> dict[str, type]:
    present = set(map(type, values))
    doubtful = {of for of in present if issubclass(of, (float, np.floating)) or of.__name__ in MARKS}
    if doubtful:
        present -= doubtful
        present |= {type(v) for v in values if type(v) in doubtful and not _missing(v)}
    return {_kind(of): of for of in sorted(present, key=lambda of: of.__name__)}


def _texts(values: Sequence[Any]) -> Column:
    """Texts as they are where no cell needs a look of its own."""
    if set(map(type, values)) <= {str, np.str_, type(None)}:
        try:
            return pa.array(values, type=pa.string())  # told the type, Arrow is as quick with NumPy's texts
        except UnicodeEncodeError:  # half a character
            pass
    return pa.array([None if _missing(v) else sound(v) for v in values])


def _numbers(values: Sequence[Any]) -> Column:
    """Whole numbers as int64 where they fit, everything else as float64; a missing cell is null."""
    cells = [None if _missing(v) else v for v in values]
    if all(v is None or isinstance(v, Integral) for v in cells):
        try:
            return pa.array([None if v is None else int(v) for v in cells], type=pa.int64())
        except (OverflowError, pa.ArrowInvalid):
            pass
    return pa.array([None if v is None else _float(v) for v in cells], type=pa.float64())


def _float(value: Any) -> float:
    """A number as a double; one that is too large for it is infinite, and refused as such with its row."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _as_text(values: Sequence[Any]) -> Column:
    return pa.array([None if _missing(v) else sound(str(v)) for v in values], type=pa.large_string())


def sound(text: str) -> str:
    """Text that can be written as UTF-8: half a character, as JSON and Windows names may have, is spelled out.

    >>> print(sound("a\\ud800"))
    a\\ud800
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def _mixed(values: Sequence[Any], kinds: dict[str, type], name: str) -> DataError:
    rows: dict[str, list[int]] = {kind: [] for kind in kinds}
    for i, value in enumerate(values):
        if not _missing(value):
            rows[_kind(type(value))].append(i)
    parts = "; ".join(f"{kind}: {rows_shown(where)}" for kind, where in rows.items())
    options = Option("types", {shown(name): "categorical"}), Option("ignore", [shown(name)])
    return DataError(
        "data-mixed",
        f"column {shown(name)!r} mixes {' and '.join(rows)}",
        where=parts,
        do=f"Clean the column, name its type ({options[0]}), or leave it out: {options[1]}",
        options=options,
    )


NUMBER = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def number_text(value: float) -> str:
    """The one spelling of a number that serves as a level: whole numbers without a point.

    >>> number_text(1.0), number_text(-0.0), number_text(0.25)
    ('1', '0', '0.25')
    """
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)


def plain_arrow(column: Column) -> Column:
    """A column without extension types, views, run lengths and half floats; NaN becomes null."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return plain_arrow(pa.chunked_array([chunk.storage for chunk in chunks], type=kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        import pyarrow.compute as pc

        return plain_arrow(pc.run_end_decode(column))
    if kind == pa.string_view():
        return column.cast(pa.large_string())
    if kind == pa.float16():
        column = column.cast(pa.float32())
    if pa.types.is_floating(column.type):
        import pyarrow.compute as pc

        gaps = pc.is_nan(column)
        if pc.any(gaps).as_py():
            return pc.if_else(gaps, pa.scalar(None, column.type), column)
    return column

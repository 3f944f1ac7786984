"""A table with its cells read as they are written: numbers with currency signs and units, dates, words for yes and no.

What is read is told in one line per kind, and left as it is where the user names the type of the column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ilk.errors import Caution, DataError, Option, listed, shown
from ilk.table.cells import ColumnCells, TableColumns, TableView
from ilk.table.spelled_dates import day_text, emptiest, hour_text
from ilk.table.spelling import Found, Spelling, spelling_of

FEW_DATES = 2
"""Different dates up to which they are levels rather than days."""
TAKES = {
    None: ("number", "date", "truth", "time"),
    "numeric": ("number", "date", "time"),
    "count": ("number",),
    "binary": ("truth",),
}
"""What may be read where the user asked for a type."""
COUNTED = 20
"""Rows from which evenly spaced times count them."""
EPOCHS = ((1e8, 5e9), (1e11, 5e12), (1e14, 5e15), (1e17, 5e18))
"""Seconds since 1970, thousandths, millionths and so on of the years 1973 to 2128."""
_CLOCK = re.compile(r"(^|[_\s.-])(epoch|time|timestamp|unixtime|ts)([_\s.-]|$)", re.I)
SLACK = 1e-3  # of a step, by which times may be off


@dataclass(frozen=True)
class ReadColumn:
    """One column as read: how its cells are written, what they are now, and how many words for "not known" it had."""

    found: Found
    spelling: Spelling
    cells: ColumnCells
    blanked: int

    def told(self, name: str) -> str:
        text, value = self.found.example
        parts = [f"{shown(text)!r} as {value}"] if text else [self.found.words] if self.found.words else []
        if self.spelling.order in ("dmy", "mdy"):
            parts.append("day first" if self.spelling.order == "dmy" else "month first")
        if self.spelling.kind == "date":
            parts.append(f"from {day_text(self.spelling.origin)} on")
        if self.spelling.kind == "time":
            parts.append(f"from {hour_text(self.spelling.origin)} on, where fewest are")
        if self.found.sure == "doubt":
            parts.append("another reading is as possible")
        if self.blanked:
            parts.append(f"{self.blanked:,} cells such as '-' as missing")
        return repr(shown(name)) + (f" ({', '.join(parts)})" if parts else "")

    @property
    def note(self) -> str:
        """For the column's own line."""
        text, value = self.found.example
        if self.spelling.kind == "date":
            return f"days since {day_text(self.spelling.origin)}"
        if self.spelling.kind == "time":
            return f"hours since {hour_text(self.spelling.origin)}"
        return self.found.words or f"{shown(text)!r} is read as {value}"


@dataclass(frozen=True)
class AsRead(TableView):
    """A table as the rules see it, with cells read as they are written; `faults` are columns that could not be."""

    read: Mapping[str, ReadColumn]
    faults: Mapping[str, str]

    def cells(self, name: str) -> ColumnCells:
        return self.read[name].cells if name in self.read else super().cells(name)

    def cautions(self, used: Sequence[str]) -> list[Caution]:
        """What was read as what in the columns used, a line for each kind."""
        made = []
        for kind, (code, what) in _SAID.items():
            names = [n for n, column in self.read.items() if column.spelling.kind == kind and n in used]
            if names:
                made.append(self._told(code, what, names))
        return made

    def _told(self, code: str, what: str, names: Sequence[str]) -> Caution:
        read = listed([self.read[name].told(name) for name in names])
        first = shown(names[0])
        dates = code in ("dates-read", "times-read")
        option = Option("ignore", [first]) if dates else Option("types", {first: "categorical"})
        undo = "to leave one out" if dates else "to keep the text"
        return Caution(code, f"{what}: {read}; {undo}: {option}", [option])

    def unread(self, used: Sequence[str]) -> list[Caution]:
        """Columns that look like numbers or dates and could not be read."""
        made = []
        for name, fault in self.faults.items():
            state = "used as text" if name in used else "left out"
            text = f"column {shown(name)!r} looks like numbers or dates and is {state}: {fault}"
            made.append(Caution("cells-not-read", f"{text}; write all its cells in one way"))
        return made


_SAID = {
    "number": ("numbers-read", "read as numbers"),
    "date": ("dates-read", "dates read as days since the first"),
    "time": ("times-read", "times of day read as hours"),
    "truth": ("truth-read", "words for yes and no read as yes and no"),
}


def read_cells(table: TableColumns, asked: Mapping[str, Any], roles: Sequence[str | None]) -> AsRead:
    """The columns of text and dates, read where all their cells are written in one way.

    >>> from ilk.table.read import read
    >>> read_cells(read({"pay": ["$1,200", "$350"]}), {}, ()).cells("pay").levels()
    ('350', '1200')
    """
    found: dict[str, Found] = {}
    for name in table.names:
        kind = asked.get(name)
        if name in roles or name in table.problems or not (kind is None or isinstance(kind, str)):
            continue
        if kind in TAKES:
            found[name] = _found(table.cells(name), TAKES[kind])
    marks = Counter(f.spelling.decimal for f in found.values() if f.spelling and f.sure == "decided")
    hint = marks.most_common(1)[0][0] if marks else getattr(table, "decimal", "")
    read: dict[str, ReadColumn] = {}
    faults = {name: f.fault for name, f in found.items() if f.fault and asked.get(name) is None}
    for name, one in found.items():
        if one.spelling is None:
            continue
        column = table.cells(name)
        sure = spelling_of(column.texts(), hint) if _in_doubt(one) and hint else one
        try:
            read[name] = _read(column, sure, name)
        except DataError as error:  # a table in pieces: a text beyond those that were looked at
            faults[name] = f"{error.what} ({error.where})"
    return AsRead(table, read, faults)


def _in_doubt(found: Found) -> bool:
    return found.sure == "doubt" and found.spelling is not None and found.spelling.kind == "number"


def _found(column: ColumnCells, kinds: Sequence[str]) -> Found:
    kind = column.type
    if column.missing == column.n_rows:
        return Found()
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return Found(Spelling("date")) if "date" in kinds and _several(column) else Found()
    if pa.types.is_time(kind):
        return Found(Spelling("time")) if "time" in kinds and _several(column) else Found()
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return Found()
    texts = column.texts()
    found = spelling_of(texts)
    if found.spelling is None:
        return found
    few = found.spelling.kind in ("date", "time") and len(texts) <= FEW_DATES
    return Found() if few or found.spelling.kind not in kinds else found


def _several(column: ColumnCells) -> bool:
    return column.n_distinct() > FEW_DATES


def _read(column: ColumnCells, found: Found, name: str) -> ReadColumn:
    spelling = found.spelling
    assert spelling is not None
    kind = pa.large_string() if spelling.kind == "truth" else pa.float64()
    cells = column.as_read(ReadBySpelling(spelling, name), kind)
    if spelling.kind == "date":
        spelling = replace(spelling, origin=float(np.floor(cells.ends()[0])))
        cells = cells.as_read(partial(pc.add, -spelling.origin), kind)
    if spelling.kind == "time":
        times = np.concatenate([*cells.number_parts()]) / 24
        spelling = replace(spelling, origin=emptiest(times))
        cells = column.as_read(ReadBySpelling(spelling, name), kind)
    return ReadColumn(found, spelling, cells, cells.missing - column.missing)


@dataclass(frozen=True)
class ReadBySpelling:
    """Reads the cells of one column; plain data, so that it can be made again for every part."""

    spelling: Spelling
    name: str

    def __call__(self, column: Any) -> Any:
        return self.spelling.read(column, self.name)


def counts_rows(column: ColumnCells, written: Spelling | None, name: str) -> bool:
    """Whether times come evenly spaced in the order of the rows, so that they only number them."""
    if column.missing or column.n_rows < COUNTED:
        return False
    if (written is None and not _is_clock(column, name)) or (written is not None and written.kind != "date"):
        return False
    low, high = map(float, column.ends())
    step = (high - low) / (column.n_rows - 1)
    slack = 1.0 if pa.types.is_integer(column.type) else SLACK * step  # whole numbers may be rounded
    if step <= 0 or slack > step:
        return False
    row, falls = 0, False
    for part in column.number_parts():
        falls = falls if row else len(part) > 0 and part[0] == high
        line = (row + np.arange(len(part))) * step
        if not (np.abs(part - (high - line if falls else low + line)) <= slack).all():
            return False
        row += len(part)
    return True


def _is_clock(column: ColumnCells, name: str) -> bool:
    """Whole numbers such as computers count the time by, or that are called so."""
    if not pa.types.is_integer(column.type):
        return False
    low, high = column.ends()
    return _CLOCK.search(name) is not None or any(start <= low and high <= end for start, end in EPOCHS)

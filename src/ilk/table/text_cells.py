"""What the cells of a text file are: numbers, truth values, text, or marks for what is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ilk.errors import SHOWN_ROWS, Caution, Option, often, shown
from ilk.table.cells import EXACT_WHOLE
from ilk.table.columns import NUMBER, Column
from ilk.table.files import TextOptions

MISSING_MARKS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "<NA>", "?")
"""Cells of a text file that mean "not known"; each but the empty one is reported when it is taken."""


def marks_of(options: TextOptions) -> tuple[str, ...]:
    """The cells that mean "not known"."""
    return MISSING_MARKS if options.missing is None else ("", *options.missing)


_NUMBER_CELL = "^" + NUMBER.pattern.replace(r"\d", "[0-9]") + "$"
_INFINITY_CELL = r"^[+-]?(?i:inf|infinity)$"
_GROUPED = r"^[+-]?(?:[1-9][0-9]{0,2}(?:\.[0-9]{3})+|[0-9]{1,3})$"
_COMMA_FORM = r"^[^0-9,]*[0-9][0-9.'’\s]*(?:,[0-9]+)?[^0-9,]*$"
_COMMA = r"[0-9],(?:[0-9]{1,2}|[0-9]{4,})(?:[^0-9]|$)"


@dataclass(frozen=True)
class Look:
    """What the known cells of a column look like, all of them; looks at parts add up."""

    known: bool = False
    number: bool = True
    padded: bool = False  # one begins with a zero: 007 is a code, not a number
    whole: bool = True
    truth: bool = True
    grouped: bool = True  # numbers such as 1.234, which a decimal comma elsewhere makes whole
    comma_form: bool = True  # digits, perhaps with a comma among them
    comma: bool = False  # one has a decimal comma

    def __add__(self, other: Look) -> Look:
        return Look(
            self.known or other.known,
            self.number and other.number,
            self.padded or other.padded,
            self.whole and other.whole,
            self.truth and other.truth,
            self.grouped and other.grouped,
            self.comma_form and other.comma_form,
            self.comma or other.comma,
        )

    @property
    def says_comma(self) -> bool:
        """Whether the column decides that the file has decimal commas."""
        return self.known and self.comma_form and self.comma

    @property
    def type(self) -> Any:
        if not self.known:
            return pa.null()
        if self.number:
            return pa.large_string() if self.padded else pa.int64() if self.whole else pa.float64()
        return pa.bool_() if self.truth else pa.large_string()


def _known(column: Column, marks: tuple[str, ...], decimal: str) -> tuple[Column, Column]:
    """The cells with null for marks, and the same without blanks around them and with a decimal point."""
    trimmed = pc.utf8_trim_whitespace(column)
    taken = pc.is_in(trimmed, pa.array(marks, type=trimmed.type))
    if pc.any(taken).as_py():
        none = pa.scalar(None, column.type)
        column, trimmed = pc.if_else(taken, none, column), pc.if_else(taken, none, trimmed)
    return column, trimmed if decimal == "." else pc.replace_substring(trimmed, decimal, ".")


def settled(looks: Sequence[Look]) -> list[Look]:
    """With numbers such as 1.234 left as text where another column has decimal commas: it means 1234 there."""
    if not any(look.says_comma for look in looks):
        return list(looks)
    return [
        replace(look, number=False, truth=False)
        if look.number and look.known and not look.whole and look.grouped
        else look
        for look in looks
    ]


def as_text(look: Look) -> Look:
    """For a column that is to stay text."""
    return replace(look, number=False, truth=False)


def look_at(column: Column, marks: tuple[str, ...], decimal: str, *, sep: str = ",") -> Look:
    """What the cells of a text column are: numbers, whole numbers, truth values, or text; commas are looked at where
    they do not separate fields."""
    return _looked(_known(column, marks, decimal)[1], sep)[0]


def looked_and_typed(
    column: Column, marks: tuple[str, ...], decimal: str, *, sep: str = ","
) -> tuple[Look, Column]:
    """`look_at` and `as_typed` in one: what both need is made once."""
    known, cells = _known(column, marks, decimal)
    look, numbers = _looked(cells, sep)
    return look, _typed(known, cells, look, numbers)


def _looked(cells: Column, sep: str) -> tuple[Look, Column | None]:
    """What cells are, and their numbers where they were needed for that."""
    if cells.null_count == len(cells):
        return Look(), None

    def every(pattern: str) -> bool:
        return bool(pc.all(pc.match_substring_regex(cells, pattern)).as_py())

    numbers = _numbers(cells)
    if numbers is not None or every(f"{_NUMBER_CELL}|{_INFINITY_CELL}"):
        padded = bool(pc.any(pc.match_substring_regex(cells, "^[+-]?0[0-9]")).as_py())
        whole = every("^[+-]?[0-9]{1,18}$")
        grouped = sep != "," and not whole and every(_GROUPED)
        return Look(True, True, padded, whole, False, grouped or whole, False), numbers
    truth = every("^(?i:true|false)$")
    form = sep != "," and every(_COMMA_FORM)
    comma = form and bool(pc.any(pc.match_substring_regex(cells, _COMMA)).as_py())
    return Look(True, False, False, False, truth, False, form, comma), None


def _numbers(cells: Column) -> Column | None:
    """The cells as float64 where Arrow reads all of them as numbers, which is faster than to look for a pattern; words
    for "not a number" are none."""
    try:
        numbers = cells.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    return None if pc.any(pc.is_nan(numbers)).as_py() else numbers


def as_typed(column: Column, marks: tuple[str, ...], decimal: str, look: Look) -> Column:
    """A text column as int64, float64 or bool where every cell is one, else as text; marks become null."""
    known, cells = _known(column, marks, decimal)
    return _typed(known, cells, look, None)


def _typed(known: Column, cells: Column, look: Look, numbers: Column | None) -> Column:
    if pa.types.is_null(look.type):
        return pa.nulls(len(known))
    if look.type == pa.large_string():
        return known.cast(pa.large_string())
    if look.type == pa.bool_():
        return pc.equal(pc.utf8_lower(cells), "true")
    if numbers is not None and (look.type == pa.float64() or pc.max(pc.abs(numbers)).as_py() <= EXACT_WHOLE):
        return numbers.cast(look.type)
    return pc.replace_substring_regex(cells, r"^\+", "").cast(look.type)


def marks_taken(name: str, column: Column, marks: tuple[str, ...]) -> Counter[tuple[str, str]]:
    """How often which word was taken for a missing cell."""
    trimmed = pc.utf8_trim_whitespace(column)
    lost = trimmed.filter(pc.is_in(trimmed, pa.array(marks, type=trimmed.type)))
    found = pc.value_counts(lost).to_pylist()
    return Counter({(entry["values"], name): entry["counts"] for entry in found if entry["values"]})


def mark_cautions(taken: Counter[tuple[str, str]]) -> list[Caution]:
    """Which words were taken for missing cells."""
    found: list[Caution] = []
    if taken:
        parts = ", ".join(
            f"{mark!r} {often(n)} in {shown(name)!r}" for (mark, name), n in taken.most_common(SHOWN_ROWS)
        )
        option = Option("missing", [taken.most_common(1)[0][0][0]])
        text = f"treated as missing: {parts}; to change this, name the only ones that are: {option}"
        found.append(Caution("missing-marks", text, [option]))
    return found


def total_row(cell: str | None) -> list[Caution]:
    """A warning where the first cell of the last row says that it is a total."""
    last = str(cell or "").strip().lower().rstrip(":")
    if last in ("total", "totals", "sum", "grand total", "gesamt", "summe"):
        text = f"the last row starts with {last!r} and may be a total, not a row; it was kept"
        return [Caution("total-row", text)]
    return []

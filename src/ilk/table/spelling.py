"""How the cells of a column are written, and how such cells are read: numbers, dates, truth values.

A `Spelling` is found over all different texts of a column (`spelling_of`) and is part of its schema, so that rows that
come later are read in the same way, or refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ilk.errors import DataError, Option, rows_shown, shown
from ilk.table.cells import as_days
from ilk.table.columns import NUMBER, Column, number_text
from ilk.table.spelled_dates import (
    date_order,
    day_text,
    days_of,
    hour_text,
    looks_like_date,
    looks_like_time,
    times_of,
)
from ilk.table.spelled_numbers import SpelledNumbers, numbers_of_texts

KINDS = ("number", "date", "truth", "time")
PARTS = ("", "hour", "weekday", "month")
"""Of a date: all of it, as days; or what comes again."""
WEEKDAYS: tuple[str, ...] = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS: tuple[str, ...] = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NOT_KNOWN = ("", "-", "--", "–", "—", "?", ".", "na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "<na>")
"""Cells, in small letters, that mean "not known" among numbers, dates and truth values."""
NO_ANSWER = ("unknown", "missing", "-1", "-9", "-99", "-999", "9", "99", "999")
"""Further ones beside yes and no."""
YES = ("yes", "y", "true", "t", "1", "ja", "j", "wahr", "oui", "o", "vrai", "si", "sí", "s", "sim", "on")
NO = ("no", "n", "false", "f", "0", "nein", "falsch", "non", "faux", "não", "off")
LOOKED_AT = 200
"""Texts from which most columns of plain words are told."""
FEW_VALUES = 10
"""Digits beside '-' with at most so many values may be codes."""
LOOKS_LIKE = 0.8
"""Share of the texts that must look like numbers or dates for a column to be one with faults."""


@dataclass(frozen=True)
class Spelling:
    """How cells are written: marks and unit of a number, order of a date and the day from which it counts.

    Times of day, and the hours of dates, count from the part of a day in `origin`; a `part` of dates is taken alone.
    """

    kind: str
    decimal: str = "."
    unit: str = ""
    order: str = ""
    origin: float = 0.0  # days since 1970-01-01
    part: str = ""

    @classmethod
    def from_dict(cls, plain: Any) -> Spelling | None:
        """A spelling from plain data that may come from anywhere, None where it is none."""
        known = {"kind", "decimal", "unit", "order", "origin"}
        if not isinstance(plain, dict) or set(plain) - {"part"} != known:
            return None
        texts, origin = [plain[key] for key in ("kind", "decimal", "unit", "order")], plain["origin"]
        good = all(isinstance(text, str) and len(text) <= 40 for text in texts) and texts[0] in KINDS
        good = good and type(origin) in (int, float) and math.isfinite(origin)
        good = good and plain["decimal"] in (".", ",") and plain["order"] in ("", "ymd", "dmy", "mdy")
        good = good and plain.get("part", "") in (PARTS if plain["kind"] == "date" else PARTS[:1])
        return cls(**{**plain, "origin": float(origin)}) if good else None

    def parsed(self, texts: Column) -> Column:
        """What texts say, null where they are not written in this way; not known ones are null, too."""
        if self.kind == "truth":
            return pa.array([_truth(text) for text in texts.to_pylist()], pa.large_string())
        if self.kind == "number":
            return numbers_of_texts(texts, self.decimal, self.unit)
        if self.kind == "time":
            return self._of_days(times_of(texts))
        return self._of_days(days_of(texts, self.order, local=bool(self.part)))

    def _of_days(self, days: Any) -> Column:
        """Days, or the hours, weekdays or months of them; null where there is none."""
        if self.kind == "time" or self.part == "hour":
            return pa.array(np.round((days - self.origin) % 1 * 24, 6), from_pandas=True)
        if not self.part:
            return pa.array(days - self.origin, from_pandas=True)
        known = np.isfinite(days)
        whole = np.floor(np.where(known, days, 0.0)).astype(np.int64)
        if self.part == "weekday":  # 1970-01-01 was a Thursday
            words, place = WEEKDAYS, (whole + 3) % 7
        else:
            words, place = MONTHS, whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
        return pa.array(words, pa.large_string()).take(pa.array(place, mask=~known))

    def read(self, column: Column, name: str) -> Column:
        """A column as numbers (float64), days or yes and no; a cell that is written in another way is refused.

        Beside yes and no an unknown word stays as it is: a category that the model has not seen.

        >>> Spelling("number", unit="$").read(pa.array(["$1,200", "(3.50)", "-"]), "price").to_pylist()
        [1200.0, -3.5, None]
        """
        kind = column.type
        if pa.types.is_null(kind):
            return column
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return self._typed(column, name)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        encoded = pc.dictionary_encode(column.cast(pa.large_string()))
        texts = encoded.dictionary
        values = self.parsed(texts)
        strange = _strange(texts, values, self.kind)
        if self.kind == "truth":
            values = pc.coalesce(values, pc.if_else(strange, texts, pa.scalar(None, texts.type)))
        elif pc.any(strange).as_py():
            raise self._refused(encoded, strange, name)
        return values.take(encoded.indices)

    def _typed(self, column: Column, name: str) -> Column:
        """Cells that are no text: numbers are what they are, dates and times days."""
        temporal = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
        if self.kind == "date" and temporal:
            return self._of_days(_stamp_days(column, name, local=bool(self.part)))
        if self.kind == "time" and pa.types.is_time(column.type):
            return self._of_days(as_days(column, name))
        if self.kind in ("date", "time") or temporal or pa.types.is_temporal(column.type):
            raise DataError(
                "type-changed",
                f"column {shown(name)!r} held {self.kind}s in the model and now holds {shown(str(column.type))}",
                do="Convert the column to the type it had",
            )
        if self.kind == "truth":
            words = [None if v is None else _truth(_plain(v)) or _plain(v) for v in column.to_pylist()]
            return pa.array(words, pa.large_string())
        return column.cast(pa.int8()).cast(pa.float64()) if pa.types.is_boolean(column.type) else column

    def _refused(self, encoded: Column, strange: Column, name: str) -> DataError:
        bad = np.flatnonzero(strange.to_numpy(zero_copy_only=False))
        rows = np.flatnonzero(np.isin(pc.fill_null(encoded.indices, -1).to_numpy(), bad))
        option = Option("types", {shown(name): "categorical"})
        return DataError(
            "cells-not-read",
            f"{len(rows)} cells of column {shown(name)!r} are not written as {self.told()}",
            where=f"{shown(encoded.dictionary[int(bad[0])].as_py())!r} first; {rows_shown(rows.tolist())}",
            do=f"Correct the cells; at the fit the column can be kept as text: {option}",
            options=[option],
        )

    def told(self) -> str:
        """In words."""
        if self.kind == "truth":
            return "yes and no"
        if self.kind == "time":
            return "times of day"
        if self.kind == "date":
            first = {"ymd": "year", "dmy": "day", "mdy": "month"}.get(self.order)
            return "dates" + (f", {first} first" if first else "")
        mark = ", decimal comma" if self.decimal == "," else ""
        return f"numbers{mark}" + (f", in {self.unit}" if self.unit else "")

    @property
    def clock(self) -> dict[str, Any] | None:
        """How numbers are told that are dates or times of day."""
        if self.kind == "time" or self.part == "hour":
            return {"kind": "time", "origin": self.origin}
        return {"kind": "date", "origin": self.origin} if self.kind == "date" and not self.part else None


def _plain(value: Any) -> str:
    return ("1" if value else "0") if isinstance(value, bool) else number_text(value)


def _truth(text: str | None) -> str | None:
    word = (text or "").strip().casefold()
    return "yes" if word in YES else "no" if word in NO else None


def _stamp_days(column: Column, name: str, *, local: bool) -> Any:
    if local and pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = pc.local_timestamp(column)
    return as_days(column, name)


def _strange(texts: Column, values: Column, kind: str) -> Column:
    """Which texts say something that was not read."""
    words = NOT_KNOWN + (NO_ANSWER if kind == "truth" else ())
    bare = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    known = pc.invert(pc.is_in(bare, pa.array(words, bare.type)))
    return pc.and_(pc.is_null(values), known)


@dataclass(frozen=True)
class Found:
    """A spelling, or None and why not (`fault`); an example and its value.

    `sure` is "decided" where the texts leave one decimal mark, "doubt" where another reading was as possible.
    """

    spelling: Spelling | None = None
    fault: str = ""
    sure: str = ""
    example: tuple[str, str] = ("", "")
    words: str = ""  # which mean yes and which no


def spelling_of(texts: Sequence[str], decimal: str = "") -> Found:
    """How the different texts of a column are written; `decimal` decides where "1,234" is all there is.

    >>> spelling_of(["1.234,50 EUR", "12,00 EUR"]).spelling
    Spelling(kind='number', decimal=',', unit='EUR', order='', origin=0.0, part='')
    >>> spelling_of(["red", "blue"]).spelling
    """
    first = [text for text in texts[:LOOKED_AT] if text.strip().casefold() not in NOT_KNOWN]
    digits = sum(any(c.isdigit() for c in text) for text in first)
    if len(texts) <= len(YES) + len(NO) and (truth := _truth_of(texts)) is not None:
        return truth
    if digits < LOOKS_LIKE * len(first) or not first:
        return Found()
    column = pa.array(texts, pa.large_string())
    bare = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    there = column.filter(pc.invert(pc.is_in(bare, pa.array(NOT_KNOWN, bare.type))))
    if looks_like_time(first[0]):
        return _times_of(there)
    if looks_like_date(first[0]) or looks_like_date(first[-1]):
        found = _dates_of(there)
        if found is not None:
            return found
    return _numbers_of(there, decimal, marked=len(there) < len(column))


def _truth_of(texts: Sequence[str]) -> Found | None:
    """More than one word for yes or for no, and nothing else."""
    words = {text.strip().casefold() for text in texts} - set(NOT_KNOWN)
    answers = words - set(NO_ANSWER)
    both = not answers.isdisjoint(YES) and not answers.isdisjoint(NO)
    if not both or not answers <= {*YES, *NO} or answers <= {"0", "1"} or len(texts) <= 2:
        return None
    listed = {word: [repr(shown(text)) for text in texts if _truth(text) == word] for word in ("yes", "no")}
    return Found(Spelling("truth"), words="; ".join(f"{', '.join(v[:5])} as {k}" for k, v in listed.items()))


def _times_of(there: Column) -> Found:
    """Times of day, where all texts are; hours beyond the day are durations and stay as they are."""
    times = times_of(there)
    if not np.isfinite(times).all():
        return Found()
    return Found(Spelling("time"), example=(str(there[0].as_py()), hour_text(times[0])))


def _dates_of(there: Column) -> Found | None:
    order, doubt, share = date_order(there)
    if order:
        spelling = Spelling("date", order=order)
        text = str(there[0].as_py())
        return Found(spelling, sure="doubt" * doubt, example=(text, day_text(days_of(there[:1], order)[0])))
    return Found(fault="dates of more than one order, or among other texts") if share >= LOOKS_LIKE else None


def _numbers_of(there: Column, decimal: str, *, marked: bool) -> Found:
    """Numbers; whole ones without a mark may be codes, unless cells beside them are `marked` as not known."""
    plain = "^" + NUMBER.pattern.replace(r"\d", "[0-9]") + "$"
    bare = pc.utf8_trim_whitespace(there)
    if pc.all(pc.match_substring_regex(bare, plain)).as_py():
        points = pc.any(pc.match_substring_regex(bare, "[.eE]")).as_py()
        padded = pc.any(pc.match_substring_regex(bare, "^[+-]?0[0-9]")).as_py()
        if padded or not (points or (marked and len(there) > FEW_VALUES)):
            return Found()  # digits that may be codes: the rules for kinds say so
    seen = SpelledNumbers.of(bare)
    if seen.share < LOOKS_LIKE:
        return Found()
    found = seen.marks(decimal)
    if isinstance(found, str):
        return Found(fault=found)
    mark, unit, sure = found
    spelling = Spelling("number", mark, unit)
    values = spelling.parsed(there)
    if values.null_count:
        return Found(fault=f"{values.null_count:,} cells are written in another way")
    dressed = pc.index(pc.match_substring_regex(bare, "[^0-9.+-]"), True).as_py()
    place = max(dressed, 0)
    return Found(spelling, sure=sure, example=(str(bare[place].as_py()), number_text(values[place].as_py())))

"""The rules by which a column's kind is found: one method per type of cell, every answer with its reason."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ilk.errors import SHOWN_ROWS, DataError, rows_shown, shown
from ilk.table.columns import NUMBER, Column, number_text
from ilk.table.ledger import Caution
from ilk.table.read import Table
from ilk.table.schema import ColumnInfo

FEW_VALUES = 10
"""Whole numbers with at most this many values are numeric with a warning."""
LEVEL_SHARE, LEVELS_ALWAYS, LEVELS_NEVER = 0.2, 20, 1000
"""A category may have levels up to this share of the rows; 20 are always allowed and above 1,000 never."""
MIXED_SHARE = 0.8
"""Text of which so many cells are numbers (with more than a few values) is a number column with faults."""
SENTINELS = (-999999, -99999, -9999, -999, -99, 999, 9999, 99999, 999999)
SENTINEL_SHARE, SENTINEL_DEVIATIONS = 0.01, 5.0
DOUBTFUL_MARKS = ("-", "--", "?", ".", "NA", "N/A", "n/a", "null", "None", "missing", "unknown", "")
"""Levels that may mean "not known"; they are kept, with a warning."""
EXACT_WHOLE = 2**53
_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?\s?(Z|[+-]\d{2}:?\d{2})?)?"
    r"|\d{1,2}[/.]\d{1,2}[/.]\d{4}|\d{4}/\d{2}/\d{2}"
)
_DRESSED = re.compile(r"[€$£¥]?\s?[+-]?\d{1,3}([,.' ]?\d{3})*([.,]\d+)?\s?[%€$£¥]?")
_ID_NAME = re.compile(
    r"(^|[_\s.-])(id|uuid|guid|key|index|rownames|row_names)$|^(id|index)[_\s.-]?|^unnamed", re.I
)

_TEXTS = {
    "few-values": "whole numbers with at most {few} values, typed as numbers; if they are codes, "
    'say so: types={{"{first}": "categorical"}}',
    "digits-as-text": "digits stored as text stay categories; if they are numbers: "
    'types={{"{first}": "numeric"}}',
    "number-format": "numbers with thousands marks, decimal commas, per cent or currency signs stay text; "
    "clean them, or read the file with decimal=','",
    "look-alike-levels": "levels that differ only in case, blanks or the encoding of accents are kept apart; "
    "normalise them if they mean the same",
    "sentinel": "a far value such as -999 is frequent and may mean missing; if so, make those cells empty",
    "doubtful-marks": "cells such as '-', '?' or 'unknown' are kept as values; make them empty if they "
    "mean missing (missing=['-'] for a text file)",
    "id-like": "left out, they look like identifiers",
    "all-missing": "left out, no cell has a value",
    "precision-lost": "whole numbers above 2^53 are rounded by float64",
    "looks-like-id": "whole numbers, all different, without a gap; if they only number the rows, "
    "leave them out (ignore)",
    "decimal": "decimals are converted to float64",
}


class Judge:
    """Decides column by column and gathers the warnings, one per code for all columns together."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.found: dict[str, list[str]] = {}

    def warnings(self) -> list[Caution]:
        texts: list[Caution] = []
        for code, names in self.found.items():
            listed = ", ".join(repr(shown(n)) for n in names[:SHOWN_ROWS])
            more = f" and {len(names) - SHOWN_ROWS} more" if len(names) > SHOWN_ROWS else ""
            text = _TEXTS[code].format(few=FEW_VALUES, first=shown(names[0]))
            texts.append((code, f"column{'s' if len(names) > 1 else ''} {listed}{more}: {text}"))
        return texts

    def special(self, name: str, role: str) -> ColumnInfo:
        """A column with a part of its own (weight, truth, id): not clustered on."""
        column = self.table.column(name)
        return ColumnInfo(
            name, "left out", f"used as {role}", str(column.type), missing=int(column.null_count)
        )

    def column(self, name: str, asked: str | Sequence[str] | None) -> ColumnInfo:
        """The kind of one column, by the user's word or by the rules."""
        if asked == "ignore":
            return ColumnInfo(name, "left out", "as asked", str(self._type(name)))
        problem = self.table.problems.get(name)
        if problem is not None and (
            asked is None or problem.code != "data-mixed" or asked in ("numeric", "count")
        ):
            raise problem
        column = self.table.column(name)
        if asked is None:
            return self._by_rule(name, column)
        return self._as_asked(name, column, asked)

    def _type(self, name: str) -> Any:
        return self.table.column(name).type

    def _warn(self, code: str, name: str) -> None:
        self.found.setdefault(code, []).append(name)

    def _by_rule(self, name: str, column: Column) -> ColumnInfo:
        facts: dict[str, Any] = {"type": type_name(column.type), "missing": int(column.null_count)}
        if column.null_count == len(column):
            self._warn("all-missing", name)
            return ColumnInfo(name, "left out", "all missing", **facts)
        kind = column.type
        if pa.types.is_temporal(kind):
            what = "duration or time" if pa.types.is_duration(kind) or pa.types.is_time(kind) else "date"
            reason = f'{what}; as a number of days: types={{"{shown(name)}": "numeric"}}'
            return ColumnInfo(name, "left out", reason, **facts)
        if pa.types.is_dictionary(kind):
            return self._category(name, column, facts)
        if pa.types.is_boolean(kind):
            return self._levels(name, column, "true or false", facts)
        if is_number(kind):
            return self._number(name, column, facts)
        return self._text(name, column, facts)

    def _number(self, name: str, column: Column, facts: dict[str, Any]) -> ColumnInfo:
        distinct = number_levels(column, FEW_VALUES + 1)
        whole = (
            all(float(v).is_integer() for v in distinct) if len(distinct) <= FEW_VALUES else is_whole(column)
        )
        if len(distinct) == 1:
            return ColumnInfo(name, "left out", "constant", distinct=1, **facts)
        if len(distinct) == 2 and whole:
            return self._levels(name, column, "two values", facts)
        if pa.types.is_decimal(column.type):
            self._warn("decimal", name)
        if pa.types.is_integer(column.type) and _beyond_exact(column):
            self._warn("precision-lost", name)
        few = whole and len(distinct) <= FEW_VALUES
        count = len(distinct) if len(distinct) <= FEW_VALUES else count_distinct(column)
        if whole and count == len(column) - facts["missing"] > FEW_VALUES:
            if _ID_NAME.search(name):
                self._warn("id-like", name)
                return ColumnInfo(name, "left out", "identifier: all different", distinct=count, **facts)
            if _is_run(column):
                self._warn("looks-like-id", name)
        if few:
            self._warn("few-values", name)
        if has_sentinel(column):
            self._warn("sentinel", name)
        reason = f"whole numbers, only {count} values" if few else "number"
        return ColumnInfo(name, "numeric", reason, distinct=count, **facts)

    def _category(self, name: str, column: Column, facts: dict[str, Any]) -> ColumnInfo:
        levels = ordered_levels(column)
        if column.type.ordered and len(levels) > 2:
            return ColumnInfo(
                name, "ordinal", "ordered category", levels=levels, distinct=len(levels), **facts
            )
        return self._levels(name, column, "category", facts)

    def _text(self, name: str, column: Column, facts: dict[str, Any]) -> ColumnInfo:
        levels = pc.drop_null(pc.unique(column)).to_pylist()
        present = len(column) - facts["missing"]
        if all(_DATE.fullmatch(level.strip()) for level in levels):
            reason = "date in text; write the part that matters as a number"
            return ColumnInfo(name, "left out", reason, distinct=len(levels), **facts)
        numbers = [level for level in levels if NUMBER.fullmatch(level.strip())]
        if FEW_VALUES < len(numbers) < len(levels):
            self._refuse_mixed(name, column, numbers)
        if len(numbers) == len(levels):
            self._warn("digits-as-text", name)
        elif all(_DRESSED.fullmatch(level.strip()) for level in levels):
            self._warn("number-format", name)
        if len(levels) == present > 2:
            self._warn("id-like", name)
            return ColumnInfo(name, "left out", "identifier: all different", distinct=len(levels), **facts)
        return self._levels(name, column, "text", facts)

    def _refuse_mixed(self, name: str, column: Column, numbers: list[str]) -> None:
        number = pc.is_in(column, pa.array(numbers, type=column.type))
        rows = pc.indices_nonzero(pc.and_(pc.invert(number), pc.is_valid(column))).to_pylist()
        count = pc.sum(number).as_py()
        if count < MIXED_SHARE * (count + len(rows)):
            return
        cell = shown(column[rows[0]].as_py())
        raise DataError(
            "data-mixed",
            f"column {shown(name)!r} mixes {count} numbers and {len(rows)} texts such as {cell!r}",
            where=f"{self.table.source}, text in {rows_shown(rows)}",
            do=f'Mend the cells, read them as missing (missing=["{cell}"] for a text file), or name the kind '
            f'types={{"{shown(name)}": "categorical"}} or "ignore"',
        )

    def _levels(self, name: str, column: Column, reason: str, facts: dict[str, Any]) -> ColumnInfo:
        """Binary, categorical, or left out for having one level or too many."""
        levels = sorted_levels(column)
        limit = min(max(LEVELS_ALWAYS, int(LEVEL_SHARE * len(column))), LEVELS_NEVER)
        if len(levels) == 1:
            return ColumnInfo(name, "left out", "constant", distinct=1, **facts)
        if len(levels) > limit:
            self._warn("id-like", name)
            reason = (
                f"{len(levels):,} levels, more than {limit:,} (a fifth of the rows, {LEVELS_NEVER:,} at most)"
            )
            return ColumnInfo(name, "left out", reason, distinct=len(levels), **facts)
        self._look_at_levels(name, column, levels)
        kind = "binary" if len(levels) == 2 else "categorical"
        return ColumnInfo(name, kind, reason, levels=levels, distinct=len(levels), **facts)

    def _look_at_levels(self, name: str, column: Column, levels: Sequence[str]) -> None:
        if is_number(column.type) or pa.types.is_boolean(column.type):
            return
        alike = {" ".join(unicodedata.normalize("NFKC", level).casefold().split()) for level in levels}
        if len(alike) < len(levels):
            self._warn("look-alike-levels", name)
        if any(level.strip() in DOUBTFUL_MARKS for level in levels):
            self._warn("doubtful-marks", name)

    def _as_asked(self, name: str, column: Column, asked: str | Sequence[str]) -> ColumnInfo:
        facts: dict[str, Any] = {"type": type_name(column.type), "missing": int(column.null_count)}
        if column.null_count == len(column):
            self._warn("all-missing", name)
            return ColumnInfo(name, "left out", "all missing", **facts)
        if asked in ("numeric", "count"):
            numbers, reason = as_numbers(column, name), "as asked"
            if pa.types.is_temporal(column.type):
                reason = "as asked: days" + (
                    " since 1970-01-01 UTC" if not pa.types.is_duration(column.type) else ""
                )
            numbers = numbers[~np.isnan(numbers)]
            if asked == "count" and not ((numbers >= 0) & (numbers == np.floor(numbers))).all():
                raise DataError(
                    "not-counts",
                    f"column {shown(name)!r} holds numbers that count nothing",
                    do='Counts are whole and 0 or more; ask for "numeric" if it measures',
                )
            return ColumnInfo(name, str(asked), reason, distinct=_distinct(numbers), **facts)
        if not isinstance(asked, str):
            return self._given_levels(name, column, tuple(asked), facts)
        levels = ordered_levels(column) if asked == "ordinal" else sorted_levels(column)
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if asked == "ordinal" and text and not all(NUMBER.fullmatch(level) for level in levels):
            raise DataError(
                "no-order",
                f"column {shown(name)!r} is text and its levels have no order of their own",
                do=f'List them in order: types={{"{shown(name)}": ["low", "middle", "high"]}}',
            )
        if len(levels) == 1:
            return ColumnInfo(name, "left out", "constant", distinct=1, **facts)
        if asked == "binary" and len(levels) != 2:
            raise DataError(
                "not-binary",
                f"column {shown(name)!r} has {len(levels)} levels, not two",
                do='Ask for "categorical", or join levels first',
            )
        return ColumnInfo(name, asked, "as asked", levels=levels, distinct=len(levels), **facts)

    def _given_levels(
        self, name: str, column: Column, levels: tuple[str, ...], facts: dict[str, Any]
    ) -> ColumnInfo:
        found = sorted_levels(column)
        unknown = [level for level in found if level not in levels]
        if unknown:
            raise DataError(
                "unknown-level",
                f"column {shown(name)!r} has {len(unknown)} levels that its list lacks: "
                + ", ".join(repr(shown(level)) for level in unknown[:SHOWN_ROWS]),
                do="Add them to the list in types",
            )
        return ColumnInfo(name, "ordinal", "as asked", levels=levels, distinct=len(found), **facts)


def type_name(kind: Any) -> str:
    """A short name of an Arrow type that does not depend on the library it came from."""
    if pa.types.is_dictionary(kind):
        return "category"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    return str(kind)


def is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_whole(column: Column) -> bool:
    if pa.types.is_integer(column.type):
        return True
    return bool(pc.all(pc.equal(column, pc.floor(column))).as_py())


def number_levels(column: Column, limit: int) -> list[float]:
    """Distinct values in order, or the first `limit` of them when there are more; -0.0 is 0."""
    found: set[Any] = set()
    start, step = 0, 256  # most columns show enough values in their first rows
    while start < len(column) and len(found) < limit:
        found |= {v + 0 for v in pc.drop_null(pc.unique(column.slice(start, step))).to_pylist()}
        start, step = start + step, 1 << 16
    return sorted(found)[:limit]


def count_distinct(column: Column) -> int:
    """How many different numbers a column holds; sorting them takes less room and time than hashing them."""
    if pa.types.is_decimal(column.type):
        return int(pc.count_distinct(column, mode="only_valid").as_py())
    present = pc.drop_null(column) if column.null_count else column
    return _distinct(present.to_numpy())


def _distinct(numbers: Any) -> int:
    ordered = np.sort(numbers)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + (len(ordered) > 0)


def _beyond_exact(column: Column) -> bool:
    ends = pc.min_max(column).as_py()
    return bool(max(abs(ends["min"]), abs(ends["max"])) > EXACT_WHOLE)


def _is_run(column: Column) -> bool:
    """Whole numbers, all different, without a gap between the smallest and the largest."""
    ends = pc.min_max(column).as_py()
    return bool(ends["max"] - ends["min"] + 1 == len(column) - column.null_count)


def has_sentinel(column: Column) -> bool:
    """Whether a known stand-in for "missing" lies at an end of the column, far from the rest and often."""
    ends = pc.min_max(column).as_py()
    for value in (ends["min"], ends["max"]):
        if value in SENTINELS:
            numbers = as_numbers(column, "")
            numbers = numbers[~np.isnan(numbers)]
            rest = numbers[numbers != value]
            often = len(numbers) - len(rest) >= max(2, SENTINEL_SHARE * len(numbers))
            if (
                often
                and len(rest)
                and abs(rest.mean() - float(value)) > SENTINEL_DEVIATIONS * (rest.std() or 1.0)
            ):
                return True
    return False


def level_texts(values: Column) -> list[str | None]:
    """The text that stands for each value as a level: the same from every source."""
    kind = values.type
    if is_number(kind):
        return [None if v is None else number_text(v) for v in values.to_pylist()]
    if pa.types.is_boolean(kind):
        return [None if v is None else ("true" if v else "false") for v in values.to_pylist()]
    return [None if v is None else str(v) for v in values.to_pylist()]


def _dictionary(column: Column) -> tuple[Column, Column]:
    """(values, indices) of a column; chunks with dictionaries of their own are brought together."""
    if pa.types.is_null(column.type) or len(column) == 0:
        return pa.array([], pa.string()), pa.nulls(len(column), pa.int32())
    if isinstance(column, pa.ChunkedArray):
        encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        column = encoded.unify_dictionaries().combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], encoded.type)
    elif not pa.types.is_dictionary(column.type):
        column = pc.dictionary_encode(column)
    return column.dictionary, column.indices


def level_codes(column: Column) -> tuple[list[str | None], Any]:
    """Level texts of the dictionary and, per row, the place in it (-1 where missing)."""
    values, indices = _dictionary(column)
    places = pc.fill_null(indices.cast(pa.int32()), -1).to_numpy(zero_copy_only=False)
    return level_texts(values), places


def _observed(column: Column) -> list[str]:
    if pa.types.is_dictionary(column.type):
        values, indices = _dictionary(column)
        column = values.take(pc.drop_null(pc.unique(indices)).sort())
    return list(dict.fromkeys(text for text in level_texts(pc.unique(column)) if text is not None))


def ordered_levels(column: Column) -> tuple[str, ...]:
    """Observed levels in the order of an ordered category, of numbers, or of the alphabet."""
    if pa.types.is_dictionary(column.type) and column.type.ordered:
        return tuple(_observed(column))
    return sorted_levels(column)


def sorted_levels(column: Column) -> tuple[str, ...]:
    """Observed levels, numbers by value and texts by code point."""
    levels = _observed(column)
    key: Callable[[str], Any] = (lambda t: (0, float(t), t)) if all(map(NUMBER.fullmatch, levels)) else str
    return tuple(sorted(levels, key=key))


def as_numbers(column: Column, name: str) -> Any:
    """A column as float64 with NaN where missing; text must be numbers throughout."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_duration(kind):
        return (
            column.cast(pa.duration("us"), safe=False).cast(pa.int64()).cast(pa.float64()).to_numpy()
            / 86_400e6
        )
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        stamp = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        return stamp.cast(pa.float64(), safe=False).to_numpy() / 86_400e6
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif not is_number(kind):
        cells = pc.utf8_trim_whitespace(column)
        bad = pc.invert(pc.match_substring_regex(cells, "^" + NUMBER.pattern.replace(r"\d", "[0-9]") + "$"))
        rows = pc.indices_nonzero(pc.fill_null(bad, False)).to_pylist()
        if rows:
            cell = shown(column[rows[0]].as_py())
            raise DataError(
                "not-numeric",
                f"column {shown(name)!r} was asked to be numeric; {len(rows)} cells are no numbers",
                where=f"{cell!r} first; {rows_shown(rows)}",
                do='Mend the cells, or ask for "categorical"',
            )
        column = pc.replace_substring_regex(cells, r"^\+", "")
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)

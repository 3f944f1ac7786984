"""The rules by which a column's kind is found: one method per type of cell, every answer with its reason."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from ilk.errors import SHOWN_ROWS, Caution, DataError, Option, names_shown, rows_shown, shown
from ilk.table.cells import (
    EXACT_WHOLE,
    MANY_LEVELS,
    ColumnCells,
    TableColumns,
    is_number,
    is_text,
    type_name,
)
from ilk.table.columns import NUMBER
from ilk.table.schema import TEXT, ColumnInfo

FEW_VALUES = 10
"""Whole numbers with at most this many values are numeric with a warning."""
LEVEL_SHARE, LEVELS_ALWAYS, LEVELS_NEVER = 0.2, 20, 1000
"""A category may have levels up to this share of the rows; 20 are always allowed and above 1,000 never."""
MIXED_SHARE = 0.8
"""Text of which so many cells are numbers (with more than a few values) is a number column with faults."""
DOUBTFUL_MARKS = ("-", "--", "?", ".", "NA", "N/A", "n/a", "null", "None", "missing", "unknown", "")
"""Levels that may mean "not known"; they are kept, with a warning."""
_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?\s?(Z|[+-]\d{2}:?\d{2})?)?"
    r"|\d{1,2}[/.]\d{1,2}[/.]\d{4}|\d{4}/\d{2}/\d{2}"
)
_DRESSED = re.compile(r"[€$£¥]?\s?[+-]?\d{1,3}([,.' ]?\d{3})*([.,]\d+)?\s?[%€$£¥]?")
_ID_ENDING = re.compile(r"[a-z0-9](ID|Id|UUID|Uuid|GUID|Guid)$")  # RespondentID, but not Madrid
_ID_NAME = re.compile(
    r"(^|[_\s.-])(id|uuid|guid|key|index|rownames|row_names)$|^(id|index)[_\s.-]?|^unnamed", re.I
)

_TEXTS = {
    "few-values": f"whole numbers with at most {FEW_VALUES} values, treated as numbers; if they are codes, say so: ",
    "digits-as-text": "digits stored as text stay categories; if they are numbers: ",
    "number-format": "numbers with thousands marks, decimal commas, per cent or currency signs stay text; "
    "clean them, or read the file with ",
    "look-alike-categories": "categories that differ only in case, spaces or the encoding of accents are kept apart; "
    "normalise them if they mean the same",
    "sentinel": "a far value such as -999 is frequent and may mean missing; if so, make those cells empty",
    "doubtful-marks": "cells such as '-', '?' or 'unknown' are kept as values; make them empty if they "
    "mean missing; in a text file: ",
    "id-like": "left out: all different, or with too many categories",
    "all-missing": "left out, no cell has a value",
    "precision-lost": "whole numbers above 2^53 are rounded by float64",
    "looks-like-id": "whole numbers, all different, without a break; if they only number the rows, "
    "leave them out: ",
    "decimal": "decimals are converted to float64",
}
_ADVICE: dict[str, Callable[[str], Option]] = {
    "few-values": lambda name: Option("types", {name: "categorical"}),
    "digits-as-text": lambda name: Option("types", {name: "numeric"}),
    "number-format": lambda _: Option("decimal", ","),
    "doubtful-marks": lambda _: Option("missing", ["-"]),
    "looks-like-id": lambda name: Option("ignore", [name]),
}
"""The option that a text ends with, from the first column that it is about."""


class Judge:
    """Decides column by column and gathers the warnings, one per code for all columns together."""

    def __init__(self, table: TableColumns) -> None:
        self.table = table
        self.found: dict[str, list[str]] = {}

    def warnings(self) -> list[Caution]:
        texts: list[Caution] = []
        for code, names in self.found.items():
            options = [_ADVICE[code](shown(names[0]))] if code in _ADVICE else []
            text = _TEXTS[code] + "".join(map(str, options))
            texts.append(
                Caution(code, f"column{'s' if len(names) > 1 else ''} {names_shown(names)}: {text}", options)
            )
        return texts

    def special(self, name: str, role: str) -> ColumnInfo:
        """A column with a part of its own (weight, truth, id): not clustered on."""
        column = self.table.cells(name)
        return ColumnInfo(name, "left out", f"used as {role}", str(column.type), missing=column.missing)

    def column(self, name: str, asked: str | Sequence[str] | None) -> ColumnInfo:
        """The kind of one column, by the user's word or by the rules."""
        if asked == "ignore":
            return ColumnInfo(name, "left out", "as asked", str(self._type(name)))
        problem = self.table.problems.get(name)
        if problem is not None and (
            asked is None or problem.code != "data-mixed" or asked in ("numeric", "count")
        ):
            raise problem
        column = self.table.cells(name)
        if asked is None:
            return self._by_rule(name, column)
        if asked == "text":
            return self._free_text(name, column)
        return self._as_asked(name, column, asked)

    def _free_text(self, name: str, column: ColumnCells) -> ColumnInfo:
        """A column whose words are looked at when it comes to a fit."""
        if not is_text(column.type):
            raise DataError(
                "not-text",
                f"column {shown(name)!r} was asked to be text and holds {type_name(column.type)}",
                do='Ask for "categorical" or "numeric"',
            )
        return ColumnInfo(name, "left out", TEXT, type_name(column.type), missing=column.missing)

    def _type(self, name: str) -> Any:
        return self.table.cells(name).type

    def _warn(self, code: str, name: str) -> None:
        self.found.setdefault(code, []).append(name)

    def _by_rule(self, name: str, column: ColumnCells) -> ColumnInfo:
        facts: dict[str, Any] = {"type": type_name(column.type), "missing": column.missing}
        if column.missing == column.n_rows:
            self._warn("all-missing", name)
            return ColumnInfo(name, "left out", "all missing", **facts)
        kind = column.type
        if pa.types.is_temporal(kind):
            return ColumnInfo(name, "left out", _time_reason(kind), **facts)
        if pa.types.is_dictionary(kind):
            return self._category(name, column, facts)
        if pa.types.is_boolean(kind):
            return self._levels(name, column, "true or false", facts)
        if is_number(kind):
            return self._number(name, column, facts)
        return self._text(name, column, facts)

    def _number(self, name: str, column: ColumnCells, facts: dict[str, Any]) -> ColumnInfo:
        distinct = column.few_values(FEW_VALUES + 1)
        whole = all(float(v).is_integer() for v in distinct)
        whole = whole and (len(distinct) <= FEW_VALUES or column.is_whole())
        if len(distinct) == 1:
            return ColumnInfo(name, "left out", "constant", distinct=1, **facts)
        if len(distinct) == 2 and whole:
            return self._levels(name, column, "two values", facts)
        if pa.types.is_decimal(column.type):
            self._warn("decimal", name)
        if pa.types.is_integer(column.type) and max(map(abs, column.ends())) > EXACT_WHOLE:
            self._warn("precision-lost", name)
        few = whole and len(distinct) <= FEW_VALUES
        count = len(distinct) if len(distinct) <= FEW_VALUES else column.n_distinct()
        if whole and count == column.n_rows - facts["missing"] > FEW_VALUES:
            if _ID_NAME.search(name) or _ID_ENDING.search(name):
                self._warn("id-like", name)
                return ColumnInfo(name, "left out", "identifier: all different", distinct=count, **facts)
            if _is_run(column):
                self._warn("looks-like-id", name)
        if few:
            self._warn("few-values", name)
        if column.has_sentinel():
            self._warn("sentinel", name)
        reason = f"whole numbers, only {count} values" if few else "number"
        return ColumnInfo(name, "numeric", reason, distinct=count, **facts)

    def _category(self, name: str, column: ColumnCells, facts: dict[str, Any]) -> ColumnInfo:
        levels = column.levels(ordered=True)
        if column.type.ordered and len(levels) > 2:
            return ColumnInfo(
                name, "ordinal", "ordered category", levels=levels, distinct=len(levels), **facts
            )
        return self._levels(name, column, "category", facts)

    def _text(self, name: str, column: ColumnCells, facts: dict[str, Any]) -> ColumnInfo:
        levels = column.texts()
        present, count = column.n_rows - facts["missing"], _how_many(levels, column)
        if all(_DATE.fullmatch(level.strip()) for level in levels):
            reason = "date in text; write the part that matters as a number"
            return ColumnInfo(name, "left out", reason, distinct=count, **facts)
        numbers = [level for level in levels if NUMBER.fullmatch(level.strip())]
        if FEW_VALUES < len(numbers) < len(levels):
            self._refuse_mixed(name, column, numbers)
        if len(numbers) == len(levels):
            self._warn("digits-as-text", name)
        elif all(_DRESSED.fullmatch(level.strip()) for level in levels):
            self._warn("number-format", name)
            if count > _most_levels(column):
                reason = f"numbers written as {shown(levels[0].strip())!r}, which stay text"
                return ColumnInfo(name, "left out", reason, distinct=count, **facts)
        if count == present > 2:
            self._warn("id-like", name)
            return ColumnInfo(name, "left out", "identifier: all different", distinct=count, **facts)
        return self._levels(name, column, "text", facts)

    def _refuse_mixed(self, name: str, column: ColumnCells, numbers: list[str]) -> None:
        count, n_texts, rows, first = column.rows_outside(numbers)
        if count < MIXED_SHARE * (count + n_texts):
            return
        cell = shown(first)
        missing, kind = Option("missing", [cell]), Option("types", {shown(name): "categorical"})
        out = Option("ignore", [shown(name)])
        raise DataError(
            "data-mixed",
            f"column {shown(name)!r} mixes {count} numbers and {n_texts} texts such as {cell!r}",
            where=f"{self.table.source}, text in {rows_shown(rows)}",
            do=f"Correct the cells, read them as missing ({missing} for a text file), name the type "
            f"({kind}), or leave the column out: {out}",
            options=[missing, kind, out],
        )

    def _levels(self, name: str, column: ColumnCells, reason: str, facts: dict[str, Any]) -> ColumnInfo:
        """Binary, categorical, or left out for having one level or too many."""
        levels = column.levels()
        count = _how_many(levels, column)
        limit = _most_levels(column)
        if count == 1:
            return ColumnInfo(name, "left out", "constant", distinct=1, **facts)
        if count > limit:
            self._warn("id-like", name)
            reason = (
                f"{count:,} categories, more than {limit:,} (a fifth of the rows, {LEVELS_NEVER:,} at most)"
            )
            return ColumnInfo(name, "left out", reason, distinct=count, **facts)
        self._look_at_levels(name, column, levels)
        kind = "binary" if len(levels) == 2 else "categorical"
        return ColumnInfo(name, kind, reason, levels=levels, distinct=len(levels), **facts)

    def _look_at_levels(self, name: str, column: ColumnCells, levels: Sequence[str]) -> None:
        if is_number(column.type) or pa.types.is_boolean(column.type):
            return
        alike = {" ".join(unicodedata.normalize("NFKC", level).casefold().split()) for level in levels}
        if len(alike) < len(levels):
            self._warn("look-alike-categories", name)
        if any(level.strip() in DOUBTFUL_MARKS for level in levels):
            self._warn("doubtful-marks", name)

    def _as_asked(self, name: str, column: ColumnCells, asked: str | Sequence[str]) -> ColumnInfo:
        facts: dict[str, Any] = {"type": type_name(column.type), "missing": column.missing}
        if column.missing == column.n_rows:
            self._warn("all-missing", name)
            return ColumnInfo(name, "left out", "all missing", **facts)
        if asked in ("numeric", "count"):
            count, reason = column.n_numbers(name, counts=asked == "count"), "as asked"
            if pa.types.is_temporal(column.type):
                since = "" if _is_span(column.type) else " since 1970-01-01 UTC"
                reason = f"as asked: days{since}"
            return ColumnInfo(name, str(asked), reason, distinct=count, **facts)
        if not isinstance(asked, str):
            return self._given_levels(name, column, tuple(asked), facts)
        levels = column.levels(ordered=asked == "ordinal")
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if asked == "ordinal" and text and not all(NUMBER.fullmatch(level) for level in levels):
            order = Option("types", {shown(name): ["low", "middle", "high"]})
            raise DataError(
                "no-order",
                f"column {shown(name)!r} is text and its categories have no order of their own",
                do=f"List them in order: {order}",
                options=[order],
            )
        if len(levels) == 1:
            return ColumnInfo(name, "left out", "constant", distinct=1, **facts)
        if _how_many(levels, column) > len(levels):
            out = Option("ignore", [shown(name)])
            raise DataError(
                "too-many-categories",
                f"column {shown(name)!r} has more than {MANY_LEVELS:,} categories, too many for a table read in chunks",
                do=f"Merge categories first, or leave the column out: {out}",
                options=[out],
            )
        if asked == "binary" and len(levels) != 2:
            raise DataError(
                "not-binary",
                f"column {shown(name)!r} has {len(levels)} categories, not two",
                do='Ask for "categorical", or merge categories first',
            )
        return ColumnInfo(name, asked, "as asked", levels=levels, distinct=len(levels), **facts)

    def _given_levels(
        self, name: str, column: ColumnCells, levels: tuple[str, ...], facts: dict[str, Any]
    ) -> ColumnInfo:
        found = column.levels()
        unknown = [level for level in found if level not in levels]
        if unknown:
            raise DataError(
                "unknown-category",
                f"column {shown(name)!r} has {len(unknown)} categories that its list lacks: "
                + ", ".join(repr(shown(level)) for level in unknown[:SHOWN_ROWS]),
                do="Add them to the list in types",
            )
        return ColumnInfo(name, "ordinal", "as asked", levels=levels, distinct=len(found), **facts)


def _is_span(kind: Any) -> bool:
    """Whether cells of an Arrow type say how long, or how late in the day, rather than when."""
    return bool(pa.types.is_duration(kind) or pa.types.is_time(kind))


def _time_reason(kind: Any) -> str:
    """Why a column of times is left out."""
    if pa.types.is_interval(kind):
        return "months and days; write the part that matters as a number"
    return f"{'duration or time' if _is_span(kind) else 'date'}; as type numeric it is a number of days"


def _is_run(column: ColumnCells) -> bool:
    """Whole numbers, all different, without a gap between the smallest and the largest."""
    least, most = column.ends()
    return bool(most - least + 1 == column.n_rows - column.missing)


def _most_levels(column: ColumnCells) -> int:
    """That a category may have: a share of the rows, within bounds."""
    return min(max(LEVELS_ALWAYS, int(LEVEL_SHARE * column.n_rows)), LEVELS_NEVER)


def _how_many(levels: Sequence[str], column: ColumnCells) -> int:
    return len(levels) if len(levels) < MANY_LEVELS else column.n_distinct()

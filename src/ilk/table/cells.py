"""What the rules for kinds ask of a column, answered from the column itself; levels and numbers of its cells.

`ColumnCells` is the list of questions. A column in memory answers them here; one that is read in pieces answers from
what was gathered on the way (`out_of_core/facts.py`), with the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ilk.errors import DataError, rows_shown, shown
from ilk.table.columns import NUMBER, Column, number_text

SENTINELS = (-999999, -99999, -9999, -999, -99, 999, 9999, 99999, 999999)
SENTINEL_SHARE, SENTINEL_DEVIATIONS = 0.01, 5.0
EXACT_WHOLE = 2**53
HEAD_ROWS = 16
MANY_LEVELS = 1 << 14
"""Levels beyond which a column may tell only how many there are."""


class ColumnCells(Protocol):
    """A column as the rules see it: Arrow type, number of cells and of missing ones, and answers."""

    @property
    def type(self) -> Any: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def missing(self) -> int: ...

    def few_values(self, limit: int) -> list[float]:
        """Distinct numbers in order, or `limit` of them when there are more; -0.0 is 0."""
        ...

    def is_whole(self) -> bool:
        """Whether all numbers are whole."""
        ...

    def ends(self) -> tuple[Any, Any]:
        """The smallest and the largest number."""
        ...

    def n_distinct(self) -> int:
        """How many different values there are."""
        ...

    def has_sentinel(self) -> bool:
        """Whether a known stand-in for "missing" lies at an end of the column, far from the rest and often."""
        ...

    def parts(self) -> Iterator[Column]:
        """The cells in order, part by part."""
        ...

    def number_parts(self) -> Iterator[Any]:
        """The numbers that are there, part by part."""
        ...

    def without(self, codes: Mapping[float, int]) -> ColumnCells:
        """The column with some numbers, and how often they stand there, as missing cells."""
        ...

    def as_read(self, change: Callable[[Column], Column], kind: Any) -> ColumnCells:
        """The column with its cells changed to another Arrow type."""
        ...

    def texts(self) -> list[str]:
        """The different texts as they come, `MANY_LEVELS` or more when there are more."""
        ...

    def levels(self, *, ordered: bool = False) -> tuple[str, ...]:
        """Observed levels: numbers by value, texts by code point; `ordered`: as an ordered category has them.
        Not all of them when there are more than `MANY_LEVELS`."""
        ...

    def rows_outside(self, texts: Sequence[str]) -> tuple[int, int, list[int], str]:
        """How many cells are among `texts` and how many are not; of these the first rows, and the first cell."""
        ...

    def n_numbers(self, name: str, *, counts: bool) -> int:
        """How many different numbers there are; cells that are none, or with `counts` count nothing, are refused."""
        ...


class TableColumns(Protocol):
    """A table as the rules see it; `problems` holds the refusals of single columns."""

    @property
    def source(self) -> str: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def problems(self) -> Mapping[str, DataError]: ...

    def cells(self, name: str) -> ColumnCells: ...


@dataclass(frozen=True)
class TableView:
    """A table of which some columns are seen otherwise."""

    table: TableColumns

    @property
    def source(self) -> str:
        return self.table.source

    @property
    def names(self) -> tuple[str, ...]:
        return self.table.names

    @property
    def problems(self) -> Mapping[str, DataError]:
        return self.table.problems

    def cells(self, name: str) -> ColumnCells:
        return self.table.cells(name)


@dataclass(frozen=True, eq=False)
class HeldCells:
    """The answers of a column in memory."""

    column: Column

    @property
    def type(self) -> Any:
        return self.column.type

    @property
    def n_rows(self) -> int:
        return len(self.column)

    @property
    def missing(self) -> int:
        return int(self.column.null_count)

    def few_values(self, limit: int) -> list[float]:
        found: set[Any] = set()
        start, step = 0, HEAD_ROWS  # most columns show enough values there
        while start < len(self.column) and len(found) < limit:
            part = self.column.slice(start, step)
            part = part if step == HEAD_ROWS else pc.unique(part)
            found |= {value + 0 for value in part.to_pylist() if value is not None}
            start, step = start + step, min(step << 4, 1 << 16)
        return sorted(found)[:limit]

    def is_whole(self) -> bool:
        return all_whole(self.column)

    def ends(self) -> tuple[Any, Any]:
        if _is_plain(self.column.type) and len(self.column) and not self.column.null_count:
            numbers = self.column.to_numpy()  # three times as fast as Arrow on short columns
            return numbers.min().item(), numbers.max().item()
        ends = pc.min_max(self.column).as_py()
        return ends["min"], ends["max"]

    def n_distinct(self) -> int:
        return count_distinct(self.column)

    def has_sentinel(self) -> bool:
        for value in self.ends():
            if value in SENTINELS:
                numbers = as_numbers(self.column, "")
                numbers = numbers[~np.isnan(numbers)]
                rest = numbers[numbers != value]
                if len(rest) and is_sentinel(value, len(numbers), len(rest), rest.mean(), rest.std()):
                    return True
        return False

    def parts(self) -> Iterator[Column]:
        yield self.column

    def number_parts(self) -> Iterator[Any]:
        numbers = as_numbers(self.column, "")
        yield numbers[~np.isnan(numbers)]

    def without(self, codes: Mapping[float, int]) -> HeldCells:
        return HeldCells(null_codes(self.column, codes))

    def as_read(self, change: Callable[[Column], Column], kind: Any) -> HeldCells:
        return HeldCells(change(self.column))

    def texts(self) -> list[str]:
        return list(pc.drop_null(pc.unique(self.column)).to_pylist())

    def levels(self, *, ordered: bool = False) -> tuple[str, ...]:
        return ordered_levels(self.column) if ordered else sorted_levels(self.column)

    def rows_outside(self, texts: Sequence[str]) -> tuple[int, int, list[int], str]:
        among = pc.is_in(self.column, pa.array(texts, type=self.column.type))
        rows = pc.indices_nonzero(pc.and_(pc.invert(among), pc.is_valid(self.column))).to_pylist()
        return int(pc.sum(among).as_py()), len(rows), rows, self.column[rows[0]].as_py() if rows else ""

    def n_numbers(self, name: str, *, counts: bool) -> int:
        numbers = as_numbers(self.column, name)
        if counts:
            check_counts(numbers, name)
        return _distinct(numbers[~np.isnan(numbers)])


def is_sentinel(value: float, n_all: int, n_rest: int, mean: float, deviation: float) -> bool:
    """Whether a value is frequent, and so many deviations of the others away from them."""
    often = n_all - n_rest >= max(2, SENTINEL_SHARE * n_all)
    return bool(often and abs(mean - float(value)) > SENTINEL_DEVIATIONS * (deviation or 1.0))


def null_codes(column: Column, codes: Iterable[float]) -> Column:
    """A column of numbers with some of them as missing cells."""
    values = pa.array([int(code) for code in codes], pa.int64()).cast(column.type, safe=False)
    return pc.if_else(pc.is_in(column, values), pa.scalar(None, column.type), column)


def check_counts(numbers: Any, name: str) -> None:
    """Refuse numbers that count nothing."""
    numbers = numbers[~np.isnan(numbers)]
    if not ((numbers >= 0) & (numbers == np.floor(numbers))).all():
        raise DataError(
            "not-counts",
            f"column {shown(name)!r} holds numbers that are not counts",
            do='Counts are whole and 0 or more; ask for "numeric" if it is a measurement',
        )


def type_name(kind: Any) -> str:
    """A short name of an Arrow type that does not depend on the library it came from."""
    if pa.types.is_dictionary(kind):
        return "category"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    return str(kind)


def is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_plain(kind: Any) -> bool:
    """Whether NumPy has the same type of numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def all_whole(column: Column) -> bool:
    if pa.types.is_integer(column.type):
        return True
    return bool(pc.all(pc.equal(column, pc.floor(column))).as_py())


def count_distinct(column: Column) -> int:
    """How many different values a column holds; sorting numbers takes less room and time than hashing them."""
    if not _is_plain(column.type):
        return int(pc.count_distinct(column, mode="only_valid").as_py())
    present = pc.drop_null(column) if column.null_count else column
    return _distinct(present.to_numpy())


def _distinct(numbers: Any) -> int:
    ordered = np.sort(numbers)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + (len(ordered) > 0)


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
    return sorted_texts(_observed(column))


def sorted_texts(levels: Sequence[str]) -> tuple[str, ...]:
    """Levels in order, numbers by value and texts by code point."""
    key: Callable[[str], Any] = (lambda t: (0, float(t), t)) if all(map(NUMBER.fullmatch, levels)) else str
    return tuple(sorted(levels, key=key))


def as_numbers(column: Column, name: str) -> Any:
    """A column as float64 with NaN where missing; text must be numbers throughout."""
    kind = column.type
    if kind == pa.float64():
        return column.to_numpy(zero_copy_only=False)
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_temporal(kind):
        return as_days(column, name)
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif not is_number(kind):
        if rows := not_numbers(column):
            raise not_numeric(name, column[rows[0]].as_py(), rows)
        column = pc.replace_substring_regex(pc.utf8_trim_whitespace(column), r"^\+", "")
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def is_text(kind: Any) -> bool:
    """Whether cells of an Arrow type are texts, categories of texts among them."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def not_numbers(column: Column) -> list[int]:
    """Places of the texts that are no numbers."""
    plain = "^" + NUMBER.pattern.replace(r"\d", "[0-9]") + "$"
    bad = pc.invert(pc.match_substring_regex(pc.utf8_trim_whitespace(column), plain))
    return list(pc.indices_nonzero(pc.fill_null(bad, False)).to_pylist())


def not_numeric(name: str, cell: str, rows: Sequence[int]) -> DataError:
    """The refusal of a column of texts, of which those in `rows` are no numbers, and `cell` is the first."""
    return DataError(
        "not-numeric",
        f"column {shown(name)!r} was asked to be numeric; {len(rows)} cells are no numbers",
        where=f"{shown(cell)!r} first; {rows_shown(rows)}",
        do='Correct the cells, or ask for "categorical"',
    )


def as_days(column: Column, name: str) -> Any:
    """Durations and times of day in days, dates as days since 1970-01-01 UTC; NaN where missing."""
    kind = column.type
    if pa.types.is_interval(kind):
        raise DataError(
            "not-numeric",
            f"column {shown(name)!r} was asked to be numeric and holds months and days, of which no number can be made",
            do="Convert it to a number of days first",
        )
    fine = (
        pa.duration if pa.types.is_duration(kind) else pa.time64 if pa.types.is_time(kind) else pa.timestamp
    )
    micros = column.cast(fine("us"), safe=False).cast(pa.int64()).cast(pa.float64(), safe=False)
    return micros.to_numpy(zero_copy_only=False) / 86_400e6

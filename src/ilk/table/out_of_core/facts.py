"""What the rules for kinds want to know of a column that is read in pieces, gathered piece by piece.

The answers are those of the column in memory. Two are not when a column has more than `MANY_LEVELS` different values:
texts beyond them are only counted, and the count of different values is an estimate (to about 1 %) unless it comes so
near to the number of cells that the rules could take the column for an identifier: then it is counted exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ilk.table.block import Array
from ilk.table.cells import (
    MANY_LEVELS,
    SENTINELS,
    as_numbers,
    check_counts,
    is_number,
    is_sentinel,
    is_text,
    level_texts,
    not_numbers,
    not_numeric,
    null_codes,
    sorted_texts,
)
from ilk.table.columns import Column

NEARLY_ALL = 0.9  # of the cells: from so many different ones on they are counted exactly
KEYS_AT_ONCE = 1 << 23

Again = Callable[[], Iterator[tuple[int, Column]]]
"""Reads one column once more: the number of the first row of each part, and its cells."""


class Gathered:
    """The facts of one column, so far. `as_number` says that the user asked for numbers: cells that are no text are
    taken as such from the start, texts once it is known how they are written."""

    def __init__(self, type: Any, again: Again, *, as_number: bool = False) -> None:
        self.type, self._again = type, again
        self._as_number = as_number and not is_text(type) and not pa.types.is_interval(type)
        self._numbers: Gathered | None = (
            None  # texts as the numbers that they are, where these were asked for
        )
        self.n_rows = self.missing = 0
        self._whole = True
        self._ends: tuple[Any, Any] | None = None
        self._values: Array | None = None  # the different numbers in order, while there are not too many
        self._texts: dict[str, None] = {}  # the different levels as they came
        self._observed: set[str] = set()  # of the texts: a category also knows levels that no row has
        self._sketch = Sketch()
        self.crowded = False

    @property
    def _numeric(self) -> bool:
        return self._as_number or is_number(self.type)

    def add(self, column: Column) -> None:
        """The next cells."""
        self.n_rows += len(column)
        self.missing += int(column.null_count)
        if len(column) == column.null_count:
            return
        if self._numeric:
            self._add_numbers(_plain_numbers(column, as_number=self._as_number))
        else:
            self._add_levels(column)

    def _add_numbers(self, numbers: Array) -> None:
        ends = numbers.min().item(), numbers.max().item()
        old = self._ends or ends
        self._ends = min(ends[0], old[0]), max(ends[1], old[1])
        if self._whole and numbers.dtype.kind == "f":
            self._whole = bool((numbers == np.floor(numbers)).all())
        self._sketch.add(number_keys(numbers))
        if not self.crowded:
            held = np.unique(numbers)
            self._hold(held if self._values is None else np.union1d(self._values, held))

    def _hold(self, values: Array) -> None:
        self.crowded |= len(values) > MANY_LEVELS
        self._values = values[:MANY_LEVELS].copy() if self.crowded else values

    def _add_levels(self, column: Column) -> None:
        if pa.types.is_dictionary(column.type):
            parts = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            for part in parts:
                texts = level_texts(part.dictionary)
                self._texts.update(dict.fromkeys(text for text in texts if text is not None))
                here = pc.drop_null(pc.unique(part.indices)).to_pylist()
                self._observed |= {text for i in here if (text := texts[i]) is not None}
        elif not self.crowded:
            self._texts.update(dict.fromkeys(t for t in level_texts(pc.unique(column)) if t is not None))
        self._sketch.add(text_keys(_as_text(column)))
        self.crowded |= len(self._texts) > MANY_LEVELS

    def __iadd__(self, later: Gathered) -> Gathered:
        """With the facts of later rows."""
        self.n_rows, self.missing = self.n_rows + later.n_rows, self.missing + later.missing
        self._whole &= later._whole
        if later._ends is not None:
            old = self._ends or later._ends
            self._ends = min(later._ends[0], old[0]), max(later._ends[1], old[1])
        if later._values is not None:
            self._hold(later._values if self._values is None else np.union1d(self._values, later._values))
            self.crowded |= later.crowded
        if not self.crowded or later._observed:
            self._texts.update(later._texts)
            self._observed |= later._observed
        self.crowded |= len(self._texts) > MANY_LEVELS
        self._sketch.add_hashed(later._sketch.lowest)
        return self

    # --- the answers

    def few_values(self, limit: int) -> list[float]:
        return [] if self._values is None else self._values[:limit].tolist()

    def is_whole(self) -> bool:
        return self._whole

    def ends(self) -> tuple[Any, Any]:
        if self._numbers is not None:
            return self._numbers.ends()
        assert self._ends is not None
        return self._ends

    def n_distinct(self) -> int:
        if self._numeric and not self.crowded:
            return 0 if self._values is None else len(self._values)
        if not self.crowded or self._observed:  # of a category all levels are held
            return len(self._levels())
        present = self.n_rows - self.missing
        about = min(max(self._sketch.estimate(), MANY_LEVELS + 1), present)
        if about < NEARLY_ALL * present or not self._whole:
            return about
        return self._count_exactly(present)

    def _count_exactly(self, present: int) -> int:
        """Different values, counted share by share of their keys, so that no more than some are held."""
        total, n_shares = 0, -(-present // KEYS_AT_ONCE)
        for share in range(n_shares):
            held = []
            for _, column in self._again():
                keys = mixed(self._keys(column))
                held.append(keys[keys % np.uint64(n_shares) == share])
            total += len(np.unique(np.concatenate(held)))
        return total

    def _keys(self, column: Column) -> Array:
        if self._numeric:
            return number_keys(_plain_numbers(column, as_number=self._as_number))
        return text_keys(_as_text(column))

    def has_sentinel(self) -> bool:
        for value in self.ends():
            if value in SENTINELS:
                count, rest, first, second = 0, 0, 0.0, 0.0
                for _, column in self._again():
                    numbers = _plain_numbers(column, as_number=self._as_number)
                    others = numbers[numbers != value].astype(np.float64) - float(value)
                    count, rest = count + len(numbers), rest + len(others)
                    first, second = first + others.sum(), second + others @ others
                mean = first / rest  # there are others: a column of one value is constant
                deviation = float(np.sqrt(max(second / rest - mean**2, 0.0)))
                if is_sentinel(value, count, rest, mean + float(value), deviation):
                    return True
        return False

    def parts(self) -> Iterator[Column]:
        return (column for _, column in self._again())

    def number_parts(self) -> Iterator[Array]:
        for column in self.parts():
            yield _plain_numbers(column, as_number=self._as_number).astype(np.float64)

    def without(self, codes: Mapping[float, int]) -> Gathered:
        """With these numbers as missing cells; the others are looked at once more."""

        def again() -> Iterator[tuple[int, Column]]:
            return ((first, null_codes(column, codes)) for first, column in self._again())

        other = Gathered(self.type, again)
        for _, column in again():
            other.add(column)
        return other

    def as_read(self, change: Callable[[Column], Column], kind: Any) -> Gathered:
        """With its cells changed to another Arrow type; all are looked at once more."""

        def again() -> Iterator[tuple[int, Column]]:
            return ((first, change(column)) for first, column in self._again())

        other = Gathered(kind, again)
        for _, column in again():
            other.add(column)
        return other

    def texts(self) -> list[str]:
        return self._levels()

    def _levels(self) -> list[str]:
        if self._numeric:
            return [] if self._values is None else _number_levels(self._values)
        return [t for t in self._texts if t in self._observed] if self._observed else list(self._texts)

    def levels(self, *, ordered: bool = False) -> tuple[str, ...]:
        levels = self._levels()[:MANY_LEVELS]
        if ordered and pa.types.is_dictionary(self.type) and self.type.ordered:
            return tuple(levels)
        return sorted_texts(levels)

    def rows_outside(self, texts: Sequence[str]) -> tuple[int, int, list[int], str]:
        among = outside = 0
        rows: list[int] = []
        cell = ""
        for first, column in self._again():
            known = pc.is_in(column, pa.array(texts, type=column.type))
            strange = pc.indices_nonzero(pc.and_(pc.invert(known), pc.is_valid(column))).to_pylist()
            if strange and not rows:
                cell = column[strange[0]].as_py()
            among, outside = among + int(pc.sum(known).as_py() or 0), outside + len(strange)
            rows += [first + row for row in strange]
        return among, outside, rows, cell

    def n_numbers(self, name: str, *, counts: bool) -> int:
        if not self._numeric:
            self._refuse_words(name)
            self._numbers = self.as_read(lambda column: _number_column(column, name), pa.float64())
        found = self._numbers or self
        for numbers in found.number_parts() if counts else ():
            check_counts(numbers, name)
        return found.n_distinct()

    def _refuse_words(self, name: str) -> None:
        rows: list[int] = []
        cell = ""
        for first, column in self._again() if is_text(self.type) else ():
            texts = column.cast(pa.large_string())
            strange = not_numbers(texts)
            if strange and not rows:
                cell = texts[strange[0]].as_py()
            rows += [first + row for row in strange]
        if rows:
            raise not_numeric(name, cell, rows)


def _number_column(column: Column, name: str) -> Column:
    return pa.array(as_numbers(column, name), from_pandas=True)


def _plain_numbers(column: Column, *, as_number: bool) -> Array:
    """The numbers that are there; whole numbers stay whole."""
    if as_number or pa.types.is_decimal(column.type):
        numbers = as_numbers(column, "")
        return np.asarray(numbers[~np.isnan(numbers)] + 0.0)
    held = pc.drop_null(column) if column.null_count else column
    return np.asarray(held.to_numpy() + 0)  # -0.0 is 0.0


def _number_levels(values: Array) -> list[str]:
    return [text for text in level_texts(pa.array(values)) if text is not None]


def _as_text(column: Column) -> Column:
    """Present cells as text."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = pc.drop_null(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column
    return pa.array([str(cell) for cell in column.to_pylist()], pa.large_string())


def number_keys(numbers: Array) -> Array:
    """A different 64-bit key for each different number."""
    if numbers.dtype.kind == "f":
        return numbers.astype(np.float64).view(np.uint64)
    return numbers.astype(np.uint64 if numbers.dtype.kind == "u" else np.int64).view(np.uint64)


def text_keys(texts: Column) -> Array:
    """A 64-bit key for each text: the same for equal texts, different (but for odds of 2^-64) for others."""
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    texts = texts.cast(pa.large_string())
    if not len(texts):
        return np.empty(0, np.uint64)
    _, ends, letters = texts.buffers()
    ends = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    length = np.diff(ends)
    data = np.frombuffer(letters or b"", np.uint8)[ends[0] : ends[-1]]
    place = np.arange(len(data)) - np.repeat(ends[:-1] - ends[0], length)
    powers = np.full(int(length.max()) + 1, 0x9E3779B97F4A7C15, np.uint64).cumprod(dtype=np.uint64)
    reached = np.concatenate(
        [[np.uint64(0)], np.cumsum((data + np.uint64(1)) * powers[place], dtype=np.uint64)]
    )
    return np.asarray(reached[ends[1:] - ends[0]] - reached[ends[:-1] - ends[0]])


def mixed(keys: Array) -> Array:
    """Keys spread evenly over 64 bits, different ones to different ones (the last steps of splitmix64)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)))


class Sketch:
    """How many different keys there were, of more than `MANY_LEVELS`: from how low the lowest hashes lie."""

    def __init__(self) -> None:
        self.lowest = np.empty(0, np.uint64)

    def add(self, keys: Array) -> None:
        self.add_hashed(mixed(keys))

    def add_hashed(self, hashed: Array) -> None:
        if len(self.lowest) == MANY_LEVELS:
            hashed = hashed[hashed < self.lowest[-1]]
        if len(hashed):
            self.lowest = np.union1d(self.lowest, hashed)[:MANY_LEVELS]

    def estimate(self) -> int:
        """(m - 1) / share of the range that the m lowest take (Bar-Yossef and others 2002)."""
        return round((MANY_LEVELS - 1) / (float(self.lowest[-1]) / 2.0**64))

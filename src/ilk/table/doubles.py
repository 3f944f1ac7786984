"""Columns that say the same: each value of one goes with one value of the other, row for row."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ilk.errors import Caution, Option, listed, shown
from ilk.table.block import Array
from ilk.table.cells import MANY_LEVELS, ColumnCells, TableColumns, as_numbers
from ilk.table.columns import Column
from ilk.table.schema import ColumnInfo, Schema

ALIKE, EQUAL = 0.99, 0.9999
"""Correlation from which numbers say the same: where values come again, and where nearly every row has its own."""
HEAD_ROWS = 1_000
LEAST_ROWS = 5  # with another value than the most frequent one: fewer may agree by chance
LOOKED_ROWS, MAY_BE_ALIKE = 256, 0.9  # rows on which numbers are compared first, and their correlation there
LOST_DIGITS = 1e-3  # of single precision, with room to spare
BATCH = 256  # columns compared with all earlier ones at a time


@dataclass(frozen=True)
class Sequel:
    """The values of a column in the order they first come: a digest of their numbers, and the count of rows of each."""

    digest: bytes
    counts: Array

    @classmethod
    def of(cls, column: ColumnCells) -> Sequel:
        digest, place, counts = hashlib.sha256(), dict[Any, int](), np.zeros(0, np.int64)
        for part in column.parts():
            coded = _encoded(part)
            values, indices = coded.dictionary.to_pylist(), coded.indices
            code = np.array([place.setdefault(value, len(place)) for value in values] + [-1], dtype=np.int32)
            codes = code[pc.fill_null(indices, len(values)).to_numpy(zero_copy_only=False)]
            digest.update(codes.tobytes())
            counts = np.pad(counts, (0, len(place) - len(counts)))
            counts += np.bincount(codes[codes >= 0], minlength=len(place))
        return cls(digest.digest(), counts)

    @property
    def repeats(self) -> bool:
        """Whether a value has more than two rows on average."""
        return bool(self.counts.sum() > 2 * len(self.counts))

    @property
    def telling(self) -> bool:
        return bool(self.counts.sum() - self.counts.max() >= LEAST_ROWS)


def _encoded(column: Column) -> Any:
    """A dictionary of values in the order they first come, and the place of each row among them (null where
    missing)."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(whole.type):
        whole = whole.cast(whole.type.value_type)
    return pc.dictionary_encode(whole)


def same_columns(table: TableColumns, schema: Schema, asked: Collection[str]) -> dict[str, str]:
    """Columns that say what an earlier one says, which is named; not those whose type the user named.

    >>> from ilk.table.read import read
    >>> from ilk.table.schema import infer
    >>> table = read({"school": ["low", "high", "mid"] * 9, "years": [9, 16, 12] * 9})
    >>> same_columns(table, infer(table), ())
    {'years': 'school'}
    """
    few = [info for info in schema.used if 2 <= info.distinct <= MANY_LEVELS]
    alike = _grouped(few, lambda info: (info.distinct, info.missing))
    alike = [part for group in alike for part in _parted(table, group)]
    found: dict[str, str] = {}
    for candidates in alike:
        sequel = cache(lambda name: Sequel.of(table.cells(name)))
        for info, earlier in zip(candidates, _near(table, candidates), strict=True):
            if info.name in asked:
                continue
            for other in (candidates[place] for place in earlier):
                own, its = sequel(info.name), sequel(other.name)
                if other.name not in found and own.digest == its.digest and _agree(table, other, info, own):
                    found[info.name] = other.name
                    break
    return found


def _parted(table: TableColumns, columns: list[ColumnInfo]) -> list[list[ColumnInfo]]:
    """Columns that begin alike; numbers among themselves are told apart for less by their correlation (`_near`)."""
    if all(info.levels is None for info in columns):
        return [columns]
    return _grouped(columns, lambda info: _head(table.cells(info.name)))


def _near(table: TableColumns, columns: list[ColumnInfo]) -> Iterator[Array]:
    """For each column the places of earlier ones that may say the same: of numbers those that go along with it on a few
    rows, all others of a column of categories."""
    is_number = np.array([info.levels is None for info in columns])
    first, *more = islice(table.cells(columns[0].name).parts(), 2)
    width = min(len(first), LOOKED_ROWS)
    points = np.full((len(columns), width), np.nan)
    for place in np.flatnonzero(is_number):
        points[place] = _looked(next(iter(table.cells(columns[place].name).parts())), columns[place].name)
    points = _standard(points).astype(np.float32)
    whole = len(first) <= LOOKED_ROWS and not more
    least = _least(columns[0], len(first)) if whole else MAY_BE_ALIKE
    for start in range(0, len(columns), BATCH):
        batch = slice(start, start + BATCH)
        along = np.abs(points[batch] @ points[: start + BATCH].T) > least
        along |= ~(is_number[batch, None] & is_number[: start + BATCH])
        for offset, row in enumerate(along):
            yield np.flatnonzero(row[: start + offset])


def _least(info: ColumnInfo, n_rows: int) -> float:
    """The correlation that two such columns need, all rows being looked at, all but the last digits of it."""
    if info.missing:
        return MAY_BE_ALIKE
    return (ALIKE if n_rows > 2 * info.distinct else EQUAL) - LOST_DIGITS


def _looked(part: Column, name: str) -> Any:
    """Numbers of a few rows over a part."""
    if len(part) <= LOOKED_ROWS:
        return as_numbers(part, name)
    looked = np.linspace(0, len(part) - 1, LOOKED_ROWS).astype(np.int64)
    return as_numbers(part.take(pa.array(looked)), name)


def _standard(values: Array) -> Array:
    """Every row as a vector of length 1 with mean 0, so that products are correlations; what is not finite is 0."""
    seen = np.isfinite(values)
    low, high = (
        end(np.where(seen, values, otherwise), axis=1, keepdims=True)
        for end, otherwise in ((np.min, np.inf), (np.max, -np.inf))
    )
    some = seen.any(axis=1, keepdims=True)
    middle = np.where(some, low, 0.0) / 8 + np.where(some, high, 0.0) / 8
    scaled = np.where(seen, values, 0.0) / 4 - middle  # differences of large numbers run over
    scaled = np.where(seen, scaled, 0.0)
    size = np.abs(scaled).max(axis=1, keepdims=True)
    scaled = scaled / np.where(size > 0, size, 1.0)
    mean = scaled.sum(axis=1, keepdims=True) / np.maximum(seen.sum(axis=1, keepdims=True), 1)
    scaled = np.where(seen, scaled - mean, 0.0)
    length = np.sqrt(np.square(scaled).sum(axis=1, keepdims=True))
    return np.asarray(scaled / np.where(length > 0, length, 1.0))


def _grouped(columns: list[ColumnInfo], key: Callable[[ColumnInfo], Any]) -> list[list[ColumnInfo]]:
    """Columns that share a key with others."""
    groups: dict[Any, list[ColumnInfo]] = {}
    for info in columns:
        groups.setdefault(key(info), []).append(info)
    return [group for group in groups.values() if len(group) > 1]


def _head(column: ColumnCells) -> bytes:
    """The first rows as the numbers of their values: few columns go on from there."""
    part = next(iter(column.parts()))
    indices = _encoded(part.slice(0, HEAD_ROWS)).indices
    return bytes(pc.fill_null(indices, -1).to_numpy(zero_copy_only=False).tobytes())


def _agree(table: TableColumns, one: ColumnInfo, other: ColumnInfo, sequel: Sequel) -> bool:
    if not sequel.telling:
        return False
    if one.levels is None and other.levels is None:
        return abs(_correlation(table, one.name, other.name)) > (ALIKE if sequel.repeats else EQUAL)
    return sequel.repeats


def _correlation(table: TableColumns, one: str, other: str) -> float:
    """Of the rows that have both numbers, in one pass over their parts; 0 where a range is none or infinite."""
    ends = np.array([table.cells(name).ends() for name in (one, other)], dtype=np.float64)
    half = ends / 4  # sums of large numbers run over
    centre, width = half.sum(axis=1), half[:, 1] - half[:, 0]
    if not (np.isfinite(width).all() and (width > 0).all()):
        return 0.0
    sums = np.zeros((3, 3))
    for pair in _numbers(table, one, other):
        both = pair[~np.isnan(pair).any(axis=1)]
        rows = np.column_stack([(both / 2 - centre) / width, np.ones(len(both))])
        sums += rows.T @ rows
    within = sums[:2, :2] - np.outer(sums[2, :2], sums[2, :2]) / max(sums[2, 2], 1.0)
    size = np.sqrt(within[0, 0] * within[1, 1])
    return float(within[0, 1] / size) if size > 0 else 0.0


def _numbers(table: TableColumns, one: str, other: str) -> Iterator[Array]:
    for a, b in zip(table.cells(one).parts(), table.cells(other).parts(), strict=True):
        yield np.column_stack([as_numbers(a, one), as_numbers(b, other)])


def counted_once(schema: Schema, same: dict[str, str]) -> Schema:
    """The schema without columns that say what another says, and with a caution that names them."""
    if not same:
        return schema
    columns = tuple(
        replace(c, kind="left out", reason=f"says the same as {shown(same[c.name])!r}", levels=None)
        if c.name in same
        else c
        for c in schema.columns
    )
    pairs = [f"{shown(name)!r} says the same as {shown(first)!r}" for name, first in same.items()]
    name = next(iter(same))
    option = Option("types", {shown(name): schema[name].kind})
    text = f"{listed(pairs)}, row for row, and is left out; to use both: {option}"
    return replace(
        schema, columns=columns, warnings=(*schema.warnings, Caution("same-columns", text, [option]))
    )

"""The treatment of an assorted table's columns: scales of numbers, categories of values, and blocks treated by them.

`assort.py` makes the plan of a table; this page says what a plan is and applies it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ilk.assorted.scales import PLAIN, Number, NumberColumns
from ilk.table.block import Array, Block, Encoding, is_sparse

NEVER = -1e200  # log-Jacobian of a scale that a number must not have
RARE_LEVEL = 1.0  # nats that the free share of a level costs at least


def shares_cost(weight: Array) -> float:
    """Half a log of its rows for every level but the commonest, a nat at least: each free share pays for what informs
    it, and a rare one for what chance alone gains by it (decision 23)."""
    rest = np.sort(weight)[:-1]
    return float(np.maximum(np.log(np.maximum(rest, 1.0)) / 2, RARE_LEVEL).sum())


@dataclass(frozen=True, kw_only=True)
class Category:
    """A column of levels: from the codes of the table, or from the values of a number.

    `kind` is "levels", "values" (a number of few values) or "atom" (whether a number is one value);
    `keys` are the old codes or values of the levels, `names` their names, `weight` how much each occurs.
    """

    name: str
    source: int
    kind: str
    keys: tuple[float, ...]
    names: tuple[str, ...]
    weight: tuple[float, ...]
    missing_level: bool = False
    of: str = ""  # the number that has the atom

    def codes(self, block: Block) -> Array:
        if self.kind == "atom":
            x = block.raw[:, self.source]
            return np.where(np.isnan(x), -1, np.where(x == self.keys[1], 1, 0)).astype(np.int32)
        if self.kind == "values":
            x = block.raw[:, self.source]
        else:
            assert block.codes is not None
            x = block.codes[:, self.source]
        keys = np.array(self.keys)
        place = np.minimum(np.searchsorted(keys, x), len(keys) - 1)
        missing = len(keys) if self.missing_level else -1
        return np.where(keys[place] == x, place, missing).astype(np.int32)


@dataclass(frozen=True)
class TransformPlan:
    """The treatment of a table: its numbers, then its categories; and the columns set aside, with the reason."""

    numbers: tuple[Number, ...]
    categories: tuple[Category, ...]
    set_aside: tuple[tuple[str, str], ...]
    total_weight: float

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.numbers) + tuple(c.name for c in self.categories)

    def in_words(self, scales: Sequence[int], *, together: bool = False) -> dict[str, str]:
        """What was made of each column of the table; `together` says that the numbers are one block."""
        told = {name: f"left out: {reason}" for name, reason in self.set_aside}
        for number, scale in zip(self.numbers, scales, strict=True):
            told[number.name] = "in one correlated block" if together else number.in_words(scale)
        for column in self.categories:
            if column.kind == "atom":
                share = column.weight[1] / sum(column.weight)
                of = column.of
                told[of] = (
                    f"{column.keys[1]:g} ({share:.0%} of its values) modelled apart, the rest {told[of]}"
                )
            else:
                few = column.kind == "values"
                told[column.name] = f"{len(column.names)} {'values as' if few else ''} categories".replace(
                    "  ", " "
                )
        return told

    @cached_property
    def level_start(self) -> Array:
        sizes = [len(column.names) for column in self.categories]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def level_weight(self) -> Array:
        return np.array([w for column in self.categories for w in column.weight], dtype=np.float64)

    @cached_property
    def number_columns(self) -> NumberColumns:
        return NumberColumns.of(self.numbers)

    @cached_property
    def level_penalty(self) -> Array:
        """What the free shares of each category cost."""
        return np.array([shares_cost(np.array(category.weight)) for category in self.categories])

    @cached_property
    def level_share(self) -> Array:
        """Pooled shares of the levels."""
        if not self.categories:
            return np.zeros(0)
        totals = np.add.reduceat(self.level_weight, self.level_start[:-1])
        return np.asarray(self.level_weight / np.repeat(totals, np.diff(self.level_start)))

    def with_atoms(self, kept: Array) -> Array:
        """A choice of columns in which a number and whether it is its atom are chosen together."""
        n, kept = len(self.numbers), np.array(kept)
        place = {number.name: j for j, number in enumerate(self.numbers)}
        for j, category in enumerate(self.categories):
            if category.kind == "atom" and (number := place.get(category.of)) is not None:
                kept[[number, n + j]] = kept[number] or kept[n + j]
        return kept

    def only(self, kept: Array) -> TransformPlan:
        """The plan of some of the columns, numbers first."""
        n = len(self.numbers)
        numbers = tuple(number for number, keep in zip(self.numbers, kept[:n], strict=True) if keep)
        pairs = zip(self.categories, kept[n:], strict=True)
        return replace(self, numbers=numbers, categories=tuple(category for category, keep in pairs if keep))

    def repeated(self, times: Mapping[str, int]) -> TransformPlan:
        """The plan in which columns are there several times, with what was made of them."""
        numbers = tuple(n for n in self.numbers for _ in range(times.get(n.name, 1)))
        categories = tuple(c for c in self.categories for _ in range(times.get(c.of or c.name, 1)))
        return replace(self, numbers=numbers, categories=categories)

    def locked(self, names: Sequence[str]) -> TransformPlan:
        """The plan in which some numbers can have no scale but the plain one."""
        numbers = tuple(
            replace(n, log_jacobian=tuple(v if s == PLAIN else NEVER for s, v in enumerate(n.log_jacobian)))
            if n.name in names
            else n
            for n in self.numbers
        )
        return replace(self, numbers=numbers)

    def in_units(self, units: Sequence[float]) -> TransformPlan:
        """The plan in which a deviation of each number counts as so many of its units."""
        numbers = tuple(
            replace(
                n,
                spread=tuple(width * unit for width in n.spread),
                log_jacobian=tuple(v - n.weight * float(np.log(unit)) for v in n.log_jacobian),
            )
            for n, unit in zip(self.numbers, units, strict=True)
        )
        return replace(self, numbers=numbers)

    def weighing(self, share: float) -> TransformPlan:
        """The plan for a sample that holds `share` of the table's weight."""
        numbers = tuple(
            replace(n, weight=n.weight * share, log_jacobian=tuple(v * share for v in n.log_jacobian))
            for n in self.numbers
        )
        categories = tuple(replace(c, weight=tuple(w * share for w in c.weight)) for c in self.categories)
        return replace(self, numbers=numbers, categories=categories, total_weight=self.total_weight * share)

    def treated(self, block: Block, scales: Sequence[int]) -> Block:
        """The block as the model sees it: standardised numbers on the given scales, and codes."""
        raw = self.treated_numbers(block, scales)
        return Block(
            raw,
            Encoding(1.0, np.zeros(raw.shape[1])),
            first_row=block.first_row,
            weight=block.weight,
            codes=self.treated_codes(block),
            complete=not np.isnan(raw).any(),
        )

    def treated_codes(self, block: Block) -> Array | None:
        """The categories alone (rows, categories); None where there are none."""
        if is_sparse(block.codes):
            return self._sparse_codes(block.codes)
        codes = [category.codes(block) for category in self.categories]
        return np.ascontiguousarray(np.column_stack(codes)) if codes else None

    def _sparse_codes(self, codes: Any) -> Array:
        """Compressed codes of 0 and 1, as they are."""
        kept = [category.source for category in self.categories]
        few: Array = codes if kept == list(range(codes.shape[1])) else codes.tocsc()[:, kept].tocsr()
        return few

    def treated_numbers(self, block: Block, scales: Sequence[int]) -> Array:
        """The numbers alone (rows, numbers)."""
        columns = self.number_columns
        if not self.numbers:
            return np.empty((block.n_rows, 0))
        raw = block.raw[:, columns.source]
        x = block.encoding.columns(columns.source).apply(raw).astype(np.float64)
        x[raw == columns.atom] = np.nan
        return columns.standardised(x, scales)

    def log_slopes(self, block: Block, scales: Sequence[int]) -> Array:
        """Sum over the numbers of the log of d standardised / d user's value, per row."""
        total = np.zeros(block.n_rows)
        for number, scale in zip(self.numbers, scales, strict=True):
            x = self.values(block, number)
            slope = number.log_slope(np.nan_to_num(x, nan=number.low), scale) + np.log(number.unit)
            total += np.where(np.isnan(x), 0.0, slope)
        return total

    def untreated(self, block: Block, scales: Sequence[int], encoding: Encoding) -> Block:
        """The table's own columns of a treated block: numbers off their scales, with the values that were categories
        among them again, and codes. Numbers of two values have no between, and stay levels."""
        codes = np.empty((block.n_rows, 0), np.int32) if block.codes is None else block.codes
        apart = {category.of: j for j, category in enumerate(self.categories) if category.kind == "atom"}
        numbers, taken = [], set(apart.values())
        for z, number, scale in zip(block.numbers.T, self.numbers, scales, strict=True):
            x = number.encoded(z, scale)
            if number.name in apart:
                value = encoding.columns(np.array([number.source])).apply(np.array([[number.atom]]))
                x = np.where(codes[:, apart[number.name]] == 1, value, x)
            numbers.append(np.ravel(x))
        for j, category in enumerate(self.categories):
            if category.kind == "values" and len(category.keys) > 2:
                steps = (
                    np.array(category.keys) / np.abs(category.keys).max()
                )  # squares of huge numbers overflow
                numbers.append(np.append(steps, np.nan)[np.minimum(codes[:, j], len(steps))])
                taken.add(j)
        raw = np.column_stack(numbers) if numbers else np.empty((block.n_rows, 0))
        rest = np.delete(codes, sorted(taken), axis=1)
        return replace(
            block,
            raw=raw,
            encoding=Encoding(1.0, np.zeros(raw.shape[1])),
            codes=rest if rest.shape[1] else None,
            complete=not np.isnan(raw).any(),
            memo=None,
        )

    def on_scales(self, numbers: Array, scales: Sequence[int]) -> Array:
        """The numbers of an `untreated` block, or others like them, on their scales; as they are where the scale leaves
        out a frequent value."""
        placed, columns = np.array(numbers), self.number_columns
        plain = np.flatnonzero(np.isnan(columns.atom))
        if len(plain):
            here = np.array(scales, dtype=np.intp)[plain]
            placed[:, plain] = columns[plain].standardised(placed[:, plain], here)
        return placed

    def values(self, block: Block, number: Number) -> Array:
        """Encoded values of one number."""
        return np.asarray(self.values_of(block, [number])[0])

    def values_of(self, block: Block, numbers: Sequence[Number]) -> Array:
        """Encoded values of some numbers (numbers, rows), NaN where missing or where one is its atom."""
        source = np.array([number.source for number in numbers])
        x = block.encoding.columns(source).apply(block.raw[:, source])
        x = np.ascontiguousarray(x.T, dtype=np.float64)
        for place, number in enumerate(numbers):
            if number.atom is not None:
                x[place, block.raw[:, number.source] == number.atom] = np.nan
        return np.asarray(x)

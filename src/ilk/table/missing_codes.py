"""Numbers that stand for "no answer" (99, -9, -1, ...): found by the gap to the other numbers, and by being shared.

A code of two digits or more is taken for missing where it lies further from the other numbers than these spread. One
digit is little evidence: there the others must be a scale (a few whole numbers without a break, none of them rare), and
another column must have the same code, or any code where the gap is as wide as for two digits. A column whose type the
user named is left as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ilk.errors import Caution, Option, listed, often, shown
from ilk.table.block import Array
from ilk.table.cells import ColumnCells, TableColumns, TableView
from ilk.table.columns import number_text

DIGITS = range(1, 7)
NINES = tuple(sign * (10**n - 1) for n in DIGITS for sign in (1, -1))
BESIDE = tuple(sign * (10**n - 1 - less) for n in DIGITS for less in (1, 2) for sign in (1, -1))
DOUBLED = tuple(sign * digit * (10**n - 1) // 9 for n in (2, 3) for digit in (7, 8) for sign in (1, -1))
CODES = np.unique([*NINES, *BESIDE, *DOUBLED, -1]).astype(np.float64)
"""9, 99, 999, ..., what stands beside them (7 and 8, 97 and 98, 77 and 88), the same below zero, and -1."""
_CODES = frozenset(CODES.tolist())
ALONE = frozenset((*NINES, -1))
"""Of one digit only these are codes without another beside them."""
SEVERAL_DIGITS = 77
MOST_STEPS = 11
"""Values of a scale at most: 0 to 10."""
RARE_STEP, RARE_STEP_SHARE = 5, 0.01
FEW_CODES, FEW_CODES_SHARE = 3, 0.005
"""Cells with a code from which a column needs no other that shares it."""
MOST_CODES_SHARE = 0.5
SHARED = 2


@dataclass(frozen=True)
class NumbersWithCodes:
    """The numbers of a column: how often which code, and what the other numbers are."""

    codes: Mapping[float, int]
    n_numbers: int
    low: float
    high: float
    is_scale: bool

    @classmethod
    def of(cls, parts: Iterable[Array]) -> NumbersWithCodes:
        codes, steps = Counter[float](), Counter[float]()
        n_numbers, low, high, few = 0, np.inf, -np.inf, True
        for numbers in parts:
            at = np.isin(numbers, CODES)
            codes.update(_counted(numbers[at]))
            others = numbers[~at]
            n_numbers += len(numbers)
            if not len(others):
                continue
            low, high = min(low, float(others.min())), max(high, float(others.max()))
            if few:
                steps.update(_counted(others))
                few = len(steps) <= MOST_STEPS
        inner = {code: n for code, n in codes.items() if low < code < high}  # values like the others
        return cls(
            {code: n for code, n in codes.items() if code not in inner},
            n_numbers,
            low,
            high,
            few and _is_scale(steps + Counter(inner), n_numbers),
        )

    def sides(self) -> Iterator[dict[float, int]]:
        """The codes above the other numbers, and those below them."""
        yield {code: n for code, n in self.codes.items() if code > self.high}
        yield {code: n for code, n in self.codes.items() if code < self.low}

    def stands_apart(self, side: Mapping[float, int]) -> bool:
        """Whether the codes of one side lie far from the other numbers, and the others are such as have codes."""
        if not side or not np.isfinite(self.low) or not self.low < self.high:
            return False
        if sum(side.values()) > MOST_CODES_SHARE * self.n_numbers:
            return False
        if min(map(abs, side)) >= SEVERAL_DIGITS:
            return self.is_far(side)
        return self.is_scale and self._gap(side) >= 2 and not ALONE.isdisjoint(side)

    def _gap(self, side: Mapping[float, int]) -> float:
        return min(min(abs(code - self.high), abs(code - self.low)) for code in side)

    def is_far(self, side: Mapping[float, int]) -> bool:
        """Whether the codes of one side lie further from the other numbers than these spread."""
        return self._gap(side) > self.high - self.low

    def needs_no_other(self, side: Mapping[float, int]) -> bool:
        """Whether codes that stand apart are enough by themselves."""
        often = sum(side.values()) >= max(FEW_CODES, FEW_CODES_SHARE * self.n_numbers)
        return often and min(map(abs, side)) >= SEVERAL_DIGITS


def _counted(numbers: Array) -> dict[float, int]:
    values, counts = np.unique(numbers, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _is_scale(steps: Counter[float], n_numbers: int) -> bool:
    """A few whole numbers without a break, none of them rare."""
    if not 2 <= len(steps) <= MOST_STEPS or not all(step.is_integer() for step in steps):
        return False
    enough = max(RARE_STEP, RARE_STEP_SHARE * n_numbers)
    return max(steps) - min(steps) + 1 == len(steps) and min(steps.values()) >= enough


def missing_codes(table: TableColumns, names: Sequence[str]) -> dict[str, dict[float, int]]:
    """The codes for "no answer" in some columns, and how often they stand there.

    >>> from ilk.table.read import read
    >>> table = read({"age": [30 + i % 40 for i in range(97)] + [-99] * 3, "size": [float(i) for i in range(100)]})
    >>> missing_codes(table, table.names)
    {'age': {-99.0: 3}}
    """
    seen = {
        name: NumbersWithCodes.of(table.cells(name).number_parts())
        for name in names
        if _ends_in_code(table.cells(name))
    }
    apart = [(name, side) for name, it in seen.items() for side in it.sides() if it.stands_apart(side)]
    columns_with = Counter(code for _, side in apart for code in side)
    taken: dict[str, dict[float, int]] = {}
    for name, side in apart:
        alone = seen[name].needs_no_other(side)
        shared = {code: n for code, n in side.items() if alone or columns_with[code] >= SHARED}
        if shared:
            taken[name] = taken.get(name, {}) | shared
    for name, side in apart if taken else ():  # a table with codes has others, too
        if seen[name].is_far(side):
            taken[name] = taken.get(name, {}) | side
    return {name: taken[name] for name in names if name in taken}


def _ends_in_code(column: ColumnCells) -> bool:
    """Whether the smallest or the largest number of a column is a code."""
    plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return bool(plain and column.missing < column.n_rows and not _CODES.isdisjoint(column.ends()))


def code_cautions(found: Mapping[str, Mapping[float, int]]) -> list[Caution]:
    """Which numbers were taken for missing cells."""
    if not found:
        return []
    of_code: dict[float, list[str]] = {}
    for name, codes in found.items():
        for code, n in codes.items():
            of_code.setdefault(code, []).append(f"{shown(name)!r} ({often(n)})")
    parts = "; ".join(f"{number_text(code)} in {listed(where)}" for code, where in of_code.items())
    option = Option("types", {shown(next(iter(found))): "numeric"})
    text = f"numbers far from the others are taken as missing: {parts}; to use them as numbers, name the type: {option}"
    return [Caution("missing-codes", text, [option])]


@dataclass(frozen=True)
class WithoutCodes(TableView):
    """A table as the rules see it, its codes for "no answer" as missing cells."""

    codes: Mapping[str, Mapping[float, int]]

    def cells(self, name: str) -> ColumnCells:
        column = super().cells(name)
        return column.without(self.codes[name]) if name in self.codes else column

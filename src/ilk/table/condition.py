"""Conditioning: one exact power of two and one short offset per column, found in one pass over blocks.

The range of a column (largest less smallest value) does not depend on the order of the rows, on chunks or on
weights, and is multiplied exactly by a power of two; so do the power and the rounding step made from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ilk import kernels
from ilk.errors import SHOWN_ROWS, Caution, DataError, Option, UsageError, shown
from ilk.kernels import plain
from ilk.table.block import BLOCK_ROWS, Array, Encoding
from ilk.table.middle import SAMPLE_ROWS, content_rows, middle_and_spread, middle_rows, number_keys
from ilk.table.out_of_core.disk import Sliceable

HEAVY_RANGE = 1e5
"""A range of so many robust spreads marks a column whose mean is no good centre: five of sixteen digits."""
PIVOT_ROWS = 256
"""Rows among which a first finite value is looked for; sums are taken about it."""
SHORT_DIGITS = 36
"""Sums in another order differ in the last few of 53 binary digits, and hardly ever across such a rounding."""
STEPS_IN_RANGE = 64
"""The centre is a multiple of about range/64, near an eighth of a standard deviation."""
NEAR_STEP = 1e-6
"""So near to the middle between two steps, a location counts as the middle."""
DOUBTFUL = 8.0
"""Times below the range of a heavy column, from which on the rows that are looked at decide whether it is one."""
FEW_STEPS = 64
"""Fewer representable steps than this between smallest and largest value: precision is exhausted."""
LARGEST_POWER = {np.dtype(np.float64): 1022, np.dtype(np.float32): 126}
FARTHEST_CONSTANT = 320  # as a power of two, encoded


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What one pass over the raw numbers tells: per column the range, the mean and the missing cells."""

    low: Array
    high: Array
    mean: Array
    missing: Array
    total_weight: Array
    dtype: np.dtype[np.floating]

    @property
    def complete(self) -> bool:
        return not self.missing.any()

    @property
    def width(self) -> Array:
        """Half the range of each column (the range itself may overflow); 0 when all is missing."""
        half = self.high.astype(np.float64) / 2 - self.low.astype(np.float64) / 2
        return np.where(self.high >= self.low, half, 0.0)


def condition(
    raw: Array,
    *,
    scale: str | None = None,
    weight: Array | None = None,
    names: Sequence[str] | None = None,
) -> Encoding:
    """The encoding that brings the widest column near a range of one and every column near zero.

    >>> encoding = condition(np.array([[1e200], [3e200]]))
    >>> encoding.undo(encoding.apply(np.array([[3e200]]))).item() == 3e200
    True
    """
    facts = survey(raw, weight=weight, names=names)
    for caution in precision_cautions(facts, names):
        caution.warn()
    return encoding_of(raw, facts, scale=scale, weight=weight)


def survey(raw: Sliceable, *, weight: Sliceable | None = None, names: Sequence[str] | None = None) -> Survey:
    """Range, mean and missing cells per column, block by block; infinite cells are refused."""
    facts = _pass(raw, weight, shrink=1.0)
    if np.isinf(facts.low).any() or np.isinf(facts.high).any():
        present = facts.high >= facts.low
        if (np.isinf(facts.low) | np.isinf(facts.high))[present].any():
            raise _infinite(raw, names)
    if not np.isfinite(facts.mean).all():
        # The sum ran over: once more with numbers small enough for any count of rows.
        facts = _pass(raw, weight, shrink=2.0**-100)
    return facts


@dataclass(frozen=True)
class Tally:
    """What a survey gathers from rows: sums are of `value * shrink - pivot`, over the cells that are there."""

    low: Array
    high: Array
    total: Array
    heft: Array
    missing: Array

    def __add__(self, other: Tally) -> Tally:
        with np.errstate(all="ignore"):  # a sum that runs over is seen in the mean
            total = self.total + other.total
        return Tally(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            total,
            self.heft + other.heft,
            self.missing + other.missing,
        )

    def survey(self, pivot: Array, shrink: float, dtype: np.dtype[np.floating]) -> Survey:
        with np.errstate(all="ignore"):
            offset = self.total / np.where(self.heft > 0, self.heft, 1.0)
            mean = np.where(self.heft > 0, pivot + offset, 0.0) / shrink
        return Survey(
            low=self.low, high=self.high, mean=mean, missing=self.missing, total_weight=self.heft, dtype=dtype
        )


def tally(block: Array, part: Array | None, pivot: Array, shrink: float) -> Tally:
    """Of some rows (rows, columns) and their weights."""
    if part is None and shrink == 1.0:
        bottom, top, offsets = _ranges(block, pivot)
        if np.isfinite(offsets).all():
            heft = np.full(block.shape[1], float(len(block)))
            return Tally(bottom, top, offsets, heft, np.zeros(block.shape[1], dtype=np.int64))
    missing = np.isnan(block).sum(axis=0)
    some_infinite = False
    if part is not None and (part == 0).any():
        some_infinite = bool(np.isinf(block).any())
        block, part = block[part > 0], part[part > 0]
    low = np.fmin.reduce(block, axis=0, initial=np.inf)
    high = np.fmax.reduce(block, axis=0, initial=-np.inf)
    if some_infinite:
        high = np.full_like(high, np.inf)  # refused by the caller, though the row counts for nothing
    with np.errstate(all="ignore"):  # an infinite cell or an overflow is seen by the caller in the mean
        offset = np.multiply(block, shrink, dtype=np.float64) - pivot
    present = ~np.isnan(offset)
    counted = np.ones(len(block)) if part is None else part
    heft = np.where(present, counted[:, None], 0.0).sum(axis=0)
    with np.errstate(all="ignore"):
        total = np.where(present, offset * counted[:, None], 0.0).sum(axis=0)
    return Tally(low, high, total, heft, missing)


def _pass(raw: Sliceable, weight: Sliceable | None, shrink: float) -> Survey:
    n_columns = raw.shape[1]
    nothing = np.zeros(n_columns)
    met = Tally(nothing + np.inf, nothing - np.inf, nothing, nothing, np.zeros(n_columns, dtype=np.int64))
    pivot = first_values(raw) * shrink
    for start in range(0, raw.shape[0], BLOCK_ROWS):
        part = None if weight is None else weight[start : start + BLOCK_ROWS]
        met = met + tally(raw[start : start + BLOCK_ROWS], part, pivot, shrink)
    return met.survey(pivot, shrink, float_type(raw))


def _ranges(block: Array, pivot: Array) -> tuple[Array, Array, Array]:
    """Smallest and largest value and sum of `value - pivot`; the compiled kernel wants rows without gaps."""
    ranges = kernels.column_ranges if block.flags.c_contiguous else plain.column_ranges
    with np.errstate(all="ignore"):  # what is infinite or runs over is seen in the sum
        return ranges(block, pivot)


def float_type(raw: Sliceable) -> np.dtype[np.floating]:
    return np.dtype(np.float32) if raw.dtype == np.float32 else np.dtype(np.float64)


def first_values(raw: Sliceable) -> Array:
    """The first finite value of each column, 0 where there is none (or none in the first rows)."""
    head = raw[:PIVOT_ROWS].astype(np.float64)
    finite = np.isfinite(head)
    rows = finite.argmax(axis=0) if len(head) else np.zeros(raw.shape[1], dtype=np.intp)
    columns = np.arange(raw.shape[1])
    return np.where(finite[rows, columns], head[rows, columns], 0.0) if len(head) else np.zeros(raw.shape[1])


def encoding_of(
    raw: Sliceable,
    facts: Survey,
    *,
    scale: str | None = None,
    weight: Sliceable | None = None,
) -> Encoding:
    """The encoding for surveyed numbers; `scale="standard"` adds one factor per column."""
    check_scale(scale)
    power = power_for(facts)
    centre = centre_about(facts, power, _middle_of(raw, facts, power, weight) if facts.width.any() else None)
    encoding = Encoding(power, centre)
    if scale is None:
        return encoding
    return Encoding(power, centre, _factor(raw, facts, encoding, weight))


def check_scale(scale: str | None) -> None:
    if scale not in (None, "standard"):
        given = Option("scale", scale)
        raise UsageError("bad-scale", f"{given} is not known", do='Use None or "standard"', options=[given])


def power_for(facts: Survey) -> float:
    """Power of two that brings the widest range into [1/2, 1), kept where it and its inverse are finite."""
    widest = float(facts.width.max(initial=0.0))
    limit = LARGEST_POWER[facts.dtype]
    present = facts.high >= facts.low
    farthest = float(np.maximum(np.abs(facts.low), np.abs(facts.high))[present].max(initial=0.0))
    if widest == 0.0:
        return float(np.ldexp(1.0, max(-limit, min(-int(np.frexp(farthest)[1]), limit))))
    exponent = -(int(np.frexp(widest)[1]) + 1)
    # A constant column may lie so far out that the power of the others would make it overflow, or leave what a model
    # file holds.
    room = min(limit, FARTHEST_CONSTANT) - int(np.frexp(farthest)[1])
    return float(np.ldexp(1.0, max(-limit, min(exponent, limit, room))))


def centre_about(facts: Survey, power: float, middle_and_spread: tuple[Array, Array] | None) -> Array:
    """A location per column in encoded units, rounded to a short dyadic number: the mean, or with far outliers the
    median."""
    location, width = facts.mean * power, facts.width * (2 * power)
    present = facts.high >= facts.low
    location[~present] = 0.0
    location = np.clip(
        location, np.where(present, facts.low * power, 0), np.where(present, facts.high * power, 0)
    )
    if middle_and_spread is not None:
        middle, spread = middle_and_spread
        heavy = (spread > 0) & (width > HEAVY_RANGE * spread)
        location, width = np.where(heavy, middle, location), np.where(heavy, 8 * spread, width)
    step = np.ldexp(1.0, np.frexp(np.where(width > 0, width, 1.0))[1] - 1) / STEPS_IN_RANGE
    # Below the resolution of the numbers themselves a shorter step has no meaning.
    step = np.maximum(step, np.spacing(np.abs(location).astype(facts.dtype)).astype(np.float64))
    # floor(x + 1/2), not round-half-even: shifting the data by a step must shift the centre by that step. The last
    # digits of a mean are those of the order of the rows.
    place = location / step + 0.5
    rounded = np.where(np.abs(place - np.rint(place)) < NEAR_STEP, np.rint(place), np.floor(place)) * step
    return np.asarray(np.where(width > 0, rounded, location))


def is_doubtful(facts: Survey, power: float, spread: Array) -> bool:
    """Whether a column may have far outliers, judged by the spread in some rows of the table."""
    return bool((facts.width * (2 * power) * DOUBTFUL > HEAVY_RANGE * spread)[facts.width > 0].any())


def _middle_of(raw: Sliceable, facts: Survey, power: float, weight: Sliceable | None) -> tuple[Array, Array]:
    """Weighted median and robust spread of some rows: evenly through the table, or by what they say."""
    n_rows = raw.shape[0]
    middle, spread = middle_and_spread(raw, power, weight, middle_rows(n_rows))
    if n_rows <= SAMPLE_ROWS or not is_doubtful(facts, power, spread):
        return middle, spread
    keys = [number_keys(raw[start : start + BLOCK_ROWS], power) for start in range(0, n_rows, BLOCK_ROWS)]
    return middle_and_spread(raw, power, weight, content_rows(np.concatenate(keys)))


@dataclass(frozen=True)
class Spread:
    """How far cells lie from the mean of their column: what is needed for it, and the sums that tell."""

    encoding: Encoding
    mean: Array  # encoded
    unit: Array  # each column in units of its own range, so that squares of small columns do not vanish

    @classmethod
    def about(cls, facts: Survey, encoding: Encoding) -> Spread:
        width = facts.width * (2 * encoding.power)
        exponent = -np.frexp(np.where(width > 0, width, 1.0))[1]
        unit = np.ldexp(1.0, np.minimum(exponent, np.finfo(np.float64).maxexp - 1))
        low, high = (np.asarray(ends, dtype=np.float64) for ends in (facts.low, facts.high))
        # The last digit of a mean may lie outside, and the power may be larger than a double has digits.
        mean = np.where(high >= low, np.clip(facts.mean, low, np.maximum(low, high)), facts.mean)
        return cls(encoding, mean * encoding.power - encoding.centre, unit)

    def sums(self, block: Array, weight: Array | None) -> Array:
        """Sums of offsets and of their squares (2, columns) over some rows."""
        block = block.astype(np.float64)
        block = (block * self.encoding.power - self.encoding.centre) - self.mean
        block[np.isnan(block)] = 0.0
        if weight is not None:  # rows that do not count may lie beyond the range that the unit is made for
            block[weight == 0] = 0.0
        block *= self.unit
        heft = 1.0 if weight is None else weight[:, None]
        return np.stack([(block * heft).sum(axis=0), (block * block * heft).sum(axis=0)])

    def factor(self, facts: Survey, sums: Array) -> Array:
        """One over the population standard deviation of each encoded column; 0 marks a constant column."""
        first, second = sums
        total = np.where(facts.total_weight > 0, facts.total_weight, 1.0)
        deviation = np.sqrt(np.maximum(second / total - (first / total) ** 2, 0.0))
        deviation = short(deviation)
        varies = (facts.width > 0) & (deviation > 0)
        with np.errstate(over="ignore"):  # cut at the largest number below
            factor = np.divide(self.unit, deviation, out=np.zeros_like(self.unit), where=varies)
        return np.asarray(np.minimum(factor, np.finfo(facts.dtype).max))


def _factor(raw: Sliceable, facts: Survey, encoding: Encoding, weight: Sliceable | None) -> Array:
    spread = Spread.about(facts, encoding)
    sums = np.zeros((2, raw.shape[1]))
    for start in range(0, raw.shape[0], BLOCK_ROWS):
        here = slice(start, start + BLOCK_ROWS)
        sums += spread.sums(raw[here], None if weight is None else weight[here])
    return spread.factor(facts, sums)


def short(values: Array) -> Array:
    """Thirty-six binary digits of each value: weights and repeated rows differ in later ones, and starts order rows by
    the bits of their cells.

    >>> float(short(np.array([1 / 3]))[0])
    0.33333333333575865
    """
    digits, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.round(np.ldexp(digits, SHORT_DIGITS)), exponent - SHORT_DIGITS))


def precision_cautions(facts: Survey, names: Sequence[str] | None = None) -> list[Caution]:
    """Warnings for columns whose offset leaves too few representable values between smallest and largest."""
    far = np.maximum(np.abs(facts.low), np.abs(facts.high))
    with np.errstate(all="ignore"):  # a column without cells is no concern, nor is one without spread
        # Half of it, because the spacing of the largest number overflows.
        spacing = 2 * np.spacing((far / 2).astype(facts.dtype)).astype(np.float64)
        steps = np.where(spacing > 0, 2 * facts.width / spacing, np.inf)
    few = (facts.width > 0) & (steps < FEW_STEPS) & (far > np.finfo(facts.dtype).tiny * FEW_STEPS)
    return [
        Caution(
            "precision-exhausted",
            f"column {_name(names, j)} lies so far from zero that {facts.dtype} leaves at most "
            f"{int(steps[j]) + 1} distinct values in its range; subtract an offset before storing it",
        )
        for j in map(int, np.flatnonzero(few))
    ]


def _name(names: Sequence[str] | None, j: int) -> str:
    return repr(shown(names[j])) if names is not None else str(j)


def _infinite(raw: Sliceable, names: Sequence[str] | None) -> DataError:
    """The refusal of infinite cells, counted block by block."""
    columns: dict[int, int] = {}
    first: list[int] = []
    for start in range(0, raw.shape[0], BLOCK_ROWS):
        infinite = np.isinf(raw[start : start + BLOCK_ROWS])
        for j in np.flatnonzero(infinite.any(axis=0)):
            columns[int(j)] = columns.get(int(j), 0) + int(infinite[:, j].sum())
        rows = np.flatnonzero(infinite.any(axis=1))[: SHOWN_ROWS - len(first)]
        first.extend(int(r) + start for r in rows)
    return infinite_cells(columns, first, names)


def infinite_cells(counts: Mapping[int, int], first: Sequence[int], names: Sequence[str] | None) -> DataError:
    """The refusal of infinite cells: how many in which columns, and the first rows that have one."""
    columns = {j: count for j, count in counts.items() if count}
    parts = ", ".join(f"{count} in {_name(names, j)}" for j, count in sorted(columns.items())[:SHOWN_ROWS])
    more = f" and {len(columns) - SHOWN_ROWS} more columns" if len(columns) > SHOWN_ROWS else ""
    return DataError(
        "data-infinite",
        "1 cell is infinite" if sum(columns.values()) == 1 else f"{sum(columns.values())} cells are infinite",
        where=f"{parts}{more}; first in row {', '.join(map(str, first))}",
        do="Replace infinity by a number, or by an empty cell (NaN) if the value is not known",
    )

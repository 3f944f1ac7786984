"""How the columns of an assorted table are treated before they are clustered, and how a block is treated.

A number of few values becomes a category; a number that takes one value in a fifth of its cells becomes two
columns, "is that value" and the number where it is not; any other number is put on the scale, of six, that the
fit chooses, and standardised; a column that does not vary is set aside. All of it depends on the table alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ilk.errors import DataError
from ilk.table.block import Array, Block, Encoding

FEW_VALUES = 6
ATOM_SHARE = 0.2
ATOM_SHARE_IN_SAMPLE = 0.15  # in the sample where atoms are looked for; the exact share decides
SAMPLE_ROWS = 10_000
STEP_QUANTILE = 0.05  # of the gaps between distinct values: the recording step
LEVEL = "(missing)"


@dataclass(frozen=True)
class Scale:
    """A scale that depends on neither shift nor unit: log((x - low)/deviation + shift) or its mirror image."""

    side: str
    shift: float = 0.0

    def place(self, x: Array, number: Number) -> Array:
        """Values on this scale; values outside the range of the training table count as its ends."""
        if self.side == "plain":
            return x
        return np.log(self._room(x, number)) * (1.0 if self.side == "low" else -1.0)

    def log_slope(self, x: Array, number: Number) -> Array:
        """Log of the derivative of `place`."""
        if self.side == "plain":
            return np.zeros_like(x)
        return np.asarray(-np.log(self._room(x, number)) - np.log(number.deviation))

    def _room(self, x: Array, number: Number) -> Array:
        x = np.clip(x, number.low, number.high)
        gap = x - number.low if self.side == "low" else number.high - x
        return np.asarray(gap / number.deviation + self.shift)


SCALES = (
    Scale("plain"),
    Scale("low", 0.05),
    Scale("low", 0.2),
    Scale("low", 1.0),
    Scale("high", 0.2),
    Scale("high", 1.0),
)
PLAIN = 0


@dataclass(frozen=True)
class Number:
    """A number that stays one: where it comes from and what is known of it, in encoded units.

    `weight` is that of its observed cells, `step` its recording step; `centre`, `spread` and `log_jacobian` hold
    one figure per scale: mean and deviation there, and sum over rows of the log of d standardised / d user's value.
    """

    name: str
    source: int
    atom: float | None = None
    low: float = 0.0
    high: float = 0.0
    deviation: float = 1.0
    weight: float = 0.0
    step: float = 0.0
    centre: tuple[float, ...] = ()
    spread: tuple[float, ...] = ()
    log_jacobian: tuple[float, ...] = ()

    def standardised(self, x: Array, scale: int) -> Array:
        """Encoded values on a scale, with mean 0 and deviation 1 over the training table."""
        return np.asarray((SCALES[scale].place(x, self) - self.centre[scale]) / self.spread[scale])

    def least_variance(self, scale: int) -> float:
        """The variance below which a cell would be denser than one per recording step, standardised."""
        slope = np.exp(self.log_jacobian[scale] / self.weight)
        return float((self.step * slope) ** 2 / (2 * np.pi))

    def in_words(self, scale: int) -> str:
        if SCALES[scale].side == "plain":
            return "as it is"
        reach = "above its smallest" if SCALES[scale].side == "low" else "below its largest"
        return f"logarithm of the distance {reach} value, plus {SCALES[scale].shift:g} deviations"


@dataclass(frozen=True)
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
class Plan:
    """The treatment of a table: its numbers, then its categories; and the columns set aside, with the reason."""

    numbers: tuple[Number, ...]
    categories: tuple[Category, ...]
    set_aside: tuple[tuple[str, str], ...]
    total_weight: float
    power: float = 1.0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in (*self.numbers, *self.categories))

    @cached_property
    def level_start(self) -> Array:
        sizes = [len(column.names) for column in self.categories]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def level_weight(self) -> Array:
        return np.array([w for column in self.categories for w in column.weight], dtype=np.float64)

    def weighing(self, share: float) -> Plan:
        """The plan for a sample that holds `share` of the table's weight."""
        numbers = tuple(
            replace(n, weight=n.weight * share, log_jacobian=tuple(v * share for v in n.log_jacobian))
            for n in self.numbers
        )
        categories = tuple(replace(c, weight=tuple(w * share for w in c.weight)) for c in self.categories)
        return replace(
            self, numbers=numbers, categories=categories, total_weight=self.total_weight * share
        )

    def treated(self, block: Block, scales: Sequence[int]) -> Block:
        """The block as the model sees it: standardised numbers on the given scales, and codes."""
        pairs = zip(self.numbers, scales, strict=True)
        columns = [number.standardised(self.values(block, number), scale) for number, scale in pairs]
        raw = np.column_stack(columns) if columns else np.empty((block.n_rows, 0))
        codes = [category.codes(block) for category in self.categories]
        return Block(
            np.ascontiguousarray(raw),
            Encoding(1.0, np.zeros(len(columns))),
            block.first_row,
            block.weight,
            np.ascontiguousarray(np.column_stack(codes)) if codes else None,
            complete=not np.isnan(raw).any(),
        )

    def values(self, block: Block, number: Number) -> Array:
        """Encoded values of a number, NaN where missing or where it is its atom."""
        x = block.encoding.columns(np.array([number.source])).apply(block.raw[:, [number.source]])
        x = x[:, 0].astype(np.float64)
        if number.atom is not None:
            x[block.raw[:, number.source] == number.atom] = np.nan
        return np.asarray(x)


# --- from a table to its plan


@dataclass(frozen=True)
class _Seen:
    """What one pass tells: per number its range and the weights of the values watched, per category its levels."""

    low: Array
    high: Array
    weight: Array  # of all observed cells
    values: tuple[dict[float, float], ...]
    levels: tuple[Array, ...]
    missing: Array  # weight of the missing cells of each category
    total: float

    def __add__(self, other: _Seen) -> _Seen:
        return _Seen(
            np.fmin(self.low, other.low),
            np.fmax(self.high, other.high),
            self.weight + other.weight,
            tuple(_added(a, b) for a, b in zip(self.values, other.values, strict=True)),
            tuple(a + b for a, b in zip(self.levels, other.levels, strict=True)),
            self.missing + other.missing,
            self.total + other.total,
        )


@dataclass(frozen=True)
class _Watch:
    """Which values of the numbers to count: all while they are few, or the one that may be an atom."""

    few: tuple[bool, ...]
    atom: tuple[float | None, ...]
    n_levels: tuple[int, ...]


@dataclass(frozen=True)
class _Sums:
    """Arrays that add."""

    parts: tuple[Array, ...]

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


def assort(
    rows: Any,
    names: Sequence[str],
    level_names: Sequence[tuple[str, Sequence[str]]],
    *,
    missing: str = "ignore",
    few_values: int = FEW_VALUES,
    atom_share: float = ATOM_SHARE,
) -> Plan:
    """The plan of a table: `names` of its numbers, name and levels of each of its coded columns."""
    sample = rows.sample(SAMPLE_ROWS, 0)
    watch = _watch(sample, [len(levels) for _, levels in level_names], few_values)
    seen = rows.reduce(_visit_seen, watch)
    numbers: list[Number] = []
    categories: list[Category] = []
    aside: list[tuple[str, str]] = []
    for j, name in enumerate(names):
        values = seen.values[j]
        if not seen.weight[j] > 0 or not seen.low[j] < seen.high[j]:
            aside.append((name, "constant" if seen.weight[j] > 0 else "all missing"))
        elif watch.few[j] and len(values) <= few_values:
            keep = missing == "level" and seen.weight[j] < seen.total
            categories.append(_of_values(name, j, values, seen.total - seen.weight[j] if keep else 0.0))
        else:
            atom = watch.atom[j]
            share = 0.0 if atom is None else values.get(atom, 0.0) / seen.weight[j]
            if atom is not None and share >= atom_share:
                heft = (seen.weight[j] - values[atom], values[atom])
                label = f"{name} is {atom:g}"
                categories.append(Category(label, j, "atom", (0.0, atom), ("no", "yes"), heft))
            else:
                atom = None
            numbers.append(Number(name, j, atom, weight=float(seen.weight[j]) * (1 - share * (atom is not None))))
    for j, (name, levels) in enumerate(level_names):
        heft = seen.levels[j]
        lost = float(seen.missing[j]) if missing == "level" else 0.0
        if (heft > 0).sum() + (lost > 0) < 2:
            aside.append((name, "constant" if heft.any() else "all missing"))
            continue
        keys = np.flatnonzero(heft > 0)
        known = tuple(str(levels[key]) for key in keys)
        weights = tuple(float(w) for w in heft[keys])
        extra = ((LEVEL,), (lost,)) if lost > 0 else ((), ())
        codes = tuple(float(key) for key in keys)
        categories.append(
            Category(name, j, "levels", codes, known + extra[0], weights + extra[1], lost > 0)
        )
    if not numbers and not categories:
        raise DataError("no-columns", "no column varies", do="Give a table with a column that does")
    plan = Plan(tuple(numbers), tuple(categories), tuple(aside), seen.total, rows.encoding.power)
    return _measured(rows, sample, plan)


def _of_values(name: str, source: int, values: dict[float, float], lost: float) -> Category:
    keys = tuple(sorted(values))
    labels, weight = tuple(f"{key:g}" for key in keys), tuple(values[key] for key in keys)
    if lost > 0:
        return Category(name, source, "values", keys, (*labels, LEVEL), (*weight, lost), True)
    return Category(name, source, "values", keys, labels, weight)


def _watch(sample: Block, n_levels: Sequence[int], few_values: int) -> _Watch:
    few, atoms = [], []
    heft = sample.weights
    for j in range(sample.n_columns):
        x = sample.raw[:, j]
        here = ~np.isnan(x) & (heft > 0)
        values, inverse = np.unique(x[here], return_inverse=True)
        weight = np.bincount(inverse, weights=heft[here], minlength=len(values))
        few.append(len(values) <= few_values)
        commonest = int(np.argmax(weight)) if len(values) else 0
        likely = len(values) > 0 and weight[commonest] >= ATOM_SHARE_IN_SAMPLE * weight.sum()
        atoms.append(float(values[commonest]) if likely else None)
    return _Watch(tuple(few), tuple(atoms), tuple(n_levels))


def _visit_seen(watch: _Watch, block: Block) -> _Seen:
    heft = block.weights
    n = block.n_columns
    low, high, weight = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n)
    values: list[dict[float, float]] = []
    for j in range(n):
        x = block.raw[:, j]
        here = ~np.isnan(x) & (heft > 0)
        x, w = x[here].astype(np.float64), heft[here]
        if len(x):
            low[j], high[j], weight[j] = x.min(), x.max(), w.sum()
        if watch.few[j]:
            distinct, inverse = np.unique(x, return_inverse=True)
            counts = np.bincount(inverse, weights=w, minlength=len(distinct))
            pairs = list(zip(distinct.tolist(), counts.tolist(), strict=True))[:SAMPLE_ROWS]
            values.append(dict(pairs))
        else:
            atom = watch.atom[j]
            values.append({} if atom is None else {atom: float(w[x == atom].sum())})
    levels, missing = [], np.zeros(len(watch.n_levels))
    for j, n_levels in enumerate(watch.n_levels):
        assert block.codes is not None
        code = block.codes[:, j]
        there = code >= 0
        levels.append(np.bincount(code[there], weights=heft[there], minlength=n_levels).astype(np.float64))
        missing[j] = heft[~there].sum()
    return _Seen(low, high, weight, tuple(values), tuple(levels), missing, float(heft.sum()))


def _added(one: dict[float, float], other: dict[float, float]) -> dict[float, float]:
    total = dict(one)
    for key, weight in other.items():
        total[key] = total.get(key, 0.0) + weight
    return total


@dataclass(frozen=True)
class _Look:
    """A plan on its way: ranges and moments known so far."""

    plan: Plan
    scales: tuple[Scale, ...] = field(default=SCALES)


def _measured(rows: Any, sample: Block, plan: Plan) -> Plan:
    """The plan with range, deviation, recording step and scales of its numbers."""
    if not plan.numbers:
        return plan
    bounds = rows.reduce(_visit_bounds, plan)
    totals = rows.reduce(_visit_moments, plan).parts
    heft, first, second = totals
    numbers = []
    for j, number in enumerate(plan.numbers):
        mean = first[j] / heft[j]
        deviation = float(np.sqrt(max(second[j] / heft[j] - mean**2, 0.0)))
        x = plan.values(sample, number)
        gaps = np.diff(np.unique(x[~np.isnan(x) & (sample.weights > 0)]))
        step = float(np.quantile(gaps, STEP_QUANTILE)) if len(gaps) else 0.0
        low, high = float(bounds.low[j]), float(bounds.high[j])
        numbers.append(
            replace(number, low=low, high=high, deviation=deviation, weight=float(heft[j]), step=step)
        )
    plan = replace(plan, numbers=tuple(numbers))
    first, second, slope = rows.reduce(_visit_scales, plan).parts
    numbers = []
    for j, number in enumerate(plan.numbers):
        mean = first[j] / number.weight
        spread = np.sqrt(np.maximum(second[j] / number.weight - mean**2, 0.0))
        spread = np.where(spread > 0, spread, 1.0)
        jacobian = slope[j] + number.weight * (np.log(plan.power) - np.log(spread))
        numbers.append(
            replace(
                number,
                centre=tuple(mean.tolist()),
                spread=tuple(spread.tolist()),
                log_jacobian=tuple(jacobian.tolist()),
            )
        )
    return replace(plan, numbers=tuple(numbers))


@dataclass(frozen=True)
class _Bounds:
    low: Array
    high: Array

    def __add__(self, other: _Bounds) -> _Bounds:
        return _Bounds(np.fmin(self.low, other.low), np.fmax(self.high, other.high))


def _visit_bounds(plan: Plan, block: Block) -> _Bounds:
    counted = block.weights > 0
    columns = [plan.values(block, number)[counted] for number in plan.numbers]
    low = np.array([np.fmin.reduce(x, initial=np.inf) for x in columns])
    return _Bounds(low, np.array([np.fmax.reduce(x, initial=-np.inf) for x in columns]))


def _visit_moments(plan: Plan, block: Block) -> _Sums:
    sums = np.zeros((3, len(plan.numbers)))
    for j, number in enumerate(plan.numbers):
        x = plan.values(block, number)
        w = np.where(np.isnan(x), 0.0, block.weights)
        x = np.where(np.isnan(x), 0.0, x)
        sums[:, j] = w.sum(), w @ x, w @ (x * x)
    return _Sums(tuple(sums))


def _visit_scales(plan: Plan, block: Block) -> _Sums:
    """Sums over rows of value, square and log slope on every scale (numbers, scales)."""
    sums = np.zeros((3, len(plan.numbers), len(SCALES)))
    for j, number in enumerate(plan.numbers):
        x = plan.values(block, number)
        here = ~np.isnan(x) & (block.weights > 0)
        x, w = x[here], block.weights[here]
        for s, scale in enumerate(SCALES):
            t = scale.place(x, number)
            sums[:, j, s] = w @ t, w @ (t * t), w @ scale.log_slope(x, number)
    return _Sums(tuple(sums))

"""How the columns of an assorted table are treated before they are clustered.

A number of few values becomes a category, one of somewhat more where that costs less (`few.py`); a number that takes
one value in a fifth of its cells becomes two columns, "is that value" and the number where it is not; any other number
is put on the scale, of six, that the fit chooses, and standardised; a column that does not vary is set aside. All of
it depends on the table alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ilk.assorted.number_or_category import cheaper_as_levels
from ilk.assorted.scales import SCALES, Number, NumberColumns
from ilk.assorted.sparse import has_sparse_codes, sparse_plan
from ilk.assorted.transform import Category, TransformPlan
from ilk.errors import DataError
from ilk.table.block import Array, Block

FEW_VALUES, MOST_VALUES = 6, 15  # up to which a number is a category, and may be one
ATOM_SHARE = 0.2
ATOM_SHARE_IN_SAMPLE = 0.15  # in the sample where atoms are looked for; the exact share decides
SAMPLE_ROWS = 10_000
CELLS_AT_ONCE = 1 << 18  # of the numbers that are measured together: a few megabytes
STEP_QUANTILE = 0.05  # of the gaps between distinct values: the recording step
LEVEL = "(missing)"


@dataclass(frozen=True, kw_only=True)
class _ColumnFacts:
    """What one pass tells: per number its range and the weights of the values watched, per category its levels."""

    low: Array
    high: Array
    weight: Array  # of all observed cells
    values: tuple[dict[float, float], ...]
    levels: tuple[Array, ...]
    missing: Array  # weight of the missing cells of each category
    total: float

    def __add__(self, other: _ColumnFacts) -> _ColumnFacts:
        return _ColumnFacts(
            low=np.fmin(self.low, other.low),
            high=np.fmax(self.high, other.high),
            weight=self.weight + other.weight,
            values=tuple(_added(a, b) for a, b in zip(self.values, other.values, strict=True)),
            levels=tuple(a + b for a, b in zip(self.levels, other.levels, strict=True)),
            missing=self.missing + other.missing,
            total=self.total + other.total,
        )


@dataclass(frozen=True)
class _Watch:
    """Which values of the numbers to count: all while they are few, or the one that may be an atom."""

    few: tuple[bool, ...]
    atom: tuple[float | None, ...]
    n_levels: tuple[int, ...]


@dataclass(frozen=True)
class _ColumnSums:
    """Arrays that add."""

    parts: tuple[Array, ...]

    def __add__(self, other: _ColumnSums) -> _ColumnSums:
        return _ColumnSums(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


def assort(
    rows: Any,
    names: Sequence[str],
    level_names: Sequence[tuple[str, Sequence[str]]],
    *,
    missing: str = "ignore",
    few_values: int = FEW_VALUES,
    most_values: int = MOST_VALUES,
    atom_share: float = ATOM_SHARE,
) -> TransformPlan:
    """The plan of a table: `names` of its numbers, name and levels of each of its coded columns."""
    if has_sparse_codes(rows):
        return sparse_plan(rows, [name for name, _ in level_names])
    sample = rows.sample(SAMPLE_ROWS, 0)
    watch = _watch(sample, [len(levels) for _, levels in level_names], max(few_values, most_values))
    seen = rows.reduce(_visit_seen, watch)
    numbers: list[Number] = []
    categories: list[Category] = []
    aside: list[tuple[str, str]] = []
    for j, name in enumerate(names):
        values = seen.values[j]
        if not seen.weight[j] > 0 or not seen.low[j] < seen.high[j]:
            aside.append((name, "constant" if seen.weight[j] > 0 else "all missing"))
            continue
        atom = watch.atom[j]
        share = 0.0 if atom is None else values.get(atom, 0.0) / seen.weight[j]
        atom = atom if share >= atom_share else None
        if watch.few[j] and (
            len(values) <= few_values
            or (len(values) <= most_values and cheaper_as_levels(values, atom, STEP_QUANTILE))
        ):
            keep = missing == "level" and seen.weight[j] < seen.total
            categories.append(_of_values(name, j, values, seen.total - seen.weight[j] if keep else 0.0))
        else:
            if atom is not None:
                split = (seen.weight[j] - values[atom], values[atom])
                label = f"{name} is {atom:g}"
                categories.append(
                    Category(
                        name=label,
                        source=j,
                        kind="atom",
                        keys=(0.0, atom),
                        names=("no", "yes"),
                        weight=split,
                        of=name,
                    )
                )
            heft = float(seen.weight[j]) * (1 - share * (atom is not None))
            numbers.append(
                Number(
                    name=name,
                    source=j,
                    atom=atom,
                    unit=min(float(rows.encoding.unit[j]), sys.float_info.max),
                    weight=heft,
                )
            )
    for j, (name, levels) in enumerate(level_names):
        heft = seen.levels[j]
        lost = float(seen.missing[j]) if missing == "level" else 0.0
        if (heft > 0).sum() + (lost > 0) < 2:
            aside.append((name, "constant" if heft.any() else "all missing"))
            continue
        keys = np.flatnonzero(heft > 0)
        known = tuple(str(levels[int(key)]) for key in keys)
        weights = tuple(float(w) for w in heft[keys])
        extra = ((LEVEL,), (lost,)) if lost > 0 else ((), ())
        codes = tuple(float(key) for key in keys)
        categories.append(
            Category(
                name=name,
                source=j,
                kind="levels",
                keys=codes,
                names=known + extra[0],
                weight=weights + extra[1],
                missing_level=lost > 0,
            )
        )
    if not numbers and not categories:
        raise DataError("no-columns", "no column varies", do="Give a table with a column that does")
    plan = TransformPlan(tuple(numbers), tuple(categories), tuple(aside), seen.total)
    return _measured(rows, sample, plan)


def _of_values(name: str, source: int, values: dict[float, float], lost: float) -> Category:
    keys = tuple(sorted(values))
    labels, weight = tuple(f"{key:g}" for key in keys), tuple(values[key] for key in keys)
    if lost > 0:
        return Category(
            name=name,
            source=source,
            kind="values",
            keys=keys,
            names=(*labels, LEVEL),
            weight=(*weight, lost),
            missing_level=True,
        )
    return Category(name=name, source=source, kind="values", keys=keys, names=labels, weight=weight)


def _watch(sample: Block, n_levels: Sequence[int], few_values: int) -> _Watch:
    few: list[bool] = []
    atoms: list[float | None] = []
    heft, many = sample.weights, _many_values(sample, few_values)
    for j in range(sample.n_columns):
        if many[j]:
            few.append(False)
            atoms.append(None)
            continue
        x = sample.raw[:, j]
        here = ~np.isnan(x) & (heft > 0)
        values, inverse = np.unique(x[here], return_inverse=True)
        weight = np.bincount(inverse, weights=heft[here], minlength=len(values))
        few.append(len(values) <= few_values)
        commonest = int(np.argmax(weight)) if len(values) else 0
        likely = len(values) > 0 and weight[commonest] >= ATOM_SHARE_IN_SAMPLE * weight.sum()
        atoms.append(float(values[commonest]) if likely else None)
    return _Watch(tuple(few), tuple(atoms), tuple(n_levels))


def _many_values(sample: Block, few_values: int) -> Array:
    """Columns without gaps of more than a few values, none of which comes often; all at once, where rows count one
    each."""
    n_often = int(np.ceil(ATOM_SHARE_IN_SAMPLE * sample.n_rows))
    if n_often < 2 or not (sample.weights == 1).all():
        return np.zeros(sample.n_columns, dtype=bool)
    many = np.zeros(sample.n_columns, dtype=bool)
    for here in _column_batches(sample.n_columns, sample.n_rows):
        ordered = np.sort(sample.raw[:, here].T, axis=1)  # NaN comes last
        n_values = 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
        often = (ordered[:, n_often - 1 :] == ordered[:, : 1 - n_often]).any(axis=1)
        many[here] = ~np.isnan(ordered[:, -1]) & (n_values > few_values) & ~often
    return many


def _column_batches(n_columns: int, n_rows: int) -> Iterator[slice]:
    """So many columns at a time that their cells stay near: of few rows, many."""
    n_at_once = max(1, CELLS_AT_ONCE // max(n_rows, 1))
    for start in range(0, n_columns, n_at_once):
        yield slice(start, min(start + n_at_once, n_columns))


def _visit_seen(watch: _Watch, block: Block) -> _ColumnFacts:
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
    return _ColumnFacts(
        low=low,
        high=high,
        weight=weight,
        values=tuple(values),
        levels=tuple(levels),
        missing=missing,
        total=float(heft.sum()),
    )


def _added(one: dict[float, float], other: dict[float, float]) -> dict[float, float]:
    total = dict(one)
    for key, weight in other.items():
        total[key] = total.get(key, 0.0) + weight
    return total


def _measured(rows: Any, sample: Block, plan: TransformPlan) -> TransformPlan:
    """The plan with range, deviation, recording step and scales of its numbers."""
    if not plan.numbers:
        return plan
    bounds = rows.reduce(_visit_bounds, plan)
    totals = rows.reduce(_visit_moments, plan).parts
    heft, first, second = totals
    numbers, aside = [], list(plan.set_aside)
    steps = _steps(sample, plan)
    mean = first / heft
    deviations = _short(np.sqrt(np.maximum(second / heft - mean**2, 0.0)))
    for j, number in enumerate(plan.numbers):
        low, high = float(bounds.low[j]), float(bounds.high[j])
        if not high > low:
            aside.append((number.name, "constant"))
            continue
        deviation = (
            float(deviations[j]) or (high - low) / 2
        )  # where a square has lost the digits of the range
        step = float(steps[j]) / number.unit
        numbers.append(
            replace(number, low=low, high=high, deviation=deviation, weight=float(heft[j]), step=step)
        )
    plan = replace(plan, numbers=tuple(numbers), set_aside=tuple(aside))
    first, second, slope = rows.reduce(_visit_scales, plan).parts
    weight, unit = (
        np.array([getattr(n, name) for n in plan.numbers])[:, None] for name in ("weight", "unit")
    )
    mean = first / weight
    spread = _short(np.sqrt(np.maximum(second / weight - mean**2, 0.0)))
    spread[spread == 0] = 1.0
    mean = _short(mean / spread) * spread
    jacobian = slope + weight * (np.log(unit) - np.log(spread))
    each = zip(plan.numbers, mean.tolist(), spread.tolist(), jacobian.tolist(), strict=True)
    return replace(
        plan,
        numbers=tuple(
            replace(number, centre=tuple(centre), spread=tuple(width), log_jacobian=tuple(log_slope))
            for number, centre, width, log_slope in each
        ),
    )


def _batches(plan: TransformPlan, block: Block) -> Iterator[tuple[slice, Array]]:
    """Values of the numbers (numbers, rows), batch by batch."""
    for here in _column_batches(len(plan.numbers), block.n_rows):
        yield here, plan.values_of(block, plan.numbers[here])


def _steps(sample: Block, plan: TransformPlan) -> Array:
    """Recording step of each number in encoded units: a low quantile of the gaps between its values, 0 without any."""
    steps, counted = np.zeros(len(plan.numbers)), sample.weights > 0
    for here, x in _batches(plan, sample):
        gaps = np.diff(np.sort(x[:, counted], axis=1), axis=1)  # NaN comes last
        n_gaps = (gaps > 0).sum(axis=1)
        for n in np.unique(n_gaps[n_gaps > 0]):
            alike = np.flatnonzero(n_gaps == n)
            there = gaps[alike]
            there = there[there > 0].reshape(len(alike), n)
            steps[here.start + alike] = np.quantile(there, STEP_QUANTILE, axis=1)
    return steps


def _short(values: Array) -> Array:
    """Nine digits: weights and repeated rows differ in later ones, and starts order rows by the bits of their cells.

    >>> _short(np.array([1 / 3])).tolist()
    [0.333333333]
    """
    text = "%.9g " * values.size % tuple(values.ravel().tolist())
    return np.array(text.split(), dtype=np.float64).reshape(values.shape)


@dataclass(frozen=True)
class _Bounds:
    low: Array
    high: Array

    def __add__(self, other: _Bounds) -> _Bounds:
        return _Bounds(np.fmin(self.low, other.low), np.fmax(self.high, other.high))


def _visit_bounds(plan: TransformPlan, block: Block) -> _Bounds:
    counted = block.weights > 0
    low, high = np.full((2, len(plan.numbers)), np.nan)
    for here, x in _batches(plan, block):
        low[here] = np.fmin.reduce(x[:, counted], axis=1, initial=np.inf)
        high[here] = np.fmax.reduce(x[:, counted], axis=1, initial=-np.inf)
    return _Bounds(low, high)


def _visit_moments(plan: TransformPlan, block: Block) -> _ColumnSums:
    sums = np.zeros((3, len(plan.numbers)))
    for here, x in _batches(plan, block):
        there = ~np.isnan(x) & (block.weights > 0)
        w, x = np.where(there, block.weights, 0.0), np.where(there, x, 0.0)
        sums[:, here] = w.sum(axis=1), _dot(w, x), _dot(w, x * x)
    return _ColumnSums(tuple(sums))


def _visit_scales(plan: TransformPlan, block: Block) -> _ColumnSums:
    """Sums over rows of value, square and log slope on every scale (numbers, scales)."""
    sums = np.zeros((3, len(plan.numbers), len(SCALES)))
    for batch, values in _batches(plan, block):
        there = ~np.isnan(values) & (block.weights > 0)
        seen = [(batch, values, block.weights)]
        if not there.all():
            each = zip(range(batch.start, batch.stop), values, there, strict=True)
            seen = [(slice(j, j + 1), x[here][None], block.weights[here]) for j, x, here in each]
        for here, x, w in seen:
            columns = NumberColumns.of(plan.numbers[here]).upright
            for s, scale in enumerate(SCALES):
                t = scale.place(x, columns)
                sums[:, here, s] = _dot(w, t), _dot(w, t * t), _dot(w, scale.log_slope(t, columns))
    return _ColumnSums(tuple(sums))


def _dot(one: Array, other: Array) -> Array:
    """Without BLAS, whose threads wait for each other over vectors of one block where the processors are busy."""
    return np.asarray((one * other).sum(axis=1))

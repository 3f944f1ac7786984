"""What each group is: its size, and the columns that set it apart, in the user's words and units.

Computed once from plain arrays; the terminal and the page print the same facts. Both kinds of columns are
put in order by one measure, the divergence of the group from the whole table in nats per row:

    number      log(s/s_g) + (s_g^2 + (m_g - m)^2) / (2 s^2) - 1/2     (two Gaussians with these moments)
    category    sum over levels of p_g log(p_g / p)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from math import ceil, isfinite, log, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilk.report.bins import batches, binned, each_column
from ilk.report.figures import letter, level_text, value_text
from ilk.report.groups import Fact, Group, Sign
from ilk.report.moments import GroupMoments, moments_of, moments_without_gaps

Array = NDArray[Any]

NOTABLE_SHIFT = 0.25  # of the table's standard deviation; below, a number reads as the same
NOTABLE_SHARE = 0.05  # change of a level's share below which it reads as the same
LARGER_FALL = 0.10  # a fall is shown only where it exceeds the largest rise by this
NAMING_SHARE = 0.80  # a level held by this share of the group gives the group its name
NAMING_RISE = 0.15  # ... if it is this much more frequent than in the table
NARROWEST = 0.01  # a group's spread counts as at least this part of the table's, so no divergence is infinite
MOST_DECIMALS = 6
LOOKED_AT, HEAD = 10_000, 50  # rows from which the decimals of a column are read; the first few tell of most


@dataclass(frozen=True)
class Described:
    """A column to describe: numbers with NaN, or level numbers with -1, where missing."""

    name: str
    values: Array
    levels: tuple[str, ...] | None = None
    used: bool = True
    clock: dict[str, Any] | None = None  # of dates and times of day
    poles: tuple[str, str] | None = None  # of a topic of a text: what high and low numbers are called
    cyclic: bool = False  # levels that come again in a circle are told together: Sat, Sun

    @property
    def is_number(self) -> bool:
        return self.levels is None


def describe(
    columns: Sequence[Described],
    labels: Array,
    k: int,
    *,
    weight: Array | None = None,
    silhouette: Sequence[float | None] | None = None,
    probability: Array | None = None,
    threads: int = 1,
) -> tuple[Group, ...]:
    """Facts of every group; `labels` holds 0 .. k-1, `probability` that of each row's own group.

    >>> size = Described("size", np.array([1.0, 1.2, 1.1, 9.0, 9.1]))
    >>> [group.name for group in describe([size], np.array([0, 0, 0, 1, 1]), 2)]
    ['low size', 'high size']
    """
    heft = np.ones(len(labels)) if weight is None else weight

    def told(batch: Sequence[Described]) -> list[list[Fact]]:
        return (_facts_of_numbers if batch[0].is_number else _facts_of_categories)(batch, labels, k, heft)

    together = _batches(columns, len(labels))
    of_columns = [*chain.from_iterable(each_column(told, together, len(labels), threads))]
    facts = [[of_column[g] for of_column in of_columns] for g in range(k)]
    ordered = [tuple(sorted(group, key=lambda fact: -fact.nats)) for group in facts]
    rows = np.bincount(labels, minlength=k)
    sizes = np.bincount(labels, weights=heft, minlength=k)
    total = float(sizes.sum())
    names = _names(ordered, {column.name: column.poles for column in columns if column.poles})
    sure = None
    if probability is not None:
        sure = np.bincount(labels, weights=heft * probability, minlength=k) / np.maximum(sizes, 1e-300)
    return tuple(
        Group(
            letter=letter(g),
            name=names[g],
            rows=int(rows[g]),
            weight=float(sizes[g]),
            share=float(sizes[g]) / total,
            silhouette=None if silhouette is None else silhouette[g],
            probability=None if sure is None else float(sure[g]),
            facts=ordered[g],
        )
        for g in range(k)
    )


def _batches(columns: Sequence[Described], n_rows: int) -> list[Sequence[Described]]:
    """Columns of one kind that follow each other, some at a time."""
    kinds = (list(run) for _, run in groupby(columns, lambda column: column.is_number))
    return [alike[some] for alike in kinds for some in batches(len(alike), n_rows)]


def _facts_of_numbers(batch: Sequence[Described], labels: Array, k: int, heft: Array) -> list[list[Fact]]:
    known = moments_without_gaps([column.values for column in batch], labels, heft, k)
    return [
        _number_facts(column, labels, k, heft, moments) for column, moments in zip(batch, known, strict=True)
    ]


def _number_facts(
    column: Described, labels: Array, k: int, heft: Array, moments: GroupMoments | None
) -> list[Fact]:
    """Of one column; of one without gaps the moments are known."""
    values, label, part = column.values.astype(np.float64, copy=False), labels, heft
    missing = [0.0] * k
    if moments is None:
        present = ~np.isnan(values)
        missing = _missing_shares(present, labels, k, heft)
        values, label, part = values[present], labels[present], heft[present]
    cells = np.bincount(label, minlength=k).tolist()
    if part.sum() == 0:
        return [_nothing_known(column, m, n) for m, n in zip(missing, cells, strict=True)]
    moments = moments or moments_of(values[None], label, part, k)[0]
    size, mean, spread = moments.size, moments.mean, moments.spread
    unit, middle, whole_mean, whole_spread = (
        moments.unit,
        moments.middle,
        moments.whole_mean,
        moments.whole_spread,
    )
    whole, decimals = settled(whole_mean * unit + middle, unit), decimals_of(values, whole_spread * unit)
    price = log(max(float(part.sum()), 2.0))  # two free parameters: 2 / 2 * log n
    facts = []
    for g in range(k):
        if size[g] == 0:
            facts.append(replace(_nothing_known(column, missing[g], cells[g]), whole=whole))
            continue
        nats = _gaussian_divergence(mean[g] - whole_mean, spread[g], whole_spread)
        shift = (mean[g] - whole_mean) / whole_spread if whole_spread else 0.0
        sign: Sign = "same" if abs(shift) <= NOTABLE_SHIFT else "up" if shift > 0 else "down"
        facts.append(
            Fact(
                column=column.name,
                type="number",
                used=column.used,
                nats=nats,
                distinctive=bool(nats * size[g] > price),
                sign=sign,
                value=settled(_within(float(mean[g]) * unit + middle, values), unit),
                whole=whole,
                category=None,
                decimals=decimals,
                spread=float(spread[g] * unit),
                whole_spread=whole_spread * unit,
                missing=missing[g],
                cells=cells[g],
                clock=column.clock,
            )
        )
    return facts


def _nothing_known(column: Described, missing: float, cells: int) -> Fact:
    """Of a column that a group, or the table, has no value of."""
    return Fact(
        column=column.name,
        type="number" if column.is_number else "category",
        used=column.used,
        nats=0.0,
        distinctive=False,
        sign="same",
        value=None,
        whole=None,
        missing=missing,
        cells=cells,
    )


def settled(value: float, unit: float) -> float:
    """Rounding left over where a mean is zero is not a value."""
    return 0.0 if abs(value) < 1e-12 * unit else value


def _within(mean: float, values: Array) -> float:
    """A mean of values is among them, whatever overflowed on the way."""
    return mean if np.isfinite(mean) else float(np.clip(mean, values.min(), values.max()))


def _gaussian_divergence(shift: float, spread: float, whole: float) -> float:
    if whole == 0:
        return 0.0
    ratio = max(spread / whole, NARROWEST)
    return max(0.0, float(-log(ratio) + (ratio**2 + (shift / whole) ** 2) / 2 - 0.5))


def _facts_of_categories(batch: Sequence[Described], labels: Array, k: int, heft: Array) -> list[list[Fact]]:
    return [_category_facts(column, labels, k, heft) for column in batch]


def _category_facts(column: Described, labels: Array, k: int, heft: Array) -> list[Fact]:
    assert column.levels is not None
    present = column.values >= 0
    n_levels = max(1, len(column.levels))

    def cell(run: slice) -> tuple[Array, Array]:
        there = present[run]
        return labels[run][there].astype(np.int64) * n_levels + column.values[run][there], heft[run][there]

    count = binned(len(labels), k * n_levels, cell).reshape(k, n_levels)
    missing = _missing_shares(present, labels, k, heft)
    cells = np.bincount(labels[present], minlength=k).tolist()
    total = float(count.sum())
    if total == 0:
        return [_nothing_known(column, m, n) for m, n in zip(missing, cells, strict=True)]
    whole = count.sum(axis=0) / total
    price = (np.count_nonzero(whole) - 1) / 2 * log(max(total, 2.0))
    facts = []
    for g in range(k):
        size = float(count[g].sum())
        if size == 0:
            facts.append(_nothing_known(column, missing[g], cells[g]))
            continue
        share = count[g] / size
        nats = _level_divergence(count[g], whole)
        told = moved_levels(share - whole, cyclic=column.cyclic)
        value, base = float(share[told].sum()), float(whole[told].sum())
        change = value - base
        sign: Sign = "same" if abs(change) < NOTABLE_SHARE else "up" if change > 0 else "down"
        facts.append(
            Fact(
                column=column.name,
                type="category",
                used=column.used,
                nats=nats,
                distinctive=bool(nats * size > price > 0),
                sign=sign,
                value=value,
                whole=base,
                category=", ".join(column.levels[level] for level in told),
                missing=missing[g],
                cells=cells[g],
            )
        )
    return facts


def _level_divergence(count: Array, whole: Array) -> float:
    """Smoothed by one row that looks like the whole table."""
    share = (count + whole) / (count.sum() + 1.0)
    there = whole > 0
    return max(0.0, float((share[there] * np.log(share[there] / whole[there])).sum()))


def moved_levels(change: Array, *, cyclic: bool) -> list[int]:
    """The level that rose most; the one that fell most only where it fell clearly further. Of weekdays and months all
    that rose half as much as the one that rose most."""
    rise, fall = int(change.argmax()), int(change.argmin())
    if cyclic:
        return [int(j) for j in np.flatnonzero((change >= change[rise] / 2) & (change > 0))] or [rise]
    clear = len(change) > 2 and -change[fall] > change[rise] + LARGER_FALL
    return [fall if clear else rise]


def _missing_shares(present: Array, labels: Array, k: int, heft: Array) -> list[float]:
    if present.all():
        return [0.0] * k
    size = np.bincount(labels, weights=heft, minlength=k)
    absent = np.bincount(labels[~present], weights=heft[~present], minlength=k)
    return [float(a / s) if s else 0.0 for a, s in zip(absent, size, strict=True)]


def decimals_of(values: Array, spread: float) -> int:
    """As many decimals as the column has, but no more than three significant digits of its spread, and so
    many that means of a narrow column of whole numbers can be told apart.

    >>> decimals_of(np.array([39.1, 40.0]), 5.46), decimals_of(np.array([3750.0, 3800.0]), 800.0)
    (1, 0)
    >>> decimals_of(np.array([1.0, 2.0, 4.0]), 1.2)
    1
    """
    looked = values[:: max(1, len(values) // LOOKED_AT)]
    spread = (
        min(max(spread, 1e-300), 1e300) if spread > 0 else 0.0
    )  # of the smallest numbers, 4 / spread is infinite
    most = MOST_DECIMALS if spread <= 0 else max(0, min(MOST_DECIMALS, 2 - int(np.floor(log10(spread)))))
    least = 0 if spread <= 0 else max(0, min(most, ceil(log10(4 / spread))))
    first = float(looked[0]) if len(looked) else 0.0
    for decimals in range(least, most):
        if not _one_has_decimals(first, decimals):
            continue
        if _has_decimals(looked[:HEAD], decimals) and _has_decimals(looked, decimals):
            return decimals
    return most


def _one_has_decimals(value: float, decimals: int) -> bool:
    """`_has_decimals` of one finite number; most columns of thousands need to be looked at no further."""
    raised = value * 10.0**decimals
    return not isfinite(raised) or abs(raised - round(raised)) <= 1e-9 * max(1.0, abs(raised))


def _has_decimals(values: Array, decimals: int) -> bool:
    """Whether all values have so many decimals or fewer."""
    with np.errstate(over="ignore", invalid="ignore"):
        raised = values * 10.0**decimals
        return bool(np.all(np.abs(raised - np.round(raised)) <= 1e-9 * np.maximum(1.0, np.abs(raised))))


def _names(groups: Sequence[Sequence[Fact]], topics: Mapping[str, tuple[str, str]]) -> list[str]:
    """Up to three parts each: levels the group holds, then numbers; one part more where names agree."""
    signs: dict[str, set[Sign]] = {}
    for fact in (fact for facts in groups for fact in facts if fact.type == "number" and fact.distinctive):
        signs.setdefault(fact.column, set()).add(fact.sign)
    between = {column for column, found in signs.items() if {"up", "down"} <= found}
    parts = [_name_parts(facts, between, topics) for facts in groups]
    lengths = [3] * len(parts)
    names = [", ".join(part[:3]) for part in parts]
    for _ in range(max((len(part) for part in parts), default=0)):
        again = [g for g, name in enumerate(names) if names.count(name) > 1 and lengths[g] < len(parts[g])]
        for g in again:
            lengths[g] += 1
            names[g] = ", ".join(parts[g][: lengths[g]])
        if not again:
            break
    return [name or "like the whole table" for name in names]


def _name_parts(facts: Sequence[Fact], between: set[str], topics: Mapping[str, tuple[str, str]]) -> list[str]:
    """A number near that of the table says something only where other groups are above and below; a topic names those
    that speak of it, or against it."""
    levels = [level_text(f.column, str(f.category)) for f in facts if f.type == "category" and _gives_name(f)]
    numbers = [f for f in facts if f.type == "number" and f.distinctive]
    told = [f for f in numbers if f.sign != "same" or f.column in between]
    spoken = [topics[f.column][f.sign == "down"] for f in numbers if f.column in topics and f.sign != "same"]
    rest = [f for f in sorted(told, key=lambda f: f.sign == "same") if f.column not in topics]
    return [*levels[:2], *filter(None, spoken), *map(_named, rest)]


def _named(fact: Fact) -> str:
    """A number as a part of a name: `high size`, `late signup`, `visit around 14:00`."""
    kind = None if fact.clock is None else fact.clock["kind"]
    if kind == "time":
        return f"{fact.column} around {value_text(fact.value, 0, fact.clock)}"
    return f"{_WORDS[kind][fact.sign]} {fact.column}"


_WORDS: dict[str | None, dict[Sign, str]] = {
    None: {"up": "high", "down": "low", "same": "middle"},
    "date": {"up": "late", "down": "early", "same": "middle"},
}


def _gives_name(fact: Fact) -> bool:
    return (
        fact.distinctive
        and fact.value is not None
        and fact.whole is not None
        and fact.value >= NAMING_SHARE
        and fact.value - fact.whole >= NAMING_RISE
    )

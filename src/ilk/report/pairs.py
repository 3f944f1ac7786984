"""Groups that no single column shows: the two columns that show them together, in words and as points to draw.

A pair counts for what both columns tell beyond each alone: the divergence of the group from the whole table in both,
less the divergences in each. Two numbers are taken as Gaussian with full covariances, so that stripes and crosses are
seen; with a category among them, both as levels (numbers in thirds), by the table of their counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log
from typing import Any

import numpy as np

from ilk.report.evidence import Evidence
from ilk.report.facts import NARROWEST, NOTABLE_SHIFT, Array, Described
from ilk.report.figures import level_text
from ilk.report.groups import Group, Pair
from ilk.report.moments import offsets
from ilk.report.plane import drawn_rows
from ilk.report.profile import edges_of

PLAIN = log(2)  # nats from which a single column shows a group
MOST_COLUMNS = 24  # the most relevant
MOST_LEVELS = 7  # of a category, the most frequent; the others are one
THIRDS = ("low", "middle", "high")
LEAST_SCATTER = 1e-4  # of a pair of numbers: 1 - r^2, so no divergence is infinite
ANOTHER_SLOPE = 0.3  # of a correlation from that of the table
MOST_DRAWN = 3
MOST_POINTS = 600
STEPS = 1000  # positions are whole numbers from 0 to this
GOLDEN = (0.618034, 0.754878)  # steps that fill a level evenly, across and up


@dataclass(frozen=True)
class _PairFound:
    """A pair of columns by their places; what both tell a group by, and how much of it neither tells alone."""

    places: tuple[int, int]
    nats: float
    together: float


def pairs_of(evidence: Evidence, groups: Sequence[Group]) -> list[Pair | None]:
    """For each group that no single column shows, the pair of columns that shows it best, if one does."""
    best = [max((fact.nats for fact in group.facts if fact.used), default=0.0) for group in groups]
    weak = [g for g, nats in enumerate(best) if nats < PLAIN]
    columns = _candidates(evidence, groups)
    made: list[Pair | None] = [None] * evidence.k
    if evidence.k < 2 or len(columns) < 2 or not weak:
        return made
    numbers, levels = _NumberPairs.of(columns, evidence, weak), _LevelPairs.of(columns, evidence, weak)
    for row, g in enumerate(weak):
        found = [f for f in (*numbers.found(row), *levels.found(row)) if f.together > best[g]]
        if found:
            top = max(found, key=lambda f: f.nats)
            by_numbers = all(columns[j].is_number for j in top.places)
            words = (numbers if by_numbers else levels).words(row, top.places)
            y, x = (columns[place].name for place in top.places)  # the more relevant is told by the other
            made[g] = Pair(columns=(x, y), words=words, nats=top.nats)
    return made


def _candidates(evidence: Evidence, groups: Sequence[Group]) -> list[Described]:
    """The columns used, the most relevant first."""
    worth: dict[str, float] = {}
    for group in groups:
        for fact in group.facts:
            worth[fact.column] = worth.get(fact.column, 0.0) + group.share * fact.nats
    used = [column for column in evidence.columns if column.used]
    return sorted(used, key=lambda column: -worth[column.name])[:MOST_COLUMNS]


def _price(free: float, size: Any, pairs: int) -> Any:
    """What parameters cost, and that the best of many pairs is taken."""
    return free / 2 * np.log(np.maximum(size, 2.0)) + log(max(pairs, 1))


@dataclass(frozen=True, eq=False)
class _PairMoments:
    """Of every pair of columns, over the rows that have both: weight, means, variances, covariance."""

    size: Array
    mean: Array  # [i, j]: of column i
    variance: Array
    covariance: Array

    @classmethod
    def of(cls, values: Array, there: Array, heft: Array) -> _PairMoments:
        weighed = there * heft[:, None]
        size = weighed.T @ there
        safe = np.maximum(size, 1e-300)
        mean = (values * heft[:, None]).T @ there / safe
        variance = np.maximum((values**2 * heft[:, None]).T @ there / safe - mean**2, 0.0)
        covariance = (values * heft[:, None]).T @ values / safe - mean * mean.T
        return cls(size, mean, variance, covariance)


@dataclass(frozen=True, eq=False)
class _NumberPairs:
    """Pairs of numbers: moments of the table and of the groups that are looked at."""

    names: list[str]
    places: list[int]
    whole: _PairMoments
    groups: list[_PairMoments]

    @classmethod
    def of(cls, columns: Sequence[Described], evidence: Evidence, weak: Sequence[int]) -> _NumberPairs:
        places = [j for j, column in enumerate(columns) if column.is_number]
        sample = evidence.sample
        values = np.empty((len(sample.place), len(places)))
        for at, j in enumerate(places):
            cells = columns[j].values[sample.place].astype(np.float64)
            known = cells[~np.isnan(cells)]
            start = float(known[0]) if len(known) else 0.0
            values[:, at] = np.nan
            values[~np.isnan(cells), at] = offsets(known, start)[0]
        there = (~np.isnan(values)).astype(np.float64)
        values = np.nan_to_num(values)
        moments = [
            _PairMoments.of(values[m], there[m], sample.heft[m])
            for m in (np.ones(len(values), dtype=bool), *(sample.label == g for g in weak))
        ]
        return cls([columns[j].name for j in places], places, moments[0], moments[1:])

    def found(self, row: int) -> list[_PairFound]:
        own, whole = self.groups[row], self.whole
        varies = whole.variance > 1e-24
        spread = np.where(varies, whole.variance, 1.0)
        ratio = np.maximum(own.variance / spread, NARROWEST**2)
        shift = (own.mean - whole.mean) / np.sqrt(spread)
        single = (ratio + shift**2 - 1 - np.log(ratio)) / 2
        slope, own_slope = self._correlation(whole), self._correlation(own)
        scatter = np.maximum(1 - slope**2, LEAST_SCATTER)
        own_scatter = np.maximum(1 - own_slope**2, LEAST_SCATTER)
        crossed = own_slope * np.sqrt(ratio * ratio.T) + shift * shift.T
        fit = (ratio + shift**2 + ratio.T + shift.T**2 - 2 * slope * crossed) / scatter
        both = (fit - 2 - np.log(ratio * ratio.T) - np.log(own_scatter / scatter)) / 2
        together = both - single - single.T
        n = len(self.places)
        clear = varies & varies.T & (together * own.size > _price(5, whole.size, n * (n - 1) // 2))
        return [
            _PairFound((self.places[i], self.places[j]), float(both[i, j]), float(together[i, j]))
            for i, j in zip(*np.nonzero(np.triu(clear, 1)), strict=True)
        ]

    @staticmethod
    def _correlation(moments: _PairMoments) -> Array:
        scale = np.sqrt(np.maximum(moments.variance * moments.variance.T, 1e-300))
        return np.asarray(np.clip(moments.covariance / scale, -1.0, 1.0))

    def words(self, row: int, places: tuple[int, int]) -> str:
        """Where the group lies beside the line of the table, or how its own runs."""
        j, i = (self.places.index(place) for place in places)
        x, y = self.names[i], self.names[j]
        own, whole = self.groups[row], self.whole
        slope = self._correlation(whole)[i, j]
        shift = [
            (own.mean[a, b] - whole.mean[a, b]) / np.sqrt(whole.variance[a, b]) for a, b in ((i, j), (j, i))
        ]
        beside = (shift[1] - slope * shift[0]) / np.sqrt(max(1 - slope**2, LEAST_SCATTER))
        if abs(beside) > NOTABLE_SHIFT:
            return f"{'high' if beside > 0 else 'low'} {y} for its {x}"
        own_slope = self._correlation(own)[i, j]
        if abs(own_slope - slope) > ANOTHER_SLOPE:
            return f"{y} {'rises' if own_slope > 0 else 'falls'} with {x}"
        return f"middle {y} for its {x}"


@dataclass(frozen=True, eq=False)
class _LevelPairs:
    """Pairs with a category: the tables of counts of the whole and of the groups that are looked at."""

    columns: Sequence[Described]
    names: list[list[str]]  # of the levels of each column
    starts: list[int]
    whole: Array
    groups: Array

    @classmethod
    def of(cls, columns: Sequence[Described], evidence: Evidence, weak: Sequence[int]) -> _LevelPairs:
        sample = evidence.sample
        cut = [_levels_of(column, column.values[sample.place]) for column in columns]
        if all(column.is_number for column in columns):
            return cls(columns, [], [], np.empty((0, 0)), np.empty((0, 0, 0)))
        marks = np.column_stack([codes[:, None] == np.arange(len(names)) for codes, names in cut]).astype(
            float
        )
        starts = np.concatenate([[0], np.cumsum([len(names) for _, names in cut])]).tolist()
        weighed = marks * sample.heft[:, None]
        own = [weighed[mine].T @ marks[mine] for mine in (sample.label == g for g in weak)]
        return cls(columns, [names for _, names in cut], starts, weighed.T @ marks, np.stack(own))

    def _part(self, i: int, j: int) -> tuple[slice, slice]:
        return slice(self.starts[i], self.starts[i + 1]), slice(self.starts[j], self.starts[j + 1])

    def found(self, row: int) -> list[_PairFound]:
        if not self.names:
            return []
        wanted = [
            (i, j)
            for i, j in combinations(range(len(self.columns)), 2)
            if not (self.columns[i].is_number and self.columns[j].is_number)
        ]
        made = []
        for i, j in wanted:
            own, whole = self.groups[row][self._part(i, j)], self.whole[self._part(i, j)]
            if own.sum() <= 0:
                continue
            both = _divergence(own, whole)
            together = both - sum(_divergence(own.sum(axis=a), whole.sum(axis=a)) for a in (0, 1))
            if together * own.sum() > _price(float(np.count_nonzero(whole)) - 1, whole.sum(), len(wanted)):
                made.append(_PairFound((i, j), both, together))
        return made

    def words(self, row: int, places: tuple[int, int]) -> str:
        """The combination that is most more frequent in the group than in the table."""
        own, whole = (m[self._part(*places)] for m in (self.groups[row], self.whole))
        rise = own / own.sum() - whole / whole.sum()
        a, b = np.unravel_index(int(rise.argmax()), rise.shape)
        first, second = (self.names[place][at] for place, at in zip(places, (a, b), strict=True))
        return f"{first} with {second}"


def _levels_of(column: Described, values: Array) -> tuple[Array, list[str]]:
    """Codes of a column and what each stands for: thirds of a number, the most frequent levels and the others."""
    if column.is_number:
        known = values[~np.isnan(values)]
        edges = np.quantile(known, [1 / 3, 2 / 3]) if len(known) else np.zeros(2)
        codes = np.where(np.isnan(values), -1, np.searchsorted(edges, values, side="left"))
        return codes, [f"{word} {column.name}" for word in THIRDS]
    levels = column.levels or ()
    count = np.bincount(values[values >= 0], minlength=len(levels))
    told = np.argsort(-count, kind="stable")[:MOST_LEVELS]
    place = np.full(len(levels) + 1, len(told))
    place[told], place[-1] = np.arange(len(told)), -1  # the last is that of a missing cell
    names = [level_text(column.name, levels[j]) for j in told]
    return place[values], [*names, f"another {column.name}"]


def _divergence(own: Array, whole: Array) -> float:
    """Of counts from those of the table, smoothed by one row that looks like it."""
    base = whole / max(float(whole.sum()), 1e-300)
    share = (own + base) / (own.sum() + 1.0)
    there = base > 0
    return float((share[there] * np.log(share[there] / base[there])).sum())


def drawn_pairs(evidence: Evidence, groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The pairs of columns that show groups, each with the rows on them; the one for most rows first."""
    shown: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        if group.pair is not None:
            shown.setdefault(group.pair.columns, []).append(group)
    order = sorted(shown, key=lambda pair: -sum(group.weight for group in shown[pair]))[:MOST_DRAWN]
    columns = {column.name: column for column in evidence.columns}
    return [
        {
            "columns": list(pair),
            "groups": [group.letter for group in shown[pair]],
            **_scatter([columns[name] for name in pair], evidence),
        }
        for pair in order
    ]


def _scatter(pair: Sequence[Described], evidence: Evidence) -> dict[str, Any]:
    sample = evidence.sample
    places = drawn_rows(evidence, MOST_POINTS)
    cells = [column.values[sample.place] for column in pair]
    there = np.all(
        [~np.isnan(c) if p.is_number else c >= 0 for p, c in zip(pair, cells, strict=True)], axis=0
    )
    places = places[there[places]]
    axes, at = [], []
    for turn, (column, values) in enumerate(zip(pair, cells, strict=True)):
        axis, position = (_along if column.is_number else _steps)(column, values[there], values[places], turn)
        axes.append({"column": column.name, **axis})
        at.append(np.round(STEPS * np.clip(position, 0.0, 1.0)).astype(int).tolist())
    points = {"x": at[0], "y": at[1], "group": sample.label[places].tolist()}
    return {"axes": axes, "points": points}


def _along(column: Described, known: Array, values: Array, turn: int) -> tuple[dict[str, Any], Array]:
    """Numbers on their range, from 0 to 1; far ends are at the border."""
    known = known.astype(np.float64)
    low, high = float(known.min()), float(known.max())
    edges, _ = edges_of(known, low, high)
    start, end = float(edges[0]), float(edges[-1])
    axis = {"from": start, "to": end, "categories": None}
    span = end / 2 - start / 2  # of halves: the range itself may be beyond all numbers
    away = values.astype(np.float64) / 2 - start / 2
    return axis, away / span if span > 0 else np.full(len(values), 0.5)


def _steps(column: Described, known: Array, values: Array, turn: int) -> tuple[dict[str, Any], Array]:
    """Levels side by side, the rows of one spread over it so that they can be seen."""
    codes, names = _levels_of(column, np.concatenate([values, known]))
    levels = [name.removeprefix(level_text(column.name, "")) for name in names]
    used = int(codes.max(initial=0)) + 1
    spread = (np.arange(len(values)) * GOLDEN[turn]) % 1.0
    axis = {"from": None, "to": None, "categories": levels[:used]}
    return axis, (codes[: len(values)] + 0.15 + 0.7 * spread) / used

"""The valley between two groups of rows: are the rows between them thin?

Both groups are projected on one line, and `dip * sqrt(n)` of their union says whether it has two modes there. On
uniform values, the worst that has one mode, the figure has its median at 0.36 and its 95 % point at 0.50 to 0.54,
whatever n. Numbers are projected on the discriminant direction of the two groups, of a far larger one only of the rows
that face the other; categories and mixed tables on the log-odds of the two groups, which for numbers with covariances
of their own would make modes where there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from ilk.fitting.start import in_cell_order
from ilk.random import stream
from ilk.selection.projection import Projection, deviation_within, faces, facing, mean_of
from ilk.selection.rounding import recording_step
from ilk.table.block import Array, Block

MOST_ROWS = 4000  # rows on which valleys are measured
RIDGE, RIDGE_ROWS = 0.02, 10.0  # share of the mean variance, whole up to so many rows a column
ODDS_JITTER = 0.3  # of the spread within groups: log-odds of categories take few values


# Squares of `dip * sqrt(n)` of uniform values: the 95 % point, and what is added with a tenfold number of columns
# (135,000 tables of 150 rows: 0.27 at 95 %, 0.36 at 99 %, 0.48 at 99.9 %, 0.59 at 99.99 %).
UNIFORM_SQUARE, TENFOLD = 0.27, 0.12

Scales = Callable[[Array], Array]


@dataclass(frozen=True)
class Thresholds:
    """Below `merge` two pieces are one group; from `clear` on a valley parts them beyond doubt."""

    merge: float
    clear: float

    def among(self, n_columns: int) -> Thresholds:
        """For a line that was chosen among many columns: the deepest of so many uniform ones lies below in 95 %."""
        deepest = float(np.sqrt(UNIFORM_SQUARE + TENFOLD * np.log10(max(n_columns, 1))))
        return replace(self, clear=max(self.clear, deepest))


NUMBERS = Thresholds(0.40, 0.55)
CATEGORIES = Thresholds(0.50, 0.60)


class Ground(Protocol):
    """Rows with the piece that each belongs to, on which valleys between sets of pieces are measured."""

    @property
    def thresholds(self) -> Thresholds: ...

    def project(self, one: Sequence[int], other: Sequence[int]) -> Projection: ...

    def distances(self, groups: Sequence[Sequence[int]]) -> Array:
        """How far groups lie from each other (groups, groups), to tell near pairs from far ones."""
        ...


@dataclass(frozen=True)
class PieceMoments:
    """Weight, sums and sum of squares of the rows of each piece."""

    size: Array
    sums: Array
    squares: Array

    @classmethod
    def of(cls, points: Array, label: Array, weight: Array) -> PieceMoments:
        sums = np.stack([np.bincount(label, weight * column) for column in points.T], axis=1)
        return cls(np.bincount(label, weight), sums, weight @ np.square(points))

    def distances(self, groups: Sequence[Sequence[int]]) -> Array:
        """Between the means of sets of pieces, columns in standard deviations within the sets."""
        size, sums = np.zeros(len(groups)), np.zeros((len(groups), self.sums.shape[1]))
        for number, pieces in enumerate(groups):
            there = [piece for piece in pieces if piece < len(self.size)]  # others have no rows here
            size[number], sums[number] = self.size[there].sum(), self.sums[there].sum(axis=0)
        mean = sums / np.maximum(size, 1e-300)[:, None]
        within = np.sqrt(np.maximum(self.squares - (sums * mean).sum(axis=0), 0.0) / self.size.sum())
        scaled = mean / np.where(within > 0, within, 1.0)
        square = np.square(scaled).sum(axis=1)
        return np.asarray(np.maximum(square[:, None] + square - 2 * scaled @ scaled.T, 0.0))


@dataclass(frozen=True, kw_only=True)
class NumberGround:
    """Rows of numbers: `points` in standard deviations, `spread` the same with ties pulled apart. Categories beside
    numbers are indicator columns, the last `n_levels`; `noise` then blurs the few values that they give the line."""

    points: Array
    spread: Array
    label: Array
    weight: Array
    thresholds: Thresholds = NUMBERS
    n_levels: int = 0
    noise: Array | None = None
    some_columns: bool = False  # those of the table in which the pieces differ
    by_several: Thresholds | None = None  # where no column alone bears a line, if that makes a difference

    @classmethod
    def of(
        cls,
        sample: Block,
        label: Array,
        *,
        seed: int,
        exact: bool = False,
        on_scales: Scales = np.asarray,
    ) -> NumberGround:
        """The rows of a sample and their pieces; `exact` keeps ties, where the groups are the distinct rows."""
        weight = sample.weights
        counted = (weight > 0) & (label >= 0)
        numbers, label, weight = filled(sample, seed)[counted], label[counted], weight[counted]
        points = on_scales(numbers)
        points, spread = in_deviations(
            points, points if exact else untied(numbers, seed, on_scales), weight=weight
        )
        return cls(points=points, spread=spread, label=label, weight=weight)

    @classmethod
    def of_mixed(
        cls, sample: Block, label: Array, *, seed: int, on_scales: Scales = np.asarray
    ) -> NumberGround:
        """Numbers and the levels of categories, as indicators."""
        numbers, weight = filled(sample, seed), sample.weights
        points, spread = in_deviations(on_scales(numbers), untied(numbers, seed, on_scales), weight=weight)
        (levels,) = in_deviations(indicators(sample), weight=weight)
        noise = stream(seed, "odds").standard_normal(len(label))
        return cls(
            points=np.hstack([points, levels]),
            spread=np.hstack([spread, levels]),
            label=label,
            weight=weight,
            thresholds=CATEGORIES,
            n_levels=levels.shape[1],
            noise=noise,
        )

    @property
    def width(self) -> int:
        """Numbers held for each row."""
        return int(self.points.shape[1])

    @cached_property
    def _rows_of(self) -> list[Array]:
        """The rows of each piece."""
        order = np.argsort(self.label, kind="stable")
        ends = np.searchsorted(self.label[order], np.arange(self.label.max(initial=-1) + 2))
        return [order[low:high] for low, high in pairwise(ends)]

    def _in(self, pieces: Sequence[int]) -> Array:
        """Whether each row belongs to one of some pieces."""
        found = np.zeros(len(self.label), dtype=bool)
        for piece in pieces:
            if piece < len(self._rows_of):
                found[self._rows_of[piece]] = True
        return found

    @cached_property
    def _moments(self) -> PieceMoments:
        return PieceMoments.of(self.points, self.label, self.weight)

    def distances(self, groups: Sequence[Sequence[int]]) -> Array:
        """Of means, in standard deviations within the groups."""
        return self._moments.distances(groups)

    def project(self, one: Sequence[int], other: Sequence[int]) -> Projection:
        first, second = self._in(one), self._in(other)
        if not first.any() or not second.any():
            return Projection(np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0))
        both = first | second
        whole = self._on_line(self._direction(first, second), both, second)
        near = np.zeros(len(both), dtype=bool)
        near[both] = faces(whole)
        if near.sum() == both.sum():
            return whole
        return facing(self._on_line(self._direction(first & near, second & near), both, second))

    def _on_line(self, direction: Array, both: Array, second: Array) -> Projection:
        """The rows of two groups on a line; where levels are among the columns, blurred as far as they make it."""
        position, of_second, weight = self.spread[both] @ direction, second[both], self.weight[both]
        if self.noise is not None:  # as wide as the part of the levels: numbers need no blur
            levels = slice(self.points.shape[1] - self.n_levels, None)
            stepped = self.spread[both][:, levels] @ direction[levels]
            deviation = deviation_within(stepped, of_second, weight)
            position = position + ODDS_JITTER * deviation * self.noise[both]
        return Projection(position, of_second, weight)

    def borne_by_one(self, one: Sequence[int], other: Sequence[int]) -> float:
        """Share of the squared gap between two groups, in deviations within them, that the best axis shows alone."""
        first, second = self._in(one), self._in(other)
        within, apart, _ = self._within_and_apart(first, second)
        direction = self._direction(first, second)
        spread = float(direction @ within @ direction)
        alone = np.square(apart) / np.maximum(np.diagonal(within), 1e-300)
        return float(alone.max()) * spread / max(float(direction @ apart) ** 2, 1e-300)

    def _direction(self, first: Array, second: Array) -> Array:
        """`(S_within + ridge)^-1 (mean_a - mean_b)`."""
        within, apart, total = self._within_and_apart(first, second)
        n_columns = len(apart)
        size = float(np.trace(within)) / n_columns
        if size <= 0:
            return apart
        ridge = RIDGE * size * min(1.0, RIDGE_ROWS * n_columns / total)
        return np.linalg.solve(within + ridge * np.eye(n_columns), apart)

    def _within_and_apart(self, first: Array, second: Array) -> tuple[Array, Array, float]:
        """Covariance within two groups, the difference of their means, and their weight."""
        scatter, means, total = 0.0, [], 0.0
        for group in (first, second):
            weight, points = self.weight[group], self.points[group]
            mean = mean_of(points, weight)
            away = points - mean
            scatter = scatter + (away * weight[:, None]).T @ away
            means.append(mean)
            total += float(weight.sum())
        return np.asarray(scatter) / total, np.asarray(means[0] - means[1]), total


@dataclass(frozen=True)
class OddsGround:
    """Rows of any kind by `score` (rows, pieces), the log of mixing share times density."""

    score: Array
    label: Array
    weight: Array
    seed: int
    thresholds: Thresholds = CATEGORIES

    @property
    def width(self) -> int:
        """Numbers held for each row."""
        return int(self.score.shape[1])

    @cached_property
    def _moments(self) -> PieceMoments:
        return PieceMoments.of(self.score, self.label, self.weight)

    def distances(self, groups: Sequence[Sequence[int]]) -> Array:
        """Of mean scores, in standard deviations within the groups."""
        return self._moments.distances(groups)

    def project(self, one: Sequence[int], other: Sequence[int]) -> Projection:
        first, second = np.isin(self.label, one), np.isin(self.label, other)
        both = first | second
        scores = self.score[both]
        odds = np.logaddexp.reduce(scores[:, list(other)], axis=1)
        odds = odds - np.logaddexp.reduce(scores[:, list(one)], axis=1)
        of_second, weight = second[both], self.weight[both]
        deviation = deviation_within(odds, of_second, weight)
        noise = stream(self.seed, "odds").standard_normal(len(odds))
        return facing(Projection(odds + ODDS_JITTER * deviation * noise, of_second, weight))


def in_deviations(*tables: Array, weight: Array) -> list[Array]:
    """Columns in units of the standard deviations that the first table has."""
    away = tables[0] - np.average(tables[0], axis=0, weights=weight)
    deviation = np.sqrt(np.average(away**2, axis=0, weights=weight))
    return [points / np.where(deviation > 0, deviation, 1.0) for points in tables]


def indicators(sample: Block) -> Array:
    """A column of 0 and 1 for each level of each category; a missing cell has the shares of the others."""
    assert sample.codes is not None
    made = []
    for code in sample.codes.T:
        known = code >= 0
        for level in range(int(code.max(initial=-1)) + 1):
            column = (code == level).astype(np.float64)
            if not known.all() and known.any():
                column[~known] = np.average(column[known], weights=sample.weights[known])
            made.append(column)
    return np.column_stack(made) if made else np.zeros((sample.n_rows, 0))


def canonical(sample: Block) -> Block:
    """The rows of a sample in the order of their cells, whole weights as repeated rows: what is drawn for a row then
    depends neither on where it stands, nor on its units, nor on whether it counts twice or stands there twice."""
    rows, weight = in_cell_order(sample), sample.weight
    if weight is not None and (weight == np.round(weight)).all() and weight.sum() <= MOST_ROWS:
        rows, weight = np.repeat(rows, weight[rows].astype(np.intp)), None
    return Block(
        sample.raw[rows],
        sample.encoding,
        weight=None if weight is None else weight[rows],
        codes=None if sample.codes is None else sample.codes[rows],
        complete=sample.complete,
    )


def filled(sample: Block, seed: int) -> Array:
    """Numbers of a sample; a missing cell takes a value drawn from its column, which parts no groups."""
    points = np.array(sample.numbers, dtype=np.float64)
    for j in np.flatnonzero(np.isnan(points).any(axis=0)):
        lost = np.isnan(points[:, j])
        known = points[~lost, j]
        if len(known):
            points[lost, j] = stream(seed, "filled", int(j)).choice(known, int(lost.sum()))
        else:
            points[:, j] = 0.0
    return points


def untied(numbers: Array, seed: int, on_scales: Scales = np.asarray) -> Array:
    """Numbers on their scales, the values of rounded columns spread over the half steps beside them: few values look
    like many modes. Steps are those of the user's units, and are evened out where a scale stretches them."""
    half = np.array([recording_step(column) / 2 for column in numbers.T])
    if not half.any():
        return np.asarray(on_scales(numbers))
    placed, low, high = (on_scales(numbers + side * half) for side in (0, -1, 1))
    low = np.where(low == placed, 2 * placed - high, low)  # a scale may end at the least or largest value
    high = np.where(high == placed, 2 * placed - low, high)
    draws = np.zeros(numbers.shape[::-1])
    for j in np.flatnonzero(half):  # of the others, both sides are the value
        draws[j] = stream(seed, "untied", int(j)).random(len(numbers))
    return np.asarray(low + (high - low) * draws.T)

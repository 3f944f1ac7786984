"""Valleys where axes are many for the rows: every row beside a line that was drawn without it.

In noise the direction between two group means pulls each row to its own side by D/n_a + D/n_b, against a spread of
sqrt(D/n_a + D/n_b): with 2,000 columns and 150 rows a gap of 7 spreads that means nothing. Means and counts without a
row follow from those with it, so this costs no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ilk.assorted.transform import TransformPlan
from ilk.random import stream
from ilk.selection.projection import Projection, deviation_within, facing
from ilk.selection.valley import (
    CATEGORIES,
    ODDS_JITTER,
    NumberGround,
    PieceMoments,
    Thresholds,
)
from ilk.table.block import Array

LEAST_VARIANCE = 1e-3  # within groups, of columns of variance 1
NOTHING = Projection(np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0))


@dataclass(frozen=True, kw_only=True)
class LeftOut(NumberGround):
    """Numbers and indicators on the diagonal discriminant of two groups:

    position_i = sum over axes of (b - a)/s2 (x_i - (a + b)/2),  a and b the group means without row i

    All of the values whose ties are pulled apart: a column that is constant in each group would hide the others.
    """

    def project(self, one: Sequence[int], other: Sequence[int]) -> Projection:
        first, second = np.isin(self.label, one), np.isin(self.label, other)
        if not first.any() or not second.any():
            return NOTHING
        both = first | second
        of_second, weight, x = second[both], self.weight[both], self.spread[both]
        a, b = (self._means_without(group, both) for group in (first, second))
        terms = (b - a) / self._within(first, second) * (x - (a + b) / 2)
        position = terms.sum(axis=1)
        if self.noise is not None:
            stepped = terms[:, terms.shape[1] - self.n_levels :].sum(axis=1)
            deviation = deviation_within(stepped, of_second, weight)
            position = position + ODDS_JITTER * deviation * self.noise[both]
        return facing(Projection(position, of_second, weight))

    def _means_without(self, group: Array, both: Array) -> Array:
        """The mean of a group without each row of both groups (rows, axes)."""
        total, weight = float(self.weight[group].sum()), self.weight[both]
        mean = np.average(self.spread[group], axis=0, weights=self.weight[group])
        own = np.where(group[both], weight, 0.0)[:, None]
        left = np.maximum(total - own, 1e-9)
        return np.asarray(mean + own / left * (mean - self.spread[both]))

    def _within(self, first: Array, second: Array) -> Array:
        """Variances about the means of the two groups."""
        squares, total = 0.0, 0.0
        for group in (first, second):
            weight, points = self.weight[group], self.spread[group]
            squares = squares + weight @ np.square(points - np.average(points, axis=0, weights=weight))
            total += float(weight.sum())
        return np.maximum(np.asarray(squares) / total, LEAST_VARIANCE)


@dataclass(frozen=True)
class LeftOutOdds:
    """Categories by the naive Bayes odds of two groups, the counts of each row taken off its own group:

    position_i = sum over its levels t of log((n_bt - w [i in b] + p_t)/(N_b - w [i in b] + 1)), less the same for a
    """

    levels: Array  # (rows, levels) 0 or 1
    share: Array  # (levels,) pooled
    label: Array
    weight: Array
    seed: int
    thresholds: Thresholds = CATEGORIES

    @classmethod
    def of(cls, codes: Array, plan: TransformPlan, label: Array, weight: Array, seed: int) -> LeftOutOdds:
        """Of the codes of a treated block whose categories a plan describes."""
        of = np.repeat(np.arange(len(plan.categories)), np.diff(plan.level_start))
        level = np.arange(len(of)) - plan.level_start[of]
        return cls((codes[:, of] == level).astype(np.float64), plan.level_share, label, weight, seed)

    @property
    def width(self) -> int:
        """Numbers held for each row."""
        return int(self.levels.shape[1])

    def distances(self, groups: Sequence[Sequence[int]]) -> Array:
        """Of shares of the levels, in standard deviations within the groups."""
        return PieceMoments.of(self.levels, self.label, self.weight).distances(groups)

    def project(self, one: Sequence[int], other: Sequence[int]) -> Projection:
        first, second = np.isin(self.label, one), np.isin(self.label, other)
        if not first.any() or not second.any():
            return NOTHING
        both = first | second
        of_second, weight = second[both], self.weight[both]
        a, b = (self._log_shares(group, both) for group in (first, second))
        odds = (self.levels[both] * (b - a)).sum(axis=1)
        deviation = deviation_within(odds, of_second, weight)
        noise = stream(self.seed, "odds").standard_normal(len(odds))
        return facing(Projection(odds + ODDS_JITTER * deviation * noise, of_second, weight))

    def _log_shares(self, group: Array, both: Array) -> Array:
        """Log shares of the levels in a group without each row of both groups (rows, levels)."""
        weight = self.weight[group]
        own = np.where(group[both], self.weight[both], 0.0)[:, None]
        counts = weight @ self.levels[group] - own * self.levels[both]
        return np.asarray(np.log((np.maximum(counts, 0.0) + self.share) / (float(weight.sum()) - own + 1)))

"""Two groups of rows on one line: how deep the dip between them is, and which rows of the larger face the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk.measures.dip import dip
from ilk.table.block import Array

# of the larger group, rows kept for each row of the smaller, and at least
MOST_UNEQUAL, LEAST_KEPT = 3.0, 30.0


@dataclass(frozen=True)
class Projection:
    """The rows of two groups on the line between them."""

    position: Array
    of_second: Array
    weight: Array

    @property
    def valley(self) -> float:
        """`dip * sqrt(n)`; 0 where a group has no rows."""
        if self.of_second.all() or not self.of_second.any():
            return 0.0
        return dip(self.position, self.weight) * float(np.sqrt(effective_rows(self.weight)))

    @property
    def fewest(self) -> float:
        """Rows of the smaller group."""
        return float(min(self.weight[self.of_second].sum(), self.weight[~self.of_second].sum()))

    @property
    def gap(self) -> float:
        """Distance of the two means in standard deviations within the groups; infinite where there is no spread."""
        sides = [(self.position[part], self.weight[part]) for part in (self.of_second, ~self.of_second)]
        if not all(len(position) for position, _ in sides):
            return 0.0
        means = [float(mean_of(position, weight)) for position, weight in sides]
        squares = sum(
            float(weight @ (position - mean) ** 2)
            for (position, weight), mean in zip(sides, means, strict=True)
        )
        within = np.sqrt(squares / float(self.weight.sum()))
        return abs(means[0] - means[1]) / within if within > 0 else np.inf


def facing(line: Projection) -> Projection:
    """The rows that `faces` tells alone."""
    keep = faces(line)
    return line if keep.all() else Projection(line.position[keep], line.of_second[keep], line.weight[keep])


def faces(line: Projection) -> Array:
    """Of a group with far more rows than the other only those that face it: an interval about its median.

    Thinned at random instead, the larger group would fall off in a step at the border.
    """
    position, of_second, weight = line.position, line.of_second, line.weight
    size = float(weight[~of_second].sum()), float(weight[of_second].sum())
    larger = of_second if size[1] > size[0] else ~of_second
    most = max(MOST_UNEQUAL * min(size), LEAST_KEPT)
    if min(size) == 0 or max(size) <= MOST_UNEQUAL * min(size) or max(size) <= most:
        return np.ones(len(position), dtype=bool)
    smaller = ~larger
    order = np.argsort(position[smaller])
    reached = np.cumsum(weight[smaller][order])
    middle = position[smaller][order][np.searchsorted(reached, reached[-1] / 2)]
    rows = np.flatnonzero(larger)
    near = rows[np.argsort(np.abs(position[rows] - middle), kind="stable")]
    keep: Array = smaller.copy()
    keep[near[np.cumsum(weight[near]) <= most]] = True
    return keep


def effective_rows(weight: Array) -> float:
    """How many rows the weights stand for: their sum where whole weights count repeats, else Kish's number.

    >>> effective_rows(np.array([2.0, 1.0])), effective_rows(np.array([0.5, 0.5]))
    (3.0, 2.0)
    """
    total = float(weight.sum())
    if (weight == np.round(weight)).all():
        return total
    return total**2 / float((weight**2).sum())


def deviation_within(position: Array, of_second: Array, weight: Array) -> float:
    """Standard deviation about the means of the two groups."""
    within = position.copy()
    for group in (of_second, ~of_second):
        if group.any():
            within[group] -= mean_of(position[group], weight[group])
    return float(np.sqrt(mean_of(within**2, weight))) if len(within) else 0.0


def mean_of(points: Array, weight: Array) -> Any:
    """As `np.average` of the rows, without what that spends on few rows: thousands of lines are measured."""
    return (points * (weight if points.ndim == 1 else weight[:, None])).sum(axis=0) / weight.sum()

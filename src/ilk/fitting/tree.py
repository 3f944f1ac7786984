"""The likelihood tree: groups merged two by two so that a Gaussian likelihood falls least (Fraley 1998).

The cost of a group is n log(|W / n| + (trace W + alpha) / n), its trace part letting groups of few rows compare
(Banfield and Raftery 1993). One run gives a partition for every K.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilk.table.block import Array

TREE_ROWS = 2000  # above, a tree is grown on a sample
TREE_WORK = 4e9  # rows^2 determinants of columns^3 operations


def tree_rows(n_columns: int) -> int:
    """How many rows a tree may have.

    >>> tree_rows(4), tree_rows(20)
    (2000, 707)
    """
    return min(TREE_ROWS, int((TREE_WORK / n_columns**3) ** 0.5))


@dataclass(frozen=True)
class Tree:
    """Merges in the order made: the group `second[i]` joins the group `first[i]` (numbers of their first rows)."""

    first: Array
    second: Array

    def cut(self, k: int) -> Array:
        """Labels 0 .. K-1 of the partition into K groups, by first row.

        >>> grow_tree(np.array([[0.0], [0.1], [5.0], [5.1]])).cut(2)
        array([0, 0, 1, 1])
        """
        n_rows = len(self.first) + 1
        group = np.arange(n_rows)
        for a, b in zip(self.first[: n_rows - k], self.second[: n_rows - k], strict=True):
            group[group == b] = a
        return np.unique(group, return_inverse=True)[1]


def tree_axes(numbers: Array) -> Array:
    """The rows as the tree wants them: standardised, then each principal axis divided by the square root of its
    singular value (full whitening gives worse trees)."""
    centred = numbers - numbers.mean(axis=0)
    deviation = centred.std(axis=0, ddof=1)
    centred = centred[:, deviation > 0] / deviation[deviation > 0]
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    keep = singular > singular[:1] * 1e-12
    return np.asarray(left[:, keep] * np.sqrt(singular[keep]))


def grow_tree(points: Array) -> Tree:
    """All merges from single rows to one group; ties go to the lowest numbers."""
    n_rows = len(points)
    state = _Groups(points)
    first, second = np.empty(n_rows - 1, np.intp), np.empty(n_rows - 1, np.intp)
    for merge in range(n_rows - 1):
        first[merge], second[merge] = state.merge_cheapest()
    return Tree(first, second)


class _Groups:
    """Groups still apart: size, mean, scatter and cost of each, and the cheapest partner with a higher number."""

    def __init__(self, points: Array) -> None:
        n, d = points.shape
        total = float(np.square(points - points.mean(axis=0)).sum())
        self.alpha = total / (n * d)
        self.size, self.mean = np.ones(n), points.copy()
        self.scatter = np.zeros((n, d, d))
        self.cost = self._cost(self.size, self.scatter)
        self.alive = np.ones(n, dtype=bool)
        self.partner, self.rise = np.full(n, -1), np.full(n, np.inf)
        for row in range(n - 1):
            self._find_partner(row)

    def _cost(self, size: Array, scatter: Array) -> Array:
        trace = np.trace(scatter, axis1=-2, axis2=-1)
        volume = np.maximum(np.linalg.det(scatter / size[..., None, None]), 0.0)
        return np.asarray(size * np.log(volume + (trace + self.alpha) / size))

    def _rises(self, group: int, others: Array) -> Array:
        """By how much the total cost rises when `group` merges with each of `others`."""
        size = self.size[group] + self.size[others]
        away = self.mean[others] - self.mean[group]
        share = self.size[group] * self.size[others] / size
        between = share[:, None, None] * away[:, :, None] * away[:, None, :]
        joined = self._cost(size, self.scatter[group] + self.scatter[others] + between)
        return np.asarray(joined - self.cost[group] - self.cost[others])

    def _find_partner(self, group: int) -> None:
        others = np.flatnonzero(self.alive[group + 1 :]) + group + 1
        if not len(others):
            self.partner[group], self.rise[group] = -1, np.inf
            return
        rises = self._rises(group, others)
        best = int(np.argmin(rises))
        self.partner[group], self.rise[group] = others[best], rises[best]

    def merge_cheapest(self) -> tuple[int, int]:
        a = int(np.argmin(self.rise))
        b = int(self.partner[a])
        size = self.size[a] + self.size[b]
        away = self.mean[b] - self.mean[a]
        self.scatter[a] += self.scatter[b] + self.size[a] * self.size[b] / size * np.outer(away, away)
        self.mean[a] += away * (self.size[b] / size)
        self.size[a] = size
        self.cost[a] = self._cost(self.size[a], self.scatter[a])
        self.alive[b], self.rise[b] = False, np.inf
        lost = np.flatnonzero(self.alive & ((self.partner == a) | (self.partner == b)))
        for group in {a, *lost.tolist()}:
            self._find_partner(group)
        before = np.flatnonzero(self.alive[:a])
        if len(before):
            rises = self._rises(a, before)
            better = (rises < self.rise[before]) | ((rises == self.rise[before]) & (a < self.partner[before]))
            self.rise[before[better]], self.partner[before[better]] = rises[better], a
        return a, b

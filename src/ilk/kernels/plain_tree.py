"""The likelihood tree in NumPy: what the compiled one means. `fitting.tree` says what it is for."""

from __future__ import annotations

import numpy as np

from ilk.kernels.constants import TREE_GRID
from ilk.kernels.pairs import Array

LEAST = 2.0**-1022  # logarithms are taken of no less


def grow_tree(points: Array, weight: Array) -> tuple[Array, Array]:
    """Merges in the order made, of the group `second` into the group `first`; ties go to the lowest numbers.

    The cost of a group is n log(|W / n| + (trace W + alpha) / n), n the weight of its rows and W their weighted
    scatter; the cheapest rise of the total merges next. A rise that is no finite number counts as infinite.
    """
    n_rows = len(points)
    first, second = np.empty(n_rows - 1, np.int64), np.empty(n_rows - 1, np.int64)
    with np.errstate(all="ignore"):
        state = _TreeGroups(points, weight)
        for merge in range(n_rows - 1):
            first[merge], second[merge] = state.merge_cheapest()
    return first, second


class _TreeGroups:
    """Groups still apart: rows, size, mean, scatter and cost of each, and the cheapest partner with a higher number."""

    def __init__(self, points: Array, weight: Array) -> None:
        n, d = points.shape
        mean = (weight @ points) / weight.sum()
        total = float(weight @ np.square(points - mean).sum(axis=1))
        self.alpha = total / (weight.sum() * d) if total > 0 else 1.0  # all rows alike: any number will do
        self.rows, self.size, self.mean = np.ones(n), weight.astype(np.float64), points.copy()
        self.scatter = np.zeros((n, d, d))
        self.cost = self._cost(self.rows, self.size, self.scatter)
        self.alive = np.ones(n, dtype=bool)
        self.partner, self.rise = np.full(n, -1), np.full(n, np.inf)
        for row in range(n - 1):
            self._find_partner(row)

    def _cost(self, rows: Array, size: Array, scatter: Array) -> Array:
        """A scatter of no more rows than columns has no volume."""
        trace = np.trace(scatter, axis1=-2, axis2=-1)
        volume = np.linalg.det(scatter / size[..., None, None])
        volume = np.where((rows > scatter.shape[-1]) & (volume > 0), volume, 0.0)
        return np.asarray(size * np.log(np.maximum(volume + (trace + self.alpha) / size, LEAST)))

    def _rises(self, group: int, others: Array) -> Array:
        """By how much the total cost rises when `group` merges with each of `others`, on the grid."""
        rows, size = self.rows[group] + self.rows[others], self.size[group] + self.size[others]
        away = self.mean[others] - self.mean[group]
        share = self.size[group] * self.size[others] / size
        between = share[:, None, None] * away[:, :, None] * away[:, None, :]
        joined = self._cost(rows, size, self.scatter[group] + self.scatter[others] + between)
        rises = joined - self.cost[group] - self.cost[others]
        rises = np.rint(rises * TREE_GRID) / TREE_GRID
        return np.where(np.isfinite(rises), rises, np.inf)

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
        self.rows[a] += self.rows[b]
        self.size[a] = size
        self.cost[a] = self._cost(self.rows[a], self.size[a], self.scatter[a])
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

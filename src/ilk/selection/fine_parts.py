"""Many small parts of a table put together two by two (Ward 1963), and the partition on the way that promises most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ilk.table.block import Array

ROUNDS = 2  # in the units of the table, then in those of the groups found


@dataclass(frozen=True)
class FineParts:
    """Parts with their weights, centres, and the scatter of the rows about these."""

    label: Array
    size: Array
    centre: Array
    scatter: Array

    @classmethod
    def of(cls, numbers: Array, weight: Array, label: Array) -> FineParts:
        """The parts of a partition, those that count."""
        size = np.bincount(label, weight)
        rank = np.cumsum(size > 0) - 1
        label = np.where(size[label] > 0, rank[label], 0)
        size = size[size > 0]
        sums = np.stack([np.bincount(label, weight * column, len(size)) for column in numbers.T], axis=1)
        centre = sums / size[:, None]
        away = numbers - centre[label]
        return cls(label, size, centre, (away * weight[:, None]).T @ away)

    def best_partition(
        self, criterion: Callable[[Array, Array], float], least: int, rounds: int = ROUNDS
    ) -> tuple[float, Array]:
        """The lowest criterion (of sizes and common scatter) of a partition into `least` groups or more."""
        lowest, group = np.inf, np.arange(len(self.size))
        units = np.eye(len(self.scatter))
        for _ in range(rounds):
            value, made, within = self._best_level(units, criterion, least)
            if value < lowest:
                lowest, group = value, made
            if within is None:
                break
            variance, axes = np.linalg.eigh(within)
            floor = variance[-1] * 1e-10 if variance[-1] > 0 else 1.0
            units = axes / np.sqrt(np.maximum(variance, floor))
        return lowest, np.asarray(group[self.label], dtype=np.int32)

    def _best_level(
        self, units: Array, criterion: Callable[[Array, Array], float], least: int
    ) -> tuple[float, Array, Array | None]:
        """Of the levels of one tree: the criterion, the group of each part, and the scatter within."""
        lowest, chosen, within = np.inf, 0, None
        size, centre, scatter = self.size.copy(), self.centre.copy(), self.scatter.copy()
        merges = ward_merges(size, centre @ units, least)
        for done in range(len(merges) + 1):
            value = criterion(size[size > 0], scatter)
            if value < lowest:
                lowest, chosen, within = value, done, scatter.copy()
            if done < len(merges):
                a, b = merges[done]
                away, both = centre[a] - centre[b], size[a] + size[b]
                scatter += np.outer(away, away) * (size[a] * size[b] / both)
                centre[a] = (size[a] * centre[a] + size[b] * centre[b]) / both
                size[a], size[b] = both, 0.0
        group = np.arange(len(size))
        for a, b in merges[:chosen]:
            group[group == b] = a
        return lowest, np.unique(group, return_inverse=True)[1], within


def ward_merges(size: Array, points: Array, least: int) -> list[tuple[int, int]]:
    """Pairs in the order in which they are joined, the second into the first, down to `least` groups.

    >>> ward_merges(np.ones(3), np.array([[0.0], [1.0], [9.0]]), 1)
    [(0, 1), (0, 2)]
    """
    size, points = size.astype(np.float64).copy(), points.copy()
    n_parts = len(size)
    square = np.square(points).sum(axis=1)
    apart = np.maximum(square[:, None] + square - 2 * points @ points.T, 0.0)
    rise = apart * (size[:, None] * size / (size[:, None] + size))
    np.fill_diagonal(rise, np.inf)
    near, lowest = rise.argmin(axis=1), rise.min(axis=1)
    merges = []
    for _ in range(max(n_parts - least, 0)):
        a = int(lowest.argmin())
        a, b = sorted((a, int(near[a])))
        merges.append((a, b))
        both = size[a] + size[b]
        points[a] = (size[a] * points[a] + size[b] * points[b]) / both
        size[a], size[b] = both, 0.0
        fresh = np.square(points - points[a]).sum(axis=1) * (both * size / np.maximum(both + size, 1e-300))
        fresh[a] = np.inf
        fresh[size == 0] = np.inf
        rise[a], rise[:, a], rise[b], rise[:, b] = fresh, fresh, np.inf, np.inf
        lowest[b] = np.inf
        stale = np.flatnonzero(((near == a) | (near == b) | (fresh < lowest)) & (size > 0))
        near[stale], lowest[stale] = rise[stale].argmin(axis=1), rise[stale].min(axis=1)
    return merges

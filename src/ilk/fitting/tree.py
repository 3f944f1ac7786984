"""The likelihood tree: groups merged two by two so that a Gaussian likelihood falls least (Fraley 1998).

The cost of a group is n log(|W / n| + (trace W + alpha) / n), its trace part letting groups of few rows compare
(Banfield and Raftery 1993). One run gives a partition for every K. A row counts by its weight, n and W alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilk import kernels
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

    @property
    def n_rows(self) -> int:
        return len(self.first) + 1

    def cut(self, k: int) -> Array:
        """Labels 0 .. K-1 of the partition into K groups, by first row.

        >>> grow_tree(np.array([[0.0], [0.1], [5.0], [5.1]]), np.ones(4)).cut(2)
        array([0, 0, 1, 1])
        """
        group = np.arange(self.n_rows)
        for a, b in zip(self.first[: self.n_rows - k], self.second[: self.n_rows - k], strict=True):
            group[group == b] = a
        return np.unique(group, return_inverse=True)[1]


def drawn_rows(weight: Array, n_rows: int, draws: np.random.Generator) -> tuple[Array, Array]:
    """Which rows a sample of `n_rows` holds, and how often: at even steps of the cumulative weight."""
    cumulative = np.cumsum(weight)
    position = (np.arange(n_rows) + draws.random()) * (cumulative[-1] / n_rows)
    chosen = np.minimum(np.searchsorted(cumulative, position, side="right"), len(weight) - 1)
    rows, times = np.unique(chosen, return_counts=True)
    return rows, times.astype(np.float64)


def tree_axes(numbers: Array, weight: Array) -> Array:
    """The rows as the tree wants them: standardised, then each principal axis divided by the square root of its
    singular value (full whitening gives worse trees)."""
    total = float(weight.sum())
    centred = numbers - np.average(numbers, axis=0, weights=weight)
    deviation = np.sqrt(weight @ centred**2 / (total - 1 if total > 1 else total))
    centred = centred[:, deviation > 0] / deviation[deviation > 0]
    _, singular, axes = np.linalg.svd(centred * np.sqrt(weight)[:, None], full_matrices=False)
    keep = singular > singular[:1] * 1e-12
    return np.asarray(centred @ axes[keep].T / np.sqrt(singular[keep]))


def grow_tree(points: Array, weight: Array) -> Tree:
    """All merges from single rows to one group; ties go to the lowest numbers."""
    return Tree(*kernels.grow_tree(np.ascontiguousarray(points, dtype=np.float64), weight))

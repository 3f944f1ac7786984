"""The likelihood tree: groups merged two by two so that a Gaussian likelihood falls least (Fraley 1998).

The cost of a group is n log(|W / n| + (trace W + alpha) / n), its trace part letting groups of few rows compare
(Banfield and Raftery 1993). One run gives a partition for every K.
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
    return Tree(*kernels.grow_tree(np.ascontiguousarray(points, dtype=np.float64)))

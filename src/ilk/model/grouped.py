"""A fitted family whose components, the pieces, belong to groups.

The density of a group is the sum of its pieces' densities, so memberships add up; a hard method gives a row the group
of its nearest piece.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk.families.base import Family
from ilk.table.block import Array, Block


@dataclass(frozen=True, eq=False)
class Grouped:
    """`group_of` (pieces,) holds the group of each piece; `soft` says that scores are log densities."""

    family: Family[Any]
    params: Any
    group_of: Array
    soft: bool

    @property
    def n_groups(self) -> int:
        return int(self.group_of.max()) + 1

    @property
    def whole(self) -> bool:
        """Whether every piece is a group of its own."""
        return self.n_groups == len(self.group_of)

    def costs(self, block: Block) -> Array:
        """Cost of each row (rows, groups) in each group: `-log sum of densities`, or that of its nearest piece."""
        costs = np.array(self.family.cost(self.params, block), dtype=np.float64)
        join = _join_soft if self.soft else _join_hard
        made = np.empty((len(costs), self.n_groups))
        for group in range(self.n_groups):
            pieces = costs[:, self.group_of == group]
            made[:, group] = pieces[:, 0] if pieces.shape[1] == 1 else join(pieces)
        return made

    def label(self, block: Block) -> Array:
        """The group of each row."""
        if self.soft and not self.whole:
            return np.asarray(self.costs(block).argmin(axis=1), dtype=np.int32)
        return self._group_of(self.family.assign(self.params, block)[0])

    def label_of(self, piece: Array, costs: Array) -> Array:
        """The same of rows whose pieces and costs in the groups are known."""
        if self.soft and not self.whole:
            return np.asarray(costs.argmin(axis=1), dtype=np.int32)
        return self._group_of(piece)

    def _group_of(self, piece: Array) -> Array:
        return np.asarray(np.append(self.group_of, -1)[piece], dtype=np.int32)  # -1, noise, stays


def _join_soft(costs: Array) -> Array:
    return np.asarray(-np.logaddexp.reduce(-costs, axis=1))


def _join_hard(costs: Array) -> Array:
    return np.asarray(costs.min(axis=1))


def visit_costs(grouped: Grouped, block: Block) -> Array:
    return grouped.costs(block)

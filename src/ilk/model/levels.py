"""Groups of the information bottleneck as a family: enough of one to place rows by the levels of their cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilk.model.no_prediction_rule import NoPredictionRule
from ilk.paradigms.bottleneck import Bottleneck, cells_as_levels
from ilk.table.block import Array, Block


@dataclass(frozen=True, eq=False)
class Levels:
    """The groups, and how cells become counts: the knots of each number, where the levels of each category begin."""

    groups: Bottleneck
    knots: tuple[Array, ...]
    level_start: Array

    def costs(self, block: Block) -> Array:
        """beta KL(row || group) - log share of each row in each group (rows, K)."""
        return -self.groups.scores(self._shares(block))

    def placed(self, block: Block) -> tuple[Array, Array]:
        """The group of each row, and what it costs there: infinitely much where no group has its levels."""
        rows = self._shares(block)
        costs, strange = -self.groups.scores(rows), self.groups.lacks(rows).all(axis=1)
        return costs.argmin(axis=1).astype(np.int32), np.where(strange, np.inf, costs.min(axis=1))

    def _shares(self, block: Block) -> Array:
        """p(level | row), (rows, levels); zero in a row without cells."""
        numbers = np.asarray(block.numbers, dtype=np.float64)
        counts = cells_as_levels(numbers, block.codes, self.knots, self.level_start)
        total = counts.sum(axis=1, keepdims=True)
        return np.asarray(counts / np.where(total > 0, total, 1.0))


@dataclass(frozen=True)
class Levelled(NoPredictionRule):
    """Places rows; it is not fitted by the loop."""

    def cost(self, params: Levels, block: Block) -> Array:
        return params.costs(block)

    def assign(self, params: Levels, block: Block) -> tuple[Array, Array]:
        return params.placed(block)


LEVELLED = {name: Levelled(name) for name in ("information bottleneck", "deterministic bottleneck")}
SOFT_LEVELS, HARD_LEVELS = LEVELLED.values()

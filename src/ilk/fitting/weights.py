"""How much the rows of a table count, all together: one pass over any engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilk.engines.base import Rows
from ilk.families.base import ExactPair, pair_total
from ilk.table.block import Block


@dataclass(frozen=True)
class RowWeights:
    """`n_counting` rows have weight above 0; `whole` says that all weights are whole numbers, which count repeats."""

    n_counting: int
    sum: ExactPair
    squares: ExactPair
    whole: bool

    def __add__(self, other: RowWeights) -> RowWeights:
        return RowWeights(
            self.n_counting + other.n_counting,
            self.sum + other.sum,
            self.squares + other.squares,
            self.whole and other.whole,
        )

    @property
    def total(self) -> float:
        return float(self.sum.value)

    @property
    def effective_rows(self) -> float:
        """How many rows the weights stand for: their sum where whole weights count repeats, else Kish's number."""
        return self.total if self.whole else self.total**2 / float(self.squares.value)


def row_weights(rows: Rows) -> RowWeights:
    """The weights of all rows, added up."""
    if rows.weighted:
        return rows.reduce(_visit, None)
    ones = ExactPair(np.array([float(rows.n_rows), 0.0]))
    return RowWeights(rows.n_rows, ones, ones, True)


def _visit(_: None, block: Block) -> RowWeights:
    weight = block.weights
    whole = bool((weight == np.round(weight)).all())
    ones = np.ones(len(weight))
    return RowWeights(
        int(np.count_nonzero(weight)), pair_total(ones, weight), pair_total(weight, weight), whole
    )

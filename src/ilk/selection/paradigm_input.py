"""What the paradigms beside the loop work on: all rows at once, as points, as distances or as counts of levels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ilk.engines.memory import MemoryRows
from ilk.errors import DataError
from ilk.paradigms.bottleneck import cells_as_levels, knots_of
from ilk.paradigms.distance import Distances, check_size, distances
from ilk.table.block import Array, Block
from ilk.table.schema import Schema


@dataclass(frozen=True, eq=False)
class Material:
    """All rows of a table in one block, and the columns they have; `known` are distances measured before."""

    block: Block
    ordered: Array  # which of the coded columns have levels in order
    level_start: Array
    known: Distances | None = None

    @classmethod
    def of(cls, block: Block, schema: Schema) -> Material:
        if block.codes is None:
            return cls(block, np.zeros(0, dtype=bool), np.zeros(1, dtype=np.int64))
        ordered = np.array([c.kind == "ordinal" for c in schema.coded], dtype=bool)
        return cls(block, ordered, schema.level_start)

    @property
    def n_rows(self) -> int:
        return self.block.n_rows

    @property
    def mixed(self) -> bool:
        """Whether there are categories or blanks."""
        return self.block.codes is not None or not self.block.complete

    @property
    def rows(self) -> MemoryRows:
        return MemoryRows.of_block(self.block)

    @cached_property
    def distances(self) -> Distances:
        return distances(self.block, self.ordered) if self.known is None else self.known

    @cached_property
    def points(self) -> Array:
        """The encoded numbers; blanks are refused."""
        check_size(self.n_rows)
        if not self.block.complete:
            raise DataError(
                "missing-values",
                "this method needs numbers without missing values, and some values are missing",
                do="Leave these rows or columns out, or use a method that handles missing values: see `ilk choose`",
            )
        return np.asarray(self.block.numbers, dtype=np.float64)

    @cached_property
    def counts(self) -> Array:
        """Cells as counts of levels (rows, levels); see `cells_as_levels`."""
        numbers = np.asarray(self.block.numbers, dtype=np.float64)
        return cells_as_levels(numbers, self.block.codes, self.knots, self.level_start)

    @cached_property
    def knots(self) -> tuple[Array, ...]:
        """Of each number the values that stand for its levels."""
        return knots_of(self.block.numbers.astype(np.float64))

    @property
    def measured(self) -> Distances | None:
        """The distances, where somebody has asked for them before."""
        return self.__dict__.get("distances", self.known)

    def take(self, which: Array) -> Material:
        """Some of the rows, with their distances where these were measured."""
        block = self.block
        part = Block(
            block.raw[which],
            block.encoding,
            codes=None if block.codes is None else block.codes[which],
            complete=block.complete,
        )
        known = self.measured
        if known is not None:
            known = replace(known, matrix=known.matrix[np.ix_(which, which)])
        return replace(self, block=part, known=known)

"""The rows of a search on all six scales, made once: a search asks for them after every move that it accepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ilk.assorted.scales import SCALES
from ilk.assorted.transform import TransformPlan
from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.table.block import Array, Block, Encoding

MOST_HELD = 8_000_000  # numbers, 64 MiB; of larger tables every block is treated anew


@dataclass(frozen=True, eq=False)
class EveryScale:
    """Numbers (rows, scales * numbers), one scale after the other, and codes."""

    numbers: Array
    codes: Array | None

    @classmethod
    def of(cls, block: Block, plan: TransformPlan) -> EveryScale:
        n = len(plan.numbers)
        every = [plan.treated_numbers(block, (scale,) * n) for scale in range(len(SCALES))]
        return cls(np.ascontiguousarray(np.hstack(every)), plan.treated_codes(block))

    def part(self, block: Block) -> EveryScale:
        """What belongs to a block."""
        here = slice(block.first_row, block.first_row + block.n_rows)
        return EveryScale(self.numbers[here], None if self.codes is None else self.codes[here])

    def treated(self, block: Block, scales: Sequence[int]) -> Block:
        """The block of these rows as the model sees it."""
        n = len(scales)
        raw = np.ascontiguousarray(self.numbers[:, np.array(scales, dtype=np.intp) * n + np.arange(n)])
        encoding, complete = Encoding(1.0, np.zeros(n)), not np.isnan(raw).any()
        return replace(block, raw=raw, encoding=encoding, codes=self.codes, complete=complete, memo=None)


class Held:
    """The rows of one table on every scale, once they have been asked for."""

    def __init__(self) -> None:
        self.made: EveryScale | None = None

    def make(self, table: Rows, plan: TransformPlan) -> EveryScale | None:
        """None where the rows are elsewhere, or too many."""
        few = table.n_rows * len(plan.numbers) * len(SCALES) <= MOST_HELD
        if self.made is None and few and isinstance(table, MemoryRows):
            self.made = EveryScale.of(table.take(np.arange(table.n_rows)), plan)
        return self.made

    def rows(self, table: Rows, scales: Sequence[int]) -> MemoryRows | None:
        """The rows on some scales; None where they were not made."""
        if self.made is None or not isinstance(table, MemoryRows):
            return None
        block = self.made.treated(table.take(np.arange(table.n_rows)), scales)
        return MemoryRows.of_block(block, table.threads)

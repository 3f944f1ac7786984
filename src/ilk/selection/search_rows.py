"""The rows on which mixtures are searched: all of a small table, a coreset of a large one.

The search walks the distinct ones, by their content, with their weights. It then ends at the same bits whether a row
counts twice or stands there twice, and in any order of the rows: it has so many starts, splits and stops that rounding
alone would soon part two orders of adding up.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.fitting.coreset import coreset
from ilk.fitting.start import distinct_rows

SEARCH_ROWS = 4000


def searched(rows: Rows, seed: int) -> MemoryRows:
    """At most `SEARCH_ROWS` rows."""
    return coreset(rows, SEARCH_ROWS, seed)


def each_once(few: MemoryRows) -> MemoryRows:
    """The distinct rows of a table."""
    block, _ = distinct_rows(few.take(np.arange(few.n_rows)))
    if (block.weights == 1).all():
        block = replace(block, weight=None)
    return MemoryRows.of_block(block, few.threads)

"""The rows on which mixtures are searched: the distinct ones of a sample, by their content, with their weights.

A search then ends at the same bits whether a row counts twice or stands there twice, and in any order of the rows: it
has so many starts, splits and stops that rounding alone would soon part two orders of adding up.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows, held
from ilk.fitting.start import distinct_rows


def searched(rows: Rows, n_rows: int, seed: int) -> MemoryRows:
    """The distinct rows of a sample of at most `n_rows`."""
    few = held(rows, n_rows, seed)
    block, _ = distinct_rows(few.take(np.arange(few.n_rows)))
    if (block.weights == 1).all():
        block = replace(block, weight=None)
    return MemoryRows.of_block(block, few.threads)

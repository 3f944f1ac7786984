"""Which rows a sample holds: those that the seed names by their content, never by their number or the engine."""

from __future__ import annotations

import numpy as np

from ilk.engines.base import Rows
from ilk.random import stream
from ilk.table.block import Array, Block
from ilk.table.content import content_keys
from ilk.table.least_keys import least_keys


def drawn_rows(n_rows: int, n_wanted: int, seed: int) -> Array:
    """`n_wanted` different numbers below `n_rows`, in order: of rows that are not told apart by what they say."""
    return np.sort(stream(seed, "sample").choice(n_rows, n_wanted, replace=False))


def drawn_by_content(rows: Rows, n_wanted: int, seed: int, among: Array | None = None) -> Array:
    """Numbers of the rows of a sample, in the order of their content; a row of weight 2 as if it stood there twice. Or
    of some `among` the rows, whatever they weigh."""
    weighted = rows.weighted and among is None
    keys, weight = np.empty(rows.n_rows, np.uint64), np.empty(rows.n_rows if weighted else 0)
    done = 0
    for key, heft in rows.scan(_visit_keys, seed):
        here = slice(done, done + len(key))
        keys[here], done = key, here.stop
        if weighted:
            weight[here] = heft
    if among is not None:
        return np.asarray(among[least_keys(keys[among], None, n_wanted)])
    return least_keys(keys, weight if weighted else None, n_wanted)


def _visit_keys(seed: int, block: Block) -> tuple[Array, Array | None]:
    return content_keys(block, seed), block.weight

"""Which rows a sample holds: row numbers that depend on the seed and the weights alone, never on the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ilk.random import stream
from ilk.table.block import Array


def drawn_rows(n_rows: int, n_wanted: int, seed: int) -> Array:
    """`n_wanted` different row numbers of `n_rows`, in order."""
    return np.sort(stream(seed, "sample").choice(n_rows, n_wanted, replace=False))


def drawn_by_weight(weights: Callable[[], Iterable[Array]], n_wanted: int, seed: int) -> Array:
    """Row numbers drawn by inverse cumulative weight, so that a row of weight 2 is drawn as if it stood there twice.

    `weights` gives the weights of all rows in pieces, in row order, and is called twice.

    >>> pieces = lambda: [np.array([0.0, 1.0]), np.array([3.0])]
    >>> set(drawn_by_weight(pieces, 50, 0).tolist())
    {1, 2}
    """
    total = 0.0
    for piece in weights():
        total = float(_reached(total, piece)[-1])
    positions = np.sort(stream(seed, "sample").random(n_wanted)) * total
    rows = np.empty(n_wanted, dtype=np.intp)
    done, first, total = 0, 0, 0.0
    for piece in weights():
        reached = _reached(total, piece)
        here = np.searchsorted(reached[1:], positions[done:], "right")
        n_here = int(np.searchsorted(here, len(piece)))  # the later positions lie in later pieces
        rows[done : done + n_here] = first + here[:n_here]
        done, first, total = done + n_here, first + len(piece), float(reached[-1])
    rows[done:] = first - 1  # rounding may point past the last row
    return rows


def _reached(total: float, weight: Array) -> Array:
    """The cumulative weight from `total` on: added one by one, and so the same in any pieces."""
    return np.cumsum(np.concatenate([[total], weight]))

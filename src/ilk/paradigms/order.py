"""Labels in canonical order: larger clusters first, ties by their first row."""

from __future__ import annotations

import numpy as np

from ilk.table.block import Array


def by_size(labels: Array) -> tuple[Array, Array]:
    """Labels 0, 1, ... by size, and the old label of each; -1 stays.

    >>> by_size(np.array([7, 2, -1, 2]))
    (array([ 1,  0, -1,  0], dtype=int32), array([2, 7]))
    """
    names, first, counts = np.unique(labels, return_index=True, return_counts=True)
    counted = names >= 0
    names, first, counts = names[counted], first[counted], counts[counted]
    names = names[np.lexsort((first, -counts))]
    made = np.full(len(labels), -1, dtype=np.int32)
    for number, name in enumerate(names):
        made[labels == name] = number
    return made, names

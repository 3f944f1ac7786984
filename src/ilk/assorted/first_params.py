"""First parameters of a fixed number of clusters, from partitions of every kind."""

from __future__ import annotations

from typing import Any

from ilk.assorted.embedding import KINDS, EmbeddedRows
from ilk.assorted.state import from_membership
from ilk.engines.base import Rows
from ilk.families.base import GrowingFamily
from ilk.fitting.restarts import memberships_of


def first_params(
    points: EmbeddedRows, rows: Rows, family: GrowingFamily[Any], k: int, n_starts: int, seed: int
) -> tuple[list[Any], list[Any]]:
    """Parameters of the starts that one pass with every cell chosen will do for, and of those that need many: vague
    ones, and the second half of the others."""
    ready: list[Any] = []
    vague: list[Any] = []
    for number in range(n_starts):
        kind = KINDS[number % len(KINDS)]
        if kind is None:
            membership = points.random_memberships(k, seed, number)
        else:
            membership = memberships_of(kind(points, k, seed, number), k)
        slow = kind is None or number >= n_starts / 2
        (vague if slow else ready).append(from_membership(rows, family, membership))
    return ready, vague

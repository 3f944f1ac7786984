"""First parameters of every structure from one membership of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ilk.families.covariance import Structure
from ilk.families.gaussian import Gaussian, Mixture
from ilk.table.block import Array, Block


class FirstSums:
    """Sums of one membership, gathered once for all structures."""

    def __init__(self, block: Block, membership: Array) -> None:
        self.block, self.membership = block, membership
        self.mean = _means(block, membership)
        self._gathered: dict[str, Any] = {}

    def first(self, family: Gaussian, *, thorough: bool = False) -> list[Mixture]:
        """First parameters of a family; EVE and VVE from two sets of common axes, or `thorough` from many."""
        start = family.start(self.mean)
        kind = "diagonal" if family.structure.orientation == "I" else "full"
        if kind not in self._gathered:
            free = replace(
                family, structure=Structure("VVV")
            )  # tied components would gather one scatter for all
            self._gathered[kind] = free.gather(start, self.block, self.membership)
        sums = self._gathered[kind]
        if thorough:
            return family.first_updates(start, sums)
        if family.structure.name not in ("EVE", "VVE"):
            return [family.update(start, sums)]
        pooled = np.linalg.eigh(sums["scatter"].sum(axis=0))[1][:, ::-1]
        return family.updates_from(start, sums, [pooled, np.eye(len(pooled))])


def _means(block: Block, membership: Array) -> Array:
    """Means (K, d) of the observed cells; a component without any lies at the centre."""
    numbers = block.numbers.astype(np.float64, copy=False)
    weighted = membership if block.weight is None else membership * block.weight[:, None]
    if block.complete:
        total, count = weighted.T @ numbers, weighted.sum(axis=0)[:, None]
    else:
        observed = ~np.isnan(numbers)
        total, count = weighted.T @ np.where(observed, numbers, 0.0), weighted.T @ observed
    return np.asarray(np.divide(total, count, out=np.zeros_like(total), where=count > 0))

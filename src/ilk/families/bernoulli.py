"""Binary columns, hard groups: cross entropy of a row to the shares of ones in its component, plus `open_cost` each.

    cost = sum over rows and observed cells of weight * (-x log mean - (1 - x) log(1 - mean))
           + smoothing * sum over components and columns of KL(pooled || mean)  +  open_cost * K

It is Algorithm 3 of the CRAFT supplement (section 6.2), whose printed discrepancy
H(mean) + (mean - x) log(mean / (1 - mean)) is the same where it is finite. Smoothing adds a pseudo-row with the shares
`pooled` of the whole table to every component, so that a mean is never 0 or 1 and no row is infinitely far. The
update is the minimum of the cost given the labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlog1py, xlogy

from ilk import kernels
from ilk.families.base import ExactPair, Partial, Trim, pair_total
from ilk.families.centroid import Centroid, Centroids, cheapest
from ilk.families.opening import group_weights
from ilk.table.block import Array, Block


@dataclass(frozen=True)
class Bernoulli(Centroid):
    """Components are smoothed shares of ones; `pooled` (columns,) lies strictly between 0 and 1."""

    pooled: Array
    open_cost: float = 0.0
    smoothing: float = 1.0
    name: str = "bernoulli"
    n_phases: int = 1

    def start(self, centres: Array) -> Centroids:
        """Components that hold one row each, the `centres`; a missing cell is no evidence."""
        return self.means_of(
            (centres == 1).astype(float), (centres == 0).astype(float), np.ones(len(centres))
        )

    def means_of(self, ones: Array, zeros: Array, weight: Array) -> Centroids:
        """The components that fit these counts of ones and zeros (K, columns) best."""
        mean = (ones + self.smoothing * self.pooled) / (ones + zeros + self.smoothing)
        return Centroids(mean, weight)

    def cost(self, params: Centroids, block: Block) -> Array:
        of_zero = np.log1p(-params.centre)
        ones, seen = ones_of(block), block.observed
        cost = -(_products(ones, np.log(params.centre) - of_zero) + of_zero.sum(axis=1))
        return np.asarray(cost if seen is None else cost + _products((~seen).astype(np.float64), of_zero))

    def assign(self, params: Centroids, block: Block) -> tuple[Array, Array]:
        return cheapest(self.cost(params, block))

    def step(self, params: Centroids, block: Block, cut: Trim) -> Partial:
        label, cost = self.assign(params, block)
        weight = block.weights * cut.kept(cost)
        return Partial(self.counts(block, weight, label, len(params.centre)), pair_total(cost, weight))

    def counts(self, block: Block, weight: Array, label: Array, n_groups: int) -> dict[str, ExactPair]:
        """Weight of the ones and of the zeros of each group and column, and of its rows."""
        ones, seen = ones_of(block), block.observed
        by_cell = np.broadcast_to(weight[:, None], ones.shape)
        n_rows = group_weights(weight, label, n_groups)
        n_ones = ExactPair(kernels.group_sums(ones, by_cell, label, n_groups))
        if seen is None:
            n_seen = ExactPair(np.broadcast_to(n_rows.parts, n_ones.parts.shape))
        else:
            n_seen = ExactPair(kernels.group_sums(seen.astype(np.float64), by_cell, label, n_groups))
        return {"ones": n_ones, "zeros": n_seen + ExactPair(-n_ones.parts), "weight": n_rows}

    def update(self, params: Centroids, sums: Mapping[str, Any]) -> Centroids:
        """Best means; a component without rows is dropped, which saves what it cost to keep it open."""
        weight = sums["weight"].value[:, 0]
        means = self.means_of(sums["ones"].value, sums["zeros"].value, weight)
        return self.select(means, np.flatnonzero(weight > 0))

    def penalty(self, params: Centroids) -> float:
        return float(self._pull(params.centre).sum()) + self.open_cost * len(params.centre)

    def group_cost(self, ones: Array, zeros: Array) -> Array:
        """What groups (..., columns) cost at their best means, without the open cost.

        Without smoothing it is the size of a group times the entropies of its columns (CRAFT supplement, eq. 11).
        """
        mean = (ones + self.smoothing * self.pooled) / (ones + zeros + self.smoothing)
        cells = self._pull(mean) - xlogy(ones, mean) - xlog1py(zeros, -mean)
        return np.asarray(cells.sum(axis=-1))

    def _pull(self, mean: Array) -> Array:
        """smoothing * KL(pooled || mean) per cell."""
        ones, zeros = self.smoothing * self.pooled, self.smoothing * (1 - self.pooled)
        apart = xlogy(ones, self.pooled) + xlog1py(zeros, -self.pooled)
        return np.asarray(apart - xlogy(ones, mean) - xlog1py(zeros, -mean))


def _products(rows: Array, columns: Array) -> Array:
    """`rows @ columns.T`, of each row the same bits whatever rows stand beside it, which BLAS does not promise."""
    return np.asarray(np.einsum("nd,kd->nk", rows, columns))


def ones_of(block: Block) -> Array:
    """The cells that are 1; a missing one is not."""
    return block.numbers if block.observed is None else np.nan_to_num(block.numbers)

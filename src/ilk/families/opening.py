"""K-means that opens components: squared distances plus `open_cost` for every component (DP-means).

Each block adds every row to the sums of its nearest component and names, per component, the rows dearest to it.
The driver goes through these one by one, dearest first, and opens a component at each that is still dear to all
opened before; it takes the row out of the sums of its donor, and then updates the means. A row that costs more
than `open_cost` leaves its donor and costs nothing where it is, means are the best place for the rows they keep,
and a component without rows is dropped: so the cost falls strictly with every opening and never rises.

The dearest rows of the parts make those of the whole, equal rows counting as one row of their weight; so
neither blocks, nor the order of the rows, nor repeats in place of weights change what is opened.
Kulis and Jordan, ICML 2012 (the cost); Dinari and Freifeld, UAI 2022 (opening in parallel, one component a pass).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ilk import kernels
from ilk.families.base import KEEP_ALL, ExactPair, Partial, Trim
from ilk.families.centroid import Centroids, Means, mean_sums
from ilk.table.block import Array, Block, Encoding

PROPOSALS = 4096
"""Rows that all components together may propose in one pass, and that travel to the driver."""
LEAST_PROPOSALS = 4
"""Rows that each may propose, however many components there are."""


@dataclass(frozen=True)
class Dear:
    """The dearest rows of each component, `most` each: dearest first, ties by their cells."""

    donor: Array
    cost: Array
    weight: ExactPair  # of all rows that are equal to this one
    cells: Array  # encoded, NaN where missing
    most: int

    def __add__(self, other: Dear) -> Dear:
        parts = np.concatenate([self.weight.parts, other.weight.parts])
        return _condensed(
            np.append(self.donor, other.donor),
            np.append(self.cost, other.cost),
            parts,
            np.concatenate([self.cells, other.cells]),
            self.most,
        )

    @classmethod
    def of(cls, donor: Array, cost: Array, weight: Array, cells: Array, most: int) -> Dear:
        # Only the `most` largest costs of a donor matter; sorting rows by their cells is the dear part.
        order = np.lexsort((-cost, donor))
        order = order[_rank(donor[order], cost[order]) < most]
        parts = np.stack([weight[order], np.zeros(len(order))], axis=-1)
        cells = cells[order].astype(np.float64) + 0.0  # -0.0 is 0.0
        return _condensed(donor[order], cost[order], parts, cells, most)


def _condensed(donor: Array, cost: Array, weight: Array, cells: Array, most: int) -> Dear:
    """Sorted, equal rows made one, and cut to `most` rows of each donor."""
    order = np.lexsort((*cells.T[::-1], -cost, donor))
    donor, cost, weight, cells = donor[order], cost[order], weight[order], cells[order]
    differs = (cells[1:] != cells[:-1]) & ~(np.isnan(cells[1:]) & np.isnan(cells[:-1]))
    is_new = np.ones(len(donor), dtype=bool)
    is_new[1:] = (donor[1:] != donor[:-1]) | (cost[1:] != cost[:-1]) | differs.any(axis=1)
    number = (np.cumsum(is_new) - 1).astype(np.int32)
    first = np.flatnonzero(is_new)
    pooled = kernels.group_sums(
        np.ones((2 * len(number), 1)), weight.T.reshape(-1, 1), np.tile(number, 2), len(first)
    )
    kept = _rank(donor[first], np.arange(len(first))) < most
    first = first[kept]
    return Dear(donor[first], cost[first], ExactPair(pooled[kept, 0]), cells[first], most)


def _rank(donor: Array, value: Array) -> Array:
    """How many different values of the same donor come before; both arrays are sorted by donor.

    >>> _rank(np.array([0, 0, 0, 2]), np.array([9.0, 9.0, 5.0, 7.0])).tolist()
    [0, 0, 1, 0]
    """
    begins = np.ones(len(donor), dtype=bool)
    begins[1:] = donor[1:] != donor[:-1]
    steps = begins.copy()
    steps[1:] |= value[1:] != value[:-1]
    reached = np.cumsum(steps)
    return np.asarray(reached - reached[begins][np.cumsum(begins) - 1])


@dataclass(frozen=True)
class OpenMeans(Means):
    """DP-means: cost = sum over rows of weight * |x - centre|^2 + open_cost * K, in encoded units."""

    open_cost: float = 0.0
    name: str = "open means"
    shares_blocks: ClassVar[bool] = False
    device_rows: ClassVar[str] = ""

    def step(self, params: Centroids, block: Block, cut: Trim) -> Partial:
        return self._gathered(params, block, cut, max(PROPOSALS // len(params.centre), LEAST_PROPOSALS))

    def opened(self, params: Centroids, block: Block) -> Centroids:
        """One update that judges every dear row of a block: the best start, where a block is at hand."""
        return self.update(params, self._gathered(params, block, KEEP_ALL, block.n_rows).sums)

    def _gathered(self, params: Centroids, block: Block, cut: Trim, most: int) -> Partial:
        found = super().step(params, block, cut)
        label, cost = self.assign(params, block)
        weight = block.weights * cut.kept(cost)
        dear = np.flatnonzero(self.is_dear(cost, weight))
        sums = {
            **found.sums,
            # Exact, unlike the weights of K-means: all rows of a component may leave it.
            "weight": group_weights(weight, label, len(params.centre)),
            "dear": Dear.of(label[dear], cost[dear], weight[dear], block.numbers[dear], most),
        }
        return Partial(sums, found.cost)

    def is_dear(self, cost: Array, weight: Array) -> Array:
        """Rows whose own component would lower the cost; one of weight 2 is as dear as two of weight 1."""
        return np.asarray(np.where(weight > 0, cost, 0.0) * np.minimum(weight, 1.0) > self.open_cost)

    def update(self, params: Centroids, sums: Mapping[str, Any]) -> Centroids:
        opened = self._accepted(params, sums["dear"])
        staying = {name: value for name, value in sums.items() if name != "dear"}
        for part in opened.weight.parts.T:
            leaving = group_moments(opened.cells, -part, opened.donor, len(params.centre))
            staying = {name: value + leaving[name] for name, value in staying.items()}
        after = means_of(staying, params)
        kept = self.select(after, np.flatnonzero(after.weight > 0))
        points = np.where(np.isnan(opened.cells), after.centre[opened.donor], opened.cells)
        return Centroids(np.concatenate([kept.centre, points]), np.append(kept.weight, opened.weight.value))

    def _accepted(self, params: Centroids, dear: Dear) -> Dear:
        """Those dear rows, taken dearest first, that are dear also to the components opened before them."""
        order = np.lexsort((*dear.cells.T[::-1], -dear.cost))
        cells = dear.cells[order]
        block = Block(cells, _plain(cells), complete=not np.isnan(cells).any())
        closest = dear.cost[order]
        weight = dear.weight.value[order]
        accepted: list[int] = []
        met = 0
        while len(left := np.flatnonzero(self.is_dear(closest[met:], weight[met:]))):
            number = met + int(left[0])
            accepted.append(number)
            point = np.where(np.isnan(cells[number]), params.centre[dear.donor[order[number]]], cells[number])
            closest = np.minimum(closest, self.cost(self.start(point[None]), block)[:, 0])
            met = number + 1
        chosen = order[accepted]
        return Dear(
            dear.donor[chosen],
            dear.cost[chosen],
            ExactPair(dear.weight.parts[chosen]),
            dear.cells[chosen],
            dear.most,
        )

    def penalty(self, params: Centroids) -> float:
        return self.open_cost * len(params.centre)


def group_weights(weight: Array, label: Array, n_components: int) -> ExactPair:
    """Weight of the rows of each component (n_components, 1)."""
    return ExactPair(kernels.group_sums(np.ones((len(weight), 1)), weight[:, None], label, n_components))


def group_moments(numbers: Array, weight: Array, label: Array, n_components: int) -> dict[str, ExactPair]:
    """Sums that the means and weights of components are made of."""
    return {
        **mean_sums(numbers, weight, label, n_components),
        "weight": group_weights(weight, label, n_components),
    }


def means_of(sums: Mapping[str, ExactPair], before: Centroids) -> Centroids:
    """The means of such sums; a column without cells stays where it was before."""
    weight = sums["weight"].value
    by_cell = np.broadcast_to(
        sums["cell_weight"].value if "cell_weight" in sums else weight, before.centre.shape
    )
    centre = np.divide(sums["total"].value, by_cell, out=before.centre.copy(), where=by_cell > 0)
    return Centroids(centre, weight[:, 0])


def _plain(cells: Array) -> Encoding:
    return Encoding(1.0, np.zeros(cells.shape[1]))

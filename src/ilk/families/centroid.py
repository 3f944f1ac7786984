"""Components that are points: K-means (squared distance, means) and K-medians (absolute distance, medians).

Missing cells: the distance is taken over the observed columns and scaled by n_columns / observed, and each
observed cell enters its mean with that same factor, so the cost never rises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import Any, ClassVar

import numpy as np

from ilk import kernels
from ilk.families.base import ExactPair, Partial, Trim, pair_total
from ilk.kernels import sparse
from ilk.table.block import Array, Block, is_sparse
from ilk.table.quantiles import N_DIGITS, QuantileSearch


@dataclass(frozen=True)
class Centroids:
    """Parameters: where each component lies, and the weight of the rows it had in the last pass."""

    centre: Array
    weight: Array
    search: QuantileSearch | None = None  # K-medians: the medians' digits found so far


class Centroid:
    """What the families share whose components are points."""

    starts_from_partition = False
    shares_blocks: ClassVar[bool] = False
    device_rows: ClassVar[str] = ""
    runs_compiled: ClassVar[bool] = False

    def start(self, centres: Array) -> Centroids:
        centres = np.array(centres, dtype=np.float64, order="C")
        return Centroids(centres, np.ones(len(centres)))

    def centres(self, params: Centroids) -> Array:
        return params.centre

    def vacant(self, params: Centroids) -> Array:
        return np.flatnonzero(params.weight == 0)

    def move(self, params: Centroids, which: Array, centres: Array) -> Centroids:
        centre, weight = params.centre.copy(), params.weight.copy()
        # A missing cell of the row that a component moves to leaves that coordinate where it was.
        centre[which] = np.where(np.isnan(centres), centre[which], centres)
        weight[which] = 1.0
        return Centroids(centre, weight)

    def select(self, params: Centroids, which: Array | Sequence[int]) -> Centroids:
        return Centroids(params.centre[which], params.weight[which])

    def same(self, one: Centroids, other: Centroids) -> bool:
        return np.array_equal(one.centre, other.centre)

    def status(self, params: Centroids) -> str:
        return "ok"

    def penalty(self, params: Centroids) -> float:
        return 0.0


@dataclass(frozen=True)
class Means(Centroid):
    """K-means: cost = sum over columns of (x - centre)^2; the update is the weighted mean."""

    name: str = "means"
    n_phases: int = 1
    shares_blocks: ClassVar[bool] = kernels.COMPILED
    device_rows: ClassVar[str] = "complete" if kernels.COMPILED else ""
    density: ClassVar[str] = "normal"  # whose log-likelihood the cost is part of

    def cost(self, params: Centroids, block: Block) -> Array:
        if block.complete:
            return kernels.distances(*coded(block), params.centre).T
        return partial_costs(block, params.centre, np.square)

    def assign(self, params: Centroids, block: Block) -> tuple[Array, Array]:
        if block.complete:
            return kernels.nearest(*coded(block), params.centre)
        return cheapest(self.cost(params, block))

    def step(self, params: Centroids, block: Block, cut: Trim) -> Partial:
        if not block.complete:
            return self._step_with_missing(params, block, cut)
        squares = block.recall("squares", 2 * block.n_parts)
        rules, parts = (cut.limit, cut.share), (block.part_rows, block.threads)
        sums, weight, cost = kernels.nearest_step(
            *coded(block), block.weight, params.centre, *rules, squares, *parts
        )
        return Partial({"total": ExactPair(sums), "weight": weight}, ExactPair(cost))

    def _step_with_missing(self, params: Centroids, block: Block, cut: Trim) -> Partial:
        label, cost = self.assign(params, block)
        weight = block.weights * cut.kept(cost)
        sums = _label_sums(block.numbers, weight, label, len(params.centre))
        return Partial(sums, pair_total(cost, weight))

    def gather(self, params: Centroids, block: Block, membership: Array) -> Mapping[str, Any]:
        """Sums of one block under given labels (rows,)."""
        return _label_sums(block.numbers, block.weights, membership, len(params.centre))

    def update(self, params: Centroids, sums: Mapping[str, Any]) -> Centroids:
        centre, weight = sums["total"].value, sums["weight"]
        by_cell = sums["cell_weight"].value if "cell_weight" in sums else weight[:, None]
        np.divide(centre, by_cell, out=centre, where=by_cell > 0)
        np.copyto(centre, params.centre, where=by_cell <= 0)
        return Centroids(centre, weight)


@dataclass(frozen=True)
class Medians(Centroid):
    """K-medians: cost = sum over columns of |x - centre|; the update is the lower weighted median per column.

    Medians are no sums, so one update takes eight passes with the assignment held, each of which counts, per
    component and column, the next digit of the median (`table.order`).
    """

    name: str = "medians"
    n_phases: int = N_DIGITS
    density: ClassVar[str] = "laplace"

    def cost(self, params: Centroids, block: Block) -> Array:
        return partial_costs(block, params.centre, np.abs)

    def assign(self, params: Centroids, block: Block) -> tuple[Array, Array]:
        return cheapest(self.cost(params, block))

    def step(self, params: Centroids, block: Block, cut: Trim) -> Partial:
        label, cost = self.assign(params, block)
        weight = block.weights * cut.kept(cost)
        n_components, n_columns = params.centre.shape
        group = (label[:, None] * n_columns + np.arange(n_columns)).ravel()
        cell_weight = (weight * _median_share(block)).repeat(n_columns)
        search = params.search or QuantileSearch.begin(0.5, (n_components, n_columns))
        sums = {
            "counts": search.count(block.numbers.ravel(), group, cell_weight),
            "weight": np.bincount(label, weights=weight, minlength=n_components),
        }
        return Partial(sums, pair_total(cost, weight))

    def update(self, params: Centroids, sums: Mapping[str, Any]) -> Centroids:
        search = params.search or QuantileSearch.begin(0.5, params.centre.shape)
        search = search.narrow(sums["counts"])
        if not search.done:
            return replace(params, search=search)
        median = search.value
        centre = np.where(np.isnan(median), params.centre, median)
        return Centroids(centre, sums["weight"])


@dataclass(frozen=True)
class Moments:
    """Weight and weighted total of the observed cells of each group."""

    total: ExactPair
    weight: ExactPair

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.total + other.total, self.weight + other.weight)

    @classmethod
    def of(cls, block: Block, label: Array, n_groups: int) -> Moments:
        if is_sparse(block.raw):
            cells, zero = sparse.above_zero(*coded(block))
            total, by_group = sparse.group_totals(cells, zero, block.weights, label, n_groups)
            return cls(ExactPair(total), ExactPair(np.repeat(by_group, block.n_columns, axis=1)))
        if block.complete:
            ones, weight = np.ones((block.n_rows, 1)), block.weights[:, None]
            numbers = block.numbers.astype(np.float64, copy=False)
            by_group = kernels.group_sums(ones, weight, label, n_groups)
            return cls(
                ExactPair(
                    kernels.group_sums(numbers, np.broadcast_to(weight, numbers.shape), label, n_groups)
                ),
                ExactPair(np.repeat(by_group, block.n_columns, axis=1)),
            )
        observed = ~np.isnan(block.numbers)
        values = np.where(observed, block.numbers, 0.0)
        weight = np.broadcast_to(block.weights[:, None], values.shape)
        return cls(
            ExactPair(kernels.group_sums(values, weight, label, n_groups)),
            ExactPair(kernels.group_sums(observed.astype(np.float64), weight, label, n_groups)),
        )

    def means(self, otherwise: Array) -> Array:
        """Mean of each group and column, `otherwise` where no cell was observed."""
        weight = self.weight.value
        return np.divide(self.total.value, weight, out=otherwise.copy(), where=weight > 0)


def coded(block: Block) -> tuple[Array, float, Array, Array | None]:
    """A block as kernels take it: raw cells and the encoding to apply on the fly."""
    return block.raw, block.encoding.power, block.encoding.centre, block.encoding.factor


def mean_sums(numbers: Array, weight: Array, label: Array, n_components: int) -> dict[str, ExactPair]:
    """Sums that means are made of; a missing cell scales up the others of its row."""
    observed = ~np.isnan(numbers)
    # The factor goes with the value and not with the weight, whose products are exact.
    factor = np.where(observed, missing_factor(observed)[:, None], 0.0)
    values = np.where(observed, numbers, 0.0) * factor
    by_cell = np.broadcast_to(weight[:, None], values.shape)
    return {
        "total": ExactPair(kernels.group_sums(values, by_cell, label, n_components)),
        "cell_weight": ExactPair(kernels.group_sums(factor, by_cell, label, n_components)),
    }


def _label_sums(numbers: Array, weight: Array, label: Array, n_components: int) -> dict[str, Any]:
    """Sums that K-means needs of rows with these labels."""
    return {
        **mean_sums(numbers, weight, label, n_components),
        "weight": np.bincount(label, weights=weight, minlength=n_components),
    }


def missing_factor(observed: Array) -> Array:
    """n_columns / observed per row; 0 for a row with no cell at all, which then counts nowhere."""
    count = observed.sum(axis=1)
    return np.asarray(np.divide(observed.shape[1], count, out=np.zeros(len(count)), where=count > 0))


def _median_share(block: Block) -> Array | float:
    """n_columns / observed per row up to one common factor that makes it a whole number, so that weights add
    exactly (up to 40 columns; the least common multiple of more does not fit 53 bits)."""
    if block.complete:
        return 1.0
    share = missing_factor(~np.isnan(block.raw))
    n_columns = block.n_columns
    return np.rint(share * (lcm(*range(1, n_columns + 1)) // n_columns)) if n_columns <= 40 else share


def partial_costs(block: Block, centre: Array, size: Any) -> Array:
    """Cost (rows, K) by differences over the observed cells, scaled up to all columns."""
    numbers = block.numbers.astype(np.float64, copy=False)
    costs = np.empty((len(numbers), len(centre)))
    scale_up = 1.0 if block.complete else missing_factor(~np.isnan(numbers))
    add = np.sum if block.complete else np.nansum
    with np.errstate(over="ignore"):  # rows of weight 0 may be anywhere, also infinitely far
        for k, point in enumerate(centre):
            costs[:, k] = add(size(numbers - point), axis=1) * scale_up
    return costs


def cheapest(costs: Array) -> tuple[Array, Array]:
    """Label and cost of each row from its costs (rows, K); ties go to the lowest label."""
    label = np.argmin(costs, axis=1)
    return label.astype(np.int32), np.take_along_axis(costs, label[:, None], axis=1)[:, 0]

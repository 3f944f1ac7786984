"""What a component is: the protocol every family keeps, and the partial results they all return.

A family owns all K components at once. It is a frozen set of options; what is fitted is in its parameters, a
tree of arrays. The loop in `fitting` knows families only through this page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ilk import kernels
from ilk.table.block import Array, Block


@dataclass(frozen=True, slots=True)
class ExactPair:
    """A sum carried as high + low part (twice float64), so that its rounded value does not depend on the order
    of the terms, nor on whether a row counts twice or stands there twice."""

    parts: Array  # (..., 2)

    def __add__(self, other: ExactPair) -> ExactPair:
        return ExactPair(kernels.add_pairs(self.parts, other.parts))

    def __iadd__(self, other: ExactPair) -> ExactPair:
        return ExactPair(kernels.add_pairs(self.parts, other.parts, self.parts))

    @property
    def value(self) -> Array:
        return kernels.round_pairs(self.parts)


def pair_total(value: Array, weight: Array) -> ExactPair:
    """Sum of weight * value over rows."""
    everyone = np.zeros(len(value), dtype=np.int32)
    return ExactPair(kernels.group_sums(value[:, None], weight[:, None], everyone, 1)[0, 0])


@dataclass(frozen=True, slots=True)
class Trim:
    """Trimming: a row whose cost is above `limit` counts nothing, one at the limit counts `share` of itself."""

    limit: float = inf
    share: float = 1.0

    def kept(self, cost: Array) -> Array:
        """What part of each row counts."""
        return np.where(cost < self.limit, 1.0, np.where(cost == self.limit, self.share, 0.0))


KEEP_ALL = Trim()


@dataclass(frozen=True, slots=True)
class Partial:
    """What one block tells of one start: the sums for the update, and the cost under the old parameters."""

    sums: Mapping[str, Any]
    cost: ExactPair

    def __add__(self, other: Partial) -> Partial:
        sums = {name: value + other.sums[name] for name, value in self.sums.items()}
        return Partial(sums, self.cost + other.cost)

    def __iadd__(self, other: Partial) -> Partial:
        sums = dict(self.sums)
        for name, value in other.sums.items():
            sums[name] += value
        cost = self.cost
        cost += other.cost
        return Partial(sums, cost)


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums by name; adding is name by name."""

    values: Mapping[str, Any]

    def __add__(self, other: Sums) -> Sums:
        return Sums({name: value + other.values[name] for name, value in self.values.items()})


Params = TypeVar("Params")


class Family(Protocol, Generic[Params]):
    """Score rows under the components, gather weighted sums, update the parameters from the sums."""

    @property
    def name(self) -> str: ...

    @property
    def starts_from_partition(self) -> bool:
        """Whether the first parameters need the rows of each component, not only its centre."""
        ...

    @property
    def n_phases(self) -> int:
        """Passes that make one update: 1, but for families that need order statistics."""
        ...

    @property
    def shares_blocks(self) -> bool:
        """Whether `step` takes a whole table of complete rows as one block of parts, its kernel shared by threads; with
        spreads, `gather` too, also under labels instead of memberships."""
        ...

    @property
    def device_rows(self) -> str:
        """Tables that the kernels of `step` and `assign` walk on a device: "any", with codes and missing cells;
        "complete" ones alone; "parted", whose incomplete rows are the CPU's; none where it is empty."""
        ...

    @property
    def runs_compiled(self) -> bool:
        """Whether all passes over a small table can be one call of a kernel: plain Gaussians, and no kin of theirs."""
        ...

    def start(self, centres: Array) -> Params:
        """Parameters whose components lie at `centres` (K, columns), in encoded units."""
        ...

    def step(self, params: Params, block: Block, cut: Trim) -> Partial:
        """Score, assign and gather in one go."""
        ...

    def assign(self, params: Params, block: Block) -> tuple[Array, Array]:
        """Label (int32) and cost of each row; ties go to the lowest label."""
        ...

    def cost(self, params: Params, block: Block) -> Array:
        """Cost of each row under each component (rows, K)."""
        ...

    def update(self, params: Params, sums: Mapping[str, Any]) -> Params:
        """New parameters from the sums over all rows, or the next phase on the way to them."""
        ...

    def centres(self, params: Params) -> Array:
        """Where the components lie (K, columns), in encoded units."""
        ...

    def vacant(self, params: Params) -> Array:
        """Numbers of the components that had no row in the last pass, or too few to go on."""
        ...

    def move(self, params: Params, which: Array, centres: Array) -> Params:
        """The components `which` put at `centres`."""
        ...

    def select(self, params: Params, which: Array | Sequence[int]) -> Params:
        """Only the components `which`, in that order."""
        ...

    def same(self, one: Params, other: Params) -> bool:
        """Whether two parameter sets place every component alike, bit for bit."""
        ...

    def status(self, params: Params) -> str:
        """ "ok", or why these parameters are no answer ("singular", "component_vanished")."""
        ...

    def penalty(self, params: Params) -> float:
        """What the parameters themselves cost: minus the log prior density, 0 without a prior."""
        ...


class SpreadFamily(Family[Params], Protocol):
    """A family whose components have a spread, so that a fit can start from a partition of the rows."""

    def gather(self, params: Params, block: Block, membership: Array) -> Mapping[str, Any]:
        """Sums of one block under given memberships (rows, K)."""
        ...

    def first_updates(self, start: Params, sums: Mapping[str, Any]) -> list[Params]:
        """First parameters from the sums of a partition: several where the update has more than one optimum."""
        ...


class GrowingFamily(SpreadFamily[Params], Protocol):
    """A family whose components can be split, merged and joined, so that their number can be found."""

    @property
    def hard(self) -> bool: ...

    @property
    def wide(self) -> bool:
        """Whether the columns are so many that fits start from screened ones, and never from all."""
        ...

    @property
    def updates_compiled(self) -> bool:
        """Whether the update is one call of a kernel, and so can be all passes over a table of one block."""
        ...

    @property
    def ungrouped(self) -> GrowingFamily[Params]:
        """The same with nothing shared between components: how a fit warms up."""
        ...

    def scores(self, params: Params, block: Block) -> Array:
        """Log of mixing share times density (rows, K)."""
        ...

    def blank(self, k: int) -> Params:
        """K components all alike, for sums under given memberships."""
        ...

    def heated_step(self, params: Params, block: Block, heat: float) -> Partial:
        """One step with memberships proportional to exp(score / heat)."""
        ...

    def merged(self, params: Params, sums: Mapping[str, Any], one: int, other: int) -> Params:
        """The parameters after two components have become one, from the sums of all."""
        ...

    def merge_costs(self, params: Params, sums: Mapping[str, Any]) -> Array:
        """What it costs to make one component of two (K, K)."""
        ...

    def joined(self, params: Params, others: Params, share: Array) -> Params:
        """Components and further ones, with mixing shares `share`, nothing shared."""
        ...

    def prior_cost(self, params: Params) -> float:
        """The part of the penalty that is minus the log prior density."""
        ...

    def free_parameters(self, params: Params) -> int: ...

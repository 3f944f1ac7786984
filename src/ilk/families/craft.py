"""CRAFT as printed: hard groups of numbers and categories, each with the columns it chose (Garg, Rudin, Jaakkola 2016).

    row cost = sum over chosen numbers of (x - mean)^2 / (2 variance)
               + sum over chosen categories of -log own share of x + over the others of -log background share of x
               + F_delta * (columns chosen)

A variant for comparison, kept as the paper has it, flaws and all: an unchosen number costs nothing, there is no log
variance in the cost, and so the objective can rise and does not rank partitions. Only what would be infinite is
mended: own shares and variances are taken with one pseudo-row of the whole table, since a group begins with a single
row. Numbers are standardised, so the table's variance is 1. A missing cell counts nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor, log
from typing import Any, ClassVar

import numpy as np

from ilk.families.centroid import cheapest
from ilk.table.block import Array, Block

EXACT = "exact"
APPROXIMATE = "approximate"
PSEUDO_ROWS = 1.0


@dataclass(frozen=True)
class Choice:
    """How columns are chosen: a `share` of them (the paper's m), from global to local by `locality` (its rho).

    `locality` lies between 0 (the same columns for all groups) and share * (1 - share) (each group its own).
    """

    share: float
    locality: float

    @property
    def a0(self) -> float:
        return self.share**2 * (1 - self.share) / self.locality - self.share

    @property
    def b0(self) -> float:
        return self.share * (1 - self.share) ** 2 / self.locality + self.share

    @property
    def f0(self) -> float:
        """What an unchosen column costs a group."""
        return _f(self.a0, self.b0)

    @property
    def f1(self) -> float:
        """What a chosen column costs a group."""
        return _f(self.a0 + 1, self.b0 - 1)

    @property
    def f_delta(self) -> float:
        return self.f1 - self.f0

    def posterior(self, chosen: int) -> float:
        """Mean of the Beta posterior of a column's chance, given whether it is chosen (supplement, eq. 6)."""
        return (self.a0 + chosen) / (self.a0 + self.b0)

    def chances(self, chosen: Array) -> Array:
        """Chance that a new group chooses each column, given the choices (groups, columns) of the others."""
        pull = self.locality / (self.share * (1 - self.share))
        return np.asarray(self.share + (chosen.mean(axis=0) - self.share) * pull)


def _f(a: float, b: float) -> float:
    return (a + b) * log(a + b) - a * log(a) - b * log(b)


def default_locality(share: float) -> float:
    """The paper's max(0.01, m(1 - m) - 0.01); half of m(1 - m) where that is not above 0.01."""
    limit = share * (1 - share)
    wanted = max(0.01, limit - 0.01)
    return wanted if wanted < limit else limit / 2


@dataclass(frozen=True)
class CraftParams:
    """Parameters: means and variances of numbers, shares of levels (all columns side by side), columns chosen."""

    mean: Array  # (K, numbers)
    variance: Array
    level_share: Array  # (K, levels of all coded columns)
    chosen: Array  # (K, numbers + coded columns) bool
    weight: Array


@dataclass(frozen=True, kw_only=True)
class Paper:
    """The family. `background` are the shares of all levels in the table; `level_start` says where a column's begin."""

    choice: Choice
    background: Array
    level_start: Array
    n_numbers: int
    budget: str = EXACT
    least_gain: float = 0.1  # approximate budget: share of the background's cost that a category must save
    most_variance: float = 0.5  # approximate budget: variance below which a number is chosen
    name: str = "craft as printed"
    shares_blocks: ClassVar[bool] = False
    device_rows: ClassVar[str] = ""
    runs_compiled: ClassVar[bool] = False

    @property
    def n_columns(self) -> int:
        return self.n_numbers + len(self.level_start) - 1

    def begin(self, numbers: Array, codes: Array, chosen: Array) -> CraftParams:
        """A group that holds one row: mean there, variance 1."""
        weight = np.ones(1)
        mean = np.where(np.isnan(numbers), 0.0, numbers)[None]
        counts = np.zeros((1, self.level_start[-1]))
        for j, code in enumerate(codes):
            if code >= 0:
                counts[0, self.level_start[j] + code] = 1.0
        return CraftParams(mean, np.ones_like(mean), self._shares(counts), chosen[None], weight)

    def cost(self, params: CraftParams, block: Block) -> Array:
        """Cost of each row under each group (rows, K)."""
        of_numbers, of_categories = params.chosen[:, : self.n_numbers], params.chosen[:, self.n_numbers :]
        cost = np.tile(self.choice.f_delta * params.chosen.sum(axis=1), (block.n_rows, 1))
        numbers = block.numbers.astype(np.float64)
        for k in range(len(params.mean)):
            mine = of_numbers[k]
            squares = np.square(numbers[:, mine] - params.mean[k, mine]) / (2 * params.variance[k, mine])
            cost[:, k] += np.nansum(squares, axis=1)
        surprise = np.where(
            np.repeat(of_categories, np.diff(self.level_start), axis=1),
            -np.log(params.level_share),
            -np.log(self.background),
        )
        for code, known in self._levels(block):
            cost[known] += surprise[:, code].T
        return cost

    def _levels(self, block: Block) -> list[tuple[Array, Array]]:
        """Per coded column, where the level of each known cell stands among all levels, and which rows know it."""
        if block.codes is None:
            return []
        known = [np.flatnonzero(block.codes[:, j] >= 0) for j in range(len(self.level_start) - 1)]
        return [(self.level_start[j] + block.codes[rows, j], rows) for j, rows in enumerate(known)]

    def assign(self, params: CraftParams, block: Block) -> tuple[Array, Array]:
        return cheapest(self.cost(params, block))

    def update(self, block: Block, label: Array, n_groups: int) -> CraftParams:
        """Means, variances and shares of the groups that `label` makes, and then the columns each chooses."""
        member = np.zeros((n_groups, block.n_rows))
        member[label, np.arange(block.n_rows)] = block.weights
        numbers = block.numbers.astype(np.float64)
        known = (~np.isnan(numbers)).astype(np.float64)
        counted = block.weights[:, None] > 0  # of others cells may be of any size
        cells = np.where((known > 0) & counted, numbers, 0.0)
        heft = member @ known
        mean = np.divide(member @ cells, heft, out=np.zeros_like(heft), where=heft > 0)
        squares = np.stack([member[k] @ (known * np.square(cells - mean[k])) for k in range(n_groups)])
        counts = np.zeros((n_groups, self.level_start[-1]))
        for code, rows in self._levels(block):
            np.add.at(counts, (label[rows], code), block.weights[rows])
        variance = (squares + PSEUDO_ROWS) / (heft + PSEUDO_ROWS)
        params = CraftParams(mean, variance, self._shares(counts), np.zeros(0), member.sum(axis=1))
        return replace(params, chosen=self._chosen(params, counts))

    def _shares(self, counts: Array) -> Array:
        total = np.add.reduceat(counts, self.level_start[:-1], axis=1) if counts.size else counts
        spread = np.repeat(total, np.diff(self.level_start), axis=1)
        return np.asarray((counts + PSEUDO_ROWS * self.background) / (spread + PSEUDO_ROWS))

    def _chosen(self, params: CraftParams, counts: Array) -> Array:
        """Numbers of small variance, categories that save much against the background."""
        gain, before = self.savings(params, counts)
        if self.budget == APPROXIMATE:
            return np.hstack([params.variance < self.most_variance, gain > self.least_gain * before])
        return np.hstack([self._first(params.variance), self._first(-gain)])

    def savings(self, params: CraftParams, counts: Array) -> tuple[Array, Array]:
        """Per group and coded column, G_d - G_kd and G_d: what own shares save, and what the background costs."""
        if not counts.size:
            return np.zeros((len(counts), 0)), np.zeros((len(counts), 0))
        starts = self.level_start[:-1]
        before = np.add.reduceat(-counts * np.log(self.background), starts, axis=1)
        own = np.add.reduceat(-counts * np.log(params.level_share), starts, axis=1)
        return before - own, before

    def _first(self, value: Array) -> Array:
        """The share of the columns with the least value, per group; ties to the first column."""
        n_columns = value.shape[1]
        n_wanted = min(n_columns, max(1, floor(self.choice.share * n_columns + 0.5)))
        order = np.argsort(value, axis=1, kind="stable")
        rank = np.argsort(order, axis=1, kind="stable")
        return np.asarray(rank < n_wanted)

    def penalty(self, params: CraftParams, open_cost: float) -> float:
        """(open_cost + D F0) K + F_delta * (columns chosen), counted once a group as the objective does."""
        per_group = open_cost + self.n_columns * self.choice.f0
        return per_group * len(params.mean) + self.choice.f_delta * int(params.chosen.sum())

    def centres(self, params: CraftParams) -> Array:
        return params.mean

    def select(self, params: CraftParams, which: Any) -> CraftParams:
        return CraftParams(
            params.mean[which],
            params.variance[which],
            params.level_share[which],
            params.chosen[which],
            params.weight[which],
        )


def joined(one: CraftParams, other: CraftParams) -> CraftParams:
    """The groups of both."""
    return CraftParams(
        np.concatenate([one.mean, other.mean]),
        np.concatenate([one.variance, other.variance]),
        np.concatenate([one.level_share, other.level_share]),
        np.concatenate([one.chosen, other.chosen]),
        np.append(one.weight, other.weight),
    )

"""The assorted model with correlated numbers: all numbers of a cluster are one Gaussian block, categories are cells.

A block has no switches; it pays for its parameters by half a log N each, and its prior is that of the cells, a part of
a pseudo-row of the pooled covariance. So its cost J is on the same scale, and the lower of the two is the better model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from ilk import kernels
from ilk.assorted.family import VANISHED, Assorted, Clusters
from ilk.assorted.sharing import CellSums, ColumnCosts
from ilk.families import missing
from ilk.families.base import ExactPair, Partial, Trim
from ilk.families.covariance import Covariance, Structure, n_covariance_parameters
from ilk.families.gaussian import Gaussian, Mixture
from ilk.families.prior import Prior
from ilk.table.block import Array, Block


@dataclass(frozen=True)
class Blend:
    """Parameters: the numbers as a mixture of Gaussians, the categories as clusters of cells (mixing in the former)."""

    numbers: Mixture
    levels: Clusters

    def __len__(self) -> int:
        return len(self.numbers.mixing)

    @property
    def mixing(self) -> Array:
        return self.numbers.mixing

    @property
    def mean(self) -> Array:
        return self.numbers.mean

    @property
    def log_level(self) -> Array:
        return self.levels.log_level


@dataclass(frozen=True)
class Blended:
    """The family: `structure` of the numbers, EEE or VVV, `anchor` their pooled covariance, `levels` the categories."""

    structure: str
    anchor: Array
    levels: Assorted

    starts_from_partition: ClassVar[bool] = True
    n_phases: ClassVar[int] = 1
    shares_blocks: ClassVar[bool] = False
    device_rows: ClassVar[str] = ""
    runs_compiled: ClassVar[bool] = False
    wide: ClassVar[bool] = False  # a block needs rows for its covariances
    updates_compiled: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return f"assorted {self.structure}"

    @property
    def hard(self) -> bool:
        return self.levels.hard

    @property
    def columns(self) -> ColumnCosts:
        """Of the categories."""
        return self.levels.columns

    @property
    def ungrouped(self) -> Blended:
        return replace(self, levels=self.levels.ungrouped)

    @cached_property
    def gaussian(self) -> Gaussian:
        d, weight = len(self.anchor), self.levels.columns.spread_prior
        prior = Prior(np.zeros(d), weight * self.anchor, weight - d - 1.0, 0.0)
        return Gaussian(Structure.parse(self.structure).for_columns(d), np.ones(d), prior=prior)

    # --- rows

    def scores(self, params: Blend, block: Block) -> Array:
        numbers = self.gaussian.scores(params.numbers, replace(block, codes=None))
        return np.asarray(numbers + self.levels.scores(params.levels, _levels_of(block)))

    def step(self, params: Blend, block: Block, cut: Trim) -> Partial:
        return self.heated_step(params, block, 1.0)

    def heated_step(self, params: Blend, block: Block, heat: float) -> Partial:
        membership, cost = kernels.memberships(self.scores(params, block) / heat, self.hard)
        weight = block.weights * _told(block)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = -np.where(membership > 0, membership * np.log(membership), 0.0).sum(axis=1)
        sums = self.gather(params, block, membership)
        return Partial(
            {**sums, "entropy": float(weight @ entropy)}, ExactPair(np.array([float(weight @ cost), 0.0]))
        )

    def gather(self, params: Blend, block: Block, membership: Array) -> dict[str, Any]:
        counted = membership * (block.weights * _told(block))[:, None]
        seen = np.asarray((~np.isnan(block.raw)).any(axis=1))[:, None]
        levels = self.levels.gather(params.levels, _levels_of(block), membership)
        return {
            **missing.gather(params.numbers, block, counted * seen),
            "weight": counted.sum(axis=0),
            "counts": levels["counts"],
        }

    def cost(self, params: Blend, block: Block) -> Array:
        return -self.scores(params, block)

    def assign(self, params: Blend, block: Block) -> tuple[Array, Array]:
        scores = self.scores(params, block)
        return scores.argmax(axis=1).astype(np.int32), kernels.memberships(scores, self.hard)[1]

    # --- parameters

    def start(self, centres: Array) -> Blend:
        return Blend(self.gaussian.start(centres), self._even(self.levels.blank(len(centres))))

    def blank(self, k: int) -> Blend:
        return self.start(np.zeros((k, len(self.anchor))))

    def _even(self, levels: Clusters) -> Clusters:
        return replace(levels, mixing=np.ones(len(levels)))

    def update(self, params: Blend, sums: Mapping[str, Any]) -> Blend:
        weight = sums["weight"]
        previous: Array | None = params.levels.group
        if len(weight) > 1 and (weight < VANISHED).any():
            kept = np.flatnonzero(weight >= VANISHED)
            sums = {name: value[kept] for name, value in sums.items() if name != "entropy"}
            params, weight = self.select(params, kept), sums["weight"]
            previous = params.levels.group
        return self._updated(params.numbers, sums, previous)

    def _updated(self, reference: Mixture, sums: Mapping[str, Any], previous: Array | None) -> Blend:
        weight = sums["weight"]
        moments = {name: sums[name] for name in ("count", "shift", "scatter")}
        numbers = self.gaussian.update(reference, moments)
        numbers = replace(numbers, mixing=weight / weight.sum())
        levels = self.levels.from_cells(_cells(sums["counts"]), weight, previous)
        return Blend(numbers, self._even(levels))

    def first_updates(self, start: Blend, sums: Mapping[str, Any]) -> list[Blend]:
        return [self.update(start, sums)]

    def _central(self, params: Blend, sums: Mapping[str, Any]) -> tuple[Array, Array, Array]:
        """Counts, means and scatters about them (K, d, d)."""
        count, shift = sums["count"], sums["shift"]
        away = shift / np.maximum(count, 1e-300)[:, None]
        scatter = sums["scatter"] - shift[:, :, None] * away[:, None, :]
        return count, params.mean + away, scatter

    def merged(self, params: Blend, sums: Mapping[str, Any], one: int, other: int) -> Blend:
        count, mean, scatter = self._central(params, sums)
        rest = [k for k in range(len(count)) if k not in (one, other)]
        both, joint, wide = _together(count, mean, scatter, one, other)
        covariance = params.numbers.covariance.select(np.array([*rest, one]))
        reference = replace(
            params.numbers,
            mean=np.vstack([mean[rest], joint]),
            covariance=covariance,
            mixing=np.ones(len(rest) + 1),
        )
        together = {
            "count": np.append(count[rest], both),
            "shift": np.zeros_like(reference.mean),
            "scatter": np.concatenate([scatter[rest], wide[None]]),
            "counts": np.vstack([sums["counts"][rest], sums["counts"][one] + sums["counts"][other]]),
            "weight": np.append(sums["weight"][rest], sums["weight"][one] + sums["weight"][other]),
        }
        return self._updated(reference, together, None)

    def merge_costs(self, params: Blend, sums: Mapping[str, Any]) -> Array:
        empty = np.zeros((len(params), 0))
        no_numbers = dict.fromkeys(("observed", "first", "second"), empty)
        costs = self.levels.merge_costs(params.levels, {**sums, **no_numbers})
        count, mean, scatter = self._central(params, sums)
        for i, j in combinations(range(len(count)), 2):
            rise = self._merge_cost(count, mean, scatter, i, j)
            costs[i, j] += rise
            costs[j, i] += rise
        return costs

    def _merge_cost(self, count: Array, mean: Array, scatter: Array, i: int, j: int) -> float:
        """What the numbers lose when two clusters become one: (count + prior)/2 log|covariance|, after less before."""
        prior = self.levels.columns.spread_prior
        added = prior * self.anchor
        both, _, wide = _together(count, mean, scatter, i, j)
        if self.structure[0] == "E":
            apart = scatter.sum(axis=0) + added
            joint = apart + wide - scatter[i] - scatter[j]
            return (float(count.sum()) + prior) / 2 * (_log_det(joint) - _log_det(apart))
        parts = [(both, wide, 1.0), (count[i], scatter[i], -1.0), (count[j], scatter[j], -1.0)]
        costs = [sign * (n + prior) / 2 * _log_det((w + added) / (n + prior)) for n, w, sign in parts]
        return float(sum(costs))

    def joined(self, params: Blend, others: Blend, share: Array) -> Blend:
        one, two = params.numbers.covariance, others.numbers.covariance
        covariance = Covariance(
            np.concatenate([one.log_variance, two.log_variance]),
            np.concatenate([one.own_axes(), two.own_axes()]),
        )
        numbers = replace(
            params.numbers,
            mixing=share / share.sum(),
            mean=np.concatenate([params.mean, others.mean]),
            covariance=covariance,
        )
        return Blend(numbers, self._even(self.levels.joined(params.levels, others.levels, share)))

    def penalty(self, params: Blend) -> float:
        return (
            self.levels.penalty(params.levels) + self._block_prior(params) + self._parameter_cost(len(params))
        )

    def _parameter_cost(self, k: int) -> float:
        return self._block_parameters(k) / 2 * float(np.log(self.levels.n_rows))

    def _block_parameters(self, k: int) -> int:
        d = len(self.anchor)
        return k * d + n_covariance_parameters(self.gaussian.structure, k, d)

    def prior_cost(self, params: Blend) -> float:
        return self.levels.prior_cost(params.levels) + self._block_prior(params)

    def _block_prior(self, params: Blend) -> float:
        """prior/2 (log|covariance|/|anchor| + trace(anchor covariance^-1) - d), once per covariance."""
        covariance, d = params.numbers.covariance, len(self.anchor)
        matrices = covariance.matrices()[: 1 if self.structure[0] == "E" else None]
        gaps = [
            _log_det(matrix) - _log_det(self.anchor) + np.trace(np.linalg.solve(matrix, self.anchor)) - d
            for matrix in matrices
        ]
        return float(self.levels.columns.spread_prior / 2 * np.sum(gaps))

    def free_parameters(self, params: Blend) -> int:
        return self.levels.free_parameters(params.levels) + self._block_parameters(len(params))

    # --- what the loop asks

    def centres(self, params: Blend) -> Array:
        return params.mean

    def vacant(self, params: Blend) -> Array:
        return np.empty(0, dtype=np.intp)

    def move(self, params: Blend, which: Array, centres: Array) -> Blend:
        return replace(params, numbers=self.gaussian.move(params.numbers, which, centres))

    def select(self, params: Blend, which: Array | Sequence[int]) -> Blend:
        numbers = self.gaussian.select(params.numbers, which)
        numbers = replace(numbers, mixing=numbers.mixing / numbers.mixing.sum())
        return Blend(numbers, self._even(self.levels.select(params.levels, which)))

    def same(self, one: Blend, other: Blend) -> bool:
        return self.gaussian.same(one.numbers, other.numbers) and np.array_equal(
            one.log_level, other.log_level
        )

    def status(self, params: Blend) -> str:
        return params.numbers.status


def _cells(counts: Array) -> CellSums:
    """Sums of levels alone."""
    empty = np.zeros((len(counts), 0))
    return CellSums(empty, empty, empty, counts)


def _levels_of(block: Block) -> Block:
    """The block without its numbers."""
    empty = np.empty((block.n_rows, 0))
    return Block(
        empty,
        block.encoding.columns(np.arange(0)),
        first_row=block.first_row,
        weight=block.weight,
        codes=block.codes,
    )


def _told(block: Block) -> Array:
    """1 for rows with an observed cell."""
    if block.complete:
        return np.ones(block.n_rows)
    told = np.asarray((~np.isnan(block.raw)).any(axis=1))
    if block.codes is not None:
        told = told | (block.codes >= 0).any(axis=1)
    return np.asarray(told, dtype=np.float64)


def _together(count: Array, mean: Array, scatter: Array, i: int, j: int) -> tuple[float, Array, Array]:
    both = count[i] + count[j]
    away = mean[j] - mean[i]
    wide = scatter[i] + scatter[j] + count[i] * count[j] / both * np.outer(away, away)
    return float(both), mean[i] + count[j] / both * away, wide


def _log_det(matrix: Array) -> float:
    sign, value = np.linalg.slogdet(matrix)
    return float(value) if sign > 0 else -np.inf

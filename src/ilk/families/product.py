"""Components over mixed columns: Gaussian numbers, categories and counts, the groups independent given the component.

    log density_k = log N(numbers | mean_k, covariance_k) + sum_c log share_kc(level_c)
                  + sum_j log Poisson(count_j | rate_kj)

The numbers have any of the fourteen covariance structures; an ordinal column is taken as a category, its order unused.
With categories alone this is latent class analysis (Goodman 1974). A missing cell drops out of the likelihood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from ilk import kernels
from ilk.families import missing
from ilk.families.base import ExactPair, Partial, Trim
from ilk.families.centroid import coded
from ilk.families.covariance import Covariance
from ilk.families.gaussian import LOG_2_PI, Gaussian, Mixture
from ilk.families.mixture import Components, MixtureFamily, anything_observed
from ilk.families.prior import Prior
from ilk.kernels.plain_product import ProductSums
from ilk.table.block import Array, Block, is_sparse

SMALLEST = float(np.finfo(np.float64).tiny)
"""A level or count of share 0 scores the log of this: impossible beside a component where it is possible, and still
comparable where it is not possible anywhere."""


@dataclass(frozen=True)
class Categories:
    """Categorical columns: where their levels begin, and their shares in the whole table.

    `smoothing` pseudo-rows with these shares are the prior of every component and column, those of counts too; 0 is
    plain maximum likelihood. A level that no row has says nothing.
    """

    level_start: Array  # (columns + 1,)
    pooled: Array  # (levels,)
    smoothing: float = 0.0

    def shares(self, counts: Array) -> Array:
        """Shares of the levels (K, levels) from their counts; the table's where a component has no row."""
        counts = counts + self.smoothing * self.pooled
        total = self.by_column(counts)
        table = np.tile(self.pooled, (len(counts), 1))
        return np.asarray(np.divide(counts, total, out=table, where=total > 0))

    def logs(self, share: Array) -> Array:
        return np.where(self.pooled > 0, np.log(np.maximum(share, SMALLEST)), 0.0)

    def penalty(self, share: Array) -> float:
        """smoothing * KL(pooled || share) over components and columns: minus the log prior, 0 at the table's shares."""
        if not self.smoothing:
            return 0.0
        return self.smoothing * float((self.pooled * (self.logs(self.pooled) - self.logs(share))).sum())

    def free_parameters(self) -> int:
        """Of one component: the levels that occur, less one per column that has any."""
        occurs = self.by_column((self.pooled > 0).astype(np.float64)[None])[0][self.level_start[:-1]]
        return int(np.maximum(occurs - 1, 0).sum())

    def by_column(self, counts: Array) -> Array:
        """Per level, the total of its column (K, levels)."""
        total = np.add.reduceat(counts, self.level_start[:-1], axis=1)
        return np.repeat(total, np.diff(self.level_start), axis=1)

    def draw(self, share: Array, label: Array, generator: np.random.Generator) -> Array:
        """Codes (rows, columns) drawn from the components `label`."""
        codes = np.empty((len(label), len(self.level_start) - 1), dtype=np.int32)
        for column, begin in enumerate(self.level_start[:-1]):
            reached = np.cumsum(share[:, begin : self.level_start[column + 1]], axis=1)[label]
            codes[:, column] = (generator.random(len(label))[:, None] * reached[:, -1:] >= reached).sum(
                axis=1
            )
        return codes


NO_CATEGORIES = Categories(np.zeros(1, dtype=np.int64), np.empty(0))


@dataclass(frozen=True)
class ProductMixture(Components):
    """Parameters: `mean` and `covariance` of the measured columns, shares of the levels, rates of the counts."""

    covariance: Covariance
    share: Array  # (K, levels)
    rate: Array  # (K, counts), in the user's units

    @cached_property
    def numbers(self) -> Mixture:
        """The Gaussian part, its log densities without mixing shares."""
        return Mixture(np.ones(len(self.mean)), self.mean, self.covariance, status=self.status)


@dataclass(frozen=True)
class Product(MixtureFamily[ProductMixture]):
    """A mixture of products; `column_variances` are those of the measured columns, the ones that are no counts."""

    prior: Prior | None = field(default=None, kw_only=True)
    categories: Categories = field(default=NO_CATEGORIES, kw_only=True)
    is_count: Array = field(
        default_factory=lambda: np.empty(0, dtype=bool), kw_only=True
    )  # of the numeric columns
    pooled_rate: Array = field(default_factory=lambda: np.empty(0), kw_only=True)

    @property
    def name(self) -> str:
        return f"product {self.structure.name}"

    @cached_property
    def gaussian(self) -> Gaussian:
        return Gaussian(self.structure, self.column_variances, self.membership, prior=self.prior)

    @property
    def _has_numbers(self) -> bool:
        return len(self.column_variances) > 0

    @cached_property
    def _along(self) -> bool:
        """Whether all columns are independent given the component."""
        along = self.structure.for_columns(len(self.column_variances)).orientation == "I"
        return along or not self._has_numbers

    def _fused(self, block: Block) -> bool:
        """Whether one kernel does it all: numbers along their columns, and no counts but on a device."""
        return self._along and (block.on_device or not self.is_count.any())

    @property
    def device_rows(self) -> str:  # type: ignore[override]
        return "any" if self._along else ""

    # --- from rows to sums

    def step(self, params: ProductMixture, block: Block, cut: Trim) -> Partial:
        if not self._fused(block):
            membership, cost = self.counted(self.scores(params, block), block, cut)
            return Partial(self._gather(params, block, membership), cost)
        given = block.weight, *self._cells(params), self.hard, cut.limit, cut.share
        sums, total, _ = kernels.product_step(*coded(block), block.codes, *given, **self._counts)
        return Partial(self._named(sums, block), ExactPair(np.array([total, 0.0])))

    def gather(self, params: ProductMixture, block: Block, membership: Array) -> dict[str, Array]:
        """Sums under given memberships (rows, K), about `params.mean`; for starts."""
        counted = block.weights * anything_observed(block)
        return self._gather(params, block, membership * counted[:, None])

    def _gather(self, params: ProductMixture, block: Block, membership: Array) -> dict[str, Array]:
        if self._fused(block):
            sums = kernels.product_sums(
                *coded(block), block.codes, membership, params.mean, self.categories.level_start
            )
            return self._named(sums, block)
        nothing = coded(_only(block, np.zeros(block.n_columns, dtype=bool)))
        none = np.empty((len(params.mean), 0))
        levels = kernels.product_sums(
            *nothing, block.codes, membership, none, self.categories.level_start
        ).counts
        found = {"count": membership.sum(axis=0), "levels": levels}
        if self._has_numbers:
            found |= missing.gather(params.numbers, _only(block, ~self.is_count), membership)
        events, seen = counted_events(block, self.is_count)
        exposure = (
            np.repeat(found["count"][:, None], events.shape[1], axis=1)
            if seen is None
            else membership.T @ seen
        )
        return found | {"events": np.asarray(membership.T @ events), "exposure": exposure}

    def scores(self, params: ProductMixture, block: Block) -> Array:
        """Log of mixing share times density of the observed cells (rows, K)."""
        if self._fused(block):
            return kernels.product_scores(*coded(block), block.codes, *self._cells(params))
        *_, log_level, level_start = self._cells(params)
        none = np.empty((len(params.mean), 0))
        nothing = coded(_only(block, np.zeros(block.n_columns, dtype=bool)))
        scores = kernels.product_scores(
            *nothing, block.codes, params.log_mixing, none, none, none, log_level, level_start
        )
        if self._has_numbers:
            scores = scores + self.gaussian.scores(params.numbers, _only(block, ~self.is_count))
        events, seen = counted_events(block, self.is_count)
        scores += events @ np.ascontiguousarray(np.log(np.maximum(params.rate, SMALLEST)).T)
        scores -= params.rate.sum(axis=1) if seen is None else seen @ params.rate.T
        return np.asarray(scores - log_factorials(events)[:, None])

    def ranked(self, params: ProductMixture, block: Block, *, hard: bool) -> tuple[Array, Array, Array]:
        if not self._fused(block):
            return super().ranked(params, block, hard=hard)
        given = self._cells(params)
        return kernels.product_labels(*coded(block), block.codes, *given, hard=hard, **self._counts)

    @property
    def _counts(self) -> dict[str, Array]:
        """Which columns are counts, for the product kernels, where any are."""
        return {"counts": self.is_count} if self.is_count.any() else {}

    def _cells(self, params: ProductMixture) -> tuple[Array, ...]:
        """The components as the product kernels take them."""
        logs = params.covariance.log_variance
        numbers = params.mean, np.exp(-logs), -(logs + LOG_2_PI) / 2
        if self.is_count.any():
            log_rate = np.log(np.maximum(params.rate, SMALLEST))
            events = np.zeros_like(log_rate), log_rate, -params.rate
            numbers = tuple(map(self._beside_counts, numbers, events))  # type: ignore[assignment]
        return params.log_mixing, *numbers, self.categories.logs(params.share), self.categories.level_start

    def _beside_counts(self, measured: Array, events: Array) -> Array:
        """What measured columns and counts have, in the order of the table (K, columns)."""
        found = np.empty((len(measured), len(self.is_count)))
        found[:, ~self.is_count], found[:, self.is_count] = measured, events
        return found

    def _named(self, sums: ProductSums, block: Block) -> dict[str, Array]:
        if not self.is_count.any():
            return named_sums(sums, block)
        events, exposure = sums.first[:, self.is_count], sums.observed[:, self.is_count]
        measured = {name: getattr(sums, name)[:, ~self.is_count] for name in ("observed", "first", "second")}
        return named_sums(sums._replace(**measured), block) | {"events": events, "exposure": exposure}

    # --- from sums to parameters

    def update(self, params: ProductMixture, sums: Mapping[str, Any]) -> ProductMixture:
        new = replace(params, status="ok", starved=())
        if self._has_numbers:
            numbers = self.gaussian.update(params.numbers, sums)
            spread = {name: getattr(numbers, name) for name in ("mean", "covariance", "status", "starved")}
            new = replace(new, **spread)
        if len(self.categories.pooled):
            new = replace(new, share=self.categories.shares(sums["levels"]))
        if len(self.pooled_rate):
            exposure = sums["exposure"] + self.categories.smoothing
            events = sums["events"] + self.categories.smoothing * self.pooled_rate
            new = replace(new, rate=np.divide(events, exposure, out=params.rate.copy(), where=exposure > 0))
        return self.with_shares(new, sums["count"])

    def first_updates(self, start: ProductMixture, sums: Mapping[str, Any]) -> list[ProductMixture]:
        """With shares and rates a pseudo-row away from 0: EM never leaves 0, and in a partition many are by chance."""
        inside = replace(self.categories, smoothing=max(self.categories.smoothing, 1.0))
        return [replace(self, categories=inside).update(start, sums)]

    def penalty(self, params: ProductMixture) -> float:
        numbers = self.gaussian.penalty(params.numbers) if self._has_numbers else 0.0
        return numbers + self.categories.penalty(params.share) + self._rate_penalty(params.rate)

    def _rate_penalty(self, rate: Array) -> float:
        """smoothing * KL(Poisson of the table || rate) over components and columns, as for shares."""
        if not self.categories.smoothing:
            return 0.0
        pooled, floor = self.pooled_rate, np.maximum(rate, SMALLEST)
        apart = xlogy(pooled, np.maximum(pooled, SMALLEST)) - xlogy(pooled, floor)
        return self.categories.smoothing * float((apart - pooled + rate).sum())

    def free_parameters(self, params: ProductMixture) -> int:
        """Mixing shares; means and spreads; levels that occur less one per column; rates."""
        k = len(params.mean)
        own = self.categories.free_parameters() + len(self.pooled_rate)
        numbers = super().free_parameters(params) if self._has_numbers else 0 if self.equal_mixing else k - 1
        return numbers + k * own

    # --- components as such

    def start(self, centres: Array) -> ProductMixture:
        """Components of the table's own spread, shares and rates at `centres` (K, numeric columns)."""
        k = len(centres)
        mean = np.array(centres[:, ~self.is_count] if self.is_count.any() else centres, dtype=np.float64)
        covariance = (
            self.gaussian.start(mean).covariance if self._has_numbers else Covariance(np.empty((k, 0)))
        )
        share, rate = np.tile(self.categories.pooled, (k, 1)), np.tile(self.pooled_rate, (k, 1))
        return ProductMixture(np.full(k, 1 / k), mean, covariance, share, rate, status="start")

    def move(self, params: ProductMixture, which: Array, centres: Array) -> ProductMixture:
        """The components `which` at `centres`, with the shares and rates of the table."""
        share, rate = params.share.copy(), params.rate.copy()
        share[which], rate[which] = self.categories.pooled, self.pooled_rate
        points = centres[:, ~self.is_count] if self.is_count.any() else centres
        return replace(super().move(params, which, points), share=share, rate=rate)

    def select(self, params: ProductMixture, which: Array | Sequence[int]) -> ProductMixture:
        which = np.asarray(which)
        return replace(
            super().select(params, which),
            covariance=params.covariance.select(which),
            share=params.share[which],
            rate=params.rate[which],
        )

    def same(self, one: ProductMixture, other: ProductMixture) -> bool:
        return (
            super().same(one, other)
            and np.array_equal(one.covariance.log_variance, other.covariance.log_variance)
            and np.array_equal(one.share, other.share)
            and np.array_equal(one.rate, other.rate)
        )

    def draw(
        self, params: ProductMixture, label: Array, generator: np.random.Generator
    ) -> tuple[Array, Array, Array]:
        """Encoded measured cells, counts and codes of rows drawn from the components `label` (rows,)."""
        numbers = np.empty((len(label), 0))
        if self._has_numbers:
            numbers = self.gaussian.draw(params.numbers, label, generator)
        counts = generator.poisson(params.rate[label]).astype(np.float64)
        return numbers, counts, self.categories.draw(params.share, label, generator)


def counted_events(block: Block, is_count: Array) -> tuple[Any, Array | None]:
    """The counts of a block, 0 where missing, and which are there; None for compressed ones, which all are."""
    if is_sparse(block.raw):
        return block.raw, None
    events = block.raw[:, is_count].astype(np.float64)
    seen = ~np.isnan(events)
    return np.where(seen, events, 0.0), seen


def log_factorials(events: Any) -> Array:
    """Sum over the counts of each row."""
    if not is_sparse(events):
        return np.asarray(gammaln(events + 1).sum(axis=1))
    logs = type(events)((gammaln(events.data + 1), events.indices, events.indptr), shape=events.shape)
    return np.asarray(logs.sum(axis=1))


def named_sums(sums: ProductSums, block: Block) -> dict[str, Array]:
    """Sums of a product kernel by the names that updates know."""
    named = {"count": sums.weight, "shift": sums.first, "scatter": sums.second, "levels": sums.counts}
    return named if block.complete else named | {"cells": sums.observed}


def _only(block: Block, columns: Array) -> Block:
    """The block with some of its numeric columns."""
    if columns.all():
        return block
    raw = block.raw[:, columns] if columns.any() else np.empty((block.n_rows, 0))
    return replace(block, raw=raw, encoding=block.encoding.columns(columns), memo=None)

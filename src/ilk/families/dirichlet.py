"""A Dirichlet process mixture over mixed columns by variational Bayes, cut off after K sticks (Blei and Jordan 2006).

    stick_k  ~ Beta(1, concentration), share_k = stick_k prod_{j<k} (1 - stick_j)
    number   ~ N(mean_kd, 1 / precision_kd), precision_kd ~ Gamma(SHAPE, SHAPE * variance of the column),
               mean_kd ~ N(mean of the column, 1 / (STRENGTH * precision_kd))
    category ~ levels_kc, levels_kc ~ Dirichlet(PSEUDO_ROWS * shares of the table)

A row scores its expected log share plus the expected log densities of its observed cells, so the sums are those of
any mixture; the update turns them into posteriors, and the penalty is their divergence from the priors. Cost plus
penalty is minus the evidence lower bound, which never falls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma, gammaln

from ilk import kernels
from ilk.families.base import ExactPair, Partial, Trim
from ilk.families.centroid import coded
from ilk.families.covariance import Structure
from ilk.families.gaussian import LOG_2_PI
from ilk.families.mixture import Components, MixtureFamily, anything_observed
from ilk.families.product import NO_CATEGORIES, Categories
from ilk.table.block import Array, Block

STRENGTH = 0.01  # rows that the prior of a mean counts for; mclust's shrinkage
SHAPE = 1.0  # of the prior of a precision, which counts for two rows; its mean is that of the table
LEAST_RATE = 1e-240  # of a column small beside another: a model file holds no less
PSEUDO_ROWS = 1.0  # that the prior of the levels counts for


@dataclass(frozen=True)
class Posteriors(Components):
    """What is believed of each component: `mixing` is the expected share, `mean` the expected means."""

    log_share: Array  # (K,) expected log
    stick: Array  # (K, 2) Beta
    strength: Array  # (K, numbers)
    shape: Array
    rate: Array
    level: Array  # (K, levels) Dirichlet


POSTERIORS = ("mixing", "mean", "log_share", "stick", "strength", "shape", "rate", "level")
"""The arrays of the parameters."""


@dataclass(frozen=True)
class DirichletProcess(MixtureFamily[Posteriors]):
    """`column_means` and `column_variances` of the encoded table place the priors."""

    concentration: float = field(default=1.0, kw_only=True)
    column_means: Array = field(default_factory=lambda: np.empty(0), kw_only=True)
    categories: Categories = field(default=NO_CATEGORIES, kw_only=True)

    name = "dirichlet process"
    device_rows: ClassVar[str] = "any"

    # --- from rows to sums

    def step(self, params: Posteriors, block: Block, cut: Trim) -> Partial:
        sums, total, _ = kernels.product_step(
            *coded(block), block.codes, block.weight, *self._cells(params), False, cut.limit, cut.share
        )
        return Partial(_named(sums, block), ExactPair(np.array([total, 0.0])))

    def scores(self, params: Posteriors, block: Block) -> Array:
        """Expected log of share times density of the observed cells (rows, K)."""
        return kernels.product_scores(*coded(block), block.codes, *self._cells(params))

    def ranked(self, params: Posteriors, block: Block, *, hard: bool) -> tuple[Array, Array, Array]:
        return kernels.product_labels(*coded(block), block.codes, *self._cells(params), hard=hard)

    def gather(self, params: Posteriors, block: Block, membership: Array) -> dict[str, Array]:
        """Sums under given memberships (rows, K), about `params.mean`; for starts."""
        counted = membership * (block.weights * anything_observed(block))[:, None]
        start = self.categories.level_start
        return _named(kernels.product_sums(*coded(block), block.codes, counted, params.mean, start), block)

    def _cells(self, params: Posteriors) -> tuple[Array, Array, Array, Array, Array, Array]:
        """Expected logs as the product kernels take them."""
        log_precision = digamma(params.shape) - np.log(params.rate)
        constant = (log_precision - LOG_2_PI - 1 / params.strength) / 2
        with np.errstate(over="ignore"):  # of a column of one value beside others of 1e154
            precision = np.minimum(params.shape / params.rate, np.finfo(np.float64).max)
        start = self.categories.level_start
        return params.log_share, params.mean, precision, constant, self._log_levels(params.level), start

    def _log_levels(self, level: Array) -> Array:
        """Expected logs of the level shares; 0 for a level that no row has."""
        if not level.shape[1]:
            return level
        there = self.categories.pooled > 0
        total = digamma(np.maximum(self.categories.by_column(level), np.finfo(np.float64).tiny))
        return np.where(there, digamma(np.where(there, level, 1.0)) - total, 0.0)

    # --- from sums to posteriors

    def update(self, params: Posteriors, sums: Mapping[str, Any]) -> Posteriors:
        count = sums["count"]
        cells = np.asarray(sums.get("cells", np.broadcast_to(count[:, None], params.mean.shape)))
        shift = np.divide(sums["shift"], cells, out=np.zeros_like(params.mean), where=cells > 0)
        within = np.maximum(sums["scatter"] - cells * shift**2, 0.0)
        own = params.mean + shift
        away = own - self.column_means
        strength = STRENGTH + cells
        made = replace(
            params,
            mean=self.column_means + away * cells / strength,
            strength=strength,
            shape=SHAPE + cells / 2,
            rate=self._prior_rate + (within + away**2 * STRENGTH * cells / strength) / 2,
            level=PSEUDO_ROWS * self.categories.pooled + sums["levels"],
            status="ok",
        )
        return self._with_sticks(made, count)

    @property
    def _prior_rate(self) -> Array:
        return np.maximum(SHAPE * self.column_variances, LEAST_RATE)

    def _with_sticks(self, params: Posteriors, count: Array) -> Posteriors:
        """Sticks broken for the largest component first, the order in which the bound is highest."""
        order = np.argsort(-count, kind="stable")
        later = np.concatenate([np.cumsum(count[order][::-1])[::-1][1:], [0.0]])
        ordered = np.column_stack([1 + count[order], self.concentration + later])
        total = digamma(ordered.sum(axis=1))
        left = np.concatenate([[0.0], np.cumsum(digamma(ordered[:, 1]) - total)[:-1]])
        expected = ordered[:, 0] / ordered.sum(axis=1)
        mixing = expected * np.concatenate([[1.0], np.cumprod(1 - expected)[:-1]])
        stick, log_share, share = np.empty_like(ordered), np.empty_like(left), np.empty_like(mixing)
        stick[order], log_share[order] = ordered, digamma(ordered[:, 0]) - total + left
        share[order] = mixing
        return replace(params, stick=stick, log_share=log_share, mixing=share)

    def penalty(self, params: Posteriors) -> float:
        """Divergence of the posteriors from the priors, summed over components."""
        beta = _beta_divergence(params.stick, self.concentration)
        numbers = _normal_gamma_divergence(params, self.column_means, self._prior_rate)
        return beta + numbers + self._level_divergence(params.level)

    def _level_divergence(self, level: Array) -> float:
        if not level.shape[1]:
            return 0.0
        there = self.categories.pooled > 0
        prior = np.where(there, PSEUDO_ROWS * self.categories.pooled, 1.0)
        own = np.where(there, level, 1.0)
        cell = gammaln(prior) - gammaln(own) + (own - prior) * self._log_levels(level)
        start = self.categories.level_start[:-1]
        totals = np.add.reduceat(np.where(there, level, 0.0), start, axis=1)
        befores = np.add.reduceat(np.where(there, prior, 0.0), start)
        known = befores > 0
        column = gammaln(totals[:, known]) - gammaln(befores[known])
        return float(np.where(there, cell, 0.0).sum() + column.sum())

    # --- components as such

    def start(self, centres: Array) -> Posteriors:
        """Components at `centres` (K, numbers), their spreads and levels as the priors have them."""
        mean = np.array(centres, dtype=np.float64)
        k, shape = len(mean), mean.shape
        made = Posteriors(
            np.full(k, 1 / k),
            mean,
            np.zeros(k),
            np.ones((k, 2)),
            np.full(shape, STRENGTH),
            np.full(shape, SHAPE),
            np.tile(self._prior_rate, (k, 1)),
            np.tile(PSEUDO_ROWS * self.categories.pooled, (k, 1)),
            status="start",
        )
        return self._with_sticks(made, np.zeros(k))

    def select(self, params: Posteriors, which: Array | Sequence[int]) -> Posteriors:
        which = np.asarray(which)
        own = ("log_share", "stick", "strength", "shape", "rate", "level")
        return replace(super().select(params, which), **{name: getattr(params, name)[which] for name in own})

    def same(self, one: Posteriors, other: Posteriors) -> bool:
        return super().same(one, other) and all(
            np.array_equal(getattr(one, name), getattr(other, name)) for name in ("rate", "stick", "level")
        )


def process_of(params: Posteriors, level_start: Array) -> DirichletProcess:
    """A family that places rows by fitted parameters; its priors are those of no table, so it does not fit."""
    occurs = np.array((params.level > 0).any(axis=0), dtype=np.float64)  # every component has the pseudo-rows
    variance = np.ones(params.mean.shape[1])
    return DirichletProcess(Structure.parse("VVI"), variance, categories=Categories(level_start, occurs))


def _named(sums: Any, block: Block) -> dict[str, Array]:
    named = {"count": sums.weight, "shift": sums.first, "scatter": sums.second, "levels": sums.counts}
    return named if block.complete else named | {"cells": sums.observed}


def _beta_divergence(stick: Array, concentration: float) -> float:
    """KL(Beta(stick) || Beta(1, concentration))."""
    one, other = stick.T
    total = one + other
    norm = gammaln(total) - gammaln(one) - gammaln(other) - np.log(concentration)
    logs = (one - 1) * digamma(one) + (other - concentration) * digamma(other)
    return float((norm + logs - (total - 1 - concentration) * digamma(total)).sum())


def _normal_gamma_divergence(params: Posteriors, mean: Array, rate: Array) -> float:
    """KL of the posteriors of means and precisions from their priors."""
    ratio = STRENGTH / params.strength
    away = STRENGTH * params.shape * np.square((params.mean - mean) / np.sqrt(params.rate))
    means = (away + ratio - 1 - np.log(ratio)) / 2
    gammas = (params.shape - SHAPE) * digamma(params.shape) - gammaln(params.shape) + gammaln(SHAPE)
    gammas += SHAPE * (np.log(params.rate) - np.log(rate)) + params.shape * (rate / params.rate - 1)
    return float((means + gammas).sum())

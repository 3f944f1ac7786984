"""Laplace components: independent double-exponential columns, whose likelihood is highest at medians.

    density = prod_j exp(-|x_j - mean_kj| / scale_kj) / (2 scale_kj)

over the observed columns. The update of `mean` is the lower weighted median (memberships as weights), that of
log(scale) is `profile` on the sums of |x - mean|, with the six structures along the columns.
Medians are no sums: one update takes `N_DIGITS` passes that count the next digit of every median
(`table.order`) and one more that sums |x - median| about what they found. Memberships are those of the parameters
at the beginning of the update in all nine passes, so the log-likelihood never falls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ilk.families.base import Partial, Trim
from ilk.families.covariance import Covariance, update_covariance
from ilk.families.mixture import Components, MixtureFamily, anything_observed
from ilk.families.starved_components import update_lasting
from ilk.table.block import Array, Block
from ilk.table.quantiles import N_DIGITS, QuantileSearch

HALF = 0.5 * (
    1 - 1e-12
)  # where half the weight lies below, rounding of the weights does not choose the median
LAPLACE_STRUCTURES = ("EII", "VII", "EEI", "VEI", "EVI", "VVI")


@dataclass(frozen=True)
class LaplaceParams(Components):
    """Parameters: `mean` (K, d) are the medians, `log_scale` (K, d); `search` holds the next medians' digits."""

    log_scale: Array
    search: QuantileSearch | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Laplace(MixtureFamily[LaplaceParams]):
    """A mixture of Laplace components; a missing cell drops out. A scale of 0 is `singular`."""

    n_phases: ClassVar[int] = N_DIGITS + 1

    @property
    def name(self) -> str:
        return f"laplace {self.structure.name}"

    # --- from rows to sums

    def scores(self, params: LaplaceParams, block: Block) -> Array:
        numbers = block.numbers.astype(np.float64, copy=False)
        observed = ~np.isnan(numbers)
        own = np.empty((block.n_rows, len(params.mean)))
        for k, (mean, log_scale) in enumerate(zip(params.mean, params.log_scale, strict=True)):
            with np.errstate(over="ignore"):  # so far out that no density is left
                cells = np.abs(numbers - mean) * np.exp(-log_scale) + (log_scale + np.log(2))
            own[:, k] = params.log_mixing[k] - np.where(observed, cells, 0.0).sum(axis=1)
        return self.with_noise(params, block, own)

    def step(self, params: LaplaceParams, block: Block, cut: Trim) -> Partial:
        membership, cost = self.counted(self.scores(params, block), block, cut)
        search = params.search or QuantileSearch.begin(HALF, params.mean.shape)
        if search.done:
            return Partial(_spreads(_medians(params), block, membership), cost)
        shape = (block.n_rows, *params.mean.shape)
        values = np.broadcast_to(block.numbers[:, None, :], shape).ravel()
        group = np.broadcast_to(np.arange(params.mean.size).reshape(params.mean.shape), shape).ravel()
        weight = np.broadcast_to(membership[:, : shape[1], None], shape).ravel()
        counts = weight > 0
        return Partial({"digits": search.count(values[counts], group[counts], weight[counts])}, cost)

    def gather(self, params: LaplaceParams, block: Block, membership: Array) -> dict[str, Array]:
        """Sums under given memberships, about `params.mean`; for starts from a partition."""
        counted = block.weights * anything_observed(block)
        return _spreads(params.mean, block, membership * counted[:, None])

    # --- from sums to parameters

    def update(self, params: LaplaceParams, sums: Mapping[str, Any]) -> LaplaceParams:
        """One more digit of the medians, or, when all are known, new scales from the sums about them."""
        if "digits" in sums:
            search = params.search or QuantileSearch.begin(HALF, params.mean.shape)
            return replace(params, search=search.narrow(sums["digits"]))
        previous = None if params.status == "start" else Covariance(params.log_scale)
        unit = np.sqrt(self.column_variances)  # |x - mean| and scales are lengths, not squares
        spreads = self.structure, sums["cells"], sums["spread"], previous, unit
        found = update_lasting(update_covariance, *spreads) if self.hard else update_covariance(*spreads)
        scale = found.covariance.log_variance if found.status == "ok" else params.log_scale
        starved = tuple(found.components.tolist()) if found.status == "ok" else ()
        new = replace(params, mean=_medians(params), log_scale=scale, search=None, status=found.status)
        return self.with_shares(replace(new, starved=starved), sums["count"])

    # --- components as such

    def start(self, centres: Array) -> LaplaceParams:
        """Components of the table's own spread at `centres`: enough to gather sums about."""
        mixing, noise_share = self.start_shares(len(centres))
        spread = np.sqrt(self.column_variances / 2)
        if self.structure.shape == "I":
            spread = np.full_like(spread, spread.mean())
        log_scale = np.tile(np.log(spread), (len(centres), 1))
        mean = np.array(centres, dtype=np.float64)
        return LaplaceParams(mixing, mean, log_scale, noise_share=noise_share, status="start")

    def select(self, params: LaplaceParams, which: Array | Sequence[int]) -> LaplaceParams:
        which = np.asarray(which)
        return replace(super().select(params, which), log_scale=params.log_scale[which])

    def same(self, one: LaplaceParams, other: LaplaceParams) -> bool:
        return super().same(one, other) and np.array_equal(one.log_scale, other.log_scale)

    def draw(self, params: LaplaceParams, label: Array, generator: np.random.Generator) -> Array:
        """Encoded rows drawn from the components `label` (rows,)."""
        return generator.laplace(params.mean[label], np.exp(params.log_scale[label]))


def _medians(params: LaplaceParams) -> Array:
    """The medians just found; where there were none to find, the old place."""
    if params.search is None:
        return params.mean
    median = params.search.value
    return np.where(np.isnan(median), params.mean, median)


def _spreads(mean: Array, block: Block, membership: Array) -> dict[str, Array]:
    """count (K or K + 1), cells (K, d) = sum r and spread (K, d) = sum r |x - mean| over the observed cells."""
    numbers = block.numbers.astype(np.float64, copy=False)
    observed = ~np.isnan(numbers)
    own = membership[:, : len(mean)]
    spread = np.empty(mean.shape)
    for k in range(len(mean)):
        spread[k] = own[:, k] @ np.where(observed, np.abs(numbers - mean[k]), 0.0)
    return {"count": membership.sum(axis=0), "cells": own.T @ observed, "spread": spread}

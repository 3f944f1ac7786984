"""Gaussian components with any of the fourteen covariance structures.

Sums are gathered about the current means, so clusters far apart lose no digits; parameters come from the sums by
`covariance.update_covariance`. Missing cells enter by the observed-data likelihood (`missing.py`): no imputer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ilk import kernels
from ilk.families import missing
from ilk.families.base import Cut, Pair, Partial
from ilk.families.centroid import coded
from ilk.families.covariance import (
    Covariance,
    Prior,
    Structure,
    n_covariance_parameters,
    update_covariance,
)
from ilk.table.block import Array, Block

LOG_2_PI = float(np.log(2 * np.pi))
VANISHED = 1e-8  # share of the rows below which a soft component is gone


@dataclass(frozen=True)
class Noise:
    """A component that does not move: density exp(sum of log_density) * exp(-|precision (x - mean)|^2 / 2).

    Uniform noise has precision 0; a broad Gaussian has one over its standard deviations. Both per column, so
    that a missing cell drops out.
    """

    mean: Array
    precision: Array
    log_density: Array


@dataclass(frozen=True)
class Mixture:
    """Parameters of a Gaussian mixture, in encoded units. `noise_share` is 0 without a noise component."""

    mixing: Array
    mean: Array
    covariance: Covariance
    noise_share: float = 0.0
    status: str = "ok"

    @cached_property
    def whiten(self) -> Array:
        """Lower triangular W_k with |W_k (x - mean_k)|^2 the squared Mahalanobis distance, or its diagonal.

        From a QR decomposition of the covariance's square root, so its digits are not halved.
        """
        if self.covariance.axes is None:
            return np.exp(-self.covariance.log_variance / 2)
        half = self.covariance.own_axes() * np.exp(self.covariance.log_variance / 2)[:, None, :]
        upper = np.linalg.qr(half.swapaxes(1, 2), mode="r")
        identity = np.eye(upper.shape[-1])
        return np.stack([solve_triangular(u, identity, trans="T", lower=False) for u in upper])

    @cached_property
    def log_weight(self) -> Array:
        """Log of mixing share and normaliser per component."""
        with np.errstate(divide="ignore"):
            share = np.log(self.mixing)
        d = self.mean.shape[1]
        return np.asarray(share - (self.covariance.log_determinants() + d * LOG_2_PI) / 2)


@dataclass(frozen=True)
class Gaussian:
    """A mixture of Gaussians; cost = minus log-likelihood (of the classification when `membership` is hard).

    `column_variances` of the encoded table are the units of the singularity test.
    """

    structure: Structure
    column_variances: Array
    membership: str = "soft"
    equal_mixing: bool = False
    prior: Prior | None = None
    noise: Noise | None = None
    n_phases: int = 1
    starts_from_partition: bool = True

    @property
    def name(self) -> str:
        return f"gaussian {self.structure.name}"

    @property
    def hard(self) -> bool:
        return self.membership == "hard"

    # --- from rows to sums

    def step(self, params: Mixture, block: Block, cut: Cut) -> Partial:
        if not block.complete:
            scores = self.scores(params, block)
            membership, cost = kernels.memberships(scores, self.hard)
            counted = block.weights * cut.kept(cost) * missing.anything_observed(block)
            sums = missing.gather(params, block, membership * counted[:, None])
            return Partial(sums, _cost(float(counted @ np.where(counted > 0, cost, 0.0))))
        mean, whiten, log_weight = self._components(params)
        count, shift, scatter, cost = kernels.mixture_step(
            *coded(block), block.weight, mean, whiten, log_weight, self.hard, cut.limit, cut.share
        )
        return Partial({"count": count, "shift": shift, "scatter": scatter}, _cost(cost))

    def gather(self, params: Mixture, block: Block, membership: Array) -> dict[str, Array]:
        """Sums under given memberships (rows, K), about `params.mean`; for starts from a partition."""
        if not block.complete:
            counted = missing.anything_observed(block)[:, None]
            return missing.gather(params, block, membership * block.weights[:, None] * counted)
        membership = membership * block.weights[:, None]
        away = block.numbers.astype(np.float64)[:, None, :] - params.mean
        weighted = away * membership[:, :, None]
        diagonal = params.covariance.axes is None and self.structure.orientation == "I"
        scatter = (weighted * away).sum(axis=0) if diagonal else np.einsum("nki,nkj->kij", weighted, away)
        return {"count": membership.sum(axis=0), "shift": weighted.sum(axis=0), "scatter": scatter}

    def scores(self, params: Mixture, block: Block) -> Array:
        """Log of mixing share times density (rows, K), noise last."""
        if not block.complete:
            return missing.scores(params, block, self.noise)
        return kernels.mixture_scores(*coded(block), *self._components(params))

    def cost(self, params: Mixture, block: Block) -> Array:
        return -self.scores(params, block)

    def assign(self, params: Mixture, block: Block) -> tuple[Array, Array]:
        scores = self.scores(params, block)
        label = scores.argmax(axis=1).astype(np.int32)
        label[label == len(params.mean)] = -1  # noise
        return label, kernels.memberships(scores, self.hard)[1]

    def _components(self, params: Mixture) -> tuple[Array, Array, Array]:
        """Means, whitening and log weights of all components, the noise as one more."""
        if self.noise is None:
            return params.mean, params.whiten, params.log_weight
        whiten = params.whiten
        extra = np.diag(self.noise.precision) if whiten.ndim == 3 else self.noise.precision
        with np.errstate(divide="ignore"):
            log_weight = np.log(params.noise_share) + self.noise.log_density.sum()
        return (
            np.vstack([params.mean, self.noise.mean]),
            np.concatenate([whiten, extra[None]]),
            np.append(params.log_weight, log_weight),
        )

    # --- from sums to parameters

    def update(self, params: Mixture, sums: Mapping[str, Any]) -> Mixture:
        n_components = len(params.mean)
        count, shift, scatter = (sums[name][:n_components] for name in ("count", "shift", "scatter"))
        cells = sums["cells"][:n_components] if "cells" in sums else count
        by_cell = cells if cells.ndim == 2 else cells[:, None]
        away = np.divide(shift, by_cell, out=np.zeros_like(shift), where=by_cell > 0)
        mean = params.mean + away
        if scatter.ndim == 3:
            scatter = scatter - shift[:, :, None] * away[:, None, :]
        else:
            scatter = np.maximum(scatter - shift * away, 0.0)
        total, noise_share = float(sums["count"].sum()), params.noise_share
        if len(sums["count"]) > n_components:
            noise_share = float(sums["count"][n_components]) / total
        else:  # a partition knows no noise: it keeps the share it starts with
            total /= 1 - noise_share
        new = self._parameters(params, mean, cells, scatter)
        vanished = not self.hard and self.prior is None and (count < VANISHED * total).any()
        mixing = np.full(n_components, (1 - noise_share) / n_components) if self.equal_mixing else count / total
        return replace(
            new,
            mixing=mixing,
            noise_share=noise_share,
            status="component_vanished" if vanished else new.status,
        )

    def _parameters(self, params: Mixture, mean: Array, count: Array, scatter: Array) -> Mixture:
        """Means and covariances, with the prior if there is one."""
        if self.prior is not None:
            pseudo = self.prior.apply(self.structure, count, mean, scatter)
            mean, count, scatter = pseudo.mean, pseudo.count, pseudo.scatter
        previous = None if params.status == "start" else params.covariance
        found = update_covariance(self.structure, count, scatter, previous, self.column_variances)
        return Mixture(params.mixing, mean, found.covariance, status=found.status)

    def penalty(self, params: Mixture) -> float:
        """Minus the log prior density: what the cost of a posterior adds to that of the likelihood."""
        if self.prior is None:
            return 0.0
        return -self.prior.log_density(self.structure, params.covariance, params.mean)

    def status(self, params: Mixture) -> str:
        return params.status

    def free_parameters(self, params: Mixture) -> int:
        """Mixing shares, means and covariances; noise counts its share and, as in mclust, its volume."""
        k, d = params.mean.shape
        mixing = 0 if self.equal_mixing else k - 1
        noise = 2 if self.noise is not None else 0
        return mixing + noise + k * d + n_covariance_parameters(self.structure, k, d)

    # --- components as such

    def start(self, centres: Array) -> Mixture:
        """Round components of the table's own spread at `centres`: enough to gather sums about."""
        k = len(centres)
        share = 0.05 if self.noise is not None else 0.0
        logs = np.tile(np.log(self.column_variances), (k, 1))
        axes = None if self.structure.orientation == "I" else np.eye(centres.shape[1])
        covariance = Covariance(logs, axes)
        mixing = np.full(k, (1 - share) / k)
        return Mixture(mixing, np.array(centres, dtype=np.float64), covariance, share, status="start")

    def centres(self, params: Mixture) -> Array:
        return params.mean

    def vacant(self, params: Mixture) -> Array:
        return np.flatnonzero(params.mixing == 0) if self.hard else np.empty(0, dtype=np.intp)

    def move(self, params: Mixture, which: Array, centres: Array) -> Mixture:
        mean, mixing = params.mean.copy(), params.mixing.copy()
        mean[which] = np.where(np.isnan(centres), mean[which], centres)
        mixing[which] = 1.0 / len(mean)
        return replace(params, mean=mean, mixing=mixing / mixing.sum() * (1 - params.noise_share))

    def select(self, params: Mixture, which: Array | Sequence[int]) -> Mixture:
        which = np.asarray(which)
        covariance = params.covariance.select(which)
        return replace(params, mixing=params.mixing[which], mean=params.mean[which], covariance=covariance)

    def same(self, one: Mixture, other: Mixture) -> bool:
        return (
            np.array_equal(one.mean, other.mean)
            and np.array_equal(one.mixing, other.mixing)
            and np.array_equal(one.covariance.log_variance, other.covariance.log_variance)
        )


def _cost(cost: float) -> Pair:
    return Pair(np.array([cost, 0.0]))

"""Gaussian components with any of the fourteen covariance structures.

Sums are gathered about the current means, so clusters far apart lose no digits; parameters come from the sums by
`covariance.update_covariance`. Missing cells enter by the observed-data likelihood (`missing.py`): no imputer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ilk import kernels
from ilk.families import missing
from ilk.families.base import ExactPair, Partial, Trim
from ilk.families.centroid import coded
from ilk.families.covariance import Covariance, CovarianceUpdate, Structure, spread_pooled, update_covariance
from ilk.families.mixture import Components, MixtureFamily, anything_observed
from ilk.families.mixture import Noise as Noise  # part of this page's face
from ilk.families.prior import Prior
from ilk.families.starved_components import update_lasting
from ilk.kernels.plain_mixture import Ending
from ilk.table.block import Array, Block

if kernels.COMPILED:
    from ilk.kernels import compiled

COMPILED_COLUMNS = 40  # beyond, LAPACK's eigenvectors are faster than rotations
LOG_2_PI = float(np.log(2 * np.pi))
MOST_LOG_PRECISION = 700.0  # of a column small beside another: a double holds a little more


@dataclass(frozen=True)
class Mixture(Components):
    """Parameters of a mixture of Gaussian or, with degrees of freedom `dof` (K,), Student components."""

    covariance: Covariance
    dof: Array | None = None

    @cached_property
    def whiten(self) -> Array:
        """Lower triangular W_k with |W_k (x - mean_k)|^2 the squared Mahalanobis distance, or its diagonal."""
        return whitening(self.covariance)

    @cached_property
    def common_whiten(self) -> Array:
        """The same (1, d, d) where all components share one covariance."""
        return whitening(self.covariance.select([0]))

    @cached_property
    def conditionals(self) -> dict[bytes, missing.Conditional]:
        """Conditional distributions by pattern of missing cells, filled as patterns are met."""
        return {}

    @cached_property
    def log_weight(self) -> Array:
        """Log of mixing share and normaliser per component."""
        d = self.mean.shape[1]
        return np.asarray(self.log_mixing - (self.covariance.log_determinants() + d * LOG_2_PI) / 2)


@dataclass(frozen=True)
class Gaussian(MixtureFamily[Mixture]):
    """A mixture of Gaussians: log density = -(|whiten (x - mean)|^2 + log|covariance| + d log 2 pi) / 2."""

    prior: Prior | None = field(default=None, kw_only=True)
    shares_blocks: ClassVar[bool] = kernels.COMPILED

    @property
    def name(self) -> str:
        return f"gaussian {self.structure.name}"

    @property
    def runs_compiled(self) -> bool:
        return self.prior is None and self.noise is None

    @property
    def always_kept(self) -> bool:
        return self.prior is not None

    @property
    def device_rows(self) -> str:  # type: ignore[override]
        along = self.structure.for_columns(len(self.column_variances)).orientation == "I"
        return "" if not kernels.COMPILED else "any" if along else "parted"

    # --- from rows to sums

    def step(self, params: Mixture, block: Block, cut: Trim) -> Partial:
        if not block.complete:
            return self._incomplete_step(params, block, cut)
        mean, whiten, log_weight = self._components(params)
        rules, parts = (self.hard, cut.limit, cut.share), (block.part_rows, block.threads)
        count, shift, scatter, total = kernels.mixture_step(
            *coded(block), block.weight, mean, whiten, log_weight, *rules, *parts
        )
        k = len(params.mean)  # the noise has no mean to move
        return Partial({"count": count, "shift": shift[:k], "scatter": scatter[:k]}, ExactPair(total))

    def _incomplete_step(self, params: Mixture, block: Block, cut: Trim) -> Partial:
        """The same over the observed cells: along the columns by the kernel of products, which drops a missing cell."""
        if params.covariance.axes is None:
            given = block.weight, *self._cells(params), self.hard, cut.limit, cut.share
            found, total, _ = kernels.product_step(*coded(block), None, *given)
            own = {"shift": found.first, "scatter": found.second, "cells": found.observed}
            sums = {"count": found.weight} | {name: each[: len(params.mean)] for name, each in own.items()}
            return Partial(sums, ExactPair(np.array([total, 0.0])))
        membership, cost = self.counted(self.scores(params, block), block, cut)
        sums = missing.gather(params, block, membership)
        if self._tied(params):  # as of complete rows, to whose sums these may be added
            sums["scatter"] = sums["scatter"].sum(axis=0, keepdims=True)
        return Partial(sums, cost)

    def gather(self, params: Mixture, block: Block, membership: Array) -> dict[str, Array]:
        """Sums under given memberships (rows, K), of complete rows also under labels (rows,), about `params.mean`; for
        starts from a partition."""
        if block.complete:
            own = "diagonal" if params.covariance.axes is None else "full"
            given = membership, "pooled" if self._tied(params) else own
            parts = block.part_rows, block.threads
            found = kernels.mixture_gather(*coded(block), block.weight, params.mean, *given, *parts)
            return dict(zip(("count", "shift", "scatter"), found, strict=True))
        counted = block.weights * anything_observed(block)
        return missing.gather(params, block, membership * counted[:, None])

    def scores(self, params: Mixture, block: Block) -> Array:
        """Log of mixing share times density of the observed cells (rows, K), noise last."""
        if block.complete:
            return kernels.mixture_scores(*coded(block), *self._components(params))
        found = missing.distances(params, block)
        constant = found.log_determinant + found.n_observed * LOG_2_PI
        return self.with_noise(params, block, params.log_mixing - (found.squared + constant) / 2)

    def ranked(self, params: Mixture, block: Block, *, hard: bool) -> tuple[Array, Array, Array]:
        if block.complete and params.dof is None:
            return kernels.mixture_labels(*coded(block), *self._components(params), hard)
        if params.covariance.axes is None and params.dof is None:
            return kernels.product_labels(*coded(block), None, *self._cells(params), hard=hard)
        return super().ranked(params, block, hard=hard)

    def ending(self, params: Mixture, block: Block) -> Ending | None:
        if not (block.complete and self.shares_blocks):
            return None
        mean, whiten, log_weight = self._components(params)
        rest = self.hard, block.part_rows, block.threads
        return kernels.mixture_ending(
            *coded(block), block.weight, mean, whiten, log_weight, len(params.mean), *rest
        )

    def _tied(self, params: Mixture) -> bool:
        """Whether to whiten rows once for all components and to gather one scatter.

        Multiplications a row: columns^2 once, three a column and component, and one for two components; against
        columns^2 a component.
        """
        k, d = params.mean.shape
        pays = d * d + 3 * k * d + k * k / 2 < k * d * d
        return self.structure.name == "EEE" and self.noise is None and pays

    def _components(self, params: Mixture) -> tuple[Array, Array, Array]:
        """Means, whitening and log weights of all components, the noise as one more."""
        if self.noise is None:
            whiten = params.common_whiten if self._tied(params) else params.whiten
            return params.mean, whiten, params.log_weight
        whiten = params.whiten
        extra = np.diag(self.noise.precision) if whiten.ndim == 3 else self.noise.precision
        with np.errstate(divide="ignore"):
            log_weight = np.log(params.noise_share) + self.noise.log_density.sum()
        return (
            np.vstack([params.mean, self.noise.mean]),
            np.concatenate([whiten, extra[None]]),
            np.append(params.log_weight, log_weight),
        )

    def _cells(self, params: Mixture) -> tuple[Array, ...]:
        """Components along the columns as the product kernels take them, the noise as one more."""
        logs, mean, log_mixing = params.covariance.log_variance, params.mean, params.log_mixing
        precision, log_norm = np.exp(np.minimum(-logs, MOST_LOG_PRECISION)), -(logs + LOG_2_PI) / 2
        if self.noise is not None:
            mean = np.vstack([mean, self.noise.mean])
            precision = np.vstack([precision, np.square(self.noise.precision)])
            log_norm = np.vstack([log_norm, self.noise.log_density])
            with np.errstate(divide="ignore"):
                log_mixing = np.append(log_mixing, np.log(params.noise_share))
        no_levels = np.empty((len(mean), 0)), np.zeros(1, dtype=np.int64)
        return log_mixing, mean, precision, log_norm, *no_levels

    # --- from sums to parameters

    def update(self, params: Mixture, sums: Mapping[str, Any]) -> Mixture:
        """Means shift / pull, scatters about them, then the structure's covariances; `pull` is count or cells
        but for Student components."""
        n_components = len(params.mean)
        count, shift, scatter = (sums[name][:n_components] for name in ("count", "shift", "scatter"))
        cells = sums.get("cells", count)
        pull = sums.get("pull", cells)
        by_cell = pull if pull.ndim == 2 else pull[:, None]
        away = shift / np.where(by_cell > 0, by_cell, np.inf)
        if scatter.ndim == 3:
            moved = shift[:, :, None] * away[:, None, :]
            if len(scatter) == n_components:
                scatter = scatter - moved
            else:
                assert self.structure.name == "EEE", "only one covariance for all takes one scatter for all"
                scatter = spread_pooled(scatter[0] - moved.sum(axis=0), n_components)
            diagonal = np.einsum(
                "kii->ki", scatter
            )  # a view; rounding may leave a constant column just below zero
            np.maximum(diagonal, 0.0, out=diagonal)
        else:
            scatter = np.maximum(scatter - shift * away, 0.0)
        new = self._spread(params, params.mean + away, cells, pull, scatter)
        return self.with_shares(new, sums["count"])

    def first_updates(self, start: Mixture, sums: Mapping[str, Any]) -> list[Mixture]:
        """EVE and VVE have several optima of the common axes: from the best of a search, and from the columns."""
        found = [self.update(start, sums)]
        return found + self.updates_from(start, sums, [np.eye(start.mean.shape[1])])

    def updates_from(self, start: Mixture, sums: Mapping[str, Any], sides: Sequence[Array]) -> list[Mixture]:
        """For EVE and VVE, the updates that go on from given common axes."""
        if self.structure.name not in ("EVE", "VVE"):
            return []
        logs = start.covariance.log_variance
        begun = [replace(start, covariance=Covariance(logs, axes), status="ok") for axes in sides]
        return [self.update(side, sums) for side in begun]

    def _spread(self, params: Mixture, mean: Array, count: Array, pull: Array, scatter: Array) -> Mixture:
        """New means and covariances, with the prior if there is one; the old covariances where singular.

        A hard component that is singular by itself is starved, the others go on."""
        if self.prior is not None:
            pseudo = self.prior.apply(self.structure, pull, mean, scatter)
            mean, count, scatter = pseudo.mean, count + (pseudo.count - pull), pseudo.scatter
        previous = None if params.status == "start" else params.covariance
        sums = self.structure, count, scatter, previous, self.column_variances
        found = update_lasting(quick_update, *sums) if self.hard else quick_update(*sums)
        covariance = found.covariance if found.status == "ok" else params.covariance
        starved = tuple(found.components.tolist()) if found.status == "ok" else ()
        return replace(params, mean=mean, covariance=covariance, status=found.status, starved=starved)

    def penalty(self, params: Mixture) -> float:
        """Minus the log prior density: what the cost of a posterior adds to that of the likelihood."""
        if self.prior is None:
            return 0.0
        return -self.prior.log_density(self.structure, params.covariance, params.mean)

    # --- components as such

    def start(self, centres: Array) -> Mixture:
        """Components of the table's own spread at `centres`: enough to gather sums about."""
        mixing, noise_share = self.start_shares(len(centres))
        spread = self.column_variances
        if self.structure.shape == "I":  # within the structure, so that no later update can be worse
            spread = np.full_like(spread, spread.mean())
        identity = np.eye(centres.shape[1])
        axes = {"I": None, "E": identity, "V": np.tile(identity, (len(centres), 1, 1))}[
            self.structure.orientation
        ]
        covariance = Covariance(np.tile(np.log(spread), (len(centres), 1)), axes)
        mean = np.array(centres, dtype=np.float64)
        return Mixture(mixing, mean, covariance, noise_share=noise_share, status="start")

    def select(self, params: Mixture, which: Array | Sequence[int]) -> Mixture:
        which = np.asarray(which)
        dof = None if params.dof is None else params.dof[which]
        chosen = super().select(params, which)
        return replace(chosen, covariance=params.covariance.select(which), dof=dof)

    def same(self, one: Mixture, other: Mixture) -> bool:
        return (
            super().same(one, other)
            and np.array_equal(one.covariance.log_variance, other.covariance.log_variance)
            and (one.dof is None or np.array_equal(one.dof, other.dof))  # type: ignore[arg-type]
        )

    def draw(self, params: Mixture, label: Array, generator: np.random.Generator) -> Array:
        """Encoded rows drawn from the components `label` (rows,)."""
        half = params.covariance.own_axes() * np.exp(params.covariance.log_variance / 2)[:, None, :]
        standard = generator.standard_normal((len(label), params.mean.shape[1]))
        return np.asarray(params.mean[label] + np.einsum("nij,nj->ni", half[label], standard))


def whitening(covariance: Covariance) -> Array:
    """Inverse lower triangular roots (K, d, d) of the covariances, or their diagonals (K, d).

    From a QR decomposition of the covariance's square root, so its digits are not halved.
    """
    if covariance.axes is None:
        return np.exp(-covariance.log_variance / 2)
    if kernels.COMPILED and covariance.log_variance.shape[1] <= COMPILED_COLUMNS:
        return compiled.whitening(covariance.log_variance, covariance.axes)
    return plain_whitening(covariance)


def plain_whitening(covariance: Covariance) -> Array:
    """The same for covariances with axes, by LAPACK."""
    half = covariance.own_axes() * np.exp(covariance.log_variance / 2)[:, None, :]
    upper = np.asarray(np.linalg.qr(half.swapaxes(1, 2), mode="r"))
    return np.tril(np.linalg.inv(upper.swapaxes(1, 2)))


def quick_update(
    structure: Structure, count: Array, scatter: Array, previous: Covariance | None, column_variances: Array
) -> CovarianceUpdate:
    """`update_covariance` by its compiled twin where there is one: complete rows, not too many columns."""
    if not kernels.COMPILED or count.ndim == 2 or len(column_variances) > COMPILED_COLUMNS:
        return update_covariance(structure, count, scatter, previous, column_variances)
    letters = structure.for_columns(len(column_variances)).name.ljust(3, "I")
    before = None if previous is None else (previous.log_variance, previous.axes)
    count, scatter = np.ascontiguousarray(count), np.ascontiguousarray(scatter)
    found = compiled.update_covariance(letters, count, scatter, before, column_variances)
    log_variance, axes, status, components = found
    if status == "starved":  # the plain version knows what to show instead
        return update_covariance(structure, count, scatter, previous, column_variances)
    return CovarianceUpdate(Covariance(log_variance, axes), status, components)

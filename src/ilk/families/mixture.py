"""What every mixture family shares: mixing shares, the noise component, memberships, where components lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from ilk import kernels
from ilk.families.base import ExactPair, Trim
from ilk.families.covariance import Structure, n_covariance_parameters
from ilk.kernels.constants import VANISHED
from ilk.kernels.plain_mixture import LOG_TINY, Ending
from ilk.table.block import Array, Block

NOISE_SHARE = 0.05  # of the rows, that a noise component has at the start


def shares_of(scores: Array) -> Array:
    """Memberships (rows, components) as users see them. A row so far from all components that no score is left
    belongs to the one that `assign` gives it: to none, as the sums have it, would add up to nothing."""
    shares: Array = kernels.memberships(scores, False)[0]
    far = np.flatnonzero(np.isneginf(scores.max(axis=1)))
    shares[far, scores[far].argmax(axis=1)] = 1.0
    return shares


@dataclass(frozen=True)
class Noise:
    """A component that does not move: density exp(sum of log_density) * exp(-|precision (x - mean)|^2 / 2).

    Uniform noise has precision 0; a broad Gaussian has one over its standard deviations. Both per column, so
    that a missing cell drops out.
    """

    mean: Array
    precision: Array
    log_density: Array

    def log_densities(self, block: Block) -> Array:
        """Log density of the observed cells of each row (rows,)."""
        numbers = block.numbers.astype(np.float64, copy=False)
        observed = ~np.isnan(numbers)
        away = np.where(observed, (numbers - self.mean) * self.precision, 0.0)
        return np.asarray(observed @ self.log_density - np.square(away).sum(axis=1) / 2)


@dataclass(frozen=True)
class Components:
    """Parameters that every mixture has, in encoded units: shares (K,), and where the components lie (K, d).

    `noise_share` is 0 without a noise component; `status` is "start" until the first update; `starved` are the
    numbers of hard components that had too few rows in the last pass, and have no share until they are reopened.
    """

    mixing: Array
    mean: Array
    noise_share: float = field(default=0.0, kw_only=True)
    status: str = field(default="ok", kw_only=True)
    starved: tuple[int, ...] = field(default=(), kw_only=True)

    @property
    def log_mixing(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.mixing)


Params = TypeVar("Params", bound=Components)


@dataclass(frozen=True)
class MixtureFamily(ABC, Generic[Params]):
    """Mixtures whose cost is minus the log-likelihood (of the classification when `membership` is hard).

    `column_variances` of the encoded table are the units of the singularity test.
    """

    structure: Structure
    column_variances: Array
    membership: str = "soft"
    equal_mixing: bool = False
    noise: Noise | None = field(default=None, kw_only=True)

    starts_from_partition: ClassVar[bool] = True
    n_phases: ClassVar[int] = 1
    shares_blocks: ClassVar[bool] = False
    device_rows: ClassVar[str] = ""

    @property
    def hard(self) -> bool:
        return self.membership == "hard"

    @property
    def runs_compiled(self) -> bool:
        return False

    @property
    def always_kept(self) -> bool:
        """Whether a component without rows does no harm, as under a prior."""
        return False

    # --- rows

    @abstractmethod
    def scores(self, params: Params, block: Block) -> Array:
        """Log of mixing share times density of the observed cells (rows, K), noise last."""

    def with_noise(self, params: Params, block: Block, own: Array) -> Array:
        """The scores of the components and, where there is noise, its own in one more column."""
        if self.noise is None:
            return own
        with np.errstate(divide="ignore"):
            noise = np.log(params.noise_share) + self.noise.log_densities(block)
        return np.column_stack([own, noise])

    def cost(self, params: Params, block: Block) -> Array:
        return -self.scores(params, block)

    def assign(self, params: Params, block: Block) -> tuple[Array, Array]:
        label, _, cost = self.ranked(params, block, hard=self.hard)
        label[label == len(params.mean)] = -1  # noise
        return label, cost

    def ranked(self, params: Params, block: Block, *, hard: bool) -> tuple[Array, Array, Array]:
        """The likeliest component of each row (K for noise), its score, and the cost of the row."""
        scores = self.scores(params, block)
        cost = kernels.memberships(scores, hard)[1]
        return scores.argmax(axis=1).astype(np.int32), scores.max(axis=1), cost

    def labelled(self, params: Params, block: Block) -> tuple[Array, Array, Array]:
        """What `assign` says, and the log of the largest membership of each row, as if memberships were soft: 0
        where a row is sure."""
        label, top, soft_cost = self.ranked(params, block, hard=False)
        label[label == len(params.mean)] = -1  # noise
        with np.errstate(invalid="ignore"):  # a row impossible under all components belongs to none
            certainty = top + soft_cost
        np.fmin(np.fmax(certainty, LOG_TINY, out=certainty), 0.0, out=certainty)
        return label, -top if self.hard else soft_cost, certainty

    def ending(self, params: Params, block: Block) -> Ending | None:
        """What the last pass of a fit that trims no row tells, in one go; None where a kernel for it is missing."""
        return None

    def counted(self, scores: Array, block: Block, cut: Trim) -> tuple[Array, ExactPair]:
        """Memberships times weight (rows, K or K + 1) of the rows that count, and what these rows cost."""
        membership, cost = kernels.memberships(scores, self.hard)
        weight = block.weights * cut.kept(cost) * anything_observed(block)
        total = float(weight @ np.where(weight > 0, cost, 0.0))
        return membership * weight[:, None], ExactPair(np.array([total, 0.0]))

    # --- parameters

    @abstractmethod
    def update(self, params: Params, sums: Mapping[str, Any]) -> Params:
        """New parameters from the sums over all rows."""

    def first_updates(self, start: Params, sums: Mapping[str, Any]) -> list[Params]:
        return [self.update(start, sums)]

    def with_shares(self, new: Params, count: Array) -> Params:
        """`new` with the mixing shares that the counts (K or K + 1) of the last pass give.

        A partition knows no noise: it keeps the share it starts with.
        """
        n_components, noise_share = len(new.mean), new.noise_share
        own, total = count[:n_components], float(count.sum())
        if len(count) > n_components:
            noise_share = float(count[n_components]) / total
        else:
            total /= 1 - noise_share
        gone = not (self.hard or self.always_kept) and bool((own < VANISHED * total).any())
        starved: tuple[int, ...] = ()
        if self.hard:
            lasts = own > 0
            lasts[list(new.starved)] = False
            starved = tuple(np.flatnonzero(~lasts).tolist())
            if starved and lasts.any():
                own = own * lasts
                total = float(own.sum()) / (1 - noise_share)
        even = self.equal_mixing
        return replace(
            new,
            mixing=np.full(n_components, (1 - noise_share) / n_components) if even else own / total,
            noise_share=noise_share,
            status="component_vanished" if gone else new.status,
            starved=starved,
        )

    def start_shares(self, n_components: int) -> tuple[Array, float]:
        """Even mixing shares, and that of the noise."""
        share = NOISE_SHARE if self.noise is not None else 0.0
        return np.full(n_components, (1 - share) / n_components), share

    def status(self, params: Params) -> str:
        return params.status

    def penalty(self, params: Params) -> float:
        return 0.0

    def free_parameters(self, params: Params) -> int:
        """Mixing shares, means and spreads; noise counts its share and, as in mclust, its volume."""
        k, d = (int(size) for size in params.mean.shape)
        mixing = 0 if self.equal_mixing else k - 1
        noise = 2 if self.noise is not None else 0
        return mixing + noise + k * d + n_covariance_parameters(self.structure, k, d)

    def centres(self, params: Params) -> Array:
        return params.mean

    def vacant(self, params: Params) -> Array:
        return np.array(params.starved, dtype=np.intp)

    def move(self, params: Params, which: Array, centres: Array) -> Params:
        """The components `which` at `centres`, each with an even share, the others in proportion."""
        mean, mixing = params.mean.copy(), params.mixing.copy()
        mean[which] = np.where(np.isnan(centres), mean[which], centres)
        mixing[which] = mixing.max() if self.equal_mixing else 1.0 / len(mean)
        still = tuple(number for number in params.starved if number not in which)
        mixing = mixing / mixing.sum() * (1 - params.noise_share)
        return replace(params, mean=mean, mixing=mixing, starved=still)

    def select(self, params: Params, which: Array | Sequence[int]) -> Params:
        which = np.asarray(which)
        starved = tuple(np.flatnonzero(np.isin(which, params.starved)).tolist())
        return replace(params, mixing=params.mixing[which], mean=params.mean[which], starved=starved)

    def remaining(self, params: Params, which: Array | Sequence[int]) -> Params:
        """Only the components `which`, their shares scaled up to those of all."""
        kept = self.select(params, which)
        total = kept.mixing.sum()
        even = np.full(len(kept.mixing), 1 / len(kept.mixing))
        return replace(kept, mixing=(kept.mixing / total if total > 0 else even) * (1 - params.noise_share))

    def same(self, one: Params, other: Params) -> bool:
        return np.array_equal(one.mean, other.mean) and np.array_equal(one.mixing, other.mixing)


def anything_observed(block: Block) -> Array:
    """1 for rows with an observed cell, 0 for those that say nothing and enter no sum."""
    blank = block.blank
    return np.ones(block.n_rows) if blank is None else 1.0 - blank

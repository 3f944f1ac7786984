"""Student components: Gaussian ones with heavy tails, and so many degrees of freedom that rows far out pull less.

    log f = lgamma((dof + q)/2) - lgamma(dof/2) - q/2 log(pi dof) - log|covariance|/2 - (dof + q)/2 log1p(distance/dof)
    pull  = (dof + q) / (distance + dof)

over the q observed cells of a row. Means and scatters count a row `membership * pull` times, covariances divide by
the memberships alone (Peel and McLachlan 2000, Statistics and Computing 10, equations
29 to 31). `covariance` is the scale matrix: that of the rows is dof / (dof - 2) times as large.

Plain EM creeps, because it takes the hidden pulls for known. Two cures, both of which keep the log-likelihood from
falling. Degrees of freedom are found on the density of the rows itself, the memberships alone taken for known (ECME,
Liu and Rubin 1995, Statistica Sinica 5): a first phase sums it at a few degrees of freedom near the old ones, and
the best of the polynomial through them is next; a second phase gathers means and scatters with it. And covariances
are divided by the mean pull, which is 1 at the end but not on the way (parameter expansion, Liu, Rubin and Wu 1998,
Biometrika 85, section 4.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import betaln, gammaln

from ilk import kernels
from ilk.families import missing
from ilk.families.base import ExactPair, Partial, Trim
from ilk.families.centroid import coded
from ilk.families.covariance import Covariance
from ilk.families.gaussian import Gaussian, Mixture
from ilk.families.missing import ComponentDistances
from ilk.table.block import Array, Block

# Limits of degrees of freedom that are estimated; at the upper one: Gaussian.
LEAST_DOF, MOST_DOF = 0.5, 200.0
START_DOF = 10.0
REACH = 2.0  # times and part of the old degrees of freedom within which the next ones are sought
# Where the log density is summed, from -1 to 1. It is analytic up to a distance of pi in log(dof), so that a
# polynomial through n points is off by about 9.2^-n (Trefethen, Approximation Theory, theorem 8.2): 2e-8 a row.
NODES = np.cos(np.pi * (2 * np.arange(8) + 1) / 16)


@dataclass(frozen=True)
class StudentComponents(Mixture):
    """Parameters between the two phases of an update also hold the next degrees of freedom."""

    next_dof: Array | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Student(Gaussian):
    """A mixture of Student components; `dof` is "own" (one per component), "shared" or a fixed number."""

    dof: str | float = "own"
    shares_blocks: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return f"student {self.structure.name}"

    @property
    def runs_compiled(self) -> bool:
        return False

    @property
    def device_rows(self) -> str:  # type: ignore[override]
        return "complete" if super().device_rows == "any" else super().device_rows

    @property
    def n_phases(self) -> int:  # type: ignore[override]
        return 2 if isinstance(self.dof, str) else 1

    # --- from rows to sums

    def step(self, params: Mixture, block: Block, cut: Trim) -> Partial:
        """Sums for the next degrees of freedom, or, where these are known, those for means and covariances."""
        if block.on_device:
            return self._device_step(params, block, cut)
        found = missing.distances(params, block)
        membership, cost = self.counted(self._scores(params, block, found), block, cut)
        next_dof = self._next_dof(params)
        if next_dof is None:
            return Partial({"density": densities(membership, found, nodes_near(degrees(params)))}, cost)
        pull = (next_dof + found.n_observed) / (next_dof + found.squared)
        pulled = (membership[:, : len(next_dof)] * pull * (found.n_observed > 0)).sum(axis=0)
        return Partial(missing.gather(params, block, membership, pull) | {"pulled": pulled}, cost)

    def _device_step(self, params: Mixture, block: Block, cut: Trim) -> Partial:
        """The same of complete rows, by the kernels of a device."""
        components, k = self._tailed(params), len(params.mean)
        next_dof, q = self._next_dof(params), block.n_columns
        sought = nodes_near(degrees(params)) if next_dof is None else next_dof
        more = np.full((len(components[0]) - k, *sought.shape[1:]), np.inf)  # of the noise
        given = *coded(block), block.weight, *components, np.concatenate([sought, more])
        rules = self.hard, cut.limit, cut.share
        if next_dof is None:
            count, tails, cost = kernels.student_tails(*given, *rules)
            density = count[:k, None] * (-betaln(sought / 2, q / 2) - q / 2 * np.log(sought))
            density -= (sought + q) / 2 * tails[:k]
            return Partial({"density": density}, ExactPair(cost))
        count, pulled, shift, scatter, cost = kernels.student_step(*given, *rules)
        sums = {"shift": shift[:k], "scatter": scatter[:k], "pull": pulled[:k], "pulled": pulled[:k]}
        return Partial({"count": count} | sums, ExactPair(cost))

    def _tailed(self, params: Mixture) -> tuple[Array, Array, Array, Array]:
        """Means, whitening, constants and degrees of freedom; the noise as one more, without tails."""
        dof, half = degrees(params), params.mean.shape[1] / 2
        constant = params.log_mixing + gammaln(half) - betaln(dof / 2, half) - half * np.log(np.pi * dof)
        constant -= params.covariance.log_determinants() / 2
        if self.noise is None:
            return params.mean, params.whiten, constant, dof
        mean, whiten, log_weight = self._components(params)
        return mean, whiten, np.append(constant, log_weight[-1]), np.append(dof, np.inf)

    def ranked(self, params: Mixture, block: Block, *, hard: bool) -> tuple[Array, Array, Array]:
        if block.on_device:
            return kernels.student_labels(*coded(block), *self._tailed(params), hard)
        return super().ranked(params, block, hard=hard)

    def _next_dof(self, params: Mixture) -> Array | None:
        if not isinstance(self.dof, str):
            return params.dof
        assert isinstance(params, StudentComponents)
        return params.next_dof

    def gather(self, params: Mixture, block: Block, membership: Array) -> dict[str, Array]:
        """Sums under given memberships; every row of a partition pulls alike."""
        sums = super().gather(params, block, membership)
        return sums | {"pull": sums.get("cells", sums["count"])}

    def scores(self, params: Mixture, block: Block) -> Array:
        return self._scores(params, block, missing.distances(params, block))

    def _scores(self, params: Mixture, block: Block, found: ComponentDistances) -> Array:
        dof, q = degrees(params), found.n_observed
        # lgamma(a + b) - lgamma(a) = lgamma(b) - log beta(a, b), without cancellation for many degrees of freedom.
        half = np.maximum(q, 1) / 2
        constant = np.where(q > 0, gammaln(half) - betaln(dof / 2, half), 0.0) - q / 2 * np.log(np.pi * dof)
        tail = (dof + q) / 2 * np.log1p(found.squared / dof)
        return self.with_noise(params, block, params.log_mixing + constant - found.log_determinant / 2 - tail)

    # --- from sums to parameters

    def update(self, params: Mixture, sums: Mapping[str, Any]) -> Mixture:
        """The next degrees of freedom, or, where these are known, new means and covariances."""
        if "density" in sums:
            density = sums["density"]
            if self.dof == "shared":
                density = np.broadcast_to(density.sum(axis=0), density.shape)
            return replace(params, next_dof=best_dof(degrees(params), density))  # type: ignore[call-arg]
        new = super().update(params, sums)
        next_dof = self._next_dof(params)
        if next_dof is None or "pulled" not in sums:  # a partition: all rows pull alike
            return new
        if isinstance(new, StudentComponents):
            new = replace(new, dof=next_dof, next_dof=None)
        if new.status != "ok" or self.prior is not None:
            return new
        return replace(new, covariance=self._rescaled(new, sums, next_dof))

    def _rescaled(self, new: Mixture, sums: Mapping[str, Any], dof: Array) -> Covariance:
        """Covariances divided by the mean pull, one for all components where they have one volume."""
        count, pulled = sums["count"][: len(dof)], sums["pulled"]
        if self.structure.volume == "E":
            count, pulled = np.full_like(count, dof @ count), np.full_like(pulled, dof @ pulled)
        mean_pull = np.divide(pulled, count, out=np.ones_like(pulled), where=count > 0)
        return replace(new.covariance, log_variance=new.covariance.log_variance - np.log(mean_pull)[:, None])

    def free_parameters(self, params: Mixture) -> int:
        """Those of Gaussian components, and K, one or no degrees of freedom."""
        more = {"own": len(params.mean), "shared": 1}.get(str(self.dof), 0)
        return super().free_parameters(params) + more

    def gaussian_components(self, params: Mixture) -> Array:
        """Which components (K,) have tails so light that their estimated degrees of freedom are at the limit."""
        return (degrees(params) >= MOST_DOF) & isinstance(self.dof, str)

    # --- components as such

    def start(self, centres: Array) -> Mixture:
        dof = START_DOF if isinstance(self.dof, str) else float(self.dof)
        plain = super().start(centres)
        return StudentComponents(
            plain.mixing,
            plain.mean,
            plain.covariance,
            np.full(len(centres), dof),
            noise_share=plain.noise_share,
            status=plain.status,
        )

    def draw(self, params: Mixture, label: Array, generator: np.random.Generator) -> Array:
        away = super().draw(params, label, generator) - params.mean[label]
        dof = degrees(params)[label]
        return np.asarray(params.mean[label] + away / np.sqrt(generator.chisquare(dof) / dof)[:, None])


def degrees(params: Mixture) -> Array:
    """Degrees of freedom (K,) of Student components."""
    assert params.dof is not None, "Student components have degrees of freedom"
    return params.dof


def nodes_near(dof: Array) -> Array:
    """Degrees of freedom (K, nodes) at which the density is summed."""
    middle, reach = _window(dof)
    return np.asarray(np.exp(middle[:, None] + reach[:, None] * NODES))


def _window(dof: Array) -> tuple[Array, Array]:
    """Middle and half width of where the next degrees of freedom may lie, in logs."""
    least = np.log(np.maximum(dof / REACH, LEAST_DOF))
    most = np.log(np.minimum(dof * REACH, MOST_DOF))
    return (least + most) / 2, (most - least) / 2


def densities(membership: Array, found: ComponentDistances, dof: Array) -> Array:
    """sum_i r_ik log f(distance_ik) at every degrees of freedom (K, nodes), but for what does not depend on them."""
    own = membership[:, : len(dof)]
    total = np.zeros(dof.shape)
    for q in np.unique(found.n_observed[found.n_observed > 0]):
        rows = found.n_observed[:, 0] == q
        count = own[rows].sum(axis=0)
        total += count[:, None] * (-betaln(dof / 2, q / 2) - q / 2 * np.log(dof))
        for node in range(dof.shape[1]):
            tail = np.log1p(found.squared[rows] / dof[:, node])
            total[:, node] -= (dof[:, node] + q) / 2 * np.einsum("ik,ik->k", own[rows], tail)
    return total


def best_dof(dof: Array, density: Array) -> Array:
    """The degrees of freedom (K,) where the polynomials through `density` (K, nodes) are highest, or the old ones."""
    middle, reach = _window(dof)
    series = np.linalg.solve(chebyshev.chebvander(NODES, len(NODES) - 1), density.T)
    old = (np.log(dof) - middle) / reach
    best = np.array([_highest(series[:, k], old[k]) for k in range(len(dof))])
    return np.asarray(np.where(best == old, dof, np.exp(middle + reach * best)))


def _highest(series: Array, old: float) -> float:
    """Where in [-1, 1] a Chebyshev series is highest: at `old`, at an end or where it is level."""
    level = chebyshev.chebroots(chebyshev.chebtrim(chebyshev.chebder(series)))
    level = level[np.abs(level.imag) < 1e-9].real
    places = np.array([old, -1.0, 1.0, *level[np.abs(level) < 1]])
    return float(places[np.argmax(chebyshev.chebval(places, series))])

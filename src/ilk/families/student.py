"""Student components: Gaussian ones with heavy tails, and so many degrees of freedom that rows far out pull less.

    log f = lgamma((dof + q)/2) - lgamma(dof/2) - q/2 log(pi dof) - log|covariance|/2 - (dof + q)/2 log1p(distance/dof)
    pull  = (dof + q) / (distance + dof)

over the q observed cells of a row. Means and scatters count a row `membership * pull` times, covariances divide by
the memberships alone (covariance.md, section 5; Peel and McLachlan 2000, Statistics and Computing 10, equations
29 to 31). `covariance` is the scale matrix: that of the rows is dof / (dof - 2) times as large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, digamma, gammaln

from ilk.families import missing
from ilk.families.base import Cut, Partial
from ilk.families.gaussian import Gaussian, Mixture
from ilk.families.missing import Distances
from ilk.table.block import Array, Block

LEAST_DOF, MOST_DOF = (
    0.5,
    200.0,
)  # limits of degrees of freedom that are estimated; at the upper one: Gaussian
START_DOF = 10.0


@dataclass(frozen=True)
class Student(Gaussian):
    """A mixture of Student components; `dof` is "own" (one per component), "shared" or a fixed number."""

    dof: str | float = "own"

    @property
    def name(self) -> str:
        return f"student {self.structure.name}"

    # --- from rows to sums

    def step(self, params: Mixture, block: Block, cut: Cut) -> Partial:
        found = missing.distances(params, block)
        membership, cost = self.counted(self._scores(params, block, found), block, cut)
        return Partial(self._sums(params, block, membership, found), cost)

    def gather(self, params: Mixture, block: Block, membership: Array) -> dict[str, Array]:
        """Sums under given memberships; every row of a partition pulls alike."""
        sums = super().gather(params, block, membership)
        return sums | {"pull": sums.get("cells", sums["count"])}

    def _sums(self, params: Mixture, block: Block, membership: Array, found: Distances) -> dict[str, Array]:
        """Those of `missing.gather`, and for the degrees of freedom `log_pull` (K,) = sum r (log u - u) and
        `by_observed` (K, d + 1), the counts by number of observed cells."""
        dof = degrees(params)
        pull = (dof + found.n_observed) / (dof + found.squared)
        own = membership[:, : len(dof)]
        excess = np.where(own > 0, own * (np.log(pull) - pull), 0.0).sum(axis=0)
        by_observed = np.zeros((len(dof), block.n_columns + 1))
        for q in np.unique(found.n_observed):
            by_observed[:, q] = own[found.n_observed[:, 0] == q].sum(axis=0)
        sums = missing.gather(params, block, membership, pull)
        return sums | {"log_pull": excess, "by_observed": by_observed}

    def scores(self, params: Mixture, block: Block) -> Array:
        return self._scores(params, block, missing.distances(params, block))

    def _scores(self, params: Mixture, block: Block, found: Distances) -> Array:
        dof, q = degrees(params), found.n_observed
        # lgamma(a + b) - lgamma(a) = lgamma(b) - log beta(a, b), without cancellation for many degrees of freedom.
        half = np.maximum(q, 1) / 2
        constant = np.where(q > 0, gammaln(half) - betaln(dof / 2, half), 0.0) - q / 2 * np.log(np.pi * dof)
        tail = (dof + q) / 2 * np.log1p(found.squared / dof)
        return self.with_noise(params, block, params.log_mixing + constant - found.log_determinant / 2 - tail)

    # --- from sums to parameters

    def update(self, params: Mixture, sums: Mapping[str, Any]) -> Mixture:
        new = super().update(params, sums)
        if not isinstance(self.dof, str) or "log_pull" not in sums:
            return new
        log_pull, by_observed = sums["log_pull"], sums["by_observed"]
        dof = degrees(params)
        # What the old degrees of freedom say of log u given the distance: digamma(a) - log(a), a = (dof + q)/2.
        a = (dof[:, None] + np.arange(by_observed.shape[1])) / 2
        level = log_pull + (by_observed * (digamma(a) - np.log(a))).sum(axis=1)
        count = by_observed.sum(axis=1)
        if self.dof == "shared":
            level, count = np.full_like(level, level.sum()), np.full_like(count, count.sum())
        found = [
            root_of_dof(1 + part / n) if n > 0 else old
            for part, n, old in zip(level.tolist(), count.tolist(), dof.tolist(), strict=True)
        ]
        return replace(new, dof=np.array(found))

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
        return replace(super().start(centres), dof=np.full(len(centres), dof))

    def draw(self, params: Mixture, label: Array, generator: np.random.Generator) -> Array:
        away = super().draw(params, label, generator) - params.mean[label]
        dof = degrees(params)[label]
        return np.asarray(params.mean[label] + away / np.sqrt(generator.chisquare(dof) / dof)[:, None])


def degrees(params: Mixture) -> Array:
    """Degrees of freedom (K,) of Student components."""
    assert params.dof is not None, "Student components have degrees of freedom"
    return params.dof


def root_of_dof(level: float) -> float:
    """Degrees of freedom with log(dof/2) - digamma(dof/2) + level = 0, kept within limits.

    The left side falls strictly, and the expected log-likelihood is concave in dof, so the nearer limit is the
    best value within the limits where there is no root.

    >>> root_of_dof(0.0), root_of_dof(-9.0)
    (200.0, 0.5)
    """

    def excess(dof: float) -> float:
        return float(np.log(dof / 2) - digamma(dof / 2)) + level

    if not excess(LEAST_DOF) > 0:
        return LEAST_DOF
    if not excess(MOST_DOF) < 0:
        return MOST_DOF
    return float(brentq(excess, LEAST_DOF, MOST_DOF, xtol=1e-12, rtol=1e-14))

"""The information bottleneck: groups T of rows X that keep what the rows say about Y, and forget the rest.

    soft            minimise I(T;X) - beta I(T;Y)      membership ∝ share exp(-beta KL(row || group))
    deterministic   minimise H(T)   - beta I(T;Y)      group = argmax log share - beta KL(row || group)

Tishby, Pereira and Bialek (1999); Strouse and Schwab (2017), Neural Computation 29, 1611, for the deterministic form.
With beta the number of counts in a row the soft form is EM for a mixture of multinomials (Slonim and Weiss 2002).
Everything is in nats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import entr, logsumexp, xlogy

from ilk.random import stream
from ilk.table.block import Array

TWINS = 1e-3  # total variation below which two groups say the same
N_KNOTS = 5  # quantiles of a number that stand for its levels
START_BLUR = 0.05  # share of the table's own distribution in a group that starts at one row


@dataclass(frozen=True, eq=False)
class Joint:
    """The joint distribution of rows and Y: `row` (rows,) is p(x), `given` (rows, levels) is p(y | x)."""

    row: Array
    given: Array

    @classmethod
    def of_counts(cls, counts: Array) -> Joint:
        """From a table of counts; rows without a count get the shares of the whole table, and no weight."""
        total = counts.sum(axis=1)
        whole = counts.sum(axis=0) / total.sum()
        given = np.where(total[:, None] > 0, counts / np.where(total > 0, total, 1.0)[:, None], whole)
        return cls(total / total.sum(), given)

    @property
    def level(self) -> Array:
        """p(y)."""
        return np.asarray(self.row @ self.given)

    @property
    def information(self) -> float:
        """I(X;Y), the most that groups can keep."""
        return _information(self.row, self.given, self.level)


@dataclass(frozen=True, eq=False)
class Bottleneck:
    """Groups: `share` (K,) is p(t), `given` (K, levels) is p(y | t); `beta` and the form say how rows are placed."""

    share: Array
    given: Array
    beta: float
    deterministic: bool

    def scores(self, rows: Array) -> Array:
        """log share - beta KL(row || group) of rows p(y | x), (rows, K); the share alone where no group has the levels
        of a row, and so says nothing of it."""
        with np.errstate(divide="ignore"):
            logs, log_share = np.log(self.given), np.log(self.share)
        lacks = self.lacks(rows)
        cross = np.where(lacks, -np.inf, _products(rows, np.where(np.isfinite(logs), logs, 0.0)))
        own = xlogy(rows, rows).sum(axis=1, keepdims=True)
        scores = np.asarray(log_share + self.beta * (cross - own))
        return np.where(lacks.all(axis=1, keepdims=True), log_share, scores)

    def lacks(self, rows: Array) -> Array:
        """Mask (rows, K): the row has a level that the group does not have, so that KL(row || group) is infinite."""
        return _products(rows, (self.given == 0).astype(np.float64)) > 0

    def memberships(self, rows: Array) -> Array:
        """p(t | x) of rows p(y | x), (rows, K)."""
        scores = self.scores(rows)
        if self.deterministic:
            return np.asarray(np.eye(len(self.share))[scores.argmax(axis=1)])
        return np.asarray(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)))

    def select(self, which: Array) -> Bottleneck:
        """Only the groups `which`, in that order; the shares of those that are left out fall to the others."""
        share = self.share[which]
        if len(share) < len(self.share):
            share = share / share.sum()
        return replace(self, share=share, given=self.given[which])


@dataclass(frozen=True, eq=False, kw_only=True)
class Squeezed:
    """A finished fit. `trace` holds the functional after each pass; the informations are in nats."""

    groups: Bottleneck
    membership: Array
    functional: float
    compression: float  # I(T;X), or H(T) in the deterministic form
    relevance: float  # I(T;Y)
    trace: tuple[float, ...]
    converged: bool


def squeeze(
    joint: Joint,
    k: int,
    beta: float,
    seed: int,
    *,
    deterministic: bool = False,
    n_starts: int = 10,
    tolerance: float = 1e-9,
    max_passes: int = 500,
) -> Squeezed:
    """The best of `n_starts` runs with at most K groups, and of the ends of the curve: all rows in one group, which is
    best for a small beta and out of reach where no two rows share a level; and, with K at least the number of distinct
    rows, a group for each of them, which keeps all information."""
    starts = [_start(joint, k, stream(seed, "bottleneck", number)) for number in range(n_starts)]
    starts.append(np.ones((len(joint.row), 1)))
    distinct, which = np.unique(joint.given, axis=0, return_inverse=True)
    if len(distinct) <= k:
        starts.append(np.eye(len(distinct))[which.ravel()])
    runs = [_run(joint, start, beta, deterministic, tolerance, max_passes) for start in starts]
    return _without_twins(joint, min(runs, key=lambda run: run.functional))


def _without_twins(joint: Joint, found: Squeezed) -> Squeezed:
    """Soft groups that ended in the same place as one: they cost and keep nearly the same apart or together."""
    groups = found.groups
    apart = np.abs(groups.given[:, None] - groups.given).sum(axis=2) / 2
    from scipy.sparse import csr_array  # not for every model that is loaded
    from scipy.sparse.csgraph import connected_components

    _, part = connected_components(csr_array(apart < TWINS), directed=False)
    if len(set(part)) == len(part):
        return found
    join = np.eye(part.max() + 1)[part]
    share = groups.share @ join
    given = (groups.given * groups.share[:, None]).T @ join / share
    groups, membership = replace(groups, share=share, given=given.T), found.membership @ join
    return replace(
        found,
        groups=groups,
        membership=membership,
        compression=_compression(joint, membership, groups),
        relevance=_information(groups.share, groups.given, joint.level),
    )


def _run(
    joint: Joint, membership: Array, beta: float, deterministic: bool, tolerance: float, max_passes: int
) -> Squeezed:
    groups = _groups(joint, membership, beta, deterministic)
    trace: list[float] = []
    converged = False
    while len(trace) < max_passes and not converged:
        membership = groups.memberships(joint.given)
        groups = _groups(joint, membership, beta, deterministic)
        membership = membership[:, membership.T @ joint.row > 0]
        compression = _compression(joint, membership, groups)
        relevance = _information(groups.share, groups.given, joint.level)
        trace.append(compression - beta * relevance)
        converged = len(trace) > 1 and trace[-2] - trace[-1] <= tolerance * (1 + abs(trace[-1]))
    return Squeezed(
        groups=groups,
        membership=membership,
        functional=trace[-1],
        compression=compression,
        relevance=relevance,
        trace=tuple(trace),
        converged=converged,
    )


def _groups(joint: Joint, membership: Array, beta: float, deterministic: bool) -> Bottleneck:
    """p(t) and p(y | t) of given memberships; groups without weight are gone."""
    weight = membership * joint.row[:, None]
    share = weight.sum(axis=0)
    there = share > 0
    given = (weight[:, there].T @ joint.given) / share[there, None]
    return Bottleneck(share[there] / share.sum(), given, beta, deterministic)


def _products(rows: Array, groups: Array) -> Array:
    """Inner products (rows, K), bit for bit whatever rows stand beside a row: BLAS does not promise that."""
    return np.asarray(np.einsum("rl,kl->rk", rows, groups))


def _compression(joint: Joint, membership: Array, groups: Bottleneck) -> float:
    if groups.deterministic:
        return float(entr(groups.share).sum())
    return _information(joint.row, membership, groups.share)


def _information(share: Array, given: Array, total: Array) -> float:
    """sum_a share_a KL(given_a || total): the mutual information of a and what is given a."""
    logs = np.log(np.where(total > 0, total, 1.0))
    return max(0.0, float(share @ (xlogy(given, given) - given * logs).sum(axis=1)))


def _start(joint: Joint, k: int, draws: np.random.Generator) -> Array:
    """Memberships from K rows drawn far apart (k-means++ with KL to a blurred row in place of the square)."""
    blurred = (1 - START_BLUR) * joint.given + START_BLUR * joint.level
    own = xlogy(joint.given, joint.given).sum(axis=1)
    logs = np.log(np.where(blurred > 0, blurred, 1.0))
    chosen = [int(draws.choice(len(joint.row), p=joint.row / joint.row.sum()))]
    cost = np.empty((len(joint.row), 0))
    while True:
        apart = np.maximum(own - joint.given @ logs[chosen[-1]], 0.0)
        cost = np.column_stack([cost, apart])
        chance = joint.row * cost.min(axis=1)
        if len(chosen) == k or not chance.sum() > 0:
            break
        chosen.append(int(draws.choice(len(chance), p=chance / chance.sum())))
    hard = np.eye(len(chosen))[cost.argmin(axis=1)]
    return np.asarray((1 - START_BLUR) * hard + START_BLUR / len(chosen))


def cells_as_levels(numbers: Array, codes: Array | None, knots: Sequence[Array], level_start: Array) -> Array:
    """A table as counts (rows, levels), one count for each cell that is there.

    A category counts for its level. A number is shared by the two of its column's `knots` between which it lies, by
    nearness; beyond the outer ones it counts for them alone. A missing cell counts for nothing.
    """
    parts = [_between(column, knot) for column, knot in zip(numbers.T, knots, strict=True)]
    if codes is not None:
        for place, code in enumerate(codes.T):
            made = np.zeros((len(code), int(level_start[place + 1] - level_start[place])))
            seen = np.flatnonzero(code >= 0)
            made[seen, code[seen]] = 1.0
            parts.append(made)
    return np.hstack(parts)


def _between(column: Array, knot: Array) -> Array:
    made = np.zeros((len(column), len(knot)))
    seen = np.flatnonzero(~np.isnan(column))
    if len(knot) == 1:
        made[seen, 0] = 1.0
        return made
    value = np.clip(column[seen], knot[0], knot[-1])
    right = np.clip(np.searchsorted(knot, value), 1, len(knot) - 1)
    part = (value - knot[right - 1]) / (knot[right] - knot[right - 1])
    made[seen, right - 1] = 1 - part
    made[seen, right] = part
    return made


def knots_of(numbers: Array) -> tuple[Array, ...]:
    """The `knots` of each column: quantiles at equal steps from its lowest to its highest value, equal ones once."""
    return tuple(_quantiles(column[~np.isnan(column)]) for column in numbers.T)


def _quantiles(seen: Array) -> Array:
    return np.unique(np.quantile(seen, np.linspace(0, 1, N_KNOTS))) if len(seen) else np.zeros(1)


def mean_counts(counts: Array) -> float:
    """Counts in a row that has any, on average."""
    total = counts.sum(axis=1)
    return float(total[total > 0].mean())

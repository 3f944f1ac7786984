"""The assorted model: clusters of mixed columns, each with its own distribution only where that pays.

In every column the clusters form groups that share one distribution: the background group, and clusters that
are alone, for which the column is *chosen*. The cost J is minus the log-likelihood plus weak priors anchored at
the pooled table, a penalty per group, what the switches cost (`switches.py`), and half a log N per mixing share:

    J = - sum_n w_n log sum_k mixing_k prod_d f_d(x_nd | group of k)  +  penalty(params)

All but the first term is `penalty`, so the loop's cost is J, and it never rises (`sharing.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import xlogy

from ilk import kernels
from ilk.assorted.clusters import Clusters
from ilk.assorted.compiled_update import compiled_update
from ilk.assorted.sharing import (
    CellSums,
    ColumnCosts,
    firsts,
    group_terms,
    group_terms_under,
    grouping_costs,
    log_shares,
    naming_costs,
    pooled,
    regroup,
    singles,
    variances,
    within_budget,
)
from ilk.assorted.switches import coins, regroup_background, relevant, switch_cost
from ilk.assorted.width import is_wide
from ilk.families.base import ExactPair, Partial, Trim
from ilk.families.centroid import coded
from ilk.table.block import Array, Block

__all__ = ["VANISHED", "Assorted", "Clusters"]

VANISHED = 1e-3  # rows; a cluster of less weight is dropped


@dataclass(frozen=True)
class Assorted:
    """The family over the columns of one treated table of total weight `n_rows`.

    `offset` is what the treatment of the columns itself costs (log-Jacobians and half a log N per transform).
    """

    columns: ColumnCosts
    n_rows: float
    _: KW_ONLY
    sharing: str = "background"
    membership: str = "soft"
    open_cost: float = 0.0
    budget: int | None = None
    offset: float = 0.0

    name: ClassVar[str] = "assorted"
    starts_from_partition: ClassVar[bool] = True
    n_phases: ClassVar[int] = 1
    shares_blocks: ClassVar[bool] = False
    device_rows: ClassVar[str] = "any"
    runs_compiled: ClassVar[bool] = False

    @property
    def hard(self) -> bool:
        return self.membership == "hard"

    @cached_property
    def ungrouped(self) -> Assorted:
        """The same with every cell chosen: the warm-up, without which a vague start is one background for ever."""
        return replace(self, sharing="none", budget=None)

    @property
    def two_codes(self) -> bool:
        """Whether switches cost the cheaper of two codes, and columns are grouped together; a coin each where not."""
        return self.sharing == "background" and self.budget is None

    @property
    def wide(self) -> bool:
        """Whether columns are screened before rows are parted."""
        return self.two_codes and is_wide(self.n_rows, self.columns.n_columns)

    @property
    def updates_compiled(self) -> bool:
        """The searches that have a kernel; `sharing.py` has the others, and all of them in NumPy."""
        plain = self.two_codes or self.sharing == "none"
        return kernels.COMPILED and plain and not self.columns.common_variance

    # --- rows

    def _components(
        self, params: Clusters, heat: float = 1.0
    ) -> tuple[Array, Array, Array, Array, Array, Array]:
        """Scores are linear in these, so a temperature divides them."""
        return (
            params.log_mixing / heat,
            params.mean,
            params.precision / heat,
            params.log_norm / heat,
            params.log_level / heat,
            self.columns.level_start,
        )

    def scores(self, params: Clusters, block: Block) -> Array:
        """Log of mixing share times density of the observed cells (rows, K)."""
        return kernels.product_scores(*coded(block), block.codes, *self._components(params))

    def step(self, params: Clusters, block: Block, cut: Trim) -> Partial:
        return self.heated_step(params, block, 1.0)

    def heated_step(self, params: Clusters, block: Block, heat: float) -> Partial:
        """One step with memberships proportional to exp(score / heat); its cost is J's only at heat 1."""
        sums, cost, entropy = kernels.product_step(
            *coded(block), block.codes, block.weight, *self._components(params, heat), self.hard
        )
        return Partial({**sums._asdict(), "entropy": entropy}, ExactPair(np.array([cost, 0.0])))

    def gather(self, params: Clusters, block: Block, membership: Array) -> dict[str, Array]:
        """Sums of one block under given memberships (rows, K)."""
        counted = np.ascontiguousarray(membership * block.weights[:, None])
        sums = kernels.product_sums(
            *coded(block), block.codes, counted, params.mean, self.columns.level_start
        )
        return sums._asdict()

    def cost(self, params: Clusters, block: Block) -> Array:
        return -self.scores(params, block)

    def assign(self, params: Clusters, block: Block) -> tuple[Array, Array]:
        given = *coded(block), block.codes, *self._components(params)
        label, _, cost = kernels.product_labels(*given, hard=self.hard)
        return label, cost

    # --- parameters

    def start(self, centres: Array) -> Clusters:
        """Clusters at `centres` (K, numbers) with pooled spreads and shares."""
        k = len(centres)
        with np.errstate(divide="ignore"):
            log_level = np.tile(np.log(self.columns.share), (k, 1))
        return Clusters(
            mixing=np.full(k, 1 / k),
            mean=np.array(centres, dtype=np.float64),
            variance=np.ones((k, self.columns.n_numbers)),
            log_level=log_level,
            group=singles(k, self.columns.n_columns),
        )

    def blank(self, k: int) -> Clusters:
        """K clusters all alike, for sums under given memberships."""
        return self.start(np.zeros((k, self.columns.n_numbers)))

    def cells(self, params: Clusters, sums: Mapping[str, Any]) -> CellSums:
        """The sums of each cluster, about its own mean."""
        return CellSums.of_sums(params.mean, sums["observed"], sums["first"], sums["second"], sums["counts"])

    def update(self, params: Clusters, sums: Mapping[str, Any]) -> Clusters:
        return self.from_cells(self.cells(params, sums), sums["weight"], params.group)

    def first_updates(self, start: Clusters, sums: Mapping[str, Any]) -> list[Clusters]:
        return [self.update(start, sums)]

    def from_cells(self, cells: CellSums, weight: Array, previous: Array | None) -> Clusters:
        """Parameters of least cost, from the sums of the clusters; a cluster that has vanished is dropped."""
        if len(weight) > 1 and (weight < VANISHED).any():
            kept = np.flatnonzero(weight >= VANISHED)
            kept = kept if len(kept) else np.array([int(np.argmax(weight))])
            cells, weight = cells[kept], weight[kept]
            previous = None if previous is None else renamed(previous[kept])
        if self.updates_compiled:
            update = compiled_update(cells, weight, self.columns, previous, sharing=self.two_codes)
            return Clusters.of(self.columns, update)
        group = self.grouped(cells, previous)
        shared = pooled(cells, group, self.columns)
        return Clusters(
            mixing=weight / weight.sum(),
            mean=shared.mean,
            variance=self._variances(shared, group),
            log_level=log_shares(shared, self.columns),
            group=group,
        )

    def _variances(self, shared: CellSums, group: Array) -> Array:
        columns = self.columns
        if not columns.common_variance:
            return variances(shared, columns)
        first = firsts(group)[:, : columns.n_numbers]
        scatter = np.where(first, shared.scatter, 0.0).sum(axis=0)
        weight = np.where(first, shared.weight, 0.0).sum(axis=0)
        common = variances(CellSums(weight, weight, scatter, weight), columns)
        return np.tile(common, (len(group), 1))

    def grouped(self, cells: CellSums, previous: Array | None) -> Array:
        """The grouping step, with the budget if there is one."""
        if self.two_codes:
            return regroup_background(cells, self.columns, previous)
        group = regroup(cells, self.columns, self.sharing, previous)
        if self.budget is None:
            return group
        group = within_budget(cells, self.columns, group, self.budget)
        if previous is None or over_budget(previous, self.budget):
            return group
        before = grouping_costs(cells, previous, self.columns).sum()
        return previous if before <= grouping_costs(cells, group, self.columns).sum() else group

    def merged(self, params: Clusters, sums: Mapping[str, Any], one: int, other: int) -> Clusters:
        """The parameters after clusters `one` and `other` have become one, from the sums of all clusters."""
        cells, weight = self.cells(params, sums), np.array(sums["weight"])
        rest = [k for k in range(len(weight)) if k not in (one, other)]
        together = cells[[one]] + cells[[other]]
        joint = np.append(weight[rest], weight[one] + weight[other])
        return self.from_cells(cells[rest].stacked(together), joint, None)

    def merge_costs(self, params: Clusters, sums: Mapping[str, Any]) -> Array:
        """What it costs the columns and shares to make one cluster of two (K, K); infinite on the diagonal."""
        cells, weight = self.cells(params, sums), sums["weight"]
        alone = replace(self.columns, common_variance=False)
        k = len(weight)
        one, other = np.triu_indices(k, 1)
        terms = cluster_costs(cells, alone)
        rise = cluster_costs(cells[one] + cells[other], alone) - terms[one] - terms[other]
        mixing = xlogy(weight, weight)
        both = weight[one] + weight[other]
        rise = rise - (xlogy(both, both) - mixing[one] - mixing[other])
        costs = np.full((k, k), np.inf)
        costs[one, other] = costs[other, one] = rise
        return costs

    def joined(self, params: Clusters, others: Clusters, share: Array) -> Clusters:
        """Clusters and further clusters with mixing shares `share`, every cell chosen."""
        k = len(params) + len(others)
        return Clusters(
            mixing=share / share.sum(),
            mean=np.concatenate([params.mean, others.mean]),
            variance=np.concatenate([params.variance, others.variance]),
            log_level=np.concatenate([params.log_level, others.log_level]),
            group=singles(k, self.columns.n_columns),
        )

    def penalty(self, params: Clusters) -> float:
        """J without the likelihood."""
        prior, groups, n_relevant = self.terms(params)
        of_columns, of_mixing, of_clusters, of_treatment = self.constants(len(params))
        switches = self._switch_cost(params.group, n_relevant)
        return float(prior + groups + of_columns + switches + of_mixing + of_clusters + of_treatment)

    def terms(self, params: Clusters) -> tuple[float, float, int]:
        """Minus the log prior, the penalties of the groups, and the number of relevant columns."""
        if (known := params.known(self.columns)) is not None:
            return known.terms
        groups = firsts(params.group).sum(axis=0) @ self.columns.penalty
        return self.prior_cost(params), float(groups), int(relevant(params.group).sum())

    def constants(self, k: int) -> tuple[float, float, float, float]:
        """What K clusters cost whatever they are: in columns, mixing shares, clusters and treatment."""
        mixing = (k - 1) / 2 * math.log(self.n_rows)
        return self.columns.column_penalty, mixing, self.open_cost * k, self.offset

    def _switch_cost(self, group: Array, n_relevant: int) -> float:
        """What it costs to say how the clusters share each column."""
        k, d = group.shape
        if self.sharing == "groups":
            return float(naming_costs(group).sum())
        return switch_cost(k, d, n_relevant) if self.two_codes else coins(k, d)

    def prior_cost(self, params: Clusters) -> float:
        """Minus the log prior: 0 at the pooled spreads and shares."""
        if (known := params.known(self.columns)) is not None:
            return known.prior
        columns, first = self.columns, firsts(params.group)
        spread = (np.log(params.variance) + params.precision - 1) * columns.spread_prior / 2
        groups = first[:, : columns.n_numbers]
        numbers = (spread[0] if columns.common_variance else spread[groups]).sum()
        share = columns.share
        gap = columns.over_levels(xlogy(share, share) - np.where(share > 0, share * params.log_level, 0.0))
        return float(numbers + columns.level_prior * gap[first[:, columns.n_numbers :]].sum())

    def free_parameters(self, params: Clusters) -> int:
        """Mixing shares, and the parameters of every group."""
        columns = self.columns
        n_groups = firsts(params.group).sum(axis=0)
        numbers = n_groups[: columns.n_numbers].sum() * (1 if columns.common_variance else 2)
        numbers += columns.n_numbers if columns.common_variance else 0
        levels = n_groups[columns.n_numbers :] @ (np.diff(columns.level_start) - 1)
        return int(len(params) - 1 + numbers + levels)

    # --- what the loop asks

    def centres(self, params: Clusters) -> Array:
        return params.mean

    def vacant(self, params: Clusters) -> Array:
        return np.empty(0, dtype=np.intp)

    def move(self, params: Clusters, which: Array, centres: Array) -> Clusters:
        mean = params.mean.copy()
        mean[which] = np.where(np.isnan(centres), mean[which], centres)
        return replace(params, mean=mean, group=singles(len(params), self.columns.n_columns), made=None)

    def select(self, params: Clusters, which: Array | Sequence[int]) -> Clusters:
        which = np.asarray(which)
        mixing = params.mixing[which]
        return replace(
            params,
            mixing=mixing / mixing.sum(),
            mean=params.mean[which],
            variance=params.variance[which],
            log_level=params.log_level[which],
            group=renamed(params.group[which]),
            made=None,
        )

    def same(self, one: Clusters, other: Clusters) -> bool:
        return (
            np.array_equal(one.mean, other.mean)
            and np.array_equal(one.mixing, other.mixing)
            and np.array_equal(one.log_level, other.log_level)
        )

    def status(self, params: Clusters) -> str:
        return params.status

    # --- what a report asks

    def chosen(self, params: Clusters) -> Array:
        """Mask (K, columns): the cluster has a distribution of its own, apart from the background.

        Where no two clusters share, the broadest distribution is the background, but for a cluster that would
        be over its budget.
        """
        alone = _group_sizes(params.group) == 1
        if len(params) == 1:
            return np.zeros_like(alone)
        everyone = np.flatnonzero(alone.all(axis=0))
        broadest = self._broadest(params)
        for d in everyone:
            spent = np.zeros(1) if self.budget is None else alone.sum(axis=1) - self.budget
            alone[int(np.argmax(spent)) if spent.max() > 0 else broadest[d], d] = False
        return np.asarray(alone)

    def background(self, params: Clusters) -> Array:
        """A cluster of the background group of each column (columns,)."""
        return np.asarray(np.argmin(self.chosen(params), axis=0))

    def _broadest(self, params: Clusters) -> Array:
        share = np.exp(params.log_level)
        entropy = self.columns.over_levels(-xlogy(share, share))
        return np.asarray(np.argmax(np.concatenate([params.variance, entropy], axis=1), axis=0))

    def relevance(self, params: Clusters, cells: CellSums) -> Array:
        """Nats per row that a cluster's own distribution gains on the background (K, columns); 0 where not chosen."""
        columns = self.columns
        shared = pooled(cells, params.group, columns)
        background = shared.choose(self.background(params), columns)
        gain = group_terms_under(cells, background, columns) - group_terms_under(cells, shared, columns)
        seen = np.concatenate([cells.weight, columns.over_levels(cells.counts)], axis=1)
        per_row = np.divide(gain, seen, out=np.zeros_like(gain), where=seen > 0)
        return np.where(self.chosen(params), per_row, 0.0)


def cluster_costs(cells: CellSums, columns: ColumnCosts) -> Array:
    """Cost of clusters summed over the columns, each alone with its own variance."""
    return np.asarray(group_terms(cells, columns).sum(axis=-1))


def renamed(group: Array) -> Array:
    """Groups named by their first member once more, after clusters were left out or reordered."""
    same = group[:, None, :] == group[None, :, :]
    return np.asarray(np.argmax(same, axis=1))


def _group_sizes(group: Array) -> Array:
    return np.asarray((group[:, None, :] == group[None, :, :]).sum(axis=1))


def over_budget(group: Array, budget: int) -> bool:
    """Whether some cluster has its own distribution in more than `budget` columns; in a column where all are alone
    any one of them may stand for the background."""
    alone = _group_sizes(group) == 1
    return bool(np.maximum(alone.sum(axis=1) - budget, 0).sum() > alone.all(axis=0).sum())

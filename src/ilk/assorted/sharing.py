"""Which clusters share one distribution, column by column: what a group costs, and the search for the best groups.

A cluster's cells of one column are known by their sums alone. Clusters of a group share the parameters that
minimise the group's cost, which is a function of the group's own sums; so the columns do not touch each other, a
grouping is judged without looking at a row, and all columns are searched at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from ilk.table.block import Array

LOG_2_PI = float(np.log(2 * np.pi))
MOST_EXHAUSTIVE = (
    6  # clusters up to which every background group is tried: 64 sets cost less than a greedy search
)


@dataclass(frozen=True, kw_only=True)
class ColumnCosts:
    """What costs need to know of the columns: numbers (standardised, pooled variance 1) first, then categories.

    `floor` (numbers,) least variance; `level_start` (categories + 1,) where the levels of each begin; `share`
    (levels,) pooled shares; `penalty` (columns,) what a group costs beside its likelihood; `column_penalty` what
    the columns cost however many groups they have; `spread_prior` and `level_prior` in pseudo-rows.
    """

    floor: Array
    level_start: Array
    share: Array
    penalty: Array
    column_penalty: float = 0.0
    spread_prior: float = 1.0
    level_prior: float = 1.0
    common_variance: bool = False

    @property
    def n_numbers(self) -> int:
        return len(self.floor)

    @property
    def n_columns(self) -> int:
        return len(self.penalty)

    @cached_property
    def compiled(self) -> tuple[Any, ...]:
        """What the compiled update takes of the columns."""
        numbers = (
            np.ascontiguousarray(part, dtype=np.float64) for part in (self.floor, self.share, self.penalty)
        )
        start = np.ascontiguousarray(self.level_start, dtype=np.int64)
        return start, *numbers, self.spread_prior, self.level_prior

    @cached_property
    def column_of_level(self) -> Array:
        """The column, counted among the categories, of each level."""
        return np.repeat(np.arange(len(self.level_start) - 1), np.diff(self.level_start))

    def over_levels(self, values: Array) -> Array:
        """Sums over the levels of each category (..., levels) -> (..., categories)."""
        if len(self.level_start) == 1:
            return np.zeros((*values.shape[:-1], 0))
        return np.asarray(np.add.reduceat(values, self.level_start[:-1], axis=-1))

    def per_level(self, values: Array) -> Array:
        """A value of each column (..., columns) repeated for the levels of the categories (..., levels)."""
        return np.asarray(values[..., self.n_numbers + self.column_of_level])


@dataclass(frozen=True)
class CellSums:
    """Sums of the cells of clusters or groups: numbers (..., numbers) as weight, mean and scatter about that mean,
    categories as counts (..., levels). Adding two merges them without loss of digits."""

    weight: Array
    mean: Array
    scatter: Array
    counts: Array

    @classmethod
    def of_sums(cls, mean: Array, observed: Array, first: Array, second: Array, counts: Array) -> CellSums:
        """From sums of differences to a reference `mean` and of their squares."""
        away = np.divide(first, observed, out=np.zeros_like(first), where=observed > 0)
        return cls(observed, mean + away, np.maximum(second - first * away, 0.0), counts)

    def __add__(self, other: CellSums) -> CellSums:
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
        away = other.mean - self.mean
        scatter = self.scatter + other.scatter + self.weight * share * away**2
        return CellSums(weight, self.mean + away * share, scatter, self.counts + other.counts)

    def __getitem__(self, key: Any) -> CellSums:
        return CellSums(self.weight[key], self.mean[key], self.scatter[key], self.counts[key])

    def __len__(self) -> int:
        return len(self.counts)

    def stacked(self, other: CellSums) -> CellSums:
        """Both along the first axis."""
        pairs = zip(self.parts, other.parts, strict=True)
        return CellSums(*(np.concatenate(pair) for pair in pairs))

    @property
    def parts(self) -> tuple[Array, Array, Array, Array]:
        return self.weight, self.mean, self.scatter, self.counts

    def choose(self, which: Array, columns: ColumnCosts) -> CellSums:
        """In every column the cluster named by `which` (columns,)."""
        numbers, place = which[: columns.n_numbers], np.arange(columns.n_numbers)
        levels = columns.per_level(which)
        return CellSums(
            self.weight[numbers, place],
            self.mean[numbers, place],
            self.scatter[numbers, place],
            self.counts[levels, np.arange(len(levels))],
        )


# --- what a group costs


def variances(cells: CellSums, columns: ColumnCosts) -> Array:
    """The variances that minimise a group's cost."""
    prior = columns.spread_prior
    return np.maximum((cells.scatter + prior) / np.maximum(cells.weight + prior, 1e-300), columns.floor)


def number_costs(weight: Array, scatter: Array, columns: ColumnCosts) -> Array:
    """Minus log-likelihood and prior of groups of numbers, at the variance that minimises them:

    c = weight/2 log 2 pi + (weight + prior)/2 log s2 + (scatter + prior)/(2 s2) - prior/2
    """
    prior = columns.spread_prior
    total, spread = weight + prior, scatter + prior
    s2 = np.maximum(spread / np.maximum(total, 1e-300), columns.floor)
    return np.asarray(weight / 2 * LOG_2_PI + (total * np.log(s2) + spread / s2 - prior) / 2)


def level_costs(counts: Array, columns: ColumnCosts) -> Array:
    """Minus log-likelihood and prior of groups of levels, at the shares that minimise them:

    c = - sum_t a_t log(a_t / sum a) + prior sum_t p_t log p_t,  a_t = count_t + prior p_t
    """
    prior, share = columns.level_prior, columns.share
    heft = counts + prior * share
    total = columns.over_levels(heft)
    own = prior * columns.over_levels(xlogy(share, share))
    return np.asarray(xlogy(total, total) - columns.over_levels(xlogy(heft, heft)) + own)


def group_terms(cells: CellSums, columns: ColumnCosts) -> Array:
    """What each group adds to its column (..., columns): its cost, or its scatter where variances are common."""
    numbers = cells.scatter if columns.common_variance else number_costs(cells.weight, cells.scatter, columns)
    return np.concatenate([numbers, level_costs(cells.counts, columns)], axis=-1)


def column_totals(terms: Array, n_groups: Array, cells: CellSums, columns: ColumnCosts) -> Array:
    """Cost of the columns (..., columns) from the sum of their groups' terms and the number of groups."""
    totals = terms + n_groups * columns.penalty
    if columns.common_variance:
        n = columns.n_numbers
        common = number_costs(cells.weight.sum(axis=0), terms[..., :n], columns)
        totals[..., :n] = common + n_groups[..., :n] * columns.penalty[:n]
    return np.asarray(totals)


def firsts(group: Array) -> Array:
    """Mask (clusters, columns) of the cluster that stands for its group: the first of its members."""
    return np.asarray(group == np.arange(len(group))[:, None])


def pooled(cells: CellSums, group: Array, columns: ColumnCosts) -> CellSums:
    """The sums of the group of each cluster (clusters, ...)."""
    same = (group[:, None, :] == group[None, :, :]).astype(np.float64)
    n = columns.n_numbers
    numbers, levels = same[..., :n], columns.per_level(same)
    weight = np.einsum("kld,ld->kd", numbers, cells.weight)
    total = np.einsum("kld,ld->kd", numbers, cells.weight * cells.mean)
    mean = np.divide(total, weight, out=cells.mean.copy(), where=weight > 0)
    away = np.square(cells.mean[None] - mean[:, None])  # group, member, column
    scatter = np.einsum("kld,kld->kd", numbers, cells.scatter[None] + cells.weight[None] * away)
    return CellSums(weight, mean, scatter, np.einsum("klt,lt->kt", levels, cells.counts))


def grouping_costs(cells: CellSums, group: Array, columns: ColumnCosts) -> Array:
    """Cost of every column (columns,) under a grouping, its parameters at their best."""
    first = firsts(group)
    terms = np.where(first, group_terms(pooled(cells, group, columns), columns), 0.0).sum(axis=0)
    return column_totals(terms, first.sum(axis=0), cells, columns)


# --- the search


def singles(n_clusters: int, n_columns: int) -> Array:
    """Every cluster alone in every column."""
    return np.repeat(np.arange(n_clusters)[:, None], n_columns, axis=1)


def regroup(
    cells: CellSums, columns: ColumnCosts, sharing: str, previous: Array | None, price: float = 0.0
) -> Array:
    """The best grouping found (clusters, columns), every column on its own: each cluster's group is named by its first
    member; `price` is what a second group in a column costs beside itself.

    The previous grouping is always a candidate, and wins ties: without it the search could end above where it was.
    """
    k = len(cells)
    alone = singles(k, columns.n_columns)
    if k == 1 or sharing == "none":
        return alone
    if sharing == "background":
        choice = background_choices(cells, columns, previous)
        kept = np.zeros(columns.n_columns, bool) if previous is None else (previous != 0).any(axis=0)
        many = choice.many + price
        return np.where((many < choice.one) | (kept & (many == choice.one)), choice.group, 0)
    found = SEARCHES[sharing](cells, columns)
    cost = _named_costs(cells, found, columns, sharing)
    for other in (alone, previous):
        if other is None:
            continue
        there = _named_costs(cells, other, columns, sharing)
        found, cost = np.where(there <= cost, other, found), np.minimum(cost, there)
    return np.asarray(found)


def _named_costs(cells: CellSums, group: Array, columns: ColumnCosts, sharing: str) -> Array:
    cost = grouping_costs(cells, group, columns)
    return cost + naming_costs(group) if sharing == "groups" else cost


def naming_costs(group: Array) -> Array:
    """Which of G groups each of K clusters is in, the groups unnamed: K log G - log G! (columns,)."""
    n_groups = firsts(group).sum(axis=0)
    return np.asarray(len(group) * np.log(n_groups) - gammaln(n_groups + 1))


class Choices(NamedTuple):
    """Of each column its cost with one group, the least with more, and the grouping (clusters, columns) of that."""

    one: Array
    many: Array
    group: Array


def background_choices(cells: CellSums, columns: ColumnCosts, previous: Array | None) -> Choices:
    """The best background of each column that leaves out a cluster at least; the previous one wins ties."""
    return (_every_background if len(cells) <= MOST_EXHAUSTIVE else _few_backgrounds)(
        cells, columns, previous
    )


def _every_background(cells: CellSums, columns: ColumnCosts, previous: Array | None) -> Choices:
    """Every set of two or more clusters tried as the background, and none."""
    k, place = len(cells), np.arange(columns.n_columns)
    sets = cells[:1]
    sets = CellSums(*(np.zeros_like(part) for part in sets.parts))
    for cluster in range(k):  # set number = sum of 2^member
        sets = sets.stacked(sets + cells[cluster])
    member = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
    size = member.sum(axis=1)
    terms = group_terms(sets, columns)
    alone = terms[1 << np.arange(k)]
    sums = terms + (1 - member) @ alone
    n_groups = np.where(size == 0, k, k - size + 1)[:, None]
    sums[0] = alone.sum(axis=0)
    totals = column_totals(sums, np.broadcast_to(n_groups, sums.shape), cells, columns)
    kept = np.flatnonzero((size != 1) & (size != k))  # the empty set stands for "all alone"
    best = kept[np.argmin(totals[kept], axis=0)]
    if previous is not None:
        before = _background_set(previous)
        better = (before != 2**k - 1) & (totals[before, place] <= totals[best, place])
        best = np.where(better, before, best)
    return Choices(totals[-1], totals[best, place], _of_background(member[best].T.astype(bool)))


def _few_backgrounds(cells: CellSums, columns: ColumnCosts, previous: Array | None) -> Choices:
    """No background, a greedy one, and the previous one."""
    k, d = len(cells), columns.n_columns
    one = grouping_costs(cells, np.zeros((k, d), dtype=np.intp), columns)
    group = _greedy_background(cells, columns)
    many = grouping_costs(cells, group, columns)
    for other in (singles(k, d), previous):
        if other is None:
            continue
        there = grouping_costs(cells, other, columns)
        better = (there <= many) & (other != 0).any(axis=0)
        group, many = np.where(better, other, group), np.where(better, there, many)
    return Choices(one, many, group)


def _of_background(chosen: Array) -> Array:
    """Groups from a mask (clusters, columns) of those that share the background."""
    return np.where(chosen, np.argmax(chosen, axis=0), np.arange(len(chosen))[:, None])


def _background_set(group: Array) -> Array:
    """The number of the set of clusters that share a group, per column; 0 where none does."""
    sharing = (group[:, None, :] == group[None, :, :]).sum(axis=1) > 1
    return np.asarray((sharing * (1 << np.arange(len(group)))[:, None]).sum(axis=0))


def _greedy_background(cells: CellSums, columns: ColumnCosts) -> Array:
    """The cheapest pair, then always the cheapest cluster to add to it; of two or more groups the least cost."""
    k, d = len(cells), columns.n_columns
    place = np.arange(d)
    terms = group_terms(cells, columns)
    one, other = np.triu_indices(k, 1)
    pair_terms = group_terms(cells[one] + cells[other], columns)
    best = np.argmin(pair_terms - terms[one] - terms[other], axis=0)
    inside = np.zeros((k, d), dtype=bool)
    inside[one[best], place] = inside[other[best], place] = True
    background = cells.choose(one[best], columns) + cells.choose(other[best], columns)
    own = pair_terms[best, place]
    stages, sums, counts = [np.zeros((k, d), dtype=bool), inside.copy()], [terms.sum(axis=0)], [k]
    sums.append(own + np.where(inside, 0.0, terms).sum(axis=0))
    counts.append(k - 1)
    for n_groups in range(k - 2, 1, -1):
        grown = group_terms(cells + background, columns)
        rise = np.where(inside, np.inf, grown - terms)
        added = np.argmin(rise, axis=0)
        inside[added, place] = True
        background = background + cells.choose(added, columns)
        own = grown[added, place]
        stages.append(inside.copy())
        sums.append(own + np.where(inside, 0.0, terms).sum(axis=0))
        counts.append(n_groups)
    n_groups_of = np.broadcast_to(np.array(counts)[:, None], (len(counts), d))
    totals = column_totals(np.array(sums), n_groups_of, cells, columns)
    return _of_background(np.array(stages)[np.argmin(totals, axis=0), :, place].T)


def _greedy_groups(cells: CellSums, columns: ColumnCosts) -> Array:
    """Groups merged pair by pair, the cheapest first; the number of groups with the least cost, naming included."""
    k, d = len(cells), columns.n_columns
    group = singles(k, d)
    place = np.arange(d)
    found, cost = group, grouping_costs(cells, group, columns) + naming_costs(group)
    one, other = np.triu_indices(k, 1)
    for _ in range(k - 1):
        groups = pooled(cells, group, columns)
        terms = group_terms(groups, columns)
        rise = group_terms(groups[one] + groups[other], columns) - terms[one] - terms[other]
        first = firsts(group)
        best = np.argmin(np.where(first[one] & first[other], rise, np.inf), axis=0)
        group = np.where(group == group[other[best], place], group[one[best], place], group)
        there = grouping_costs(cells, group, columns) + naming_costs(group)
        found, cost = np.where(there < cost, group, found), np.minimum(there, cost)
    return found


def _all_or_none(cells: CellSums, columns: ColumnCosts) -> Array:
    """A column is common to all clusters or to none."""
    return np.zeros((len(cells), columns.n_columns), dtype=np.intp)


SEARCHES = {"groups": _greedy_groups, "global": _all_or_none}


def within_budget(cells: CellSums, columns: ColumnCosts, group: Array, budget: int) -> Array:
    """Each cluster keeps its own distribution in at most `budget` columns, those where it gains most."""
    shared = (group[:, None, :] == group[None, :, :]).sum(axis=1) > 1
    none = np.zeros_like(group)
    all_cells = pooled(cells, none, columns)
    gain = group_terms_under(cells, all_cells, columns) - group_terms(cells, columns)
    gain = np.where(shared, -np.inf, gain - columns.penalty)
    order = np.argsort(-gain, axis=1, kind="stable")
    kept = np.zeros_like(shared)
    np.put_along_axis(kept, order[:, :budget], True, axis=1)
    kept &= gain > -np.inf
    first = np.argmax(~kept, axis=0)
    return np.where(kept, np.arange(len(group))[:, None], first)


def group_terms_under(cells: CellSums, under: CellSums, columns: ColumnCosts) -> Array:
    """Minus log-likelihood of cells (clusters, columns) under the parameters of other groups."""
    s2 = variances(under, columns)
    squares = cells.scatter + cells.weight * np.square(cells.mean - under.mean)
    numbers = (cells.weight * (LOG_2_PI + np.log(s2)) + squares / s2) / 2
    levels = columns.over_levels(-xlogy(cells.counts, np.exp(log_shares(under, columns))))
    return np.concatenate([numbers, levels], axis=-1)


def log_shares(cells: CellSums, columns: ColumnCosts) -> Array:
    """Log of the shares of the levels (..., levels) that minimise a group's cost; pooled shares where it is empty."""
    heft = cells.counts + columns.level_prior * columns.share
    total = columns.over_levels(heft)[..., columns.column_of_level]
    share = np.where(total > 0, heft / np.where(total > 0, total, 1.0), columns.share)
    with np.errstate(divide="ignore"):
        return np.log(share)

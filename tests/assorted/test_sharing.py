"""Costs of groups from their sums, and the search for groups, against brute force from the rows themselves."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

from ilk.assorted.sharing import (
    MOST_EXHAUSTIVE,
    CellSums,
    ColumnCosts,
    firsts,
    grouping_costs,
    level_costs,
    naming_costs,
    number_costs,
    pooled,
    regroup,
    singles,
    within_budget,
)

SIZES = (3, 2)  # levels of the two categories beside the two numbers


def columns_of(penalty: float = 2.0, **changes: object) -> ColumnCosts:
    share = np.array([0.5, 0.3, 0.2, 0.6, 0.4])
    floor, start = np.full(2, 1e-6), np.array([0, 3, 5])
    return ColumnCosts(floor=floor, level_start=start, share=share, penalty=np.full(4, penalty), **changes)


def cells_of(seed: int, k: int) -> tuple[CellSums, list[np.ndarray], list[np.ndarray]]:
    """Sums of k clusters of random rows, and the rows: numbers and codes."""
    draws = np.random.default_rng(seed)
    numbers, codes = [], []
    for _ in range(k):
        n = int(draws.integers(3, 12))
        numbers.append(draws.normal(draws.integers(0, 3, 2), draws.choice([0.3, 1.0], 2), (n, 2)))
        codes.append(np.column_stack([draws.choice(s, n, p=draws.dirichlet(np.ones(s))) for s in SIZES]))
    return sums_of(numbers, codes), numbers, codes


def sums_of(numbers: list[np.ndarray], codes: list[np.ndarray]) -> CellSums:
    weight = np.array([[float(len(x))] * 2 for x in numbers])
    mean = np.array([x.mean(axis=0) for x in numbers])
    scatter = np.array([np.square(x - x.mean(axis=0)).sum(axis=0) for x in numbers])
    counts = [np.concatenate([np.bincount(c[:, j], minlength=s) for j, s in enumerate(SIZES)]) for c in codes]
    return CellSums(weight, mean, scatter, np.array(counts, dtype=float))


def brute_column(numbers: np.ndarray, code: np.ndarray | None, columns: ColumnCosts, column: int) -> float:
    """Cost of one group in one column from its rows, written as densities."""
    if column < 2:
        x = numbers[:, column]
        s2 = max((np.square(x - x.mean()).sum() + 1) / (len(x) + 1), columns.floor[column])
        prior = (np.log(s2) + 1 / s2 - 1) / 2
        return float(-norm.logpdf(x, x.mean(), np.sqrt(s2)).sum() + prior)
    share = columns.share[columns.level_start[column - 2] : columns.level_start[column - 1]]
    count = np.bincount(code[:, column - 2], minlength=len(share))
    eta = (count + share) / (count.sum() + 1)
    return float(-(count * np.log(eta)).sum() + (share * np.log(share / eta)).sum())


def test_the_cost_of_a_group_of_numbers_is_a_minimum():
    columns, x = columns_of(), np.random.default_rng(0).normal(1, 0.5, 9)
    scatter = np.square(x - x.mean()).sum()

    def cost(theta):
        mean, log_s2 = theta
        s2 = np.exp(log_s2)
        return -norm.logpdf(x, mean, np.sqrt(s2)).sum() + (log_s2 + 1 / s2 - 1) / 2

    best = minimize(cost, [0.0, 0.0], tol=1e-12).fun
    assert number_costs(np.full(2, 9.0), np.full(2, scatter), columns)[0] == pytest.approx(best, abs=1e-8)


def test_the_cost_of_a_group_of_levels_is_a_minimum():
    columns, count = columns_of(), np.array([4.0, 0, 2, 1, 5])
    share = columns.share[:3]

    def cost(theta):
        eta = np.exp(theta) / np.exp(theta).sum()
        return -(count[:3] * np.log(eta)).sum() + (share * np.log(share / eta)).sum()

    best = minimize(cost, np.zeros(3), tol=1e-12).fun
    assert level_costs(count, columns)[0] == pytest.approx(best, abs=1e-8)


def test_priors_vanish_at_the_pooled_values():
    columns = columns_of()
    assert number_costs(np.zeros(2), np.zeros(2), columns) == pytest.approx(0)
    assert level_costs(np.zeros(5), columns) == pytest.approx(0)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(2, 5))
def test_merged_sums_are_the_sums_of_the_rows_together(seed, k):
    cells, numbers, codes = cells_of(seed, k)
    total = cells[[0]]
    for cluster in range(1, k):
        total = total + cells[[cluster]]
    together = sums_of([np.concatenate(numbers)], [np.concatenate(codes)])
    both = pooled(cells, np.zeros((k, 4), dtype=int), columns_of())
    for one, other, third in zip(total.parts, together.parts, both.parts, strict=True):
        assert one == pytest.approx(other, rel=1e-12)
        assert third[k - 1] == pytest.approx(other[0], rel=1e-12)


def brute_groupings(k: int) -> list[list[int]]:
    found = [list(range(k))]
    for size in range(2, k + 1):
        for members in combinations(range(k), size):
            found.append([members[0] if c in members else c for c in range(k)])
    return found


def brute_cost(numbers, codes, columns, column, names) -> float:
    cost = 0.0
    for first in set(names):
        mine = [c for c, name in enumerate(names) if name == first]
        x, c = np.concatenate([numbers[i] for i in mine]), np.concatenate([codes[i] for i in mine])
        cost += brute_column(x, c, columns, column) + columns.penalty[column]
    return cost


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(2, 5), penalty=st.sampled_from([0.5, 2.0, 5.0]))
def test_the_search_finds_the_best_background_of_all(seed, k, penalty):
    columns = columns_of(penalty)
    cells, numbers, codes = cells_of(seed, k)
    group = regroup(cells, columns, "background", None)
    found = grouping_costs(cells, group, columns)
    for column in range(4):
        every = [brute_cost(numbers, codes, columns, column, names) for names in brute_groupings(k)]
        assert found[column] == pytest.approx(min(every), rel=1e-10)
        names = group[:, column].tolist()
        assert brute_cost(numbers, codes, columns, column, names) == pytest.approx(min(every), rel=1e-10)


def costs(cells: CellSums, group: np.ndarray, columns: ColumnCosts, sharing: str) -> np.ndarray:
    naming = naming_costs(group) if sharing == "groups" else 0.0
    return grouping_costs(cells, group, columns) + naming


@pytest.mark.parametrize("sharing", ["background", "groups", "global"])
@pytest.mark.parametrize("common", [False, True])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(2, MOST_EXHAUSTIVE + 3))
def test_a_search_never_ends_above_the_previous_grouping(sharing, common, seed, k):
    columns = columns_of(common_variance=common)
    cells, _, _ = cells_of(seed, k)
    draws = np.random.default_rng(seed)
    shared = draws.random((k, 4)) < 0.5
    previous = np.where(shared, np.argmax(shared, axis=0), np.arange(k)[:, None])
    before = costs(cells, previous, columns, sharing)
    group = regroup(cells, columns, sharing, previous)
    after = costs(cells, group, columns, sharing)
    assert (after <= before + 1e-10 * np.abs(before)).all()
    assert (group == np.take_along_axis(group, group, axis=0)).all()  # named by a member
    assert firsts(group).any(axis=0).all()


def test_the_greedy_search_is_mostly_exact_where_all_can_be_tried(monkeypatch):
    columns = columns_of()
    n_exact = n_all = 0
    for seed in range(40):
        cells, _, _ = cells_of(seed, 5)
        best = grouping_costs(cells, regroup(cells, columns, "background", None), columns)
        monkeypatch.setattr("ilk.assorted.sharing.MOST_EXHAUSTIVE", 0)
        greedy = grouping_costs(cells, regroup(cells, columns, "background", None), columns)
        monkeypatch.undo()
        assert (greedy >= best - 1e-9).all()
        n_exact, n_all = n_exact + int((greedy <= best + 1e-9).sum()), n_all + 4
    assert n_exact >= 0.9 * n_all


def test_common_variances_cost_what_one_variance_costs():
    columns = columns_of(common_variance=True)
    cells, numbers, _ = cells_of(3, 3)
    found = grouping_costs(cells, singles(3, 4), columns)[0]
    x = np.concatenate([n[:, 0] - n[:, 0].mean() for n in numbers])
    s2 = (np.square(x).sum() + 1) / (len(x) + 1)
    expected = -norm.logpdf(x, 0, np.sqrt(s2)).sum() + (np.log(s2) + 1 / s2 - 1) / 2 + 3 * columns.penalty[0]
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_budget_keeps_the_columns_that_gain_most():
    cells, _, _ = cells_of(5, 4)
    columns = columns_of(0.1)
    group = within_budget(cells, columns, regroup(cells, columns, "background", None), 1)
    size = (group[:, None, :] == group[None, :, :]).sum(axis=1)
    shared = (size > 1).any(axis=0)
    assert ((size == 1) & shared).sum(axis=1).max() <= 1

"""What it costs to say which columns the clusters differ in, and the grouping step that knows of it, by enumeration."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import comb, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilk.assorted.family import Assorted
from ilk.assorted.sharing import CellSums, ColumnCosts, grouping_costs, naming_costs, singles
from ilk.assorted.switches import coins, regroup_background, relevant, sparse, switch_cost
from tests.assorted.test_sharing import brute_groupings


def columns_of(n_numbers: int, n_binary: int, penalty: float) -> ColumnCosts:
    start = 2 * np.arange(n_binary + 1)
    share = np.tile([0.6, 0.4], n_binary)
    every = np.full(n_numbers + n_binary, penalty)
    return ColumnCosts(floor=np.full(n_numbers, 1e-6), level_start=start, share=share, penalty=every)


def cells_of(seed: int, k: int, columns: ColumnCosts, tells: float) -> CellSums:
    """Random sums of k clusters that differ in about a share `tells` of the columns."""
    draws = np.random.default_rng(seed)
    n, m = columns.n_numbers, len(columns.level_start) - 1
    size = draws.integers(5, 40, (k, 1)).astype(float)
    mean = draws.normal(0, 0.2, (k, n)) + draws.normal(0, 2, (k, n)) * (draws.random(n) < tells)
    scatter = size * draws.uniform(0.6, 1.4, (k, n))
    yes = np.round(size * np.clip(0.6 + draws.normal(0, 0.4, (k, m)) * (draws.random(m) < tells), 0, 1))
    counts = np.stack([yes, size - yes], axis=2).reshape(k, 2 * m)
    return CellSums(np.repeat(size, n, axis=1), mean, scatter, counts)


def total(cells: CellSums, group: np.ndarray, columns: ColumnCosts) -> float:
    k, d = group.shape
    q = sum(len(set(names)) > 1 for names in group.T.tolist())
    return float(grouping_costs(cells, group, columns).sum()) + written_out(k, d, q)


def written_out(k: int, d: int, q: int) -> float:
    named = log(d + 1) + log(comb(d, q)) + q * log(2**k - k - 1)
    return 0.0 if k == 1 else min((k - 1) * d * log(2), named)


def test_the_two_codes():
    assert coins(3, 10) == pytest.approx(20 * log(2))
    assert sparse(3, 10, 2) == pytest.approx(log(11) + log(45) + 2 * log(4))
    assert switch_cost(1, 10, 0) == 0
    for k, d, q in [(2, 300, 5), (3, 300, 5), (4, 8, 8), (7, 20, 13)]:
        assert switch_cost(k, d, q) == pytest.approx(written_out(k, d, q), rel=1e-12)


def test_few_relevant_columns_of_many_cost_less_than_coins():
    assert switch_cost(3, 300, 5) < coins(3, 300) / 8
    assert switch_cost(3, 8, 4) == coins(3, 8)


@pytest.mark.parametrize("common", [False, True])
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(2, 4),
    shape=st.sampled_from([(2, 1), (3, 0), (0, 4), (4, 4)]),
    tells=st.sampled_from([0.0, 0.2, 0.6, 1.0]),
)
def test_the_step_is_the_least_of_all_groupings_and_all_numbers_of_columns(common, seed, k, shape, tells):
    columns = replace(columns_of(*shape, 3.0), common_variance=common)
    cells = cells_of(seed, k, columns, tells)
    found = total(cells, regroup_background(cells, columns, None), columns)
    assert found == pytest.approx(enumerated(cells, columns), rel=1e-12, abs=1e-9)


def enumerated(cells: CellSums, columns: ColumnCosts) -> float:
    """The least total over every set of relevant columns, each with any of its groupings."""
    k, d = len(cells), columns.n_columns
    every = np.array([grouping_costs(cells, _alike(names, d), columns) for names in brute_groupings(k)])
    n_groups = np.array([len(set(names)) for names in brute_groupings(k)])
    one, many = every[n_groups == 1].min(axis=0), every[n_groups > 1].min(axis=0)
    sets = product([False, True], repeat=d)
    return min(float(np.where(chosen, many, one).sum()) + written_out(k, d, sum(chosen)) for chosen in sets)


def _alike(names: list[int], d: int) -> np.ndarray:
    return np.repeat(np.array(names)[:, None], d, axis=1)


def test_the_enumeration_is_that_of_whole_groupings():
    """Small enough to try every grouping of every column at once."""
    columns = columns_of(2, 1, 1.0)
    cells = cells_of(3, 3, columns, 0.5)
    groupings = [np.array(g).T for g in product(brute_groupings(3), repeat=3)]
    assert min(total(cells, g, columns) for g in groupings) == pytest.approx(enumerated(cells, columns))


@pytest.mark.parametrize("common", [False, True])
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(2, 9), tells=st.sampled_from([0.1, 0.5, 1.0]))
def test_a_step_never_ends_above_the_previous_grouping(common, seed, k, tells):
    columns = replace(columns_of(12, 8, 2.5), common_variance=common)
    cells, draws = cells_of(seed, k, columns, tells), np.random.default_rng(seed)
    shared = draws.random((k, 20)) < draws.choice([0.3, 0.6, 1.0], 20)
    previous = np.where(shared, np.argmax(shared, axis=0), np.arange(k)[:, None])
    group = regroup_background(cells, columns, previous)
    before = total(cells, previous, columns)
    assert total(cells, group, columns) <= before + 1e-10 * abs(before)
    assert (group == np.take_along_axis(group, group, axis=0)).all()
    again = regroup_background(cells, columns, group)
    assert total(cells, again, columns) == pytest.approx(total(cells, group, columns), rel=1e-12)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(2, 5))
def test_the_penalty_holds_the_switches_of_its_own_columns(seed, k):
    columns = columns_of(5, 3, 2.0)
    family = Assorted(columns, 100.0)
    cells = cells_of(seed, k, columns, 0.4)
    params = family.from_cells(cells, cells.weight[:, 0], None)
    q = int(relevant(params.group).sum())
    bare = replace(family, sharing="groups")
    without = bare.penalty(params) - naming_costs(params.group).sum()
    assert family.penalty(params) - without == pytest.approx(written_out(k, 8, q), rel=1e-9)


@pytest.mark.parametrize("option", [{"budget": 2}, {"sharing": "none"}, {"sharing": "global"}])
def test_a_budget_and_other_ways_of_sharing_keep_the_coins(option):
    columns = columns_of(30, 0, 2.0)
    params = Assorted(columns, 100.0).from_cells(cells_of(0, 3, columns, 0.1), np.full(3, 20.0), None)
    family = Assorted(columns, 100.0, **option)
    bare = replace(Assorted(columns, 100.0), sharing="groups")
    without = bare.penalty(params) - naming_costs(params.group).sum()
    assert family.penalty(params) - without == pytest.approx(coins(3, 30))


def test_relevant_columns_have_more_than_one_group():
    group = np.array([[0, 0, 0], [0, 1, 0], [0, 2, 2]])
    assert relevant(group).tolist() == [False, True, True]
    assert relevant(singles(1, 3)).tolist() == [False] * 3

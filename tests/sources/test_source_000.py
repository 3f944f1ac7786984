"""Claims of the CRAFT supplement that no test of a module shows: limits, signs, constants, row order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import xlogy
from scipy.stats import dirichlet

import ilk
from ilk.families.bernoulli import Bernoulli
from ilk.families.craft import Choice
from ilk.table.block import Block, Encoding


@pytest.mark.parametrize(("m", "rho"), [(0.5, 0.24), (0.3, 0.05), (0.8, 0.1)])
def test_choosing_a_column_moves_one_unit_from_b_to_a(m, rho):
    """a + b = m(1-m)/rho whether chosen or not, and the posterior is a / (a + b)."""
    choice = Choice(m, rho)
    total = m * (1 - m) / rho
    assert choice.a0 + choice.b0 == pytest.approx(total)
    assert choice.posterior(0) == pytest.approx(choice.a0 / total)
    assert choice.posterior(1) == pytest.approx((choice.a0 + 1) / total)


def test_posterior_of_a_choice_from_global_to_local():
    """Toward m as rho goes to 0, toward the choice itself as rho goes to m(1-m)."""
    assert [Choice(0.5, 0.24).posterior(v) for v in (1, 0)] == pytest.approx([0.98, 0.02])
    assert [Choice(0.5, 0.01).posterior(v) for v in (1, 0)] == pytest.approx([0.52, 0.48])
    for m in (0.2, 0.5, 0.7):
        assert [Choice(m, 1e-9).posterior(v) for v in (1, 0)] == pytest.approx([m, m], abs=1e-6)
        near = Choice(m, m * (1 - m) - 1e-9)
        assert [near.posterior(v) for v in (1, 0)] == pytest.approx([1, 0], abs=1e-6)


def test_a_group_costs_only_if_log_theta_is_negative():
    """-(K-1) log theta must be lambda (K-1): with theta = exp(+lambda), as 6.1 prints it, groups are a gain."""
    X = np.repeat([[0.0], [4.0], [8.0]], 5, axis=0)
    penalty = 7.0
    model = ilk.DPMeans(penalty).fit(X)
    log_theta = -penalty
    assert model.n_clusters_ == 3
    assert model.cost_ == pytest.approx(model.inertia_ - model.n_clusters_ * log_theta)
    assert model.cost_ > model.inertia_


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_the_flat_dirichlet_has_the_constant_log_gamma_of_levels(levels):
    """Not log(levels): the density is (levels - 1)! everywhere, 1 for a binary column."""
    shares = np.full(levels, 1 / levels)
    assert dirichlet.pdf(shares, np.ones(levels)) == pytest.approx(np.prod(np.arange(1, levels)))


def test_a_group_of_one_row_has_finite_costs():
    """Its means would be 0 and 1, where the printed discrepancy is NaN or infinite: they are smoothed."""
    X = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, other = X
        printed = -mean * np.log(mean) - (1 - mean) * np.log(1 - mean)
        printed += (mean - other) * np.log(mean / (1 - mean))
    assert not np.isfinite(printed).any()
    family = Bernoulli(np.array([0.5, 0.5, 0.9]))
    cost = family.cost(family.start(X[:1]), Block(X, Encoding(1.0, np.zeros(3))))[:, 0]
    smoothed = np.array([0.25, 0.75, 0.95])  # half the row, half the table
    assert cost[0] == pytest.approx(-np.log([0.75, 0.75, 0.95]).sum())
    assert cost[1] == pytest.approx(-np.log([smoothed[0], 1 - smoothed[1], smoothed[2]]).sum())


def as_printed(X: np.ndarray, open_cost: float) -> int:
    """Groups of Algorithm 3 word for word, with 0 log 0 = 0; the first mean is the first row."""
    means, label = [X[0]], np.zeros(len(X), dtype=int)
    for _ in range(20):
        before = label.copy()
        for n, row in enumerate(X):
            cost = [-(xlogy(row, mean) + xlogy(1 - row, 1 - mean)).sum() for mean in means]
            if min(cost) > open_cost:
                means.append(row)
                label[n] = len(means) - 1
            else:
                label[n] = int(np.argmin(cost))
        names, label = np.unique(label, return_inverse=True)
        means = [X[label == k].mean(axis=0) for k in range(len(names))]
        if np.array_equal(label, before):
            break
    return len(means)


def test_algorithm_3_as_printed_opens_a_group_for_every_distinct_row():
    """A mean on a row is infinitely far from every other row, whatever the open cost; ilk finds the two groups."""
    group = np.repeat([0, 1], 30)
    X = (np.random.default_rng(0).random((60, 20)) < np.where(group, 0.9, 0.1)[:, None]).astype(float)
    distinct = len(np.unique(X, axis=0))
    assert distinct > 40
    assert [as_printed(X, open_cost) for open_cost in (1.0, 100.0, 1e6)] == [distinct] * 3
    assert ilk.measures.ari(group, ilk.BinaryDPMeans().fit(X).labels_) == 1.0


def test_a_walk_by_hand_depends_on_the_order_of_the_rows():
    """Six rows at 0, then 4.5, 6.5 and 8.5; the mean is 2.17 and a group opens beyond a squared distance of 5.

    4.5 opens a group that 6.5 joins, and 8.5 opens one; met backwards, 8.5 opens a group that 6.5 joins.
    """
    near, far = [0.0] * 6, [4.5, 6.5, 8.5]

    def groups(rows: list[float]) -> set[frozenset[float]]:
        labels = ilk.DPMeans(5.0, mode="sequential").fit(np.array(rows)[:, None]).labels_
        return {frozenset(np.array(rows)[labels == g].tolist()) for g in range(labels.max() + 1)}

    assert groups([*near, *far]) == {frozenset({0.0}), frozenset({4.5, 6.5}), frozenset({8.5})}
    assert groups([*near, *far[::-1]]) == {frozenset({0.0}), frozenset({4.5}), frozenset({6.5, 8.5})}


def test_fewer_groups_as_they_cost_more():
    X = np.random.default_rng(0).normal(size=(60, 2))
    found = [ilk.DPMeans(cost).fit(X).n_clusters_ for cost in (0.25, 0.5, 1.0, 2.0, 4.0, 20.0)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == 1

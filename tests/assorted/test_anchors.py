"""Anchors of spreads: the unit of a column and nothing else, the least of the prior, and what they find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ilk
from benchmarks.ceiling import apart
from ilk.assorted.anchors import fitted_anchors
from ilk.assorted.columns import assort
from ilk.assorted.family import Clusters
from ilk.assorted.growth import GrowthSearch
from ilk.assorted.problem import AssortedProblem, ModelOptions
from ilk.engines.memory import MemoryRows
from ilk.measures import ari
from ilk.table.condition import encoding_of, survey


def problem(raw, spread_prior) -> AssortedProblem:
    rows = MemoryRows(raw, encoding_of(raw, survey(raw)), complete=True, threads=1)
    plan = assort(rows, [f"x{j}" for j in range(raw.shape[1])], ())
    return AssortedProblem.plain(rows, plan, ModelOptions(spread_prior=spread_prior))


@pytest.fixture
def scene():
    draws, label = np.random.default_rng(0), np.repeat([0, 1], 60)
    return problem(draws.normal(0, 1, (120, 2)) + 8.0 * label[:, None], 0.0), label


def test_without_a_prior_an_anchor_costs_half_a_log_and_changes_nothing(scene):
    plain, label = scene
    search, other = GrowthSearch(seed=0), plain.anchored((0.25, 1.0))
    before, after = (search.polished(s, search.from_labels(s, label, 2)) for s in (plain, other))
    assert after.cost == pytest.approx(before.cost + np.log(120) / 2, abs=1e-6)
    assert np.allclose(after.params.variance * [1 / 16, 1], before.params.variance)


def test_an_anchor_is_taken_back_and_given_to_other_rows(scene):
    plain, _ = scene
    other = plain.anchored((0.25, 1.0))
    assert np.allclose(plain.plan.number_columns.spread, other.anchored(()).plan.number_columns.spread)
    assert plain.like(other).plan == other.plan
    assert plain.like(plain) == plain


def test_fitted_anchors_are_the_least_of_the_prior():
    variance = np.exp(np.random.default_rng(1).normal(-5, 1, (6, 3)))
    variance[:, 2] = variance[0, 2]
    group = np.column_stack([np.arange(6), [0, 0, 2, 3, 4, 5], np.zeros(6, dtype=int)])
    params = Clusters(
        mixing=np.full(6, 1 / 6),
        mean=np.zeros((6, 3)),
        variance=variance,
        log_level=np.zeros((6, 0)),
        group=group,
    )
    found = fitted_anchors(params, (), 3)
    tried = 2.0 ** np.arange(-12, 1)
    for j in (0, 1):
        own = variance[np.unique(group[:, j]), j]
        prior = [np.sum(np.log(own / a**2) + a**2 / own) for a in tried]
        assert found[j] in (tried[np.argmin(prior)], tried[np.argsort(prior)[1]])
    assert found[2] == 1.0  # one group: the table's
    smaller = replace(params, variance=variance * 16)
    assert fitted_anchors(smaller, (0.25, 0.25, 1.0), 3) == found


@pytest.mark.slow
def test_many_groups_in_a_table_thirty_times_as_wide():
    X, label = apart(100, 2, 60, seed=0)
    kind = np.array(list("abcdef"))[np.random.default_rng(0).integers(0, 6, 100)[label]]
    found = ilk.cluster({"x": X[:, 0], "y": X[:, 1], "kind": kind})
    assert found.k == 100
    assert ari(label, found.labels) > 0.98

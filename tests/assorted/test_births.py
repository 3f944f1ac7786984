"""Births among all rows: a cluster too rare for the sample is found, and J falls strictly."""

from __future__ import annotations

import numpy as np
import pytest

from ilk.assorted import fit as assorted
from ilk.assorted.births import births_of
from ilk.assorted.columns import assort
from ilk.assorted.fit import SearchOptions, fit_assorted
from ilk.assorted.growth import GrowthSearch
from ilk.assorted.problem import AssortedProblem, ModelOptions
from ilk.assorted.state import from_labels, labels_of, step_of
from ilk.engines.memory import MemoryRows
from ilk.table.condition import encoding_of, survey


@pytest.fixture(scope="module")
def rows() -> MemoryRows:
    draws = np.random.default_rng(0)
    X = draws.normal(size=(12_000, 2))
    X[:6000] += [9.0, 0.0]
    X[-24:] += [0.0, 30.0]  # two in a thousand
    facts = survey(X)
    return MemoryRows(X, encoding_of(X, facts), complete=True)


def j_of(scene: AssortedProblem, params: object) -> float:
    return float(step_of(scene, params).cost.value) + scene.family.penalty(params)


def test_a_birth_is_the_partition_with_the_dearest_rows_on_their_own(rows):
    plan = assort(rows, ["a", "b"], [])
    scene = AssortedProblem.plain(rows, plan, ModelOptions())
    family = scene.family.ungrouped
    params = from_labels(scene.rows, family, (rows.raw[:, 0] > 4.5).astype(np.int32), 2)
    (born,) = births_of(scene, params, (0.1,))
    block = scene.rows.take(np.arange(rows.n_rows))
    label, cost = scene.family.assign(params, block)
    dearest = np.argsort(-cost, kind="stable")[:1200]
    label[dearest] = 2
    same = from_labels(scene.rows, family, label, 3)
    np.testing.assert_allclose(born.mixing, same.mixing, rtol=1e-12)
    np.testing.assert_allclose(born.mean, same.mean, rtol=1e-9, atol=1e-12)


def test_j_falls_strictly_with_every_birth(rows):
    plan = assort(rows, ["a", "b"], [])
    scene = AssortedProblem.plain(rows, plan, ModelOptions())
    search = GrowthSearch(seed=0, rescale=False)
    state = search.polished(scene, search.single(scene).params)
    grown = search.born(state)
    assert grown.k > state.k
    assert grown.cost < state.cost
    assert grown.cost == pytest.approx(j_of(grown.scene, grown.params), rel=1e-9)


def test_a_cluster_too_rare_for_the_sample_is_found_among_all_rows(rows, monkeypatch):
    monkeypatch.setattr(assorted, "SEARCH_ROWS", 500)
    plan = assort(rows, ["a", "b"], [])
    found = fit_assorted(rows, plan, ModelOptions(), SearchOptions(most=4, n_starts=4, rescale=False), 1)
    label = labels_of(found.scene, found.params)
    rare = label[-24:]
    assert len(np.unique(rare)) == 1
    assert (label == rare[0]).sum() == 24
    assert len(found.params) in {candidate.k for candidate in found.candidates}

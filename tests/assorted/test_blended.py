"""Blocks of correlated numbers beside cells of categories: cost by definition, never rising, chosen where it pays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from ilk.assorted.fit import SearchOptions, fit_assorted
from ilk.assorted.problem import ModelOptions
from ilk.assorted.state import from_labels, step_of
from ilk.fitting.loop import Stop, run_starts
from tests.assorted.test_family import mixed_table, scene_of


def cigars(seed: int = 0, n: int = 200):
    """Two parallel clusters of correlated numbers that only a block can tell apart."""
    draws = np.random.default_rng(seed)
    z = draws.integers(0, 2, n)
    along = draws.normal(0, 4, n)
    return np.column_stack([along, along + 3 * z]) + draws.normal(0, 0.4, (n, 2)), z


@pytest.mark.parametrize("numbers", ["EEE", "VVV"])
def test_the_traced_cost_is_J(numbers):
    raw, codes, _ = mixed_table(0, blank=0.0)
    scene = scene_of(raw, codes, numbers=numbers)
    family = scene.family
    start = from_labels(scene.rows, family.ungrouped, np.arange(len(raw)) % 2, 2)
    run = run_starts(scene.rows, [family], [start], stop=Stop(max_passes=4))[0]
    params, block = run.measured, scene.rows.take(np.arange(len(raw)))
    covariance = params.numbers.covariance.matrices()
    score = np.tile(np.log(params.mixing), (len(raw), 1))
    for k in range(2):
        score[:, k] += multivariate_normal(params.mean[k], covariance[k]).logpdf(block.raw)
        for j, begin in enumerate(scene.columns.level_start[:-1]):
            score[:, k] += params.log_level[k, begin + block.codes[:, j]]
    d, n = block.n_columns, len(raw)
    anchor = np.cov(block.raw.T, bias=True)
    distinct = covariance[:1] if numbers == "EEE" else covariance
    prior = sum(
        np.linalg.slogdet(s)[1] - np.linalg.slogdet(anchor)[1] + np.trace(np.linalg.inv(s) @ anchor) - d
        for s in distinct
    )
    prior *= scene.columns.spread_prior
    block_parameters = 2 * d + len(distinct) * d * (d + 1) / 2
    expected = -logsumexp(score, axis=1).sum() + prior / 2 + block_parameters / 2 * np.log(n)
    expected += family.levels.penalty(params.levels)
    assert run.trace[-1].cost == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("numbers", ["EEE", "VVV"])
def test_merging_two_halves_of_a_cluster_costs_least(numbers):
    draws = np.random.default_rng(1)
    z = np.repeat([0, 1, 2], 80)
    raw = draws.normal(0, 1, (240, 2)) + np.array([[0, 0], [0, 0], [9, 9]])[z]
    scene = scene_of(raw, numbers=numbers)
    params = from_labels(scene.rows, scene.family, z, 3)
    sums = step_of(scene, params).sums
    costs = scene.family.merge_costs(params, sums)
    assert costs[0, 1] == costs[1, 0] < costs[0, 2]
    merged = scene.family.merged(params, sums, 0, 1)
    assert len(merged) == 2
    assert merged.mixing == pytest.approx([1 / 3, 2 / 3], abs=0.02)
    assert merged.mean[1] == pytest.approx(scene.rows.take(np.arange(160)).raw.mean(axis=0), abs=0.05)


def test_correlated_numbers_are_a_block_by_their_cost():
    raw, z = cigars()
    scene = scene_of(raw)
    found = fit_assorted(scene.table, scene.plan, ModelOptions(numbers="auto"), SearchOptions(2), 0)
    assert found.scene.options.numbers == "EEE"
    assert adjusted_rand_score(z, found.fit.labels) > 0.9
    cells = fit_assorted(scene.table, scene.plan, ModelOptions(), SearchOptions(2), 0)
    assert found.cost < cells.cost
    assert found.relevance.shape == found.chosen.shape == (2, 2)


def test_independent_numbers_stay_cells():
    draws = np.random.default_rng(2)
    z = draws.integers(0, 2, 200)
    scene = scene_of(draws.normal(6 * z[:, None], 1, (200, 6)))
    found = fit_assorted(scene.table, scene.plan, ModelOptions(numbers="auto"), SearchOptions(None), 0)
    assert found.scene.options.numbers == "cells"
    assert len(found.params) == 2


def test_a_block_finds_no_more_clusters_than_cells_needed():
    raw, _ = cigars(3)
    scene = scene_of(raw)
    found = fit_assorted(scene.table, scene.plan, ModelOptions(numbers="auto"), SearchOptions(None), 0)
    cells = fit_assorted(scene.table, scene.plan, ModelOptions(), SearchOptions(None), 0)
    assert found.scene.options.numbers == "EEE"
    assert len(found.params) <= len(cells.params)
    assert {c.numbers for c in found.candidates} == {"EEE"}


def test_selecting_keeps_the_scores():
    raw, codes, z = mixed_table(4, blank=0.0)
    scene = scene_of(raw, codes, numbers="VVV")
    params = from_labels(scene.rows, scene.family, z, 2)
    block = scene.rows.take(np.arange(len(raw)))
    turned = scene.family.select(params, [1, 0])
    assert scene.family.scores(turned, block)[:, ::-1] == pytest.approx(scene.family.scores(params, block))
    hidden = replace(
        block, raw=np.full_like(block.raw, np.nan), codes=np.full_like(block.codes, -1), complete=False
    )
    assert scene.family.scores(params, hidden)[0] == pytest.approx(np.log(params.mixing))

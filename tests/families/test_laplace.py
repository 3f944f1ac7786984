"""Laplace mixtures: densities, medians, scales, and a log-likelihood that never falls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import laplace

from ilk.families.base import KEEP_ALL
from ilk.families.laplace import LAPLACE_STRUCTURES, Laplace
from ilk.fitting.restarts import from_labels
from tests.families.test_gaussian import (
    clusters,
    family_for,
    one_thread,
    rows_of,
    run_from,
    with_holes,
)

__all__ = ["one_thread"]  # a fixture that every test here uses
every_structure = pytest.mark.parametrize("name", LAPLACE_STRUCTURES)


@every_structure
@pytest.mark.parametrize("share", [0.0, 0.25])
def test_scores_are_those_of_scipy(name, share):
    X, label = clusters(1)
    rows = rows_of(with_holes(X, share) if share else X)
    family = family_for(rows, name, kind=Laplace)
    params = run_from(rows, family, label, max_passes=3).params
    block = rows.take(np.arange(rows.n_rows))
    cells = laplace.logpdf(block.numbers[:, None, :], params.mean, np.exp(params.log_scale))
    assert np.allclose(
        family.scores(params, block), np.nansum(cells, axis=2) + np.log(params.mixing), rtol=1e-12
    )


@every_structure
def test_one_update_is_weighted_medians_and_spreads_about_them(name):
    X, label = clusters(2, n=61)
    X = with_holes(X, 0.2)
    rows = rows_of(X)
    family = family_for(rows, name, kind=Laplace)
    old = params = from_labels(rows, family, label, 2)
    block = rows.take(np.arange(61))
    scores = family.scores(old, block)
    r = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    r[~np.isfinite(block.numbers).any(axis=1)] = 0
    for _ in range(family.n_phases):
        params = family.update(params, family.step(params, block, KEEP_ALL).sums)
    spread = np.zeros((2, 3))
    for k in range(2):
        for j, column in enumerate(block.numbers.T):
            values, weight = column[~np.isnan(column)], r[~np.isnan(column), k]
            order = np.argsort(values)
            reached = np.cumsum(weight[order]) >= 0.5 * weight.sum()
            assert params.mean[k, j] == values[order][np.argmax(reached)]
            spread[k, j] = weight @ np.abs(values - params.mean[k, j])
    count = r.T @ ~np.isnan(block.numbers)
    if name == "VVI":
        assert np.allclose(np.exp(params.log_scale), spread / count, rtol=1e-12)
    if name == "EEI":
        assert np.allclose(np.exp(params.log_scale), spread.sum(axis=0) / count.sum(axis=0), rtol=1e-12)
    if name == "EII":
        assert np.allclose(np.exp(params.log_scale), spread.sum() / count.sum(), rtol=1e-12)
    # stationary along what the structure leaves free: sum_kj count = sum_kj spread / scale
    assert (spread * np.exp(-params.log_scale)).sum() == pytest.approx(count.sum(), rel=1e-8)


@pytest.mark.parametrize("name", ["VII", "VEI", "EVI", "VVI"])
def test_a_component_on_one_value_is_singular(name):
    X = np.concatenate([np.zeros(12), 50 + np.arange(12.0)])
    rows = rows_of(np.column_stack([X, X]))
    run = run_from(rows, family_for(rows, name, kind=Laplace), np.repeat([0, 1], 12).astype(np.int32))
    assert run.status == "singular"
    assert np.isfinite(run.params.log_scale).all()
    assert np.isfinite(run.cost)


def test_an_outlier_moves_a_median_little():
    draw = np.random.default_rng(0)
    X = draw.laplace(size=(200, 2))
    rows, spoilt = rows_of(X), rows_of(np.vstack([X, [[1e6, 1e6]]]))
    means = [
        r.encoding.undo(
            run_from(r, family_for(r, "VVI", kind=Laplace), np.zeros(r.n_rows, np.int32)).params.mean
        )
        for r in (rows, spoilt)
    ]
    assert np.abs(means[0] - means[1]).max() < 0.1

"""k-means||: an exact weighted draw in one pass, whatever the blocks; centres as good as those of k-means++."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import ilk
from ilk.engines.memory import MemoryRows
from ilk.fitting.fit import fit
from ilk.fitting.parallel import parallel_centres as parallel_centres_of
from ilk.fitting.reservoir import Repeats
from ilk.fitting.restarts import fit_recipe, from_centres
from ilk.methods import K_MEANS
from ilk.table.block import BLOCK_ROWS, Encoding


def blobs(n_rows, k, seed=0):
    draws = np.random.default_rng(seed)
    label = draws.integers(0, k, n_rows)
    return draws.normal(size=(n_rows, 2)) * 0.1 + draws.normal(size=(k, 2))[label] * 10


def rows_of(X, **options):
    return MemoryRows(X, Encoding(1.0, np.zeros(X.shape[1])), **options)


def parallel_centres(rows, k, seed, number):
    return parallel_centres_of(rows, k, Repeats.of(rows, seed), number)


def test_rows_are_drawn_by_weight():
    """Of two places, one of weight 3 and one of weight 1, the first centre is the first three times in four."""
    X = np.array([[0.0], [1.0], [2.0]])
    rows = rows_of(X, weight=np.array([3.0, 1.0, 0.0]))
    first = [parallel_centres(rows, 1, seed, 0)[0, 0] for seed in range(400)]
    assert set(first) <= {0.0, 1.0}
    assert abs(np.mean(np.array(first) == 0.0) - 0.75) < 0.08


def test_a_cluster_too_rare_for_a_sample_is_found():
    X = blobs(3 * BLOCK_ROWS + 5, 4)
    X[-12:] = 500.0 + np.random.default_rng(1).normal(size=(12, 2))
    rows = rows_of(X, threads=2)
    recipe = replace(K_MEANS, init="k-means||", n_starts=1)
    found = fit_recipe(rows, recipe, 5, 0)
    assert 12 in found.size
    again = fit_recipe(rows_of(X, threads=1), recipe, 5, 0)
    assert np.array_equal(found.labels, again.labels)
    assert found.cost == again.cost


def test_as_good_as_k_means_plus_plus():
    rows = rows_of(blobs(20_000, 20, seed=3))
    ours, theirs = (
        np.mean([fit_recipe(rows, replace(K_MEANS, init=init, n_starts=1), 20, s).cost for s in range(4)])
        for init in ("k-means||", "k-means++")
    )
    assert ours <= 1.1 * theirs


def test_blanks_and_few_rows():
    X = blobs(200, 3)
    X[np.random.default_rng(2).random(X.shape) < 0.2] = np.nan
    X[np.isnan(X).all(axis=1)] = 0.0
    centres = parallel_centres(rows_of(X, complete=False), 3, 0, 0)
    assert np.isfinite(centres).all()
    rows = rows_of(np.zeros((5, 2)))
    found = fit(rows, K_MEANS.family, [from_centres(rows, K_MEANS.family, parallel_centres(rows, 2, 0, 0))])
    assert len(found.size) == 1


def test_the_estimator_takes_it_by_name():
    model = ilk.KMeans(n_clusters=3, init="k-means||", n_init=2, random_state=0).fit(blobs(500, 3))
    assert model.n_iter_ >= 1

"""DP-means as a user sees it: closed forms, stored figures, brute force, both algorithms, weights, order, gaps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ilk
from ilk.errors import IlkWarning, UsageError
from tests.conftest import golden, numeric_table
from tests.contracts.test_family import tables
from tests.oracles.dp_means import cost_of, least_cost, walk

MODES = ("batched", "sequential")
each_mode = pytest.mark.parametrize("mode", MODES)


@pytest.fixture(scope="module")
def blobs() -> np.ndarray:
    """Twelve groups of 50 in four columns, at corners of a cube with sides of 20."""
    corners = 20.0 * ((np.arange(12)[:, None] >> np.arange(4)) & 1)
    return np.repeat(corners, 50, axis=0) + np.random.default_rng(0).normal(size=(600, 4))


@each_mode
def test_stored_figures_of_iris(mode):
    figures = golden("seed_claims")["dp_means_objective"]["iris"]
    X, species = numeric_table("iris")
    farthest = figures["largest_squared_distance_to_mean"]
    one = ilk.DPMeans(farthest * (1 + 1e-9), mode=mode).fit(X)
    assert one.n_clusters_ == 1
    assert one.inertia_ == pytest.approx(figures["K1"])
    assert ilk.DPMeans(farthest * (1 - 1e-6), mode=mode).fit(X).n_clusters_ > 1
    assert ilk.DPMeans(0, mode=mode).fit(X).n_clusters_ == figures["distinct_rows"]
    by_species = cost_of(X, np.unique(species, return_inverse=True)[1], 10.0)
    assert by_species == pytest.approx(figures["lambda_10_by_target"])
    assert ilk.DPMeans(10.0, mode=mode).fit(X).cost_ <= by_species


@each_mode
@settings(max_examples=60, deadline=None)
@given(X=tables(least=2), open_cost=st.sampled_from([0.0, 0.1, 1.0, 10.0, 1e3]))
def test_the_cost_is_what_the_labels_cost(mode, X, open_cost):
    model = ilk.DPMeans(open_cost, mode=mode, threads=1).fit(X)
    assert model.cost_ == pytest.approx(cost_of(X, model.labels_, open_cost), rel=1e-9, abs=1e-9)
    assert model.cost_ == pytest.approx(model.inertia_ + open_cost * model.n_clusters_, rel=1e-12)
    assert model.n_clusters_ == len(model.cluster_centers_) == len(set(model.labels_.tolist()))
    trace = np.array([record.cost for record in model.fit_.trace])
    assert (np.diff(trace) <= 1e-12 * trace[:-1] + 1e-30).all()
    assert model.converged_


@each_mode
@pytest.mark.parametrize("seed", range(5))
def test_never_below_the_best_of_all_partitions(mode, seed):
    X = np.random.default_rng(seed).normal(size=(6, 2))
    for open_cost in (0.2, 1.0, 3.0):
        least = least_cost(X, open_cost)
        found = ilk.DPMeans(open_cost, mode=mode).fit(X).cost_
        assert least * (1 - 1e-12) <= found <= 1.6 * least  # the worst of these is 1.55 times the best


@each_mode
def test_it_ends_where_published(mode, blobs):
    """Every row within the open cost of its centre, every centre the mean of its rows."""
    model = ilk.DPMeans(30.0, mode=mode).fit(blobs)
    squared = ((blobs - model.cluster_centers_[model.labels_]) ** 2).sum(axis=1)
    assert squared.max() <= 30.0
    for k in range(model.n_clusters_):
        assert model.cluster_centers_[k] == pytest.approx(blobs[model.labels_ == k].mean(axis=0))


@pytest.mark.parametrize("open_cost", [2.0, 30.0, 300.0])
def test_sequential_is_the_published_walk(blobs, open_cost):
    X = blobs[::5]
    expected = walk(X, open_cost)
    found = ilk.DPMeans(open_cost, mode="sequential").fit(X)
    assert found.n_clusters_ == expected.max() + 1
    assert ilk.measures.ari(found.labels_, expected) == 1.0
    assert found.cost_ == pytest.approx(cost_of(X, expected, open_cost))


def test_batched_ends_about_as_low_as_sequential():
    """Over tables and open costs the mean of the ratios of their costs is at most 1.02 (measured: below 1)."""
    draws = np.random.default_rng(1)
    ratios = []
    for _ in range(5):
        centres = draws.normal(size=(8, 3)) * 5
        X = centres[draws.integers(0, 8, 300)] + draws.normal(size=(300, 3))
        for open_cost in (5.0, 20.0, 80.0):
            batched, sequential = (ilk.DPMeans(open_cost, mode=m).fit(X).cost_ for m in MODES)
            ratios.append(batched / sequential)
    assert np.mean(ratios) <= 1.02
    assert max(ratios) <= 1.25


def test_k_falls_as_a_group_costs_more(blobs):
    found = [ilk.DPMeans(c).fit(blobs).n_clusters_ for c in (0.5, 5.0, 150.0, 600.0, 3000.0)]
    assert found == sorted(found, reverse=True)
    assert found[2] == 12
    assert found[-1] == 1


@pytest.mark.parametrize("k", [2, 5, 12])
def test_a_wished_k_is_about_what_comes(blobs, k):
    model = ilk.DPMeans(target_clusters=k).fit(blobs)
    assert abs(model.n_clusters_ - k) <= 1
    assert model.open_cost_ == ilk.suggest_open_cost(blobs, k)
    again = ilk.DPMeans(model.open_cost_).fit(blobs)
    assert np.array_equal(again.cluster_centers_, model.cluster_centers_)


def test_a_wish_beyond_the_distinct_rows():
    X = np.repeat([[0.0, 1.0], [2.0, 3.0], [5.0, 5.0]], 4, axis=0)
    assert ilk.DPMeans(target_clusters=10).fit(X).n_clusters_ == 3


def test_whole_weights_are_repeated_rows(blobs):
    X = blobs.copy()
    X[np.random.default_rng(2).random(X.shape) < 0.05] = np.nan
    times = np.random.default_rng(1).integers(0, 4, size=len(X))
    for table in (blobs, X):
        weighted = ilk.DPMeans(40.0).fit(table, sample_weight=times)
        repeated = ilk.DPMeans(40.0).fit(np.repeat(table, times, axis=0))
        assert np.array_equal(weighted.cluster_centers_, repeated.cluster_centers_)
        assert np.array_equal(np.repeat(weighted.labels_, times), repeated.labels_)
        assert weighted.cost_ == repeated.cost_


def test_shuffled_rows_and_any_unit_change_nothing(blobs):
    order = np.random.default_rng(3).permutation(len(blobs))
    one = ilk.DPMeans(30.0).fit(blobs)
    shuffled = ilk.DPMeans(30.0).fit(blobs[order])
    assert one.cluster_centers_.shape == shuffled.cluster_centers_.shape
    assert ilk.measures.ari(one.labels_[order], shuffled.labels_) == 1.0
    assert one.cost_ == shuffled.cost_
    larger = ilk.DPMeans(30.0 * 2.0**80).fit(blobs * 2.0**40 + 2.0**60)
    assert np.array_equal(larger.labels_, one.labels_)


def test_given_centres_are_where_it_begins(blobs):
    start = blobs[::50]
    model = ilk.DPMeans(1e4, init=start).fit(blobs)
    assert model.n_clusters_ == 12  # none is opened, and none is given up while it has rows
    assert ilk.measures.ari(model.labels_, np.repeat(np.arange(12), 50)) == 1.0


def test_missing_cells_need_no_imputer(blobs):
    X = blobs.copy()
    X[np.random.default_rng(4).random(X.shape) < 0.05] = np.nan
    model = ilk.DPMeans(150.0, threads=1).fit(X)
    complete = ~np.isnan(X).any(
        axis=1
    )  # a row without the cell that tells two corners apart may go to either
    assert ilk.measures.ari(model.labels_[complete], np.repeat(np.arange(12), 50)[complete]) > 0.95
    trace = [record.cost for record in model.fit_.trace]
    assert trace == sorted(trace, reverse=True)


def test_a_large_table_begins_on_a_sample_and_one_group_stays_one():
    draws = np.random.default_rng(5)
    grid = 30.0 * np.array([[i, j] for i in range(5) for j in range(4)])
    X = np.repeat(grid, 4000, axis=0) + draws.normal(size=(80_000, 2))
    model = ilk.DPMeans(150.0, random_state=0).fit(X)
    assert ilk.measures.ari(model.labels_, np.repeat(np.arange(20), 4000)) > 0.99
    assert model.n_iter_ < 30
    farthest = ((X - X.mean(axis=0)) ** 2).sum(axis=1).max()
    assert ilk.DPMeans(farthest * (1 + 1e-9), random_state=0).fit(X).n_clusters_ == 1


def test_standardised_columns_have_no_unit(blobs):
    X = blobs * [1.0, 1e6, 1e-3, 5.0]
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    model, by_hand = ilk.DPMeans(1.0, scale="standard").fit(X), ilk.DPMeans(1.0).fit(z)
    assert np.array_equal(model.labels_, by_hand.labels_)
    assert model.cost_ == pytest.approx(by_hand.cost_)
    assert ilk.suggest_open_cost(X, 5, scale="standard") == pytest.approx(ilk.suggest_open_cost(z, 5))


@pytest.mark.badinput("B11")
@pytest.mark.parametrize(
    "options",
    [
        {"open_cost": -1.0},
        {"open_cost": np.nan},
        {"open_cost": np.inf},
        {"open_cost": "dear"},
        {"target_clusters": 0},
        {"mode": "parallel"},
        {"init": "k-means++"},
        {"init": [[np.nan, 0, 0, 0]]},
        {"init": [1.0, 2.0]},
        {"max_iter": -1},
        {"tol": -0.1},
    ],
)
def test_options_that_cannot_be(blobs, options):
    with pytest.raises(UsageError):
        ilk.DPMeans(**options).fit(blobs)


@each_mode
def test_a_limit_of_passes_is_told(blobs, mode):
    with pytest.warns(IlkWarning, match="did not converge"):
        model = ilk.DPMeans(30.0, mode=mode, max_iter=2).fit(blobs)
    assert model.n_iter_ == 2
    assert not model.converged_

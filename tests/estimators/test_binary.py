"""BinaryDPMeans as a user sees it: two clean groups, noise, K against open cost, weights, gaps, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ilk
from ilk.errors import DataError, UsageError
from ilk.fitting.binary import default_open_cost
from tests.conftest import numeric_table
from tests.families.test_bernoulli import binary_tables
from tests.oracles.partitions import all_partitions

TRUTH = np.repeat([0, 1], 100)


def two_groups(seed: int, chance: float = 0.1) -> np.ndarray:
    """200 x 20, ones with this chance in the first half of the rows and with the opposite in the second."""
    ones = np.where(TRUTH[:, None] == 0, chance, 1 - chance)
    return (np.random.default_rng(seed).random((200, 20)) < ones).astype(float)


@pytest.mark.parametrize("seed", range(3))
def test_two_clean_groups_over_a_wide_range_of_open_costs(seed):
    X = two_groups(seed)
    for open_cost in (60, 100, 300, 1000, 1300, None):
        model = ilk.BinaryDPMeans(open_cost).fit(X)
        assert model.n_clusters_ == 2
        assert ilk.measures.ari(model.labels_, TRUTH) == 1.0
    assert ilk.BinaryDPMeans(1600).fit(X).n_clusters_ == 1


@pytest.mark.parametrize("seed", range(3))
def test_two_blurred_groups(seed):
    X = two_groups(seed, chance=0.2)
    for open_cost in (80, 300, 600, None):
        model = ilk.BinaryDPMeans(open_cost).fit(X)
        assert model.n_clusters_ == 2
        assert ilk.measures.ari(model.labels_, TRUTH) > 0.95
    assert ilk.BinaryDPMeans(1000).fit(X).n_clusters_ == 1


def test_k_falls_as_a_group_costs_more():
    X = two_groups(0)
    found = [ilk.BinaryDPMeans(c).fit(X) for c in (5, 10, 20, 40, 60, 1300, 1600)]
    k = [model.n_clusters_ for model in found]
    assert k == sorted(k, reverse=True)
    assert k[0] > 10
    without = np.array([model.cost_ - model.open_cost_ * model.n_clusters_ for model in found])
    assert (np.diff(without) >= -1e-9).all()


@pytest.mark.parametrize("n_columns", [10, 50, 200])
def test_noise_is_one_group(n_columns):
    for seed in range(4):
        draws = np.random.default_rng(seed)
        X = (draws.random((200, n_columns)) < draws.random(n_columns)).astype(float)
        assert ilk.BinaryDPMeans().fit(X).n_clusters_ == 1


def test_the_default_is_above_what_noise_gains():
    """Two hard groups of fair coins gain about (sqrt N + sqrt D)^2 / pi by their own labels."""
    for n_rows, n_columns in [(50, 10), (200, 20), (100, 100), (40, 400), (10_000, 5)]:
        assert default_open_cost(n_rows, n_columns) > (n_rows**0.5 + n_columns**0.5) ** 2 / np.pi


def test_disjoint_subspaces():
    X, target = numeric_table("craft_binary_disjoint")
    model = ilk.BinaryDPMeans().fit(X)
    assert model.n_clusters_ == 3
    assert ilk.measures.ari(model.labels_, target) == 1.0


def total_cost(X: np.ndarray, label: np.ndarray, open_cost: float, smoothing: float) -> float:
    """The cost from its definition, from labels alone."""
    edge = 1 / (2 * len(X))
    pooled = np.clip(X.mean(axis=0), edge, 1 - edge)
    total = 0.0
    for group in np.unique(label):
        rows = X[label == group]
        mean = (rows.sum(axis=0) + smoothing * pooled) / (len(rows) + smoothing)
        total -= (rows * np.log(mean) + (1 - rows) * np.log(1 - mean)).sum()
        total += (
            smoothing
            * (pooled * np.log(pooled / mean) + (1 - pooled) * np.log((1 - pooled) / (1 - mean))).sum()
        )
    return float(total) + open_cost * len(np.unique(label))


@pytest.mark.parametrize("seed", range(4))
def test_never_below_the_best_of_all_partitions_and_often_there(seed):
    X = (np.random.default_rng(seed).random((6, 5)) < 0.5).astype(float)
    for open_cost in (0.5, 2.0, 8.0):
        least = min(total_cost(X, label, open_cost, 1.0) for label in all_partitions(6, 6))
        model = ilk.BinaryDPMeans(open_cost).fit(X)
        assert model.cost_ == pytest.approx(total_cost(X, model.labels_, open_cost, 1.0))
        assert least - 1e-9 <= model.cost_ <= least * 1.05


@settings(max_examples=25, deadline=None)
@given(X=binary_tables(), open_cost=st.sampled_from([0.2, 1.0, 5.0]))
def test_cost_never_rises_with_gaps_constant_columns_and_empty_rows(X, open_cost):
    model = ilk.BinaryDPMeans(open_cost, threads=1).fit(X)
    trace = np.array([record.cost for record in model.fit_.trace])
    assert (np.diff(trace) <= 1e-9 * np.abs(trace[:-1])).all()
    assert model.cost_ <= trace[-1] + 1e-9 * abs(trace[-1])
    entropy = model.transform(X)
    assert np.isfinite(entropy).all()
    # A row without a cell is equally near to all groups, so a label may differ, but not what it costs.
    everyone = np.arange(len(X))
    assert np.allclose(entropy[everyone, model.predict(X)], entropy[everyone, model.labels_])


@settings(max_examples=15, deadline=None)
@given(X=binary_tables(missing=False), data=st.data())
def test_weights_are_repeats_and_order_does_not_matter(X, data):
    times = np.array(data.draw(st.lists(st.integers(1, 3), min_size=len(X), max_size=len(X))))
    weighted = ilk.BinaryDPMeans(2.0, threads=1).fit(X, sample_weight=times)
    repeated = ilk.BinaryDPMeans(2.0, threads=1).fit(np.repeat(X, times, axis=0))
    backwards = ilk.BinaryDPMeans(2.0, threads=1).fit(X[::-1], sample_weight=times[::-1])
    assert weighted.cost_ == pytest.approx(repeated.cost_)
    assert weighted.cost_ == pytest.approx(backwards.cost_)
    assert weighted.n_clusters_ == repeated.n_clusters_ == backwards.n_clusters_


def test_missing_cells_and_rows_of_no_weight():
    X = two_groups(4)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    model = ilk.BinaryDPMeans().fit(X)
    assert model.n_clusters_ == 2
    assert ilk.measures.ari(model.labels_, TRUTH) > 0.97
    only_first = ilk.BinaryDPMeans().fit(X, sample_weight=(TRUTH == 0).astype(float))
    assert only_first.n_clusters_ == 1
    assert len(only_first.labels_) == 200


def test_thresholds():
    X = two_groups(0)
    drawn = X + np.random.default_rng(1).uniform(-0.4, 0.4, X.shape)
    assert np.array_equal(
        ilk.BinaryDPMeans(binarize=0.5).fit(drawn).labels_, ilk.BinaryDPMeans().fit(X).labels_
    )


@pytest.mark.badinput("B11")
@pytest.mark.parametrize(
    "options",
    [{"open_cost": -1}, {"open_cost": np.nan}, {"smoothing": 0}, {"smoothing": -1}, {"binarize": "x"}],
)
def test_options_that_cannot_be(options):
    with pytest.raises(UsageError):
        ilk.BinaryDPMeans(**options).fit(two_groups(0))


@pytest.mark.badinput("A2")
def test_other_values_are_refused_with_their_place():
    X = two_groups(0)
    X[7, 3] = 2.0
    with pytest.raises(DataError, match=r"1 cells are neither 0 nor 1.*columns 3; first row 7") as caught:
        ilk.BinaryDPMeans().fit(X)
    assert caught.value.code == "not-binary"

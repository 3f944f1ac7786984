"""Modes: Gaussian blurring mean shift agrees with mean shift where groups are apart, and ends when it should."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.cluster

import ilk
from ilk.errors import DataError
from ilk.paradigms.blurring import blur


def groups(k: int = 4, n_columns: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(seed)
    truth = np.repeat(np.arange(k), 30)
    centres = 10.0 * np.column_stack([np.arange(k) % 2, np.arange(k) // 2] + [np.arange(k)] * (n_columns - 2))
    return centres[truth] + draws.normal(size=(len(truth), n_columns)), truth


@pytest.mark.parametrize("n_columns", [2, 3])
def test_blurring_ends_at_the_modes_of_mean_shift(n_columns):
    X, truth = groups(n_columns=n_columns)
    sharp, blurred = ilk.MeanShift(bandwidth=3.0).fit(X), ilk.BlurringMeanShift(bandwidth=1.5).fit(X)
    assert blurred.n_clusters_ == sharp.n_clusters_ == 4
    np.testing.assert_array_equal(blurred.labels_, sharp.labels_)
    np.testing.assert_array_equal(blurred.labels_, truth)
    np.testing.assert_allclose(blurred.cluster_centers_, sharp.cluster_centers_, atol=0.5)
    assert blurred.converged_
    assert blurred.n_iter_ < 30


def test_mean_shift_is_that_of_scikit_learn():
    X, _ = groups()
    theirs, ours = sklearn.cluster.MeanShift().fit(X), ilk.MeanShift().fit(X)
    assert ours.bandwidth_ == pytest.approx(sklearn.cluster.estimate_bandwidth(X))
    order = np.lexsort(theirs.cluster_centers_.T)
    own = np.lexsort(ours.cluster_centers_.T)
    np.testing.assert_allclose(ours.cluster_centers_[own], theirs.cluster_centers_[order])
    np.testing.assert_array_equal(ours.predict(X), ours.labels_)


def test_two_rows_shrink_towards_each_other_as_the_formula_says():
    """Two rows 2 apart: each keeps 1 / (1 + exp(-2)) of itself, for a kernel of width 1."""
    moved = blur(np.array([[-1.0], [1.0]]), 1.0, max_passes=1).points
    keep = 1 / (1 + np.exp(-2.0))
    np.testing.assert_allclose(moved[:, 0], [-(2 * keep - 1), 2 * keep - 1])


def test_a_wide_kernel_makes_one_group_and_a_narrow_one_all_rows():
    X, _ = groups()
    assert ilk.BlurringMeanShift(bandwidth=50.0).fit(X).n_clusters_ == 1
    assert ilk.BlurringMeanShift(bandwidth=1e-6).fit(X).n_clusters_ == len(X)


@pytest.mark.parametrize("model", [ilk.MeanShift(), ilk.BlurringMeanShift()])
def test_units_and_offsets_do_not_matter(model):
    X, _ = groups()
    labels = model.fit(X).labels_
    np.testing.assert_array_equal(model.fit(X * 1e-6 + 1e3).labels_, labels)
    np.testing.assert_array_equal(model.fit(X * 1e200).labels_, labels)


def test_blanks_are_refused():
    with pytest.raises(DataError, match="without missing values"):
        ilk.MeanShift().fit([[1.0], [np.nan], [2.0]])

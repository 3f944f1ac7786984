"""Claims of the clustering notes that no test of a module shows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import ilk
from ilk.families.covariance import Covariance, Structure
from ilk.families.gaussian import Gaussian, Mixture
from ilk.fitting.loop import NOTHING_CHANGED
from ilk.table.block import Block, Encoding


def rows(seed: int = 0) -> np.ndarray:
    draws = np.random.default_rng(seed)
    return np.vstack([draws.normal(c, 1.2, (40, 2)) for c in (0.0, 3.0, 6.0)])


def test_the_error_falls_until_labels_and_means_stay():
    X = rows()
    fit = ilk.KMeans(3, init=X[:3]).fit(X).fit_
    error = [record.cost for record in fit.trace]
    assert all(after < before for before, after in pairwise(error))
    assert len(error) > 3
    assert fit.reason == NOTHING_CHANGED


def test_means_are_those_of_their_labels_and_labels_of_the_nearest_mean():
    X = rows()
    model = ilk.KMeans(3, random_state=0).fit(X)
    for k, centre in enumerate(model.cluster_centers_):
        assert centre == pytest.approx(X[model.labels_ == k].mean(axis=0))
    distance = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    assert np.array_equal(distance.argmin(axis=1), model.labels_)
    assert model.inertia_ == pytest.approx(distance.min(axis=1).sum())


def test_ties_go_to_the_lowest_number():
    model = ilk.KMeans(2, init=np.array([[0.0], [2.0]]), max_iter=0)
    with pytest.warns(ilk.errors.IlkWarning):
        model.fit([[0.0], [2.0], [1.0], [1.0]])
    assert model.predict([[1.0]])[0] == 0


@pytest.mark.parametrize(
    ("mixing", "log_variance", "same"),
    [
        ([0.5, 0.5], [[0.0, 0.0], [0.0, 0.0]], True),
        ([0.9, 0.1], [[0.0, 0.0], [0.0, 0.0]], False),
        ([0.5, 0.5], [[0.0, 0.0], [2.0, 2.0]], False),
        ([0.5, 0.5], [[0.0, 3.0], [0.0, 3.0]], False),
    ],
)
def test_nearest_is_likeliest_only_for_equal_shares_and_one_round_covariance(mixing, log_variance, same):
    """The notes drop priors and covariances; a different share, size or shape moves the border."""
    X = np.random.default_rng(0).uniform(-4, 4, (2000, 2))
    mean = np.array([[-1.0, -1.0], [1.0, 1.0]])
    family = Gaussian(Structure("VVI"), X.var(axis=0))
    params = Mixture(np.array(mixing), mean, Covariance(np.array(log_variance), None))
    likeliest = family.assign(params, Block(X, Encoding(1.0, np.zeros(2))))[0]
    nearest = ((X[:, None] - mean) ** 2).sum(axis=2).argmin(axis=1)
    assert np.array_equal(likeliest, nearest) == same

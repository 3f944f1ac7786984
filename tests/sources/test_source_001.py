"""Claims of the slides on evaluation and EM that no test of a module shows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import ilk
from ilk.families.base import KEEP_ALL
from ilk.families.covariance import Covariance, Structure
from ilk.families.gaussian import Gaussian, Mixture
from ilk.table.block import Block, Encoding
from tests.conftest import golden


def overlapping(n: int = 200, seed: int = 0) -> np.ndarray:
    draws = np.random.default_rng(seed)
    return np.vstack([draws.normal(0, 1, (n // 2, 2)), draws.normal(2.5, 1.5, (n - n // 2, 2))])


def test_one_component_is_the_mean_and_the_variance_over_n():
    X = np.random.default_rng(0).normal(3, 2, (50, 1))
    model = ilk.GaussianMixture(1).fit(X)
    assert model.means_[0] == pytest.approx(X.mean(axis=0))
    assert model.covariances_[0, 0, 0] == pytest.approx(X.var(ddof=0))
    n, variance = len(X), X.var()
    printed = (
        -((X - X.mean()) ** 2).sum() / (2 * variance) - n / 2 * np.log(variance) - n / 2 * np.log(2 * np.pi)
    )
    assert model.loglik_ == pytest.approx(printed)


def test_logs_where_the_product_underflows():
    X = np.random.default_rng(0).normal(size=(2000, 1))
    model = ilk.GaussianMixture(1).fit(X)
    densities = np.exp(model.score_samples(X))
    assert np.prod(densities) == 0.0
    assert model.loglik_ == pytest.approx(norm(X.mean(), X.std()).logpdf(X).sum())


def test_memberships_are_bayes_rule_and_add_up_to_one():
    X = overlapping()
    model = ilk.GaussianMixture(2, random_state=0).fit(X)
    joint = np.column_stack(
        [w * multivariate_normal(m, c).pdf(X) for w, m, c in zip(
            model.weights_, model.means_, model.covariances_, strict=True)]
    )  # fmt: skip
    assert model.predict_proba(X) == pytest.approx(joint / joint.sum(axis=1, keepdims=True))
    assert model.score_samples(X) == pytest.approx(np.log(joint.sum(axis=1)))
    far = model.predict_proba([[1e6, -1e6], [-1e9, 1e9]])
    assert far.sum(axis=1) == pytest.approx([1, 1])
    assert ((far >= 0) & (far <= 1)).all()


def test_the_gradient_of_the_log_likelihood_in_a_mean():
    """+ sum gamma covariance^-1 (x - mean): the slides have the other sign and the covariance itself."""
    figures = golden("seed_claims")["gradient_in_mu"]
    X, means, weights = (np.array(figures[name]) for name in ("X", "means", "weights"))
    covariances = np.array(figures["covariances"])

    def densities(means: np.ndarray) -> np.ndarray:
        parts = zip(weights, means, covariances, strict=True)
        return np.column_stack([w * multivariate_normal(m, c).pdf(X) for w, m, c in parts])

    gamma = densities(means) / densities(means).sum(axis=1, keepdims=True)
    for k in range(2):
        right = gamma[:, k] @ (X - means[k]) @ np.linalg.inv(covariances[k])
        printed = -gamma[:, k] @ (X - means[k]) @ covariances[k]
        step = 1e-6 * np.eye(2)
        numeric = [
            (np.log(densities(moved(means, k, s)).sum(axis=1)).sum()
             - np.log(densities(moved(means, k, -s)).sum(axis=1)).sum()) / 2e-6
            for s in step
        ]  # fmt: skip
        assert right == pytest.approx(numeric, abs=1e-6)
        assert right == pytest.approx(figures["finite_difference"][k], abs=1e-6)
        assert printed == pytest.approx(figures["seed_minus_sum_gamma_Sigma_x_minus_mu"][k])
        assert np.abs(printed - right).max() > 0.03


def moved(means: np.ndarray, k: int, step: np.ndarray) -> np.ndarray:
    means = means.copy()
    means[k] += step
    return means


def test_a_fit_ends_where_the_gradient_is_zero():
    X = overlapping()
    model = ilk.GaussianMixture(2, tol=1e-13, max_iter=5000, random_state=0).fit(X)
    gamma = model.predict_proba(X)
    for k in range(2):
        gradient = gamma[:, k] @ (X - model.means_[k]) @ np.linalg.inv(model.covariances_[k])
        assert np.abs(gradient).max() < 1e-3
        about = (gamma[:, k, None] * (X - model.means_[k])).T @ (X - model.means_[k]) / gamma[:, k].sum()
        assert model.covariances_[k] == pytest.approx(about, abs=1e-5)
    assert model.weights_ == pytest.approx(gamma.mean(axis=0), abs=1e-6)


def test_em_may_rest_where_there_is_no_maximum():
    """Equal components stay equal: a stationary point that every other start beats."""
    X = np.concatenate([np.random.default_rng(0).normal(c, 1, 50) for c in (0, 8)])[:, None]
    block = Block(X, Encoding(1.0, np.zeros(1)))
    family = Gaussian(Structure("V"), X.var(axis=0))
    spread = Covariance(np.full((2, 1), np.log(X.var())), None)
    rest = Mixture(np.array([0.5, 0.5]), np.full((2, 1), X.mean()), spread)
    step = family.step(rest, block, KEEP_ALL)
    after = family.update(rest, step.sums)
    assert after.mean == pytest.approx(rest.mean)
    assert after.covariance.log_variance == pytest.approx(rest.covariance.log_variance)
    resting = np.logaddexp.reduce(family.scores(rest, block), axis=1).sum()
    assert ilk.GaussianMixture(2, random_state=0).fit(X).loglik_ > resting + 50


def test_likelihood_is_not_how_peaked_the_memberships_are():
    """Narrower components give surer memberships and a lower likelihood: EM maximises the latter."""
    X = overlapping()
    model = ilk.GaussianMixture(2, random_state=0).fit(X)

    def told(shrink: float) -> tuple[float, float]:
        joint = np.column_stack(
            [w * multivariate_normal(m, shrink * c).pdf(X) for w, m, c in zip(
                model.weights_, model.means_, model.covariances_, strict=True)]
        )  # fmt: skip
        return np.log(joint.sum(axis=1)).sum(), (joint.max(axis=1) / joint.sum(axis=1)).mean()

    (fitted, sure), (narrow, surer) = told(1.0), told(0.3)
    assert surer > sure
    assert narrow < fitted


def test_a_start_from_labels_is_their_means_covariances_and_fractions():
    X = overlapping()
    label = ilk.KMeans(2, random_state=0).fit(X).labels_
    with pytest.warns(ilk.errors.IlkWarning):
        start = ilk.GaussianMixture(2, init=label, max_iter=0).fit(X)
    for k in range(2):
        mine = X[label == k]
        assert start.weights_[k] == pytest.approx(len(mine) / len(X))
        assert start.means_[k] == pytest.approx(mine.mean(axis=0))
        assert start.covariances_[k] == pytest.approx(np.cov(mine.T, bias=True))


def test_em_takes_more_passes_than_k_means():
    X = overlapping()
    label = ilk.KMeans(2, random_state=0).fit(X).labels_
    k_means = ilk.KMeans(2, init=label).fit(X)
    mixture = ilk.GaussianMixture(2, init=label).fit(X)
    assert mixture.n_iter_ > 3 * k_means.n_iter_


def test_a_mean_of_squares_is_not_a_sum():
    """The slides' SSE divides by N: ilk's sse is that mean, within_sum_of_squares the sum."""
    X, label = np.array([[0.0], [2.0], [10.0], [16.0]]), [0, 0, 1, 1]
    assert ilk.measures.sse(X, label) == pytest.approx([1.0, 9.0])
    assert ilk.measures.within_sum_of_squares(X, label) == pytest.approx(2 + 18)


def test_the_two_cohesions_point_in_opposite_directions():
    X, label = np.array([[0.0], [2.0], [10.0], [16.0]]), [0, 0, 1, 1]
    by_pairs, by_centres = ilk.measures.cohesion(X, label), ilk.measures.cohesion_centres(X, label)
    assert by_pairs[0] > by_pairs[1]
    assert by_centres[0] < by_centres[1]
    assert by_centres == pytest.approx([2.0, 6.0])
    assert ilk.measures.cohesion([[1.0], [5.0], [6.0]], [0, 1, 1])[0] == np.inf

"""Bootstrap standard errors: mclust's on a stored table, those of the information matrix that poLCA prints, and the
closed form where groups are far apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ilk
from tests.conftest import golden, table_path

N_RESAMPLES = 400


def within_sampling_error(found, known, n_known, n_found=N_RESAMPLES):
    """A standard error from n resamples has itself one of about 1 / sqrt(2 n) of it."""
    error = np.sqrt(1 / (2 * n_found) + (0 if n_known is None else 1 / (2 * n_known)))
    np.testing.assert_allclose(found, known, rtol=4 * error)


@pytest.mark.parametrize("kind", ["nonparametric", "weighted-likelihood"])
def test_mclusts_bootstrap(kind):
    stored = golden("mclust_bootstrap")
    (entry,) = stored["sets"]
    table = pd.read_csv(table_path(entry["table"])).drop(columns="target")
    model = ilk.GaussianMixture(entry["G"], structure=entry["model"], random_state=0).fit(table)
    assert model.loglik_ == pytest.approx(entry["loglik"], abs=0.01)  # its tolerance
    order = [int(np.abs(model.weights_ - share).argmin()) for share in entry["pro"]]
    found = ilk.standard_errors(model, table, n_resamples=N_RESAMPLES, kind=kind, random_state=0)
    known = entry[kind.replace("-", "_")]
    assert found.n_lost == 0
    for name, figures in (("weights", known["pro"]), ("means", known["mean"])):
        within_sampling_error(found[name].standard_error[order], figures, stored["resamples"])
    spread = found["covariances"].standard_error[order][:, [0, 1], [0, 1]]
    within_sampling_error(spread, known["variance"], stored["resamples"])
    assert (found["means"].lower < model.means_).all()
    assert (found["means"].upper > model.means_).all()


def information_errors(codes, weights, shares):
    """Standard errors of class shares and of the shares of the second of two levels (classes, items), by the empirical
    information matrix: the outer product of the rows' scores in logits, then the delta method (Bandeen-Roche et al.
    1997), which is how poLCA 1.6 makes its own."""
    n_classes, n_items = shares.shape
    density = weights * np.prod(np.where(codes[:, None, :] == 1, shares, 1 - shares), axis=2)
    posterior = density / density.sum(axis=1, keepdims=True)
    of_items = posterior[:, :, None] * (codes[:, None, :] - shares)
    of_classes = (posterior - weights)[:, 1:]  # logits of the classes against the first
    scores = np.column_stack([of_classes, of_items.reshape(len(codes), -1)])
    covariance = np.linalg.inv(scores.T @ scores)
    slopes = (np.diag(weights) - np.outer(weights, weights))[:, 1:]
    of_weights = np.sqrt(np.diag(slopes @ covariance[: n_classes - 1, : n_classes - 1] @ slopes.T))
    logits = np.sqrt(np.diag(covariance)[n_classes - 1 :]).reshape(n_classes, n_items)
    return of_weights, logits * shares * (1 - shares)


def test_latent_classes_beside_the_information_matrix():
    draws = np.random.default_rng(5)
    truth = draws.random(1500) < 0.4
    shares = np.where(truth[:, None], [0.85, 0.8, 0.75, 0.9, 0.8, 0.7], [0.2, 0.15, 0.3, 0.25, 0.1, 0.3])
    codes = (draws.random((1500, 6)) < shares).astype(int)
    table = pd.DataFrame({f"item{j}": np.array(["no", "yes"])[codes[:, j]] for j in range(6)})
    model = ilk.MixedMixture(2, random_state=0).fit(table)
    found = ilk.standard_errors(model, table, n_resamples=N_RESAMPLES, random_state=0)
    yes = np.stack([model.shares_[f"item{j}"]["yes"] for j in range(6)], axis=1)
    of_weights, of_shares = information_errors(codes, model.weights_, yes)
    within_sampling_error(found["weights"].standard_error, of_weights, None)
    place = [*model.shares_["item0"]].index("yes")
    mine = np.stack([found[f"shares of item{j}"].standard_error[:, place] for j in range(6)], axis=1)
    np.testing.assert_allclose(
        mine, of_shares, rtol=0.3
    )  # of two estimators, each with its own sampling error
    assert np.abs(np.log(mine / of_shares)).mean() < 0.1


def test_groups_far_apart_have_the_errors_of_means_and_shares():
    draws = np.random.default_rng(6)
    X = np.concatenate([draws.normal(0, 2, 300), draws.normal(100, 5, 200)])[:, None]
    model = ilk.GaussianMixture(2, structure="V", random_state=0).fit(X)
    for kind in ("nonparametric", "weighted-likelihood"):
        found = ilk.standard_errors(model, X, n_resamples=N_RESAMPLES, kind=kind, random_state=1)
        within_sampling_error(found["weights"].standard_error, np.full(2, np.sqrt(0.6 * 0.4 / 500)), None)
        closed = np.sqrt(model.covariances_[:, 0, 0] / [300, 200])
        within_sampling_error(found["means"].standard_error[:, 0], closed, None)


def test_weights_count_rows():
    draws = np.random.default_rng(7)
    X, weight = draws.normal(size=(120, 1)), draws.integers(1, 4, 120)
    model = ilk.GaussianMixture(1, random_state=0).fit(X, sample_weight=weight)
    found = ilk.standard_errors(model, X, n_resamples=N_RESAMPLES, sample_weight=weight, random_state=0)
    closed = np.sqrt(model.covariances_[0, 0, 0] / weight.sum())
    within_sampling_error(found["means"].standard_error[0, 0], closed, None)


def test_what_has_no_standard_errors_is_refused():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ilk.errors.UsageError, match="KMeans has no standard errors"):
        ilk.standard_errors(ilk.KMeans(2).fit(X), X)
    with pytest.raises(ilk.errors.UsageError, match="kind"):
        ilk.standard_errors(ilk.GaussianMixture(1).fit(X), X, kind="jackknife")

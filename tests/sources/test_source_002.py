"""Claims of the STAT 391 lecture that no test of a module shows."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, comb, e, factorial, log2

import numpy as np
import pytest
from scipy.stats import norm, trim_mean
from sklearn.datasets import load_iris

import ilk
from ilk.families.base import KEEP_ALL
from ilk.families.covariance import Covariance, Structure, n_covariance_parameters
from ilk.families.gaussian import Gaussian, Mixture
from ilk.fitting.start import n_log_n
from ilk.table.block import Block, Encoding
from tests.conftest import golden, numeric_table

CLAIMS = golden("seed_claims")


def block_of(X: np.ndarray) -> Block:
    return Block(X, Encoding(1.0, np.zeros(X.shape[1])))


def chance_of_all(k: int, draws: int) -> float:
    """That so many draws hit K equal clusters: inclusion and exclusion over the clusters missed."""
    return sum((-1) ** j * comb(k, j) * ((k - j) / k) ** draws for j in range(k + 1))


def test_three_log_three_is_five():
    assert ceil(3 * log2(3)) == n_log_n(3) == 5
    assert n_log_n(1) == 1


def test_k_rows_hardly_ever_hit_k_clusters():
    """K!/K^K: below 4 % from K = 5 on."""
    stored = CLAIMS["klogk"]["prob_K_draws_hit_all_K_equal_clusters"]
    for k in (3, 5, 7, 10):
        assert chance_of_all(k, k) == pytest.approx(factorial(k) / k**k)
        assert chance_of_all(k, k) == pytest.approx(stored[str(k)])


def test_k_log_k_rows_hit_k_clusters_in_six_to_eight_of_ten():
    """What the lecture calls "with high probability"."""
    stored = CLAIMS["klogk"]["prob_Kprime_draws_hit_all_K_equal_clusters"]
    for k in (3, 5, 7, 10, 20):
        assert chance_of_all(k, n_log_n(k)) == pytest.approx(stored[str(k)])
        assert 0.6 < chance_of_all(k, n_log_n(k)) < 0.8


def test_the_smallest_centre_k_log_k_keeps():
    figures = CLAIMS["klogk"]["threshold_example"]
    assert figures["n"] / (e * n_log_n(figures["K"])) == pytest.approx(figures["n_over_eKprime"])


def test_k_log_k_gives_k_centres_even_where_few_are_large():
    """One heap and three far rows: at most one centre in five reaches n/(e K'), so the largest stay as well."""
    X = np.concatenate([np.linspace(0, 1, 97), [50, 90, 140]])[:, None]
    for seed in range(10):
        model = ilk.KMeans(3, init="k-log-k", n_init=1, random_state=seed, scale="standard").fit(
            np.column_stack([X, X])
        )
        assert len(model.cluster_centers_) == 3
        assert set(model.labels_) == {0, 1, 2}


def test_soft_counts_by_hand():
    """Rows 6 to 12 belong to groups 2 and 3 in parts; the last 0.5 of the lecture must be 0.9."""
    figures = CLAIMS["soft_counts_example"]
    second, third = (np.array(figures[name]) for name in ("gamma2_points6_12", "gamma3_consistent"))
    assert second + third == pytest.approx(np.ones(7))
    assert second[-1] + figures["gamma3_as_written"][-1] != 1
    membership = np.zeros((12, 3))
    membership[:5, 0] = 1
    membership[5:, 1], membership[5:, 2] = second, third
    X = np.arange(12.0)[:, None]
    family = Gaussian(Structure("V"), X.var(axis=0))
    start = family.start(np.zeros((3, 1)))
    after = family.update(start, family.gather(start, block_of(X), membership))
    counts = [5.0, 4.5, 2.5]
    assert membership.sum(axis=0) == pytest.approx(counts)
    assert after.mixing == pytest.approx(np.array(counts) / 12)
    assert after.mixing[1] == pytest.approx(0.375)
    assert after.mean[1, 0] == pytest.approx((second @ np.arange(5, 12)) / 4.5)


def test_an_e_step_can_lower_q_but_not_q_plus_entropy():
    """Six points, first from halves: Q falls from -11.456 to -11.901 while the log-likelihood does not."""
    figures = CLAIMS["E_step_can_lower_Q"]
    X = np.array(figures["x"])[:, None]
    family, block = Gaussian(Structure("V"), X.var(axis=0)), block_of(X)
    hard = np.repeat(np.eye(2), 3, axis=0)
    start = family.start(np.zeros((2, 1)))
    params = family.update(start, family.gather(start, block, hard))
    scores = family.scores(params, block)
    loglik = np.logaddexp.reduce(scores, axis=1)
    soft = np.exp(scores - loglik[:, None])
    q_before, q_after = (hard * scores).sum(), (soft * scores).sum()
    entropy = -(soft * np.log(soft)).sum()
    assert q_before == pytest.approx(figures["Q_after_M_step"])
    assert q_after == pytest.approx(figures["Q_after_E_step"])
    assert q_after < q_before
    assert q_after + entropy == pytest.approx(loglik.sum()) == pytest.approx(figures["loglik"])
    assert q_after + entropy > q_before  # hard memberships have no entropy


def test_the_four_special_covariances():
    """General, shared, round, round and equal: weighted averages that can be written in a line."""
    draws = np.random.default_rng(0)
    X = draws.normal(size=(30, 2)) * [1.0, 2.0]
    membership = draws.dirichlet([1, 1, 1], size=30)
    count = membership.sum(axis=0)
    means = membership.T @ X / count[:, None]
    away = X[:, None, :] - means
    scatter = np.einsum("nk,nki,nkj->kij", membership, away, away)
    squares = (membership * (away**2).sum(axis=2)).sum(axis=0)
    expected = {
        "VVV": scatter / count[:, None, None],
        "EEE": np.tile(scatter.sum(axis=0) / 30, (3, 1, 1)),
        "VII": (squares / (2 * count))[:, None, None] * np.eye(2),
        "EII": np.tile(squares.sum() / 60 * np.eye(2), (3, 1, 1)),
    }
    for name, covariances in expected.items():
        family = Gaussian(Structure(name), X.var(axis=0))
        start = family.start(np.zeros((3, 2)))
        after = family.update(start, family.gather(start, block_of(X), membership))
        assert after.covariance.matrices() == pytest.approx(covariances)


def test_k_means_is_the_limit_of_em_as_the_variance_goes_to_nought():
    """One step of EM with variance s^2 I: memberships harden and the means become Lloyd's."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[:30] += 3
    centres = X[:2] + np.array([[0.0, 0.0], [-3.0, -3.0]])
    nearest = np.argmin(((X[:, None] - centres) ** 2).sum(axis=2), axis=1)
    lloyd = np.array([X[nearest == k].mean(axis=0) for k in range(2)])
    family, block = Gaussian(Structure("EII"), X.var(axis=0)), block_of(X)
    apart = []
    for s in (2.0, 0.5, 0.05):
        params = Mixture(np.array([0.5, 0.5]), centres, Covariance(np.full((2, 2), 2 * np.log(s)), None))
        apart.append(
            np.abs(family.update(params, family.step(params, block, KEEP_ALL).sums).mean - lloyd).max()
        )
    assert apart[0] > apart[1] > apart[2]
    assert apart[2] < 1e-6


def test_a_full_covariance_has_half_d_times_d_plus_one_parameters():
    for d, k, right, printed in [(4, 3, 44, 32), (1, 3, 8, 5)]:
        assert k - 1 + k * d + n_covariance_parameters(Structure("VVV"), k, d) == right
        assert k - 1 + k * d + k * d * (d - 1) // 2 == printed


def test_bic_in_three_conventions():
    figures = CLAIMS["bic_conventions_iris_VVV_2"]
    X = load_iris().data
    ours = ilk.GaussianMixture(2, random_state=0).fit(X)
    assert ours.loglik_ == pytest.approx(figures["loglik"], rel=1e-6)
    lecture = ours.loglik_ - ours.n_parameters_ / 2 * np.log(150)
    assert lecture == pytest.approx(figures["seed_form_l_minus_half_npar_ln_n"], rel=1e-6)
    assert ours.bic() == pytest.approx(-2 * lecture)
    assert ours.bic() == pytest.approx(-figures["mclust_reported"], rel=1e-6)


@pytest.mark.parametrize("start", ["k-log-k", "two-step", "principal", "projection"])
def test_starts_of_em_by_name(start):
    """Three groups that differ in two of ten columns, from one kind of start alone."""
    draws = np.random.default_rng(0)
    X = draws.normal(size=(150, 10))
    group = np.repeat([0, 1, 2], 50)
    X[:, :2] += 12 * np.array([[0, 0], [1, 0], [0, 1]])[group]
    model = ilk.GaussianMixture(3, structure="EEI", init=start, n_init=5, random_state=0).fit(X)
    assert ilk.measures.ari(group, model.labels_) == 1.0


def test_the_best_cost_falls_as_k_grows():
    X, _ = numeric_table("seven_normals_outliers")
    cost = [ilk.KMeans(k, n_init=20, random_state=0).fit(X).inertia_ for k in range(1, 9)]
    assert all(more < fewer for fewer, more in pairwise(cost))


def test_bic_does_not_fall_for_ever():
    draws = np.random.default_rng(0)
    X = np.vstack([draws.normal(c, 1, (30, 2)) for c in (0, 8, 16)])
    found = ilk.select(X, k=range(1, 6), structures=["EII"], thorough=False)
    assert found.chosen.k == 3


def test_k_of_a_fixed_open_cost_grows_with_the_rows():
    """Non-parametric clustering: a Gaussian has no border, and the farthest of more rows lies farther out."""
    X = np.random.default_rng(0).normal(size=(3000, 2))
    found = [ilk.DPMeans(5.0, tol=1e-3).fit(X[:n]).n_clusters_ for n in (10, 200, 3000)]
    assert found[0] < found[1] < found[2]


def test_trimmed_means():
    """The lecture trims each end of each column; ilk trims the rows farthest from their centre."""
    figures = CLAIMS["trimmed_mean"]
    x = np.array(figures["x"])
    assert trim_mean(x, figures["p"] / 2) == pytest.approx(figures["value"])
    model = ilk.TrimmedKMeans(1, trim=0.1, random_state=0).fit(x[:, None])
    assert model.outliers_.tolist() == [False] * 9 + [True]
    assert model.cluster_centers_[0, 0] == pytest.approx(5.0)


def test_medians_are_moved_little_by_a_far_row():
    x = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1e6])[:, None]
    assert ilk.KMedians(1, random_state=0).fit(x).cluster_centers_[0, 0] == 6.0
    assert ilk.KMeans(1, random_state=0).fit(x).cluster_centers_[0, 0] > 1e4


def test_components_are_bounded_away_from_nothing():
    """A component on a single value would have an infinite density: such a fit has a status, not a likelihood."""
    X = np.concatenate([np.zeros(30), norm.ppf(np.linspace(0.05, 0.95, 30)) + 9])[:, None]
    with pytest.warns(ilk.errors.IlkWarning):
        model = ilk.GaussianMixture(2, random_state=0).fit(X)
    assert model.status_ != "ok"
    assert np.isfinite(model.predict_proba(X)).all()
    kept = ilk.GaussianMixture(2, prior="default", random_state=0).fit(X)
    assert kept.status_ == "ok"
    assert (kept.covariances_ > 0).all()


def test_letters_of_the_lecture_are_ten_of_fourteen():
    lecture = {"EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "EEV", "VEV", "VVV"}
    found = ilk.select(np.random.default_rng(0).normal(size=(40, 2)), k=[1])
    ours = {candidate.structure for candidate in found.candidates}
    assert ours - lecture == {"VEE", "EVE", "VVE", "EVV"}
    assert lecture < ours

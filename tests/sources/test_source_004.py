"""Claims of the Bielefeld slides that no test of a module shows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris

import ilk
from ilk.families.covariance import Covariance, Structure
from ilk.families.gaussian import Gaussian, Mixture
from ilk.table.block import Block, Encoding
from tests.conftest import golden, numeric_table

CLAIMS = golden("seed_claims")["one_d_Q_versus_likelihood"]
X = np.array(CLAIMS["x"])[:, None]
FAMILY = Gaussian(Structure("E"), X.var(axis=0))


def scores(second_mean: float) -> np.ndarray:
    """Log of share times density (rows, 2): both deviations 10, the first mean at 60."""
    spread = Covariance(np.full((2, 1), 2 * np.log(10.0)), None)
    params = Mixture(np.array([0.5, 0.5]), np.array([[60.0], [second_mean]]), spread)
    return FAMILY.scores(params, Block(X, Encoding(1.0, np.zeros(1))))


def memberships(joint: np.ndarray) -> np.ndarray:
    return np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])


def cost(joint: np.ndarray) -> float:
    return -float(np.logaddexp.reduce(joint, axis=1).sum())


def entropy(gamma: np.ndarray) -> float:
    return -float((gamma * np.log(gamma)).sum())


def test_prototypes_encode_and_decode():
    table = np.vstack([np.random.default_rng(0).normal(c, 1, (20, 2)) for c in (0, 6)])
    model = ilk.KMeans(2, random_state=0).fit(table)
    decoded = model.cluster_centers_[model.predict(table)]
    assert -model.score(table) == pytest.approx(((table - decoded) ** 2).sum())
    assert model.transform(table).min(axis=1) == pytest.approx(np.sqrt(((table - decoded) ** 2).sum(axis=1)))


def test_passes_of_k_means():
    """The slides say 10 to 30: from one random start each, iris in three groups takes 3 to 20."""
    passes = [
        ilk.KMeans(3, init="random", n_init=1, random_state=seed).fit(load_iris().data).n_iter_
        for seed in range(20)
    ]
    assert 2 <= min(passes) <= max(passes) <= 30
    assert min(passes) < 10


def test_standardised_columns_have_no_unit():
    """Wine: 0.37 with the units as they are, 0.897 standardised; and then no unit changes a label."""
    table, kind = numeric_table("wine")
    raw = ilk.KMeans(3, random_state=0).fit(table).labels_
    scaled = ilk.KMeans(3, scale="standard", random_state=0).fit(table).labels_
    assert ilk.measures.ari(kind, raw) == pytest.approx(0.37, abs=0.01)
    assert ilk.measures.ari(kind, scaled) == pytest.approx(0.897, abs=0.001)
    other = table * np.logspace(-3, 3, table.shape[1])
    assert np.array_equal(ilk.KMeans(3, scale="standard", random_state=0).fit(other).labels_, scaled)


def test_silhouette_of_iris_by_the_definition():
    table = load_iris().data
    label = ilk.KMeans(3, random_state=0).fit(table).labels_
    distance = np.sqrt(((table[:, None] - table) ** 2).sum(axis=2))
    value = np.empty(150)
    for i in range(150):
        mine = label == label[i]
        inside = distance[i, mine].sum() / (mine.sum() - 1)  # without the row itself
        outside = min(distance[i, label == k].mean() for k in range(3) if k != label[i])
        value[i] = (outside - inside) / max(outside, inside)
    assert value.mean() == pytest.approx(0.552819, abs=1e-6)
    assert ilk.measures.silhouette(table, label) == pytest.approx(value)


def test_loss_plus_parameters_is_no_bic():
    """The K that it chooses moves with the unit; that of the spherical model does not."""
    draws = np.random.default_rng(0)
    table = np.vstack([draws.normal(c, 1, (40, 2)) for c in (0, 8, 16)])

    def chosen(factor: float) -> tuple[int, int]:
        printed, ours = {}, {}
        for k in range(1, 7):
            model = ilk.KMeans(k, n_init=3, random_state=0).fit(factor * table)
            printed[k] = model.inertia_ + k * 2
            ours[k] = ilk.measures.kmeans_bic(model.inertia_, model.fit_.size, 2)
        return min(printed, key=printed.get), min(ours, key=ours.get)

    assert [chosen(factor)[1] for factor in (0.1, 1.0, 10.0)] == [3, 3, 3]
    assert len({chosen(factor)[0] for factor in (0.1, 1.0, 10.0)}) > 1


def test_the_constant_has_two_pi_to_the_m():
    """The slides' log[2 pi det] lacks (m - 1)/2 log(2 pi) a row: the same for every parameter."""
    table = np.random.default_rng(0).normal(size=(40, 3))
    model = ilk.GaussianMixture(1).fit(table)
    centre, spread = model.means_[0], model.covariances_[0]
    away = table - centre
    printed = 0.5 * np.log(2 * np.pi * np.linalg.det(spread)) + 0.5 * np.einsum(
        "ni,ij,nj->n", away, np.linalg.inv(spread), away
    )
    assert model.loglik_ == pytest.approx(multivariate_normal(centre, spread).logpdf(table).sum())
    assert -model.loglik_ == pytest.approx(printed.sum() + 40 * np.log(2 * np.pi))


def test_cost_is_q_less_divergences_and_entropies():
    """-log-likelihood = Q - sum(KL + H) for any memberships; the slides' brackets are missing."""
    joint = scores(20.0)
    posterior = memberships(joint)
    for gamma in (posterior, np.tile([0.3, 0.7], (len(X), 1)), memberships(scores(45.0))):
        q = -(gamma * joint).sum()
        divergence = (gamma * np.log(gamma / posterior)).sum()
        assert cost(joint) == pytest.approx(q - (divergence + entropy(gamma)))
        assert cost(joint) != pytest.approx(q - divergence + entropy(gamma))
        assert divergence >= -1e-12


def test_the_path_of_one_mean():
    """The cost falls at each step while Q itself rises from the second on."""
    second, q_path = 20.0, []
    for figures in CLAIMS["em_path_from_mu2_20"]:
        joint = scores(second)
        gamma = memberships(joint)
        q = -(gamma * joint).sum()
        assert second == pytest.approx(figures["mu2"])
        assert cost(joint) == pytest.approx(figures["neg_loglik"])
        assert q == pytest.approx(figures["Q_at_mu2"])
        assert q - entropy(gamma) == pytest.approx(cost(joint))
        q_path.append(q)
        second = float(gamma[:, 1] @ X[:, 0] / gamma[:, 1].sum())
    assert q_path[1] < q_path[0]
    assert q_path[3] > q_path[2] > q_path[1]


def test_the_bound_lies_above_and_touches():
    old = memberships(scores(20.0))
    for second in np.linspace(0, 80, 33):
        joint = scores(second)
        bound = -(old * joint).sum() - entropy(old)
        assert bound >= cost(joint) - 1e-9
        assert (bound == pytest.approx(cost(joint))) == (second == 20.0)


def test_q_is_not_convex_in_mean_and_variance_together():
    """One row, one component: the middle of two points lies above the mean of their costs."""

    def q(mean: float, variance: float) -> float:
        return 0.5 * np.log(2 * np.pi * variance) + (1.0 - mean) ** 2 / (2 * variance)

    assert q(0.5, 5.5) > (q(0.0, 10.0) + q(1.0, 1.0)) / 2


def test_entropy_is_nought_only_for_hard_memberships():
    assert ilk.measures.log_certainty(np.eye(3)) == 0.0
    assert ilk.measures.log_certainty(np.array([[0.9, 0.1]])) < 0
    table = np.vstack([np.random.default_rng(0).normal(c, 1, (30, 1)) for c in (0, 3)])
    soft = ilk.GaussianMixture(2, random_state=0).fit(table)
    hard = ilk.GaussianMixture(2, membership="hard", random_state=0).fit(table)
    assert soft.icl() > soft.bic()
    assert hard.loglik_ <= soft.loglik_ + 1e-9


def test_a_start_in_the_hull_reaches_the_groups():
    table = np.vstack([np.random.default_rng(0).normal(c, 1, (30, 2)) for c in (0, 9, 18)])
    model = ilk.KMeans(3, init="random-hull", random_state=0).fit(table)
    assert ilk.measures.ari(np.repeat([0, 1, 2], 30), model.labels_) == 1.0
    mixture = ilk.GaussianMixture(3, init="random-hull", random_state=0).fit(table)
    assert ilk.measures.ari(np.repeat([0, 1, 2], 30), mixture.labels_) == 1.0

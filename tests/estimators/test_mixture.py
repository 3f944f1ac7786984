"""The mixture estimators: units, changes of the table, outliers, hard cases, criteria, samples, small components."""

from __future__ import annotations

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.metrics import adjusted_rand_score as adjusted_rand
from threadpoolctl import threadpool_limits

import ilk
from ilk.errors import IlkWarning, UsageError
from ilk.families.covariance import STRUCTURES

NAMES = [structure.name for structure in STRUCTURES]
EVERY = [ilk.GaussianMixture, ilk.StudentMixture, ilk.LaplaceMixture]
every_structure = pytest.mark.parametrize("name", NAMES)
every_mixture = pytest.mark.parametrize("mixture", EVERY)
quiet = pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def stretched(n: int = 90, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping clusters of different sizes, shapes and directions, and a start for them."""
    draw = np.random.default_rng(8)
    label = np.arange(n) % k
    mix = draw.normal(size=(k, 3, 3)) * 0.6 + np.diag([1.0, 2.0, 0.5])
    X = np.einsum("nij,nj->ni", mix[label], draw.normal(size=(n, 3))) + 3 * draw.normal(size=(k, 3))[label]
    start = np.where(draw.random(n) < 0.1, draw.integers(0, k, n), label)
    return X, start


def apart(n: int = 60, d: int = 3, away: float = 12.0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(4)
    label = np.arange(n) % 3
    return draw.normal(size=(n, d)) + away * draw.normal(size=(3, d))[label], label


def fitted(X, start, name, **options):
    return ilk.GaussianMixture(start.max() + 1, structure=name, init=start, tol=1e-11, **options).fit(X)


# --- changes of the table (reliability.md, section 6) ------------------------------------------------------

ROTATION = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
COLUMN_SCALE = np.diag([0.25, 3.0, 40.0])
ANY_MAP = np.random.default_rng(2).normal(size=(3, 3)) + 2 * np.eye(3)
INVARIANT = {
    "rotation": [n for n in NAMES if n not in ("EEI", "VEI", "EVI", "VVI")],
    "column scale": ["EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVV", "VVV"],
    "any map": ["EEE", "VEE", "EVV", "VVV"],
}
MAPS = {"rotation": ROTATION, "column scale": COLUMN_SCALE, "any map": ANY_MAP}


@every_structure
def test_translation_and_a_common_power_of_two_change_nothing(name):
    X, start = stretched()
    here = fitted(X, start, name)
    scaled = fitted(X * 2.0**-30, start, name)
    assert np.array_equal(scaled.labels_, here.labels_)
    assert np.array_equal(scaled.means_, here.means_ * 2.0**-30)
    assert np.array_equal(scaled.covariances_, here.covariances_ * 2.0**-60)
    moved = fitted(X + 1000.0, start, name)
    assert moved.loglik_ == pytest.approx(here.loglik_, rel=1e-7)
    assert np.array_equal(moved.labels_, here.labels_)
    flipped = fitted(X[:, [2, 0, 1]] * [1, -1, 1], start, name)
    assert flipped.loglik_ == pytest.approx(here.loglik_, rel=1e-6)


@every_structure
@pytest.mark.parametrize("change", list(MAPS))
def test_the_table_of_invariances(name, change):
    X, start = stretched()
    here, there = fitted(X, start, name), fitted(X @ MAPS[change].T, start, name)
    expected = here.loglik_ - len(X) * np.linalg.slogdet(MAPS[change])[1]
    if name in INVARIANT[change]:
        assert there.loglik_ == pytest.approx(expected, rel=1e-6)
        assert np.array_equal(there.labels_, here.labels_)
    else:  # the stored counter-example
        assert abs(there.loglik_ - expected) > 0.01


@every_structure
@pytest.mark.parametrize("change", ["offset", 1e-6, 1e200])
def test_offsets_and_factors_leave_the_labels(name, change):
    X, start = apart()
    there = X + 1e9 * X.std() if change == "offset" else X * change
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IlkWarning)
        found = fitted(there, start, name)
    assert np.array_equal(found.labels_, fitted(X, start, name).labels_)
    assert np.isfinite(found.loglik_)


@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("prior", [None, "default"])
def test_one_covariance_in_many_columns_is_the_pooled_one(offset, prior):
    """Rows are whitened once for all components; the rows themselves are rounded to 1e-7 by the offset."""
    draw = np.random.default_rng(3)
    label = np.arange(300) % 4
    mix = np.eye(12) + 0.3 * draw.normal(size=(12, 12))
    X = draw.normal(size=(300, 12)) @ mix.T + 40 * draw.normal(size=(4, 12))[label] + offset
    found = fitted(X, label, "EEE", prior=prior)
    assert adjusted_rand(found.labels_, label) == 1.0  # groups of one size go by their least rows
    away = X - np.array([X[label == k].mean(axis=0) for k in range(4)])[label]
    if prior is None:
        assert np.allclose(found.covariances_, away.T @ away / 300, rtol=1e-6, atol=1e-6)
    here = fitted(X - offset, label, "EEE", prior=prior)
    assert found.loglik_ == pytest.approx(here.loglik_, rel=1e-7)


@every_mixture
@pytest.mark.parametrize("factor", [1e-6, 1e200])
def test_default_starts_do_not_depend_on_units(mixture, factor):
    X, label = apart()
    found = mixture(3, random_state=0).fit(X * factor)
    assert adjusted_rand(found.labels_, label) == 1.0
    assert not np.isnan(found.covariances_).any()


# --- hard cases -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "n"), [(10, 300), (20, 300), (60, 300), (200, 600)])
def test_two_clear_groups_in_many_columns(d, n):
    draw = np.random.default_rng(d)
    label = np.arange(n) % 2
    X = draw.normal(size=(n, d)) + np.where(label == 1, 4.0, -4.0)[:, None]
    found = ilk.GaussianMixture(2, init="k-means", random_state=0).fit(X)
    assert found.status_ == "ok"
    assert adjusted_rand(found.labels_, label) == 1.0


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("noise", ["uniform", "gaussian"])
def test_noise_takes_up_the_outliers(noise, missing):
    draw = np.random.default_rng(0)
    X = np.vstack([draw.normal(0, 1, (150, 2)), draw.normal(12, 1, (150, 2)), draw.uniform(-60, 60, (40, 2))])
    far = np.abs(X - np.where(X.sum(axis=1, keepdims=True) > 12, 12, 0)).max(axis=1) > 6
    if missing:
        X[:300:10, 0] = np.nan
    found = ilk.GaussianMixture(2, noise=noise, random_state=0).fit(X)
    assert ((found.labels_ == -1) == far)[~np.isnan(X[:, 0])].mean() > 0.97
    assert np.allclose(np.sort(found.means_[:, 0]), [0, 12], atol=0.5)
    assert found.weights_.sum() == pytest.approx(300 / 340, abs=0.03)
    assert found.predict_proba(X).shape == (340, 3)


@pytest.mark.parametrize("mixture", [ilk.StudentMixture, ilk.LaplaceMixture])
def test_heavy_tails_are_not_moved_by_outliers(mixture):
    X, label = apart(150)
    X = np.vstack([X, 500.0 * np.random.default_rng(0).normal(size=(8, 3))])
    found = mixture(3, init="k-means", random_state=0, max_iter=2000)
    found = found.set_params(init=np.append(label, [0] * 8)).fit(X)
    assert adjusted_rand(found.labels_[:150], label) == 1.0
    centres = np.array([X[:150][label == k].mean(axis=0) for k in range(3)])
    gap = np.linalg.norm(found.means_[:, None] - centres, axis=2).min(axis=1)
    assert gap.max() < 1.0


def test_trimmed_rows_are_the_outliers():
    X, label = apart(150)
    X = np.vstack([X, 500.0 * np.random.default_rng(0).normal(size=(8, 3))])
    found = ilk.GaussianMixture(3, trim=8 / 158, init=np.append(label, [0] * 8)).fit(X)
    assert np.array_equal(np.flatnonzero(found.outliers_), np.arange(150, 158))


@quiet
@every_mixture
def test_no_nan_whatever_the_table(mixture):
    draw = np.random.default_rng(0)
    tables = [
        np.repeat(draw.normal(size=(2, 2)), 6, axis=0),
        np.column_stack([np.arange(10.0), np.arange(10.0)]),
        np.vstack([draw.normal(size=(10, 2)), [[1e12, 0.0]]]),
        np.where(draw.random((12, 2)) < 0.4, np.nan, draw.normal(size=(12, 2))),
    ]
    for X in tables:
        found = mixture(3, random_state=0, max_iter=50).fit(X)
        assert np.isfinite(found.loglik_)
        assert np.isfinite(found.means_).all()
        assert not np.isnan(found.covariances_).any()
        assert np.isfinite(found.predict_proba(X)).all()
        assert np.isfinite(found.score_samples(X)).all()


# --- densities, samples, criteria -------------------------------------------------------------------------


@every_mixture
def test_the_density_integrates_to_one(mixture):
    X = np.concatenate([np.random.default_rng(0).normal(0, 1, 80), np.random.default_rng(1).normal(7, 2, 60)])
    found = mixture(2, random_state=0).fit(100 * X[:, None])
    points = sorted(100 * x for x in (-50.0, -3, 0, 3, 7, 12, 60))

    def density(x: float) -> float:
        return float(np.exp(found.score_samples([[x]])[0]))

    total = sum(quad(density, a, b, limit=100, epsabs=1e-9)[0] for a, b in pairwise(points))
    assert total == pytest.approx(1.0, abs=1e-3 if mixture is ilk.StudentMixture else 1e-7)


@every_mixture
def test_samples_give_the_parameters_back(mixture):
    X, label = apart(300)
    options = {"dof": 6.0} if mixture is ilk.StudentMixture else {}
    found = mixture(3, init=label, random_state=3, **options).fit(X)
    rows, component = found.sample(3000)
    assert rows.shape == (3000, 3)
    again = mixture(3, init=component, **options).fit(rows)
    match = np.linalg.norm(again.means_[:, None] - found.means_, axis=2).argmin(axis=1)
    assert np.allclose(again.means_, found.means_[match], atol=0.3)
    assert np.allclose(again.weights_, found.weights_[match], atol=0.05)
    assert np.allclose(again.covariances_, found.covariances_[match], rtol=0.3, atol=0.3)


@every_mixture
def test_criteria_are_those_of_their_parts(mixture):
    X, start = stretched()
    found = mixture(3, init=start, random_state=0).fit(X)
    assert found.loglik_ == pytest.approx(found.score_samples(X).sum(), rel=1e-9)
    assert found.score(X) == pytest.approx(found.loglik_ / len(X), rel=1e-9)
    assert found.bic() == pytest.approx(-2 * found.loglik_ + found.n_parameters_ * np.log(len(X)))
    assert found.aic() == pytest.approx(-2 * found.loglik_ + 2 * found.n_parameters_)
    assert found.icl() >= found.bic()
    for criterion in (found.bic, found.aic, found.icl):
        assert criterion(X) == pytest.approx(criterion(), rel=1e-9)
    probability = found.predict_proba(X)
    assert np.allclose(probability.sum(axis=1), 1, atol=1e-15)
    assert np.array_equal(probability.argmax(axis=1), found.predict(X))
    assert np.array_equal(found.labels_, found.predict(X))
    assert np.array_equal(pickle.loads(pickle.dumps(found)).predict(X), found.labels_)


def test_student_shows_scales_covariances_and_dof():
    X, start = stretched(300)
    found = ilk.StudentMixture(3, init=start, dof="shared", structure="EEE").fit(X)
    assert len(set(found.dof_)) == 1
    assert 0.5 <= found.dof_[0] <= 200
    plain = ilk.GaussianMixture(3, init=start, structure="EEE").fit(X)
    assert found.n_parameters_ == plain.n_parameters_ + 1
    assert np.allclose(found.covariances_, found.scales_ * (found.dof_ / (found.dof_ - 2))[:, None, None])
    wild = ilk.StudentMixture(1, dof=1.5).fit(X)
    assert np.isinf(np.diagonal(wild.covariances_[0])).all()
    assert np.isfinite(wild.scales_).all()


def test_laplace_shows_scales():
    X = np.random.default_rng(0).laplace(3.0, 2.0, size=(4000, 2))
    found = ilk.LaplaceMixture(1, structure="EEI").fit(X)
    assert np.allclose(found.scales_, 2.0, rtol=0.1)
    assert np.allclose(np.diagonal(found.covariances_[0]), 2 * found.scales_[0] ** 2)
    assert np.allclose(found.means_[0], np.median(X, axis=0), atol=0.02)


def test_a_constant_column_is_set_aside_in_every_mixture():
    X, start = apart()
    X = np.column_stack([X, np.full(len(X), 7.0)])
    for mixture in EVERY:
        with pytest.warns(IlkWarning, match="constant"):
            found = mixture(3, init=start).fit(X)
        assert (found.means_[:, 3] == 7.0).all()
        assert found.sample(5)[0].shape == (5, 4)


# --- options ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mixture", [ilk.GaussianMixture, ilk.StudentMixture, ilk.LaplaceMixture])
def test_small_components_are_merged(mixture):
    X, label = apart(90)
    X = np.vstack([X, X[label == 0][:4] + 6.0 + np.random.default_rng(5).normal(size=(4, 3))])
    start = np.append(label, [3] * 4)
    options = {"structure": "EII", "init": start}
    with_all = mixture(4, **options).fit(X)
    assert len(with_all.weights_) == 4
    with pytest.warns(IlkWarning, match=r"1 of 4 components held less than min_weight=5 ") as told:
        merged = mixture(4, min_weight=5, **options).fit(X)
    assert told[0].message.code == "small-components"
    assert len(merged.weights_) == len(merged.means_) == 3
    assert merged.weights_.sum() == pytest.approx(1.0)
    assert np.bincount(merged.labels_).min() >= 5
    assert adjusted_rand(merged.labels_[:90], label) == 1.0
    # it is a converged fit of three components, not a relabelling
    assert merged.converged_
    assert merged.n_parameters_ == mixture(3, structure="EII", init=label).fit(X[:90]).n_parameters_
    assert merged.loglik_ == pytest.approx(merged.score_samples(X).sum(), rel=1e-9)
    assert len(merged.fit_.trace) == merged.n_iter_ > with_all.n_iter_


def test_a_small_component_counts_by_weight():
    X, label = apart(90)
    weight = np.where(label == 2, 0.1, 1.0)
    with pytest.warns(IlkWarning, match="min_weight=10"):
        found = ilk.GaussianMixture(3, init=label, min_weight=10).fit(X, sample_weight=weight)
    assert len(found.weights_) == 2


@pytest.mark.parametrize(
    ("mixture", "options", "code"),
    [
        (ilk.StudentMixture, {"dof": "many"}, "bad-dof"),
        (ilk.StudentMixture, {"dof": 0.0}, "bad-dof"),
        (ilk.StudentMixture, {"dof": np.inf}, "bad-dof"),
        (ilk.LaplaceMixture, {"structure": "VVV"}, "bad-structure"),
        (ilk.GaussianMixture, {"structure": "V"}, "bad-structure"),
        (ilk.GaussianMixture, {"min_weight": -1}, "bad-min_weight"),
        (ilk.GaussianMixture, {"membership": "firm"}, "bad-membership"),
        (ilk.GaussianMixture, {"noise": "loud"}, "bad-noise"),
        (ilk.GaussianMixture, {"prior": "none"}, "bad-prior"),
        (ilk.GaussianMixture, {"trim": 1.0}, "bad-trim"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(mixture, options, code):
    with pytest.raises(UsageError) as error:
        mixture(2, **options).fit(apart()[0])
    assert error.value.code == code
    assert error.value.do


@pytest.mark.parametrize("unit", [1.0, 0.001, 3e5 / 7])
def test_min_weight_is_in_the_unit_of_the_weights(unit):
    draws = np.random.default_rng(0)
    X = np.vstack([draws.normal(place, 1, (size, 1)) for place, size in ((0, 40), (20, 40), (60, 8))])
    label = np.repeat([0, 1, 2], [40, 40, 8])
    weight = np.full(len(X), unit)
    kept = ilk.GaussianMixture(3, init=label, min_weight=7.9 * unit).fit(X, sample_weight=weight)
    assert len(kept.weights_) == 3
    with pytest.warns(IlkWarning, match="1 of 3 components held less than min_weight="):
        found = ilk.GaussianMixture(3, init=label, min_weight=8.1 * unit).fit(X, sample_weight=weight)
    assert len(found.weights_) == 2


@pytest.mark.parametrize("kind", [ilk.GaussianMixture, ilk.StudentMixture, ilk.MixedMixture])
@pytest.mark.parametrize(("factor", "offset"), [(1.0, 0.0), (1000.0, 5e4), (1e-3, 7.0)])
@pytest.mark.parametrize("scale", [None, "standard"])
def test_a_prior_is_in_the_units_of_the_table(kind, factor, offset, scale):
    draws = np.random.default_rng(0)
    X = np.vstack([draws.normal(0, 1, (60, 2)), draws.normal(6, 1, (40, 2))]) * [factor, 2 * factor] + offset
    own = ilk.Prior.from_table(X.mean(axis=0), np.cov(X.T), 2)
    options = {"structure": "EEE", "scale": scale, "random_state": 0}
    given, default = (kind(2, prior=prior, **options).fit(X) for prior in (own, "default"))
    np.testing.assert_allclose(given.means_, default.means_, rtol=1e-6)
    np.testing.assert_allclose(given.covariances_, default.covariances_, rtol=1e-5)


def test_a_prior_has_an_entry_for_every_column_of_the_table():
    draws = np.random.default_rng(0)
    X = np.column_stack([np.full(50, 3.0), draws.normal(size=(50, 2)) + 40])
    own = ilk.Prior(np.array([3.0, 40, 40]), np.eye(3), 4.0)
    with pytest.warns(IlkWarning, match="constant"):
        found = ilk.GaussianMixture(1, prior=own).fit(X)
    alone = ilk.GaussianMixture(1, prior=ilk.Prior(np.array([40.0, 40]), np.eye(2), 4.0)).fit(X[:, 1:])
    np.testing.assert_allclose(found.covariances_[:, 1:, 1:], alone.covariances_, rtol=1e-9)
    for wrong in (ilk.Prior(np.zeros(2), np.eye(2), 4.0), ilk.Prior(np.full(3, np.nan), np.eye(3), 4.0)):
        with pytest.raises(UsageError) as refused, pytest.warns(IlkWarning, match="constant"):
            ilk.GaussianMixture(1, prior=wrong).fit(X)
        assert refused.value.code == "bad-prior"

"""MixedMixture as a user sees it: tables in and out, criteria, sharpness, sampling, and the test of K - 1 against K."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import ilk
from ilk.errors import IlkWarning, UsageError
from tests.conftest import table_path

pytestmark = pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")


@pytest.fixture(scope="module")
def penguins():
    return pd.read_csv(table_path("penguins")).drop(columns=["target", "year"])


def test_the_kind_of_frame_does_not_matter(penguins):
    options = {"random_state": 0, "max_iter": 50}
    ours = ilk.MixedMixture(3, **options).fit(penguins)
    other = ilk.MixedMixture(3, **options).fit(pl.from_pandas(penguins))
    assert ours.loglik_ == other.loglik_
    np.testing.assert_array_equal(ours.labels_, other.labels_)
    assert len(ours.labels_) == len(penguins)  # rows with blanks are kept
    np.testing.assert_array_equal(ours.predict(penguins[penguins.columns[::-1]]), ours.labels_)


def test_criteria_are_those_of_the_rows(penguins):
    model = ilk.MixedMixture(3, random_state=0).fit(penguins)
    membership = model.predict_proba(penguins)
    assert model.score_samples(penguins).sum() == pytest.approx(model.loglik_)
    n_rows = len(penguins)
    assert model.bic() == pytest.approx(-2 * model.loglik_ + model.n_parameters_ * np.log(n_rows))
    assert model.icl() == pytest.approx(model.bic() - 2 * np.log(membership.max(axis=1)).sum())
    entropy = -(membership * np.log(np.maximum(membership, 1e-300))).sum()
    assert model.relative_entropy() == pytest.approx(1 - entropy / (n_rows * np.log(3)))
    table = model.average_posterior_table()
    for group in range(3):
        np.testing.assert_allclose(table[group], membership[model.labels_ == group].mean(axis=0))
    assert ilk.MixedMixture(1).fit(penguins).relative_entropy() == 1.0


def test_unseen_levels_are_missing_and_said_so(penguins):
    model = ilk.MixedMixture(2, random_state=0).fit(penguins)
    strange = penguins.assign(sex="unheard of")
    with pytest.warns(IlkWarning, match="not seen are treated as missing"):
        found = model.predict_proba(strange)
    np.testing.assert_array_equal(
        found, model.predict_proba(penguins.assign(sex=None).astype(penguins.dtypes))
    )


def test_samples_have_the_shape_of_the_mixture(penguins):
    model = ilk.MixedMixture(3, random_state=0).fit(penguins)
    rows, label = model.sample(20_000)
    assert isinstance(rows, pd.DataFrame)
    np.testing.assert_allclose(np.bincount(label) / 20_000, model.weights_, atol=0.02)
    mass = [rows["body_mass_g"][label == k].mean() for k in range(3)]
    names = [c.name for c in model.schema_.numeric]
    np.testing.assert_allclose(mass, model.means_[:, names.index("body_mass_g")], rtol=0.01)
    male = [(rows["sex"][label == k] == "male").mean() for k in range(3)]
    np.testing.assert_allclose(male, model.shares_["sex"]["male"], atol=0.03)


def test_counts_are_drawn_and_found_again():
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=600)
    table = {
        "visits": rng.poisson(np.where(group, 9.0, 1.5)),
        "kind": np.where(rng.random(600) < 0.9, group, 1 - group),
    }
    model = ilk.MixedMixture(2, types={"visits": "count"}, random_state=0).fit(table)
    np.testing.assert_allclose(np.sort(model.rates_["visits"]), [1.5, 9.0], rtol=0.1)
    assert model.n_parameters_ == 1 + 2 + 2
    drawn, label = model.sample(5000)
    visits = np.asarray(drawn["visits"].to_pylist())
    np.testing.assert_allclose(
        [visits[label == k].mean() for k in range(2)], model.rates_["visits"], rtol=0.05
    )


def test_a_model_can_be_cloned_and_pickled(penguins):
    model = ilk.MixedMixture(2, structure="EEE", smoothing=0.5, random_state=0)
    assert clone(model).get_params() == model.get_params()
    model.fit(penguins)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(penguins), model.predict(penguins))


def test_trimming_sets_the_strange_rows_aside():
    rng = np.random.default_rng(1)
    table = {"size": rng.normal(size=200), "kind": np.where(rng.random(200) < 0.5, "a", "b")}
    table["size"][:4] = 50.0
    model = ilk.MixedMixture(1, trim=0.02).fit(table)
    np.testing.assert_array_equal(np.flatnonzero(model.outliers_), np.arange(4))
    assert abs(model.means_[0, 0]) < 0.3


def test_full_structures_use_the_correlation_of_the_numbers(penguins):
    models = {s: ilk.MixedMixture(2, structure=s, random_state=0).fit(penguins) for s in ("VVI", "VVV")}
    assert models["VVV"].loglik_ > models["VVI"].loglik_ + 50
    assert models["VVV"].n_parameters_ == models["VVI"].n_parameters_ + 2 * 6


@pytest.mark.parametrize(
    "bad", [{"smoothing": -1}, {"structure": "XYZ"}, {"membership": "firm"}, {"init": "tree"}]
)
def test_bad_options_are_refused(penguins, bad):
    with pytest.raises(UsageError):
        ilk.MixedMixture(2, **bad).fit(penguins)


def test_the_bootstrap_tells_components_from_noise():
    rng = np.random.default_rng(2)
    group = rng.integers(2, size=150)
    items = (rng.random((150, 6)) < np.where(group, 0.85, 0.15)[:, None]).astype(str)
    table = {f"i{j}": np.where(rng.random(150) < 0.05, None, items[:, j]) for j in range(6)}
    options = {"n_draws": 19, "random_state": 0, "n_init": 3, "tol": 1e-6}
    two = ilk.likelihood_ratio_test(table, 2, **options)
    assert two.p_value == 0.05
    assert two.statistic > 5 * two.drawn.max()
    three = ilk.likelihood_ratio_test(table, 3, **options)
    assert three.p_value > 0.05
    assert (three.drawn > -1e-3).all()

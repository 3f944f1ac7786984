"""The Dirichlet process mixture of tables: a bound that never falls and, for one component, is exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import betaln, gammaln
from sklearn.mixture import BayesianGaussianMixture

import ilk
import ilk.fitting.dirichlet as dirichlet
from ilk.families.dirichlet import PSEUDO_ROWS, SHAPE, STRENGTH
from ilk.measures import ari

pytestmark = pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")


def table_of(seed: int, n_rows: int = 60, missing: float = 0.1) -> dict[str, list]:
    draws = np.random.default_rng(seed)
    group = draws.integers(3, size=n_rows)
    size = draws.normal(4.0 * group, 1.0)
    kind = np.where(draws.random(n_rows) < 0.8, group, draws.integers(3, size=n_rows))
    gone = draws.random((n_rows, 2)) < missing
    return {
        "size": [None if lost else float(x) for x, lost in zip(size, gone[:, 0], strict=True)],
        "width": [float(x) for x in draws.normal(size=n_rows)],
        "kind": [None if lost else "xyz"[k] for k, lost in zip(kind, gone[:, 1], strict=True)],
    }


def log_evidence_of_numbers(x: np.ndarray, mean: float, variance: float) -> float:
    """Marginal likelihood of a normal sample under a normal-gamma prior (Murphy 2007, equation 95)."""
    n = len(x)
    strength, shape = STRENGTH + n, SHAPE + n / 2
    away = STRENGTH * n * (x.mean() - mean) ** 2 / strength
    rate = SHAPE * variance + (((x - x.mean()) ** 2).sum() + away) / 2
    value = gammaln(shape) - gammaln(SHAPE) + SHAPE * np.log(SHAPE * variance) - shape * np.log(rate)
    return float(value + (np.log(STRENGTH) - np.log(strength)) / 2 - n / 2 * np.log(2 * np.pi))


def log_evidence_of_levels(count: np.ndarray) -> float:
    """Dirichlet-multinomial, with one pseudo-row of the table's own shares."""
    prior = PSEUDO_ROWS * count / count.sum()
    value = gammaln(prior.sum()) - gammaln(prior.sum() + count.sum())
    return float(value + (gammaln(prior + count) - gammaln(prior)).sum())


def test_the_bound_of_one_component_is_the_evidence():
    table = table_of(3)
    model = ilk.DirichletProcessMixture(1, concentration=2.5, random_state=0).fit(table)
    encoding, n_rows = model._form.encoding, len(table["size"])
    expected = betaln(1 + n_rows, 2.5) - betaln(1, 2.5)  # all rows in the first stick
    for j, name in enumerate(("size", "width")):
        raw = np.array([x for x in table[name] if x is not None])
        x = raw * encoding.power - encoding.centre[j]
        expected += log_evidence_of_numbers(x, x.mean(), x.var())
    kinds = [k for k in table["kind"] if k is not None]
    expected += log_evidence_of_levels(np.array([kinds.count(k) for k in "xyz"], dtype=float))
    assert model.lower_bound_ == pytest.approx(expected, rel=1e-10)


def test_starts_whose_costs_are_no_numbers_are_no_error(monkeypatch):
    whole, calls = dirichlet.run_starts, []

    def without_costs(rows, families, starts, **options):
        calls.append(len(starts))
        runs = whole(rows, families, starts, **options)
        return [replace(run, cost=np.nan) for run in runs] if len(calls) == 1 else runs

    monkeypatch.setattr(dirichlet, "run_starts", without_costs)
    model = ilk.DirichletProcessMixture(4, random_state=0).fit(table_of(0))
    assert calls[1:] == [1]
    assert np.isfinite(model.lower_bound_)


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_found_with_their_number(seed):
    draws = np.random.default_rng(seed)
    truth = np.repeat(np.arange(4), 60)
    table = {
        "size": draws.normal(6.0 * (truth % 2), 1.0),
        "width": draws.normal(6.0 * (truth // 2), 1.0),
        "kind": ["abcd"[t] if draws.random() < 0.8 else "abcd"[draws.integers(4)] for t in truth],
    }
    model = ilk.DirichletProcessMixture(12, random_state=0).fit(table)
    assert model.n_components_ == 4
    assert ari(truth, model.labels_) > 0.97
    np.testing.assert_array_equal(model.predict(table), model.labels_)


def test_gaussians_are_those_of_scikit_learn():
    draws = np.random.default_rng(0)
    X = np.vstack([draws.normal(0, 1, (80, 2)), draws.normal(8, 1, (50, 2))])
    options = {"max_iter": 500, "random_state": 0}
    theirs = BayesianGaussianMixture(n_components=6, **options)
    ours = ilk.DirichletProcessGaussian(6, **options).fit(X)
    assert ari(theirs.fit_predict(X), ours.labels_) == 1.0
    assert (np.diff(np.bincount(ours.labels_)) <= 0).all()
    np.testing.assert_allclose(ours.means_, theirs.means_)

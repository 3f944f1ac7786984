"""Criteria: mclust's figures, the formulas, units that do not matter, singular models that never win."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from scipy import stats

import ilk.measures.criteria as criteria_module
from ilk import measures
from ilk.errors import DataError, UsageError
from tests.conftest import golden

MCLUST = [
    "iris",
    "faithful",
    "diabetes_reaven",
    "banknote_swiss",
    "made_ridges",
    "made_shapes",
    "made_batches",
]


@pytest.mark.parametrize("name", MCLUST)
def test_mclusts_bic_and_icl(name):
    figures = golden(f"mclust_{name}")
    n_cells = 0
    for model, values in figures["bic"].items():
        for loglik, n_parameters, expected in zip(
            figures["loglik"][model], figures["npar"][model], values, strict=True
        ):
            if isinstance(expected, float) and isinstance(loglik, float):
                n_cells += 1
                assert measures.bic(loglik, n_parameters, figures["n"]) == pytest.approx(-expected, rel=1e-9)
    assert n_cells > 50
    chosen = figures["chosen"]
    membership = 1 - np.array(chosen["uncertainty"])[:, None]
    found = measures.icl(chosen["loglik"], chosen["npar"], figures["n"], measures.log_certainty(membership))
    assert found == pytest.approx(-chosen["icl"], rel=1e-9)


def test_the_seeds_form_is_minus_half_of_ours():
    figures = golden("seed_claims")["bic_conventions_iris_VVV_2"]
    found = measures.bic(figures["loglik"], figures["npar"], 150)
    assert found == pytest.approx(figures["smaller_better_form"], rel=1e-9)
    assert found == pytest.approx(-2 * figures["seed_form_l_minus_half_npar_ln_n"], rel=1e-9)


def test_formulas_from_parts():
    loglik, p, n = -123.5, 7, 50
    assert measures.aic(loglik, p) == 247 + 14
    assert measures.caic(loglik, p, n) == pytest.approx(measures.bic(loglik, p, n) + p)
    assert measures.adjusted_bic(loglik, p, n) == pytest.approx(247 + 7 * math.log(52 / 24))
    unsure = [[0.5, 0.5], [0.9, 0.1]]
    assert measures.icl(loglik, p, n, measures.log_certainty(unsure)) > measures.bic(loglik, p, n)
    assert measures.log_certainty(unsure, [2, 0]) == pytest.approx(2 * math.log(0.5))
    blocks = measures.log_certainty(unsure[:1]) + measures.log_certainty(unsure[1:])
    assert blocks == pytest.approx(measures.log_certainty(unsure))


def test_spherical_loglik_is_the_likelihood_it_says():
    generator = np.random.default_rng(3)
    rows, labels = generator.normal(size=(60, 3)) * 5, np.repeat([0, 1, 2], [10, 20, 30])
    within = measures.within_sum_of_squares(rows, labels)
    sd = math.sqrt(within / rows.size)
    total = 0.0
    for k in range(3):
        part = rows[labels == k]
        total += stats.norm(part.mean(axis=0), sd).logpdf(part).sum() + len(part) * math.log(len(part) / 60)
    assert measures.spherical_loglik(within, [10, 20, 30], 3) == pytest.approx(total, rel=1e-12)
    found = measures.kmeans_bic(within, [10, 20, 30], 3)
    assert found == pytest.approx(measures.bic(total, 2 + 9 + 1, 60))
    assert measures.kmeans_bic(within, [10, 20, 30, 0], 3) == found


@pytest.mark.parametrize("scale", [1e-6, 10.0, 1e6])
def test_units_do_not_change_which_k_wins(scale):
    """The seed's loss + K d does: that is shown too."""
    losses = {2: 40.0, 3: 32.0, 4: 30.5}
    sizes = {2: [50, 50], 3: [30, 30, 40], 4: [25] * 4}

    def best(criterion):
        return min(losses, key=criterion)

    ours = best(lambda k: measures.kmeans_bic(losses[k] * scale**2, sizes[k], 2))
    assert ours == best(lambda k: measures.kmeans_bic(losses[k], sizes[k], 2))
    seeds = {best(lambda k, s=s: losses[k] * s**2 + k * 2) for s in (1e-6, 1.0, 10.0)}
    assert len(seeds) > 1


@pytest.mark.parametrize("loglik", [math.inf, -math.inf, math.nan])
def test_a_model_without_a_finite_likelihood_never_wins(loglik):
    for value in (
        measures.bic(loglik, 3, 10),
        measures.aic(loglik, 3),
        measures.caic(loglik, 3, 10),
        measures.adjusted_bic(loglik, 3, 10),
        measures.icl(loglik, 3, 10, -1.0),
    ):
        assert value == math.inf


def test_rows_on_their_centres_never_win():
    assert measures.spherical_loglik(0.0, [1, 1, 1], 2) == math.inf
    assert measures.kmeans_bic(0.0, [1, 1, 1], 2) == math.inf


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: measures.bic(-1.0, 3, 0), UsageError, "n_rows=0"),
        (lambda: measures.bic(-1.0, 3, math.nan), UsageError, "n_rows=nan"),
        (lambda: measures.bic(-1.0, -3, 5), UsageError, "n_parameters=-3"),
        (lambda: measures.icl(-1.0, 3, 5, 0.5), UsageError, "log_certainty=0.5"),
        (lambda: measures.icl(-1.0, 3, 5, math.nan), UsageError, "log_certainty=nan"),
        (lambda: measures.kmeans_bic(-1.0, [2], 1), DataError, "within_ss=-1.0"),
        (lambda: measures.kmeans_bic(math.nan, [2], 1), DataError, "within_ss=nan"),
        (lambda: measures.kmeans_bic(1.0, [], 1), DataError, "one above 0"),
        (lambda: measures.kmeans_bic(1.0, [3, -1], 1), DataError, "from 0"),
        (lambda: measures.kmeans_bic(1.0, [3], 0), DataError, "n_columns=0"),
    ],
)
def test_what_cannot_be_is_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_examples():
    assert doctest.testmod(criteria_module).failed == 0

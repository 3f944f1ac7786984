"""The choice tells the truth: one basis for all figures, and the fit that won as an estimator."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import ilk
from benchmarks.ceiling import apart
from ilk.errors import NoModelError, UsageError
from ilk.measures import ari
from ilk.selection.candidates import OK, Candidate
from ilk.selection.search import no_model, runner_up


def test_the_runner_up_is_behind_on_the_same_rows():
    def cell(k, bic, whole=None):
        return Candidate("gaussian", "VVV", k, OK, bic=bic, bic_all_rows=whole)

    cells = [cell(1, 90.0), cell(2, 70.0, 200.0), cell(3, 60.0, 210.0)]
    assert runner_up(cells, 1) == 2
    alone = [cell(1, 90.0), cell(2, 70.0, 200.0), cell(3, 60.0)]
    assert runner_up(alone, 1) == 0  # the third is better on the sample only


def test_an_error_says_what_became_of_the_fits():
    cells = [Candidate("gaussian", "VVV", k, "singular") for k in (1, 2, 3)]
    assert "shrank onto rows that are alike in a column or lie on a plane (3 of 3 fits)" in str(
        no_model(cells)
    )
    with pytest.raises(NoModelError):
        raise no_model(cells)


def customers(seed, n=5000):
    """Recency, frequency and money, whole numbers with many ties, and 6 % of the rows far off."""
    draws = np.random.default_rng(seed)
    recency = draws.exponential(90, n).astype(int) + 1
    frequency = 1 + draws.negative_binomial(1, 0.15, n)
    money = np.round(frequency * np.exp(draws.normal(3.5, 0.7, n)), 2)
    far = draws.random(n) < 0.06
    frequency[far] += 40
    money[far] *= 6
    recency[far] = draws.integers(1, 15, far.sum())
    return pd.DataFrame({"recency": recency, "frequency": frequency, "money": money}), far


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_customers_whose_components_shrink_onto_ties_are_grouped(seed):
    table, far = customers(seed)
    found = ilk.cluster(table)
    assert ari(far, found.labels) > 0.97
    assert "no-mixture" not in dict(found.warnings)
    chosen = found.summary()["chosen"]
    assert chosen["runner_up"]["bic_difference"] >= 0
    assert chosen["bic_all_rows"] == min(
        c.bic_all_rows for c in found.candidates if c.bic_all_rows is not None
    )


def test_the_chosen_mixture_as_an_estimator():
    X, _ = apart(4, 2, 40, seed=1)
    frame = pd.DataFrame(X, columns=["a", "b"])
    found = ilk.select(frame, thorough=False)
    fitted = found.chosen.estimator()
    assert (fitted.n_components, fitted.structure) == (found.chosen.k, found.chosen.structure)
    assert fitted.bic() == pytest.approx(found.chosen.bic, abs=1e-3)
    assert (fitted.predict(frame) == fitted.labels_).all()
    assert (pickle.loads(pickle.dumps(fitted)).predict(frame) == fitted.labels_).all()
    with pytest.raises(UsageError, match="no fit is kept"):
        found.candidates[(found.winner + 1) % len(found.candidates)].estimator()


def test_select_goes_on_beyond_nine():
    X, _ = apart(15, 2, 30, seed=1)
    assert ilk.select(X, structures="EII", thorough=False).chosen.k == 15
    assert ilk.select(X, k=range(1, 8), structures="EII", thorough=False).ended_by == "limit"

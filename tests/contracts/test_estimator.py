"""scikit-learn's own checks on every estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import ilk

ESTIMATORS = [ilk.KMeans(3, n_init=2), ilk.KMedians(3, n_init=2), ilk.TrimmedKMeans(3, n_init=2)]


@pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)

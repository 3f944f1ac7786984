"""scikit-learn's own checks on every estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import ilk

ESTIMATORS = [
    ilk.KMeans(3, n_init=2),
    ilk.KMedians(3, n_init=2),
    ilk.TrimmedKMeans(3, n_init=2),
    ilk.DPMeans(n_clusters=3),
    ilk.BinaryDPMeans(binarize=0.0),
    ilk.CRAFT(n_clusters=3),
    ilk.GaussianMixture(2),
    ilk.StudentMixture(2, max_iter=100),
    ilk.LaplaceMixture(2),
    ilk.AssortedMixture(2, n_init=3),
    ilk.AssortedMixture(),
    ilk.MixedMixture(2),
    ilk.DirichletProcessMixture(3),
    ilk.DirichletProcessGaussian(3),
    ilk.InformationBottleneck(3, n_init=2),
    ilk.MeanShift(),
    ilk.BlurringMeanShift(),
    ilk.SpectralClustering(3),
    ilk.TypicalCuts(),
    ilk.AffinityPropagation(),
    ilk.HierarchicalClustering(3),
]


def expected_failures(estimator):
    """What is known to fail, and why."""
    if isinstance(estimator, ilk.CRAFT):
        return {
            "check_sample_weight_equivalence_on_dense_data": "the printed walk depends on order and chance"
        }
    if isinstance(estimator, ilk.AssortedMixture) and estimator.n_components == "auto":
        why = "the check shuffles rows, and of two clusters of equal weight the one with the earlier row is first"
        return {"check_sample_weight_equivalence_on_dense_data": why}
    return {}


@pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator, check):
    check(estimator)

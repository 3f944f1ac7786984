"""scikit-learn's own checks on every estimator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import ilk

ESTIMATORS = [
    ilk.Clusterer(),
    ilk.Clusterer(3, method="k-means"),
    ilk.KMeans(3, n_init=2),
    ilk.KMedians(3, n_init=2),
    ilk.TrimmedKMeans(3, n_init=2),
    ilk.DPMeans(target_clusters=3),
    ilk.BinaryDPMeans(binarize=0.0),
    ilk.CRAFT(target_clusters=3),
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
    if isinstance(estimator, ilk.AssortedMixture):
        classifiers = "the check asks for a classifier's tags wherever there is a predict_proba"
        fails = {f"check_estimator_sparse_{kind}": classifiers for kind in ("array", "matrix")}
        counts = "cells of a sparse matrix are 0 and 1 or counts, and the check's are neither"
        fails["check_sample_weight_equivalence_on_sparse_data"] = counts
        if estimator.n_components == "auto":
            order = "the check shuffles rows, and of two clusters of equal weight the one with the earlier row is first"
            fails["check_sample_weight_equivalence_on_dense_data"] = order
        return fails
    if isinstance(estimator, ilk.Clusterer) and estimator.n_clusters == "auto":
        why = "K is tried up to a quarter of the rows, and rows are counted, not their weights"
        return {"check_sample_weight_equivalence_on_dense_data": why}
    return {}


EVERY = parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
NAMES, CASES = EVERY.args[0], list(EVERY.args[1])


def of_arrays_elsewhere(case):
    """Whether a check skips itself unless SciPy takes the arrays of other libraries, which is set before its import."""
    _, check = getattr(case, "values", case)
    return "array_api" in check.func.__name__


ARRAY_API = [case for case in CASES if of_arrays_elsewhere(case)]


@pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")
@pytest.mark.parametrize(NAMES, [c for c in CASES if not of_arrays_elsewhere(c)], **EVERY.kwargs)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_scikit_learn_contract_of_array_namespaces():
    code = "from tests.contracts.test_estimator import ARRAY_API as cases\n"
    code += "for estimator, check in cases: check(estimator)\nprint(len(cases))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(ARRAY_API)

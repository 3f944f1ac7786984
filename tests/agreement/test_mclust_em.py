"""EM from stored partitions against mclust 6.0.0: the first and the converged log-likelihood of every structure."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import ilk
from ilk import kernels
from ilk.engines.memory import MemoryRows
from ilk.families.covariance import Structure
from ilk.families.gaussian import Gaussian
from ilk.fitting.loop import Stop
from ilk.fitting.restarts import all_from_labels
from ilk.fitting.small_tables import run_quick
from ilk.fitting.table_moments import table_moments
from tests.conftest import at_hand, golden, numeric_table
from tests.contracts.test_rows import rows_of

# Without a compiler every pass takes a millisecond: one column has to do.
REFERENCE = ("iris", "faithful", "diabetes_reaven", "banknote_swiss")
MADE = ("made_ridges", "made_shapes", "made_batches")
ONE_COLUMN = ("acidity", "made_line")
SETS = (*REFERENCE, *MADE, *ONE_COLUMN) if kernels.COMPILED else ONE_COLUMN
CLOSED = {"EII", "VII", "EEI", "EVI", "VVI", "EEE", "EEV", "EVV", "VVV", "E", "V"}
ITERATIVE = {"VEI", "VEE", "EVE", "VEV"}
STOP = Stop(tolerance=1e-12, max_passes=3000)


@cache
def table(name: str) -> tuple[MemoryRows, np.ndarray, float]:
    X, _ = numeric_table(name)
    rows = rows_of(X, 2)
    return rows, table_moments(rows).variance, X.size * float(np.log(rows.encoding.power))


def logliks(name: str, structure: str, partition: list[int], k: int) -> tuple[float, float, str, np.ndarray]:
    rows, variance, offset = table(name)
    family = Gaussian(Structure.parse(structure), variance)
    starts = all_from_labels(rows, family, np.asarray(partition) - 1, k)
    runs = run_quick(rows, [family] * len(starts), starts, STOP)
    run = min(runs, key=lambda run: run.cost)
    cost = np.array([record.cost for record in run.trace])
    return offset - run.trace[0].cost, offset - run.cost, run.status, cost


@pytest.mark.parametrize("name", at_hand(SETS))
def test_from_every_stored_partition(name):
    tried = 0
    for key, entry in golden(f"mclust_{name}")["em_from_start"].items():
        for structure, theirs in entry["models"].items():
            if theirs.get("loglik_converged") is None or structure == "VVE":
                continue
            first, last, status, cost = logliks(name, structure, entry["partition"], entry["G"])
            where = f"{name} {key} {structure}"
            tried += 1
            assert status == "ok", where
            assert (np.diff(cost) <= 1e-9 * np.abs(cost[:-1])).all(), where
            if structure in CLOSED:
                assert first == pytest.approx(theirs["loglik_after_first_mstep"], rel=1e-9), where
            if structure in CLOSED:
                assert last == pytest.approx(theirs["loglik_converged"], rel=1e-6), where
            else:
                assert structure in ITERATIVE
                assert last >= theirs["loglik_converged"] - 1e-4 * abs(last), where
    assert tried > 0


@pytest.mark.skipif(
    not kernels.COMPILED, reason="thousands of passes of a millisecond each without a compiler"
)
@pytest.mark.parametrize("name", at_hand(REFERENCE))
def test_the_common_orientation_reaches_its_reference(name):
    partitions = golden(f"mclust_{name}")["em_from_start"]
    starts = golden("vve_reference")["sets"][name]
    assert len(starts) > 1
    for key, value in starts.items():
        _, last, status, _ = logliks(name, "VVE", partitions[key]["partition"], partitions[key]["G"])
        assert status == "ok"
        assert last >= value["loglik_converged"] - 1e-3, (name, key)


@pytest.mark.parametrize("name", [*MADE, "made_line"] if kernels.COMPILED else ["made_line"])
def test_the_common_orientation_is_not_below_that_of_mclust(name):
    """Its M-step stops short (`vve_reference`), so its figure is a bound; E and V have nothing to turn."""
    for key, entry in golden(f"mclust_{name}")["em_from_start"].items():
        for structure in {"VVE", "VVV", "V"} & entry["models"].keys():
            theirs = entry["models"][structure]["loglik_default_tol"]
            if theirs is not None:
                _, last, status, _ = logliks(name, structure, entry["partition"], entry["G"])
                assert status == "ok"
                assert last >= theirs - 1e-3, (key, structure)


@pytest.mark.parametrize("name", [*MADE, "made_line"] if kernels.COMPILED else ["made_line"])
def test_parameters_at_the_end(name):
    """Shares, means and covariances of the estimator, component by component, where the M-step has a closed form."""
    X, _ = numeric_table(name)
    tried = 0
    for key, entry in golden(f"mclust_{name}")["em_from_start"].items():
        for structure, theirs in entry["models"].items():
            if structure not in CLOSED or theirs["loglik_converged"] is None:
                continue
            init = np.array(entry["partition"]) - 1
            model = ilk.GaussianMixture(
                entry["G"], structure=structure, init=init, tol=1e-13, max_iter=5000, threads=1
            )
            model.fit(X)
            own, other = np.argsort(model.weights_), np.argsort(theirs["pro"])
            close = {"rtol": 2e-4, "atol": 2e-4 * X.std(), "err_msg": f"{key} {structure}"}
            np.testing.assert_allclose(model.weights_[own], np.array(theirs["pro"])[other], **close)
            means = np.array(theirs["mean"]).reshape(model.means_.shape)
            np.testing.assert_allclose(model.means_[own], means[other], **close)
            shapes = np.array(theirs.get("sigma") or theirs["sigmasq"]).reshape(model.covariances_.shape)
            np.testing.assert_allclose(model.covariances_[own], shapes[other], **close)
            tried += 1
    assert tried >= 6


def test_iris_in_three_groups_beats_mclust():
    partition = golden("mclust_iris")["em_from_start"]["target"]["partition"]
    _, last, _, _ = logliks("iris", "VVE", partition, 3)
    assert last == pytest.approx(-214.0532, abs=1e-3)

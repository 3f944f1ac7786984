"""EM from stored partitions against mclust 6.0.0: the first and the converged log-likelihood of every structure."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from ilk import kernels
from ilk.engines.memory import MemoryRows
from ilk.families.covariance import Structure
from ilk.families.gaussian import Gaussian
from ilk.fitting.loop import Stop
from ilk.fitting.quick import run_quick
from ilk.fitting.restarts import all_from_labels
from ilk.fitting.table_moments import table_moments
from tests.conftest import golden, numeric_table
from tests.contracts.test_rows import rows_of

# Without a compiler every pass takes a millisecond: one table has to do.
SETS = (
    ("iris", "faithful", "diabetes_reaven", "banknote_swiss", "acidity") if kernels.COMPILED else ("acidity",)
)
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


@pytest.mark.parametrize("name", SETS)
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
def test_the_common_orientation_reaches_its_reference():
    reference = golden("vve_reference")
    sets = reference["sets"]
    reached = 0
    for name, starts in sets.items():
        if name not in SETS:
            continue
        partitions = golden(f"mclust_{name}")["em_from_start"]
        for key, value in starts.items():
            target = value["loglik_converged"] if isinstance(value, dict) else value
            _, last, status, _ = logliks(name, "VVE", partitions[key]["partition"], partitions[key]["G"])
            assert status == "ok"
            assert last >= target - 1e-3, (name, key)
            reached += 1
    assert reached > 0


def test_iris_in_three_groups_beats_mclust():
    partition = golden("mclust_iris")["em_from_start"]["target"]["partition"]
    _, last, _, _ = logliks("iris", "VVE", partition, 3)
    assert last == pytest.approx(-214.0532, abs=1e-3)

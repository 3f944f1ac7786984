"""GaussianMixture with the structure and K that `select` chose reaches the optimum that was found there."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ilk
from benchmarks.time_to_answer import made
from ilk import kernels
from tests.conftest import numeric_table

pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="searches take minutes without a compiler")


@pytest.mark.parametrize(
    ("name", "structure", "k"),
    [("diabetes_reaven", "VVE", 6), ("faithful", "EEE", 3), ("iris", "VEV", 3), ("wine", "VVI", 4)],
)
def test_a_cell_of_select_is_reached_by_the_estimator(name, structure, k):
    X, _ = numeric_table(name)
    found = ilk.select(X, k=k, structures=structure, threads=1)
    fitted = ilk.GaussianMixture(k, structure=structure, random_state=0, threads=1).fit(X)
    assert fitted.bic() <= found.chosen.bic + 1e-6 * abs(found.chosen.bic)


def test_groups_that_partitions_miss_are_found_by_a_cut():
    X = np.column_stack([*made(16).values()])
    found = ilk.select(X, k=3, structures="VVI", scale="standard", threads=1)
    fitted = ilk.GaussianMixture(3, structure="VVI", scale="standard", random_state=0, threads=1).fit(X)
    assert fitted.bic() <= found.chosen.bic + 1e-6 * abs(found.chosen.bic)  # 87 above without


def test_a_named_start_and_a_number_of_starts_stay_as_they_were():
    X = np.random.default_rng(0).normal(size=(60, 2))
    assert len(ilk.GaussianMixture(2, n_init=3, random_state=0).fit(X).fit_.starts) == 3
    assert len(ilk.GaussianMixture(2, init="tree", random_state=0).fit(X).fit_.starts) == 1
    assert len(ilk.GaussianMixture(2, noise=True, random_state=0).fit(X).fit_.starts) <= 5


@pytest.mark.parametrize(("structure", "k"), [("VVE", 3), ("EVE", 4), ("VVI", 4), ("VEE", 5)])
def test_a_cell_of_the_wines_is_reached_or_warned_of(structure, k):
    """Starts of structures with common axes end in many places there."""
    X, _ = numeric_table("wine")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    found = ilk.select(X, k=k, threads=1)
    best = next(c.bic for c in found.candidates if (c.structure, c.k) == (structure, k))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fitted = ilk.GaussianMixture(k, structure=structure, random_state=0, threads=1).fit(X)
    warned = "seldom-reached" in {getattr(one.message, "code", "") for one in told}
    assert warned or fitted.bic() <= best + 1e-6 * abs(best)


def test_a_clear_optimum_is_not_warned_of():
    X, _ = numeric_table("faithful")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ilk.GaussianMixture(2, structure="VVV", random_state=0, threads=1).fit(X)

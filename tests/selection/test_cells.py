"""A cell of the search (structure, K) is not worse because K was left open: the same starts, however it is reached."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from ilk import kernels
from ilk.engines.memory import MemoryRows
from ilk.selection.mixtures import ladder
from ilk.selection.units import search_in_units
from ilk.table.condition import condition
from tests.conftest import numeric_table

SAME = 1e-6  # relative difference of BIC

pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="searches take minutes without a compiler")


def overlapping(seed):
    """Groups of different shapes that overlap, some of their columns skewed."""
    draws = np.random.default_rng(seed)
    k, columns = int(draws.integers(2, 6)), int(draws.integers(2, 6))
    parts = [
        draws.normal(draws.normal(0, 3, columns), draws.uniform(0.3, 2.0, columns), (60, columns))
        @ np.linalg.qr(draws.normal(size=(columns, columns)))[0]
        for _ in range(k)
    ]
    X = np.vstack(parts)
    X[:, 0] = np.exp(X[:, 0] / 4) if seed % 2 else X[:, 0]
    return X


def searched(X, ks, most=None):
    rows = MemoryRows(X, condition(X, scale="standard"), threads=1)
    return search_in_units(rows, ks, 0, most=most)[0]


def behind_given(X):
    """By how much, relative to BIC, the automatic search stands above a search of one K: the worst of three K."""
    found = searched(X, range(1, 10), most=len(X) // 4)
    near = [k for k in (found.chosen.k - 1, found.chosen.k, found.chosen.k + 1) if k > 0]
    lowest = min(searched(X, [k]).chosen.bic for k in near)
    return (found.chosen.bic - lowest) / abs(lowest)


@pytest.mark.parametrize("name", ["diabetes_reaven", "banknote_swiss", "wine", "faithful"])
def test_known_tables_have_no_better_model_at_a_k_that_is_given(name):
    assert behind_given(numeric_table(name)[0]) < SAME


@pytest.mark.parametrize("seed", [7, 22, 26, 32])  # on these an open K was the worse
def test_made_tables_have_no_better_model_at_a_k_that_is_given(seed):
    assert behind_given(overlapping(seed)) < SAME


@pytest.mark.parametrize("seed", range(3))
def test_a_table_with_few_columns_that_matter_is_as_good_as_with_its_k(seed):
    """Three groups in 20 of 300 columns: the answer has the K that it has when it is given, at the same BIC."""
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(150, 300))
    X[:, :20] += np.repeat(draws.normal(0, 2, (3, 20)), 50, axis=0)
    found = ilk.cluster(X, threads=1)
    given = ilk.cluster(X, k=3, threads=1, merge="none")
    assert found.k == 3
    assert found.summary()["chosen"]["bic"] <= given.summary()["chosen"]["bic"] * (1 + SAME)


def test_smaller_k_are_there_to_be_cut_and_are_not_chosen():
    assert ladder((3,)) == (1, 2, 3)
    found = searched(overlapping(0), [4])
    assert found.chosen.k == 4
    assert {c.k for c in found.candidates if c.eligible} == {4}

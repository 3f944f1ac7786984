"""Gower's dissimilarity against R's daisy, and by hand where cells are missing."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from ilk.measures.gower import gower
from tests.conftest import at_hand, golden, table_path


def plants(name: str) -> tuple[np.ndarray, np.ndarray]:
    """V1-V3 binary and V4 nominal as codes; V5, V6 ordered and V7, V8 ratios as numbers."""
    with table_path(name).open(newline="") as file:
        cells = np.array([[float(cell) for cell in line] for line in list(csv.reader(file))[1:]])
    codes = cells[:, :4].astype(int)
    codes[:, 3] -= 1
    return cells[:, 4:], codes


@pytest.mark.parametrize("name", at_hand(["flower", "made_garden"]))
def test_dissimilarities_of_daisy(name):
    stored = golden(f"r_gower_{name}")
    for case, asymmetric in [("gower_default", ()), ("gower_V3_asymmetric", (2,))]:
        found = gower(*plants(name), asymmetric=asymmetric)
        np.testing.assert_allclose(found, np.array(stored[case]), atol=1e-12, err_msg=case)


def test_blanks_leave_their_column_out_of_a_pair():
    numbers = np.array([[0.0, 1.0], [np.nan, 3.0], [10.0, np.nan]])
    codes = np.array([[0], [1], [-1]])
    found = gower(numbers, codes)
    assert found[0, 1] == pytest.approx((1 + 1) / 2)  # the second number and the category
    assert found[0, 2] == pytest.approx(1.0)  # the first number alone
    assert np.isnan(found[1, 2])  # nothing in common
    np.testing.assert_array_equal(np.diag(found), 0)


def test_a_constant_column_counts_as_agreement():
    assert gower([[1.0, 5.0], [3.0, 5.0]])[0, 1] == 0.5


def test_units_do_not_matter():
    numbers, codes = np.random.default_rng(0).normal(size=(12, 3)), np.arange(24).reshape(12, 2) % 3
    np.testing.assert_allclose(gower(numbers * [1e6, 1e-6, 3] + 7, codes), gower(numbers, codes), atol=1e-8)

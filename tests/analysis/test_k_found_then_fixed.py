"""The K that was found, given again, gives the same groups; merge="none" gives so many components."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ilk
from ilk.measures import ari
from tests.conftest import numeric_table

DATA = Path(__file__).parents[1] / "data"


def skewed(seed=0):
    """Two skewed groups, each of several components."""
    draws = np.random.default_rng(seed)
    return np.exp(draws.normal(0, 0.7, (600, 2))) + np.repeat([[0.0, 0.0], [30.0, 0.0]], 300, axis=0)


def test_a_k_reached_by_merging_is_reached_again():
    found = ilk.cluster(skewed(), method="gaussian")
    assert found.k == 2
    assert found.components > 2
    fixed = ilk.cluster(skewed(), method="gaussian", k=found.k)
    assert fixed.components == found.components
    assert (fixed.labels == found.labels).all()
    assert fixed.verdict.word == found.verdict.word
    assert fixed.summary()["chosen"]["as_asked"]


def test_no_merging_means_so_many_components():
    found = ilk.cluster(skewed(), method="gaussian", k=2, merge="none")
    assert (found.k, found.components) == (2, 2)


def test_a_k_reached_because_groups_dissolve_is_reached_again():
    """Dips leave three groups of the banknotes, of which some dissolve; the answer has two, and so has K = 2."""
    X, _ = numeric_table("banknote_swiss")
    found = ilk.cluster(X)
    fixed = ilk.cluster(X, k=found.k)
    assert fixed.k == found.k
    assert (fixed.labels == found.labels).all()
    assert fixed.verdict.word == found.verdict.word


def test_components_that_merge_into_weak_groups_give_way_to_one_for_each():
    """Four components of the wines merge into three groups that do not hold; three components are the cultivars."""
    found = ilk.cluster(DATA / "wine.csv", truth="target")
    assert (found.k, found.components, found.verdict.word) == (3, 3, "fair")
    assert found.summary()["truth"]["ari"] > 0.9
    assert [reason.code for reason in found.verdict.reasons] == ["fewer-components"]
    chosen = found.summary()["chosen"]["bic"]
    assert min(c["bic"] for c in found.summary()["candidates"] if c["bic"] is not None) < chosen
    fixed = ilk.cluster(DATA / "wine.csv", truth="target", k=3)
    assert (fixed.labels == found.labels).all()
    assert fixed.verdict.word == "fair"


def test_another_k_is_a_number_of_components():
    found = ilk.cluster(skewed(), method="gaussian", k=4)
    assert (found.k, found.components) == (4, 4)


@pytest.mark.parametrize("name", ["votes", "penguins"])
def test_the_k_found_on_known_tables(name):
    found = ilk.cluster(DATA / f"{name}.csv", ignore="target")
    if found.k > 1:
        fixed = ilk.cluster(DATA / f"{name}.csv", ignore="target", k=found.k)
        assert ari(found.labels, fixed.labels) == 1.0

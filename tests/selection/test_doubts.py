"""What speaks against groups that are separated and stable, each finding on tables of which it is known."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from ilk import kernels
from ilk.measures import ari
from ilk.model.grouped import Grouped
from ilk.selection.doubts import RIGHT, Between, Doubts, Finer, expected_agreement, torn_part
from ilk.selection.reasons import finer_groups, merged_otherwise, overlap, torn_between
from ilk.selection.valley import NUMBERS


@pytest.mark.parametrize("apart", [1.5, 2.5, 4.0])
def test_the_expected_agreement_is_that_of_groups_drawn_by_the_memberships(apart):
    """Against draws: labels by the larger density, groups as the density has them."""
    draws = np.random.default_rng(0)
    group = np.repeat([0, 1], [3000, 6000])
    position = draws.normal(size=9000) + apart * group
    costs = np.stack([position**2 / 2 - np.log(1 / 3), (position - apart) ** 2 / 2 - np.log(2 / 3)], axis=1)
    expected = expected_agreement(costs, np.ones(9000))
    assert expected == pytest.approx(ari(costs.argmin(axis=1), group), abs=0.02)


def test_rows_that_are_weighted_agree_as_rows_that_are_repeated():
    draws = np.random.default_rng(1)
    costs, weight = draws.normal(size=(50, 3)) * 4, draws.integers(1, 4, 50)
    repeated = expected_agreement(np.repeat(costs, weight, axis=0), np.ones(weight.sum()))
    assert expected_agreement(costs, weight.astype(float)) == pytest.approx(repeated, rel=1e-12)


def test_each_finding_has_its_words():
    doubts = Doubts(Finer(3, 0.94, 0.36, 1), Between(0, 1, 0.25), 0.7)
    weak = finer_groups(doubts, "AB", NUMBERS) + overlap(doubts, RIGHT)
    assert [reason.code for reason in weak] == ["finer-groups", "overlap"]
    assert "B may be several groups" in weak[0].text
    assert "(separation 0.36, threshold 0.40)" in weak[0].text
    assert "0.70, threshold 0.80" in weak[1].text
    (fair,) = merged_otherwise(doubts, "AB", NUMBERS)
    assert (fair.code, "A is not separated from B either" in fair.text) == ("between-groups", True)
    assert not finer_groups(Doubts(), "AB", NUMBERS) + merged_otherwise(Doubts(), "AB", NUMBERS)
    assert not overlap(Doubts(), RIGHT)


@pytest.mark.parametrize(
    ("away", "n_rows", "torn"), [(0.60, 16.0, True), (0.70, 16.0, False), (0.60, 5.0, False)]
)
def test_a_dissolved_group_that_lies_as_near_to_another_is_of_neither(away, n_rows, torn):
    valleys = [[None, 1.6, 0.5], [1.6, None, away], [0.5, away, None]]
    finer = Grouped(None, None, np.array([0, 1, 2, 0]), True)
    coarse = Grouped(None, None, np.array([0, 1, 0, 0]), True)
    found = torn_part(finer, valleys, np.array([100.0, 84.0, n_rows]), [2], coarse)
    assert (found is not None) == torn
    if found is not None:
        (weak,) = torn_between(Doubts(torn=found), "AB")
        assert weak.text == "16 rows of A may be of B (separation 0.50 from the rest of A, 0.60 from B)"


@pytest.mark.skipif(not kernels.COMPILED, reason="takes a minute without a compiler")
def test_groups_that_overlap_are_weak_however_many_rows_there_are():
    """Three deviations apart a fifteenth of the rows is on the wrong side of any border."""
    draws = np.random.default_rng(2)
    X = draws.normal(size=(3000, 2)) + np.repeat([[0.0, 0.0], [2.8, 0.0]], 1500, axis=0)
    verdict = ilk.cluster(X, method="gaussian", k=2, merge="none", threads=1).verdict
    assert "overlap" in {reason.code for reason in verdict.reasons}
    assert verdict.word == "weak"
    far = X + np.repeat([[0.0, 0.0], [2.0, 0.0]], 1500, axis=0)
    assert ilk.cluster(far, method="gaussian", threads=1).verdict.word == "solid"


@pytest.mark.skipif(not kernels.COMPILED, reason="takes a minute without a compiler")
def test_a_component_of_stray_rows_may_be_of_either_group():
    """Heavy tails of two groups make one wide component, which is merged into one of them."""
    draws = np.random.default_rng(5)
    core = draws.normal(size=(400, 2)) / np.sqrt(draws.chisquare(2.5, 400) / 2.5)[:, None]
    X = core + np.repeat([[0.0, 0.0], [9.0, 0.0]], 200, axis=0)
    result = ilk.cluster(X, method="gaussian", threads=1)
    codes = {reason.code for reason in result.verdict.reasons}
    assert result.verdict.word != "solid"
    assert codes & {"between-groups", "fewer-components", "overlap"}


@pytest.mark.skipif(not kernels.COMPILED, reason="takes a minute without a compiler")
def test_three_groups_of_which_two_show_no_dip_are_not_told_as_two_for_sure():
    """Of 100 rows the two that are four deviations apart show no dip on some draws; they return in resamples."""
    told = []
    for seed in range(12):
        draws = np.random.default_rng([seed, 3])
        label = np.repeat([0, 1, 2], [40, 30, 30])
        X = draws.normal(size=(100, 2)) + np.array([[0.0, 0.0], [11.0, 0.0], [11.0, 3.8]])[label]
        result = ilk.cluster(X, method="gaussian", threads=1)
        if result.verdict.word == "solid":
            told.append(ari(result.labels, label))
    assert told
    assert min(told) >= RIGHT


@pytest.mark.skipif(not kernels.COMPILED, reason="takes a minute without a compiler")
def test_fewer_components_do_not_answer_that_there_may_be_more_groups():
    """Four groups of some 25 rows, two of them without a dip: as three, one component each, they would be "fair"."""
    label = np.repeat([0, 1, 2, 3], [30, 26, 24, 20])
    told = set()
    for seed in range(6):
        draws = np.random.default_rng([seed, 7])
        X = draws.normal(size=(100, 2)) + np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0], [12.0, 3.6]])[label]
        result = ilk.cluster(X, method="gaussian", threads=1)
        codes = {reason.code for reason in result.verdict.reasons}
        if ari(result.labels, label) < RIGHT:
            assert result.verdict.word == "weak"
            told |= codes
    assert "finer-groups" in told
    assert "fewer-components" not in told

"""The verdict: its words at their thresholds, and what it says of tables with known answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ilk
from benchmarks.acceptance import known
from benchmarks.made import CLAIMS, CLOUDS, MIXED_CLOUDS, mixed_cloud, mixed_parted, parted, strewn
from ilk import kernels
from ilk.fitting.restarts import Recipe
from ilk.model.grouped import Grouped
from ilk.selection.candidates import Candidate, Search
from ilk.selection.doubts import Doubts
from ilk.selection.grouping import Grouping
from ilk.selection.merging import Level, Merge
from ilk.selection.valley import NUMBERS
from ilk.selection.verdict import judge

SEEDS = range(3 if kernels.COMPILED else 1)


def case(
    valley=0.8,
    stable=(0.9, 0.9),
    n_rows=500.0,
    icl_k=2,
    gain=0.0,
    status="ok",
    sizes=(300, 200),
    agreement=1.0,
    errors=None,
):
    """Two groups of which only what matters is known."""
    cells = tuple(
        Candidate("gaussian", "VVV", k, status if k == 2 else "ok", bic=9.0, icl=0.0 if k == icl_k else 1.0)
        for k in (1, 2)
    )
    found = Search(
        candidates=cells,
        winner=1,
        runner_up=0,
        fit=None,
        recipe=Recipe("g", None),
        sharpness=None,
        n_rows_searched=500,
        interrupted=False,
    )
    return found, Grouping(
        grouped=Grouped(None, None, np.array([0, 1]), True),
        labels=np.zeros(2),
        size=np.array(sizes, dtype=float),
        n_groups=2,
        merge=Merge(0.4, ((0,), (1,)), (Level(2, valley, ((0,), (1,))),)),
        thresholds=NUMBERS,
        valleys=[[None, valley], [valley, None]],
        weakest=None,
        stable=stable,
        n_rows=n_rows,
        skewness=np.array([2.0, 0.0]),
        split_gain=gain,
        doubts=Doubts(agreement=agreement),
        errors=errors,
    )


def word(**options):
    return judge(*case(**options), "AB", ["spend", "visits"]).word


def codes(**options):
    return {reason.code for reason in judge(*case(**options), "AB", ["spend", "visits"]).reasons}


def test_words_at_their_thresholds():
    assert word() == "solid"
    assert word(valley=0.55, stable=(0.75, 0.75)) == "solid"
    assert word(stable=(0.9, 0.74)) == "fair"
    assert word(valley=0.5499) == "fair"  # held by stability
    assert word(valley=0.5499, n_rows=299.0) == "weak"
    assert word(valley=0.5499, stable=(0.64, 0.65)) == "weak"
    assert word(valley=0.39) == "weak"  # what a merge would have joined
    assert word(icl_k=1) == "weak"
    assert word(gain=2.1) == "fair"
    assert word(n_rows=29.0) == "fair"
    assert word(status="ok_time_limit") == "fair"
    assert word(stable=(0.9, 0.5)) == "fair"
    assert word(stable=(0.9, 0.4999)) == "weak"  # one group dissolves: instability alone is enough
    assert word(stable=None) == word(stable=None, valley=0.5) == "not tested"
    assert word(stable=None, valley=0.39) == word(stable=None, icl_k=1) == "weak"


def test_stability_counts_beyond_its_standard_error():
    assert word(stable=(0.9, 0.8), errors=(0.0, 0.05)) == "solid"
    assert word(stable=(0.9, 0.8), errors=(0.0, 0.06)) == "fair"
    assert word(stable=(0.9, 0.6), errors=(0.0, 0.1)) == "fair"
    assert word(stable=(0.9, 0.6), errors=(0.0, 0.11)) == "weak"
    assert codes(stable=(0.9, 0.6), errors=(0.0, 0.11)) == {"dissolved-group", "unstable-group"}


def test_groups_that_overlap_have_to_be_beyond_other_doubts():
    assert word(agreement=0.95) == "solid"
    assert word(agreement=0.9499) == word(agreement=0.8) == "fair"
    assert word(agreement=0.7999) == "weak"
    assert word(agreement=0.9, valley=0.5) == word(agreement=0.9, gain=3.0) == "fair"
    assert word(agreement=0.8999, valley=0.5) == word(agreement=0.8999, gain=3.0) == "weak"
    assert codes(agreement=0.94) == codes(agreement=0.7) == {"overlap"}
    assert (
        codes(agreement=0.94, valley=0.5) == codes(agreement=0.89, valley=0.5) == {"not-separated", "overlap"}
    )


def test_reasons_have_codes():
    assert codes() == set()
    assert codes(valley=0.5) == {"not-separated"}
    assert codes(stable=(0.9, 0.5)) == {"unstable-group"}
    assert codes(stable=(0.9, 0.49)) == {"dissolved-group"}
    assert codes(stable=(0.7, 0.49)) == {"dissolved-group", "unstable-group"}
    assert codes(stable=None) == {"not-tested"}
    assert codes(icl_k=1) == {"icl-one"}
    assert codes(gain=3.0) == codes(status="ok_time_limit") == {"search-unsettled"}
    assert codes(n_rows=20.0, valley=0.3, sizes=(12, 8)) == {"few-rows"}


def test_sentences():
    def said(**options):
        return judge(*case(**options), "AB", ["spend", "visits"]).sentence

    assert said() == (
        "2 groups, clearly separated (lowest separation A-B 0.80, threshold 0.55); each is recovered with mean Jaccard "
        "0.90 or more in bootstrap resamples"
    )
    assert said(valley=0.47, stable=(0.9, 0.58)) == (
        "A and B are not clearly separated (separation 0.47, threshold 0.55); "
        "B is not stable in bootstrap resamples (mean Jaccard 0.58, threshold 0.75)"
    )
    assert said(stable=(0.61, 0.2)) == (
        "B dissolves in bootstrap resamples (mean Jaccard 0.20, threshold 0.50); "
        "A is not stable in bootstrap resamples (mean Jaccard 0.61, threshold 0.75)"
    )
    assert said(valley=0.3, sizes=(300, 6)) == "too few rows to separate A from B: B has 6"
    found, grouping = case(valley=0.2)
    slices = replace(grouping, n_groups=1, stable=None)
    verdict = judge(found, slices, "AB", ["spend", "visits"])
    assert verdict.sentence == (
        "the table looks like a single group (skewed: spend). 2 segments are given for "
        "convenience: arbitrary segments, not distinct groups"
    )
    assert (verdict.word, verdict.separation, verdict.stability_min) == ("no clear groups", None, None)


def test_the_level_that_is_parted_clearly_is_told():
    found, two = case(valley=0.5)
    levels = (Level(3, 0.5, ((0,), (2,))), Level(2, 1.2, ((0, 2), (1,))))
    valleys = [[None, 0.9, 0.5], [0.9, None, 0.9], [0.5, 0.9, None]]
    three = replace(
        two,
        n_groups=3,
        size=np.array([200.0, 200.0, 100.0]),
        merge=Merge(0.4, ((0,), (1,), (2,)), levels),
        valleys=valleys,
        stable=(0.9, 0.9, 0.9),
    )
    told = judge(found, three, "ABC", []).sentence
    assert told == (
        "A and C are not clearly separated (separation 0.50, threshold 0.55); "
        "merged to 2 groups they are clearly separated (1.20)"
    )


@pytest.mark.parametrize("name", CLOUDS)
def test_no_groups_are_claimed_of_one_cloud(name):
    for seed in SEEDS:
        result = ilk.cluster(CLOUDS[name](np.random.default_rng([seed, 100, 2]), 100, 2))
        assert result.verdict.word not in CLAIMS, seed


@pytest.mark.skipif(not kernels.COMPILED, reason="a search takes seconds without a compiler")
def test_groups_that_are_parted_are_found():
    results = [(ilk.cluster(X), truth) for X, truth in (parted(seed, 6.0) for seed in range(5))]
    assert sum(result.k == truth.max() + 1 for result, truth in results) >= 4
    assert sum(result.verdict.word in CLAIMS for result, _ in results) >= 4


@pytest.mark.parametrize("kind", MIXED_CLOUDS)
def test_no_groups_are_claimed_of_one_cloud_of_mixed_columns(kind):
    assert ilk.cluster(mixed_cloud(kind, 0, 150)).verdict.word not in CLAIMS


@pytest.mark.skipif(not kernels.COMPILED, reason="a search takes seconds without a compiler")
def test_groups_of_mixed_columns_are_found():
    results = [
        (ilk.cluster(X), truth) for X, truth in (mixed_parted(seed, (0.0, 0.005)) for seed in range(4))
    ]
    assert sum(result.k == truth.max() + 1 for result, truth in results) >= 3
    assert sum(result.verdict.word in CLAIMS for result, _ in results) >= 3


@pytest.mark.skipif(not kernels.COMPILED, reason="a search takes seconds without a compiler")
@pytest.mark.parametrize(
    "name",
    [
        "monk3_full",
        "craft_binary_disjoint",
        pytest.param("votes", marks=pytest.mark.slow),
    ],
)
def test_tables_with_known_answers(name):
    (count,) = known((name,))
    assert count.holds, count


@pytest.mark.skipif(not kernels.COMPILED, reason="a search takes seconds without a compiler")
def test_stray_points_change_no_k_and_make_no_group():
    for seed in range(3):
        X, truth = strewn(seed, 6.0, 0.03)
        result = ilk.cluster(X)
        assert result.k == truth.max() + 1, seed
        assert all((truth[result.labels == g] >= 0).mean() > 0.5 for g in range(result.k)), seed


def test_order_units_and_weights_leave_the_verdict():
    X, _ = parted(2, 4.0)
    draws = np.random.default_rng(0)
    base = ilk.cluster(X, k=range(1, 5))

    def same(other):
        assert (other.k, other.components) == (base.k, base.components)
        assert other.verdict.word == base.verdict.word
        assert other.verdict.separation == pytest.approx(base.verdict.separation, rel=1e-6)
        assert other.verdict.stability_mean == pytest.approx(base.verdict.stability_mean, abs=0.02)

    same(ilk.cluster(X[draws.permutation(len(X))], k=range(1, 5)))
    same(ilk.cluster(X * 2.0 ** np.arange(X.shape[1]), k=range(1, 5)))
    weight = draws.integers(1, 3, len(X))
    twice = np.repeat(X, weight, axis=0)
    base = ilk.cluster(twice, k=range(1, 5))
    frame = {**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "w": weight}
    same(ilk.cluster(frame, weight="w", k=range(1, 5)))

"""Hard components that lose their rows: reopened at the dearest rows, dropped where that is in vain."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score as adjusted_rand

import ilk
from ilk.errors import IlkWarning
from ilk.families.centroid import Means
from ilk.families.laplace import Laplace
from ilk.families.student import Student
from ilk.fitting.loop import COMPONENT_VANISHED, DEGENERATE, FEWER_DISTINCT_ROWS, OK, Run, Stop, run_starts
from ilk.fitting.restarts import from_labels
from ilk.fitting.small_tables import run_quick
from tests.contracts.test_family import assert_never_rises
from tests.families.test_gaussian import NAMES, clusters, family_for, rows_of
from tests.oracles.classification_em import classification_em

STOP = Stop(max_passes=200)


def assert_every_component_has_rows(run: Run, X: np.ndarray) -> None:
    label = run.family.assign(run.params, rows_of(X).take(np.arange(len(X))))[0]
    assert len(np.unique(label)) == len(run.params.mean)


@pytest.mark.parametrize("seed", range(40))
def test_free_covariances_end_where_the_plain_version_does(seed):
    draw = np.random.default_rng(seed)
    k, d = int(draw.integers(2, 6)), int(draw.integers(1, 4))
    X, _ = clusters(seed, n=40, d=d, k=k, away=2.0)
    label = draw.integers(0, k, size=40).astype(np.int32)
    rows = rows_of(X)
    family = family_for(rows, "VVV", membership="hard")
    start = from_labels(rows, family, label, k)
    expected, n_components, n_reopened = classification_em(X, label, k)
    for run_all in (run_starts, run_quick):
        run = run_all(rows, [family], [start], stop=STOP)[0]
        found = family.assign(run.params, rows.take(np.arange(40)))[0]
        assert adjusted_rand(found, expected) == 1.0
        assert len(run.params.mean) == n_components
        assert sum(record.n_reopened for record in run.trace) >= n_reopened - k
        assert (run.status == COMPONENT_VANISHED) == (n_components < k)


def test_the_plain_version_reopens_and_drops():
    """So that the test above is about something."""
    ends = []
    for seed in range(40):
        draw = np.random.default_rng(seed)
        k, d = int(draw.integers(2, 6)), int(draw.integers(1, 4))
        X, _ = clusters(seed, n=40, d=d, k=k, away=2.0)
        ends.append((k, *classification_em(X, draw.integers(0, k, size=40), k)[1:]))
    assert sum(reopened > 0 for _, _, reopened in ends) >= 8
    assert sum(left < k for k, left, _ in ends) >= 3


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data())
def test_only_a_table_without_spread_is_singular(name, data):
    k, d = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 3))
    X, _ = clusters(data.draw(st.integers(0, 99)), n=30, d=d, k=k, away=1.5)
    if data.draw(st.booleans()):
        X = np.round(X)  # ties
    weight = np.linspace(0.2, 3.0, len(X)) if data.draw(st.booleans()) else None
    rows = rows_of(X, weight)
    family = family_for(rows, name, membership="hard")
    label = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=30, max_size=30)), dtype=np.int32)
    start = from_labels(rows, family, label, k)
    for run_all in (run_starts, run_quick):
        run = run_all(rows, [family], [start], stop=STOP)[0]
        assert_never_rises(run)
        assert np.isfinite(run.params.mean).all()
        if run.reason == DEGENERATE:  # then no component at all can have this structure
            assert run.status == "singular"
            alone = from_labels(rows, family, np.zeros(30, dtype=np.int32), 1)
            assert alone.status != OK or name[:1] == "E" or len(np.unique(X, axis=0)) < 12
            continue
        assert run.status in {OK, COMPONENT_VANISHED, FEWER_DISTINCT_ROWS}
        assert (run.status == OK) == (len(run.params.mean) == k)
        assert run.params.mixing.sum() == pytest.approx(1.0, rel=1e-12)
        assert_every_component_has_rows(run, X)


@pytest.mark.parametrize("seed", range(10))
def test_round_components_of_equal_share_are_lloyd_also_where_centres_lose_their_rows(seed):
    X, _ = clusters(seed, n=80, k=4, away=2.0)
    label = (
        np.random.default_rng(seed).integers(0, 4, size=80).astype(np.int32)
    )  # of 6: two begin without rows
    rows = rows_of(X)
    family, means = family_for(rows, "EII", membership="hard", equal_mixing=True), Means()
    start = from_labels(rows, family, label, 6)
    lloyd = run_starts(rows, [means], [means.start(start.mean)], stop=STOP)[0]
    block = rows.take(np.arange(80))
    expected = means.assign(lloyd.params, block)[0]
    assert len(np.unique(expected)) == 6
    for run_all in (run_starts, run_quick):
        run = run_all(rows, [family], [start], stop=STOP)[0]
        assert np.array_equal(family.assign(run.params, block)[0], expected)
        assert (np.diff([record.cost for record in run.trace]) < 1e-12).all()


@pytest.mark.parametrize("mixture", [ilk.GaussianMixture, ilk.StudentMixture])
def test_lost_components_are_told(mixture):
    """Fourteen rows have spread in five columns for two groups at most."""
    X = np.random.default_rng(0).normal(size=(14, 5))
    with pytest.warns(IlkWarning, match="of the 5 asked for") as told:
        found = mixture(5, membership="hard", init=np.maximum(np.arange(14) - 9, 0)).fit(X)
    assert "component-vanished" in {warning.message.code for warning in told}
    assert found.status_ == COMPONENT_VANISHED
    assert 1 <= len(found.weights_) <= 2
    assert found.weights_.sum() == pytest.approx(1.0)
    assert set(found.labels_) == set(range(len(found.weights_)))
    assert np.isfinite(found.bic())


def test_lost_components_are_told_also_where_small_ones_are_merged():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.warns(IlkWarning) as told:
        found = ilk.GaussianMixture(
            12, membership="hard", min_weight=8, init=np.arange(30) % 12, structure="VII"
        ).fit(X)
    assert {"component-vanished", "small-components"} <= {warning.message.code for warning in told}
    assert np.bincount(found.labels_).min() >= 8


def test_a_start_that_kept_all_components_is_preferred():
    X, label = clusters(3, n=60, k=3, away=15.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ilk.GaussianMixture(3, membership="hard", random_state=0).fit(X)
    assert found.status_ == OK
    assert adjusted_rand(found.labels_, label) == 1.0


@pytest.mark.parametrize("kind", [Student, Laplace])
def test_kin_of_gaussians_are_reopened_too(kind):
    X, label = clusters(5, n=60, k=3, away=6.0)
    rows = rows_of(X)
    family = family_for(rows, "VVI", kind=kind, membership="hard")
    start = from_labels(rows, family, np.where(label == 2, 1, label), 4)  # two begin without rows
    run = run_starts(rows, [family], [start], stop=STOP)[0]
    assert run.status == OK
    assert any(record.n_reopened for record in run.trace)
    assert_never_rises(run)
    assert_every_component_has_rows(run, X)

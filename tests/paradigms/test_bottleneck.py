"""The information bottleneck: the ends of its curve, a functional that never rises, mixtures as a special case."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import entr

import ilk
from ilk.errors import DataError
from ilk.measures import ari
from ilk.paradigms.bottleneck import Joint, cells_as_levels, squeeze

counts = arrays(
    np.float64, st.tuples(st.integers(2, 12), st.integers(2, 6)), elements=st.integers(0, 9).map(float)
).filter(lambda table: table.sum() > 0)


def information(joint: np.ndarray) -> float:
    """I(X;Y) = H(X) + H(Y) - H(X,Y)."""
    share = joint / joint.sum()
    return float(entr(share.sum(axis=0)).sum() + entr(share.sum(axis=1)).sum() - entr(share).sum())


@settings(max_examples=80, deadline=None)
@given(
    table=counts, k=st.integers(1, 5), beta=st.sampled_from([0.1, 1.0, 3.0, 20.0, 500.0]), hard=st.booleans()
)
@example(
    table=np.array([[4.0, 5, 2, 9, 0, 5], [0] * 6, [0, 0, 0, 0, 0, 1], [2, 7, 4, 7, 0, 3], [0] * 6]),
    k=3,
    beta=20.0,
    hard=False,
)  # groups that end near each other are one
def test_the_functional_never_rises(table, k, beta, hard):
    joint = Joint.of_counts(table)
    found = squeeze(joint, k, beta, 0, deterministic=hard, n_starts=2)
    trace = np.array(found.trace)
    assert (np.diff(trace) <= 1e-9 * (1 + np.abs(trace[1:]))).all()
    np.testing.assert_allclose(found.membership.sum(axis=1), 1.0)
    kept = (found.membership * joint.row[:, None]).T @ joint.given
    assert found.relevance == pytest.approx(information(kept), abs=1e-6)
    assert found.relevance <= joint.information + 1e-9
    if not hard:
        own = found.membership * joint.row[:, None]
        assert found.compression == pytest.approx(information(own), abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(table=counts, hard=st.booleans())
@example(table=np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), hard=True)  # rows that share no level
def test_the_ends_of_the_curve(table, hard):
    joint = Joint.of_counts(table)
    assert joint.information == pytest.approx(information(table), abs=1e-12)
    all_kept = squeeze(joint, len(table), 1e7, 0, deterministic=hard, n_starts=2)
    assert all_kept.relevance == pytest.approx(joint.information, abs=1e-6)
    nothing = squeeze(joint, len(table), 1e-3, 0, deterministic=hard, n_starts=2)
    assert nothing.relevance == pytest.approx(0.0, abs=1e-6)
    assert len(nothing.groups.share) == 1


def topics(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Counts of 60 documents about three things, 50 words each."""
    draws = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 2], 20)
    shares = np.array([[6, 3, 1, 1, 1, 1], [1, 1, 6, 3, 1, 1], [1, 1, 1, 1, 3, 6]]) / 13
    return np.array([draws.multinomial(50, shares[t]) for t in truth], dtype=float), truth


@pytest.mark.parametrize("deterministic", [False, True])
def test_topics_are_found_in_counts(deterministic):
    table, truth = topics()
    model = ilk.InformationBottleneck(3, cells="counts", deterministic=deterministic, random_state=0).fit(
        table
    )
    assert ari(truth, model.labels_) > 0.95
    assert model.beta_ == 50.0
    np.testing.assert_array_equal(model.predict(table), model.labels_)
    np.testing.assert_allclose(model.predict_proba(table), model.memberships_, atol=1e-6)


def test_needless_groups_vanish_in_the_deterministic_form():
    table, truth = topics()
    model = ilk.InformationBottleneck(12, beta=12.0, cells="counts", deterministic=True, random_state=0).fit(
        table
    )
    assert model.n_clusters_ == 3
    assert ari(truth, model.labels_) > 0.9


def test_the_soft_form_is_em_for_multinomials():
    """At beta = counts in a row a fixed point is one of EM: memberships follow from the shares by Bayes' rule."""
    table, _ = topics(1)
    model = ilk.InformationBottleneck(3, cells="counts", random_state=0, tol=0.0).fit(table)
    scores = np.log(model.weights_) + table @ np.log(model.level_shares_).T
    scores -= scores.max(axis=1, keepdims=True)
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.memberships_, expected, atol=1e-4)
    np.testing.assert_allclose(model.weights_, expected.mean(axis=0), atol=1e-4)


def test_tables_of_mixed_columns():
    draws = np.random.default_rng(0)
    truth = np.repeat([0, 1], 30)
    table = {
        "size": np.where(np.arange(60) == 4, np.nan, draws.normal(4.0 * truth, 1.0)),
        "kind": [None if i == 9 else "ab"[t] for i, t in enumerate(truth)],
        "mark": [str(x) for x in draws.integers(2, size=60)],
        "grade": draws.normal(3.0 * truth, 1.0),
    }
    model = ilk.InformationBottleneck(2, random_state=0).fit(table)
    assert ari(truth, model.labels_) > 0.85
    np.testing.assert_array_equal(model.predict(table), model.labels_)


def test_cells_become_levels_by_nearness():
    knots = [np.array([0.0, 1.0, 3.0])]
    found = cells_as_levels(
        np.array([[2.0], [-5.0], [np.nan]]), np.array([[1], [0], [-1]]), knots, np.array([0, 2])
    )
    np.testing.assert_allclose(found, [[0, 0.5, 0.5, 0, 1], [1, 0, 0, 1, 0], [0, 0, 0, 0, 0]])


def test_negative_counts_are_refused():
    with pytest.raises(DataError, match="Negative values in data") as refused:
        ilk.InformationBottleneck(2, cells="counts").fit([[1.0, -1.0], [2.0, 0.0]])
    assert refused.value.code == "not-counts"

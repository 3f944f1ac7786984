"""Rare pieces are looked at on more rows: their valleys, their return in resamples, and the groups that come of it."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from ilk.engines.memory import MemoryRows
from ilk.families.centroid import Means
from ilk.measures import ari
from ilk.model.grouped import Grouped
from ilk.selection.samples import RARE_ROWS, CloseUp, Samples, Scope
from ilk.selection.valley import MOST_ROWS, NumberGround
from ilk.table.condition import condition

N = 60_000


def table(n_rare, apart, seed=0):
    """Two groups, and a rare one on a line with them."""
    draws = np.random.default_rng(seed)
    label = draws.integers(0, 2, N)
    label[draws.permutation(N)[:n_rare]] = 2
    return draws.normal(size=(N, 2)) + np.array([[0.0, 0.0], [8.0, 0.0], [8.0 + apart, 0.0]])[label], label


def grouped_of(X):
    """The rows, and centres at the three groups, in two groups."""
    rows = MemoryRows(X, condition(X), threads=1)
    centres = rows.encoding.apply(np.array([[0.0, 0.0], [8.0, 0.0], [20.0, 0.0]]))
    return rows, Grouped(Means(), Means().start(centres), np.array([0, 1, 1]), False)


def test_a_rare_piece_is_seen_on_the_wider_sample():
    X, _ = table(120, 12.0)
    rows, grouped = grouped_of(X)
    samples = Samples.of(rows, grouped.family, grouped.params, Scope(0))
    assert samples.plain.n_rows == MOST_ROWS
    assert samples.wide is not None
    assert samples.wide.n_rows == N
    ground = samples.ground(grouped.family, grouped.params)
    assert isinstance(ground, CloseUp)
    rare = ground.project([1], [2])
    assert rare.of_second.sum() == 120  # all of them, and three times as many that face them
    assert (~rare.of_second).sum() == 360
    assert rare.valley > 1
    assert ground.plain.project([1], [2]).valley < rare.valley / 2
    common = ground.project([0], [1])
    assert np.array_equal(common.position, ground.plain.project([0], [1]).position)


def test_the_valley_of_a_rare_slice_of_one_cloud_stays_low():
    X = np.random.default_rng(3).normal(size=(N, 2))
    rows = MemoryRows(X, condition(X), threads=1)
    centres = rows.encoding.apply(np.array([[0.0, 0.0], [5.6, 0.0]]))  # beyond 2.8: one row in 400
    family = Means()
    samples = Samples.of(rows, family, family.start(centres), Scope(0))
    assert samples.wide is not None
    assert samples.ground(family, family.start(centres)).project([0], [1]).valley < 0.40


def test_the_plain_sample_serves_where_no_piece_is_rare():
    X, _ = table(20_000, 12.0)
    rows, grouped = grouped_of(X)
    samples = Samples.of(rows, grouped.family, grouped.params, Scope(0))
    assert samples.wide is None
    assert isinstance(samples.ground(grouped.family, grouped.params), NumberGround)
    assert samples.drawn(500, grouped).n_rows == 500
    small = MemoryRows(X[:1000], condition(X), threads=1)
    assert Samples.of(small, grouped.family, grouped.params, Scope(0)).wide is None


def test_rows_for_resamples_are_drawn_by_group():
    X, _ = table(120, 12.0)
    rows, grouped = grouped_of(X)
    grouped = Grouped(grouped.family, grouped.params, np.arange(3), False)
    samples = Samples.of(rows, grouped.family, grouped.params, Scope(0))
    drawn = samples.drawn(1500, grouped)
    label = grouped.label(drawn)
    assert np.bincount(label)[2] == RARE_ROWS
    assert drawn.weights[label == 2].sum() == pytest.approx(120)
    assert drawn.weights.sum() == pytest.approx(N)
    far = grouped.family.start(np.vstack([grouped.params.centre, [[1e3, 1e3]]]))
    nobody = Grouped(grouped.family, far, np.arange(4), False)
    assert samples.drawn(1500, nobody).n_rows == drawn.n_rows


def test_a_group_of_one_row_in_five_hundred_is_found():
    X, label = table(120, 20.0, seed=1)
    result = ilk.cluster(X, k=range(1, 5), threads=2)
    assert result.k == 3
    assert ari(result.labels[label == 2], np.zeros(120)) == 1.0
    assert sorted(result.summary()["groups"][g]["rows"] for g in range(3))[0] == 120

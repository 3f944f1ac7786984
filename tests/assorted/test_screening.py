"""Screened starts of wide tables: scores by their definition, weights as repeats, and groups in few of many columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from ilk.assorted import screening
from ilk.assorted.embedding import EmbeddedRows
from ilk.assorted.fit import cost_from
from ilk.assorted.problem import AssortedProblem, ModelOptions
from ilk.assorted.racing import raced
from ilk.assorted.screening import LINKED_SIZE, Screen, _standardised, lloyd, screened
from ilk.assorted.sharing import ColumnCosts
from ilk.assorted.switches import relevant
from ilk.random import stream
from ilk.table.block import Block, Encoding
from tests.assorted.test_growth import binary as drawn_codes
from tests.assorted.test_growth import found_in, planned, rows_of


def groups(
    seed: int, n: int = 150, d: int = 300, q: int = 5, k: int = 3, sd: float = 3.0, apart: float = 0.0
):
    """Rows of d standard Normal columns, the centres of k groups apart in the first q of them."""
    draws = np.random.default_rng(seed)
    centre = draws.normal(0, sd, (k, q))
    if apart:
        gaps = np.linalg.norm(centre[:, None] - centre[None], axis=2)[np.triu_indices(k, 1)]
        centre *= apart / gaps.min()
    label = draws.permutation(np.arange(n) % k)
    raw = draws.standard_normal((n, d))
    raw[:, :q] += centre[label]
    return raw, label


def screen_of(
    points: np.ndarray, weight: np.ndarray | None = None, column: np.ndarray | None = None
) -> Screen:
    weight = np.ones(len(points)) if weight is None else weight
    column = np.arange(points.shape[1]) if column is None else column
    return Screen(_standardised(points, weight), weight, column, int(column.max()) + 1)


@pytest.mark.parametrize("n_rows", [30, 200])
def test_dependence_is_the_excess_of_squared_correlations(n_rows):
    draws = np.random.default_rng(0)
    points = draws.normal(size=(n_rows, 60))
    points[:, 1] += points[:, 0]
    r = np.corrcoef(points.T)
    excess = (r**2).sum(axis=1) - 1 - 59 / (n_rows - 1)
    np.testing.assert_allclose(
        screen_of(points).dependence, excess / (np.sqrt(2 * 59) / n_rows), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("n_rows", [8, 90])
def test_the_axes_of_one_column_do_not_count_for_its_dependence(n_rows):
    draws = np.random.default_rng(1)
    points = draws.normal(size=(n_rows, 9))
    column = np.array([0, 1, 1, 2, 2, 2, 3, 4, 4])
    r = np.corrcoef(points.T)
    expected = np.zeros(5)
    for c in range(5):
        mine, others = column == c, column != c
        e = others.sum()
        z = ((r[np.ix_(mine, others)] ** 2).sum(axis=1) - e / (n_rows - 1)) / (np.sqrt(2 * e) / n_rows)
        expected[c] = z.mean()
    np.testing.assert_allclose(screen_of(points, column=column).dependence, expected, rtol=1e-9)


def test_scores_see_weights_as_repeats():
    draws = np.random.default_rng(2)
    points, weight = draws.normal(size=(40, 70)), draws.integers(1, 4, 40)
    one = screen_of(points, weight.astype(float))
    two = screen_of(np.repeat(points, weight, axis=0))
    np.testing.assert_allclose(one.dependence, two.dependence, rtol=1e-9)
    np.testing.assert_allclose(one.modes, two.modes, rtol=1e-9)


def test_a_column_of_two_modes_has_the_largest_gain():
    draws = np.random.default_rng(3)
    points = draws.normal(size=(150, 50))
    points[:, 7] += 5 * (np.arange(150) % 2)
    modes = screen_of(points).modes
    assert modes.argmax() == 7
    x = np.sort(_standardised(points, np.ones(150))[:, 7])
    gains = []
    for a in range(8, 143):
        sides = (x[:a], x[a:])
        cost = sum(
            (len(s) + 1) / 2 * np.log((np.square(s - s.mean()).sum() + 1) / (len(s) + 1)) for s in sides
        )
        gains.append(-cost + sum(len(s) * np.log(len(s) / 150) for s in sides))
    assert modes[7] == pytest.approx(max(gains), rel=1e-9)


def test_categories_have_no_modes():
    column = np.repeat(np.arange(10), 2)
    screen = screen_of(np.random.default_rng(0).normal(size=(30, 20)), column=column)
    assert np.isneginf(screen.modes).all()
    assert screen.partitions(2, stream(0, "test"))


def test_rows_as_points_are_those_written_out_column_by_column():
    draws = np.random.default_rng(4)
    codes = np.column_stack([draws.integers(-1, 3, 50), draws.integers(0, 2, 50)]).astype(np.int32)
    share = np.array([0.5, 0.3, 0.2, 0.6, 0.4])
    columns = ColumnCosts(
        floor=np.zeros(1), level_start=np.array([0, 3, 5]), share=share, penalty=np.zeros(3)
    )
    raw = draws.normal(size=(50, 1))
    rows = EmbeddedRows.of_block(Block(raw, Encoding(1.0, np.zeros(1)), codes=codes), columns)
    assert rows.column.tolist() == [0, 1, 1, 1, 2, 2]
    for level in range(5):
        c, t = (0, level) if level < 3 else (1, level - 3)
        away = np.where(codes[:, c] < 0, 0.0, (codes[:, c] == t) - share[level]) / np.sqrt(share[level])
        np.testing.assert_allclose(rows.points[:, 1 + level], away / np.sqrt((2, 1)[c]), rtol=1e-14)


def points_of(raw: np.ndarray, weight: np.ndarray | None = None) -> EmbeddedRows:
    return EmbeddedRows(raw, np.arange(raw.shape[1]), weight)


def test_partitions_do_not_depend_on_the_order_of_rows_nor_on_how_they_are_counted():
    raw, _ = groups(0, n=60, d=80)
    weight = np.random.default_rng(0).integers(1, 3, 60)
    order = np.random.default_rng(1).permutation(60)
    first = screened(points_of(raw, weight.astype(float)), 3, stream(0, "test")).labels
    moved = screened(points_of(raw[order], weight[order].astype(float)), 3, stream(0, "test")).labels
    repeated = screened(points_of(np.repeat(raw, weight, axis=0)), 3, stream(0, "test")).labels
    assert len(first) > 3
    for one, two, three in zip(first, moved, repeated, strict=True):
        assert np.array_equal(one[order], two)
        assert np.array_equal(np.repeat(one, weight), three)


def test_partitions_have_the_parts_asked_for():
    raw, _ = groups(1, n=60, d=80)
    for label in screened(points_of(raw), 4, stream(0, "test")).labels:
        assert np.bincount(label, minlength=4).min() >= 2
        assert label.max() == 3


def test_a_screened_partition_is_near_the_groups():
    raw, label = groups(2)
    found = screened(points_of(raw), 3, stream(0, "test")).labels
    assert max(adjusted_rand_score(label, one) for one in found) > 0.9


def test_many_rows_are_screened_on_a_sample_and_end_on_all(monkeypatch):
    monkeypatch.setattr(screening, "SCREENED_ROWS", 200)
    raw, label = groups(3, n=900, d=60)
    parts = screened(points_of(raw), 3, stream(0, "test"))
    assert parts.rows is not None
    assert parts.weight.sum() == 200
    assert {len(one) for one in parts.labels} == {len(parts.rows)}
    rows = rows_of(raw)
    scene = AssortedProblem.plain(rows, planned(rows), ModelOptions())
    assert scene.family.wide
    best = raced(scene.rows, scene.family, parts, 3)[0]
    block = scene.rows.take(np.arange(900))
    assert adjusted_rand_score(label, scene.family.assign(best.measured, block)[0]) > 0.95


@pytest.mark.parametrize(
    "shape",
    [{}, {"n": 100, "d": 1000, "q": 20, "apart": 6.0}],
    ids=["150x300", "100x1000"],
)
def test_a_search_ends_no_higher_than_from_the_groups_themselves(shape):
    raw, label = groups(100, **shape)
    found = found_in(raw)
    assert len(found.params) == 3
    assert adjusted_rand_score(label, found.fit.labels) > 0.9
    assert found.cost <= cost_from(found, label.astype(np.int32), 3) + 1
    assert relevant(found.clusters.group).sum() <= shape.get("q", 5) + 1


def test_a_given_k_uses_the_same_starts():
    raw, label = groups(101)
    found = found_in(raw, k=3)
    assert adjusted_rand_score(label, found.fit.labels) > 0.9


def test_wide_noise_is_one_cluster():
    draws = np.random.default_rng(0)
    assert len(found_in(draws.normal(size=(150, 300))).params) == 1
    codes = drawn_codes(np.full((150, 200), 0.5), 0)
    assert len(found_in(np.empty((150, 0)), codes).params) == 1


def test_binary_groups_in_few_columns_are_found():
    label = np.arange(300) % 2
    chance = np.random.default_rng(5).uniform(0.2, 0.8, (1, 200)) * np.ones((300, 1))
    chance[:, :8] = np.where(label, 0.9, 0.1)[:, None]
    found = found_in(np.empty((300, 0)), drawn_codes(chance, 5))
    assert adjusted_rand_score(label, found.fit.labels) > 0.9


def test_only_wide_tables_are_screened():
    for shape, wide in {(300, 39): False, (300, 40): True, (100, 21): True, (100, 20): False}.items():
        rows = rows_of(np.random.default_rng(0).normal(size=shape))
        assert AssortedProblem.plain(rows, planned(rows), ModelOptions()).family.wide == wide


def test_row_order_does_not_change_the_answer_of_a_wide_table():
    raw, _ = groups(104, n=90, d=120)
    order = np.random.default_rng(0).permutation(90)
    one, two = found_in(raw), found_in(raw[order])
    assert two.cost == pytest.approx(one.cost, rel=1e-9)
    assert adjusted_rand_score(one.fit.labels[order], two.fit.labels) == 1.0


def test_correlations_beyond_chance_find_groups_that_all_of_them_hide():
    """62 of 100 rows with 20 of 1,000 columns that tell: a resample, in which the other starts found nothing."""
    raw, label = groups(114, n=100, d=1000, q=20, apart=6.0)
    some = np.unique(np.random.default_rng(6).integers(0, 100, 100))
    screen = screen_of(raw[some])
    labels = [
        screen._refined(lloyd(points, screen.weight, 3, stream(0, "linked")), 3, LINKED_SIZE)
        for points in screen._linked(2)
    ]
    assert max(adjusted_rand_score(label[some], one) for one in labels) > 0.9

"""Valleys and verdicts of wide tables: rows left out of their own line, relevant columns only, groups that return."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import ilk
from ilk.assorted.transform import Category, TransformPlan
from ilk.measures.dip import dip
from ilk.selection.left_out import LEAST_VARIANCE, LeftOut, LeftOutOdds
from ilk.selection.samples import MOST_ALONE, thresholds_between
from ilk.selection.valley import NUMBERS, NumberGround
from ilk.table.block import Block, Encoding
from tests.assorted.test_screening import groups


def ground_of(points: np.ndarray, label: np.ndarray, weight: np.ndarray | None = None) -> LeftOut:
    block = Block(points, Encoding(1.0, np.zeros(points.shape[1])), weight=weight)
    return LeftOut(**vars(NumberGround.of(block, label, seed=0)))


def by_hand(ground: LeftOut, row: int) -> float:
    """The discriminant fitted without a row, at that row."""
    x, label, weight = ground.spread, ground.label, ground.weight
    rest = np.arange(len(x)) != row
    means = [np.average(x[rest & (label == g)], axis=0, weights=weight[rest & (label == g)]) for g in (0, 1)]
    whole = [np.average(x[label == g], axis=0, weights=weight[label == g]) for g in (0, 1)]
    squares = sum(weight[label == g] @ (x[label == g] - whole[g]) ** 2 for g in (0, 1))
    s2 = np.maximum(squares / weight.sum(), LEAST_VARIANCE)
    a, b = means
    return float(((b - a) / s2 * (x[row] - (a + b) / 2)).sum())


@pytest.mark.parametrize("weighted", [False, True])
def test_each_row_lies_where_a_line_drawn_without_it_puts_it(weighted):
    draws = np.random.default_rng(0)
    points, label = draws.normal(size=(40, 30)), np.arange(40) % 2
    weight = draws.uniform(0.5, 2, 40) if weighted else None
    ground = ground_of(points, label, weight)
    seen = ground.project([0], [1])
    np.testing.assert_allclose(
        seen.position, [by_hand(ground, row) for row in range(40)], rtol=1e-9, atol=1e-12
    )


def test_halves_of_noise_are_parted_by_a_line_of_their_own_and_by_none_without_them():
    draws = np.random.default_rng(1)
    points, label = draws.normal(size=(150, 2000)), draws.integers(0, 2, 150)
    honest = ground_of(points, label)
    told = NumberGround(**vars(honest))
    assert told.project([0], [1]).gap > 5
    assert honest.project([0], [1]).gap < 1
    assert honest.project([0], [1]).valley < NUMBERS.merge


def test_true_groups_stay_apart_without_their_rows():
    raw, label = groups(0, n=120, d=40, q=40, k=2, sd=1.0)
    assert ground_of(raw, label).project([0], [1]).valley > NUMBERS.clear


def odds_of(codes: np.ndarray, label: np.ndarray) -> LeftOutOdds:
    n = codes.shape[1]
    yes = codes.mean(axis=0)
    categories = tuple(
        Category(
            name=f"c{j}", source=j, kind="levels", keys=(0, 1), names=("a", "b"), weight=(1 - yes[j], yes[j])
        )
        for j in range(n)
    )
    plan = TransformPlan((), categories, (), float(len(codes)))
    return LeftOutOdds.of(codes, plan, label, np.ones(len(codes)), 0)


def test_categories_of_noise_are_not_parted_where_rows_are_left_out():
    draws = np.random.default_rng(2)
    codes, label = draws.integers(0, 2, (150, 600)), draws.integers(0, 2, 150)
    ground = odds_of(codes, label)
    assert ground.width == 1200
    assert ground.project([0], [1]).gap < 1
    codes[:, :60] = (draws.random((150, 60)) < np.where(label, 0.85, 0.15)[:, None]).astype(int)
    assert odds_of(codes, label).project([0], [1]).valley > ground.thresholds.clear


def test_counts_of_a_row_are_taken_off_its_own_group():
    draws = np.random.default_rng(3)
    codes, label = draws.integers(0, 2, (20, 15)), np.arange(20) % 2
    ground = odds_of(codes, label)
    both = np.ones(20, dtype=bool)
    for row in (0, 7):
        mine = label == label[row]
        rest = mine & (np.arange(20) != row)
        expected = np.log((ground.levels[rest].sum(axis=0) + ground.share) / (rest.sum() + 1))
        np.testing.assert_allclose(ground._log_shares(mine, both)[row], expected, rtol=1e-12)


def test_a_line_chosen_among_many_columns_must_part_more_than_the_deepest_of_uniform_ones():
    assert NUMBERS.among(1) == NUMBERS
    assert NUMBERS.among(50).merge == NUMBERS.merge
    draws = np.random.default_rng(0)
    even = np.ones(150)
    deepest = [max(dip(draws.random(150), even) for _ in range(50)) * np.sqrt(150) for _ in range(100)]
    assert 0.9 <= np.mean(np.array(deepest) < NUMBERS.among(50).clear) < 1
    assert NUMBERS.among(2000).clear < 0.85


# --- whole answers


def test_a_wide_table_of_numbers_is_answered_by_the_assorted_model_alone():
    raw, label = groups(102)
    result = ilk.cluster(raw, threads=1)
    assert result.k == 3
    assert adjusted_rand_score(label, result.labels) > 0.9
    assert {c.method for c in result.candidates} == {"assorted"}
    assert result.verdict.word != "weak"
    assert result.verdict.stability_mean > 0.9


def test_uniform_noise_has_a_valley_but_does_not_return():
    """The most bimodal of 300 uniform columns parts the rows; resamples have another one."""
    result = ilk.cluster(np.random.default_rng(0).random((150, 300)), threads=1)
    assert result.verdict.word == "weak"
    if result.k > 1:
        assert "unstable-group" in {reason.code for reason in result.verdict.reasons}


@pytest.mark.parametrize("kind", ["normal", "factors"])
def test_wide_noise_has_no_groups(kind):
    draws = np.random.default_rng(3)
    noise = draws.standard_normal((150, 200))
    if kind == "factors":
        noise += draws.standard_normal((150, 3)) @ draws.standard_normal((3, 200))
    result = ilk.cluster(noise, threads=1)
    assert result.k == 1 or result.verdict.word == "weak"


def test_whole_weights_of_a_wide_table_are_repeats():
    raw, _ = groups(103, n=80, d=60, q=6)
    weight = np.random.default_rng(0).integers(1, 3, 80)
    names = [f"x{j}" for j in range(60)]
    counted = ilk.cluster({**dict(zip(names, raw.T, strict=True)), "w": weight}, weight="w", threads=1)
    repeated = ilk.cluster(dict(zip(names, np.repeat(raw, weight, axis=0).T, strict=True)), threads=1)
    assert counted.k == repeated.k
    assert np.array_equal(np.repeat(counted.labels, weight), repeated.labels)
    assert counted.verdict.word == repeated.verdict.word


def test_a_label_left_among_the_columns_does_not_hide_the_others():
    """Constant in every group, its ties pulled apart it would make one even band of all rows."""
    draws = np.random.default_rng(0)
    label = np.repeat([0, 1, 2], 50)
    raw = draws.normal(size=(150, 300))
    raw[:, :20] += np.array([0, 2.2, -2.2])[label][:, None]
    table = {**{f"x{j}": raw[:, j] for j in range(300)}, "cls": label}
    result = ilk.cluster(table, threads=1)
    assert result.k == 3
    assert adjusted_rand_score(label, result.labels) == 1.0


def line_ground(points: np.ndarray, label: np.ndarray) -> NumberGround:
    block = Block(points, Encoding(1.0, np.zeros(points.shape[1])))
    ground = NumberGround.of(block, label, seed=0)
    return replace(ground, thresholds=NUMBERS.among(300), by_several=NUMBERS)


@pytest.mark.parametrize(("apart", "by_one"), [([4.0, 0.3, 0.3], True), ([2.0, 2.0, 2.0], False)])
def test_a_line_that_one_column_bears_has_the_mark_of_the_deepest_column(apart, by_one):
    """And one that independent columns bear together that of any line: by chance they do not agree."""
    draws, label = np.random.default_rng(3), np.arange(150) % 2
    ground = line_ground(draws.normal(size=(150, 3)) + label[:, None] * np.array(apart), label)
    assert (ground.borne_by_one([0], [1]) > MOST_ALONE) == by_one
    doubtful, clear = [[None, 0.6], [0.6, None]], [[None, 0.9], [0.9, None]]
    mark = thresholds_between(ground, [[0], [1]], doubtful)
    assert mark == (NUMBERS.among(300) if by_one else NUMBERS)
    assert thresholds_between(ground, [[0], [1]], clear) == NUMBERS
    assert thresholds_between(replace(ground, by_several=None), [[0], [1]], doubtful) == NUMBERS.among(300)


def test_columns_that_say_the_same_bear_a_line_as_one():
    draws, label = np.random.default_rng(4), np.arange(150) % 2
    one = draws.normal(size=150) + 3 * label
    ground = line_ground(one[:, None] + 0.1 * draws.normal(size=(150, 4)), label)
    assert ground.borne_by_one([0], [1]) > MOST_ALONE

"""The valley between two groups, and the merge of pieces that have none."""

from __future__ import annotations

import numpy as np
import pytest

from ilk.selection.merging import MergePath, lowest, merge_pieces, numbered, valley_matrix, weakest_pair
from ilk.selection.projection import LEAST_KEPT, Projection, facing
from ilk.selection.valley import (
    NumberGround,
    OddsGround,
    canonical,
    filled,
    untied,
)
from ilk.table.block import Block, Encoding


def block_of(X, weight=None):
    X = np.asarray(X, dtype=float)
    plain = Encoding(1.0, np.zeros(X.shape[1]))
    return Block(X, plain, weight=weight, complete=not np.isnan(X).any())


def ground_of(X, label, weight=None, **options):
    return NumberGround.of(block_of(X, weight), np.asarray(label), seed=0, **options)


def blobs(*centres, n=100, seed=0, d=2):
    draws = np.random.default_rng(seed)
    X = np.vstack([draws.normal(size=(n, d)) + np.eye(d)[0] * centre for centre in centres])
    return X, np.repeat(np.arange(len(centres)), n)


def valley(X, label, **options):
    return ground_of(X, label, **options).project([0], [1]).valley


def test_halves_of_one_cloud_have_no_valley_and_two_clouds_have():
    draws = np.random.default_rng(0)
    for cloud in (draws.normal(size=(400, 3)), np.exp(draws.normal(size=(400, 3)))):
        assert valley(cloud, cloud[:, 0] > np.median(cloud[:, 0])) < 0.40
    assert valley(*blobs(0, 5)) > 0.55


def test_far_from_equal_groups_are_seen_as_an_interval():
    """A slice of 30 rows off the end of 3,000 shows no valley; 30 rows apart from them do."""
    draws = np.random.default_rng(1)
    cloud = np.sort(draws.normal(size=(3000, 1)), axis=0)
    assert valley(cloud, np.arange(3000) >= 2970) < 0.40
    apart = np.vstack([cloud, draws.normal(8, 1, (30, 1))])
    assert valley(apart, np.arange(3030) >= 3000) > 0.55
    seen = facing(Projection(apart[:, 0], np.arange(3030) >= 3000, np.ones(3030)))
    assert (len(seen.position), seen.of_second.sum()) == (120, 30)
    few = facing(Projection(apart[:, 0], np.arange(3030) >= 3027, np.ones(3030)))
    assert len(few.position) == LEAST_KEPT + 3


@pytest.mark.parametrize("seed", [1, 3])
def test_a_small_group_is_told_from_the_rows_that_face_it(seed):
    """Recency, frequency and money of customers, and a few far off: the line that tells these from all others is bent
    by rows that lie nowhere near (dips of 0.54 and 0.49)."""
    draws = np.random.default_rng(seed)
    recency, frequency = draws.exponential(90, 4000) + 1, 1 + draws.exponential(6, 4000)
    money = frequency * np.exp(draws.normal(3.5, 0.7, 4000))
    far = draws.random(4000) < 0.06
    frequency[far] += 40
    money[far] *= 6
    recency[far] = draws.uniform(1, 15, far.sum())
    X = np.log(np.column_stack([recency, frequency, money]))
    few = far & (money < np.median(money[far]))
    assert valley(X[few | ~far], few[few | ~far].astype(int)) > 0.7
    end = frequency[~far] > np.quantile(frequency[~far], 0.96)
    assert valley(X[~far], end.astype(int)) < 0.40


def test_rounded_values_are_not_modes():
    draws = np.random.default_rng(2)
    rounded = np.round(draws.normal(size=(500, 1)))
    label = (rounded[:, 0] > 0).astype(int)
    assert valley(rounded, label, exact=True) > 0.55
    assert valley(rounded, label) < 0.40
    spread = untied(rounded, 0)
    assert np.abs(spread - rounded).max() <= 0.5
    fine = draws.normal(size=(50, 2))
    assert np.array_equal(untied(fine, 0), fine)


def test_units_of_a_column_change_nothing():
    X, label = blobs(0, 3.5, d=3)
    assert valley(X * [1, 1024.0, 2.0**-30], label) == pytest.approx(valley(X, label), rel=1e-9)


def test_rows_in_any_order_and_weights_as_repeats():
    X, _ = blobs(0, 4, n=40)
    X = np.round(X, 0)
    weight = np.random.default_rng(3).integers(0, 4, len(X)).astype(float)

    def seen(block):
        ready = canonical(block)
        return NumberGround.of(ready, (ready.numbers[:, 0] > 2).astype(int), seed=0).project([0], [1]).valley

    repeated = seen(block_of(np.repeat(X, weight.astype(int), axis=0)))
    assert seen(block_of(X, weight)) == repeated
    order = np.random.default_rng(4).permutation(len(X))
    assert seen(block_of(X[order], weight[order])) == repeated


def test_missing_cells_take_values_of_their_column():
    X, label = blobs(0, 6)
    X[::3, 1] = np.nan
    X[:, 0][::10] = np.nan
    full = filled(block_of(X), 0)
    assert np.isin(full, X[~np.isnan(X)]).all()
    assert valley(X, label) > 0.40


def test_classes_by_their_log_odds():
    """Two clear classes of twelve yes/no columns; one trait cut in two has no valley."""
    draws = np.random.default_rng(5)
    label = np.repeat([0, 1], 150)
    yes = draws.random((300, 12)) < np.where(label == 0, 0.1, 0.9)[:, None]

    def scores(yes, shares):
        return np.column_stack([yes @ np.log(p) + ~yes @ np.log(1 - p) for p in shares])

    clear = OddsGround(scores(yes, [np.full(12, 0.1), np.full(12, 0.9)]), label, np.ones(300), 0)
    assert clear.project([0], [1]).valley > clear.thresholds.clear == 0.60
    trait = draws.normal(size=300)
    yes = draws.random((300, 12)) < 1 / (1 + np.exp(-trait))[:, None]
    score = scores(yes, [np.full(12, 0.35), np.full(12, 0.65)])
    sliced = OddsGround(score, score.argmax(axis=1), np.ones(300), 0)
    assert sliced.project([0], [1]).valley < sliced.thresholds.merge == 0.50


def test_pieces_of_a_cloud_are_merged_and_clouds_are_not():
    X, _ = blobs(0, 20, n=200)
    thirds = np.digitize(X[:, 0], [-0.5, 0.5, 10.0])  # three slices of the first cloud, and the second
    ground = ground_of(X, thirds)
    merge = merge_pieces(ground, 4, threshold=0.40)
    assert merge.groups == ((0, 1, 2), (3,))
    assert merge.group_of.tolist() == [0, 0, 0, 1]
    assert [level.groups for level in merge.path] == [4, 3, 2]
    assert merge.path[-1].merged == ((0, 1, 2), (3,))
    assert merge.path[1].valley < 0.40 < 0.55 < merge.valley == merge.path[-1].valley
    short = merge_pieces(ground, 4, threshold=0.40, whole_path=False)
    assert short == merge  # the last level is looked at either way
    assert merge_pieces(ground, 4, threshold=None).groups == ((0,), (1,), (2,), (3,))
    assert len(merge_pieces(ground, 4, threshold=9.0, least=3).groups) == 3
    assert len(merge_pieces(ground, 4, threshold=9.0).groups) == 1
    assert merge_pieces(ground, 4, threshold=9.0).valley is None


def test_matrix_and_weakest_pair():
    X, label = blobs(0, 5, 20)
    ground, groups = ground_of(X, label), [(0,), (1,), (2,)]
    matrix = valley_matrix(ground, groups)
    assert [matrix[i][i] for i in range(3)] == [None] * 3
    assert matrix[0][1] == matrix[1][0] == ground.project([0], [1]).valley
    assert lowest(matrix) == (0, 1)
    assert lowest([[None]]) is None
    weakest = weakest_pair(ground, groups, matrix)
    assert weakest["pair"] == [0, 1]
    assert weakest["counts_a"].sum() == weakest["counts_b"].sum() == 100
    assert len(weakest["edges"]) == len(weakest["counts_a"]) + 1
    assert weakest_pair(ground, groups[:1], [[None]]) is None


def test_a_piece_without_rows_is_no_group():
    X, label = blobs(0, 6)
    assert merge_pieces(ground_of(X, label), 3, threshold=0.40).groups in (((0, 2), (1,)), ((0,), (1, 2)))


def test_steps_that_a_scale_stretches_are_no_modes():
    """Counts of one cloud on a logarithm: the low ones lie far apart, but not once they are spread over their steps."""
    counts = np.random.default_rng(0).geometric(0.12, (600, 1)) - 1.0
    low = (counts[:, 0] <= 2).astype(int)
    scale = lambda x: np.log(np.maximum(x, 0.0) + 0.5)  # noqa: E731
    stretched = NumberGround.of(block_of(scale(counts)), low, seed=0).project([0], [1]).valley
    spread = ground_of(counts, low, on_scales=scale).project([0], [1]).valley
    assert stretched > 0.55 > 0.40 > spread
    assert np.isfinite(untied(counts, 0, scale)).all()
    fine = np.random.default_rng(1).normal(size=(50, 2))
    assert np.array_equal(untied(fine, 0, np.exp), np.exp(fine))


def test_a_merge_goes_on_from_where_it_was():
    """Down to any number of groups it is the merge that was made for that number alone."""
    draws = np.random.default_rng(0)
    X = draws.normal(0, 1, (900, 2)) + 9 * draws.integers(0, 2, (900, 2))
    label = np.random.default_rng(1).normal(0, 4, (30, 2))
    label = np.square(X[:, None] - 4.5 - label).sum(axis=2).argmin(axis=1)
    ground = ground_of(X, label)
    way = MergePath(ground, 30)
    by_rule = merge_pieces(ground, 30, threshold=0.40, whole_path=False)
    assert way.merged(0.40, 1) == by_rule.groups
    for n_groups in (2, 5, 12, 26, 29, 30, 1):
        alone = merge_pieces(ground, 30, threshold=np.inf, least=n_groups, whole_path=False)
        assert way.at(n_groups).tolist() == alone.group_of.tolist()
    assert numbered(alone.groups).max() == 0

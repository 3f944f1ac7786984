"""Coresets: weighted rows that stand for the table, and have many of those that lie far out."""

from __future__ import annotations

import numpy as np
import pytest

from ilk.engines.memory import MemoryRows
from ilk.fitting.coreset import coreset
from ilk.table.condition import condition

N, DRAWN = 5000, 500


def rows_of(X, **options):
    return MemoryRows(X, condition(X), threads=1, **options)


@pytest.fixture(scope="module")
def tails():
    """Two columns, one of them with a long tail."""
    draws = np.random.default_rng(0)
    return np.column_stack([draws.normal(size=N), np.exp(1.5 * draws.normal(size=N))])


def share_of(few, which):
    return float(few.weight[which(few.raw)].sum() / few.weight.sum())


def test_weights_make_up_for_the_chances(tails):
    """Means of the table, over many draws, and with less noise than the draws of a plain sample have."""
    few = [coreset(rows_of(tails), DRAWN, seed) for seed in range(60)]
    means = np.array([np.average(one.raw, axis=0, weights=one.weight) for one in few])
    noise = means.std(axis=0)
    assert (np.abs(means.mean(axis=0) - tails.mean(axis=0)) < 4 * noise / np.sqrt(60)).all()
    assert noise[1] < 0.6 * tails[:, 1].std() / np.sqrt(DRAWN)
    beyond = float((tails[:, 1] > 5).mean())
    assert np.mean([share_of(one, lambda X: X[:, 1] > 5) for one in few]) == pytest.approx(beyond, rel=0.05)


def test_weights_add_up_to_the_rows_that_they_are_worth(tails):
    weight = coreset(rows_of(tails), DRAWN, 0).weight
    assert weight.sum() == pytest.approx(weight.sum() ** 2 / (weight @ weight))
    assert 0.5 * DRAWN < weight.sum() < DRAWN


def test_a_rare_group_far_out_has_many_rows():
    X = np.random.default_rng(1).normal(size=(20_000, 3))
    X[:20] += 30.0
    few = coreset(rows_of(X), DRAWN, 0)
    far = few.raw[:, 0] > 15
    assert far.sum() == 20
    assert share_of(few, lambda X: X[:, 0] > 15) == pytest.approx(0.001, rel=0.3)


def test_rows_count_by_their_weight(tails):
    weight = np.random.default_rng(2).integers(0, 3, N).astype(float)
    few = [coreset(rows_of(tails, weight=weight), DRAWN, seed) for seed in range(40)]
    dead = {row.tobytes() for row in tails[weight == 0]}
    assert not any(row.tobytes() in dead for row in few[0].raw)
    means = np.array([np.average(one.raw, axis=0, weights=one.weight) for one in few])
    expected = np.average(tails, axis=0, weights=weight)
    assert (np.abs(means.mean(axis=0) - expected) < 4 * means.std(axis=0) / np.sqrt(40)).all()


def test_fewer_rows_that_count_than_asked_for(tails):
    weight = np.zeros(N)
    weight[:100] = 1.0
    few = coreset(rows_of(tails, weight=weight), DRAWN, 0)
    assert np.array_equal(np.sort(few.raw, axis=0), np.sort(tails[:100], axis=0))
    assert few.weight == pytest.approx(np.ones(100))


def test_the_order_of_rows_does_not_matter(tails):
    draws = np.random.default_rng(3)
    for X in (tails, tails.round(1)):
        weight = draws.integers(0, 3, N).astype(float)
        order = draws.permutation(N)
        for one, other in (
            (rows_of(X), rows_of(X[order])),
            (rows_of(X, weight=weight), rows_of(X[order], weight=weight[order])),
        ):
            few, again = coreset(one, DRAWN, 5), coreset(other, DRAWN, 5)
            assert np.array_equal(few.raw, again.raw)
            assert np.array_equal(few.weight, again.weight)


def test_few_different_rows_are_all_there_with_their_weights():
    """A table of 30 different rows: the coreset has each of them, and their shares are those of the table."""
    draws = np.random.default_rng(4)
    X = draws.normal(size=(30, 2))[np.minimum(draws.geometric(0.1, 20_000), 30) - 1]
    few = coreset(rows_of(X), DRAWN, 0)
    assert few.n_rows == 30
    assert few.weight.sum() == pytest.approx(DRAWN)
    count = [(row == X).all(axis=1).sum() for row in few.raw]
    assert few.weight == pytest.approx(np.array(count) * (DRAWN / len(X)))


def test_half_of_the_table_is_one_row(tails):
    X = tails.copy()
    X[: N // 2] = 0.0
    share = [share_of(coreset(rows_of(X), DRAWN, seed), lambda X: X[:, 0] == 0.0) for seed in range(40)]
    assert np.mean(share) == pytest.approx(0.5, abs=0.02)
    assert np.std(share) < 0.04


def test_blanks_constants_and_small_tables(tails):
    X = np.column_stack([tails, np.full(N, 7.0)])
    X[::3, 0] = np.nan
    X[0] = np.nan
    few = coreset(rows_of(X, complete=False), DRAWN, 0)
    assert few.n_rows == DRAWN
    assert np.isfinite(few.weight).all()
    assert not few.complete
    rows = rows_of(tails)
    assert coreset(rows, N, 0) is rows

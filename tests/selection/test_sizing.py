"""Sizes under control, against an assignment solved by SciPy and against every labelling of small tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import ilk
from ilk.errors import DataError, NoModelError, UsageError
from ilk.selection.sizing import within


def least_cost(costs, most):
    """Every group as `most` seats, one row each."""
    seats = np.repeat(costs, most, axis=1)
    rows, places = linear_sum_assignment(seats)
    return seats[rows, places].sum()


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5), st.integers(2, 24), st.integers(0, 10**6), st.booleans())
def test_the_cheapest_labelling_within_the_limit(n_groups, n_rows, seed, whole):
    draws = np.random.default_rng(seed)
    costs = draws.exponential(size=(n_rows, n_groups)) ** 3
    costs = np.floor(costs * 3) if whole else costs  # ties
    most = int(draws.integers(-(-n_rows // n_groups), n_rows + 1))
    found = within(costs, costs.argmin(axis=1), most)
    assert np.bincount(found, minlength=n_groups).max() <= most
    assert costs[np.arange(n_rows), found].sum() == pytest.approx(least_cost(costs, most), abs=1e-9)


def test_against_every_labelling():
    draws = np.random.default_rng(2)
    costs = draws.normal(size=(7, 3))
    best = min(
        costs[np.arange(7), labels].sum()
        for labels in map(list, itertools.product(range(3), repeat=7))
        if np.bincount(labels, minlength=3).max() <= 3
    )
    found = within(costs, costs.argmin(axis=1), 3)
    assert costs[np.arange(7), found].sum() == pytest.approx(best, abs=1e-12)


def test_no_row_moves_where_there_is_room():
    costs = np.random.default_rng(0).normal(size=(50, 3))
    label = costs.argmin(axis=1)
    assert (within(costs, label, 50) == label).all()


def test_rows_that_do_not_fit_in():
    with pytest.raises(NoModelError, match="2 groups of at most 3 rows hold 6 of 7 rows"):
        within(np.zeros((7, 2)), np.zeros(7, dtype=int), 3)


def blobs(sizes, seed=0):
    draws = np.random.default_rng(seed)
    centres = [(0, 0), (8, 0), (0, 8), (9, 9)]
    parts = [draws.normal(c, 1, (n, 2)) for c, n in zip(centres, sizes, strict=False)]
    return dict(zip("xy", np.vstack(parts).T, strict=True))


def test_full_groups_hand_rows_on_and_say_what_it_cost():
    free = ilk.cluster(blobs((60, 30, 30)))
    result = ilk.cluster(blobs((60, 30, 30)), max_size=45)
    sizing = result.summary()["sizing"]
    assert np.bincount(result.labels).tolist() == [group.rows for group in result.groups]
    assert max(group.rows for group in result.groups) == 45
    assert sizing["moved"] == 15 == sum(move["rows"] for move in sizing["moves"])
    moved = free.labels != result.labels
    assert moved.sum() == 15
    assert (sizing["cost"] > 0, sizing["unit"]) == (True, "nats")
    # The cost in nats is the log of the ratio of memberships.
    with np.errstate(divide="ignore"):
        logs = np.log(free.probabilities)
    rise = logs[moved, free.labels[moved]] - logs[moved, result.labels[moved]]
    assert sizing["cost"] == pytest.approx(rise.sum(), rel=1e-6)
    assert any(code == "max-size" and "15 rows moved" in w["text"] for w in result.summary()["warnings"]
               for code in [w["code"]])  # fmt: skip


def test_as_many_groups_as_the_rows_need():
    result = ilk.cluster(blobs((60, 60)), max_size=40)
    assert result.k >= 3
    assert max(group.rows for group in result.groups) <= 40
    with pytest.raises(UsageError, match="k=3 or more"):
        ilk.cluster(blobs((60, 60)), max_size=40, k=2)


def test_small_groups_join_the_one_they_fit_best():
    table = blobs((60, 50, 8))
    assert ilk.cluster(table, k=3).k == 3
    result = ilk.cluster(table, k=3, min_size=10)
    assert [group.rows for group in result.groups] == [68, 50] or [g.rows for g in result.groups] == [60, 58]
    (joined,) = result.summary()["sizing"]["joined"]
    assert joined["rows"] == 8
    assert joined["cost"] > 0
    # New rows of the small group go with it.
    small = {name: values[-3:] for name, values in table.items()}
    assert set(result.assign(small)["group"].to_pylist()) == {joined["into"]}


@pytest.mark.parametrize("method", ["k-means", "k-medians", "assorted"])
def test_every_method_keeps_sizes(method):
    table = blobs((60, 30, 5))
    table["kind"] = (["a"] * 60 + ["b"] * 35) if method == "assorted" else [0.5, 1.5, 2.5, 3.5, 4.5] * 19
    result = ilk.cluster(table, k=3, method=method, min_size=6, max_size=50)
    rows = [group.rows for group in result.groups]
    assert 6 <= min(rows) <= max(rows) <= 50
    assert sum(rows) == 95


@pytest.mark.parametrize(
    "sizes",
    [
        {"min_size": 0},
        {"max_size": 2.5},
        {"max_size": True},
        {"min_size": 9, "max_size": 5},
        {"min_size": 999},
    ],
)
def test_sizes_that_cannot_be(sizes):
    with pytest.raises(UsageError) as refused:
        ilk.cluster(blobs((20, 20)), **sizes)
    assert refused.value.code == "bad-size"


def test_letters_survive_a_refit(tmp_path):
    old = ilk.cluster(blobs((60, 30, 20)), k=3).rename({"A": "at the origin", "C": "above"})
    old.save(tmp_path / "old.ilk")
    # The group of 60 is now the smallest, one is gone and one is new.
    later = blobs((10, 50, 0, 40), seed=1)
    new = ilk.cluster(later, k=3, match_to=tmp_path / "old.ilk")
    by_letter = {group.letter: group for group in new.groups}
    assert [group.letter for group in new.groups] == ["B", "D", "A"]
    assert by_letter["A"].name == "at the origin"
    assert by_letter["A"].rows == 10
    matching = new.summary()["matching"]
    assert (matching["new"], matching["gone"]) == (["D"], ["C"])
    assert new.assign({"x": [0.1], "y": [0.2]})["group"].to_pylist() == ["A"]
    assert ilk.cluster(later, k=3, match_to=old.model).model.letters == new.model.letters


def test_a_run_of_other_columns_cannot_be_matched_to():
    old = ilk.cluster({"a": [1.0, 1.1, 8, 8.2], "b": [1.0, 2, 3, 4.5]}, k=2).model
    with pytest.raises(DataError, match="the earlier run cannot place these rows"):
        ilk.cluster(blobs((20, 20)), k=2, match_to=old)

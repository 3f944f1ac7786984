"""Reservoirs: an exact draw by worth in one pass, whatever the order and the blocks."""

from __future__ import annotations

import numpy as np
import pytest

from ilk.engines.memory import MemoryRows
from ilk.fitting.reservoir import Draws, Repeats, Reservoir
from ilk.table.block import Block, Encoding
from ilk.table.content import content_keys

UNIT = Encoding(1.0, np.zeros(2))
NOTHING = Repeats(3, *np.empty((3, 0)))


def blocks(X, codes, size, weight=None):
    return [
        Block(
            X[i : i + size],
            UNIT,
            first_row=i,
            codes=codes[i : i + size],
            weight=None if weight is None else weight[i : i + size],
        )
        for i in range(0, len(X), size)
    ]


def reservoir(X, codes, size, repeats, order=None):
    """By a worth that is a function of the row."""
    draws = Draws(repeats, "example")
    parts = [Reservoir.of(block, np.abs(block.raw[:, 0]), draws, 7) for block in blocks(X, codes, size)]
    total = parts.pop(0)
    for part in parts:
        total = total + part
    return total


def test_the_largest_keys_stay_in_any_order():
    draws = np.random.default_rng(0)
    X, codes = draws.normal(size=(60, 2)), draws.integers(0, 3, (60, 1))
    X[5, 0] = 0.0
    u = Draws(NOTHING, "example").of(content_keys(Block(X, UNIT, codes=codes), 3))
    with np.errstate(divide="ignore"):
        expected = np.argsort(-np.log(u) / np.abs(X[:, 0]))[:7]
    for order in (np.arange(60), draws.permutation(60)):
        for size in (60, 20, 11):
            found = reservoir(X[order], codes[order], size, NOTHING)
            assert np.array_equal(found.raw, X[expected])
            assert np.array_equal(found.codes, codes[expected])
            assert np.array_equal(found.worth, np.abs(X[expected, 0]))
            assert found.weight.tolist() == [1.0] * 7


@pytest.mark.parametrize("known", [False, True])
def test_equal_rows_are_one_with_all_their_weight(known):
    draws = np.random.default_rng(1)
    X = draws.integers(1, 4, (900, 2)).astype(float)
    codes = np.zeros((900, 1), dtype=np.int32)
    repeats = Repeats.of(MemoryRows(X, UNIT, codes=codes, threads=1), 3) if known else NOTHING
    assert len(repeats.key) == (9 if known else 0)
    found = reservoir(X, codes, 100, repeats)
    assert len(np.unique(found.raw, axis=0)) == 7
    count = [(row == X).all(axis=1).sum() for row in found.raw]
    assert found.weight.tolist() == count
    assert found.square.tolist() == count
    order = draws.permutation(900)
    again = reservoir(X[order], codes[order], 64, repeats)
    assert np.array_equal(found.raw, again.raw)
    assert np.array_equal(found.weight, again.weight)


def test_repeats_are_those_that_count_for_much():
    X = np.random.default_rng(2).normal(size=(1000, 2))
    X[:30] = 1.0
    X[30:32] = 2.0
    weight = np.full(1000, 0.25)
    found = Repeats.of(MemoryRows(X, UNIT, weight=weight, threads=1), 0)
    assert sorted(found.weight.tolist()) == [0.5, 7.5]
    assert sorted(found.square.tolist()) == [2 / 16, 30 / 16]
    own = content_keys(Block(X, UNIT), 0)
    total, square, known = found.totals(own, weight)
    assert known.sum() == 32
    assert total[[0, 31, 40]].tolist() == [7.5, 0.5, 0.25]
    assert square[40] == 1 / 16


def test_a_row_counts_by_what_all_its_equals_are_worth():
    """Half of the table is one row: it is drawn first in about half of the draws, not in one of a thousand."""
    X = np.random.default_rng(3).normal(size=(1000, 2))
    X[:500] = 5.0
    first = []
    for seed in range(300):
        draws = Draws(Repeats.of(MemoryRows(X, UNIT, threads=1), seed), "example")
        first.append(Reservoir.of(Block(X, UNIT), np.ones(1000), draws, 1).raw[0, 0] == 5.0)
    assert abs(np.mean(first) - 0.5) < 4 * 0.5 / np.sqrt(300)

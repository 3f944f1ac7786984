"""Reservoirs: an exact draw by worth in one pass, whatever the blocks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ilk.fitting.reservoir import Reservoir, draws_of
from ilk.random import stream
from ilk.table.block import Block, Encoding


def blocks(X, codes, size):
    encoding = Encoding(1.0, np.zeros(X.shape[1]))
    starts = range(0, len(X), size)
    return [Block(X[i : i + size], encoding, first_row=i, codes=codes[i : i + size]) for i in starts]


def test_reservoirs_merge_in_any_order():
    draws = np.random.default_rng(0)
    X, codes = draws.normal(size=(60, 2)), draws.integers(0, 3, (60, 1))
    worth, u = draws.random(60), draws.random(60)
    worth[5] = 0.0
    parts = [
        Reservoir.of(block, worth[here], u[here], 7)
        for block in blocks(X, codes, 20)
        for here in [slice(block.first_row, block.first_row + 20)]
    ]
    with np.errstate(divide="ignore"):
        expected = np.argsort(-np.log(u) / worth)[:7]
    for order in ((0, 1, 2), (2, 0, 1)):
        one, two, three = (parts[i] for i in order)
        merged = one + (two + three)
        assert merged.row.tolist() == expected.tolist()
        assert np.array_equal(merged.raw, X[expected])
        assert np.array_equal(merged.codes, codes[expected])
        assert np.array_equal(merged.worth, worth[expected])


@given(st.integers(0, 10**12), st.integers(0, 9))
def test_every_row_has_its_own_draw(first, n):
    some = draws_of(stream(3, "rows"), first, n)
    more = draws_of(stream(3, "rows"), first - first % 7, n + 7)
    assert np.array_equal(some, more[first % 7 : first % 7 + n])

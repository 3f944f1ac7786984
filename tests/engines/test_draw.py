"""Samples: the same rows, in whatever pieces the weights arrive, and as if a weight were a repeat."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ilk.engines.draw import drawn_by_weight, drawn_rows


@settings(max_examples=50, deadline=None)
@given(
    weight=st.lists(st.floats(0, 1e6), min_size=1, max_size=200).filter(lambda w: sum(w) > 0),
    cuts=st.lists(st.integers(0, 200), max_size=5),
    seed=st.integers(0, 100),
)
def test_pieces_do_not_matter(weight, cuts, seed):
    whole = np.array(weight)
    pieces = np.split(whole, sorted(cut for cut in cuts if cut <= len(whole)))
    assert np.array_equal(
        drawn_by_weight(lambda: [whole], 30, seed), drawn_by_weight(lambda: pieces, 30, seed)
    )


def test_draws_go_by_cumulative_weight():
    weight = np.random.default_rng(0).integers(0, 4, 500).astype(float)
    drawn = drawn_by_weight(lambda: [weight], 100, 3)
    repeated = drawn_by_weight(lambda: [np.ones(int(weight.sum()))], 100, 3)
    assert np.array_equal(drawn, np.repeat(np.arange(500), weight.astype(int))[repeated])


def test_unweighted_rows_are_different_and_in_order():
    rows = drawn_rows(10_000, 500, 1)
    assert (np.diff(rows) > 0).all()
    assert rows[-1] < 10_000

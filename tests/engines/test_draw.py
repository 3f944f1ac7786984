"""Samples: the same rows in whatever order and pieces they come, and as if a weight were a repeat."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ilk.engines.draw import drawn_by_content, drawn_rows
from ilk.engines.memory import MemoryRows
from ilk.engines.stream import StreamRows
from ilk.table.block import Block, Encoding
from ilk.table.content import content_keys, evenly
from ilk.table.least_keys import least_keys


def rows_of(X, **options):
    return MemoryRows(X, Encoding(1.0, np.zeros(X.shape[1])), threads=1, **options)


def least_by_brute_force(key, weight, n_wanted):
    """The (copy + 1 - u) / weight of every copy of every content, written out."""
    content, inverse = np.unique(key, return_inverse=True)
    total = np.bincount(inverse, weight)
    pairs = [
        ((copy + 1 - u) / w, int(c))
        for c, u, w in zip(content, evenly(content), total, strict=True)
        for copy in range(n_wanted if w > 0 else 0)
    ]
    return sorted(c for _, c in sorted(pairs)[:n_wanted])


@settings(max_examples=60, deadline=None)
@given(
    n_contents=st.integers(1, 300),
    n_rows=st.integers(2, 600),
    share=st.floats(0.05, 0.95),
    weighted=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_the_least_keys_are_drawn(n_contents, n_rows, share, weighted, seed):
    draws = np.random.default_rng(seed)
    names = draws.integers(0, 2**63, n_contents).astype(np.uint64) * np.uint64(2)
    key = names[np.minimum(draws.geometric(0.02, n_rows), n_contents) - 1]
    weight = draws.integers(0, 5, n_rows).astype(float) if weighted else None
    n_wanted = max(1, int(share * n_rows))
    if weight is not None:
        weight[0] = 1.0
    places = least_keys(key, weight, n_wanted)
    assert sorted(map(int, key[places])) == least_by_brute_force(
        key, np.ones(n_rows) if weight is None else weight, n_wanted
    )
    if weight is None:
        assert len(set(places.tolist())) == n_wanted


@pytest.mark.parametrize("decimals", [0, 1, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_neither_order_nor_pieces_matter(decimals, weighted):
    draws = np.random.default_rng(1)
    X = draws.normal(size=(40_000, 3))
    X = X if decimals is None else X.round(decimals)
    X[draws.random(X.shape) < 0.01] = np.nan
    codes = draws.integers(-1, 4, (len(X), 2)).astype(np.int32)
    weight = draws.random(len(X)) if weighted else None
    order = draws.permutation(len(X))
    there = {"complete": False, "codes": codes, "weight": weight}
    again = {
        "complete": False,
        "codes": codes[order],
        "weight": None if weight is None else weight[order],
    }
    one = rows_of(X, **there).sample(3000, 7)
    for engine in (MemoryRows, StreamRows):
        other = engine(X[order], Encoding(1.0, np.zeros(3)), threads=2, **again).sample(3000, 7)
        assert np.array_equal(one.raw, other.raw, equal_nan=True)
        assert np.array_equal(one.codes, other.codes)
        assert one.weight is other.weight is None


def test_a_weight_is_a_repeat():
    draws = np.random.default_rng(0)
    X, weight = draws.normal(size=(5000, 2)).round(1), draws.integers(0, 4, 5000)
    weighed = rows_of(X, weight=weight.astype(float)).sample(900, 3)
    repeated = rows_of(np.repeat(X, weight, axis=0)).sample(900, 3)
    assert np.array_equal(weighed.raw, repeated.raw)


def test_every_content_has_its_share_to_within_one():
    """Seven contents, one of them half of the table: a draw of whole contents would miss it or hold nothing else."""
    counts = np.array([5000, 2000, 1000, 1000, 500, 400, 100])
    X = np.repeat(np.arange(7.0), counts)[:, None]
    for seed in range(20):
        drawn = rows_of(np.random.default_rng(seed).permutation(X)).sample(1000, seed)
        held = np.bincount(drawn.raw[:, 0].astype(int), minlength=7)
        assert (np.abs(held - counts / 10) <= 1).all()


def test_rows_have_even_chances():
    X = np.random.default_rng(4).normal(size=(400, 2))
    times = np.zeros(400)
    for seed in range(300):
        times[drawn_by_content(rows_of(X), 100, seed)] += 1
    # Binomial(300, 1/4): mean 75, standard deviation 7.5.
    assert abs(times.mean() - 75) < 1e-9
    assert 6.5 < times.std() < 8.5
    assert times.min() > 75 - 5 * 7.5


def test_what_a_row_says_is_its_values():
    X = np.array([[0.0, 1.5, np.nan], [2.0, -3.0, 4.0]])
    same = np.array([[-0.0, 1.5, -np.nan], [2.0, -3.0, 4.0]])
    unit, half = Encoding(1.0, np.zeros(3)), Encoding(0.5, np.zeros(3))
    key = content_keys(Block(X, unit, complete=False), 5)
    assert key.tolist() == content_keys(Block(same, unit, complete=False), 5).tolist()
    assert key.tolist() == content_keys(Block(2 * X, half, complete=False), 5).tolist()
    assert key.tolist() == content_keys(Block(X.astype(np.float32), unit, complete=False), 5).tolist()
    assert key.tolist() != content_keys(Block(X[:, ::-1], unit, complete=False), 5).tolist()
    assert key.tolist() != content_keys(Block(X, unit, complete=False), 6).tolist()
    filled = np.nan_to_num(X)
    dense, packed = (content_keys(Block(cells, unit), 5) for cells in (filled, sparse.csr_array(filled)))
    assert dense.tolist() == packed.tolist()


def test_different_rows_have_different_keys():
    lattice = np.stack(np.meshgrid(*[np.arange(-20.0, 21.0)] * 3), axis=-1).reshape(-1, 3)
    keys = content_keys(Block(lattice, Encoding(1.0, np.zeros(3))), 0)
    assert len(np.unique(keys)) == len(lattice)
    # Evenly spread: chi squared of 64 bins has mean 63 and standard deviation 11.
    held = np.bincount((keys >> np.uint64(58)).astype(int), minlength=64)
    assert ((held - held.mean()) ** 2 / held.mean()).sum() < 63 + 5 * 11.3


def test_numbers_without_content():
    rows = drawn_rows(10_000, 500, 1)
    assert len(np.unique(rows)) == 500
    assert rows.max() < 10_000
    assert np.array_equal(rows, np.sort(rows))

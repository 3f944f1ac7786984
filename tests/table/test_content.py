"""What a row says as one number: the same for the same cells, in whatever form they are held."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from ilk.table.block import Block, Encoding, stacked
from ilk.table.content import arrow_keys, content_keys, evenly
from ilk.table.least_keys import least_keys

FORMS = {
    "numbers": [
        pa.array([1, 0, None, 1]),
        pa.array([1.0, -0.0, None, 1.0]),
        pa.array([1, 0, None, 1], pa.float32()),
        pa.array([True, False, None, True]),
        pa.array([Decimal("1.0"), Decimal("0.0"), None, Decimal("1.0")]),
    ],
    "texts": [
        pa.array(["a", "", None, "a"]),
        pa.array(["a", "", None, "a"], pa.large_string()),
        pa.array(["a", "", None, "a"]).dictionary_encode(),
        pa.chunked_array([["a", ""], [None, "a"]]),
    ],
    "days": [
        pa.array([3, 1, None, 3], pa.int32()).cast(pa.date32()),
        pa.array([3, 1, None, 3], pa.int64()).cast(pa.duration("s")),
    ],
    "others": [
        pa.array([[1], [], None, [1]]),
        pa.array([(1, 2, 3), (1, 0, 0), None, (1, 2, 3)], pa.month_day_nano_interval()),
    ],
}


@pytest.mark.parametrize("kind", FORMS)
def test_cells_of_a_frame_count_by_what_they_say(kind):
    """Equal cells have one key and others another, also beside a column that is the same in all rows."""
    for column in FORMS[kind]:
        table = pa.table({"c": column, "same": ["x"] * 4})
        keys = arrow_keys(table, 7)
        assert keys[0] == keys[3]
        assert len(set(keys.tolist())) == 3
        assert np.array_equal(arrow_keys(table.take([3, 2, 1, 0]), 7), keys[::-1])
        assert not np.array_equal(arrow_keys(table, 8), keys)
    if kind in ("numbers", "texts"):  # one value in several types
        made = [arrow_keys(pa.table({"c": column}), 7).tolist() for column in FORMS[kind]]
        assert all(keys == made[0] for keys in made)


def test_days_and_seconds_are_not_numbers_of_another_row():
    days = [datetime.date(2024, 1, 1 + i) for i in range(28)]
    assert len(set(arrow_keys(pa.table({"day": days}), 0).tolist())) == 28


def test_compressed_rows_say_what_their_array_says():
    draws = np.random.default_rng(0)
    raw = draws.poisson(0.5, (50, 6)).astype(float)
    codes = draws.integers(0, 2, (50, 4)).astype(np.int32)
    encoding = Encoding(1.0, np.zeros(6))
    dense = content_keys(Block(raw, encoding, codes=codes), 3)
    packed = Block(sparse.csr_array(raw), encoding, codes=sparse.csr_array(codes))
    assert np.array_equal(content_keys(packed, 3), dense)


def test_rows_below_each_other_in_either_form():
    draws = np.random.default_rng(0)
    parts = [draws.poisson(0.3, (n, 5)).astype(float) for n in (4, 1, 7)]
    whole = stacked(parts)
    packed = stacked([sparse.csr_array(part) for part in parts])
    assert whole.shape == (12, 5)
    assert packed.format == "csr"
    assert np.array_equal(packed.toarray(), whole)


@pytest.mark.parametrize("n_wanted", [1, 10, 90])
def test_the_least_keys_of_contents_that_all_come_late(n_wanted):
    """All draws are near 1, so that the first guess of the largest key lies far below it."""
    keys = np.random.default_rng(0).permutation(100).astype(np.uint64) << np.uint64(12)
    latest = np.argsort(1 - evenly(keys))[:n_wanted]
    assert set(least_keys(keys, None, n_wanted).tolist()) == set(latest.tolist())

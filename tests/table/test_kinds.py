"""Levels and distinct values of columns, against plain Python sets."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ilk.table.cells import count_distinct, level_codes, ordered_levels, sorted_levels

WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(2**53, 2**53 + 4)  # float64 would join some of these
REAL = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.5])
CELLS = st.lists(st.none() | WHOLE).map(lambda cells: pa.array(cells, pa.int64())) | st.lists(
    st.none() | REAL
).map(lambda cells: pa.array(cells, pa.float64()))


@given(CELLS, st.integers(0, 5))
def test_distinct_numbers_are_counted(column, cut):
    wanted = len({cell for cell in column.to_pylist() if cell is not None})
    assert count_distinct(column) == wanted
    assert count_distinct(pa.chunked_array([column[:cut], column[cut:]])) == wanted


def test_distinct_decimals_are_counted():
    assert count_distinct(pa.array([1, 2, None, 1]).cast(pa.decimal128(20, 1))) == 2


def categories(places, values, *, ordered=False):
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), pa.array(values), ordered=ordered)


@pytest.mark.parametrize(
    ("column", "levels"),
    [
        (pa.array(["b", None, "a", "b"]), ("a", "b")),
        (pa.array(["10", "9", None]), ("9", "10")),
        (pa.array([10.0, -0.0, 0.0, None]), ("0", "10")),
        (pa.array([True, None, False]), ("false", "true")),
        (pa.nulls(2), ()),
        (categories([2, None, 0], ["c", "b", "a"]), ("a", "c")),
        (pa.chunked_array([categories([0], ["c"]), categories([1], ["b", "a"])]), ("a", "c")),
    ],
)
def test_levels_are_those_that_occur_in_order(column, levels):
    assert sorted_levels(column) == levels


def test_an_ordered_category_keeps_its_order():
    assert ordered_levels(categories([2, 0, None, 2], ["low", "middle", "high"], ordered=True)) == (
        "low",
        "high",
    )


def test_codes_point_at_the_levels():
    texts, places = level_codes(pa.array(["b", None, "a", "b"]))
    assert [None if place < 0 else texts[place] for place in places] == ["b", None, "a", "b"]

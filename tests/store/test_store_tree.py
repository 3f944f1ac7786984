"""A tree comes back as it was; a document that does not fit its arrays is refused."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import ilk.store.tree as tree_module
from ilk.errors import ModelFileError, UsageError
from ilk.store import flatten, pack, restore, unpack

arrays = st.sampled_from(["<f8", "<f4", "<i8", "<i4", "|u1", "bool"]).flatmap(
    lambda dtype: nps.arrays(dtype, nps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | arrays
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.just("$array"), inner, max_size=4)
    ),
    max_leaves=12,
)


def same(a, b) -> bool:
    if isinstance(a, np.ndarray):
        return (
            isinstance(b, np.ndarray)
            and a.dtype == b.dtype
            and a.shape == b.shape
            and a.tobytes() == b.tobytes()
        )
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    if isinstance(a, float):
        return isinstance(b, float) and a == b and math.copysign(1, a) == math.copysign(1, b)
    return type(a) is type(b) and a == b


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(st.text(), trees, max_size=4))
def test_round_trip_through_bytes(tree):
    document, found = flatten(tree)
    data = pack("tree", document, found)
    packed = unpack(data)
    back = restore(packed.document, packed.arrays)
    assert same(tree, back)
    assert pack("tree", *flatten(back)) == data
    assert pack("tree", *flatten(dict(reversed(tree.items())))) == data


@pytest.mark.parametrize(
    "items",
    [
        [f"level {i}" for i in range(500)],
        ["", "\x00", "é", "\ud800", "a" * 100] * 20,
        [float(i) / 3 for i in range(200)],
        [math.nan, math.inf, -0.0] * 50,
        list(range(-100, 100)),
        [2**70 + i for i in range(100)],
        [True, False] * 50,
        [1, 2.0, "three", None] * 30,
    ],
)
def test_long_lists_come_back_and_leave_the_document(items):
    document, found = flatten({"items": items})
    assert same(restore(document, found)["items"], items)
    if len({type(item) for item in items}) == 1 and isinstance(items[0], (str, float)):
        assert found
        assert len(str(document)) < 60


def test_numpy_scalars_and_tuples_become_plain():
    document, _ = flatten(
        {"a": np.float32(0.5), "b": np.int64(3), "c": (1, 2), "d": np.bool_(True), "e": np.str_("x")}
    )
    assert document == {"a": 0.5, "b": 3, "c": [1, 2], "d": True, "e": "x"}


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, b"bytes", {3: "key"}, {"deep": [{"x": object()}]}])
def test_what_cannot_be_saved_is_named(value):
    with pytest.raises(UsageError, match="cannot be saved"):
        flatten({"value": value})


def test_a_tree_is_a_dictionary():
    with pytest.raises(UsageError, match="is a dictionary, not list"):
        flatten([1])  # type: ignore[arg-type]


@pytest.mark.badinput("H7")
@pytest.mark.parametrize(
    "document",
    [
        {"x": {"$array": "gone"}},
        {"x": {"$array": 3}},
        {"x": {"$array": ["a"]}},
        {"x": {"$array": "a", "more": 1}},
        {"x": {"$import": "os"}},
        {"x": {"$float": "1"}},
        {"x": {"$float": ["inf"]}},
        {"x": {"$flags": "numbers"}},
        {"x": {"$flags": "bytes"}},
        {"x": {"$numbers": "bytes"}},
        {"x": {"$texts": ["bytes"]}},
        {"x": {"$texts": ["bytes", "bytes"]}},
        {"x": {"$texts": ["bytes", "back"]}},
        {"x": {"$texts": ["bytes", "far"]}},
        {"x": {"$texts": ["bytes", "ends"]}},
        {"x": {"$texts": "bytes"}},
    ],
)
def test_a_document_that_does_not_fit_is_refused(document):
    found = {
        "bytes": np.array([200, 65, 66], dtype=np.uint8),
        "numbers": np.array([0.0, 1.0]),
        "ends": np.array([1, 3]),
        "back": np.array([2, 1, 3]),
        "far": np.array([1, 99]),
    }
    with pytest.raises(ModelFileError, match="the document of the file holds"):
        restore(document, found)


def test_examples():
    assert doctest.testmod(tree_module).failed == 0

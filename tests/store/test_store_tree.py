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


packable = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text()
    | nps.arrays("<f8", st.integers(0, 4)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None, max_examples=60)
@given(st.lists(packable, min_size=1, max_size=8))
def test_packed_lists_of_any_kind_come_back(items):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tree_module, "MANY_CELLS", 0)
        patched.setattr(tree_module, "LONG_LIST", 0)
        document, found = flatten({"items": items})
    back = unpack(pack("tree", document, found))
    assert same(restore(back.document, back.arrays)["items"], items)


def columns(n: int) -> list[dict]:
    """Records as those of the columns of a wide table: of numbers, of categories, and between."""
    kinds = [
        {"name": "é", "mean": np.array([0.5, -0.0]), "levels": None, "$own": True},
        {"name": "", "levels": ["a", "b\ud800"], "counts": [1, 2.5, None, False], "mean": np.zeros(0)},
        {},
    ]
    return [kinds[i % 3] | {"number": i} for i in range(n)]


@pytest.mark.parametrize("limit", ["MANY_ARRAYS", "MANY_CELLS"])
def test_a_tree_of_many_records_is_kept_as_few_arrays(limit):
    n = 4000 if limit == "MANY_ARRAYS" else 8000
    tree = {"columns": columns(n) if limit == "MANY_ARRAYS" else [[i, i / 3] for i in range(n)]}
    document, found = flatten(tree)
    assert len(found) < 40
    assert len(str(document)) < 2000
    packed = unpack(pack("tree", document, found))
    assert same(restore(packed.document, packed.arrays), tree)


@pytest.mark.parametrize("item", [2**70, np.arange(3), np.zeros((2, 2))], ids=["huge", "whole", "square"])
def test_a_long_list_with_an_item_that_has_no_place_is_kept_one_by_one(item):
    tree = {"first": columns(4000), "second": [[item, "x"] for _ in range(65)]}
    document, found = flatten(tree)
    assert isinstance(document["second"], list)
    assert same(restore(document, found), tree)


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


def node(of: str, **parts) -> dict:
    return {"of": of, "parts": parts}


LYING_LISTS = {
    "no list": {},
    "no node": [],
    "a node that is none": ["x"],
    "a node without parts": [{"of": "one none"}],
    "a node of numbers": [node("one number", real="one number")],
    "an unknown kind": [node("kind 200", none=None)],
    "a part too few": [node("one none")],
    "a part too many": [node("one none", none=None, flags="bytes")],
    "nothing that is something": [node("one none", none=1)],
    "numbers of another type": [node("one real", real="bytes")],
    "fewer numbers than items": [node("two real", real="one number")],
    "flags above 1": [node("one flag", flags="kind 200")],
    "text without its ends": [node("one text", texts="bytes")],
    "text of numbers": [node("one text", texts=["one number", "end 1"])],
    "text that ends too soon": [node("one text", texts=["bytes", "end 1"])],
    "text that is not UTF-8": [node("one text", texts=["bytes", "end 3"])],
    "rows of bytes": [node("one row", rows=["bytes", "end 3"])],
    "rows that end beyond": [node("one row", rows=["one number", "end 3"])],
    "rows that go back": [node("two rows", rows=["one number", "back"])],
    "a list within itself": [node("one list", lists=[0, "end 1"])],
    "a list of a node that comes later": [
        node("one list", lists=[1, "end 1"]),
        node("one record", records=[1, [["key", None, 0]]]),
    ],
    "a list of a node that is true": [node("one none", none=None), node("one list", lists=[False, "end 1"])],
    "records of another number": [node("one record", records=[2, []])],
    "records without entries": [node("one record", records=[1, None])],
    "an entry without values": [node("one record", records=[1, [["key"]]])],
    "an entry whose key is no text": [
        node("one none", none=None),
        node("one record", records=[1, [[7, None, 0]]]),
    ],
    "more values than records": [
        node("two nones", none=None),
        node("one record", records=[1, [["key", None, 0]]]),
    ],
    "marks of who has a key, too many": [
        node("one none", none=None),
        node("one record", records=[1, [["key", "bytes", 0]]]),
    ],
    "a node read twice": [
        node("one none", none=None),
        node("one record", records=[1, [["key", None, 0], ["other", None, 0]]]),
    ],
    "an array that is not there": [node("gone", none=None)],
}


@pytest.mark.badinput("H7")
@pytest.mark.parametrize("packed", LYING_LISTS.values(), ids=LYING_LISTS)
def test_a_packed_list_that_lies_is_refused(packed):
    kinds = ("none", "flag", "whole", "real", "text", "row", "list", "record")
    found = {f"one {kind}": np.array([code], dtype=np.uint8) for code, kind in enumerate(kinds)}
    found |= {f"two {kind}s": np.repeat(found[f"one {kind}"], 2) for kind in kinds}
    found |= {
        "two real": np.array([3, 3], dtype=np.uint8),
        "kind 200": np.array([200], dtype=np.uint8),
        "bytes": np.array([200, 65, 66], dtype=np.uint8),
        "one number": np.array([0.5]),
        "end 1": np.array([1]),
        "end 3": np.array([3]),
        "back": np.array([2, 1]),
    }
    with pytest.raises(ModelFileError, match="the document of the file holds") as caught:
        restore({"x": {"$list": packed}}, found)
    assert caught.value.code == "model-damaged"


def test_examples():
    assert doctest.testmod(tree_module).failed == 0

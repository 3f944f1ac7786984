"""A tree of arrays, numbers and text as one JSON document and one flat dictionary of arrays, and back.

In the document an array is `{"$array": name}`, a number that JSON lacks `{"$float": "inf"}`, and a long list
of numbers or of text is kept as arrays, so that the document stays small. A user's key that starts with `$`
gets one more `$`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilk.errors import ModelFileError, UsageError, shown
from ilk.store.long_lists import Unpacked, joined, parted

Array = NDArray[Any]
Arrays = dict[str, Array]

MANY_ARRAYS = 2000  # of some 4,000 that a file may have
MANY_CELLS = 20_000  # of the values that a header of a megabyte holds
LONG_LIST = 64  # A list above this length is kept as an array, not in the document.
UNUSUAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
INT64 = range(-(2**63), 2**63)


def flatten(tree: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """The document and the arrays of a tree; tuples come back as lists, keys in sorted order.

    A tree of more than `MANY_ARRAYS` arrays has its long lists of records packed (`long_lists`).

    >>> document, arrays = flatten({"mean": np.zeros(2), "k": 3, "best": float("-inf")})
    >>> document
    {'best': {'$float': '-inf'}, 'k': 3, 'mean': {'$array': 'a0'}}
    >>> restore(document, arrays)["best"]
    -inf
    """
    arrays: Arrays = {}
    if not isinstance(tree, Mapping):
        raise UsageError(
            "tree-not-a-mapping",
            f"a tree to save is a dictionary, not {type(tree).__name__}",
            do="Put the value under a name",
        )
    document = _down(tree, arrays, ())
    if len(arrays) > MANY_ARRAYS or _cells(document) > MANY_CELLS:
        arrays = _PackedArrays()
        document = _down(tree, arrays, ())
    return dict(document), dict(arrays)


def restore(document: Mapping[str, Any], arrays: Mapping[str, Array]) -> dict[str, Any]:
    """The tree that `flatten` took apart; a document that does not fit its arrays is refused.

    >>> restore({"names": ["a", "b"]}, {})
    {'names': ['a', 'b']}
    """
    return dict(_up(dict(document), _Once(arrays)))


class _PackedArrays(dict[str, Array]):
    """Arrays of a tree whose long lists of any kind are packed."""


def _cells(value: Any) -> int:
    """Values in a document."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_cells, inner))


class _Once(dict[str, Array]):
    """Arrays that can each be taken once: `flatten` names none twice, and a list made of one takes memory again."""

    def take(self, name: Any) -> Array:
        if not isinstance(name, str) or name not in self:
            raise _damaged(f"an array {shown(name)} that is not there, or was named before")
        return self.pop(name)


def _down(value: Any, arrays: Arrays, path: tuple[str, ...]) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, np.ndarray):
        return _array_down(value, arrays)
    if isinstance(value, Mapping):
        keys = {key: _key_down(key, path) for key in value}
        # In sorted order, so that the order in which a dictionary was filled does not change the file.
        return {keys[key]: _down(value[key], arrays, (*path, key)) for key in sorted(keys)}
    if isinstance(value, (list, tuple)):
        return _list_down(list(value), arrays, path)
    raise UsageError(
        "tree-unsupported",
        f"a value of type {type(value).__name__} cannot be saved",
        where="/".join(shown(part) for part in path),
        do="Save numbers, text, lists, dictionaries and arrays only",
    )


def _key_down(key: object, path: tuple[str, ...]) -> str:
    if not isinstance(key, str):
        raise UsageError(
            "tree-key",
            f"a key of type {type(key).__name__} cannot be saved",
            where="/".join(shown(part) for part in path),
            do="Use text as keys",
        )
    return "$" + key if key.startswith("$") else key


def _store(array: Array, arrays: Arrays) -> str:
    name = f"a{len(arrays)}"
    arrays[name] = array
    return name


def _array_down(array: Array, arrays: Arrays) -> dict[str, Any]:
    if array.dtype == np.bool_:
        return {"$flags": _store(array.astype(np.uint8), arrays)}
    return {"$array": _store(array, arrays)}


def _list_down(items: list[Any], arrays: Arrays, path: tuple[str, ...]) -> Any:
    kinds = {type(item) for item in items} if len(items) > LONG_LIST else set()
    if kinds == {str}:
        texts = [item.encode("utf-8", "surrogatepass") for item in items]
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        content = np.frombuffer(b"".join(texts), dtype=np.uint8)
        return {"$texts": [_store(content, arrays), _store(ends, arrays)]}
    if kinds == {float}:
        return {"$numbers": _store(np.array(items, dtype=np.float64), arrays)}
    if kinds == {int} and all(item in INT64 for item in items):
        return {"$numbers": _store(np.array(items, dtype=np.int64), arrays)}
    if isinstance(arrays, _PackedArrays) and len(items) > LONG_LIST:
        packed = parted(items, lambda array: _store(array, arrays))
        if packed is not None:
            return {"$list": packed}
    return [_down(item, arrays, (*path, str(i))) for i, item in enumerate(items)]


def _up(value: Any, arrays: _Once) -> Any:
    if isinstance(value, list):
        return [_up(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    marks = [key for key in value if key.startswith("$") and not key.startswith("$$")]
    if not marks:
        return {key.removeprefix("$"): _up(item, arrays) for key, item in value.items()}
    if len(value) != 1 or marks[0] not in READERS:
        raise _damaged(f"an unknown mark {shown(marks[0])}")
    return READERS[marks[0]](value[marks[0]], arrays)


def _array_of(name: Any, arrays: _Once) -> Array:
    return arrays.take(name)


def _float_up(text: Any, _: _Once) -> float:
    if not isinstance(text, str) or text not in UNUSUAL:
        raise _damaged(f"a number {shown(text)}")
    return UNUSUAL[text]


def _flags_up(name: Any, arrays: _Once) -> Array:
    array = _array_of(name, arrays)
    if array.dtype != np.uint8 or (array.size and array.max() > 1):
        raise _damaged("flags that are not 0 or 1")
    return array.astype(np.bool_)


def _numbers_up(name: Any, arrays: _Once) -> list[Any]:
    array = _array_of(name, arrays)
    if array.ndim != 1 or array.dtype not in (np.float64, np.int64):
        raise _damaged("a list of numbers that is not one")
    return list(array.tolist())


def _texts_up(names: Any, arrays: _Once) -> list[str]:
    if not isinstance(names, list) or len(names) != 2:
        raise _damaged("a list of text without its two arrays")
    content, ends = (_array_of(name, arrays) for name in names)
    if content.dtype != np.uint8 or ends.dtype != np.int64 or content.ndim != 1 or ends.ndim != 1:
        raise _damaged("a list of text whose arrays are of another type")
    bounds = [0, *ends.tolist()]
    if any(b < a for a, b in pairwise(bounds)) or bounds[-1] != content.size:
        raise _damaged("a list of text whose bounds do not fit")
    raw = content.tobytes()
    try:
        return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(bounds)]
    except UnicodeDecodeError:
        raise _damaged("text that is not UTF-8") from None


def _list_up(packed: Any, arrays: _Once) -> list[Any]:
    try:
        return joined(packed, arrays.take)
    except Unpacked:
        raise _damaged("a long list that does not fit its arrays") from None


READERS = {
    "$array": _array_of,
    "$flags": _flags_up,
    "$float": _float_up,
    "$list": _list_up,
    "$numbers": _numbers_up,
    "$texts": _texts_up,
}


def _damaged(what: str) -> ModelFileError:
    return ModelFileError(
        "model-damaged",
        f"the document of the file holds {what}",
        do="Fit and save the model again, or get a new copy of the file",
    )

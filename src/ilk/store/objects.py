"""Results of a fit as trees of arrays and numbers, and back: what a checkpoint keeps of them.

Frozen records (dataclasses of ours), lists, tuples, dictionaries, arrays and numbers. An array comes back with the
order its axes had in memory, and what was one object is one again, so that whoever goes on with it does the same to
the last bit. Nothing in a file names what is not a record of ours that is loaded already, and nothing of it is called.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

PACKAGE = "ilk."
KEY_BYTES = 16
PLAIN = (bool, int, float, str, type(None))


class Unkept(Exception):
    """A value that is not made of records, arrays and numbers."""


def encoded(value: Any, given: Any = ()) -> bytes:
    """A value as bytes: the length of a document, the document in JSON, and the cells of its arrays. What it shares
    with `given`, an object for an object, is not written and comes back as that object.

    >>> decoded(encoded([(1, np.float64(2.5)), {"b": None, "a": np.arange(2)}]))
    [(1, np.float64(2.5)), {'b': None, 'a': array([0, 1])}]
    """
    down = _Down(given)
    document = json.dumps(down.tree(value), separators=(",", ":")).encode()
    return b"".join([len(document).to_bytes(8, "little"), document, *down.cells])


def decoded(data: bytes, given: Any = ()) -> Any:
    """The value again; `Unkept` where the bytes are not those that `encoded` gives."""
    end = 8 + int.from_bytes(data[:8], "little")
    try:
        return _Up(memoryview(data)[end:], given).value(json.loads(data[8:end]))
    except (
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        AttributeError,
        RecursionError,
        StopIteration,
    ) as error:
        raise Unkept(f"a damaged value: {error}") from None


def _objects(value: Any, found: dict[int, Any]) -> dict[int, Any]:
    """The arrays and records in a value by their identity, in the order in which they are met."""
    if type(value) in PLAIN or id(value) in found:
        return found
    if isinstance(value, (list, tuple)):
        for item in value:
            _objects(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _objects(item, found)
    elif isinstance(value, np.ndarray):
        found[id(value)] = value
    elif is_dataclass(kind := cast(Any, type(value))):
        found[id(value)] = value
        for name in _names(kind):
            _objects(getattr(value, name), found)
    return found


_NAMES: dict[Any, tuple[str, ...]] = {}


def _names(kind: Any) -> tuple[str, ...]:
    """The fields of a record, asked once: many are walked."""
    if kind not in _NAMES:
        _NAMES[kind] = tuple(field.name for field in fields(kind))
    return _NAMES[kind]


class _Down:
    def __init__(self, given: Any) -> None:
        self.held = list(_objects(given, {}).values())  # nobody else has their identity while these are there
        self.known = {id(value): number for number, value in enumerate(self.held)}
        self.cells: list[bytes] = []
        self.n_bytes = 0

    def tree(self, value: Any) -> Any:
        kind = type(value)
        if kind in PLAIN:
            return value
        if isinstance(value, (list, tuple)):
            return self._list(value)
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value))}
        if isinstance(value, Enum):
            return {"enum": [_name(kind), value.name]}
        if id(value) in self.known:
            return {"same": self.known[id(value)]}
        self.known[id(value)] = len(self.known)
        self.held.append(value)
        if kind is np.ndarray:
            return {"array": self._array(value)}
        if kind is dict:
            return {"map": [[self.tree(key), self.tree(item)] for key, item in value.items()]}
        if is_dataclass(kind):
            return {
                "record": _name(kind),
                "fields": [self.tree(getattr(value, name)) for name in _names(kind)],
            }
        raise Unkept(f"a {kind.__name__} cannot be kept")

    def _list(self, items: Any) -> Any:
        kind = type(items)
        inner = self._rows(items) or [self.tree(item) for item in items]
        if kind is list:
            return inner
        return {"tuple": inner} if kind is tuple else {"named": [_name(kind), inner]}

    def _rows(self, items: Any) -> Any:
        """Records of one kind that hold plain values alone, such as those of a trace, by column; None for others."""
        if len(items) < 2 or not is_dataclass(kind := type(items[0])):
            return None
        columns = [[getattr(item, name, self) for item in items] for name in _names(kind)]
        if any(type(cell) not in PLAIN for column in columns for cell in column):
            return None
        return {"rows": _name(kind), "columns": columns} if {*map(type, items)} == {kind} else None

    def _array(self, array: Array) -> Any:
        """The place of the cells, which are in the order of memory, and how to get the array from them."""
        if array.dtype.kind not in "biufc" or not array.dtype.isnative:
            raise Unkept(f"an array of type {array.dtype} cannot be kept")
        axes = None
        if not array.flags.c_contiguous:
            axes = sorted(range(array.ndim), key=lambda axis: (-abs(array.strides[axis]), axis))
            array = array.transpose(axes)
        self.cells.append(array.tobytes())
        self.n_bytes += array.nbytes
        return [self.n_bytes - array.nbytes, array.dtype.str, array.shape, axes]


class _Up:
    def __init__(self, cells: memoryview, given: Any) -> None:
        self.cells = cells
        self.known: list[Any] = list(_objects(given, {}).values())

    def value(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self.value(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        return READERS[next(iter(tree))](self, tree)

    def tuple_(self, tree: Any) -> Any:
        return tuple(self.value(tree["tuple"]))

    def named(self, tree: Any) -> Any:
        name, items = tree["named"]
        kind = _class(name, lambda kind: issubclass(kind, tuple))
        return tuple.__new__(kind, self.value(items))

    def rows(self, tree: Any) -> Any:
        kind = _class(tree["rows"], is_dataclass)
        return [_made(kind, row) for row in zip(*tree["columns"], strict=True)]

    def _numbered(self, make: Callable[[], Any]) -> Any:
        """Numbers are given in the order in which `_Down` met the values, from the outside in."""
        number = len(self.known)
        self.known.append(None)
        self.known[number] = made = make()
        return made

    def array(self, tree: Any) -> Any:
        return self._numbered(lambda: self._array(tree["array"]))

    def scalar(self, tree: Any) -> Any:
        return self._array(tree["scalar"])[()]

    def _array(self, parts: Any) -> Array:
        first, name, shape, axes = parts
        dtype = np.dtype(name)
        if dtype.kind not in "biufc":
            raise Unkept("an array of a type that is not kept")
        end = first + math.prod(shape) * dtype.itemsize
        array = np.frombuffer(self.cells[first:end], dtype).reshape(shape).copy()
        return array if axes is None else array.transpose(np.argsort(axes))

    def map_(self, tree: Any) -> Any:
        return self._numbered(lambda: {self.value(key): self.value(item) for key, item in tree["map"]})

    def same(self, tree: Any) -> Any:
        return self.known[tree["same"]]

    def enum(self, tree: Any) -> Any:
        name, member = tree["enum"]
        return _class(name, lambda kind: issubclass(kind, Enum))[member]

    def record(self, tree: Any) -> Any:
        kind = _class(tree["record"], is_dataclass)
        return self._numbered(lambda: _made(kind, [self.value(item) for item in tree["fields"]]))


READERS: dict[str, Callable[[_Up, Any], Any]] = {
    "tuple": _Up.tuple_,
    "named": _Up.named,
    "rows": _Up.rows,
    "array": _Up.array,
    "scalar": _Up.scalar,
    "map": _Up.map_,
    "same": _Up.same,
    "enum": _Up.enum,
    "record": _Up.record,
}


def _made(kind: Any, values: Sequence[Any]) -> Any:
    """A record of these fields, without calling anything of its class."""
    made = object.__new__(kind)
    for name, value in zip(_names(kind), values, strict=True):
        object.__setattr__(made, name, value)
    return made


def _name(kind: type) -> str:
    if not kind.__module__.startswith(PACKAGE) or "." in kind.__qualname__:
        raise Unkept(f"a {kind.__qualname__} cannot be kept")
    return f"{kind.__module__}:{kind.__qualname__}"


def _class(name: str, fits: Callable[[Any], bool]) -> Any:
    """A class of ours that is loaded already, since the work whose result it is has its inputs of the same kinds."""
    module, _, kind = name.partition(":")
    found = getattr(sys.modules.get(module), kind, None) if module.startswith(PACKAGE) else None
    if not isinstance(found, type) or found.__module__ != module or not fits(found):
        raise Unkept(f"an unknown record {name!r}")
    return found


def key_of(*values: Any) -> bytes:
    """A short name for the content of values; fields that make no two records unequal do not count.

    >>> key_of(1.0, [np.zeros(2)]) == key_of(1.0, [np.zeros(2)]), key_of(1.0) == key_of(1)
    (True, False)
    """
    digest, known = blake2b(digest_size=KEY_BYTES), dict[int, int]()
    for value in values:
        _feed(digest, value, known)
    return digest.digest()


def _feed(digest: Any, value: Any, known: dict[int, int]) -> None:
    if isinstance(value, np.ndarray):
        digest.update(f"a{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes() if value.dtype.kind != "O" else _refuse(value))
    elif isinstance(value, Enum):
        digest.update(f"e{type(value).__qualname__}.{value.name};".encode())
    elif value is None or isinstance(value, (bool, int, float, str, bytes, np.generic)):
        digest.update(f"{type(value).__name__}{value!r};".encode("utf-8", "surrogatepass"))
    elif isinstance(value, (list, tuple)):
        digest.update(f"l{len(value)};".encode())
        for item in value:
            _feed(digest, item, known)
    elif isinstance(value, Mapping):
        digest.update(f"m{len(value)};".encode())
        for name in sorted(value):
            _feed(digest, name, known)
            _feed(digest, value[name], known)
    elif id(value) in known:
        digest.update(f"s{known[id(value)]};".encode())
    elif is_dataclass(value) and not isinstance(value, type):
        known[id(value)] = len(known)
        digest.update(f"r{type(value).__module__}.{type(value).__qualname__};".encode())
        for field in fields(value):
            if field.compare:
                _feed(digest, getattr(value, field.name), known)
    elif callable(value) and "<" not in getattr(value, "__qualname__", "<"):
        digest.update(f"f{value.__module__}.{value.__qualname__};".encode())
    else:
        _refuse(value)


def _refuse(value: Any) -> Any:
    raise Unkept(f"a {type(value).__name__} has no name")

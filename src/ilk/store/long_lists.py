"""Long lists of records, of rows and of mixed values as few arrays, so that a model of 100,000 columns can be saved.

A list is parted by the kind of its items, and each part is kept as one: numbers, flags and text as arrays, lists and
rows end to end with where they end, records key by key. Nothing takes more memory than a multiple of the bytes that
the file has for it: every item has at least a byte of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Store = Callable[[Array], str]
KINDS = ("none", "flags", "whole", "real", "texts", "rows", "lists", "records")
INT64 = range(-(2**63), 2**63)


class Unpacked(ValueError):
    """A list that cannot be taken apart, or does not fit its arrays."""


def kind_of(item: Any) -> str | None:
    """How an item is kept; None for what has no place in a long list."""
    if item is None:
        return "none"
    if isinstance(item, bool):
        return "flags"
    if isinstance(item, int):
        return "whole" if item in INT64 else None
    if isinstance(item, float):
        return "real"
    if isinstance(item, str):
        return "texts"
    if isinstance(item, np.ndarray):
        return "rows" if item.dtype == np.float64 and item.ndim == 1 else None
    if isinstance(item, (list, tuple)):
        return "lists"
    return "records" if isinstance(item, dict) and all(isinstance(key, str) for key in item) else None


def parted(items: list[Any], keep: Store) -> list[Any] | None:
    """The list as nodes, each of parts of one kind; the last is the list, those within it come before. None where an
    item has no kind."""
    nodes: list[Any] = []
    try:
        _node(items, keep, nodes)
    except Unpacked:
        return None
    return nodes


def _node(items: list[Any], keep: Store, nodes: list[Any]) -> int:
    """The number of the node of a list: a document stays flat however deep its lists are."""
    kinds = [kind_of(item) for item in items]
    _need(None not in kinds)
    code = np.array([KINDS.index(kind) for kind in kinds if kind is not None], dtype=np.uint8)
    parts = {}
    for number in sorted(set(code.tolist())):
        inside = [item for item, own in zip(items, code.tolist(), strict=True) if own == number]
        parts[KINDS[number]] = _part(KINDS[number], inside, keep, nodes)
    nodes.append({"of": keep(code), "parts": parts})
    return len(nodes) - 1


def _part(kind: str, items: list[Any], keep: Store, nodes: list[Any]) -> Any:
    if kind == "none":
        return None
    if kind in ("flags", "whole", "real"):
        return keep(np.array(items, dtype={"flags": np.uint8, "whole": np.int64, "real": np.float64}[kind]))
    if kind == "texts":
        raw = [item.encode("utf-8", "surrogatepass") for item in items]
        return [keep(np.frombuffer(b"".join(raw), dtype=np.uint8)), keep(_ends(raw))]
    if kind == "rows":
        return [keep(np.concatenate(items)), keep(_ends(items))]
    if kind == "lists":
        return [_node([cell for item in items for cell in item], keep, nodes), keep(_ends(items))]
    made = []
    for key in sorted({key for item in items for key in item}):
        has = np.array([key in item for item in items], dtype=np.uint8)
        values = _node([item[key] for item in items if key in item], keep, nodes)
        made.append([key, None if has.all() else keep(has), values])
    return [len(items), made]


def _ends(items: list[Any]) -> Array:
    return np.cumsum([len(item) for item in items], dtype=np.int64)


class _ListReader:
    """The nodes of a file, each read once; a node names only those before it."""

    def __init__(self, nodes: list[Any], take: Callable[[Any], Array]) -> None:
        self.nodes, self.take = list(nodes), take

    def items(self, number: Any, below: int) -> list[Any]:
        _need(isinstance(number, int) and not isinstance(number, bool) and 0 <= number < below)
        node, self.nodes[number] = self.nodes[number], None
        _need(isinstance(node, dict) and node.keys() == {"of", "parts"} and isinstance(node["parts"], dict))
        code, parts = self.take(node["of"]), node["parts"]
        _need(code.dtype == np.uint8 and code.ndim == 1)
        counts = np.bincount(code, minlength=len(KINDS))
        _need(len(counts) == len(KINDS) and {KINDS[n] for n in np.flatnonzero(counts)} == parts.keys())
        inside = {
            KINDS.index(kind): iter(self.part(kind, part, int(counts[KINDS.index(kind)]), number))
            for kind, part in parts.items()
        }
        return [next(inside[own]) for own in code.tolist()]

    def part(self, kind: str, part: Any, count: int, below: int) -> list[Any]:
        if kind == "none":
            _need(part is None)
            return [None] * count
        if kind in ("flags", "whole", "real"):
            return self.numbers(kind, part, count)
        _need(isinstance(part, list) and len(part) == 2)
        if kind == "records":
            return self.records(part, count, below)
        if kind == "lists":
            inner = self.items(part[0], below)
            return [inner[a:b] for a, b in _cuts(self.take(part[1]), count, len(inner))]
        content = self.take(part[0])
        _need(content.ndim == 1 and content.dtype == (np.float64 if kind == "rows" else np.uint8))
        cuts = _cuts(self.take(part[1]), count, len(content))
        if kind == "rows":
            return [content[a:b] for a, b in cuts]
        raw = content.tobytes()
        try:
            return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in cuts]
        except UnicodeDecodeError:
            raise Unpacked from None

    def numbers(self, kind: str, name: Any, count: int) -> list[Any]:
        array = self.take(name)
        wanted = {"flags": np.uint8, "whole": np.int64, "real": np.float64}[kind]
        _need(array.dtype == wanted and array.shape == (count,))
        _need(kind != "flags" or array.max(initial=0) <= 1)
        return list((array.astype(bool) if kind == "flags" else array).tolist())

    def records(self, part: list[Any], count: int, below: int) -> list[dict[str, Any]]:
        stated, entries = part
        _need(stated == count and isinstance(entries, list))
        made: list[dict[str, Any]] = [{} for _ in range(count)]
        for entry in entries:
            _need(isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], str))
            key, has, values = entry
            those = made
            if has is not None:
                flags = self.take(has)
                _need(flags.dtype == np.uint8 and flags.shape == (count,))
                those = [record for record, there in zip(made, flags.tolist(), strict=True) if there]
            cells = self.items(values, below)
            _need(len(cells) == len(those))
            for record, cell in zip(those, cells, strict=True):
                record[key] = cell
        return made


def joined(nodes: Any, take: Callable[[Any], Array]) -> list[Any]:
    """The list that `parted` took apart."""
    _need(isinstance(nodes, list) and len(nodes) > 0)
    return _ListReader(nodes, take).items(len(nodes) - 1, len(nodes))


def _cuts(ends: Array, count: int, length: int) -> list[tuple[int, int]]:
    _need(ends.dtype == np.int64 and ends.shape == (count,))
    bounds = [0, *ends.tolist()]
    _need(bounds[-1] == length and all(a <= b for a, b in pairwise(bounds)))
    return list(pairwise(bounds))


def _need(holds: bool) -> None:
    if not holds:
        raise Unpacked

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
Down = Callable[[Any], Any]
Store = Callable[[Array], str]
KINDS = ("none", "flags", "whole", "real", "texts", "rows", "lists", "records")
INT64 = range(-(2**63), 2**63)


class Unpacked(ValueError):
    """A list that does not fit its arrays."""


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


def parted(items: list[Any], keep: Store) -> dict[str, Any] | None:
    """The list as parts of one kind each; None where an item has no kind."""
    kinds = [kind_of(item) for item in items]
    if None in kinds:
        return None
    code = np.array([KINDS.index(kind) for kind in kinds if kind is not None], dtype=np.uint8)
    parts = {}
    for number in sorted(set(code.tolist())):
        inside = [item for item, own in zip(items, code.tolist(), strict=True) if own == number]
        part = _part(KINDS[number], inside, keep)
        if part is _NO_PART:
            return None
        parts[KINDS[number]] = part
    return {"of": keep(code), "parts": parts}


_NO_PART = object()


def _part(kind: str, items: list[Any], keep: Store) -> Any:
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
        inner = parted([cell for item in items for cell in item], keep)
        return _NO_PART if inner is None else [inner, keep(_ends(items))]
    made = {}
    for key in sorted({key for item in items for key in item}):
        values = parted([item[key] for item in items if key in item], keep)
        if values is None:
            return _NO_PART
        has = np.array([key in item for item in items], dtype=np.uint8)
        made[key] = [None if has.all() else keep(has), values]
    return [len(items), [[key, *entry] for key, entry in made.items()]]


def _ends(items: list[Any]) -> Array:
    return np.cumsum([len(item) for item in items], dtype=np.int64)


def joined(value: Any, take: Callable[[Any], Array], depth: int = 8) -> list[Any]:
    """The list that `parted` took apart."""
    _need(depth > 0 and isinstance(value, dict) and value.keys() == {"of", "parts"})
    code, parts = take(value["of"]), value["parts"]
    _need(code.dtype == np.uint8 and code.ndim == 1 and isinstance(parts, dict))
    counts = np.bincount(code, minlength=len(KINDS))
    _need(len(counts) == len(KINDS) and {KINDS[n] for n in np.flatnonzero(counts)} == parts.keys())
    inside = {
        KINDS.index(kind): iter(_items(kind, part, int(counts[KINDS.index(kind)]), take, depth))
        for kind, part in parts.items()
    }
    return [next(inside[number]) for number in code.tolist()]


def _items(kind: str, part: Any, count: int, take: Callable[[Any], Array], depth: int) -> list[Any]:
    if kind == "none":
        _need(part is None)
        return [None] * count
    if kind in ("flags", "whole", "real"):
        wanted = {"flags": np.uint8, "whole": np.int64, "real": np.float64}[kind]
        array = take(part)
        _need(array.dtype == wanted and array.shape == (count,))
        _need(kind != "flags" or array.max(initial=0) <= 1)
        return list((array.astype(bool) if kind == "flags" else array).tolist())
    _need(isinstance(part, list) and len(part) == 2)
    if kind == "records":
        return _records(part, count, take, depth)
    if kind == "lists":
        inner = joined(part[0], take, depth - 1)
        return [inner[a:b] for a, b in _cuts(take(part[1]), count, len(inner))]
    content = take(part[0])
    _need(content.ndim == 1)
    cuts = _cuts(take(part[1]), count, len(content))
    if kind == "rows":
        _need(content.dtype == np.float64)
        return [content[a:b] for a, b in cuts]
    _need(content.dtype == np.uint8)
    raw = content.tobytes()
    try:
        return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in cuts]
    except UnicodeDecodeError:
        raise Unpacked from None


def _cuts(ends: Array, count: int, length: int) -> list[tuple[int, int]]:
    _need(ends.dtype == np.int64 and ends.shape == (count,))
    bounds = [0, *ends.tolist()]
    _need(bounds[-1] == length and all(a <= b for a, b in pairwise(bounds)))
    return list(pairwise(bounds))


def _records(part: list[Any], count: int, take: Callable[[Any], Array], depth: int) -> list[dict[str, Any]]:
    stated, entries = part
    _need(stated == count and isinstance(entries, list))
    made: list[dict[str, Any]] = [{} for _ in range(count)]
    for entry in entries:
        _need(isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], str))
        key, has, values = entry
        those = made
        if has is not None:
            flags = take(has)
            _need(flags.dtype == np.uint8 and flags.shape == (count,))
            those = [record for record, there in zip(made, flags.tolist(), strict=True) if there]
        cells = joined(values, take, depth - 1)
        _need(len(cells) == len(those))
        for record, cell in zip(those, cells, strict=True):
            record[key] = cell
    return made


def _need(holds: bool) -> None:
    if not holds:
        raise Unpacked

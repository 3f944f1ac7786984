"""Labels of any kind as codes 0, 1, 2, ...: whole numbers, text, floats, with None and NaN as missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilk.errors import DataError, UsageError, rows_shown

Array = NDArray[Any]
Labels = Sequence[Any] | Array

MISSING = -1
PLAIN_KINDS = "biufSUmM"  # NumPy's letters for the kinds that sort without Python objects.


def codes_of(labels: Labels, name: str = "labels") -> tuple[Array, list[Any]]:
    """Code of each row and the levels they stand for, in sorted order; a missing label has the code -1.

    >>> codes, levels = codes_of(["b", None, "a"])
    >>> codes.tolist(), levels
    ([1, -1, 0], ['a', 'b'])
    """
    values = _values(labels, name)
    if values.dtype.kind not in PLAIN_KINDS:
        return _object_codes(values)
    gone = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=np.bool_)
    if values.dtype.kind in "mM":
        gone = np.isnat(values)
    levels, inverse = _levels_and_codes(values[~gone])
    codes = np.full(values.shape, MISSING, dtype=np.int64)
    codes[~gone] = inverse
    return codes, list(levels.tolist())


def complete_codes(labels: Labels, name: str = "labels") -> tuple[Array, list[Any]]:
    """As `codes_of`, and a missing label is refused."""
    codes, levels = codes_of(labels, name)
    gone = np.flatnonzero(codes == MISSING)
    if gone.size:
        raise DataError(
            "labels-missing",
            f"{name} has rows without a label",
            where=rows_shown(gone.tolist()),
            do="Leave those rows out, or give them a label of their own",
        )
    return codes, levels


def same_length(n_rows: int, n_other: int, name: str, other: str) -> None:
    """Refuse two columns that do not speak of the same rows."""
    if n_rows != n_other:
        raise UsageError(
            "lengths-differ",
            f"{name} has {n_rows} rows and {other} has {n_other}",
            do="Give one label per row, in the same order",
        )
    if n_rows == 0:
        raise DataError("no-rows", f"{name} has no rows", do="Give at least one row")


def _levels_and_codes(values: Array) -> tuple[Array, Array]:
    """Sorted levels and the code of each value; counted, not sorted, where whole numbers lie close."""
    if values.dtype.kind in "biu" and values.size:
        low, high = int(values.min()), int(values.max())
        if high < 2**62 and high - low < 2 * values.size + 1000:
            shifted = values.astype(np.int64) - low
            present = np.bincount(shifted) > 0
            levels = np.flatnonzero(present) + low
            return levels.astype(values.dtype), (np.cumsum(present) - 1)[shifted]
    return np.unique(values, return_inverse=True)


def _values(labels: Labels, name: str) -> Array:
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__"):
        raise UsageError(
            "bad-labels",
            f"{name} is a {type(labels).__name__}, not a column of labels",
            do="Give a list or array with one label per row",
        )
    if hasattr(labels, "dtype"):
        values = np.asarray(labels)
    else:
        items = list(labels)
        # A list of one kind is a plain array; NumPy would turn [1, "1"] into two equal texts.
        kinds = {type(item) for item in items}
        values = (
            np.asarray(items) if len(kinds) == 1 and kinds <= {int, float, str, bool} else _objects(items)
        )
    if values.ndim != 1:
        raise UsageError("bad-labels", f"{name} has {values.ndim} dimensions", do="Give one label per row")
    return values


def _objects(items: list[Any]) -> Array:
    values = np.empty(len(items), dtype=object)
    values[:] = items
    return values


def _object_codes(values: Array) -> tuple[Array, list[Any]]:
    items = values.tolist()
    try:
        found = {item for item in items if not is_missing(item)}
    except TypeError:
        raise UsageError(
            "bad-labels",
            "a label is a list or something else that cannot be compared",
            do="Use whole numbers or text as labels",
        ) from None
    levels = sorted(found, key=_sort_key)
    numbers = {level: code for code, level in enumerate(levels)}
    codes = [MISSING if is_missing(item) else numbers[item] for item in items]
    return np.array(codes, dtype=np.int64), levels


def is_missing(item: object) -> bool:
    """None, NaN and the missing marks of pandas; anything that is not equal to itself.

    >>> is_missing(float("nan")), is_missing(""), is_missing(0)
    (True, False, False)
    """
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(item, (float, np.floating)) and math.isnan(item)


def _sort_key(item: Any) -> tuple[int, Any]:
    if isinstance(item, (int, float, np.number)):
        return 0, item
    return (1, item) if isinstance(item, str) else (2, str(item))

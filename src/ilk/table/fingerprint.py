"""A short name for the content of a table: two tables with the same columns and cells have the same one."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ilk.table.read import Table

ROWS_AT_ONCE = 1 << 20


def fingerprint(table: Table) -> str:
    """SHA-256 over the names, the kinds and the cells of the columns, in order.

    >>> from ilk.table.read import read
    >>> fingerprint(read({"a": [1.0, 2.0]})) == fingerprint(read({"a": [1.0, 2.0]}))
    True
    """
    digest = hashlib.sha256()
    for name in table.names:
        digest.update(repr(name).encode())
        if name in table.problems:
            continue
        column = table.column(name)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        for chunk in chunks:
            for first in range(0, len(chunk), ROWS_AT_ONCE):
                _add(digest, chunk.slice(first, ROWS_AT_ONCE))
    return digest.hexdigest()


def _joined(text: pa.LargeStringArray) -> memoryview:
    """The bytes of all texts one after the other, as they lie in memory: none is missing."""
    if not len(text):
        return memoryview(b"")
    _, offsets, letters = text.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[text.offset : text.offset + len(text) + 1]
    return memoryview(b"" if letters is None else letters)[int(ends[0]) : int(ends[-1])]


def _add(digest: Any, cells: Any) -> None:
    """The cells as bytes that do not depend on how Arrow cut or stored them."""
    whole = cells.null_count == 0
    lost = np.zeros(len(cells), dtype=bool) if whole else cells.is_null().to_numpy(zero_copy_only=False)
    digest.update(np.packbits(lost).tobytes())
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_boolean(cells.type):
        cells = cells.cast(pa.int8())
    if pa.types.is_floating(cells.type) or pa.types.is_integer(cells.type):
        values = (cells if whole else pc.fill_null(cells, 0)).to_numpy(zero_copy_only=False)
        digest.update(np.ascontiguousarray(values).tobytes())
        return
    if pa.types.is_interval(cells.type):  # which Arrow does not write as text
        cells = pa.array([None if cell is None else str(cell) for cell in cells.to_pylist()])
    text = pc.fill_null(cells.cast(pa.large_string()), "")
    digest.update(pc.binary_length(text).to_numpy(zero_copy_only=False).tobytes())
    digest.update(_joined(text))

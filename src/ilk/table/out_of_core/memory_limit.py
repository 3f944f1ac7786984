"""How much memory a run may use, and whether a table fits into it or is read in pieces."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import chain
from math import isfinite
from typing import Any

import pyarrow as pa

from ilk.errors import UsageError, shown
from ilk.table.files import text_options
from ilk.table.out_of_core.disk import machine_bytes
from ilk.table.out_of_core.pieces import KeptPieces, ParquetPieces
from ilk.table.out_of_core.table import PieceTable
from ilk.table.out_of_core.text import read_text_pieces
from ilk.table.read import Table, display_name, from_arrow, read

MEMORY = "ILK_MEMORY"
"""Environment variable: memory to use where nothing else is said, also by estimators."""
SHARE_OF_MACHINE = 0.8
COPIES = 3  # of a decoded table that a run in memory holds at its peak: Arrow, numbers, and one in the making
LEAST = 100 << 20
TEXT_ENDINGS = (".csv", ".tsv", ".txt")
TEXT_GROWS = 2  # times its bytes on disk: the text and the numbers made of it
UNPACKED = 8  # times the bytes of a packed text
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_UNITS |= {"KI": 2.0**10, "MI": 2.0**20, "GI": 2.0**30, "TI": 2.0**40}


def memory_bytes(memory: Any) -> float:
    """Bytes that a run may use: a number, a text such as "2GB", or None for what `ILK_MEMORY` says, else for most of
    what the machine has.

    >>> memory_bytes("1.5GB"), memory_bytes("512 MiB")
    (1500000000.0, 536870912.0)
    """
    name = "memory"
    if memory is None:
        name, memory = MEMORY, os.environ.get(MEMORY, "").strip() or None
    if memory is None:
        return SHARE_OF_MACHINE * machine_bytes()
    found = None
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", memory.upper())
    if found is not None and found[2] in _UNITS:
        size = float(found[1]) * _UNITS[found[2]]
    elif isinstance(memory, (int, float)) and not isinstance(memory, bool) and isfinite(memory):
        size = float(memory)
    else:
        raise UsageError(
            "bad-memory", f"{name}={shown(memory)!r} is not a size", do='Give bytes, or a text such as "2GB"'
        )
    if size < LEAST:
        raise UsageError(
            "bad-memory", f"{name}={shown(memory)!r} is too little", do=f"Give at least {LEAST >> 20} MiB"
        )
    return size


def open_table(data: Any, memory: Any = None, **reading: Any) -> Table | PieceTable:
    """The table in memory where it fits, else in pieces: Parquet files and folders, delimited text, Arrow streams."""
    room = memory_bytes(memory) / COPIES
    if reading.get("sql") is None:
        if isinstance(data, (str, os.PathLike)):
            path = os.fspath(data)
            if _is_parquet(path) and _parquet_bytes(pieces := ParquetPieces(path)) > room:
                return PieceTable(pieces)
            if (found := _text_file(path, room)) is not None:
                options = text_options(**{name: value for name, value in reading.items() if name != "sql"})
                return read_text_pieces(path, display_name(path), options, packed=found == "packed")
        elif isinstance(data, pa.RecordBatchReader):
            return _of_batches(iter(data), data.schema, "Arrow reader", room)
        elif hasattr(data, "to_arrow_reader") and hasattr(data, "columns"):  # a DuckDB relation
            batches = data.to_arrow_reader(1 << 16)
            return _of_batches(iter(batches), batches.schema, "DuckDB relation", room)
    return read(data, **reading)


def _text_file(path: str, room: float) -> str | None:
    """Whether a path is a delimited text file too large for memory: "plain", "packed", or None."""
    name = path.lower()
    packed = name.endswith(".gz")
    if not os.path.isfile(path) or not name.removesuffix(".gz").endswith(TEXT_ENDINGS):
        return None
    size = os.path.getsize(path) * (UNPACKED if packed else 1)
    return None if size * TEXT_GROWS <= room else "packed" if packed else "plain"


def _is_parquet(path: str) -> bool:
    if os.path.isdir(path):
        return True
    try:
        with open(path, "rb") as stream:
            return stream.read(4) == b"PAR1"
    except OSError:
        return False  # what is wrong is told by `read`


def _parquet_bytes(pieces: ParquetPieces) -> float:
    """About how many bytes a table takes decoded: numbers have eight, dictionaries may be smaller on disk."""
    return float(max(pieces.declared_bytes, 8 * pieces.first_rows[-1] * len(pieces.schema)))


def _of_batches(batches: Iterator[Any], schema: Any, source: str, room: float) -> Table | PieceTable:
    """A stream: in memory as long as it fits, and on disk from there on."""
    held: list[Any] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > room:
            return PieceTable(KeptPieces(chain(held, batches), schema, source))
    return from_arrow(pa.Table.from_batches(held, schema), source)

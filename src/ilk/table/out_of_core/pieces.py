"""Tables that are read in pieces, again and again: Parquet row groups, Arrow batches, and streams kept on disk.

A piece is what one thread decodes: it gives its rows as Arrow tables of at most so many rows, with the same columns
and types in every piece. The caller cuts them to blocks.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ilk.errors import DataError, shown
from ilk.table.files import FolderFile, check_row_counts, damaged, is_cut_short, parquet_files
from ilk.table.scratch import room

BATCH_BYTES = 4 << 20
"""About so many bytes, decoded, of a batch."""
MOST_ROWS = 1 << 16


class Pieces(Protocol):
    """A table in pieces; `first_rows` holds where each begins, and at last the number of rows."""

    source: str

    @property
    def first_rows(self) -> Sequence[int]: ...

    @property
    def schema(self) -> Any: ...

    def read(self, piece: int, columns: Sequence[str]) -> Iterator[Any]:
        """The rows of one piece, in order, as Arrow tables of these columns."""
        ...


def batch_rows(n_columns: int) -> int:
    """Rows of a batch of so many columns."""
    return max(1024, min(MOST_ROWS, BATCH_BYTES // (8 * max(1, n_columns))))


def bounds(counts: Sequence[int]) -> list[int]:
    """Where pieces of so many rows begin, and where the last ends.

    >>> bounds([2, 0, 3])
    [0, 2, 2, 5]
    """
    made = [0]
    for count in counts:
        made.append(made[-1] + count)
    return made


@dataclass(frozen=True)
class _RowGroup:
    file: FolderFile
    facts: Any  # the file's metadata: read once
    number: int


class ParquetPieces:
    """The row groups of one file, or of all files of a folder in the order of their names."""

    def __init__(self, path: str) -> None:
        import pyarrow.parquet as pq

        self.source, files = parquet_files(path)
        groups: list[_RowGroup] = []
        schemas = []
        for file in files:
            if is_cut_short(Path(file.path)):
                raise damaged(
                    file.name, "Parquet", "its first or last four bytes are not PAR1; it may be cut short"
                )
            with _readable(file.name), pq.ParquetFile(file.path, arrow_extensions_enabled=False) as opened:
                schemas.append(file.with_given(opened.schema_arrow.empty_table()).schema)
                facts = opened.metadata
                check_row_counts(facts, file.name)
                groups += [_RowGroup(file, facts, number) for number in range(facts.num_row_groups)]
        try:
            self.schema = pa.unify_schemas(schemas, promote_options="default")
        except pa.ArrowException as error:
            raise DataError(
                "schemas-differ",
                f"the files of {self.source} have different columns: {shown(str(error), 120)}",
            ) from None
        self._groups = groups
        self.first_rows = bounds([group.facts.row_group(group.number).num_rows for group in groups])
        self.declared_bytes = sum(g.facts.row_group(g.number).total_byte_size for g in groups)
        self._marks = {file.path: _mark(file.path) for file in files}

    def read(self, piece: int, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow.parquet as pq

        group = self._groups[piece]
        own = group.file
        if _mark(own.path) != self._marks[own.path]:
            raise DataError(
                "file-changed",
                f"{own.name} changed while it was read",
                do="Run again when it no longer changes",
            )
        wanted = pa.schema([self.schema.field(name) for name in columns])
        n_rows = 0
        with (
            _readable(own.name),
            pq.ParquetFile(own.path, metadata=group.facts, arrow_extensions_enabled=False) as file,
        ):
            there = set(file.schema_arrow.names)
            present = [name for name in columns if name in there]
            batches = file.iter_batches(
                batch_rows(len(columns)), row_groups=[group.number], columns=present, use_threads=False
            )
            for batch in batches:
                n_rows += batch.num_rows
                yield _conformed(own.with_given(batch), wanted)
        if n_rows != self.first_rows[piece + 1] - self.first_rows[piece]:
            raise damaged(
                own.name, "Parquet", f"a row group gives {n_rows} rows, other than its footer counts"
            )


def _mark(path: str) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ino


class _readable:
    """Arrow's complaints about a file as ours."""

    def __init__(self, name: str, kind: str = "Parquet") -> None:
        self.name, self.kind = name, kind

    def __enter__(self) -> None: ...

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        if isinstance(error, (pa.ArrowException, OSError, UnicodeDecodeError)):
            raise damaged(self.name, self.kind, str(error)) from None


def _conformed(batch: Any, wanted: Any) -> Any:
    """A batch with the columns and types of the whole table; a column that a file lacks is missing."""
    columns = []
    for field in wanted:
        place = batch.schema.get_field_index(field.name)
        cells = pa.nulls(batch.num_rows, field.type) if place < 0 else batch.column(place)
        columns.append(cells if cells.type == field.type else cells.cast(field.type))
    return pa.Table.from_arrays(columns, schema=wanted)


class KeptPieces:
    """A stream that can be read only once, kept on disk batch by batch; `change` is made to every batch read.

    The file has no name, so that it is gone with the process, however that ends.
    """

    def __init__(
        self, batches: Iterable[Any], schema: Any, source: str, change: Callable[[Any], Any] | None = None
    ) -> None:
        self.source, self.change = source, change
        self._kept_schema = schema
        with room():
            self._file = tempfile.TemporaryFile(prefix="ilk-")  # noqa: SIM115
        self._places: list[tuple[int, int]] = []
        counts: list[int] = []
        rows = batch_rows(len(schema))
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        for batch in batches:
            for first in range(0, batch.num_rows, rows):
                part = batch.slice(first, rows)
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, schema, options=options) as writer:
                    writer.write(part)
                kept = sink.getvalue()
                self._places.append((self._file.tell(), kept.size))
                with room():
                    self._file.write(kept)
                counts.append(part.num_rows)
        with room():
            self._file.flush()
        self.first_rows = bounds(counts)

    @property
    def schema(self) -> Any:
        empty = self._kept_schema.empty_table()
        return (empty if self.change is None else self.change(empty)).schema

    def read(self, piece: int, columns: Sequence[str]) -> Iterator[Any]:
        first, size = self._places[piece]
        with pa.ipc.open_stream(os.pread(self._file.fileno(), size, first)) as opened:
            table = opened.read_all()
        yield (table if self.change is None else self.change(table)).select(list(columns))

"""Delimited text larger than memory: cut in batches, kept on disk as text, and typed by what all cells look like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ilk.errors import DataError
from ilk.table.clean import plain_text
from ilk.table.columns import usable_names
from ilk.table.containers import unpack_gzip
from ilk.table.files import TextOptions
from ilk.table.out_of_core.pieces import KeptPieces
from ilk.table.out_of_core.table import PieceTable
from ilk.table.scratch import scratch
from ilk.table.text import (
    CsvDialect,
    account,
    cutting,
    dialect_of,
    file_decimal,
    header_rows,
    line_ends,
    repeated_header,
)
from ilk.table.text_cells import (
    Look,
    as_text,
    as_typed,
    look_at,
    mark_cautions,
    marks_of,
    marks_taken,
    settled,
    total_row,
)


def read_text_pieces(path: str, name: str, options: TextOptions, *, packed: bool = False) -> PieceTable:
    """As `read_text`, for a file larger than memory."""
    with scratch() as folder:
        if packed:
            path = unpack_gzip(path, folder, name)
        plain, facts, told = plain_text(path, folder, name, options.encoding)
        dialect, cautions = dialect_of(plain, name, options)
        cautions += told
        names, found = usable_names(dialect.names or [f"x{j}" for j in range(dialect.n_fields)], text=True)
        cautions += found
        seen = _BatchFacts(names=names, dialect=dialect, options=options, looks=[Look()] * len(names))
        with cutting(plain, dialect, facts.longest) as (reader, rejected):
            schema = pa.schema(
                [(column, field.type) for column, field in zip(names, reader.schema, strict=True)]
            )
            pieces = KeptPieces(seen.watched(reader), schema, name)
            rejects = rejected()
    ledger = account(seen.n_rows, seen.inside, rejects, dialect, facts, name, options)
    if seen.headers:
        cautions.append(repeated_header(seen.headers))
        ledger = ledger.without("repeated header", seen.headers)
    if ledger.used == 0:
        raise DataError("no-rows", f"{name} has a header and no rows", do="Give at least one row")
    cautions += mark_cautions(seen.taken)
    if dialect.n_fields > 1 and ledger.used > 1:
        cautions += total_row(seen.last)
    looks = settled(seen.looks)
    looks = [
        as_text(look) if own in options.as_text else look for own, look in zip(names, looks, strict=True)
    ]
    pieces.change = partial(_typed, tuple(looks), options)
    return PieceTable(pieces, ledger, cautions, decimal=file_decimal(dialect, options))


@dataclass(kw_only=True)
class _BatchFacts:
    """What the batches tell on their way to the disk."""

    names: tuple[str, ...]
    dialect: CsvDialect
    options: TextOptions
    looks: list[Look]
    n_rows: int = 0
    inside: int = 0
    headers: list[int] = field(default_factory=list)
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    last: str | None = None

    def watched(self, batches: Any) -> Iterator[Any]:
        marks, decimal = marks_of(self.options), self.options.decimal
        for batch in batches:
            self.inside += sum(line_ends(column) for column in batch.columns)
            repeats = header_rows(batch.columns, self.dialect)
            if repeats is not None:
                self.headers += [self.n_rows + row for row in pc.indices_nonzero(repeats).to_pylist()]
            self.n_rows += batch.num_rows
            kept = batch if repeats is None else batch.filter(pc.invert(repeats))
            if not kept.num_rows:
                continue
            for j, (name, column) in enumerate(zip(self.names, kept.columns, strict=True)):
                self.looks[j] += look_at(column, marks, decimal, sep=self.dialect.sep)
                self.taken += marks_taken(name, column, marks)
            self.last = kept.column(0)[-1].as_py()
            yield kept.rename_columns(list(self.names))


def _typed(looks: tuple[Look, ...], options: TextOptions, table: Any) -> Any:
    marks = marks_of(options)
    columns = [
        as_typed(column, marks, options.decimal, look)
        for column, look in zip(table.columns, looks, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)

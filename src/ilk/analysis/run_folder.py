"""The folder of a run, `customers.ilk/`: report, model, assignments, summary, all written at one stroke."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from ilk.analysis.folder import (
    ASSIGNMENTS,
    FITS,
    MODEL,
    REPORT,
    SUMMARY,
    find_assignments,
    no_assignments,
)
from ilk.analysis.result import Result
from ilk.errors import (
    Caution,
    DataError,
    IlkError,
    ResourceError,
    UsageError,
    recorded,
    shown,
)
from ilk.model.file import write_kept
from ilk.model.model import Model
from ilk.model.placed import settled
from ilk.report.explanation import without_rows
from ilk.report.page import page
from ilk.report.reading import read_summary
from ilk.store import folder as folders
from ilk.store import write_atomically
from ilk.store.check import Unfit, either, maybe, number, record, text
from ilk.store.folder import Claim
from ilk.table.addresses import place_of
from ilk.table.out_of_core.table import PieceTable
from ilk.table.read import Table, read

SUFFIX = ".ilk"
PACKED = (".gz", ".zst", ".bz2")
CSV_ROWS = 65536
HURRIED_ROWS = 200_000  # assigned in half a second
FILES = (MODEL, *ASSIGNMENTS, FITS, REPORT, SUMMARY)
LEAST_BYTES = 1 << 18  # a small report, its summary and a model
SHARE_OF_INPUT = 8  # of a file, at least, that its assignments take

Columns = dict[str, Any]
"""Some rows by column, in the order in which they are written."""


def folder_for(source: str) -> str:
    """Where a run is written by default: the name of the table with `.ilk`, in the current folder.

    >>> folder_for("data/customers.csv"), folder_for("a.csv.gz"), folder_for("-")
    ('customers.ilk', 'a.ilk', 'stdin.ilk')
    """
    name = "stdin" if source == "-" else os.path.basename(os.path.normpath(place_of(source)))
    for ending in PACKED:
        name = name.removesuffix(ending)
    stem = os.path.splitext(name)[0] or "table"
    safe = "".join(c if c.isprintable() and c not in "/\\" else "_" for c in stem)
    return safe.lstrip("-. ")[:100] + SUFFIX if safe.strip("-. ") else "table" + SUFFIX


def check_free(folder: str, source: str, *, force: bool) -> None:
    """Refuse, before any work, a folder that must not be written to."""
    where = shown(folder, 200)
    if os.path.islink(folder):
        raise UsageError(
            "output-is-link",
            "the output folder is a symbolic link",
            where=where,
            do="Give the folder itself: --output DIR",
        )
    if (
        source != "-"
        and os.path.exists(source)
        and os.path.exists(folder)
        and os.path.samefile(source, folder)
    ):
        raise UsageError(
            "output-is-input", "the output folder is the input", where=where, do="Give another: --output DIR"
        )
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise UsageError(
            "output-exists", "the output folder is a file", where=where, do="Give another: --output DIR"
        )
    if _entries(folder) and not force:
        with contextlib.suppress(ResourceError), folders.claimed(folder, FILES):
            pass  # a writer that died when the folder was whole may have left its lock
        raise UsageError(
            "output-exists",
            "the output folder exists already",
            where=where,
            do="Overwrite it with --force, or choose another with --output DIR",
        )
    folders.check_writable(folder, FILES)


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder) if os.path.isdir(folder) else []
    except OSError as error:
        raise ResourceError(
            "write-failed",
            f"the output folder cannot be read: {error.strerror}",
            where=shown(folder, 200),
            do="Get the rights, or choose another: --output DIR",
        ) from None


@contextlib.contextmanager
def claimed(folder: str, source: str = "-") -> Iterator[Claim]:
    """Hold the folder of a run from before the fit: its rights, its room and who else writes to it are known then."""
    size = 0
    with contextlib.suppress(OSError):
        size = os.path.getsize(source) if os.path.isfile(source) else 0
    with folders.claimed(folder, FILES, LEAST_BYTES + size // SHARE_OF_INPUT) as claim:
        yield claim


def write_run(result: Result, folder: str, *, force: bool = False, **how: Any) -> dict[str, Any]:
    """Write all files of a run at one stroke and give back the summary as written; `how` as in `write_into`."""
    with claimed(folder) as claim:
        return write_into(claim, result, force=force, **how)


def write_into(
    claim: Claim,
    result: Result,
    *,
    force: bool = False,
    rows: bool = True,
    parquet: bool = False,
    assignments: bool = True,
    marks: dict[str, Any] | None = None,
    fits: Mapping[int, Model] | None = None,
) -> dict[str, Any]:
    """As `write_run`, to a folder that is held; `fits` are the models of other K that the search had.

    Of a run that was stopped, the assignments of a large table are left out: they take longer than all else.
    """
    summary = {**result.summary(), **(marks or {})}
    if not rows:
        summary = without_rows(summary)

    def make(target: Path) -> None:  # nobody else writes there: files are renamed, not linked
        result.model.save(target / MODEL, overwrite=True)
        files = [MODEL]
        if rows and assignments:
            files = [*_write_assignments(target, claim.folder, result, summary, parquet), MODEL]
        if fits:
            write_kept(target / FITS, {str(k): model for k, model in fits.items()})
            files.append(FITS)
        summary["folder"], summary["files"] = claim.folder, [REPORT, *files, SUMMARY]
        written = page(summary).encode()
        write_atomically(target / REPORT, written, overwrite=True)
        summary["sizes"] = {REPORT: len(written)}
        write_atomically(target / SUMMARY, json_bytes(summary), overwrite=True)

    claim.write(make, force=force)
    return summary


def _write_assignments(
    target: Path, folder: str, result: Result, summary: dict[str, Any], parquet: bool
) -> list[str]:
    """The names of the files that were written."""
    if result.interrupted and result.table.n_rows > HURRIED_ROWS:
        text = f"there was no time for the assignments of all rows; ilk assign {shown(folder, 200)} DATA gives them"
        summary["warnings"].append(Caution("no-assignments", text).to_dict())
        return []
    name = "assignments.parquet" if parquet else "assignments.csv"
    with warnings.catch_warnings(record=True) as made:
        warnings.simplefilter("always")
        write_parts(target / name, assignment_parts(result), result.table.n_rows, overwrite=True)
    summary["warnings"] += [caution.to_dict() for caution in recorded(made) if caution[0] == "column-renamed"]
    return [name]


def write_all(result: Result, folder: str, **how: Any) -> dict[str, Any]:
    """As `write_run`; a signal on the way makes it write once more, without what takes time."""
    try:
        return write_run(result, folder, **how)
    except KeyboardInterrupt:
        return write_run(result.stopped(), folder, **{**how, "force": True, "fits": None})


def json_bytes(document: Any) -> bytes:
    """Valid JSON in plain ASCII, so that no terminal or reader is surprised."""
    return (json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode()


def assignment_parts(result: Result) -> Iterator[Columns]:
    """Row number, id and truth where named, then what `assign` gives."""
    schema = result.model.schema
    names = [name for name in (schema.id, schema.truth) if name is not None]
    for first, part in _numbered(result.table):
        here = slice(first, first + part.n_rows)
        labels = result.finest()[here]
        columns: Columns = {"row": np.arange(here.start, here.stop)}
        columns.update({name: part.column(name) for name in names})
        if not result.model.has_rule:
            yield columns | result.model.label_columns(labels, tuple(columns))
            continue
        placed = result.placed or settled(result.model.place(part), labels)
        columns.update(result.model.columns_for(placed, tuple(columns)))
        yield columns


def new_parts(
    model: Model, table: Table | PieceTable, *, with_data: bool = False, absent: str = "error"
) -> Iterator[Columns]:
    """The columns that `ilk assign` writes, part by part of the table."""
    keep = table.names if with_data else [name for name in (model.schema.id,) if name in table.names]
    for first, part in _numbered(table):
        columns: Columns = {} if "row" in keep else {"row": np.arange(first, first + part.n_rows)}
        columns.update({name: part.column(name) for name in keep})
        columns.update(model.columns_for(model.place(part, absent=absent), tuple(columns)))
        yield columns


def _numbered(table: Table | PieceTable) -> Iterator[tuple[int, Table]]:
    """The parts of a table, each with the number of its first row: one part of a table in memory."""
    first = 0
    for part in table.parts() if isinstance(table, PieceTable) else [table]:
        yield first, part
        first += part.n_rows


def write_columns(path: str | os.PathLike[str], columns: Columns, *, overwrite: bool = False) -> None:
    """CSV, or Parquet where the path says so, at one stroke."""
    write_parts(path, iter([columns]), _length(columns), overwrite=overwrite)


def write_parts(
    path: str | os.PathLike[str], parts: Iterator[Columns], n_rows: int, *, overwrite: bool = False
) -> None:
    """As `write_columns`, rows part by part; refused, and nothing written, unless just `n_rows` come."""
    packed = str(path).endswith((".parquet", ".pq"))

    def write(file: IO[bytes]) -> None:
        if packed:
            _write_parquet(file, counted(parts, n_rows))
            return
        for chunk in csv_chunks(counted(parts, n_rows)):
            file.write(chunk.encode("utf-8", "backslashreplace"))

    write_atomically(path, write, overwrite=overwrite)


def counted(parts: Iterator[Columns], n_rows: int) -> Iterator[Columns]:
    """The parts as they are; an error at the end unless they held just so many rows."""
    written = 0
    for columns in parts:
        written += _length(columns)
        yield columns
    if written != n_rows:
        raise DataError(
            "rows-lost",
            f"{n_rows} rows were read and {written} would be written",
            do="The table may have changed on the way: run again when it no longer changes",
        )


def _write_parquet(file: IO[bytes], parts: Iterator[Columns]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for columns in parts:
        table = pa.table(columns)
        if writer is None:  # a part whose groups are all missing tells nothing of their type
            fields = [
                pa.field(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in table.schema
            ]
            writer = pq.ParquetWriter(file, pa.schema(fields))
        writer.write_table(table.cast(writer.schema))
    if writer is not None:
        writer.close()


def _length(columns: Columns) -> int:
    return max((len(values) for values in columns.values()), default=0)


def csv_chunks(parts: Iterator[Columns]) -> Iterator[str]:
    """CSV text, header first, some thousand rows at a time; a missing cell is empty."""
    for place, columns in enumerate(parts):
        yield from _csv_of_part(columns, header=place == 0)


def _csv_of_part(columns: Columns, *, header: bool) -> Iterator[str]:
    n_rows = _length(columns)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    if header:
        writer.writerow(columns)
    for first in range(0, n_rows, CSV_ROWS):
        parts = [_cells(values[first : first + CSV_ROWS]) for values in columns.values()]
        writer.writerows(zip(*parts, strict=True))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _cells(values: Any) -> list[Any]:
    cells = values.to_pylist() if hasattr(values, "to_pylist") else values.tolist()
    return ["" if cell is None or cell != cell else cell for cell in cells]


PLACED = record(
    {"group": maybe(either(text(), number()))},
    {
        "segment": maybe(text()),
        "second": maybe(text()),
        "probability": maybe(number(0.0, 1.0)),
        "novelty": maybe(number(0.0, 1.0)),
    },
)


def find_row(run: str, row: int, data: str | None) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What a run says of one row, and its cells where the table is given."""
    path = find_assignments(run)
    placed = _row_of(read(path), row)
    try:
        PLACED(placed, "")
    except Unfit as unfit:
        raise no_assignments(path, f"the column {unfit.name} of the assignments is not valid") from None
    return {"row": row, **placed}, None if data is None else _row_of(read(data), row)


def _row_of(table: Table, number: int) -> dict[str, Any]:
    if number >= table.n_rows:
        raise UsageError(
            "no-such-row",
            f"{table.source} has no row {number}",
            do=f"Rows are counted from 0 to {table.n_rows - 1}",
        )
    return {name: table.column(name)[number].as_py() for name in table.names if name not in table.problems}


def is_demo(folder: str) -> bool:
    """Whether a folder was written by `ilk demo`, which may then write it again."""
    try:
        return read_summary(os.path.join(folder, SUMMARY), follow=False).get("demo") is True
    except IlkError:
        return False

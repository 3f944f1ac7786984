"""Tables inside other files: workbooks, and one file in a zip, gzip or zstd archive; which file has which reader."""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from ilk.errors import Caution, DataError, IlkError, Option, ResourceError, UsageError, names_shown, shown
from ilk.table.columns import NUMBER
from ilk.table.databases import SQLITE, Rows, is_duckdb, of_cells, query_tables, read_duckdb, read_sqlite
from ilk.table.files import (
    MAX_STREAM_BYTES,
    MAX_UNPACK_RATIO,
    RATIO_FROM_BYTES,
    TextOptions,
    copy_capped,
    damaged,
)
from ilk.table.read import Table
from ilk.table.text_cells import mark_cautions, marks_of

GZIP, ZSTD, ZIP, OLD_EXCEL = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
ZIP_FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    EOFError,
    ValueError,  # names that are no text
    RuntimeError,  # a way to pack that Python does not know (NotImplementedError), a password
)
WORKBOOK = 'Install its reader (pip install "ilk[excel]"), or save the sheet as CSV'


def unpack_one(path: str, folder: str, name: str, head: bytes) -> tuple[str, str] | None:
    """The one file in an archive, unpacked, and its ending; None where the file is no archive of one file."""
    if head.startswith(ZIP):
        return _unzipped(path, os.path.join(folder, "unpacked"), name)
    kind, opened = ("gzip", _gzip) if head.startswith(GZIP) else ("zstd", _zstd)
    return _unpacked(path, folder, name, kind, opened), Path(os.path.splitext(name)[0]).suffix.lower()


def unpack_gzip(path: str, folder: str, name: str) -> str:
    """What a gzip file holds, as a file in `folder`."""
    return _unpacked(path, folder, name, "gzip", _gzip)


def _unpacked(path: str, folder: str, name: str, kind: str, opened: Callable[[str], Any]) -> str:
    target = os.path.join(folder, "unpacked")
    try:
        with closing(opened(path)) as stream:
            copy_capped(stream.read, target, name, os.path.getsize(path))
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise damaged(name, kind, str(error)) from None
    return target


def _gzip(path: str) -> Any:
    return gzip.open(path, "rb")


def _zstd(path: str) -> Any:
    return pa.input_stream(path, compression="zstd")


def _unzipped(path: str, target: str, name: str) -> tuple[str, str] | None:
    """The member of a zip archive; its own name is never a path."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [
                m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")
            ]
            if any(m.filename.startswith("xl/") for m in members):
                return None
            parts = PurePosixPath(members[0].filename).parts if len(members) == 1 else ()
            if not parts or ".." in parts or parts[0] == "/" or members[0].flag_bits & 1:
                why = (
                    "whose file has a path or a password"
                    if parts
                    else f"with {len(members)} files that can be read"
                )
                raise DataError(
                    "wrong-format",
                    f"{name} looks like a zip archive {why}",
                    do="Unpack it first and give the file in it",
                )
            with archive.open(members[0]) as stream:
                copy_capped(stream.read, target, name, members[0].compress_size)
            return target, Path(parts[-1]).suffix.lower()
    except IlkError:
        raise
    except ZIP_FAULTS as error:
        raise damaged(name, "zip", str(error)) from None


def read_workbook(path: str, name: str, options: TextOptions, what: str) -> Table:
    """A sheet of a workbook: the one named, or the first with cells."""
    try:
        import python_calamine
    except ImportError:
        raise DataError("wrong-format", f"{name} looks like {what}", do=WORKBOOK) from None
    _check_size(path, name)
    try:
        book = python_calamine.load_workbook(path)
        sheets = list(book.sheet_names)
        if options.sql is not None:
            return _query_sheets(book, sheets, name, options)
        rows, sheet, others = _sheet_rows(book, sheets, options.sheet, name)
    except IlkError:
        raise
    except (python_calamine.CalamineError, OSError, ValueError) as error:
        text = shown(str(error).splitlines()[0] if str(error) else "no reason given", 120)
        raise DataError(
            "wrong-format", f"{name} looks like {what} that cannot be read: {text}", do=WORKBOOK
        ) from None
    cautions = []
    if others:
        option = Option("sheet", shown(others[0]))
        listed = names_shown(others)
        text = f"sheet {shown(sheet)!r} is read; {name} has others, too ({listed}): {option}"
        cautions.append(Caution("other-sheets", text, [option]))
    return _of_sheet(rows, name, options, cautions)


def _query_sheets(book: Any, sheets: list[str], name: str, options: TextOptions) -> Table:
    """What a query over the sheets gives, each read when it is named."""

    def one(sheet: str) -> Table:
        return _of_sheet(_sheet_rows(book, sheets, sheet, name)[0], name, options, [])

    def wanted() -> str:
        return _sheet_rows(book, sheets, options.sheet, name)[1]

    assert options.sql is not None
    return query_tables({sheet: partial(one, sheet) for sheet in sheets}, options.sql, name, wanted)


def _sheet_rows(book: Any, sheets: list[str], wanted: str | None, name: str) -> tuple[Rows, str, list[str]]:
    if wanted is not None:
        if wanted not in sheets:
            option, listed = Option("sheet", shown(wanted)), names_shown(sheets)
            raise UsageError(
                "no-table", f"{option} is no sheet of {name}", do=f"It has {listed}", options=[option]
            )
        return book.get_sheet_by_name(wanted).to_python(), wanted, []
    full = [(own, rows) for own in sheets if (rows := book.get_sheet_by_name(own).to_python())]
    if not full:
        raise DataError("no-rows", f"{name} has no sheet with cells")
    return full[0][1], full[0][0], [own for own, _ in full[1:]]


def _check_size(path: str, name: str) -> None:
    """Refuse a workbook that unpacks to more than there may be."""
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except ZIP_FAULTS as error:
        raise damaged(name, "zip", str(error)) from None
    if size > min(MAX_STREAM_BYTES, max(RATIO_FROM_BYTES, MAX_UNPACK_RATIO * os.path.getsize(path))):
        raise ResourceError("too-large", f"{name} gives {size:,} bytes", do="Save the sheet as CSV")


def _of_sheet(rows: Rows, name: str, options: TextOptions, cautions: list[Caution]) -> Table:
    """Cells of a sheet: names in the first full row, marks for "not known" as missing cells."""
    width = max(map(len, rows))
    filled = [sum(cell not in ("", None) for cell in row) for row in rows]
    first = 0
    while first < len(rows) - 1 and filled[first] <= width / 2 and width > 1:
        first += 1
    if first:
        cautions.append(Caution("lines-skipped", f"{first} rows above the header of {name} were skipped"))
    header = options.header
    if header is None:
        header = not any(_is_number(cell) for cell in rows[first])
    names = rows[first] if header else [f"x{j}" for j in range(width)]
    body = [row for row in rows[first + header :] if any(cell not in ("", None) for cell in row)]
    if not body:
        raise DataError("no-rows", f"{name} has a header and no rows", do="Give at least one row")
    marks, taken = marks_of(options), Counter[tuple[str, str]]()
    for row in body:
        for j, cell in enumerate(row):
            if isinstance(cell, str) and (bare := cell.strip()) in marks:
                row[j] = None
                if bare:
                    taken[bare, str(names[j])] += 1
            elif isinstance(cell, float) and cell.is_integer():
                row[j] = int(cell)  # a workbook has one kind of number
    table = of_cells(names, body, name)
    return replace(table, warnings=(*cautions, *table.warnings, *mark_cautions(taken)))


def _is_number(cell: Any) -> bool:
    return isinstance(cell, (int, float)) or (
        isinstance(cell, str) and NUMBER.fullmatch(cell.strip()) is not None
    )


READERS: tuple[tuple[Callable[[bytes], bool], Callable[[str, str, TextOptions], Table]], ...] = (
    (lambda head: head.startswith(SQLITE), read_sqlite),
    (is_duckdb, read_duckdb),
    (
        lambda head: head.startswith(OLD_EXCEL),
        lambda path, name, options: read_workbook(path, name, options, "an old Excel workbook"),
    ),
    (
        lambda head: head.startswith(ZIP),
        lambda path, name, options: read_workbook(path, name, options, "an Excel workbook"),
    ),
)
"""How a file is known by its first bytes, and what reads it; of zip archives only workbooks come here."""

"""What can be taken away from a run: assignments, model, report, SQL, JSON, the whole folder in a zip."""

from __future__ import annotations

import io
import os
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ilk.analysis.folder import FITS, MODEL, REPORT, SUMMARY, find_assignments, find_model
from ilk.analysis.run_folder import csv_chunks, json_bytes, new_parts
from ilk.errors import UsageError, shown
from ilk.export.dialects import dialect_of
from ilk.export.record import record
from ilk.export.sql import select

CHUNK = 2**18
PLAIN = {"model": MODEL, "report": REPORT, "summary": SUMMARY}
DIALECTS = ("duckdb", "spark")


def exported(version: Path, what: str) -> tuple[str, Iterator[bytes]]:
    """The name of a file and what is in it."""
    if what in PLAIN:
        return PLAIN[what], _file(version / PLAIN[what])
    if what == "assignments":
        path = Path(find_assignments(str(version)))
        return path.name, _file(path)
    if what == "zip":
        return "run.zip", _zipped(version)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if what == "json":
            return "model.json", iter([json_bytes(record(find_model(str(version))))])
        if what.removeprefix("sql-") in DIALECTS:
            dialect = what.removeprefix("sql-")
            text = select(find_model(str(version)), dialect_of(dialect), "data")
            return f"assign-{dialect}.sql", iter([text.encode("utf-8", "backslashreplace")])
    raise UsageError("what-to-export", f"{shown(what, 40)!r} is nothing to export", do="Choose from the list")


def assigned(version: Path, table: Path) -> Iterator[bytes]:
    """The groups of new rows as CSV."""
    model = find_model(str(version))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for chunk in csv_chunks(new_parts(model, model.open(str(table)))):
            yield chunk.encode("utf-8", "backslashreplace")


def _file(path: Path) -> Iterator[bytes]:
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    return _read(os.fdopen(handle, "rb"))


def _read(file: Any) -> Iterator[bytes]:
    with file:
        while chunk := file.read(CHUNK):
            yield chunk


def _zipped(version: Path) -> Iterator[bytes]:
    """The files of the version itself: those that `ilk fit` writes."""
    names = [*PLAIN.values(), FITS, os.path.basename(find_assignments(str(version)))]
    held = tempfile.SpooledTemporaryFile(max_size=2**24)  # noqa: SIM115  closed by who reads it
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as pack:
        for name in names:
            if (version / name).is_file() and not (version / name).is_symlink():
                pack.write(version / name, name)
    held.seek(0, io.SEEK_SET)
    return _read(held)

"""Files: the format, told by the first bytes, and the readers of Parquet and Arrow."""

from __future__ import annotations

import difflib
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import pyarrow as pa

from ilk.errors import DataError, Option, ResourceError, UsageError, shown
from ilk.table.addresses import POSTGRES, is_address, place_of
from ilk.table.read import Table, display_name, from_arrow, query
from ilk.table.scratch import scratch, spool

NEAR_NAME = 0.75
"""How much of two file names must agree for one to be meant; an ending alone is half of a short name."""
MAX_STREAM_BYTES = 16 * 2**30
"""Most bytes taken from a pipe or out of a compressed file."""
MAX_UNPACK_RATIO, RATIO_FROM_BYTES = 300, 256 * 2**20
"""A file that grows more than 300 times, past the first 256 MiB, is not a table but a bomb."""
MAX_PARQUET_BYTES = 4 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 5
"""Most bytes a Parquet file may declare: four fifths of the memory of this machine."""
NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The folder of the rows whose partition column is missing."""

_FOREIGN: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF", "a PDF document", "Give the table itself"),
    (b"\x93NUMPY", "a NumPy file", "Load it with numpy.load and give the array"),
    (b"\x89HDF", "an HDF5 file", "Load it first and give the frame"),
    (b"\x80\x04\x95", "a Python pickle", "Load it yourself if you trust it, and give the frame"),
    (b"\x80\x05\x95", "a Python pickle", "Load it yourself if you trust it, and give the frame"),
    (b"BZh", "a bzip2 archive", "Unpack it first"),
    (b"\xfd7zXZ", "an xz archive", "Unpack it first"),
    (b"7z\xbc\xaf", "a 7-zip archive", "Unpack it first"),
    (b"PARE", "an encrypted Parquet file", "Decrypt it first"),
    (b"ORC", "an ORC file", "Convert it to Parquet"),
)


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How a text file is to be read; None means that it is found out."""

    sep: str | None = None
    header: bool | None = None
    encoding: str | None = None
    decimal: str = "."
    missing: tuple[str, ...] | None = None
    max_rejects: int = 0
    sheet: str | None = None
    table: str | None = None
    sql: str | None = None
    as_text: tuple[str, ...] = ()  # columns that a model reads by itself


def text_options(
    *, missing: Sequence[str] | None = None, as_text: Sequence[str] = (), **given: Any
) -> TextOptions:
    """How a file is to be read, from what the user gave."""
    return TextOptions(missing=_marks(missing), as_text=tuple(as_text), **given)


def _marks(missing: Sequence[str] | None) -> tuple[str, ...] | None:
    if isinstance(missing, str):
        given = Option("missing", shown(missing))
        raise UsageError("bad-option", f"{given} is one text", do='Give a list: ["NA", "-"]', options=[given])
    return None if missing is None else tuple(missing)


def read_path(path: str, options: TextOptions) -> Table:
    """A table from a file, a folder of Parquet files, a PostgreSQL server, or "-"; names are taken literally."""
    if path == "-":
        if sys.stdin is None:
            raise UsageError(
                "no-file", "standard input is closed", do="Give a file, or rows on standard input"
            )
        return _read_stream(sys.stdin.buffer, "stdin", options)
    if is_address(path):
        return _read_address(path, options)
    if "\0" in path:
        raise UsageError("no-file", f"{shown(path)!r} is not a file name")
    try:
        found = os.stat(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    if stat.S_ISDIR(found.st_mode):
        return _queried(_read_folder(path), options)
    if stat.S_ISFIFO(found.st_mode) or os.path.realpath(path).startswith("/proc/"):
        with _opened(path) as stream:
            return _read_stream(stream, display_name(path), options)
    if not stat.S_ISREG(found.st_mode):
        raise UsageError("not-a-file", f"{display_name(path)} is a device or a socket, not a file")
    table = _read_file(path, display_name(path), options)
    after = os.stat(path)
    if (after.st_size, after.st_mtime_ns, after.st_ino) != (found.st_size, found.st_mtime_ns, found.st_ino):
        raise DataError(
            "file-changed",
            f"{display_name(path)} changed while it was read",
            do="Run again when it no longer changes",
        )
    return table


def _read_address(address: str, options: TextOptions) -> Table:
    """Servers of PostgreSQL are asked; all other addresses are refused, and never shown with a password."""
    if address.startswith(POSTGRES):
        from ilk.table.databases import read_postgres

        return read_postgres(address, options)
    raise UsageError(
        "remote-path",
        f"{shown(place_of(address))!r} is an address, not a file",
        do="Download the file and give its path; of servers only those of PostgreSQL are read (postgresql://)",
    )


def _queried(table: Table, options: TextOptions) -> Table:
    """The table, or what the query over it gives."""
    return table if options.sql is None else query({"data": table}, options.sql, table.source)


def _unreadable(path: str, error: OSError) -> UsageError | DataError:
    name = display_name(path)
    if not isinstance(error, FileNotFoundError):
        return DataError("file-unreadable", f"{name} cannot be read: {error.strerror or error}")
    try:
        near = difflib.get_close_matches(Path(path).name, os.listdir(Path(path).parent), 3, NEAR_NAME)
    except OSError:
        near = []
    hint = f"Did you mean {', '.join(shown(n) for n in near)}?" if near else "Check the path"
    return UsageError("no-file", f"there is no file {shown(path, 120)}", do=hint)


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    try:
        with open(path, "rb") as stream:
            yield stream
    except OSError as error:
        raise _unreadable(path, error) from None


def _read_stream(stream: BinaryIO, name: str, options: TextOptions) -> Table:
    """A pipe is spooled to a file (once, and no more than a cap) and read from there."""
    with scratch() as folder:
        path = os.path.join(folder, "stream")
        copy_capped(stream.read, path, name)
        return _read_file(path, name, options)


def copy_capped(
    take: Callable[[int], bytes], target: str, name: str, packed_bytes: int | None = None
) -> None:
    """Copy a stream to a file; stop at the cap on bytes, and at the cap on growth when it was compressed."""
    size = 0
    with spool(target) as out:
        while chunk := take(1 << 20):
            size += len(chunk)
            bomb = packed_bytes is not None and size > max(RATIO_FROM_BYTES, MAX_UNPACK_RATIO * packed_bytes)
            if size > MAX_STREAM_BYTES or bomb:
                raise ResourceError(
                    "too-large",
                    f"{name} gives more than {size:,} bytes"
                    + (f" out of {packed_bytes:,} packed ones" if packed_bytes is not None else ""),
                    do="Unpack it to a file and give that, if it is really meant",
                )
            out.write(chunk)


def _read_file(path: str, name: str, options: TextOptions, ending: str | None = None) -> Table:
    """A table from a file of any format; `ending` tells that of a file out of an archive."""
    with _opened(path) as stream:
        head = stream.read(4096)
        stream.seek(0, os.SEEK_END)
        size = stream.tell()
        stream.seek(max(0, size - 8))
        tail = stream.read(8)
    packed, ending = ending is None, Path(name).suffix.lower() if ending is None else ending
    if size == 0:
        raise DataError("no-rows", f"{name} is empty", do="Give a file with a header line and rows")
    if head[:4] == b"PAR1" or ending in (".parquet", ".pq"):
        cut_short = head[:4] != b"PAR1" or tail[-4:] != b"PAR1"
        return _queried(_read_parquet(path, name, cut_short=cut_short), options)
    if head[:6] == b"ARROW1" or ending in (".feather", ".arrow", ".ipc") or head[:4] == b"\xff\xff\xff\xff":
        return _queried(_read_arrow(path, name, streamed=head[:4] == b"\xff\xff\xff\xff"), options)
    _refuse_foreign(head, name)
    found = _read_container(path, name, options, head) if packed else None
    if found is not None:
        return found
    if _is_document(head) or ending in (".jsonl", ".ndjson", ".json") or _is_json_lines(head):
        from ilk.table.json_files import read_json

        with _opened(path) as stream:
            return _queried(read_json(stream, name, options, document=_is_document(head)), options)
    from ilk.table.text import read_text

    return _queried(read_text(path, name, options), options)


def _read_container(path: str, name: str, options: TextOptions, head: bytes) -> Table | None:
    """A table inside another file: a database, a workbook, an archive of one file."""
    from ilk.table.containers import GZIP, READERS, ZIP, ZSTD, unpack_one

    if head.startswith((GZIP, ZSTD, ZIP)):
        with scratch() as folder:
            inner = unpack_one(path, folder, name, head)
            if inner is not None:
                return _read_file(inner[0], name, options, inner[1])
    return next((reader(path, name, options) for known, reader in READERS if known(head)), None)


def _refuse_foreign(head: bytes, name: str) -> None:
    """Refuse what is no table of text, and say what it looks like."""
    for magic, what, do in _FOREIGN:
        if head.startswith(magic):
            raise DataError("wrong-format", f"{name} looks like {what}", do=do)
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:200].lower()
    if head[:4] == b"PK\x05\x06":
        raise DataError(
            "wrong-format", f"{name} looks like a zip archive without a file", do="Give the table itself"
        )
    if start.startswith((b"<!doctype html", b"<html", b"<?xml")):
        raise DataError(
            "wrong-format", f"{name} looks like a web page or XML", do="Give the table itself as CSV"
        )


def _is_document(head: bytes) -> bool:
    """Whether a file is one JSON document: a list, or an object that does not end with its line."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if re.match(rb'\[\s*(?:[\[{\d"\]]|$)', start):
        return True
    return start.startswith(b"{") and not _is_json_lines(head)


def _is_json_lines(head: bytes) -> bool:
    line = head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)
    try:
        return isinstance(json.loads(line[0]), dict)
    except (ValueError, RecursionError):
        return line[0].startswith(b'{"') and len(line) == 1 and len(head) >= 4096


def _read_parquet(path: str, name: str, *, cut_short: bool) -> Table:
    import pyarrow.parquet as pq

    if cut_short:
        raise damaged(name, "Parquet", "its first or last four bytes are not PAR1; it may be cut short")
    try:
        with pa.OSFile(path) as handle, pq.ParquetFile(handle, arrow_extensions_enabled=False) as file:
            _check_declared(file.metadata, name)
            arrow, counted = file.read(), file.metadata.num_rows
        arrow.validate(full=True)  # texts may be no UTF-8
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(name, "Parquet", str(error)) from None
    if arrow.num_rows != counted:
        raise damaged(name, "Parquet", f"its footer counts {counted} rows, and it gives {arrow.num_rows}")
    return from_arrow(arrow, name)


def check_row_counts(facts: Any, name: str) -> None:
    """Refuse a Parquet file whose footer counts other rows than its parts."""
    rows = sum(facts.row_group(i).num_rows for i in range(facts.num_row_groups))
    if rows != facts.num_rows or rows < 0:
        raise damaged(name, "Parquet", f"its footer counts {facts.num_rows} rows, its parts {rows}")


def _check_declared(facts: Any, name: str) -> None:
    """Refuse before anything is allocated what would not fit into memory."""
    check_row_counts(facts, name)
    declared = sum(max(facts.row_group(i).total_byte_size, 0) for i in range(facts.num_row_groups))
    declared = max(declared, facts.num_rows * max(facts.num_columns, 1))
    if declared > MAX_PARQUET_BYTES:
        raise ResourceError(
            "too-large",
            f"{name} declares {facts.num_rows:,} rows and {declared / 1e9:,.0f} GB, above the memory",
            do="Read fewer columns or rows (sql), or use a machine with more memory",
        )


def _read_arrow(path: str, name: str, *, streamed: bool) -> Table:
    try:
        with pa.OSFile(path) as handle:
            arrow = (pa.ipc.open_stream if streamed else pa.ipc.open_file)(handle).read_all()
        arrow.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(name, "Arrow", str(error)) from None
    return from_arrow(arrow, name)


def damaged(name: str, kind: str, why: str) -> DataError:
    """The refusal of a file that cannot be read."""
    reason = shown(why.splitlines()[0] if why else "no reason given", 160)
    return DataError(
        "file-damaged", f"{name} is not a readable {kind} file: {reason}", do="Write or fetch it again"
    )


@dataclass(frozen=True)
class FolderFile:
    """A Parquet file, what it is called in messages, and the columns that the names of its folders give."""

    path: str
    name: str
    given: Mapping[str, Any] = field(default_factory=dict)

    def with_given(self, arrow: Any) -> Any:
        """The rows of the file with these columns, unless the file has them itself."""
        for name, value in self.given.items():
            if name not in arrow.column_names:
                arrow = arrow.append_column(name, pa.repeat(value, arrow.num_rows))
        return arrow


def parquet_files(path: str) -> tuple[str, list[FolderFile]]:
    """The name of a Parquet file or folder, and its files in the order of their names; in a folder all but those that
    begin with . or _. Folders called key=value are columns (Hive partitions)."""
    name = display_name(path.rstrip("/"))
    if not os.path.isdir(path):
        return name, [FolderFile(path, name)]
    files = sorted(
        p
        for p in Path(path).rglob("*.parquet")
        if not any(part.startswith(("_", ".")) for part in p.relative_to(path).parts)
    )
    if not files:
        raise UsageError(
            "no-file",
            f"{name} is a folder without Parquet files",
            do="Give one file, or a folder of Parquet files",
        )
    given = _partitions([p.parent.relative_to(path).parts for p in files], name)
    return name, [
        FolderFile(str(p), f"{name}/{shown(p.name)}", own) for p, own in zip(files, given, strict=True)
    ]


def _partitions(folders: Sequence[Sequence[str]], source: str) -> list[dict[str, Any]]:
    """What folders such as year=2024 say: whole numbers where all values of a key are, else text."""
    found = [
        {
            unquote(key): unquote(value)
            for key, sign, value in (p.partition("=") for p in parts)
            if sign and key
        }
        for parts in folders
    ]
    keys = list(found[0])
    if any(list(one) != keys for one in found):
        raise DataError(
            "schemas-differ",
            f"the files of {source} lie in folders that name different columns",
            do="Keep all files at one depth: year=2024/month=1/part.parquet",
        )
    for key in keys:
        values = [None if one[key] == NO_PARTITION else one[key] for one in found]
        whole = all(v is None or re.fullmatch(r"0|-?[1-9][0-9]{0,17}", v) for v in values)
        kind = pa.int64() if whole and any(v is not None for v in values) else pa.large_string()
        for one, value in zip(found, values, strict=True):
            one[key] = pa.scalar(int(value) if value is not None and kind == pa.int64() else value, kind)
    return found


def _read_folder(path: str) -> Table:
    name, files = parquet_files(path)
    tables = [
        f.with_given(_read_parquet(f.path, f.name, cut_short=is_cut_short(Path(f.path))).arrow) for f in files
    ]
    try:
        return from_arrow(pa.concat_tables(tables, promote_options="default"), name)
    except pa.ArrowException as error:
        raise DataError(
            "schemas-differ", f"the files of {name} have different columns: {shown(str(error), 120)}"
        ) from None


def is_cut_short(path: Path) -> bool:
    """Whether a Parquet file lacks its first or last bytes."""
    with _opened(str(path)) as stream:
        first = stream.read(4)
        stream.seek(max(-4, -path.stat().st_size), os.SEEK_END)
        return (first, stream.read(4)) != (b"PAR1", b"PAR1")

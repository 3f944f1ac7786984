"""The folder that the page sees: its tables, its uploads, its runs. No other path can be named."""

from __future__ import annotations

import contextlib
import os
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ilk.analysis.folder import SUMMARY
from ilk.analysis.run_folder import SUFFIX, folder_for
from ilk.errors import ResourceError, UsageError, shown

UPLOADS = "uploads"
ENDINGS = (
    ".csv", ".tsv", ".txt", ".tab", ".parquet", ".pq", ".arrow", ".feather", ".json", ".jsonl", ".ndjson",
    ".xlsx", ".xls", ".ods", ".sqlite", ".sqlite3", ".db", ".duckdb", ".gz", ".zst", ".zip",
)  # fmt: skip
NAME_CHARACTERS = 100
MOST_LISTED = 2_000  # files of a folder


@dataclass(frozen=True)
class Place:
    """A folder, and how much may be uploaded into it."""

    folder: Path
    most_upload: int

    @classmethod
    def of(cls, folder: str | os.PathLike[str], most_upload: int) -> Place:
        return cls(Path(os.path.realpath(folder)), most_upload)

    @property
    def uploads(self) -> Path:
        return self.folder / UPLOADS

    def tables(self) -> list[dict[str, Any]]:
        """Tables of the folder and of the uploads, the newest first."""
        found = [*_plain_files(self.folder, ""), *_plain_files(self.uploads, f"{UPLOADS}/")]
        return sorted(found, key=lambda entry: -entry["changed"])

    def table(self, name: str) -> Path:
        """The path of a table by the name it is listed with."""
        inside, _, last = name.rpartition("/")
        folder = {"": self.folder, UPLOADS: self.uploads}.get(inside)
        if folder is None or not _is_table(last) or not _is_plain(folder / last):
            raise UsageError(
                "no-table", f"there is no table {shown(name, 80)!r} here", do="Choose one of the list"
            )
        return folder / last

    def runs(self) -> list[str]:
        """Names of the runs, the newest first."""
        found = []
        for entry in _entries(self.folder):
            if entry.name.endswith(SUFFIX) and self._is_run(Path(entry.path)):
                with contextlib.suppress(OSError):  # one that is written anew, or gone
                    found.append((-os.lstat(os.path.join(entry.path, SUMMARY)).st_mtime, entry.name))
        return [name for _, name in sorted(found)]

    def run(self, name: str) -> Path:
        """The folder of a run by its name."""
        path = self.folder / name
        if not _is_name(name) or not name.endswith(SUFFIX) or not self._is_run(path):
            raise UsageError(
                "no-run", f"there is no run {shown(name, 80)!r} here", do="Choose one of the list"
            )
        return path

    def _is_run(self, path: Path) -> bool:
        return not path.is_symlink() and path.is_dir() and _is_plain(path / SUMMARY)

    def new_run(self, table: str, taken: set[str]) -> Path:
        """A folder for a run of a table that is not there yet."""
        stem = folder_for(table).removesuffix(SUFFIX)
        for number in range(1, 10_000):
            name = f"{stem}{'' if number == 1 else f'-{number}'}{SUFFIX}"
            if name not in taken and not os.path.lexists(self.folder / name):
                return self.folder / name
        raise ResourceError("too-many-runs", "there are too many runs of this table", do="Remove some")

    def new_upload(self, name: str) -> Path:
        """Where a file of this name is put; the name is made harmless, and never that of another file."""
        self.uploads.mkdir(exist_ok=True)
        if self.uploads.is_symlink():
            raise UsageError("output-is-link", "the folder of uploads is a link", do="Remove it")
        stem, dot, ending = _harmless(name).rpartition(".")
        if not dot or "." + ending.lower() not in ENDINGS:
            raise UsageError(
                "unknown-format",
                f"{shown(name, 80)!r} is no table that ilk reads",
                do="Give CSV, TSV, Parquet, Arrow, JSON, Excel, SQLite or DuckDB, also in gzip, zstd or zip",
            )
        for number in range(1, 10_000):
            path = self.uploads / f"{stem}{'' if number == 1 else f'-{number}'}.{ending}"
            if not os.path.lexists(path):
                return path
        raise ResourceError("too-many-uploads", "there are too many uploads of this name", do="Remove some")


def _harmless(name: str) -> str:
    """A name without folders, characters that act, or a first dot or hyphen."""
    last = name.replace("\\", "/").rpartition("/")[2]
    safe = "".join(c if unicodedata.category(c)[0] not in "CZ" or c == " " else "_" for c in last)
    safe = "".join("_" if c in '<>:"|?*' else c for c in safe).strip().lstrip("-. ")
    stem, dot, ending = safe.rpartition(".")
    return f"{stem[:NAME_CHARACTERS] or 'table'}{dot}{ending[:12]}"


def _is_name(name: str) -> bool:
    return bool(name) and name not in (".", "..") and not any(c in name for c in "/\\\0")


def _is_table(name: str) -> bool:
    return _is_name(name) and not name.startswith(".") and name.lower().endswith(ENDINGS)


def _is_plain(path: Path) -> bool:
    """Whether there is a file, and no link, by this name."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            for count, entry in enumerate(found):
                if count >= MOST_LISTED:
                    return
                yield entry
    except OSError:
        return


def _plain_files(folder: Path, prefix: str) -> Iterator[dict[str, Any]]:
    if folder.is_symlink():
        return
    for entry in _entries(folder):
        if _is_table(entry.name) and entry.is_file(follow_symlinks=False):
            with contextlib.suppress(OSError):  # gone since
                facts = entry.stat(follow_symlinks=False)
                yield {"name": prefix + entry.name, "bytes": facts.st_size, "changed": facts.st_mtime}

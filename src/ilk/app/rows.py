"""The rows of a run by page, order and search: DuckDB over the cells and the groups, whatever their number."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ilk.analysis.folder import find_assignments
from ilk.app.history import COPIES
from ilk.errors import UsageError, shown
from ilk.store import write_atomically
from ilk.table.out_of_core.table import PieceTable
from ilk.table.read import Table

CELLS, GROUPS = COPIES
LARGE_TEXT = 5_000_000  # bytes of assignments from which they are kept in another form, too
NUMBER = 'cast("row" as bigint)'
MOST_A_PAGE = 200
SEARCHED_COLUMNS = 60
TEXT_CHARACTERS = 200
GROUP_ROWS = 122_880  # of a row group, as DuckDB has them


@dataclass(frozen=True)
class Query:
    """Which rows, in which order."""

    group: str | None = None
    search: str = ""
    sort: str | None = None
    down: bool = False
    page: int = 0
    size: int = 50
    only: Sequence[int] | None = None


def write_cells(table: Table | PieceTable, run: Path) -> None:
    """Keep the cells of the table as they were read, so that its rows can be shown."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = table.parts() if isinstance(table, PieceTable) else [table]

    def write(file: IO[bytes]) -> None:
        writer = None
        for part in parts:
            names = [name for name in part.names if name not in part.problems]
            arrow = pa.table({name: _storable(part.column(name)) for name in names})
            writer = pq.ParquetWriter(file, arrow.schema, compression="zstd") if writer is None else writer
            writer.write_table(arrow.cast(writer.schema), row_group_size=GROUP_ROWS)
        if writer is not None:
            writer.close()

    write_atomically(run / CELLS, write, overwrite=True)


def _storable(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string()) if pa.types.is_null(column.type) else column


def has_cells(run: Path) -> bool:
    return (run / CELLS).is_file() and not (run / CELLS).is_symlink()


def rows(run: Path, version: Path, query: Query) -> dict[str, Any]:
    """A page of rows: names of columns, cells as text, and how many rows there are in all."""
    with _RowSource(run, version) as source:
        size = min(max(query.size, 1), MOST_A_PAGE)
        total, wanted = source.found(query, size)
        cells = source.cells_of(wanted)
    return {"columns": source.names, "own": source.own, "rows": cells, "total": total}


class _RowSource:
    """The cells next to the groups, in a database that is asked for these two files and nothing else."""

    def __init__(self, run: Path, version: Path) -> None:
        import duckdb

        self.base = duckdb.connect(":memory:")
        self.base.execute("set threads=2")
        self.aside: tempfile.TemporaryDirectory[str] | None = None
        parts = [self._part(_groups_file(self.base, version, self._literal))]
        kept = has_cells(run)
        if kept:
            parts.insert(0, self._part(self._literal(str(run / CELLS))))
        types = [self._types(part) for part in parts]
        cells = types[0] if kept else {}
        self.own = [name for name in types[-1] if name not in cells]
        self.types = {**{name: types[-1][name] for name in self.own}, **cells}
        self.names = list(self.types)
        chosen = ", ".join(f"g.{_quoted(name)}" for name in self.own)
        chosen += "".join(f", c.{_quoted(name)}" for name in cells)
        both = f"{parts[0]} c positional join {parts[1]} g" if kept else f"{parts[0]} g"
        self.joined = f"(select {chosen} from {both})"  # noqa: S608  names and paths are quoted

    def __enter__(self) -> _RowSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.base.close()
        if self.aside is not None:
            self.aside.cleanup()

    def _literal(self, path: str) -> str:
        """The path, or a link to it where DuckDB would take it for a pattern."""
        if not any(c in path for c in "*?["):
            return path
        self.aside = self.aside or tempfile.TemporaryDirectory(prefix="ilk-rows-")
        link = os.path.join(self.aside.name, os.path.basename(path))
        os.symlink(path, link)
        return link

    @staticmethod
    def _part(path: str) -> str:
        return f"read_parquet({_text(path)})" if path.endswith(".parquet") else _csv(path)

    def _types(self, part: str) -> dict[str, str]:
        found = self.base.execute(f"describe select * from {part}")  # noqa: S608
        return {row[0]: row[1] for row in found.fetchall()}

    def found(self, query: Query, size: int) -> tuple[int, list[int]]:
        """How many rows there are, and the numbers of those on the page, in order."""
        where, given = self.where(query)
        keys = self.keys(query)
        named = "".join(f", {key} as k{i}" for i, key in enumerate(keys))
        text = f"create temp table hits as select {NUMBER} as n{named} from {self.joined}{where}"  # noqa: S608
        self.base.execute(text, given)
        (total,) = self.base.execute("select count(*) from hits").fetchone() or (0,)
        way = " desc" if query.down else ""
        order = "".join(f"k{i}{way} nulls last, " for i in range(len(keys)))
        page = f"select n from hits order by {order}n limit {size} offset {max(query.page, 0) * size}"  # noqa: S608
        return int(total), [row[0] for row in self.base.execute(page).fetchall()]

    def cells_of(self, wanted: list[int]) -> list[list[Any]]:
        """The cells of some rows as texts, in the order asked for."""
        if not wanted:
            return []
        texts = ", ".join(f"left(cast({_quoted(n)} as varchar), {TEXT_CHARACTERS})" for n in self.names)
        asked = f"select {NUMBER}, {texts} from {self.joined} where {NUMBER} in (select unnest(?))"  # noqa: S608
        by_number = {row[0]: list(row[1:]) for row in self.base.execute(asked, [wanted]).fetchall()}
        return [by_number[number] for number in wanted]

    def where(self, query: Query) -> tuple[str, list[Any]]:
        """The condition, with the values that it is asked with."""
        parts, given = [], list[Any]()
        if query.group is not None:
            column = "segment" if "segment" in self.own else "group"
            parts.append(f"{_quoted(column)} = ?")
            given.append(query.group)
        words = query.search.lower().split()[:8]
        if words:
            some = ", ".join(f"cast({_quoted(n)} as varchar)" for n in self.names[:SEARCHED_COLUMNS])
            parts += [f"contains(lower(concat_ws(chr(31), {some})), ?)"] * len(words)
            given += words
        if query.only is not None:
            parts.append(f"{NUMBER} in (select unnest(?))")
            given.append([int(row) for row in query.only])
        return (" where " + " and ".join(parts) if parts else ""), given

    def keys(self, query: Query) -> list[str]:
        """What rows are sorted by: numbers as such, also in texts such as '$1,042.58' and '13%'."""
        if query.sort is None:
            return []
        if query.sort not in self.types:
            raise UsageError(
                "unknown-column", f"there is no column {shown(query.sort)!r}", do="Choose another"
            )
        name = _quoted(query.sort)
        if self.types[query.sort] != "VARCHAR":
            return [name]
        return [f"try_cast(regexp_replace({name}, '[^0-9eE.+-]', '', 'g') as double)", name]


def _groups_file(base: Any, version: Path, literal: Callable[[str], str]) -> str:
    """The assignments of a version; those of a large one in text are kept in a faster form beside it."""
    path = find_assignments(str(version))
    if not path.endswith(".csv") or os.path.getsize(path) < LARGE_TEXT:
        return literal(path)
    fast = version / GROUPS
    if not fast.is_file() or fast.stat().st_mtime < os.path.getmtime(path):
        making = version / f".{GROUPS}.{os.urandom(4).hex()}"
        try:
            base.execute(f"copy (select * from {_csv(literal(path))}) to {_text(making)} (format parquet)")  # noqa: S608
            os.replace(making, fast)
        except Exception:  # a folder that cannot be written to: the text is read each time
            making.unlink(missing_ok=True)
            return literal(path)
    return literal(str(fast))


def _csv(path: str) -> str:
    return f"read_csv({_text(path)}, header=true, delim=',', quote='\"', escape='\"', all_varchar=true)"


def row(run: Path, version: Path, number: int) -> dict[str, Any]:
    """One row: its cells, and where it was put."""
    found = rows(run, version, Query(only=[number], size=1))
    if not found["rows"]:
        raise UsageError("no-such-row", f"there is no row {number}", do="Choose another")
    cells = dict(zip(found["columns"], found["rows"][0], strict=True))
    return {"own": found["own"], "cells": cells}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(path: str | os.PathLike[str]) -> str:
    return "'" + str(path).replace("'", "''") + "'"

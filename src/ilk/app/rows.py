"""The rows of a run by page, order and search: DuckDB over the cells and the groups, whatever their number."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ilk.analysis.folder import find_assignments
from ilk.errors import UsageError, shown
from ilk.store import write_atomically
from ilk.table.out_of_core.table import PieceTable
from ilk.table.read import Table

CELLS = "cells.parquet"
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
    with _Source(run, version) as source:
        where, given = source.where(query)
        (total,) = source.ask(f"select count(*) from {source.joined}{where}", given).fetchone()  # noqa: S608  names are quoted
        size = min(max(query.size, 1), MOST_A_PAGE)
        order = source.order(query)
        cells = ", ".join(
            f"left(cast({_quoted(name)} as varchar), {TEXT_CHARACTERS})" for name in source.names
        )
        page = f" limit {size} offset {max(query.page, 0) * size}"
        text = f"select {cells} from {source.joined}{where}{order}{page}"  # noqa: S608
        found = source.ask(text, given).fetchall()
    return {"columns": source.names, "own": source.own, "rows": [list(row) for row in found], "total": total}


class _Source:
    """The cells next to the groups, in a database that sees these two files and nothing else."""

    def __init__(self, run: Path, version: Path) -> None:
        import duckdb

        self.base = duckdb.connect(":memory:")
        self.base.execute("set threads=2")
        self.aside: tempfile.TemporaryDirectory[str] | None = None
        groups = self._literal(find_assignments(str(version)))
        reader = "read_parquet" if groups.endswith(".parquet") else "read_csv"
        told = (
            ""
            if reader == "read_parquet"
            else ", header=true, delim=',', quote='\"', escape='\"', all_varchar=true"
        )
        parts = [f"{reader}({_text(groups)}{told})"]
        kept = has_cells(run)
        if kept:
            parts.insert(0, f"read_parquet({_text(self._literal(str(run / CELLS)))})")
        sizes = [self._names(part) for part in parts]
        cells = sizes[0] if kept else []
        self.own = [name for name in sizes[-1] if name not in cells]
        self.names = [*self.own, *cells]
        chosen = ", ".join(f"g.{_quoted(name)}" for name in self.own)
        chosen += "".join(f", c.{_quoted(name)}" for name in cells)
        both = f"{parts[0]} c positional join {parts[1]} g" if kept else f"{parts[0]} g"
        self.joined = f"(select {chosen} from {both})"  # noqa: S608

    def __enter__(self) -> _Source:
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

    def _names(self, part: str) -> list[str]:
        found = self.base.execute(f"describe select * from {part}")  # noqa: S608  paths are quoted
        return [row[0] for row in found.fetchall()]

    def ask(self, text: str, given: list[Any]) -> Any:
        return self.base.execute(text, given)

    def where(self, query: Query) -> tuple[str, list[Any]]:
        """The condition, with the values that it is asked with."""
        parts, given = [], list[Any]()
        if query.group is not None:
            column = "segment" if "segment" in self.own else "group"
            parts.append(f"{_quoted(column)} = ?")
            given.append(query.group)
        for word in query.search.split()[:8]:
            some = self.names[:SEARCHED_COLUMNS]
            parts.append(
                "(" + " or ".join(f"contains(lower(cast({_quoted(n)} as varchar)), ?)" for n in some) + ")"
            )
            given += [word.lower()] * len(some)
        if query.only is not None:
            parts.append(f"cast({_quoted('row')} as bigint) in (select unnest(?))")
            given.append([int(row) for row in query.only])
        return (" where " + " and ".join(parts) if parts else ""), given

    def order(self, query: Query) -> str:
        number = f"cast({_quoted('row')} as bigint)"
        if query.sort is None:  # as the files have them, unless a condition mixed them
            return f" order by {number}" if query.only is not None or query.search or query.group else ""
        if query.sort not in self.names:
            raise UsageError(
                "unknown-column", f"there is no column {shown(query.sort)!r}", do="Choose another"
            )
        name, way = _quoted(query.sort), " desc" if query.down else ""
        bare = f"regexp_replace(cast({name} as varchar), '[^0-9eE.+-]', '', 'g')"  # '$1,042.58', '13%'
        by = f"try_cast({bare} as double){way} nulls last, {name}{way} nulls last"
        return f" order by {by}, {number}"


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

"""Tables of databases: SQLite and DuckDB files, a PostgreSQL server, and queries over all tables that a source has."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from ilk.errors import DataError, Option, UsageError, names_shown, shown
from ilk.table.addresses import place_of, without_secrets
from ilk.table.columns import from_objects, usable_names
from ilk.table.files import TextOptions, damaged
from ilk.table.ledger import Ledger
from ilk.table.read import Table, from_arrow, query

SQLITE = b"SQLite format 3\0"
DRIVER = 'Install its driver: pip install "ilk[postgres]"'
DATA = "data"
"""What the table is called in a query."""
AS_DATA = re.compile(r"(?:\b(?:from|join)\s|,)\s*\"?data\b", re.IGNORECASE)
OWN_TABLES = (
    "select case when n.nspname = 'public' then c.relname else n.nspname || '.' || c.relname end "
    "from pg_class c join pg_namespace n on n.oid = c.relnamespace "
    "where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' "
    "and has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select') order by 1"
)
"""Tables and views of a PostgreSQL database that its user may read; those of other schemas with their schema."""
Rows = list[list[Any]]


def is_duckdb(head: bytes) -> bool:
    """Whether a file begins as those of DuckDB do: a checksum, then its name."""
    return head[8:12] == b"DUCK"


def query_tables(
    tables: Mapping[str, Callable[[], Table]], sql: str, source: str, wanted: Callable[[], str]
) -> Table:
    """The table that a query over several gives: each by its own name, and the one `wanted` as `data`.

    Only those that the query names are read.

    >>> from ilk.table.read import read
    >>> tables = {"a": lambda: read({"x": [1, 2]}), "b": lambda: read({"x": [2], "y": [5.0]})}
    >>> query_tables(tables, "select y from a join b using (x)", "shop.sqlite", lambda: "a").n_rows
    1
    """
    held = {name: make() for name, make in tables.items() if _is_named(name, sql)}
    if AS_DATA.search(sql) and DATA not in map(str.casefold, held):
        held[DATA] = tables[wanted()]()
    return query(held, sql, source)


def _is_named(name: str, sql: str) -> bool:
    """Whether a query has the name of a table in it; one that only seems to is read in vain."""
    spelled = name.casefold().replace('"', '""')
    return re.search(rf"(?<!\w){re.escape(spelled)}(?!\w)", sql.casefold()) is not None


def _of_tables(tables: Mapping[str, Callable[[], Table]], source: str, options: TextOptions) -> Table:
    """The one table of a database, or what a query over its tables gives."""
    wanted = partial(one_table, list(tables), options.table, source)
    if options.sql is not None:
        return query_tables(tables, options.sql, source, wanted)
    return tables[wanted()]()


def read_sqlite(path: str, name: str, options: TextOptions) -> Table:
    """A table of an SQLite database, opened to be read only."""
    import sqlite3

    try:
        with closing(sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True)) as con:
            listed = con.execute(
                "select name from sqlite_master where type = 'table' order by rowid"
            ).fetchall()
            names = [own for (own,) in listed if not own.startswith("sqlite_")]
            return _of_tables({own: partial(_sqlite_table, con, own, name) for own in names}, name, options)
    except sqlite3.Error as error:
        raise damaged(name, "SQLite", str(error)) from None


def _sqlite_table(con: Any, table: str, source: str) -> Table:
    found = con.execute(f"select * from {_quoted(table)}")  # noqa: S608
    names = [entry[0] for entry in found.description]
    return of_cells(names, [list(row) for row in found.fetchall()], source)


def read_duckdb(path: str, name: str, options: TextOptions) -> Table:
    """A table of a DuckDB database, opened to be read only and without access to other files."""
    import duckdb

    config = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    try:
        with _duckdb(path, config) as con:
            listed = con.sql(
                "select table_name from duckdb_tables() where not internal order by table_oid"
            ).fetchall()
            return _of_tables(
                {own: partial(_duckdb_table, con, own, name) for (own,) in listed}, name, options
            )
    except duckdb.Error as error:
        raise damaged(name, "DuckDB", str(error)) from None


def _duckdb_table(con: Any, table: str, source: str) -> Table:
    return from_arrow(con.sql(f"select * from {_quoted(table)}").to_arrow_table(), source)  # noqa: S608


@contextmanager
def _duckdb(path: str, config: dict[str, str]) -> Iterator[Any]:
    import duckdb

    con = duckdb.connect(path, read_only=True, config=config)
    try:
        con.execute("set enable_external_access = false; set lock_configuration = true")
        yield con
    finally:
        con.close()


def read_postgres(address: str, options: TextOptions) -> Table:
    """What a PostgreSQL server gives, in a session that may only read: a query, which the server runs, or a table.

    The address is libpq's. Whoever speaks of it calls it by `place_of`: user and password are never told.
    """
    name = place_of(address)
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise DataError("no-driver", f"{name} is a PostgreSQL server", do=DRIVER) from None
    try:
        with dbapi.connect(address) as con, con.cursor() as cursor:
            cursor.execute("set session characteristics as transaction read only")
            con.commit()
            if options.sql is not None and options.table is None:
                return from_arrow(_fetched(cursor, options.sql), name)
            tables = _fetched(cursor, OWN_TABLES).column(0).to_pylist()
            wanted = one_table(tables, options.table, name)
            table = from_arrow(_fetched(cursor, f"select * from {_dotted(wanted)}"), name)  # noqa: S608
            return table if options.sql is None else query({DATA: table}, options.sql, name)
    except dbapi.Error as error:
        raise _refused_by_server(str(error), address, name) from None


def _fetched(cursor: Any, sql: str) -> Any:
    """The result; numbers of any length, which the driver gives as texts of their own kind, as floats."""
    cursor.execute(sql)
    found = cursor.fetch_arrow_table()
    columns = [_plain_numeric(found.schema.field(j), found.column(j)) for j in range(found.num_columns)]
    return pa.Table.from_arrays(columns, names=found.column_names)


def _plain_numeric(field: Any, column: Any) -> Any:
    kind, own = field.type, field.metadata or {}
    told = b"numeric" in (own.get(b"ADBC:postgresql:typname", b""), getattr(kind, "type_name", "").encode())
    if isinstance(kind, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type)
    return column.cast(pa.float64()) if told else column


def _refused_by_server(text: str, address: str, name: str) -> DataError:
    lines = [part.strip() for part in without_secrets(text, address).splitlines() if part.strip()]
    told = shown("; ".join(lines[:2]) or "no reason given", 240)
    return DataError(
        "server-refused", f"{name} gave nothing: {told}", do="Check the address, the rights and the query"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _dotted(name: str) -> str:
    """A name with its schema, each quoted."""
    return ".".join(map(_quoted, name.split(".", 1)))


def one_table(names: Sequence[str], wanted: str | None, source: str) -> str:
    """The table that is wanted, or the only one."""
    listed = names_shown(names)
    if wanted is not None:
        if wanted not in names:
            option = Option("table", shown(wanted))
            raise UsageError(
                "no-table",
                f"{option} is no table of {source}",
                do=f"It has {listed or 'none'}",
                options=[option],
            )
        return wanted
    if not names:
        raise DataError("no-rows", f"{source} has no tables")
    if len(names) > 1:
        options = Option("table", shown(names[0])), Option("sql", "select ... from ... join ...")
        raise UsageError(
            "no-table",
            f"{source} has {len(names)} tables: {listed}",
            do=f"Say which: {options[0]}; or join them: {options[1]}",
            options=options,
        )
    return names[0]


def of_cells(names: Sequence[Any], rows: Rows, source: str) -> Table:
    own, cautions = usable_names([str(name) for name in names], text=True)
    made = [from_objects([row[j] for row in rows], name) for j, name in enumerate(own)]
    problems = {name: problem for name, (_, problem) in zip(own, made, strict=True) if problem}
    columns = tuple(column for column, _ in made)
    return Table(
        source, own, Ledger(len(rows), len(rows)), columns, warnings=tuple(cautions), problems=problems
    )

"""Queries over all tables of a source, Parquet folders with partitions, and a real PostgreSQL server."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import zipfile
from contextlib import closing
from glob import glob
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.feather import write_feather

import ilk
from ilk.errors import DataError, IlkError, UsageError
from ilk.table.addresses import place_of, without_secrets
from ilk.table.out_of_core.pieces import ParquetPieces
from ilk.table.out_of_core.table import PieceTable
from ilk.table.read import read

N = 240
DRAWS = np.random.default_rng(5)
KIND = np.arange(N) % 2
PEOPLE = pd.DataFrame({"id": np.arange(N), "region": np.where(KIND, "north", "south")})
ORDERS = pd.DataFrame(
    {
        "customer": np.repeat(np.arange(N), 2),
        "amount": (np.repeat(20 + 300 * KIND, 2) + DRAWS.normal(0, 9, 2 * N)).round(2),
    }
)
JOIN = (
    "select p.region, sum(o.amount) amount, count(*) orders from people p "
    "join orders o on o.customer = p.id group by p.id, p.region order by p.id"
)


def check_join(table):
    assert table.names == ("region", "amount", "orders")
    assert table.n_rows == N
    assert table.column("region").to_pylist() == PEOPLE["region"].tolist()
    expected = ORDERS.groupby("customer")["amount"].sum()
    np.testing.assert_allclose(np.asarray(table.column("amount").to_pylist(), dtype=float), expected)


def sqlite_file(folder):
    path = folder / "shop.sqlite"
    with closing(sqlite3.connect(path)) as con:
        PEOPLE.to_sql("people", con, index=False)
        ORDERS.to_sql("orders", con, index=False)
    return path


def duckdb_file(folder):
    path = folder / "shop.duckdb"
    with duckdb.connect(path) as con:
        con.sql("create table people as select * from PEOPLE")
        con.sql("create table orders as select * from ORDERS")
    return path


def workbook_file(folder, sheets=None):
    """The least that a workbook needs, with its texts in place."""
    pytest.importorskip("python_calamine")
    path, sheets = folder / "shop.xlsx", sheets or {"people": PEOPLE, "orders": ORDERS}
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    related = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    listed = [f'<sheet name="{n}" sheetId="{i}" r:id="r{i}"/>' for i, n in enumerate(sheets, 1)]
    parts = [
        f'<Relationship Id="r{i}" Type="{related}/worksheet" Target="{n}.xml"/>'
        for i, n in enumerate(sheets, 1)
    ]
    with zipfile.ZipFile(path, "w") as book:
        top = f'<Relationship Id="r0" Type="{related}/officeDocument" Target="xl/workbook.xml"/>'
        book.writestr("_rels/.rels", f'<Relationships xmlns="{package}/relationships">{top}</Relationships>')
        own = f'<workbook xmlns="{space}" xmlns:r="{related}"><sheets>{"".join(listed)}</sheets></workbook>'
        book.writestr("xl/workbook.xml", own)
        rels = f'<Relationships xmlns="{package}/relationships">{"".join(parts)}</Relationships>'
        book.writestr("xl/_rels/workbook.xml.rels", rels)
        book.writestr("[Content_Types].xml", f'<Types xmlns="{package}/content-types"/>')
        for name, frame in sheets.items():
            rows = [list(frame.columns), *frame.itertuples(index=False)]
            cells = ["".join(map(_cell, row)) for row in rows]
            body = "".join(f"<row>{row}</row>" for row in cells)
            book.writestr(
                f"xl/{name}.xml", f'<worksheet xmlns="{space}"><sheetData>{body}</sheetData></worksheet>'
            )
    return path


def _cell(value):
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
    return f"<c><v>{value}</v></c>"


def test_one_sheet_is_read_and_the_others_are_named(tmp_path):
    path = workbook_file(tmp_path)
    table = read(path)
    assert table.names == ("id", "region")
    told = dict(table.warnings)["other-sheets"]
    assert "sheet 'people' is read; shop.xlsx has others, too ('orders')" in told
    assert told.endswith('sheet="orders"')
    assert "other-sheets" not in dict(read(path, sheet="orders").warnings)
    assert read(path, header=False).n_rows == N + 1
    path = workbook_file(tmp_path, {"people": pd.DataFrame(), "orders": pd.DataFrame()})
    with pytest.raises(DataError, match=r"shop\.xlsx has no sheet with cells") as error:
        read(path)
    assert error.value.code == "no-rows"


def test_a_reader_of_workbooks_that_is_not_there(tmp_path, monkeypatch):
    path = workbook_file(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    with pytest.raises(DataError, match=r"looks like an Excel workbook.*ilk\[excel\]") as error:
        read(path)
    assert error.value.code == "wrong-format"


def test_a_database_without_tables(tmp_path):
    path = tmp_path / "empty.sqlite"
    with closing(sqlite3.connect(path)) as con:
        con.execute("create table t (a real)")
        con.execute("drop table t")
        con.commit()
    with pytest.raises(DataError, match=r"empty\.sqlite has no tables") as error:
        read(path)
    assert error.value.code == "no-rows"


@pytest.mark.parametrize("made", [sqlite_file, duckdb_file, workbook_file])
def test_a_query_joins_all_tables_of_a_source(made, tmp_path):
    path = made(tmp_path)
    check_join(read(path, sql=JOIN))
    using = JOIN.replace(
        "orders o on o.customer = p.id", "(select customer id, amount from orders) o using (id)"
    )
    check_join(read(path, sql=using.replace("p.id", "id")))
    only = {"sheet": "orders"} if made is workbook_file else {"table": "orders"}
    assert read(path, sql="select amount from data where amount > 100", **only).n_rows == N
    with pytest.raises(UsageError, match="refused") as error:
        read(path, sql="select * from customers")
    assert error.value.code == "bad-sql"
    with pytest.raises(UsageError, match="refused"):
        read(path, sql="selec 1")
    if made is not workbook_file:
        with pytest.raises(UsageError, match=r"2 tables.*table=.*sql="):
            read(path, sql="select * from data")


def test_a_query_reaches_no_file_from_a_database(tmp_path):
    path, secret = duckdb_file(tmp_path), tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    for sql in (f"select * from '{secret}'", f"select * from read_csv('{secret}')"):
        with pytest.raises(UsageError, match="refused"):
            read(path, sql=sql)


@pytest.mark.parametrize("ending", ["csv", "parquet", "json", "feather"])
def test_a_query_over_a_plain_file(ending, tmp_path):
    path = tmp_path / f"orders.{ending}"
    if ending == "csv":
        ORDERS.to_csv(path, index=False)
    elif ending == "json":
        path.write_text(json.dumps(ORDERS.to_dict("records")))
    elif ending == "parquet":
        pq.write_table(pa.Table.from_pandas(ORDERS), path)
    else:
        write_feather(pa.Table.from_pandas(ORDERS), str(path))
    assert read(path, sql="select amount from data where amount > 100").n_rows == N


def test_fit_and_assign_with_a_query(tmp_path):
    path = sqlite_file(tmp_path)
    result = ilk.cluster(path, sql=JOIN)
    assert result.k == 2
    placed = result.model.assign_table(result.model.open(path, sql=JOIN)).to_pydict()
    assert placed["group"] == result.letters.tolist()


# Parquet folders


def partitioned(folder, frame, keys):
    for values, part in frame.groupby(keys, dropna=False):
        parts = "/".join(f"{k}={v}" for k, v in zip(keys, values, strict=True))
        target = folder / parts / "part-0.parquet"
        target.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pandas(part.drop(columns=keys), preserve_index=False), target)
    (folder / "_SUCCESS").write_text("")


def test_partitions_become_columns(tmp_path):
    frame = pd.DataFrame(
        {"x": np.arange(24.0), "year": np.repeat([2023, 2024], 12), "land": ["a b", "ü"] * 12}
    )
    folder = tmp_path / "sales"
    partitioned(folder, frame, ["year", "land"])
    whole = read(folder).arrow.to_pandas().sort_values("x", ignore_index=True)
    assert whole["year"].tolist() == frame["year"].tolist()
    assert whole["land"].tolist() == frame["land"].tolist()
    cut = PieceTable(ParquetPieces(str(folder)))
    assert cut.names == ("x", "year", "land")
    again = pd.concat([part.arrow.to_pandas() for part in cut.parts()]).sort_values("x", ignore_index=True)
    pd.testing.assert_frame_equal(again.astype(object), whole.astype(object))
    assert read(folder, sql="select x from data where year = 2024 and land = 'ü'").n_rows == 6


def test_partitions_as_hive_writes_them(tmp_path):
    for folder, value in (
        ("day=2024-01-01", 1.0),
        ("day=__HIVE_DEFAULT_PARTITION__", 2.0),
        ("day=a%2Fb", 3.0),
    ):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"x": [value, value]}), tmp_path / folder / "0.parquet")
    found = read(tmp_path).arrow.to_pydict()
    assert dict(zip(found["x"], found["day"], strict=True)) == {1.0: "2024-01-01", 2.0: None, 3.0: "a/b"}
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "loose.parquet")
    with pytest.raises(DataError, match="different columns"):
        read(tmp_path)


def test_a_column_of_the_file_goes_before_that_of_its_folder(tmp_path):
    (tmp_path / "year=2024").mkdir()
    pq.write_table(pa.table({"x": [0.5, 1.5], "year": [1, 2]}), tmp_path / "year=2024" / "0.parquet")
    assert read(tmp_path).arrow.to_pydict() == {"x": [0.5, 1.5], "year": [1, 2]}


@pytest.mark.parametrize("opened", [read, lambda path: ParquetPieces(str(path))])
def test_files_of_other_types_are_no_table(opened, tmp_path):
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"x": ["a"]}), tmp_path / "1.parquet")
    with pytest.raises(DataError, match=r"have different columns: .*Field x ") as error:
        opened(tmp_path)
    assert error.value.code == "schemas-differ"
    for content, why in ((b"PAR1" + bytes(20), "it may be cut short"), (b"PAR1", "4 bytes")):
        (tmp_path / "1.parquet").write_bytes(content)
        with pytest.raises(DataError, match=rf"1\.parquet is not a readable Parquet file: .*{why}") as error:
            opened(tmp_path)
        assert error.value.code == "file-damaged"


def test_a_plain_folder_of_parquet(tmp_path):
    for i in range(3):
        pq.write_table(pa.table({"x": [float(i)], "day": [i]}), tmp_path / f"{i}.parquet")
    assert read(tmp_path).arrow.to_pydict() == {"x": [0.0, 1.0, 2.0], "day": [0, 1, 2]}


# Addresses and servers

SECRET = "s3cret/wörd?x"
ADDRESSES = {
    "postgresql://me:topsecret@host:5432/shop": "postgresql://host:5432/shop",
    "postgres://host/shop?user=me&password=topsecret": "postgres://host/shop",
    "https://me:topsecret@host/t.csv": "https://host/t.csv",
    "mysql://me:topsecret@host/t": "mysql://host/t",
    "postgresql://me:top?secret@host/shop": "postgresql://",
    "postgresql://host/shop?password=top@secret": "postgresql://",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_what_is_told_of_an_address(address):
    assert place_of(address) == ADDRESSES[address]
    told = without_secrets(f'cannot do "{address}": bad "secret" or "topsecret" for me at host', address)
    assert "secret" not in told
    if not address.startswith("postgres"):
        with pytest.raises(UsageError) as error:
            read(address)
        assert error.value.code == "remote-path"
        assert "topsecret" not in str(error.value)


def test_a_server_that_is_not_there():
    pytest.importorskip("adbc_driver_postgresql")
    for address in (
        "postgresql://me:topsecret@127.0.0.1:1/shop",
        "postgresql://me:top?secret@h/x",
        "postgresql://[",
    ):
        with pytest.raises(DataError) as error:
            read(address)
        assert error.value.code == "server-refused"
        assert "secret" not in str(error.value)


def test_a_driver_that_is_not_there(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_postgresql", None)
    with pytest.raises(DataError, match=r"ilk\[postgres\]") as error:
        read("postgresql://me:topsecret@host/shop")
    assert "topsecret" not in str(error.value)


def _programs():
    folders = [
        *sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True),
        os.path.dirname(shutil.which("initdb") or ""),
    ]
    return next((Path(f) for f in folders if f and (Path(f) / "initdb").exists()), None)


@pytest.fixture(scope="module")
def server():
    """A cluster of its own in a temporary folder, with a password, reached by TCP on a port that was free."""
    import socket
    import tempfile

    pytest.importorskip("adbc_driver_postgresql", reason="the driver of PostgreSQL is not here")
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not here (apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="ilk-pg-"))
    as_root = os.getuid() == 0
    if as_root:  # the server refuses to run as root
        if shutil.which("runuser") is None:
            pytest.skip("PostgreSQL does not run as root, and there is no runuser")
        shutil.chown(folder, "postgres")
    who = ["runuser", "-u", "postgres", "--"] if as_root else []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def program(name, *arguments):
        subprocess.run(
            [*who, programs / name, *arguments], check=True, capture_output=True, cwd=folder, timeout=90
        )

    (folder / "password").write_text(SECRET)
    (folder / "password").chmod(0o644)
    auth = ["--auth=scram-sha-256", f"--pwfile={folder / 'password'}", "--username=me", "--encoding=UTF8"]
    program("initdb", "-D", str(folder / "data"), *auth, "--no-sync")
    settings = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    program("pg_ctl", "-D", str(folder / "data"), "-w", "-l", str(folder / "log"), "-o", settings, "start")
    from urllib.parse import quote

    address = f"postgresql://me:{quote(SECRET, safe='')}@127.0.0.1:{port}/postgres"
    try:
        _fill(address)
        yield address
    finally:
        program("pg_ctl", "-D", str(folder / "data"), "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def _fill(address):
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(address) as con, con.cursor() as cursor:
        cursor.adbc_ingest("people", pa.Table.from_pandas(PEOPLE))
        cursor.adbc_ingest("orders", pa.Table.from_pandas(ORDERS))
        cursor.execute(
            "create table kinds as select (i * 1.25)::numeric(10, 2) money, i::smallint small, i % 2 = 0 flag, "
            "date '2024-01-01' + i since, timestamptz '2024-01-01 10:00+00' + i * interval '1 hour' seen, "
            "case when i % 2 = 0 then 'ü' end word from generate_series(0, 59) i"
        )
        cursor.execute("create schema other")
        cursor.execute('create table other."Odd name" as select 1.5::float8 x')
        con.commit()


def test_postgres_queries_and_tables(server):
    check_join(read(server, sql=JOIN))
    assert read(server, table="orders").n_rows == 2 * N
    assert read(server, table="other.Odd name").names == ("x",)
    assert read(server, table="orders", sql="select amount from data where amount > 100").n_rows == N
    with pytest.raises(UsageError, match=r"4 tables: 'kinds', 'orders', 'other\.Odd name', 'people'"):
        read(server)
    with pytest.raises(UsageError, match="is no table of"):
        read(server, table="customers")


def test_postgres_types(server):
    from ilk.table.understand import understand

    table = read(server, table="kinds")
    assert str(table.column("money").type) == "double"
    assert table.column("money")[3].as_py() == 3.75
    kinds = {c.name: c.kind for c in understand(table, types={"since": "numeric", "seen": "numeric"}).columns}
    assert kinds == {
        "money": "numeric", "small": "left out", "flag": "binary", "since": "numeric", "seen": "numeric",
        "word": "left out",
    }  # fmt: skip


def test_postgres_may_only_be_read(server):
    for sql in ("delete from orders", "drop table orders", "create table mine (a int)"):
        with pytest.raises(IlkError):
            read(server, sql=sql)
    assert read(server, table="orders").n_rows == 2 * N


def test_what_a_server_says_is_told_without_the_password(server):
    for address, sql in ((server, "select * from nothing"), (server.replace("s3cret", "wrong"), "select 1")):
        with pytest.raises(DataError) as error:
            read(address, sql=sql)
        text = str(error.value)
        assert error.value.code == "server-refused"
        assert place_of(address) in text
        assert not any(part in text for part in ("s3cret", "wrong", "wörd", "me:"))


def test_a_run_over_a_server_tells_no_password(server, tmp_path, monkeypatch):
    from click.testing import CliRunner

    from ilk.cli.main import cli

    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["fit", server, "--sql", JOIN])
    assert result.exit_code == 0, result.output
    again = CliRunner().invoke(cli, ["columns", server, "--table", "orders", "-o", "types.toml"])
    assigned = CliRunner().invoke(cli, ["assign", "postgres.ilk", server, "--sql", JOIN])
    assert assigned.stdout.count("\n") == N + 1
    told = result.output + again.output + assigned.output
    for file in (tmp_path / "postgres.ilk").iterdir():
        told += file.read_bytes().decode("utf-8", "replace")
    assert place_of(server) in told
    for part in ("s3cret", "wörd", "//me:", "%3F"):
        assert part not in told
    summary = json.loads((tmp_path / "postgres.ilk" / "summary.json").read_text())
    assert summary["chosen"]["k"] == 2
    assert JOIN in summary["reproduce"]["command"]

"""Tables inside other files: workbooks, databases, archives, JSON; and tables of every day, read without options."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
import zipfile
from contextlib import closing

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ilk
from ilk.errors import DataError, IlkError, ResourceError, UsageError
from ilk.table.read import read
from ilk.table.understand import understand
from tests.conftest import OWN

EVERYDAY = OWN / "everyday"
RFM = ("customer_id", "recency_days", "frequency", "monetary")
SHOP = pd.DataFrame(json.loads((EVERYDAY / "rfm_array.json").read_text()))


def refused(path, code, kind=DataError, **options):
    with pytest.raises(kind) as error:
        read(path, **options)
    assert error.value.code == code
    return str(error.value)


def kinds(path, **options):
    return {c.name: c.kind for c in understand(read(path, **options)).columns}


EXPECTED = {
    "crm.csv": {
        "Customer ID": "left out",
        "Company Name": "left out",
        "Signup Date": "numeric",
        "Last Order": "numeric",
        "Annual Revenue": "numeric",
        "Avg Discount": "numeric",
        "Orders": "numeric",
        "Industry": "categorical",
        "Zip": "left out",
        "Newsletter": "binary",
        "Rep": "categorical",
        "Country": "left out",
        "Notes": "left out",
    },
    "eu.csv": {
        "Kunde": "left out",
        "Umsatz": "numeric",
        "Rabatt": "numeric",
        "Stadt": "categorical",
        "Straße": "categorical",
    },
    "likert.csv": {
        "RespondentID": "left out",
        **{f"Q{j}": "numeric" for j in range(1, 13)},
        "Gender": "binary",
        "Age": "numeric",
    },
    "nested.jsonl": {
        "id": "left out",
        "stats.r": "numeric",
        "stats.f": "numeric",
        "tags": "categorical",
        "m": "numeric",
    },
    "rfm_array.json": dict(zip(RFM, ["left out"] + ["numeric"] * 3, strict=True)),
    "time.csv": {"timestamp": "left out", "load": "numeric", "temp": "numeric", "epoch": "left out"},
    "dups.csv": {"a": "numeric", "b": "numeric", "const": "left out", "flag": "binary", "code": "numeric"},
}
EXPECTED["eu_simple.csv"] = EXPECTED["eu.csv"]


@pytest.mark.parametrize("name", EXPECTED)
def test_tables_of_every_day_are_read_without_options(name):
    assert kinds(EVERYDAY / name) == EXPECTED[name]


@pytest.mark.parametrize(
    "name", ["zips.csv", "null_zipf.csv", "wide.csv", "baskets.csv", "shop.sqlite", "shop.duckdb"]
)
def test_larger_tables_of_every_day(name):
    columns = understand(read(EVERYDAY / name)).columns
    left_out = {"zips.csv": ["zip"], "shop.sqlite": ["customer_id"], "shop.duckdb": ["customer_id"]}
    assert [c.name for c in columns if not c.used] == left_out.get(name, [])


def test_the_values_of_every_day():
    table = read(EVERYDAY / "eu.csv")
    schema = understand(table)
    from ilk.table.encode import encode

    assert encode(table, schema).numbers[0].tolist() == [6059.76, 12.8]
    assert table.column("Stadt")[0].as_py() in ("München", "Köln", "Zürich", "Düsseldorf")


def test_workbooks():
    pytest.importorskip("python_calamine")
    path = EVERYDAY / "rfm.xlsx"
    table = read(path)
    assert table.names == RFM
    assert table.n_rows == 5000
    assert [str(table.column(name).type) for name in RFM] == ["int64", "int64", "int64", "double"]
    assert read(path, sheet="Data").n_rows == 5000
    assert "'Data'" in refused(path, "no-table", UsageError, sheet="Sheet1")


@pytest.fixture
def shop(tmp_path):
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as con:
        con.execute(
            "create table rfm (customer_id integer, recency_days integer, frequency integer, monetary real)"
        )
        con.executemany("insert into rfm values (?, ?, ?, ?)", SHOP.itertuples(index=False))
    con.close()
    return path


def test_sqlite(shop):
    before = shop.read_bytes()
    table = read(shop)
    assert table.names == RFM
    np.testing.assert_array_equal(table.column("monetary").to_numpy(), SHOP["monetary"])
    with sqlite3.connect(shop) as con:
        con.execute('create table "od""d" (a text)')
        con.execute('insert into "od""d" values (\'$5\')')
    con.close()
    assert shop.read_bytes() != before
    text = refused(shop, "no-table", UsageError)
    assert "2 tables: 'rfm'" in text
    assert 'table="rfm"' in text
    assert read(shop, table='od"d').n_rows == 1
    assert read(shop, table="rfm", sql="select monetary from data where frequency > 10").names == (
        "monetary",
    )
    assert "'rfm'" in refused(shop, "no-table", UsageError, table="sales")
    shop.write_bytes(b"SQLite format 3\0" + b"\1" * 2000)
    refused(shop, "file-damaged")


def test_duckdb(tmp_path):
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(path) as con:
        con.sql("create table rfm as select * from SHOP")
    assert read(path).names == RFM
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    with duckdb.connect(path) as con:
        con.sql(f"create view other as select * from read_csv('{secret}')")
    assert read(path).n_rows == 500  # a view is no table, and reads no file
    refused(path, "no-table", UsageError, table="other")
    path.write_bytes(path.read_bytes()[:5000])
    refused(path, "file-damaged")


CSV = b"a;b\n1,5;x\n2,5;y\n"


def _zip(members):
    import io

    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


ARCHIVES = {
    "t.csv.gz": gzip.compress(CSV),
    "t.csv.zst": pa.compress(CSV, codec="zstd", asbytes=True),
    "t.zip": _zip({"folder/t.csv": CSV, "__MACOSX/t.csv": b"x"}),
    "t.jsonl.gz": gzip.compress(b'{"a": 1.5, "b": "x"}\n{"a": 2.5, "b": "y"}\n'),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_of_one_file(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(ARCHIVES[name])
    table = read(path)
    assert table.names == ("a", "b")
    assert table.source == name
    assert understand(table)["a"].kind == "numeric"
    path.write_bytes(ARCHIVES[name][:-9])
    refused(path, "file-damaged")


@pytest.mark.parametrize("members", [{}, {"a.csv": CSV, "b.csv": CSV}, {"../a.csv": CSV}, {"/a.csv": CSV}])
def test_archives_of_other_files(members, tmp_path):
    path = tmp_path / "t.zip"
    path.write_bytes(_zip(members))
    assert "zip archive" in refused(path, "wrong-format")
    assert [p.name for p in tmp_path.iterdir()] == ["t.zip"]


def test_an_archive_within_an_archive_is_text_that_cannot_be_read(tmp_path):
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(gzip.compress(CSV)))
    with pytest.raises(DataError):
        read(path)


@pytest.mark.parametrize("name", ["t.zip", "t.csv.zst"])
def test_bombs(name, tmp_path, monkeypatch):
    content = b"a,b\n" + b"1,2\n" * 100_000
    path = tmp_path / name
    path.write_bytes(
        _zip({"t.csv": content}) if name == "t.zip" else pa.compress(content, codec="zstd", asbytes=True)
    )
    assert read(path).n_rows == 100_000
    monkeypatch.setattr("ilk.table.files.RATIO_FROM_BYTES", 1000)
    refused(path, "too-large", ResourceError)


DOCUMENTS = {
    "array": '[{"a": 1, "b": {"c": 2.5}}, {"a": 2}]',
    "spread": '[\n  {"a": 1,\n   "b": {"c": 2.5}},\n  {"a": 2}\n]',
    "inside": '{\n"count": 2,\n"rows": [{"a": 1, "b": {"c": 2.5}}, {"a": 2}]\n}',
    "lines": '{"a": 1, "b": {"c": 2.5}}\n{"a": 2}\n',
}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_json(case, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(DOCUMENTS[case])
    table = read(path)
    assert table.names == ("a", "b.c")
    assert table.arrow.to_pydict() == {"a": [1, 2], "b.c": [2.5, None]}
    assert "'b'" in dict(table.warnings)["flattened"]


def test_json_that_is_no_table(tmp_path):
    path = tmp_path / "t.json"
    for text, code in (
        ("[1, 2]", "bad-line"),
        ("[]", "no-rows"),
        ('[{"a": 1}', "bad-line"),
        ('{\n"a": 1\n}', "wrong-format"),
        ('[{"a": 1, "a": 2}]', "bad-line"),
    ):
        path.write_text(text)
        assert "t.json" in refused(path, code)


@pytest.mark.parametrize("address", ["https://example.org/t.csv", "s3://bucket/t.parquet"])
def test_addresses_are_refused(address):
    assert "Download" in refused(address, "remote-path", UsageError)


def test_cluster_takes_the_reading_options(shop, tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{'nix' if i == 3 else i % 2 * 90 + i % 7},5|Stra\xdfe" for i in range(60)]
    path.write_bytes(("a|b\n" + "\n".join(rows) + "\n").encode("latin-1"))
    result = ilk.cluster(path, k=2, sep="|", encoding="latin-1", decimal=",", missing=["nix,5"])
    assert result.k == 2
    assert result.model.schema["a"].missing == 1
    picked = ilk.cluster(shop, k=2, table="rfm", sql="select monetary, frequency from data")
    assert [c.name for c in picked.model.schema.columns] == ["monetary", "frequency"]
    placed = picked.assign(shop)
    assert placed.num_rows == 500
    with pytest.raises(UsageError, match="for files only"):
        ilk.cluster(SHOP, sheet="Data")


@pytest.mark.badinput("D19")
@pytest.mark.parametrize("name", ["t.zip", "t.csv.gz", "t.sqlite", "t.duckdb", "t.xlsx", "t.json"])
def test_altered_bytes_are_read_or_refused(tmp_path, name):
    """Headers and names of members, too: nothing but our own errors comes out."""
    whole, draws, refusals = _container(tmp_path, name), random.Random(name), 0
    for _ in range(60):
        made = bytearray(whole)
        for _ in range(draws.choice([1, 3, 20])):
            place = draws.randrange(min(len(made), draws.choice([60, 10**9])))
            made[place : place + draws.randrange(2)] = bytes([draws.randrange(256)])
        (tmp_path / name).write_bytes(made[: draws.choice([len(made), draws.randrange(1, len(made))])])
        try:
            read(tmp_path / name)
        except IlkError:
            refusals += 1
    assert refusals > 5


def test_a_zip_whose_member_has_no_text_for_a_name_is_refused(tmp_path):
    whole = _zip({"tä.csv": CSV})
    assert whole.count("tä.csv".encode()) == 2
    (tmp_path / "t.zip").write_bytes(whole.replace("tä.csv".encode(), b"t\xff\xff.csv"))
    assert "zip" in refused(tmp_path / "t.zip", "file-damaged")
    old = b"\xd0\xcf\x11\xe0" + whole.replace(
        "tä.csv".encode(), b"t\xff\xff.csv"
    )  # an old workbook, it seems
    (tmp_path / "t.xls").write_bytes(old)
    assert "t.xls is not a readable zip file" in refused(tmp_path / "t.xls", "file-damaged")


def _container(folder, name):
    """A whole file of a kind, as bytes."""
    if name in ARCHIVES:
        return ARCHIVES[name]
    path = folder / name
    if name == "t.sqlite":
        with closing(sqlite3.connect(path)) as con:
            con.execute("create table t (a real, b text)")
            con.executemany("insert into t values (?, ?)", [(float(i), "x" * (i % 5)) for i in range(300)])
            con.commit()
    elif name == "t.duckdb":
        with closing(duckdb.connect(str(path))) as con:
            con.execute("create table t as select range::double a, (range % 5)::varchar b from range(300)")
    elif name == "t.xlsx":
        pytest.importorskip("python_calamine")
        return (EVERYDAY / "rfm.xlsx").read_bytes()
    else:
        path.write_text(json.dumps([{"a": float(i), "b": "x" * (i % 5)} for i in range(30)]))
    return path.read_bytes()

"""Bad and odd inputs of the reader: each ends in a row, in the ledger, or in a coded refusal."""

from __future__ import annotations

import datetime
import gzip
import os
import re
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilk.errors import DataError, IlkError, ResourceError, UsageError
from ilk.table.encode import encode, encode_array
from ilk.table.out_of_core.pieces import ParquetPieces
from ilk.table.read import read
from ilk.table.schema import infer


@pytest.fixture
def put(tmp_path):
    """Write a file and give its path."""

    def write(content: str | bytes, name: str = "t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def refused(data, code, kind=DataError, **options):
    with pytest.raises(kind) as error:
        read(data, **options)
    assert error.value.code == code
    assert len(str(error.value)) < 600
    return str(error.value)


def codes(table):
    return [code for code, _ in table.warnings]


def rows(table):
    return [tuple(row.values()) for row in table.arrow.to_pylist()]


REFUSED = {
    "B1-empty": (b"", "no-rows"),
    "B1-header": (b"a,b\n", "no-rows"),
    "B1-blank": (b"\n\n\n", "no-rows"),
    "D1-invalid": ("é,b\n1,".encode() + b"\xff\n", "bad-encoding"),
    "D1-cut": (b"a,b\n1,\xe2\x82", "bad-encoding"),
    "D2-ambiguous": (b"1,5;2,5\n1,6;2,7\n", "ambiguous-separator"),
    "D3-unclosed": (b'a,b\n1,"2\n3,4\n5,6\n', "unclosed-quote"),
    "D4-nul": (b"a,b\n1,\x002\n", "nul-byte"),
    "D4-utf16-without-mark": ("a,b\n1,2\n".encode("utf-16-le"), "nul-byte"),
    "D3-quote-ends-early": (b'""a\n,', "rows-lost"),
    "D6-few": (b"a,b\n1,2\n3\n4,5\n", "rows-rejected"),
    "D6-many": (b"a,b\n1,2\n3,4,5\n4,5\n", "rows-rejected"),
    "D6-header": (b"a,b,c,d\n1,2\n3,4\n", "header-mismatch"),
    "D19-xls": (b"\xd0\xcf\x11\xe0" + b"\0" * 600, "wrong-format"),
    "D19-sqlite": (b"SQLite format 3\0" + b"\0" * 100, "file-damaged"),
    "D19-json": (b'{\n"a": 1\n}', "wrong-format"),
    "D19-pickle": (b"\x80\x04\x95abc", "wrong-format"),
    "D19-html": (b"<!DOCTYPE html><html>", "wrong-format"),
    "D10-magic": (b"PAR1abcd", "file-damaged"),
    "D10-arrow": (b"ARROW1\0\0abcd", "file-damaged"),
    "D12-gzip": (gzip.compress(b"a,b\n1,2\n")[:-6], "file-damaged"),
    "D1-marked-as-utf8": (b"\xef\xbb\xbfa,b\n1,\xff\n", "bad-encoding"),
    "D1-utf16-cut": ("a,b\n1,2\n".encode("utf-16")[:-1], "bad-encoding"),
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=pytest.mark.badinput(c.split("-")[0]), id=f"badinput[{c}]") for c in REFUSED],
)
def test_files_that_are_refused(case, put):
    content, code = REFUSED[case]
    text = refused(put(content), code)
    assert "t.csv" in text


@pytest.mark.badinput("D1")
def test_byte_offset_and_advice(put):
    damaged = "é,b\n1,".encode() + b"\xff\n"
    assert "offset 7" in refused(put(damaged), "bad-encoding")
    assert "cp1252" in refused(put(damaged), "bad-encoding")
    big = "é,b\n".encode() + b"1,2\n" * 2_000_000 + b"\xff,1\n"
    assert f"offset {5 + 8_000_000}" in refused(put(big), "bad-encoding")
    assert "offset 6" in refused(put(b"a,b\n1,\xff\n"), "bad-encoding", encoding="utf-8")
    assert "offset 6" in refused(put(b"a,b\n1,\x81\n"), "bad-encoding")  # in cp1252 it is no letter
    advice = refused(put(b"a,b\n1,\x81\n"), "bad-encoding").partition("Name")[2]
    assert "cp1252" not in advice  # which has just failed
    assert "latin-1" in advice


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.badinput("D1")
def test_a_file_of_single_bytes_is_read_as_western_european(line_end, put):
    table = read(put(f"Straße,b{line_end}Köln,1{line_end}5 €,2{line_end}".encode("cp1252")))
    assert table.names == ("Straße", "b")
    assert rows(table) == [("Köln", 1), ("5 €", 2)]
    (caution,) = [text for code, text in table.warnings if code == "encoding"]
    assert "cp1252" in caution


@pytest.mark.parametrize(
    ("encoding", "option"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-16", None),
        ("cp1252", "cp1252"),
        ("latin-1", "latin-1"),
        ("shift_jis", "shift_jis"),
    ],
)
@pytest.mark.badinput("D1")
def test_encodings(encoding, option, put):
    word = "é" if encoding != "shift_jis" else "日本"
    path = put(
        f"näme,b\n{word},1\nz,2\n".encode(encoding)
        if encoding != "shift_jis"
        else f"name,b\n{word},1\nz,2\n".encode(encoding)
    )
    table = read(path, encoding=option)
    assert rows(table) == [(word, 1), ("z", 2)]
    assert not table.names[0].startswith("\ufeff")


def test_unknown_encoding(put):
    refused(put("a\n1\n"), "bad-encoding", UsageError, encoding="klingon")


@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
@pytest.mark.badinput("D2")
def test_separators_are_found(sep, put):
    table = read(put(f"a{sep}b\n1{sep}x\n2{sep}y\n"))
    assert table.names == ("a", "b")
    assert rows(table) == [(1, "x"), (2, "y")]
    assert codes(table) == ([] if sep == "," else ["dialect"])


@pytest.mark.badinput("D2")
def test_separators_that_are_given(put):
    assert rows(read(put("a::b\n1::2\n3::4\n"), sep="::")) == [(1, 2), (3, 4)]
    assert rows(read(put('a::b\n1::x\\"y\n3::"u::v"\n'), sep="::")) == [(1, 'x\\"y'), (3, "u::v")]
    assert rows(read(put("a b\n1 2\n3 4\n"))) == [(1, 2), (3, 4)]
    assert rows(read(put("1,5;2,5\n1,6;2,7\n"), sep=";", decimal=",")) == [(1.5, 2.5), (1.6, 2.7)]
    table = read(put("a;b\n1,5;2\n1,7;3\n1,5;4\n1,7;5\n1,7;6\n"))
    assert "number-format" in [code for code, _ in infer(table).warnings]
    refused(put("a\n1\n"), "bad-separator", UsageError, sep='"')


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('a,b\n"x\ny",2\n3,"d""q"\n', [("x\ny", "2"), ("3", 'd"q')]),
        ('a,b\n"x\\"y",2\n3,4\n', [('x"y', 2), ("3", 4)]),
        ("a,b\r\n1,2\n3,4\r\n5,6", [(1, 2), (3, 4), (5, 6)]),
        ("a,b\r1,2\r3,4\r", [(1, 2), (3, 4)]),
        ('"a\nb",c\n1,2\n', [(1, 2)]),
        ("a,b\n1,2\n\n3,4\n\n", [(1, 2), (3, 4)]),
    ],
)
@pytest.mark.badinput("D3")
@pytest.mark.badinput("D4")
def test_quotes_and_line_ends(text, wanted, put):
    table = read(put(text))
    assert rows(table) == wanted
    assert table.ledger.balanced


@pytest.mark.badinput("D3")
def test_unclosed_quote_never_swallows_rows(put):
    text = refused(put('a,b\n1,"2\n3,4\n5,6\n'), "unclosed-quote")
    assert "line 2" in text
    refused(put('a,b\n1,"2\n3,4\n5,6\n'), "unclosed-quote", max_rejects=5)


@pytest.mark.badinput("D5")
def test_lines_that_are_no_rows(put):
    table = read(put("Report of 2024\n# made by hand\na,b,c,d\n1,2,3,4\n5,6,7,8\n"))
    assert table.names == ("a", "b", "c", "d")
    assert codes(table) == ["lines-skipped"]
    assert table.ledger.skipped[0].count == 2
    table = read(put("a,b\n1,2\na,b\n3,4\n"))
    assert rows(table) == [(1, 2), (3, 4)]
    assert table.ledger.balanced
    assert codes(table) == ["repeated-header"]
    assert codes(read(put("1,2\n3,4\n"))) == ["no-header"]
    assert read(put("1,2\n3,4\n"), header=True).names == ("1", "2")
    assert read(put("a,b\nc,d\n"), header=False).n_rows == 2
    assert codes(read(put("a,b\nx,1\ny,2\nTotal,3\n"))) == ["total-row"]
    assert read(put("a,b\nr1,1,2\nr2,3,4\n")).names == ("row_names", "a", "b")


@pytest.mark.badinput("D6")
def test_rejects_go_to_the_ledger(put):
    path = put("a,b\n1,2\n3\n4,5,6\n7,8\n")
    text = refused(path, "rows-rejected")
    assert "line 3: missing columns, line 4: too many columns" in text
    assert "max_rejects=2" in text
    table = read(path, max_rejects=2)
    assert rows(table) == [(1, 2), (7, 8)]
    assert table.ledger.balanced
    assert table.ledger.read == 4
    assert {part.first for part in table.ledger.set_aside} == {(3,), (4,)}


@pytest.mark.badinput("D7")
def test_late_change_of_type(put):
    path = put("a,b\n" + "1,2\n" * 200_000 + "1,x\n" + "1.5,2\n")
    table = read(path)
    assert table.column("a").type == pa.float64()
    assert table.column("b")[200_000].as_py() == "x"
    path = put("a,b\n" + "".join(f"{i}.5,{i}\n" for i in range(1000)) + "1,oops\n")
    with pytest.raises(DataError, match="1000 numbers and 1 texts such as 'oops'"):
        infer(read(path))


@pytest.mark.badinput("D8")
def test_wide_and_long(put, monkeypatch):
    names = ",".join(f"c{i}" for i in range(3000))
    table = read(put(f"{names}\n" + ",".join("1" * 3000) + "\n"))
    assert table.n_columns == 3000
    monkeypatch.setattr("ilk.table.clean.MAX_LINE_BYTES", 1000)
    refused(put("a,b\n" + "x" * 2000 + ",1\n"), "field-too-long", ResourceError)


@pytest.mark.badinput("A21")
def test_missing_marks(put):
    table = read(put("a,b,c\n1,NA,x\n?,2.5,\n3,null,None\n4,-,y\n"))
    assert [table.column(n).null_count for n in table.names] == [1, 2, 2]
    assert "missing-marks" in codes(table)
    assert "'?' once in 'a'" in dict(table.warnings)["missing-marks"]
    table = read(put("a,c\n1,NA\n-,x\n"), missing=["-"])
    assert table.column("a").to_pylist() == [1, None]
    assert table.column("c").to_pylist() == ["NA", "x"]
    refused(put("a\n1\n"), "bad-option", UsageError, missing="NA")


@pytest.mark.badinput("A2")
def test_infinity_in_text(put):
    table = read(put("a,b\n1.5,2\ninf,3\n2.5,4\n"))
    with pytest.raises(DataError, match="1 in 'a'") as error:
        encode(table, infer(table))
    assert error.value.code == "data-infinite"


@pytest.mark.badinput("C8")
@pytest.mark.badinput("C9")
def test_column_names(put):
    table = read(put("a,a,,b\n1,2,3,4\n5,6,7,8\n"))
    assert table.names == ("a", "a_1", "column2", "b")
    assert codes(table) == ["column-names", "duplicate-columns"]
    assert "'a'" in refused(pd.DataFrame([[1, 2]], columns=["a", "a"]), "duplicate-columns")
    refused(pa.table([[1], [2]], names=["a", "a"]), "duplicate-columns")
    frame = read(pd.DataFrame(np.eye(3), columns=["", None, 7]))
    assert frame.names == ("column0", "column1", "7")
    assert set(codes(frame)) == {"column-names"}


@pytest.mark.badinput("C5")
def test_lists():
    assert rows(read([[1, "a"], [2.5, None]])) == [(1.0, "a"), (2.5, None)]
    assert "row 1 has 1 cells" in refused([[1, 2], [3]], "ragged-rows")
    refused([1, 2, 3], "bad-shape", UsageError)
    refused(np.zeros(3), "bad-shape", UsageError)
    refused(np.zeros((2, 2, 2)), "bad-shape", UsageError)
    refused({"a": [1], "b": [1, 2]}, "ragged-rows")
    assert read(np.array([(1, "x"), (2, "y")], dtype=[("n", int), ("t", "U3")])).names == ("n", "t")


@pytest.mark.badinput("A18")
@pytest.mark.badinput("A14")
def test_number_kinds_of_arrays():
    assert "3+" not in refused(np.array([[3 + 4j]]), "unsupported-type")
    table = read(np.ones((3, 2), dtype=np.longdouble))
    assert codes(table) == ["precision-lost"]
    huge = np.array([[2**63 + 12345], [1]], dtype=np.uint64)
    encoded = encode_array(huge)
    assert encoded.numbers.max() > 9e18
    assert "precision-lost" in [code for code, _ in encoded.warnings]
    masked = np.ma.MaskedArray(np.eye(2), mask=[[1, 0], [0, 0]])
    assert np.isnan(read(masked).array[0, 0])


@pytest.mark.badinput("C4")
@pytest.mark.badinput("C16")
def test_objects_that_are_no_tables():
    class Sparse:
        shape, nnz = (100_000, 1000), 3

        def tocsr(self):
            return self

    class Cuda:
        is_cuda = True

    assert "800 MB" in refused(Sparse(), "sparse-input", UsageError)
    refused(Cuda(), "device-array", UsageError)
    for odd in (3, None, object(), pd.Series([1, 2]), pa.array([1, 2])):
        with pytest.raises(UsageError):
            read(odd)


@pytest.mark.badinput("A17")
def test_timezone_column():
    frame = pd.DataFrame({"t": pd.date_range("2020", periods=9, tz="Europe/Paris"), "x": np.arange(9) * 1.5})
    assert infer(read(frame))["t"].reason.startswith("date")


@pytest.mark.badinput("D10")
def test_damaged_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": list(range(1000))}), path)
    whole = path.read_bytes()
    for size in (0, 3, 4, 8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError) as error:
            read(path)
        assert error.value.code in ("file-damaged", "no-rows")
    for place in range(len(whole) - 300, len(whole), 7):
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        path.write_bytes(bytes(broken))
        try:
            read(path)
        except IlkError:
            continue
    path.write_bytes(b"PAR1" + b"\xff" * 64 + b"\xff\xff\xff\x7fPAR1")
    refused(path, "file-damaged")


def counts_of(path, n_rows, said, which):
    """A Parquet file of one column and group with `said` for the number of its rows, in some places of its footer."""
    pq.write_table(pa.table({"a": list(range(n_rows))}), path)
    whole = path.read_bytes()
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    true, false = (bytes([0x16, 2 * n & 0x7F | 0x80, 2 * n >> 7]) for n in (n_rows, said))  # as Thrift has it
    head, *parts = whole[start:].split(true)  # of the file, of the cells of its column, of its group
    assert len(parts) == 3
    footer = head + b"".join((false if i in which else true) + part for i, part in enumerate(parts))
    path.write_bytes(whole[:start] + footer)


@pytest.mark.badinput("D10")
@pytest.mark.parametrize(
    ("said", "which", "text"),
    [
        (999, [0], "its footer counts 999 rows, its parts 1000"),
        (999, [2], "its footer counts 1000 rows, its parts 999"),
        (1001, [0, 2], "1001 rows, and it gives 1000|gives 1000 rows, other than its footer counts"),
    ],
)
def test_parquet_that_counts_other_rows_than_it_has(said, which, text, tmp_path):
    """In memory and in pieces alike: no row is lost or made."""
    path = tmp_path / "t.parquet"
    counts_of(path, 1000, said, which)
    assert re.search(text, refused(path, "file-damaged"))
    with pytest.raises(DataError, match=text) as error:
        [*ParquetPieces(str(path)).read(0, ["a"])]
    assert error.value.code == "file-damaged"


@pytest.mark.badinput("D11")
def test_parquet_that_declares_too_much(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.zeros(100_000)}), path)
    monkeypatch.setattr("ilk.table.files.MAX_PARQUET_BYTES", 50_000)
    assert "100,000 rows" in refused(path, "too-large", ResourceError)


@pytest.mark.badinput("D12")
def test_bombs(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000))
    assert read(path).n_rows == 1_000_000
    monkeypatch.setattr("ilk.table.files.RATIO_FROM_BYTES", 1000)
    refused(path, "too-large", ResourceError)
    monkeypatch.setattr("ilk.table.files.MAX_STREAM_BYTES", 1000)
    refused(path, "too-large", ResourceError)


@pytest.mark.badinput("D13")
@pytest.mark.badinput("D19")
def test_zip_files_are_never_unpacked(tmp_path):
    for name, member, word in (
        ("t.zip", "../../x.csv", "zip archive"),
        ("t.xlsx", "xl/workbook.xml", "Excel workbook"),
    ):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(member, "a,b\n1,2\n")
        assert word in refused(tmp_path / name, "wrong-format")
    assert sorted(os.listdir(tmp_path)) == ["t.xlsx", "t.zip"]


@pytest.mark.parametrize(
    "name",
    [
        "a[1].csv",
        "a*.csv",
        "a?.csv",
        " a b.csv",
        "-x.csv",
        "li\nne.csv",
        "é.csv",
        "a" * 200 + ".csv",
        "q'uo.csv",
    ],
)
@pytest.mark.badinput("D15")
def test_file_names_are_literal(name, put, tmp_path):
    put("a,b\n9,9\n", "a1.csv")
    assert rows(read(put("a,b\n1,2\n", name))) == [(1, 2)]


@pytest.mark.badinput("D15")
def test_file_name_that_is_not_utf8(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.csv"
    with open(path, "wb") as out:
        out.write(b"a,b\n1,2\n")
    assert rows(read(os.fsdecode(path))) == [(1, 2)]


@pytest.mark.badinput("D16")
def test_paths_that_are_no_files(tmp_path):
    refused(tmp_path, "no-file", UsageError)
    refused("/dev/zero", "not-a-file", UsageError)
    assert "is not a file name" in refused("a\0b", "no-file", UsageError)
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with subprocess.Popen(
        [sys.executable, "-c", f"open({str(fifo)!r}, 'w').write('a,b\\n1,2\\n')"]
    ) as writer:
        assert rows(read(fifo)) == [(1, 2)]
        writer.wait()


@pytest.mark.badinput("D16")
def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert "standard input is closed" in refused("-", "no-file", UsageError)


@pytest.mark.badinput("D16")
def test_endless_stream_stops_at_the_cap(monkeypatch):
    class Endless:
        class buffer:
            @staticmethod
            def read(size):
                return b"1,2\n" * (size // 4)

    monkeypatch.setattr("sys.stdin", Endless)
    monkeypatch.setattr("ilk.table.files.MAX_STREAM_BYTES", 5_000_000)
    refused("-", "too-large", ResourceError)


@pytest.mark.parametrize(
    "address", ["http://x.org/a.csv", "https://x/a", "s3://b/a", "file:///etc/passwd", "file:a.csv", "gs://b"]
)
@pytest.mark.badinput("D17")
def test_addresses_are_refused(address):
    refused(address, "remote-path", UsageError)


@pytest.mark.badinput("D18")
def test_missing_and_forbidden_files(tmp_path, put, monkeypatch):
    put("a\n1\n", "customers.csv")
    assert "customers.csv" in refused(tmp_path / "custmers.csv", "no-file", UsageError)
    assert "Check the path" in refused(tmp_path / "nowhere" / "customers.csv", "no-file", UsageError)
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "customers.csv")
    assert read(link).n_rows == 1

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", forbidden)
    assert "Permission denied" in refused(link, "file-unreadable")


@pytest.mark.badinput("D9")
def test_file_that_changes_while_it_is_read(put, monkeypatch):
    path = put("a,b\n1,2\n")
    import ilk.table.text

    account = ilk.table.text.account

    def late(*given):
        path.write_text("a,b\n1,2\n3,4\n")
        return account(*given)

    monkeypatch.setattr("ilk.table.text.account", late)
    refused(path, "file-changed")


@pytest.mark.badinput("D20")
def test_extension_types_are_read_as_storage(tmp_path):
    storage = pa.array([b"0123456789abcdef"] * 3, pa.binary(16))
    table = pa.table({"u": pa.ExtensionArray.from_storage(pa.uuid(), storage), "x": [1.5, 2.5, 3.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(DataError, match="'u'"):
        infer(read(tmp_path / "t.parquet"))
    assert infer(read(table), ignore="u")["x"].kind == "numeric"


@pytest.mark.badinput("D22")
def test_environment_changes_nothing(put):
    path = put("a,b\n1.5,x\n2.5,é\n")
    script = (
        "import sys; from ilk.table.read import read; from ilk.table.schema import infer; "
        "t = read(sys.argv[1]); print(ascii(t.arrow.to_pylist()), infer(t)['b'].levels == ('x', '\\xe9'))"
    )
    out = set()
    for extra in ({"LC_ALL": "C", "TZ": "Asia/Tokyo"}, {"PYTHONHASHSEED": "7", "LC_NUMERIC": "de_DE.UTF-8"}):
        env = {**os.environ, **extra, "HOME": "/nonexistent"}
        out.add(
            subprocess.run(
                [sys.executable, "-c", script, str(path)], env=env, capture_output=True, text=True
            ).stdout
        )
    assert len(out) == 1
    assert "True" in out.pop()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"a": 1}\n{"a": tru}\n', "line 2"),
        ('{"a": 1}\n[1]\n', "not an object"),
        ('{"a": 1, "a": 2}\n', "twice"),
        ('{"a": ' + "9" * 5000 + "}\n", "line 1: a number with too many digits"),
    ],
)
def test_bad_json_lines(text, word, put):
    assert word in refused(put(text, "t.jsonl"), "bad-line")
    deep = '{"a": ' + "[" * 100_000 + "\n"
    refused(put(deep, "t.jsonl"), "bad-line")


def test_blank_json_lines_are_no_rows(put):
    table = read(put('{"a": 1}\n\n  \n{"a": 2}\n', "t.jsonl"))
    assert (rows(table), table.ledger.read) == ([(1,), (2,)], 2)


def test_options_of_text_files_do_not_apply_to_json(put):
    for option in ({"sep": ";"}, {"header": False}, {"encoding": "cp1252"}):
        assert "do not apply to JSON" in refused(
            put('{"a": 1}\n', "t.jsonl"), "bad-option", UsageError, **option
        )


def test_mixed_json_column(put):
    table = read(put('{"a": 1, "b": 1.5}\n{"a": "x", "b": 2.5}\n{"b": 4}\n', "t.jsonl"))
    assert table.problems["a"].code == "data-mixed"
    assert table.column("b").to_pylist() == [1.5, 2.5, 4.0]


def test_sql_sees_the_table_only(put):
    path = put("a,b\n1,2\n3,4\n")
    assert rows(read(path, sql="select a + b as c from data where a > 1")) == [(7,)]
    refused(path, "bad-sql", UsageError, sql="select * from nothing")
    refused(path, "bad-sql", UsageError, sql="select * from read_csv('/etc/passwd')")
    refused(path, "bad-sql", UsageError, sql=f"copy data to '{path}.out'")
    refused(np.eye(2), "bad-option", UsageError, sep=",")


def test_codes_with_leading_zeros_stay_text(put):
    table = read(put("zip,b\n00123,1\n00456,2\n"))
    assert table.column("zip").to_pylist() == ["00123", "00456"]


numbers = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(numbers, st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)),
        min_size=2,
        max_size=8,
    )
)
def test_csv_gives_back_what_was_written(tmp_path_factory, cells):
    """Numbers come back bit for bit, and texts as they are but for their line ends."""
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    quoted = ['{!r},"{}"'.format(v, t.replace('"', '""')) for v, t in cells]
    path.write_bytes(("number,text\n" + "\n".join(quoted) + "\n").encode())
    table = read(path, sep=",", header=True, missing=[])
    assert table.ledger.balanced
    assert table.n_rows == len(cells)
    assert np.array_equal(np.array(table.column("number").to_pylist(), dtype=float), [v for v, _ in cells])
    found = table.column("text")
    if pa.types.is_large_string(found.type):
        plain = [t.replace("\r\n", "\n").replace("\r", "\n") for _, t in cells]
        assert found.to_pylist() == [t if t.strip() else None for t in plain]


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200) | st.text(st.sampled_from('ab1,;"\n\r\t \\#'), max_size=60).map(str.encode))
def test_any_bytes_give_a_table_or_a_coded_refusal(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "t.csv"
    path.write_bytes(content)
    try:
        table = read(path)
    except IlkError:
        return
    assert table.ledger.balanced


@pytest.mark.parametrize(
    "values", [np.array([1.5, np.nan, 3.0]), np.array([3, 1, 2]), np.array([True, False, True])]
)
def test_an_array_in_a_dict_is_the_column_that_its_cells_make(values):
    whole, cells = read({"a": values}), read({"a": values.tolist()})
    assert whole.arrow.equals(cells.arrow)


NOON, DAY = datetime.datetime(2020, 1, 2, 12), datetime.date(2020, 1, 1)


@pytest.mark.badinput("A17")
@pytest.mark.parametrize("cells", [[DAY, NOON, None], [NOON, None, DAY], [np.datetime64(DAY), NOON, None]])
def test_a_date_beside_times_is_its_midnight(cells):
    """A workbook gives a time at midnight as a date: no time beside it is cut off."""
    table = read({"c": cells})
    midnight = datetime.datetime(2020, 1, 1)
    wanted = {None: None, NOON: NOON, DAY: midnight, np.datetime64(DAY): midnight}
    assert table.problems == {}
    assert table.column("c").to_pylist() == [wanted[cell] for cell in cells]


@pytest.mark.badinput("A23")
@pytest.mark.parametrize(
    "cells",
    [
        [datetime.time(1), datetime.timedelta(2)],
        [datetime.timedelta(999_999_999), datetime.timedelta(1)],
        [np.datetime64("30000-01-01"), NOON],
    ],
)
def test_times_that_do_not_go_together_are_refused_with_their_column(cells):
    problem = read({"c": cells, "x": [1.5, 2.5]}).problems["c"]
    assert problem.code == "unsupported-type"
    assert "do not go together" in str(problem)


@pytest.mark.badinput("C5")
def test_arrays_of_cells_that_are_no_numbers():
    assert rows(read(np.array([["a", "b"], ["c", ""]]))) == [("a", "b"), ("c", "")]
    assert rows(read(np.array([[1, "x"], [None, "y"]], dtype=object))) == [(1, "x"), (None, "y")]
    assert rows(read(np.array([[True], [False]]))) == [(True,), (False,)]
    fields = [("n", "f8"), ("o", object), ("v", "f8", (2,)), ("z", "c16")]
    table = read(np.array([(1.5, "a", [1, 2], 1j), (2.5, None, [3, 4], 2j)], dtype=fields))
    assert table.column("n").to_pylist() == [1.5, 2.5]
    assert table.column("o").to_pylist() == ["a", None]
    assert {name: problem.code for name, problem in table.problems.items()} == dict.fromkeys(
        "vz", "unsupported-type"
    )


@pytest.mark.badinput("A30")
def test_categories_of_intervals_and_periods_are_called_as_pandas_writes_them():
    sizes = pd.cut(pd.Series([0.5, 3.0, 9.0, np.nan] * 5), [0, 1, 5, 10])
    months = pd.Series(pd.PeriodIndex(["2024-01", "2024-02"] * 10, freq="M")).astype("category")
    schema = infer(read(pd.DataFrame({"size": sizes, "month": months})))
    assert (schema["size"].kind, schema["size"].levels) == ("ordinal", ("(0, 1]", "(1, 5]", "(5, 10]"))
    assert schema["size"].missing == 5
    assert schema["month"].levels == ("2024-01", "2024-02")


@pytest.mark.badinput("A22")
def test_categories_of_several_kinds_are_refused_as_their_cells_are():
    table = read(pd.DataFrame({"c": pd.Series([1, "a"] * 5, dtype="category"), "x": np.arange(10) / 7}))
    assert table.problems["c"].code == "data-mixed"


@pytest.mark.badinput("A23")
@pytest.mark.parametrize(
    "values",
    [
        pa.array([{"a": 1}, {"a": 2}]),
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, b"1" * 16], pa.binary(16))),
    ],
)
def test_categories_of_cells_that_cannot_be_used(values):
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), values)
    assert read(pa.table({"c": column, "x": [1.5, 2.5, 4.0]})).problems["c"].code == "unsupported-type"


@pytest.mark.badinput("D20")
def test_arrow_cells_stored_in_seldom_ways():
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], [1.5, None])
    half = pa.array([np.float16(1.5), np.float16("nan"), None])
    assert rows(read(pa.table({"runs": runs, "half": half}))) == [(1.5, 1.5), (1.5, None), (None, None)]


@pytest.mark.badinput("D20")
@pytest.mark.parametrize("text", [str, np.str_])
@pytest.mark.parametrize("blank", [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT])
@pytest.mark.parametrize("odd", ["é", "a\ud800"])
def test_texts_are_read_alike_whatever_cells_stand_beside_them(text, blank, odd):
    cells = [text("a"), text(odd), blank, text("b"), blank]
    spelled = odd.encode("utf-8", "backslashreplace").decode()
    assert read({"c": cells}).columns[0].to_pylist() == ["a", spelled, None, "b", None]
    assert read({"c": [blank] * 3 + [1.5]}).columns[0].to_pylist() == [None, None, None, 1.5]

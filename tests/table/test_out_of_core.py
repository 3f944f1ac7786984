"""A table in pieces: the same schema, the same cells and the same conditioning as in memory, however it is cut."""

from __future__ import annotations

import datetime
import gzip
import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilk.errors import DataError, ResourceError, UsageError
from ilk.table import text
from ilk.table.cells import MANY_LEVELS
from ilk.table.condition import encoding_of, survey
from ilk.table.encode import encode
from ilk.table.files import TextOptions
from ilk.table.out_of_core import memory_limit
from ilk.table.out_of_core import pack as packing
from ilk.table.out_of_core.pack import Layout, pack
from ilk.table.out_of_core.pieces import ParquetPieces
from ilk.table.out_of_core.table import PieceTable
from ilk.table.out_of_core.text import read_text_pieces
from ilk.table.read import Table, from_arrow, read
from ilk.table.schema import infer
from ilk.table.understand import understand
from tests.table.tables import arrow_tables, as_stream, in_pieces


def layout(schema):
    return Layout(schema, lambda numbers, codes: numbers, True)


@settings(max_examples=60, deadline=None)
@given(table=arrow_tables(), rows=st.integers(1, 40), threads=st.integers(1, 3))
def test_the_schema_is_that_of_memory(table, rows, threads):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.parquet")
        pieces = in_pieces(table, path, rows)
        whole = read(str(path))
        pieces.gather({}, threads)
        assert outcome(pieces) == outcome(whole)


@settings(max_examples=40, deadline=None)
@given(table=arrow_tables(), rows=st.integers(1, 40))
def test_a_stream_has_the_schema_of_memory(table, rows):
    ordered = pa.DictionaryArray.from_arrays(
        pa.array([i % 2 for i in range(table.num_rows)]), ["low", "high", "never"], ordered=True
    )
    table = table.append_column("grade", ordered)
    pieces = as_stream(table, rows)
    pieces.gather({}, 1)
    assert outcome(pieces) == outcome(from_arrow(table, "stream"))


def outcome(table):
    try:
        schema = infer(table)
    except DataError as error:
        return error.code, error.what
    return schema, schema.warnings


@settings(max_examples=40, deadline=None)
@given(table=arrow_tables(), rows=st.integers(1, 40), kept=st.booleans())
def test_the_cells_are_those_of_memory(table, rows, kept):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_reads_faster", lambda *_, **__: kept)
        path = Path(folder, "table.parquet")
        pieces, whole = in_pieces(table, path, rows), read(str(path))
        try:
            schema = infer(whole)
            encoded = encode(whole, schema, scale="standard")
        except DataError:
            return
        packed = pack(pieces, layout(schema), 1e9, 2)
        n = encoded.n_rows
        assert packed.kept == kept
        assert np.array_equal(packed.raw[:n], encoded.numbers, equal_nan=True)
        assert packed.raw.dtype == encoded.numbers.dtype
        assert (packed.codes is None) == (encoded.codes is None)
        if encoded.codes is not None:
            assert np.array_equal(packed.codes[:n], encoded.codes)
        chosen = np.arange(n)[::-2]
        assert np.array_equal(packed.raw[chosen], encoded.numbers[chosen], equal_nan=True)
        facts = survey(packed.raw)
        found = encoding_of(packed.raw, facts, scale="standard")
        assert facts.complete == encoded.complete
        assert found.power == encoded.encoding.power
        assert np.array_equal(found.centre, encoded.encoding.centre)
        assert np.array_equal(found.factor, encoded.encoding.factor)
        assert len(packed.skipped) == table.num_rows - n
        assert pieces.take(chosen).arrow.num_rows == len(chosen)


@pytest.mark.parametrize("cached", [True, False])
def test_the_first_rows_tell_whether_packed_ones_come_faster(cached, monkeypatch):
    asked = []
    monkeypatch.setattr(packing.DiskArray, "leave_cache", lambda self: asked.append(self))
    raw, none = np.zeros((100, 2)), np.zeros(100, dtype=bool)
    sample = packing.RowCells(raw, None, None, none, none)
    assert packing._reads_faster(sample, 10.0, cached=cached)
    assert not packing._reads_faster(sample, 0.0, cached=cached)
    assert len(asked) == (0 if cached else 2)


def test_what_has_left_the_cache_is_read_from_the_disk():
    kept = packing.DiskArray(500, 3, np.float64)
    rows = np.random.default_rng(0).normal(size=(500, 3))
    kept.write(0, rows)
    kept.leave_cache()
    assert np.array_equal(kept[:], rows)


def test_different_values_beyond_count_are_estimated_and_identifiers_counted(tmp_path):
    n = 60_000
    draws = np.random.default_rng(0)
    table = pa.table(
        {
            "number": draws.normal(size=n),
            "amount": draws.integers(0, 40_000, n),
            "user_id": draws.permutation(10**7)[:n],
            "name": [f"n{i}" for i in range(n)],
            "word": [f"w{i}" for i in draws.integers(0, 30_000, n)],
        }
    )
    pieces = in_pieces(table, tmp_path / "t.parquet", 7000)
    pieces.gather({}, 2)
    found, whole = infer(pieces), infer(from_arrow(table, pieces.source))
    for name in ("user_id", "name"):
        assert found[name] == whole[name]
        assert len(pieces.cells(name).texts()) <= MANY_LEVELS + 7000  # no more are held
    for name in ("number", "amount", "word"):
        assert found[name].kind == whole[name].kind
        assert found[name].distinct == pytest.approx(whole[name].distinct, rel=0.05)


@pytest.mark.parametrize("rows", [7000, 40_000])
def test_identifiers_of_which_some_are_missing_are_counted(rows, tmp_path, monkeypatch):
    """A part without any, too, of several pieces or of one."""
    monkeypatch.setattr("ilk.table.out_of_core.pieces.MOST_ROWS", 5000)
    names = [None if 7000 <= i < 14_000 else f"n{i}" for i in range(40_000)]
    table = pa.table({"name": names, "x": np.arange(40_000) ** 0.5})
    pieces = in_pieces(table, tmp_path / "t.parquet", rows)
    pieces.gather({}, 1)
    assert infer(pieces)["name"] == infer(from_arrow(table, ""))["name"]
    assert pieces.take(np.array([39_999, 3])).column("name").to_pylist() == ["n3", "n39999"]


def test_a_category_of_many_levels_of_which_few_occur():
    """Known levels may be more than are looked at; those that occur are all there."""
    levels = [f"l{i}" for i in range(MANY_LEVELS + 10)]
    places = [(0, 5, MANY_LEVELS + 3)[i // 20] for i in range(60)]
    table = pa.table({"c": pa.DictionaryArray.from_arrays(pa.array(places), levels), "x": np.arange(60) / 7})
    pieces = as_stream(table, 20)
    pieces.gather({}, 1)
    assert infer(pieces)["c"] == infer(from_arrow(table, ""))["c"]
    assert infer(pieces)["c"].distinct == pieces.cells("c").n_distinct() == 3


def days_and_times():
    day = datetime.datetime(2024, 1, 1)
    return {
        "when": [day + datetime.timedelta(hours=7 * i % 400) for i in range(60)],
        "clock": [datetime.time(6 + i % 9, i) for i in range(60)],
        "price": pa.array([i % 40 / 4 for i in range(60)]).cast(pa.decimal128(9, 2)),
        "span": [datetime.timedelta(days=i * i % 50) for i in range(60)],
        "digits": [str(i * i % 40) for i in range(60)],
        "cost": [f"${i * i % 37}.50" for i in range(60)],
        "twice": [2 * (i * i % 40) for i in range(60)],
        "x": [i / 7 for i in range(60)],
    }


@pytest.mark.parametrize(
    "types", [{}, {"span": "numeric", "digits": "numeric", "cost": "numeric"}, {"digits": "count"}]
)
def test_columns_of_all_types_are_understood_as_in_memory(types, tmp_path):
    table = pa.table(days_and_times())
    pieces = in_pieces(table, tmp_path / "t.parquet", 25)
    assert {name: pieces.arrow_type(name) for name in pieces.names} == {f.name: f.type for f in table.schema}
    pieces.gather(types, 2)
    found, whole = understand(pieces, types=types), understand(read(tmp_path / "t.parquet"), types=types)
    assert found == whole
    assert [str(w) for w in found.warnings] == [str(w) for w in whole.warnings]


@pytest.mark.parametrize(
    ("cells", "types", "code"),
    [
        ([str(i) for i in range(40)] + ["oops"] * 2, {}, "data-mixed"),
        ([str(i) for i in range(40)] + ["oops"] * 2, {"c": "numeric"}, "not-numeric"),
        ([i / 2 for i in range(42)], {"c": "count"}, "not-counts"),
        ([str(i / 2) for i in range(42)], {"c": "count"}, "not-counts"),
        (
            pa.array([(1, i, 0) for i in range(42)], pa.month_day_nano_interval()),
            {"c": "numeric"},
            "not-numeric",
        ),
    ],
)
def test_columns_are_refused_in_the_words_of_memory(cells, types, code):
    table = pa.table({"c": cells, "x": range(42)})
    pieces = as_stream(table, 15)
    with pytest.raises(DataError) as whole:
        infer(from_arrow(table, "stream"), types=types)
    pieces.gather(types, 1)
    with pytest.raises(DataError) as parted:
        infer(pieces, types=types)
    assert parted.value.code == code
    assert str(parted.value) == str(whole.value)


@pytest.mark.parametrize("more", [1, 500])
@pytest.mark.parametrize("written", ["{}", "w{}"])
def test_too_many_categories_for_a_table_in_pieces(more, written, tmp_path):
    """None is lost in silence, however near to the number that is held."""
    words = [written.format(i) for i in range(MANY_LEVELS + more)]
    table = pa.table({"c": words * 2, "x": np.arange(2 * len(words)) ** 0.5})
    if written == "{}":
        table = table.set_column(0, "c", table["c"].cast(pa.int64()))
    pieces = in_pieces(table, tmp_path / "t.parquet", 5000)
    pieces.gather({"c": "categorical"}, 1)
    with pytest.raises(
        DataError, match="more than 16,384 categories, too many for a table read in chunks"
    ) as error:
        infer(pieces, types={"c": "categorical"})
    assert error.value.code == "too-many-categories"


@pytest.mark.parametrize("kept", [True, False])
def test_slices_of_nothing_and_of_rows_around_empty_ones(kept, tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "_reads_faster", lambda *_, **__: kept)
    x = [None if i % 5 == 2 else i / 2 for i in range(30)]
    table = pa.table({"x": pa.array(x), "y": pa.array([None if i % 5 == 2 else i for i in range(30)])})
    path = tmp_path / "t.parquet"
    with pq.ParquetWriter(path, table.schema) as writer:
        for first, n in ((0, 0), (0, 7), (7, 0), (7, 23)):
            writer.write_table(table.slice(first, n))
    pieces, schema = PieceTable(ParquetPieces(str(path))), infer(from_arrow(table, ""))
    packed = pack(pieces, layout(schema), 1e9, 1)
    used = [i for i in range(30) if i % 5 != 2]
    assert packed.numbers_of(np.arange(24)).tolist() == used
    assert packed.raw[9:4].shape == (0, 2)
    assert packed.raw[3:9, 0].tolist() == [x[i] for i in used[3:9]]
    assert pieces.take(np.array([1, 29])).column("x").to_pylist() == [x[1], x[29]]


@pytest.mark.parametrize("kept", [True, False])
def test_a_table_without_rows_packs_to_none(kept, tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "_reads_faster", lambda *_, **__: kept)
    table = pa.table({"x": [1.5, 2.5, 4.0]})
    schema = infer(from_arrow(table, ""))
    path = tmp_path / "t.parquet"
    pq.write_table(table.slice(0, 0), path)
    packed = pack(PieceTable(ParquetPieces(str(path))), layout(schema), 1e9, 1)
    assert packed.raw[:].shape == (0, 1)
    assert packed.numbers_of(np.arange(0)).shape == (0,)


def test_rows_that_fit_nowhere_are_refused(tmp_path, monkeypatch):
    table = pa.table({"x": np.arange(100) ** 0.5})
    pieces = in_pieces(table, tmp_path / "t.parquet", 30)
    monkeypatch.setattr(packing, "free_bytes", lambda: 100)
    with pytest.raises(ResourceError, match=r"more than there is room for.*TMPDIR") as error:
        pack(pieces, layout(infer(from_arrow(table, ""))), 100.0, 2)
    assert error.value.code == "disk-full"
    assert not pack(pieces, layout(infer(from_arrow(table, ""))), 1e9, 2).kept  # decoded anew in each pass


def test_a_temporary_file_that_was_cut_is_told():
    kept = packing.DiskArray(50, 3, np.float64)
    kept.write(0, np.zeros((50, 3)))
    kept._file.truncate(100)
    with pytest.raises(ResourceError, match="shorter than it was written") as error:
        kept[:]
    assert error.value.code == "disk-read"


def test_a_system_that_cannot_be_asked_to_forget_keeps_the_rows(monkeypatch):
    monkeypatch.delattr(os, "posix_fadvise")
    kept = packing.DiskArray(5, None, np.float64)
    kept.write(0, np.arange(5.0))
    kept.leave_cache()
    assert kept[1:3].tolist() == [1.0, 2.0]


def test_a_parquet_file_that_changes_between_passes_is_refused(tmp_path):
    table = pa.table({"x": np.arange(30) ** 0.5})
    pieces = in_pieces(table, tmp_path / "t.parquet", 10)
    assert sum(part.n_rows for part in pieces.parts()) == 30
    in_pieces(pa.concat_tables([table, table]), tmp_path / "t.parquet", 10)
    with pytest.raises(DataError, match=r"t\.parquet changed while it was read") as error:
        [*pieces.parts()]
    assert error.value.code == "file-changed"


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["1", "2.5", "-3e2", "NA", "", " 7 ", "+4", "12"]),
            st.sampled_from(["1", "20", "007", "x"]) | st.just("5"),
            st.sampled_from(["red", "blue", "unknown", '"a\nb"', "?"]),
            st.sampled_from(["true", "False", ""]),
        ),
        min_size=3,
        max_size=40,
    ),
    at_once=st.integers(1, 30),
    repeated=st.booleans(),
)
def test_text_is_cut_and_typed_as_in_memory(rows, at_once, repeated):
    header = "amount,code,colour,flag"
    lines = [header, *(",".join(row) for row in rows), *([header, "3,5,red,true"] if repeated else [])]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "CUT_ROWS", at_once)
        path = Path(folder, "table.csv")
        path.write_text("\n".join(lines) + "\n")
        whole, pieces = read(str(path)), read_text_pieces(str(path), "table.csv", TextOptions())
        parts = [part.arrow for part in pieces.parts()]
        assert pa.concat_tables(parts).to_pylist() == whole.arrow.to_pylist()
        assert all(part.schema == whole.arrow.schema for part in parts)
        assert pieces.ledger == whole.ledger
        assert sorted(code for code, _ in pieces.warnings) == sorted(code for code, _ in whole.warnings)
        pieces.gather({}, 1)
        assert outcome(pieces) == outcome(whole)


def test_rejected_lines_are_refused_or_counted(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n3,4,5\n6,7\n8,9\n")
    with pytest.raises(DataError) as caught:
        read_text_pieces(str(path), "table.csv", TextOptions())
    assert caught.value.code == "rows-rejected"
    pieces = read_text_pieces(str(path), "table.csv", TextOptions(max_rejects=1))
    assert (pieces.ledger.read, pieces.n_rows, pieces.ledger.balanced) == (4, 3, True)


def test_packed_text_and_text_of_one_column(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a\n1.5\n2.5\n"))
    pieces = read_text_pieces(str(path), "t.csv.gz", TextOptions(), packed=True)
    assert [row for part in pieces.parts() for row in part.arrow.to_pylist()] == [{"a": 1.5}, {"a": 2.5}]
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(DataError, match=r"t\.csv\.gz is not a readable gzip file") as caught:
        read_text_pieces(str(path), "t.csv.gz", TextOptions(), packed=True)
    assert caught.value.code == "file-damaged"


def test_text_without_rows_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\na,b\n")  # a header that comes again is no row
    for opened in (read, lambda path: read_text_pieces(str(path), "t.csv", TextOptions())):
        with pytest.raises(DataError, match=r"t\.csv has a header and no rows") as caught:
            opened(path)
        assert caught.value.code == "no-rows"


def test_folders_and_streams_are_held_where_they_fit(tmp_path):
    table = pa.table({"x": np.arange(4000.0), "y": np.arange(4000) % 3})
    pq.write_table(table, tmp_path / "0.parquet")
    for memory, kind in ((None, Table), ("100MiB", Table), (1e5, PieceTable)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(memory_limit, "LEAST", 0)
            for data in (tmp_path, table.to_reader(max_chunksize=100)):
                opened = memory_limit.open_table(data, memory)
                assert isinstance(opened, kind)
                assert opened.n_rows == 4000
    with pytest.raises(UsageError, match="no file") as caught:
        memory_limit.open_table(tmp_path / "none.parquet")
    assert caught.value.code == "no-file"

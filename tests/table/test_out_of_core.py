"""A table in pieces: the same schema, the same cells and the same conditioning as in memory, however it is cut."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilk.errors import DataError
from ilk.table import text
from ilk.table.condition import encoding_of, survey
from ilk.table.encode import encode
from ilk.table.files import TextOptions
from ilk.table.out_of_core import pack as packing
from ilk.table.out_of_core.pack import Layout, pack
from ilk.table.out_of_core.text import read_text_pieces
from ilk.table.read import from_arrow, read
from ilk.table.schema import infer
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
    for name in ("number", "amount", "word"):
        assert found[name].kind == whole[name].kind
        assert found[name].distinct == pytest.approx(whole[name].distinct, rel=0.05)


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

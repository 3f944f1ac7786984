"""The same table from every kind of source gives the same arrays; levels and rows come back as they were."""

from __future__ import annotations

import datetime
import io
import json
from functools import reduce
from operator import add
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import ilk
from ilk.errors import DataError, IlkError, UsageError
from ilk.table.encode import decode, encode, encode_array, encode_new
from ilk.table.read import read
from ilk.table.schema import Schema, infer
from ilk.table.weights import Divided, WeightFacts

ROWS = 40
rng = np.random.default_rng(11)
COLUMNS = {
    "height": [float(v) if i % 7 else None for i, v in enumerate(rng.normal(170, 9, ROWS))],
    "count": [int(v) for v in rng.integers(0, 1000, ROWS)],
    "colour": [["red", "green", "blue", None][i % 4] for i in range(ROWS)],
    "smokes": [bool(v) for v in rng.integers(0, 2, ROWS)],
    "parity": [int(v) for v in rng.integers(0, 2, ROWS)],
}


def arrow() -> pa.Table:
    return pa.table(COLUMNS)


def chunked() -> pa.Table:
    return pa.concat_tables([arrow().slice(i, 7) for i in range(0, ROWS, 7)])


def dictionary() -> pa.Table:
    """Colour as a dictionary with an unused entry and a null entry."""
    values = pa.array(["blue", "unused", "green", None, "red"])
    place = {"blue": 0, "green": 2, None: 3, "red": 4}
    column = pa.DictionaryArray.from_arrays(pa.array([place[c] for c in COLUMNS["colour"]]), values)
    return arrow().set_column(2, "colour", column)


def as_csv(folder: Path, sep: str = ",", name: str = "t.csv") -> Path:
    path = folder / name
    pd.DataFrame(COLUMNS).to_csv(path, sep=sep, index=False)
    return path


def written(folder: Path, name: str) -> Path:
    path = folder / name
    if name.endswith("parquet"):
        pq.write_table(arrow(), path)
    elif name.endswith("jsonl"):
        lines = [
            json.dumps(dict(zip(COLUMNS, row, strict=True))) for row in zip(*COLUMNS.values(), strict=True)
        ]
        path.write_text("\n".join(lines))
    else:
        feather.write_feather(arrow(), path, compression="uncompressed")
    return path


def folder_of_parquet(folder: Path) -> Path:
    (folder / "many").mkdir()
    for i in range(0, ROWS, 9):
        pq.write_table(arrow().slice(i, 9), folder / "many" / f"part-{i:02}.parquet")
    (folder / "many" / "_SUCCESS").write_text("")
    return folder / "many"


SOURCES = {
    "pandas": lambda f: pd.DataFrame(COLUMNS),
    "pandas-nullable": lambda f: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas-pyarrow": lambda f: pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "pandas-object": lambda f: pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in COLUMNS.items()}),
    "pandas-category": lambda f: pd.DataFrame(COLUMNS).astype({"colour": "category"}),
    "pandas-index": lambda f: pd.DataFrame(COLUMNS, index=[1] * ROWS),
    "polars": lambda f: pl.DataFrame(COLUMNS),
    "polars-lazy": lambda f: pl.LazyFrame(COLUMNS),
    "polars-category": lambda f: pl.DataFrame(COLUMNS).with_columns(pl.col("colour").cast(pl.Categorical)),
    "arrow": lambda f: arrow(),
    "arrow-batch": lambda f: arrow().to_batches()[0],
    "arrow-chunked": lambda f: chunked(),
    "arrow-reader": lambda f: chunked().to_reader(),
    "arrow-dictionary": lambda f: dictionary(),
    "arrow-view": lambda f: arrow().set_column(2, "colour", arrow()["colour"].cast(pa.string_view())),
    "duckdb": lambda f: duckdb.from_arrow(arrow()),
    "records": lambda f: arrow().to_pylist(),
    "dict": lambda f: COLUMNS,
    "csv": as_csv,
    "tsv": lambda f: as_csv(f, "\t", "t.tsv"),
    "semicolon": lambda f: as_csv(f, ";", "t.txt"),
    "csv.gz": lambda f: as_csv(f, ",", "t.csv.gz"),
    "parquet": lambda f: written(f, "t.parquet"),
    "feather": lambda f: written(f, "t.feather"),
    "jsonl": lambda f: written(f, "t.jsonl"),
    "folder": folder_of_parquet,
}


@pytest.fixture(scope="module")
def expected():
    table = read(arrow())
    return encode(table, infer(table))


def same(one, other) -> None:
    assert [c.name for c in one.schema.used] == [c.name for c in other.schema.used]
    assert [c.kind for c in one.schema.used] == [c.kind for c in other.schema.used]
    assert [c.levels for c in one.schema.used] == [c.levels for c in other.schema.used]
    assert np.array_equal(one.numbers, other.numbers, equal_nan=True)
    assert np.array_equal(one.codes, other.codes)
    assert one.encoding.power == other.encoding.power
    assert np.array_equal(one.encoding.centre, other.encoding.centre)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.badinput("C6")
@pytest.mark.badinput("C7")
def test_same_table_from_every_source(source, expected, tmp_path):
    table = read(SOURCES[source](tmp_path))
    assert table.ledger.balanced
    same(encode(table, infer(table)), expected)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.feather", "t.jsonl"])
def test_same_table_from_standard_input(name, expected, tmp_path, monkeypatch):
    path = as_csv(tmp_path) if name == "t.csv" else written(tmp_path, name)

    class Piped:
        buffer = io.BytesIO(path.read_bytes())

    monkeypatch.setattr("sys.stdin", Piped())
    table = read("-")
    assert table.source == "stdin"
    same(encode(table, infer(table)), expected)


def test_numbers_as_array_and_frame():
    x = rng.normal(size=(30, 4))
    array, frame = read(x), read(pd.DataFrame(x, columns=["x0", "x1", "x2", "x3"]))
    one, other = encode(array, infer(array)), encode(frame, infer(frame))
    assert one.numbers is x
    assert np.array_equal(one.numbers, other.numbers)
    assert one.codes is None
    assert other.codes is None


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        np.asfortranarray,
        lambda x: x[::2],
        lambda x: x[::-1],
        lambda x: x[:, ::-1],
        lambda x: x.astype(np.float32),
        lambda x: np.broadcast_to(x[:1], (9, 4)),
    ],
)
@pytest.mark.badinput("C1")
def test_floats_are_never_copied(view):
    x = view(rng.normal(size=(20, 4)))
    encoded = encode_array(x)
    assert encoded.numbers is x
    copy = np.ascontiguousarray(x)
    assert np.array_equal(encode_array(copy).encoding.centre, encoded.encoding.centre)
    assert np.array_equal(encoded.block().numbers, encode_array(copy).block().numbers)


@pytest.mark.badinput("C2")
def test_read_only_memmap(tmp_path):
    x = rng.normal(size=(20, 4))
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(encode_array(mapped).numbers, mapped)


def test_contiguous_columns_of_an_array_are_a_view():
    x = rng.normal(size=(30, 4))
    table = read(x)
    assert np.shares_memory(encode(table, infer(table, ignore=["x0"])).numbers, x)


@pytest.mark.parametrize(
    ("dtype", "wanted"), [("f2", "f4"), ("f4", "f4"), ("i1", "f8"), ("u8", "f8"), (">f8", "f8")]
)
@pytest.mark.badinput("A14")
@pytest.mark.badinput("A15")
def test_number_types(dtype, wanted):
    x = np.arange(12).reshape(6, 2).astype(dtype)
    encoded = encode_array(x)
    assert encoded.numbers.dtype == np.dtype(wanted)
    assert np.array_equal(encoded.numbers, x.astype(float))


def test_float32_columns_of_a_frame_stay_float32():
    frame = pd.DataFrame(rng.normal(size=(9, 2)).astype(np.float32), columns=["a", "b"])
    assert encode(read(frame), infer(read(frame))).numbers.dtype == np.float32


def test_give_back_keeps_the_kind_of_frame():
    frame = pd.DataFrame(COLUMNS, index=[i // 2 for i in range(ROWS)])
    back = read(frame).give_back({"group": np.arange(ROWS), "name": ["a"] * ROWS})
    assert isinstance(back, pd.DataFrame)
    assert back.index.equals(frame.index)
    assert back["group"].tolist() == list(range(ROWS))
    assert isinstance(read(pl.DataFrame(COLUMNS)).give_back({"group": np.arange(ROWS)}), pl.DataFrame)
    assert isinstance(read(pl.LazyFrame(COLUMNS)).give_back({"group": np.arange(ROWS)}), pl.DataFrame)
    assert isinstance(read(arrow()).give_back({"group": np.arange(ROWS)}), pa.Table)
    assert isinstance(read(np.eye(2)).give_back({"group": np.arange(2)}), pa.Table)


def test_give_back_with_two_rows_of_column_names():
    frame = pd.DataFrame(np.eye(3), columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]))
    table = read(frame)
    assert table.names == ("a_1", "a_2", "b_1")
    assert table.give_back({"group": [0, 1, 2]}).index.equals(frame.index)


@pytest.mark.badinput("A4")
def test_rows_without_a_value_are_set_aside():
    table = read({"a": [1.5, None, 3.25, None], "b": ["x", None, "y", "x"]})
    encoded = encode(table, infer(table))
    assert encoded.row_numbers.tolist() == [0, 2, 3]
    assert encoded.ledger.balanced
    assert (encoded.ledger.read, encoded.ledger.used) == (4, 3)
    assert encoded.ledger.set_aside[0].first == (1,)
    assert [code for code, _ in encoded.warnings] == ["empty-rows"]
    assert not encoded.complete
    assert encoded.block().observed.tolist() == [[True], [True], [False]]
    assert encode(table, infer(table, ignore="a")).block().observed is None


@pytest.mark.parametrize(
    ("weight", "text"),
    [
        ([1, -1, 1], "weights are negative"),
        ([1, np.nan, 1], "weights are missing"),
        ([1, np.inf, 1], "weights are infinite"),
        ([0, 0, 0], "all weights are zero"),
        ([1, 1], "shape 2"),
        ([1e-300, 1, 1], "lost in rounding"),
        (["a", "b", "c"], "not numbers"),
        ([1.7e308] * 3, "sum of the weights"),
    ],
)
@pytest.mark.badinput("B13")
def test_bad_weights(weight, text):
    with pytest.raises(DataError, match=text) as error:
        encode_array(np.eye(3), weight=weight)
    assert error.value.code == "bad-weight"


def test_rows_that_count_and_have_no_number_leave_nothing_to_fit():
    """All weight lies on rows that the method cannot use: a refusal, whatever the weights are."""
    cells = {"x": [None] * 30 + [float(i) for i in range(30)], "kind": ["a", "b", "c"] * 20}
    for meaning in (None, "counts", "sampling"):
        with pytest.raises(IlkError, match="the table has 0 rows") as error:
            ilk.cluster(
                {**cells, "w": [1] * 30 + [0] * 30}, weight="w", weights_are=meaning, method="k-means", k=2
            )
        assert error.value.code == "fewer-rows-than-groups"


def test_weights_of_rows_that_are_set_aside_do_not_count():
    table = read({"x": [1.5, None, 4.0], "w": [0.5, 1000.0, 0.5]})
    encoded = encode(table, infer(table, weight="w"))
    assert encoded.row_numbers.tolist() == [0, 2]
    assert encoded.weight.tolist() == [1.0, 1.0]  # where all are alike
    assert encoded.encoding.weight_unit == 0.5
    with pytest.raises(DataError, match="all weights are zero"):
        encode(table, infer(table, ignore="w"), weight=[0, 1, 0])


def test_tables_without_a_row_to_fit():
    old = read({"x": [1.5, 2.5, 9.0]})
    for cells, text in (({"x": []}, "dict has no rows"), ({"x": [None, None]}, "no row of dict has a value")):
        with pytest.raises(DataError, match=text) as error:
            encode(read(cells), infer(old))
        assert error.value.code == "no-rows"


def test_columns_of_an_array_may_be_named():
    assert [c.name for c in encode_array(np.eye(2), names=["a", "b"]).schema.columns] == ["a", "b"]
    with pytest.raises(UsageError, match="1 names for 2 columns") as error:
        encode_array(np.eye(2), names=["a"])
    assert error.value.code == "bad-names"


def test_weights_of_parts_are_refused_together():
    """On a cluster only sums of them are known, and no row."""
    parts = [WeightFacts.of(np.array(part)) for part in ([1.0, 2.0], [0.0], [np.nan, -1.0, 3.0], [np.inf])]
    with pytest.raises(DataError, match="3 weights are missing, infinite or negative") as error:
        reduce(add, parts).check()
    assert error.value.code == "bad-weight"
    reduce(add, parts[:2]).check()


def test_weights_on_disk_are_divided_when_they_are_read():
    weight = np.array([2.0, 4.0, 6.0])
    divided = Divided(weight, 2.0)
    assert (len(divided), divided.shape, divided.dtype) == (3, (3,), np.float64)
    assert divided[1:].tolist() == [2.0, 3.0]


def test_weight_column():
    table = read({"x": [1.5, 2.5, 9.0], "w": [1, 0, 3]})
    schema = infer(table, weight="w")
    encoded = encode(table, schema)
    assert encoded.weight.tolist() == [1, 0, 3]
    assert encoded.numbers.tolist() == [[1.5], [2.5], [9.0]]
    text = read({"x": [1.5, 2.5, 9.0], "w": ["a", "b", "c"]})
    with pytest.raises(DataError, match="holds text"):
        encode(text, infer(text, weight="w"))


class TestNew:
    """Rows that come after the fit."""

    old = read({"size": [1.5, 2.5, 4.0, 8.0], "kind": ["a", "b", "c", "a"], "on": [True, False, True, True]})
    schema = infer(old)
    encoding = encode(old, schema).encoding

    def new(self, columns, **options):
        return encode_new(read(columns), self.schema, self.encoding, **options)

    @pytest.mark.badinput("C13")
    def test_reordered(self):
        made = self.new({"on": [False], "kind": ["c"], "size": [3]})
        assert made.numbers.tolist() == [[3.0]]
        assert made.codes.tolist() == [[2, 0]]
        assert made.warnings == ()

    @pytest.mark.badinput("C14")
    def test_extra_and_absent(self):
        made = self.new({"on": [False], "kind": ["c"], "size": [3], "more": [1]})
        assert [code for code, _ in made.warnings] == ["extra-column"]
        with pytest.raises(DataError, match="'size'") as error:
            self.new({"on": [False], "kind": ["c"]})
        assert error.value.code == "absent-column"
        made = self.new({"on": [False], "kind": ["c"]}, absent="missing")
        assert np.isnan(made.numbers).all()
        made = self.new({"on": [False], "size": [3]}, absent="missing")
        assert made.codes.tolist() == [[-1, 0]]
        assert [code for code, _ in made.warnings] == ["absent-column"]

    @pytest.mark.badinput("A28")
    def test_unseen_level(self):
        made = self.new({"on": [False] * 3, "kind": ["z", "a", "z"], "size": [3, 4, 5]})
        assert made.codes[:, 0].tolist() == [-1, 0, -1]
        assert made.warnings[0][0] == "unseen-category"
        assert "2 cells of 'kind' ('z')" in made.warnings[0][1]

    @pytest.mark.badinput("A30")
    def test_categories_in_another_order(self):
        kinds = pd.Categorical(["a", "c"], categories=["c", "b", "a", "unused"])
        made = self.new(pd.DataFrame({"size": [1.0, 2.0], "kind": kinds, "on": [True, True]}))
        assert made.codes[:, 0].tolist() == [0, 2]
        assert made.warnings == ()

    @pytest.mark.badinput("C15")
    def test_changed_type(self):
        with pytest.raises(DataError, match=r"numbers \(double\).*now holds text") as error:
            self.new({"on": [False], "kind": ["c"], "size": ["3"]})
        assert error.value.code == "type-changed"
        day = datetime.date(2024, 1, 1)
        with pytest.raises(DataError, match=r"'kind' held levels \(text\).*now holds date32") as error:
            self.new({"on": [False], "kind": [day], "size": [3]})
        assert error.value.code == "type-changed"
        with pytest.raises(DataError, match="'size' mixes number and text") as error:
            self.new({"on": [False] * 2, "kind": ["c"] * 2, "size": [3, "x"]})
        assert error.value.code == "data-mixed"

    def test_no_rows(self):
        made = encode_new(read(self.old.arrow.slice(0, 0)), self.schema, self.encoding)
        assert made.numbers.shape == (0, 1)
        assert made.codes.shape == (0, 2)
        made = encode_new(read(self.old.arrow.slice(0, 0)), self.schema, self.encoding, weight=[])
        assert made.weight.shape == (0,)

    @pytest.mark.badinput("A2")
    def test_infinite(self):
        with pytest.raises(DataError, match="infinite"):
            self.new({"on": [False], "kind": ["c"], "size": [np.inf]})

    def test_other_library(self):
        made = encode_new(read(pl.DataFrame(self.old.arrow)), self.schema, self.encoding)
        assert np.array_equal(made.codes, encode(self.old, self.schema).codes)


values = st.one_of(
    st.lists(st.one_of(st.none(), st.integers(-5, 5)), min_size=3, max_size=30),
    st.lists(st.one_of(st.none(), st.booleans()), min_size=3, max_size=30),
    st.lists(st.one_of(st.none(), st.text(max_size=5)), min_size=3, max_size=30),
    st.lists(
        st.one_of(st.none(), st.floats(-2, 2, width=16).filter(lambda v: v == v)), min_size=3, max_size=30
    ),
)


@settings(max_examples=200, deadline=None)
@given(values, st.integers(1, 7))
def test_levels_come_back(cells, chunk):
    """encode then decode gives the user's values, whatever their type and chunks."""
    assume(len(set(cells) - {None}) > 1)
    column = pa.array(cells)
    pieces = [column.slice(i, chunk) for i in range(0, len(column), chunk)]
    table = read(pa.table({"c": pa.chunked_array(pieces), "x": pa.array(np.arange(len(cells)) + 0.5)}))
    schema = infer(table, types={"c": "categorical"})
    encoded = encode(table, schema)
    assert decode(encoded.codes[:, 0], schema["c"]) == cells
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema

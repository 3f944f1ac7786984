"""Kinds of data that come seldom: what is read of them, or the sentence by which they are refused."""

from __future__ import annotations

import zipfile

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from ilk.errors import DataError, ResourceError, UsageError
from ilk.table import condition, containers
from ilk.table import sparse as table_sparse
from ilk.table.middle import content_rows, number_keys
from ilk.table.read import read
from ilk.table.words import Topic


def cells(table):
    return {name: column.to_pylist() for name, column in zip(table.names, table.columns, strict=True)}


def test_a_relation_of_duckdb():
    made = duckdb.sql("select 1 as a, 'x' as b union all select 2, 'y' order by a")
    assert cells(read(made)) == {"a": [1, 2], "b": ["x", "y"]}


class Stream:
    """Anything that gives Arrow its cells."""

    def __arrow_c_stream__(self, schema=None):
        return pa.table({"a": [1.5, 2.5]}).__arrow_c_stream__(schema)


class Device:
    is_cuda = True


class Broken:
    ndim = 2

    def __array__(self, *_, **__):
        raise RuntimeError("it needs a graph")


class Matrix:
    ndim = 2

    def __array__(self, *_, **__):
        return np.array([[1.0, 2.0], [3.0, 4.0]])


def test_objects_that_give_arrow_or_arrays():
    assert cells(read(Stream())) == {"a": [1.5, 2.5]}
    assert read(Matrix()).n_rows == 2


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (Device(), "device-array"),
        (Broken(), "bad-data"),
        (object(), "bad-data"),
        (pa.array([1, 2]), "bad-shape"),
    ],
)
def test_objects_that_give_neither(given, code):
    with pytest.raises(UsageError) as told:
        read(given)
    assert told.value.code == code


def test_a_single_arrow_array_of_records_is_a_table():
    assert cells(read(pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": None}]))) == {"a": [1, 2], "b": ["x", None]}


def test_a_table_is_itself():
    table = read([[1.0], [2.0]])
    assert read(table) is table


def test_series_of_seldom_types():
    frame = pd.DataFrame(
        {
            "sparse": pd.arrays.SparseArray([0.0, 1.0, 0.0]),
            "period": pd.period_range("2024-01", periods=3, freq="M"),
            "interval": pd.IntervalIndex.from_breaks([0, 1, 2, 3]),
            "complex": np.array([1j, 2j, 3j]),
        }
    )
    table = read(frame)
    assert table.columns[0].to_pylist() == [0.0, 1.0, 0.0]
    assert "complex" in table.problems
    if hasattr(np, "float128"):
        long = pd.DataFrame({"a": np.array([1.5, 2.5], dtype=np.float128)})
        assert cells(read(long)) == {"a": [1.5, 2.5]}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (sparse.coo_array(np.ones(4)), "bad-shape"),
        (sparse.csr_array(np.ones((2, 2)) * 1j), "bad-data"),
        (sparse.csr_array([[1.0, np.nan]]), "sparse-missing"),
    ],
)
def test_sparse_matrices_that_are_no_table(given, code):
    with pytest.raises(DataError) as told:
        read(given)
    assert told.value.code == code


def test_a_sparse_matrix_of_which_few_rows_count():
    """None of the rows looked at for the medians does: the encoding is that of the array."""
    cells = np.random.default_rng(0).normal(size=(6000, 3))
    weight = np.zeros(6000)
    looked = [content_rows(number_keys(cells, 2.0**exponent)) for exponent in range(-4, 5)]
    weight[np.setdiff1d(np.arange(6000), np.concatenate(looked))[:2]] = 1.0
    found, wanted = (
        encoding(made, facts(made, weight=weight), weight=weight)
        for encoding, facts, made in (
            (table_sparse.encoding_of, table_sparse.survey, sparse.csr_array(cells)),
            (condition.encoding_of, condition.survey, cells),
        )
    )
    assert found.power == wanted.power
    assert np.array_equal(found.centre, wanted.centre)


def test_topics_of_columns_without_texts():
    topic = Topic(("broken", "late"), (1.0, 1.0), (1.0, 0.0))
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["Broken!", None]))
    assert topic.numbers(coded).to_pylist() == [1.0, None, None]
    assert topic.numbers(pa.nulls(2)).to_pylist() == [None, None]


def test_columns_of_a_mapping():
    table = read(
        {
            "t": np.array(["a", "b"]),
            "c": np.array([1j, 2j]),
            "n": np.ones((2, 2)),
            "o": np.array([1, "x"], object),
        }
    )
    assert table.columns[0].to_pylist() == ["a", "b"]
    assert {"c", "n"} <= set(table.problems)


def test_a_query_that_gives_no_table():
    with pytest.raises(UsageError, match="gives no table"):
        read([[1.0]], sql=" ")


def sheet(rows, **options):
    from ilk.table.files import text_options

    plain = {"sep": None, "header": None, "encoding": None, "missing": None, "sheet": None, "table": None}
    cautions = []
    made = containers._of_sheet(rows, "book", text_options(**{**plain, "sql": None, **options}), cautions)
    return made, str(cautions)


def test_cells_of_a_sheet():
    rows = [["a title", "", ""], ["x", "y", "z"], [1.0, "NA", 2.5], ["", "", ""], [3.0, "b", ""]]
    table, told = sheet([list(row) for row in rows])
    assert cells(table) == {"x": [1, 3], "y": [None, "b"], "z": [2.5, None]}
    assert "lines-skipped" in told


def test_a_sheet_without_a_header_and_one_without_rows():
    assert sheet([[1.0, 2.0], [3.0, 4.0]])[0].names == ("x0", "x1")
    with pytest.raises(DataError, match="a header and no rows"):
        sheet([["a", "b"], ["", ""]])


def test_a_workbook_that_unpacks_to_too_much(tmp_path):
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sheet1.xml", bytes(400_000_000))
    with pytest.raises(ResourceError, match="gives 400,000,000 bytes"):
        containers._check_size(str(path), "bomb.xlsx")
    containers._check_size(__file__, "no archive")

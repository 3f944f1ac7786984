"""From tables of mixed columns to rows, at the estimators' face."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator

from ilk.errors import DataError, IlkWarning, UsageError
from ilk.estimators.base import numbered
from ilk.estimators.tables import given_groups, is_table, new_rows, table_rows
from ilk.table.block import BLOCK_ROWS

FRAME = pd.DataFrame(
    {
        "size": [1.5, 2.5, np.nan, 4.0, 7.5],
        "kind": ["a", "b", "a", None, "c"],
        "visits": [0, 3, 1, 2, 11],
        "same": [2.5] * 5,
    }
)


class Anything(BaseEstimator):
    """An estimator with nothing of its own."""


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas, lambda f: f.to_dict("list")]
)
def test_any_kind_of_table_gives_the_same_rows(make):
    estimator = Anything()
    rows, form = table_rows(estimator, make(FRAME), types={"visits": "count"})
    assert estimator.n_features_in_ == 4
    assert [c.name for c in form.schema.numeric] == ["size", "visits"]
    assert form.is_count.tolist() == [False, True]
    assert rows.codes.tolist() == [[0], [1], [0], [-1], [2]]
    assert form.level_start.tolist() == [0, 3]
    assert not rows.complete
    np.testing.assert_array_equal(rows.raw[:, 1], FRAME["visits"])


def test_new_tables_are_matched_by_name():
    estimator = Anything()
    rows, form = table_rows(estimator, FRAME)
    with pytest.warns(IlkWarning, match="not part of the model"):
        new = new_rows(estimator, FRAME[["visits", "kind", "size"]].assign(more=1), form)
    np.testing.assert_array_equal(new.raw, rows.raw)
    np.testing.assert_array_equal(new.codes, rows.codes)
    with pytest.warns(IlkWarning, match="not seen are treated as missing"):
        assert new_rows(estimator, FRAME.assign(kind="z"), form).codes.tolist() == [[-1]] * 5
    with pytest.raises(DataError, match="lacks 1 column of the model: 'kind'"):
        new_rows(estimator, FRAME.drop(columns="kind"), form)


def test_arrays_are_numbers_unless_told():
    array = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 2.5], [1.0, 2.0, 9.0]])
    estimator = Anything()
    rows, form = table_rows(estimator, array)
    assert rows.codes is None
    assert rows.raw is array
    rows, form = table_rows(estimator, array, types={"x0": "categorical"})
    assert rows.codes.tolist() == [[0], [1], [1]]
    new = new_rows(estimator, array[::-1], form)
    assert new.codes.tolist() == [[1], [1], [0]]
    with pytest.raises(ValueError, match="features"):
        new_rows(estimator, array[:, :2], form)
    np.testing.assert_array_equal(form.frame(rows.raw, rows.codes), array)


def test_constant_columns_are_set_aside_and_restored():
    array = np.array([[0.0, 5.0], [1.0, 5.0], [3.0, 5.0]])
    estimator = Anything()
    with pytest.warns(IlkWarning, match="columns 1 are constant"):
        rows, form = table_rows(estimator, array)
    assert rows.n_columns == 1
    np.testing.assert_array_equal(form.frame(rows.raw, None), array)
    assert new_rows(estimator, array, form).n_columns == 1
    with pytest.raises(DataError, match="nothing to group"):
        table_rows(estimator, array[:, 1:])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_frames_come_back_as_they_came(make):
    rows, form = table_rows(Anything(), make(FRAME.drop(columns="same")))
    back = form.frame(rows.raw, rows.codes)
    assert type(back) is type(make(FRAME))
    again, _ = table_rows(Anything(), back)
    np.testing.assert_array_equal(again.raw, rows.raw)
    np.testing.assert_array_equal(again.codes, rows.codes)


@pytest.mark.parametrize("bad", [[0.5, 1.0, 2.0, 3.0, 4.0], [-1, 0, 1, 2, 3]])
def test_counts_are_whole_and_not_negative(bad):
    with pytest.raises(DataError, match="are not counts"):
        table_rows(Anything(), FRAME.assign(visits=bad), types={"visits": "count"})


def test_what_is_a_table():
    assert all(map(is_table, [FRAME, {"a": [1]}, [["x", 1]], [{"a": 1}], np.array([["x", 1]], dtype=object)]))
    assert not any(map(is_table, [np.zeros((2, 2)), [[1, 2]], np.array([[1, 2]], dtype=object)]))


@pytest.mark.parametrize(
    "names",
    [
        np.array([-128, 127, 5, 127] * 100, dtype=np.int8),
        np.array([2**62, 2**62 + 3, 2**62]),
        np.array([-(2**63), 2**63 - 1]),
        np.array([3, 3, 3]),
        np.array(["b", "a", "b"]),
        np.array([0.5, -1.0, 0.5]),
        np.array([], dtype=np.int64),
    ],
)
def test_names_are_numbered_in_order(names):
    found, rank = np.unique(names, return_inverse=True)
    n_names, label = numbered(names)
    assert (n_names, label.dtype) == (len(found), np.int32)
    np.testing.assert_array_equal(label, rank)


def test_given_groups():
    assert given_groups(["x", "y", "x"], 3, 2).tolist() == [0, 1, 0]
    assert given_groups([[2, 2], [0, 1], [3, 1]], 3, 2).tolist() == [[0.5, 0.5], [0, 1], [0.75, 0.25]]
    for bad in ([0, 0, 0], [[1, 0]], [[0, 0], [1, 0], [1, 0]], [[-1, 2], [1, 0], [1, 0]]):
        with pytest.raises(UsageError, match="init"):
            given_groups(bad, 3, 2)


def test_given_labels_of_many_blocks():
    names = np.array([7, -2, 30])
    code = np.random.default_rng(0).integers(3, size=2 * BLOCK_ROWS + 5)
    assert np.array_equal(given_groups(names[code], len(code), 3), np.array([1, 0, 2])[code])

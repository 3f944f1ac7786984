"""A sample of a frame on a cluster: the same rows in whatever order and parts they lie."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ilk.engines.frame_sample import sampled
from ilk.engines.frames import frame_of
from ilk.table.content import arrow_keys

dask = pytest.importorskip("dask.dataframe")


def table(n):
    draws = np.random.default_rng(0)
    size = draws.normal(size=n).round(1)
    size[draws.random(n) < 0.05] = np.nan
    return pd.DataFrame(
        {
            "size": size,
            "count": draws.poisson(3, n),
            "kind": draws.choice(["oak", "elm", "fir"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(draws.integers(0, 40, n), unit="D"),
            "place": draws.random(n) < 0.3,
        }
    )


def test_neither_order_nor_parts_matter():
    whole = table(4000)
    one = sampled(frame_of(dask.from_pandas(whole, npartitions=3)), 4000, 500, 7)
    mixed = whole.sample(frac=1.0, random_state=3).reset_index(drop=True)
    other = sampled(frame_of(dask.from_pandas(mixed, npartitions=7)), 4000, 500, 7)
    assert one.num_rows == 500
    assert one.equals(other)
    assert not one.equals(sampled(frame_of(dask.from_pandas(whole, npartitions=3)), 4000, 500, 8))
    held = one.to_pandas().astype(whole.dtypes.to_dict())
    assert len(held.merge(whole.drop_duplicates(), how="inner")) == 500


def test_a_table_no_larger_is_taken_whole():
    whole = table(60)
    few = sampled(frame_of(dask.from_pandas(whole, npartitions=3)), 60, 60, 0)
    assert few["count"].to_pylist() == whole["count"].tolist()


def test_an_array_too():
    from dask import array

    X = np.random.default_rng(1).normal(size=(3000, 2)).round(1)
    order = np.random.default_rng(2).permutation(3000)
    one, other = (
        sampled(frame_of(array.from_array(cells, chunks=(size, 2))), 3000, 400, 1)
        for cells, size in ((X, 1000), (X[order], 700))
    )
    assert one.equals(other)


def test_a_common_row_has_its_share():
    whole = pd.DataFrame({"x": np.r_[np.zeros(3000), np.arange(1.0, 1001.0)]})
    few = sampled(frame_of(dask.from_pandas(whole, npartitions=4)), 4000, 400, 0)
    assert abs(sum(x == 0.0 for x in few["x"].to_pylist()) - 300) <= 1


def test_keys_of_arrow_cells_are_by_what_they_say():
    cells = {
        "a": pa.array([1, 2, None]),
        "b": pa.array(["x", None, "y"]),
        "c": pa.array([dt.date(2024, 1, 1), None, dt.date(2024, 1, 2)]),
        "d": pa.array([[1], [2, 3], None]),
    }
    key = arrow_keys(pa.table(cells), 0)
    assert len(set(key.tolist())) == 3
    floats = cells | {"a": pa.array([1.0, 2.0, np.nan]), "b": cells["b"].dictionary_encode()}
    assert arrow_keys(pa.table(floats), 0).tolist() == key.tolist()
    chunks = pa.concat_tables([pa.table(cells).slice(0, 1), pa.table(cells).slice(1)])
    assert arrow_keys(chunks, 0).tolist() == key.tolist()
    assert arrow_keys(pa.table(cells).take(pa.array([2, 0, 1])), 0).tolist() == key[[2, 0, 1]].tolist()

"""What is Spark's own: packs written where none persist, partials added up by tasks, workers without ilk."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilk.engines import spark
from ilk.engines.packed import NumberPacker, Pack, PackLayout
from ilk.engines.worker_cache import WorkerCache
from ilk.errors import DataError, EngineError
from ilk.table.block import Array, Block
from tests.engines.clusters import Cluster

pytestmark = [
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(os.environ.get("ILK_KERNELS") == "numpy", reason="tried with the compiled kernels"),
    pytest.mark.parametrize("cluster", ["spark"], indirect=True, scope="session"),
]

LAYOUT = PackLayout("float64", 2)
X = np.random.default_rng(0).normal(size=(3000, 2))


def frame(cluster: Cluster, n_parts: int = 2) -> Any:
    native = cluster.frame({"a": X[:, 0], "b": X[:, 1], "row": np.arange(len(X))})
    if n_parts == 2:  # as they come
        return native.drop("row")
    return native.repartitionByRange(n_parts, "row").sortWithinPartitions("row").drop("row")


def rows_of(cluster: Cluster, n_parts: int = 2) -> spark.SparkRows:
    return spark.SparkRows.of_frame(frame(cluster, n_parts), NumberPacker(LAYOUT), LAYOUT, threads=1)


class Joined(tuple[int, ...]):
    """First rows of blocks, in the order in which they were added."""

    def __add__(self, other: tuple[int, ...]) -> Joined:  # type: ignore[override]
        return Joined((*self, *other))


def first_rows(_: None, block: Block) -> Joined:
    return Joined([block.first_row])


def raw_of(_: None, block: Block) -> Array:
    return block.raw.copy()


def test_packs_are_written_where_spark_does_not_persist(cluster, monkeypatch, tmp_path):
    from pyspark.errors import PySparkException
    from pyspark.sql.classic.dataframe import DataFrame

    def refused(self: Any, level: Any) -> Any:
        raise PySparkException("[NOT_SUPPORTED_WITH_SERVERLESS] PERSIST TABLE is not supported")

    monkeypatch.setattr(DataFrame, "persist", refused)
    with pytest.raises(EngineError, match="ILK_SPARK_SPOOL to a path"):
        rows_of(cluster)
    monkeypatch.setenv(spark.SPOOL, str(tmp_path))
    rows = rows_of(cluster)
    assert list(tmp_path.glob("ilk-*/*.parquet"))
    assert np.array_equal(np.concatenate([*rows.scan(raw_of, None)]), X)


def test_many_partials_are_added_in_bunches_and_in_order(cluster, monkeypatch):
    rows = rows_of(cluster, 5)
    assert len(rows.first_row) == 6
    monkeypatch.setattr(spark, "BUNCH", 2)
    bunched = []
    monkeypatch.setattr(spark, "_bunched", lambda *args: bunched.append(args[1]) or BUNCHED(*args))
    for limit in (256 << 20, 0):
        monkeypatch.setattr(spark, "DRIVER_BYTES", limit)
        assert rows.reduce(first_rows, None) == tuple(rows.first_row[:-1])
    assert bunched == [2, 4]


BUNCHED = spark._bunched


@pytest.mark.slow
def test_few_tasks_walk_many_small_parts(cluster, monkeypatch):
    monkeypatch.setattr(spark, "FEW_TASKS", 3)
    rows = rows_of(cluster, 7)
    assert rows._packs.n_tasks == 3
    assert sorted(rows.reduce(first_rows, None)) == rows.first_row[:-1].tolist()
    assert np.array_equal(np.concatenate([*rows.scan(raw_of, None)]), X)


def test_passes_find_packs_on_the_shelf_and_else_in_the_frame(cluster):
    from pyspark import SparkFiles

    rows = rows_of(cluster)
    shelf = Path(SparkFiles.getRootDirectory(), rows._packs.shelf.name)
    first = rows.reduce(first_rows, None)
    kept = sorted(shelf.iterdir())
    assert len(kept) == len(rows.first_row) - 1
    times = [path.stat().st_mtime_ns for path in kept]
    assert rows.reduce(first_rows, None) == first
    assert times == [path.stat().st_mtime_ns for path in kept]  # no pack came from the frame
    kept[0].unlink()
    kept[-1].write_bytes(b"short")
    assert rows.reduce(first_rows, None) == first
    assert sorted(shelf.iterdir()) == kept
    del rows
    rows_of(cluster).reduce(first_rows, None)
    assert not shelf.exists()


@pytest.mark.slow
def test_a_shelf_that_keeps_nothing_is_not_asked_for_ever(cluster, monkeypatch):
    nowhere = WorkerCache("no-such-folder/ilk")
    monkeypatch.setattr(spark, "WorkerCache", lambda: nowhere)
    rows = rows_of(cluster)
    n_jobs, add_up = [0], rows._sum

    def counted(*given: Any) -> Any:
        n_jobs[-1] += 1
        return add_up(*given)

    monkeypatch.setattr(rows, "_sum", counted)
    wanted = tuple(rows.first_row[:-1].tolist())
    for _ in range(3):
        assert rows.reduce(first_rows, None) == wanted
        n_jobs.append(0)
    assert n_jobs[:3] == [2, 2, 1]


class Absent:
    """A packer whose module no worker has."""

    def __reduce__(self) -> Any:
        return importlib.import_module, ("ilk_of_tomorrow",)

    def __call__(self, table: Any) -> Pack:
        raise AssertionError


def test_a_worker_without_the_package_is_told_in_words(cluster):
    with pytest.raises(EngineError, match=r"no module 'ilk_of_tomorrow'.*Install ilk") as error:
        spark.SparkRows.of_frame(frame(cluster), Absent(), LAYOUT)
    assert error.value.code == "worker-lacks-package"
    assert error.value.exit_code == 7


def refuses(_: object, block: Any) -> Any:
    raise DataError("no-such-cell", "a cell is 3", where=f"row {block.first_row}", do="Give 0 or 1")


@dataclass(frozen=True)
class RefusingPacker(NumberPacker):
    """A packer that a table does not suit."""

    def __call__(self, table: Any) -> Pack:
        raise DataError("no-such-cell", "a cell is 3", do="Give 0 or 1")


def test_a_refusal_on_a_worker_arrives_as_it_was_raised(cluster):
    """Whichever task is first, the row that is named is the first of the table."""
    with pytest.raises(DataError, match=r"^a cell is 3 \(row 0\)\. Give 0 or 1\.$") as error:
        rows_of(cluster).reduce(refuses, None)
    assert error.value.code == "no-such-cell"
    with pytest.raises(DataError, match=r"^a cell is 3"):
        list(rows_of(cluster).scan(refuses, None))
    with pytest.raises(DataError, match=r"^a cell is 3\. Give 0 or 1\.$"):
        spark.SparkRows.of_frame(frame(cluster), RefusingPacker(LAYOUT), LAYOUT)


def test_a_frame_without_rows_is_refused(cluster):
    with pytest.raises(Exception, match="has no rows"):
        spark.SparkRows.of_frame(frame(cluster).where("a > 99"), NumberPacker(LAYOUT), LAYOUT)

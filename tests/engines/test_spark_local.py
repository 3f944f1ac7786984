"""Spark whose workers run on this machine: it packs the frame, and passes over the packs have the bits of memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ilk
from ilk.engines import spark_local as near
from ilk.engines.packed import NumberPacker, PackLayout
from ilk.engines.spark_local import Runs, SparkLocalRows, local_workers, spark_local_rows
from ilk.errors import DataError
from ilk.threads import thread_count
from tests.engines.clusters import Cluster

pytestmark = [
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(os.environ.get("ILK_KERNELS") == "numpy", reason="tried with the compiled kernels"),
]
on_spark = pytest.mark.parametrize("cluster", ["spark"], indirect=True, scope="session")
on_both = pytest.mark.parametrize(
    "cluster", ["spark", pytest.param("connect", marks=pytest.mark.slow)], indirect=True, scope="session"
)

LAYOUT = PackLayout("float64", 2, weighted=True)
N_ROWS = 30_000
draws = np.random.default_rng(1)
X = draws.normal(size=(N_ROWS, 2)) + 5.0 * draws.integers(0, 2, size=(N_ROWS, 1))
X[::50, 1] = np.nan
HEFT = draws.integers(0, 3, size=N_ROWS).astype(float)


def frame(cluster: Cluster) -> Any:
    return cluster.frame({"a": X[:, 0], "b": X[:, 1], "heft": HEFT})


@on_both
def test_estimators_have_the_bits_of_memory(cluster):
    native = frame(cluster)
    options = {"random_state": 0, "n_init": 1, "max_iter": 5}
    for model in (ilk.KMeans(3, **options), ilk.GaussianMixture(2, **options)):
        here = model.fit(X, sample_weight=HEFT)
        centres = here.cluster_centers_ if isinstance(model, ilk.KMeans) else here.means_
        labels = here.labels_
        there = model.fit(native, sample_weight="heft")
        found = there.cluster_centers_ if isinstance(model, ilk.KMeans) else there.means_
        assert np.array_equal(centres, found)
        assert np.array_equal(labels, there.labels_)


@on_spark
def test_rows_are_read_here_and_no_file_is_left(cluster, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("ilk.engines.spark_tasks.PACK_BYTES", 1000)
    rows = spark_local_rows(frame(cluster), NumberPacker(LAYOUT), LAYOUT, None)
    assert isinstance(rows, SparkLocalRows)
    assert rows.threads == local_workers(cluster.native) == 2
    assert not [*tmp_path.iterdir()]
    assert np.array_equal(rows.raw[:], X, equal_nan=True)
    assert rows.weight is not None
    assert np.array_equal(rows.weight[N_ROWS - 9 :], HEFT[-9:])
    with pytest.raises(DataError, match="has no rows"):
        spark_local_rows(frame(cluster).where("a > 1e9"), NumberPacker(LAYOUT), LAYOUT, None)


@on_spark
def test_workers_that_cannot_write_here_are_far(cluster, monkeypatch, tmp_path):
    monkeypatch.setattr(near.tempfile, "mkdtemp", lambda prefix: str(Path(tmp_path, "elsewhere")))
    assert spark_local_rows(frame(cluster), NumberPacker(LAYOUT), LAYOUT, None) is None


@pytest.mark.parametrize(
    ("master", "n_workers"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[2,4]", 2),
        ("local[2, 4]", 2),
        ("local[*]", thread_count(None)),
        ("local[*,2]", thread_count(None)),
        ("local-cluster[2,1,1024]", None),
        ("spark://host:7077", None),
        ("yarn", None),
        ("", None),
    ],
)
def test_the_master_tells_whether_workers_are_near(master, n_workers):
    class Session:
        conf = {"spark.master": master}  # noqa: RUF012

    assert local_workers(Session()) == n_workers


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system binds no process to cores")
def test_a_process_bound_to_one_core_has_one_worker(monkeypatch):
    class Session:
        conf = {"spark.master": "local[*]"}  # noqa: RUF012

    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})
    assert local_workers(Session()) == 1


def test_runs_are_sliced_like_one_array():
    whole = np.arange(40.0).reshape(20, 2)
    runs = Runs([whole[:7], whole[7:8], whole[8:]])
    assert runs.shape == whole.shape
    for first in range(20):
        for last in range(first, 22):
            assert np.array_equal(runs[first:last], whole[first:last])
    some = draws.integers(0, 20, size=30)
    assert np.array_equal(runs[some], whole[some])
    assert np.array_equal(runs[2:9, 1], whole[2:9, 1])
    assert np.shares_memory(runs[1:5], whole)

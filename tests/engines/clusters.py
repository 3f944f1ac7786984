"""Clusters on this machine, for tests: Spark classic, Spark Connect with a server of its own, Dask with processes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ilk.engines.packed import Pack, PackLayout
from ilk.families.base import Partial, Trim
from ilk.families.centroid import Centroids, Means
from ilk.table.block import Block

ROOT = Path(__file__).parents[2]
NEEDED = {"spark": "pyspark", "connect": "grpc_status", "dask": "distributed"}
"""The clusters, and the package each needs."""


@dataclass(frozen=True)
class Cluster:
    """A running cluster; `native` is its session or client."""

    kind: str
    native: Any

    def frame(self, columns: dict[str, Any]) -> Any:
        """A frame of the cluster's kind in a few parts, rows in the order given."""
        if self.kind == "dask":
            import dask.dataframe as dd
            import pandas as pd

            return dd.from_pandas(pd.DataFrame(columns), npartitions=3, sort=False)
        return self.native.createDataFrame(pa.table(columns))

    def arrow(self, frame: Any) -> Any:
        """A frame of the cluster as an Arrow table."""
        return pa.Table.from_pandas(frame.compute()) if self.kind == "dask" else frame.toArrow()


@dataclass(frozen=True)
class CodePacker:
    """Packs Arrow tables of numbers and, after them, level numbers."""

    layout: PackLayout

    def __call__(self, table: Any) -> Pack:
        n_numbers = self.layout.n_columns
        cells = np.stack([column.to_numpy() for column in table.columns], axis=1)
        return Pack(cells[:, :n_numbers].copy(), None, cells[:, n_numbers:].astype(np.int32))


@dataclass(frozen=True)
class Mortal(Means):
    """K-means that kills the process of one step, the first on rows beyond 40,000, and leaves a file as a sign."""

    sign: str = ""

    def step(self, params: Centroids, block: Block, cut: Trim) -> Partial:
        if block.first_row > 40_000 and not os.path.exists(self.sign):
            open(self.sign, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(params, block, cut)


@contextmanager
def running(kind: str) -> Iterator[Cluster]:
    """A cluster for the time of some tests; skips where its package is missing."""
    if importlib.util.find_spec(NEEDED[kind]) is None:
        pytest.skip(f"{NEEDED[kind]} is not installed")
    if kind != "dask" and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("Spark needs Java")
    # Workers import what tests ship to them.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    if kind == "dask":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
            ) as workers,
            Client(workers) as client,
        ):
            yield Cluster(kind, client)
        return
    session = spark_session(kind)
    try:
        yield Cluster(kind, session)
    finally:
        session.stop()


def spark_session(kind: str) -> Any:
    """A session of two threads whose tasks may fail three times."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_TESTING"] = "1"  # servers of Connect take free ports: a stopped one may hold its own
    options = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.log.level": "ERROR",
    }
    builder = (
        SparkSession.builder.remote("local[2,4]")
        if kind == "connect"
        else SparkSession.builder.master("local[2,4]")
    )
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()

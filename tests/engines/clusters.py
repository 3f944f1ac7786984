"""Clusters on this machine, for tests: Spark classic, Spark Connect with a server of its own, Dask with processes."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

NEEDED = {"spark": "pyspark", "connect": "grpc_status", "dask": "distributed"}
"""The clusters, and the package each needs."""


@dataclass(frozen=True)
class Cluster:
    """A running cluster; `native` is its session or client."""

    kind: str
    native: Any

    def frame(self, columns: dict[str, Any], n_parts: int = 3) -> Any:
        """A frame of the cluster's kind in so many parts, rows in the order given."""
        if self.kind == "dask":
            import dask.dataframe as dd
            import pandas as pd

            return dd.from_pandas(pd.DataFrame(columns), npartitions=n_parts, sort=False)
        n_rows = len(next(iter(columns.values())))
        frame = self.native.createDataFrame(
            pa.table(columns).append_column("row", pa.array(np.arange(n_rows)))
        )
        # By ranges of row numbers: parts of any number that keep the order.
        return frame.repartitionByRange(n_parts, "row").sortWithinPartitions("row").drop("row")


@contextmanager
def running(kind: str) -> Iterator[Cluster]:
    """A cluster for the time of a test module; skips where its package is missing."""
    if importlib.util.find_spec(NEEDED[kind]) is None:
        pytest.skip(f"{NEEDED[kind]} is not installed")
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

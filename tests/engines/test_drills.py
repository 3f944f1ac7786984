"""Drills on clusters of processes: workers die, are held up or have no disk, and the answer has the same bits.

The kill drill is repeated `ILK_DRILLS` times (2 unless told), a worker at random in a pass at random each time.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ilk.engines.packed import BROUGHT_BYTES
from tests.engines.drill_driver import fitted
from tests.engines.standalone import Driver, needed, standalone

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("drills")]

N_ROWS, N_COLUMNS, N_PARTS = 200_000, 12, 4
ROUNDS = int(os.environ.get("ILK_DRILLS", "2"))
MOST_PASSES = 6  # of a round that go by before the blow


def clouds():
    draws = np.random.default_rng(0)
    centres = draws.normal(0, 1.2, (9, N_COLUMNS))
    cells = centres[draws.integers(0, 9, N_ROWS)] + draws.normal(size=(N_ROWS, N_COLUMNS))
    assert cells.nbytes > BROUGHT_BYTES
    return pd.DataFrame(cells, columns=[f"x{j}" for j in range(N_COLUMNS)])


def written(table: pd.DataFrame, folder: Path) -> Path:
    folder.mkdir()
    for part, rows in enumerate(np.array_split(np.arange(len(table)), N_PARTS)):
        table.iloc[rows].to_parquet(folder / f"part-{part}.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def table():
    return clouds()


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    return written(table, tmp_path_factory.mktemp("drills") / "table")


@pytest.fixture(scope="module")
def alone(table):
    """The answer in memory."""
    return json.loads(fitted(table.to_numpy()))


def test_spark_workers_are_killed(folder, alone, tmp_path):
    needed()
    chance = random.Random(7)
    with standalone(tmp_path) as cluster:
        driver = Driver(cluster.address, str(folder), "fit", str(ROUNDS))
        try:
            for number in range(ROUNDS):
                driver.until("round")
                for _ in range(chance.randint(1, MOST_PASSES)):
                    driver.until("pass")
                cluster.kill(chance.randrange(len(cluster.workers)))
                cluster.add_worker()
                assert json.loads(driver.until("result")) == alone
                print(f"killed and the same: {number + 1}", flush=True)
        finally:
            driver.stop()


def test_a_spark_worker_is_held_up(folder, alone, tmp_path):
    needed()
    with standalone(tmp_path) as cluster:
        driver = Driver(cluster.address, str(folder), "fit", "1")
        try:
            driver.until("pass")
            cluster.signal(0, signal.SIGSTOP)
            time.sleep(8)
            cluster.signal(0, signal.SIGCONT)
            assert json.loads(driver.until("result")) == alone
        finally:
            driver.stop()


def test_a_spark_worker_without_disk(folder, alone, tmp_path):
    """None of its files can have more than 300 kB: it can keep no pack."""
    needed()
    with standalone(tmp_path, n_workers=1) as cluster:
        cluster.add_worker(most_bytes=300_000)
        driver = Driver(cluster.address, str(folder), "fit", "1")
        try:
            assert json.loads(driver.until("result")) == alone
        finally:
            driver.stop()


def test_a_refusal_names_the_same_row_every_time(table, tmp_path):
    needed()
    spoiled = table.copy()
    spoiled.iloc[[1234, 77_777, 190_001], 3] = np.inf
    folder = written(spoiled, tmp_path / "spoiled")
    with standalone(tmp_path) as cluster:
        driver = Driver(cluster.address, str(folder), "refuse", "3")
        try:
            told = [driver.until("result") for _ in range(3)]
        finally:
            driver.stop()
    assert "infinite" in told[0]
    assert told == told[:1] * 3


@pytest.mark.parametrize("blow", ["kill", "hold up"])
def test_a_dask_worker(table, alone, blow):
    pytest.importorskip("distributed")
    import dask.dataframe as dask
    from distributed import Client, LocalCluster

    import ilk

    passes: list[int] = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as workers,
        Client(workers) as client,
    ):

        def struck(event):
            passes.append(1)
            pid = next(iter(client.run(os.getpid).values())) if len(passes) in (2, 4) else 0
            if pid and blow == "kill":
                os.kill(pid, signal.SIGKILL)
            elif pid:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(3)
                os.kill(pid, signal.SIGCONT)

        frame = dask.from_pandas(table, npartitions=N_PARTS)
        model = ilk.KMeans(6, n_init=1, max_iter=40, random_state=0, callback=struck).fit(frame)
    assert len(passes) > 4
    assert [model.cluster_centers_.tolist(), model.inertia_, model.n_iter_] == alone

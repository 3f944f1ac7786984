"""Drills on clusters of processes: workers die, are held up or have no disk, drivers die, and the answer has the same
bits.

Kills are repeated `ILK_DRILLS` times (2 unless told).
"""

from __future__ import annotations

import json
import os
import random
import signal
import time

import numpy as np
import pytest

from ilk.engines.packed import BROUGHT_BYTES
from tests.engines import drills
from tests.engines.drill_driver import fitted
from tests.engines.standalone import needed

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("drills")]

ROUNDS = int(os.environ.get("ILK_DRILLS", "2"))


@pytest.fixture(scope="module")
def table():
    made = drills.clouds()
    assert made.to_numpy().nbytes > BROUGHT_BYTES
    return made


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    return drills.written(table, tmp_path_factory.mktemp("drills") / "table")


@pytest.fixture(scope="module")
def alone(table):
    """The answer in memory."""
    return json.loads(fitted(table.to_numpy()))


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """One cluster and one driver for all drills: a busy machine takes a minute to start them."""
    needed()
    with drills.spark(tmp_path_factory.mktemp("spark")) as made:
        yield made


def test_spark_workers_are_killed(spark, folder, alone):
    chance = random.Random(7)
    for number in range(ROUNDS):
        assert json.loads(spark.fit_and_kill(folder, chance)) == alone
        print(f"killed and the same: {number + 1}", flush=True)


def test_a_spark_worker_is_held_up(spark, folder, alone):
    spark.driver.ask("fit", folder)
    spark.driver.until("pass")
    spark.workers.signal(0, signal.SIGSTOP)
    time.sleep(8)
    spark.workers.signal(0, signal.SIGCONT)
    assert json.loads(spark.driver.until("result")) == alone


def test_a_refusal_names_the_same_row_every_time(spark, table, tmp_path):
    spoiled = table.copy()
    spoiled.iloc[[1234, 77_777, 190_001], 3] = np.inf
    folder = drills.written(spoiled, tmp_path / "spoiled")
    told = [spark.answer("refuse", folder) for _ in range(3)]
    assert "3 cells are infinite" in told[0]
    assert told == told[:1] * 3


@pytest.mark.parametrize("record", [2, 9])
def test_a_spark_driver_dies_and_another_goes_on(spark, folder, tmp_path, record):
    undisturbed = spark.answer("analyse", folder)
    assert spark.die_and_go_on(folder, tmp_path / "checkpoint", record) == undisturbed
    assert not (tmp_path / "checkpoint").exists()


def test_a_spark_worker_without_disk(spark, folder, alone):
    """None of its files can have more than 300 kB: it can keep no pack."""
    spark.workers.kill(0)
    spark.workers.add_worker(most_bytes=300_000)
    assert json.loads(spark.answer("fit", folder)) == alone


def test_dask_workers_are_killed(table, alone):
    pytest.importorskip("distributed")
    chance = random.Random(7)
    with drills.dask_workers() as client:
        for _ in range(ROUNDS):
            passes = {chance.randint(1, 3), chance.randint(4, 6)}
            assert drills.dask_fit(client, table, drills.kill, passes) == alone


def test_a_dask_worker_is_held_up(table, alone):
    pytest.importorskip("distributed")

    def hold(pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(3)
        os.kill(pid, signal.SIGCONT)

    with drills.dask_workers() as client:
        assert drills.dask_fit(client, table, hold, {2, 4}) == alone

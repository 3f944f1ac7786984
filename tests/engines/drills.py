"""What is done to workers and drivers of clusters while a table is fitted, and what must come out: the same bits.

The tests do each a few times, `make torture` (part "workers") as often as there is time.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.engines.drill_driver import fitted
from tests.engines.standalone import Driver, Standalone, standalone

N_ROWS, N_COLUMNS, N_PARTS = 200_000, 12, 4
N_WORKERS = 2
PATIENCE = 120  # seconds until two workers are there
UNSHAKEN = {
    "distributed.scheduler.allowed-failures": 10_000,  # of one task, over all fits
    "distributed.comm.timeouts.connect": "5s",  # a worker would ask a dead one for data for 30 s
    # A worker that is not there at a moment 15 s after a death, when its successor has died too, is given up for ever.
    "distributed.deploy.lost-worker-timeout": "10h",
}
MOST_PASSES = 6  # of a fit that go by before the blow


def clouds() -> pd.DataFrame:
    draws = np.random.default_rng(0)
    centres = draws.normal(0, 1.2, (9, N_COLUMNS))
    cells = centres[draws.integers(0, 9, N_ROWS)] + draws.normal(size=(N_ROWS, N_COLUMNS))
    return pd.DataFrame(cells, columns=[f"x{j}" for j in range(N_COLUMNS)])


def written(table: pd.DataFrame, folder: Path) -> Path:
    folder.mkdir()
    for part, rows in enumerate(np.array_split(np.arange(len(table)), N_PARTS)):
        table.iloc[rows].to_parquet(folder / f"part-{part}.parquet", index=False)
    return folder


class Spark:
    """A standalone cluster of two workers, and a driver that is started anew once it is dead."""

    def __init__(self, workers: Standalone) -> None:
        self.workers, self._driver = workers, None

    @property
    def driver(self) -> Driver:
        if self._driver is None or self._driver.process.poll() is not None:
            self._driver = Driver(self.workers.address)
        return self._driver

    def answer(self, task: str, folder: Path, *options: Any) -> str:
        self.driver.ask(task, folder, *options)
        return self.driver.until("result")

    def fit_and_kill(self, folder: Path, chance: random.Random) -> str:
        """A fit in which a worker at random dies with its executor in a pass at random; another takes its place."""
        self.driver.ask("fit", folder)
        for _ in range(chance.randint(1, MOST_PASSES)):
            self.driver.until("pass")
        self.workers.kill(chance.randrange(len(self.workers.workers)))
        self.workers.add_worker()
        return self.driver.until("result")

    def die_and_go_on(self, folder: Path, checkpoint: Path, record: int) -> str:
        """The driver is killed while it writes a record of its checkpoint; another goes on."""
        self.driver.ask("analyse", folder, str(checkpoint), record)
        code = self.driver.process.wait()
        assert code == -signal.SIGKILL, f"it ended with {code} before its record {record}"
        return self.answer("analyse", folder, str(checkpoint))

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.stop()


@contextmanager
def spark(folder: Path) -> Iterator[Spark]:
    with standalone(folder) as workers:
        made = Spark(workers)
        try:
            yield made
        finally:
            made.stop()


@contextmanager
def dask_workers() -> Iterator[Any]:
    """A client of two processes; one that dies is started anew."""
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set(UNSHAKEN),
        LocalCluster(
            n_workers=N_WORKERS, threads_per_worker=1, processes=True, dashboard_address=None
        ) as workers,
        Client(workers) as client,
    ):
        yield client
        _settled(client)  # to close while one is started anew may take for ever


def _settled(client: Any) -> None:
    """Wait until all workers are there, and the nanny of each knows it: a worker that dies before is not started anew,
    whatever Dask's user does."""
    from distributed.core import Status

    end = time.monotonic() + PATIENCE
    client.wait_for_workers(N_WORKERS, PATIENCE)
    while any(
        one.process is None or one.process.status != Status.running for one in client.cluster.workers.values()
    ):
        assert time.monotonic() < end, "workers of Dask do not start"
        time.sleep(0.02)


def dask_fit(client: Any, table: pd.DataFrame, blow: Callable[[int], None], passes: set[int]) -> list[Any]:
    """What a fit comes to; in some passes one of the workers gets a blow: one that was there when the fit began."""
    import dask.dataframe as frames

    _settled(client)
    there, seen = iter(client.run(os.getpid).values()), list[int]()

    def struck(event: Any) -> None:
        seen.append(1)
        if len(seen) in passes:
            blow(next(there))

    found: list[Any] = json.loads(fitted(frames.from_pandas(table, npartitions=N_PARTS), struck))
    assert len(seen) > max(passes)
    return found


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)

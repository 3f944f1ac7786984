"""Workers and drivers of clusters killed at random moments of a fit, on Dask and on Spark: the same bits come out."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

from tests.engines import drills
from tests.engines.drill_driver import fitted
from tests.torture.tally import Clock, Tally

KILLS_A_DRIVER = 5  # of workers, for each of a driver
RECORDS = (1, 12)  # of its checkpoint: a driver is killed while it writes one of them


def run(clock: Clock, seed: int = 0) -> Tally | None:
    """Half of the time for each kind of cluster; None where there is neither."""
    with_dask = importlib.util.find_spec("distributed") is not None
    with_java = bool(os.environ.get("JAVA_HOME") or shutil.which("java"))
    with_spark = with_java and importlib.util.find_spec("pyspark") is not None
    if not (with_dask or with_spark):
        return None
    tally, chance = (
        Tally("workers and drivers killed during fits on clusters: same bits"),
        random.Random(seed),
    )
    table = drills.clouds()
    alone = json.loads(fitted(table.to_numpy()))
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as home:
        warnings.simplefilter("ignore")
        if with_dask:
            _dask(Clock(clock.seconds / (1 + with_spark)), tally, (table, alone), chance)
        if with_spark:
            folder = drills.written(table, Path(home, "table"))
            _spark(clock, tally, (folder, alone), chance)
    tally.seconds = clock.spent
    return tally


def _dask(clock: Clock, tally: Tally, known: tuple[Any, Any], chance: random.Random) -> None:
    table, alone = known
    with drills.dask_workers() as client:
        while clock.more():
            passes = {chance.randint(1, 3), chance.randint(4, 6)}
            same = drills.dask_fit(client, table, drills.kill, passes) == alone
            tally.ended["workers of Dask"] += len(passes)
            if not same:
                tally.failed("other bits on Dask", f"passes {passes}")


def _spark(clock: Clock, tally: Tally, known: tuple[Path, Any], chance: random.Random) -> None:
    folder, alone = known
    (home := folder.parent / "spark").mkdir()
    with drills.spark(home) as cluster:
        undisturbed = ""
        while clock.more():
            if json.loads(cluster.fit_and_kill(folder, chance)) != alone:
                tally.failed("other bits on Spark", tally.tried)
            tally.ended["workers of Spark"] += 1
            if tally.ended["workers of Spark"] % KILLS_A_DRIVER:
                continue
            undisturbed = undisturbed or cluster.answer("analyse", folder)
            record = chance.randint(*RECORDS)
            if cluster.die_and_go_on(folder, home / "checkpoint", record) != undisturbed:
                tally.failed("other bits after the death of a Spark driver", f"record {record}")
            tally.ended["drivers on Spark, resumed"] += 1

"""The process of a user of a standalone Spark cluster: does what it is told on its input, a line each, and tells of
every pass and of what came out.

python -m tests.engines.drill_driver spark://HOST:PORT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import ilk
from ilk.analysis import on_cluster
from ilk.errors import IlkError
from ilk.fitting import recall
from ilk.store import journal
from ilk.store.record_file import RecordFile

OPTIONS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.task.maxFailures": "8",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
}


def session(address: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(address)
    for name, value in OPTIONS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def told(event: Any) -> None:
    print("pass", flush=True)


def fitted(table: Any, callback: Any = None) -> str:
    """What K-means comes to, digit by digit."""
    model = ilk.KMeans(6, n_init=1, max_iter=40, random_state=0, callback=callback).fit(table)
    return json.dumps([model.cluster_centers_.tolist(), model.inertia_, int(model.n_iter_)])


def refusal(table: Any) -> str:
    try:
        ilk.KMeans(3, random_state=0).fit(table)
    except IlkError as error:
        return str(error)
    return "none"


def analysed(table: Any, checkpoint: str | None = None, dies_at: int | None = None) -> str:
    """The bytes of the model that `cluster` finds; killed while it writes a record of its checkpoint, where asked."""
    from tests.torture.resume import OFTEN, dying

    journal.PACE, recall.LEAST_CELLS, on_cluster.SAMPLE_ROWS = OFTEN, 0, 3000
    if dies_at is not None:
        RecordFile.add = dying(dies_at)  # type: ignore[method-assign]
    found = ilk.cluster(table, k=4, method="gaussian", threads=1, checkpoint=checkpoint)
    path = Path(checkpoint or "drill").with_suffix(".model")
    found.model.save(path, overwrite=True)
    made = path.read_bytes().hex()
    path.unlink()
    return made


TASKS: dict[str, Any] = {
    "fit": lambda table: fitted(table, told),
    "refuse": refusal,
    "analyse": analysed,
}


def main(address: str) -> None:
    spark = session(address)
    for line in sys.stdin:
        task, folder, *options = json.loads(line)
        print("result", TASKS[task](spark.read.parquet(folder), *options), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

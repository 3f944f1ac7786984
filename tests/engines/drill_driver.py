"""The process of a user of a standalone Spark cluster: fits a table, tells of every pass and of what came out.

python -m tests.engines.drill_driver spark://HOST:PORT FOLDER fit | refuse ROUNDS
"""

from __future__ import annotations

import json
import sys
from typing import Any

import ilk
from ilk.errors import IlkError

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


def fitted(table: Any) -> str:
    """What K-means comes to, digit by digit."""

    def told(event: Any) -> None:
        print("pass", flush=True)

    model = ilk.KMeans(6, n_init=1, max_iter=40, random_state=0, callback=told).fit(table)
    return json.dumps([model.cluster_centers_.tolist(), model.inertia_, int(model.n_iter_)])


def refusal(table: Any) -> str:
    try:
        ilk.KMeans(3, random_state=0).fit(table)
    except IlkError as error:
        return str(error)
    return "none"


def main(address: str, folder: str, task: str, rounds: str) -> None:
    frame = session(address).read.parquet(folder)
    for number in range(int(rounds)):
        print("round", number, flush=True)
        print("result", fitted(frame) if task == "fit" else refusal(frame), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

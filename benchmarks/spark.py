"""ilk through Spark and Spark's own MLlib, on the same frames in `local[2]`: `python -m benchmarks.spark`.

Three questions. Two Gaussians that any K-means parts: who finds them in 20, 60 and 200 columns? The same passes over
the same rows: how long do K-means and Gaussian mixtures take? And what does Spark add to a pass of ours in one process?
Times are wall seconds, ours and theirs in turn, the median of the rounds; a fit of ours includes the packing of the
frame, the survey of its columns and the labels of all rows at the end. In local mode ilk reads the packs itself; what
the fit takes with a Spark job for every pass, as on a cluster, is told beside it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.tables import groups, some_rows
from ilk.engines.memory import MemoryRows
from ilk.engines.packed import NumberPacker, PackLayout
from ilk.engines.spark import SparkRows
from ilk.families.base import KEEP_ALL, Partial
from ilk.families.centroid import Centroids, Means
from ilk.table.block import Block
from ilk.table.condition import encoding_of, survey

PASSES = 10
SPREAD = 1.5
LEAST = {"k-means": 3.0, "gaussian mixture": 5.0}  # times as fast as MLlib, promised
MOST_TAX = 1.5  # times the pass in one process, plus a second


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts of the benchmark")
    chosen = parser.parse_args()
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        print("Spark and MLlib: not measured, there is no Java here")
        return
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        for part in chosen.only:
            PARTS[part](spark, Path(folder), chosen.rows, chosen.rounds)
    spark.stop()


def session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def frame(spark: Any, folder: Path, X: np.ndarray) -> Any:
    """A frame over a Parquet file, in two parts or more, held by Spark."""
    path = str(folder / f"{len(X)}x{X.shape[1]}.parquet")
    table = pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])})
    pq.write_table(table, path, row_group_size=len(X) // 8 + 1)
    held = spark.read.parquet(path).cache()
    held.count()
    return held


def vectors(held: Any) -> Any:
    """The same as MLlib wants it, held by Spark too."""
    from pyspark.ml.feature import VectorAssembler

    made = VectorAssembler(inputCols=held.columns, outputCol="features").transform(held).select("features")
    made = made.cache()
    made.count()
    return made


def clocked(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def in_turn(rounds: int, **work: Callable[[], Any]) -> dict[str, float]:
    """Median seconds of each, taken in turn; the first round only warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for number in range(rounds + 1):
        for name, each in work.items():
            taken, _ = clocked(each)
            if number:
                seconds[name].append(taken)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def two_gaussians(spark: Any, folder: Path, n_rows: int, rounds: int) -> None:
    """Unit variance, centred at -4 and +4 in every column; 20,000 rows, once."""
    from pyspark.ml.clustering import GaussianMixture

    import ilk

    print(
        "Two Gaussians at -4 and +4 in every column: share of rows right, distance of the means (true, found)"
    )
    for d in (20, 60, 200):
        draws = np.random.default_rng(d)
        side = draws.integers(0, 2, size=20_000)
        X = draws.normal(size=(len(side), d)) + np.where(side, 4.0, -4.0)[:, None]
        held = frame(spark, folder, X)
        ours = ilk.GaussianMixture(2, random_state=0).fit(held)
        theirs = GaussianMixture(k=2, seed=0, maxIter=20).fit(vectors(held))
        means = np.array([row["mean"].toArray() for row in theirs.gaussiansDF.collect()])
        labels = np.array([row[0] for row in theirs.transform(vectors(held)).select("prediction").collect()])
        apart = 8.0 * np.sqrt(d)
        for name, found, label in (("ilk", ours.means_, ours.labels_), ("MLlib", means, labels)):
            right = max(np.mean(label == side), np.mean(label != side))
            gap = float(np.linalg.norm(found[0] - found[1]))
            print(f"  d={d:<4} {name:<6} {right:7.2%}   {apart:7.2f} {gap:7.2f}")


def by_jobs(work: Callable[[], Any]) -> Callable[[], Any]:
    """The same work with a job for every pass, as if the workers were on other machines."""

    def far() -> Any:
        with mock.patch("ilk.engines.spark_local.local_workers", return_value=None):
            return work()

    return far


def compared(name: str, seconds: dict[str, float]) -> None:
    ratio = seconds["theirs"] / seconds["ours"]
    word = "kept" if ratio >= LEAST[name] else "NOT KEPT"
    print(
        f"{name}: ilk {seconds['ours']:.2f} s, MLlib {seconds['theirs']:.2f} s, {ratio:.1f} times as fast "
        f"(promised {LEAST[name]:g}: {word}); with a job for every pass {seconds['by_jobs']:.2f} s, "
        f"{seconds['theirs'] / seconds['by_jobs']:.1f} times as fast",
        flush=True,
    )


def k_means(spark: Any, folder: Path, n_rows: int, rounds: int) -> None:
    from pyspark.ml.clustering import KMeans

    import ilk

    X, _ = groups(n_rows, 16, 20, SPREAD, "float64")
    held = frame(spark, folder, X)
    theirs, centres = vectors(held), some_rows(X, 20)

    def ours() -> Any:
        return ilk.KMeans(20, init=centres, max_iter=PASSES).fit(held)

    seconds = in_turn(
        rounds,
        ours=ours,
        by_jobs=by_jobs(ours),
        theirs=lambda: KMeans(k=20, maxIter=PASSES, tol=0.0, initMode="random", seed=1).fit(theirs),
    )
    print(f"K-means, {n_rows:,} x 16, K = 20, {PASSES} passes")
    compared("k-means", seconds)


def mixtures(spark: Any, folder: Path, n_rows: int, rounds: int) -> None:
    from pyspark.ml.clustering import GaussianMixture

    import ilk

    X, _ = groups(n_rows, 8, 10, SPREAD, "float64")
    held = frame(spark, folder, X)
    theirs, centres = vectors(held), some_rows(X, 10)

    def ours() -> Any:
        return ilk.GaussianMixture(10, init=centres, max_iter=PASSES, tol=0.0).fit(held)

    seconds = in_turn(
        rounds,
        ours=ours,
        by_jobs=by_jobs(ours),
        theirs=lambda: GaussianMixture(k=10, maxIter=PASSES, tol=0.0, seed=1).fit(theirs),
    )
    print(f"Gaussian mixture, {n_rows:,} x 8, K = 10, {PASSES} passes")
    compared("gaussian mixture", seconds)


def tax(spark: Any, folder: Path, n_rows: int, rounds: int) -> None:
    """One pass of K-means over packed blocks in Spark and over the same rows in this process, two threads each."""
    X, _ = groups(n_rows, 16, 20, SPREAD, "float64")
    facts = survey(X)
    encoding = encoding_of(X, facts)
    layout = PackLayout("float64", 16)
    native = frame(spark, folder, X)
    packed = SparkRows.of_frame(native, NumberPacker(layout), layout)
    there = packed.encoded(encoding, facts.complete)
    here = MemoryRows(X, encoding, complete=facts.complete, threads=2)
    start = Means().start(here.sample(20, 0).numbers)
    seconds = in_turn(
        5 * rounds, here=lambda: here.reduce(step, start), there=lambda: there.reduce(step, start)
    )
    allowed = MOST_TAX * seconds["here"] + 1.0
    word = "kept" if seconds["there"] <= allowed else "NOT KEPT"
    print(
        f"A pass of K-means: {seconds['here']:.3f} s in one process, {seconds['there']:.3f} s through Spark "
        f"(promised {allowed:.2f} s at most: {word})"
    )


def step(params: Centroids, block: Block) -> Partial:
    return Means().step(params, block, KEEP_ALL)


PARTS = {"collapse": two_gaussians, "k-means": k_means, "mixture": mixtures, "tax": tax}


if __name__ == "__main__":
    main()

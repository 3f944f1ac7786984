"""A Parquet file larger than the memory allowed: peak memory of whole fits, and a pass against one in memory.

`python -m benchmarks.stream` writes a file of 6.4 GB decoded to the folder for temporary files, and removes it. Whole
fits (the job with K-means, K=20; a full-covariance mixture, K=10) run under a gigabyte, each in a process of its own;
they end when their seconds are spent, so that the figures do not depend on how many passes a table takes. A pass is
timed over the packed rows, and over a slice of the rows in memory, one thread, in turn; the ratio is per row.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import ilk
from ilk.analysis.job import Job
from ilk.analysis.prepare import prepare
from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.families.base import KEEP_ALL, Partial
from ilk.families.covariance import Structure
from ilk.families.gaussian import Gaussian
from ilk.fitting.deadline import Deadline
from ilk.fitting.loop import Stop
from ilk.fitting.mixture import MixturePlan, fit_mixture
from ilk.fitting.restarts import from_centres
from ilk.fitting.table_moments import table_moments
from ilk.methods import K_MEANS
from ilk.table.block import Block
from ilk.table.out_of_core.table import PieceTable

ROOT = Path(__file__).parents[1]
N_COLUMNS, N_CENTRES = 16, 20
GROUP_ROWS = 500_000
MEMORY, MOST_RESIDENT = "1GB", 1.5e9
SLICE_ROWS = 1_000_000
ROUNDS = 3


def write_table(path: Path, n_rows: int) -> None:
    """Twenty groups in sixteen columns, plain and uncompressed."""
    draws = np.random.default_rng(0)
    centres = draws.normal(size=(N_CENTRES, N_COLUMNS)) * 5
    schema = pa.schema([(f"x{j}", pa.float64()) for j in range(N_COLUMNS)])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for first in range(0, n_rows, GROUP_ROWS):
            n_here = min(GROUP_ROWS, n_rows - first)
            numbers = (
                draws.standard_normal((n_here, N_COLUMNS)) + centres[draws.integers(0, N_CENTRES, n_here)]
            )
            writer.write_table(pa.table(list(numbers.T), schema=schema))


def whole_fit(path: str, method: str, k: int, seconds: float) -> dict[str, Any]:
    """One fit in this process, from the file to the labels: the peak of its memory, and how it went."""
    began = time.monotonic()
    if method == "VVV":
        ready = prepare(Job(path, method="gaussian", memory=MEMORY))
        family = Gaussian(Structure("VVV"), table_moments(ready.rows).variance)
        plan = MixturePlan(stop=Stop(tolerance=1e-8, max_passes=1000, deadline=Deadline.after(seconds)))
        found = fit_mixture(ready.rows, family, k, 0, plan)
        table, labels, n_passes = ready.table, found.labels, found.n_passes
    else:
        result = ilk.cluster(path, method=method, k=k, memory=MEMORY, budget=seconds)
        table, labels = result.table, result.labels
        n_passes = len(result.summary()["reproduce"]["trace"])
    assert isinstance(table, PieceTable)
    return {
        "what": f"{method}, K={k}",
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "seconds": time.monotonic() - began,
        "passes": n_passes,
        "rows": len(labels),
    }


def passes(path: str) -> list[dict[str, Any]]:
    """Seconds of the processor for a pass per million rows, packed on disk and in memory."""
    ready = prepare(Job(path, method="gaussian", memory=MEMORY, threads=1))
    rows = ready.rows
    held = MemoryRows.of_block(rows.take(np.arange(min(SLICE_ROWS, rows.n_rows))), 1)
    made = []
    for name, k in (("k-means", 20), ("VVV", 10)):
        centres = held.take(np.arange(k) * (held.n_rows // k)).numbers
        family: Any = K_MEANS.family
        if name == "VVV":
            family = Gaussian(Structure("VVV"), table_moments(held).variance)
        params = from_centres(held, family, centres)
        times = [(_timed(held, family, params), _timed(rows, family, params)) for _ in range(ROUNDS)]
        memory, disk = (min(pair[i] for pair in times) for i in (0, 1))
        made.append(
            {
                "what": f"a pass of {name}, K={k}",
                "memory": memory,
                "stream": disk,
                "seconds": disk * rows.n_rows / 1e6,
                "ratio": float(np.median([two / one for one, two in times])),
            }
        )
    return made


def _timed(rows: Rows, family: Any, params: Any) -> float:
    began = time.process_time()
    rows.reduce(_visit, (family, params))
    return (time.process_time() - began) * 1e6 / rows.n_rows


def _visit(state: tuple[Any, Any], block: Block) -> Partial:
    family, params = state
    partial: Partial = family.step(params, block, KEEP_ALL)
    return partial


def in_child(*arguments: object) -> Any:
    command = [sys.executable, "-m", "benchmarks.stream", "--child", *map(str, arguments)]
    child = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if child.returncode:
        raise RuntimeError(child.stderr[-2000:])
    return json.loads(child.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stream", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=6.4, help="size of the table, decoded")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="for the search and the passes of each fit"
    )
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        what, path, *rest = chosen.child
        told = passes(path) if what == "passes" else whole_fit(path, what, int(rest[0]), float(rest[1]))
        print(json.dumps(told))
        return 0
    n_rows = int(chosen.gigabytes * 1e9 / (8 * N_COLUMNS))
    kept = True
    with tempfile.TemporaryDirectory(prefix="ilk-bench-") as folder:
        path = Path(folder, "table.parquet")
        write_table(path, n_rows)
        print(
            f"{n_rows:,} rows x {N_COLUMNS} columns, {chosen.gigabytes:g} GB decoded, memory={MEMORY}",
            flush=True,
        )
        for method, k in (("k-means", 20), ("VVV", 10)):
            told = in_child(method, path, k, chosen.seconds)
            kept &= told["peak_bytes"] <= MOST_RESIDENT
            print(
                f"{told['what']}: peak {told['peak_bytes'] / 1e9:.2f} GB, {told['seconds']:.0f} s in all, "
                f"{told['passes']} passes over all rows, {told['rows']:,} labels",
                flush=True,
            )
        for told in in_child("passes", path):
            print(
                f"{told['what']}: {told['seconds']:.1f} s of one processor; per million rows {told['stream']:.3f} s "
                f"against {told['memory']:.3f} s in memory, ratio {told['ratio']:.2f}",
                flush=True,
            )
    print(f"peak of at most {MOST_RESIDENT / 1e9:g} GB: {'kept' if kept else 'MISSED'}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())

"""Reading a text file of a million rows: ilk beside the readers of DuckDB and Polars, and another checkout of ilk.

    python -m benchmarks.reading [--rows 1000000] [--rounds 5] [--beside FOLDER]

FOLDER is the root of the other checkout, of which `src` is imported. Every round runs each reader in a process of its
own, one after the other, so that all meet the same load; the least processor time and the least time of all rounds are
told. ilk finds separator, header and marks, accounts for every line, types every column over all rows and says what its
columns are; the others guess from a sample.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parents[1]
READERS = {
    "ilk, reading": "from ilk.table.read import read; go = lambda: read(path)",
    "ilk, reading and types": "from ilk.table.read import read; from ilk.table.understand import understand; "
    "go = lambda: understand(read(path))",
    "DuckDB": "import duckdb; go = lambda: duckdb.sql(f\"select * from read_csv('{path}')\").to_arrow_table()",
    "Polars": "import polars; go = lambda: polars.read_csv(path)",
}
RUN = """
import json, sys, time
path = sys.argv[1]
{reader}
processor, clock = time.process_time(), time.perf_counter()
go()
print(json.dumps([time.process_time() - processor, time.perf_counter() - clock]))
"""


def write_table(path: Path, rows: int) -> None:
    """Six columns: a number with decimals, one without, a count, a category, a date and a text of many values."""
    import pyarrow as pa
    from pyarrow import csv

    draws = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + draws.integers(0, 1500, rows)
    table = pa.table(
        {
            "amount": draws.lognormal(4, 1, rows).round(2),
            "size": draws.normal(0, 1, rows),
            "count": draws.poisson(3, rows),
            "kind": draws.choice(["red", "green", "blue"], rows),
            "since": days.astype(str),
            "place": [f"p{v}" for v in draws.integers(0, 900, rows)],
        }
    )
    csv.write_csv(table, path, csv.WriteOptions(quoting_style="none"))


def timed(reader: str, path: Path, root: Path) -> list[float]:
    """Processor time and time of one reading, in a process that has imported what it needs."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "OPENBLAS_NUM_THREADS": "1"}
    code = RUN.format(reader=READERS[reader])
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], env=environment, check=True, capture_output=True, text=True
    )
    return list(json.loads(done.stdout))


def main() -> None:
    """Read in rounds, and print the least of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beside", type=Path)
    asked = parser.parse_args()
    contenders = [(name, name, HERE) for name in READERS]
    if asked.beside:
        others = [name for name in READERS if name.startswith("ilk")]
        contenders += [(f"{name}, other checkout", name, asked.beside) for name in others]
    found: dict[str, list[list[float]]] = {label: [] for label, _, _ in contenders}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_table(path, asked.rows)
        print(f"{asked.rows:,} rows, {path.stat().st_size / 1e6:.0f} MB, least of {asked.rounds} rounds")
        for _ in range(asked.rounds):
            for label, reader, root in contenders:
                found[label].append(timed(reader, path, root))
    for label, times in found.items():
        processor, clock = np.array(times).min(axis=0)
        print(f"{label:40} {processor:6.2f} s of processor time {clock:6.2f} s")


if __name__ == "__main__":
    main()

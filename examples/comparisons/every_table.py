"""
Every table: what `ilk fit` answers on tables it has never seen
===============================================================

One line a table: the model, components and groups, the verdict, the agreement with a known class that no fit has
seen, and the BIC that mclust 6.0.0 reaches where its figures are at hand (all lower is better). Run it with a folder
that holds `tables/`, or without one for the tables that come with the tests:

    python examples/comparisons/every_table.py [DATA] [TABLE ...]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BUNDLED = Path(__file__).parents[2] / "tests" / "data"
GOLDEN = BUNDLED.parent / "agreement" / "golden"
SHOWN = ["penguins", "wine", "made_shapes"]
ILK = [sys.executable, "-c", "from ilk.cli.main import main; main()"]


def answer(path: Path, folder: Path) -> tuple[dict[str, Any], float]:
    """The summary of `ilk fit TABLE`, with --truth where there is a target, and the seconds it took."""
    with path.open(encoding="utf-8") as file:
        has_target = "target" in file.readline().strip().split(",")
    command = [*ILK, "fit", str(path), "-o", str(folder / f"{path.stem}.ilk")]
    began = time.monotonic()
    done = subprocess.run(
        [*command, *(["--truth", "target"] if has_target else [])],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or "Traceback" in done.stderr:
        raise SystemExit(f"{path.name}: exit {done.returncode}\n{done.stderr}")
    summary = json.loads((folder / f"{path.stem}.ilk" / "summary.json").read_text(encoding="utf-8"))
    return summary, time.monotonic() - began


def mclust(table: str) -> str:
    """mclust's choice by BIC, where it is known."""
    path = GOLDEN / f"mclust_{table}.json"
    if not path.exists():
        return ""
    best = json.loads(path.read_text(encoding="utf-8"))["chosen"]
    return f"{best['model']},{best['G']} {-best['bic']:.1f}"


def line(name: str, summary: dict[str, Any], seconds: float, other: str) -> str:
    chosen, truth = summary["chosen"], summary["truth"]
    model = chosen["structure"] or chosen["method"]
    agreement = "" if truth is None else f"{truth['ari']:.2f}"
    return (
        f"{name:24} {model:9} {chosen['components']:10} {chosen['k']:6}  {summary['verdict']['word']:6} {agreement:>5} "
        f"{chosen['bic']:10.1f}  {other:15} {seconds:5.1f} s"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("data", type=Path, nargs="?")
    arguments.add_argument("table", nargs="*")
    given = arguments.parse_args()
    tables = BUNDLED if given.data is None else given.data / "tables"
    names = given.table or (SHOWN if given.data is None else sorted(p.stem for p in tables.glob("*.csv")))
    print(f"{'table':24} {'model':9} components groups  trust    ARI        BIC  mclust's choice")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            summary, seconds = answer(tables / f"{name}.csv", Path(folder))
            print(line(name, summary, seconds, mclust(name)), flush=True)


if __name__ == "__main__":
    main()

"""How a budget is kept: asked and spent, for tables of several shapes (`python -m benchmarks.budgets`).

    python -m benchmarks.budgets --budgets 1 2 5 10
    python -m benchmarks.budgets wide --budgets 1 --command-line

Every run is a process of its own. Wall-clock seconds and processor seconds are those of `ilk.cluster` alone, with what
reading the table took in it; with `--command-line` the seconds of the whole process `ilk fit`, from its start to its
end. A run is late where it is over by more than a second and more than a tenth of the budget, whichever is more.

On a machine that others use, too, wall-clock time says little: with `--processor` a run has one thread and takes its
own processor time for the time of day, as it would pass on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.time_to_answer import ROOT, WARM_UP, mixed

GRACE, SHARE = 1.0, 0.1  # by how much a run may be over: seconds, or a part of the budget


def tiny() -> dict[str, Any]:
    """Ten rows of three numbers."""
    points = np.random.default_rng(1).normal(0, 1, (10, 3))
    points[5:] += 6
    return named(points)


def long() -> dict[str, Any]:
    """20,000 rows of ten numbers in eight groups."""
    draws = np.random.default_rng(2)
    return named(draws.normal(0, 3, (8, 10))[draws.integers(0, 8, 20_000)] + draws.normal(0, 1, (20_000, 10)))


def skewed() -> dict[str, Any]:
    """4,600 rows of 57 amounts, most of them 0, the others with a long tail, as words in letters are counted."""
    draws = np.random.default_rng(3)
    label, shape = (draws.random(4600) < 0.4).astype(int), (4600, 57)
    there = draws.random(shape) < draws.beta(1, 3, (2, 57))[label]
    return named(
        np.where(
            there, np.round(np.exp(draws.normal(-0.5, 1, (2, 57))[label] + draws.normal(0, 1, shape)), 2), 0
        )
    )


def wide() -> dict[str, Any]:
    """200 rows of 5,000 numbers, of which 50 part three groups."""
    draws = np.random.default_rng(4)
    points = draws.normal(0, 1, (200, 5000))
    points[:, :50] += draws.normal(0, 2, (3, 50))[draws.integers(0, 3, 200)]
    return named(points)


def named(points: Any) -> dict[str, Any]:
    return {f"x{j}": np.round(column, 4) for j, column in enumerate(points.T)}


TABLES: dict[str, Callable[[], dict[str, Any]]] = {
    "tiny": tiny, "mixed": lambda: mixed(1000), "long": long, "skewed": skewed, "wide": wide,
}  # fmt: skip
SHAPES = {
    "tiny": "10 x 3",
    "mixed": "1,000 x 20",
    "long": "20,000 x 10",
    "skewed": "4,600 x 57",
    "wide": "200 x 5,000",
}


def answered(name: str, budget: float, options: dict[str, Any]) -> dict[str, Any]:
    """The seconds of one run in this process, and what it said."""
    import ilk

    data = TABLES[name]()
    ilk.cluster(WARM_UP, k=2)
    if options.pop("processor"):
        import ilk.fitting.deadline

        ilk.fitting.deadline.time = SimpleNamespace(monotonic=time.process_time)  # type: ignore[assignment]
        options["threads"] = 1
    wall, processor = time.monotonic(), time.process_time()
    result = ilk.cluster(data, budget=budget, **options)
    return {
        "wall": time.monotonic() - wall,
        "cpu": time.process_time() - processor,
        "k": result.k,
        "word": result.verdict.word,
        "codes": [code for code, _ in result.warnings],
    }


def commanded(name: str, budget: float, options: dict[str, Any]) -> dict[str, Any]:
    """The seconds of the whole process of `ilk fit`, and what it said."""
    import pyarrow as pa
    import pyarrow.csv

    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "table.csv"
        pa.csv.write_csv(pa.table({key: pa.array(value) for key, value in TABLES[name]().items()}), file)
        command = [sys.executable, "-c", "from ilk.cli.main import main; main()", "fit", str(file)]
        command += ["-q", "-o", str(Path(place) / "run"), "--budget", f"{budget:g}"]
        for key, value in options.items():
            command += [f"--{key}", str(value)]
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True)
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        told = json.loads((Path(place) / "run" / "summary.json").read_text())
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    codes = [note["code"] for note in told["warnings"]]
    return {
        "wall": wall,
        "cpu": spent,
        "k": told["verdict"]["k"],
        "word": told["verdict"]["word"],
        "codes": codes,
    }


def in_a_process(name: str, budget: float, arguments: Sequence[str]) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.budgets",
        name,
        "--one",
        "--budgets",
        str(budget),
        *arguments,
    ]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def line_of(name: str, budget: float, told: dict[str, Any], clock: str) -> str:
    late = "LATE" if told[clock] > budget + max(GRACE, SHARE * budget) else "kept"
    codes = ", ".join(told["codes"])
    return (
        f"{name:8}{SHAPES[name]:>12}  asked {budget:4g} s  wall {told['wall']:6.2f} s  processor {told['cpu']:6.2f} s"
        f"  {late}  K {told['k']} {told['word']}  {codes}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.budgets", description=__doc__)
    parser.add_argument("names", nargs="*", help="tables; all of them if none is given")
    parser.add_argument("--budgets", type=float, nargs="*", default=[1.0, 2.0, 5.0, 10.0])
    parser.add_argument("--method", default="auto")
    parser.add_argument(
        "--command-line", action="store_true", help="`ilk fit` as a process, instead of `ilk.cluster`"
    )
    parser.add_argument("--processor", action="store_true", help="budgets of processor time, on one thread")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    options: dict[str, Any] = {"method": chosen.method}
    if chosen.one:
        options["processor"] = chosen.processor
        print(json.dumps(answered(chosen.names[0], chosen.budgets[0], options)))
        return
    more = ["--method", chosen.method, *(["--processor"] if chosen.processor else [])]
    for name in chosen.names or TABLES:
        for budget in chosen.budgets:
            told = (
                commanded(name, budget, options) if chosen.command_line else in_a_process(name, budget, more)
            )
            print(line_of(name, budget, told, "cpu" if chosen.processor else "wall"), flush=True)


if __name__ == "__main__":
    main()

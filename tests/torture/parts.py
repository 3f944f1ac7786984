"""The parts of `make torture`: their shares of its time, and how several processes may share one.

`python -m tests.torture.parts NAME SECONDS FIRST JOB JOBS` tries one of them in this process, which imports nothing for
another part, and prints what came of it and which modules of ilk it has loaded. SIGTERM and SIGINT end it early; what
it has tried counts.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.torture import code
from tests.torture.tally import Clock, Tally, end_early

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Part:
    """A part: `run` of a module of this folder, unless another function is named."""

    share: float
    module: str
    function: str = "run"
    shared: str = (
        "seeds"  # several processes take other "seeds", a "slice" of the cases each, or one has it "alone"
    )
    keeps: bool = False  # inputs that fail, in the corpus
    all_code: bool = False  # its attempts are processes of their own: whatever they may load counts


PARTS = {
    "tables": Part(0.17, "tables", keeps=True),
    "files": Part(0.1, "files", keeps=True),
    "models": Part(0.1, "models", keeps=True),
    "resume": Part(0.1, "resume"),
    "calls": Part(0.1, "calls", shared="slice"),
    "workers": Part(0.1, "workers", shared="alone", all_code=True),
    "memory": Part(0.08, "memory", shared="slice", all_code=True),
    "folders": Part(0.05, "folders"),
    "signals": Part(0.05, "signals"),
    "payloads": Part(0.04, "payloads"),
    "together": Part(0.03, "together", "writers"),
    "leaks": Part(0.03, "together", "leaks", shared="alone"),
    "time limits": Part(0.03, "time_limits"),
    "crash states": Part(0.02, "crash_states", shared="alone"),
}


def tried(name: str, seconds: float, first: int, job: int, jobs: int) -> Tally | None:
    """What came of a part; None where it needs what is not there. `first` is the number of the first input."""
    part = PARTS[name]
    run = getattr(importlib.import_module(f"tests.torture.{part.module}"), part.function)
    given = {"seeds": [first], "slice": [job, jobs], "alone": []}[part.shared]
    tally: Tally | None = run(Clock(seconds), *given, **({"keep": CORPUS / name} if part.keeps else {}))
    if tally is not None:
        tally.modules |= code.every() if part.all_code else code.loaded()
    return tally


def main(name: str, seconds: float, first: int, job: int, jobs: int) -> None:
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, end_early)
    tally = tried(name, seconds, first, job, jobs)
    print(json.dumps(None if tally is None else tally.as_plain()))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), *map(int, sys.argv[3:]))

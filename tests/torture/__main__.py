"""`make torture`: everything for some minutes, or `HOURS=8` for a release; prints counts, adds them to those before.

`python -m tests.torture MINUTES PAGE JOBS [PART ...]`: all parts, or those named, one after the other, each with its
share of the time and in processes of its own, as many as JOBS where they can share it. Ctrl-C and SIGTERM end a part
early; what it has tried counts. A failure ends with exit code 1; its input is kept in `tests/torture/corpus`.
"""

from __future__ import annotations

import datetime
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.torture import code, record
from tests.torture.parts import PARTS
from tests.torture.tally import Clock, Tally, end_early

running: list[subprocess.Popen[str]] = []


def end(*_: object) -> None:
    end_early()
    for process in running:
        process.terminate()


def attempted(name: str, seconds: float, first: int, jobs: int) -> list[Tally]:
    """What came of a part in each of its processes."""
    jobs = 1 if PARTS[name].shared == "alone" else jobs
    for job in range(jobs):
        given: list[Any] = [name, seconds, first + (job << 40), job, jobs]  # no input is tried twice
        command = [sys.executable, "-m", "tests.torture.parts", *map(str, given)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    told = [process.communicate()[0] for process in running]
    broken = [process.returncode for process in running if process.returncode]
    running.clear()
    if broken:
        raise RuntimeError(f"the part {name} ended with {broken}")
    plain = [json.loads(lines.splitlines()[-1]) for lines in told]
    return [Tally.from_plain(one) for one in plain if one is not None]


def main(minutes: float, target: Path, jobs: int, chosen: list[str]) -> int:
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, end)
    first = int(datetime.datetime.now().timestamp()) << 44  # other inputs every time; a failure says which
    names, at, failed = chosen or [*PARTS], record.commit(), False
    shares = sum(PARTS[name].share for name in names)
    for name in names:
        seconds = 60 * minutes * PARTS[name].share / shares
        before = code.digest(code.folded(code.every()))
        for tally in [] if Clock.ended else attempted(name, seconds, first, jobs):
            print(*tally.lines(), sep="\n", flush=True)
            failed |= bool(tally.failures)
            if code.digest(code.folded(code.every())) == before:
                record.add(tally, at)
            else:
                print("   not counted: src/ilk has changed on the way")
        record.write(target)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))

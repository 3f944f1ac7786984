"""`make torture`: everything for some minutes, or `HOURS=8` for a release; prints counts, adds them to those before.

`python -m tests.torture MINUTES PAGE [PART ...]`: all parts, or those named, one after the other, each with its share
of the time. Ctrl-C and SIGTERM end a part early; what it has tried counts. A failure ends with exit code 1; its input
is kept in `tests/torture/corpus`.
"""

from __future__ import annotations

import datetime
import signal
import sys
from pathlib import Path

from tests.torture import record
from tests.torture.parts import parts
from tests.torture.tally import Clock


def end(*_: object) -> None:
    Clock.ended = True


def main(minutes: float, target: Path, chosen: list[str]) -> int:
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, end)
    first = int(datetime.datetime.now().timestamp())  # other inputs every time; a failure says which
    known, on, at, failed = parts(first), record.code(), record.commit(), False
    names = chosen or sorted(known, key=lambda name: -known[name][0])
    shares = sum(known[name][0] for name in names)
    for name in names:
        share, run = known[name]
        tally = None if Clock.ended else run(Clock(60 * minutes * share / shares))
        if tally is not None:
            print(*tally.lines(), sep="\n", flush=True)
            record.add(tally, on, at)
            record.write(target)
            failed |= bool(tally.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))

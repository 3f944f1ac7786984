"""How soon a run answers Ctrl-C, and what it leaves: `ilk fit` on a large mixed table, interrupted at several moments.

    python -m benchmarks.interrupts --rows 1000000 --after 2 5 10 20 40

One line for each moment: what the line of progress said, the seconds from the signal to the end of the process (and its
processor time, which other work on the machine does not lengthen), the exit code, and what is in the folder. The last
line is a run that nobody interrupts, with its peak memory and the longest silence of its progress.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import resource
import select
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

import ilk

ILK = [sys.executable, "-c", "from ilk.cli.main import main; main()"]
TICKS = os.sysconf("SC_CLK_TCK")


def mixed_table(n_rows: int) -> pa.Table:
    """Six groups in twelve numbers, some skewed or rounded, and eight categories; blanks in some of both."""
    draws, k = np.random.default_rng(1), 6
    label = draws.choice(k, n_rows, p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05])
    columns = {}
    for j in range(12):
        x = draws.normal(0, 2.5, k)[label] + draws.normal(size=n_rows)
        x = (x, np.exp(x / 2), np.round(3 * x), x)[j % 4]
        columns[f"n{j}"] = pa.array(np.round(x, 4), mask=draws.random(n_rows) < (0.03 if j % 3 == 0 else 0))
    for j in range(8):
        n_levels = int(draws.integers(2, 7))
        reached = np.cumsum(draws.dirichlet(np.full(n_levels, 0.7), k), axis=1)[label][:, :-1]
        code = (draws.random((n_rows, 1)) > reached).sum(axis=1)
        names = np.array([f"level {i}" for i in range(n_levels)])
        columns[f"c{j}"] = pa.array(names[code], mask=draws.random(n_rows) < (0.05 if j % 4 == 0 else 0))
    return pa.table(columns)


@dataclass
class Watched:
    """A run in a terminal of its own: what it wrote there, and when."""

    pid: int
    terminal: int
    began: float = field(default_factory=time.monotonic)
    told: float = field(default_factory=time.monotonic)
    longest_silence: float = 0.0
    last: str = ""

    @classmethod
    def start(cls, command: list[str]) -> Watched:
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(command[0], command)
        run = cls(pid, terminal)
        threading.Thread(target=run._watch, daemon=True).start()
        return run

    def _watch(self) -> None:
        while True:
            try:
                select.select([self.terminal], [], [])
                text = os.read(self.terminal, 65536).decode("utf-8", "replace")
            except OSError:  # the run has ended
                return
            now = time.monotonic()
            self.longest_silence, self.told = max(self.longest_silence, now - self.told), now
            lines = [line for line in re.split(r"[\r\n]|\x1b\[K", text) if line.strip()]
            self.last = lines[-1].strip() if lines else self.last

    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def wait(self) -> tuple[int, resource.struct_rusage]:
        _, status, usage = os.wait4(self.pid, 0)
        return os.waitstatus_to_exitcode(status), usage


def usable(folder: Path, table: pa.Table) -> str:
    """What a folder holds, and whether its model gives rows their groups."""
    if not (folder / "summary.json").exists():
        return "nothing written"
    names = sorted(path.name for path in folder.iterdir())
    groups = ilk.load(folder / "model.ilk").assign(table.slice(0, 100))
    return f"{', '.join(names)}; groups of 100 rows: {len(set(groups['group'].to_pylist()))}"


def interrupted(path: Path, table: pa.Table, after: float, folder: Path) -> str:
    run = Watched.start([*ILK, "fit", str(path), "-o", str(folder)])
    while time.monotonic() - run.began < after:
        time.sleep(0.01)
    said, spent, asked = run.last, run.processor_seconds(), time.monotonic()
    os.kill(run.pid, signal.SIGINT)
    code, usage = run.wait()
    seconds = time.monotonic() - asked
    processor = usage.ru_utime + usage.ru_stime - spent
    return (
        f"after {after:5.1f} s [{said[:40]:40}]: {seconds:5.2f} s, processor {processor:5.2f} s, exit {code}, "
        f"{usable(folder, table)}"
    )


def undisturbed(path: Path, table: pa.Table, folder: Path) -> str:
    run = Watched.start([*ILK, "fit", str(path), "-o", str(folder)])
    code, usage = run.wait()
    return (
        f"to the end: {time.monotonic() - run.began:.1f} s, processor {usage.ru_utime + usage.ru_stime:.1f} s, exit "
        f"{code}, {usage.ru_maxrss / 1024:.0f} MiB, longest silence {run.longest_silence:.1f} s, "
        f"{usable(folder, table)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--after", type=float, nargs="*", default=[2.0, 5.0, 10.0, 20.0, 40.0])
    parser.add_argument("--to-the-end", action="store_true", help="one run that is not interrupted, too")
    given = parser.parse_args()
    table = mixed_table(given.rows)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        pyarrow.csv.write_csv(table, place / "table.csv")
        for number, after in enumerate(given.after):
            print(interrupted(place / "table.csv", table, after, place / f"{number}.ilk"), flush=True)
        if given.to_the_end:
            print(undisturbed(place / "table.csv", table, place / "end.ilk"), flush=True)


if __name__ == "__main__":
    main()

"""SIGKILL at random moments of a run, then `--resume`, again and again: what is written are the bytes of a run that
nobody disturbed."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ilk.cli.main import cli
from ilk.fitting import recall
from ilk.selection import finalists, search, search_rows, units
from ilk.store import journal
from ilk.store.record_file import Record, RecordFile
from ilk.table.out_of_core import memory_limit
from tests.torture.tally import IN_MEMORY, Clock, Tally

LONGEST = 10  # kills in a row
EXISTS = 2  # the exit code where there is a run already, and nothing to be resumed
ROWS, SEARCHED = (
    4_000,
    400,
)  # of a table that is searched on a sample and read in pieces: a run takes a fraction of a second
TIMES = ("second", "created", "sizes", "began", "duration")  # parts of names of what the clock decides
OFTEN = journal.Pace(after=0.0, least=0.003, every=0.02, times=1e-9, times_of_piece=1e-9)
NEVER = journal.Pace(after=1e9)
SECONDS = re.compile(rb"<dd>[^<]* s</dd>")


def table(kind: str, seed: int = 0) -> dict[str, Any]:
    """A table that takes some pieces: numbers, mixed columns, or more rows than a search looks at."""
    draws = np.random.default_rng(seed)
    n = {"numbers": 240, "mixed": 240, "rows": ROWS}[kind]
    group = draws.integers(0, 4, n)
    found: dict[str, Any] = {f"x{j}": (draws.normal(size=n) + 4 * (group == j)).round(4) for j in range(3)}
    if kind == "mixed":
        noise = draws.integers(0, 4, n)
        found["c"] = ["abcd"[g] for g in np.where(draws.random(n) < 0.7, group, noise)]
        found["d"] = ["pqrs"[g] for g in np.where(draws.random(n) < 0.7, group, noise)]
    return found


CASES: dict[str, tuple[str, list[str]]] = {
    "mixture": ("numbers", ["--method", "gaussian", "--k", "1..4"]),
    "auto": ("numbers", ["--k", "1..4"]),
    "assorted": ("mixed", []),
    "assorted, K given": ("mixed", ["--k", "4"]),
    "K-means, K open": ("numbers", ["--method", "k-means"]),
    "K-means, many rows": ("rows", ["--method", "k-means", "--k", "4"]),
    "out of core": ("rows", ["--method", "k-means", "--k", "3", "--memory", "100KB"]),
    "mixture, out of core": ("rows", ["--method", "gaussian", "--k", "3", "--memory", "100KB"]),
}


class Trial:
    """One table and its options: the bytes of an undisturbed run, and how long that takes."""

    def __init__(self, home: Path, name: str) -> None:
        kind, options = CASES[name]
        self.name, self.home = name, home / name.replace(" ", "_").replace(",", "")
        self.home.mkdir()
        self.data = home / f"{kind}.parquet"
        if not self.data.exists():
            pq.write_table(pa.table(table(kind)), self.data)
        self.options = [*options, "--threads", "1", "-q"]
        assert self.fit("first", [], None) == 0, name
        for module in (self.home / "first" / "modules").read_text().split():  # so that children need not
            with contextlib.suppress(Exception):
                importlib.import_module(module)
        began = time.monotonic()
        assert self.fit("timed", [], None) == 0, name
        self.seconds = time.monotonic() - began
        assert self.fit("whole", [], None, NEVER) == 0, name
        self.golden = content(self.home / "whole" / "run")

    def fit(self, where: str, more: list[str], after: float | None, pace: journal.Pace = OFTEN) -> int:
        """A fit in a child, killed after some seconds; its exit code, or minus the signal."""
        folder = self.home / where
        folder.mkdir(exist_ok=True)
        return in_child(lambda: self.in_folder(folder, more, pace), after)

    def in_folder(self, folder: Path, more: list[str], pace: journal.Pace) -> int:
        os.chdir(folder)
        journal.PACE, recall.LEAST_CELLS, memory_limit.LEAST = pace, 0, 0
        for searching in (search, search_rows, units, finalists):
            searching.SEARCH_ROWS = SEARCHED  # type: ignore[attr-defined]
        try:
            return int(cli.main(["fit", str(self.data), "-o", "run", *self.options, *more]) or 0)
        finally:
            if folder.name == "first":
                Path("modules").write_text("\n".join(sys.modules))

    def chain(self, draw: random.Random) -> tuple[int, str]:
        """Kills in a row and then a run to its end: how many there were, and what is wrong, if anything."""
        shutil.rmtree(self.home / "work", ignore_errors=True)
        kills = 0
        for _ in range(draw.choice([1, 1, 1, 2, 3, LONGEST])):
            code = self.fit("work", ["--resume"] if kills else [], draw.uniform(0, 1.1) * self.seconds)
            if code == 0 or (code == EXISTS and kills and (self.home / "work" / "run").exists()):
                break  # in the second case the one before was killed after its last stroke
            if code != -signal.SIGKILL:
                return kills, f"exit {code} after {kills} kills"
            kills += 1
        else:
            code = self.fit("work", ["--resume"], None)
            if code and not (code == EXISTS and (self.home / "work" / "run").exists()):
                return kills, f"exit {code} after {kills} kills, undisturbed"
        left = sorted(os.listdir(self.home / "work"))
        if left != ["run"]:
            return kills, f"something was left behind: {left}"
        found = content(self.home / "work" / "run")
        differ = [name for name in sorted({*found, *self.golden}) if found.get(name) != self.golden.get(name)]
        return kills, f"other bytes in {differ}" if differ else ""


def dying(number: int) -> Callable[[RecordFile, Record], None]:
    """`RecordFile.add` as it is, but the process is killed while it writes one of its records."""
    real, count = RecordFile.add, iter(range(number))

    def add(self: RecordFile, record: Record) -> None:
        if next(count, None) is None:
            assert self.handle is not None
            os.pwrite(self.handle, b"torn off", self.end)
            os.kill(os.getpid(), signal.SIGKILL)
        real(self, record)

    return add


def in_child(work: Callable[[], int], after: float | None) -> int:
    """Do something in a forked process, which is killed after some seconds."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with open(os.devnull, "w") as nowhere:
                sys.stdout = sys.stderr = nowhere
                code = work()
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            os._exit(code)
    if after is not None:
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def make_old(folder: Path) -> None:
    """Another content in every file of a run."""
    for path in folder.iterdir():
        path.write_bytes(b"old")


def content(folder: Path) -> dict[str, bytes]:
    """The files of a run, without what the clock decides."""
    found = {}
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        if path.name == "summary.json":
            data = json.dumps(_timeless(json.loads(data)), sort_keys=True).encode()
        if path.name == "report.html":
            page, summary = data.rsplit(b'{"schema":', 1)
            summary, rest = summary.split(b"</script>", 1)
            told = _timeless(json.loads(b'{"schema":' + summary))
            data = SECONDS.sub(b"", page) + json.dumps(told, sort_keys=True).encode() + rest
        found[path.name] = data
    return found


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _timeless(part) for name, part in value.items() if not any(word in name for word in TIMES)
        }
    return [_timeless(part) for part in value] if isinstance(value, list) else value


def run(clock: Clock, seed: int = 0) -> Tally:
    """Chains of kills on every kind of run, as many as the time allows."""
    tally, draw = (
        Tally("SIGKILL at random moments of a run, resumed: same bytes (chains of up to 10)"),
        random.Random(seed),
    )
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(dir=IN_MEMORY) as home:
        warnings.simplefilter("ignore")
        begun = cache(
            lambda name: Trial(Path(home), name)
        )  # an undisturbed run takes long where others are at work
        while clock.more():
            trial = begun(draw.choice([*CASES]))
            kills, wrong = trial.chain(draw)
            tally.ended.update({trial.name: kills} if kills else {})
            if wrong:
                tally.failed(f"{trial.name}: {wrong}", f"seed {seed}, {tally.tried} kills")
    tally.seconds = clock.spent
    return tally

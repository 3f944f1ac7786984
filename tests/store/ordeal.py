"""Hostile model files put to every use: only an IlkError may come out, soon, and with little memory.

`python -m tests.store.ordeal COUNT SEED [FOLDER]` tries many and prints what escaped, the slowest and the memory taken;
the first file of each kind that escaped is kept in the folder.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import json
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ilk.errors import IlkError, ModelFileError
from ilk.export.dialects import DUCKDB, SPARK
from ilk.export.record import record
from ilk.export.sql import select
from ilk.model.file import read_model
from ilk.monitor import drift
from ilk.report.summary import plain
from ilk.table.read import Table
from tests.store.hostile import Base, bases, hostile_file

MOST_SECONDS = 1.0  # of the processor: others may be at work too
MOST_BYTES = 64 * 2**20


class TooSlow(BaseException):
    """A call that takes far too long."""


@dataclass
class Tried:
    """What became of many files."""

    count: int = 0
    refused: int = 0
    calls: collections.Counter = field(default_factory=collections.Counter)
    escaped: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    slowest: float = 0.0
    grew: int = 0
    saved: Path = Path()

    def note(self, call: str, error: BaseException | str, data: bytes) -> None:
        told = error if isinstance(error, str) else _told(error)
        times, first = self.escaped.get(f"{call}: {told}", (0, data))
        self.escaped[f"{call}: {told}"] = times + 1, first

    def attempt(self, name: str, data: bytes, rows: Table, path: Path) -> None:
        """Load the file and ask everything of it; only an IlkError may come out, soon. What takes long is tried again:
        on a busy machine threads that wait for each other use the processor, too."""
        self.count += 1
        spent = self._attempted(name, data, rows, path)
        if spent > MOST_SECONDS:
            spent = min(spent, Tried(saved=self.saved)._attempted(name, data, rows, path))
        self.slowest = max(self.slowest, spent)
        if spent > MOST_SECONDS:
            self.note(f"{name} slow", f"{spent:.1f} s", data)

    def _attempted(self, name: str, data: bytes, rows: Table, path: Path) -> float:
        """Seconds of the processor that the file and all that is asked of it took."""
        path.write_bytes(data)
        _forget_peak()
        began, before = _used()
        try:
            model = read_model(path)  # what `ilk.load` does with a file
        except ModelFileError:
            self.refused += 1
        except (Exception, TooSlow) as error:
            self.note(f"{name} load", error, data)
        else:
            for call, ask in self.asked(model, rows, path).items():
                try:
                    self.look(name, call, ask(), model, data)
                    self.calls[call] += 1
                except IlkError as error:
                    self.calls[f"{call} {error.code}"] += 1
                except (Exception, TooSlow) as error:
                    self.note(f"{name} {call}", error, data)
        ended, peak = _used()
        self.grew = max(self.grew, peak - before)
        if peak - before > MOST_BYTES:
            self.note(f"{name} memory", "too much", data)
        return ended - began

    @staticmethod
    def asked(model, rows, path):
        return {
            "assign": lambda: model.assign_table(rows),
            "duckdb": lambda: select(model, DUCKDB, "data"),
            "spark": lambda: select(model, SPARK, "data"),
            "json": lambda: json.dumps(record(model), allow_nan=False),
            "check": lambda: json.dumps(plain(drift.check(model, rows)), allow_nan=False),
            "save": lambda: model.save(path.with_suffix(".two"), overwrite=True),
            "repr": lambda: repr(model),
        }

    def look(self, name, call, made, model, data) -> None:
        """Answers must be possible ones."""
        if call == "assign":
            found = {column: made[column].to_pylist() for column in made.column_names}
            grouped = [row for row, group in enumerate(found["group"]) if group is not None]
            if not {found["group"][row] for row in grouped} <= set(model.letters):
                self.note(f"{name} assign", "a label out of range", data)
            for what in {"probability", "novelty"} & found.keys():
                if not all(0 <= found[what][row] <= 1 for row in grouped):
                    self.note(f"{name} assign", f"a {what} out of range", data)
        elif call == "save":
            try:
                read_model(self.saved)
            except IlkError as error:
                self.note(f"{name} save", f"not read back: {error.what}", data)


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/ilk/" in frame.filename] or frames
    return f"{type(error).__name__} {str(error)[:90]} @ {Path(ours[-1].filename).name}:{ours[-1].lineno}"


def _used() -> tuple[float, int]:
    """Seconds of the processor, and the most memory held, since `_forget_peak` where the system can forget it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def _forget_peak() -> None:
    """So that the next file is measured by itself, not by the largest before it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # Linux


@contextlib.contextmanager
def limited(seconds: float):
    """At most so long for the block."""

    def stop(*_):
        raise TooSlow

    old = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def many(count: int, seed: int, folder: Path, known: dict[str, Base]) -> Tried:
    """So many hostile files, each tried."""
    draw, tried, path, names = random.Random(seed), Tried(), folder / "m.ilk", sorted(known)
    tried.saved = path.with_suffix(".two")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        while tried.count < count:
            name = draw.choice(names)
            data = hostile_file(known[name].data, draw)
            if data is not None:
                with limited(20):
                    tried.attempt(name, data, known[name].table, path)
    return tried


if __name__ == "__main__":
    import tempfile

    wanted, seed = int(sys.argv[1]), int(sys.argv[2])
    known = bases()
    began = time.time()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        tried = many(wanted, seed, Path(folder), known)
    print(
        f"{tried.count} files, {tried.refused} refused, {time.time() - began:.0f} s, slowest {tried.slowest:.2f} s,"
    )
    print(f"most memory for one {tried.grew / 2**20:.0f} MB; calls {dict(tried.calls)}")
    for told, (times, data) in sorted(tried.escaped.items(), key=lambda item: -item[1][0]):
        print(times, told)
        if len(sys.argv) > 3:
            Path(sys.argv[3], f"{hashlib.sha256(told.encode()).hexdigest()[:8]}.ilk").write_bytes(data)
    sys.exit(bool(tried.escaped))

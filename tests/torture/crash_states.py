"""What a crash may leave on disk, state by state: every prefix of the calls of a save with every loss of unsynced
data, and a checkpoint cut or changed at every byte."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from ilk.store.atomic import write_atomically
from ilk.store.journal import Journal
from ilk.store.plain_file import NotPlain
from ilk.store.record_file import RecordFile
from tests.store.test_store_atomic import Traced, disk_states
from tests.store.test_store_journal import NOW
from tests.torture.tally import Clock, Tally

SIZES = (0, 1, 511, 512, 513, 70_000, 3_000_000)  # bytes: of a block, of more than a buffer


def run(clock: Clock) -> Tally:
    """All states of all saves, whatever time that takes: they are a few thousand."""
    tally = Tally("states that a crash may leave: a file saved, a checkpoint")
    with tempfile.TemporaryDirectory() as home:
        for size in SIZES:
            for old in (None, b"old"):
                _saves(
                    tally,
                    Path(home, f"{size}{old}"),
                    bytes(range(256)) * (size // 256) + bytes(size % 256),
                    old,
                )
        _checkpoints(tally, Path(home, "checkpoint"))
    tally.seconds = clock.spent
    return tally


def _saves(tally: Tally, path: Path, new: bytes, old: bytes | None) -> None:
    if old is not None:
        path.write_bytes(old)
    calls = Traced(10**9, OSError())
    write_atomically(path, new, overwrite=old is not None, calls=calls)
    for length in range(len(calls.done) + 1):
        for found in disk_states(calls.done[:length], old, new):
            tally.ended["old" if found == old else "new"] += 1
            if found not in (old, new):
                tally.failed("neither old nor new", f"{len(new)} bytes, {length} calls")


def _checkpoints(tally: Tally, path: Path) -> None:
    journal = Journal(path, lambda: {"began": "then"}, NOW)
    for number in range(5):
        journal.recall("piece", (number,), lambda _, number=number: np.full(9, number), lambda: bytes(16))
    journal.close()
    whole = path.read_bytes()
    places = sorted(RecordFile.found(str(path)).places.values())
    for at in range(len(whole)):
        for broken in (whole[:at], whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :]):
            path.write_bytes(broken)
            n_whole = sum(first + length <= at for first, length, _ in places)
            try:
                found = len(RecordFile.found(str(path)).places)
            except NotPlain:
                found = 0
            tally.ended["the records before it"] += 1
            if found != n_whole:
                tally.failed(f"{found} records instead of {n_whole}", f"byte {at}")

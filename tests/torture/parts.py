"""The parts of `make torture`, and their shares of its time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.store.hostile import bases
from tests.store.ordeal import many
from tests.torture import (
    calls,
    crash_states,
    files,
    folders,
    memory,
    payloads,
    resume,
    signals,
    tables,
    time_limits,
    together,
    workers,
)
from tests.torture.tally import IN_MEMORY, Clock, Tally

MODELS_A_TIME = 500


def models(clock: Clock, first: int) -> Tally:
    """Model files that lie, digest recomputed, put to every use."""
    tally, known, seed = (
        Tally("hostile model files: loaded, then assign, SQL, JSON, check, save"),
        bases(),
        first,
    )
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        while clock.more():
            tried = many(MODELS_A_TIME, seed, Path(folder), known)
            tally.ended["refused"] += tried.refused
            tally.ended["taken"] += tried.count - tried.refused
            for how, (times, data) in tried.escaped.items():
                for _ in range(times):
                    tally.failed(how, f"seed {seed}")
                keep = tables.CORPUS.parent / "models"
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{seed}.ilk").write_bytes(data)
            seed += 1
    tally.seconds = clock.spent
    return tally


def parts(first: int) -> dict[str, tuple[float, Callable[[Clock], Tally | None]]]:
    """What is tried, and its share of the time; `first` is the number of the first input."""
    return {
        "tables": (0.17, lambda clock: tables.run(clock, first, tables.CORPUS)),
        "files": (0.1, lambda clock: files.run(clock, first, files.CORPUS)),
        "models": (0.1, lambda clock: models(clock, first)),
        "resume": (0.1, lambda clock: resume.run(clock, first)),
        "folders": (0.05, lambda clock: folders.run(clock, first)),
        "crash states": (0.02, crash_states.run),
        "calls": (0.1, calls.run),
        "memory": (0.08, memory.run),
        "signals": (0.05, lambda clock: signals.run(clock, first)),
        "together": (0.03, lambda clock: together.writers(clock, first)),
        "leaks": (0.03, together.leaks),
        "time limits": (0.03, lambda clock: time_limits.run(clock, first)),
        "workers": (0.1, lambda clock: workers.run(clock, first)),
        "payloads": (0.04, lambda clock: payloads.run(clock, first)),
    }

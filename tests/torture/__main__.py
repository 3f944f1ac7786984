"""`make torture`: everything for some minutes, or `HOURS=8` for a release; prints counts, writes a page of the docs.

`python -m tests.torture MINUTES [PAGE [PROCESSES]]`: parts one after the other, each with its share of the time, or in
several processes. A failure ends with exit code 1; its input is kept in `tests/torture/corpus`.
"""

from __future__ import annotations

import datetime
import multiprocessing
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
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
)
from tests.torture.tally import Clock, Tally

MODELS_A_TIME = 500
START, END = "<!-- counts -->\n", "<!-- end of counts -->"


def models(clock: Clock, first: int) -> Tally:
    """Model files that lie, digest recomputed, put to every use."""
    tally, known, seed = (
        Tally("hostile model files: loaded, then assign, SQL, JSON, check, save"),
        bases(),
        first,
    )
    with tempfile.TemporaryDirectory() as folder:
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
        "tables": (0.22, lambda clock: tables.run(clock, first, tables.CORPUS)),
        "files": (0.1, lambda clock: files.run(clock, first, files.CORPUS)),
        "models": (0.1, lambda clock: models(clock, first)),
        "resume": (0.15, lambda clock: resume.run(clock, first)),
        "folders": (0.05, lambda clock: folders.run(clock, first)),
        "crash states": (0.02, crash_states.run),
        "calls": (0.1, calls.run),
        "memory": (0.08, memory.run),
        "signals": (0.05, lambda clock: signals.run(clock, first)),
        "together": (0.03, lambda clock: together.writers(clock, first)),
        "leaks": (0.03, together.leaks),
        "time limits": (0.03, lambda clock: time_limits.run(clock, first)),
        "payloads": (0.04, lambda clock: payloads.run(clock, first)),
    }


def one_part(name: str, first: int, seconds: float) -> Tally | None:
    """One part, with a share of the time."""
    share, run = parts(first)[name]
    return run(Clock(seconds * share))


def tallies(first: int, seconds: float, processes: int) -> Iterator[Tally]:
    """What was found, part by part; in several processes the time is that of all of them."""
    names = sorted(parts(first), key=lambda name: -parts(first)[name][0])
    if processes == 1:
        found = (one_part(name, first, seconds) for name in names)
        yield from (tally for tally in found if tally is not None)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, max_tasks_per_child=1) as pool:
        under_way = [pool.submit(one_part, name, first, seconds * processes) for name in names]
        yield from (tally for one in under_way if (tally := one.result()) is not None)


def page(found: list[Tally], minutes: float) -> str:
    """The table of the documentation."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    lines = [
        f"Written by `make torture` on {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, commit {commit}, "
        f"{minutes:.0f} minutes.",
        "",
        "| what was tried | how often | how it ended | failures |",
        "|---|---|---|---|",
    ]
    for one in found:
        ended = ", ".join(f"{count:,} {how}" for how, count in one.ended.most_common())
        lines.append(f"| {one.what} | {one.tried:,} | {ended} | {one.n_failures} |")
    for one in found:
        lines += [f"- {one.what}: {times} x {how}" for how, (times, _) in one.failures.items()]
    return "\n".join(lines) + "\n"


def main(minutes: float, target: Path | None, processes: int) -> int:
    first = int(datetime.datetime.now().timestamp())  # other inputs every time; a failure says which
    found = []
    for tally in tallies(first, 60 * minutes, processes):
        found.append(tally)
        print(*tally.lines(), sep="\n", flush=True)
    if target is not None:
        before, rest = target.read_text(encoding="utf-8").split(START, 1)
        after = rest.split(END, 1)[1]
        target.write_text(f"{before}{START}{page(found, minutes)}{END}{after}", encoding="utf-8")
    return 1 if any(tally.failures for tally in found) else 0


if __name__ == "__main__":
    given = [*sys.argv[1:], *["10", "", "1"][len(sys.argv) - 1 :]]
    sys.exit(main(float(given[0]), Path(given[1]) if given[1] else None, int(given[2])))

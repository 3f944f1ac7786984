"""`make torture`: everything for some minutes, or `HOURS=8` for a release; prints counts, writes a page of the docs.

`python -m tests.torture MINUTES [PAGE]`. A failure ends with exit code 1; its input is kept in `tests/torture/corpus`.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.store.hostile import bases
from tests.store.ordeal import many
from tests.torture import calls, files, folders, memory, tables
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
        "tables": (0.35, lambda clock: tables.run(clock, first, tables.CORPUS)),
        "files": (0.15, lambda clock: files.run(clock, first, files.CORPUS)),
        "models": (0.15, lambda clock: models(clock, first)),
        "folders": (0.1, lambda clock: folders.run(clock, first)),
        "calls": (0.15, calls.run),
        "memory": (0.1, memory.run),
    }


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


def main(minutes: float, target: Path | None) -> int:
    first = int(datetime.datetime.now().timestamp())  # other inputs every time; a failure says which
    found = []
    for share, run in parts(first).values():
        tally = run(Clock(60 * minutes * share))
        if tally is not None:
            found.append(tally)
            print(*tally.lines(), sep="\n", flush=True)
    if target is not None:
        before, rest = target.read_text(encoding="utf-8").split(START, 1)
        after = rest.split(END, 1)[1]
        target.write_text(f"{before}{START}{page(found, minutes)}{END}{after}", encoding="utf-8")
    return 1 if any(tally.failures for tally in found) else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None))

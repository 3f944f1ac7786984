"""`make torture`: everything for some minutes, or `HOURS=8` for a release; prints counts, writes a page of the docs.

`python -m tests.torture MINUTES [PAGE [PROCESSES]]`: parts one after the other, each with its share of the time, or in
several processes. A failure ends with exit code 1; its input is kept in `tests/torture/corpus`.
"""

from __future__ import annotations

import datetime
import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.torture.parts import one_part, parts
from tests.torture.tally import Tally

START, END = "<!-- counts -->\n", "<!-- end of counts -->"


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

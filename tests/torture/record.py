"""What was tried, on which code: a file that only grows, and the table of the documentation, written from it alone."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.torture import code
from tests.torture.code import ROOT
from tests.torture.tally import Tally

FILE = Path(__file__).with_name("tried.jsonl")
START, END = "<!-- counts -->\n", "<!-- end of counts -->"
ASKED = {  # how often at least, before a release; by how the line begins
    "SIGKILL at random moments of a run": 2_000,
    "hostile model files": 2_000_000,
    "random tables": 20_000,
    "CSV, JSON and Parquet": 100_000,
    "limits of address space": 60,
    "workers and drivers": 50,
    "fits one after the other": 10_000,
}
HELD = re.compile(r"Digests of the files that the parts have run: ([^.]*)\.")
WRITTEN_FOR = re.compile(r"for commit (\w*)")
MOST_ENDS = 7  # ways to end that the page names; the others are counted together


def commit() -> str:
    """The commit that is checked out."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def entry(tally: Tally, at: str) -> dict[str, Any]:
    """A line of the file; `at` is the commit that the attempts began at."""
    modules = code.folded(tally.modules)
    return {
        "what": tally.what,
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "commit": at,
        "code": code.digest(modules),
        "seconds": round(tally.seconds),
        "ended": dict(tally.ended),
        "failures": {how: times for how, (times, _) in tally.failures.items()},
        "modules": modules,
    }


def add(tally: Tally, at: str, file: Path = FILE) -> None:
    """One line more."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(entry(tally, at), separators=(",", ":")) + "\n")


def entries(file: Path = FILE) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def holding(known: list[dict[str, Any]]) -> set[str]:
    """The names of code that is what it was: lines that ran it count. Lines of before code had names by part do not."""
    return {one["code"] for one in known if "modules" in one and code.digest(one["modules"]) == one["code"]}


def page(known: list[dict[str, Any]], held: set[str], at: str) -> str:
    """The table: what was tried on code that is still so (`held`), and on every code before it."""
    now = [one for one in known if one["code"] in held]
    lines = [
        f"Written on {known[-1]['date']} for commit {at}: {_hours(now)} hours of processes on its code, "
        f"{_hours(known)} on all code since {known[0]['date']}. Digests of the files that the parts have run: "
        f"{', '.join(sorted(held))}.",
        "",
        "| what was tried | on this code | failures | on all code | asked for a release | how it ended |",
        "|---|---|---|---|---|---|",
    ]
    for what in dict.fromkeys(one["what"] for one in known):
        here, ever = (Total([one for one in those if one["what"] == what]) for those in (now, known))
        ended = (here if here.tried else ever).told()
        asked = next((f"{least:,}" for begin, least in ASKED.items() if what.startswith(begin)), "")
        counts = f"{here.tried:,} | {here.n_failures} | {ever.tried:,} | {asked}"
        lines.append(f"| {what} | {counts} | {ended} |")
    found = Counter[str]()
    for one in known:
        found.update({f"{one['what']}: {how}": times for how, times in one["failures"].items()})
    lines += ["", "Found so far:", ""] if found else []
    return "\n".join([*lines, *(f"- {times} x {_in_markdown(how)}" for how, times in found.items())]) + "\n"


def told_on(text: str) -> tuple[set[str], str]:
    """The names of code and the commit that a page was written for."""
    names, at = HELD.search(text), WRITTEN_FOR.search(text)
    assert names is not None
    assert at is not None
    return set(names[1].split(", ")) - {""}, at[1]


class Total:
    """What became of one kind of attempt, over several lines."""

    def __init__(self, lines: list[dict[str, Any]]) -> None:
        self.ended = Counter[str]()
        for one in lines:
            self.ended.update(one["ended"])
        self.tried = sum(self.ended.values())
        self.n_failures = sum(sum(one["failures"].values()) for one in lines)

    def told(self) -> str:
        first = [f"{count:,} {how}" for how, count in self.ended.most_common(MOST_ENDS) if count]
        rest = self.tried - sum(count for _, count in self.ended.most_common(MOST_ENDS))
        measured = [how for how, count in self.ended.items() if not count]
        return _in_markdown(", ".join([*first, *([f"{rest:,} otherwise"] if rest else []), *measured[-1:]]))


def _hours(lines: list[dict[str, Any]]) -> str:
    return f"{sum(one['seconds'] for one in lines) / 3600:.1f}"


def _in_markdown(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def write(target: Path, file: Path = FILE) -> None:
    """The page with the table of today."""
    before, rest = target.read_text(encoding="utf-8").split(START, 1)
    known = entries(file)
    made = page(known, holding(known), commit())
    target.write_text(f"{before}{START}{made}{END}{rest.split(END, 1)[1]}", encoding="utf-8")


if __name__ == "__main__":  # the page for the code that is checked out, where nothing more is tried
    write(Path(sys.argv[1]))

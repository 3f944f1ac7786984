"""What was tried, on which code: a file that only grows, and the table of the documentation, written from it alone."""

from __future__ import annotations

import datetime
import hashlib
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from tests.torture.tally import Tally

ROOT = Path(__file__).parents[2]
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
MOST_ENDS = 7  # ways to end that the page names; the others are counted together


def code() -> str:
    """A short name for the sources of ilk, whatever commit they are in."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src" / "ilk").rglob("*")):
        if path.suffix in (".py", ".hpp", ".cpp", ".cu", ".js", ".css", ".html"):
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:10]


def commit() -> str:
    """The commit that is checked out."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def entry(tally: Tally, on: str, at: str) -> dict[str, Any]:
    """A line of the file; `on` is the name of the code, `at` the commit that it was begun at."""
    return {
        "what": tally.what,
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "commit": at,
        "code": on,
        "seconds": round(tally.seconds),
        "ended": dict(tally.ended),
        "failures": {how: times for how, (times, _) in tally.failures.items()},
    }


def add(tally: Tally, on: str, at: str, file: Path = FILE) -> None:
    """One line more."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(entry(tally, on, at)) + "\n")


def entries(file: Path = FILE) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def page(known: list[dict[str, Any]]) -> str:
    """The table: what was tried on the code of the last line, and on every code before it."""
    last = known[-1]
    now = [one for one in known if one["code"] == last["code"]]
    hours = sum(one["seconds"] for one in known) / 3600
    lines = [
        f"Written by `make torture` on {last['date']}, commit {last['commit']}: {_spent(now)} on its code "
        f"({last['code']}, a digest of `src/ilk`), {hours:.1f} hours on all code since {known[0]['date']}.",
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


def _spent(lines: list[dict[str, Any]]) -> str:
    return f"{sum(one['seconds'] for one in lines) / 60:.0f} minutes"


def _in_markdown(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def write(target: Path, file: Path = FILE) -> None:
    """The page with the table of today."""
    before, rest = target.read_text(encoding="utf-8").split(START, 1)
    after = rest.split(END, 1)[1]
    target.write_text(f"{before}{START}{page(entries(file))}{END}{after}", encoding="utf-8")

"""What was done to a run: its versions, each a run folder within it, and a history with undo.

`page.json` holds the run that it is of, the table, the options, the entries and which of them is shown. It is written
at one stroke, and a change that was made while looking at another state than the present one is refused.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ilk.analysis.folder import MODEL, SUMMARY
from ilk.errors import IlkError, UsageError, shown
from ilk.store import write_atomically
from ilk.store.container import DIGEST_BYTES

STATE = "page.json"
FOLDERS = ("k", "glance", "changes")
COPIES = ("cells.parquet", "groups.parquet")
MOST_BYTES = 4 * 2**20
VERSION = re.compile(r"(k/\d{1,4}|changes/\d{3,6})?")
_locks: dict[Path, threading.RLock] = {}
_locks_lock = threading.Lock()


class Conflict(UsageError):
    """The run was changed in another window."""


@dataclass(frozen=True)
class Step:
    """One thing that was done, and the version of the run that came of it."""

    what: str
    command: str
    python: str
    version: str = ""


def lock_of(run: Path) -> threading.RLock:
    """The lock of a run: who changes it, holds it."""
    with _locks_lock:
        return _locks.setdefault(run, threading.RLock())


def k_folder(run: Path, k: int) -> Path:
    """Where the answer with so many groups is kept."""
    return run / "k" / str(k)


def has_k(run: Path, k: int) -> bool:
    """Whether that answer is there, whole: its summary is written last."""
    return (k_folder(run, k) / SUMMARY).is_file()


def glance_folder(run: Path, k: int) -> Path:
    """Where a first look at so many groups is kept, until the answer is there."""
    return run / "glance" / str(k)


def has_glance(run: Path, k: int) -> bool:
    return (glance_folder(run, k) / SUMMARY).is_file()


def k_of(version: str) -> int | None:
    """The number of groups of a version, where it is one of those of the search."""
    return int(version.removeprefix("k/")) if version.startswith("k/") else None


def ks_of(summary: Mapping[str, Any]) -> list[int]:
    """The numbers of groups that can be asked for: those of the candidates."""
    return sorted({int(c["k"]) for c in summary["candidates"]} | {int(summary["chosen"]["k"])})


def version_folder(run: Path, version: str) -> Path:
    """The folder of a version, or of a first look at it; refused where there is none."""
    known = VERSION.fullmatch(version) is not None
    path, k = run / version if version else run, k_of(version) if known else None
    if k is not None and not has_k(run, k):
        path = glance_folder(run, k)
    linked = any(part.is_symlink() for part in (path, path.parent))
    if not known or linked or not (path / SUMMARY).is_file():
        raise UsageError(
            "no-version", f"there is no version {shown(version, 40)!r} of this run", do="Load the page anew"
        )
    return path


def read_state(run: Path, summary: Mapping[str, Any]) -> dict[str, Any]:
    """The history of a run; one that the command line wrote has the fit as its only entry."""
    try:
        path = run / STATE
        if path.is_symlink() or path.stat().st_size > MOST_BYTES:
            raise ValueError
        state = json.loads(path.read_bytes())
        _check(state)
        if state["of"] != mark_of(run):
            raise ValueError
        return dict(state)
    except (OSError, ValueError, KeyError, TypeError, IlkError):
        made = summary.get("reproduce") or {}
        python = [text for text in str(made.get("python", "")).splitlines() if "ilk." in text]
        first = Step("Fit", str(made.get("command", "")), python[0] if python else "")
        return new_state(run, None, {}, first)


def mark_of(run: Path) -> str:
    """What tells the run in a folder from another that was there before: the digest at the end of its model."""
    with open(run / MODEL, "rb") as file:
        file.seek(-DIGEST_BYTES, os.SEEK_END)
        return file.read().hex()


def is_older(run: Path) -> bool:
    """Whether what the page made in a folder is of a run that was written over since."""
    try:
        return bool(json.loads((run / STATE).read_bytes())["of"] != mark_of(run))
    except OSError:
        return False
    except (ValueError, KeyError, TypeError):
        return True


def let_go(run: Path) -> None:
    """Take away what the page made of a run that was written over since: it is not of the run that is there now."""
    with lock_of(run):
        for name in FOLDERS:
            if not (run / name).is_symlink():
                shutil.rmtree(run / name, ignore_errors=True)
        for name in (*COPIES, STATE):
            (run / name).unlink(missing_ok=True)


def _check(state: Mapping[str, Any]) -> None:
    entries = state["entries"]
    if not isinstance(state["revision"], int) or not 0 <= int(state["at"]) < len(entries):
        raise ValueError
    for entry in entries:
        if set(entry) != {"what", "command", "python", "version"} or not VERSION.fullmatch(entry["version"]):
            raise ValueError
        if not all(isinstance(text, str) for text in entry.values()):
            raise ValueError
    if not isinstance(state["options"], dict) or not isinstance(state["table"], str | None):
        raise ValueError
    if not isinstance(state["of"], str):
        raise ValueError


def new_state(run: Path, table: str | None, options: Mapping[str, Any], first: Step) -> dict[str, Any]:
    """The history of a run that was just fitted."""
    return {
        "of": mark_of(run),
        "table": table,
        "options": dict(options),
        "entries": [vars(first)],
        "at": 0,
        "revision": 0,
    }


def write_state(run: Path, state: Mapping[str, Any]) -> None:
    write_atomically(run / STATE, (json.dumps(state, indent=1) + "\n").encode(), overwrite=True)


def at_revision(run: Path, summary: Mapping[str, Any], revision: int) -> dict[str, Any]:
    """The history of a run, refused where it is no longer at `revision`."""
    state = read_state(run, summary)
    if state["revision"] != revision:
        raise Conflict(
            "changed-elsewhere", "this run was changed in another window", do="It is shown as it is now"
        )
    return state


def changed(
    run: Path, summary: Mapping[str, Any], revision: int, edit: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """The history after a change, which is refused where the run is no longer at `revision`."""
    with lock_of(run):
        state = at_revision(run, summary, revision)
        edit(state)
        state["revision"] += 1
        write_state(run, state)
        return state


def with_entry(state: dict[str, Any], entry: Step) -> None:
    """Add an entry after the one that is shown; what was undone is forgotten."""
    state["entries"] = [*state["entries"][: state["at"] + 1], vars(entry)]
    state["at"] = len(state["entries"]) - 1


def new_version(run: Path) -> str:
    """A name for the next change."""
    there = [int(path.name) for path in (run / "changes").glob("*") if path.name.isdigit()]
    return f"changes/{max(there, default=0) + 1:03d}"

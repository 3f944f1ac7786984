"""Changes of the groups by hand, made in a process of their own: each is a run folder within the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ilk.analysis.regroup import regroup
from ilk.analysis.run_folder import write_run
from ilk.errors import UsageError, quoted, shown
from ilk.report.html import COLOURS

NAME_CHARACTERS = 120


def change_of(given: Any) -> dict[str, Any]:
    """The one change that the page asks for, checked."""
    if isinstance(given, dict) and len(given) == 1:
        ((what, value),) = given.items()
        if (
            what == "merge"
            and isinstance(value, list)
            and 2 <= len(value) <= 100
            and all(map(_letter, value))
        ):
            return {"merge": value}
        if what == "split" and _letter(value):
            return {"split": value}
        if (
            what == "names"
            and _by_letter(value)
            and all(isinstance(n, str) and n.strip() for n in value.values())
        ):
            return {"names": {mark: name.strip()[:NAME_CHARACTERS] for mark, name in value.items()}}
        if (
            what == "colours"
            and _by_letter(value)
            and all(n in range(1, COLOURS + 1) for n in value.values())
        ):
            return {"colours": value}
    raise UsageError("bad-change", f"{shown(given, 80)!r} is no change of groups", do="Load the page anew")


def _letter(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.isalpha() and len(value) <= 4


def _by_letter(value: Any) -> bool:
    return isinstance(value, dict) and 1 <= len(value) <= 100 and all(map(_letter, value))


def words_of(what: dict[str, Any]) -> str:
    """The change in a few words, for the history."""
    ((name, value),) = what.items()
    if name == "merge":
        return f"Merge {' and '.join(value)}"
    if name == "split":
        return f"Split {value}"
    if name == "names":
        return "Rename " + ", ".join(f"{mark} to “{text}”" for mark, text in value.items())
    return "Colour " + ", ".join(value)


def lines_of(run: str, table: str | None, what: dict[str, Any], to: str) -> dict[str, str]:
    """The command line and the line of Python that do the same, from one folder to another."""
    ((name, value),) = what.items()
    words = ["ilk", "regroup", quoted(run)]
    given = [repr(run)]
    if name in ("merge", "split", "k"):
        words.append(quoted(table or "DATA"))
        given.append(repr(table or "DATA"))
    if name == "merge":
        words += ["--merge", ",".join(value)]
    elif name in ("split", "k"):
        words += [f"--{name}", str(value)]
    else:
        option = {"names": "--name", "colours": "--colour"}[name]
        for mark, text in value.items():
            words += [option, quoted(f"{mark}={text}")]
    words += ["-o", quoted(to)]
    return {"command": " ".join(words), "python": f"ilk.regroup({', '.join(given)}, {name}={value!r})"}


def change(asked: dict[str, Any]) -> None:
    """Do what an order says: from one version of a run to the next."""
    result = regroup(asked["from"], asked["table"], **asked["change"])
    write_run(result, asked["to"], parquet=Path(asked["from"], "assignments.parquet").exists())

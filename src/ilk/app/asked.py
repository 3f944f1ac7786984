"""What the page asks a fit to do: options checked one by one, as a job, and as the two lines that do the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ilk.analysis.asked import k_of
from ilk.analysis.job import Job
from ilk.analysis.run_folder import folder_for
from ilk.errors import UsageError, quoted, shown
from ilk.methods import AUTO, names
from ilk.report.provenance import call, command
from ilk.table.schema import ASKED

Options = dict[str, Any]


def options_of(given: Any) -> Options:
    """The options that the page sent, without those that say nothing; refused where one is not of its form."""
    if not isinstance(given, Mapping):
        raise _refused("options", given)
    unknown = [name for name in given if name not in FORMS]
    if unknown:
        raise _refused(str(unknown[0]), given[unknown[0]])
    made = {}
    for name, value in given.items():
        if value in (None, "", [], {}) or (name in ("k", "method") and value == AUTO):
            continue
        if not FORMS[name](value):
            raise _refused(name, value)
        made[name] = value
    return made


def job_of(path: Path, options: Options, **more: Any) -> Job:
    """The job that these options ask for."""
    plain = {name: value for name, value in options.items() if name not in (*READ_BY, "k")}
    reading = {name: options[name] for name in READ_BY if name in options}
    return Job(str(path), k=k_of(options.get("k", AUTO)), reading=reading, **plain, **more)


def lines_of(table: str, options: Options, to: str | None = None, **more: Any) -> dict[str, str]:
    """The command line and the line of Python that do the same; `to` is the folder where it is not the usual one."""
    reading = {name: options[name] for name in READ_BY if name in options}
    told = {name: value for name, value in options.items() if name not in READ_BY} | more
    k = k_of(told.get("k", AUTO))
    told |= {"k": list(k) if isinstance(k, range) else k, "reading": reading}
    python = next(line for line in call({**told, "reading": {}}, table).splitlines() if "ilk." in line)
    extra = "".join(f", {name}={value!r}" for name, value in reading.items())
    written = "" if to is None or to == folder_for(table) else f" -o {quoted(to)}"
    return {"command": command(told, table) + written, "python": python[:-1] + extra + ")"}


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 1000


def _texts(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 10_000 and all(map(_text, value))


def _number(least: float, most: float, whole: bool = True) -> Callable[[Any], bool]:
    allowed = int if whole else (int, float)
    return lambda value: isinstance(value, allowed) and not isinstance(value, bool) and least <= value <= most


def _by_column(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, dict)
        and len(value) <= 10_000
        and all(_text(n) and fits(v) for n, v in value.items())
    )


def _k(value: Any) -> bool:
    if isinstance(value, str):
        return k_of(value) is not value
    return _number(1, 1000)(value)


READ_BY = ("sheet", "table", "sep", "encoding", "decimal")
FORMS: dict[str, Callable[[Any], bool]] = {
    "k": _k,
    "method": lambda value: value in names(),
    "merge": lambda value: value in ("separation", "none"),
    "types": _by_column(lambda kind: kind in ASKED),
    "ignore": _texts,
    "id": _text,
    "weight": _text,
    "truth": _text,
    "known": _text,
    "column_weights": _by_column(_number(0, 1000, whole=False)),
    "transforms": _by_column(lambda value: value in ("log", "rank", "none")),
    "min_size": _number(1, 10**9),
    "max_size": _number(1, 10**9),
    "seed": _number(0, 2**32),
    "budget": _number(0.1, 10**6, whole=False),
    "match_to": _text,
    **dict.fromkeys(READ_BY, _text),
}


def _refused(name: str, value: Any) -> UsageError:
    return UsageError(
        f"bad-{name}" if name in FORMS else "bad-option",
        f"{shown(name, 40)}: {shown(value, 60)!r} is no value of this option",
        do="Give another",
    )

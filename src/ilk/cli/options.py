"""What was typed on the command line, as a job."""

from __future__ import annotations

import os
import re
from typing import Any

from ilk.cli.process import progress_to_stderr
from ilk.errors import Caution, UsageError, shown

LETTERS = re.compile(r"[A-Za-z]{1,4}")


def job_of(data: Any, options: dict[str, Any]) -> Any:
    from ilk.analysis.job import Job

    return Job(
        data,
        labels=options.get("labels"),
        k=options.get("k", "auto"),
        method=options.get("method", "auto"),
        weight=options["weight"],
        weights_are=options.get("weights_are"),
        types=types_of(options["types"]),
        truth=options["truth"],
        id=options["id_"],
        ignore=options["ignore"],
        columns=options.get("columns") or None,
        scale=None if options["scale"] == "none" else options["scale"],
        seed=options["seed"],
        budget=options.get("budget"),
        threads=options["threads"],
        device=options.get("device", "auto"),
        callback=progress_to_stderr() if not options["quiet"] else None,
        reading=reading_of(options),
        merge=options.get("merge", "separation"),
        min_size=options.get("min_size"),
        max_size=options.get("max_size"),
        match_to=options.get("match_to"),
        memory=options.get("memory"),
        column_weights=weights_of(options.get("column_weight") or ()) or None,
        transforms=transforms_of(options.get("transform") or ()) or None,
        known=options.get("known"),
        must_link=options.get("must_link") or None,
        cannot_link=options.get("cannot_link") or None,
    )


READ_BY = ("sep", "encoding", "decimal", "max_rejects", "sheet", "table", "sql")


def reading_of(options: dict[str, Any]) -> dict[str, Any]:
    given = {name: options.get(name) for name in READ_BY}
    given["missing"] = list(options.get("missing") or ()) or None
    return {name: value for name, value in given.items() if value is not None}


def types_of(given: tuple[str, ...]) -> dict[str, Any] | None:
    """Types files and single kinds, later ones first in rank."""
    from ilk.table.schema import ASKED, kinds_hint, read_types

    asked: dict[str, Any] = {}
    for text in given:
        name, sign, kind = text.rpartition("=")
        if sign and not os.path.exists(text):
            if kind not in ASKED:
                raise UsageError(
                    "unknown-type",
                    f"--types {shown(text)!r}: {shown(kind)!r} is not a column type",
                    do=f"{kinds_hint(kind)}; as COL=TYPE",
                )
            asked[name] = kind
        else:
            asked.update(read_types(text))
    return asked or None


def weights_of(given: tuple[str, ...]) -> dict[str, float]:
    """Weights of columns as they were typed, `income=2`."""
    made: dict[str, float] = {}
    for text in given:
        name, _, weight = text.rpartition("=")
        try:
            made[name] = float(weight)
        except ValueError:
            name = ""
        if not name:
            raise UsageError(
                "bad-column_weights",
                f"--column-weight {shown(text)!r} is no weight of a column",
                do="Use COL=NUMBER: income=2",
            )
    return made


def transforms_of(given: tuple[str, ...]) -> dict[str, str]:
    """Transforms of columns as they were typed, `income=log`."""
    made: dict[str, str] = {}
    for text in given:
        name, _, kind = text.rpartition("=")
        if not name:
            what = f"--transform {shown(text)!r} names no column and transform"
            raise UsageError("bad-transforms", what, do="Use COL=KIND: income=log")
        made[name] = kind
    return made


def names_of(given: tuple[str, ...], k: Any = "auto") -> dict[str, str]:
    """Names of groups as they were typed, `A=newcomers`; refused where no run with this `k` can have the letter."""
    from ilk.report.figures import letter  # imports NumPy

    names: dict[str, str] = {}
    for text in given:
        mark, _, name = (part.strip() for part in text.partition("="))
        if not name or not LETTERS.fullmatch(mark):
            turned = f"Did you mean {shown(name.upper())}={shown(mark)}? " if LETTERS.fullmatch(name) else ""
            raise UsageError(
                "bad-name",
                f"--name {shown(text)!r} names no group",
                do=f"{turned}Use GROUP=TEXT: A=newcomers",
            )
        names[mark.upper()] = name
    most = k if isinstance(k, int) else max(k) if isinstance(k, range) and k else None
    possible = None if most is None else [letter(number) for number in range(most)]
    lost = [mark for mark in names if possible is not None and mark not in possible]
    if lost:
        raise UsageError(
            "unknown-group",
            f"--name {lost[0]}: there is no group {lost[0]!r} among {most}",
            do=f"The letters go from A to {letter(most - 1)}" if most and most > 1 else "Its letter is A",
        )
    return names


def with_names(result: Any, names: dict[str, str]) -> Any:
    """The result with the names that were typed; those for letters that no group has are said to be lost."""
    there = {mark: name for mark, name in names.items() if mark in result.model.letters}
    result = result.rename(there) if there else result
    for mark in [mark for mark in names if mark not in there]:
        text = f"there is no group {mark!r}, so a name for it is not used; the groups are "
        result = result.cautioned(Caution("unknown-group", text + ", ".join(result.model.letters)))
    return result

"""What was typed on the command line, as a job."""

from __future__ import annotations

import os
from typing import Any

from ilk.cli.process import progress_to_stderr
from ilk.errors import UsageError, shown


def job_of(data: Any, options: dict[str, Any]) -> Any:
    from ilk.analysis.prepare import Job

    return Job(
        data,
        k=options["k"],
        method=options["method"],
        weight=options["weight"],
        weights_are=options.get("weights_are"),
        types=types_of(options["types"]),
        truth=options["truth"],
        id=options["id_"],
        ignore=options["ignore"],
        scale=None if options["scale"] == "none" else options["scale"],
        seed=options["seed"],
        budget=options["budget"],
        threads=options["threads"],
        callback=progress_to_stderr() if not options["quiet"] else None,
        reading=reading_of(options),
        merge=options["merge"],
        min_size=options["min_size"],
        max_size=options["max_size"],
        match_to=options["match_to"],
        memory=options.get("memory"),
    )


READ_BY = ("sep", "encoding", "decimal", "max_rejects", "sheet", "table", "sql")


def reading_of(options: dict[str, Any]) -> dict[str, Any]:
    given = {name: options.get(name) for name in READ_BY}
    given["missing"] = list(options.get("missing") or ()) or None
    return {name: value for name, value in given.items() if value is not None}


def types_of(given: tuple[str, ...]) -> dict[str, Any] | None:
    """Types files and single kinds, later ones first in rank."""
    from ilk.table.schema import ASKED, read_types

    asked: dict[str, Any] = {}
    for text in given:
        name, sign, kind = text.rpartition("=")
        if sign and not os.path.exists(text):
            if kind not in ASKED:
                raise UsageError(
                    "unknown-type",
                    f"--types {shown(text)!r}: {shown(kind)!r} is not a column type",
                    do=f"Use COL=TYPE with one of {', '.join(ASKED)}",
                )
            asked[name] = kind
        else:
            asked.update(read_types(text))
    return asked or None


def names_of(given: tuple[str, ...]) -> dict[str, str]:
    """Names of groups as they were typed: `A=newcomers`."""
    names = dict(text.partition("=")[::2] for text in given)
    for text, name in zip(given, names.values(), strict=False):
        if not name.strip():
            raise UsageError(
                "bad-name", f"--name {shown(text)!r} names no group", do="Use GROUP=TEXT: A=newcomers"
            )
    return names

"""Reading a summary back: a plain file of bounded size, and in it all that `ilk explain` and `ilk compare` rely on."""

from __future__ import annotations

import os
from typing import Any

from ilk.errors import ModelFileError, UsageError, shown
from ilk.report.clocks import CLOCK
from ilk.report.summary import SCHEMA, VERSION
from ilk.store.check import (
    Unfit,
    either,
    flag,
    letter,
    listed,
    maybe,
    need,
    number,
    one_of,
    record,
    text,
    whole,
)
from ilk.store.plain_file import NotPlain, check_nesting, parsed, plain_bytes

MAX_BYTES = 2**26
MAX_DEPTH = 32  # a summary nests about nine deep
MAX_CONTAINERS = 2**21
MOST_DECIMALS = 30

SHARE, FIGURE, DECIMALS = maybe(number(0.0, 1.0)), maybe(number()), whole(0, MOST_DECIMALS)
COUNT = number(0.0)
NUMBER_FACT = {"type": one_of("number"), "value": FIGURE, "whole": FIGURE, "decimals": DECIMALS}
LEVEL_FACT = {"type": one_of("category"), "value": SHARE, "whole": SHARE, "category": text()}
FACT = {"column": text(), "distinctive": flag, "sign": one_of("up", "down", "same")}
FEW = {"missing": SHARE, "cells": maybe(whole(0)), "clock": CLOCK}
TERM = {"column": text(), "missing": flag}
RULE = record(
    {
        "distinctive": flag,
        "terms": listed(
            either(
                record(
                    {**TERM, "op": one_of("at most", "above"), "value": FIGURE, "decimals": DECIMALS},
                    {"clock": CLOCK},
                ),
                record({**TERM, "op": one_of("is"), "categories": listed(text())}),
            )
        ),
        "coverage": SHARE,
        "purity": SHARE,
        "rows": COUNT,
    },
    {"base_rate": SHARE},
)
FACTS = listed(either(record({**FACT, **NUMBER_FACT}, FEW), record({**FACT, **LEVEL_FACT}, FEW)))
GROUP = record(
    {
        "letter": letter(),
        "name": text(),
        "rows": COUNT,
        "share": SHARE,
        "facts": FACTS,
    },
    {
        "rule": maybe(RULE),
        "probability": FIGURE,
        "stability": FIGURE,
        "silhouette": FIGURE,
        "nearest": maybe(record({"group": letter()}, {"separation": FIGURE})),
        "unlike": maybe(record({"group": letter(), "facts": FACTS})),
        "pair": maybe(record({"columns": listed(text(), 2, 2), "words": text()})),
    },
)
ROW = record({"row": whole(0), "second": maybe(letter()), "cells": listed(either(text(), maybe(number())))})
ROWS = record(
    {
        "groups": listed(
            record({"columns": listed(text()), "typical": listed(ROW), "border": listed(ROW)}),
        )
    }
)
SUMMARY = record(
    {
        "chosen": record({"k": whole(0)}),
        "groups": listed(GROUP, 1),
        "reproduce": record({"fingerprint": maybe(text(200))}),
    },
    {"rows": maybe(ROWS)},
)


def read_summary(path: str, *, follow: bool = True) -> dict[str, Any]:
    """The summary in a file; a link only if `follow`."""
    try:
        data = plain_bytes(path, MAX_BYTES, follow=follow)
        check_nesting(data, MAX_DEPTH, MAX_CONTAINERS)
        document = parsed(data.decode("utf-8"))
    except FileNotFoundError:
        raise UsageError(
            "no-run", f"there is no run {shown(path, 120)}", do="Give a folder that ilk fit wrote"
        ) from None
    except NotPlain as error:
        raise _refused(path, error.what) from None
    except OSError as error:
        raise ModelFileError(
            "summary-unreadable",
            f"the summary cannot be read: {error.strerror}",
            where=shown(path, 200),
            do="Get the rights to read it, or fit the table again",
        ) from None
    except (ValueError, RecursionError):
        raise _refused(path, "the file is not the summary of a run") from None
    _check(document, path)
    return dict(document)


def _check(document: Any, path: str) -> None:
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise _refused(path, "the file is not the summary of a run")
    try:
        version = listed(whole(0), 2, 2)(document.get("version"), "version")
        if version[0] != VERSION[0]:
            raise ModelFileError(
                "summary-version",
                f"the summary has version {version}, and this ilk reads {VERSION[0]}",
                where=shown(path, 200),
                do="Fit the table again",
            )
        found = SUMMARY(document, "")
        letters = [group["letter"] for group in found["groups"]]
        need(len(set(letters)) == len(letters), "groups", "a letter is there twice")
        parts = (found.get("rows") or {"groups": found["groups"]})["groups"]
        need(len(parts) == len(letters), "rows", "they are not those of the groups")
        for part in parts:
            rows = (*part.get("typical", ()), *part.get("border", ()))
            need(all(len(row["cells"]) == len(part["columns"]) for row in rows), "rows", "a cell is missing")
    except Unfit as unfit:
        raise _refused(path, f"the entry {unfit.name} of the summary is not valid: {unfit.why}") from None


def _refused(path: str, what: str) -> ModelFileError:
    return ModelFileError("not-a-summary", what, where=shown(os.fspath(path), 200), do="Fit the table again")

"""What a user may ask for: several spellings brought to one, and a clear no to what there is not."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from typing import Any

from ilk.analysis.job import Job
from ilk.engines.base import Rows
from ilk.errors import Caution, Option, UsageError, shown
from ilk.fitting.weights import row_weights
from ilk.selection.k_range import k_range
from ilk.selection.sizing import check_sizes, least_groups
from ilk.table.cells import TableColumns
from ilk.table.schema import check_name
from ilk.table.weights import MEANINGS

RANGE = re.compile(r"(\d{1,9})(?:\.\.|-)(\d{1,9})")


def k_of(k: Any) -> Any:
    """A range of K from how it is typed; anything else as it is.

    >>> k_of("2..6"), k_of(5), k_of("auto")
    (range(2, 7), 5, 'auto')
    """
    match = RANGE.fullmatch(k.strip()) if isinstance(k, str) else None
    return k if match is None else range(int(match[1]), int(match[2]) + 1)


def left_out(
    columns: str | Sequence[str] | None, table: TableColumns, roles: Sequence[str | None]
) -> list[str]:
    """The columns that are not to be used where some are asked for; those with another role keep it."""
    if columns is None:
        return []
    wanted = [columns] if isinstance(columns, str) else list(columns)
    if not wanted:
        raise UsageError("unknown-column", "columns=[] names no column", do="Name one, or leave it out")
    for name in wanted:
        check_name(table, name, Option("columns", [shown(name)]))
    kept = {*wanted, *roles}
    return [name for name in table.names if name not in kept]


def check_weights_are(job: Job) -> None:
    if job.weights_are is None:
        return
    known("weights_are", job.weights_are, MEANINGS)
    if job.weight is None:
        given, lacking = Option("weights_are", job.weights_are), Option("weight", "column")
        raise UsageError(
            "bad-weights_are",
            f"{given} was given, and no weights",
            do=f"Name their column: {lacking}",
            options=[given, lacking],
        )


def known(option: str, value: str, allowed: Sequence[str]) -> None:
    """A refusal of a value that an option does not have, with the one that was perhaps meant."""
    if value not in allowed:
        near = difflib.get_close_matches(str(value).lower().replace(" ", "-"), allowed, 1)
        meant = "".join(f"Did you mean {name}? " for name in near)
        given = Option(option, shown(value))
        raise UsageError(
            f"bad-{option}", f"{given} is not known", do=f"{meant}Use {', '.join(allowed)}", options=[given]
        )


def seconds_of(budget: float | None) -> float | None:
    if budget is None:
        return None
    if (
        isinstance(budget, bool)
        or not isinstance(budget, (int, float))
        or not (math.isfinite(budget) and budget > 0)
    ):
        given = Option("budget", budget)
        raise UsageError("bad-budget", f"{given} is not a time", do="Give seconds, above 0", options=[given])
    return float(budget)


def ks_to_try(
    k: Any, rows: Rows, min_size: int | None = None, max_size: int | None = None
) -> tuple[tuple[int, ...], list[Caution]]:
    """The numbers of groups to try, none so low that the rows would not fit in."""
    check_sizes(min_size, max_size, rows.n_rows)
    least = least_groups(max_size, rows.n_rows)
    n_rows = row_weights(rows).n_counting
    ks = k_range(k, n_rows)
    if least > 1:
        enough = tuple(number for number in ks if number >= least)
        if not enough and k != "auto":
            sized, enough_groups = Option("max_size", max_size), Option("k", least)
            raise UsageError(
                "too-few-groups",
                f"{max(ks)} groups cannot hold {rows.n_rows} rows with {sized}",
                do=f"Give {enough_groups} or more, or allow larger groups",
                options=[sized, enough_groups],
            )
        return enough or (least,), []
    if isinstance(k, (range, list, tuple)) and len(ks) < len(k):
        return ks, [
            Caution(
                "k-trimmed", f"K above {n_rows}, the number of rows, is not possible; tried up to {ks[-1]}"
            )
        ]
    return ks, []

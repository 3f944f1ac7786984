"""What a user knows of rows and pairs of rows, as the estimators take it."""

from __future__ import annotations

from typing import Any

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.errors import ResourceError, UsageError

NAMES = "known, must_link and cannot_link"


def need(estimator: Any, **usual: Any) -> None:
    """A refusal of options that have no meaning where something is known of the rows."""
    if not isinstance(estimator.init, str):
        raise UsageError(
            "not-with-constraints",
            f"init is no name of a start, and {NAMES} have starts of their own",
            do="Leave init out, or name a start",
        )
    for name, value in usual.items():
        given = getattr(estimator, name)
        if given != value:
            raise UsageError(
                "not-with-constraints",
                f"{name}={given!r} cannot be kept together with {NAMES}",
                do=f"Use {name}={value!r}",
            )


def in_memory(rows: Rows) -> MemoryRows:
    """The rows, which must be in memory: what one may have depends on others."""
    if isinstance(rows, MemoryRows):
        return rows
    raise ResourceError(
        "not-in-memory",
        f"{NAMES} need all rows in memory, and the table is larger or elsewhere",
        do="Give a sample of the rows",
    )

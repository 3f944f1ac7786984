"""What a user may ask for in several spellings, brought to one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ilk.errors import Option, UsageError, shown
from ilk.table.cells import TableColumns
from ilk.table.schema import check_name

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

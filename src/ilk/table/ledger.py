"""The ledger of rows: how many were read, how many are used, and what became of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ilk.errors import SHOWN_ROWS


@dataclass(frozen=True)
class SetAside:
    """Rows (or lines) of one fate: why, how many, and the numbers of the first few.

    `unit` is "line" (counted from 1, in the file) or "row" (counted from 0, in the table).
    """

    reason: str
    count: int
    first: tuple[int, ...] = ()
    unit: str = "row"


@dataclass(frozen=True)
class Ledger:
    """Rows read = rows used + rows set aside; `skipped` are lines that never were rows.

    >>> Ledger(10, 9, (SetAside("entirely missing", 1, (4,)),)).balanced
    True
    """

    read: int
    used: int
    set_aside: tuple[SetAside, ...] = ()
    skipped: tuple[SetAside, ...] = ()

    @property
    def balanced(self) -> bool:
        return self.read == self.used + sum(part.count for part in self.set_aside)

    def without(self, reason: str, rows: Sequence[int] | Any) -> Ledger:
        """The ledger after `rows` of the used ones were set aside."""
        first = tuple(int(i) for i in rows[:SHOWN_ROWS])
        part = SetAside(reason, len(rows), first)
        return replace(self, used=self.used - len(rows), set_aside=(*self.set_aside, part))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `summary.json`."""

        def plain(parts: tuple[SetAside, ...]) -> list[dict[str, Any]]:
            return [
                {"reason": p.reason, "count": p.count, "first": list(p.first), "unit": p.unit} for p in parts
            ]

        return {
            "read": self.read,
            "used": self.used,
            "set_aside": plain(self.set_aside),
            "skipped": plain(self.skipped),
        }

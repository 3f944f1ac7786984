"""Numbers that are dates or times of day, as people read them.

A clock is plain data: `{"kind": "date", "origin": day}` counts days from a day (itself counted from 1970-01-01), and
`{"kind": "time", "origin": part}` hours from the part of a day at which a column of times is cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ilk.store.check import maybe, number, one_of, record
from ilk.table.spelled_dates import day_text, hour_text

Clock = Mapping[str, Any]
CLOCK = maybe(record({"kind": one_of("date", "time"), "origin": number(-1e7, 1e7)}))
"""What a file may hold in its place."""
UNITS = {"date": " days", "time": " h"}


def clock_text(value: float, decimals: int, clock: Clock) -> str | None:
    """A number as its clock shows it, a date with the time only where the column has `decimals`; None where there is no
    such date.

    >>> clock_text(0.6, 0, {"kind": "date", "origin": 18993.0}), clock_text(6.5, 1, {"kind": "time", "origin": 0.75})
    ('2022-01-01', '00:30')
    """
    if clock["kind"] == "time":
        return hour_text(value / 24 + clock["origin"])
    day = value + clock["origin"]
    try:
        return day_text(day if decimals else day // 1)
    except (OverflowError, ValueError):
        return None


def bound_words(op: str, text: str, clock: Clock) -> str:
    """A condition of a rule: until or after a day, from one hour to another.

    >>> bound_words("above", "20:30", {"kind": "time", "origin": 0.25})
    'from 20:30 to 06:00'
    """
    if clock["kind"] == "date":
        return f"{'until' if op == 'at most' else 'after'} {text}"
    cut = hour_text(clock["origin"])
    return f"from {cut} to {text}" if op == "at most" else f"from {text} to {cut}"

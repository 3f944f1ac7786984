"""How numbers read: thousands by a comma, a plain minus, as many decimals as the column has.

The text is for people, and pastes into other programs; files keep the numbers themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ilk.report.clocks import UNITS, Clock, clock_text

LARGEST_PLAIN = 1e15  # from here on digits say less than an exponent
SMALLEST_PLAIN = 1e-6
MOSTLY_MISSING = 0.5  # of a column in a group, from which facts say how many values they rest on


def count_text(value: float) -> str:
    """A count, or a sum of weights: whole where it is whole.

    >>> count_text(8412), count_text(2.5)
    ('8,412', '2.5')
    """
    return value_text(value, 0 if float(value).is_integer() else 1)


def value_text(value: float | None, decimals: int = 0, clock: Clock | None = None) -> str:
    """A value of a column in the user's units, a date or a time by its clock; a dash where there is none.

    >>> value_text(-4202.4, 0), value_text(37.25, 1), value_text(None)
    ('-4,202', '37.2', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    shown_by = None if clock is None else clock_text(value, decimals, clock)
    if shown_by is not None:
        return shown_by
    size = abs(value)
    text = f"{size:.3g}" if size >= LARGEST_PLAIN or 0 < size < SMALLEST_PLAIN else f"{size:,.{decimals}f}"
    negative = value < 0 and any(digit in "123456789" for digit in text)
    return ("-" if negative else "") + text


def told_value(fact: Mapping[str, Any], key: str = "value") -> str:
    """A figure of a fact about a number."""
    return value_text(fact[key], fact["decimals"], fact.get("clock"))


def told_spread(fact: Mapping[str, Any]) -> str:
    """Its standard deviation: of dates in days, of times in hours."""
    clock = fact.get("clock")
    return value_text(fact["spread"], fact["decimals"]) + (UNITS[clock["kind"]] if clock else "")


def share_text(share: float | None) -> str:
    """A share of the rows: whole percent, one decimal below 1 %, 0 and 100 only when exact.

    >>> [share_text(s) for s in (0.224, 0.004, 1.0, 0.9996, 0.0002, 0.0)]
    ['22%', '0.4%', '100%', '>99%', '<0.1%', '0%']
    """
    if share is None or math.isnan(share):
        return "–"
    percent = 100 * share
    if percent in (0, 100):
        text = f"{percent:.0f}"
    elif percent < 0.05:
        text = "<0.1"
    elif percent < 0.95:
        text = f"{percent:.1f}"
    elif percent > 99.5:
        text = ">99"
    else:
        text = f"{percent:.0f}"
    return f"{text}%"


def tenths_text(share: float) -> str:
    """A share with one decimal, for tables and missing cells.

    >>> tenths_text(0.2238)
    '22.4%'
    """
    return f"{100 * share:.1f}%"


def score_text(value: float | None, decimals: int = 2) -> str:
    """Silhouette, purity, agreement: two decimals without the leading zero.

    >>> score_text(0.934), score_text(1.0), score_text(-0.051), score_text(None)
    ('.93', '1.00', '-.05', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{abs(value):.{decimals}f}".removeprefix("0")
    negative = value < 0 and any(digit in "123456789" for digit in text)
    return ("-" if negative else "") + text


def differs(fact: Mapping[str, Any]) -> bool:
    """Whether a fact sets its group apart: beyond chance, and not about the same as in the table."""
    return bool(fact["distinctive"]) and fact["sign"] != "same"


def varies_less(fact: Mapping[str, Any]) -> bool:
    """Whether a number of a group is about that of the table, but keeps closer to it."""
    return bool(fact["distinctive"]) and fact["sign"] == "same" and fact["type"] == "number"


def few_cells(fact: Mapping[str, Any]) -> str | None:
    """How many values a fact rests on, where most rows of its group have none there."""
    cells = fact.get("cells")
    return (
        f"of {count_text(cells)} known"
        if cells is not None and (fact.get("missing") or 0.0) >= MOSTLY_MISSING
        else None
    )


def level_text(column: str, level: str) -> str:
    """A category with its column: alone it says little.

    >>> level_text("doors", "two")
    'doors = two'
    """
    return f"{column} = {level}"


def seconds_text(seconds: float) -> str:
    """A duration.

    >>> seconds_text(0.42), seconds_text(38.2), seconds_text(150)
    ('0.4 s', '38 s', '2 min 30 s')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def kilobytes(size: int) -> str:
    """The size of a file.

    >>> kilobytes(234_439)
    '234 kB'
    """
    return f"{max(1, round(size / 1000)):,} kB"


def letter(number: int) -> str:
    """The mark of group `number`: A to Z, then AA, AB.

    >>> letter(0), letter(25), letter(26), letter(701), letter(702)
    ('A', 'Z', 'AA', 'ZZ', 'AAA')
    """
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


def plural(number: int, word: str) -> str:
    """
    >>> plural(1, "row"), plural(3, "row")
    ('1 row', '3 rows')
    """
    return f"{count_text(number)} {word}{'' if number == 1 else 's'}"

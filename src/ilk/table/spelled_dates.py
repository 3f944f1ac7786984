"""Dates and times as people write them: the year, the day or the month first, with a time of day or without."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ilk.table.block import Array
from ilk.table.columns import Column

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
OTHER_MONTHS = {"mär": 3, "mrz": 3, "mai": 5, "okt": 10, "dez": 12}
_TIME = (
    r"(?:(?:T|\s+)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))?"
    r"\s?(?P<half>(?i:[ap]m)?)\s?(?P<zone>(?:Z|[+-]\d{2}:?\d{2})?))?$"
)
_CLOCK_TIME = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))?\s?(?P<half>(?i:[ap]m)?)"
)
HALF_HOURS, NEAR_HOURS = 48, 2
"""Of a day, and how many to both sides are counted together where the emptiest is looked for."""
_NUMBERS = r"^(?P<a>\d{1,4})(?P<one>[-/.])(?P<b>\d{1,2})(?P<two>[-/.])(?P<c>\d{1,4})" + _TIME
_DAY_NAMED = r"^(?P<a>\d{1,2})(?P<one>[-/. ]|\. )(?P<b>\p{L}{3,9})\.?(?P<two>[-/. ])(?P<c>\d{4})" + _TIME
_NAMED_DAY = r"^(?P<b>\p{L}{3,9})\.?(?P<one> )(?P<a>\d{1,2})(?P<two>,? )(?P<c>\d{4})" + _TIME
_LOOK = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T\s]|$)|\d{1,2}.{1,2}[^\W\d]{3,9}.+\d{4}"
    r"|[^\W\d]{3,9}\.? \d{1,2},? \d{4}"
)
CENTURY = 70
"""Years of two digits from here on are of the last century, as POSIX has it (strptime)."""


def looks_like_date(text: str) -> bool:
    """Whether a text may be a date."""
    return _LOOK.match(text.strip()) is not None


def date_order(texts: Column) -> tuple[str, bool, float]:
    """The order in which all texts are dates ("" where none is), whether another was as possible, and the share of
    texts that are dates in any.

    >>> date_order(pa.array(["13/04/2021", "01/02/2022"]))
    ('dmy', False, 1.0)
    """
    read = {order: np.isfinite(days_of(texts, order)) for order in ("ymd", "dmy", "mdy")}
    fits = [order for order, good in read.items() if good.all()]
    share = float(np.any([*read.values()], axis=0).mean())
    if not fits:
        return "", False, share
    named = pc.any(pc.match_substring_regex(texts, r"\p{L}{3}")).as_py()
    return fits[0], len(fits) > 1 and not named, share


def days_of(texts: Column, order: str, *, local: bool = False) -> Array:
    """Days since 1970-01-01 that texts say, NaN where they say none in this order; UTC where a zone is named, but
    `local` as the clock on the wall had it.

    >>> days_of(pa.array(["1970-01-02 12:00", "32/01/2020"]), "ymd").tolist()
    [1.5, nan]
    """
    bare = pc.utf8_trim_whitespace(texts)
    days = np.full(len(bare), np.nan)
    for pattern in (_NUMBERS, _DAY_NAMED, _NAMED_DAY):
        left = np.isnan(days)
        if not left.any():
            break
        parts = pc.extract_regex(bare, pattern.replace(r"\d", "[0-9]"))
        part = {f.name: pc.fill_null(pc.struct_field(parts, f.name), "") for f in parts.type}
        if local:
            part["zone"] = pc.if_else(pc.is_valid(part["zone"]), "", part["zone"])
        found = _days(part, order, named=pattern is not _NUMBERS)
        days = np.where(left, found, days)
    return days


def _whole(texts: Column) -> Array:
    known = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
    return np.asarray(known.cast(pa.float64()).to_numpy(zero_copy_only=False))


def _days(part: dict[str, Column], order: str, *, named: bool) -> Array:
    lengths = pc.utf8_length(part["c"]).to_numpy()
    if named:
        day, month, year = _whole(part["a"]), _months(part["b"]), _whole(part["c"])
        good = np.full(len(day), order != "ymd")
    else:
        a, b, c = (_whole(part[key]) for key in "abc")
        year, month, day = {"ymd": (a, b, c), "dmy": (c, b, a), "mdy": (c, a, b)}[order]
        first, middle = (pc.utf8_length(part[key]).to_numpy() for key in "ab")
        short = (lengths == 2) & (first == 2) & (middle == 2)
        good = (first == 4) & (lengths <= 2) if order == "ymd" else (first <= 2) & ((lengths == 4) | short)
        good &= pc.equal(part["one"], part["two"]).to_numpy(zero_copy_only=False)
        if order != "ymd":
            year = np.where(short, year + np.where(year < CENTURY, 2000, 1900), year)
    with np.errstate(invalid="ignore"):
        good = (
            good & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (year >= 1000) & (year <= 2999)
        )
    whole = _civil(np.where(good, year, 1970), np.where(good, month, 1), np.where(good, day, 1))
    time, fine = _time_of_day(part)
    return np.where(good & fine, whole, np.nan) + time


def _months(texts: Column) -> Array:
    known = {name: number for number, name in enumerate(MONTHS, start=1)} | OTHER_MONTHS
    return np.array([known.get(text.casefold()[:3], np.nan) for text in texts.to_pylist()])


def _civil(year: Array, month: Array, day: Array) -> Array:
    """Days of calendar dates; NaN where a month has no such day."""
    months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    start, end = (m.astype("datetime64[D]").astype(np.float64) for m in (months, months + 1))
    found = start + day - 1
    return np.where(found < end, found, np.nan)


def _time_of_day(part: dict[str, Column]) -> tuple[Array, Array]:
    """The share of a day that has passed, less the zone; and whether the clock shows such a time."""
    if not pc.any(pc.not_equal(part["hour"], "")).as_py():
        n_rows = len(part["hour"])
        return np.zeros(n_rows), np.ones(n_rows, dtype=bool)
    hour, minute = np.nan_to_num(_whole(part["hour"])), np.nan_to_num(_whole(part["minute"]))
    second = np.nan_to_num(_whole(pc.replace_substring(part["second"], ",", ".")))
    half = pc.utf8_lower(part["half"])
    late, early = (pc.equal(half, word).to_numpy(zero_copy_only=False) for word in ("pm", "am"))
    hour = np.where(late | early, hour % 12 + 12 * late, hour)
    fine = (hour < 24) & (minute < 60) & (second < 61)
    return (hour * 3600 + minute * 60 + second) / 86_400 - _zone(part["zone"]), fine


def _zone(texts: Column) -> Array:
    """Of zones such as +02:00, in days."""
    known = {"": 0.0, "Z": 0.0}
    for text in set(pc.unique(texts).to_pylist()) - set(known):
        hours, minutes = int(text[1:3]), int(text[-2:])
        known[text] = (-1 if text[0] == "-" else 1) * (hours * 60 + minutes) / 1440
    return np.array([known[text] for text in texts.to_pylist()])


def looks_like_time(text: str) -> bool:
    """Whether a text may be a time of day."""
    return re.match(r"\d{1,2}:\d{2}", text.strip()) is not None


def times_of(texts: Column) -> Array:
    """The part of a day that has passed at times such as 14:35 or 2:35 pm, NaN where a text says none.

    >>> times_of(pa.array(["12:00", "6:00 PM", "25:00"])).tolist()
    [0.5, 0.75, nan]
    """
    pattern = "^" + _CLOCK_TIME.replace(r"\d", "[0-9]") + "$"
    parts = pc.extract_regex(pc.utf8_trim_whitespace(texts), pattern)
    part = {f.name: pc.fill_null(pc.struct_field(parts, f.name), "") for f in parts.type}
    time, fine = _time_of_day({**part, "zone": pc.if_else(pc.is_valid(part["hour"]), "", part["hour"])})
    return np.where(fine & pc.is_valid(parts).to_numpy(zero_copy_only=False), time, np.nan)


def emptiest(times: Array) -> float:
    """The part of the day at which fewest of the `times` are: where the circle of hours is cut to a line.

    >>> emptiest(np.array([0.9, 0.95, 0.0, 0.05]))
    0.4791666666666667
    """
    counts = np.bincount(
        (np.asarray(times) % 1 * HALF_HOURS).astype(np.int64) % HALF_HOURS, minlength=HALF_HOURS
    )
    near = np.arange(-NEAR_HOURS, NEAR_HOURS + 1)
    smooth = counts[(np.arange(HALF_HOURS)[:, None] + near) % HALF_HOURS].sum(axis=1)
    low = smooth == smooth.min()
    run, best, end = 0, 0, 0
    for at in range(2 * HALF_HOURS):  # the longest run of emptiest half-hours, around midnight, too
        run = min(run + 1, HALF_HOURS) if low[at % HALF_HOURS] else 0
        if run > best:
            best, end = run, at
    return float((end - (best - 1) / 2 + 0.5) / HALF_HOURS % 1)


def hour_text(part: float) -> str:
    """The time of day after a part of it has passed.

    >>> hour_text(0.5), hour_text(1.25)
    ('12:00', '06:00')
    """
    minutes = round(float(part) * 1440) % 1440
    return f"{minutes // 60:02}:{minutes % 60:02}"


def day_text(days: float) -> str:
    """Days since 1970-01-01 as a date, with the time where there is one.

    >>> day_text(18993.0), day_text(0.5)
    ('2022-01-01', '1970-01-01 12:00')
    """
    at = datetime(1970, 1, 1) + timedelta(seconds=round(float(days) * 86_400))
    return at.strftime("%Y-%m-%d" if at.time() == datetime.min.time() else "%Y-%m-%d %H:%M")

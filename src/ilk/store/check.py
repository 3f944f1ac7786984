"""Checks of plain data that may come from anywhere: each takes a value and gives it back, or says why it is none.

Checks are made of smaller ones, so that what a file may hold is written down as data:

>>> column = record({"name": text(80), "missing": whole(0)})
>>> column({"name": "age", "missing": 3, "more": None}, "column")
{'name': 'age', 'missing': 3}
>>> column({"name": "age", "missing": -3}, "column")
Traceback (most recent call last):
ilk.store.check.Unfit: column missing: it is not a whole number from 0
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Check = Callable[[Any, str], Any]
"""Takes a value and what it is called; gives the value, or raises `Unfit`."""

MOST_WHOLE = 2**53  # beyond, a float cannot hold every whole number
MOST_TEXT = 2**17  # characters; a cell of a text file has at most so many
LETTER = re.compile(r"[A-Z]{1,8}")
HALVES = re.compile("[\ud800-\udfff]")  # of surrogate pairs: no text by themselves


class Unfit(Exception):
    """A value that cannot be what it should be: its name, and why."""

    def __init__(self, name: str, why: str) -> None:
        self.name, self.why = name, why
        super().__init__(f"{name}: {why}")


def need(good: Any, name: str, why: str) -> None:
    """Raise `Unfit` unless `good`."""
    if not good:
        raise Unfit(name, why)


def text(most: int = MOST_TEXT, pattern: re.Pattern[str] | None = None) -> Check:
    """Unicode text of at most so many characters, which a pattern may describe."""

    def check(value: Any, name: str) -> str:
        need(isinstance(value, str), name, "it is not text")
        if len(value) > most:
            raise Unfit(name, f"it has more than {most} characters")
        need(value.isascii() or not HALVES.search(value), name, "it is not Unicode text")
        need(pattern is None or pattern.fullmatch(value), name, "it has characters that it cannot have")
        return str(value)

    return check


def letter() -> Check:
    """The mark of a group, as ilk makes them: A to Z, then AA, AB."""
    return text(8, LETTER)


def whole(least: int = -MOST_WHOLE, most: int = MOST_WHOLE) -> Check:
    """A whole number, not a flag."""

    def check(value: Any, name: str) -> int:
        if not (isinstance(value, int) and not isinstance(value, bool) and least <= value <= most):
            up_to = f" to {most}" if most < MOST_WHOLE else ""
            raise Unfit(name, f"it is not a whole number from {least}{up_to}")
        return int(value)

    return check


def number(least: float = -math.inf, most: float = math.inf, *, above: float = -math.inf) -> Check:
    """A finite number in a range; `above` is not in it."""

    def check(value: Any, name: str) -> float:
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        need(plain and abs(value) <= sys.float_info.max, name, "it is not a finite number")
        need(least <= value <= most and value > above, name, "it is out of its range")
        return float(value)

    return check


def flag(value: Any, name: str) -> bool:
    """True or false."""
    need(isinstance(value, bool), name, "it is neither true nor false")
    return bool(value)


def anything(value: Any, name: str) -> Any:
    """Any value: for fields that are looked at elsewhere."""
    return value


def one_of(*known: Any) -> Check:
    """One of some texts or numbers."""

    def check(value: Any, name: str) -> Any:
        need(any(type(value) is type(one) and value == one for one in known), name, "it is not known")
        return value

    return check


def maybe(inner: Check) -> Check:
    """What `inner` takes, or nothing."""
    return lambda value, name: None if value is None else inner(value, name)


def either(first: Check, *others: Check) -> Check:
    """What any of the checks takes; the first says why a value is none."""

    def check(value: Any, name: str) -> Any:
        for one in others:
            try:
                return one(value, name)
            except Unfit:
                continue
        return first(value, name)

    return check


def listed(inner: Check, least: int = 0, most: int = MOST_WHOLE) -> Check:
    """A list of what `inner` takes, of a length in a range."""

    def check(value: Any, name: str) -> list[Any]:
        need(isinstance(value, list), name, "it is not a list")
        if not least <= len(value) <= most:
            up_to = f"{least} to {most}" if most < MOST_WHOLE else f"{least} or more"
            raise Unfit(name, f"it does not have {least if least == most else up_to} entries")
        return [inner(item, name) for item in value]

    return check


def texts(least: int = 0, most: int = MOST_WHOLE, each: Check | None = None) -> Check:
    """A list of different texts."""
    inner = listed(text() if each is None else each, least, most)

    def check(value: Any, name: str) -> list[str]:
        made = inner(value, name)
        need(len(set(made)) == len(made), name, "a text is there twice")
        return list(made)

    return check


def record(fields: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """A mapping with the fields named; others, of a later version, are left out."""
    every = {**fields, **(optional or {})}

    def check(value: Any, name: str) -> dict[str, Any]:
        need(isinstance(value, dict), name, "it is not there")
        made = {}
        for key, inner in every.items():
            called = f"{name} {key}".strip()
            if key in value:
                made[key] = inner(value[key], called)
            else:
                need(key not in fields, called, "it is not there")
        return made

    return check


def array(shape: tuple[int, ...], least: float = -math.inf, most: float = math.inf) -> Check:
    """An array of finite numbers of a shape, in a range."""

    def check(value: Any, name: str) -> Array:
        if not (isinstance(value, np.ndarray) and value.dtype == np.float64 and value.shape == shape):
            raise Unfit(name, f"it is not an array of {'x'.join(map(str, shape))} numbers")
        need(np.isfinite(value).all(), name, "it holds NaN or infinity")
        if least > -math.inf:
            out = "it holds a negative number" if least == 0 else "it holds a number out of range"
            need((value >= least).all(), name, out)
        need(most == math.inf or (value <= most).all(), name, "it holds a number out of range")
        return np.asarray(value)

    return check


def places(shape: tuple[int, ...], below: int) -> Check:
    """An array of whole numbers of a shape, from 0 to below a number."""

    def check(value: Any, name: str) -> Array:
        good = isinstance(value, np.ndarray) and value.dtype.kind == "i" and value.shape == shape
        need(good, name, f"it is not an array of {'x'.join(map(str, shape))} whole numbers")
        need(
            ((value >= 0) & (value < below)).all(),
            name,
            f"it holds a number that is not from 0 to {below - 1}",
        )
        return np.asarray(value)

    return check


def rises(values: Any, name: str) -> None:
    """Raise `Unfit` unless every number is above the one before."""
    need(all(a < b for a, b in pairwise(values)), name, "they do not rise")

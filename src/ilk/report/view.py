"""A summary as the blocks of the page read it: groups by letter, words for numbers, what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from ilk.report.figures import count_text, value_text
from ilk.report.html import COLOURS, Html, chip, tag
from ilk.report.html import name as name_html

WORDS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
ARROWS = {"up": "▲", "down": "▼", "same": "≈"}
COLOURED = 12  # groups that fit beside one another; above, tables and lists take the place of grids
DOTS = {"solid": "●●●", "fair": "●●○", "weak": "●○○", "none": "○○○"}
TIERS = {"no clear groups": "none", "not tested": "none"}  # of words that are not their own


def word(number: int) -> str:
    """A small number as a word.

    >>> word(6), word(13)
    ('six', '13')
    """
    return WORDS[number] if 0 <= number < len(WORDS) else count_text(number)


def two(value: float | None, *limits: float) -> str:
    """Probability, stability, silhouette: two decimals, three where a threshold would hide in the rounding.

    >>> two(0.934), two(0.748, 0.75), two(-0.05), two(None)
    ('0.93', '0.748', '-0.05', '–')
    """
    if value is None:
        return "–"
    hidden = any(round(value, 2) == limit != value for limit in limits)
    return f"{value:.{3 if hidden else 2}f}"


class View:
    """The summary with what several blocks ask of it."""

    def __init__(self, summary: Mapping[str, Any]) -> None:
        self.summary = summary
        self.groups: Sequence[Mapping[str, Any]] = summary["groups"]
        self.k = len(self.groups)
        self.number = {group["letter"]: i for i, group in enumerate(self.groups)}
        self.verdict: Mapping[str, Any] = summary["verdict"]

    @cached_property
    def clear(self) -> bool:
        """Whether there are groups at all; if not, what is shown are arbitrary segments."""
        return int(self.summary["chosen"]["k"]) > 1

    @property
    def tested(self) -> bool:
        """Whether there is a verdict: stability was measured, and another number of groups was tried."""
        return str(self.verdict["word"]) != "not tested"

    def colour_rules(self) -> str:
        """Rules that give groups the colours that somebody chose, as the style has them for light and dark."""
        chosen = self.summary.get("colours") or {}
        rules = []
        for letter, colour in chosen.items():
            if letter in self.number and isinstance(colour, int) and 1 <= colour <= COLOURS:
                place = self.number[letter] % COLOURS
                rules.append(
                    f".ilk .g{place},.ilk.g{place}{{--c:var(--g{colour - 1});--on:var(--g{colour - 1}-on)}}"
                )
        return "".join(rules)

    @property
    def parted(self) -> bool:
        """Whether there is more than one group or segment to tell."""
        return self.k > 1

    @property
    def thing(self) -> str:
        return "group" if self.clear else "segment"

    @property
    def tier(self) -> str:
        """The verdict as a class of style."""
        word = str(self.verdict["word"])
        return TIERS.get(word, word)

    @cached_property
    def has_sure(self) -> bool:
        return self.k > 1 and any(group.get("probability") is not None for group in self.groups)

    @cached_property
    def has_stable(self) -> bool:
        return self.k > 1 and any(group.get("stability") is not None for group in self.groups)

    @cached_property
    def has_silhouette(self) -> bool:
        return any(group.get("silhouette") is not None for group in self.groups)

    @cached_property
    def limits(self) -> Mapping[str, float]:
        """The thresholds of the verdict."""
        limits: Mapping[str, float] = self.verdict["thresholds"]
        return limits

    def stable_text(self, value: float | None) -> str:
        return two(value, self.limits["stability_low"], self.limits["stability_min"])

    def stable_class(self, value: float | None) -> str:
        """How a stability is shown: plain, borderline, or too low."""
        if value is None or value >= self.limits["stability_min"]:
            return ""
        return "flag weak" if value < self.limits["stability_low"] else "flag"

    @cached_property
    def profile(self) -> Sequence[Mapping[str, Any]]:
        return self.summary.get("profile") or ()

    @cached_property
    def facts(self) -> list[dict[str, Mapping[str, Any]]]:
        """Per group, its facts by column."""
        return [{fact["column"]: fact for fact in group["facts"]} for group in self.groups]

    @cached_property
    def decimals(self) -> dict[str, int]:
        """Decimals of every column of numbers."""
        return {f["column"]: f["decimals"] for g in self.groups for f in g["facts"] if f["type"] == "number"}

    @cached_property
    def clocks(self) -> dict[str, Mapping[str, Any]]:
        """Those of the columns of dates and times."""
        return {f["column"]: f["clock"] for g in self.groups for f in g["facts"] if f.get("clock")}

    def letter(self, mark: int | str) -> str:
        """The letter of a group given by its letter or its number."""
        return str(self.groups[mark]["letter"]) if isinstance(mark, int) else mark

    def chip(self, letter: str | None, extra: str = "") -> Html:
        """The mark of a group by its letter, a dash for none."""
        if letter is None or letter not in self.number:
            return tag("span", letter or "–")
        return chip(letter, self.number[letter], extra)

    def value(self, column: str, cell: float | str | None) -> Html:
        """A cell of the table in the user's units."""
        if cell is None:
            return tag("span", "missing", class_="blank")
        if isinstance(cell, str):
            return name_html(cell)
        return tag("span", self._text(column, cell))

    def range_text(self, column: str, spread: Mapping[str, Any]) -> str:
        """Least and largest value of a column; whole numbers without decimals."""
        low, high = (self._text(column, spread[end]) for end in ("low", "high"))
        return f"{low} to {high}"

    def _text(self, column: str, cell: float) -> str:
        clock = self.clocks.get(column)
        digits = self._digits(column, cell) if clock is None else self.decimals[column]
        return value_text(cell, digits, clock)

    def _digits(self, column: str, cell: float) -> int:
        digits = self.decimals.get(column, 0)
        return 0 if float(cell).is_integer() and digits <= 1 and not self._has_decimals(column) else digits

    def _has_decimals(self, column: str) -> bool:
        entry = next((e for e in self.profile if e["column"] == column), None)
        spread: Mapping[str, Any] = (entry["distribution"] if entry else None) or {}
        return bool(spread) and not (float(spread["low"]).is_integer() and float(spread["high"]).is_integer())

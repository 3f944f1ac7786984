"""A short rule for a group as data, and as the sentence that the terminal, the page and Python say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ilk.errors import shown
from ilk.report.clocks import bound_words
from ilk.report.figures import plural, share_text, value_text

Op = Literal["at most", "above", "is"]


@dataclass(frozen=True, kw_only=True)
class Term:
    """One condition: a number at most or above `value`, a category among `categories`; `missing` values pass, too."""

    column: str
    op: Op
    value: float | None
    categories: tuple[str, ...]
    missing: bool
    decimals: int
    clock: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Rule:
    """Conditions that pick the rows of a group: how many of the group they cover, how pure what they pick is."""

    group: str
    terms: tuple[Term, ...]
    coverage: float | None
    purity: float | None
    base_rate: float | None  # purity of a rule that picks every row
    rows: int
    f: float
    distinctive: bool

    def __str__(self) -> str:
        return rule_text(asdict(self), self.group)

    __repr__ = __str__


def rule_text(rule: Mapping[str, Any] | None, letter: str) -> str:
    """The short rule with its coverage, and its purity beside that of the whole table."""
    if not rule or not rule["distinctive"]:
        return "no short rule describes this group"
    return f"{', and '.join(term_text(term) for term in rule['terms'])}: {figures_text(rule, letter)}"


def figures_text(rule: Mapping[str, Any], letter: str) -> str:
    """How well a rule does."""
    base = rule.get("base_rate")
    return (
        f"covers {share_text(rule['coverage'])} of the group; "
        f"{share_text(rule['purity'])} of the {plural(rule['rows'], 'row')} it picks are {letter}"
        + ("" if base is None else f", {share_text(base)} of all rows")
    )


def term_text(term: Mapping[str, Any]) -> str:
    """One condition of a rule."""
    blank = " or missing" if term["missing"] else ""
    column = shown(term["column"], 30)
    if term["op"] == "is":
        return f"{column} is {' or '.join(shown(level, 30) for level in term['categories'])}{blank}"
    return f"{column} {bound_text(term)}{blank}"


def bound_text(term: Mapping[str, Any]) -> str:
    """A number at most or above a value; of dates until or after a day."""
    clock = term.get("clock")
    text = value_text(term["value"], term["decimals"], clock)
    return f"{term['op']} {text}" if clock is None else bound_words(term["op"], text, clock)

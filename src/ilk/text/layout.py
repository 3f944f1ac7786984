"""Text on a terminal: how wide, in which colours, words that wrap under a label."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ilk.errors import escaped, spelled

LABEL = 15
WIDEST, NARROWEST = 100, 60
CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36}
OURS = re.compile(r"(\x1b\[(?:\d\d?;?)+m)")  # what `paint` writes
PLAIN = str.maketrans(
    {"▲": "^", "▼": "v", "≈": "~", "·": "|", "−": "-", "–": "-", "…": "...",
     "∞": "inf", "█": "#", "░": "."}
)  # fmt: skip

Piece = tuple[str, str]
"""Text and its styles, separated by blanks."""
Word = list[Piece]
"""Pieces that stay on one line where they fit, with blanks between them."""


@dataclass(frozen=True)
class Surface:
    """What is written to: how wide, with colour or not, in which encoding."""

    width: int = WIDEST
    colour: bool = False
    encoding: str = "utf-8"
    command_line: bool = False

    @property
    def columns(self) -> int:
        return max(NARROWEST, min(WIDEST, self.width))

    def say(self, text: str, options: Iterable[Mapping[str, str]]) -> str:
        """Advice in the language of the reader: the options it names as they are typed on a command line."""
        if not self.command_line:
            return text
        return spelled(text, [(option["python"], option["command_line"]) for option in options])

    def paint(self, text: str, styles: str) -> str:
        """The text in some styles; whatever it holds, no character of it acts."""
        text = escaped(text)
        if not self.colour or not styles or not text:
            return text
        codes = ";".join(str(CODES[style]) for style in styles.split())
        return f"\x1b[{codes}m{text}\x1b[0m"

    def fit(self, text: str) -> str:
        """Text that this surface can show: plain marks without UTF-8, escapes for what cannot be encoded and for what
        would act, but for the ends of lines and our own colours."""
        parts = OURS.split(text) if self.colour else [text]
        text = "".join(part if OURS.fullmatch(part) else escaped(part, "\n") for part in parts)
        if self.encoding.lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig"):
            return text
        return text.translate(PLAIN).encode(self.encoding, "backslashreplace").decode(self.encoding)


def cells(text: str) -> int:
    """Columns that a text takes on a terminal.

    >>> cells("abc"), cells("日本")
    (3, 4)
    """
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def line(label: str, pieces: Iterable[Piece], surface: Surface, label_style: str = "dim") -> list[str]:
    """A label on the left and words that wrap under themselves."""
    gap = max(1 if cells(label) <= LABEL else 2, LABEL + 1 - cells(label))
    head = surface.paint(label, label_style) + " " * gap
    return wrap(head, cells(label) + gap, words_of(pieces), LABEL + 1, surface)


def words_of(pieces: Iterable[Piece]) -> list[Word]:
    return [[(word, styles)] for text, styles in pieces for word in text.split(" ")]


def wrap(head: str, used: int, words: Iterable[Word], indent: int, surface: Surface) -> list[str]:
    """Words after `head`, which takes `used` cells; further lines are indented. Long words break."""
    lines, here, empty = [], head, True
    room = surface.columns - indent
    for word in words:
        for part in [word] if _size(word) <= room else words_of(word):
            size = _size(part)
            if not empty and used + 1 + size > surface.columns:
                lines.append(here.rstrip())
                here, used, empty = " " * indent, indent, True
            here += ("" if empty else " ") + " ".join(surface.paint(*piece) for piece in part)
            used, empty = used + size + (0 if empty else 1), False
    return [*lines, here.rstrip()]


def _size(word: Word) -> int:
    return sum(cells(text) for text, _ in word) + len(word) - 1

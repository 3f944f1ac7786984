"""Rows as points in the colour and with the mark of their group, and what stands for which group.

There are six colours; a group whose colour is there already has another mark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from ilk.report.html import COLOURS, Html, group_class, name, tag
from ilk.report.svg import num, svg
from ilk.report.view import View

GROWN = (1.0, 1.6, 2.4)  # marks of rows that are less certain
NAME_CHARACTERS = 60
OUTLINES = (
    "m -2.8 2.3 l 2.8 -4.8 l 2.8 4.8 z",  # triangle
    "m -3 0 h 6 m -3 -3 v 6",  # plus
    "m -2.3 -2.3 l 4.6 4.6 m 0 -4.6 l -4.6 4.6",  # cross
    "m -2.3 -2.3 h 4.6 v 4.6 h -4.6 z",  # hollow square
    "m -3.2 0 h 6.4",  # bar
)
N_MARKS = 2 + len(OUTLINES)
DOT, SQUARE = 0, N_MARKS - 1  # ends of strokes without length: the first and the last


def mark_of(number: int) -> int:
    """The mark of a group: another one each time the colours begin anew.

    >>> [mark_of(g) for g in (0, 5, 6, 24, 41, 42)]
    [0, 0, 1, 4, 6, 0]
    """
    return number // COLOURS % N_MARKS


def point_paths(
    view: View, points: Mapping[str, Any], at: Callable[[float, float], tuple[float, float]]
) -> list[Html]:
    """One path for each group and size."""
    strokes: dict[tuple[int, int], list[str]] = defaultdict(list)
    for x, y, group, size in zip(points["x"], points["y"], points["group"], points["size"], strict=True):
        strokes[size, group].append(_stroke(mark_of(group), *at(x, y), size))
    parts = []
    for (size, group), path in sorted(strokes.items()):
        letter, mark = view.groups[group]["letter"], mark_of(group)
        plain = view.k < 2
        if size == 2 and mark == DOT and not plain:
            parts.append(tag("path", d="".join(path), class_="points ring", data_group=letter))
        classes = f"{_class(mark, size)} {'plain' if plain else colour_of(group)}"
        parts.append(tag("path", d="".join(path), class_=classes, data_group=letter))
    return parts


def colour_of(group: int) -> str:
    """The class of the colour alone: the mark says the rest."""
    return group_class(group).split()[0]


def _class(mark: int, size: int) -> str:
    if DOT < mark < SQUARE:
        return "points outline"
    return f"points s{size}" + (" square" if mark == SQUARE else "")


def _stroke(mark: int, x: float, y: float, size: int) -> str:
    start = f"M{x:.1f} {y:.1f}"
    if mark in (DOT, SQUARE):
        return f"{start}h0"
    parts = OUTLINES[mark - 1].split()
    return start + " ".join(p if p.isalpha() else num(float(p) * GROWN[size]) for p in parts)


def swatch(group: int) -> Html:
    """The mark of a group as it stands on the map."""
    path = tag(
        "path", d=_stroke(mark_of(group), 7, 7, 1), class_=f"{_class(mark_of(group), 1)} {colour_of(group)}"
    )
    return svg(14, 14, path, class_="swatch")


def legend(view: View) -> Html | None:
    """Every group with its mark, letter and name."""
    if view.k < 2:
        return None
    lines = [
        tag("li", swatch(i), tag("b", group["letter"]), " ", name(group["name"], NAME_CHARACTERS))
        for i, group in enumerate(view.groups)
    ]
    return tag("ul", lines, class_="legend")

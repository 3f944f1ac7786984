"""Pairs of columns that show groups where no single column does, drawn under the map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ilk.report.blocks.points import legend, point_paths
from ilk.report.figures import value_text
from ilk.report.html import Html, name, tag
from ilk.report.pairs import STEPS
from ilk.report.svg import Axis, line, svg, text
from ilk.report.view import View

WIDTH, HEIGHT = 470.0, 350.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 458.0, 12.0, 300.0
NAME_CHARACTERS = 14


def render(view: View) -> Html | None:
    """One drawing for each pair, side by side."""
    drawn = view.summary.get("pairs") or ()
    if not drawn:
        return None
    figures = [_figure(view, pair) for pair in drawn]
    under = None if view.summary.get("map") else legend(view)  # the map above has it
    return tag("div", figures, under, id="pairs", class_="pairs")


def _figure(view: View, pair: Mapping[str, Any]) -> Html:
    x, y = (name(column) for column in pair["columns"])
    chips = [[" ", view.chip(letter)] for letter in pair["groups"]]
    caption: list[Any] = ["Neither column alone shows", chips, "; both together do."]
    if not pair["points"]:
        caption.append(" Single rows are left out, as asked.")
    return tag(
        "figure",
        tag("h3", y, " by ", x),
        tag("p", caption, class_="cap"),
        _chart(view, pair) if pair["points"] else None,
    )


def _chart(view: View, pair: Mapping[str, Any]) -> Html:
    across, up = Axis(0, STEPS, LEFT, RIGHT), Axis(0, STEPS, BOTTOM, TOP)
    first, second = pair["axes"]
    parts: list[Any] = [line(LEFT, BOTTOM, RIGHT, BOTTOM, "axis"), line(LEFT, TOP, LEFT, BOTTOM, "axis")]
    for at, label in _ticks(first, across):
        parts += [line(at, BOTTOM, at, BOTTOM + 4, "axis"), text(at, BOTTOM + 18, label, "", "middle")]
    for at, label in _ticks(second, up):
        parts += [line(LEFT - 4, at, LEFT, at, "axis"), text(LEFT - 8, at + 4, label, "", "end")]
    parts += [
        text((LEFT + RIGHT) / 2, BOTTOM + 40, _short(first["column"], 48), "ink", "middle"),
        tag("g", text(0, 0, _short(second["column"], 36), "ink", "middle"),
            transform=f"translate(12 {(TOP + BOTTOM) / 2:.0f}) rotate(-90)"),
    ]  # fmt: skip
    sizes = {**pair["points"], "size": [0] * len(pair["points"]["x"])}
    parts += point_paths(view, sizes, lambda px, py: (across(px), up(py)))
    label = f"{second['column']} by {first['column']}, by group"
    return svg(WIDTH, HEIGHT, parts, label=label, class_="large")


def _ticks(axis: Mapping[str, Any], scale: Axis) -> list[tuple[float, str]]:
    if axis["categories"] is not None:
        step = STEPS / max(len(axis["categories"]), 1)
        names = [_short(level, NAME_CHARACTERS) for level in axis["categories"]]
        return [(scale((i + 0.5) * step), level) for i, level in enumerate(names)]
    own = Axis(axis["from"], axis["to"], scale(0), scale(STEPS))
    ticks = own.ticks(4)
    digits = max(_decimals(tick) for tick in ticks)
    return [(own(tick), value_text(tick, min(digits, 6))) for tick in ticks]


def _decimals(value: float) -> int:
    """Decimals without which ticks would read alike."""
    text = f"{value:.6f}".rstrip("0")
    return len(text.split(".")[1])


def _short(label: str, most: int) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"

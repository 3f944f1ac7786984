"""Block 4: the rows on two axes, named by the columns they are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import cos, hypot, radians, sin
from typing import Any

from ilk.report.blocks import pairs
from ilk.report.blocks.points import colour_of, legend, point_paths
from ilk.report.figures import plural, share_text
from ilk.report.html import Html, fold, group_class, name, section, table, tag
from ilk.report.plane import variable_text
from ilk.report.svg import circle, line, num, rect, svg, text
from ilk.report.view import COLOURED, View

WIDTH = 640.0
TALLEST, FLATTEST = 640.0, 220.0
MARGIN = 30.0
END_CHARACTERS = 44  # of the names at one end of an axis, so that both ends fit on a line
LITTLE = 0.30  # share of the variation below which the two axes are said to show little
TITLES = {
    "PCA": "principal components",
    "MCA": "multiple correspondence analysis",
    "FAMD": "factor analysis of mixed data",
}


def render(view: View) -> Html:
    title = "Map of the rows"
    made = view.summary.get("map")
    if not made:
        return section(
            4,
            title,
            tag(
                "p",
                "There are too few columns or rows for a map: the profile shows all there is.",
                class_="sub",
            ),
        )
    left = tag("figure", chart(view, made), legend(view))
    right = [_show(view), _loadings(made), _sizes(view, made), _numbers(view, made)]
    return section(
        4,
        title,
        tag("p", _words(view, made), class_="sub"),
        tag("div", left, tag("div", right), class_="wide-left"),
        pairs.render(view),
    )


def _words(view: View, made: Mapping[str, Any]) -> list[Any]:
    both = sum(made["share"])
    share = (
        f"The two axes show {share_text(both)} of the variation, so groups that overlap here can "
        f"still be separated in the table."
    )
    parts: list[Any] = [
        "Every dot is a row, placed so that similar rows lie close. ",
        tag("span", share, class_="low" if both < LITTLE else None),
    ]
    if view.k > 1:
        parts.append(" Ellipses hold about nine rows in ten of a group.")
    if made["rows_shown"] < made["rows"]:
        parts.append(
            f" Drawn: {plural(made['rows_shown'], 'row')} of {plural(made['rows'], 'row')}, small groups whole."
        )
    if not made["points"]:
        parts.append(" Single rows are left out, as asked.")
    return parts


def chart(view: View, made: Mapping[str, Any]) -> Html:
    """Points by group and size, ellipses over them, letters at the centres, ends of the axes named."""
    at, scale, height = placement(made)
    zero = at(*made["origin"])
    full = height + 2 * MARGIN
    parts: list[Any] = [
        line(MARGIN, zero[1], WIDTH - MARGIN, zero[1], "hair"),
        line(zero[0], MARGIN, zero[0], MARGIN + height, "hair"),
    ]
    shapes, marks = [], []
    for i, ellipse in enumerate(made["ellipses"]):
        if ellipse is None or view.k < 2:
            continue
        x, y = at(ellipse["x"], ellipse["y"])
        shape = None
        if ellipse["long"] > 0:
            shape = tag(
                "ellipse", rx=num(ellipse["long"] * scale), ry=num(ellipse["short"] * scale),
                transform=f"translate({num(x)} {num(y)}) rotate({num(-ellipse['angle'])})", class_="ellipse",
            )  # fmt: skip
        letter = view.groups[i]["letter"]
        shapes.append(tag("g", shape, class_=group_class(i), data_group=letter))
        disc = [circle(x, y, 11, "fill"), text(x, y + 4, letter, "on small", "middle")]
        marks.append(
            tag(
                "g",
                disc,
                class_=colour_of(i),
                data_group=letter,
                data_tip=f"{letter}: {view.groups[i]['name']}",
            )
        )
    points = point_paths(view, made["points"], at) if made["points"] else []
    parts += [shapes, points, marks, _names(made, full, zero[0])]
    return tag("div", svg(WIDTH, full + 26, parts, label=_label(view), class_="large"), id="map")


def placement(made: Mapping[str, Any]) -> tuple[Callable[[float, float], tuple[float, float]], float, float]:
    """Where the picture has a point of the map; its scale and the height of what is drawn."""
    (low_x, low_y), (wide, tall) = _frame(made)
    inner = WIDTH - 2 * MARGIN
    scale = inner / wide
    height = min(max(tall * scale, FLATTEST), TALLEST)
    scale = min(scale, height / tall)
    left = MARGIN + (inner - wide * scale) / 2
    bottom = MARGIN + height - (height - tall * scale) / 2

    def at(x: float, y: float) -> tuple[float, float]:
        return left + (x - low_x) * scale, bottom - (y - low_y) * scale

    return at, scale, height


def _frame(made: Mapping[str, Any]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where the map begins and how far it goes, so that every point and every ellipse is within."""
    low, high = [0.0, 0.0], [max(float(extent), 1.0) for extent in made["extent"]]
    for ellipse in made["ellipses"]:
        if ellipse is None:
            continue
        turn = radians(ellipse["angle"])
        for axis, (along, beside) in enumerate(((cos(turn), sin(turn)), (sin(turn), cos(turn)))):
            reach, centre = hypot(ellipse["long"] * along, ellipse["short"] * beside), ellipse["xy"[axis]]
            low[axis], high[axis] = min(low[axis], centre - reach), max(high[axis], centre + reach)
    return (low[0], low[1]), (high[0] - low[0], high[1] - low[1])


def _label(view: View) -> str:
    return f"Map of the rows in {plural(view.k, 'group')}" if view.k > 1 else "Map of the rows"


def _names(made: Mapping[str, Any], full: float, zero: float) -> list[Html]:
    """What lies at the ends of the axes."""

    def listing(names: Sequence[str]) -> str:
        short = [n if len(n) <= 24 else n[:23] + "…" for n in names]
        while len(short) > 1 and len(", ".join(short)) > END_CHARACTERS:
            short.pop()
        return ", ".join(short)

    across, up = made["ends"]
    side, anchor = (zero + 6, "start") if zero < WIDTH / 2 else (zero - 6, "end")
    first, second = (share_text(share) for share in made["share"])
    parts = [
        text(WIDTH / 2, full + 20, f"axis 1: {first} of the variation, axis 2: {second}", "m small", "middle")
    ]
    if across["low"]:
        parts.append(text(0, full, "← " + listing(across["low"]), "ink"))
    if across["high"]:
        parts.append(text(WIDTH, full, listing(across["high"]) + " →", "ink", "end"))
    if up["high"]:
        parts.append(text(side, 14, "↑ " + listing(up["high"]), "ink", anchor))
    if up["low"]:
        parts.append(text(side, full - 18, "↓ " + listing(up["low"]), "ink", anchor))
    return parts


def _show(view: View) -> Html | None:
    if not 1 < view.k <= 3 * COLOURED:
        return None
    buttons = [
        tag(
            "button",
            view.chip(g["letter"]),
            type="button",
            data_group=g["letter"],
            aria_pressed="false",
            aria_label=f"Show only {g['letter']}",
        )
        for g in view.groups
    ]
    return tag("div", tag("span", "Show only"), buttons, class_="tools show js")


def _loadings(made: Mapping[str, Any]) -> Html:
    """Correlations with both axes as bars."""
    entries = made["loadings"]
    row, width, middle, reach = 22.0, 420.0, (230.0, 360.0), 50.0
    parts: list[Any] = [
        text(middle[0], 12, "Axis 1", "b", "middle"),
        text(middle[1], 12, "Axis 2", "b", "middle"),
    ]
    for j, entry in enumerate(entries):
        y = 24 + j * row
        label = variable_text(entry)
        parts.append(text(0, y + 11, label if len(label) <= 24 else label[:23] + "…", "ink"))
        for x, value in zip(middle, (entry["x"], entry["y"]), strict=True):
            start = x + min(value, 0.0) * reach
            tip = f"{label}: correlation {value:.2f}"
            parts.append(
                rect(start, y + 2, abs(value) * reach, 11, "ink" if abs(value) > 0.5 else "grey", tip)
            )
    bottom = 24 + len(entries) * row
    parts += [line(x, 20, x, bottom, "axis") for x in middle]
    caption = (
        "Bar to the right: high values lie to the right (axis 1) or at the top (axis 2). Full "
        "length is a correlation of 1."
    )
    drawing = svg(width, bottom + 4, parts, label="Correlation of the columns with the two axes")
    return tag("figure", tag("h3", "What the axes are made of"), tag("p", caption, class_="cap"), drawing)


def _sizes(view: View, made: Mapping[str, Any]) -> Html | None:
    if not view.has_sure or not made["points"]:
        return None
    unsure = view.summary["row_counts"]["uncertain"]
    sure, middle = made["sizes"]
    words = (
        f"Probability of its group. Small: {sure:.2f} or more. Middle: {middle:.2f} to {sure:.2f}. Large with a ring: "
        f"below {middle:.2f}, {plural(unsure, 'row')}; the lowest are in block 7."
    )
    return tag("figure", tag("h3", "Size of a dot"), tag("p", words, class_="cap"))


def _numbers(view: View, made: Mapping[str, Any]) -> Html:
    lines = [
        [
            name(e["column"]),
            name(e["category"] or ""),
            f"{e['x']:.2f}",
            f"{e['y']:.2f}",
        ]
        for e in made["loadings"]
    ]
    note = tag(
        "p", f"Axes by {TITLES[made['method']]}; correlations of the columns with them.", class_="note"
    )
    return fold(
        "Numbers behind the map",
        table(["column", "category", "axis 1", "axis 2"], lines, numeric=(2, 3), label="Loadings", sort=True),
        note,
    )

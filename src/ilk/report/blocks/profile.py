"""Block 3: every column in every group, a small distribution in each cell, compared with the whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ilk.report.figures import count_text, plural, share_text, told_spread, told_value
from ilk.report.html import Html, chip, fold, group_class, name, section, table, tag
from ilk.report.svg import rect, svg
from ilk.report.view import ARROWS, COLOURED, View

LEVELS_SHOWN = 4
BOLD_CHANGE = 0.15
HEAT_STEPS = (0.25, 0.5, 1.0, 1.75)  # spreads of the table; for a category a change of share is four times it
TABLE_COLUMNS = 50  # in the numbers behind the grid


def render(view: View) -> Html:
    title = "Profile: every column in every group"
    told = [entry for entry in view.profile if entry["distribution"]]
    rest = [entry for entry in view.profile if not entry["distribution"]]
    if not told:
        return section(3, title, tag("p", "No column has a value to show.", class_="sub"))
    if not view.parted:
        text = "There is a single group: the columns of the whole table are in block 8."
        return section(3, title, tag("p", text, class_="sub"))
    parts: list[Any]
    if view.k > COLOURED:
        parts = [_heat(view, told)]
    else:
        text = (
            "Colour: rows of the group. Grey: the whole table, scaled to the same area. ✓ marks a "
            "column that distinguishes this "
            "group from the table (its divergence outweighs the BIC penalty of its parameters). Next to the "
            "name: relevance, the mean divergence in nats per row. Pale "
            "cells are like the table."
        )
        lines = [_head(view), *(_line(view, entry, told) for entry in told)]
        parts = [tag("p", text, class_="sub"), _order(view), tag("div", lines, id="profile")]
    parts += [_rest(view, rest), _numbers(view, told)]
    return section(3, title, parts)


def rules(view: View) -> str:
    """Style that depends on the data: as many cells as groups."""
    k, name_width = min(view.k, COLOURED), 190 if view.k <= 8 else 130
    made = f".ilk .line{{grid-template-columns:{name_width}px repeat({k},minmax(0,1fr))}}"
    return (
        made
        + "@media(max-width:1000px){.ilk .line{grid-template-columns:120px repeat("
        + f"{k},minmax(0,1fr));gap:0 9px}}}}"
    )


def _order(view: View) -> Html:
    buttons = [tag("button", "relevance", type="button", data_by="all", aria_pressed="true")]
    buttons += [
        tag("button", g["letter"], type="button", data_by=f"g{i}", aria_pressed="false")
        for i, g in enumerate(view.groups)
    ]
    buttons.append(tag("button", "name", type="button", data_by="name", aria_pressed="false"))
    return tag("div", tag("span", "Order by"), buttons, class_="tools order js")


def _head(view: View) -> Html:
    cells = [tag("div", chip(g["letter"], i), f" {count_text(g['rows'])}") for i, g in enumerate(view.groups)]
    return tag("div", tag("div", "column and relevance"), cells, class_="line head")


def _line(view: View, entry: Mapping[str, Any], told: Sequence[Mapping[str, Any]]) -> Html:
    most = max(told[0]["relevance"], 1e-9)
    missing = _blank(view, entry["column"])
    spread = entry["distribution"]
    if entry["type"] == "number":
        about = view.range_text(entry["column"], spread)
    else:
        about = plural(len(spread["categories"]) + spread["others"], "category").replace(
            "categorys", "categories"
        )
    worth = tag(
        "span",
        svg(
            100,
            5,
            rect(0, 0, 100, 5, "track"),
            rect(0, 0, 100 * entry["relevance"] / most, 5, "ink"),
            stretch=True,
        ),
        f"{entry['relevance']:.2f}",
        class_="worth",
    )
    cut = tag("small", "extreme values are in the outer bars") if spread.get("clipped") else None
    described = None if entry["used"] else tag("small", "described, not used")
    head = tag(
        "div",
        tag("div", name(entry["column"]), tag("small", about + missing), cut, described),
        worth,
        class_="name",
    )
    draw = _histogram if entry["type"] == "number" else _levels
    nats = {f"data_g{i}": f"{view.facts[i][entry['column']]['nats']:.4f}" for i in range(view.k)}
    cells = [_cell(view, i, entry, draw) for i in range(view.k)]
    return tag(
        "div",
        head,
        cells,
        class_="line",
        data_all=f"{entry['relevance']:.4f}",
        data_name=entry["column"].lower(),
        **nats,
    )


def _blank(view: View, column: str) -> str:
    found = next((c for c in view.summary["table"]["columns"] if c["name"] == column), None)
    return f" · {count_text(found['missing'])} missing" if found and found["missing"] else ""


def _cell(view: View, i: int, entry: Mapping[str, Any], draw: Any) -> Html:
    fact = view.facts[i][entry["column"]]
    mark = chip(view.groups[i]["letter"], i)
    if not sum(entry["distribution"]["groups"][i]):
        return tag("div", mark, tag("span", "all missing", class_="blank"), class_="cell off")
    tick = "✓" if fact["distinctive"] else ""
    tip = f"{view.groups[i]['letter']}, {entry['column']}: {fact['nats']:.2f} nats" + (
        f", {share_text(fact['missing'])} missing" if fact["missing"] else ""
    )
    value: Any = ""
    if entry["type"] == "number":
        value = tag(
            "b",
            tag("span", ARROWS[fact["sign"]], class_="arrow"),
            told_value(fact),
        )
    foot = tag("div", tag("span", value), tag("span", tick), class_="v")
    return tag(
        "div",
        mark,
        draw(i, entry["distribution"]),
        foot,
        class_="cell" if fact["distinctive"] else "cell off",
        data_tip=tip,
    )


def _histogram(i: int, spread: Mapping[str, Any]) -> Html:
    """Bars of the group over those of the table, both to area one, on one height for the column."""
    shares = [[v / max(sum(c), 1e-300) for v in c] for c in spread["groups"]]
    whole = [v / max(sum(spread["whole"]), 1e-300) for v in spread["whole"]]
    top = max(max(whole), *(max(s) for s in shares))
    parts = [
        tag("path", d=bars([v / top for v in whole], 0.0), class_="whole"),
        tag("path", d=bars([v / top for v in shares[i]], 0.06), class_=f"fill {group_class(i)}"),
    ]
    return svg(100, 44, parts, stretch=True)


def bars(heights: Sequence[float], gap: float) -> str:
    """Bars over 100 by 44 as one path; `gap` is left free on both sides of each, as a part of its width.

    >>> bars([0.5, 0.0, 1.0], 0.0)
    'M0 44V22h33.3V44zM66.7 44V0h33.3V44z'
    """
    step = 100 / len(heights)
    wide = f"{step * (1 - 2 * gap):.1f}"
    return "".join(
        f"M{_short((j + gap) * step)} 44V{_short(44 - 44 * v)}h{wide}V44z" for j, v in enumerate(heights) if v
    )


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _levels(i: int, spread: Mapping[str, Any]) -> list[Html]:
    """Up to four categories as bars with the table's share as a mark."""
    counts, whole = spread["groups"][i], spread["whole"]
    total, all_rows = max(sum(counts), 1e-300), max(sum(whole), 1e-300)
    order = range(len(spread["categories"]))
    if len(spread["categories"]) > LEVELS_SHOWN:
        change = [
            max(abs(c[j] / max(sum(c), 1e-300) - whole[j] / all_rows) for c in spread["groups"])
            for j in order
        ]
        order = sorted(sorted(order, key=lambda j: -change[j])[:LEVELS_SHOWN])  # type: ignore[assignment]
    made = []
    for j in order:
        share, base = counts[j] / total, whole[j] / all_rows
        bar = svg(
            100,
            7,
            rect(0, 1, 100, 5, "track"),
            rect(0, 1, 100 * share, 5, f"fill {group_class(i)}"),
            rect(100 * base - 0.4, 0, 0.9, 7, "ink"),
            stretch=True,
        )
        classes = "level hi" if abs(share - base) >= BOLD_CHANGE else "level"
        made.append(
            tag("div", name(spread["categories"][j], 24), tag("span", share_text(share)), bar, class_=classes)
        )
    left = len(spread["categories"]) - len(made) + spread["others"]
    if left:
        made.append(tag("div", tag("span", plural(left, "other")), class_="level"))
    return made


def _heat(view: View, told: Sequence[Mapping[str, Any]]) -> Html:
    """More than twelve groups: how far each is from the table, in five steps with a sign."""
    text = (
        "How far a group lies from the whole table: five steps of grey, ▲ above, ▼ below, in standard "
        "deviations of the "
        "table; for a category the largest change of a share. Point at a cell for its values."
    )
    heads = ["column", *(g["letter"] for g in view.groups)]
    lines = [[name(e["column"]), *(_heat_cell(view, i, e["column"]) for i in range(view.k))] for e in told]
    return tag("div", tag("p", text, class_="sub"), table(heads, lines, label="Profile", class_="heat"))


def _heat_cell(view: View, i: int, column: str) -> tuple[str, dict[str, Any]]:
    fact = view.facts[i][column]
    if fact["value"] is None or fact["whole"] is None:
        return "", {}
    if fact["type"] == "number":
        size = (
            abs(fact["value"] - fact["whole"]) / (fact["whole_spread"] or 1.0)
            if fact["whole_spread"]
            else 0.0
        )
        told = f"{told_value(fact)} (all {told_value(fact, 'whole')})"
    else:
        size = 4 * abs(fact["value"] - fact["whole"])
        told = f"{fact['category']} {share_text(fact['value'])} (all {share_text(fact['whole'])})"
    step = sum(size >= limit for limit in HEAT_STEPS)
    sign = "" if step == 0 else "▲" if fact["value"] > fact["whole"] else "▼"
    tip = f"{view.groups[i]['letter']}, {column}: {told}"
    return sign, {"class_": f"h{step}" if step else "", "data_tip": tip}


def _rest(view: View, rest: Sequence[Mapping[str, Any]]) -> Html | None:
    if not rest:
        return None
    lines = [
        [name(e["column"]), f"{e['relevance']:.3f}", ", ".join(e["distinctive_in"]) or "none"] for e in rest
    ]
    made = table(
        ["column", "relevance", "distinguishes"],
        lines,
        numeric=(1,),
        label="Further columns",
        sort=True,
        tall=True,
    )
    return fold(f"The other {len(rest)} less relevant columns", made, class_="rows")


def _numbers(view: View, told: Sequence[Mapping[str, Any]]) -> Html:
    """The long table behind the grid: one line a column and group."""
    heads = ["column", "group", "nats", "distinctive", "value", "whole table", "std. dev.", "missing"]
    lines = []
    most = TABLE_COLUMNS if view.k <= COLOURED else 12
    for entry in told[:most]:
        for i, group in enumerate(view.groups):
            fact = view.facts[i][entry["column"]]
            number = fact["type"] == "number"
            value, whole = (
                told_value(fact, key) if number else share_text(fact[key]) for key in ("value", "whole")
            )
            level = (
                ""
                if number or fact["category"] is None
                else tag("span", " (", name(fact["category"], 24), ")")
            )
            lines.append(
                [
                    name(entry["column"]),
                    group["letter"],
                    f"{fact['nats']:.3f}",
                    "✓" if fact["distinctive"] else "",
                    tag("span", value, level),
                    whole,
                    told_spread(fact) if number else "",
                    share_text(fact["missing"]),
                ]
            )
    note = (
        None
        if most >= len(told)
        else tag("p", f"The {most} most relevant columns; summary.json has all.", class_="note")
    )
    return fold(
        "Numbers behind the profile",
        table(heads, lines, numeric=(2, 4, 5, 6, 7), label="Profile, numbers", sort=True, tall=True),
        note,
    )

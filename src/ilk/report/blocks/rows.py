"""Block 7: rows worth a look: least certain, most unusual, nearer to another group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ilk.report.figures import count_text, plural
from ilk.report.html import Html, fold, name, section, table, tag
from ilk.report.view import View, two

SHOWN = 8

Row = Mapping[str, Any]


def render(view: View) -> Html:
    title = "Rows worth a look"
    found, counts = view.summary.get("rows"), view.summary.get("row_counts") or {}
    if not found:
        return section(
            7,
            title,
            tag("p", "Single rows are left out of this report, as asked. ", _how_many(counts), class_="sub"),
        )
    text, sought = "Rows unlike the others.", "a value …"
    if view.parted:
        text = (
            "Rows that sit between groups, rows unlike the others of their group, and rows nearer to "
            "another group."
        )
        sought = "a value, a group …"
    text += " Row numbers count from 0, as in assignments.csv."
    box = tag(
        "div",
        tag("label", "Filter ", tag("input", type="search", class_="filter", placeholder=sought)),
        class_="tools js",
    )
    parts = [_least_certain(view, found), _unusual(view, found), _nearer(view, found, counts)]
    return section(7, title, tag("p", text, class_="sub"), box, tag("div", parts, class_="filtered"))


def _how_many(counts: Row) -> str:
    parts = []
    if counts.get("uncertain") is not None:
        parts.append(
            f"{plural(counts['uncertain'], 'row')} belong to their group with a probability below "
            f"{counts['uncertain_below']:.2f}"
        )
    if counts.get("nearer") is not None:
        parts.append(
            f"{count_text(counts['nearer'])} of {plural(counts['silhouette_rows'], 'row')} examined "
            f"are nearer to another group"
        )
    return "; ".join(parts) + "." if parts else ""


def listing(
    view: View,
    rows: Sequence[Row],
    columns: Sequence[str],
    extra: Sequence[tuple[str, bool, Callable[[Row], Any]]],
    label: str,
) -> list[Html]:
    """A table of rows: number, id, group, what is measured, then cells; the first eight, the rest in a fold."""
    has_id = any(row["id"] is not None for row in rows)
    heads: list[Any] = [
        "row",
        *(["id"] if has_id else []),
        *(["group"] if view.k > 1 else []),
        *(title for title, _, _ in extra),
        *(name(c) for c in columns),
    ]
    before = len(heads) - len(columns)
    numeric = [0, *(j for j, (_, right, _) in enumerate(extra, before - len(extra)) if right)]
    numeric += [before + j for j, c in enumerate(columns) if c in view.decimals]
    lines = []
    for row in rows:
        line: list[Any] = [count_text(row["row"])]
        line += [name(row["id"] or "–")] if has_id else []
        line += [view.chip(row["group"])] if view.k > 1 else []
        line += [make(row) for _, _, make in extra]
        line += [view.value(column, cell) for column, cell in zip(columns, row["cells"], strict=True)]
        lines.append(line)
    made = [table(heads, lines[:SHOWN], numeric=numeric, label=label, sort=True)]
    if len(lines) > SHOWN:
        made.append(
            fold(
                f"The next {len(lines) - SHOWN}",
                table(heads, lines[SHOWN:], numeric=numeric, label=f"{label}, further", sort=True),
            )
        )
    return made


def _least_certain(view: View, found: Row) -> Html | None:
    if not found["least_certain"]:
        return None
    extra = [
        ("prob.", True, lambda r: two(r["probability"])),
        ("second choice", False, lambda r: view.chip(r["second"])),
        ("prob.", True, lambda r: two(r["second_probability"])),
    ]
    return tag(
        "figure",
        tag("h3", "Least certain"),
        tag("p", "The two most likely groups and their probabilities.", class_="cap"),
        listing(view, found["least_certain"], found["columns"], extra, "Least certain rows"),
    )


def _unusual(view: View, found: Row) -> Html | None:
    if not found["unusual"]:
        return None

    def because(row: Row) -> Any:
        why = row.get("because")
        return (
            tag("span", name(why["column"], 24), f" ({why['spreads']:.1f} std. dev.)")
            if why
            else "no single column"
        )

    extra = [("novelty", True, lambda r: two(r["novelty"])), ("most unusual in", False, because)]
    caption = (
        "Rows unlike the others of their group (novelty 1: none is more unusual). An error in the data, "
        "or a rare case."
    )
    return tag(
        "figure",
        tag("h3", "Most unusual"),
        tag("p", caption, class_="cap"),
        listing(view, found["unusual"], found["columns"], extra, "Most unusual rows"),
    )


def _nearer(view: View, found: Row, counts: Row) -> Html | None:
    if not found["nearer"]:
        return None
    extra = [
        ("silhouette", True, lambda r: two(r["silhouette"])),
        ("second choice", False, lambda r: view.chip(r["second"])),
    ]
    caption = (
        f"{count_text(counts['nearer'])} of {plural(counts['silhouette_rows'], 'row')} examined "
        f"have a negative silhouette. The model may still be right: it weighs the columns, plain distance does not."
    )
    return tag(
        "figure",
        tag("h3", "Nearer to another group"),
        tag("p", caption, class_="cap"),
        listing(view, found["nearer"], found["columns"], extra, "Rows nearer to another group"),
    )

"""Block 2: the groups one by one, with their defining columns, a short rule, typical and border rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ilk.report.figures import count_text, differs, few_cells, plural, share_text, told_value, varies_less
from ilk.report.html import Html, chip, fold, group_class, name, section, table, tag
from ilk.report.svg import rect, svg
from ilk.report.terms import bound_text, figures_text
from ilk.report.view import ARROWS, View, two

MOST_COLUMNS = 6
FOLDED_COLUMNS = 3
FOLDED_FROM = 13  # groups from which cards are cut to the most distinctive columns
UNUSED_NAMED = 4
FEW_ROWS = 5


def render(view: View) -> Html:
    if not view.parted:
        return section(
            2,
            "The groups, one by one",
            tag(
                "p",
                "There is a single group. What was tried is in block 5.",
                class_="sub",
            ),
        )
    text = (
        "What sets each group apart, in your units, most distinctive column first. Coloured bar: the middle 80% "
        "of the group, gap at its mean. Grey bar: the same for the whole table. For categories: share in the group, "
        "mark at the share in the table."
    )
    if not view.clear:
        text = (
            f"The table looks like a single group. These {view.k} segments are given for convenience: "
            f"arbitrary segments, not distinct groups. " + text
        )
    cards = [card(view, i) for i in range(view.k)]
    return section(
        2,
        f"The {view.thing}s, one by one",
        tag("p", text, class_="sub"),
        tag("div", cards, class_="cards two" if view.k == 2 else "cards"),
    )


def card(view: View, i: int) -> Html:
    group = view.groups[i]
    telling = [fact for fact in group["facts"] if differs(fact)]
    most = MOST_COLUMNS if view.k < FOLDED_FROM else FOLDED_COLUMNS
    lines = [definition(view, i, fact) for fact in telling[:most]]
    parts: list[Any] = [_head(view, i)]
    if (group.get("stability") or 1.0) < view.limits["stability_low"]:
        parts.append(tag("p", "Dissolves in resamples: do not build on this group.", class_="note flag weak"))
    if group.get("pair"):
        parts.append(_pair(view, group["pair"]))
    if lines:
        parts.append(tag("ul", lines, class_="defs"))
        if len(telling) > most:
            parts.append(tag("p", f"And {len(telling) - most} more in block 3.", class_="note"))
    elif not group.get("pair") and not any(varies_less(fact) for fact in group["facts"]):
        parts.append(tag("p", "No clear difference from the whole table.", class_="note"))
    parts += [_unlike(view, group), _closer(group), _unused(group), _rule(view, i), _rows(view, i)]
    return tag("article", parts, class_=f"card {group_class(i)}", id=f"g{i}")


def _head(view: View, i: int) -> Html:
    group = view.groups[i]
    meta: list[Any] = [f"{plural(group['rows'], 'row')}, {share_text(group['share'])}"]
    if view.has_sure:
        meta.append(f" · mean prob. {two(group['probability'])}")
    elif view.has_silhouette:
        meta.append(f" · silhouette {two(group['silhouette'])}")
    if group.get("stability") is not None:
        meta += [
            " · stability ",
            tag(
                "span",
                view.stable_text(group["stability"]),
                class_=view.stable_class(group["stability"]) or None,
            ),
        ]
    nearest = group.get("nearest")
    if nearest:
        meta += [
            " · least separated from ",
            view.chip(nearest["group"]),
            f" ({two(nearest.get('separation'))})",
        ]
    title = tag("h3", name(group["name"], 120))
    return tag("header", chip(group["letter"], i, "big"), tag("div", title, tag("p", meta, class_="meta")))


def definition(view: View, i: int | None, fact: Mapping[str, Any], against: Any = "all") -> Html:
    """One column of a group compared with the whole table, with its strip; or with another group, without."""
    arrow = tag("span", ARROWS[fact["sign"]], class_="arrow")
    title: list[Any] = [name(fact["column"])]
    if fact["type"] == "number":
        value, whole = told_value(fact), told_value(fact, "whole")
        strip = None if i is None else number_strip(view, i, fact)
    else:
        title += [" = ", name(fact["category"])]
        value, whole = share_text(fact["value"]), share_text(fact["whole"])
        strip = None if i is None else share_strip(i, fact["value"], fact["whole"])
    few = few_cells(fact)
    beside = [" ", against, f" {whole}", f", {few}" if few else ""]
    figures = tag("span", arrow, value, tag("span", beside), class_="v")
    return tag("li", tag("p", tag("span", title), figures), strip)


def number_strip(view: View, i: int, fact: Mapping[str, Any]) -> Html | None:
    """The middle 80 % of the group over that of the table, on the range of the table."""
    entry = next((e for e in view.profile if e["column"] == fact["column"]), None)
    spread = entry["distribution"] if entry else None
    if not spread or spread["middles"][i] is None or fact["value"] is None:
        return None
    low, high = spread["from"], spread["to"]

    def at(value: float) -> float:
        return 300 * min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 150.0

    (a, b), (p, q), mean = spread["middle"], spread["middles"][i], at(fact["value"])
    left, right = at(p), max(at(q), at(p) + 2)
    return svg(
        300, 11, rect(at(a), 6, at(b) - at(a), 4, "whole"), rect(at(fact["whole"]) - 0.5, 5, 1.5, 6, "ink"),
        rect(left, 0, mean - 1 - left, 6, f"fill {group_class(i)}"),
        rect(mean + 1, 0, right - mean - 1, 6, f"fill {group_class(i)}"), stretch=True,
    )  # fmt: skip


def share_strip(i: int, value: float | None, whole: float | None) -> Html:
    """A share from 0 to 100 %, marked at the share in the table."""
    return svg(
        300, 11, rect(0, 2, 300, 6, "track"), rect(0, 2, 300 * (value or 0.0), 6, f"fill {group_class(i)}"),
        rect(300 * (whole or 0.0) - 0.75, 0, 1.5, 10, "ink"), stretch=True,
    )  # fmt: skip


def _pair(view: View, pair: Mapping[str, Any]) -> Html:
    """The two columns that show the group together."""
    first, second = (name(column) for column in pair["columns"])
    drawn = any(entry["columns"] == pair["columns"] for entry in view.summary.get("pairs") or ())
    where = tag("a", "block 4 draws them", href="#pairs") if drawn else None
    text = ["No single column shows this group, ", first, " and ", second, " together do"]
    return tag("p", text, [": ", where] if where else None, ".", class_="note")


def _unlike(view: View, group: Mapping[str, Any]) -> Html | None:
    """What distinguishes the group from the one most like it."""
    unlike = group.get("unlike")
    if not unlike:
        return None
    head = tag("p", "Most like ", view.chip(unlike["group"]), _but(unlike), class_="note")
    lines = [definition(view, None, fact, view.chip(unlike["group"])) for fact in unlike["facts"]]
    return tag("div", head, tag("ul", lines, class_="defs plain") if lines else None)


def _but(unlike: Mapping[str, Any]) -> str:
    return ", but:" if unlike["facts"] else "; no single column distinguishes the two."


def _closer(group: Mapping[str, Any]) -> Html | None:
    """Columns in which the group is about the table, but varies less."""
    closer = [fact["column"] for fact in group["facts"] if varies_less(fact)]
    return _listed("Varies less in: ", closer) if closer else None


def _unused(group: Mapping[str, Any]) -> Html | None:
    silent = [fact["column"] for fact in group["facts"] if not (differs(fact) or varies_less(fact))]
    return _listed("Not distinctive here: ", silent) if silent else None


def _listed(what: str, columns: Sequence[str]) -> Html:
    """The first few names."""
    named = [
        [name(column), ", " if i < min(len(columns), UNUSED_NAMED) - 1 else ""]
        for i, column in enumerate(columns[:UNUSED_NAMED])
    ]
    more = f" and {len(columns) - UNUSED_NAMED} more" if len(columns) > UNUSED_NAMED else ""
    return tag("p", what, named, more, class_="note")


def _rule(view: View, i: int) -> Html | None:
    group = view.groups[i]
    rule = group.get("rule")
    if rule is None:
        return None
    label = tag("span", "In short", class_="label")
    if not rule["distinctive"]:
        return tag("div", label, "No short rule describes this group.", class_="rule")
    terms: list[Any] = []
    for number, term in enumerate(rule["terms"]):
        terms += [", and " if number else "", term_html(term)]
    return tag("div", label, terms, tag("small", figures_text(rule, group["letter"])), class_="rule")


def term_html(term: Mapping[str, Any]) -> Html:
    """A condition in words: `bill_length_mm above 48.5`, `sex is female or missing`."""
    blank = " or missing" if term["missing"] else ""
    column = tag("b", name(term["column"]))
    if term["op"] != "is":
        return tag("span", column, f" {bound_text(term)}{blank}")
    levels = [
        [name(level), " or " if j < len(term["categories"]) - 1 else ""]
        for j, level in enumerate(term["categories"])
    ]
    return tag("span", column, " is ", levels, blank)


def _rows(view: View, i: int) -> Html | None:
    """Typical and border rows side by side: one column a row of the table."""
    found = view.summary.get("rows")
    if not found:
        return None
    part = found["groups"][i]
    rows: Sequence[Mapping[str, Any]] = [*part["typical"], *part["border"]]
    if not rows:
        return None
    n_typical = len(part["typical"])

    def cells(make: Any) -> list[Any]:
        return [(make(row), {"class_": "edge"} if j >= n_typical else {}) for j, row in enumerate(rows)]

    lines: list[list[Any]] = []
    if any(row["id"] is not None for row in rows):
        lines.append(["id", *cells(lambda row: name(row["id"] or "–", 14))])
    if view.has_sure:
        lines.append(["prob.", *cells(lambda row: two(row["probability"]))])
    if any(row["second"] for row in rows) and view.k > 1:
        lines.append(["second choice", *cells(lambda row: view.chip(row["second"]))])
    for j, column in enumerate(part["columns"]):
        lines.append(
            [name(column), *cells(lambda row, j=j, column=column: view.value(column, row["cells"][j]))]
        )
    heads = ["row", *(tag("span", count_text(row["row"])) for row in rows)]
    made = table(
        heads,
        lines,
        numeric=range(1, len(heads)),
        label=f"Typical and border rows of {view.groups[i]['letter']}",
        class_="pair",
    )
    border = "" if not part["border"] else f" Tinted: {plural(len(part['border']), 'row')} on the border."
    return fold(
        "Typical and border rows",
        made,
        tag("p", f"Most typical first.{border}", class_="note"),
        class_="rows",
    )

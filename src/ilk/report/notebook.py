"""What a notebook shows of a result: verdict, headline, shares, and the table of groups.

Notebooks have themes of their own, which no rule of style can ask for everywhere: text and lines take their colour from
the cell they stand in, and the colours of groups are such as both a light and a dark page bear. Nothing here reaches
what stands beside it, another result in particular: every rule is about one class, and widths are about one mark.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from ilk.report.blocks.answer import headline, lead, pill
from ilk.report.figures import count_text, plural, share_text
from ilk.report.html import Html, group_class, name, tag
from ilk.report.view import View, two

CAUTIONS = 3
NAMED = 0.06  # share of the rows from which the bar has room for a letter
MOST_GROUPS = 25


def fragment(summary: Mapping[str, Any]) -> str:
    """The markup: a style of its own, and one element."""
    view = View(summary)
    mark = "r" + hashlib.sha256(json.dumps(summary["groups"], sort_keys=True).encode()).hexdigest()[:8]
    parts: list[Any] = [
        pill(view),
        tag("p", headline(view), class_="head"),
        tag("p", lead(view), class_="lead"),
    ]
    if view.parted:
        parts += [_shares(view), _groups(view)]
    parts.append(_cautions(view))
    style = (files("ilk.report") / "notebook.css").read_text(encoding="utf-8") + _widths(view, mark)
    return tag("style", Html(style)) + tag("div", parts, class_=f"ilk-cell {mark}")


def _widths(view: View, mark: str) -> str:
    return "".join(
        f".{mark} .w{i}{{flex-grow:{max(group['share'], 1e-4):.4f}}}" for i, group in enumerate(view.groups)
    )


def _chip(letter: str, number: int) -> Html:
    return tag("span", letter, class_=f"chip {group_class(number)}")


def _shares(view: View) -> Html:
    parts = []
    for i, group in enumerate(view.groups):
        tip = f"{group['letter']}: {plural(group['rows'], 'row')}, {share_text(group['share'])}"
        letter = group["letter"] if group["share"] >= NAMED else None
        parts.append(tag("span", letter, class_=f"{group_class(i)} w{i}", title=tip))
    return tag("div", parts, class_="shares")


def _groups(view: View) -> Html:
    measure = "probability" if view.has_sure else "silhouette" if view.has_silhouette else None
    heads = [view.thing, "what it is", "rows", "share"]
    heads += [{"probability": "mean prob."}.get(measure, measure)] if measure else []
    heads += ["stability"] if view.has_stable else []
    lines = []
    for i, group in enumerate(view.groups[:MOST_GROUPS]):
        cells: list[Any] = [
            tag("td", _chip(group["letter"], i)),
            tag("td", name(group["name"], 90), class_="what"),
        ]
        cells += [tag("td", count_text(group["rows"])), tag("td", share_text(group["share"]))]
        cells += [tag("td", two(group[measure]))] if measure else []
        if view.has_stable:
            flag = view.stable_class(group.get("stability"))
            cells.append(tag("td", view.stable_text(group.get("stability")), class_=flag or None))
        lines.append(tag("tr", cells))
    head = tag("thead", tag("tr", [tag("th", title, scope="col") for title in heads]))
    left = view.k - MOST_GROUPS
    more = tag("p", f"and {left} more, in .groups and .report(path)", class_="lead") if left > 0 else None
    return tag("div", tag("div", tag("table", head, tag("tbody", lines)), class_="box"), more)


def _cautions(view: View) -> Html | None:
    found = view.summary["warnings"]
    if not found:
        return None
    lines = [tag("li", tag("b", w["code"]), " ", w["text"]) for w in found[:CAUTIONS]]
    more = tag("li", f"and {len(found) - CAUTIONS} more, in .warnings") if len(found) > CAUTIONS else None
    return tag("ul", lines, more, class_="cautions")

"""A version of a run as the page shows it: the blocks of the report, its own style, and what can be done with it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from ilk.report.blocks.map import placement
from ilk.report.html import tag
from ilk.report.page import BLOCKS, body_of, rules_of
from ilk.report.view import View

REPORT_SCRIPT = "window.ilkReport = function () {\n%s\n};\n"


def answer_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The report of a summary in parts: markup that is escaped by construction, and the rules of its style."""
    view = View(summary)
    links = [tag("li", tag("a", title, href=f"#s{i}")) for i, (title, _) in enumerate(BLOCKS, 1)]
    return {
        "html": str(body_of(view)),
        "css": rules_of(view),
        "blocks": str(tag("ol", links)),
        "groups": [
            {"letter": g["letter"], "name": g["name"], "rows": g["rows"], "share": g["share"], "number": i}
            for i, g in enumerate(summary["groups"])
        ],
        "thing": view.thing,
        "points": _points(summary),
    }


def _points(summary: Mapping[str, Any]) -> list[list[float]] | None:
    """The rows that the map draws and where it draws them, so that a region of it can be chosen."""
    drawn = summary.get("map")
    if not drawn or not drawn.get("points") or "row" not in drawn["points"]:
        return None
    at, _, _ = placement(drawn)
    points = drawn["points"]
    return [
        [*(round(v, 1) for v in at(x, y)), row]
        for x, y, row in zip(points["x"], points["y"], points["row"], strict=True)
    ]


def brief(name: str, summary: Mapping[str, Any], state: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A run in a line of a list."""
    chosen, verdict = summary["chosen"], summary["verdict"]
    return {
        "name": name,
        "source": summary["source"],
        "rows": summary["table"]["rows"],
        "k": chosen["k"],
        "groups": len(summary["groups"]),
        "method": chosen["method"],
        "word": verdict["word"],
        "sentence": verdict["sentence"],
        "seconds": summary["seconds"],
        "interrupted": summary["interrupted"],
        "command": (summary.get("reproduce") or {}).get("command", ""),
        "changes": 0 if state is None else state["at"],
    }


def report_script() -> str:
    """The script of the report as a function, to be called whenever its blocks are shown."""
    return REPORT_SCRIPT % (files("ilk.report") / "script.js").read_text(encoding="utf-8")


def report_style() -> str:
    return (files("ilk.report") / "style.css").read_text(encoding="utf-8")

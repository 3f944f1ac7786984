"""The report: one HTML file made from the summary and nothing else.

The file holds its style, its script and the summary itself; its policy allows that one style and that one
script, by their hashes, and no request at all.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from ilk.report.blocks import answer, choice, data, groups, profile, quality, reproduce, rows
from ilk.report.blocks import map as map_block
from ilk.report.html import Html, join, name, tag
from ilk.report.view import View

BLOCKS = (
    ("Answer", answer), ("Groups", groups), ("Profile", profile), ("Map", map_block), ("Why", choice),
    ("Quality", quality), ("Rows", rows), ("Data", data), ("Reproduce", reproduce),
)  # fmt: skip
MOST_EMBEDDED = (
    700_000  # bytes of the summary within the page; above, the facts of less telling columns stay out
)
FACTS_KEPT = 6
DIGITS = 6


def page(summary: Mapping[str, Any]) -> str:
    """The whole file."""
    view = View(summary)
    style = _asset("style.css") + rules_of(view)
    script = _asset("script.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri "
        f"'none'; form-action 'none'"
    )
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{answer.headline(view)}: {summary['source']}"),
        tag("style", Html(style)),
    ]
    body = [
        tag("a", "Skip to the answer", class_="skip", href="#s1"),
        _top(summary),
        _bar(view),
        tag("main", body_of(view)),
        tag(
            "footer",
            'Made by ilk. One file, no network, nothing tracked. The summary is embedded as JSON (id "ilk-summary").',
        ),
        tag("div", id="tip", role="presentation"),
        tag("script", Html(embedded(summary)), type="application/json", id="ilk-summary"),
        tag("script", Html(script)),
    ]
    document = tag("html", tag("head", head), tag("body", body, class_="ilk"), lang="en", class_="nojs")
    return f"<!doctype html>{document}\n"


def body_of(view: View) -> Html:
    """All blocks, one after the other."""
    return join(block.render(view) for _, block in BLOCKS)


def rules_of(view: View) -> str:
    """The rules of style that belong to this summary alone."""
    return answer.rules(view) + profile.rules(view) + view.colour_rules()


def _top(summary: Mapping[str, Any]) -> Html:
    date = (summary.get("reproduce") or {}).get("date", "")
    when = f"{date} · everything is in this file; nothing is sent or loaded"
    about = tag("span", "Report on ", tag("b", name(summary["source"], 80)))
    return tag(
        "div", tag("span", "ilk", class_="brand"), about, tag("span", when, class_="when"), class_="top"
    )


def _bar(view: View) -> Html:
    links = [tag("li", tag("a", tag("i", i), title, href=f"#s{i}")) for i, (title, _) in enumerate(BLOCKS, 1)]
    return tag("nav", tag("ol", links), aria_label="Blocks")


def embedded(summary: Mapping[str, Any]) -> str:
    """The summary as JSON that no HTML parser can mistake for markup; numbers to six digits.

    >>> embedded({"a": "</script>", "b": 0.123456789})
    '{"a":"\\\\u003c/script\\\\u003e","b":0.123457}'
    """
    text = _json(_rounded(summary))
    if len(text) > MOST_EMBEDDED:
        kept = [{**g, "facts": g["facts"][:FACTS_KEPT]} for g in summary["groups"]]
        text = _json(_rounded({**summary, "groups": kept, "facts_kept": FACTS_KEPT}))
    return text


def _json(document: Any) -> str:
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        short = float(f"{value:.{DIGITS}g}")
        return int(short) if short.is_integer() and abs(short) < 1e15 else short
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value


def _asset(file: str) -> str:
    return (files("ilk.report") / file).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

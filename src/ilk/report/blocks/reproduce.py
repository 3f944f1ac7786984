"""Block 9: how to get the same result again, and how it came about."""

from __future__ import annotations

from typing import Any

from ilk.methods import GIVEN, METHODS, parted
from ilk.report.blocks import words
from ilk.report.figures import plural, seconds_text, value_text
from ilk.report.html import Html, figure, fold, section, table, tag
from ilk.report.svg import Axis, circle, line, polyline, svg, text
from ilk.report.view import View

SAME = 1e-6  # starts whose costs agree so closely ended in the same solution


def render(view: View) -> Html:
    made = view.summary.get("reproduce") or {}
    left = []
    if made:
        left += [
            tag("h3", "Command line"),
            _code(made["command"]),
            tag("h3", "Python"),
            _code(made["python"]),
        ]
    folder = view.summary.get("folder")
    if folder and view.summary["chosen"].get("rule", True):
        left += [tag("h3", "New rows"), _code(f"ilk assign {folder} new.csv")]
    text_ = "The same table, seed and version give the same groups, on any number of threads."
    charts = tag("div", _trace(made), _starts(made), class_="halves part") if made.get("trace") else None
    return section(
        9,
        "Reproduce this",
        tag("p", text_, class_="sub"),
        tag("div", tag("div", left), _facts(view, made), class_="halves"),
        charts,
        _paper(view),
        words.render(view),
    )


def _code(content: str) -> Html:
    return tag("div", tag("pre", content), tag("button", "Copy", type="button", class_="js"), class_="copy")


def _facts(view: View, made: dict[str, Any]) -> Html:
    chosen = view.summary["chosen"]
    method = f"{chosen['method']} {chosen.get('structure') or ''}".strip()
    pieces = chosen.get("components") or chosen["k"]
    facts: list[tuple[str, Any]] = [
        (
            "Chosen model",
            f"{method}, {plural(view.k, 'group')}"
            + (f" from {plural(pieces, 'component')}" if pieces != view.k else ""),
        )
    ]
    if chosen["method"] != GIVEN:
        facts.append(("Tried", _tried(view)))
    facts += [
        ("Seed", view.summary["options"].get("seed", 0)),
        ("Time", seconds_text(view.summary["seconds"])),
    ]
    if made:
        if digest := made["fingerprint"]:
            facts.append(("Data", tag("code", f"sha256 {digest[:16]}…{digest[-8:]}", title=digest)))
        facts.append(("Versions", ", ".join(f"{key} {value}" for key, value in made["versions"].items())))
    facts.append(("ilk", view.summary["ilk"]))
    return tag("dl", [[tag("dt", key), tag("dd", value)] for key, value in facts], class_="facts")


def _tried(view: View) -> str:
    search = view.summary["search"]
    tried = f"{', '.join(search['methods'])}" + (
        f" of {plural(search['structures'], 'structure')}" if search["structures"] else ""
    )
    return f"{tried}, K {search['k_least']} to {search['k_most']}, {plural(len(view.summary['candidates']), 'fit')}"


def _trace(made: dict[str, Any]) -> Html | None:
    """Cost of every pass; it may only fall."""
    points = made["trace"]
    if len(points) < 2:
        return None
    costs = [p["cost"] for p in points]
    x, y = Axis(points[0]["pass"], points[-1]["pass"], 10, 400), Axis(min(costs), max(costs), 100, 20)
    parts: list[Any] = [
        line(6, 110, 404, 110, "axis"),
        polyline([(x(p["pass"]), y(p["cost"])) for p in points], "curve chosen"),
    ]
    parts += [
        text(10, 126, points[0]["pass"], "", "middle"),
        text(404, 126, plural(points[-1]["pass"], "pass").replace("passs", "passes"), "", "end"),
        text(404, 92, value_text(costs[-1], 2), "b", "end"),
    ]
    numbers = fold(
        "Numbers: passes",
        table(
            ["pass", "cost"],
            [[str(p["pass"]), value_text(p["cost"], 4)] for p in points],
            numeric=(0, 1),
            label="Cost by pass",
            tall=True,
        ),
    )
    return figure(
        "Cost, pass by pass",
        "It never rises. Stopped when nothing changed.",
        svg(410, 132, parts, label="Cost by pass"),
        numbers,
    )


def _starts(made: dict[str, Any]) -> Html | None:
    """Where each start ended: a dot each, stacked where they agree."""
    costs = made["starts"]
    if len(costs) < 2:
        return None
    best, worst = costs[0], costs[-1]
    x = Axis(best, worst if worst > best else best + 1.0, 14, 396)
    stacks: dict[int, int] = {}
    parts: list[Any] = []
    reached = sum(_same(cost, best) for cost in costs)
    for cost in costs:
        place = round(x(cost) / 9)
        stacks[place] = stacks.get(place, 0) + 1
        parts.append(
            circle(
                place * 9 if not _same(cost, best) else 14,
                104 - 8 * (stacks[place] - 1),
                3.4,
                "dot chosen" if _same(cost, best) else "dot",
                f"cost {value_text(cost, 4)}",
            )
        )
    parts += [
        line(6, 110, 404, 110, "axis"),
        text(8, 126, "best", "b"),
        text(404, 126, f"+{value_text(worst - best, 2)}", "", "end"),
    ]
    tallest = max(stacks.values(), default=1)
    top = max(0, 8 * (tallest - 11))
    drawing = svg(
        410,
        132 + top,
        tag("g", parts, transform=f"translate(0 {top})") if top else parts,
        label="Where each start ended",
    )
    return figure(
        "Where the starts ended",
        f"Cost of each start; dark: the best, reached by {reached} of {len(costs)}.",
        drawing,
    )


def _same(cost: float, best: float) -> bool:
    return abs(cost - best) <= SAME * max(1.0, abs(best))


def _paper(view: View) -> Html:
    """A methods paragraph, with references."""
    chosen = view.summary["chosen"]
    method, beside = METHODS.get(chosen["method"]), parted(chosen["method"])
    sentences: list[str] = [(method and method.paper) or f"Rows were grouped by {chosen['method']}."]
    if chosen.get("as_asked"):
        sentences.append(f"The number of groups ({view.k}) was given.")
    elif chosen.get("bic") is None and beside:
        sentences.append(f"The number of groups is {beside.how_k}.")
    else:
        sentences.append("The model and its number of components were chosen by BIC (Schwarz 1978).")
    if view.summary.get("merge") and not beside:
        sentences.append(
            "Components without a density dip between them were merged, by the dip of their union on the "
            "discriminant direction (Hartigan and Hartigan 1985)."
        )
    if view.has_stable:
        sentences.append(
            "Stability is the mean Jaccard index with the matching group over bootstrap resamples (Hennig 2007)."
        )
    kind = (view.summary.get("map") or {}).get("method")
    sentences.append(
        "Columns are ordered by the Kullback-Leibler divergence of the group from the whole table in nats per row."
    )
    if kind:
        sentences.append(
            {
                "FAMD": "Map: factor analysis of mixed data (Pagès 2004).",
                "PCA": "Map: principal components.",
                "MCA": "Map: multiple correspondence analysis.",
            }[kind]
        )
    if view.has_silhouette:
        sentences.append("Silhouette: Rousseeuw (1987).")
    sentences.append(f"Computed with ilk {view.summary['ilk']}.")
    return tag(
        "div", tag("h3", "Method, for a paper"), tag("p", " ".join(sentences), class_="paper"), class_="part"
    )

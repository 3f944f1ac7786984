"""Block 5: why this number of groups: BIC by K with one line a structure, the merges, every fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from ilk.methods import GIVEN, parted
from ilk.report.blocks.answer import _is_chosen
from ilk.report.figures import count_text, plural, value_text
from ilk.report.html import Html, figure, fold, section, table, tag
from ilk.report.svg import Axis, circle, line, polyline, rect, spread_apart, svg, text
from ilk.report.view import View, two, word

LINES = 6
MOST_FITS = 200
STEPS = (1, 10, 50, 100, 200, 400, 1000, 2000, 5000, 10_000, 50_000, 100_000, 1_000_000, 10_000_000)

Line = tuple[str, list[tuple[int, float]]]


def render(view: View) -> Html:
    if view.summary["chosen"]["method"] == GIVEN:
        said = "The groups are those of the labels that were given: nothing was searched or chosen."
        title = f"{word(view.k).capitalize()} groups, as given"
        return section(5, title, tag("p", said, class_="sub"), _ladder(view))
    if view.summary["chosen"].get("as_asked"):
        title = f"{word(view.k).capitalize()} groups, as asked"
    else:
        title = f"Why {word(view.k)} groups" if view.clear else "Why no groups"
    left = [_curves(view)]
    right = [_silhouettes(view), _ladder(view)]
    return section(
        5,
        title,
        tag("p", _words(view), class_="sub"),
        tag("div", left, tag("div", right), class_="wide-left"),
        _fits(view),
    )


def _lower(view: View) -> dict[str, Any] | None:
    """The candidate of lowest BIC, where another number of groups was asked for after the search."""
    chosen = view.summary["chosen"]
    tried = [c for c in view.summary["candidates"] if c.get("bic") is not None and c.get("status") == "ok"]
    best = min(tried, key=lambda c: float(c["bic"]), default=None)
    if best is None or not chosen.get("as_asked") or best["k"] == chosen["k"] or best["bic"] >= chosen["bic"]:
        return None
    return dict(best)


def _words(view: View) -> str:
    chosen = view.summary["chosen"]
    pieces, groups = chosen.get("components") or chosen["k"], chosen["k"]
    thing = "group" if pieces == groups else "component"
    method = parted(chosen["method"])
    if chosen.get("bic") is None and method:
        found = "it was asked for" if chosen.get("as_asked") else method.how_k
        return f"{chosen['method']} has no BIC. The number of groups: {found}."
    parts = ["BIC weighs fit against the number of parameters; lower is better."]
    if chosen.get("bic_all_rows") is not None:
        rows = count_text(view.summary["search"]["rows"])
        parts.append(
            f"The search used a sample of {rows} rows; the best few models were then fitted to all rows, which decide."
        )
    ended = view.summary["search"].get("ended_by")
    if chosen.get("bic") is not None and ended:
        end = _ENDS[ended]
        stopped = f"The search stopped at {plural(pieces, thing)} ({_model(chosen)}), {end}"
        parts.append(f"{stopped}: more may have a lower BIC.")
    elif chosen.get("bic") is not None:
        best = _lower(view)
        at = f"{plural(pieces, thing)} ({_model(chosen)})"
        parts.append(
            f"It is lowest for {at}."
            if best is None
            else f"It is lowest for {plural(best['k'], 'component')} ({_model(best)}), "
            f"{value_text(chosen['bic'] - best['bic'], 1)} below that of {at}."
        )
    rival = chosen.get("runner_up")
    if rival and (rival.get("bic_difference") or -1.0) >= 0:
        behind = value_text(rival["bic_difference"], 1)
        parts.append(f"Next best is {_model(rival)} with {plural(rival['k'], thing)}, {behind} behind.")
    if pieces != groups:
        left = plural(groups, "group")
        parts.append(f"Components without a density dip between them form one group, which leaves {left}.")
    icl = view.verdict.get("icl_k")
    if icl is not None:
        parts.append(f"ICL, which also penalises overlap, prefers {plural(int(icl), 'component')}.")
    return " ".join(parts)


_ENDS = {
    "limit": "the most that were allowed",
    "time": "where the time was over",
    "no dips": "which have no density dips between them",
    "weak merge": "since the groups that more of them merge into are weak",
}


def _method(cell: Mapping[str, Any]) -> str:
    return str(cell.get("structure") or cell["method"])


def _model(cell: Mapping[str, Any]) -> str:
    return " ".join(filter(None, (cell["method"], cell.get("structure"))))


def lines_of(candidates: Sequence[Mapping[str, Any]]) -> list[Line]:
    """BIC by K, one line for each structure or method, the best first."""
    found: dict[str, list[tuple[int, float]]] = {}
    for cell in candidates:
        if cell.get("bic") is not None:
            found.setdefault(_method(cell), []).append((cell["k"], cell["bic"]))
    made = [(key, sorted(points)) for key, points in found.items()]
    return sorted(made, key=lambda entry: min(bic for _, bic in entry[1]))


def _curves(view: View) -> Html:
    lines = lines_of(view.summary["candidates"])
    if not lines and view.summary["chosen"].get("signs"):
        return _signs(view)
    if not lines:
        return figure("BIC by number of groups", None, tag("p", "No candidate has a BIC.", class_="note"))
    chosen, rival = _method(view.summary["chosen"]), view.summary["chosen"].get("runner_up")
    shown = lines[:LINES]
    if all(key != chosen for key, _ in shown):
        shown = [*shown[: LINES - 1], next((entry for entry in lines if entry[0] == chosen), shown[-1])]
    best = min(bic for _, points in shown for _, bic in points)
    worst = max(bic for _, points in shown for _, bic in points) - best
    ks = sorted({k for _, points in shown for k, _ in points})
    x = Axis(min(ks), max(ks) if len(ks) > 1 else min(ks) + 1, 70, 430)
    top = sqrt(max(worst, 1.0))
    y = Axis(0.0, top, 330, 24)
    pieces = view.summary["chosen"].get("components") or view.k
    parts: list[Any] = [text(0, 10, "BIC above the best", "m small")]
    last = 1e9
    for step in (0, *STEPS):
        if step > worst:
            break
        at = y(sqrt(step))
        if last - at > 24:
            last = at
            parts += [
                line(66, at, 434, at, "hair"),
                text(
                    60,
                    at + 4,
                    "best" if step == 0 else f"+{value_text(step)}",
                    "b" if step == 0 else "",
                    "end",
                ),
            ]
    number = "number of groups" if pieces == view.summary["chosen"]["k"] else "number of components"
    for k in ks:
        parts.append(text(x(k), 352, k, "b" if k == pieces else "", "middle"))
    parts.append(
        text(
            250,
            372,
            number,
            "m small",
            "middle",
        )
    )
    ends = spread_apart([y(sqrt(max(points[-1][1] - best, 0.0))) for _, points in shown], 18)
    second = _method(rival) if rival else None
    for rank, (key, points) in reversed(list(enumerate(shown))):
        kind = "chosen" if key == chosen else "next" if key == second else f"d{rank % 4}"
        path = [(x(k), y(sqrt(max(bic - best, 0.0)))) for k, bic in points]
        parts.append(polyline(path, f"curve {kind}"))
        parts += [
            circle(px, py, 3, f"dot {kind}", f"{key}, K {k}: BIC {value_text(bic, 1)}")
            for (px, py), (k, bic) in zip(path, points, strict=True)
        ]
        parts += [
            line(path[-1][0] + 6, path[-1][1], 446, ends[rank], "lead-line"),
            text(450, ends[rank] + 4, key, "b" if key == chosen else ""),
        ]
        if key == chosen:
            parts += [
                circle(px, py, 8, "ring")
                for (px, py), (k, _) in zip(path, points, strict=True)
                if k == pieces
            ]
    more = (
        f" The best {len(shown)} of {len(lines)} are drawn; the table below has all."
        if len(lines) > len(shown)
        else ""
    )
    caption = (
        f"Ring: chosen. The scale is stretched near the best (square root), so that close candidates "
        f"can be told apart.{more}"
    )
    drawing = svg(560, 380, parts, label=f"BIC by {number}", class_="large")
    title = f"BIC by {number}" + (", one line per covariance structure" if len(lines) > 1 else "")
    return figure(title, caption, drawing)


def _signs(view: View) -> Html:
    """A bar for each K: what the method chose by, where that is not BIC."""
    chosen = view.summary["chosen"]
    signs = sorted((int(k), float(value)) for k, value in chosen["signs"])
    top = max(value for _, value in signs) or 1.0
    step = 360 / len(signs)
    parts: list[Any] = [
        line(66, 160, 434, 160, "axis"),
        text(250, 202, "number of groups", "m small", "middle"),
    ]
    for place, (k, value) in enumerate(signs):
        now, left, height = k == chosen["k"], 70 + place * step, 130 * value / top
        middle, bold = left + step / 2, "b" if now else ""
        parts += [
            rect(left + step / 8, 160 - height, 3 * step / 4, height, "ink" if now else "grey"),
            text(middle, 152 - height, value_text(value, 2), bold, "middle"),
            text(middle, 180, k, bold, "middle"),
        ]
    method = parted(chosen["method"])
    sign = (method and method.sign) or "criterion of the method"
    drawing = svg(560, 210, parts, label=f"{sign}, by number of groups", class_="large")
    return figure(f"{sign[0].upper()}{sign[1:]}", "The highest bar is chosen (dark).", drawing)


def _silhouettes(view: View) -> Html | None:
    """Silhouette of the chosen method by K."""
    chosen = view.summary["chosen"]
    points = sorted(
        (c["k"], c["silhouette"])
        for c in view.summary["candidates"]
        if c.get("silhouette") is not None and _method(c) == _method(chosen)
    )
    if len(points) < 2:
        return None
    low, high = min(v for _, v in points), max(v for _, v in points)
    pad = max(0.05, 0.15 * (high - low))
    x, y = Axis(points[0][0], points[-1][0], 20, 320), Axis(low - pad, high + pad, 100, 20)
    path = [(x(k), y(v)) for k, v in points]
    pieces = chosen.get("components") or view.k
    parts: list[Any] = [line(10, 112, 330, 112, "axis"), polyline(path, "curve chosen")]
    for (px, py), (k, value) in zip(path, points, strict=True):
        now = k == pieces
        parts += [
            circle(px, py, 5 if now else 3, "dot chosen" if now else "hollow"),
            text(px, py - 9, two(value), "b" if now else "", "middle"),
            text(px, 128, k, "b" if now else "", "middle"),
        ]
    caption = (
        f"How much nearer a row is to its own group than to the next, mean over rows. Axis cut "
        f"to {two(low - pad)} to {two(high + pad)}. Not used for the choice."
    )
    return figure(
        "Silhouette by number of groups",
        caption,
        svg(340, 136, parts, label="Silhouette by number of groups"),
    )


def _ladder(view: View) -> Html | None:
    """From components to groups: the separation at each merge."""
    merge = view.summary.get("merge")
    if not merge or not merge.get("path"):
        return None
    pieces = view.summary["chosen"].get("components") or view.k
    now, steps = int(view.summary["chosen"]["k"]), []
    for level in merge["path"]:
        steps += [
            _rung(level["groups"], pieces, now),
            tag("li", f"→ {two(level['separation'], view.limits['merge'])} →", class_="via"),
        ]
    steps.append(_rung(merge["path"][-1]["groups"] - 1, pieces, now))
    threshold = merge.get("threshold")
    caption = (
        "Each arrow merges the two least separated; the number is their separation. Framed: where it stopped."
    )
    caption += (
        f" Those below the threshold {threshold:.2f} are merged."
        if isinstance(threshold, (int, float))
        else ""
    )
    title = "From components to groups" if pieces != now else "What further merges would join"
    return figure(title, caption, tag("ul", steps, class_="ladder"))


def _rung(number: int, pieces: int, now: int) -> Html:
    return tag(
        "li",
        plural(number, "component" if number == pieces != now else "group"),
        class_="now" if number == now else None,
    )


def _fits(view: View) -> Html:
    """Every fit of the search with its status; none is left out because it failed."""
    chosen = view.summary["chosen"]
    candidates = view.summary["candidates"]
    on_all = any(c.get("bic_all_rows") is not None for c in candidates)
    heads = [
        "method",
        "K",
        "BIC",
        "above best",
        *(["BIC, all rows"] if on_all else []),
        "ICL",
        "log-likelihood",
        "parameters",
        "silhouette",
        "starts at best",
        "status",
    ]
    known = [c["bic"] for c in candidates if c.get("bic") is not None]
    best = min(known) if known else 0.0
    shown = sorted(candidates, key=lambda c: (c.get("bic") is None, c.get("bic") or 0.0, c["k"]))[:MOST_FITS]
    lines = []
    for c in shown:
        starts = f"{c['n_starts_at_best']} of {c['n_starts']}" if c.get("n_starts") else "–"
        mark = tag("b", _method(c), " (chosen)") if _is_chosen(c, chosen) else _method(c)
        lines.append(
            [
                mark,
                str(c["k"]),
                value_text(c.get("bic"), 1),
                value_text(None if c.get("bic") is None else c["bic"] - best, 1),
                *([value_text(c.get("bic_all_rows"), 1)] if on_all else []),
                value_text(c.get("icl"), 1),
                value_text(c.get("loglik"), 1),
                "–" if c.get("parameters") is None else str(c["parameters"]),
                two(c.get("silhouette")),
                starts,
                c["status"].replace("_", " "),
            ]
        )
    title = (
        f"All {len(candidates)} fits with their status"
        if len(shown) == len(candidates)
        else f"The best {len(shown)} of {len(candidates)} fits"
    )
    return fold(title, table(heads, lines, numeric=range(1, 8 + on_all), label="Fits", sort=True, tall=True))

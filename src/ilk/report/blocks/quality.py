"""Block 6: how good the groups are: separations, silhouettes, overlap, and the known classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ilk.report.figures import count_text, plural, share_text
from ilk.report.html import Html, figure, fold, group_class, name, section, table, tag
from ilk.report.svg import Axis, line, rect, svg, text
from ilk.report.view import COLOURED, View, two

CLASSES = 8
PAIRS = 20
DOUBT = 0.125  # mean probability elsewhere that gets the full shade


def render(view: View) -> Html:
    title = "How good the groups are"
    if not view.parted:
        return section(
            6,
            title,
            tag("p", "There is only one group, so separation is not defined.", class_="sub"),
            _truth(view),
        )
    charts = [
        c
        for c in (_weakest(view), _separations(view), _silhouettes(view), _overlap(view), _stability(view))
        if c is not None
    ]
    text_ = "Are the groups separated, is a row nearer to its own group than to the next, how far do groups overlap?"
    layout = "thirds" if len(charts) >= 3 else "halves"
    return section(
        6,
        title,
        tag("p", text_, class_="sub"),
        tag("div", charts, class_=layout),
        _numbers(view),
        _truth(view),
    )


def _weakest(view: View) -> Html | None:
    """The two least separated groups, along the direction that separates them best."""
    weakest = (view.summary.get("merge") or {}).get("weakest")
    if not weakest or not weakest.get("counts_a"):
        return None
    (a, b), first, second = map(view.letter, weakest["pair"]), weakest["counts_a"], weakest["counts_b"]
    top = max(x + y for x, y in zip(first, second, strict=True)) or 1
    step = 340 / len(first)
    bars = []
    for j, (p, q) in enumerate(zip(first, second, strict=True)):
        bars += [
            rect(
                j * step,
                150 - 140 * p / top,
                step - 0.6,
                140 * p / top,
                f"fill {group_class(view.number.get(a, 0))}",
            ),
            rect(
                j * step,
                150 - 140 * (p + q) / top,
                step - 0.6,
                140 * q / top,
                f"fill {group_class(view.number.get(b, 1))}",
            ),
        ]
    drawing = svg(
        340,
        166,
        bars,
        line(0, 150, 340, 150, "axis"),
        label=f"Rows of {a} and {b} along the line that separates them",
    )
    value = view.verdict.get("separation")
    caption: list[Any] = [
        "Rows of ",
        view.chip(a),
        " and ",
        view.chip(b),
        " along the line that separates them best. A dip in density between two humps makes two groups.",
    ]
    caption.append(f" Their separation is {two(value)}." if value is not None else "")
    return figure("The two least separated groups", caption, drawing)


def _separations(view: View) -> Html | None:
    """Separation of every pair of groups."""
    valleys = (view.summary.get("merge") or {}).get("separations")
    if not valleys or view.k > COLOURED or len(valleys) != view.k or view.k < 3:
        return None
    need = view.limits["separation"]

    def shade(i: int, j: int) -> tuple[str, float]:
        value = valleys[i][j]
        return (
            ("track", 1.0)
            if value is None or value >= need
            else ("doubt", min(1.0, (need - value) / 0.3 + 0.3))
        )

    drawing = _matrix(view, valleys, shade, lambda v: "–" if v is None else f"{v:.2f}")
    return figure(
        "Separation of pairs of groups",
        f"Threshold {need:.2f}: from there on two groups are clearly separated; tinted pairs are below.",
        drawing,
    )


def _matrix(view: View, values: Sequence[Sequence[Any]], shade: Any, told: Any) -> Html:
    side = 40.0
    parts: list[Any] = []
    for i, group in enumerate(view.groups):
        parts += [
            text(16, 20 + (i + 0.5) * side + 4, group["letter"], "b", "middle"),
            text(32 + (i + 0.5) * side, 12, group["letter"], "b", "middle"),
        ]
        for j in range(view.k):
            if values[i][j] is None:
                continue
            kind, opacity = shade(i, j)
            x, y = 32 + j * side, 20 + i * side
            if kind:
                parts.append(
                    tag(
                        "rect",
                        x=f"{x:.0f}",
                        y=f"{y:.0f}",
                        width="38",
                        height="38",
                        class_=kind,
                        fill_opacity=f"{opacity:.2f}",
                    )
                )
            parts.append(text(x + 19, y + 23, told(values[i][j]), "b small" if i == j else "small", "middle"))
    return svg(32 + view.k * side, 24 + view.k * side, parts, label="Matrix of groups", class_="matrix")


def _silhouettes(view: View) -> Html | None:
    """A bar for each row, or for each quantile of many."""
    found = view.summary.get("silhouettes")
    if not found or not any(e["values"] for e in found):
        return None
    low = min(0.0, *(min(e["values"]) for e in found if e["values"]))
    high = max(*(max(e["values"]) for e in found if e["values"]), 0.1)
    x = Axis(low, high, 30, 330)
    count = sum(len(e["values"]) for e in found)
    bar = max(0.9, min(4.0, 380 / max(count, 1)))
    y, parts = 8.0, []
    ticks = x.ticks(4)
    bottom = 8 + count * bar + 9 * len(found)
    parts += [line(x(t), 4, x(t), bottom, "axis" if t == 0 else "hair") for t in ticks]
    for i, entry in enumerate(found):
        start = y
        path = [f"M{x(0.0):.1f} {y:.1f}"]
        for value in entry["values"]:
            path.append(f"H{x(value):.1f}v{bar:.2f}")
            y += bar
        path.append(f"H{x(0.0):.1f}z")
        tip = (
            f"{entry['group']}: {plural(entry['rows'], 'row')}, {plural(entry['negative'], 'row')} below zero"
        )
        parts.append(tag("path", d="".join(path), class_=f"fill {group_class(i)}", data_tip=tip))
        middle = (start + y) / 2 + 4
        parts += [
            text(12, middle, entry["group"], "b", "middle"),
            text(378, middle, two(entry["mean"]), "", "end"),
        ]
        y += 9
    parts += [text(x(t), bottom + 14, f"{t:g}", "", "middle") for t in ticks]
    looked, negative = sum(e["rows"] for e in found), sum(e["negative"] for e in found)
    caption = (
        f"Long bars sit well inside their group. {count_text(negative)} of "
        f"{plural(looked, 'row')} point left: by plain distance they are nearer to another group."
    )
    if count < looked:
        caption += f" Drawn: {count} quantiles."
    return figure("Silhouettes", caption, svg(380, bottom + 20, parts, label="Silhouettes by group"))


def _overlap(view: View) -> Html | None:
    """Mean probability of every group over the rows of each."""
    overlap = view.summary.get("overlap")
    if not overlap:
        return None
    caption = (
        "Mean probability of each group (across), over the rows given to the group on the left. "
        "Shade off the diagonal is overlap."
    )
    if view.k > COLOURED:
        pairs = sorted(
            (
                (overlap[i][j], i, j)
                for i in range(view.k)
                for j in range(view.k)
                if i != j and (overlap[i][j] or 0) > 0.01
            ),
            reverse=True,
        )[:PAIRS]
        lines = [
            [view.chip(view.groups[i]["letter"]), view.chip(view.groups[j]["letter"]), f"{v:.2f}"]
            for v, i, j in pairs
        ]
        made = (
            table(["rows of", "overlap with", "mean prob."], lines, numeric=(2,), label="Overlap")
            if lines
            else tag("p", "No pair overlaps by more than 0.01.", class_="note")
        )
        return figure("Overlap", "Pairs of groups that overlap: mean probability of the other group.", made)

    def shade(i: int, j: int) -> tuple[str, float]:
        value = overlap[i][j]
        if i == j:
            return "track", 1.0
        return ("doubt", min(1.0, value / DOUBT) * 0.8) if value >= 0.005 else ("", 0.0)

    return figure(
        "Overlap",
        caption,
        _matrix(view, overlap, shade, lambda v: "·" if v < 0.005 else f"{v:.2f}".removeprefix("0")),
    )


def _stability(view: View) -> Html | None:
    """The stability of each group."""
    if not view.has_stable or view.k > COLOURED:
        return None
    x, low, need = Axis(0.0, 1.0, 34, 300), view.limits["stability_low"], view.limits["stability_min"]
    height = 26 * view.k
    parts: list[Any] = [
        tag(
            "rect",
            x=f"{x(0):.0f}",
            y="4",
            width=f"{x(low) - x(0):.1f}",
            height=f"{height}",
            class_="f-weak",
            fill_opacity=".10",
        ),
        tag(
            "rect",
            x=f"{x(low):.1f}",
            y="4",
            width=f"{x(need) - x(low):.1f}",
            height=f"{height}",
            class_="f-fair",
            fill_opacity=".14",
        ),
    ]
    for i, group in enumerate(view.groups):
        y = 8 + 26 * i
        parts.append(text(14, y + 14, group["letter"], "b", "middle"))
        value = group.get("stability")
        if value is None:
            parts.append(text(40, y + 14, "too small to measure", "m"))
            continue
        parts += [
            rect(x(0), y + 5, x(value) - x(0), 9, f"fill {group_class(i)}"),
            text(346, y + 14, view.stable_text(value), "b" if value < need else "", "end"),
        ]
    parts += [text(x(t), height + 22, f"{t:g}", "", "middle") for t in (0, low, need, 1.0)]
    return figure(
        "Stability",
        f"Mean Jaccard index with the matching group in bootstrap resamples. Tinted: below {low:.2f} and {need:.2f}.",
        svg(350, height + 28, parts, label="Stability of the groups"),
    )


def _numbers(view: View) -> Html | None:
    lines = []
    silhouettes = view.summary.get("silhouettes") or [None] * view.k
    for group, entry in zip(view.groups, silhouettes, strict=False):
        nearest = group.get("nearest") or {}
        lines.append(
            [
                view.chip(group["letter"]),
                count_text(group["rows"]),
                two(group.get("probability")),
                view.stable_text(group.get("stability")),
                two(group.get("silhouette")),
                "–" if not entry else count_text(entry["negative"]),
                nearest.get("group") or "–",
                two(nearest.get("separation")),
            ]
        )
    heads = [
        "group",
        "rows",
        "mean prob.",
        "stability",
        "silhouette",
        "rows below zero",
        "nearest",
        "separation",
    ]
    return fold(
        "Numbers behind quality",
        table(heads, lines, numeric=range(1, 8), label="Quality by group", sort=True),
    )


def _truth(view: View) -> Html | None:
    """The known classes: counts by class and group, and the measures in words."""
    truth = view.summary.get("truth")
    if not truth:
        return None
    n_classes = len(truth["classes"])
    shown = list(range(n_classes)) if n_classes <= CLASSES else list(range(CLASSES - 1))
    titles = [*(truth["classes"][j] for j in shown), *(["others"] if n_classes > CLASSES else [])]
    counts = [
        [line_[j] for j in shown] + ([sum(line_[len(shown) :])] if n_classes > CLASSES else [])
        for line_ in truth["counts"]
    ]
    most = max([v for line_ in counts for v in line_] + [1])
    lines = []
    for letter, line_ in zip(truth["groups"], counts, strict=True):
        i = view.number.get(letter, 0)
        cells = [[_count_bar(v, most, i) if v else None, count_text(v) if v else "·"] for v in line_]
        lines.append([view.chip(letter), *cells])
    left = [
        tag("h3", "Compared with the known classes (", name(truth["column"]), ")"),
        tag("p", "Number of rows. They were not used for fitting.", class_="cap"),
        table(["group", *(name(t, 20) for t in titles)], lines, label="Groups and classes"),
    ]
    figures: Mapping[str, str] = {
        "Purity": f"{two(truth['purity'])} share of rows in the main class of their group" + _base(truth),
        "Adjusted Rand": f"{two(truth['ari'])} agreement beyond chance",
        "NMI": two(truth["nmi"]),
        "Entropy": f"{truth['entropy']:.3f} bits left in a group, on average",
        "Precision, recall, F": f"{two(truth['precision'])}, {two(truth['recall'])}, {two(truth['f_measure'])}",
    }
    finding = truth["finding"]
    right = [
        tag("h3", finding[:1].upper() + finding[1:] if finding else "How far they agree"),
        tag("dl", [[tag("dt", k), tag("dd", v)] for k, v in figures.items()], class_="facts"),
    ]
    if truth["rows_without"]:
        right.append(
            tag(
                "p",
                f"{plural(truth['rows_without'], 'row')} without a class left out "
                f"({share_text(truth['rows_without'] / max(1, truth['rows'] + truth['rows_without']))}).",
                class_="note",
            )
        )
    return tag("div", tag("div", tag("div", left), tag("div", right), class_="wide-left"), class_="panel")


def _count_bar(value: float, most: float, i: int) -> Html:
    return svg(100, 12, rect(0, 0, 100 * value / most, 12, f"fill {group_class(i)}"), stretch=True)


def _base(truth: Mapping[str, Any]) -> str:
    """What purity is worth: that of one group of all rows."""
    base = truth.get("base_rate")
    return "" if base is None else f"; in the largest class alone {two(base)}"

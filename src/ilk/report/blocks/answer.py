"""Block 1: how many groups, how far to trust them, what each is, which columns make them, what to beware of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ilk.report.figures import count_text, plural, share_text
from ilk.report.html import Html, fold, group_class, name, table, tag
from ilk.report.svg import rect, svg
from ilk.report.view import DOTS, View, two, word

TABLE_GROUPS = 12
BARS = 7
CAUTIONS = 5
LETTER_ONLY = 0.06  # share below which the bar shows the letter alone
SLIVER = 0.02


def render(view: View) -> Html:
    left: list[Any] = [pill(view), tag("h1", headline(view)), tag("p", lead(view), class_="lead")]
    if view.parted:
        left += [shares(view), glance(view)]
    left += [columns(view), tag("p", "All terms are explained at the end of block 9.", class_="cap")]
    right = [rests(view), cautions(view)]
    return tag("section", tag("div", tag("div", left), tag("div", right), class_="answer"), id="s1")


def pill(view: View) -> Html:
    """The verdict: three dots and words."""
    said = str(view.verdict["word"]).capitalize()
    text = f"{said}: {_carried_by(view)}" if view.clear else said
    return tag(
        "p",
        tag("span", DOTS[view.tier], class_="dots", aria_hidden="true"),
        tag("span", text),
        class_=f"pill {view.tier}",
    )


def _carried_by(view: View) -> str:
    codes = [reason["code"] for reason in view.verdict["reasons"]]
    shaky = [g["letter"] for g in view.groups if (g.get("stability") or 1.0) < view.limits["stability_min"]]
    if view.tier == "solid":
        return f"all {word(view.k)} groups are separated and stable"
    if not view.has_stable and view.tier != "weak":
        return "the run was interrupted" if view.summary["interrupted"] else "stability was not measured"
    dissolved = [
        g["letter"] for g in view.groups if (g.get("stability") or 1.0) < view.limits["stability_low"]
    ]
    if dissolved:
        which = " and ".join(dissolved) if len(dissolved) < 4 else f"{word(len(dissolved))} groups"
        return f"{which} {'dissolves' if len(dissolved) == 1 else 'dissolve'} in resamples"
    if shaky and view.tier == "fair":
        return f"{' and '.join(shaky)} {'is' if len(shaky) == 1 else 'are'} borderline" if len(shaky) < 4 else (
            f"{word(len(shaky))} groups are borderline")  # fmt: skip
    words = {
        "not-separated": "the groups are not clearly separated",
        "icl-one": "one group may be enough",
        "unstable-group": "not every group is stable",
        "not-tested": "stability was not measured",
        "search-unsettled": "the search has not converged",
        "fewer-components": "more components fit better, but their groups do not hold",
        "finer-groups": "there may be more groups",
        "overlap": "the groups overlap",
        "between-groups": "some rows may be of two groups",
        "finer-dissolved": "finer groups do not hold",
        "few-rows": "there are few rows",
    }
    return next((words[code] for code in codes if code in words), "see details")


def headline(view: View) -> str:
    rows = plural(view.summary["table"]["rows"], "row")
    if not view.clear:
        return f"No clear groups in {rows}" if view.tested else f"{rows} as one group"
    return f"{word(view.k).capitalize()} groups in {rows}"


def lead(view: View) -> list[Any]:
    """At most three sentences: what holds, what does not, and the probabilities of single rows."""
    sentences = []
    verdict = view.verdict
    if verdict.get("sentence"):
        sentences.append(_sentence(str(verdict["sentence"])))
    else:
        sentences += [_sentence(reason["text"]) for reason in verdict["reasons"][:2]]
    unsure = (view.summary.get("row_counts") or {}).get("uncertain")
    if unsure is not None and view.parted:
        used, below = view.summary["row_counts"]["examined"], view.summary["row_counts"]["uncertain_below"]
        which = f"All {plural(used, 'row')}"
        if unsure:
            which = f"{count_text(used - unsure)} of {plural(used, 'row')}"
        if used < view.summary["table"]["rows_used"]:
            which += " that were examined"
        sentences.append(f"{which} belong to their {view.thing} with a probability of {below:.2f} or more.")
    if view.summary["chosen"].get("as_asked") and view.clear:
        sentences.append("The number of groups is the one that was asked for.")
    return [" ".join(sentences)]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def shares(view: View) -> Html:
    """The groups as one bar; widths are in `rules`."""
    parts = []
    for i, group in enumerate(view.groups):
        slim = group["share"] < LETTER_ONLY
        content = [] if group["share"] < SLIVER else [tag("b", group["letter"])]
        content += [] if slim else [tag("span", share_text(group["share"]))]
        tip = f"{group['letter']}: {plural(group['rows'], 'row')}, {share_text(group['share'])}"
        classes = f"{group_class(i)} w{i}{' slim' if slim else ''}"
        parts.append(tag("a", content, href=f"#g{i}", class_=classes, data_tip=tip, aria_label=tip))
    note = None
    if view.summary["options"].get("weight"):
        note = tag("p", "Shares are by weight (", name(view.summary["options"]["weight"]), ").", class_="cap")
    return tag("div", tag("div", parts, class_="shares"), note)


def rules(view: View) -> str:
    """Style that depends on the data: the widths of the bar."""
    return "".join(
        f".ilk .w{i}{{flex-grow:{max(group['share'], 1e-4):.4f}}}" for i, group in enumerate(view.groups)
    )


def glance(view: View) -> Html:
    """All groups in one table; the twelve largest, then a fold."""
    heads: list[Any] = [view.thing.capitalize(), "What it is", "rows"]
    notes = ["Letters are in order of size."]
    if view.has_sure:
        heads.append("mean prob.")
        notes.append("Mean prob.: mean probability that its rows belong to it.")
    elif view.has_silhouette:
        heads.append("silhouette")
        notes.append(
            "Silhouette: how much nearer its rows are to their own group than to the next; 1 is best."
        )
    if view.has_stable:
        heads.append("stability")
        notes.append(
            "Stability: mean Jaccard index with the matching group in bootstrap resamples; 1 is best."
        )
    lines = [_glance_line(view, i) for i in range(view.k)]
    numeric = range(2, len(heads))
    parts: list[Any] = [table(heads, lines[:TABLE_GROUPS], numeric=numeric, label="Groups", class_="glance")]
    if len(lines) > TABLE_GROUPS:
        rest = table(heads, lines[TABLE_GROUPS:], numeric=numeric, label="Further groups", class_="glance")
        parts.append(fold(f"The other {len(lines) - TABLE_GROUPS}", rest, class_="rows"))
    return tag("div", parts, tag("p", " ".join(notes), class_="cap"), class_="part")


def _glance_line(view: View, i: int) -> list[Any]:
    group = view.groups[i]
    line: list[Any] = [
        view.chip(group["letter"]),
        (tag("a", name(group["name"], 90), href=f"#g{i}"), {"class_": "wide"}),
        count_text(group["rows"]),
    ]
    if view.has_sure:
        line.append(two(group["probability"]))
    elif view.has_silhouette:
        line.append(two(group["silhouette"]))
    if view.has_stable:
        stable = group.get("stability")
        line.append((view.stable_text(stable), {"class_": view.stable_class(stable)}))
    return line


def columns(view: View) -> Html | None:
    """The columns that make the groups, by mean divergence."""
    if not view.parted or not view.profile:
        return None
    shown = view.profile[:BARS]
    most = max([entry["relevance"] for entry in shown] + [1e-9])
    lines = [
        tag(
            "li", name(entry["column"]),
            svg(100, 8, rect(0, 0, 100 * entry["relevance"] / most, 8, "ink"), stretch=True),
            tag("span", f"{entry['relevance']:.2f}", class_="v"),
        )
        for entry in shown
    ]  # fmt: skip
    silent = [entry["column"] for entry in view.profile if not entry["distinctive_in"]]
    text: list[Any] = [
        "How far the groups differ from the whole table in a column: Kullback-Leibler divergence, in nats per row."
    ]
    if len(view.profile) > BARS:
        text.append(f" And {len(view.profile) - BARS} more in block 3.")
    if 0 < len(silent) <= 3:
        text += [
            " ",
            [[name(column), ", " if i < len(silent) - 1 else ""] for i, column in enumerate(silent)],
        ]
        text.append(" distinguishes no group." if len(silent) == 1 else " distinguish no group.")
    return tag(
        "div",
        tag("h3", "Columns that distinguish the groups"),
        tag("ul", lines, class_="bars"),
        tag("p", text, class_="cap"),
        class_="part",
    )


def rests(view: View) -> Html:
    """What the verdict rests on: each measured thing, a bar with its thresholds as marks."""
    made: list[Html | None] = [_separation(view), _stable(view), _icl(view)]
    if not any(made):
        made = [_starts(view)]
    if view.has_sure:
        sure = sum(g["probability"] * g["share"] for g in view.groups if g["probability"] is not None)
        made.append(
            rest(
                "Mean probability",
                two(sure),
                None,
                "Of the group that each row was given. Not part of the verdict.",
            )
        )
    return tag("div", tag("h3", "What the verdict is based on"), made, class_="rests")


def rest(title: Any, figure: str, bar: Html | None, caption: str) -> Html:
    return tag(
        "div",
        tag("p", tag("span", title), tag("b", figure)),
        bar,
        tag("span", caption, class_="cap"),
        class_="rest",
    )


def gauge(value: float, limits: tuple[float, ...], most: float = 1.0) -> Html:
    """A bar in the hue of the tier it reaches, with the thresholds as marks."""
    reached = sum(value >= limit for limit in limits)
    tiers = ("weak", "fair", "solid") if len(limits) == 2 else ("fair", "solid")
    full = min(value / most, 1.0) * 100
    marks = [rect(100 * limit / most - 0.2, 0, 0.5, 16, "ink") for limit in limits]
    return svg(
        100,
        16,
        rect(0, 4, 100, 8, "track"),
        rect(0, 4, max(full, 0.5), 8, f"f-{tiers[reached]}"),
        marks,
        stretch=True,
    )


def _separation(view: View) -> Html | None:
    """The lowest separation between groups; where there are none, that of the components merged last."""
    merge = view.summary.get("merge") or {}
    value, pair = view.verdict.get("separation"), (merge.get("weakest") or {}).get("pair") or ()
    title = (
        f"Separation of {' and '.join(view.letter(mark) for mark in pair)}" if pair else "Lowest separation"
    )
    if not view.clear:
        value = merge["path"][-1]["separation"] if merge.get("path") else None
        title = "Separation of the last two components"
    if value is None:
        return None
    least, need = view.limits["merge"], view.limits["separation"]
    text = "The dip in density between the two closest groups; 0 is no dip. "
    text += f"Merged below {least:.2f}, clear from {need:.2f}."
    most = max(1.0, min(2.0, value * 1.05))
    return rest(title, two(value, least, need), gauge(value, (least, need), most=most), text)


def _stable(view: View) -> Html | None:
    value = view.verdict.get("stability_min")
    if value is None:
        return None
    least = min(
        (g for g in view.groups if g.get("stability") is not None), key=lambda g: g["stability"], default=None
    )
    title = "Lowest stability" + (f" ({least['letter']})" if least is not None else "")
    low, need = view.limits["stability_low"], view.limits["stability_min"]
    mean = view.verdict.get("stability_mean")
    text = f"Mean Jaccard index with the matching group in bootstrap resamples. Solid from {need:.2f}."
    text += f" Mean over groups {two(mean)}." if mean is not None else ""
    return rest(title, two(value, low, need), gauge(value, (low, need)), text)


def _icl(view: View) -> Html | None:
    value = view.verdict.get("icl_k")
    if value is None:
        return None
    text = (
        "ICL is a criterion like BIC that also penalises overlap. One means that it prefers a single group."
    )
    return rest("Components preferred by ICL", word(int(value)), None, text)


def _starts(view: View) -> Html | None:
    chosen = next((c for c in view.summary["candidates"] if _is_chosen(c, view.summary["chosen"])), None)
    if chosen is None or not chosen.get("n_starts"):
        return None
    text = "Random starts of the search that ended in the same best solution."
    return rest(
        "Starts that reached the best", f"{chosen['n_starts_at_best']} of {chosen['n_starts']}", None, text
    )


def _is_chosen(candidate: Mapping[str, Any], chosen: Mapping[str, Any]) -> bool:
    pieces = chosen.get("components") or chosen["k"]
    return bool(
        candidate["k"] == pieces
        and candidate["method"] == chosen["method"]
        and candidate.get("structure") == chosen.get("structure")
    )


def cautions(view: View) -> Html | None:
    """What to beware of, at most five, the rest in a fold."""
    found = view.summary["warnings"]
    if not found:
        return None
    lines = [tag("li", tag("span", w["code"], class_="code"), w["text"]) for w in found]
    parts: list[Any] = [tag("ul", lines[:CAUTIONS], class_="cautions")]
    if len(lines) > CAUTIONS:
        parts.append(
            fold(
                f"{len(lines) - CAUTIONS} more", tag("ul", lines[CAUTIONS:], class_="cautions"), class_="rows"
            )
        )
    return tag("div", tag("h3", "Cautions"), parts, class_="part")

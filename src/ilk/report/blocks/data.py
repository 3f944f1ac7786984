"""Block 8: how each column was read, what is missing, what was left out and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ilk.report.figures import count_text, plural, share_text
from ilk.report.html import Html, fold, name, section, table, tag
from ilk.report.svg import rect, svg
from ilk.report.view import View, word

SHOWN = 50
LEVELS = 4
UNEVEN = 0.05  # difference of the missing shares of two groups from which they are told
CHIPS = 6


def render(view: View) -> Html:
    made = view.summary["table"]
    roles = [c["role"] for c in made["columns"]]
    used, described, out = roles.count("used"), roles.count("described"), roles.count("left out")
    parts = [f"{plural(made['rows'], 'row')}, {plural(len(roles), 'column')}: {word(used)} used"]
    parts += [f"{word(described)} described only"] if described else []
    parts += (
        [f"{word(len(roles) - used - described - out)} not used for fitting"]
        if len(roles) > used + described + out
        else []
    )
    parts += [f"{word(out)} left out"] if out else []
    text = ", ".join(parts) + "."
    text += (
        f" {share_text(made['missing']['share'])} of the values are missing; none was filled in."
        if made["missing"]["share"]
        else " No value is missing."
    )
    return section(8, "Data and preparation", tag("p", text, class_="sub"), _columns(view), _ledger(view))


def _columns(view: View) -> list[Html]:
    place = {entry["column"]: i for i, entry in enumerate(view.profile)}
    columns = sorted(
        view.summary["table"]["columns"],
        key=lambda c: (place.get(c["name"], len(place)), c["role"] == "left out"),
    )
    first = [c for c in columns if c["name"] not in place or place[c["name"]] < SHOWN]
    rest = [c for c in columns if c["name"] in place and place[c["name"]] >= SHOWN]
    heads = ["column", "type", "reason", "missing", "range or categories", "distribution"]
    heads += ["distinguishes"] if view.parted else []
    made = [table(heads, [_line(view, c) for c in first[: 2 * SHOWN]], label="Columns", sort=True)]
    hidden = [*first[2 * SHOWN :], *rest]
    if hidden:
        short = [
            [
                name(c["name"]),
                c["type"],
                (name(c["reason"], 80), {"class_": "wide"}),
                count_text(c["missing"]),
            ]
            for c in hidden
        ]
        made.append(
            fold(
                f"The other {len(hidden)} columns",
                table(heads[:4], short, label="Further columns", sort=True, tall=True),
                class_="nums",
            )
        )
    return made


def _line(view: View, column: Mapping[str, Any]) -> list[Any]:
    entry = next((e for e in view.profile if e["column"] == column["name"]), None)
    spread = entry["distribution"] if entry else None
    kind = (
        column["type"]
        if column["role"] in ("used", "left out")
        else {"described": f"{column['type']}, described only"}.get(
            column["role"], f"not used for fitting ({column['role']})"
        )
    )
    return [
        tag("b", name(column["name"])),
        kind,
        (name(column["reason"], 120), {"class_": "wide"}),
        tag("span", count_text(column["missing"]), _uneven(view, column)),
        (_range(view, column, spread), {"class_": "wide"}),
        _small(entry, spread),
        *([_tells(view, entry)] if view.parted else []),
    ]


def _uneven(view: View, column: Mapping[str, Any]) -> str:
    """Missing values by group, where they are uneven."""
    if not column["missing"] or not view.parted or view.k > CHIPS:
        return ""
    shares = [
        (g["letter"], view.facts[i][column["name"]]["missing"])
        for i, g in enumerate(view.groups)
        if column["name"] in view.facts[i]
    ]
    if not shares or max(s for _, s in shares) - min(s for _, s in shares) < UNEVEN:
        return ""
    return " (" + ", ".join(f"{letter} {share_text(share)}" for letter, share in shares if share) + ")"


def _range(view: View, column: Mapping[str, Any], spread: Mapping[str, Any] | None) -> Any:
    if spread and "low" in spread:
        return view.range_text(column["name"], spread)
    levels = column["categories"]
    if not levels:
        return ""
    shown = [
        [name(level, 24), ", " if i < min(len(levels), LEVELS) - 1 else ""]
        for i, level in enumerate(levels[:LEVELS])
    ]
    return tag("span", shown, f" and {len(levels) - LEVELS} more" if len(levels) > LEVELS else "")


def _small(entry: Mapping[str, Any] | None, spread: Mapping[str, Any] | None) -> Html | None:
    """The distribution of the whole table."""
    if not entry or not spread:
        return None
    counts = spread["whole"]
    top, step = max(counts) or 1, 108 / len(counts)
    return svg(
        108,
        20,
        [
            rect(j * step, 20 - 20 * v / top, max(step - 1, 0.6), 20 * v / top, "grey")
            for j, v in enumerate(counts)
        ],
        stretch=True,
    )


def _tells(view: View, entry: Mapping[str, Any] | None) -> Any:
    if not entry:
        return ""
    letters = entry["distinctive_in"]
    if not letters:
        return "none"
    if len(letters) == view.k:
        return f"all {word(view.k)}"
    if len(letters) > CHIPS:
        return f"{len(letters)} of {view.k}"
    return [[view.chip(letter), " "] for letter in letters]


def _ledger(view: View) -> Html:
    ledger, notes = view.summary["table"]["ledger"], []
    for part in ledger.get("set_aside", []):
        notes.append(f"Set aside: {plural(part['count'], part['unit'])} {part['reason']}.")
    for part in ledger.get("skipped", []):
        notes.append(f"Skipped: {plural(part['count'], part['unit'])}, {part['reason']}.")
    scale = view.summary["options"].get("scale") or view.summary["table"].get("treatment")
    compared = view.summary["table"].get("compared")
    notes.append(
        f"Compared: {compared}."
        if compared
        else "Numbers are centred and scaled for the computation and shown here in your units."
        if scale
        else "Columns were not rescaled: a column with larger numbers counts for more."
    )
    notes.append("No row was dropped." if not notes[:-1] else "")
    return tag("p", " ".join(n for n in notes if n), class_="cap")

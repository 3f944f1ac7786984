"""One group, one row or all groups in words, from the summary of a run: what `ilk explain` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ilk.errors import UsageError, shown
from ilk.report.figures import (
    count_text,
    differs,
    few_cells,
    plural,
    share_text,
    told_value,
    varies_less,
)
from ilk.report.terms import rule_text
from ilk.text.layout import Surface, line
from ilk.text.summary import ARROWS

COLUMNS_TOLD = 8
ROWS_TOLD = 3

Summary = Mapping[str, Any]


def overview(summary: Summary, surface: Surface) -> str:
    """All groups, a name and a rule each."""
    lines: list[str] = []
    if summary["chosen"]["k"] < 2:
        verdict = summary["verdict"]
        lines += line("groups", [(f"{verdict['word']}: {verdict['sentence']}", "")], surface)
    for group in summary["groups"] if summary["chosen"]["k"] > 1 else ():
        text = f"{plural(group['rows'], 'row')}, {share_text(group['share'])}: {shown(group['name'], 120)}"
        lines += line(group["letter"], [(text, "")], surface, "bold")
        lines += line("", [(rule_text(group.get("rule"), group["letter"]), "dim")], surface)
    return surface.fit("\n".join(lines))


def group_text(summary: Summary, letter: str, surface: Surface) -> str:
    """One group: size, trust, what sets it apart, its rule, typical and border rows."""
    number, group = find_group(summary, letter)
    size = f"{plural(group['rows'], 'row')}, {share_text(group['share'])} of the table"
    lines = line(group["letter"], [(shown(group["name"], 160), "bold")], surface, "bold")
    lines += line("size", [(size, "")], surface)
    lines += line("trust", [(_trust(group), "")], surface) if _trust(group) else []
    telling = [fact for fact in group["facts"] if differs(fact)]
    for i, fact in enumerate(telling[:COLUMNS_TOLD]):
        lines += line("" if i else "differs in", [(fact_text(fact), "")], surface)
    if group.get("pair"):
        lines += line("" if telling else "differs in", [(_together(group["pair"]), "")], surface)
    elif not telling:
        lines += line("differs in", [("no clear difference from the whole table", "")], surface)
    if len(telling) > COLUMNS_TOLD:
        lines += line(
            "", [(f"and {len(telling) - COLUMNS_TOLD} more columns, in report.html", "dim")], surface
        )
    lines += _unlike(group, surface)
    for i, fact in enumerate([fact for fact in group["facts"] if varies_less(fact)][:COLUMNS_TOLD]):
        lines += line("" if i else "varies less", [(fact_text(fact), "")], surface)
    same = [shown(f["column"], 30) for f in group["facts"] if not (differs(f) or varies_less(f))]
    if same:
        more = f" and {len(same) - 5} more" if len(same) > 5 else ""
        lines += line("not distinctive", [(", ".join(same[:5]) + more, "dim")], surface)
    lines += line("in short", [(rule_text(group.get("rule"), group["letter"]), "")], surface)
    lines += _rows(summary, number, surface)
    return surface.fit("\n".join(lines))


def find_group(summary: Summary, letter: str) -> tuple[int, Mapping[str, Any]]:
    """A group by its letter, in either case, or by its name."""
    for number, group in enumerate(summary["groups"]):
        if letter.upper() == group["letter"] or letter == group["name"]:
            return number, group
    letters = ", ".join(group["letter"] for group in summary["groups"])
    raise UsageError("unknown-group", f"there is no group {shown(letter)!r}", do=f"The groups are {letters}")


def _together(pair: Mapping[str, Any]) -> str:
    first, second = (shown(column, 30) for column in pair["columns"])
    return f"{first} and {second} together: {shown(pair['words'], 100)}"


def _unlike(group: Mapping[str, Any], surface: Surface) -> list[str]:
    """What distinguishes the group from the one most like it."""
    unlike, lines = group.get("unlike"), list[str]()
    if not unlike:
        return []
    for i, fact in enumerate(unlike["facts"]):
        text = fact_text(fact, f"in {unlike['group']}")
        lines += line("" if i else f"unlike {unlike['group']}", [(text, "")], surface)
    alike = f"no single column distinguishes it from {unlike['group']}, the group most like it"
    return lines or line("unlike", [(alike, "")], surface)


def fact_text(fact: Mapping[str, Any], other: str = "in the whole table") -> str:
    """A column of a group in words: `spend is higher: 412 on average, 180 in the whole table`."""
    column = shown(fact["column"], 30)
    few = few_cells(fact)
    rests = f" ({few})" if few else ""
    if fact["type"] == "number":
        value, whole = told_value(fact), told_value(fact, "whole")
        up, down = ("later", "earlier") if fact.get("clock") else ("higher", "lower")
        word = {"up": up, "down": down, "same": "about the same, but varies less"}[fact["sign"]]
        return f"{ARROWS[fact['sign']]} {column} is {word}: {value} on average{rests}, {whole} {other}"
    value, whole = share_text(fact["value"]), share_text(fact["whole"])
    head = f"{ARROWS[fact['sign']]} {column} is {shown(fact['category'], 30)}"
    return f"{head} in {value}{rests}, {whole} {other}"


def _trust(group: Mapping[str, Any]) -> str:
    parts = []
    if group.get("probability") is not None:
        parts.append(f"mean probability {group['probability']:.2f}")
    if group.get("stability") is not None:
        parts.append(f"stability {group['stability']:.2f} (mean Jaccard over bootstrap resamples)")
    elif group.get("silhouette") is not None:
        parts.append(f"silhouette {group['silhouette']:.2f}")
    nearest = group.get("nearest")
    if nearest and nearest.get("separation") is not None:
        parts.append(f"nearest is {nearest['group']} (separation {nearest['separation']:.2f})")
    return "; ".join(parts)


def _rows(summary: Summary, number: int, surface: Surface) -> list[str]:
    found = summary.get("rows")
    if not found:
        return []
    part, lines = found["groups"][number], []
    for title, rows in (("typical", part["typical"][:ROWS_TOLD]), ("border", part["border"])):
        for i, row in enumerate(rows):
            second = f", second choice {row['second']}" if title == "border" and row["second"] else ""
            cells = ", ".join(_cell(c, v) for c, v in zip(part["columns"], row["cells"], strict=True))
            lines += line("" if i else title, [(f"row {row['row']}{second}: ", "bold"), (cells, "")], surface)
    return lines


def _cell(column: str, value: float | str | None) -> str:
    if value is None:
        return f"{shown(column, 24)} missing"
    text = shown(value, 24) if isinstance(value, str) else f"{value:,.6g}"
    return f"{shown(column, 24)} {text}"


def row_text(
    summary: Summary, placed: Mapping[str, Any], cells: Mapping[str, Any] | None, surface: Surface
) -> str:
    """One row: its group, its probability, what else it could be, and its values compared with the groups."""
    number, letter = placed["row"], placed.get("segment") or placed.get("group")
    if letter in (None, ""):
        text = "it has no value in the columns used, so it has no group"
        return surface.fit("\n".join(line(f"row {number}", [(text, "")], surface, "bold")))
    _, group = find_group(summary, str(letter))
    head = f"is in {letter}: {shown(group['name'], 120)}"
    lines = line(f"row {count_text(number)}", [(head, "bold")], surface, "bold")
    lines += line("certainty", [(_sure_text(placed), "")], surface)
    second = placed.get("second") or None
    other = find_group(summary, str(second))[1] if second and len(summary["groups"]) > 1 else None
    if cells:
        for i, text in enumerate(_beside(group, other, cells)):
            lines += line("" if i else "values", [(text, "")], surface)
    else:
        lines += line("values", [("name the table to see them: --data FILE", "dim")], surface)
    return surface.fit("\n".join(lines))


def _sure_text(placed: Mapping[str, Any]) -> str:
    parts = []
    if placed.get("probability") is not None:
        parts.append(f"probability {float(placed['probability']):.2f}")
    if placed.get("second"):
        parts.append(f"second choice {placed['second']}")
    if placed.get("novelty") is not None:
        novelty = float(placed["novelty"])
        word = (
            "unusual in its group"
            if novelty >= 0.95
            else "well inside its group"
            if novelty <= 0.5
            else "within its group"
        )
        parts.append(f"{word} (novelty {novelty:.2f})")
    return "; ".join(parts)


def _beside(
    group: Mapping[str, Any], other: Mapping[str, Any] | None, cells: Mapping[str, Any]
) -> Sequence[str]:
    """Each telling column of the row beside its group, the next group and the whole table."""
    others = {fact["column"]: fact for fact in other["facts"]} if other else {}
    made = []
    for fact in [f for f in group["facts"] if f["distinctive"]][:COLUMNS_TOLD]:
        if fact["column"] not in cells:
            continue
        text = _cell(fact["column"], cells[fact["column"]])
        rival = others.get(fact["column"])
        if fact["type"] == "number":
            text += f": {group['letter']} {told_value(fact)}"
            text += f", {other['letter']} {told_value(rival)}" if other and rival else ""
            text += f", all {told_value(fact, 'whole')}"
        else:
            text += (
                f": {shown(fact['category'], 24)} in {share_text(fact['value'])} of "
                f"{group['letter']}, {share_text(fact['whole'])} of all"
            )
        made.append(text)
    return made

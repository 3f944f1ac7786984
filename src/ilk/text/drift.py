"""What `ilk check` prints: the verdict, the columns that moved most, group shares then and now, rows unlike any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ilk.errors import shown
from ilk.monitor.drift import FAR
from ilk.report.figures import plural, share_text, tenths_text, told_value
from ilk.text.layout import Surface, cells, line

COLUMNS_TOLD = 6
LEVELS_TOLD = 5
GROUPS_TOLD = 12


def check_text(document: Mapping[str, Any], surface: Surface) -> str:
    """A check as lines of text."""
    before, verdict = document["before"], document["verdict"]
    rows = f"{plural(document['rows'], 'row')}, compared with {plural(before['rows'] or 0, 'row')}"
    rows += f" of {shown(before['source'], 60)}"
    colour = "bold red" if verdict["word"] == "drift" else "bold green"
    lines = line(shown(document["source"], 40), [(rows, "")], surface, "bold")
    lines += line("verdict", [(f"{verdict['word']}:", colour), (verdict["sentence"], "")], surface)
    lines += _column_lines(document, surface)
    for number, entry in enumerate(document["unseen"]):
        levels = ", ".join(shown(level, 20) for level in entry["categories"][:LEVELS_TOLD])
        more = ", …" if len(entry["categories"]) > LEVELS_TOLD else ""
        text = f"{shown(entry['column'], 30)}: {levels}{more} ({plural(entry['cells'], 'value')})"
        lines += line("" if number else "new categories", [(text, "")], surface)
    lines += line("novelty", [(_novelty_text(document["novelty"]), "")], surface)
    if document["rows_without_group"]:
        text = f"{plural(document['rows_without_group'], 'row')} without a value in the columns of the model"
        lines += line("no group", [(text, "")], surface)
    return surface.fit("\n".join([*lines, "", *_group_lines(document, surface)]))


def _column_lines(document: Mapping[str, Any], surface: Surface) -> list[str]:
    moved = [entry for entry in document["columns"] if entry["moved"]]
    lines: list[str] = []
    for number, entry in enumerate(moved[:COLUMNS_TOLD]):
        lines += line("" if number else "changed", [(column_text(entry), "")], surface)
    if len(moved) > COLUMNS_TOLD:
        lines += line("", [(f"and {len(moved) - COLUMNS_TOLD} more columns; --json has all", "dim")], surface)
    if not document["columns"]:
        text = "the model file is from a version that did not store the columns; fit again to compare them"
        return line("columns", [(text, "")], surface)
    rest = [entry for entry in document["columns"] if not entry["moved"]]
    if rest:
        most = max(rest, key=lambda entry: entry["nats"])
        text = f"{plural(len(rest), 'column')}, at most {most['nats']:.3f} nats ({shown(most['column'], 30)})"
        lines += line("as before", [(text, "dim")], surface)
    return lines


def column_text(entry: Mapping[str, Any]) -> str:
    """A column then and now: `spend 412, was 180 on average (0.31 nats)`."""
    name = shown(entry["column"], 30)
    if entry["type"] == "number":
        now, before = told_value(entry, "now"), told_value(entry, "before")
        text = f"{name} {now} on average, was {before}"
    else:
        text = f"{name}: {shown(entry['category'], 30)} {share_text(entry['now'])}, was {share_text(entry['before'])}"
    if abs(entry["missing_now"] - entry["missing_before"]) >= 0.01:
        text += f"; missing {share_text(entry['missing_now'])}, was {share_text(entry['missing_before'])}"
    return f"{text} ({entry['nats']:.2f} nats)"


def _novelty_text(novelty: Mapping[str, Any]) -> str:
    share, far = share_text(novelty["share"]), share_text(FAR)
    text = f"{share} of the rows are more unusual than {far} of the rows of their group were"
    text += f" ({tenths_text(novelty['expected'])} expected)"
    if not novelty["counted"]:
        text += "; not part of the verdict, since the model had few rows for its columns"
    if novelty["beyond_all"]:
        more = ", …" if novelty["beyond_all"] > len(novelty["rows"]) else ""
        rows = ", ".join(map(str, novelty["rows"])) + more
        text += f"; {plural(novelty['beyond_all'], 'row')} more unusual than any of them (row {rows})"
    return text


def _group_lines(document: Mapping[str, Any], surface: Surface) -> list[str]:
    groups = document["groups"][:GROUPS_TOLD]
    mark = max(5, *(cells(group["letter"]) for group in groups))
    lines = [surface.paint(f"  {'group':<{mark}}  before     now   95 % interval", "dim")]
    for group in groups:
        between = f"{tenths_text(group['low'])} to {tenths_text(group['high'])}"
        text = (
            f"  {group['letter']:<{mark}}  {tenths_text(group['before']):>6}  {tenths_text(group['now']):>6}"
        )
        lines.append(f"{text}   {between:<16}" + ("  changed" if group["moved"] else "").rstrip())
    if len(document["groups"]) > GROUPS_TOLD:
        lines.append(surface.paint("  and more; --json has all", "dim"))
    return [text.rstrip() for text in lines]

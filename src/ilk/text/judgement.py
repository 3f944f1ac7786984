"""The terminal: what `ilk judge` prints, measures of the groups beside a known class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ilk.errors import shown
from ilk.report.figures import count_text, plural
from ilk.text.layout import Surface, cells, line
from ilk.text.summary import MOST_GROUPS, name_text

LABELS = {"f_measure": "F", "ari": "ARI", "nmi": "NMI"}  # others: their own name


def judgement(truth: Mapping[str, Any], surface: Surface) -> str:
    """The measures, and who shares rows with whom."""
    parts = [
        plural(truth["rows"], "row"),
        plural(len(truth["groups"]), "group"),
        plural(len(truth["classes"]), "class").replace("classs", "classes"),
    ]
    lines = line(name_text(truth["column"]), [(", ".join(parts), "")], surface, "bold")
    if truth["rows_without"]:
        without = f"{plural(truth['rows_without'], 'row')} without a class or a group"
        lines += line("left out", [(without, "")], surface)
    base = truth.get("base_rate")
    notes = {"entropy": "bits, 0 is pure"}
    notes |= {} if base is None else {"purity": f"the largest class alone: {base:.4f}"}
    for name in ("entropy", "precision", "recall", "f_measure", "purity", "ari", "nmi"):
        note = [(f" {notes[name]}", "dim")] if name in notes else []
        lines += line(LABELS.get(name, name), [(f"{truth[name]:.4f}", ""), *note], surface)
    if truth["finding"]:
        lines += line("finding", [(truth["finding"], "")], surface)
    return surface.fit("\n".join([*lines, "", *_counts(truth, surface)]))


def _counts(truth: Mapping[str, Any], surface: Surface) -> list[str]:
    """The table of groups by classes."""
    heads = [shown(name, 12) for name in truth["classes"][:MOST_GROUPS]]
    widths = [max(cells(head), 5) for head in heads]

    def right(texts: list[str]) -> str:
        return "  ".join(" " * (wide - cells(text)) + text for text, wide in zip(texts, widths, strict=True))

    lines = [surface.paint("  group    " + right(heads), "dim")]
    for group, counts in zip(truth["groups"], truth["counts"], strict=True):
        lines.append(f"  {shown(group, 7):<7}  " + right([count_text(n) for n in counts[: len(heads)]]))
    more = len(truth["classes"]) - MOST_GROUPS
    if more > 0:
        lines.append(surface.paint(f"  and {more} more classes; --json has all", "dim"))
    return lines

"""Two labellings compared, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ilk.errors import shown
from ilk.monitor.comparison import KEYS_TOLD
from ilk.report.figures import count_text, plural, share_text
from ilk.text.layout import Surface, cells, line

FLOWS_TOLD = 8
GROUPS_TOLD = 12


def comparison_text(document: Mapping[str, Any], surface: Surface) -> str:
    """What `ilk compare` prints."""
    lines: list[str] = []
    for label in ("first", "second"):
        side = document[label]
        text = f"{shown(side['source'], 60)}: {plural(side['rows'], 'row')}, {plural(len(side['groups']), 'group')}"
        lines += line(label, [(text, "")], surface)
    alone = [
        (document["without_group"], "without a group in one of them"),
        (document["only_first"], "in the first only"),
        (document["only_second"], "in the second only"),
    ]
    left_out = [f"{plural(n, 'row')} {where}" for n, where in alone if n]
    if left_out:
        lines += line("left out", [("; ".join(left_out), "")], surface)
    lines += line("agreement", [(f"ARI {document['ari']:.3f}, NMI {document['nmi']:.3f}", "")], surface)
    lines += line("finding", [(document["finding"], "bold")], surface)
    lines += ["", *_pair_lines(document, surface), "", *_table_lines(document, surface)]
    return surface.fit("\n".join([*lines, *_flow_lines(document["moved"], surface)]))


def _pair_lines(document: Mapping[str, Any], surface: Surface) -> list[str]:
    lines = []
    for pair in document["pairs"][:GROUPS_TOLD]:
        text = f"{plural(pair['rows'], 'row')} in both: {share_text(pair['share_first'])} of {shown(pair['first'], 12)}"
        text += f", {share_text(pair['share_second'])} of {shown(pair['second'], 12)}"
        lines += line(
            f"{shown(pair['first'], 12)} = {shown(pair['second'], 12)}", [(text, "")], surface, "bold"
        )
    for cell in document["joined"][:GROUPS_TOLD]:
        text = f"{shown(cell['first'], 12)}, by {share_text(cell['share_first'])} of its rows"
        lines += line(f"{shown(cell['second'], 12)} absorbed", [(text, "")], surface)
    for cell in document["split"][:GROUPS_TOLD]:
        text = f"{share_text(cell['share_second'])} of it from {shown(cell['first'], 12)}"
        lines += line(f"{shown(cell['second'], 12)} split off", [(text, "")], surface)
    for word in ("gone", "new"):
        if document[word]:
            lines += line(word, [(", ".join(shown(name, 12) for name in document[word]), "")], surface)
    return lines


def _table_lines(document: Mapping[str, Any], surface: Surface) -> list[str]:
    """Rows by their group in the first run (down) and in the second (across)."""
    ones, others = ([g["group"] for g in document[side]["groups"]] for side in ("first", "second"))
    heads = [shown(name, 12) for name in others[:GROUPS_TOLD]]
    texts = [[count_text(n) for n in row[:GROUPS_TOLD]] for row in document["counts"][:GROUPS_TOLD]]
    widths = [max(5, cells(head), *(cells(row[j]) for row in texts)) for j, head in enumerate(heads)]

    def row_of(name: str, parts: Sequence[str]) -> str:
        return f"  {name:<12}  " + "  ".join(
            " " * (w - cells(t)) + t for t, w in zip(parts, widths, strict=True)
        )

    lines = [surface.paint(row_of("first \\ second", heads).rstrip(), "dim")]
    lines += [row_of(shown(name, 12), parts) for name, parts in zip(ones, texts, strict=False)]
    if max(len(ones), len(others)) > GROUPS_TOLD:
        lines.append(surface.paint("  and more groups; --json has all", "dim"))
    return lines


def _flow_lines(moved: Mapping[str, Any], surface: Surface) -> list[str]:
    lines = [""] if moved["flows"] else []
    for number, flow in enumerate(moved["flows"][:FLOWS_TOLD]):
        keys = ", ".join(shown(key, 20) for key in flow["keys"]) + (", …" if flow["rows"] > KEYS_TOLD else "")
        text = f"{shown(flow['from'], 12)} -> {shown(flow['to'], 12)}  {plural(flow['rows'], 'row')}: "
        lines += line("" if number else "moved", [(text, ""), (keys, "dim")], surface)
    more = len(moved["flows"]) - FLOWS_TOLD
    return lines + (
        line("", [(f"and {more} more moves; -o FILE lists every row", "dim")], surface) if more > 0 else []
    )

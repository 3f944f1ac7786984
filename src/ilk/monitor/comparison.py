"""Two labellings of the same rows side by side: how far they agree, which groups correspond, who moved where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk.errors import DataError, Option, UsageError, rows_shown, shown
from ilk.measures.counts import Contingency, contingency
from ilk.measures.external import ari, nmi
from ilk.measures.repeats import corresponding
from ilk.report.figures import plural, share_text
from ilk.table.block import Array
from ilk.table.read import Table

# Adjusted Rand index from which two partitions agree so well: Steinley, Psychological Methods 9 (2004), 386-396.
WORDS = ((0.9, "nearly the same groups"), (0.8, "much the same groups"), (0.65, "partly the same groups"))
KEYS_TOLD = 5
EVENTS_TOLD = 4
HALF = 0.5  # of a group's rows must be shared for it to join, or to split from, another
FEW_MOVED = 0.05

BY_COLUMN = Option("id", "column")


@dataclass(frozen=True)
class RunLabels:
    """The groups of the rows of one run, None where a row has none; `keys` name the rows."""

    source: str
    keys: Sequence[Any]
    groups: Sequence[str | None]


def labels_of(table: Table, source: str, id: str | None) -> RunLabels:
    """The column `group` of a table: rows by the column `id`, by `row` where there is one, or by their place."""
    for name, options in (("group", []), (id, [Option("id", shown(id))])):
        if name is not None and name not in table.names:
            listed = ", ".join(shown(n) for n in table.names[:8])
            do = f"Its columns are {listed}" + "".join(f"; fit with {one} to keep it too" for one in options)
            what = f"{table.source} has no column {shown(name)!r}"
            raise UsageError("unknown-column", what, do=do, options=options)
    name = id if id is not None else "row" if "row" in table.names else None
    keys = list(range(table.n_rows)) if name is None else table.column(name).to_pylist()
    twice = len(keys) - len(set(keys))
    if twice:
        first: dict[Any, int] = {}
        again = [place for place, key in enumerate(keys) if first.setdefault(key, place) != place]
        raise DataError(
            "id-repeated",
            f"the column {shown(name)!r} of {table.source} does not name rows: {twice} values come again",
            where=rows_shown(again),
            do=f"Give a column whose values are all different: {BY_COLUMN}",
            options=[BY_COLUMN],
        )
    groups = [None if value is None else str(value) for value in table.column("group").to_pylist()]
    return RunLabels(source, keys, groups)


def compare(first: RunLabels, second: RunLabels) -> dict[str, Any]:
    """The comparison as a plain document; rows are matched by their keys.

    >>> one = Labels("a", [0, 1, 2, 3], ["A", "A", "B", "B"])
    >>> two = Labels("b", [0, 1, 2, 3], ["B", "B", "A", "B"])
    >>> found = compare(one, two)
    >>> [(pair["first"], pair["second"]) for pair in found["pairs"]], found["moved"]["rows"]
    ([('A', 'B'), ('B', 'A')], 1)
    """
    there = dict(zip(second.keys, second.groups, strict=True))
    common = [
        (key, one, there[key]) for key, one in zip(first.keys, first.groups, strict=True) if key in there
    ]
    placed = [(key, one, two) for key, one, two in common if one is not None and two is not None]
    if not placed:
        raise DataError(
            "no-common-rows",
            f"{first.source} and {second.source} have no row in common",
            do=f"Compare runs of the same rows, or name the column that both know them by: {BY_COLUMN}",
            options=[BY_COLUMN],
        )
    counts = contingency([one for _, one, _ in placed], [two for _, _, two in placed])
    pairs = _pairs(counts)
    joined, parted = _joined(counts, pairs), _parted(counts, pairs)
    kept = {(cell["first"], cell["second"]) for cell in (*pairs, *joined, *parted)}
    moved = _moved(placed, kept)
    document = {
        "first": _side(first, counts.cluster_names, counts.table.sum(axis=1)),
        "second": _side(second, counts.class_names, counts.table.sum(axis=0)),
        "rows": len(placed),
        "without_group": len(common) - len(placed),
        "only_first": len(first.keys) - len(common),
        "only_second": len(second.keys) - len(common),
        "ari": ari(counts),
        "nmi": nmi(counts),
        "counts": counts.table.tolist(),
        "pairs": pairs,
        "joined": joined,
        "split": parted,
        "gone": _rest(counts.cluster_names, [cell["first"] for cell in (*pairs, *joined)]),
        "new": _rest(counts.class_names, [cell["second"] for cell in (*pairs, *parted)]),
        "moved": moved,
    }
    return {**document, "finding": _finding(document)}


def _pairs(counts: Contingency) -> list[dict[str, Any]]:
    return [_cell(counts, a, b) for a, b in corresponding(counts.table)]


def _cell(counts: Contingency, a: int, b: int) -> dict[str, Any]:
    rows, one, two = (int(n) for n in (counts.table[a, b], counts.table[a].sum(), counts.table[:, b].sum()))
    return {
        "first": str(counts.cluster_names[a]),
        "second": str(counts.class_names[b]),
        "rows": rows,
        "share_first": rows / one,
        "share_second": rows / two,
        "jaccard": rows / (one + two - rows),
    }


def _joined(counts: Contingency, pairs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Groups of the first run without a partner that went, by more than half, into one group of the second."""
    paired = {pair["first"] for pair in pairs}
    alone = [a for a, name in enumerate(counts.cluster_names) if str(name) not in paired]
    made = [_cell(counts, a, int(counts.table[a].argmax())) for a in alone]
    return [cell for cell in made if cell["share_first"] > HALF]


def _parted(counts: Contingency, pairs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Groups of the second run without a partner that came, by more than half, from one group of the first."""
    paired = {pair["second"] for pair in pairs}
    alone = [b for b, name in enumerate(counts.class_names) if str(name) not in paired]
    made = [_cell(counts, int(counts.table[:, b].argmax()), b) for b in alone]
    return [cell for cell in made if cell["share_second"] > HALF]


def _moved(placed: Sequence[tuple[Any, str, str]], kept: set[tuple[str, str]]) -> dict[str, Any]:
    """The rows that did not go with their group, by where they went, most first."""
    flows: dict[tuple[str, str], list[Any]] = {}
    for key, one, two in placed:
        if (one, two) not in kept:
            flows.setdefault((one, two), []).append(key)
    ordered = sorted(flows.items(), key=lambda flow: (-len(flow[1]), flow[0]))
    total = sum(len(keys) for keys in flows.values())
    told = [
        {"from": one, "to": two, "rows": len(keys), "keys": keys[:KEYS_TOLD]} for (one, two), keys in ordered
    ]
    return {"rows": total, "share": total / len(placed), "flows": told}


def _side(labels: RunLabels, names: Sequence[Any], rows: Array) -> dict[str, Any]:
    groups = [{"group": str(name), "rows": int(n)} for name, n in zip(names, rows, strict=True)]
    return {"source": labels.source, "rows": len(labels.keys), "groups": groups}


def _rest(names: Sequence[Any], paired: Sequence[str]) -> list[str]:
    return [str(name) for name in names if str(name) not in paired]


def _finding(document: Mapping[str, Any]) -> str:
    moved, joined, parted = document["moved"], document["joined"], document["split"]
    if moved["rows"] == 0 and not joined and not parted:
        return "the same groups: no row moved"
    word = next((text for least, text in WORDS if document["ari"] >= least), "other groups")
    if document["ari"] < WORDS[-1][0] and moved["share"] < FEW_MOVED and bool(joined) != bool(parted):
        word = "the first divides further" if joined else "the second divides further"
    events = [
        *(f"{shown(cell['first'], 12)} joined {shown(cell['second'], 12)}" for cell in joined),
        *(f"{shown(cell['second'], 12)} split from {shown(cell['first'], 12)}" for cell in parted),
    ]
    told = ", ".join(events[:EVENTS_TOLD]) + (
        f" and {len(events) - EVENTS_TOLD} more" * (len(events) > EVENTS_TOLD)
    )
    told = f"{told}; " if told else ""
    if moved["rows"] == 0:
        return f"{word}: {told}no row moved otherwise"
    otherwise = " otherwise" if told else ""
    return f"{word}: {told}{plural(moved['rows'], 'row')} moved{otherwise} ({share_text(moved['share'])})"


def rows_of(first: RunLabels, second: RunLabels, document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Every row of both runs as columns: its groups, and whether it left its group."""
    kept = {
        (cell["first"], cell["second"]) for name in ("pairs", "joined", "split") for cell in document[name]
    }
    there = dict(zip(second.keys, second.groups, strict=True))
    rows = [
        (name, one, there[name], None if None in (one, there[name]) else (one, there[name]) not in kept)
        for name, one in zip(first.keys, first.groups, strict=True)
        if name in there
    ]
    names = (key, "first", "second", "moved")
    return {name: _objects([row[place] for row in rows]) for place, name in enumerate(names)}


def _objects(values: Sequence[Any]) -> Array:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made

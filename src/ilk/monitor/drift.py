"""Do new rows still look like the rows a model was fitted on? Columns, group shares, rows unlike any, a verdict.

A column or share has moved when chance is no explanation (1 in 100 for the whole table, divided among the columns) and
the change is large enough to matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import bdtrc

from ilk.errors import ModelFileError, shown
from ilk.measures.drift import (
    binned_levels,
    binned_numbers,
    chance,
    divergence,
    effective,
    share_interval,
    tenths,
    tenths_of_rows,
)
from ilk.model.model import Model
from ilk.model.placed import Placed
from ilk.report.bins import each_column
from ilk.report.facts import Described, decimals_of, settled
from ilk.table.block import Array, Encoding
from ilk.table.cells import as_numbers, level_codes
from ilk.table.encode import cells_as_read, encode_new
from ilk.table.read import Table
from ilk.table.schema import ColumnInfo
from ilk.table.weights import WeightFacts, check_weight, conditioned_weight

SCHEMA, VERSION = "ilk-check", (1, 0)
DOUBT = 0.01  # chance of calling one table of unmoved columns moved
NOTABLE_NATS = 0.03  # a number that moves by a quarter of its deviation: 0.25^2 / 2
NOTABLE_SHARE = 0.05  # of the rows, that a group gains or loses
FAR = 0.99  # novelty beyond which one row in a hundred of a large group lies
NOTABLE_FAR = 0.05  # of the rows, that lie so far out beyond those expected
LEAST_ROWS = (
    5  # per piece and column: with fewer, a model knows its own rows too well for others not to look far out
)
FEW_ROWS = 30
MOST_CELLS = 1 << 20  # that are looked at together
LEVELS_TOLD = 5


def baseline(columns: Sequence[Described], weight: Array | None, threads: int = 1) -> list[dict[str, Any]]:
    """What a model remembers of the columns it was fitted on."""
    heft = np.ones(len(columns[0].values) if columns else 0) if weight is None else weight
    each = effective(np.ones(1), heft)  # rows that a weight of one stands for
    used = [column for column in columns if column.used]
    known: dict[str, dict[str, Any]] = {}
    if weight is None and len(heft):
        known = _complete_numbers([c for c in used if c.is_number], threads)

    def remembered(column: Described) -> dict[str, Any]:
        return _remembered_column(column, heft, each, known.get(column.name))

    return each_column(remembered, used, len(heft), threads)


def _remembered_column(
    column: Described, heft: Array, each: Array, known: dict[str, Any] | None
) -> dict[str, Any]:
    if known is not None:
        return {"name": column.name, **known, "counts": known["counts"] * each}
    entry: dict[str, Any] = {"name": column.name}
    if column.is_number:
        values = column.values.astype(np.float64)
        entry["edges"] = tenths(values)
        counts = binned_numbers(values, entry["edges"], heft)
        entry.update(_moments(values, heft))
    else:
        counts = binned_levels(column.values, len(column.levels or ()), heft)
    return {**entry, "counts": counts * each}


def _complete_numbers(columns: Sequence[Described], threads: int) -> dict[str, dict[str, Any]]:
    """The same of columns without gaps and without repeated edges, whose rows count one each: many at a time."""
    if not columns:
        return {}
    n_rows = len(columns[0].values)
    size = max(1, MOST_CELLS // max(1, n_rows))
    batches = [columns[first : first + size] for first in range(0, len(columns), size)]
    found = each_column(_complete_batch, batches, n_rows, threads)
    return {name: entry for batch in found for name, entry in batch.items()}


def _complete_batch(batch: Sequence[Described]) -> dict[str, dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {}
    values = np.array([column.values for column in batch], dtype=np.float64)
    edges, counts = tenths_of_rows(values)
    plain = np.isfinite(values).all(axis=1) & (edges[:, 1:] > edges[:, :-1]).all(axis=1)
    names = [batch[i].name for i in np.flatnonzero(plain).tolist()]
    values, edges, counts = values[plain], edges[plain], counts[plain]
    unit = np.abs(values).max(axis=1)
    unit = np.where(unit > 0, unit, 1.0)
    scaled = values / unit[:, None]
    mean = scaled.sum(axis=1) / values.shape[1]
    spread = np.sqrt(((scaled - mean[:, None]) ** 2).sum(axis=1) / values.shape[1])
    for i, name in enumerate(names):
        own = float(unit[i])
        made[name] = {
            "edges": edges[i],
            "mean": settled(float(mean[i]) * own, own),
            "decimals": decimals_of(values[i], float(spread[i]) * own),
            "counts": counts[i],
        }
    return made


def _moments(values: Array, weight: Array) -> dict[str, Any]:
    present = ~np.isnan(values)
    if not (present & (weight > 0)).any():
        return {"mean": None, "decimals": 0}
    if not present.all():
        values, weight = values[present], weight[present]
    unit = float(np.abs(values).max()) or 1.0  # squares of huge numbers overflow
    scaled, total = values / unit, weight.sum()
    mean = float((scaled * weight).sum() / total)
    spread = float(np.sqrt(((scaled - mean) ** 2 * weight).sum() / total))
    return {"mean": settled(mean * unit, unit), "decimals": decimals_of(values, spread * unit)}


@dataclass(frozen=True)
class _New:
    """New rows as the model sees them."""

    table: Table
    numbers: Array
    codes: Array | None
    weight: Array


def check(model: Model, table: Table, *, absent: str = "error") -> dict[str, Any]:
    """The comparison of new rows with those of the training table, as a plain document."""
    new = _new_rows(model, table, absent)
    columns = _columns(model, new)
    placed = model.place(table, absent=absent)
    groups = _groups(model, placed.group, new.weight)
    novelty = _novelty(model, placed)
    document = {
        "schema": SCHEMA,
        "version": list(VERSION),
        "source": table.source,
        "rows": table.n_rows,
        "rows_without_group": int((placed.group < 0).sum()),
        "before": {"source": model.training.get("source"), "rows": model.training.get("rows")},
        "columns": sorted(columns, key=lambda entry: (not entry["moved"], -entry["nats"])),
        "groups": groups,
        "novelty": novelty,
        "unseen": [entry for column in model.schema.coded if (entry := _unseen(column, table))],
    }
    return {**document, "verdict": _verdict(document)}


def _new_rows(model: Model, table: Table, absent: str) -> _New:
    untouched = Encoding(1.0, np.zeros(len(model.schema.numeric)))
    encoded = encode_new(table, model.schema, untouched, absent=absent)
    name, weight = model.schema.weight, np.ones(table.n_rows)
    if name is not None and name in table.names and table.n_rows:
        given = check_weight(as_numbers(table.column(name), name), table.n_rows)
        weight, _ = conditioned_weight(given, WeightFacts.of(given).unit_as(None))
    return _New(table, encoded.numbers, encoded.codes, weight)


def _columns(model: Model, new: _New) -> list[dict[str, Any]]:
    remembered = _remembered(model)
    made = []
    for place, column in enumerate(model.schema.numeric):
        before = remembered.get(column.name)
        if before is not None:
            values = new.numbers[:, place].astype(np.float64)
            counts = binned_numbers(values, before["edges"], new.weight)
            figures = {"before": before["mean"], "now": _moments(values, new.weight)["mean"]}
            made.append(
                _moved(column, counts, before, new.weight)
                | figures
                | {"decimals": before["decimals"], "clock": column.clock}
            )
    for place, column in enumerate(model.schema.coded):
        before = remembered.get(column.name)
        if before is not None and new.codes is not None:
            unseen = _unseen_rows(column, new.table)
            counts = binned_levels(new.codes[:, place], len(column.levels or ()), new.weight, unseen)
            made.append(_moved(column, counts, before, new.weight) | _level(column, counts, before["counts"]))
    limit = DOUBT / max(1, len(made))
    for entry in made:
        entry["moved"] = bool(entry["chance"] < limit and entry["nats"] >= NOTABLE_NATS)
    return made


def _moved(column: ColumnInfo, counts: Array, before: Mapping[str, Any], weight: Array) -> dict[str, Any]:
    now, old = effective(counts, weight), before["counts"]
    gap = -2 if column.levels is not None else -1  # the bin of the missing cells
    shares = [float(c[gap] / c.sum()) if c.sum() else 0.0 for c in (old, now)]
    return {
        "column": column.name,
        "type": "number" if column.levels is None else "category",
        "nats": divergence(now, old),
        "chance": chance(now, old),
        "missing_before": shares[0],
        "missing_now": shares[1],
    }


def _level(column: ColumnInfo, counts: Array, old: Array) -> dict[str, Any]:
    """The level whose share among the cells that are there changed most."""
    levels = (*(column.levels or ()), "categories not seen before")
    there = [*range(len(column.levels or ())), -1]
    before, now = (
        (c[there] / c[there].sum() if c[there].sum() else np.zeros(len(there))) for c in (old, counts)
    )
    most = int(np.argmax(np.abs(now - before)))
    return {"category": levels[most], "before": float(before[most]), "now": float(now[most])}


def _remembered(model: Model) -> dict[str, dict[str, Any]]:
    """What the model file says of its columns, checked; nothing for a file from before it did."""
    entries = model.training.get("columns", [])
    made = {}
    try:
        for entry in entries:
            column = model.schema[entry["name"]]
            counts = np.asarray(entry["counts"], dtype=np.float64)
            edges = None if column.levels is not None else np.asarray(entry["edges"], dtype=np.float64)
            n_bins = len(column.levels) + 2 if column.levels is not None else len(edges) + 2  # type: ignore[arg-type]
            fits = counts.shape == (n_bins,) and bool((counts >= 0).all()) and np.isfinite(counts).all()
            if not fits or (
                edges is not None and not (np.isfinite(edges).all() and (np.diff(edges) > 0).all())
            ):
                raise ValueError(column.name)
            mean = None if edges is None or entry["mean"] is None else float(entry["mean"])
            decimals = 0 if edges is None else int(entry["decimals"])
            made[column.name] = {"counts": counts, "edges": edges, "mean": mean, "decimals": decimals}
    except (KeyError, TypeError, ValueError, StopIteration):
        raise ModelFileError(
            "model-damaged",
            "what the model stores of its columns is not valid",
            do="Fit and save it again",
        ) from None
    return made


def _unseen_rows(column: ColumnInfo, table: Table) -> Array:
    if column.origin not in table.names:
        return np.zeros(table.n_rows, dtype=bool)
    texts, places = level_codes(cells_as_read(table, column))
    strange = np.array([text is not None and text not in (column.levels or ()) for text in texts] + [False])
    return np.asarray(strange[places])


def _unseen(column: ColumnInfo, table: Table) -> dict[str, Any] | None:
    """The levels of a column that the model does not know."""
    rows = _unseen_rows(column, table)
    if not rows.any():
        return None
    texts, places = level_codes(cells_as_read(table, column))
    levels = sorted({str(texts[place]) for place in np.unique(places[rows])})
    return {"column": column.name, "cells": int(rows.sum()), "categories": levels}


def _groups(model: Model, group: Array, weight: Array) -> list[dict[str, Any]]:
    there = group >= 0
    counts = effective(np.bincount(group[there], weight[there], model.k), weight[there])
    total, n_before = float(counts.sum()), float(model.training.get("rows") or model.sizes.sum())
    shares = model.sizes / model.sizes.sum()
    made = []
    for g in range(model.k):
        now = float(counts[g]) / total if total else 0.0
        low, high = share_interval(float(counts[g]), total)
        pair = np.array([counts[g], total - counts[g]]), n_before * np.array([shares[g], 1 - shares[g]])
        luck = chance(*pair)
        moved = luck < DOUBT / model.k and abs(now - shares[g]) >= NOTABLE_SHARE
        made.append(
            {
                "letter": model.letters[g],
                "name": model.names[g],
                "before": float(shares[g]),
                "now": now,
                "low": low,
                "high": high,
                "chance": luck,
                "moved": bool(moved),
            }
        )
    return made


def _novelty(model: Model, placed: Placed) -> dict[str, Any]:
    """Rows far out in their group. One row in n + 1 lies beyond all of n others, so small groups see more of them."""
    there = placed.group >= 0
    known, group = placed.novelty[there], placed.group[there]
    far, beyond = int((known > FAR).sum()), np.flatnonzero(placed.novelty >= 1)
    share = far / len(known) if len(known) else 0.0
    rows = model.sizes / model.sizes.sum() * float(model.training.get("rows") or model.sizes.sum())
    expected = float(np.maximum(1 - FAR, 1 / (rows + 1))[group].mean()) if len(known) else 0.0
    luck = float(bdtrc(far - 1, len(known), expected)) if far else 1.0
    counted = bool(rows.sum() >= LEAST_ROWS * len(model.group_of) * len(model.schema.used))
    return {
        "far": far,
        "share": share,
        "expected": expected,
        "chance": luck,
        "moved": counted and luck < DOUBT and share - expected >= NOTABLE_FAR,
        "counted": counted,
        "beyond_all": len(beyond),
        "rows": [int(row) for row in beyond[:LEVELS_TOLD]],
    }


def _verdict(document: Mapping[str, Any]) -> dict[str, str]:
    """One word and one sentence."""
    columns = [shown(entry["column"], 30) for entry in document["columns"] if entry["moved"]]
    groups = [entry["letter"] for entry in document["groups"] if entry["moved"]]
    parts = []
    if columns:
        more = f" and {len(columns) - 3} more columns" if len(columns) > 3 else ""
        parts.append(f"{', '.join(columns[:3])}{more} changed")
    if groups:
        parts.append(f"the share of {', '.join(groups)} changed")
    if document["novelty"]["moved"]:
        novelty = document["novelty"]
        parts.append(
            f"{novelty['share']:.0%} of the rows are unusual for their group ({novelty['expected']:.1%} expected)"
        )
    few = (
        f" (only {document['rows']} rows: small changes cannot be seen)"
        if document["rows"] < FEW_ROWS
        else ""
    )
    if parts:
        return {"word": "drift", "sentence": "; ".join(parts) + few}
    return {"word": "no drift", "sentence": "the rows look like those the model was fitted on" + few}

"""Hours, weekdays and months of dates: columns of their own where the criterion says that they tell groups apart.

The assorted model is fitted to a sample with the part and without it. J of the one is that of its model and, for what
the other has and it has not, of a single cluster, so that both describe the same cells: those columns are the better
whose J falls further from that of a single cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
import pyarrow as pa

from ilk.engines.draw import drawn_rows
from ilk.engines.memory import MemoryRows
from ilk.errors import Caution, NoModelError, Option, names_shown, shown
from ilk.measures.dip import dip
from ilk.selection.assorted import search_assorted
from ilk.table.block import Array
from ilk.table.encode import cells_as_read, codes_of, encode
from ilk.table.read import Table, from_arrow
from ilk.table.schema import ColumnInfo, Schema
from ilk.table.spelled_dates import emptiest
from ilk.table.spelling import MONTHS, WEEKDAYS

CYCLES = {"hour": 1.0, "weekday": 7.0, "month": 365.25}
"""Parts and the days after which they come again."""
SEVERAL = 2  # cycles that the dates must cover
MANY = (
    60  # cycles from which the days may stand beside a part: with fewer, groups of days would be groups of it
)
LOOKED_AT = 2000  # rows
MOST_GROUPS = 6  # of the fits that are compared
MOST_TRIED = 6  # parts, the most telling
BINS = 4  # of a number, to be held against a part
MOST_LEVELS = 50  # of a category that is
TWO_MODES = 0.8  # dip * sqrt(n) of hours; on uniform ones 95 % are below 0.54


@dataclass(frozen=True)
class _Part:
    """A part that may be used: the column it would be, whether the days may stay, and how telling it looks."""

    info: ColumnInfo
    beside_days: bool
    strength: float


def with_parts(table: Table, schema: Schema, seed: int) -> Schema:
    """The schema with the parts of dates that lower J, and without the days that they replace."""
    dates = [
        c for c in schema.numeric if c.written is not None and c.written.kind == "date" and c.reason == "date"
    ]
    if not dates:
        return schema
    few = _sample(table, schema, seed)
    found = sorted((p for c in dates for p in _candidates(few, schema, c)), key=lambda p: -p.strength)
    chosen, gain = schema, None
    for part in found[:MOST_TRIED]:
        gain = _gain(few, chosen, seed) if gain is None else gain
        tried = _with(chosen, part)
        more = _gain(few, tried, seed)
        if more > gain:
            chosen, gain = tried, more
    made = [c for c in chosen.columns if c.source]
    if not made:
        return schema
    first = shown(made[0].source)
    option = Option("types", {first: "numeric"})
    told = f"parts of dates that distinguish groups are used: {names_shown(c.name for c in made)}"
    return replace(
        chosen, warnings=(*chosen.warnings, Caution("date-parts", f"{told}; days alone: {option}", [option]))
    )


def _sample(table: Table, schema: Schema, seed: int) -> Table:
    wanted = [*(c.origin for c in schema.used), schema.weight]
    names = list(dict.fromkeys(name for name in wanted if name is not None))
    rows = np.arange(table.n_rows)
    if table.n_rows > LOOKED_AT:
        rows = np.sort(drawn_rows(table.n_rows, LOOKED_AT, seed))
    return from_arrow(
        pa.table({name: table.column(name).take(pa.array(rows)) for name in names}), table.source
    )


def _candidates(few: Table, schema: Schema, column: ColumnInfo) -> list[_Part]:
    """The parts of a date that its span allows, where they go together with another column or have two modes."""
    days = np.asarray(cells_as_read(few, column).to_numpy(zero_copy_only=False), dtype=np.float64)
    days = days[np.isfinite(days)]
    span = float(np.ptp(days)) if len(days) else 0.0
    made = []
    for part, cycle in CYCLES.items():
        if span < SEVERAL * cycle or (part == "hour" and not (days % 1 > 0).any()):
            continue
        info = _column(few, column, part)
        strength = _strength(few, schema, column, info)
        if strength > 0 and info.name not in {c.name for c in schema.columns}:
            made.append(_Part(info, span >= MANY * cycle, strength))
    return made


def _column(few: Table, column: ColumnInfo, part: str) -> ColumnInfo:
    assert column.written is not None
    written = replace(column.written, part=part, origin=0.0)
    info = replace(
        column,
        name=f"{part} of {column.name}",
        kind="categorical",
        reason=f"{part} of a date",
        note="",
        written=written,
        source=column.name,
    )
    if part != "hour":
        there = set(cells_as_read(few, info).unique().to_pylist())
        known = tuple(w for w in (WEEKDAYS if part == "weekday" else MONTHS) if w in there)
        return replace(info, levels=known, distinct=len(known))
    hours = cells_as_read(few, info).to_numpy(zero_copy_only=False)
    origin = emptiest(hours[np.isfinite(hours)] / 24)
    return replace(info, kind="numeric", written=replace(written, origin=origin))


def _strength(few: Table, schema: Schema, column: ColumnInfo, info: ColumnInfo) -> float:
    """How much the part and another column tell of each other beyond their parameters, in nats; the most of all."""
    part = _coded(few, info)
    others = [c for c in schema.used if c.name != column.name and len(c.levels or ()) <= MOST_LEVELS]
    found = [_shared(part, _coded(few, other)) for other in others]
    if info.levels is None:
        hours = np.asarray(cells_as_read(few, info).to_numpy(zero_copy_only=False))
        hours = hours[np.isfinite(hours)]
        found.append(dip(hours) * float(np.sqrt(len(hours))) - TWO_MODES)
    return max(found, default=0.0)


def _coded(few: Table, column: ColumnInfo) -> Array:
    """A column in a few levels, -1 where missing; numbers by their quantiles."""
    if column.levels is not None:
        codes, _ = codes_of(few, [column])
        assert codes is not None
        return codes[:, 0]
    values = np.asarray(cells_as_read(few, column).to_numpy(zero_copy_only=False), dtype=np.float64)
    known = np.isfinite(values)
    edges = np.unique(np.quantile(values[known], np.arange(1, BINS) / BINS)) if known.any() else np.empty(0)
    return np.where(known, np.searchsorted(edges, values, side="left"), -1)


def _shared(one: Array, two: Array) -> float:
    both = (one >= 0) & (two >= 0)
    if not both.any():
        return 0.0
    counts = np.zeros((int(one.max()) + 1, int(two.max()) + 1))
    np.add.at(counts, (one[both], two[both]), 1.0)
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    total = float(counts.sum())
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / total
    there = counts > 0
    nats = float((counts[there] * np.log(counts[there] / expected[there])).sum())
    free = float((counts.shape[0] - 1) * (counts.shape[1] - 1))
    return nats - free / 2 * log(total)


def _with(schema: Schema, part: _Part) -> Schema:
    """With the part, and without the days of its column where they may not stand beside it."""
    name = part.info.source
    gone = f"its {part.info.reason.split()[0]} is used"
    columns = tuple(
        replace(c, kind="left out", reason=gone) if c.name == name and c.used and not part.beside_days else c
        for c in schema.columns
    )
    return replace(schema, columns=(*columns, part.info))


def _gain(few: Table, schema: Schema, seed: int) -> float:
    """By how much J falls from a single cluster to the best number of them, with the table's prior of spreads: a finer
    one would pay for the days of every summer, and hide that they are the same months."""
    encoded = encode(few, schema)
    rows = MemoryRows(
        encoded.numbers,
        encoded.encoding,
        codes=encoded.codes,
        weight=encoded.weight,
        complete=encoded.complete,
    )
    try:
        found = search_assorted(rows, schema, _ks(rows.n_rows), seed, most=MOST_GROUPS, anchorings=0).search
    except NoModelError:
        return 0.0
    costs = {c.k: c.bic for c in found.candidates if c.bic is not None}
    return float(costs[1] - min(costs.values())) / 2 if 1 in costs else 0.0


def _ks(n_rows: int) -> Sequence[int]:
    return tuple(range(1, max(2, min(MOST_GROUPS, n_rows // 2)) + 1))

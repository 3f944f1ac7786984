"""Columns ready to be described: numbers with their clocks and poles, levels with their names."""

from __future__ import annotations

from ilk.report.facts import Described
from ilk.table.block import Array
from ilk.table.schema import ColumnInfo, Schema


def described(schema: Schema, used: Schema, numbers: Array, codes: Array | None) -> tuple[Described, ...]:
    """The columns of some rows, ready to be described."""
    columns = [
        Described(c.name, numbers[:, j], clock=c.clock, poles=_poles(c)) for j, c in enumerate(schema.numeric)
    ]
    for j, c in enumerate(schema.coded):
        assert codes is not None
        cyclic = c.written is not None and bool(c.written.part)
        columns.append(Described(c.name, codes[:, j], c.levels or (), used[c.name].used, cyclic=cyclic))
    return tuple(columns)


def _poles(column: ColumnInfo) -> tuple[str, str] | None:
    """What high and low numbers of a topic are called."""
    if column.topic is None:
        return None
    high, low = (f"{column.source}: {words}" if words else "" for words in column.topic.poles)
    return high, low

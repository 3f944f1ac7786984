"""The rows that are described: all of a table in memory; of a larger one, or of a run that was stopped, a sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ilk.analysis.described import described
from ilk.analysis.prepare import Input, Seen
from ilk.engines.base import Rows
from ilk.engines.draw import drawn_by_content
from ilk.engines.memory import MemoryRows
from ilk.fitting.fit import label_counts
from ilk.report.facts import Described
from ilk.table.block import Array
from ilk.table.encode import codes_of, numbers_of
from ilk.table.out_of_core.table import PieceTable
from ilk.table.read import Table, from_arrow

TOLD_ROWS = 100_000  # of a table in pieces, from which groups are described
GLANCED_ROWS = 20_000  # of a table in memory, where there is no time for more
LEAST_TOLD = 10  # rows of every group that are among them, if it has so many


@dataclass(frozen=True, eq=False, kw_only=True)
class Shown:
    """The rows that are described, as the table has them and as the model sees them.

    A `sample` is drawn by weight, with some rows of every group; of a small table in pieces it is all rows.
    """

    sample: bool
    numbers: Array  # of the rows in the table
    table: Table  # with these rows, or with all
    columns: tuple[Described, ...]
    rows: Rows  # as the model sees them
    labels: Array
    weight: Array | None

    def cells(self, name: str) -> Any:
        """The cells of a column in these rows."""
        column = self.table.column(name)
        return column if len(column) == len(self.numbers) else column.take(self.numbers)


def shown_rows(given: Input, seen: Seen, labels: Array, seed: int) -> Shown:
    """All rows of a table in memory; of a table in pieces a sample."""
    if isinstance(given.table, PieceTable):
        places = _with_every_group(first_places(given, seed), labels, given.rows)
        return _sampled(given, seen, labels, places)
    return Shown(
        sample=False,
        numbers=given.numbers_of(np.arange(given.rows.n_rows)),
        table=given.table,
        columns=given.columns,
        rows=seen.rows,
        labels=labels,
        weight=given.weight,
    )


def rows_at_a_glance(given: Input, seen: Seen, labels: Array, seed: int) -> Shown:
    """The same for a run that was stopped: a sample of a large table in memory, too."""
    n_rows = given.rows.n_rows
    if isinstance(given.table, PieceTable) or n_rows <= GLANCED_ROWS:
        return shown_rows(given, seen, labels, seed)
    places = drawn_by_content(given.rows, GLANCED_ROWS, seed)
    return _sampled(given, seen, labels, _with_every_group(places, labels, given.rows))


def first_places(given: Input, seed: int) -> Array:
    """Places among the rows used of those of a table in pieces that are described, whatever its groups are."""
    rows = given.rows
    return (
        np.arange(rows.n_rows)
        if rows.n_rows <= TOLD_ROWS
        else np.sort(drawn_by_content(rows, TOLD_ROWS, seed))
    )


def columns_at(given: Input, places: Array) -> tuple[Table, tuple[Described, ...]]:
    """The rows at some places as a table of their own, and their columns."""
    table, numbers, schema = given.table, given.numbers_of(places), given.schema
    if isinstance(table, Table):
        names = [name for name in table.names if name not in table.problems]
        rows = pa.array(numbers)
        few = from_arrow(pa.table({name: table.column(name).take(rows) for name in names}), table.source)
        return few, tuple(replace(column, values=column.values[places]) for column in given.columns)
    few = table.take(numbers)
    cells = numbers_of(few, schema.numeric), codes_of(few, schema.coded)[0]
    return few, described(schema, given.used, *cells)


def _sampled(given: Input, seen: Seen, labels: Array, places: Array) -> Shown:
    table, columns = columns_at(given, places)
    block = seen.rows.take(places)
    if len(places) < seen.rows.n_rows:
        block = replace(block, weight=None)  # they were drawn by weight
    return Shown(
        sample=True,
        numbers=given.numbers_of(places),
        table=table,
        columns=columns,
        rows=MemoryRows.of_block(block, seen.rows.threads),
        labels=labels[places],
        weight=block.weight,
    )


def _with_every_group(places: Array, labels: Array, rows: Rows) -> Array:
    """The places, and the first ones of each group that has few of them: a sample may miss it, and a group of which
    nothing is seen would be told to be like the whole table."""
    held = label_counts(labels[places], int(labels.max()) + 1)
    firsts = [np.flatnonzero(labels == group)[:LEAST_TOLD] for group in np.flatnonzero(held < LEAST_TOLD)]
    more = np.setdiff1d(np.concatenate([np.empty(0, np.intp), *firsts]), places)
    return np.sort(np.append(places, more[rows.take(more).weights > 0]))

"""Before the fit: from data to the rows a method works on and the columns that are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ilk.analysis.asked import left_out
from ilk.analysis.column_weights import (
    checked_weights,
    need_numbers,
    told_weights,
    weighed,
    weighing_method,
)
from ilk.analysis.date_parts import with_parts
from ilk.analysis.described import described
from ilk.analysis.free_text import refuse_topics, with_topics
from ilk.analysis.job import Job
from ilk.analysis.on_device import rows_where_asked
from ilk.assorted.problem import ColumnTransform
from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.engines.stream import StreamRows
from ilk.errors import Caution, DataError, Option, UsageError, rows_shown, shown
from ilk.methods import METHODS
from ilk.model.columns import design, numbers_only
from ilk.report.facts import Described
from ilk.selection.assorted import ASSORTED
from ilk.table.block import BLOCK_ROWS, Array, Encoding
from ilk.table.condition import encoding_of, precision_cautions, survey
from ilk.table.encode import Encoded, encode
from ilk.table.ledger import Ledger
from ilk.table.out_of_core.disk import Sliceable
from ilk.table.out_of_core.memory_limit import memory_bytes, open_table
from ilk.table.out_of_core.pack import Layout, PackedTable, pack
from ilk.table.out_of_core.table import PieceTable
from ilk.table.own_transforms import OwnTransforms, asked_transforms, transforms_elsewhere
from ilk.table.read import Table
from ilk.table.schema import Schema, asked_kinds
from ilk.table.understand import understand
from ilk.table.weights import Divided, WeightFacts, check_weight, check_weights, conditioned_weight, in_unit
from ilk.threads import thread_count

LEAST_DISTINCT = 18  # distinct rows: two for each of nine components
DISTINCT_SEARCHED = 10_000  # rows among which they are counted


@dataclass(frozen=True, eq=False, kw_only=True)
class Input:
    """What was read, and which of its columns and rows a method uses. No search changes it: what a model makes of
    the rows is `Seen`, and the rows that are described are `Shown`."""

    table: Table | PieceTable
    schema: Schema
    used: Schema
    method: str
    rows: Rows
    encoding: Encoding  # of the numbers
    columns: tuple[Described, ...]  # of the rows used; none of a table in pieces
    weight: Array | None  # of the rows in memory
    weight_unit: float  # weights are the user's divided by this
    skipped: Array  # numbers of the rows that are not used, in order
    ledger: Ledger
    warnings: tuple[Caution, ...]
    transforms: OwnTransforms = field(default_factory=OwnTransforms)

    def numbers_of(self, places: Array) -> Array:
        """Numbers in the table of the rows at these places among those used."""
        used_before = self.skipped - np.arange(len(self.skipped))
        return np.asarray(places + np.searchsorted(used_before, places, "right"))

    def for_every_row(self, values: Array, otherwise: float) -> Array:
        """A value for each row of the table, from those of the rows used."""
        if not len(self.skipped):
            return values
        everyone = np.full((self.table.n_rows, *values.shape[1:]), otherwise, dtype=values.dtype)
        used = np.ones(self.table.n_rows, dtype=bool)
        used[self.skipped] = False
        everyone[used] = values
        return everyone

    def only(self, counted: Array, why: str, code: str = "rows-in-small-groups") -> Input:
        """With only the rows at the places `counted` used; the ledger tells of the others."""
        lost = np.setdiff1d(np.arange(self.rows.n_rows), counted)
        if not len(lost):
            return self
        numbers = self.numbers_of(lost)
        return replace(
            self,
            rows=MemoryRows.of_block(self.rows.take(counted), self.rows.threads),
            weight=None if self.weight is None else self.weight[counted],
            columns=tuple(replace(column, values=column.values[counted]) for column in self.columns),
            skipped=np.union1d(self.skipped, numbers),
            ledger=self.ledger.without(why, numbers),
            warnings=(*self.warnings, Caution(code, f"{len(lost)} rows are {why} and get no group")),
        )


@dataclass(frozen=True, eq=False)
class Seen:
    """The rows as a model sees them: in its own units, or its columns treated in a way that `words` tell."""

    rows: Rows
    encoding: Encoding  # of the table's numbers; the rows have another once their columns are treated
    treat: ColumnTransform | None = None
    words: Mapping[str, str] = field(default_factory=dict)


def method_for(schema: Schema, numbers: Sliceable, complete: bool) -> str:
    """The method that "auto" stands for: the assorted model where there are categories or blanks, Gaussian mixtures
    where all is numbers; K-means where too few rows differ to have spreads."""
    if schema.coded:
        return ASSORTED
    few = np.unique(numbers[:DISTINCT_SEARCHED], axis=0)
    if len(few) <= LEAST_DISTINCT:
        return "k-means"
    return "gaussian" if complete else ASSORTED


def prepare(job: Job) -> Input:
    """From data to rows: the columns a method uses, and all columns that are described."""
    threads = thread_count(job.threads)
    given = isinstance(job.data, (Table, PieceTable))
    table = job.data if given else open_table(job.data, job.memory, **job.reading)
    if table.n_rows == 0:
        raise DataError("no-rows", f"{table.source} has no rows", do="Give at least one row")
    weights = checked_weights(job.column_weights, table)
    left = tuple(name for name, weight in weights.items() if weight == 0)
    ignore = (job.ignore,) if isinstance(job.ignore, str) else tuple(job.ignore or ())
    job = replace(job, column_weights=weights, ignore=(*ignore, *left))
    made = (
        _in_pieces(job, table, threads) if isinstance(table, PieceTable) else _in_memory(job, table, threads)
    )
    rows, said = rows_where_asked(made.rows, made.method, job.device)
    return replace(made, rows=rows, warnings=(*made.warnings, *told_weights(weights, left), *said))


def with_weights(job: Job) -> Job:
    """Weights that came as an array become a column of the table, so that everything is said of them as of one."""
    if job.weight is None or isinstance(job.weight, str):
        return job
    table = open_table(job.data, job.memory, **job.reading)
    if isinstance(table, PieceTable):
        option = Option("weight", "column")
        raise UsageError(
            "weights-in-parts",
            "the table is read in parts, and its weights came as an array",
            do=f"Put them into a column and name it: {option}",
            options=[option],
        )
    name = "weight"
    while name in table.names:
        name += "_ilk"
    cells = pa.array(check_weight(job.weight, table.n_rows))
    columns = (*(table.column(other) for other in table.names), cells)
    held = replace(table, names=(*table.names, name), columns=columns, array=None)
    return replace(job, data=held, weight=name)


def ignored(job: Job, table: Table | PieceTable) -> tuple[str, ...]:
    """The columns that the user does not want used."""
    ignore = (job.ignore,) if isinstance(job.ignore, str) else tuple(job.ignore or ())
    others = left_out(job.columns, table, (job.id, job.weight, job.truth))
    return tuple(dict.fromkeys((*ignore, *others)))


def _typed(job: Job, table: Table | PieceTable) -> Schema:
    return understand(
        table, types=job.types, ignore=ignored(job, table), id=job.id, weight=job.weight, truth=job.truth
    )


def _in_memory(job: Job, table: Table, threads: int) -> Input:
    schema = with_topics(table, _typed(job, table))
    if job.method in ("auto", ASSORTED):
        schema = with_parts(table, schema, job.seed)
    encoded = encode(table, schema, weights_are=job.weights_are)
    method = method_for(schema, encoded.numbers, encoded.complete) if job.method == "auto" else job.method
    method = weighing_method(method, job.method, job.column_weights or {})
    mixed = method == ASSORTED or (_takes_anything(method) and (bool(schema.coded) or not encoded.complete))
    used = replace(schema, warnings=()) if mixed else numbers_only(schema, method)
    if not used.used:
        raise _no_numbers(schema, table.source, method)
    own = OwnTransforms.learned(asked_transforms(job.transforms, table.names), encoded)
    cells = _Cells.of(encoded, None if mixed else used, own)
    blank, ledger, notes = cells.blank, encoded.ledger, _of_weights(job, cells)
    if blank.all():
        raise DataError("no-rows", f"no row of {table.source} has a value in the columns used")
    if blank.any():
        ledger = ledger.without(f"without a value that {method} can use", cells.row_numbers[blank])
        notes.append(_no_group(int(blank.sum()), method))
        cells = cells.without(blank, job.weights_are)
    notes += own.told()
    rows = _conditioned(cells, None if mixed else job.scale, threads, cells.codes if mixed else None)
    rows = _weighed_rows(job, rows, used, method) if job.column_weights else rows
    skipped = np.ones(table.n_rows, dtype=bool)
    skipped[cells.row_numbers] = False
    return Input(
        table=table,
        schema=schema,
        used=used,
        method=method,
        rows=rows,
        encoding=rows.encoding,
        columns=described(schema, used, cells.numbers, cells.codes),
        weight=cells.weight,
        weight_unit=cells.unit,
        skipped=np.flatnonzero(skipped),
        ledger=ledger,
        warnings=(*table.warnings, *schema.warnings, *encoded.warnings, *notes),
        transforms=own,
    )


def _weighed_rows(job: Job, rows: MemoryRows, used: Schema, method: str) -> MemoryRows:
    """The rows with columns that count by their weights; the assorted model takes them from its plan."""
    weights = job.column_weights or {}
    if method == ASSORTED:
        return rows
    if rows.codes is not None or not rows.complete:
        need_numbers(method, weights)
    return rows.reencoded(weighed(rows.encoding, used, method, weights))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Cells:
    """The cells of a table in memory: those a method uses are `raw`, or all of them for a method of mixed columns."""

    raw: Array
    blank: Array  # mask of the rows without a value in `raw`
    numbers: Array
    codes: Array | None
    row_numbers: Array
    weight: Array | None
    unit: float

    @classmethod
    def of(cls, encoded: Encoded, used: Schema | None, own: OwnTransforms) -> _Cells:
        """`used` are the columns of a method of numbers, `own` the transforms of what it sees."""
        numbers, codes = encoded.numbers, encoded.codes
        seen = own(numbers, encoded.schema)
        raw = seen if used is None else design(seen, codes, encoded.schema, used)
        blank = np.zeros(len(raw), dtype=bool)
        if used is not None and not np.isfinite(raw).all():
            blank = np.asarray(np.isnan(raw).all(axis=1))
        return cls(
            raw=raw,
            blank=blank,
            numbers=numbers,
            codes=codes,
            row_numbers=encoded.row_numbers,
            weight=encoded.weight,
            unit=encoded.encoding.weight_unit,
        )

    def without(self, blank: Array, weights_are: str | None) -> _Cells:
        weight, unit, kept = self.weight, self.unit, ~blank
        if weight is not None:
            weight = in_unit(weight, unit)[kept]
            weight, unit = conditioned_weight(weight, WeightFacts.of(weight).unit_as(weights_are))
        return _Cells(
            raw=self.raw[kept],
            blank=blank[kept],
            numbers=self.numbers[kept],
            codes=None if self.codes is None else self.codes[kept],
            row_numbers=self.row_numbers[kept],
            weight=weight,
            unit=unit,
        )


def _of_weights(job: Job, cells: _Cells) -> list[Caution]:
    """What to know of the weights of rows in memory."""
    if cells.weight is None:
        return []
    return WeightFacts.of(in_unit(cells.weight, cells.unit)).cautions(job.weights_are, str(job.weight))


def _in_pieces(job: Job, table: PieceTable, threads: int) -> Input:
    """A table larger than memory: a pass for the schema, one to pack the rows, and two for their conditioning."""
    if job.transforms is not None:
        raise transforms_elsewhere()
    table.gather(asked_kinds(job.types, ignored(job, table)), threads)
    schema = _typed(job, table)
    refuse_topics(schema)
    method = ASSORTED if job.method == "auto" and schema.coded else job.method
    used = numbers_only(schema, "gaussian" if method == "auto" else method)
    if not used.used:
        raise _no_numbers(schema, table.source, method)
    mixed = method == ASSORTED
    layout = Layout(schema, _numbers_alone if mixed else partial(_designed, schema, used), mixed)
    packed = pack(table, layout, memory_bytes(job.memory), threads)
    if len(packed.raw) == 0:
        raise DataError("no-rows", f"no row of {table.source} has a value in the columns used")
    weight, unit, told = _divided(packed, job)
    names = [c.name for c in (*schema.numeric, *schema.coded)]
    facts = survey(packed.raw, weight=weight, names=names)
    method = method_for(schema, packed.raw, facts.complete) if method == "auto" else method
    method = weighing_method(method, job.method, job.column_weights or {})
    used = numbers_only(schema, method)
    scale = None if method == ASSORTED else job.scale
    encoding = encoding_of(packed.raw, facts, scale=scale, weight=weight)
    if method != ASSORTED:
        encoding = weighed(encoding, used, method, job.column_weights or {})
    ledger, notes = _set_aside(table, packed, method)
    return Input(
        table=table,
        schema=schema,
        used=used,
        method=method,
        rows=_streamed(packed, replace(encoding, weight_unit=unit), facts.complete, threads),
        encoding=encoding,
        columns=(),
        weight=None,
        weight_unit=unit,
        skipped=packed.skipped,
        ledger=ledger,
        warnings=(*table.warnings, *schema.warnings, *precision_cautions(facts, names), *told, *notes),
    )


def _divided(packed: PackedTable, job: Job) -> tuple[Any, float, list[Caution]]:
    """The weights of a table in pieces, checked, the unit they are divided by, and what to know of them."""
    weight = packed.weight
    if weight is None:
        return None, 1.0, []
    parts = (weight[at : at + BLOCK_ROWS] for at in range(0, len(packed.raw), BLOCK_ROWS))
    facts = check_weights(parts)
    unit, told = facts.unit_as(job.weights_are), facts.cautions(job.weights_are, str(job.weight))
    return (weight if unit == 1 else Divided(weight, unit)), unit, told


def _streamed(packed: PackedTable, encoding: Encoding, complete: bool, threads: int) -> StreamRows:
    return StreamRows(
        packed.raw,
        encoding,
        weight=packed.weight,
        codes=packed.codes,
        complete=complete,
        threads=threads,
    )


def _numbers_alone(numbers: Array, codes: Array | None) -> Array:
    return numbers


def _designed(schema: Schema, used: Schema, numbers: Array, codes: Array | None) -> Array:
    return design(numbers, codes, schema, used)


def _set_aside(table: PieceTable, packed: PackedTable, method: str) -> tuple[Ledger, list[Caution]]:
    ledger, notes = table.ledger, list[Caution]()
    if len(packed.empty):
        ledger = ledger.without("entirely missing", packed.empty)
        text = f"{rows_shown(packed.empty.tolist())} have no value in the columns used and were left out"
        notes.append(Caution("empty-rows", text))
    if len(packed.blank):
        ledger = ledger.without(f"without a value that {method} can use", packed.blank)
        notes.append(_no_group(len(packed.blank), method))
    return ledger, notes


def _no_group(n_rows: int, method: str) -> Caution:
    text = f"{n_rows} rows have no value in the columns {method} uses and get no group"
    return Caution("empty-rows", text)


def _takes_anything(method: str) -> bool:
    return METHODS[method].takes == "anything"


def _conditioned(cells: _Cells, scale: str | None, threads: int, codes: Array | None) -> MemoryRows:
    raw, weight = cells.raw, cells.weight
    facts = survey(raw, weight=weight)
    encoding = encoding_of(raw, facts, scale=scale, weight=weight)
    return MemoryRows(raw, encoding, weight=weight, codes=codes, complete=facts.complete, threads=threads)


def _no_numbers(schema: Schema, source: str, method: str) -> DataError:
    why = "; ".join(f"{shown(c.name)!r}: {c.kind if c.used else c.reason}" for c in schema.columns[:10])
    more = f"; and {len(schema.columns) - 10} more" if len(schema.columns) > 10 else ""
    option = Option("types", {"column": "numeric"})
    return DataError(
        "no-columns",
        f"{source} has no numeric or binary column, and {method} uses no other",
        where=why + more,
        do=f"If categories are amounts, say so: {option}",
        options=[option],
    )

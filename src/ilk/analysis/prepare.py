"""Before the fit: from data to the rows a method works on and the columns that are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ilk.assorted.problem import ColumnTransform
from ilk.engines.base import Rows
from ilk.engines.draw import drawn_by_weight, drawn_rows
from ilk.engines.memory import MemoryRows
from ilk.engines.stream import StreamRows
from ilk.errors import DataError, rows_shown, shown
from ilk.fitting.fit import label_counts
from ilk.model.columns import design, numbers_only
from ilk.recipes import PARADIGMS
from ilk.report.facts import Described
from ilk.selection.assorted import ASSORTED
from ilk.selection.progress import Progress
from ilk.table.block import BLOCK_ROWS, Array, Encoding
from ilk.table.condition import encoding_of, precision_cautions, survey
from ilk.table.encode import codes_of, encode, numbers_of
from ilk.table.ledger import Caution, Ledger
from ilk.table.out_of_core.disk import Sliceable
from ilk.table.out_of_core.memory_limit import memory_bytes, open_table
from ilk.table.out_of_core.pack import Layout, PackedTable, pack
from ilk.table.out_of_core.table import PieceTable
from ilk.table.read import Table, from_arrow
from ilk.table.schema import Schema, asked_kinds, infer
from ilk.table.weights import Divided, check_weights, conditioned_weight, in_unit
from ilk.threads import thread_count

TOLD_ROWS = 100_000  # of a table in pieces, from which groups are described
GLANCED_ROWS = 20_000  # of a table in memory, where there is no time for more
LEAST_TOLD = 10  # rows of every group that are among them, if it has so many
LEAST_DISTINCT = 18  # distinct rows: two for each of nine components
DISTINCT_SEARCHED = 10_000  # rows among which they are counted


@dataclass(frozen=True)
class Job:
    """What the user asked for."""

    data: Any
    _: KW_ONLY
    k: Any = "auto"
    method: str = "auto"
    weight: str | None = None
    types: Any = None
    truth: str | None = None
    id: str | None = None
    ignore: str | Sequence[str] = ()
    scale: str | None = "standard"
    seed: int = 0
    budget: float | None = None
    threads: int | None = None
    callback: Callable[[Progress], None] | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    merge: str = "separation"
    min_size: int | None = None
    max_size: int | None = None
    match_to: Any = None  # a model, or where one is
    memory: Any = None

    @property
    def asked(self) -> int | None:
        """The number of groups, where a single one was asked for."""
        if isinstance(self.k, str):
            return None
        wanted = self.k if isinstance(self.k, (range, list, tuple)) else [self.k]
        return int(wanted[0]) if len(wanted) == 1 else None


@dataclass(frozen=True, eq=False)
class ShownRows:
    """Of a table in pieces, and of a run that was stopped, the rows that are told: a sample drawn by weight, with some
    rows of every group, or all of a small table.

    `places` are their places among the rows used, `table` holds them; `skipped` are the rows that are not used.
    """

    places: Array
    table: Table
    skipped: Array

    def numbers_of(self, places: Array) -> Array:
        """Numbers in the table of the rows at these places among those used."""
        used_before = self.skipped - np.arange(len(self.skipped))
        return np.asarray(places + np.searchsorted(used_before, places, "right"))


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The rows ready for fitting, the columns ready for telling; `kept` are the numbers of the rows used.

    Of a table in pieces only the rows that are `looked` at are told: `described` and `kept` are theirs.
    """

    table: Table | PieceTable
    schema: Schema
    used: Schema
    rows: Rows
    weight: Array | None
    described: tuple[Described, ...]
    kept: Array
    ledger: Ledger
    warnings: tuple[Caution, ...]
    method: str
    encoding: Encoding  # of the table's numbers; the rows have another once their columns are treated
    treat: ColumnTransform | None = None
    treatment: Mapping[str, str] = field(default_factory=dict)
    looked: ShownRows | None = None
    weight_unit: float = 1.0  # weights, of the rows and here, are the user's divided by this

    @property
    def told(self) -> Table:
        """The table of the rows that are told, in memory."""
        table = self.looked.table if self.looked else self.table
        assert isinstance(table, Table)
        return table

    def cells(self, name: str) -> Any:
        """The cells of a column in the rows that are told."""
        column = self.told.column(name)
        return column if len(column) == len(self.kept) else column.take(self.kept)


def method_for(schema: Schema, numbers: Sliceable, complete: bool) -> str:
    """The method that "auto" stands for: the assorted model where there are categories or blanks, Gaussian mixtures
    where all is numbers; K-means where too few rows differ to have spreads."""
    if schema.coded:
        return ASSORTED
    few = np.unique(numbers[:DISTINCT_SEARCHED], axis=0)
    if len(few) <= LEAST_DISTINCT:
        return "k-means"
    return "gaussian" if complete else ASSORTED


def prepare(job: Job) -> Prepared:
    """From data to rows: the columns a method of numbers uses, and all columns that are told."""
    threads = thread_count(job.threads)
    given = isinstance(job.data, (Table, PieceTable))
    table = job.data if given else open_table(job.data, job.memory, **job.reading)
    if table.n_rows == 0:
        raise DataError("no-rows", f"{table.source} has no rows", do="Give at least one row")
    if isinstance(table, PieceTable):
        return _prepared_in_pieces(job, table, threads)
    schema = infer(table, types=job.types, ignore=job.ignore, id=job.id, weight=job.weight, truth=job.truth)
    encoded = encode(table, schema)
    method = method_for(schema, encoded.numbers, encoded.complete) if job.method == "auto" else job.method
    mixed = method == ASSORTED or (_takes_anything(method) and (bool(schema.coded) or not encoded.complete))
    used = replace(schema, warnings=()) if mixed else numbers_only(schema, method)
    if not used.used:
        raise _no_numbers(schema, table.source, method)
    raw = encoded.numbers if mixed else design(encoded.numbers, encoded.codes, schema, used)
    blank = np.zeros(len(raw), dtype=bool)
    if not mixed and not np.isfinite(raw).all():
        blank = np.asarray(np.isnan(raw).all(axis=1))
    warnings = [*table.warnings, *schema.warnings, *encoded.warnings]
    ledger, kept, weight, codes = encoded.ledger, encoded.row_numbers, encoded.weight, encoded.codes
    unit = encoded.encoding.weight_unit
    if blank.all():
        raise DataError("no-rows", f"no row of {table.source} has a value in the columns used")
    if blank.any():
        ledger = ledger.without(f"without a value that {method} can use", kept[blank])
        warnings.append(
            (
                "empty-rows",
                f"{int(blank.sum())} rows have no value in the columns {method} uses and get no group",
            )
        )
        raw, kept = raw[~blank], kept[~blank]
        if weight is not None:
            weight, unit = conditioned_weight(in_unit(weight, unit)[~blank])
        codes = None if codes is None else codes[~blank]
    rows = _conditioned(raw, weight, None if mixed else job.scale, threads, codes if mixed else None)
    numbers = encoded.numbers[~blank] if blank.any() else encoded.numbers
    described = _described(schema, used, numbers, codes)
    return Prepared(
        table=table,
        schema=schema,
        used=used,
        rows=rows,
        weight=weight,
        described=described,
        kept=kept,
        ledger=ledger,
        warnings=tuple(warnings),
        method=method,
        encoding=rows.encoding,
        weight_unit=unit,
    )


def _prepared_in_pieces(job: Job, table: PieceTable, threads: int) -> Prepared:
    """As `prepare`, for a table larger than memory: a pass for the schema, one to pack the rows, and two for their
    conditioning; then the rows that are told are fetched."""
    table.gather(asked_kinds(job.types, job.ignore), threads)
    schema = infer(table, types=job.types, ignore=job.ignore, id=job.id, weight=job.weight, truth=job.truth)
    method = ASSORTED if job.method == "auto" and schema.coded else job.method
    used = numbers_only(schema, "gaussian" if method == "auto" else method)
    if not used.used:
        raise _no_numbers(schema, table.source, method)
    mixed = method == ASSORTED
    layout = Layout(schema, _numbers_alone if mixed else partial(_designed, schema, used), mixed)
    packed = pack(table, layout, memory_bytes(job.memory), threads)
    if len(packed.raw) == 0:
        raise DataError("no-rows", f"no row of {table.source} has a value in the columns used")
    weight, unit = packed.weight, 1.0
    if weight is not None:
        parts = (weight[at : at + BLOCK_ROWS] for at in range(0, len(packed.raw), BLOCK_ROWS))
        unit = check_weights(parts).unit
        weight = weight if unit == 1 else Divided(weight, unit)
    names = [c.name for c in (*schema.numeric, *schema.coded)]
    facts = survey(packed.raw, weight=weight, names=names)
    if method == "auto":
        method = method_for(schema, packed.raw, facts.complete)
        used = numbers_only(schema, method)
    scale = None if method == ASSORTED else job.scale
    encoding = encoding_of(packed.raw, facts, scale=scale, weight=weight)
    rows = StreamRows(
        packed.raw,
        replace(encoding, weight_unit=unit),
        weight=packed.weight,
        codes=packed.codes,
        complete=facts.complete,
        threads=threads,
    )
    looked, kept = _looked(table, rows, packed, job.seed)
    numbers, codes = numbers_of(looked.table, schema.numeric), codes_of(looked.table, schema.coded)[0]
    ledger, notes = _set_aside(table, packed, method)
    warnings = (*table.warnings, *schema.warnings, *precision_cautions(facts, names), *notes)
    described = _described(schema, used, numbers, codes)
    return Prepared(
        table=table,
        schema=schema,
        used=used,
        rows=rows,
        weight=None,
        described=described,
        kept=kept,
        ledger=ledger,
        warnings=warnings,
        method=method,
        encoding=encoding,
        looked=looked,
        weight_unit=unit,
    )


def _numbers_alone(numbers: Array, codes: Array | None) -> Array:
    return numbers


def _designed(schema: Schema, used: Schema, numbers: Array, codes: Array | None) -> Array:
    return design(numbers, codes, schema, used)


def _looked(table: PieceTable, rows: StreamRows, packed: PackedTable, seed: int) -> tuple[ShownRows, Array]:
    """The rows that are told, and their numbers in the table."""
    places = np.arange(rows.n_rows) if rows.n_rows <= TOLD_ROWS else rows.drawn(TOLD_ROWS, seed)
    numbers = packed.numbers_of(places)
    return ShownRows(places, table.take(numbers), packed.skipped), numbers


def _set_aside(table: PieceTable, packed: PackedTable, method: str) -> tuple[Ledger, list[Caution]]:
    ledger, notes = table.ledger, list[Caution]()
    if len(packed.empty):
        ledger = ledger.without("entirely missing", packed.empty)
        text = f"{rows_shown(packed.empty.tolist())} have no value in the columns used and were left out"
        notes.append(("empty-rows", text))
    if len(packed.blank):
        ledger = ledger.without(f"without a value that {method} can use", packed.blank)
        text = f"{len(packed.blank)} rows have no value in the columns {method} uses and get no group"
        notes.append(("empty-rows", text))
    return ledger, notes


def _takes_anything(method: str) -> bool:
    return method in PARADIGMS and PARADIGMS[method].takes == "anything"


def _conditioned(
    raw: Array, weight: Array | None, scale: str | None, threads: int, codes: Array | None
) -> MemoryRows:
    facts = survey(raw, weight=weight)
    encoding = encoding_of(raw, facts, scale=scale, weight=weight)
    return MemoryRows(raw, encoding, weight=weight, codes=codes, complete=facts.complete, threads=threads)


def with_every_group(ready: Prepared, labels: Array) -> Prepared:
    """The same with some rows of every group among those of a table in pieces that are told."""
    looked, table, schema = ready.looked, ready.table, ready.schema
    if looked is None or isinstance(table, Table):
        return ready
    places = _and_of_every_group(looked.places, labels, ready.rows)
    if len(places) == len(looked.places):
        return ready
    kept = looked.numbers_of(places)
    few = table.take(kept)
    described = _described(
        schema, ready.used, numbers_of(few, schema.numeric), codes_of(few, schema.coded)[0]
    )
    return replace(ready, described=described, kept=kept, looked=replace(looked, places=places, table=few))


def _and_of_every_group(places: Array, labels: Array, rows: Rows) -> Array:
    """The places, and the first ones of each group that has few of them: a sample may miss it, and a group of which
    nothing is seen would be told to be like the whole table."""
    held = label_counts(labels[places], int(labels.max()) + 1)
    firsts = [np.flatnonzero(labels == group)[:LEAST_TOLD] for group in np.flatnonzero(held < LEAST_TOLD)]
    more = np.setdiff1d(np.concatenate([np.empty(0, np.intp), *firsts]), places)
    return np.sort(np.append(places, more[rows.take(more).weights > 0]))


def at_a_glance(ready: Prepared, labels: Array, seed: int) -> Prepared:
    """The same with a sample of the rows to be told, for a run that was stopped."""
    n_rows, table = ready.rows.n_rows, ready.table
    if isinstance(table, PieceTable):
        return with_every_group(ready, labels)
    if n_rows <= GLANCED_ROWS:
        return ready
    weight = ready.weight
    if weight is None:
        places = drawn_rows(n_rows, GLANCED_ROWS, seed)
    else:
        places = drawn_by_weight(lambda: [weight], GLANCED_ROWS, seed)
    places = _and_of_every_group(places, labels, ready.rows)
    names = [name for name in table.names if name not in table.problems]
    rows = pa.array(ready.kept[places])
    skipped = np.ones(table.n_rows, dtype=bool)
    skipped[ready.kept] = False
    few = from_arrow(pa.table({name: table.column(name).take(rows) for name in names}), table.source)
    return replace(
        ready,
        described=tuple(replace(column, values=column.values[places]) for column in ready.described),
        kept=ready.kept[places],
        looked=ShownRows(places, few, np.flatnonzero(skipped)),
    )


def only_rows(ready: Prepared, counted: Array, why: str) -> Prepared:
    """Only the rows at the places `counted`; the ledger tells of the others."""
    lost = np.setdiff1d(np.arange(ready.rows.n_rows), counted)
    if not len(lost):
        return ready
    return replace(
        ready,
        rows=MemoryRows.of_block(ready.rows.take(counted), ready.rows.threads),
        weight=None if ready.weight is None else ready.weight[counted],
        described=tuple(replace(column, values=column.values[counted]) for column in ready.described),
        kept=ready.kept[counted],
        ledger=ready.ledger.without(why, ready.kept[lost]),
        warnings=(*ready.warnings, ("rows-in-small-groups", f"{len(lost)} rows are {why} and get no group")),
    )


def _described(schema: Schema, used: Schema, numbers: Array, codes: Array | None) -> tuple[Described, ...]:
    columns = [Described(c.name, numbers[:, j]) for j, c in enumerate(schema.numeric)]
    for j, c in enumerate(schema.coded):
        assert codes is not None
        columns.append(Described(c.name, codes[:, j], c.levels or (), used[c.name].used))
    return tuple(columns)


def _no_numbers(schema: Schema, source: str, method: str) -> DataError:
    why = "; ".join(f"{shown(c.name)!r}: {c.kind if c.used else c.reason}" for c in schema.columns[:10])
    more = f"; and {len(schema.columns) - 10} more" if len(schema.columns) > 10 else ""
    return DataError(
        "no-columns",
        f"{source} has no numeric or binary column, and {method} uses no other",
        where=why + more,
        do='If categories are amounts, say so: types={"column": "numeric"}',
    )

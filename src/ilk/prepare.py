"""Before the fit: from data to the rows a method works on and the columns that are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows, thread_count
from ilk.errors import DataError, shown
from ilk.fitting.model import design, numbers_only
from ilk.fitting.scene import Treat
from ilk.report.facts import Described
from ilk.selection.assorted import ASSORTED
from ilk.selection.search import Progress
from ilk.table.block import Array, Encoding
from ilk.table.condition import encoding_of, survey
from ilk.table.encode import Encoded, encode
from ilk.table.ledger import Caution, Ledger
from ilk.table.read import Table, read
from ilk.table.schema import Schema, infer

LEAST_DISTINCT = 18  # distinct rows: two for each of nine components
DISTINCT_SEARCHED = 10_000  # rows among which they are counted


@dataclass(frozen=True)
class Job:
    """What the user asked for."""

    data: Any
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
    merge: str = "valley"
    min_size: int | None = None
    max_size: int | None = None
    match_to: Any = None  # a model, or where one is

    @property
    def as_asked(self) -> bool:
        """Whether one number of groups was asked for."""
        return not isinstance(self.k, str) and (
            not isinstance(self.k, (range, list, tuple)) or len(self.k) == 1
        )


@dataclass(frozen=True)
class Prepared:
    """The rows ready for fitting, the columns ready for telling; `kept` are the numbers of the rows used."""

    table: Table
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
    treat: Treat | None = None
    treatment: Mapping[str, str] = field(default_factory=dict)


def method_for(schema: Schema, encoded: Encoded) -> str:
    """The method that "auto" stands for: the assorted model where there are categories or blanks, Gaussian mixtures
    where all is numbers; K-means where too few rows differ to have spreads."""
    if schema.coded:
        return ASSORTED
    few = np.unique(encoded.numbers[:DISTINCT_SEARCHED], axis=0)
    if len(few) <= LEAST_DISTINCT:
        return "k-means"
    return "gaussian" if encoded.complete else ASSORTED


def prepare(job: Job) -> Prepared:
    """From data to rows: the columns a method of numbers uses, and all columns that are told."""
    threads = thread_count(job.threads)
    table = job.data if isinstance(job.data, Table) else read(job.data, **job.reading)
    if table.n_rows == 0:
        raise DataError("no-rows", f"{table.source} has no rows", do="Give at least one row")
    schema = infer(table, types=job.types, ignore=job.ignore, id=job.id, weight=job.weight, truth=job.truth)
    encoded = encode(table, schema)
    method = method_for(schema, encoded) if job.method == "auto" else job.method
    used = numbers_only(schema, method)
    if not used.used:
        raise _no_numbers(schema, table.source, method)
    mixed = method == ASSORTED
    raw = encoded.numbers if mixed else design(encoded.numbers, encoded.codes, schema, used)
    blank = np.zeros(len(raw), dtype=bool)
    if not mixed and not np.isfinite(raw).all():
        blank = np.asarray(np.isnan(raw).all(axis=1))
    warnings = [*table.warnings, *schema.warnings, *encoded.warnings]
    ledger, kept, weight, codes = encoded.ledger, encoded.row_numbers, encoded.weight, encoded.codes
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
        weight = None if weight is None else weight[~blank]
        codes = None if codes is None else codes[~blank]
    rows = _conditioned(raw, weight, None if mixed else job.scale, threads, codes if mixed else None)
    numbers = encoded.numbers[~blank] if blank.any() else encoded.numbers
    described = _described(schema, used, replace(encoded, codes=codes), numbers)
    return Prepared(
        table, schema, used, rows, weight, described, kept, ledger, tuple(warnings), method, rows.encoding
    )


def _conditioned(
    raw: Array, weight: Array | None, scale: str | None, threads: int, codes: Array | None
) -> MemoryRows:
    facts = survey(raw, weight=weight)
    encoding = encoding_of(raw, facts, scale=scale, weight=weight)
    return MemoryRows(raw, encoding, weight=weight, codes=codes, complete=facts.complete, threads=threads)


def _described(schema: Schema, used: Schema, encoded: Encoded, numbers: Array) -> tuple[Described, ...]:
    columns = [Described(c.name, numbers[:, j]) for j, c in enumerate(schema.numeric)]
    for j, c in enumerate(schema.coded):
        assert encoded.codes is not None
        columns.append(Described(c.name, encoded.codes[:, j], c.levels or (), used[c.name].used))
    return tuple(columns)


def _no_numbers(schema: Schema, source: str, method: str) -> DataError:
    why = "; ".join(f"{shown(c.name)!r}: {c.kind if c.used else c.reason}" for c in schema.columns[:10])
    more = f"; and {len(schema.columns) - 10} more" if len(schema.columns) > 10 else ""
    return DataError(
        "no-columns",
        f"{source} has no numeric or two-level column, and {method} uses no other",
        where=why + more,
        do='If categories are amounts, say so: types={"column": "numeric"}',
    )

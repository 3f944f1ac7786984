"""Rows of a Spark frame, classic or Connect by the same calls: packed once, persisted, visited by tasks.

A pass is one `mapInArrow` over the packs, which workers find on their own disks (`shelf.py`) or in the frame. Each task
adds up its own blocks and gives one partial, as data: a task that is run again replaces what was lost and nothing
counts twice. Where the partials of all tasks would be too much for the driver, tasks add them up in bunches first.
Nothing needs RDDs, broadcast variables or accumulators.
"""

from __future__ import annotations

import contextlib
import os
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa

from ilk.engines.packed import PackedRows, PackLayout, Visit
from ilk.engines.spark_errors import Refused, Secret, is_data_fault, translated
from ilk.engines.spark_tasks import REFUSED, AddPartials, Each, Fold, Packer, Packing, PartialSum
from ilk.engines.worker_cache import WorkerCache
from ilk.errors import DataError, EngineError, shown
from ilk.table.block import Array, Block, Encoding

TASK_BYTES = 32 << 20  # a task is worth its dispatch from so many bytes on
FEW_TASKS = 32  # so many are never joined
DRIVER_BYTES = 256 << 20  # of results that come to the driver at once; spark.driver.maxResultSize is 1 GB
BUNCH = 16  # partials added up by one task
SCAN_ROWS = 4_000_000  # whose results come to the driver at once
SPOOL = "ILK_SPARK_SPOOL"
"""Environment variable: where packs are written on a service that refuses to persist frames."""

PACKED = "part int, within long, size int, data binary"
PARTIAL = "part int, data binary"


def is_spark_frame(data: Any) -> bool:
    """Whether data is a Spark frame, classic or Connect; pyspark is not imported to find out."""
    import narwhals.dependencies as known

    return bool(known.is_pyspark_dataframe(data) or known.is_pyspark_connect_dataframe(data))


class SparkRows(PackedRows):
    """Rows of a Spark frame; `frame` has the columns that the packer wants, in their order."""

    def __init__(self, packs: _SparkPacks, encoding: Encoding, complete: bool, threads: int | None) -> None:
        super().__init__(packs.sizes, packs.layout, encoding, complete, threads)
        self._packs = packs

    @classmethod
    def of_frame(
        cls, frame: Any, packer: Packer, layout: PackLayout, *, threads: int | None = None
    ) -> SparkRows:
        """The rows of a frame, packed; not conditioned, and taken for incomplete until it is known."""
        packs = _SparkPacks.of_frame(frame, packer, layout)
        return cls(packs, Encoding(1.0, np.zeros(layout.n_columns)), False, threads)

    def encoded(self, encoding: Encoding, complete: bool) -> SparkRows:
        """The same rows, conditioned."""
        return SparkRows(self._packs, encoding, complete, self.threads)

    def _total(self, visit: Visit[Any, Any]) -> Any:
        frame, shelf = self._packs.frame, self._packs.shelf
        fold = Fold(visit, self.layout, self._packs.first_row_of_part, shelf.shipped(), self._packs.secret)
        if shelf.serves:
            found = self._sum(frame.select("part", "within", "size").mapInArrow(fold, PARTIAL), visit)
            shelf.learn(found.lacking)
            if not found.lacking:
                return found.total
        return self._sum(frame.mapInArrow(fold, PARTIAL), visit).total

    def _sum(self, partials: Any, visit: Visit[Any, Any]) -> PartialSum:
        """The partials of all tasks, added up."""
        secret = self._packs.secret
        with translated():
            n_bytes, n_partials = self._partial_bytes(visit), self._packs.n_tasks
            width = -(-self._packs.n_parts // n_partials)
            while n_partials > BUNCH and n_partials * n_bytes > DRIVER_BYTES:
                width, n_partials = width * BUNCH, -(-n_partials // BUNCH)
                partials = _bunched(partials, width, secret)
            table = partials.toArrow().sort_by("part")
        found = reduce(add, [secret.unseal(data.as_buffer()) for data in table["data"]], PartialSum())
        if found.refused is not None:
            raise found.refused.error()
        return found

    def _partial_bytes(self, visit: Visit[Any, Any]) -> int:
        """About how large the partial of a task is: that of the first row."""
        if self._packs.n_tasks <= BUNCH:
            return 0
        return len(self._packs.secret.seal(visit.function(visit.state, self._first_row)))

    @cached_property
    def _first_row(self) -> Block:
        return self.take(np.zeros(1, dtype=np.int64))

    def _each(self, visit: Visit[Any, Any], parts: Sequence[int]) -> Iterator[list[Any]]:
        packs = self._packs
        each = Each(visit, self.layout, packs.first_row_of_part, packs.shelf.shipped(), packs.secret)
        for some in self._bounded(parts):
            wanted = ", ".join(f"({part}, {within}L)" for part, within in packs.places[some].tolist())
            frame = packs.frame.where(f"(part, within) in ({wanted})")
            results = _in_order(frame.select("part", "within", "size").mapInArrow(each, PACKED), packs.secret)
            if any(found is None for found in results):
                results = _in_order(frame.mapInArrow(each, PACKED), packs.secret)
            yield from results

    def _bounded(self, parts: Sequence[int]) -> Iterator[list[int]]:
        """Packs in runs that together have no more rows than may come to the driver at once."""
        some: list[int] = []
        n_rows = 0
        for part in parts:
            size = self._packs.sizes[part]
            if some and n_rows + size > SCAN_ROWS:
                yield some
                some, n_rows = [], 0
            some.append(part)
            n_rows += size
        if some:
            yield some


@dataclass(frozen=True, eq=False, kw_only=True)
class _SparkPacks:
    """The packed frame, persisted: where each pack lies (its part, the rows before it there) and its size."""

    frame: Any
    layout: PackLayout
    places: Array  # (packs, 2), in the order of their rows; parts without a row leave gaps
    sizes: tuple[int, ...]
    n_tasks: int
    shelf: WorkerCache
    secret: Secret

    @property
    def n_parts(self) -> int:
        return int(self.places[-1, 0]) + 1

    @property
    def first_row_of_part(self) -> dict[int, int]:
        """The number of the first row of each part."""
        begins = np.flatnonzero(self.places[:, 1] == 0)
        first_row = np.cumsum([0, *self.sizes])[begins]
        return {int(part): int(row) for part, row in zip(self.places[begins, 0], first_row, strict=True)}

    @classmethod
    def of_frame(cls, frame: Any, packer: Packer, layout: PackLayout) -> _SparkPacks:
        shelf, secret = WorkerCache(), Secret()
        with translated():
            packing = Packing(packer, layout.row_bytes, secret, shelf.shipped())
            packed, forget = _kept(frame.mapInArrow(packing, PACKED))
            counts = (
                packed.select("part", "within", "size")
                .toArrow()
                .sort_by([("part", "ascending"), ("within", "ascending")])
            )
        if not counts.num_rows:
            raise DataError("no-rows", "the Spark frame has no rows", do="Give at least one row")
        part, within, size = (counts[name].to_numpy() for name in ("part", "within", "size"))
        if (size == REFUSED).any():
            first = int(np.flatnonzero(size == REFUSED)[0])
            _in_order(packed.where(f"part = {part[first]} and size = {REFUSED}"), secret)
        n_parts = len(np.unique(part))
        n_tasks = _worthwhile(n_parts, int(size.sum()) * layout.row_bytes)
        fewer = packed.coalesce(n_tasks) if n_tasks < n_parts else packed
        places = np.column_stack([part.astype(np.int64), within])
        packs = cls(
            frame=fewer,
            layout=layout,
            places=places,
            sizes=tuple(size.tolist()),
            n_tasks=n_tasks,
            shelf=shelf,
            secret=secret,
        )
        weakref.finalize(packs, forget)
        weakref.finalize(packs, shelf.forget)
        return packs


def _in_order(results: Any, secret: Secret) -> list[Any]:
    """What came of each pack, in the order of the packs; the first refusal is raised."""
    with translated():
        table = results.select("part", "within", "data").toArrow()
    table = table.sort_by([("part", "ascending"), ("within", "ascending")])
    found = [secret.unseal(data.as_buffer()) for data in table["data"]]
    for one in found:
        if isinstance(one, Refused):
            raise one.error()
    return found


def _worthwhile(n_parts: int, n_bytes: int) -> int:
    """How many tasks: as many as parts, but where there are many that hold little.

    >>> _worthwhile(8, 10**6), _worthwhile(10_000, 10**6), _worthwhile(10_000, 10**12)
    (8, 32, 10000)
    """
    return min(n_parts, max(FEW_TASKS, n_bytes // TASK_BYTES))


def _kept(packed: Any) -> tuple[Any, Callable[[], None]]:
    """The packs where passes find them again, and what lets go of them."""
    from pyspark.errors import PySparkException
    from pyspark.storagelevel import StorageLevel

    try:
        kept = packed.persist(StorageLevel.MEMORY_AND_DISK)
        return kept, lambda: _forget(kept)
    except PySparkException as error:  # Databricks serverless: NOT_SUPPORTED_WITH_SERVERLESS
        if is_data_fault(error):  # a frame that is computed already here
            raise
        if SPOOL not in os.environ:
            raise EngineError(
                "persist-refused",
                f"this Spark service does not persist frames: {shown(str(error), 120)}",
                do=f"Set the environment variable {SPOOL} to a path that driver and workers can write and read",
            ) from None
        path = f"{os.environ[SPOOL].rstrip('/')}/ilk-{uuid.uuid4().hex}"
        packed.write.option("compression", "none").parquet(path)
        return packed.sparkSession.read.parquet(path), lambda: None


def _forget(kept: Any) -> None:
    with contextlib.suppress(Exception):  # the session may have ended before us
        kept.unpersist()


def _bunched(partials: Any, width: int, secret: Secret) -> Any:
    """Partials added up in bunches of `width` parts that follow each other."""
    bunch = partials.selectExpr("part", "data", f"part div {width} as bunch")
    return bunch.repartition("bunch").sortWithinPartitions("part").mapInArrow(AddPartials(secret), PARTIAL)


def with_columns(frame: Any, fill: Callable[[Any], Mapping[str, Any]], columns: Mapping[str, Any]) -> Any:
    """The frame with further columns, of these Arrow types, that `fill` makes of Arrow tables of its rows."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    added = [StructField(name, from_arrow_type(kind)) for name, kind in columns.items()]
    return frame.mapInArrow(_Filling(fill, dict(columns)), StructType([*frame.schema.fields, *added]))


@dataclass(frozen=True)
class _Filling:
    """On the workers: record batches with further columns."""

    fill: Callable[[Any], Mapping[str, Any]]
    columns: dict[str, Any]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            made = self.fill(pa.Table.from_batches([batch]))
            added = [pa.array(made[name], kind, from_pandas=True) for name, kind in self.columns.items()]
            yield pa.record_batch([*batch.columns, *added], names=[*batch.schema.names, *self.columns])

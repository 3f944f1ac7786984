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

from ilk.engines.packed import Pack, PackedRows, PackLayout, Visit
from ilk.engines.spark_errors import Refused, Secret, is_data_fault, translated
from ilk.engines.worker_cache import WorkerCache
from ilk.errors import DataError, EngineError, IlkError, shown
from ilk.table.block import Array, Block, Encoding

PACK_BYTES = 16 << 20  # of one row of packed bytes: well below the 64 MB of an Arrow batch
TASK_BYTES = 32 << 20  # a task is worth its dispatch from so many bytes on
FEW_TASKS = 32  # so many are never joined
DRIVER_BYTES = 256 << 20  # of results that come to the driver at once; spark.driver.maxResultSize is 1 GB
BUNCH = 16  # partials added up by one task
SCAN_ROWS = 4_000_000  # whose results come to the driver at once
SPOOL = "ILK_SPARK_SPOOL"
"""Environment variable: where packs are written on a service that refuses to persist frames."""

PACKED = "part int, within long, size int, data binary"
PARTIAL = "part int, data binary"
REFUSED = -1
"""In the place of a size: the data are a refusal, sealed."""

Packer = Callable[[Any], Pack]
"""Makes a pack of an Arrow table; plain data, so that it can be shipped."""


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
        fold = _Fold(visit, self.layout, self._packs.first_row_of_part, shelf.shipped(), self._packs.secret)
        if shelf.serves:
            found = self._sum(frame.select("part", "within", "size").mapInArrow(fold, PARTIAL), visit)
            shelf.learn(found.lacking)
            if not found.lacking:
                return found.total
        return self._sum(frame.mapInArrow(fold, PARTIAL), visit).total

    def _sum(self, partials: Any, visit: Visit[Any, Any]) -> _Sum:
        """The partials of all tasks, added up."""
        secret = self._packs.secret
        with translated():
            n_bytes, n_partials = self._partial_bytes(visit), self._packs.n_tasks
            width = -(-self._packs.n_parts // n_partials)
            while n_partials > BUNCH and n_partials * n_bytes > DRIVER_BYTES:
                width, n_partials = width * BUNCH, -(-n_partials // BUNCH)
                partials = _bunched(partials, width, secret)
            table = partials.toArrow().sort_by("part")
        found = reduce(add, [secret.unseal(data.as_buffer()) for data in table["data"]], _Sum())
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
        each = _Each(visit, self.layout, packs.first_row_of_part, packs.shelf.shipped(), packs.secret)
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


@dataclass(frozen=True, eq=False)
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
        packs = cls(fewer, layout, places, tuple(size.tolist()), n_tasks, shelf, secret)
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
    return bunch.repartition("bunch").sortWithinPartitions("part").mapInArrow(_AddPartials(secret), PARTIAL)


@dataclass(frozen=True)
class Packing:
    """On the workers: record batches to rows of packed bytes."""

    packer: Packer
    row_bytes: int
    secret: Secret
    shelf: WorkerCache | None = None

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for part, within, pack in self.packs(batches):
            if isinstance(pack, Refused):
                yield _row(part, within, REFUSED, self.secret.seal(pack))
                continue
            data = pack.to_bytes()
            if self.shelf is not None:
                self.shelf.put(part, within, data)
            yield _row(part, within, pack.n_rows, data)

    def packs(self, batches: Iterator[Any]) -> Iterator[tuple[int, int, Pack | Refused]]:
        """Part, place in the part, and the pack; a refusal is the last of its part."""
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        within, waiting, n_waiting = 0, list[Pack](), 0
        for batch in batches:
            try:
                pack = self.packer(pa.Table.from_batches([batch]))
            except IlkError as error:
                yield part, within, Refused.of(error)
                _drain(batches)
                return
            if not pack.n_rows:
                continue
            waiting.append(pack)
            n_waiting += pack.n_rows
            if n_waiting * self.row_bytes >= PACK_BYTES:
                yield part, within, Pack.joined(waiting)
                within, waiting, n_waiting = within + n_waiting, [], 0
        if waiting:
            yield part, within, Pack.joined(waiting)


def _drain(batches: Iterator[Any]) -> None:
    """Spark wants to be rid of all that it has for a task."""
    for _ in batches:
        pass


def _row(part: int, within: int, size: int, data: bytes) -> Any:
    columns = [pa.array([part], pa.int32()), pa.array([within], pa.int64()), pa.array([size], pa.int32())]
    return pa.record_batch(
        [*columns, pa.array([data], pa.binary())], names=["part", "within", "size", "data"]
    )


@dataclass(frozen=True)
class _Unpacking:
    """On the workers: what visits see of the rows of packed bytes."""

    visit: Visit[Any, Any]
    layout: PackLayout
    first_rows: dict[int, int]
    shelf: WorkerCache
    secret: Secret

    def packs(self, batches: Iterator[Any]) -> Iterator[tuple[int, int, int, Pack | None]]:
        """Part, place in the part, number of the first row, and the pack: from the frame where its bytes are there,
        else from the shelf, which may lack it."""
        self.shelf.clear_others()
        for batch in batches:
            part, within, size = (batch[name].to_numpy() for name in ("part", "within", "size"))
            for i in range(batch.num_rows):
                place = int(part[i]), int(within[i])
                if "data" in batch.schema.names:
                    data = batch["data"][i].as_buffer()
                    self.shelf.put(*place, data)
                    pack: Pack | None = Pack.from_bytes(data, int(size[i]), self.layout)
                else:
                    pack = self.shelf.get(*place, int(size[i]), self.layout)
                yield *place, self.first_rows[place[0]] + place[1], pack


@dataclass(frozen=True)
class _Sum:
    """Partials added up, where no pack was lacking and no row refused; of refusals the first counts."""

    total: Any = None
    lacking: bool = False
    refused: Refused | None = None

    def __add__(self, other: _Sum) -> _Sum:
        if self.refused is not None or other.refused is not None:
            return self if self.refused is not None else other
        if self.lacking or other.lacking:
            return _Sum(lacking=True)
        if self.total is None or other.total is None:
            return other if self.total is None else self
        total = self.total
        total += other.total
        return _Sum(total)


class _Fold(_Unpacking):
    """One partial for all rows of a task, under the name of its first part."""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        parts: list[int] = []
        lacking: list[int] = []

        def met() -> Iterator[tuple[int, Pack]]:
            for part, _, first_row, pack in self.packs(batches):
                parts.append(part)
                if pack is None:
                    lacking.append(part)
                elif not lacking:
                    yield first_row, pack

        try:
            total = self.visit.total(met())
            found = _Sum(lacking=True) if lacking else _Sum(total)
        except IlkError as error:
            found = _Sum(refused=Refused.of(error))
            _drain(batches)
        if parts:
            yield _partial(min(parts), self.secret.seal(found))


class _Each(_Unpacking):
    """The results of the blocks of each pack; None for one that is lacking."""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for part, within, first_row, pack in self.packs(batches):
            results: Any = None
            try:
                results = None if pack is None else self.visit.each(pack, first_row)
            except IlkError as error:
                results = Refused.of(error)
            yield _row(part, within, 0, self.secret.seal(results))


@dataclass(frozen=True)
class _AddPartials:
    """Partials of one bunch to one; they come in order."""

    secret: Secret

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        begun, first, total = None, 0, None
        for batch in batches:
            for i in range(batch.num_rows):
                bunch, partial = batch["bunch"][i].as_py(), self.secret.unseal(batch["data"][i].as_buffer())
                if bunch == begun:
                    total += partial
                    continue
                if begun is not None:
                    yield _partial(first, self.secret.seal(total))
                begun, first, total = bunch, batch["part"][i].as_py(), partial
        if begun is not None:
            yield _partial(first, self.secret.seal(total))


def _partial(part: int, sealed: bytes) -> Any:
    columns = [pa.array([part], pa.int32()), pa.array([sealed], pa.binary())]
    return pa.record_batch(columns, names=["part", "data"])


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

"""What Spark's workers run: batches to packs, visits of packs to partials and results, partials to sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ilk.engines.packed import Pack, PackLayout, Visit
from ilk.engines.spark_errors import Refused, Secret
from ilk.engines.worker_cache import WorkerCache
from ilk.errors import IlkError

PACK_BYTES = 16 << 20  # of one row of packed bytes: well below the 64 MB of an Arrow batch
REFUSED = -1
"""In the place of a size: the data are a refusal, sealed."""

Packer = Callable[[Any], Pack]
"""Makes a pack of an Arrow table; plain data, so that it can be shipped."""


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
class PartialSum:
    """Partials added up, where no pack was lacking and no row refused; of refusals the first counts."""

    total: Any = None
    lacking: bool = False
    refused: Refused | None = None

    def __add__(self, other: PartialSum) -> PartialSum:
        if self.refused is not None or other.refused is not None:
            return self if self.refused is not None else other
        if self.lacking or other.lacking:
            return PartialSum(lacking=True)
        if self.total is None or other.total is None:
            return other if self.total is None else self
        total = self.total
        total += other.total
        return PartialSum(total)


class Fold(_Unpacking):
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
            found = PartialSum(lacking=True) if lacking else PartialSum(total)
        except IlkError as error:
            found = PartialSum(refused=Refused.of(error))
            _drain(batches)
        if parts:
            yield _partial(min(parts), self.secret.seal(found))


class Each(_Unpacking):
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
class AddPartials:
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

"""Rows of a Spark frame whose workers run on this machine: packed once by Spark, then read here.

In local mode (the master is `local`, `local[4]`, `local[*]`) a pass needs no job: the workers leave the packs in a
folder, and this process maps them and walks them with as many threads as Spark has. Blocks are those of memory, and so
are the bits.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ilk.engines.packed import Pack, PackLayout
from ilk.engines.spark_errors import Refused, Secret, translated
from ilk.engines.spark_tasks import Packing
from ilk.engines.stream import StreamRows
from ilk.errors import DataError
from ilk.table.block import Array, Encoding
from ilk.table.out_of_core.arrays import PiecedArray
from ilk.threads import thread_count

WRITTEN = "part int, within long, size int, name string, refusal binary"


class SparkLocalRows(StreamRows):
    """Rows in packs that are mapped into this process."""


def spark_local_rows(
    frame: Any, packer: Any, layout: PackLayout, threads: int | None
) -> SparkLocalRows | None:
    """The rows of a Spark frame, where its workers can write what this process reads; else None."""
    n_workers = local_workers(frame.sparkSession)
    if n_workers is None:
        return None
    folder = tempfile.mkdtemp(prefix="ilk-")
    try:
        secret = Secret()
        packing = _Writing(Packing(packer, layout.row_bytes, secret), folder)
        with translated():
            told = frame.mapInArrow(packing, WRITTEN).toArrow()
        if not told.num_rows:
            raise DataError("no-rows", "the Spark frame has no rows", do="Give at least one row")
        written = told.sort_by([("part", "ascending"), ("within", "ascending")]).to_pylist()
        for row in written:
            if row["refusal"]:
                raise secret.unseal(row["refusal"]).error()
        paths = [Path(folder, row["name"]) for row in written]
        if not all(row["name"] and path.exists() for row, path in zip(written, paths, strict=True)):
            return None
        packs = [
            Pack.from_bytes(np.memmap(path, mode="r"), row["size"], layout)
            for row, path in zip(written, paths, strict=True)
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # what is mapped stays until it is let go
    raw, weight, codes = (
        None if arrays[0] is None else Runs(arrays)
        for arrays in zip(*((pack.raw, pack.weight, pack.codes) for pack in packs), strict=True)
    )
    assert raw is not None
    untouched = Encoding(1.0, np.zeros(layout.n_columns))
    return SparkLocalRows(
        raw, untouched, weight=weight, codes=codes, complete=False, threads=threads or n_workers
    )


def local_workers(session: Any) -> int | None:
    """How many workers Spark runs in local mode; None where it does not."""
    from pyspark.errors import PySparkException

    try:
        master = str(session.conf.get("spark.master", ""))
    except PySparkException:  # a service that does not tell
        return None
    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if found is None:
        return None
    number = found.group(1) or "1"
    return thread_count(None if number == "*" else int(number))


@dataclass(frozen=True)
class _Writing:
    """On the workers: record batches to packs in files of this folder; no name where that is not possible."""

    packing: Packing
    folder: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for part, within, pack in self.packing.packs(batches):
            if isinstance(pack, Refused):
                size, name, refusal = 0, "", self.packing.secret.seal(pack)
            else:
                size, name, refusal = pack.n_rows, self._written(pack), None
            cells = {
                "part": pa.array([part], pa.int32()),
                "within": pa.array([within], pa.int64()),
                "size": pa.array([size], pa.int32()),
                "name": pa.array([name], pa.string()),
                "refusal": pa.array([refusal], pa.binary()),
            }
            yield pa.record_batch([*cells.values()], names=[*cells])

    def _written(self, pack: Pack) -> str:
        name = uuid.uuid4().hex  # a task that is run again writes files of its own
        try:
            Path(self.folder, name).write_bytes(pack.to_bytes())
        except OSError:  # another machine, or no room
            return ""
        return name


class Runs(PiecedArray):
    """Arrays one after the other, sliced like one; a slice that lies in one of them is a view.

    >>> runs = Runs([np.arange(3), np.arange(3, 5)])
    >>> runs[1:4].tolist(), runs[np.array([4, 0])].tolist(), len(runs)
    ([1, 2, 3], [4, 0], 5)
    """

    def __init__(self, arrays: Sequence[Array]) -> None:
        super().__init__(np.cumsum([0, *map(len, arrays)]), arrays[0])
        self._arrays = arrays

    def piece(self, number: int) -> Array:
        return self._arrays[number]

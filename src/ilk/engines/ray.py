"""Rows of a Ray Dataset: one pack for each block of it, walked by the futures that also serve Dask."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import pyarrow as pa

from ilk.engines.futures import FuturesRows, Reference
from ilk.engines.packed import Pack, PackedRows, PackLayout, brought
from ilk.engines.stream import StreamRows
from ilk.table.block import Array


def is_ray_dataset(data: Any) -> bool:
    module = sys.modules.get("ray.data")
    return module is not None and isinstance(data, module.Dataset)


class RayPool:
    """The workers of the Ray cluster in use; what no reference is left of is freed."""

    def put(self, value: Any) -> Reference:
        import ray

        return ray.put(value)

    def submit(self, function: Callable[..., Any], *values: Reference) -> Reference:
        return _task().remote(function, *values)

    def get(self, reference: Reference) -> Any:
        import ray

        return ray.get(reference)

    def free(self, references: Sequence[Reference]) -> None:
        pass


@cache
def _task() -> Any:
    """What Ray ships once and calls by name."""
    import ray

    return ray.remote(_applied)


def _applied(function: Callable[..., Any], *values: Any) -> Any:
    return function(*values)


def _packed(packer: Callable[[Any], Pack], names: list[str], table: Any) -> Pack:
    return packer(table.select(names))


def _kept(pick: Callable[[Any], Array], table: Any) -> Any:
    return table.take(pa.array(pick(table)))


def _arrow_schema(found: Any) -> Any:
    """Ray's schema as one of Arrow: that of blocks of pandas has names and types of pandas."""
    if isinstance(found, pa.Schema):
        return found
    import pandas as pd

    empty = {name: pd.Series(dtype=kind) for name, kind in zip(found.names, found.types, strict=True)}
    return pa.Schema.from_pandas(pd.DataFrame(empty), preserve_index=False)


class RayFrame:
    """A Ray Dataset. Results go back as columns beside the user's own."""

    def __init__(self, native: Any) -> None:
        self.native, self.source = native, "Ray dataset"
        self.schema = _arrow_schema(native.schema().base_schema)

    def rows(
        self,
        names: Sequence[str],
        packer: Callable[[Any], Pack],
        layout: PackLayout,
        threads: int | None = None,
    ) -> PackedRows | StreamRows:
        pool, pack = RayPool(), partial(_packed, packer, [*names])
        parts = [pool.submit(pack, part) for part in self.native.to_arrow_refs()]
        return brought(FuturesRows.of_parts(pool, parts, layout, threads=threads))

    def count(self) -> int:
        return int(self.native.count())

    def picked(self, pick: Callable[[Any], Array] | None) -> Any:
        pool, parts = RayPool(), self.native.to_arrow_refs()
        if pick is not None:
            parts = [pool.submit(partial(_kept, pick), part) for part in parts]
        return pa.concat_tables([pool.get(part) for part in parts])

    def filled(self, fill: Callable[[Any], Mapping[str, Any]], columns: Mapping[str, Any]) -> Any:
        def beside(table: Any) -> Any:
            for name, values in fill(table).items():
                table = table.append_column(name, pa.array(values, columns[name], from_pandas=True))
            return table

        return self.native.map_batches(beside, batch_format="pyarrow")

"""Tables that are not in this process: which engine serves them, how they are packed, how results go back to them.

The data decide the engine. Nothing of pyspark, dask or ray is imported unless the data are theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ilk.engines.futures import DaskPool, FuturesRows, is_dask_array, is_dask_frame
from ilk.engines.packed import Pack, PackedRows, PackLayout, brought
from ilk.engines.ray import RayFrame, is_ray_dataset
from ilk.engines.spark import SparkRows, is_spark_frame, with_columns
from ilk.engines.spark_errors import translated
from ilk.engines.spark_local import spark_local_rows
from ilk.engines.stream import StreamRows
from ilk.table.block import Array

Packer = Callable[[Any], Pack]
"""Makes a pack of an Arrow table; plain data, so that it can be shipped."""
Fill = Callable[[Any], Mapping[str, Any]]
"""Makes columns, by name, for an Arrow table; plain data too."""
Pick = Callable[[Any], Array]
"""Tells which rows of an Arrow table to keep, by their places in it; plain data too."""


class Frame(Protocol):
    """A table of named columns that lie elsewhere, with their Arrow types."""

    source: str
    schema: Any

    def rows(self, names: Sequence[str], packer: Packer, layout: PackLayout, threads: int | None) -> Any:
        """The rows, packed from the columns `names`; their encoding is still to be found."""
        ...

    def count(self) -> int:
        """How many rows there are."""
        ...

    def picked(self, pick: Pick | None) -> Any:
        """What `pick` keeps of each part of the rows, in their order, as one Arrow table; all rows without it."""
        ...

    def filled(self, fill: Fill, columns: Mapping[str, Any]) -> Any:
        """The user's kind of frame with the columns that `fill` makes, of these Arrow types."""
        ...


def frame_of(data: Any) -> Frame | None:
    """The frame where data lie on a cluster; None where they do not."""
    if is_spark_frame(data):
        return SparkFrame(data)
    if is_dask_frame(data):
        return DaskFrame(data)
    if is_dask_array(data):
        return DaskArray(data)
    if is_ray_dataset(data):
        return RayFrame(data)
    return None


class SparkFrame:
    """A Spark frame. Results go back as columns beside the user's own: its rows have no order to match them by."""

    def __init__(self, native: Any) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        self.native, self.source = native, "Spark frame"
        self.schema = to_arrow_schema(native.schema)

    def rows(
        self, names: Sequence[str], packer: Packer, layout: PackLayout, threads: int | None = None
    ) -> PackedRows | StreamRows:
        chosen = self.native.select(*(f"`{name.replace('`', '``')}`" for name in names))
        near = spark_local_rows(chosen, packer, layout, threads)
        if near is not None:
            return near
        return brought(SparkRows.of_frame(chosen, packer, layout, threads=threads))

    def count(self) -> int:
        with translated():
            return int(self.native.count())

    def picked(self, pick: Pick | None) -> Any:
        with translated():
            if pick is None:
                return self.native.toArrow()
            return self.native.mapInArrow(_PickBatches(pick), self.native.schema).toArrow()

    def filled(self, fill: Fill, columns: Mapping[str, Any]) -> Any:
        return with_columns(self.native, fill, columns)


class DaskFrame:
    """A Dask frame. Results go back as a frame of their own, with the index and the parts of the user's."""

    def __init__(self, native: Any) -> None:
        self.native, self.source = native, "Dask frame"
        self.schema = pa.Schema.from_pandas(native._meta, preserve_index=False)

    def rows(
        self, names: Sequence[str], packer: Packer, layout: PackLayout, threads: int | None = None
    ) -> PackedRows | StreamRows:
        parts = self.native[list(names)].to_delayed()
        return _dask_rows(parts, _PackPandas(packer), layout, threads)

    def count(self) -> int:
        return len(self.native)

    def picked(self, pick: Pick | None) -> Any:
        few = self.native
        if pick is not None:
            few = few.map_partitions(_PickPandas(pick), meta=few._meta)
        return _arrow(few.compute())

    def filled(self, fill: Fill, columns: Mapping[str, Any]) -> Any:
        empty = self.native._meta
        meta = {name: empty.index.to_series().astype(_pandas_type(kind)) for name, kind in columns.items()}
        return self.native.map_partitions(_FillPandas(fill), meta=type(empty)(meta, index=empty.index))


class DaskArray:
    """A Dask array of numbers with two dimensions. Results go back as an array (rows, columns)."""

    def __init__(self, native: Any) -> None:
        from ilk.errors import UsageError

        if native.ndim != 2:
            raise UsageError(
                "bad-shape", f"the Dask array has {native.ndim} dimensions, not 2", do="Reshape your data"
            )
        self.native, self.source = native.rechunk({1: -1}), "Dask array"
        kind = pa.from_numpy_dtype(native.dtype)
        self.schema = pa.schema([(f"x{j}", kind) for j in range(native.shape[1])])

    def rows(
        self, names: Sequence[str], packer: Packer, layout: PackLayout, threads: int | None = None
    ) -> PackedRows | StreamRows:
        places = [self.schema.get_field_index(name) for name in names]
        parts = self.native.to_delayed().ravel()
        return _dask_rows(parts, _PackArray(packer, tuple(names), tuple(places)), layout, threads)

    def count(self) -> int:
        return len(self.native)

    def picked(self, pick: Pick | None) -> Any:
        from dask import compute, delayed

        names = self.schema.names
        if pick is None:
            return _named(self.native.compute(), names)
        parts = [delayed(_PickArray(pick, tuple(names)))(part) for part in self.native.to_delayed().ravel()]
        return pa.concat_tables(compute(*parts))

    def filled(self, fill: Fill, columns: Mapping[str, Any]) -> Any:
        kinds = {_array_type(kind) for kind in columns.values()}
        dtype = kinds.pop() if len(kinds) == 1 else np.dtype(object)
        made = _FillArray(fill, tuple(self.schema.names), tuple(columns), dtype)
        return self.native.map_blocks(made, dtype=dtype, chunks=(self.native.chunks[0], (len(columns),)))


FRAMES = (SparkFrame, DaskFrame, DaskArray, RayFrame)
"""All kinds of frames on clusters."""


def _dask_rows(
    parts: Any, pack: Callable[[Any], Pack], layout: PackLayout, threads: int | None
) -> PackedRows | StreamRows:
    from dask import delayed

    pool = DaskPool.current()
    made = [delayed(pack, pure=True)(part) for part in parts]
    return brought(FuturesRows.of_parts(pool, pool.client.compute(made), layout, threads=threads))


def _arrow(frame: Any) -> Any:
    return pa.Table.from_pandas(frame, preserve_index=False)


def _named(array: Array, names: Sequence[str]) -> Any:
    return pa.table({name: np.ascontiguousarray(array[:, j]) for j, name in enumerate(names)})


def _array_type(kind: Any) -> Any:
    return np.dtype(object if pa.types.is_string(kind) else kind.to_pandas_dtype())


def _pandas_type(kind: Any) -> Any:
    return "str" if pa.types.is_string(kind) else np.dtype(kind.to_pandas_dtype())


@dataclass(frozen=True)
class _PackPandas:
    packer: Packer

    def __call__(self, frame: Any) -> Pack:
        return self.packer(_arrow(frame))


@dataclass(frozen=True)
class _PackArray:
    packer: Packer
    names: tuple[str, ...]
    places: tuple[int, ...]

    def __call__(self, array: Array) -> Pack:
        return self.packer(_named(np.asarray(array)[:, list(self.places)], self.names))


@dataclass(frozen=True)
class _PickBatches:
    pick: Pick

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch.take(pa.array(self.pick(pa.Table.from_batches([batch]))))


@dataclass(frozen=True)
class _PickPandas:
    pick: Pick

    def __call__(self, frame: Any) -> Any:
        return frame.iloc[self.pick(_arrow(frame))]


@dataclass(frozen=True)
class _PickArray:
    pick: Pick
    names: tuple[str, ...]

    def __call__(self, array: Array) -> Any:
        table = _named(np.asarray(array), self.names)
        return table.take(pa.array(self.pick(table)))


@dataclass(frozen=True)
class _FillPandas:
    fill: Fill

    def __call__(self, frame: Any) -> Any:
        return type(frame)(dict(self.fill(_arrow(frame))), index=frame.index)


@dataclass(frozen=True)
class _FillArray:
    fill: Fill
    names: tuple[str, ...]
    columns: tuple[str, ...]
    dtype: Any

    def __call__(self, array: Array) -> Array:
        made = self.fill(_named(array, self.names))
        return np.column_stack([np.asarray(made[name], self.dtype) for name in self.columns])

"""A table on a device: its rows as they were given, and what kernels are made from, kept between passes."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from ilk.kernels.gpu import plans
from ilk.kernels.gpu.dlpack import LEGACY_STREAM, foreign
from ilk.kernels.gpu.launch import Array, Device, DeviceArray, Kernel
from ilk.kernels.gpu.layouts import Scaled, lift_of
from ilk.kernels.gpu.nvrtc import Unavailable
from ilk.kernels.pairs import add_pairs

SURVEY_COLUMNS = 1024  # of one launch
GRID, SEED_GRID = 8, 48  # blocks of plain kernels on a multiprocessor


@dataclass(frozen=True)
class Ranges:
    """Per column: least, largest, sum about the pivot, missing cells."""

    low: Array
    high: Array
    total: Array
    missing: Array


class DeviceTable:
    """Rows (n, d) one after the other, of float16, float32 or float64, with the encoding of the CPU's numbers."""

    def __init__(self, device: Device, raw: DeviceArray) -> None:
        self.device, self.raw = device, raw
        self.n_rows, self.n_columns = raw.shape
        self.dtype = raw.dtype.name
        self.part = 0  # of a larger table, whose parts take turns here
        self._floats: dict[tuple[bytes, int], DeviceArray] = {}
        self._stale: dict[tuple[bytes, int], DeviceArray] = {}
        self._held: dict[Any, Any] = {}

    def turn(self, raw: DeviceArray, part: int) -> None:
        """Other cells, of another part of the same table: what was made of those before is made anew."""
        self.raw, self.part = raw, part
        self._stale, self._floats = self._floats or self._stale, {}

    # --- kernels

    def build(self, build: plans.Build) -> Kernel:
        """A kernel of a plan."""
        return self.device.kernel(build.name, build.source(), build.macros, build.shared)

    def plain(self, name: str, *, factor: bool = False) -> Kernel:
        """A kernel of `table.cu`."""
        return self.build(plans.table(name, self.n_columns, self.dtype, factor=factor))

    @property
    def grid(self) -> int:
        return self.device.multiprocessors * GRID

    @property
    def seed_grid(self) -> int:
        """Blocks of a step of k-means++: many more than there is room for at once, so that none is left over."""
        return min(self.device.multiprocessors * SEED_GRID, -(-self.n_rows // plans.SEED_ROWS))

    # --- rows

    def take(self, rows: Array) -> Array:
        """Rows by number, on the host, in their own type."""
        chosen = self.device.array(rows, np.int64)
        found = self.device.empty((len(rows), self.n_columns), self.raw.dtype)
        if len(rows):
            self.plain("gather")(self.grid, 256, self.raw, chosen, len(rows), found)
        return found.fetch()

    def ranges(self, pivot: Array, shrink: float = 1.0) -> Ranges:
        """What one pass tells of all columns; sums are about `pivot` after multiplication by `shrink`."""
        partial = self.device.empty((self.device.multiprocessors, self.n_columns, 4), np.float64)
        given = self.device.array(pivot, np.float64), self.device.array([shrink], np.float64)
        for first in range(0, self.n_columns, SURVEY_COLUMNS):
            some = first, min(SURVEY_COLUMNS, self.n_columns - first)
            self.plain("survey")(len_of(partial), 1024, self.raw, self.n_rows, *given, *some, partial)
        found = partial.fetch()
        return Ranges(
            found[..., 0].min(axis=0),
            found[..., 1].max(axis=0),
            found[..., 2].sum(axis=0),
            found[..., 3].sum(axis=0),
        )

    def content_sums(self, power: float, factors: Array, missing: int) -> DeviceArray:
        """What `kernels.content_sums` tells of the rows, with its bits."""
        sums = self.device.empty((self.n_rows,), np.uint64)
        given = self.device.array([power], np.float64), self.device.array(factors, np.uint64), missing
        self.plain("content")(self.grid, 256, self.raw, self.n_rows, *given, sums)
        return sums

    # --- numbers

    def largest(self, encoding: CellEncoding) -> float:
        """Largest encoded number in size."""
        return float(self.largest_by_column(encoding).max())

    def largest_by_column(self, encoding: CellEncoding) -> Array:
        """Largest encoded number of each column in size."""
        ranges: Ranges = self.kept("ranges", lambda: self.ranges(np.zeros(self.n_columns)))
        real: Any = np.float64 if self.dtype == "float64" else np.float32
        ends = np.stack([ranges.low, ranges.high]).astype(real)
        numbers = ends * real(encoding.power) - encoding.centre.astype(real)
        if encoding.factor is not None:
            numbers = numbers * encoding.factor.astype(real)
        return np.asarray(np.abs(numbers).max(axis=0), dtype=np.float64)

    def ends(self) -> tuple[float, float]:
        """Least and largest raw cell."""
        ranges: Ranges = self.kept("ranges", lambda: self.ranges(np.zeros(self.n_columns)))
        return float(ranges.low.min()), float(ranges.high.max())

    def encoding_array(self, encoding: CellEncoding) -> DeviceArray:
        """Power, centres and factors as the kernels read them."""
        key = "encoding", encoding.key
        if key not in self._held:
            factor = np.ones_like(encoding.centre) if encoding.factor is None else encoding.factor
            values = np.concatenate([[encoding.power], encoding.centre, factor])
            self._held[key] = self.device.array(values, np.float64)
        return self._held[key]  # type: ignore[no-any-return]

    def squares(self, encoding: CellEncoding, weight: DeviceArray | None) -> Array:
        """Sum of weight * |row|^2 in encoded units, as a pair; kept."""
        key = "squares", encoding.key, None if weight is None else weight.address, self.part
        if key not in self._held:
            partial = self.device.empty((self.grid, 2), np.float64)
            kernel = self.plain("squares", factor=encoding.factor is not None)
            kernel(self.grid, 256, self.raw, self.n_rows, self.encoding_array(encoding), weight, partial)
            self._held[key] = added_pairs(partial.fetch())
        return np.array(self._held[key])

    def floats(self, encoding: CellEncoding, wide: int, largest: float) -> tuple[DeviceArray, Scaled]:
        """The rows as floats of `wide` columns, and how they become numbers of at most 64: the rows themselves where a
        kernel can read them, else a copy, made once."""
        lift = lift_of(largest)
        scale = encoding.power * lift
        plain = self.dtype == "float32" and encoding.factor is None and wide == self.n_columns
        shift = encoding.centre.astype(np.float32).astype(np.float64) / encoding.power
        usable = 2.0**-40 < scale < 2.0**40 and isfinite(float(np.abs(shift).max(initial=0.0)))
        if plain and usable and self.raw.address % 16 == 0:
            return self.raw, Scaled(shift.astype(np.float32), scale, lift)
        key = encoding.key, wide
        if key not in self._floats:
            copy = self._room(key, np.float32)
            kernel = self.plain("encode", factor=encoding.factor is not None)
            kernel(self.grid, 256, self.raw, self.n_rows, self.encoding_array(encoding), wide, copy)
            self._floats[key] = copy
        return self._floats[key], Scaled(np.zeros(wide, dtype=np.float32), lift, lift)

    def distances(self, encoding: CellEncoding, points: Array) -> Array:
        """Squared distances (points, rows) by differences, with the bits of the CPU."""
        found, encoded = np.empty((len(points), self.n_rows)), self.encoding_array(encoding)
        for first in range(0, len(points), plans.SEED_POINTS):
            some = points[first : first + plans.SEED_POINTS]
            build = plans.seeding(self.n_columns, self.dtype, len(some), factor=encoding.factor is not None)
            there = self.device.empty((len(some), self.n_rows), np.float64)
            given = self.raw, self.n_rows, encoded, self.device.array(some, np.float64)
            self.build(build)(self.seed_grid, build.threads, *given, there)
            there.fetch(found[first : first + len(some)])
        return found

    def own_numbers(self, encoding: CellEncoding, wide: int) -> DeviceArray:
        """Encoded numbers in float32 or float64, whichever the table has, in `wide` columns; a copy, made once."""
        key = b"own" + encoding.key, wide
        if key not in self._floats:
            copy = self._room(key, "f8" if self.dtype == "float64" else "f4")
            kernel = self.plain("encode_own", factor=encoding.factor is not None)
            kernel(self.grid, 256, self.raw, self.n_rows, self.encoding_array(encoding), wide, copy)
            self._floats[key] = copy
        return self._floats[key]

    def _room(self, key: tuple[bytes, int], dtype: Any) -> DeviceArray:
        """Memory for a copy; that of the same copy of another part where there is one."""
        self._floats.clear()
        room, self._stale = self._stale.get(key), {}
        return self.device.empty((self.n_rows, key[1]), dtype) if room is None else room

    def kept(self, key: Any, make: Any) -> Any:
        """Something made once for this table."""
        if key not in self._held:
            self._held[key] = make()
        return self._held[key]


@dataclass(frozen=True)
class DeviceKeys:
    """Keys of the content of rows, on the device: `sums` of the bits of their cells, and the offset of a seed. What
    `table.least_keys` asks of keys."""

    table: DeviceTable
    sums: DeviceArray
    offset: int

    @property
    def n_rows(self) -> int:
        return int(self.table.n_rows)

    def bucket_weights(self, bits: int) -> Array:
        counts = self.table.device.empty((1 << bits,), np.int32).zero()
        self._launch("count_keys", bits, counts)
        return counts.fetch()

    def reaching(self, bits: int, least: Array) -> tuple[Array, Array, None]:
        device = self.table.device
        limits, found = device.array(least, np.uint64), device.empty((1,), np.uint64)
        self._launch("reaching_keys", bits, limits, found.zero(), None, None)
        count = int(found.fetch()[0])
        rows, keys = device.empty((count,), np.int64), device.empty((count,), np.uint64)
        self._launch("reaching_keys", bits, limits, found.zero(), rows, keys)
        place = rows.fetch()
        order = np.argsort(place)
        return place[order], keys.fetch()[order], None

    def _launch(self, name: str, bits: int, *given: Any) -> None:
        table = self.table
        table.plain(name)(table.grid, 256, self.sums, table.n_rows, self.offset, 64 - bits, *given)


@dataclass(frozen=True)
class CellEncoding:
    """`numbers = (raw * power - centre) * factor`, in the type of the table."""

    power: float
    centre: Array
    factor: Array | None = None

    @property
    def key(self) -> bytes:
        """What tells encodings apart."""
        factor = b"" if self.factor is None else self.factor.tobytes()
        return np.float64(self.power).tobytes() + self.centre.tobytes() + factor


def added_pairs(parts: Array) -> Array:
    """The sum of pairs (n, 2), in order."""
    total = np.zeros(2)
    for part in parts:
        total = add_pairs(total, part)
    return total


def len_of(array: DeviceArray) -> int:
    return array.shape[0]


def on_device(device: Device, given: Any) -> DeviceArray:
    """A CUDA array of another library as ours, uncopied where its rows lie one after the other."""
    found = foreign(given)
    if len(found.shape) != 2 or found.dtype not in plans.RAW:
        raise Unavailable(
            f"a CUDA array of shape {found.shape} and type {found.dtype} is none of float16, float32, float64 in rows"
        )
    if found.stream not in (None, 0, LEGACY_STREAM):
        device.wait_for(found.stream)
    kind, (n, columns) = np.dtype(found.dtype), found.shape
    here = DeviceArray(device, found.shape, kind, address=found.address, owner=found.owner)
    if found.strides is None or found.strides == (columns, 1):
        return here
    packed = device.empty(found.shape, kind)
    build = plans.table("pack", columns, kind.name, factor=False)
    kernel = device.kernel(build.name, build.source(), build.macros)
    kernel(device.multiprocessors * GRID, 256, here, n, *found.strides, packed)
    return packed

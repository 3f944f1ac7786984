"""From a table in pieces to the cells that numeric code sees: kept packed on disk, or decoded anew in each pass.

Which of the two is faster is found out on the first rows: decoding is shared by the threads, the disk is not. A table
whose pieces are too large to be decoded whole, or for which the disk has no room, leaves no choice. Rows without any
value stay where they are and are skipped on reading.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ilk.errors import ResourceError
from ilk.table.block import Array
from ilk.table.encode import codes_of, numbers_of, weight_cells
from ilk.table.out_of_core.arrays import PiecedArray
from ilk.table.out_of_core.disk import DiskArray, Sliceable, free_bytes, machine_bytes
from ilk.table.out_of_core.table import PieceTable
from ilk.table.read import Table
from ilk.table.schema import Schema
from ilk.threads import in_order

Design = Callable[[Array, Array | None], Array]
"""Makes the numbers a method works on of all numbers and codes of a row."""
ROOM_TO_SPARE = 1.1
PIECES_SHARE = 0.5  # of the memory, for pieces that are decoded whole
CACHE_SHARE = 0.5  # of the machine's memory, in which the system keeps files that were read


class PartCells(Protocol):
    """What becomes of the rows of a part, and of which columns."""

    @property
    def columns(self) -> Sequence[str]: ...

    def cells(self, part: Table) -> RowCells: ...


@dataclass(frozen=True)
class Layout:
    """What becomes of a row in a job: the numbers that `design` makes, the codes with `coded`, the weight."""

    schema: Schema
    design: Design
    coded: bool

    @property
    def columns(self) -> list[str]:
        names = [c.origin for c in (*self.schema.numeric, *self.schema.coded)]
        return names if self.schema.weight is None else [*names, self.schema.weight]

    def cells(self, part: Table) -> RowCells:
        numbers = numbers_of(part, self.schema.numeric)
        codes, _ = codes_of(part, self.schema.coded)
        empty = np.asarray(np.isnan(numbers).all(axis=1))
        if codes is not None:
            empty &= (codes < 0).all(axis=1)
        raw = self.design(numbers, codes)
        blank = np.asarray(np.isnan(raw).all(axis=1))
        if self.coded and codes is not None:
            blank &= (codes < 0).all(axis=1)
        return RowCells(
            raw, codes if self.coded else None, weight_cells(part, self.schema), empty, blank & ~empty
        )


@dataclass(frozen=True)
class RowCells:
    """Packed rows; `empty` ones have no value at all, `blank` ones none that the method uses."""

    raw: Array
    codes: Array | None
    weight: Array | None
    empty: Array
    blank: Array

    @property
    def arrays(self) -> tuple[Array | None, Array | None, Array | None]:
        return self.raw, self.codes, self.weight

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays if array is not None)


@dataclass(frozen=True, kw_only=True)
class PackedTable:
    """The rows used of a table; `empty` and `blank` are the numbers of the others. `kept` says that they are packed
    on disk."""

    raw: Sliceable
    codes: Sliceable | None
    weight: Sliceable | None
    empty: Array
    blank: Array
    kept: bool

    @property
    def skipped(self) -> Array:
        return np.union1d(self.empty, self.blank)

    def numbers_of(self, places: Array) -> Array:
        """Numbers in the table of the rows at these places among those used."""
        return self.raw.places(places) if isinstance(self.raw, Kept) else places


def pack(table: PieceTable, layout: PartCells, memory: float, threads: int) -> PackedTable:
    """All rows packed, by threads that take a piece each."""
    sample, seconds = _first_cells(table, layout)
    pieces = np.diff(table.pieces.first_rows)
    row_bytes = sample.n_bytes / max(1, len(sample.raw))
    whole = row_bytes * pieces.max(initial=0) * (threads + 1) <= PIECES_SHARE * memory
    room = row_bytes * table.n_rows * ROOM_TO_SPARE <= free_bytes()
    if not room and not whole:
        raise ResourceError(
            "disk-full",
            f"{table.source} takes {row_bytes * table.n_rows / 1e9:,.1f} GB packed, more than there is room for",
            do="Make room, name another folder for temporary files (TMPDIR), or allow more memory",
        )
    cached = row_bytes * table.n_rows <= CACHE_SHARE * machine_bytes()
    if room and (not whole or _reads_faster(sample, seconds / threads, cached=cached)):
        return _kept(table, layout, sample, threads)
    return _decoded(table, layout, threads)


def _first_cells(table: PieceTable, layout: PartCells) -> tuple[RowCells, float]:
    """The first rows, and the seconds it took to decode them."""
    for piece in range(table.n_pieces):
        began = time.perf_counter()
        part = next(table.parts_of(piece, layout.columns), None)
        if part is not None:
            return layout.cells(part), time.perf_counter() - began
    return layout.cells(table.take(np.empty(0, np.intp))), 0.0


def _reads_faster(sample: RowCells, seconds: float, *, cached: bool) -> bool:
    """Whether rows come faster from a packed file than from the table, which takes `seconds`; from the disk where the
    file is too large for the system to keep it in memory."""
    probe = DiskArray(len(sample.raw), sample.raw.shape[1], sample.raw.dtype)
    probe.write(0, sample.raw)
    if not cached:
        probe.leave_cache()
    began = time.perf_counter()
    probe[: len(sample.raw)]
    return time.perf_counter() - began < seconds


def _kept(table: PieceTable, layout: PartCells, sample: RowCells, threads: int) -> PackedTable:
    n_rows = table.pieces.first_rows[-1]
    files = [
        None if array is None else DiskArray(n_rows, array.shape[1] if array.ndim == 2 else None, array.dtype)
        for array in sample.arrays
    ]

    def keep(piece: int) -> tuple[Array, Array]:
        first, empty, blank = table.pieces.first_rows[piece], [], []
        for part in table.parts_of(piece, layout.columns):
            cells = layout.cells(part)
            for file, array in zip(files, cells.arrays, strict=True):
                if file is not None and array is not None:
                    file.write(first, array)
            empty.append(first + np.flatnonzero(cells.empty))
            blank.append(first + np.flatnonzero(cells.blank))
            first += part.n_rows
        return _joined(empty), _joined(blank)

    found = [*in_order(keep, range(table.n_pieces), threads)]
    empty, blank = _joined([e for e, _ in found]), _joined([b for _, b in found])
    return _packed(files, empty, blank, kept=True)


def _decoded(table: PieceTable, layout: PartCells, threads: int) -> PackedTable:
    decoder = _Decoder(table, layout, threads)

    def look(piece: int) -> tuple[Array, Array]:
        cells, first = decoder.cells(piece), table.pieces.first_rows[piece]
        return first + np.flatnonzero(cells.empty), first + np.flatnonzero(cells.blank)

    found = [*in_order(look, range(table.n_pieces), threads)]
    empty, blank = _joined([e for e, _ in found]), _joined([b for _, b in found])
    shapes = decoder.cells(0).arrays
    files = [None if array is None else _Decoded(decoder, place) for place, array in enumerate(shapes)]
    return _packed(files, empty, blank, kept=False)


def _joined(parts: list[Array]) -> Array:
    return np.concatenate([np.empty(0, np.intp), *parts])


def _packed(files: list[Any], empty: Array, blank: Array, *, kept: bool) -> PackedTable:
    skipped = np.union1d(empty, blank)
    raw, codes, weight = (file if file is None or not len(skipped) else Kept(file, skipped) for file in files)
    return PackedTable(raw=raw, codes=codes, weight=weight, empty=empty, blank=blank, kept=kept)


class Kept:
    """An array without the rows in `skipped`, which are few and in order.

    >>> Kept(np.arange(6.0), np.array([1, 4]))[1:4].tolist()
    [2.0, 3.0, 5.0]
    """

    def __init__(self, array: Sliceable, skipped: Array) -> None:
        self._array, self._skipped = array, skipped
        self._before = skipped - np.arange(len(skipped))  # rows kept before each
        self.dtype = array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self._array) - len(self._skipped), *self._array.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def places(self, rows: Array) -> Array:
        """Numbers among all rows of these numbers among the rows kept."""
        return np.asarray(rows + np.searchsorted(self._before, rows, "right"))

    def __getitem__(self, which: Any) -> Array:
        if isinstance(which, tuple):
            return np.asarray(self[which[0]][:, which[1]])
        if not isinstance(which, slice):
            return self._array[self.places(np.asarray(which))]
        first, last, _ = which.indices(len(self))
        if last <= first:
            return self._array[0:0]
        low, high = self.places(np.array([first, last - 1]))
        inside = self._skipped[slice(*np.searchsorted(self._skipped, [low, high]))]
        return np.delete(self._array[low : high + 1], inside - low, axis=0)


class _Decoder:
    """Pieces decoded when they are asked for; the latest few stay, and no two threads decode the same."""

    def __init__(self, table: PieceTable, layout: PartCells, threads: int) -> None:
        self.table, self.layout, self._most = table, layout, threads + 1
        self._latest: OrderedDict[int, RowCells] = OrderedDict()
        self._locks = [threading.Lock() for _ in range(table.n_pieces)]
        self._lock = threading.Lock()

    def cells(self, piece: int) -> RowCells:
        with self._locks[piece]:
            with self._lock:
                if piece in self._latest:
                    self._latest.move_to_end(piece)
                    return self._latest[piece]
            made = [self.layout.cells(part) for part in self.table.parts_of(piece, self.layout.columns)]
            if not made:
                made = [self.layout.cells(self.table.take(np.empty(0, np.intp)))]
            found = RowCells(*(_stacked([getattr(cells, name) for cells in made]) for name in _FIELDS))
            with self._lock:
                self._latest[piece] = found
                if len(self._latest) > self._most:
                    self._latest.popitem(last=False)
            return found


_FIELDS = ("raw", "codes", "weight", "empty", "blank")


def _stacked(parts: list[Any]) -> Any:
    return None if parts[0] is None else parts[0] if len(parts) == 1 else np.concatenate(parts)


class _Decoded(PiecedArray):
    """One of the arrays that a decoder gives."""

    def __init__(self, decoder: _Decoder, place: int) -> None:
        self._decoder, self._place = decoder, place
        super().__init__(np.asarray(decoder.table.pieces.first_rows), self.piece(0))

    def piece(self, number: int) -> Array:
        found = self._decoder.cells(number).arrays[self._place]
        assert found is not None
        return found

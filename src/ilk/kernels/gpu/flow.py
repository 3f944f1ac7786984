"""A table larger than the card: its parts pass through three buffers there, two copied while one is worked on.

A pass takes the time of its copies (55 GB/s from page-locked memory): they are queued ahead, and kernels wait for them
on the card. Arrays in memory are page-locked where they lie; of memory maps and spooled tables threads fill page-locked
buffers. Sums of the parts add up: those of K-means are whole numbers, whose bits depend on no cut.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from ilk.kernels.gpu.launch import Array, Device, DeviceArray
from ilk.kernels.gpu.nvrtc import Unavailable
from ilk.kernels.gpu.plans import LEAST_ROWS, up
from ilk.kernels.gpu.product_plans import ProductPlan
from ilk.kernels.gpu.resident import Resident
from ilk.kernels.gpu.table import DeviceTable, Ranges
from ilk.kernels.pairs import add_pairs
from ilk.kernels.plain_mixture import Ending, ending_of, mixture_labels
from ilk.kernels.plain_product import ProductSums

PART_BYTES = 1 << 28
BUFFERS = 3
FILLERS = 8  # threads that fill a buffer
WEIGHT, MEMBERSHIP = 3, 5  # places among the arguments of the kernels, after the cells
CODES, PRODUCT_WEIGHT = 3, 4  # of products


class Source:
    """The cells of a table, in memory, mapped or on disk: bytes that a card can read, in this type or their own."""

    def __init__(self, device: Device, raw: Any, dtype: Any = None) -> None:
        self.device, self.raw = device, raw
        own = np.asarray(raw[:1]).dtype
        self.dtype = own if dtype is None else np.dtype(dtype)
        self.width = int(raw.shape[1]) * self.dtype.itemsize
        plain = type(raw) is np.ndarray and raw.flags.c_contiguous and own == self.dtype and self.width > 0
        self._locked = raw.ctypes.data if plain and device.lock_pages(raw.ctypes.data, raw.nbytes) else 0
        self._stream, self._buffers = device.other_stream(), [0] * BUFFERS
        self._copied = [device.event() for _ in range(BUFFERS)]
        self._crew = None if self._locked else ThreadPoolExecutor(FILLERS)

    def copy(self, first: int, last: int, place: int, to: DeviceArray) -> None:
        """Begin to copy rows first .. last to the device, through buffer `place` where their own pages are not
        locked."""
        if not self.width:
            return
        if self._locked:
            address = self._locked + first * self.width
        else:
            self._buffers[place] = self._buffers[place] or self.device.locked_buffer(to.nbytes)
            address = self._buffers[place]
            self._fill(first, last, address)
        self.device.copy_in(to, address, (last - first) * self.width, self._stream, self._copied[place])

    def wait_for_copy(self, place: int) -> None:
        """Kernels launched from now on find what was last copied to `place`."""
        self.device.wait_for_event(self._copied[place])

    def _fill(self, first: int, last: int, address: int) -> None:
        room: Any = (ctypes.c_char * ((last - first) * self.width)).from_address(address)
        cells = np.frombuffer(room, self.dtype).reshape(last - first, -1)
        step = -(-(last - first) // FILLERS)

        def fill(at: int) -> None:
            end = min(at + step, last - first)
            cells[at:end] = self.raw[first + at : first + end]

        assert self._crew is not None
        list(self._crew.map(fill, range(0, last - first, step)))

    def close(self) -> None:
        """Let go of what the card could read, once it has read it."""
        self.device.close_stream(self._stream, self._copied)
        if self._crew is not None:
            self._crew.shutdown(wait=False)
        if self._locked:
            self.device.unlock_pages(self._locked)
        for address in self._buffers:
            if address:
                self.device.free_locked(address)


class _PartOnCard(Resident):
    """The part that lies on the device now, with its codes as they came; its weights are a stretch of the table's."""

    still = False
    held = 16  # models that are served by one reading, where their numbers of components differ
    here = slice(0)
    heft: tuple[DeviceArray | None, float] = None, 1.0
    came: DeviceArray | None = None

    def weight(self, weight: Array | None) -> tuple[DeviceArray | None, float]:
        return self.heft

    def _packed(self, codes: Array, plan: ProductPlan) -> DeviceArray:
        n, came, device = self.table.n_rows, self.came, self.table.device
        assert came is not None
        room = ("codes", plan.levels)
        found: DeviceArray = self.table.kept(room, lambda: device.empty((came.shape[1], n), plan.code_type))
        start = device.array(plan.start, np.int64)
        pack = self.table.build(plan.build("pack_codes"))
        pack(self.table.grid, 256, came, n, 0, n, start, found)
        return found


class Flowing:
    """What stands in a block for the raw cells: `ilk.kernels` calls its kernels, as it calls those of `Resident`."""

    ndim = 2

    def __init__(self, device: Device, raw: Any, say: Callable[..., None], codes: Any = None) -> None:
        self.device, self.shape, self._say = device, tuple(raw.shape), say
        self.sources, self.raw = [Source(device, raw)], raw
        if codes is not None:
            self.sources.append(Source(device, codes, np.int32))
        self.dtype = self.sources[0].dtype
        n = self.shape[0]
        n_parts = -(-n // max(LEAST_ROWS, PART_BYTES // sum(source.width for source in self.sources)))
        self.step = up(-(-n // n_parts), 64)  # parts of equal size: none too small for the kernels
        self._buffers = [[self._room(source) for source in self.sources] for _ in range(BUFFERS)]
        self._parts: dict[int, _PartOnCard] = {}
        self._ranges: Ranges | None = None
        self._weight: tuple[Array, DeviceArray, float] | None = None
        self._on_cpu: Callable[..., Any] | None = None
        self._copier = ThreadPoolExecutor(1)

    def _room(self, source: Source) -> DeviceArray:
        return self.device.empty((self.step, int(source.raw.shape[1])), source.dtype)

    def __del__(self) -> None:
        if hasattr(self, "_copier"):
            self._copier.shutdown(wait=True)
            for source in self.sources:
                source.close()

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, which: Any) -> Array:
        return np.asarray(self.raw[which])

    # --- parts

    def parts(self) -> Iterator[tuple[slice, _PartOnCard]]:
        """The parts in order, each on the device while it is its turn; the copies of two more go on meanwhile."""
        cuts = [slice(at, min(at + self.step, len(self))) for at in range(0, len(self), self.step)]
        ahead: dict[int, Future[None]] = {}

        def ask(number: int) -> None:
            if number < len(cuts):
                ahead[number] = self._copier.submit(self._copy, cuts[number], number % BUFFERS)

        for number in range(BUFFERS - 1):
            ask(number)
        for number, here in enumerate(cuts):
            ahead.pop(number).result()
            for source in self.sources:
                source.wait_for_copy(number % BUFFERS)
            ask(number + BUFFERS - 1)  # the buffer of the part before is free: its sums were fetched
            yield here, self._turn(number, here)

    def _copy(self, here: slice, place: int) -> None:
        for source, room in zip(self.sources, self._buffers[place], strict=True):
            source.copy(here.start, here.stop, place, room)

    def _turn(self, number: int, here: slice) -> _PartOnCard:
        rows = here.stop - here.start
        cells, *codes = (room.rows(0, rows) for room in self._buffers[number % BUFFERS])
        if rows not in self._parts:
            table = DeviceTable(self.device, cells)
            self._parts[rows] = _PartOnCard(table, partial(self._on_host, rows), self._say)
        part = self._parts[rows]
        part.here = here
        part.table.turn(cells, number)
        part.came = codes[0] if codes else None
        if self._ranges is not None:
            part.table.kept("ranges", lambda: self._ranges)
        return part

    def _on_host(self, rows: int) -> Array:
        """The part of so many rows that is on the card now."""
        return np.asarray(self.raw[self._parts[rows].here])

    def served(self, weight: Array | None, *, surveyed: bool) -> Iterator[tuple[slice, Any]]:
        """The parts in order for any number of models: each has its weights, and stays until the next is asked for."""
        if surveyed:
            self._survey()
        for here, part in self.parts():
            part.heft = self._hefts(weight, here)
            yield here, part

    def _survey(self) -> None:
        """The range of all columns, once: kernels count in units of it."""
        if self._ranges is None:
            found = [part.table.ranges(np.zeros(self.shape[1])) for _, part in self.parts()]
            low, high = (
                np.min([one.low for one in found], axis=0),
                np.max([one.high for one in found], axis=0),
            )
            total, missing = ([getattr(one, name) for one in found] for name in ("total", "missing"))
            self._ranges = Ranges(low, high, np.sum(total, axis=0), np.sum(missing, axis=0))

    def _hefts(self, weight: Array | None, here: slice) -> tuple[DeviceArray | None, float]:
        if weight is None:
            return None, 1.0
        if self._weight is None or self._weight[0] is not weight:
            self._weight = weight, self.device.array(weight, np.float64), float(weight.max())
        return self._weight[1].rows(here.start, here.stop), self._weight[2]

    # --- kernels

    def run(self, name: str, on_cpu: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """The kernel of this name over all parts, here or on the CPU."""
        here = getattr(self, "_" + name, None)
        if here is None:
            self._say(f"{name.replace('_', ' ')} has no kernel for tables larger than the card")
            return on_cpu(np.asarray(self.raw[:]), *given, **named)
        try:
            if not name.startswith("product"):
                self._survey()
            return here(*given, **named)
        except Unavailable as why:
            self._say(str(why))
        self._on_cpu = mixture_labels if name == "mixture_ending" else on_cpu
        try:
            return here(*given, **named)
        finally:
            self._on_cpu = None

    def _each(
        self, name: str, given: tuple[Any, ...], *by_row: int, weight: int | None = None, **named: Any
    ) -> Iterator[Any]:
        """What the kernel tells of each part; the arguments at `by_row` and the `weight` have an entry for each row."""
        by_row = by_row if weight is None else (*by_row, weight)

        def of(here: slice) -> list[Any]:
            return [
                values[here] if at in by_row and values is not None else values
                for at, values in enumerate(given)
            ]

        if self._on_cpu is not None:
            for at in range(0, len(self), self.step):
                here = slice(at, min(at + self.step, len(self)))
                yield self._on_cpu(np.asarray(self.raw[here]), *of(here), **named)
            return
        for here, part in self.parts():
            part.heft = self._hefts(None if weight is None else given[weight], here)
            yield getattr(part, "_" + name)(*of(here), **named)

    def _nearest_step(self, *given: Any) -> tuple[Array, Array, Array]:
        found = self._each(
            "nearest_step", given[:7], weight=WEIGHT
        )  # what else there is serves blocks in memory
        sums, weights, cost = next(found)
        for more, others, theirs in found:
            sums, weights, cost = add_pairs(sums, more), weights + others, add_pairs(cost, theirs)
        return sums, weights, cost

    def _nearest(self, *given: Any) -> tuple[Array, ...]:
        return _stacked(self._each("nearest", given))

    def _mixture_step(self, *given: Any) -> tuple[Array, ...]:
        return _added(self._each("mixture_step", given[:10], weight=WEIGHT))

    def _mixture_labels(self, *given: Any) -> tuple[Array, ...]:
        return _stacked(self._each("mixture_labels", given))

    def _mixture_ending(self, *given: Any) -> Ending:
        label, top, cost = self._mixture_labels(*given[:WEIGHT], *given[WEIGHT + 1 : 7])
        return ending_of(label, top, cost, given[WEIGHT], given[7], bool(given[8:9] and given[8]))

    def _mixture_gather(self, *given: Any) -> tuple[Array, ...]:
        return _added(self._each("mixture_gather", given[:7], MEMBERSHIP, weight=WEIGHT))

    def _student_tails(self, *given: Any) -> tuple[Array, ...]:
        return _added(self._each("student_tails", given, weight=WEIGHT))

    def _student_step(self, *given: Any) -> tuple[Array, ...]:
        return _added(self._each("student_step", given, weight=WEIGHT))

    def _student_labels(self, *given: Any) -> tuple[Array, ...]:
        return _stacked(self._each("student_labels", given))

    def _product_step(self, *given: Any, **named: Any) -> tuple[ProductSums, float, float]:
        found = self._each("product_step", given, CODES, weight=PRODUCT_WEIGHT, **named)
        sums, cost, entropy = next(found)
        for more, theirs, surprise in found:
            sums, cost, entropy = ProductSums(*_added(iter([sums, more]))), cost + theirs, entropy + surprise
        return sums, cost, entropy

    def _product_labels(self, *given: Any, **named: Any) -> tuple[Array, ...]:
        return _stacked(self._each("product_labels", given, CODES, **named))


def _added(found: Iterator[tuple[Array, ...]]) -> tuple[Array, ...]:
    total = next(found)
    for more in found:
        total = tuple(one + other for one, other in zip(total, more, strict=True))
    return total


def _stacked(found: Iterator[tuple[Array, ...]]) -> tuple[Array, ...]:
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

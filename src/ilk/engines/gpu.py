"""The table on a GPU: kernels that are made for it walk it there, everything else sees blocks in memory.

`whole` is a block whose raw cells are a `Resident`: the kernels of `ilk.kernels` take it as they take an array. Sums of
K-means are whole numbers and labels are decided in float64 where float32 leaves them open, so a fit has the labels of
the CPU; sums of mixtures are float64 added in fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ilk.engines.base import Result, Rows, State, SummableT
from ilk.engines.draw import drawn_by_weight, drawn_rows
from ilk.engines.memory import MemoryRows
from ilk.errors import EngineError, warn
from ilk.kernels.gpu.launch import Device, open_device
from ilk.kernels.gpu.nvrtc import Unavailable
from ilk.kernels.gpu.plans import LEAST_ROWS
from ilk.kernels.gpu.resident import Resident
from ilk.kernels.gpu.table import DeviceTable, on_device
from ilk.table.block import Array, Block, Encoding, block_rows
from ilk.table.condition import Survey, encoding_of, middle_rows, survey
from ilk.threads import thread_count

SPARE_BYTES = 2 << 30  # of the card, left for what passes need


class GpuRows:
    """Complete rows on a device; `host` holds them in memory too, or is filled when something asks for them there."""

    resident = True

    def __init__(
        self,
        table: DeviceTable,
        encoding: Encoding,
        *,
        host: Array | None = None,
        weight: Array | None = None,
        threads: int | None = None,
    ) -> None:
        self.table, self.encoding, self.weight = table, encoding, weight
        self.n_rows, self.n_columns = table.n_rows, table.n_columns
        self.complete, self.weighted, self.threads = True, weight is not None, thread_count(threads)
        self.block_rows = block_rows(self.n_rows, self.n_columns)
        self._host, self._memory = host, cast("MemoryRows | None", None)
        self._said: set[str] = set()
        self._resident = Resident(table, lambda: self.memory.raw, self._say)

    @property
    def device_name(self) -> str:
        return self.table.device.name

    @property
    def memory(self) -> MemoryRows:
        """The same rows in memory."""
        if self._memory is None:
            if self._host is None:
                self._host = _as_numbers(self.table.raw.fetch())
            self._memory = MemoryRows(self._host, self.encoding, weight=self.weight, threads=self.threads)
        return self._memory

    def _say(self, why: str) -> None:
        if why not in self._said:
            self._said.add(why)
            warn("on-cpu", f"{why}: the CPU does it.", depth=2)

    @property
    def whole(self) -> Block | None:
        raw = cast(Array, self._resident)
        return Block(raw, self.encoding, weight=self.weight, part_rows=self.block_rows, threads=self.threads)

    def reduce(self, visit: Callable[[State, Block], SummableT], state: State) -> SummableT:
        return self.memory.reduce(visit, state)

    def scan(self, visit: Callable[[State, Block], Result], state: State) -> Iterator[Result]:
        return self.memory.scan(visit, state)

    def sample(self, n_rows: int, seed: int) -> Block:
        if self.n_rows <= n_rows:
            return self.memory.sample(n_rows, seed)
        weight = self.weight
        if weight is None:
            return self.take(drawn_rows(self.n_rows, n_rows, seed))
        return self.take(drawn_by_weight(lambda: [weight], n_rows, seed), weighted=False)

    def take(self, rows: Array, *, weighted: bool = True) -> Block:
        rows = np.asarray(rows)
        raw = _as_numbers(self.table.take(rows)) if self._host is None else self._host[rows]
        weight = self.weight[rows] if weighted and self.weight is not None else None
        return Block(raw, self.encoding, weight=weight)


def _as_numbers(raw: Array) -> Array:
    """Cells of a type that the CPU's kernels have."""
    return raw.astype(np.float32) if raw.dtype == np.float16 else raw


def is_on_device(data: Any) -> bool:
    """Whether these are cells on an NVIDIA GPU, of torch, CuPy, Numba or another library."""
    try:
        return getattr(data, "__cuda_array_interface__", None) is not None
    except (AttributeError, TypeError, RuntimeError):  # a tensor elsewhere says so by an error
        return False


def fetched(data: Any) -> Any:
    """Cells that lie on a GPU as an array in memory; anything else as it is."""
    if not is_on_device(data):
        return data
    try:
        cells = on_device(open_device(), data)
    except Unavailable as why:
        raise _elsewhere(why) from None
    return data if cells is None else _as_numbers(cells.fetch())


def _elsewhere(why: Unavailable) -> EngineError:
    return EngineError(
        "gpu-array", f"the cells lie on a GPU, and {why}", do="Give them as a NumPy array in memory"
    )


def placed(rows: Rows, device: str) -> Rows:
    """The rows on the device that was asked for; where that cannot be, as they are, and why is said."""
    if device == "cpu" or not isinstance(rows, MemoryRows) or rows.codes is not None:
        return rows
    try:
        return _moved(rows)
    except Unavailable as why:
        if device == "cuda":
            warn("no-gpu", f"device='cuda' was asked for, and {why}: the CPU does it.", depth=4)
        return rows


def _moved(rows: MemoryRows) -> GpuRows:
    if not rows.complete:
        raise Unavailable("missing values are the CPU's")
    if rows.n_rows < LEAST_ROWS:
        raise Unavailable(f"a table of fewer than {LEAST_ROWS} rows gains nothing")
    device = open_device()
    _check_room(device, rows.raw.nbytes)
    raw = device.empty(rows.raw.shape, rows.raw.dtype).fill(rows.raw)
    table = DeviceTable(device, raw)
    return GpuRows(table, rows.encoding, host=rows.raw, weight=rows.weight, threads=rows.threads)


def _check_room(device: Device, size: int) -> None:
    free = device.free_bytes()
    if size + SPARE_BYTES > free:
        raise Unavailable(
            f"the table of {size / 2**30:.1f} GiB does not fit into the {free / 2**30:.1f} GiB free there"
        )


def rows_on_device(
    data: Any, *, weight: Array | None, unit: float, scale: str | None, threads: int | None
) -> Rows:
    """Cells that lie on a GPU as rows, surveyed and conditioned there; in memory where that cannot be."""
    try:
        device = open_device()
        cells = on_device(device, data)
        assert cells is not None
        table = DeviceTable(device, cells)
        facts = _survey(table)
    except Unavailable as why:
        raise _elsewhere(why) from None
    plain = facts.complete and scale is None and weight is None and table.n_rows >= LEAST_ROWS
    if plain:
        few = _as_numbers(table.take(middle_rows(table.n_rows)))
        return GpuRows(table, replace(encoding_of(few, facts), weight_unit=unit), threads=threads)
    host = _as_numbers(cells.fetch())  # what is rarer is told by the CPU, from one copy
    facts = survey(host, weight=weight)
    encoding = replace(encoding_of(host, facts, scale=scale, weight=weight), weight_unit=unit)
    if facts.complete and table.n_rows >= LEAST_ROWS:
        return GpuRows(table, encoding, host=host, weight=weight, threads=threads)
    return MemoryRows(host, encoding, weight=weight, complete=facts.complete, threads=threads)


def _survey(table: DeviceTable) -> Survey:
    """Range, mean and missing cells per column."""
    first = _as_numbers(table.take(np.arange(min(table.n_rows, 1))))
    pivot = np.nan_to_num(first[0].astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    found = table.ranges(pivot)
    if (
        np.isinf(found.low[found.low <= found.high]).any()
        or np.isinf(found.high[found.low <= found.high]).any()
    ):
        raise Unavailable("some of them are infinite")
    cells = table.n_rows - found.missing
    mean = pivot + found.total / np.maximum(cells, 1)
    kind: Any = np.dtype(np.float64 if table.dtype == "float64" else np.float32)
    return Survey(
        low=found.low.astype(kind),
        high=found.high.astype(kind),
        mean=mean,
        missing=found.missing,
        total_weight=cells,
        dtype=kind,
    )

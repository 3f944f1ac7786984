"""The table on a GPU: kernels that are made for it walk it there, everything else sees blocks in memory.

`whole` is a block whose raw cells are a `Resident`: the kernels of `ilk.kernels` take it as they take an array. Sums of
K-means are whole numbers and labels are decided in float64 where float32 leaves them open, so a fit has the labels of
the CPU; sums of mixtures are float64 added in fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any, cast

import numpy as np

from ilk.engines.base import Result, Rows, State, SummableT
from ilk.engines.memory import MemoryRows
from ilk.engines.stream import StreamRows
from ilk.errors import EngineError, warn
from ilk.kernels.gpu.dlpack import device_of
from ilk.kernels.gpu.flow import Flowing
from ilk.kernels.gpu.launch import Device, DeviceArray, open_device
from ilk.kernels.gpu.nvrtc import Unavailable
from ilk.kernels.gpu.plans import LEAST_ROWS
from ilk.kernels.gpu.resident import Resident
from ilk.kernels.gpu.table import DeviceKeys, DeviceTable, on_device
from ilk.table.block import Array, Block, Encoding, block_rows, is_sparse
from ilk.table.condition import Survey, encoding_of, survey
from ilk.table.content import MISSING, column_factors, key_offset
from ilk.table.least_keys import drawn_places
from ilk.table.middle import middle_rows
from ilk.threads import thread_count

SPARE_BYTES = 2 << 30  # of the card, left for what passes need


def _say_once(said: set[str], why: str, code: str, then: str) -> None:
    if why not in said:
        said.add(why)
        warn(code, f"{why}: {then}.", depth=3)


class GpuRows(MemoryRows):
    """Rows in memory that lie on a device too, where the kernels made for it walk them: `resident`, and `whole` where
    no cell is missing. Where `host` is None they are fetched when something asks for them."""

    in_parts = False

    def __init__(
        self,
        table: DeviceTable,
        encoding: Encoding,
        *,
        host: Array | None = None,
        weight: Array | None = None,
        codes: Array | None = None,
        complete: bool = True,
        threads: int | None = None,
    ) -> None:
        self.table, self.encoding, self.weight, self.codes = table, encoding, weight, codes
        self.n_rows, self.n_columns = table.raw.shape
        self.complete, self.weighted, self.threads = complete, weight is not None, thread_count(threads)
        self.block_rows = block_rows(self.n_rows, self.n_columns)
        self._memos = [{} for _ in range(self.n_blocks)]
        self._host, self._fetching, self._said = host, Lock(), set[str]()
        self._cells = Resident(table, lambda: self.raw, self.tell)

    @property
    def device_name(self) -> str:
        return self.table.device.name

    @property
    def raw(self) -> Array:  # type: ignore[override]
        with self._fetching:  # by one of the threads that ask for it
            if self._host is None:
                self._host = _as_numbers(self.table.raw.fetch())
            return self._host

    @property
    def cells_per_row(self) -> int:
        return int(self.n_columns)

    def tell(self, why: str, code: str = "on-cpu", then: str = "the CPU does it") -> None:
        """Say once what is not done here, and why."""
        _say_once(self._said, why, code, then)

    @cached_property
    def parted(self) -> tuple[Block, MemoryRows] | None:
        """Complete rows as a block on the device, and the others in memory; None where that is not possible."""
        gaps = np.asarray(np.isnan(self.raw).any(axis=1))
        try:
            complete = _moved(self._part(~gaps, complete=True), self.table.device)
        except Unavailable as why:
            self.tell(str(why))
            return None
        there = complete.whole
        return None if there is None else (there, self._part(gaps, complete=False))

    def _part(self, which: Array, *, complete: bool) -> MemoryRows:
        weight = None if self.weight is None else self.weight[which]
        return MemoryRows(
            self.raw[which], self.encoding, weight=weight, complete=complete, threads=self.threads
        )

    @property
    def resident(self) -> Block | None:  # type: ignore[override]
        return Block(
            cast(Array, self._cells),
            self.encoding,
            weight=self.weight,
            codes=self.codes,
            complete=self.complete,
            part_rows=self.block_rows,
            threads=self.threads,
        )

    @property
    def whole(self) -> Block | None:
        return self.resident if self.complete else None

    def reencoded(self, encoding: Encoding) -> GpuRows:
        made = GpuRows(
            self.table,
            encoding,
            host=self._host,
            weight=self.weight,
            codes=self.codes,
            complete=self.complete,
            threads=self.threads,
        )
        made._cells, made._said = self._cells, self._said
        return made

    def beside(self, made: MemoryRows) -> MemoryRows:
        try:
            return _moved(made, self.table.device)
        except Unavailable as why:
            self.tell(str(why))
            return made

    def sample(self, n_rows: int, seed: int) -> Block:
        """The rows that `drawn_by_content` names, told by the card where numbers are all that counts."""
        if self.codes is not None or self.weighted or self.n_rows <= n_rows:
            return super().sample(n_rows, seed)
        sums = self.table.content_sums(self.encoding.power, column_factors(self.n_columns), MISSING)
        return self.take(drawn_places(DeviceKeys(self.table, sums, key_offset(seed)), n_rows))

    def _slice(self, which: slice | Array, first_row: int = 0, memo: dict[str, Array] | None = None) -> Block:
        if self._host is not None or isinstance(which, slice):
            return super()._slice(which, first_row, memo)
        weight, codes = (None if cells is None else cells[which] for cells in (self.weight, self.codes))
        raw = _as_numbers(self.table.take(which))
        return Block(raw, self.encoding, weight=weight, codes=codes, complete=self.complete)


class FlowingRows:
    """Rows that pass through a device in parts: of tables larger than it, in memory or on disk."""

    parted = None
    in_parts = True

    def __init__(self, rows: MemoryRows | StreamRows, device: Device) -> None:
        self.rows, self.device, self.encoding = rows, device, rows.encoding
        self.n_rows, self.n_columns, self.complete = rows.n_rows, rows.n_columns, rows.complete
        self.weighted, self.threads = rows.weighted, rows.threads
        heft = None if rows.weight is None else np.asarray(rows.weight[:])
        held = heft is None or isinstance(rows, MemoryRows)  # conditioned already
        self.weight = heft if held else rows.encoding.weights(cast(Array, heft))
        self._said = set[str]()
        self._cells = Flowing(device, rows.raw, self.tell, rows.codes)

    @property
    def device_name(self) -> str:
        return self.device.name

    def tell(self, why: str, code: str = "on-cpu", then: str = "the CPU does it") -> None:
        """Say once what is not done here, and why."""
        _say_once(self._said, why, code, then)

    @property
    def resident(self) -> Block | None:
        return Block(
            cast(Array, self._cells),
            self.encoding,
            weight=self.weight,
            codes=cast("Array | None", self.rows.codes),
            complete=self.complete,
            part_rows=self.rows.block_rows,
            threads=self.threads,
        )

    @property
    def whole(self) -> Block | None:
        return self.resident if self.complete else None

    def part_blocks(self, *, surveyed: bool) -> Iterator[Block]:
        """All rows in blocks that lie on the device one after the other, for as many models as want them; `surveyed`
        where some of these count in units of the range of all rows."""
        codes = self.rows.codes
        for here, cells in self._cells.served(self.weight, surveyed=surveyed):
            yield Block(
                cast(Array, cells),
                self.encoding,
                first_row=here.start,
                weight=None if self.weight is None else self.weight[here],
                codes=None if codes is None else np.asarray(codes[here]),
                complete=self.complete,
                part_rows=self.rows.block_rows,
                threads=self.threads,
            )

    def reduce(self, visit: Callable[[State, Block], SummableT], state: State) -> SummableT:
        return self.rows.reduce(visit, state)

    def scan(self, visit: Callable[[State, Block], Result], state: State) -> Iterator[Result]:
        return self.rows.scan(visit, state)

    def sample(self, n_rows: int, seed: int) -> Block:
        return self.rows.sample(n_rows, seed)

    def take(self, rows: Array) -> Block:
        return self.rows.take(rows)


def _as_numbers(raw: Array) -> Array:
    """Cells of a type that the CPU's kernels have."""
    return raw.astype(np.float32) if raw.dtype == np.float16 else raw


def is_on_device(data: Any) -> bool:
    """Whether these are cells on an NVIDIA GPU, of torch, CuPy, JAX, cuDF, Numba or another library."""
    return device_of(data) is not None or _is_cudf(data)


def _is_cudf(data: Any) -> bool:
    return type(data).__module__.partition(".")[0] == "cudf" and hasattr(data, "to_cupy")


def _opened_cells(data: Any) -> tuple[Device, DeviceArray]:
    """The cells as ours, and the card that they lie on."""
    data = data.to_cupy() if _is_cudf(data) else data
    device = open_device(device_of(data) or 0)
    return device, on_device(device, data)


def fetched(data: Any) -> Any:
    """Cells that lie on a GPU as an array in memory; anything else as it is."""
    if not is_on_device(data):
        return data
    try:
        return _as_numbers(_opened_cells(data)[1].fetch())
    except Unavailable as why:
        raise _elsewhere(why) from None


def _elsewhere(why: Unavailable) -> EngineError:
    return EngineError(
        "gpu-array", f"the cells lie on a GPU, and {why}", do="Give them as a NumPy array in memory"
    )


def placed(
    rows: Rows, device: str, *, cells: bool = False, gaps: bool = False, least: int = LEAST_ROWS
) -> Rows:
    """The rows on the device that was asked for; where that cannot be, as they are, and why is said. `cells` says that
    the method takes codes and missing cells there, `gaps` missing cells, `least` how many rows it takes for the way to
    pay."""
    if device == "cpu" or not isinstance(rows, (MemoryRows, StreamRows)) or rows.resident is not None:
        return rows
    try:
        if not cells and rows.codes is not None:
            raise Unavailable("categories are the CPU's with this method")
        if not (cells or gaps or rows.complete):
            raise Unavailable("missing values are the CPU's with this method")
        if rows.n_rows < least:
            raise Unavailable(f"a table of fewer than {least:,} rows gains nothing")
        if isinstance(rows, StreamRows) or not _has_room(open_device(), rows):
            return _flowing(rows)
        return _moved(rows)
    except Unavailable as why:
        if device == "cuda":
            warn("no-gpu", f"device='cuda' was asked for, and {why}: the CPU does it.", depth=4)
        return rows


def _moved(rows: MemoryRows, device: Device | None = None) -> GpuRows:
    if is_sparse(rows.raw) or is_sparse(rows.codes):
        raise Unavailable("sparse matrices are the CPU's")
    device = open_device() if device is None else device
    if not _has_room(device, rows):
        raise Unavailable(
            f"the table of {rows.raw.nbytes / 2**30:.1f} GiB does not fit into the memory free there"
        )
    raw = device.empty(rows.raw.shape, rows.raw.dtype).fill(rows.raw)
    return GpuRows(
        DeviceTable(device, raw),
        rows.encoding,
        host=rows.raw,
        weight=rows.weight,
        codes=rows.codes,
        complete=rows.complete,
        threads=rows.threads,
    )


def _has_room(device: Device, rows: MemoryRows) -> bool:
    size = rows.raw.nbytes + (0 if rows.codes is None else rows.codes.size)
    return size + SPARE_BYTES <= device.free_bytes()


def _flowing(rows: MemoryRows | StreamRows) -> FlowingRows:
    if is_sparse(rows.raw) or is_sparse(rows.codes):
        raise Unavailable("sparse matrices are the CPU's")
    return FlowingRows(rows, open_device())


def rows_on_device(
    data: Any,
    *,
    weight: Array | None,
    unit: float,
    scale: str | None,
    threads: int | None,
    gaps: bool = False,
) -> Rows:
    """Cells that lie on a GPU as rows, surveyed and conditioned there; in memory where that cannot be. `gaps` says that
    the method takes missing cells there."""
    try:
        device, cells = _opened_cells(data)
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
    if (gaps or facts.complete) and table.n_rows >= LEAST_ROWS:
        whole = facts.complete
        return GpuRows(table, encoding, host=host, weight=weight, complete=whole, threads=threads)
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

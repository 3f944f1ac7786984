"""Where passes over the rows run: what may be asked for, and rows put there; the GPU is imported when it is met."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.engines.stream import StreamRows
from ilk.errors import Option, UsageError, shown
from ilk.table.block import is_sparse

DEVICES = ("auto", "cpu", "cuda")
# Cells of a table in memory from which a device is faster than 16 cores of a CPU, copy counted in, as measured on an
# H200 (docs/gpu.md): of K-means; of Gaussian mixtures of many components (few never gain); of Student components, which
# the CPU has in NumPy, with time to compile.
AUTO_CELLS, AUTO_MIXTURE_CELLS, AUTO_STUDENT_CELLS = 1 << 26, 1 << 28, 1 << 21
AUTO_COMPONENTS, NEVER = 32, 1 << 62
LEAST_ROWS = 4096  # of a table that a GPU gains anything on


def mixture_pays_from(k: int) -> int:
    """Cells from which "auto" is a device for a Gaussian mixture of K components."""
    return AUTO_MIXTURE_CELLS if k >= AUTO_COMPONENTS else NEVER


def check_device(device: object) -> None:
    """A refusal of what is no device."""
    if device not in DEVICES:
        option = Option("device", shown(device))
        known = ", ".join(map(repr, DEVICES))
        raise UsageError("bad-device", f"{option}", do=f"Choose one of {known}", options=[option])


def may_be_on_device(data: Any) -> bool:
    """Whether to look closer: an array of another library, which may lie on a GPU."""
    marks = ("__cuda_array_interface__", "__dlpack_device__", "to_cupy")
    return not isinstance(data, np.ndarray) and any(hasattr(type(data), mark) for mark in marks)


def brought(data: Any, device: str) -> tuple[Any, str]:
    """Cells that lie on a GPU as an array in memory, to be worked on there unless another device was asked for."""
    if not may_be_on_device(data):
        return data, device
    from ilk.engines.gpu import fetched, is_on_device

    return (fetched(data), "cuda" if device == "auto" else device) if is_on_device(data) else (data, device)


def asked_rows(
    rows: Rows,
    device: str,
    *,
    cells: bool = False,
    gaps: bool = False,
    least: int = LEAST_ROWS,
    pays_from: int = AUTO_CELLS,
) -> Rows:
    """The rows where they were asked to be; "auto" is a device for tables of `pays_from` cells or more. `cells` says
    that the method takes codes and missing cells there, `gaps` missing cells, `least` how many rows it takes at all."""
    check_device(device)
    if device == "cpu" or not isinstance(rows, (MemoryRows, StreamRows)):
        return rows
    if is_sparse(rows.raw) or is_sparse(rows.codes):
        return rows
    size = rows.n_rows * (rows.n_columns + (0 if rows.codes is None else rows.codes.shape[1]))
    if device == "auto" and (size < pays_from or rows.n_rows < least):
        return rows
    from ilk.engines.gpu import placed

    return placed(rows, device, cells=cells, gaps=gaps, least=least)


def device_of(rows: Rows) -> str | None:
    """The name of the GPU that the rows lie on, None where they do not."""
    return getattr(rows, "device_name", None)

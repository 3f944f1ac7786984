"""Memory on a device that one shape of model keeps between passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilk.kernels.gpu.launch import Array, Device, DeviceArray


class Workspace:
    """Arrays by name, used again as long as their size is the same."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._memory: dict[str, DeviceArray] = {}
        self._given: dict[str, Array] = {}

    def memory(self, name: str, shape: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        """An array of this name, made anew when another size is wanted."""
        wanted = (shape,) if isinstance(shape, int) else shape
        held = self._memory.get(name)
        if held is None or held.shape != wanted:
            self._memory.pop(name, None)
            held = self._memory[name] = self.device.empty(wanted, dtype)
        return held

    def given(self, name: str, values: Array) -> DeviceArray:
        """Host values on the device, in memory that is used again. Those that are there already are not copied: a copy
        would wait for all those of the parts of a larger table (`flow.py`)."""
        values, before = np.ascontiguousarray(values), self._given.get(name)
        there = self.memory(name, values.shape, values.dtype)
        if before is not None and before.dtype == values.dtype and np.array_equal(before, values):
            return there
        self._given[name] = values.copy()
        return there.fill(values)

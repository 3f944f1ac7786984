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

    def memory(self, name: str, shape: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        """An array of this name, made anew when another size is wanted."""
        wanted = (shape,) if isinstance(shape, int) else shape
        held = self._memory.get(name)
        if held is None or held.shape != wanted:
            self._memory.pop(name, None)
            held = self._memory[name] = self.device.empty(wanted, dtype)
        return held

    def given(self, name: str, values: Array) -> DeviceArray:
        """Host values on the device, in memory that is used again."""
        values = np.ascontiguousarray(values)
        return self.memory(name, values.shape, values.dtype).fill(values)

"""Arrays that lie in pieces and are sliced like one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ilk.table.block import Array


class PiecedArray(ABC):
    """An array in pieces that begin at `first_rows`, the last of which is the number of rows; `like` is any of them.

    A slice that lies in one piece is a view of it.
    """

    def __init__(self, first_rows: Array, like: Array) -> None:
        self._first_rows = first_rows
        self.shape: tuple[int, ...] = (int(first_rows[-1]), *like.shape[1:])
        self.dtype: np.dtype[Any] = like.dtype

    @abstractmethod
    def piece(self, number: int) -> Array: ...

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: Any) -> Array:
        if isinstance(which, tuple):
            return np.asarray(self[which[0]][:, which[1]])
        if isinstance(which, slice):
            first, last, _ = which.indices(len(self))
            return self._run(first, last)
        rows = np.asarray(which)
        made = np.empty((len(rows), *self.shape[1:]), self.dtype)
        holder = np.searchsorted(self._first_rows, rows, "right") - 1
        for number in np.unique(holder):
            mine = holder == number
            made[mine] = self.piece(int(number))[rows[mine] - self._first_rows[number]]
        return made

    def _run(self, first: int, last: int) -> Array:
        bounds = self._first_rows
        begin = int(np.searchsorted(bounds, first, "right")) - 1
        end = int(np.searchsorted(bounds, last, "left"))
        parts = [
            self.piece(number)[max(first - bounds[number], 0) : last - bounds[number]]
            for number in range(begin, end)
            if bounds[number] < bounds[number + 1]
        ]
        if not parts:
            return np.empty((0, *self.shape[1:]), self.dtype)
        return np.asarray(parts[0]) if len(parts) == 1 else np.concatenate(parts)

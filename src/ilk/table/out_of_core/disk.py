"""Arrays on disk: rows written once, read again in runs or one by one.

The files have no name, so that they are gone with the process, however that ends; reading goes through buffers of its
own, not through mapped memory, so that what is not in use takes no room.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any, Protocol

import numpy as np

from ilk.errors import ResourceError
from ilk.table.block import Array
from ilk.table.scratch import room


class Sliceable(Protocol):
    """An array that need not be in memory: slices and chosen rows of it are."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, which: Any) -> Array: ...


def free_bytes() -> int:
    """Room in the folder for temporary files (the environment variable TMPDIR names it)."""
    return shutil.disk_usage(tempfile.gettempdir()).free


def machine_bytes() -> int:
    """Memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _bytes_of(rows: Array) -> memoryview:
    return rows.data.cast("B") if rows.size else memoryview(b"")


class DiskArray:
    """An array whose rows are in a file: it is sliced like one in memory, and every slice is a copy of its own.

    >>> kept = DiskArray(3, 2, np.float64)
    >>> kept.write(0, np.arange(6.0).reshape(3, 2))
    >>> kept[1:][0].tolist(), kept[np.array([2, 0]), 1].tolist(), kept.shape
    ([2.0, 3.0], [5.0, 1.0], (3, 2))
    """

    def __init__(self, n_rows: int, n_columns: int | None, dtype: Any) -> None:
        with room():
            self._file = tempfile.TemporaryFile(prefix="ilk-", buffering=0)  # noqa: SIM115
        self._columns = () if n_columns is None else (n_columns,)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._row_bytes = self.dtype.itemsize * (1 if n_columns is None else n_columns)
        self._n_rows = n_rows

    @property
    def shape(self) -> tuple[int, ...]:
        return (self._n_rows, *self._columns)

    def __len__(self) -> int:
        return self._n_rows

    def write(self, first_row: int, rows: Array) -> None:
        """Write rows from this place on; threads may write to different places."""
        data = _bytes_of(np.ascontiguousarray(rows, dtype=self.dtype))
        place, written = first_row * self._row_bytes, 0
        with room():
            while written < len(data):
                written += os.pwrite(self._file.fileno(), data[written:], place + written)

    def leave_cache(self) -> None:
        """What was written goes to the disk, and the next read comes from there, where the system lets us ask."""
        if hasattr(os, "posix_fadvise"):
            os.fsync(self._file.fileno())
            os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def __getitem__(self, which: Any) -> Array:
        if isinstance(which, tuple):
            return np.asarray(self[which[0]][:, which[1]])
        if isinstance(which, slice):
            first, last, _ = which.indices(self._n_rows)
            made = np.empty((max(last - first, 0), *self._columns), self.dtype)
            self._read(_bytes_of(made), first)
            return made
        rows = np.asarray(which)
        made = np.empty((len(rows), *self._columns), self.dtype)
        view, size = _bytes_of(made), self._row_bytes
        for place, row in enumerate(rows.tolist() if made.size else ()):
            self._read(view[place * size : (place + 1) * size], row)
        return made

    def _read(self, into: memoryview, row: int) -> None:
        done, first = 0, row * self._row_bytes
        while done < len(into):
            got = os.preadv(self._file.fileno(), [into[done:]], first + done)
            if not got:
                raise ResourceError("disk-read", "a temporary file is shorter than it was written")
            done += got

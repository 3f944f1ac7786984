"""A limit of address space (`ulimit -v`): libraries are told before they are imported, too little is refused."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

from ilk.errors import ResourceError
from ilk.threads import address_space

NEEDED = 750_000_000  # to import everything and fit a small table on one thread; measured by tests/torture/memory.py
NEARLY = 0.85  # of a limit: the call that failed asked for the rest
FRUGAL = {  # each thread takes its share, and the allocator of Arrow would map 1 GiB ahead
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
ARENAS = -8  # M_ARENA_MAX of glibc: each thread would map an arena of its own


def check() -> None:
    """Refuse a limit that is too low, where libraries crash; below one, they are told to take little."""
    found = address_space()
    if found is None:
        return
    for name, value in FRUGAL.items():
        os.environ.setdefault(name, value)
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(ARENAS, 1)
    if found < NEEDED:
        raise ResourceError(
            "out-of-memory",
            f"the limit of memory is {found / 1e6:.0f} MB and {NEEDED / 1e6:.0f} MB are needed",
            do="Raise it: ulimit -v",
        )


def spent() -> bool:
    """Whether the process has come near its limit, so that an error of any kind may be for want of memory."""
    found = address_space()
    if found is None:
        return False
    with contextlib.suppress(OSError, ValueError), open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmPeak")) * 1024
        return peak > NEARLY * found
    return False

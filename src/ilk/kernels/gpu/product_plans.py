"""How the kernels of products are cut: lanes of a row, types of codes, slots of the sums; pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ilk.kernels.gpu.plans import SHARED_LIMIT, Build, numbers
from ilk.kernels.pairs import Array

SUM_BYTES = 200 * 1024  # of shared memory, for the copies of the sums that the warps of a block have
STATIC_BYTES = 4096  # of shared memory, for the counts of its warps
SUM_WARPS = (16, 12, 8)
CHUNK_BYTES = 1 << 27  # of memberships at a time
MOST_PARTS = 16  # components of a lane: 512 in all
CODE_TYPES = (("u8", 0xFF), ("u16", 0xFFFF), ("u32", 0xFFFFFFFF))
NUMPY = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32}
FILES = ("common.cuh", "numbers.cuh", "product.cu")


@dataclass(frozen=True)
class ProductPlan:
    """Sizes for a table of `columns` numbers and categories of so many levels each, and K components."""

    columns: int
    levels: tuple[int, ...]
    k: int
    dtype: str
    factor: bool = False
    room: int = SHARED_LIMIT  # of a block, in shared memory
    counts: bool = False  # some numbers are

    @property
    def fits(self) -> bool:
        return self.parts <= MOST_PARTS

    @cached_property
    def lanes(self) -> int:
        """That share a row: the power of two from K on, at most a warp.

        >>> [ProductPlan(0, (3,), k, "float64").lanes for k in (1, 3, 16, 40)]
        [1, 4, 16, 32]
        """
        return min(32, 1 << (self.k - 1).bit_length())

    @property
    def parts(self) -> int:
        """Components of a lane."""
        return -(-self.k // self.lanes)

    @property
    def pitch(self) -> int:
        """Components in memory."""
        return self.lanes * self.parts

    @cached_property
    def code(self) -> str:
        """The type of a code; its highest value says that there is none."""
        most = max(self.levels, default=0)
        return next(name for name, none in CODE_TYPES if most <= none)

    @property
    def code_type(self) -> Any:
        return NUMPY[self.code]

    @cached_property
    def start(self) -> Array:
        """Where the levels of each column begin."""
        return np.concatenate([[0], np.cumsum(self.levels)]).astype(np.int64)

    @property
    def slots(self) -> int:
        """Levels, and three sums of each number."""
        return int(self.start[-1]) + 3 * self.columns

    @property
    def chunk(self) -> int:
        """Rows whose memberships are in memory at a time."""
        return max(4096, CHUNK_BYTES // (8 * self.pitch))

    @property
    def macros(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "D": self.columns,
            "COUNTS": int(self.counts),
            "COLS": len(self.levels),
            "LEVELS": int(self.start[-1]),
            "K": self.k,
        }
        made |= {"LANES": self.lanes, "PARTS": self.parts, "CODE": self.code}
        return made | numbers(self.dtype, self.factor)

    def build(self, name: str) -> Build:
        """`pack_codes` or `product_memberships`."""
        return Build(name, FILES, self.macros)

    @property
    def sum_bytes(self) -> int:
        """Of shared memory, for the copies of the sums."""
        return min(SUM_BYTES, self.room - STATIC_BYTES)

    @cached_property
    def warps(self) -> int:
        """Of a block of the sums: as many as have room for a copy of all, else the fewest."""
        room = (warps for warps in SUM_WARPS if self.slots * self.lanes * 8 * warps <= self.sum_bytes)
        return next(room, SUM_WARPS[-1])

    @cached_property
    def cuts(self) -> Array:
        """Slots that a block takes, and the columns these are of: (slices, 6) begin, end, categories from and to,
        numbers from and to."""
        levels, room = int(self.start[-1]), self.sum_bytes // (self.warps * self.lanes * 8) // 3 * 3
        if self.slots <= room:
            pairs = [(0, self.slots)]
        else:  # the three slots of a number stay together
            pairs = [(at, min(at + room, levels)) for at in range(0, levels, room)]
            pairs += [(at, min(at + room, self.slots)) for at in range(levels, self.slots, room)]
        found = []
        for begin, end in pairs:
            first, last = np.searchsorted(self.start, [begin, min(end, levels) - 1], "right") - 1
            of_levels = (int(first), int(last) + 1) if begin < levels else (0, 0)
            numbers_from, numbers_to = (max(at - levels, 0) // 3 for at in (begin, end))
            found.append((begin, end, *of_levels, numbers_from, numbers_to))
        return np.array(found, dtype=np.int64)

    def sums(self) -> Build:
        """The sums under memberships."""
        most = max(int(cut[1] - cut[0]) for cut in self.cuts)
        shared = most * self.lanes * 8 * self.warps
        return Build("product_sums", FILES, self.macros | {"WARPS": self.warps}, shared, 32 * self.warps)

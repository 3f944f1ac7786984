"""Latent classes on int8 tensor cores: columns dealt to lanes, log-probabilities cut into bytes; pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np

from ilk.kernels.gpu.plans import SHARED_LIMIT, Build, up
from ilk.kernels.pairs import Array

COMPONENTS = 16
PLACES = 32  # of a lane; four lanes share a row
MOST_TILES = 16  # of 8 thresholds: sums in the registers of a thread
MOST_COLUMNS = 31
WARPS, CHUNK, TALL, STAGES = 12, 16384, 128, 2
UNIT = 2**20 / log(2)  # of log-probabilities, in bits
SHARE = 2.0**22  # units in a membership of 1
MOST_BITS = 2000  # of a score, in 32 bits of units of 2^-20
FILES = ("common.cuh", "latent_classes.cu")


@dataclass(frozen=True)
class ClassPlan:
    """Sizes for categories of so many levels each and up to 16 components."""

    levels: tuple[int, ...]
    k: int
    gaps: bool = True  # whether cells are missing

    @cached_property
    def dealt(self) -> tuple[tuple[int, ...], ...] | None:
        """The columns of each of the four lanes, the widest first to the fullest that has room; None without room."""
        room, bins = [PLACES] * 4, [list[int]() for _ in range(4)]
        for column in sorted(range(len(self.levels)), key=lambda c: -self.levels[c]):
            fitting = [lane for lane in range(4) if room[lane] >= self.levels[column]]
            if not fitting:
                return None
            lane = min(fitting, key=lambda lane: (len(bins[lane]) >= 3, room[lane]))
            room[lane] -= self.levels[column]
            bins[lane].append(column)
        return tuple(map(tuple, bins))

    @property
    def fits(self) -> bool:
        few = 0 < len(self.levels) <= MOST_COLUMNS and self.k <= COMPONENTS and min(self.levels) > 0
        return few and self.dealt is not None and self.tiles <= MOST_TILES and self.shared <= SHARED_LIMIT

    @cached_property
    def base(self) -> Array:
        """The first place of each column among those of its lane."""
        found = np.zeros(len(self.levels), dtype=np.int32)
        for columns in self.dealt or ():
            at = 0
            for column in columns:
                found[column] = at
                at += self.levels[column]
        return found

    @cached_property
    def thresholds(self) -> Array:
        """(column, level) of each sum of the rows whose code is above the level; the last one counts all rows."""
        pairs = [(c, level) for c, n in enumerate(self.told) for level in range(n)]
        return np.array([*pairs, (0, -1 - int(self.base[0]))])

    @property
    def told(self) -> tuple[int, ...]:
        """Thresholds of each column: none is above its last level unless a cell is missing."""
        return self.levels if self.gaps else tuple(n - 1 for n in self.levels)

    @property
    def tiles(self) -> int:
        return -(-(sum(self.told) + 1) // 8)

    @property
    def bin(self) -> int:
        """Columns of a lane at most."""
        return max(map(len, self.dealt or ((),)))

    @property
    def shared(self) -> int:
        bars = 16 * 32 * 16 + self.tiles * 64
        return up(bars + WARPS * STAGES * 8, 128) + WARPS * STAGES * (len(self.levels) + 1) * TALL

    def build(self, name: str) -> Build:
        """`latent_classes` or `class_codes`."""
        macros = {"COLS": len(self.levels), "BIN": self.bin, "NT": self.tiles, "WARPS": WARPS}
        macros |= {"CHUNK": CHUNK, "SMEM": self.shared}
        whole = name == "latent_classes"
        return Build(name, FILES, macros, self.shared if whole else 0, WARPS * 32 if whole else 256)

    # --- what the kernel reads

    @cached_property
    def bins(self) -> Array:
        """The columns of the lanes, filled up with one that says nothing."""
        rows = [[*columns, *[len(self.levels)] * (self.bin - len(columns))] for columns in self.dealt or ()]
        return np.array(rows, dtype=np.int32)

    @cached_property
    def limits(self) -> Array:
        """Of each threshold: what is added to four codes at once, so that top bits tell, and where its column is."""
        found = np.zeros((self.tiles * 8, 2), dtype=np.int64)
        for number, (column, level) in enumerate(self.thresholds):
            found[number] = (127 - int(self.base[column]) - int(level)) * 0x01010101, column * TALL
        return found.astype(np.uint32)

    @cached_property
    def slots(self) -> Array:
        """The place of each level (levels,) along the 128 of the products."""
        found = []
        for lane, columns in enumerate(self.dealt or ()):
            for column in columns:
                place = self.base[column] + np.arange(self.levels[column])
                at = 32 * ((place & 7) >> 1) + 16 * (place & 1) + 4 * lane + (place >> 3)
                found.append((column, at))
        return np.concatenate([at for _, at in sorted(found, key=lambda pair: pair[0])])

    def digits(self, table: Array) -> Array:
        """Whole log-probabilities (16, levels) as signed bytes of base 256, in the order of the products."""
        rest = np.zeros((COMPONENTS, 128), dtype=np.int64)
        rest[:, self.slots] = table
        parts = np.empty((4, COMPONENTS, 128), dtype=np.int64)
        for digit in range(4):
            parts[digit] = (rest + 128) % 256 - 128
            rest = (rest - parts[digit]) // 256
        lane = np.arange(32)
        g, q = lane // 4, lane % 4
        words = np.empty((4, 4, 32, 4, 4), dtype=np.int8)
        for register, (row, along) in enumerate(((0, 0), (8, 0), (0, 16), (8, 16))):
            for step in range(4):
                for byte in range(4):
                    words[:, step, :, register, byte] = parts[:, g + row, 32 * step + along + 4 * q + byte]
        return words.reshape(-1)

    def counts(self, above: Array) -> tuple[Array, Array]:
        """Weights (K,) and counts of levels (K, levels) from the sums (thresholds, 16)."""
        shares = above[: len(self.thresholds), : self.k] / SHARE
        weight, found, at = shares[-1], [], 0
        for n, told in zip(self.levels, self.told, strict=True):
            beyond = np.zeros((n, self.k))
            beyond[:told] = shares[at : at + told]  # missing cells are above all levels
            found.append(np.concatenate([weight[None], beyond[:-1]]) - beyond)
            at += told
        return weight, np.concatenate(found).T

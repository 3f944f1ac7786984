"""How the kernels of mixtures of many columns are cut: rows in shared memory, tiles of 64 x 64 sums; pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ilk.kernels.gpu.mixture_plans import MOST_BLOCKS, MixtureLaunch
from ilk.kernels.gpu.plans import SHARED_LIMIT, Build
from ilk.kernels.pairs import Array

SLAB = 64  # columns of a tile of sums
ROWS = (64, 32, 16)  # that a block may have in shared memory
WARPS = 8
SUM_ROWS = 16
MOST_SUMS = 1 << 27  # numbers of all components: 1 GB


@dataclass(frozen=True)
class WideMixtureLaunch(MixtureLaunch):
    """The same as `MixtureLaunch`, beyond the columns that registers hold."""

    sum_blocks = 3

    @property
    def pitch(self) -> int:
        return self.k

    @property
    def score_group(self) -> int:
        return self.k

    @property
    def fused(self) -> bool:
        return False

    @property
    def at_once(self) -> bool:
        return False

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Slabs of columns whose sums are a tile, in the order of the tiles.

        >>> WideMixtureLaunch(130, 2, False, "float64").pairs
        ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2))
        """
        slabs = -(-self.wide // SLAB)
        return tuple((i, j) for i in range(slabs) for j in range(i + 1) if i == j or not self.diagonal)

    @property
    def sum_tasks(self) -> int:
        return self.k * len(self.pairs)

    @property
    def width(self) -> int:
        return len(self.pairs) * SLAB**2 + self.wide + 1

    @cached_property
    def rows(self) -> int:
        """In shared memory at a time; 0 where not even the fewest fit."""
        return next((rows for rows in ROWS if self._bytes_of(rows) <= self.room), 0)

    def _bytes_of(self, rows: int) -> int:
        return rows * ((self.wide + 4) * self.size + 2 * WARPS * 8)

    def scores(self, *, fused: bool) -> Build:
        shared = self._bytes_of(self.rows)
        macros = {"ROWS": self.rows, "SMEM": shared} | self._macros
        return Build("gmm_scores", ("common.cuh", "gmm_wide.cu"), macros, shared, WARPS * 32)

    def sums(self) -> Build:
        shared = 2 * SUM_ROWS * (2 * (SLAB + 4) * self.size + 8)
        macros = {"M_ROWS": SUM_ROWS, "PAIRS": len(self.pairs), "SMEM": shared} | self._macros
        return Build("gmm_sums", ("common.cuh", "gmm_wide.cu"), macros, shared, 128)

    def matrices(self, sums: Array) -> Array:
        tiled = sums.reshape(len(sums), -1, SLAB, SLAB)
        size = SLAB * (self.pairs[-1][0] + 1)
        found = np.zeros((len(sums), size, size))
        for number, (i, j) in enumerate(self.pairs):
            down, right = slice(i * SLAB, (i + 1) * SLAB), slice(j * SLAB, (j + 1) * SLAB)
            found[:, down, right] = tiled[:, number]
            found[:, right, down] = tiled[:, number].transpose(0, 2, 1)
        return found[:, : self.wide, : self.wide]

    @property
    def _macros(self) -> dict[str, object]:
        return super()._macros | {"COMPS": self.k}

    @property
    def fits(self) -> bool:
        return self.rows > 0 and self.k * self.width <= MOST_SUMS


def mixture_launch(
    columns: int, k: int, diagonal: bool, dtype: str, room: int = SHARED_LIMIT
) -> MixtureLaunch:
    """The plan for a table of so many columns."""
    kind = MixtureLaunch if columns <= 8 * MOST_BLOCKS else WideMixtureLaunch
    return kind(columns, k, diagonal, dtype, room)

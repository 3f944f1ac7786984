"""How the kernels of mixtures are cut: blocks of columns, groups of components, tiles of sums; pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import ClassVar

import numpy as np

from ilk.kernels.gpu.plans import SHARED_LIMIT, Build, numbers, up
from ilk.kernels.pairs import Array

MOST_BLOCKS = 16  # of 8 columns: tables of up to 128; beyond, `wide_mixture_plans.py`
MOST_TILES = 18  # of 16 x 8 sums in the registers of a thread: 144 of 255
TILE_REGISTERS = 160  # for the tiles of all components of a warp
FUSED_COMPONENTS = {
    1: 128,
    2: 64,
    3: 32,
    4: 32,
}  # by blocks of columns: scores that fit beside a row in registers
DIAGONAL_TILES = 16  # blocks of columns times tiles of components, up to which one kernel does it all
CHUNK_BYTES = 1 << 29  # of memberships at a time
SUM_WARPS = 8
ROWS_AT_ONCE = {
    2: (128, 64, 32, 16)
}  # in shared memory, by blocks of columns, where more than 64 were faster
MOST_STUDENTS = 96  # Student components: three of a lane, with nine sums each

Tile = tuple[int, int, int]


@cache
def tiles(blocks: int, diagonal: bool) -> tuple[Tile, ...]:
    """(a, b, c): a tile adds blocks (a, c) and (b, c) of a symmetric matrix of blocks; b is -1 where it adds one only.

    Every pair of blocks is given to one of its two columns, so that each column but one has an even number.

    >>> len(tiles(4, False)), len(tiles(3, False)), tiles(2, True)
    (5, 3, ((0, -1, 0), (1, -1, 1)))
    """
    if diagonal:
        return tuple((b, -1, b) for b in range(blocks))
    partners: dict[int, list[int]] = {c: [] for c in range(blocks)}
    for c in range(blocks):
        for a in range(c, blocks):
            partners[c].append(a)
    odd = [c for c in partners if len(partners[c]) % 2]
    for c, other in zip(odd[::2], odd[1::2], strict=False):  # the pair they share goes over: both become even
        partners[c].remove(other)
        partners[other].append(c)
    found = []
    for c, theirs in partners.items():
        found += [(a, b, c) for a, b in zip(theirs[::2], theirs[1::2], strict=False)]
        if len(theirs) % 2:
            found.append((theirs[-1], -1, c))
    return tuple(found)


def _product(number: int, a: int, b: int, c: int) -> str:
    """Text of the product of one tile."""
    acc = ", ".join(f"acc[{number}][{e}]" for e in range(4))
    return f"dmma_16x4({acc}, z[{a}], {'0.0' if b < 0 else f'z[{b}]'}, y[{c}]);"


@dataclass(frozen=True)
class MixtureLaunch:
    """Sizes for `columns` and `k` components of full or `diagonal` covariances, of float32 or float64 numbers."""

    sum_blocks: ClassVar[int] = 1  # that gather sums on a multiprocessor

    columns: int
    k: int
    diagonal: bool
    dtype: str
    room: int = SHARED_LIMIT  # of a block, in shared memory

    @cached_property
    def blocks(self) -> int:
        return -(-self.columns // 8)

    @property
    def wide(self) -> int:
        return 8 * self.blocks

    @property
    def real(self) -> str:
        return str(numbers(self.dtype, False)["REAL"])

    @property
    def size(self) -> int:
        """Bytes of a number."""
        return 8 if self.real == "double" else 4

    # --- sums

    @cached_property
    def tiles(self) -> tuple[Tile, ...]:
        return tiles(self.blocks, self.diagonal)

    @cached_property
    def sets(self) -> int:
        """Warps that share the tiles of a component."""
        return next(sets for sets in (1, 2, 4) if sets * MOST_TILES >= len(self.tiles))

    @cached_property
    def tiles_of_set(self) -> int:
        return -(-len(self.tiles) // self.sets)

    @cached_property
    def per_warp(self) -> int:
        """Components of a warp: as many as registers hold, no more than are needed for groups of even size."""
        most = max(1, TILE_REGISTERS // (self.tiles_of_set * 8)) if self.sets == 1 else 1
        most = min(most, 16)
        groups = -(-self.k // (SUM_WARPS * most // self.sets))
        return min(most, -(-self.k * self.sets // (groups * SUM_WARPS)))

    @property
    def group(self) -> int:
        """Components whose sums one block gathers."""
        return SUM_WARPS * self.per_warp // self.sets

    @cached_property
    def pitch(self) -> int:
        """Components in memory."""
        return up(up(self.k, self.group), 4) if self.group % 4 else up(self.k, self.group)

    @property
    def sum_tasks(self) -> int:
        """Blocks that gather the sums of the same rows."""
        return self.pitch // self.group

    @property
    def width(self) -> int:
        """Numbers that are gathered for a component."""
        return self.sets * self.tiles_of_set * 128 + self.wide + 1

    def sums(self) -> Build:
        wide_group, shared, rows = up(self.group, 16), 0, 16
        for rows in ROWS_AT_ONCE.get(self.blocks, (64, 32, 16)) if self.blocks <= 8 else (32, 16):
            row_bytes = (self.wide + 4) * self.size + (wide_group + 4) * 8
            shared = 2 * rows * row_bytes + self.group * self.wide * 8
            if shared <= self.room:
                break
        macros = {
            "PER": self.per_warp,
            "SETS": self.sets,
            "TILES": self.tiles_of_set,
            "M_ROWS": rows,
            "SMEM": shared,
        }
        return Build(
            "gmm_sums", ("common.cuh", "gmm.cu"), macros | self._macros, shared, 256, text=self._add_tiles()
        )

    def _add_tiles(self) -> str:
        """Text of `add_tiles`: the products of each set."""
        text = []
        for number in range(self.sets):
            mine = self.tiles[number * self.tiles_of_set : (number + 1) * self.tiles_of_set]
            lines = [_product(i, *tile) for i, tile in enumerate(mine)]
            text.append(f"if (set == {number}) {{\n" + "\n".join(lines) + "\n}")
        vector = f"[{self.blocks}]"
        head = f"double (&acc)[{self.tiles_of_set}][4], const double (&z){vector}, const double (&y){vector}, int set"
        return f"\nDEVICE void add_tiles({head}) {{\n" + "\nelse ".join(text) + "\n}\n"

    def matrices(self, sums: Array) -> Array:
        """Symmetric matrices (K, columns, columns), padded, from the sums of components."""
        tiled = sums.reshape(len(sums), self.sets * self.tiles_of_set, 2, 8, 8)
        matrix = np.zeros((len(sums), self.blocks, 8, self.blocks, 8))
        for number, (a, b, c) in enumerate(self.tiles):
            for half, row in enumerate((a, b)):
                if row >= 0:
                    matrix[:, row, :, c, :] = tiled[:, number, half]
                    matrix[:, c, :, row, :] = tiled[:, number, half].transpose(0, 2, 1)
        return matrix.reshape(len(sums), self.wide, self.wide)

    # --- scores

    @property
    def fragments(self) -> int:
        """Blocks of a whitening matrix."""
        return self.blocks if self.diagonal else self.blocks * (self.blocks + 1) // 2

    def _scores_bytes(self, group: int, held: bool) -> int:
        return group * (held * self.fragments * 512 + self.wide * 8 + 8)

    @cached_property
    def held(self) -> bool:
        """Whether whitening matrices fit into shared memory, four at a time."""
        return self._scores_bytes(4, True) <= self.room

    @cached_property
    def score_group(self) -> int:
        """Components whose scores one launch makes: a multiple of 4 that divides the pitch."""
        sizes = [group for group in range(4, self.pitch + 1, 4) if self.pitch % group == 0]
        return max(group for group in sizes if self._scores_bytes(group, self.held) <= self.room)

    @property
    def fused(self) -> bool:
        """Whether memberships come from one launch."""
        return self.score_group == self.pitch <= FUSED_COMPONENTS.get(self.blocks, 0)

    def scores(self, *, fused: bool) -> Build:
        warps = 16 if self.blocks <= 4 and not (fused and self.pitch > 64) else 8
        shared = self._scores_bytes(self.score_group, self.held)
        macros = {
            "GROUP": self.score_group,
            "HELD": int(self.held),
            "FUSED": int(fused),
            "E_WARPS": warps,
            "SMEM": shared,
        }
        return Build("gmm_scores", ("common.cuh", "gmm.cu"), macros | self._macros, shared, warps * 32)

    def memberships(self, name: str = "gmm_memberships") -> Build:
        lanes = next((n for n in (4, 8, 16) if n >= self.k), 32)
        macros = {"LANES": lanes, "COMPS": self.k}
        return Build(name, ("common.cuh", "gmm.cu"), macros | self._macros, 0, 256)

    def student(self, nodes: int) -> Build:
        """Memberships of Student components; tails are summed at so many degrees of freedom, or rows pull."""
        lanes = next((n for n in (4, 8, 16) if n >= self.k), 32)
        macros = {"LANES": lanes, "PARTS": -(-self.k // lanes), "COMPS": self.k, "PITCH": self.pitch}
        macros |= {"D": self.columns, "NODES": nodes}
        return Build("student_memberships", ("common.cuh", "student.cu"), macros, 0, 256)

    @property
    def _macros(self) -> dict[str, object]:
        return {"NB": self.blocks, "REAL": self.real, "DIAGONAL": int(self.diagonal), "PITCH": self.pitch}

    @property
    def fits(self) -> bool:
        return self.blocks <= MOST_BLOCKS and self.sums().fits_in(self.room)

    # --- diagonal covariances, all at once

    @property
    def component_tiles(self) -> int:
        return -(-self.k // 8)

    @property
    def at_once(self) -> bool:
        """Whether one kernel holds all sums of a diagonal mixture."""
        few = self.diagonal and self.blocks * self.component_tiles <= DIAGONAL_TILES
        return few and self.whole().fits_in(self.room)

    def whole(self) -> Build:
        """`gmm_diag.cu`."""
        nb, kt = self.blocks, self.component_tiles
        shared = (
            2 * nb * kt * 512
            + 8 * kt * 8
            + 8 * 2 * 16 * (self.wide + 4) * self.size
            + 8 * 16 * (8 * kt + 4) * 8
        )
        macros = {"NB": nb, "KT": kt, "REAL": self.real, "SMEM": shared}
        return Build("gmm_diag", ("common.cuh", "gmm_diag.cu"), macros, shared, 256)

    def chunk(self, n_rows: int) -> int:
        """Rows whose memberships are in memory at a time."""
        return min(n_rows, max(1 << 16, min(1 << 20, CHUNK_BYTES // (8 * self.pitch))))

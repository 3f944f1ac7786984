"""Mixtures of few columns and many components: scores and sums as products with the moments of a row, pure functions.

log density of component k = constant_k + sum over moments f of coefficient_fk * moment_f(x), the moments being x_i x_j
for i <= j, x_i and 1; the sums of memberships times moments are all that an update needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ilk.kernels.gpu.plans import SHARED_LIMIT, Build, numbers, up
from ilk.kernels.pairs import Array

MOST_COLUMNS = 8
LEAST_COMPONENTS, MOST_COMPONENTS = 17, 128
TALL = 64  # rows of a block at a time
MOST_TERMS = 1e6  # that a score may be the difference of: it then has ten digits behind the point


@dataclass(frozen=True)
class MomentPlan:
    """Sizes for so many columns and components of full covariances, of float32 or float64 numbers."""

    columns: int
    k: int
    dtype: str
    room: int = SHARED_LIMIT

    @property
    def fits(self) -> bool:
        few = self.columns <= MOST_COLUMNS and LEAST_COMPONENTS <= self.k <= MOST_COMPONENTS
        return few and self.build().fits_in(self.room)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The columns that a moment multiplies; `columns` stands for 1.

        >>> MomentPlan(2, 20, "float64").pairs
        ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
        """
        d = self.columns
        return tuple((i, j) for i in range(d + 1) for j in range(i, d + 1))

    @property
    def moments(self) -> int:
        return up(len(self.pairs), 16)

    @property
    def pitch(self) -> int:
        """Components in memory."""
        return up(self.k, 16)

    @property
    def width(self) -> int:
        """Numbers of a block's partial: sums, and the costs of four groups of rows."""
        return self.moments * self.pitch + 4

    def build(self) -> Build:
        shared = (self.moments * self.pitch + self.pitch) * 8
        shared += 2 * TALL * (self.moments + 4) * 8 + TALL * (self.pitch + 4) * 8 + 2 * TALL * 16
        real = numbers(self.dtype, False)["REAL"]
        macros = {"D": self.columns, "MOMENTS": self.moments, "KP": self.pitch, "REAL": real, "SMEM": shared}
        return Build(
            "gmm_moments", ("common.cuh", "gmm_moments.cu"), macros, shared, 256, text=self._moments_text()
        )

    def _moments_text(self) -> str:
        """Text of `moments`: the quarter `part` of the moments of a row."""
        quarter = self.moments // 4
        lines = []
        for part in range(4):
            cells = [self._moment(f) for f in range(part * quarter, (part + 1) * quarter)]
            stores = [
                f"to[{(part * quarter + at) // 2}] = make_double2({cells[at]}, {cells[at + 1]});"
                for at in range(0, quarter, 2)
            ]
            lines.append(f"if (part == {part}) {{ " + " ".join(stores) + " }")
        head = f"double2* to, const double (&v)[{self.columns}], int part"
        return f"\nDEVICE void moments({head}) {{\n" + "\nelse ".join(lines) + "\n}\n"

    def _moment(self, number: int) -> str:
        if number >= len(self.pairs):
            return "0.0"
        i, j = self.pairs[number]
        if i == self.columns:
            return "1.0"
        return f"v[{i}]" if j == self.columns else f"v[{i}] * v[{j}]"

    # --- what the kernel reads and tells

    def coefficients(self, mean: Array, whiten: Array, log_weight: Array) -> tuple[Array, Array]:
        """(moments, pitch) and constants (pitch,), those beyond K impossible."""
        precision = np.swapaxes(whiten, 1, 2) @ whiten
        pull = np.einsum("kij,kj->ki", precision, mean)
        table = np.zeros((self.moments, self.pitch))
        for number, (i, j) in enumerate(self.pairs):
            if j < self.columns:
                table[number, : self.k] = -precision[:, i, j] * (0.5 if i == j else 1.0)
            elif i < self.columns:
                table[number, : self.k] = pull[:, i]
        constant = np.full(self.pitch, -np.inf)
        constant[: self.k] = log_weight - np.einsum("ki,ki->k", pull, mean) / 2
        return table, constant

    def terms(self, table: Array, constant: Array, largest: float) -> float:
        """The size of what a score is the sum of, where no number is larger than `largest`."""
        powers = [(i < self.columns) + (j < self.columns) for i, j in self.pairs]
        sizes = np.zeros(self.moments)
        sizes[: len(powers)] = np.power(largest, powers)
        found = sizes @ np.abs(table[:, : self.k]) + np.abs(constant[: self.k])
        return float(found[np.isfinite(found)].max(initial=0.0))

    def fragments(self, table: Array) -> Array:
        """The coefficients as products read them: [step of 8 moments][tile of 8 components][lane][2]."""
        cut = table.reshape(self.moments // 8, 2, 4, self.pitch // 8, 8)
        return np.ascontiguousarray(cut.transpose(0, 3, 4, 2, 1))

    def sums(self, found: Array, mean: Array) -> tuple[Array, Array, Array]:
        """Count (K,), shift (K, d) and scatter (K, d, d) about `mean` from the sums (moments, pitch)."""
        d, k = self.columns, self.k
        whole = np.empty((k, d + 1, d + 1))
        for number, (i, j) in enumerate(self.pairs):
            whole[:, i, j] = whole[:, j, i] = found[number, :k]
        count, total = whole[:, d, d].copy(), whole[:, :d, d]
        shift = total - count[:, None] * mean
        moved = mean[:, :, None] * total[:, None, :]
        square = count[:, None, None] * mean[:, :, None] * mean[:, None, :]
        return count, shift, whole[:, :d, :d] - (moved + moved.swapaxes(1, 2)) + square

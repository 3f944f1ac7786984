"""What the kernels read, made in NumPy: centres as tensor cores take them, bounds on their rounding, integers to sums.

Numbers are scaled by powers of two only, so nothing here rounds but what is meant to.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf, log2

import numpy as np

from ilk import kernels
from ilk.kernels.gpu.plans import Digits, KMeansPlan, up
from ilk.kernels.pairs import Array

HIGHEST = 64.0  # scaled numbers are below it in size
FAR = 60000.0  # what norms of centres that are none are made of
SLACK = 1.001  # bounds that are rounded to float stay bounds
MOST_EXPONENT = 80  # of two: units in an encoded number
REST_BITS = 33  # below the parts in shared memory, as in rests.cu
PART_BITS, PART_REST_BITS = 15, 32  # as in kmeans_sums_any.cu


@dataclass(frozen=True)
class Scaled:
    """How a kernel makes numbers: (x - shift) * scale, of which `lift` is the part that the encoding has not."""

    shift: Array  # float32
    scale: float
    lift: float


def lift_of(largest: float) -> float:
    """The power of two that brings the largest number just below 64.

    >>> lift_of(1.0), lift_of(0.9), lift_of(0.0)
    (32.0, 64.0, 1.0)
    """
    if not 0 < largest < inf:
        return 1.0
    return float(2.0 ** (5 - floor(log2(largest))))


def places(d: int, half: bool = False) -> Array:
    """The column of each place along k of the products: lanes take whole pieces of 16 bytes."""
    step, place = np.divmod(np.arange(d), 16)
    q, e = place % 8 // 2, place % 2 + 2 * (place // 8)
    if half:
        return np.asarray(8 * (8 * (step // 4) + 2 * q + step // 2 % 2) + 4 * (step % 2) + e)
    piece = 8 * (step >> 1) + 2 * q + (step & 1) if d % 32 == 0 else 4 * step + q
    return np.asarray(4 * piece + e)


def blocked(halves: Array) -> Array:
    """(n, d) halves as wgmma reads them: [k8][n8][8 n][8 k]."""
    n, d = halves.shape
    return np.ascontiguousarray(halves.reshape(n // 8, 8, d // 8, 8).transpose(2, 0, 1, 3)).reshape(-1)


@dataclass(frozen=True)
class Split:
    """-2 c in the order of the products as f16 parts, and what these leave out of c."""

    high: Array
    low: Array
    error: Array  # (K,) largest |c - what stands for it| by row, of the parts used
    norm: Array  # (K,) |c|^2 corrected for that error


def split(centres: Array, order: Array, parts: int) -> Split:
    """`centres` (K, d) scaled; a score is off by 2 (x - c) . e with this norm, e = what stands for c less c."""
    own = centres[:, order]
    target = -2.0 * own
    high = target.astype(np.float16)
    away = target - high
    low = away.astype(np.float16) if parts == 2 else high[:0]
    if parts == 2:
        away -= low
    away /= 2.0  # what stands for c less c
    norm = np.einsum("kd,kd->k", own, own) + 2.0 * np.einsum("kd,kd->k", own, away)
    return Split(high, low, np.sqrt(np.einsum("kd,kd->k", away, away)), norm)


def padded(array: Array, n: int) -> Array:
    """With rows of zeros up to n."""
    return np.concatenate([array, np.zeros((n - len(array), *array.shape[1:]), dtype=array.dtype)])


def fused_image(centres: Array, terms: int, constant: float) -> tuple[Array, Array]:
    """What `kmeans_fused.cu` reads: centres (K, d) scaled, norms less `constant` in three f16 parts; and its limits."""
    k, d = centres.shape
    n = max(16, up(k, 8))
    found = split(centres, places(d), 2 if terms == 3 else 1)
    norms = np.zeros((n, 16), dtype=np.float16)
    rest = (found.norm - constant) / 16
    for part in range(3):
        norms[:k, part] = rest
        rest = rest - norms[:k, part].astype(np.float64)
    norms[k:, :3] = FAR
    parts = (found.high, found.low) if terms == 3 else (found.high,)
    image = np.concatenate([blocked(padded(part, n)) for part in parts] + [blocked(norms)])
    longest = np.sqrt(np.square(centres).sum(axis=1)).max()
    lost = (
        2 * 16 * float(np.abs(rest).max()) + 2.0**-60
    )  # of two norms: below f16's least number nothing is held
    limits = np.array([longest * SLACK, found.error.max() * SLACK, constant, lost], dtype=np.float32)
    return image, limits


def large_image(centres: Array, terms: int, half: bool, chunk: int) -> tuple[Array, Array, Array]:
    """What `kmeans_large.cu` and `kmeans_mma.cu` read: centres by chunks, norms, limits."""
    k, d = centres.shape
    n = up(k, chunk)
    found = split(centres, places(d, half), 2 if terms == 3 else 1)
    parts = [padded(part, n) for part in ((found.high, found.low) if terms == 3 else (found.high,))]
    image = np.concatenate([blocked(part[i : i + chunk]) for i in range(0, n, chunk) for part in parts])
    norms = np.full(n, 1e30, dtype=np.float32)
    norms[:k] = found.norm
    longest = np.sqrt(np.square(centres).sum(axis=1)).max()
    # Norms are rounded to float once: that is part of ROUNDING there.
    return image, norms, np.array([longest * SLACK, found.error.max() * SLACK], dtype=np.float32)


def plain_table(centres: Array, plan: KMeansPlan) -> Array:
    """What `tiny` and `few` read: -2 c and |c|^2 as floats, in the units of the table."""
    k, d = centres.shape
    norms = np.square(centres).sum(axis=1)
    if plan.kind == "few":
        return np.column_stack([-2.0 * centres, norms]).astype(np.float32)
    width = 2 if d == 1 else 4 if d <= 3 else 8
    table = np.zeros((up(k, 8), width), dtype=np.float32)
    table[:k, :d], table[:, d], table[:k, d] = -2.0 * centres, 1e30, norms
    return table


def tolerance(d: int) -> float:
    """Of two scores in plain float, relative to |x|^2 + 2 max |c|^2: each of d + 2 operations, and rounded inputs."""
    return float(1.1 * (d + 6) * 2.0**-23)


# --- integers


@dataclass(frozen=True)
class SumUnits:
    """Cells as whole numbers (`digits.cuh`): `scale * x + offset`, rounded to float, is the CPU's number of the cell in
    units of its column."""

    scale: Array  # float32, a power of two per column
    offset: Array  # float32
    back: Array  # float64: one unit in encoded numbers
    low_bits: int

    @property
    def given(self) -> Array:
        """(2, columns) as the kernels read them."""
        return np.stack([self.scale, self.offset])


def sum_units(scaled: Scaled, largest: Array, digits: Digits) -> SumUnits:
    """The units in which no number of a column, at most `largest` in size and encoded, reaches 2^high_bits."""
    wide = np.zeros(len(scaled.shift))
    wide[: len(largest)] = largest
    # Columns that are very small beside others take fewer digits: floats end at 2^127.
    exponent = np.minimum(digits.high_bits - np.frexp(np.where(wide > 0, wide, 1.0))[1], MOST_EXPONENT)
    scale = np.ldexp(scaled.scale / scaled.lift, exponent)
    offset = (-scaled.shift * scale).astype(np.float32)
    return SumUnits(scale.astype(np.float32), offset, np.ldexp(1.0, -exponent), digits.low_bits)


def integer_sums(x: Array, label: Array, k: int, units: SumUnits) -> tuple[Array, Array]:
    """The twin of the kernels' sums: (K, d) int64 in units of 2^-low_bits, and of 2^-(low_bits + 33)."""
    value = (x.astype(np.float32) * units.scale + units.offset).astype(
        np.float64
    )  # the product does not round
    high = np.rint(value)
    left = (value - high) * 2.0**units.low_bits
    low = np.rint(left)
    cells = high.astype(np.int64) * 2**units.low_bits + low.astype(np.int64)
    rests = np.rint((left - low) * 2.0**REST_BITS).astype(np.int64)
    sums, rest = np.zeros((k, x.shape[1]), dtype=np.int64), np.zeros((k, x.shape[1]), dtype=np.int64)
    np.add.at(sums, label, cells)
    np.add.at(rest, label, rests)
    return sums, rest


def as_pairs(whole: Array, unit: float) -> Array:
    """int64 numbers of `unit` (a power of two) as pairs (..., 2), exactly."""
    pairs = np.empty((*whole.shape, 2))
    pairs[..., 0] = whole
    pairs[..., 1] = whole - pairs[..., 0].astype(np.int64)
    pairs *= unit
    return pairs


def encoded_sums(whole: Array, rest: Array, units: SumUnits) -> Array:
    """Sums of encoded numbers as pairs (K, d, 2)."""
    fine = as_pairs(rest, 2.0 ** -(units.low_bits + REST_BITS))
    return kernels.add_pairs(fine, as_pairs(whole, 2.0**-units.low_bits)) * units.back[:, None]


def from_parts(parts: Array, rest: Array, lift: float) -> Array:
    """Pairs of sums that stand in parts (PARTS, ...) of 15 bits and a rest, in units of 1 / lift."""
    finest = 2.0 ** (-PART_BITS * (len(parts) - 1)) / lift
    total = as_pairs(rest, finest * 2.0**-PART_REST_BITS)
    for number in reversed(range(len(parts))):
        total = kernels.add_pairs(total, as_pairs(parts[number], 2.0 ** (-PART_BITS * number) / lift))
    return total


def cost_from_sums(squares: Array, sums: Array, weights: Array, centres: Array) -> Array:
    """`squares - sum of c . (2 S - W c)` as a pair, S and W being pairs (K, d, 2) and (K, 2)."""
    k, d = centres.shape
    cells = np.ascontiguousarray(centres).reshape(-1, 1)
    norms = kernels.group_sums(cells, cells, np.repeat(np.arange(k, dtype=np.int32), d), k)[
        :, 0
    ]  # pairs (K, 2)
    total = kernels.add_pairs(squares, _dot(sums[..., 0], -2.0 * centres))
    for norm in (0, 1):
        total = kernels.add_pairs(total, _dot(norms[:, norm], weights[:, 0]))
    low = norms[:, 0] @ weights[:, 1] - 2.0 * np.einsum("kd,kd->", centres, sums[..., 1])
    return kernels.add_pairs(total, np.array([low, 0.0]))


def _dot(values: Array, by: Array) -> Array:
    """Sum of all products, as a pair."""
    flat = np.ascontiguousarray(values).reshape(-1, 1), np.ascontiguousarray(by).reshape(-1, 1)
    return np.asarray(kernels.group_sums(*flat, np.zeros(values.size, dtype=np.int32), 1)[0, 0])

"""What rows say: against the bits of Python's own doubles, for every kernel, type and layout."""

from __future__ import annotations

import math
import struct
from types import ModuleType

import numpy as np
import pytest

MISSING = 0x7FF8_0000_0000_0001


def said(cells: list[float], power: float, factors: list[int]) -> int:
    total = 0
    for cell, factor in zip(cells, factors, strict=True):
        value = cell * power
        plain = 0.0 if value == 0 else value
        bits = MISSING if math.isnan(value) else struct.unpack("<Q", struct.pack("<d", plain))[0]
        total += (bits ^ (bits >> 32)) * factor
    return total % 2**64


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 2), (1, 1), (5, 3), (300, 17), (3, 0)])
@pytest.mark.parametrize("layout", ["rows", "columns", "backwards", "every other"])
def test_content_sums(path: ModuleType, kind: type, shape: tuple[int, int], layout: str) -> None:
    rng = np.random.default_rng(5)
    cells = np.ldexp(rng.normal(size=shape), rng.integers(-30, 30, size=shape)).astype(kind)
    cells.flat[:3] = [np.nan, -0.0, 0.0][: cells.size]
    cells.flat[4:7] = [np.inf, -np.inf, -np.nan][: max(cells.size - 4, 0)]
    wide = np.zeros((shape[0], 2 * shape[1]), dtype=kind)
    wide[:, ::2] = cells
    layouts = {"rows": cells, "columns": np.asfortranarray(cells), "backwards": cells[::-1, ::-1]}
    given = layouts.get(layout, wide[:, ::2])
    factors = rng.integers(1, 2**63, size=shape[1], dtype=np.uint64) | np.uint64(1)
    for power in (1.0, 2.0**-40):
        found = path.content_sums(given, power, factors, MISSING)
        assert found.dtype == np.uint64
        assert found.tolist() == [said([float(c) for c in row], power, factors.tolist()) for row in given]


def test_factors_and_sums_of_another_length_are_refused(compiled_path: ModuleType) -> None:
    with pytest.raises(ValueError, match="one number per column"):
        compiled_path.content_sums(np.ones((3, 2)), 1.0, np.ones(3, dtype=np.uint64), MISSING)

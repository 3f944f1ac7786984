"""Wide tables made by a seed: groups that differ in few of many columns, and clouds without groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contest import Array

WORDS = {2: ("00000000", "11111111"), 3: ("00000000", "11111000", "00111111")}  # of binary groups
CLOUDS = ("normal", "ar1", "factors", "binary", "trait", "uniform")
TEXT = np.array(["no", "yes"])


@dataclass(frozen=True)
class Made:
    """Numbers and binary columns of some rows, and the group of each row."""

    numbers: Array
    binary: Array
    group: Array

    @property
    def table(self) -> dict[str, Any]:
        """As people have it: binary columns are text."""
        numbers = {f"x{j}": column for j, column in enumerate(self.numbers.T)}
        return numbers | {f"c{j}": TEXT[column] for j, column in enumerate(self.binary.T)}

    @property
    def standardised(self) -> Array:
        """All columns as numbers of mean 0 and deviation 1, for programs that take nothing else."""
        cells = np.hstack([self.numbers, self.binary])
        away = cells - cells.mean(axis=0)
        return np.asarray(away / np.maximum(cells.std(axis=0), 1e-9))


def numeric(
    seed: int, n: int = 150, d: int = 300, q: int = 5, k: int = 3, sd: float = 3.0, apart: float = 0.0
) -> Made:
    """Standard Normal columns; centres of groups differ in the first q, the nearest `apart` if that is given."""
    draws = np.random.default_rng(seed)
    centre = draws.normal(0, sd, (k, q))
    if apart:
        gaps = np.linalg.norm(centre[:, None] - centre[None], axis=2)[np.triu_indices(k, 1)]
        centre *= apart / gaps.min()
    group = draws.permutation(np.arange(n) % k)
    numbers = draws.standard_normal((n, d))
    numbers[:, :q] += centre[group]
    return Made(numbers, np.empty((n, 0), dtype=int), group)


def binary(seed: int, n: int = 300, d: int = 200, q: int = 8, k: int = 2, low: float = 0.1) -> Made:
    """Binary columns; in q of them each group has its level but for a chance `low`."""
    draws = np.random.default_rng(seed)
    bits = np.array([[int(bit) for bit in word] for word in WORDS[k]])[:, :q]
    bits = np.logical_xor(bits, draws.integers(0, 2, q)).astype(int)
    group = draws.permutation(np.arange(n) % k)
    chance = draws.uniform(0.2, 0.8, d)
    cells = (draws.random((n, d)) < chance).astype(int)
    cells[:, :q] = draws.random((n, q)) < np.where(bits[group] == 1, 1 - low, low)
    return Made(np.empty((n, 0)), cells, group)


def mixed(seed: int, n: int = 300, d: int = 200, q: int = 4, k: int = 3) -> Made:
    """Half numbers, half binary; q numbers and five binary columns differ."""
    numbers = numeric(seed, n, d // 2, q, k, 2.0)
    draws = np.random.default_rng(seed + 10_000)
    word = np.array([[0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])[:k]
    chance = draws.uniform(0.2, 0.8, d - d // 2)
    cells = (draws.random((n, len(chance))) < chance).astype(int)
    cells[:, :5] = draws.random((n, 5)) < np.where(word[numbers.group] == 1, 0.9, 0.1)
    return Made(numbers.numbers, cells, numbers.group)


def amid_factors(seed: int, n: int = 150) -> Made:
    """Groups in ten of 300 columns, and three factors that load on all."""
    draws = np.random.default_rng(seed)
    made = numeric(seed, n=n, q=10)
    factors = 0.7 * draws.standard_normal((n, 3)) @ draws.standard_normal((3, 300))
    return Made(made.numbers + factors, made.binary, made.group)


def cloud(kind: str, seed: int, n: int = 150, d: int = 300) -> Made:
    """One group: independent columns, columns that follow one another or factors, numbers or binary."""
    draws = np.random.default_rng(seed)
    alone, nothing = np.zeros(n, dtype=int), np.empty((n, 0), dtype=int)
    if kind in ("normal", "ar1"):
        cells = draws.standard_normal((n, d))
        own = cells.copy()
        for j in range(1, d if kind == "ar1" else 1):
            cells[:, j] = 0.8 * cells[:, j - 1] + 0.6 * own[:, j]
        return Made(cells, nothing, alone)
    if kind == "factors":
        return Made(_factors(draws, n, d), nothing, alone)
    if kind == "uniform":
        return Made(draws.random((n, d)), nothing, alone)
    chance = draws.uniform(0.2, 0.8, d)
    if kind == "binary":
        return Made(np.empty((n, 0)), (draws.random((n, d)) < chance).astype(int), alone)
    traits = _factors(draws, n, d)
    cut = np.array([np.quantile(column, 1 - p) for column, p in zip(traits.T, chance, strict=True)])
    return Made(np.empty((n, 0)), (traits > cut).astype(int), alone)


def _factors(draws: np.random.Generator, n: int, d: int) -> Array:
    factors = draws.standard_normal((n, 3)) @ draws.standard_normal((3, d))
    return np.asarray(factors + draws.standard_normal((n, d)))

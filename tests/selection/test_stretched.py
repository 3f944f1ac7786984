"""Stretched clusters are found by BIC, and one cloud is one group, whatever its shape (trust.md, section 3.4)."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from ilk import kernels

SEEDS = range(15) if kernels.COMPILED else range(1)  # a search takes seconds without a compiler


def turned(X: np.ndarray, draws: np.random.Generator) -> np.ndarray:
    return X @ np.linalg.qr(draws.normal(size=(X.shape[1], X.shape[1])))[0]


def cigars(seed: int, d: int) -> np.ndarray:
    """Three parallel cigars of aspect 20, six standard deviations apart, 100 rows each."""
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(300, d))
    X[:, 0] *= 20
    X[:, 1] += 6 * np.repeat(np.arange(3), 100)
    return turned(X, draws)


def cloud(seed: int, d: int, stretch: float) -> np.ndarray:
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(300, d))
    X[:, 0] *= stretch
    return turned(X, draws)


def chosen_k(X: np.ndarray) -> int:
    return ilk.select(X, k=range(1, 10), scale="standard", thorough=False).chosen.k


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 5])
def test_parallel_cigars(d, capsys):
    right = sum(chosen_k(cigars(seed, d)) == 3 for seed in SEEDS)
    with capsys.disabled():
        print(f"\nthree cigars in {d} columns: K right in {right} of {len(SEEDS)}")
    assert right >= 0.9 * len(SEEDS)


@pytest.mark.slow
def test_one_cloud_is_one_group(capsys):
    shapes = [(d, stretch) for d in (2, 5) for stretch in (1.0, 20.0)]
    ones = sum(chosen_k(cloud(seed, *shape)) == 1 for seed in SEEDS for shape in shapes)
    with capsys.disabled():
        print(f"\none cloud, round or stretched: K = 1 in {ones} of {len(SEEDS) * len(shapes)}")
    assert ones >= len(SEEDS) * len(shapes) - 1

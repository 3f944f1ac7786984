"""The corners below points: the compiled kernel, its twin, and scipy's isotonic regression, which gives the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from ilk import kernels
from ilk.kernels.plain_hull import lower_hull

rng = np.random.default_rng(11)


def points(n: int, *, coarse: bool) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(0, 4, n) / 4 if coarse else rng.random(n)
    return np.unique(rng.normal(size=n)), y


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 10, 100])
def test_corners_are_the_blocks_of_an_isotonic_regression(n, coarse):
    for _ in range(20):
        x, y = points(n, coarse=coarse)
        corners = lower_hull(x, y)
        assert np.array_equal(kernels.lower_hull(x, y), corners)
        if n > 1:
            step = np.diff(x)
            fitted = isotonic_regression(np.diff(y) / step, weights=step)
            level = y[0] + np.concatenate([[0.0], np.cumsum(fitted.x * step)])
            assert np.allclose(np.interp(x, x[corners], y[corners]), level, atol=1e-12)


def test_points_on_a_line_have_two_corners():
    x = np.arange(9.0)
    assert kernels.lower_hull(x, 2 * x).tolist() == [0, 8]

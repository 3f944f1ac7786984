"""Kernels of `ilk.kernels` find rows on a device, in memory and in compressed form; no GPU is needed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from ilk import kernels

NAMES = [
    "nearest_step",
    "nearest",
    "mixture_step",
    "mixture_gather",
    "mixture_ending",
    "mixture_labels",
    "product_step",
    "product_labels",
]


class Elsewhere:
    """Raw cells on some device."""

    def run(self, name, on_cpu, *given, **named):
        return name, callable(on_cpu), given, named


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_runs_where_the_rows_lie(name):
    given = 1.0, np.zeros(2), None
    assert getattr(kernels, name)(Elsewhere(), *given, hard=True) == (name, True, given, {"hard": True})


def test_compressed_rows_are_not_taken_for_a_device():
    x = np.array([[0.0, 2.0], [0.0, 0.0], [3.0, 0.0]])
    centres = np.array([[0.0, 0.0], [3.0, 0.0]])
    given = 1.0, np.zeros(2), None, centres
    for one, other in zip(kernels.nearest(x, *given), kernels.nearest(csr_array(x), *given), strict=True):
        assert np.array_equal(one, other)

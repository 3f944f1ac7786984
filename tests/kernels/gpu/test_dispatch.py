"""Kernels of `ilk.kernels` find rows on a device, in memory and in compressed form; no GPU is needed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from ilk import kernels
from ilk.kernels.gpu.resident import Resident

NAMES = [
    "nearest_step",
    "nearest",
    "mixture_step",
    "mixture_gather",
    "mixture_ending",
    "mixture_labels",
    "product_step",
    "product_labels",
    "student_tails",
    "student_step",
    "student_labels",
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


@pytest.mark.parametrize("slow", [True, False])
def test_a_card_with_few_units_for_float64_is_said_to_be_slow(slow):
    device = SimpleNamespace(slow_doubles=slow, name="NVIDIA GeForce RTX 4090")
    table = SimpleNamespace(device=device, raw=np.empty((9, 2)), dtype="float64")
    said = []
    Resident(table, lambda: None, lambda *told: said.append(told))._in_doubles("a Gaussian mixture")
    assert len(said) == slow
    for why, code, then in said:
        assert "NVIDIA GeForce RTX 4090" in why
        assert code == "slow-on-gpu"
        assert "CPUs are faster" in then

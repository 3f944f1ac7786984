"""A run that was asked to use a GPU, on a machine or a table that has no use for one."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from ilk.engines import gpu
from ilk.errors import UsageError
from ilk.kernels.gpu.nvrtc import Unavailable


@pytest.fixture
def table():
    draw = np.random.default_rng(0)
    return {"size": np.r_[draw.normal(0, 1, 60), draw.normal(9, 1, 60)], "width": draw.normal(size=120)}


def cautions(result):
    return [caution["text"] for caution in result.summary()["warnings"] if caution["code"] == "no-gpu"]


def test_few_rows_and_methods_without_kernels_are_the_cpus(table):
    asked, usual = ilk.cluster(table, device="cuda"), ilk.cluster(table)
    assert np.array_equal(asked.labels, usual.labels)
    assert cautions(asked) == [
        "device='cuda' was asked for, and a table of fewer than 65,536 rows gains nothing: the CPU does it."
    ]
    assert cautions(usual) == []
    found = ilk.cluster(table, k=2, method="k-medians", device="cuda")
    assert cautions(found) == [
        "device='cuda' was asked for, and k-medians has no kernel for the GPU: the CPU does it."
    ]


def test_without_a_card_nothing_is_lost(table, monkeypatch):
    def no_card(*_):
        raise Unavailable("no NVIDIA GPU was found")

    monkeypatch.setattr(gpu, "open_device", no_card)
    monkeypatch.setattr("ilk.analysis.on_device.LEAST_ROWS", 100)
    asked, usual = ilk.cluster(table, device="cuda"), ilk.cluster(table, device="cpu")
    assert np.array_equal(asked.labels, usual.labels)
    assert cautions(asked) == ["device='cuda' was asked for, and no NVIDIA GPU was found: the CPU does it."]


def test_what_is_no_device_is_refused(table):
    with pytest.raises(UsageError, match='device="tpu"'):
        ilk.cluster(table, device="tpu")

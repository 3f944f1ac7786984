"""Every lesson runs and shows what it says: its own variables are looked at after the run."""

from __future__ import annotations

import runpy
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ilk import kernels

matplotlib = pytest.importorskip("matplotlib")
pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="a lesson takes a minute with the NumPy kernels")

LESSONS = Path(__file__).parents[2] / "examples" / "lessons"


@pytest.fixture
def lesson():
    """Run a lesson by name: its variables, and at least one picture drawn."""
    import matplotlib.pyplot as plt

    def run(name: str) -> dict:
        before = matplotlib.get_backend()
        plt.switch_backend("Agg")
        try:
            told = runpy.run_path(str(LESSONS / f"{name}.py"))
            assert plt.get_fignums(), "no picture"
        finally:
            plt.close("all")
            plt.switch_backend(before)
        return told

    return run


def test_k_log_k(lesson):
    told = lesson("k_log_k")
    reached = told["reached"]
    assert reached["k-log-k"] >= 85
    assert reached["random"] <= 50
    assert np.median(told["cost"]["random"]) > 1.5 * np.median(told["cost"]["k-log-k"])


def test_k_means_as_limit(lesson):
    told = lesson("k_means_as_limit")
    apart = told["apart"]
    assert apart[0] > 0.1
    assert apart[0] > apart[3] > apart[-1]
    assert apart[-1] < 1e-3
    assert (told["final"].max(axis=1) > 0.99).mean() > 0.9


def test_the_bound(lesson):
    told = lesson("the_bound")
    assert told["path"][:4] == pytest.approx([20, 33.2419, 38.7011, 41.2769], abs=1e-4)
    assert told["costs"][:4] == pytest.approx([89.5734, 84.3459, 83.0061, 82.6480], abs=1e-4)
    assert all(after < before for before, after in pairwise(told["costs"]))
    assert told["qs"][3] > told["qs"][2] > told["qs"][1]
    assert abs(told["identity"]) < 1e-10
    cost = np.array([told["cost"](second) for second in told["grid"]])
    assert all((bound >= cost - 1e-9).all() for bound in told["bounds"])


def test_bic_curves(lesson):
    told = lesson("bic_curves")
    assert len(told["curves"]) == 14
    assert all(len(points) == 6 for points in told["curves"].values())
    assert (told["found"].chosen.structure, told["found"].chosen.k) == ("VEV", 2)
    assert told["found"].chosen.bic == min(bic for points in told["curves"].values() for _, bic in points)
    assert 0 < told["margin"] < 10


def test_standard_units(lesson):
    told = lesson("standard_units")
    assert told["share"][-1] > 0.99
    assert told["agreement"]["as it is"] == pytest.approx(0.37, abs=0.01)
    assert told["agreement"]["scaled"] == pytest.approx(0.897, abs=0.001)
    assert told["unmoved"]


def test_soft_counts(lesson):
    told = lesson("soft_counts")
    assert told["size"] == pytest.approx([5, 4.5, 2.5])
    assert told["share"][1] == pytest.approx(0.375)
    assert told["part"].sum(axis=1) == pytest.approx(np.ones(12))
    assert told["model"].weights_ == pytest.approx(told["gamma"].mean(axis=0), abs=1e-6)
    assert told["model"].means_ == pytest.approx(told["by_hand"], abs=1e-5)
    assert 0.05 < told["gamma"][9, 2] < 0.5  # a row that is divided


def test_noise_component(lesson):
    told = lesson("noise_component")
    assert told["off"]["Gaussian"] > 0.5
    assert max(value for name, value in told["off"].items() if name != "Gaussian") < 0.3
    assert told["caught"] >= 38
    assert told["noise"].sum() <= 50


def test_every_lesson_is_looked_at():
    ours = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in LESSONS.glob("*.py")} <= ours

"""The cut of trimmed rows from the costs of all of them, against sorting; and on rows of a device it is those costs."""

from __future__ import annotations

import numpy as np
import pytest

from ilk.engines.memory import MemoryRows
from ilk.families.centroid import Means
from ilk.fitting.trim import cut_of, find_cuts
from tests.engines.test_gpu import memory_rows


@pytest.mark.parametrize("seed", range(20))
def test_a_cut_keeps_exactly_its_share(seed):
    draw = np.random.default_rng(seed)
    n, keep = int(draw.integers(1, 300)), float(draw.uniform(0.05, 1.0))
    cost = np.round(draw.normal(size=n), int(draw.integers(0, 4)))  # with ties
    weight = draw.integers(1, 4, n) / 2
    cut = cut_of(cost, weight, keep)
    order = np.argsort(cost)
    reached = np.cumsum(weight[order]) >= keep * weight.sum() * (1 - 1e-12)
    assert cut.limit == cost[order][np.argmax(reached)]
    kept = weight[cost < cut.limit].sum() + cut.share * weight[cost == cut.limit].sum()
    assert kept == pytest.approx(keep * weight.sum())


class OnDevice(MemoryRows):
    """Rows that say that they lie on a device, and count how often they are walked."""

    walks = 0

    @property
    def resident(self):
        return MemoryRows.whole.fget(self)

    def scan(self, visit, state):
        self.walks += 1
        return super().scan(visit, state)


def test_rows_on_a_device_are_scored_once(monkeypatch):
    X = np.random.default_rng(0).normal(size=(5000, 3))
    rows = memory_rows(X)
    there = OnDevice(rows.raw, rows.encoding)
    monkeypatch.setattr(Means, "device_rows", "complete")
    family = Means()
    starts = [family.start(rows.sample(4, seed).numbers[:4]) for seed in (0, 1)]
    usual = find_cuts(rows, [family] * 2, starts, 0.9)
    assert find_cuts(there, [family] * 2, starts, 0.9) == usual
    assert there.walks == 0

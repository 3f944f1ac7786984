"""Resamples: how many are drawn when time is short."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ilk.engines.memory import MemoryRows
from ilk.families.centroid import Means
from ilk.fitting.deadline import Deadline
from ilk.model.grouped import Grouped
from ilk.selection import resampling
from ilk.selection.resampling import FEWEST_RESAMPLES, N_RESAMPLES, ResamplingPlan, resampled
from ilk.selection.samples import Samples, Scope
from ilk.table.condition import condition


@pytest.mark.parametrize(("end", "expected"), [(math.inf, N_RESAMPLES), (0.0, FEWEST_RESAMPLES)])
def test_fewer_resamples_when_the_time_has_run_out(end, expected, monkeypatch):
    draws = np.random.default_rng(0)
    X = np.vstack([draws.normal(0, 1, (60, 2)), draws.normal(9, 1, (60, 2))])
    rows = MemoryRows(X, condition(X), threads=1)
    numbers = []
    monkeypatch.setattr(resampling, "_refitted", lambda *given: numbers.append(given[-1]))
    family = Means()
    centres = rows.encoding.apply(np.array([[0.0, 0.0], [9.0, 9.0]]))
    grouped = Grouped(family, family.start(centres), np.arange(2), False)
    plan = ResamplingPlan(
        refit=lambda *_: None, n_pieces=2, threshold=0.4, least=1, soft=False, deadline=Deadline(end)
    )
    samples = Samples(rows.sample(120, 0), None, Scope(0))
    assert resampled(samples, grouped, plan, 0).stable == (0.0, 0.0)  # none of them found anything
    assert sorted(numbers) == list(range(expected))

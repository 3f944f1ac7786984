"""Resamples: how many are drawn, when time is short and when the verdict needs no more."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ilk
from ilk.engines.memory import MemoryRows
from ilk.families.centroid import Means
from ilk.fitting.deadline import Deadline
from ilk.model.grouped import Grouped
from ilk.selection import resampling
from ilk.selection.resampling import (
    FEWEST_RESAMPLES,
    LEAST_RESAMPLES,
    N_RESAMPLES,
    ResamplingPlan,
    resampled,
    told,
)
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
    monkeypatch.setattr(resampling, "told", lambda _: False)
    assert resampled(samples, grouped, plan, 0).stable == (0.0, 0.0)  # none of them found anything
    assert sorted(numbers) == list(range(expected))


@pytest.mark.parametrize(("spread", "fewer"), [(0.02, True), (0.25, False)])
def test_as_many_resamples_as_the_verdict_needs(spread, fewer):
    draws = np.random.default_rng(3)
    returned = np.clip(0.9 + draws.normal(0, spread, (N_RESAMPLES, 3)), 0, 1)
    assert told(returned[:LEAST_RESAMPLES]) == fewer


def test_a_group_that_is_lost_ends_the_resamples_unless_another_threshold_is_near():
    lost = np.tile([0.95, 0.3, 0.3], (LEAST_RESAMPLES, 1))
    assert told(lost)
    assert not told(np.where(lost == 0.3, 0.5, lost))  # half lost, or less
    assert not told(np.tile([0.65, 0.65, 0.65], (LEAST_RESAMPLES, 1)))  # stable on the whole, or not
    assert not told(np.tile([0.95, 0.3, 0.95], (LEAST_RESAMPLES, 1)))  # as a wide table has to be


def test_the_number_of_threads_changes_nothing():
    draws = np.random.default_rng(1)
    X = np.vstack([draws.normal(0, 1, (40, 2)), draws.normal(3, 1, (40, 2)), draws.normal(9, 1, (40, 2))])
    found = [ilk.cluster(X, threads=threads).summary()["groups"] for threads in (1, 2)]
    assert found[0] == found[1]

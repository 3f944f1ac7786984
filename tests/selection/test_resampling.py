"""Resamples: how many are drawn, when time is short and when the verdict needs no more."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from ilk.engines.memory import MemoryRows
from ilk.families.centroid import Means
from ilk.fitting.deadline import Deadline
from ilk.model.grouped import Grouped
from ilk.selection import resampling
from ilk.selection.resampling import (
    LEAST_RESAMPLES,
    N_RESAMPLES,
    ResamplingPlan,
    resampled,
    told,
)
from ilk.selection.samples import Samples, Scope
from ilk.table.condition import condition


@pytest.mark.parametrize(
    ("n_in_time", "n_counted"),
    [
        (N_RESAMPLES, N_RESAMPLES),
        (LEAST_RESAMPLES + 1, LEAST_RESAMPLES + 1),
        (LEAST_RESAMPLES - 1, None),
        (0, None),
    ],
)
def test_resamples_end_with_the_time_and_too_few_tell_nothing(n_in_time, n_counted, monkeypatch):
    draws = np.random.default_rng(0)
    X = np.vstack([draws.normal(0, 1, (60, 2)), draws.normal(9, 1, (60, 2))])
    rows = MemoryRows(X, condition(X), threads=1)
    numbers, now = [], 0.0

    def refitted(*given):
        nonlocal now
        numbers.append(given[-1])
        now += 1.0  # each takes a second

    monkeypatch.setattr("ilk.fitting.deadline.time.monotonic", lambda: now)
    monkeypatch.setattr(resampling, "_refitted", refitted)
    family = Means()
    centres = rows.encoding.apply(np.array([[0.0, 0.0], [9.0, 9.0]]))
    grouped = Grouped(family, family.start(centres), np.arange(2), False)
    plan = ResamplingPlan(
        refit=lambda *_: None,
        n_pieces=2,
        threshold=0.4,
        least=1,
        soft=False,
        deadline=Deadline(n_in_time + 0.5 * (n_in_time > 0)),
    )
    samples = Samples(rows.sample(120, 0), None, Scope(0))
    monkeypatch.setattr(resampling, "told", lambda _: False)
    found = resampled(samples, grouped, plan, 0, 1)
    assert found is None if n_counted is None else len(found.fits) == n_counted
    assert found is None or found.stable == (0.0, 0.0)  # none of them found anything
    assert len(numbers) <= n_in_time + 1


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

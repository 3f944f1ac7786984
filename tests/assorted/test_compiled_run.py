"""Whole runs in one compiled call: bit for bit those of the loop."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ilk import kernels
from ilk.assorted import compiled_run
from ilk.assorted.compiled_run import run_all_starts
from ilk.assorted.state import from_labels
from ilk.fitting.deadline import Deadline
from ilk.fitting.loop import INTERRUPTED, PASS_LIMIT, TIME_LIMIT, Stop, run_starts
from tests.assorted.test_compiled_update import family_of, rows_of

pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="there is the loop alone")

PARTS = ("mixing", "mean", "variance", "log_level", "group", "log_mixing", "precision", "log_norm")


def starts_of(draws, rows, family, k, n_starts=3):
    made = []
    for _ in range(n_starts):
        label = draws.integers(0, k, rows.n_rows).astype(np.int32)
        label[:k] = np.arange(k)
        made.append(from_labels(rows, family.ungrouped, label, k))
    return made


def assert_same(one, other):
    assert (one.reason, one.status, one.cost) == (other.reason, other.status, other.cost)
    assert one.trace == other.trace
    for a, b in ((one.params, other.params), (one.measured, other.measured)):
        assert all(np.array_equal(getattr(a, part), getattr(b, part)) for part in PARTS)


@pytest.mark.parametrize("k", [1, 2, 3, 6, 7, 9, 12])
@pytest.mark.parametrize(("gaps", "weighted"), [(False, False), (True, True)])
@pytest.mark.parametrize("sharing", ["background", "none"])
def test_a_compiled_run_is_that_of_the_loop(k, gaps, weighted, sharing):
    draws = np.random.default_rng(k)
    for stop in (Stop(1e-6, 40), Stop(0.0, 200), Stop(1e-4, 3)):
        rows, family = rows_of(draws, k, gaps=gaps, weighted=weighted), family_of(draws, sharing)
        starts = starts_of(draws, rows, family, k)
        families = [family] * len(starts)
        fast = run_all_starts(rows, families, starts, stop=stop)
        for one, other in zip(fast, run_starts(rows, families, starts, stop=stop), strict=True):
            assert_same(one, other)


def test_clusters_that_vanish_on_the_way_are_left_to_the_loop():
    draws = np.random.default_rng(3)
    for number in range(20):
        rows, family = rows_of(draws, 2, gaps=number % 2 == 0, weighted=False, n=60), family_of(draws)
        centres = draws.normal(size=(5, 4))
        centres[number % 5] = 60.0  # no row is near
        starts, stop = [family.start(centres)], Stop(0.0, 300)
        (fast,), (slow,) = (way(rows, [family], starts, stop=stop) for way in (run_all_starts, run_starts))
        assert_same(fast, slow)
        assert fast.trace[0].n_components > fast.trace[-1].n_components


def test_only_tables_of_one_block_are_run_so(monkeypatch):
    draws = np.random.default_rng(4)
    rows, family = rows_of(draws, 3, gaps=False, weighted=False, n=40_000), family_of(draws)
    assert rows.n_blocks > 1
    starts = starts_of(draws, rows, family, 3)
    monkeypatch.setattr(compiled_run, "_leg", lambda *_: pytest.fail("compiled"))
    assert all(run.trace for run in run_all_starts(rows, [family] * 3, starts, stop=Stop(1e-4, 5)))


def test_passes_and_time_are_limited():
    draws = np.random.default_rng(5)
    rows, family = rows_of(draws, 3, gaps=False, weighted=False), family_of(draws)
    starts = starts_of(draws, rows, family, 3)
    short = run_all_starts(rows, [family] * 3, starts, stop=Stop(0.0, 2))
    assert {(run.reason, len(run.trace)) for run in short} == {(PASS_LIMIT, 2)}
    late = run_all_starts(rows, [family] * 3, starts, stop=Stop(0.0, 2, deadline=Deadline.after(0.0)))
    assert {(run.reason, run.cost) for run in late} == {(TIME_LIMIT, math.inf)}


def test_an_interrupt_keeps_the_runs_that_have_ended():
    draws = np.random.default_rng(6)
    rows, family = rows_of(draws, 3, gaps=False, weighted=False), family_of(draws)
    starts = starts_of(draws, rows, family, 3)

    def interrupt(_):
        raise KeyboardInterrupt

    runs = run_all_starts(rows, [family] * 3, starts, stop=Stop(1e-6, 50), callback=interrupt)
    assert [bool(run.trace) for run in runs] == [True, False, False]
    assert [run.reason == INTERRUPTED for run in runs] == [False, True, True]
    (last,) = run_all_starts(rows, [family], starts[:1], stop=Stop(1e-6, 50), callback=interrupt)
    assert last.reason == INTERRUPTED
    assert last.cost == runs[0].cost

"""The loop: starts advance together, reasons are told, interrupts keep the best, vacant components move."""

from __future__ import annotations

import numpy as np
import pytest

from ilk.families.centroid import Means, Medians
from ilk.fitting.deadline import Deadline
from ilk.fitting.fit import fit
from ilk.fitting.loop import Stop, run_starts
from tests.contracts.test_rows import rows_of

FAMILY = Means()


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    return rows_of(generator.normal(size=(3000, 3)) + 4 * generator.integers(0, 3, size=(3000, 1)), 2)


def starts_of(rows, n):
    generator = np.random.default_rng(1)
    return [FAMILY.start(rows.take(generator.choice(3000, 4)).numbers) for _ in range(n)]


def test_starts_together_end_as_starts_alone(rows):
    starts = starts_of(rows, 5)
    together = run_starts(rows, [FAMILY] * len(starts), starts)
    for start, run in zip(starts, together, strict=True):
        alone = run_starts(rows, [FAMILY], [start])[0]
        assert alone.cost == run.cost
        assert alone.trace == run.trace
        assert np.array_equal(alone.params.centre, run.params.centre)


def test_every_pass_is_told(rows):
    events = []
    runs = run_starts(rows, [FAMILY] * 3, starts_of(rows, 3), callback=events.append)
    assert [e.pass_number for e in events] == list(range(1, len(events) + 1))
    assert len(events) == max(len(run.trace) for run in runs)
    assert events[-1].n_running == 0
    assert events[-1].best_cost == min(run.cost for run in runs)


def test_reasons(rows):
    start = starts_of(rows, 1)
    assert run_starts(rows, [FAMILY], start)[0].reason == "nothing changed"
    assert run_starts(rows, [FAMILY], start, stop=Stop(max_passes=2))[0].reason == "pass limit"
    assert run_starts(rows, [FAMILY], start, stop=Stop(tolerance=0.5))[0].reason == "tolerance"
    assert (
        run_starts(rows, [FAMILY], start, stop=Stop(deadline=Deadline.after(0.0)))[0].reason == "time limit"
    )


def test_no_passes_return_the_start(rows):
    start = starts_of(rows, 1)
    found = fit(rows, FAMILY, start, stop=Stop(max_passes=0))
    assert found.n_passes == 0
    assert not found.converged
    assert sorted(map(tuple, found.params.centre)) == sorted(map(tuple, start[0].centre))


def test_an_interrupt_returns_the_best_so_far(rows):
    def interrupt(event):
        if event.pass_number == 2:
            raise KeyboardInterrupt

    found = fit(rows, FAMILY, starts_of(rows, 3), callback=interrupt)
    assert found.reason == "interrupted"
    assert found.n_passes == 2
    assert len(found.labels) == 3000
    limited = fit(rows, FAMILY, starts_of(rows, 3), stop=Stop(max_passes=2))
    assert found.cost == limited.cost


def test_an_error_in_a_callback_is_the_callers(rows):
    def fails(event):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fit(rows, FAMILY, starts_of(rows, 1), callback=fails)


@pytest.mark.parametrize("family", [Means(), Medians()], ids=lambda f: f.name)
def test_a_vacant_component_moves_to_the_dearest_row(family):
    X = np.array([[0.0], [0.1], [0.2], [10.0], [50.0]])
    rows = rows_of(X, 1)
    start = family.start(rows.encoding.apply(np.array([[0.1], [900.0], [950.0]])))
    found = fit(rows, family, [start])
    assert found.size.tolist() == [3.0, 1.0, 1.0]


@pytest.mark.parametrize("family", [Means(), Medians()], ids=lambda f: f.name)
def test_fewer_distinct_rows_than_components(family):
    rows = rows_of(np.array([[1.0, 2.0]] * 5 + [[3.0, 4.0]] * 4), 1)
    start = family.start(rows.take(np.array([0, 1, 5, 6, 7])).numbers)
    found = fit(rows, family, [start])
    assert found.status == "fewer_distinct_rows"
    assert found.size.tolist() == [5.0, 4.0]
    assert found.cost == 0.0
    assert found.n_passes <= 3


def test_the_dearest_rows_that_are_trimmed_do_not_draw_a_vacant_component():
    X = (
        np.concatenate([np.zeros(50), np.ones(40), np.full(10, 1e3)])[:, None]
        + np.linspace(0, 0.01, 100)[:, None]
    )
    rows = rows_of(X, 1)
    start = FAMILY.start(rows.encoding.apply(np.array([[0.2], [-50.0]])))
    found = fit(rows, FAMILY, [start], trim=0.1)
    assert np.allclose(np.sort(rows.encoding.undo(found.params.centre)[:, 0]), [0.0025, 1.007], atol=0.01)


def test_canonical_order_is_by_size_then_least_row():
    X = np.array([[5.0], [5.1], [0.0], [0.1], [9.0], [9.1], [9.2]])
    rows = rows_of(X, 1)
    for order in ([0, 2, 4], [4, 2, 0], [2, 4, 0]):
        found = fit(rows, FAMILY, [FAMILY.start(rows.take(np.array(order)).numbers)])
        assert found.labels.tolist() == [2, 2, 1, 1, 0, 0, 0]


def test_trimmed_cost_never_rises_and_the_share_is_kept():
    generator = np.random.default_rng(3)
    for seed in range(10):
        X = generator.standard_t(2, size=(200, 2))
        weight = generator.integers(1, 4, size=200).astype(float)
        rows = rows_of(X, 1, weight)
        start = FAMILY.start(rows.take(np.arange(seed, seed + 3)).numbers)
        run = run_starts(rows, [FAMILY], [start], trim=0.1)[0]
        cost = np.array([record.cost for record in run.trace])
        assert (np.diff(cost) <= 1e-12 * cost[:-1]).all()
        assert run.params.weight.sum() == pytest.approx(0.9 * weight.sum(), rel=1e-12)

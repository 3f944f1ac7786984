"""Whole runs in one compiled call: the runs of the loop, from the same start, for all structures."""

from __future__ import annotations

import csv
from math import inf
from pathlib import Path

import numpy as np
import pytest

from ilk import kernels
from ilk.engines.memory import MemoryRows
from ilk.families import gaussian
from ilk.families.covariance import STRUCTURES, Structure, update_covariance
from ilk.families.gaussian import Gaussian
from ilk.families.prior import Prior
from ilk.fitting import small_tables as quick
from ilk.fitting.deadline import Deadline
from ilk.fitting.loop import (
    CONVERGED,
    DEGENERATE,
    INTERRUPTED,
    NOTHING_CHANGED,
    PASS_LIMIT,
    TIME_LIMIT,
    TOLERANCE,
    Event,
    Run,
    Stop,
    run_starts,
)
from ilk.fitting.restarts import from_labels
from ilk.fitting.small_tables import run_quick
from ilk.kernels import plain_mixture
from ilk.table.block import Encoding


@pytest.fixture(autouse=True)
def numpy_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop runs on NumPy alone, so that it shares nothing with what it is compared to."""
    monkeypatch.setattr(kernels, "mixture_step", plain_mixture.mixture_step)
    monkeypatch.setattr(gaussian, "quick_update", update_covariance, raising=False)


if not kernels.COMPILED:
    pytest.skip("no compiled kernels here", allow_module_level=True)
from ilk.kernels import _compiled  # noqa: E402

Array = np.ndarray
DATA = Path(__file__).parents[1] / "data"
NAMES = [s.name for s in STRUCTURES]
every_structure = pytest.mark.parametrize("structure", STRUCTURES, ids=NAMES)
STOP = Stop(tolerance=1e-7, max_passes=40)


def clouds(seed: int, n: int, d: int, k: int, apart: float = 2.0) -> Array:
    rng = np.random.default_rng(seed)
    own = rng.normal(size=(k, d, d)) / np.sqrt(d) + np.eye(d)
    cluster = rng.integers(0, k, n)
    return (
        np.einsum("nij,nj->ni", own[cluster], rng.normal(size=(n, d)))
        + apart * rng.normal(size=(k, d))[cluster]
    )


def real(name: str, columns: slice) -> Array:
    """Complete rows of some columns, in standard deviations."""
    with (DATA / f"{name}.csv").open() as file:
        cells = [row[columns] for row in csv.reader(file)][1:]
    numbers = np.array([[float(cell) for cell in row] for row in cells if all(row)])
    return (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)


def rows_of(points: Array, weight: Array | None = None, threads: int = 1) -> MemoryRows:
    encoding = Encoding(1.0, points.mean(axis=0, dtype=np.float64))
    return MemoryRows(points, encoding, weight=weight, threads=threads)


def family_of(structure: Structure, points: Array, **options: object) -> Gaussian:
    variances = np.maximum(points.astype(np.float64).var(axis=0), 1e-300)
    return Gaussian(structure.for_columns(points.shape[1]), variances, **options)  # type: ignore[arg-type]


def nearest_of(points: Array, k: int, seed: int = 0) -> Array:
    centres = points[np.random.default_rng([seed, 7]).choice(len(points), k, replace=False)]
    label = np.square(points[:, None] - centres).sum(axis=2).argmin(axis=1)
    return np.unique(label, return_inverse=True)[1].astype(np.int32)


def both(rows: MemoryRows, family: Gaussian, label: Array, stop: Stop = STOP) -> tuple[Run, Run]:
    start = from_labels(rows, family, label, int(label.max()) + 1)
    return run_quick(rows, [family], [start], stop=stop)[0], run_starts(rows, [family], [start], stop=stop)[0]


def still(run: Run) -> bool:
    """Whether the last pass moved the cost by no more than rounding: which of the checks sees it is chance."""
    costs = [record.cost for record in run.trace[-2:]]
    if run.reason == NOTHING_CHANGED:
        return True
    return run.reason in CONVERGED and len(costs) == 2 and abs(costs[0] - costs[1]) <= 1e-12 * abs(costs[1])


def assert_same_passes(ours: Run, loop: Run, digits: float = 1e-9) -> None:
    assert ours.status == loop.status
    assert ours.reason == loop.reason or (still(ours) and still(loop))
    n = len(loop.trace)
    assert len(ours.trace) == n or (still(ours) and still(loop))
    assert [(r.number, r.n_components) for r in ours.trace][:n] == [
        (r.number, r.n_components) for r in loop.trace[: len(ours.trace)]
    ]
    n = min(n, len(ours.trace))
    np.testing.assert_allclose(
        [r.cost for r in ours.trace[:n]], [r.cost for r in loop.trace[:n]], rtol=digits
    )
    np.testing.assert_allclose(ours.cost, loop.cost, rtol=digits)


def assert_same_run(ours: Run, loop: Run) -> None:
    assert_same_passes(ours, loop)
    for mine, theirs in ((ours.params, loop.params), (ours.measured, loop.measured)):
        np.testing.assert_allclose(mine.mixing, theirs.mixing, rtol=1e-5, atol=1e-9)
        np.testing.assert_allclose(mine.mean, theirs.mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(
            mine.covariance.matrices(), theirs.covariance.matrices(), rtol=1e-4, atol=1e-6
        )


# --- the same runs ----------------------------------------------------------------------------------------


@every_structure
@pytest.mark.parametrize(
    ("n", "d", "k"),
    [(60, 1, 2), (300, 2, 3), (500, 4, 5), (333, 8, 3), (150, 11, 2), (70, 3, 1), (250, 30, 3), (400, 30, 3)],
)
def test_random_tables(structure: Structure, n: int, d: int, k: int) -> None:
    points = clouds(n, n, d, k)
    start = next(label for seed in range(9) if np.bincount(label := nearest_of(points, k, seed)).min() > d)
    assert_same_run(*both(rows_of(points), family_of(structure, points), start))


@pytest.mark.parametrize("name", ["EEV", "VEV"])
def test_fewer_rows_than_columns_in_a_component(name: str) -> None:
    """Axes along which it has no scatter are any, and a shape in common gives them variances: the first cost agrees."""
    points = clouds(250, 250, 30, 3)
    start = nearest_of(points, 3)
    assert np.bincount(start).min() < 30
    ours, loop = both(rows_of(points), family_of(Structure(name), points), start)
    assert ours.status == loop.status
    np.testing.assert_allclose(ours.trace[0].cost, loop.trace[0].cost, rtol=1e-12)


@pytest.mark.parametrize("name", ["EEE", "VEE", "EVE", "VVE", "EVV"])
def test_more_columns_than_most_tables_have(name: str) -> None:
    """With about as many rows as columns in a component its axes are partly chance: there costs are what must agree."""
    points = clouds(200, 200, 41, 2)
    stop = Stop(tolerance=1e-7, max_passes=8)
    family = family_of(Structure(name), points)
    assert_same_passes(*both(rows_of(points), family, nearest_of(points, 2), stop))


REAL = {
    "wine": ("wine", slice(0, 13)),
    "penguins": ("penguins", slice(1, 5)),
    "seven": ("seven_normals_outliers", slice(0, 2)),
    "lattice": ("breast_cancer_wisconsin", slice(0, 4)),
}


@every_structure
@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("k", [2, 5])
def test_real_tables(structure: Structure, name: str, k: int) -> None:
    """On a lattice eigenvalues tie, components collapse, a start may be singular: there costs are what must agree."""
    points = real(*REAL[name])
    rows, family, label = rows_of(points), family_of(structure, points), nearest_of(points, k, seed=k)
    singular = from_labels(rows, family, label, k).status != "ok"
    (assert_same_passes if singular or name == "lattice" else assert_same_run)(*both(rows, family, label))


@pytest.mark.parametrize("instructions", _compiled.all_instructions())
@pytest.mark.parametrize("d", [*range(1, 11), 16, 27])
def test_every_instruction_set(instructions: str, d: int) -> None:
    points = clouds(d, 301, d, 3)
    _compiled.use_instructions(instructions)
    try:
        for name in ("VVI", "EEE", "VEE", "EVE", "VVE", "VVV"):
            assert_same_run(*both(rows_of(points), family_of(Structure(name), points), nearest_of(points, 3)))
    finally:
        _compiled.use_instructions(kernels.INSTRUCTIONS)


@every_structure
@pytest.mark.parametrize("options", [{"membership": "hard"}, {"equal_mixing": True}], ids=["hard", "equal"])
def test_memberships_and_mixing(structure: Structure, options: dict[str, object]) -> None:
    points = clouds(3, 300, 3, 4)
    assert_same_run(*both(rows_of(points), family_of(structure, points, **options), nearest_of(points, 4)))


@every_structure
def test_weights_and_single_precision(structure: Structure) -> None:
    points = clouds(4, 400, 3, 3).astype(np.float32)
    weight = np.random.default_rng(4).integers(0, 4, 400).astype(np.float64)
    rows = rows_of(points, weight)
    assert_same_run(*both(rows, family_of(structure, points), nearest_of(points, 3)))


def test_far_rows_and_wide_offsets() -> None:
    points = clouds(6, 300, 2, 3)
    points[:3] += 1e4
    for structure in STRUCTURES:
        ours, loop = both(rows_of(points + 1e6), family_of(structure, points), nearest_of(points, 3))
        assert_same_passes(ours, loop, digits=1e-7)  # variances 1e8 apart: rounding is that much larger


# --- degenerate runs --------------------------------------------------------------------------------------


@every_structure
def test_components_that_collapse(structure: Structure) -> None:
    points = clouds(8, 200, 3, 2)
    points[:12] = points[0] + 1e-3 * np.random.default_rng(8).normal(size=(12, 3))
    points[4:12] = points[4]
    label = np.minimum(nearest_of(points, 3) + 1, 3)
    label[:12] = 0
    label = np.unique(label, return_inverse=True)[1]
    ours, loop = both(
        rows_of(points), family_of(structure, points), label, Stop(tolerance=1e-12, max_passes=200)
    )
    assert (ours.status, ours.reason) == (loop.status, loop.reason)
    n = min(len(ours.trace), len(loop.trace))
    np.testing.assert_allclose([r.cost for r in ours.trace[:n]], [r.cost for r in loop.trace[:n]], rtol=1e-6)


@pytest.mark.parametrize("name", ["VVV", "VVI", "EVV", "EVI"])
def test_a_component_on_too_few_rows_is_degenerate(name: str) -> None:
    points = clouds(9, 150, 3, 2)
    points[:2] = [[60.0, 0.0, 0.0], [60.0, 0.1, 0.0]]
    points[2:20] = [60.0, 0.05, 0.0] + 1e-2 * np.random.default_rng(9).normal(size=(18, 3))
    label = np.zeros(150, dtype=np.int32)
    label[:20] = 1
    family = family_of(Structure(name), points)
    start = from_labels(rows_of(points), family, label, 2)
    shrunk = points.copy()
    shrunk[2:20] = shrunk[0]  # the next pass finds the component on two places
    ours, loop = (run(rows_of(shrunk), [family], [start], stop=STOP)[0] for run in (run_quick, run_starts))
    assert (ours.status, ours.reason) == (loop.status, loop.reason) == ("singular", DEGENERATE)
    assert_same_run(ours, loop)


@pytest.mark.parametrize("name", ["EII", "EEI", "EEE"])
def test_a_hard_component_without_rows_moves_as_in_the_loop(name: str) -> None:
    points = clouds(10, 200, 2, 3)
    family = family_of(Structure(name), points, membership="hard")
    start = from_labels(rows_of(points), family, nearest_of(points, 4), 4)
    start.mean[2] = 1e3
    ours, loop = (run(rows_of(points), [family], [start], stop=STOP)[0] for run in (run_quick, run_starts))
    assert_same_run(ours, loop)
    assert np.abs(ours.params.mean).max() < 100


@pytest.mark.parametrize("name", ["EII", "VVI"])
def test_a_soft_component_without_rows_has_vanished(name: str) -> None:
    points = clouds(11, 200, 2, 3)
    family = family_of(Structure(name), points)
    start = from_labels(rows_of(points), family, nearest_of(points, 4), 4)
    start.mean[2] = 1e3
    ours, loop = (run(rows_of(points), [family], [start], stop=STOP)[0] for run in (run_quick, run_starts))
    assert ours.status == "component_vanished"
    assert_same_run(ours, loop)


# --- ends, threads, interrupts ----------------------------------------------------------------------------


def many(points: Array) -> tuple[list[Gaussian], list[object]]:
    """Structures and K side by side."""
    rows, families, starts = rows_of(points), [], []
    for structure in STRUCTURES:
        for k in (1, 3):
            families.append(family_of(structure, points))
            starts.append(from_labels(rows, families[-1], nearest_of(points, k), k))
    return families, starts


def bits(runs: list[Run]) -> list[tuple[object, ...]]:
    return [
        (run.status, run.reason, [record.cost for record in run.trace], run.params.mean.tobytes())
        for run in runs
    ]


def test_threads_and_legs_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    points = clouds(12, 300, 3, 3)
    families, starts = many(points)
    alone = bits(run_quick(rows_of(points), families, starts, stop=STOP))
    assert bits(run_quick(rows_of(points, threads=2), families, starts, stop=STOP)) == alone
    monkeypatch.setattr(quick, "LEG_SECONDS", 0.0)  # a pass a call
    assert bits(run_quick(rows_of(points), families, starts, stop=STOP)) == alone
    assert {reason for _, reason, _, _ in alone} >= {TOLERANCE}


def test_limits() -> None:
    points = clouds(13, 200, 2, 3)
    families, starts = many(points)
    short = run_quick(rows_of(points), families, starts, stop=Stop(tolerance=-1.0, max_passes=2))
    assert {run.reason for run in short if len(run.trace) == 2} >= {PASS_LIMIT}
    assert all(len(run.trace) <= 2 for run in short)
    late = run_quick(rows_of(points), families, starts, stop=Stop(deadline=Deadline.after(0.0)))
    assert {run.reason for run in late} == {TIME_LIMIT}
    assert not any(run.trace for run in late)


def test_the_callback_hears_of_every_run_that_ends() -> None:
    points = clouds(14, 200, 2, 3)
    families, starts = many(points)
    events: list[Event] = []
    runs = run_quick(rows_of(points), families, starts, stop=STOP, callback=events.append)
    assert [event.n_running for event in events] == [*range(len(runs) - 1, -1, -1)]
    assert events[-1].best_cost == min(run.cost for run in runs)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_keeps_what_was_reached(threads: int) -> None:
    points = clouds(15, 300, 3, 3)
    families, starts = many(points)

    def interrupt(event: Event) -> None:
        raise KeyboardInterrupt

    runs = run_quick(rows_of(points, threads=threads), families, starts, stop=STOP, callback=interrupt)
    assert runs[0].reason not in ("", INTERRUPTED)
    assert runs[-1].reason == INTERRUPTED
    assert all(run.reason for run in runs)


def test_what_is_not_plain_goes_through_the_loop() -> None:
    points = clouds(16, 200, 2, 2)
    rows, label = rows_of(points), nearest_of(points, 2)
    prior = Prior.from_table(np.zeros(2), np.cov(points.T), 2)
    plain, with_prior = (family_of(Structure("VVV"), points, prior=p) for p in (None, prior))
    starts = [from_labels(rows, family, label, 2) for family in (plain, with_prior)]
    families = [plain, with_prior]
    ours, loop = (run(rows, families, starts, stop=STOP) for run in (run_quick, run_starts))
    assert_same_run(ours[0], loop[0])
    assert bits(ours[1:]) == bits(loop[1:])
    unready = plain.start(points[:2])  # not yet from an update
    assert run_quick(rows, [plain], [unready], stop=STOP)[0].cost < inf

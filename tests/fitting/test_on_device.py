"""Fits over rows on a device are those in memory: the same passes by other kernels, here their twins in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from ilk import kernels
from ilk.engines.memory import MemoryRows
from ilk.families.centroid import Means
from ilk.fitting.loop import Stop, run_starts
from ilk.fitting.parallel import parallel_centres
from ilk.fitting.reservoir import Repeats
from ilk.fitting.restarts import Recipe, named_starts
from ilk.table.condition import encoding_of, survey
from tests.engines.twin import TwinParts, TwinRows

pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="with NumPy's kernels no step goes to a device")


def numbers(seed=0, n=700, gaps=0.0):
    """Three groups of four columns, with some far outliers, and holes."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(3, 4))[draw.integers(0, 3, n)] * 4 + draw.standard_t(3, size=(n, 4))
    x[draw.random(x.shape) < gaps] = np.nan
    return x


def mixed(n=700, gaps=0.1):
    """Numbers, counts and categories, some cells missing."""
    draw = np.random.default_rng(1)
    group = draw.integers(0, 3, n)
    visits = draw.poisson(np.array([1.0, 4, 9])[group]).astype(float)
    size, width = np.array([[0.0, 4, 8], [5, 0, 9]])[:, group] + draw.normal(size=(2, n))
    for column in (visits, size, width):
        column[draw.random(n) < gaps] = np.nan
    colour = np.array(["red", "green", "blue"])[(group + (draw.random(n) < 0.1)) % 3]
    return {"visits": visits, "size": size, "width": width, "colour": colour}


@pytest.fixture
def twins(monkeypatch):
    """Estimators fit rows that lie on a device as far as they can tell; the last of them is given."""
    made = []

    def asked_rows(rows, device, **_):
        made.append(TwinRows(rows))
        return made[-1]

    for module in ("base", "tables"):
        monkeypatch.setattr(f"ilk.estimators.{module}.asked_rows", asked_rows)
    return made


def alike(one, other):
    assert one.fit_.cost == pytest.approx(other.fit_.cost, rel=1e-8)
    assert np.array_equal(one.labels_, other.labels_)
    assert np.allclose(one.means_, other.means_, rtol=1e-6, atol=1e-9)


OPTIONS = {"random_state": 0, "max_iter": 12, "tol": 0.0}
CASES = [
    (lambda: ilk.StudentMixture(3, **OPTIONS), 0.0, {"student_tails", "student_step", "student_labels"}),
    (lambda: ilk.StudentMixture(3, dof=4.0, **OPTIONS), 0.0, {"student_step", "student_labels"}),
    (
        lambda: ilk.StudentMixture(2, structure="VVI", dof="shared", noise=True, **OPTIONS),
        0.0,
        {"student_tails", "student_step", "student_labels"},
    ),
    (lambda: ilk.StudentMixture(2, structure="EEE", noise=True, **OPTIONS), 0.0, {"student_tails"}),
    (lambda: ilk.StudentMixture(3, membership="hard", **OPTIONS), 0.0, {"student_tails"}),
    (lambda: ilk.StudentMixture(3, trim=0.05, dof=5.0, **OPTIONS), 0.0, {"student_step"}),
    (lambda: ilk.StudentMixture(2, **OPTIONS), 0.05, {"student_tails", "student_step"}),
    (lambda: ilk.GaussianMixture(3, structure="VVI", **OPTIONS), 0.05, {"product_step", "product_labels"}),
    (lambda: ilk.GaussianMixture(3, structure="EII", noise=True, **OPTIONS), 0.05, {"product_step"}),
    (lambda: ilk.GaussianMixture(3, structure="VVV", **OPTIONS), 0.05, {"mixture_step"}),
    (lambda: ilk.GaussianMixture(3, structure="EEE", **OPTIONS), 0.05, {"mixture_step"}),
    (lambda: ilk.GaussianMixture(2, structure="VVE", noise=True, **OPTIONS), 0.05, {"mixture_step"}),
]


@pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")
@pytest.mark.parametrize(("make", "gaps", "asked"), CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_mixtures(twins, make, gaps, asked, weighted, monkeypatch):
    x = numbers(gaps=gaps)
    weight = np.random.default_rng(5).integers(1, 4, len(x)) / 2 if weighted else None
    there = make().fit(x, sample_weight=weight)
    assert asked <= set(twins[-1].asked)
    assert not twins[-1].told
    monkeypatch.undo()
    alike(there, make().set_params(device="cpu").fit(x, sample_weight=weight))


@pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")
@pytest.mark.parametrize("options", [{}, {"membership": "hard"}, {"structure": "EII"}, {"trim": 0.05}])
def test_counts(twins, options, monkeypatch):
    table = mixed()
    model = {"types": {"visits": "count"}, "smoothing": 1, **OPTIONS, **options}
    there = ilk.MixedMixture(3, **model).fit(table)
    assert {"product_step", "product_labels"} <= set(twins[-1].asked)
    assert not twins[-1].told
    monkeypatch.undo()
    here = ilk.MixedMixture(3, device="cpu", **model).fit(table)
    alike(there, here)
    assert np.allclose(there.rates_["visits"], here.rates_["visits"])


@pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")
@pytest.mark.parametrize(
    ("make", "table"),
    [
        (lambda: ilk.MixedMixture(2, structure="VVV", **OPTIONS), mixed()),
        (lambda: ilk.GaussianMixture(2, trim=0.1, **OPTIONS), numbers(gaps=0.05)),
        (lambda: ilk.StudentMixture(2, structure="VVI", **OPTIONS), numbers(gaps=0.05)),
    ],
)
def test_what_has_no_kernel_is_the_cpus_and_said(twins, make, table, monkeypatch):
    there = make().fit(table)
    assert len(set(twins[-1].told)) == 1
    assert "has no kernel" in twins[-1].told[0]
    monkeypatch.undo()
    here = make().set_params(device="cpu").fit(table)
    assert there.fit_.cost == here.fit_.cost
    assert np.array_equal(there.labels_, here.labels_)


def test_seeds_of_all_rows_are_drawn_by_costs_that_the_device_tells():
    x = numbers(n=3000)
    memory = MemoryRows(x, encoding_of(x, survey(x)))
    there = TwinRows(memory)
    centres = [parallel_centres(rows, 4, Repeats.of(rows, 7), 0) for rows in (memory, there)]
    assert np.array_equal(*centres)
    assert set(there.asked) == {"nearest", "nearest_step"}


@pytest.mark.parametrize("weighted", [False, True])
def test_each_part_of_a_table_serves_all_models(weighted):
    x = numbers(n=3000)
    weight = np.random.default_rng(5).integers(1, 4, len(x)) / 2 if weighted else None
    memory = MemoryRows(x, encoding_of(x, survey(x)), weight=weight)
    there, stop = TwinParts(memory), Stop(max_passes=7)
    points = memory.sample(30, 0).numbers.astype(np.float64)
    starts = [Means().start(points[first : first + k]) for first, k in ((0, 3), (5, 4), (11, 3), (20, 6))]
    here, other = (run_starts(rows, [Means()] * 4, starts, stop=stop) for rows in (memory, there))
    assert there.readings == max(len(run.trace) for run in other)
    assert there.asked.count("nearest_step") == 3 * sum(len(run.trace) for run in other)
    for one, two in zip(here, other, strict=True):
        assert np.array_equal(one.params.centre, two.params.centre)
        assert one.reason == two.reason


def test_the_start_of_a_sample_is_drawn_by_distances_that_the_device_tells():
    x = numbers(n=3000)
    memory = MemoryRows(x, encoding_of(x, survey(x)))
    there, recipe = TwinRows(memory), Recipe("k-means", Means(), n_starts=2)
    sample = memory.sample(900, 3)
    one, other = (named_starts(sample, recipe, 6, 3, rows) for rows in (memory, there))
    assert np.array_equal(one, other)
    assert there.asked == ["distances"] * 2 * 6

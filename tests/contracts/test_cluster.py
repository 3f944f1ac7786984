"""What engines on clusters promise: the labels of the engine in memory, and its parameters to the last digits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ilk.engines.base import Rows
from ilk.engines.frames import frame_of
from ilk.engines.memory import MemoryRows
from ilk.engines.packed import Layout, NumberPacker
from ilk.families.covariance import Structure
from ilk.families.gaussian import Gaussian
from ilk.families.opening import OpenMeans
from ilk.families.student import Student
from ilk.fitting.fit import Fit
from ilk.fitting.loop import Stop
from ilk.fitting.mixture import MixturePlan, fit_mixture
from ilk.fitting.opening import fit_batched
from ilk.fitting.restarts import Recipe, fit_recipe
from ilk.fitting.table_moments import table_moments
from ilk.recipes import K_MEANS, K_MEDIANS, TRIMMED_K_MEANS
from ilk.table.block import Array
from ilk.table.condition import encoding_of, survey
from tests.engines.clusters import NEEDED, Cluster, running

pytestmark = [
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(os.environ.get("ILK_KERNELS") == "numpy", reason="tried with the compiled kernels"),
]

N_ROWS = 70_000  # more than a sample holds
SHORT = Stop(max_passes=6)


@pytest.fixture(scope="module", params=list(NEEDED))
def cluster(request) -> Iterator[Cluster]:
    with running(request.param) as found:
        yield found


def clouds(gaps: float = 0.0) -> Array:
    draws = np.random.default_rng(3)
    X = draws.normal(size=(N_ROWS, 3)) + 6.0 * draws.integers(0, 2, size=(N_ROWS, 1)) * [1.0, 0.5, 0.0]
    X[draws.random(X.shape) < gaps] = np.nan
    return X + 1000.0


def weights() -> Array:
    return np.random.default_rng(4).integers(0, 3, size=N_ROWS).astype(float)


def both(cluster: Cluster, X: Array, weight: Array | None = None) -> tuple[MemoryRows, Any]:
    """The same rows in memory and on the cluster, in four parts."""
    facts = survey(X, weight=weight)
    encoding = encoding_of(X, facts, weight=weight)
    here = MemoryRows(X, encoding, weight=weight, complete=facts.complete)
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])} | ({} if weight is None else {"heft": weight})
    layout = Layout("float64", X.shape[1], weighted=weight is not None)
    frame = frame_of(cluster.frame(columns, 4))
    assert frame is not None
    there = frame.rows(list(columns), NumberPacker(layout), layout, 1)
    return here, there.encoded(encoding, facts.complete)


@pytest.fixture(scope="module")
def plain(cluster: Cluster) -> tuple[MemoryRows, Any]:
    return both(cluster, clouds())


@pytest.fixture(scope="module")
def weighted(cluster: Cluster) -> tuple[MemoryRows, Any]:
    return both(cluster, clouds(gaps=0.02), weights())


def gaussian(rows: Rows) -> Fit:
    family = Gaussian(Structure.parse("VVV"), table_moments(rows).variance)
    return fit_mixture(rows, family, 2, 0, MixturePlan(n_init=2, stop=SHORT))


def student(rows: Rows) -> Fit:
    family = Student(Structure.parse("VEE"), table_moments(rows).variance)
    return fit_mixture(rows, family, 2, 0, MixturePlan(n_init=1, stop=SHORT))


def recipe(base: Recipe, k: int) -> Callable[[Rows], Fit]:
    return lambda rows: fit_recipe(rows, replace(base, n_starts=2, stop=SHORT), k, 0)


METHODS = {
    "k-means": recipe(K_MEANS, 3),
    "k-medians": recipe(K_MEDIANS, 2),
    "trimmed": recipe(TRIMMED_K_MEANS, 2),
    "dp-means": lambda rows: fit_batched(rows, OpenMeans(open_cost=0.6), None, 0, SHORT),
    "gaussian": gaussian,
    "student": student,
}


def same_parameters(one: Any, other: Any) -> None:
    """To 1e-9; covariances as matrices, whose axes have no sign."""
    for name in ("centre", "weight", "mixing", "mean"):
        if hasattr(one, name):
            np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-9, atol=1e-12)
    if hasattr(one, "covariance"):
        matrices = one.covariance.matrices()
        scale = np.abs(matrices).max()
        np.testing.assert_allclose(other.covariance.matrices(), matrices, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_the_labels_and_parameters_of_memory(plain, method):
    here, there = (METHODS[method](rows) for rows in plain)
    assert np.array_equal(here.labels, there.labels)
    same_parameters(here.params, there.params)
    assert there.cost == pytest.approx(here.cost, rel=1e-12)
    assert there.n_passes == here.n_passes


@pytest.mark.parametrize("method", ["k-means", "dp-means", "gaussian"])
def test_weights_and_missing_cells(weighted, method):
    here, there = (METHODS[method](rows) for rows in weighted)
    assert np.array_equal(here.labels, there.labels)
    same_parameters(here.params, there.params)


def test_sums_have_the_bits_of_memory(plain):
    """Exact sums do not depend on the parts in which a table lies."""
    here, there = (METHODS["k-means"](rows).params.centre for rows in plain)
    assert np.array_equal(here, there)


def test_samples_and_rows_are_those_of_memory(plain, weighted):
    for here, there in (plain, weighted):
        for n_rows in (1000, N_ROWS):
            one, other = here.sample(n_rows, 5), there.sample(n_rows, 5)
            assert np.array_equal(one.raw, other.raw, equal_nan=True)
        rows = np.array([N_ROWS - 1, 0, 31_234, 0])
        one, other = here.take(rows), there.take(rows)
        assert np.array_equal(one.raw, other.raw, equal_nan=True)
        assert np.array_equal(one.weights, other.weights)
        assert there.take(np.arange(0)).raw.shape == (0, 3)

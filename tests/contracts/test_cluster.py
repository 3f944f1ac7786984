"""What engines on clusters promise: the labels of the engine in memory, and its parameters to the last digits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ilk
from ilk.assorted.columns import assort
from ilk.assorted.fit import SearchOptions, fit_assorted
from ilk.assorted.problem import ModelOptions
from ilk.engines import packed
from ilk.engines import spark_local as near
from ilk.engines.base import Rows
from ilk.engines.frames import frame_of
from ilk.engines.memory import MemoryRows
from ilk.engines.packed import NumberPacker, PackLayout
from ilk.engines.stream import StreamRows
from ilk.errors import DataError, UsageError
from ilk.families.centroid import Means
from ilk.families.covariance import STRUCTURES, Structure
from ilk.families.gaussian import Gaussian
from ilk.families.opening import OpenMeans
from ilk.fitting.coreset import coreset
from ilk.fitting.fit import Fit, fit
from ilk.fitting.loop import Stop, run_starts
from ilk.fitting.mixture import MixturePlan, fit_mixture
from ilk.fitting.opening import fit_batched
from ilk.fitting.restarts import Recipe, fit_recipe, from_labels
from ilk.fitting.table_moments import table_moments
from ilk.methods import K_MEANS, K_MEDIANS, TRIMMED_K_MEANS
from ilk.table.block import Array
from ilk.table.condition import encoding_of, survey
from tests.engines.clusters import NEEDED, Cluster, CodePacker, Mortal

pytestmark = [
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(os.environ.get("ILK_KERNELS") == "numpy", reason="tried with the compiled kernels"),
]
on_all = pytest.mark.parametrize("cluster", list(NEEDED), indirect=True, scope="session")
on_most = pytest.mark.parametrize(  # what Connect does with the calls of classic Spark is shown by the others
    "cluster",
    [pytest.param(kind, marks=pytest.mark.slow if kind == "connect" else ()) for kind in NEEDED],
    indirect=True,
    scope="session",
)
on_dask = pytest.mark.parametrize(  # hundreds of passes: with a Spark job for each they take long
    "cluster",
    [pytest.param(kind, marks=() if kind == "dask" else pytest.mark.slow) for kind in NEEDED],
    indirect=True,
    scope="session",
)

N_ROWS = 70_000  # more than a sample holds
SHORT = Stop(max_passes=3)


@pytest.fixture(scope="module", autouse=True)
def far() -> Iterator[None]:
    """The workers of a test run on this machine, and rows are few; passes go to the workers all the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near, "local_workers", lambda session: None)
        patch.setattr(packed, "BROUGHT_BYTES", 0)
        yield


def clouds(gaps: float = 0.0) -> Array:
    draws = np.random.default_rng(3)
    X = draws.normal(size=(N_ROWS, 3)) + 6.0 * draws.integers(0, 2, size=(N_ROWS, 1)) * [1.0, 0.5, 0.0]
    X[draws.random(X.shape) < gaps] = np.nan
    return X + 1000.0


def weights() -> Array:
    return np.random.default_rng(4).integers(0, 3, size=N_ROWS).astype(float)


def both(cluster: Cluster, X: Array, weight: Array | None = None) -> tuple[MemoryRows, Any]:
    """The same rows in memory and on the cluster."""
    facts = survey(X, weight=weight)
    encoding = encoding_of(X, facts, weight=weight)
    here = MemoryRows(X, encoding, weight=weight, complete=facts.complete)
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])} | ({} if weight is None else {"heft": weight})
    layout = PackLayout("float64", X.shape[1], weighted=weight is not None)
    frame = frame_of(cluster.frame(columns))
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
    return fit_mixture(rows, family, 2, 0, MixturePlan(n_init=1, stop=SHORT))


def recipe(base: Recipe, k: int, n_passes: int, n_starts: int = 2) -> Callable[[Rows], Fit]:
    short = replace(base, n_starts=n_starts, stop=Stop(max_passes=n_passes))
    return lambda rows: fit_recipe(rows, short, k, 0)


METHODS = {
    "k-means": recipe(K_MEANS, 3, 4),
    "k-means||": recipe(replace(K_MEANS, init="k-means||"), 3, 1, n_starts=1),
    "k-medians": recipe(K_MEDIANS, 2, 1),
    "trimmed": recipe(TRIMMED_K_MEANS, 2, 1),
    "dp-means": lambda rows: fit_batched(rows, OpenMeans(open_cost=0.6), None, 0, SHORT),
    "gaussian": gaussian,
}
OFTEN = (
    "k-means",
    "k-means||",
)  # the others run with weights and blanks below; order statistics take many passes


def same_parameters(one: Any, other: Any) -> None:
    """To 1e-9, centres to the bit; covariances as matrices, whose axes have no sign."""
    if hasattr(one, "centre"):
        assert np.array_equal(one.centre, other.centre)
        return
    for name in ("mixing", "mean"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-9, atol=1e-12)
    matrices = one.covariance.matrices()
    scale = np.abs(matrices).max()
    np.testing.assert_allclose(other.covariance.matrices(), matrices, rtol=1e-9, atol=1e-9 * scale)


@on_all
@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=() if name in OFTEN else pytest.mark.slow) for name in METHODS]
)
def test_every_method_gives_the_labels_and_parameters_of_memory(plain, method):
    here, there = (METHODS[method](rows) for rows in plain)
    assert np.array_equal(here.labels, there.labels)
    same_parameters(here.params, there.params)
    assert there.cost == pytest.approx(here.cost, rel=1e-12)
    assert there.n_passes == here.n_passes


@on_all
@pytest.mark.parametrize("method", ["dp-means", "gaussian"])
def test_weights_and_missing_cells(weighted, method):
    here, there = (METHODS[method](rows) for rows in weighted)
    assert np.array_equal(here.labels, there.labels)
    same_parameters(here.params, there.params)


def all_close(one: Any, other: Any) -> None:
    """To 1e-9 of the largest, through all that parameters are made of; what is counted is the same."""
    if isinstance(one, dict):
        one, other = list(one.items()), list(other.items())
    if isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            all_close(mine, theirs)
    elif isinstance(one, (np.ndarray, float)) and np.asarray(one).dtype.kind == "f":
        largest = np.nanmax(np.abs(one), initial=0.0, where=np.isfinite(one))
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9 * largest)
    else:
        assert np.array_equal(one, other)


@on_all
def test_all_structures_share_their_passes(plain, monkeypatch):
    """Fourteen models, and as many passes over the rows as one of them takes."""
    here, there = plain
    few = MemoryRows.of_block(here.sample(500, 1))
    label = fit_recipe(few, K_MEANS, 2, 0).labels
    variance = table_moments(few).variance
    families = [Gaussian(structure, variance) for structure in STRUCTURES]
    starts = [from_labels(few, family, label, 2) for family in families]
    n_passes = []
    reduce = type(there).reduce
    monkeypatch.setattr(type(there), "reduce", lambda *args: n_passes.append(1) or reduce(*args))
    alone, shared = (run_starts(rows, families, starts, stop=SHORT) for rows in (here, there))
    assert len(n_passes) == SHORT.max_passes
    for one, other in zip(alone, shared, strict=True):
        same_parameters(one.params, other.params)
        assert other.cost == pytest.approx(one.cost, rel=1e-12)


@on_dask
def test_an_assorted_table_grows_on_all_rows(cluster):
    """Searched on a sample that lacks a rare cluster, which is born among all rows."""
    draws = np.random.default_rng(8)
    X = draws.normal(size=(6000, 2)) + 6.0 * draws.integers(0, 2, size=(6000, 1))
    X[100:160] = draws.normal(size=(60, 2)) * 0.1 + [30.0, -30.0]
    codes = np.stack([(X[:, 0] > 3) ^ (draws.random(6000) < 0.1), draws.integers(0, 3, 6000)], 1)
    facts = survey(X)
    known: dict[str, Any] = {"encoding": encoding_of(X, facts), "complete": True}
    layout = PackLayout("float64", 2, n_codes=2)
    cells = np.hstack([X, codes])
    frame = frame_of(cluster.frame({f"x{j}": cells[:, j] for j in range(4)}))
    assert frame is not None
    there = frame.rows([f"x{j}" for j in range(4)], CodePacker(layout), layout, 1).encoded(**known)
    here = MemoryRows(X, codes=codes.astype(np.int32), **known)
    quest = SearchOptions(n_starts=1, most=4, rescale=False, stop=SHORT, search_rows=200)

    def grown(rows: Rows) -> Any:
        plan = assort(rows, ["a", "b"], [("side", ("left", "right")), ("kind", ("x", "y", "z"))])
        return fit_assorted(rows, plan, ModelOptions(), quest, 0)

    one, other = grown(here), grown(there)
    assert [cell.k for cell in one.candidates] == [cell.k for cell in other.candidates]
    assert 60 in one.fit.size
    assert np.array_equal(one.fit.labels, other.fit.labels)
    all_close(asdict(one.params), asdict(other.params))
    assert other.cost == pytest.approx(one.cost, rel=1e-12)


@on_all
def test_samples_and_rows_are_those_of_memory(plain, weighted):
    for (here, there), n_rows in ((plain, N_ROWS), (weighted, 1000)):
        one, other = here.sample(n_rows, 5), there.sample(n_rows, 5)
        assert np.array_equal(one.raw, other.raw, equal_nan=True)
    rows = np.array([N_ROWS - 1, 0, 31_234, 0])
    one, other = here.take(rows), there.take(rows)
    assert np.array_equal(one.raw, other.raw, equal_nan=True)
    assert np.array_equal(one.weights, other.weights)
    assert there.take(np.arange(0)).raw.shape == (0, 3)
    one, other = coreset(here, 1000, 5), coreset(there, 1000, 5)
    assert np.array_equal(one.raw, other.raw, equal_nan=True)
    assert other.weight == pytest.approx(one.weight, rel=1e-9)


@on_all
def test_a_worker_that_is_killed_in_a_pass_changes_nothing(plain, tmp_path):
    here, there = plain
    start = Means().start(here.sample(3, 0).numbers)
    mortal = Mortal(sign=str(tmp_path / "struck"))
    alone = fit(here, Means(), [start], stop=SHORT)
    struck = fit(there, mortal, [start], stop=SHORT)
    assert (tmp_path / "struck").exists()
    assert np.array_equal(alone.labels, struck.labels)
    assert np.array_equal(alone.params.centre, struck.params.centre)
    assert alone.cost == struck.cost


@on_all
def test_few_rows_are_brought_here(plain, monkeypatch):
    here, there = plain
    n_bytes = N_ROWS * there.layout.row_bytes
    monkeypatch.setattr(packed, "BROUGHT_BYTES", n_bytes - 1)
    assert packed.brought(there) is there
    monkeypatch.setattr(packed, "BROUGHT_BYTES", n_bytes)
    brought = packed.brought(there)
    assert isinstance(brought, StreamRows)
    assert np.array_equal(brought.raw, here.raw)
    assert brought.encoding is there.encoding


@on_most
def test_an_estimator_fits_a_frame_and_answers_with_one(cluster):
    X = clouds(gaps=0.01)[:5000]
    columns = {"a": X[:, 0], "b": X[:, 1].astype(np.float32), "c": np.arange(5000) % 7}
    native = cluster.frame({**columns, "heft": weights()[:5000]})
    local = np.column_stack(list(columns.values()))
    options = {"scale": "standard", "random_state": 0, "n_init": 1, "max_iter": 4}
    here = ilk.KMeans(2, **options).fit(local, sample_weight=weights()[:5000])
    there = ilk.KMeans(2, **options).fit(native, sample_weight="heft")
    assert np.array_equal(here.labels_, there.labels_)
    np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, rtol=1e-9)
    assert there.feature_names_in_.tolist() == ["a", "b", "c"]
    answer = cluster.arrow(there.predict(native))
    assert np.array_equal(answer["label"].to_numpy(), here.labels_)


KINDS_OF_MODELS = {
    "mixed": ilk.MixedMixture(2, n_init=1, max_iter=3, random_state=0),
    "assorted": ilk.AssortedMixture(max_components=2, n_init=1, max_iter=20, random_state=0),
    "process": ilk.DirichletProcessMixture(3, max_iter=3, random_state=0),
    "craft": ilk.CRAFT(2.0, max_iter=2, random_state=0),
    "binary": ilk.BinaryDPMeans(500.0, binarize=0.0, max_iter=3),
}


@on_all
@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS_OF_MODELS)
def test_every_kind_of_model_takes_a_frame(cluster, name):
    columns = mixed_columns()
    if name == "binary":
        del columns["kind"]
    model, native = KINDS_OF_MODELS[name], cluster.frame(columns)
    here = model.fit(pd.DataFrame(columns))
    labels, params = here.labels_, here.fit_.params
    assert len(np.unique(labels)) > 1
    there = model.fit(native)
    assert np.array_equal(labels, there.labels_)
    all_close(asdict(params), asdict(there.fit_.params))
    assert np.array_equal(cluster.arrow(there.predict(native))["label"], labels)


@on_most
def test_frames_that_cannot_be_fitted_are_refused(cluster):
    text = cluster.frame({"a": np.arange(4.0), "kind": ["x", "y", "x", "y"]})
    with pytest.raises(DataError, match=r"'kind' holds .*string, not numbers"):
        ilk.KMeans(2).fit(text)
    endless = cluster.frame({"a": np.array([1.0, np.inf, 3.0])})
    with pytest.raises(DataError, match="1 in 'a'; first in row 1"):
        ilk.KMeans(2).fit(endless)
    few = cluster.frame({"a": np.array([1.0, 2.0]), "heft": np.array([1.0, -1.0])})
    with pytest.raises(DataError, match="1 weights are missing, infinite or negative"):
        ilk.KMeans(2).fit(few, sample_weight="heft")
    with pytest.raises(UsageError, match="not the name of a column"):
        ilk.KMeans(2).fit(few, sample_weight=[1.0, 1.0])


def mixed_columns() -> dict[str, Any]:
    draws = np.random.default_rng(6)
    group = draws.integers(0, 2, size=3000)
    size = draws.normal(size=3000) + 5 * group
    size[::40] = np.nan
    kind = np.where(draws.random(3000) < 0.9, np.array(["low", "high"])[group], "low")
    return {"size": size, "kind": kind.tolist(), "length": draws.normal(size=3000) - 4 * group}


@on_most
def test_the_main_job_takes_a_frame_and_labels_it(cluster, monkeypatch):
    columns = mixed_columns()
    native = cluster.frame(columns)
    here, there = (ilk.cluster(data, k=range(1, 4)) for data in (columns, native))
    assert np.array_equal(here.labels, there.labels)
    assert [g.name for g in here.groups] == [g.name for g in there.groups]
    assert "sampled-frame" not in dict(there.warnings)
    answer = cluster.arrow(there.assign(native))
    assert answer["group"].to_pylist() == [here.model.letters[g] for g in here.labels]
    np.testing.assert_allclose(answer["probability"], here.assign(columns)["probability"], atol=1e-4)


@on_most
def test_a_large_frame_is_polished_on_all_rows(cluster, monkeypatch):
    """From a sample of a third the parameters of all rows are reached."""
    monkeypatch.setattr("ilk.analysis.on_cluster.SAMPLE_ROWS", 1000)
    numbers = {"length": mixed_columns()["length"]}
    here, there = (ilk.cluster(data, k=2, method="gaussian") for data in (numbers, cluster.frame(numbers)))
    assert "sampled-frame" in dict(there.warnings)
    assert 600 < len(there.labels) < 1400
    means = [np.sort(found.model.encoding.undo(found.model.params.mean)[:, 0]) for found in (here, there)]
    np.testing.assert_allclose(*means, rtol=1e-3)


@on_most
def test_the_best_models_of_a_sample_decide_on_all_rows(cluster, monkeypatch):
    """Two groups, one a little wider: a thousand rows do not show it, and forty thousand do."""
    monkeypatch.setattr("ilk.analysis.on_cluster.SAMPLE_ROWS", 1000)
    run, n_passes = ilk.analysis.on_cluster.run_starts, []
    monkeypatch.setattr(
        "ilk.analysis.on_cluster.run_starts", lambda *a, **b: n_passes.append(len(a[1])) or run(*a, **b)
    )
    draws, label = np.random.default_rng(9), np.arange(40_000) % 2
    X = draws.normal(size=(40_000, 2)) * np.array([1, 1.04])[label][:, None] + 8.0 * label[:, None]
    found = ilk.cluster(cluster.frame({"a": X[:, 0], "b": X[:, 1]}), k=2, method="gaussian")
    assert n_passes == [3]
    on_sample = min((c for c in found.candidates if c.bic), key=lambda c: c.bic)
    assert on_sample.structure == "EII"
    assert found.summary()["chosen"]["structure"] == "VII"


@on_most
@pytest.mark.slow
def test_a_large_frame_of_mixed_columns_is_polished_on_all_rows(cluster, monkeypatch):
    monkeypatch.setattr("ilk.analysis.on_cluster.SAMPLE_ROWS", 1000)
    columns = mixed_columns()
    native = cluster.frame(columns)
    here, there = (ilk.cluster(data, k=2) for data in (columns, native))
    answer = cluster.arrow(there.assign(native))["group"].to_pylist()
    agreed = np.mean(np.array(answer) == np.array(here.model.letters)[here.labels])
    assert max(agreed, 1 - agreed) > 0.99

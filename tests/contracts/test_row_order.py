"""The same answer whatever the order of the rows: K-means to the bit, mixtures to 1e-9, in memory and in pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ilk
from ilk.engines.memory import MemoryRows
from ilk.engines.stream import StreamRows
from ilk.fitting import coreset as coresets
from ilk.fitting.restarts import fit_recipe
from ilk.fitting.start import STARTS
from ilk.methods import K_MEANS
from ilk.table.condition import condition

DATA = Path(__file__).parents[1] / "data"
ORDERS = (1, 2)
STARTS_OF_K_MEANS = [*STARTS, "k-means||"]


def blobs(n, d, k, decimals=None, spread=1.0):
    draws = np.random.default_rng(n + k)
    X = draws.normal(0, 4, (k, d))[draws.integers(k, size=n)] + spread * draws.normal(size=(n, d))
    return X if decimals is None else X.round(decimals)


# Small ones; whole numbers with many equal rows and many equal distances; two that are larger than a sample.
SMALL = {
    "apart": blobs(500, 3, 4),
    "whole numbers": blobs(800, 2, 4, 0),
    "overlapping": blobs(1500, 5, 3, None, 3.0),
    "two blocks": blobs(40_000, 3, 4, 2),
}
LARGE = {"many": blobs(90_000, 4, 5, None, 2.0), "many whole numbers": blobs(90_000, 2, 4, 0, 2.0)}
TABLES = SMALL | LARGE


def orders(n):
    return [np.random.default_rng(seed).permutation(n) for seed in ORDERS]


def assert_same_to_the_bit(fit, X):
    first = fit(X)
    for order in orders(len(X)):
        again = fit(X[order])
        assert np.array_equal(first.labels_[order], again.labels_)
        assert np.array_equal(first.cluster_centers_, again.cluster_centers_)
        assert first.inertia_ == again.inertia_


@pytest.mark.parametrize("name", ["whole numbers", "overlapping", "many"])
@pytest.mark.parametrize("init", STARTS_OF_K_MEANS)
def test_k_means_from_every_start(name, init):
    if init == "ward" and len(TABLES[name]) > 1000:
        pytest.skip("linkage of 2,000 rows is slow")
    assert_same_to_the_bit(lambda X: ilk.KMeans(5, init=init, n_init=2, random_state=0).fit(X), TABLES[name])


@pytest.mark.parametrize("name", TABLES)
def test_dp_means(name):
    assert_same_to_the_bit(lambda X: ilk.DPMeans(target_clusters=4, random_state=0).fit(X), TABLES[name])


@pytest.mark.parametrize("name", TABLES)
def test_trimmed_and_weighted(name):
    X = TABLES[name]
    weight = np.random.default_rng(5).integers(0, 4, len(X)) / 4
    first = ilk.TrimmedKMeans(4, random_state=0).fit(X, sample_weight=weight)
    for order in orders(len(X)):
        again = ilk.TrimmedKMeans(4, random_state=0).fit(X[order], sample_weight=weight[order])
        assert np.array_equal(first.labels_[order], again.labels_)
        assert np.array_equal(first.cluster_centers_, again.cluster_centers_)


@pytest.mark.parametrize("name", TABLES)
def test_mixtures(name):
    X = TABLES[name]
    first = ilk.GaussianMixture(4, random_state=0).fit(X)
    for order in orders(len(X)):
        again = ilk.GaussianMixture(4, random_state=0).fit(X[order])
        assert np.array_equal(first.labels_[order], again.labels_)
        assert np.allclose(first.means_, again.means_, rtol=1e-9, atol=1e-9)
        assert again.bic(X) == pytest.approx(first.bic(X), rel=1e-9)


@pytest.mark.parametrize("name", ["apart", "whole numbers", "overlapping"])
def test_the_assorted_model(name):
    X = SMALL[name]
    first = ilk.AssortedMixture(random_state=0).fit(X)
    for order in orders(len(X)):
        again = ilk.AssortedMixture(random_state=0).fit(X[order])
        assert np.array_equal(first.labels_[order], again.labels_)
        assert again.fit_.cost == pytest.approx(first.fit_.cost, rel=1e-9)


def made_mixed(n):
    draws = np.random.default_rng(n)
    z = draws.integers(3, size=n)
    gaps = np.where(draws.random(n) < 0.1, np.nan, draws.normal(size=n))
    return pd.DataFrame(
        {
            "a": draws.normal(z * 3.0, 1, n),
            "b": np.exp(draws.normal(z * 0.8, 0.5, n)).round(2),
            "c": np.array(list("uvwx"))[np.minimum(z + draws.integers(2, size=n), 3)],
            "d": draws.poisson(2 + 4 * (z == 1), n),
            "e": gaps,
        }
    )


def far_out():
    """A column whose median is looked for, with more rows than are looked at."""
    X = blobs(2500, 2, 3)
    X[:2, 0] = 1e9
    return pd.DataFrame(X, columns=["x", "y"])


FILES = [
    "penguins", "zoo", "soybean_small", "heart_cleveland", "craft_binary_disjoint", "wine", "votes",
    "breast_cancer_wisconsin", "made_mixed", "made_places", "seven_normals_outliers",
]  # fmt: skip
MADE = {"mixed": made_mixed(700), "more than a search": made_mixed(4500), "far out": far_out()}


def assert_same_answer(table):
    first = ilk.cluster(table, seed=0)
    for order in orders(len(table)):
        again = ilk.cluster(table.iloc[order].reset_index(drop=True), seed=0)
        assert again.k == first.k
        assert np.array_equal(np.asarray(first.labels)[order], again.labels)
        one, other = (r.summary()["chosen"] for r in (first, again))
        assert other["method"] == one["method"]
        assert other.get("bic") == pytest.approx(one.get("bic"), rel=1e-9)


@pytest.mark.parametrize("name", FILES)
def test_cluster(name):
    assert_same_answer(pd.read_csv(DATA / f"{name}.csv"))


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_cluster_of_made_tables(name):
    assert_same_answer(MADE[name])


@pytest.mark.parametrize("name", ["two blocks", *LARGE])
def test_streams_agree_with_memory_in_any_order(name):
    X = TABLES[name]
    memory = fit_recipe(MemoryRows(X, condition(X)), K_MEANS, 4, 0)
    for order in orders(len(X)):
        there = X[order]
        stream = fit_recipe(StreamRows(there, condition(there)), K_MEANS, 4, 0)
        assert np.array_equal(memory.labels[order], stream.labels)
        assert np.array_equal(memory.params.centre, stream.params.centre)
        one, other = (
            coresets.coreset(rows, 1000, 3)
            for rows in (MemoryRows(X, condition(X)), StreamRows(there, condition(there)))
        )
        assert np.array_equal(one.raw, other.raw)
        assert np.array_equal(one.weight, other.weight)


def test_parts_of_a_dask_frame_in_any_order():
    dask = pytest.importorskip("dask.dataframe")
    X = pd.DataFrame(LARGE["many"], columns=list("abcd"))
    first = ilk.KMeans(4, random_state=0).fit(X)
    mixture = ilk.GaussianMixture(3, random_state=0).fit(X)
    order = orders(len(X))[0]
    frame = dask.from_pandas(X.iloc[order].reset_index(drop=True), npartitions=5)
    again = ilk.KMeans(4, random_state=0).fit(frame)
    assert np.array_equal(first.cluster_centers_, again.cluster_centers_)
    assert np.array_equal(first.labels_[order], np.asarray(again.labels_))
    found = ilk.GaussianMixture(3, random_state=0).fit(frame)
    assert np.allclose(mixture.means_, found.means_, rtol=1e-9, atol=1e-9)


OF_DISTANCES = ["spectral", "typical-cuts", "affinity-propagation", "mean-shift", "information-bottleneck",
                "ward-linkage", "average-linkage"]  # fmt: skip


@pytest.mark.parametrize("method", OF_DISTANCES)
@pytest.mark.parametrize("table", ["penguins", "apart"])
def test_methods_of_distances(method, table):
    """What they draw, and the rows they are judged by, go by content too; penguins has equal rows."""
    if table == "penguins":
        data = pd.read_csv(DATA / "penguins.csv").dropna().iloc[::3]
        data = data.select_dtypes("number") if method == "mean-shift" else data
    else:
        data = pd.DataFrame(SMALL["apart"][:150], columns=list("abc"))
    first = ilk.cluster(data, method=method, seed=0)
    for order in orders(len(data)):
        again = ilk.cluster(data.iloc[order], method=method, seed=0)
        assert np.array_equal(np.asarray(first.labels)[order], again.labels)
        assert again.verdict.word == first.verdict.word
        one, other = (r.summary()["groups"] for r in (first, again))
        assert [g.get("stability") for g in other] == [g.get("stability") for g in one]


ESTIMATORS_OF_DISTANCES = {
    "spectral": lambda metric: ilk.SpectralClustering(4, metric=metric, random_state=0),
    "typical cuts": lambda metric: ilk.TypicalCuts(metric=metric, random_state=0),
    "affinity propagation": lambda metric: ilk.AffinityPropagation(metric=metric, random_state=0),
}


@pytest.mark.parametrize("given", ["rows", "distances"])
@pytest.mark.parametrize("name", ["apart", "whole numbers", "overlapping"])
@pytest.mark.parametrize("method", ESTIMATORS_OF_DISTANCES)
def test_estimators_of_methods_of_distances(method, name, given):
    """Distances have no cells: their rows are known by their sorted distances, where these differ. Affinity propagation
    may tell equal rows apart."""
    X = np.unique(SMALL[name][:200], axis=0)
    if given == "distances":
        X = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    make = ESTIMATORS_OF_DISTANCES[method]
    metric = "precomputed" if given == "distances" else "auto"
    first = make(metric).fit(X)
    for order in orders(len(X)):
        again = make(metric).fit(X[order][:, order] if given == "distances" else X[order])
        assert np.array_equal(first.labels_[order], again.labels_)
        if method == "affinity propagation":  # of equal rows any may stand for them
            one, other = first.cluster_centers_indices_, order[again.cluster_centers_indices_]
            assert np.array_equal(np.sort(X[one], axis=1), np.sort(X[other], axis=1))

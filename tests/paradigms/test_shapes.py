"""Groups of any shape: typical cuts, spectral clustering and single linkage where K-means fails."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from sklearn.cluster import AffinityPropagation, SpectralClustering

import ilk
from ilk.errors import DataError, IlkWarning
from ilk.measures import ari
from ilk.paradigms.distance import neighbour_graph
from tests.conftest import at_hand, table_path

SHAPED = [
    ilk.TypicalCuts(random_state=0),
    ilk.SpectralClustering("auto", random_state=0),
    ilk.HierarchicalClustering(2, linkage="single", min_size=10),
]
by_name = pytest.mark.parametrize("model", SHAPED, ids=lambda m: type(m).__name__)


def rings(n_rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """A ring around a blob."""
    draws = np.random.default_rng(4)
    angle, truth = draws.uniform(0, 2 * np.pi, n_rows), np.arange(n_rows) % 2
    radius = np.where(truth, 5.0, np.abs(draws.normal(0, 0.8, n_rows))) + draws.normal(0, 0.15, n_rows)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), truth


def ringed_disc() -> tuple[np.ndarray, np.ndarray]:
    """A disc (1) in a broad ring (2), and twelve outliers at the corners (0)."""
    draws = np.random.default_rng(4)
    angle, truth = draws.uniform(0, 2 * np.pi, 760), 1 + np.arange(760) % 2
    radius = np.where(truth == 1, np.sqrt(draws.random(760)) / 2, draws.normal(1.75, 0.15, 760))
    corner = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]) * 3.0
    outliers = np.concatenate([corner - 0.05, corner, corner + 0.05])
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return np.vstack([X, outliers]), np.append(truth, np.zeros(12, dtype=int))


def gagolewski(name: str) -> tuple[np.ndarray, np.ndarray]:
    with table_path(name).open(newline="") as file:
        header, *lines = list(csv.reader(file))
    cells = np.array(lines, dtype=np.float64)
    labels = [j for j, column in enumerate(header) if column.startswith("label")]
    return np.delete(cells, labels, axis=1), cells[:, labels[-1]].astype(int)


@by_name
def test_a_ring_is_a_group(model):
    X, truth = rings()
    assert ari(truth, ilk.KMeans(2, random_state=0).fit(X).labels_) < 0.5
    found = model.fit(X)
    assert found.n_clusters_ == 2
    assert ari(truth, found.labels_) > 0.98


def check_target(model, X: np.ndarray, truth: np.ndarray) -> None:
    """K-means reaches an ARI of 0.2 at best; outliers do not count."""
    counted = truth > 0
    assert ari(truth[counted], ilk.KMeans(2, random_state=0).fit(X).labels_[counted]) < 0.3
    labels = model.fit(X).labels_
    assert ari(truth[counted], labels[counted]) > 0.98


@by_name
def test_a_disc_in_a_ring_among_outliers(model):
    check_target(model, *ringed_disc())


@pytest.mark.parametrize("model", at_hand(SHAPED, lambda _: "fcps_target", lambda m: type(m).__name__))
def test_the_target_of_the_benchmark_suite(model):
    check_target(model, *gagolewski("fcps_target"))


@by_name
def test_units_and_offsets_do_not_matter(model):
    X, _ = rings(100)
    labels = model.fit(X).labels_
    np.testing.assert_array_equal(model.fit(X * 1e-150).labels_, labels)
    np.testing.assert_array_equal(model.fit(X * 1e150).labels_, labels)


@pytest.mark.parametrize("n_columns", [2, 5])
def test_one_cloud_is_one_cluster(n_columns):
    X = np.random.default_rng(n_columns).random((400, n_columns))
    assert ilk.TypicalCuts(random_state=0).fit(X).n_clusters_ == 1
    assert ilk.SpectralClustering("auto", random_state=0).fit(X).n_clusters_ == 1


def test_a_number_of_typical_cuts_that_cannot_be_is_told():
    X, _ = rings(120)
    with pytest.warns(IlkWarning, match="asked for 90 groups"):
        ilk.TypicalCuts(90, random_state=0).fit(X)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_spectral_clustering_is_that_of_scikit_learn(k):
    draws = np.random.default_rng(k)
    X = np.vstack([draws.normal(4 * g, 1, (40, 3)) for g in range(k)])
    theirs = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=0).fit(X)
    assert ari(theirs.labels_, ilk.SpectralClustering(k, random_state=0).fit(X).labels_) == 1.0


@pytest.mark.parametrize("preference", [None, -50.0])
def test_affinity_propagation_is_that_of_scikit_learn(preference):
    X = np.random.default_rng(2).normal(size=(90, 2))
    theirs = AffinityPropagation(preference=preference, random_state=0).fit(X)
    ours = ilk.AffinityPropagation(preference=preference, random_state=0).fit(X)
    assert ari(theirs.labels_, ours.labels_) == 1.0

    def net(rows):  # of a pair of rows either may be the exemplar
        return sum(np.square(X[i] - X[rows]).sum(axis=1).min() for i in range(len(X)))

    assert net(ours.cluster_centers_indices_) == pytest.approx(
        net(theirs.cluster_centers_indices_), rel=1e-12
    )
    np.testing.assert_array_equal(ours.labels_[ours.cluster_centers_indices_], np.arange(ours.n_clusters_))


@pytest.mark.parametrize(
    "model",
    [
        ilk.SpectralClustering("auto", random_state=0),
        ilk.TypicalCuts(random_state=0),
        ilk.AffinityPropagation(damping=0.9, random_state=0),
        ilk.HierarchicalClustering(2),
    ],
    ids=lambda m: type(m).__name__,
)
def test_mixed_tables_go_in_through_gower(model):
    draws = np.random.default_rng(0)
    truth = np.repeat([0, 1], 25)
    size = draws.normal(3.0 * truth, 0.4)
    size[3] = np.nan
    kind = [None if i == 7 else "ab"[t] for i, t in enumerate(truth)]
    width = draws.normal(3.0 * truth, 0.6)
    model.fit({"size": size, "width": width, "kind": kind, "grade": [("low", "high")[t] for t in truth]})
    assert model.metric_ == "gower"
    assert all(len(np.unique(truth[model.labels_ == group])) == 1 for group in range(model.n_clusters_))
    assert model.n_clusters_ == 2 or isinstance(model, ilk.AffinityPropagation)  # which finds finer groups


def test_distances_may_be_given():
    X, _ = rings(80)
    apart = np.sqrt(np.square(X[:, None] - X).sum(axis=2))
    own = ilk.HierarchicalClustering(3).fit(X).labels_
    np.testing.assert_array_equal(ilk.HierarchicalClustering(3, metric="precomputed").fit(apart).labels_, own)
    with pytest.raises(DataError, match="not symmetric"):
        ilk.HierarchicalClustering(3, metric="precomputed").fit(np.triu(apart))


def test_the_neighbour_graph_hangs_together():
    X = np.vstack([np.zeros((5, 2)), np.full((5, 2), 9.0)]) + np.random.default_rng(0).normal(0, 0.1, (10, 2))
    first, second = neighbour_graph(np.sqrt(np.square(X[:, None] - X).sum(axis=2)), 2)
    assert (first < second).all()
    reached = {0}
    for _ in range(10):
        reached |= {int(b) for a, b in zip(first, second, strict=True) if a in reached}
        reached |= {int(a) for a, b in zip(first, second, strict=True) if b in reached}
    assert reached == set(range(10))

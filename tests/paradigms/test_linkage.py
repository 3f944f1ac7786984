"""Hierarchical clustering: SciPy's own cut, and clusters of few rows that do not count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, pdist

import ilk
from ilk.errors import UsageError
from ilk.measures import ari
from ilk.paradigms.distance import EUCLIDEAN, Distances
from ilk.paradigms.linkage import LINKAGES, cut_at, cuts, tree_of

points = arrays(
    np.float64, st.tuples(st.integers(2, 25), st.just(2)), elements=st.floats(-9, 9, width=32), unique=True
)


@pytest.mark.parametrize("method", LINKAGES)
def test_the_cut_is_that_of_scipy(method):
    X = np.random.default_rng(3).normal(size=(60, 2))
    tree = linkage(pdist(X), method)
    monotone = (np.diff(tree[:, 2]) >= 0).all()
    for k in (1, 2, 5, 9):
        found = ilk.HierarchicalClustering(k, linkage=method).fit(X)
        assert found.n_clusters_ == k
        if monotone:
            assert ari(found.labels_, fcluster(tree, k, "maxclust")) == 1.0
    np.testing.assert_allclose(found.tree_[:, 2] / tree[:, 2], found.tree_[0, 2] / tree[0, 2])  # one unit


@settings(max_examples=60, deadline=None)
@given(X=points, k=st.integers(1, 6), least=st.integers(1, 4))
def test_counted_clusters_are_large_enough_and_single_links_apart(X, k, least):
    """Every counted cluster has the rows it needs, and no link inside one is longer than one that was cut."""
    apart = cdist(X, X)
    found = cut_at(tree_of(Distances(apart, EUCLIDEAN), "single"), min(k, len(X)), least)
    sizes = np.bincount(found.labels[found.labels >= 0], minlength=found.n_clusters)
    assert found.n_clusters <= max(k, 1)
    assert (sizes >= least).all() or found.n_clusters == 1
    for one in range(found.n_clusters):
        mine = found.labels == one
        inside = apart[np.ix_(mine, mine)]
        longest = (
            max(linkage(inside[np.triu_indices(mine.sum(), 1)], "single")[:, 2]) if mine.sum() > 1 else 0.0
        )
        if mine.any() and not mine.all():
            assert apart[np.ix_(mine, ~mine)].min() >= longest - 1e-12


def test_outliers_are_not_clusters():
    draws = np.random.default_rng(0)
    groups = np.vstack([draws.normal(0, 0.3, (40, 2)), draws.normal(5, 0.3, (40, 2))])
    far = np.array([[40.0, 0], [0, 40], [-40, 0], [0, -40]])
    X, truth = np.vstack([groups, far]), np.repeat([0, 1, -1], [40, 40, 4])
    plain = ilk.HierarchicalClustering(2, linkage="single").fit(X)
    assert np.bincount(plain.labels_).min() < 4  # an outlier is one of the two
    counted = ilk.HierarchicalClustering(2, linkage="single", min_size=5).fit(X)
    np.testing.assert_array_equal(counted.labels_, truth)
    assert ilk.HierarchicalClustering("auto", linkage="single", min_size=5).fit(X).n_clusters_ == 2


def test_every_number_of_clusters_has_one_cut():
    X = np.random.default_rng(1).normal(size=(40, 2))
    made = cuts(tree_of(Distances(cdist(X, X), EUCLIDEAN), "complete"), 10)
    assert [cut.n_clusters for cut in made] == list(range(1, 11))
    assert all(cut.gap >= 0 for cut in made)


def test_ward_is_for_euclidean_distances():
    with pytest.raises(UsageError, match="ward linkage is for Euclidean distances") as refused:
        ilk.HierarchicalClustering(2, linkage="ward").fit({"size": [1.0, 2, 9], "kind": ["a", "b", "a"]})
    assert refused.value.code == "bad-linkage"

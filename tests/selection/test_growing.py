"""K has no ceiling: the search goes on while another component pays."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from benchmarks.ceiling import apart
from ilk.measures import ari
from ilk.report.page import page
from ilk.selection.fine_parts import FineParts, ward_merges
from ilk.selection.growing import Growth


@pytest.mark.parametrize(("k", "columns", "rows"), [(15, 2, 60), (40, 3, 60)])
def test_many_clear_groups_are_found(k, columns, rows):
    X, label = apart(k, columns, rows, seed=0)
    found = ilk.cluster(X)
    assert found.k == k
    assert ari(label, found.labels) > 0.98
    assert found.verdict.word == "solid"


def test_many_groups_where_nine_are_no_better_than_one():
    """Groups on an even lattice: few components see a flat cloud."""
    side = np.arange(7) * 10.0
    centres = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    X = np.repeat(centres, 12, axis=0) + np.random.default_rng(0).normal(size=(12 * 49, 2))
    assert ilk.cluster(X).k == 49


def test_a_limit_is_kept_and_said():
    X, _ = apart(15, 2, 60, seed=0)
    found = ilk.cluster(X, k=range(1, 10))
    assert found.components == 9
    (text,) = [text for code, text in found.warnings if code == "k-at-limit"]
    assert "stopped at K=9" in text
    assert "lowest" not in text
    free = ilk.cluster(X)
    assert "k-at-limit" not in dict(free.warnings)


def test_a_component_is_no_thinner_than_the_step_of_its_columns():
    """Values of five steps are not one component each."""
    X = np.random.default_rng(0).integers(1, 6, size=(600, 2)).astype(float)
    X = X + 0.001 * np.random.default_rng(1).integers(0, 2, size=X.shape)  # no table of few distinct rows
    assert ilk.cluster(X, method="gaussian").components <= 25


def test_parts_are_put_together_to_the_groups_they_are_of():
    draws = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    label = np.repeat(np.arange(3), 40)
    X = centres[label] + draws.normal(size=(120, 2))
    parts = FineParts.of(X, np.ones(120), np.arange(120) // 4)

    def criterion(size, scatter):
        return 120 * np.log(np.trace(scatter) / 120) + 3 * len(size) * np.log(120)

    value, found = parts.best_partition(criterion, 2)
    assert np.isfinite(value)
    assert ari(label, found) == 1.0


def test_wards_merges_are_those_of_scipy():
    from scipy.cluster.hierarchy import fcluster, linkage

    X = np.random.default_rng(0).normal(size=(60, 3))
    for k in (2, 5, 20):
        group = np.arange(60)
        for a, b in ward_merges(np.ones(60), X, k):
            group[group == b] = a
        assert ari(group, fcluster(linkage(X, "ward"), k, "maxclust")) == 1.0


@pytest.mark.parametrize("columns", [1, 3])
def test_k_means_does_not_cut_one_skewed_cloud_into_hundreds(columns):
    """Its BIC falls on and on there, and the groups lie side by side."""
    X = np.exp(np.random.default_rng(0).normal(size=(3000, columns)))
    found = ilk.cluster(X, method="k-means")
    assert found.k == 1
    assert found.components <= 9
    if columns > 1:  # more would have a lower BIC, and that is said
        assert found.summary()["search"]["ended_by"] == "no dips"
        text = dict(found.warnings)["k-stopped"]
        assert f"stopped at K={found.components}" in text
        assert "no density dips between them" in page(found.summary())


@pytest.mark.parametrize("columns", [2, 3])
def test_k_means_goes_on_where_groups_lie_apart(columns):
    X, _ = apart(30, columns, 40, seed=1)
    found = ilk.cluster(X, method="k-means")
    assert found.k == 30
    assert "k-stopped" not in dict(found.warnings)


def test_where_the_search_ends_no_cut_that_is_run_out_pays(monkeypatch):
    """Groups that are no Gaussians: the cut that leads after a few passes gains nothing, and another one does."""
    ended = []
    monkeypatch.setattr(Growth, "run", lambda growth, run=Growth.run: (run(growth), ended.append(growth)))
    draws, label = np.random.default_rng(5), np.repeat(np.arange(12), 100)
    X = apart(12, 2, 1, seed=5)[0][label]
    ilk.cluster(X + draws.laplace(size=X.shape) @ np.array([[1.5, 0.6], [0.0, 0.7]]), method="gaussian")
    ended = [growth for growth in ended if growth.most > growth.last]
    assert ended
    for growth in ended:
        grid, best = growth.grid, growth.best
        assert best.k > 12
        for cut in grid.split_labels(best):
            trial = grid.blank(best.structure, best.k + 1)
            grid.run_from([trial], [cut], growth.stop)
            assert grid.bic(trial) >= grid.bic(best)

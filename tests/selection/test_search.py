"""The search over K: every cell with its status, and the rule."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from ilk.engines.memory import MemoryRows
from ilk.errors import NoModelError, UsageError
from ilk.measures.criteria import kmeans_bic
from ilk.methods import K_MEANS, K_MEDIANS
from ilk.selection.candidates import EXACT, OK, Candidate
from ilk.selection.k_range import k_range
from ilk.selection.search import laplace_loglik, ranking, search
from ilk.selection.sharpness import sharpness_of
from ilk.table.condition import condition, survey


def rows_of(X, weight=None, scale=None):
    X = np.asarray(X, dtype=float)
    return MemoryRows(X, condition(X, scale=scale, weight=weight), weight=weight, complete=survey(X).complete)


def groups(k=3, n=50, seed=0, apart=8.0):
    draws = np.random.default_rng(seed)
    return np.vstack([draws.normal(apart * g, 1.0, (n, 2)) for g in range(k)])


def test_bic_is_that_of_the_spherical_model_in_the_users_units():
    X = groups() * 1000.0
    found = search(rows_of(X), [K_MEANS], range(1, 6), 0)
    for candidate in found.candidates:
        cost = candidate.cost / rows_of(X).encoding.power ** 2
        sizes = np.bincount(found.fit.labels) if candidate.k == len(found.fit.size) else None
        if sizes is not None:
            assert candidate.bic == pytest.approx(kmeans_bic(cost, sizes, 2), rel=1e-9)
    assert found.chosen.k == 3


def test_units_do_not_change_the_choice():
    X = groups()
    small, large = (search(rows_of(X * unit), [K_MEANS], range(1, 6), 0) for unit in (2.0**-40, 2.0**60))
    assert small.chosen.k == large.chosen.k == 3
    assert small.margin(small.single) == pytest.approx(large.margin(large.single), rel=1e-9)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_k_of_clear_groups_is_found(k):
    found = search(rows_of(groups(k), scale="standard"), [K_MEANS], range(1, 10), 0)
    assert found.chosen.k == k
    assert all(c.status == OK for c in found.candidates)
    assert found.candidates[found.runner_up].k in (k - 1, k + 1)


def test_silhouette_is_scikit_learns():
    X = groups()
    rows = rows_of(X)
    found = search(rows, [K_MEANS], [3], 0)
    assert found.chosen.silhouette == pytest.approx(silhouette_score(X, found.fit.labels), rel=1e-9)
    assert found.chosen.silhouette_error == 0.0


def test_sampled_silhouette_is_near_and_says_how_near(monkeypatch):
    import ilk.selection.sharpness as sharpness

    rows = rows_of(groups(3, 400, apart=3.0))
    found = search(rows, [K_MEANS], [3], 0)
    monkeypatch.setattr(sharpness, "SILHOUETTE_ROWS", 300)
    costs = partial(K_MEANS.family.cost, found.fit.params)
    sampled = sharpness_of(rows, found.fit.labels, 3, costs, 0)
    assert sampled.n_rows == 300
    assert 0 < sampled.error < 0.05
    assert abs(sampled.mean - found.chosen.silhouette) < 4 * sampled.error


def test_silhouette_with_missing_cells():
    X = groups()
    X[0, 0] = np.nan
    found = search(rows_of(X), [K_MEANS], [3], 0)
    assert (found.sharpness.kind, found.sharpness.n_rows) == ("rows", 149)
    X[np.arange(150), np.arange(150) % 2] = np.nan
    found = search(rows_of(X), [K_MEANS], [3], 0)
    assert (found.sharpness.kind, found.sharpness.n_rows) == ("centres", 150)
    assert 0 < found.sharpness.mean <= 1


def test_one_group_is_always_fitted_for_reference():
    found = search(rows_of(groups()), [K_MEANS], [3], 0)
    assert [(c.k, c.status) for c in found.candidates] == [(1, "reference"), (3, OK)]
    assert found.runner_up is None
    assert found.margin(found.single) > 100


def test_two_methods_make_one_table():
    found = search(rows_of(groups()), [K_MEANS, K_MEDIANS], [2, 3], 0)
    assert [(c.method, c.k) for c in found.candidates] == [
        ("k-means", 1), ("k-means", 2), ("k-means", 3), ("k-medians", 1), ("k-medians", 2), ("k-medians", 3),
    ]  # fmt: skip
    assert found.chosen.method == "k-means"


def test_cells_that_cannot_win():
    cells = [
        Candidate("m", None, 1, OK, bic=50.0),
        Candidate("m", None, 2, "reference", bic=1.0),
        Candidate("m", None, 3, "fewer_distinct_rows", bic=2.0),
        Candidate("m", None, 4, "did_not_start"),
        Candidate("m", None, 5, "singular"),
        Candidate("m", None, 6, OK, bic=50.0),
        Candidate("m", None, 7, "ok_time_limit", bic=40.0),
    ]
    assert ranking(cells) == [6, 0, 5]
    assert ranking([*cells, Candidate("m", None, 9, EXACT), Candidate("m", None, 8, EXACT)])[:2] == [8, 7]


def test_no_cell_at_all_is_refused(monkeypatch):
    import ilk.selection.search as module

    monkeypatch.setattr(module, "ranking", lambda cells: [])
    with pytest.raises(NoModelError) as caught:
        search(rows_of(groups()), [K_MEANS], [2], 0)
    assert caught.value.exit_code == 4


def test_interrupt_keeps_what_was_found(monkeypatch):
    import ilk.selection.search as module

    whole = module.fit_cell

    def stop_at(rows, recipe, k, seed, **options):
        if k == 4:
            raise KeyboardInterrupt
        return whole(rows, recipe, k, seed, **options)

    monkeypatch.setattr(module, "fit_cell", stop_at)
    found = search(rows_of(groups()), [K_MEANS], range(1, 7), 0)
    assert found.interrupted
    assert [c.status for c in found.candidates] == [OK, OK, OK, "cancelled", "cancelled", "cancelled"]
    assert found.chosen.k == 3
    monkeypatch.setattr(module, "fit_cell", lambda *a, **o: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        search(rows_of(groups()), [K_MEANS], range(1, 7), 0)


@pytest.mark.badinput("B8")
def test_k_range():
    assert k_range("auto", 1_000) == tuple(range(1, 10))
    assert k_range("auto", 10) == (1, 2)
    assert k_range("auto", 1) == (1,)
    assert k_range([2, 5, 90], 50) == (2, 5)
    for bad in ("many", True, 0, -3, 1.5, math.inf, math.nan, None, [], [3, 2], [2, 2], range(4, 2)):
        with pytest.raises(UsageError):
            k_range(bad, 50)
    with pytest.raises(UsageError) as caught:
        k_range(51, 50)
    assert caught.value.exit_code == 3


def test_laplace_likelihood_is_the_density():
    X = np.array([0.0, 1.0, 3.0, 10.0, 12.0])
    centre = np.array([1.0, 1.0, 1.0, 11.0, 11.0])
    cost = np.abs(X - centre).sum()
    scale = cost / 5
    density = np.exp(-np.abs(X - centre) / scale) / (2 * scale)
    share = np.array([0.6, 0.6, 0.6, 0.4, 0.4])
    assert laplace_loglik(cost, [3, 2], 1) == pytest.approx(np.log(share * density).sum())

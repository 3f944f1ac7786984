"""Structures that depend on units are also fitted in standard deviations within groups."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from ilk import kernels
from ilk.engines.memory import MemoryRows
from ilk.measures import ari
from ilk.selection import units
from ilk.selection.mixtures import search_mixtures
from ilk.selection.units import deviations_within, rescaled, search_in_units
from ilk.table.condition import condition
from tests.conftest import numeric_table


def balls(n=150, gap=40.0, seed=0):
    """Two round groups far apart along the first column: in deviations of the table they are flat."""
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(2 * n, 3))
    X[n:, 0] += gap
    return X, np.repeat([0, 1], n)


def rows_of(X):
    return MemoryRows(X, condition(X, scale="standard"), threads=1)


def test_round_groups_are_round_in_their_own_units():
    X, truth = balls()
    rows = rows_of(X)
    in_table_units = search_mixtures(rows, range(1, 4), 0, thorough=False)
    found, own = search_in_units(rows, range(1, 4), 0)
    assert (found.chosen.structure, found.chosen.k) == ("EII", 2)
    assert in_table_units.chosen.structure != "EII"
    assert found.chosen.bic < in_table_units.chosen.bic
    # the units are those of the groups: one standard deviation of each column is one
    assert own.encoding.unit == pytest.approx(np.ones(3), rel=0.1)
    assert ari(found.fit.labels, truth) == 1.0


def test_every_cell_keeps_the_better_fit_and_stands_once():
    X, _ = balls(gap=6.0)
    rows = rows_of(X)
    before = {
        (c.structure, c.k): c
        for c in search_mixtures(rows, range(1, 4), 0, thorough=False, patience=3).candidates
    }
    found, _ = search_in_units(rows, range(1, 4), 0)
    cells = {(c.structure, c.k): c for c in found.candidates}
    assert len(cells) == len(found.candidates)
    assert cells.keys() == before.keys()
    for key, cell in before.items():
        assert cells[key].bic is None or cell.bic is None or cells[key].bic <= cell.bic + 1e-6
    assert found.chosen.bic == min(c.bic for c in found.candidates if c.bic is not None)


def test_units_of_the_user_play_no_part():
    X, _ = balls(gap=8.0)
    one, other = ilk.cluster(X, k=range(1, 4)), ilk.cluster(X * [1.0, 250.0, 0.01], k=range(1, 4))
    assert one.model.method == other.model.method
    assert (one.labels == other.labels).all()
    kinds = [(r.summary()["chosen"]["structure"], r.k) for r in (one, other)]
    assert kinds[0] == kinds[1]


def test_likelihood_is_that_of_the_users_units():
    X, _ = balls()
    result = ilk.cluster(X, k=range(1, 3))
    assert result.summary()["chosen"]["structure"] == "EII"
    plain = ilk.GaussianMixture(2, structure="EII", random_state=0).fit(X)
    assert result.summary()["chosen"]["bic"] == pytest.approx(plain.bic(X), rel=1e-3)


def test_deviations_are_pooled_over_the_components():
    X, truth = balls(gap=40.0)
    rows = rows_of(X)
    found = search_mixtures(rows, [2], 0, thorough=False)
    expected = np.sqrt(sum(X[truth == g].var(axis=0) for g in (0, 1)) / 2) / X.std(axis=0)
    assert deviations_within(rows, (found.recipe.family, found.fit.params)) == pytest.approx(
        expected, rel=1e-9
    )
    assert rescaled(rows.encoding, expected).unit == pytest.approx(rows.encoding.unit / expected)


def test_all_rows_decide_between_the_two_units():
    """Groups that differ in volume by a little: a search on few rows prefers one volume, and all rows do not."""
    draws = np.random.default_rng(9)
    label = draws.choice(4, 30_000)
    X = draws.normal(size=(30_000, 3)) * draws.uniform(0.9, 1.1, 4)[label][:, None]
    result = ilk.cluster(
        X + draws.normal(size=(4, 3))[label] * 3,
        k=range(2, 6),
        method="gaussian",
        merge="none",  # merged, they overlap, and one component for each group is taken instead (decision 36)
        threads=2,
    )
    on_all = [c for c in result.candidates if c.bic_all_rows is not None]
    chosen = result.summary()["chosen"]
    assert chosen["bic_all_rows"] == min(c.bic_all_rows for c in on_all)
    assert min(on_all, key=lambda c: c.bic).bic_all_rows > chosen["bic_all_rows"]
    rest = sorted(c.bic_all_rows for c in on_all)[1]
    assert chosen["runner_up"]["bic_difference"] == pytest.approx(rest - chosen["bic_all_rows"])


def test_rows_beyond_the_search_sample_are_fitted_in_the_same_units():
    X, truth = balls(n=2500)
    result = ilk.cluster(X, k=range(1, 4), threads=1)
    assert result.summary()["chosen"]["structure"] == "EII"
    assert result.summary()["search"]["rows"] == 4000
    assert ari(result.labels, truth) == 1.0


@pytest.mark.skipif(not kernels.COMPILED, reason="a search takes seconds without a compiler")
def test_iris_has_a_better_bic_than_mclust_finds():
    result = ilk.cluster(numeric_table("iris")[0])
    assert result.summary()["chosen"]["bic"] < 561.73  # mclust 6.0.0: VEV, 2


def test_only_structures_that_came_near_are_fitted_in_other_units(monkeypatch):
    """Long groups that cross: round structures do not come near, whatever the units."""
    draws = np.random.default_rng(2)
    X = draws.normal(size=(400, 2)) * [8.0, 0.5]
    X = np.vstack([X[:200] @ [[0.8, 0.6], [-0.6, 0.8]], X[200:] @ [[0.8, -0.6], [0.6, 0.8]] + [0.0, 9.0]])
    rows, asked = rows_of(X), []

    def noted(*given, structures=None, **options):
        asked.append(structures)
        options |= {} if structures is None else {"structures": structures}
        return search_mixtures(*given, **options)

    monkeypatch.setattr(units, "search_mixtures", noted)
    found, _ = search_in_units(rows, range(1, 5), 0)
    names = [structure.name for structure in asked[1]] if len(asked) > 1 else []
    assert "EII" not in names
    assert len(names) < len(units.UNIT_BOUND)
    assert found.chosen.k == 2

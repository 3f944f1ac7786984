"""The assorted model among the mixtures: one likelihood scale, and who takes part."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

import ilk
from ilk.assorted.columns import assort
from ilk.assorted.family import Assorted
from ilk.assorted.problem import AssortedProblem, ModelOptions
from ilk.engines.memory import MemoryRows
from ilk.families.covariance import Structure
from ilk.families.gaussian import Gaussian
from ilk.measures import ari
from ilk.selection.assorted import plan_of, search_assorted
from ilk.selection.mixture_vs_assorted import better, search_rival
from ilk.selection.mixtures import search_mixtures
from ilk.table.condition import condition
from ilk.table.read import read
from ilk.table.schema import infer

SWITCHES = np.log(3 + 1)  # three of three columns are relevant, and two clusters share them in one way


def rows_of(X, scale="standard"):
    return MemoryRows(X, condition(X, scale=scale))


@pytest.fixture(scope="module")
def groups():
    """Two groups of Normal columns whose spreads differ: VVI, and every switch is own."""
    draws = np.random.default_rng(0)

    def normal(n):
        return np.column_stack([draws.permutation(ndtri((np.arange(n) + 0.5) / n)) for _ in range(3)])

    return np.vstack([normal(400) * [1, 2, 1], 5 + normal(300) * [2, 1, 2]]) * [1000.0, 0.01, 1.0]


@pytest.mark.parametrize("scale", [None, "standard"])
def test_bic_is_that_of_vvi_and_the_price_of_the_switches(groups, scale):
    """Exact at the same parameters: those of VVI, put on the standardised scale of the cells."""
    rows = rows_of(groups, scale)
    found = search_mixtures(rows, [2], 0, structures=[Structure("VVI")])
    assert isinstance(found.recipe.family, Gaussian)
    plan = assort(rows, ["a", "b", "c"], [])
    scene = AssortedProblem.plain(rows, plan, ModelOptions())
    family, mixture = scene.cells, found.fit.params
    centre = np.array([n.centre[0] for n in plan.numbers])
    spread = np.array([n.spread[0] for n in plan.numbers])
    cells = family.start((mixture.mean - centre) / spread)
    variance = np.exp(mixture.covariance.log_variance) / spread**2
    object.__setattr__(cells, "variance", variance)
    object.__setattr__(cells, "mixing", mixture.mixing)
    block = scene.rows.take(np.arange(len(groups)))
    cost = (
        float(family.step(cells, block, None).cost.value) + family.penalty(cells) - family.prior_cost(cells)
    )
    assert 2 * cost - 2 * SWITCHES == pytest.approx(found.chosen.bic, rel=1e-10)


def test_the_whole_search_ends_at_vvi_where_nothing_is_shared(groups):
    rows, schema = rows_of(groups), infer(read(groups))
    mixtures = search_mixtures(rows, [2], 0, structures=[Structure("VVI")])
    grown = search_assorted(rows, schema, [2], 0, criterion="plain")
    family, params = grown.search.recipe.family, grown.search.fit.params
    assert isinstance(family, Assorted)
    assert set(grown.words.values()) == {"as it is"}
    assert (params.group == [[0] * 3, [1] * 3]).all()
    assert grown.search.chosen.parameters == mixtures.chosen.parameters
    excess = grown.search.chosen.bic - mixtures.chosen.bic - 2 * SWITCHES
    assert 0 <= excess < 0.5  # the prior moves the spreads a little off their maximum


def test_log_normal_columns_are_one_cloud_of_the_assorted_model():
    X = np.exp(np.random.default_rng(3).normal(size=(200, 2)))
    result = ilk.cluster(X, threads=1, k=range(1, 5))
    assert result.model.method == "assorted"
    assert result.components == result.k == 1
    assert "logarithm" in result.summary()["table"]["treatment"]["x0"]
    assert {c.method for c in result.candidates} == {"gaussian", "assorted"}
    rival = result.summary()["chosen"]["runner_up"]
    assert rival["bic_difference"] > 0


def test_a_winner_is_saved_and_places_new_rows(tmp_path):
    draws = np.random.default_rng(0)
    X = np.exp(np.vstack([draws.normal(0, 0.5, (120, 2)), draws.normal(3, 0.5, (80, 2))]))
    result = ilk.cluster(X, threads=1, k=range(1, 5))
    assert (result.model.method, result.k) == ("assorted", 2)
    assert result.labels.tolist() == [0] * 120 + [1] * 80
    result.save(tmp_path / "m.ilk")
    placed = ilk.load(tmp_path / "m.ilk").assign(result.table.arrow.to_pandas())
    assert placed["group"].tolist() == ["A"] * 120 + ["B"] * 80


def test_a_large_table_is_compared_on_the_same_sample():
    draws = np.random.default_rng(0)
    X = np.exp(np.vstack([draws.normal(0, 0.5, (4500, 2)), draws.normal(3, 0.5, (2500, 2))]))
    result = ilk.cluster(X, threads=1, k=range(1, 4))
    assert (result.model.method, result.k) == ("assorted", 2)
    seen = [c for c in result.candidates if c.bic_all_rows is not None]
    assert {c.method for c in seen} == {"gaussian", "assorted"}
    ratios = [candidate.bic_all_rows / candidate.bic for candidate in seen]
    assert max(ratios) < 1.03 * min(ratios)
    assert min(seen, key=lambda c: c.bic_all_rows).method == "assorted"


@pytest.mark.parametrize("name", ["stretched", "few values"])
def test_who_stays_out_is_told(name):
    draws = np.random.default_rng(0)
    X = draws.normal(size=(200, 2))
    if name == "stretched":
        X[:, 1] = X[:, 0] + 0.05 * X[:, 1]
    else:
        X[:, 1] = draws.integers(0, 2, 200) * 3.0 + draws.integers(0, 2, 200)
    rows, schema = rows_of(X), infer(read(X))
    mixtures = search_mixtures(rows, range(1, 4), 0)
    found, grown = better(
        mixtures, search_rival(mixtures, rows, schema, range(1, 4), 0, plan=plan_of(rows, schema))
    )
    assert found.fit is mixtures.fit
    assert grown is None
    assert found.chosen.method == "gaussian"
    status = {"stretched": "unpromising", "few values": "not_comparable"}[name]
    assert [c.status for c in found.candidates if c.method == "assorted"] == [status]


@pytest.mark.parametrize("k", ["auto", 2])
def test_amounts_that_are_mostly_zero_are_left_to_the_assorted_model(k):
    """Densities of a value that most rows share are no measure: mixtures made 64 weak groups of such a table."""
    draws = np.random.default_rng(3)
    label, shape = (draws.random(2000) < 0.4).astype(int), (2000, 57)
    there = draws.random(shape) < draws.beta(1, 3, (2, 57))[label]
    amount = np.exp(draws.normal(-0.5, 1, (2, 57))[label] + draws.normal(0, 1, shape))
    result = ilk.cluster(np.where(there, np.round(amount, 2), 0.0), k=k)
    assert {candidate.method for candidate in result.candidates} == {"assorted"}
    assert result.k == 2
    assert ari(label, result.labels) > 0.8

"""Rows held on every scale: the same rows, and the same choice of scales, as by treating every block anew."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from ilk.assorted import every_scale
from ilk.assorted.columns import assort
from ilk.assorted.growth import GrowthSearch
from ilk.assorted.problem import AssortedProblem, ModelOptions
from ilk.engines.memory import MemoryRows
from ilk.table.condition import encoding_of, survey


@pytest.fixture
def problem():
    """Numbers, one of them skewed and one with an atom and gaps, and a category."""
    draws = np.random.default_rng(3)
    z = np.repeat([0, 1], 150)
    raw = np.exp(draws.normal(size=(300, 3)) + 2 * z[:, None])
    raw[draws.random(300) < 0.3, 1] = 0.0
    raw[draws.random(300) < 0.1, 1] = np.nan
    codes = (draws.integers(0, 3, 300) + z).astype(np.int32)[:, None]
    rows = MemoryRows(raw, encoding_of(raw, survey(raw)), codes=codes, complete=False, threads=1)
    plan = assort(rows, ["a", "b", "c"], [("d", ["p", "q", "r", "s"])])
    return AssortedProblem.plain(rows, plan, ModelOptions())


def found(problem):
    """The scales that two clusters prefer, and the parameters there."""
    search = GrowthSearch(0)
    label = (np.arange(300) >= 150).astype(np.int32)
    return problem.rescaled(search.trial(problem, search.from_labels(problem, label, 2)).params)


def test_held_rows_are_those_treated_anew(problem, monkeypatch):
    kept, params = found(problem)
    assert kept.held.made is not None
    monkeypatch.setattr(every_scale, "MOST_HELD", 0)
    fresh = AssortedProblem.plain(problem.table, problem.plan, problem.options)
    other, others = found(fresh)
    assert other.held.made is None
    assert kept.scales == other.scales != problem.scales
    assert np.array_equal(params.mean, others.mean)
    assert np.array_equal(params.variance, others.variance)
    assert np.array_equal(params.group, others.group)
    assert np.array_equal(kept.rows.raw, other.rows.raw, equal_nan=True)
    assert np.array_equal(kept.rows.codes, other.rows.codes)
    assert kept.rows.complete == other.rows.complete


def test_rows_of_a_sample_and_of_a_saved_problem_are_not_those_of_the_table(problem):
    found(problem)
    assert problem.on(problem.table, 0.5).held.made is None
    assert pickle.loads(pickle.dumps(problem)).held.made is None

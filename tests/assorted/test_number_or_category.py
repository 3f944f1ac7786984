"""Number or category: both costs are those of a fit with one cluster, and the shape decides."""

from __future__ import annotations

import numpy as np
import pytest

from ilk.assorted.columns import STEP_QUANTILE, assort
from ilk.assorted.fit import SearchOptions, fit_assorted
from ilk.assorted.number_or_category import cheaper_as_levels, levels_cost, number_cost
from ilk.assorted.problem import ModelOptions
from tests.assorted.test_growth import rows_of


def drawn(kind: str, n: int = 300) -> np.ndarray:
    draws = np.random.default_rng(0)
    if kind == "even":
        return draws.integers(1, 11, n).astype(float)
    if kind == "bell":
        return np.clip(np.round(draws.normal(7, 2.4, n)), 0, 14)
    return draws.choice(np.arange(1.0, 11), n, p=[0.6, *[0.02] * 8, 0.24])


def weights(x: np.ndarray) -> dict[float, float]:
    value, count = np.unique(x, return_counts=True)
    return dict(zip(value.tolist(), count.astype(float).tolist(), strict=True))


def single_cost(x: np.ndarray, most_values: int) -> tuple[float, float]:
    """J of one cluster, and what a recording step is worth in it."""
    rows = rows_of(x[:, None])
    plan = assort(rows, ["x"], [], few_values=0, most_values=most_values, atom_share=2.0)
    found = fit_assorted(rows, plan, ModelOptions(), SearchOptions(1), 0)
    return found.cost, sum(number.weight * np.log(number.step) for number in plan.numbers)


@pytest.mark.parametrize("kind", ["even", "bell", "two ends"])
def test_both_costs_are_those_of_one_cluster(kind):
    x = drawn(kind)
    weight_of = weights(x)
    value, weight = np.array([*weight_of]), np.array([*weight_of.values()])
    cost, steps = single_cost(x, 0)
    assert number_cost(value, weight, STEP_QUANTILE) == pytest.approx(cost - steps, rel=1e-6)
    as_levels = assort(rows_of(x[:, None]), ["x"], [], few_values=20)
    found = fit_assorted(rows_of(x[:, None]), as_levels, ModelOptions(), SearchOptions(1), 0)
    assert levels_cost(weight) == pytest.approx(found.cost, rel=1e-9)


def test_a_bell_stays_a_number_and_other_shapes_do_not():
    assert not cheaper_as_levels(weights(drawn("bell")), None, STEP_QUANTILE)
    assert cheaper_as_levels(weights(drawn("even")), None, STEP_QUANTILE)
    assert cheaper_as_levels(weights(drawn("two ends")), 1.0, STEP_QUANTILE)


def test_the_plan_follows():
    raw = np.column_stack([drawn("bell"), drawn("even"), np.random.default_rng(1).normal(size=300)])
    plan = assort(rows_of(raw), ["bell", "even", "free"], [])
    assert [number.name for number in plan.numbers] == ["bell", "free"]
    assert [(category.name, category.kind) for category in plan.categories] == [("even", "values")]


def test_an_even_scale_of_ten_is_one_cluster():
    raw = np.random.default_rng(2).integers(1, 11, (300, 4)).astype(float)
    plan = assort(rows_of(raw), list("abcd"), [])
    assert len(fit_assorted(rows_of(raw), plan, ModelOptions(), SearchOptions(None), 0).params) == 1


def test_a_value_and_an_atom_are_two_levels():
    assert cheaper_as_levels({0.0: 30.0, 1.0: 20.0}, 0.0, STEP_QUANTILE)

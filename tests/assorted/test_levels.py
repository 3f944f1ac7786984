"""Columns of many levels: no groups where they are independent of the rest, groups where they know of them."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from ilk import kernels
from ilk.assorted.transform import Category, TransformPlan
from ilk.measures import ari

SEEDS = range(3 if kernels.COMPILED else 1)


def independent(kind: str, seed: int, n: int, n_levels: int) -> dict:
    """A number, three plans, and one or two columns of many levels."""
    draws = np.random.default_rng([seed, n, n_levels])
    share = 1 / np.arange(1, n_levels + 1) ** (1.1 if kind == "zipf" else 0.0)
    table = {
        "amount": draws.normal(size=n),
        "plan": draws.choice(list("abc"), n),
        "sku": [f"s{code}" for code in draws.choice(n_levels, n, p=share / share.sum())],
    }
    if kind == "two":
        table["zip"] = [f"z{code}" for code in draws.integers(0, n_levels, n)]
    return table


@pytest.mark.parametrize("part", [20, 10, 5])
@pytest.mark.parametrize("kind", ["zipf", "uniform", "two"])
def test_independent_columns_have_no_groups(kind, part):
    for seed in SEEDS:
        assert ilk.cluster(independent(kind, seed, 600, 600 // part)).k == 1, seed


def test_a_column_of_many_levels_that_knows_the_groups_is_used():
    draws = np.random.default_rng(0)
    n, n_levels = 900, 90
    truth = draws.integers(0, 3, n)
    own = truth + 3 * draws.integers(0, n_levels // 3, n)
    table = {
        "amount": draws.normal(size=n) + 3 * (truth == 1),
        "plan": np.array(list("abc"))[np.where(draws.random(n) < 0.7, truth, draws.integers(0, 3, n))],
        "city": [f"t{c}" for c in np.where(draws.random(n) < 0.9, own, draws.integers(0, n_levels, n))],
    }
    result = ilk.cluster(table)
    assert result.k == 3
    assert ari(result.labels, truth) > 0.7


def test_a_free_share_costs_half_a_log_of_its_rows_and_a_nat_at_least():
    weights = (50.0, 1.0, 2.0, 7.0), (100.0, 50.0, 8.0)
    categories = tuple(
        Category(
            name="c",
            source=0,
            kind="levels",
            keys=tuple(map(float, range(len(w)))),
            names="abcd"[: len(w)],
            weight=w,
        )
        for w in weights
    )
    plan = TransformPlan((), categories, (), 158.0)
    assert plan.level_penalty == pytest.approx([3.0, (np.log(50) + np.log(8)) / 2])

"""Dense factors of wide tables: found where many columns make an axis, taken out, and priced as a model does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from ilk.assorted.dense_factors import DenseFactors, find_factors
from tests.assorted.test_columns import plan_of, rows_of
from tests.assorted.test_screening import groups


def amid_factors(seed: int, n: int = 150, d: int = 80, q: int = 8):
    """Groups in q of d columns, and three factors that load on all."""
    raw, label = groups(seed, n=n, d=d, q=q)
    draws = np.random.default_rng(seed + 1000)
    return raw + 0.7 * draws.standard_normal((n, 3)) @ draws.standard_normal((3, d)), label


def found(raw: np.ndarray, weight: np.ndarray | None = None) -> DenseFactors | None:
    plan, rows = plan_of(raw, weight=weight)
    return find_factors(rows.take(np.arange(len(raw))), plan)


def block_of(raw: np.ndarray):
    return rows_of(raw).take(np.arange(len(raw)))


@pytest.mark.parametrize("seed", range(3))
def test_factors_that_run_through_all_columns_are_found_and_nothing_else(seed):
    raw, _ = amid_factors(seed)
    factors = found(raw)
    assert factors is not None
    assert factors.n_factors == 3
    left = factors(block_of(raw)).raw
    assert found(left) is None  # groups make axes of few columns
    assert found(groups(seed)[0]) is None
    assert found(np.random.default_rng(seed).normal(size=(150, 300))) is None


def test_few_columns_have_no_dense_factors():
    draws = np.random.default_rng(0)
    assert found(draws.normal(size=(200, 1)) + 0.1 * draws.normal(size=(200, 30))) is None


def test_a_value_modelled_apart_stays_what_it_is():
    raw, _ = amid_factors(0)
    raw[np.random.default_rng(1).random(150) < 0.4, 70] = 0.0
    factors = found(raw)
    assert factors is not None
    assert 70 not in factors.source
    np.testing.assert_array_equal(factors(block_of(raw)).raw[:, 70], raw[:, 70])


def test_factors_cost_what_a_gaussian_model_with_them_says():
    """J of the rest with own variances, and the nats of the factors, are -log p of the rows."""
    draws = np.random.default_rng(2)
    raw = draws.normal(size=(400, 2)) @ draws.normal(size=(2, 50)) + draws.normal(size=(400, 50))
    factors, block = found(raw), block_of(raw)
    assert factors is not None
    z = factors.standardised(block)
    scores, precision = factors.scores(z)
    load = np.array(factors.loading)
    rest = (z - scores @ load.T).var(axis=0)
    of_rest = 200 * (np.log(2 * np.pi * rest) + 1).sum()
    noise = rest + np.einsum("di,ij,dj->d", load, np.linalg.inv(precision[0]), load)
    exact = -multivariate_normal(np.zeros(50), load @ load.T + np.diag(noise)).logpdf(z).sum()
    told = of_rest + factors.cost(block)
    assert exact - 1e-6 <= told < exact + 20  # a bound, and near: 20 of 25,000 nats


def test_the_factors_of_a_row_come_from_the_cells_that_it_has():
    raw, _ = amid_factors(3)
    factors = found(raw)
    assert factors is not None
    z = factors.standardised(block_of(raw))[:4]
    z[1, 5:40] = np.nan
    z[2, :] = np.nan
    scores, _ = factors.scores(z)
    load, noise = np.array(factors.loading), np.array(factors.noise)
    known = ~np.isnan(z[1])
    pull = load[known] / noise[known, None]
    by_hand = np.linalg.solve(np.eye(3) + pull.T @ load[known], pull.T @ z[1, known])
    np.testing.assert_allclose(scores[1], by_hand, rtol=1e-9)
    np.testing.assert_array_equal(scores[2], 0.0)
    np.testing.assert_allclose(scores[0], factors.scores(z[:1])[0][0], rtol=1e-9)


def test_missing_cells_stay_missing_and_hide_no_factor():
    raw, _ = amid_factors(4)
    whole = found(raw)
    lost = raw.copy()
    lost[np.random.default_rng(5).random(raw.shape) < 0.15] = np.nan
    factors = found(lost)
    assert whole is not None
    assert factors is not None
    assert factors.n_factors == 3
    left, right = factors(block_of(lost)).raw, whole(block_of(raw)).raw
    np.testing.assert_array_equal(np.isnan(left), np.isnan(lost))
    here = ~np.isnan(left)
    assert np.corrcoef(left[here], right[here])[0, 1] > 0.95


def test_a_row_of_weight_two_is_the_row_twice_and_order_does_not_matter():
    raw, _ = amid_factors(6)
    weight = np.where(np.arange(150) % 3 == 0, 2.0, 1.0)
    order = np.random.default_rng(7).permutation(np.repeat(np.arange(150), weight.astype(int)))
    heavy, twice = found(raw, weight), found(raw[order])
    assert heavy is not None
    assert twice is not None
    block = block_of(raw)
    np.testing.assert_allclose(heavy(block).raw, twice(block).raw, atol=1e-6)

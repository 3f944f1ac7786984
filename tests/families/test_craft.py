"""CRAFT as printed: constants against stored figures, row costs against their definition, the cases it contains."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import beta

from ilk.families.bernoulli import Bernoulli
from ilk.families.centroid import Centroids, Means
from ilk.families.craft import APPROXIMATE, Choice, CraftParams, Paper, default_locality
from ilk.fitting.craft import background_shares, objective, paper_pass
from ilk.table.block import Block, Encoding
from tests.conftest import golden, numeric_table
from tests.oracles import craft

HALF = Choice(0.5, 0.2)
LEVELS = (2, 3, 4)
START = np.cumsum([0, *LEVELS])


def mixed_block(n_rows: int = 40, n_numbers: int = 3, seed: int = 0) -> Block:
    draws = np.random.default_rng(seed)
    numbers = draws.normal(size=(n_rows, n_numbers))
    codes = np.column_stack([draws.integers(0, size, n_rows) for size in LEVELS])
    numbers[draws.random(numbers.shape) < 0.1] = np.nan
    codes[draws.random(codes.shape) < 0.1] = -1
    return Block(numbers, Encoding(1.0, np.zeros(n_numbers)), codes=codes, complete=False)


def numeric_block(X: np.ndarray) -> Block:
    return Block(X, Encoding(1.0, np.zeros(X.shape[1])))


def family_of(block: Block, choice: Choice = HALF, **options) -> Paper:
    assert block.codes is not None
    return Paper(
        choice=choice,
        background=background_shares(block.codes, block.weights, START),
        level_start=START,
        n_numbers=block.n_columns,
        **options,
    )


def numbers_only(n_numbers: int, choice: Choice = HALF) -> Paper:
    return Paper(
        choice=choice, background=np.zeros(0), level_start=np.zeros(1, dtype=int), n_numbers=n_numbers
    )


@pytest.mark.parametrize("case", range(8))
def test_stored_constants(case):
    figures = golden("seed_claims")["craft_constants"][case]
    choice = Choice(figures["m"], figures["rho"])
    near = {"rel": 1e-9, "abs": 1e-9}
    assert choice.a0 == pytest.approx(figures["a0"], **near)
    assert choice.b0 == pytest.approx(figures["b0"], **near)
    assert choice.a0 + 1 == pytest.approx(figures["a1"], **near)
    assert choice.b0 - 1 == pytest.approx(figures["b1"], **near)
    assert choice.f0 == pytest.approx(figures["F0"], **near)
    assert choice.f1 == pytest.approx(figures["F1"], **near)
    assert choice.f_delta == pytest.approx(figures["F_delta"], **near)
    assert choice.posterior(1) == pytest.approx(figures["nu_if_selected"], **near)
    assert choice.posterior(0) == pytest.approx(figures["nu_if_not"], **near)


def test_the_prior_has_the_mean_and_variance_it_was_made_of():
    """Shapes a0 and b0 - 1: a Beta with mean m and variance rho; and F_delta(m) = -F_delta(1 - m)."""
    for m, rho in [(0.5, 0.2), (0.3, 0.05), (0.8, 0.1)]:
        choice = Choice(m, rho)
        assert beta(choice.a0, choice.b0 - 1).stats("mv") == pytest.approx((m, rho))
        assert choice.f_delta == pytest.approx(-Choice(1 - m, rho).f_delta)


def test_the_default_locality_is_always_allowed():
    for share in (0.001, 0.01, 0.1, 0.5, 0.9, 0.995):
        assert 0 < default_locality(share) < share * (1 - share)
    assert default_locality(0.5) == pytest.approx(0.24)


def test_from_global_to_local():
    """Near 0 a new group chooses every column with chance m; at the limit, as often as the others have."""
    chosen = np.array([[True, True, False], [True, False, False]])
    assert Choice(0.4, 1e-9).chances(chosen) == pytest.approx([0.4, 0.4, 0.4], abs=1e-6)
    assert Choice(0.4, 0.24 - 1e-9).chances(chosen) == pytest.approx([1.0, 0.5, 0.0], abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_row_costs_and_one_walk_agree_with_the_definition(seed):
    block = mixed_block(seed=seed)
    choice, open_cost = Choice(0.4, 0.23), 3.0
    family = family_of(block, choice)
    chosen = np.array([True, False, True, True, False, False])
    first = family.begin(np.nan_to_num(block.numbers[0]), block.codes[0], chosen)
    shares = [first.level_share[0, a:b] for a, b in pairwise(START)]
    background = [family.background[a:b] for a, b in pairwise(START)]
    group = {"mean": first.mean[0], "variance": first.variance[0], "shares": shares, "chosen": chosen}
    expected = [
        craft.row_cost(x, c, group, background, choice.f_delta)
        for x, c in zip(block.numbers, block.codes, strict=True)
    ]
    assert family.cost(first, block)[:, 0] == pytest.approx(expected)
    labels, groups = craft.walk(
        block.numbers, block.codes, [group], background, 0.4, 0.23, open_cost, np.random.default_rng(seed)
    )
    opened, label, _ = paper_pass(family, first, block, open_cost, np.random.default_rng(seed))
    assert label.tolist() == labels
    assert len(set(labels)) > 2
    assert np.array_equal(opened.chosen, [g["chosen"] for g in groups])
    assert opened.mean == pytest.approx(np.array([g["mean"] for g in groups]))


def test_an_update_by_hand():
    numbers = np.array([[0.0, 5.0], [2.0, -5.0], [np.nan, 1.0]])
    codes = np.array([[0, 0, 3], [0, 1, 3], [0, 2, -1]])
    block = Block(numbers, Encoding(1.0, np.zeros(2)), codes=codes, complete=False)
    background = np.concatenate([np.full(size, 1 / size) for size in LEVELS])
    family = Paper(choice=Choice(0.5, 0.2), background=background, level_start=START, n_numbers=2)
    groups = family.update(block, np.zeros(3, dtype=int), 1)
    assert groups.mean[0] == pytest.approx([1.0, 1 / 3])
    assert groups.variance[0, 0] == pytest.approx(
        (1 + 1 + 1) / (2 + 1)
    )  # squares 1 and 1, and a pseudo-row of 1
    assert groups.level_share[0, :2] == pytest.approx([3.5 / 4, 0.5 / 4])
    assert groups.level_share[0, -1] == pytest.approx(2.25 / 3)
    # One of two numbers, the steadier; two of three categories, those that say most of these rows.
    assert groups.chosen[0].tolist() == [True, False, True, False, True]


def test_budgets():
    block = mixed_block(200)
    label = np.arange(200) % 3
    exact = family_of(block, Choice(1 / 3, 0.1)).update(block, label, 3)
    assert (exact.chosen[:, :3].sum(axis=1) == 1).all()
    assert (exact.chosen[:, 3:].sum(axis=1) == 1).all()
    assert np.array_equal(exact.chosen[:, :3].argmax(axis=1), exact.variance.argmin(axis=1))
    noise = family_of(block, budget=APPROXIMATE).update(block, label, 3)
    assert not noise.chosen.any()  # nothing tells the groups apart, and no column must be chosen
    steady = family_of(block, budget=APPROXIMATE, most_variance=np.inf, least_gain=-1.0).update(
        block, label, 3
    )
    assert steady.chosen.all()


def test_dp_means_is_the_case_of_numbers_all_chosen_and_variance_one_half():
    X = np.random.default_rng(0).normal(size=(30, 4))
    family = numbers_only(4)
    groups = CraftParams(
        X[:3], np.full((3, 4), 0.5), np.zeros((3, 0)), np.ones((3, 4), dtype=bool), np.ones(3)
    )
    cost = family.cost(groups, numeric_block(X)) - 4 * family.choice.f_delta
    assert cost == pytest.approx(Means().cost(Means().start(X[:3]), numeric_block(X)))


def test_algorithm_3_is_the_case_of_binary_columns_all_chosen():
    codes = (np.random.default_rng(0).random((30, 5)) < 0.4).astype(int)
    block = Block(np.zeros((30, 0)), Encoding(1.0, np.zeros(0)), codes=codes)
    start = np.arange(0, 11, 2)
    family = Paper(
        choice=Choice(0.5, 0.2),
        background=background_shares(codes, np.ones(30), start),
        level_start=start,
        n_numbers=0,
    )
    groups = family.update(block, np.arange(30) % 2, 2)
    groups = CraftParams(
        groups.mean, groups.variance, groups.level_share, np.ones((2, 5), dtype=bool), groups.weight
    )
    cost = family.cost(groups, block) - 5 * family.choice.f_delta
    binary = Bernoulli(family.background[1::2])
    ours = Centroids(groups.level_share[:, 1::2], groups.weight)
    assert cost == pytest.approx(binary.cost(ours, numeric_block(codes.astype(float))))


def test_the_numeric_term_is_the_same_for_every_partition():
    """With the variances of the groups themselves it is N D / 2: it ranks no partitions (supplement, eq. 12)."""
    figures = golden("seed_claims")["craft_numeric_term_degenerate"]
    X, species = numeric_table("iris")
    family, block = numbers_only(4, Choice(0.5, 0.125)), numeric_block(X)  # F_delta is 0
    for label, stored in [
        (np.zeros(150, dtype=int), "iris_K1"),
        (np.unique(species, return_inverse=True)[1], "iris_by_target"),
    ]:
        k = label.max() + 1
        mean = np.array([X[label == g].mean(axis=0) for g in range(k)])
        variance = np.array([X[label == g].var(axis=0) for g in range(k)])
        groups = CraftParams(mean, variance, np.zeros((k, 0)), np.ones((k, 4), dtype=bool), np.ones(k))
        total = family.cost(groups, block)[np.arange(150), label].sum()
        assert total == pytest.approx(figures[stored])


def test_the_objective_counts_chosen_columns_once_a_group():
    block = mixed_block()
    family = family_of(block, Choice(0.3, 0.1))
    label = np.arange(40) % 2
    groups = family.update(block, label, 2)
    cost = family.cost(groups, block)[np.arange(40), label]
    f0, f_delta = craft.constants(0.3, 0.1)
    n_chosen = groups.chosen.sum(axis=1)
    expected = cost.sum() - f_delta * n_chosen[label].sum() + (5.0 + 6 * f0) * 2 + f_delta * n_chosen.sum()
    assert objective(family, groups, block.weights, label, cost, 5.0) == pytest.approx(expected)

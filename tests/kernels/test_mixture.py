"""Scores, memberships and sums of one EM step: the compiled kernels against their NumPy twin, and both against
what they mean."""

from __future__ import annotations

from itertools import product
from math import inf
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ilk import kernels
from ilk.kernels import plain, plain_mixture

Array = NDArray[np.floating]
Step = tuple[Array, Array, Array, float]

LAYOUTS = {
    "rows": lambda raw: raw,
    "columns": np.asfortranarray,
    "backwards": lambda raw: raw[::-1, ::-1],
    "every second": lambda raw: np.repeat(np.repeat(raw, 2, axis=0), 2, axis=1)[::2, ::2],
    "one row, many times": lambda raw: np.broadcast_to(raw[:1], raw.shape),
}
# (columns, components)
SHAPES = list(product([1, 2, 3, 5, 8, 13, 32, 60], [1, 2, 5, 9, 20]))
ROWS = [0, 1, 7, 64, 65, 1000]


@pytest.fixture
def mixture(path: ModuleType) -> ModuleType:
    """The module of mixture kernels to test, set to one instruction set."""
    return plain_mixture if path is plain else path


def nothing(n_columns: int) -> tuple[float, Array, None]:
    """The encoding that changes nothing."""
    return 1.0, np.zeros(n_columns), None


def encoding(rng: np.random.Generator, n_columns: int) -> tuple[float, Array, Array | None]:
    factor = rng.uniform(0.5, 2, size=n_columns) if rng.integers(2) else None
    return 0.5, rng.normal(size=n_columns), factor


def components(rng: np.random.Generator, k: int, d: int, diagonal: bool) -> tuple[Array, Array, Array]:
    """Means, whitening and log weights of overlapping components."""
    whiten = rng.uniform(0.3, 1, size=(k, d))
    if not diagonal:
        whiten = np.tril(rng.normal(size=(k, d, d)) / (2 * np.sqrt(d))) + whiten[:, :, None] * np.eye(d)
    return rng.normal(size=(k, d)), whiten, rng.normal(size=k)


def assert_same_sums(found: Step, expected: Step, cost_scale: float) -> None:
    """Equal up to 1e-12 of what was added up: cancellation between rows is not held against anyone."""
    count, shift, scatter, cost = expected
    spread = np.sqrt(scatter if scatter.ndim == 2 else scatter.diagonal(axis1=1, axis2=2))
    either = spread if scatter.ndim == 2 else spread[:, None, :]
    np.testing.assert_allclose(found[0], count, rtol=1e-12, atol=1e-300)
    assert (np.abs(found[1] - shift) <= 1e-12 * np.sqrt(count)[:, None] * spread + 1e-300).all()
    pairs = either * (spread if scatter.ndim == 2 else spread[:, :, None])
    assert (np.abs(found[2] - scatter) <= 1e-12 * pairs + 1e-300).all()
    assert abs(np.sum(found[3]) - np.sum(cost)) <= 1e-12 * cost_scale


def cost_scale(scores: Array, weight: Array | None) -> float:
    cost = np.abs(plain_mixture.memberships(scores, False)[1])
    return float(cost.sum() if weight is None else cost @ weight) + 1e-300


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("hard", [False, True])
def test_step_is_that_of_the_twin(
    compiled_path: ModuleType, kind: type, layout: str, diagonal: bool, hard: bool
) -> None:
    mixture = compiled_path
    turn = len(layout) + 2 * hard + diagonal
    for number, (d, k) in enumerate(SHAPES[turn % 4 :: 4]):
        rng = np.random.default_rng([d, k, len(layout)])
        n = ROWS[(number + turn) % len(ROWS)]
        raw = LAYOUTS[layout](2 * rng.normal(size=(n, d)).astype(kind))
        raw.flags.writeable = False
        coded, parts = encoding(rng, d), components(rng, k, d, diagonal)
        weight = None if number % 3 == 0 else rng.choice([0.0, 0.25, 1.0, 3.0], size=n)

        found = mixture.mixture_step(raw, *coded, weight, *parts, hard)

        expected = plain_mixture.mixture_step(raw, *coded, weight, *parts, hard)
        scores = plain_mixture.mixture_scores(raw, *coded, *parts)
        assert [np.shape(part) for part in found] == [np.shape(part) for part in expected]
        assert_same_sums(found, expected, cost_scale(scores, weight))
        np.testing.assert_allclose(
            mixture.mixture_scores(raw, *coded, *parts), scores, rtol=1e-13, atol=1e-13
        )


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("apart", [1.0, 3.0, 30.0])
def test_rows_of_no_weight_are_left_out_without_a_trace(
    compiled_path: ModuleType, diagonal: bool, apart: float
) -> None:
    """Groups near and far from one another: from rows that belong to all components to rows that belong to one."""
    for d, k in product([5, 8, 30], [2, 4, 9]):
        rng = np.random.default_rng([d, k])
        mean, whiten, log_weight = components(rng, k, d, diagonal)
        mean *= apart
        raw = mean[rng.integers(0, k, 500)] + rng.normal(size=(500, d))
        found = compiled_path.mixture_step(raw, *nothing(d), None, mean, whiten, log_weight)
        expected = plain_mixture.mixture_step(raw, *nothing(d), None, mean, whiten, log_weight)
        scores = plain_mixture.mixture_scores(raw, *nothing(d), mean, whiten, log_weight)
        assert_same_sums(found, expected, cost_scale(scores, None))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("scatters", ["full", "diagonal"])
def test_gathered_sums_are_those_of_the_twin(mixture: ModuleType, kind: type, scatters: str) -> None:
    for number, (d, k) in enumerate(SHAPES[scatters == "diagonal" :: 3]):
        rng = np.random.default_rng([d, k])
        n = ROWS[number % len(ROWS)]
        raw, coded = 2 * rng.normal(size=(n, d)).astype(kind), encoding(rng, d)
        mean, membership = rng.normal(size=(k, d)), rng.dirichlet(np.ones(k), size=n)
        membership[rng.random((n, k)) < 0.3] = 0.0
        weight = None if number % 2 else rng.choice([0.0, 0.25, 1.0, 3.0], size=n)
        found = mixture.mixture_gather(raw, *coded, weight, mean, membership, scatters)
        expected = plain_mixture.mixture_gather(raw, *coded, weight, mean, membership, scatters)
        assert_same_sums((*found, 0.0), (*expected, 0.0), 1.0)


def test_gathering_the_memberships_of_a_step_gives_its_sums(mixture: ModuleType) -> None:
    rng = np.random.default_rng(2)
    raw, parts = rng.normal(size=(300, 4)), components(rng, 3, 4, diagonal=False)
    step = mixture.mixture_step(raw, *nothing(4), None, *parts)
    membership = mixture.memberships(mixture.mixture_scores(raw, *nothing(4), *parts), False)[0]
    assert_same_sums(
        (*mixture.mixture_gather(raw, *nothing(4), None, parts[0], membership), step[3]), step, 1.0
    )


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("diagonal", [False, True])
def test_labels_are_the_highest_scores(mixture: ModuleType, hard: bool, diagonal: bool) -> None:
    for number, (d, k) in enumerate(SHAPES[::2]):
        rng = np.random.default_rng([d, k])
        raw, coded = rng.normal(size=(ROWS[number % len(ROWS)], d)), encoding(rng, d)
        mean, whiten, log_weight = components(rng, k, d, diagonal)
        mean[-1], whiten[-1], log_weight[-1] = mean[0], whiten[0], log_weight[0]  # a tie: the lowest number
        label, top, cost = mixture.mixture_labels(raw, *coded, mean, whiten, log_weight, hard)
        scores = mixture.mixture_scores(raw, *coded, mean, whiten, log_weight)
        np.testing.assert_array_equal(label, scores.argmax(axis=1))
        np.testing.assert_array_equal(top, scores.max(axis=1))
        np.testing.assert_array_equal(cost, mixture.memberships(scores, hard)[1])


def test_a_row_impossible_everywhere_has_the_first_label(mixture: ModuleType) -> None:
    parts = np.zeros((2, 1)), np.ones((2, 1)), np.full(2, -inf)
    label, top, cost = mixture.mixture_labels(np.zeros((1, 1)), *nothing(1), *parts)
    assert (label.tolist(), top.tolist(), cost.tolist()) == ([0], [-inf], [inf])


def test_sums_are_those_written_out(mixture: ModuleType) -> None:
    rng = np.random.default_rng(0)
    raw, weight, parts = rng.normal(size=(100, 3)), rng.random(100), components(rng, 4, 3, diagonal=False)
    mean, whiten, log_weight = parts
    away = raw.astype(np.longdouble)[:, None, :] - mean
    scores = log_weight - np.square(np.einsum("kij,nkj->nki", whiten, away)).sum(axis=2) / 2
    density = np.exp(scores)
    membership = weight[:, None] * density / density.sum(axis=1, keepdims=True)
    found = mixture.mixture_step(raw, *nothing(3), weight, *parts)
    np.testing.assert_allclose(found[0], membership.sum(axis=0).astype(float), rtol=1e-13)
    np.testing.assert_allclose(found[1], np.einsum("nk,nki->ki", membership, away).astype(float), rtol=1e-12)
    scatter = np.einsum("nk,nki,nkj->kij", membership, away, away).astype(float)
    np.testing.assert_allclose(found[2], scatter, rtol=1e-12)
    np.testing.assert_allclose(found[2], found[2].swapaxes(1, 2), rtol=1e-14)
    np.testing.assert_allclose(found[3].sum(), -float(weight @ np.log(density.sum(axis=1))), rtol=1e-13)


@pytest.mark.parametrize("hard", [False, True])
def test_memberships_are_those_of_the_twin(mixture: ModuleType, hard: bool) -> None:
    rng = np.random.default_rng(1)
    for n, k in product(ROWS, [1, 2, 5, 20]):
        scores = np.round(rng.normal(scale=30, size=(n, k)))  # whole numbers: ties
        scores[rng.random((n, k)) < 0.2] = -inf
        membership, cost = mixture.memberships(scores, hard)
        expected = plain_mixture.memberships(scores, hard)
        np.testing.assert_allclose(membership, expected[0], rtol=1e-13, atol=1e-300)
        np.testing.assert_allclose(cost, expected[1], rtol=1e-14, atol=1e-15)
        possible = np.isfinite(scores).any(axis=1)
        np.testing.assert_allclose(membership[possible].sum(axis=1), 1.0, rtol=1e-14)


def test_memberships_are_exact_from_equal_odds_to_the_smallest_numbers(mixture: ModuleType) -> None:
    gap = np.linspace(0, 745, 20_001)
    scores = np.column_stack([np.zeros_like(gap), -gap])
    small = np.exp(-gap.astype(np.longdouble))
    membership, cost = mixture.memberships(scores, False)
    exact = (small / (1 + small)).astype(float)
    np.testing.assert_allclose(membership[:, 1], exact, rtol=1e-15, atol=1e-307)
    np.testing.assert_allclose(cost, -np.log1p(small).astype(float), rtol=1e-15, atol=3e-16)


def test_costs_of_equal_components_are_logarithms_of_their_number(mixture: ModuleType) -> None:
    for k in [1, 2, 3, 7, 100, 1000]:
        membership, cost = mixture.memberships(np.full((3, k), 5.0), False)
        np.testing.assert_allclose(cost, -5 - np.log(k), rtol=3e-16)
        np.testing.assert_allclose(membership, 1 / k, rtol=1e-15)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("diagonal", [False, True])
def test_a_trimmed_step_is_that_of_the_rows_left(mixture: ModuleType, hard: bool, diagonal: bool) -> None:
    """The row at the limit is found again to the bit: its cost comes from `memberships` of the scores."""
    rng = np.random.default_rng(2)
    raw, weight = rng.normal(size=(500, 5)), rng.random(500)
    parts, coded = components(rng, 3, 5, diagonal), encoding(rng, 5)
    cost = mixture.memberships(mixture.mixture_scores(raw, *coded, *parts), hard)[1]
    for row in np.argsort(cost)[[0, 1, 250, 449, 498, 499]]:
        found = mixture.mixture_step(raw, *coded, weight, *parts, hard, cost[row], 0.25)
        kept = np.where(cost > cost[row], 0.0, np.where(cost == cost[row], 0.25 * weight, weight))
        expected = mixture.mixture_step(raw, *coded, kept, *parts, hard)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(found[0].sum(), kept.sum(), rtol=1e-13)


def test_a_component_of_zeros_is_uniform(mixture: ModuleType) -> None:
    rng = np.random.default_rng(3)
    for diagonal in (False, True):
        raw, (mean, whiten, log_weight) = rng.normal(size=(300, 4)), components(rng, 3, 4, diagonal)
        whiten[2], log_weight[2] = 0.0, -7.5
        scores = mixture.mixture_scores(raw, *nothing(4), mean, whiten, log_weight)
        np.testing.assert_array_equal(scores[:, 2], -7.5)


def test_a_component_of_no_weight_gets_nothing(mixture: ModuleType) -> None:
    rng = np.random.default_rng(4)
    raw, (mean, whiten, log_weight) = rng.normal(size=(300, 4)), components(rng, 3, 4, diagonal=False)
    log_weight[1] = -inf
    count, shift, scatter, cost = mixture.mixture_step(raw, *nothing(4), None, mean, whiten, log_weight)
    assert count[1] == 0
    assert (shift[1] == 0).all()
    assert (scatter[1] == 0).all()
    assert np.isfinite(cost).all()
    np.testing.assert_allclose(count.sum(), 300, rtol=1e-13)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("diagonal", [False, True])
def test_components_far_apart_share_nothing(mixture: ModuleType, hard: bool, diagonal: bool) -> None:
    """Log densities 1e6 and more apart: every row belongs to one component, and its digits are all there."""
    rng = np.random.default_rng(5)
    d, k, label = 3, 4, rng.integers(4, size=900)
    mean, whiten, log_weight = components(rng, k, d, diagonal)
    mean += 1e4 * np.arange(k)[:, None]
    raw = mean[label] + rng.normal(size=(900, d))
    count, shift, scatter, cost = mixture.mixture_step(raw, *nothing(d), None, mean, whiten, log_weight, hard)
    assert np.isfinite(cost).all()
    np.testing.assert_array_equal(count, np.bincount(label))
    for component in range(k):
        away = raw[label == component] - mean[component]
        own = np.square(away).sum(axis=0) if diagonal else away.T @ away
        np.testing.assert_allclose(shift[component], away.sum(axis=0), rtol=1e-12)
        np.testing.assert_allclose(scatter[component], own, rtol=1e-12)


@pytest.mark.parametrize("d", [5, 16, 32])
def test_rows_of_small_membership_are_left_out_only_where_they_change_nothing(
    mixture: ModuleType, d: int
) -> None:
    """Memberships of all sizes; a component that has only tiny ones; a far row that belongs to one a little."""
    rng = np.random.default_rng([10, d])
    k, n = 6, 3000
    mean = rng.normal(size=(k, d)) * np.sqrt(40 / d)
    whiten, log_weight = rng.uniform(0.7, 1.4, size=(k, d)), np.zeros(k)
    mean[4:], whiten[4:], log_weight[4] = mean[0], whiten[0], -60.0
    mean[:, 0], whiten[:, 0] = 0.0, 1.0
    raw = mean[rng.integers(4, size=n)] + rng.normal(size=(n, d))
    mean[5, 0] = -4.14e-4  # like component 0, but for the far row
    raw[2000] = mean[0]
    raw[2000, 0] = 1e5
    parts = mean, whiten, log_weight
    found = mixture.mixture_step(raw, *nothing(d), None, *parts)
    scores = plain_mixture.mixture_scores(raw, *nothing(d), *parts)
    membership = plain_mixture.memberships(scores, False)[0]
    assert ((membership > 0) & (membership < 1e-30)).mean() > 0.1
    assert 0 < membership[:, 4].max() < 1e-20
    assert 1e-19 < membership[2000, 5] < 1e-17
    expected = plain_mixture.mixture_step(raw, *nothing(d), None, *parts)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    spread = np.sqrt(expected[2])
    assert (np.abs(found[1] - expected[1]) <= 1e-12 * np.sqrt(expected[0])[:, None] * spread).all()
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-12)


@pytest.mark.parametrize("hard", [False, True])
def test_an_impossible_row_costs_infinity_and_nothing_is_undefined(mixture: ModuleType, hard: bool) -> None:
    rng = np.random.default_rng(6)
    raw, parts = rng.normal(size=(50, 3)), components(rng, 2, 3, diagonal=True)
    raw[7] = 1e160  # its square overflows
    with np.errstate(over="ignore"):
        count, shift, scatter, cost = mixture.mixture_step(raw, *nothing(3), None, *parts, hard)
    assert cost.sum() == inf
    assert not any(np.isnan(part).any() for part in (count, shift, scatter))
    kept = np.ones(50)
    kept[7] = 0
    with np.errstate(over="ignore"):
        without = mixture.mixture_step(raw, *nothing(3), kept, *parts, hard)
    assert all(np.isfinite(part).all() for part in without)
    np.testing.assert_allclose(without[0].sum(), 49, rtol=1e-13)
    if not hard:
        np.testing.assert_array_equal(count, without[0])


def test_memberships_of_a_row_add_up_to_its_weight(mixture: ModuleType) -> None:
    rng = np.random.default_rng(7)
    for d, k in SHAPES:
        weight = rng.random(333)
        raw, parts = rng.normal(size=(333, d)), components(rng, k, d, diagonal=bool(k % 2))
        count = mixture.mixture_step(raw, *nothing(d), weight, *parts)[0]
        np.testing.assert_allclose(count.sum(), weight.sum(), rtol=1e-13)


def test_the_order_of_rows_is_rounding_and_a_repetition_is_not(mixture: ModuleType) -> None:
    rng = np.random.default_rng(8)
    raw, parts = rng.normal(size=(1000, 6)), components(rng, 4, 6, diagonal=False)

    def step(rows: Array) -> Any:
        return mixture.mixture_step(rows, *nothing(6), None, *parts)

    first, again, turned = step(raw), step(raw.copy()), step(raw[rng.permutation(1000)])
    scores = mixture.mixture_scores(raw, *nothing(6), *parts)
    assert_same_sums(turned, first, cost_scale(scores, None))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(not kernels.COMPILED, reason="no compiled kernels")
def test_wrong_shapes_are_refused() -> None:
    rng = np.random.default_rng(9)
    raw, (mean, whiten, log_weight) = rng.normal(size=(10, 3)), components(rng, 3, 3, diagonal=False)
    for bad in (
        (mean[:, :2], whiten, log_weight),
        (mean, whiten[:2], log_weight),
        (mean, whiten[:, :, :2], log_weight),
        (mean, whiten, log_weight[:1]),
        (mean[:0], whiten[:0], log_weight[:0]),
    ):
        with pytest.raises(ValueError, match=r"component|columns"):
            kernels.mixture_scores(raw, *nothing(3), *bad)
    with pytest.raises(ValueError, match="one number per row"):
        kernels.mixture_step(raw, *nothing(3), np.ones(9), mean, whiten, log_weight)

"""Components that share one whitening: rows whitened once and one pooled scatter, against the components one by one."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from ilk.kernels import plain_mixture
from tests.kernels.test_mixture import LAYOUTS, ROWS, SHAPES, Array, components, encoding, nothing
from tests.kernels.test_mixture import mixture as mixture  # the fixture

SEVERAL = [(d, k) for d, k in SHAPES if k > 1]


def tied(rng: np.random.Generator, k: int, d: int) -> tuple[Array, Array, Array]:
    mean, whiten, log_weight = components(rng, k, d, diagonal=False)
    return mean, whiten[:1], log_weight


def one_by_one(parts: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """The same components, each with a whitening of its own."""
    mean, whiten, log_weight = parts
    return mean, np.repeat(whiten, len(mean), axis=0), log_weight


def assert_same_scatter(found: Array, expected: Array) -> None:
    spread = np.sqrt(np.diagonal(expected))
    assert (np.abs(found - expected) <= 1e-12 * np.outer(spread, spread) + 1e-300).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("hard", [False, True])
def test_sums_are_those_of_the_components_one_by_one(
    mixture: ModuleType, kind: type, layout: str, hard: bool
) -> None:
    turn = len(layout) + hard
    for number, (d, k) in enumerate(SEVERAL[turn % 4 :: 4]):
        rng = np.random.default_rng([d, k, len(layout)])
        n = ROWS[(number + turn) % len(ROWS)]
        raw = LAYOUTS[layout](2 * rng.normal(size=(n, d)).astype(kind))
        coded, parts = encoding(rng, d), tied(rng, k, d)
        weight = None if number % 3 == 0 else rng.choice([0.0, 0.25, 1.0, 3.0], size=n)
        count, shift, scatter, cost = mixture.mixture_step(raw, *coded, weight, *parts, hard)
        apart = plain_mixture.mixture_step(raw, *coded, weight, *one_by_one(parts), hard)
        np.testing.assert_allclose(count, apart[0], rtol=1e-12, atol=1e-300)
        spread = np.sqrt(np.diagonal(apart[2], axis1=1, axis2=2))
        assert (np.abs(shift - apart[1]) <= 1e-12 * np.sqrt(apart[0])[:, None] * spread + 1e-300).all()
        assert scatter.shape == (1, d, d)
        assert_same_scatter(scatter[0], apart[2].sum(axis=0))
        assert cost.sum() == pytest.approx(apart[3].sum(), rel=1e-12, abs=1e-9)
        scores = mixture.mixture_scores(raw, *coded, *parts)
        expected = plain_mixture.mixture_scores(raw, *coded, *one_by_one(parts))
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


def test_gathered_sums_are_those_of_the_components_one_by_one(mixture: ModuleType) -> None:
    for number, (d, k) in enumerate(SEVERAL[::2]):
        rng = np.random.default_rng([d, k])
        n = ROWS[number % len(ROWS)]
        raw, coded, mean = 2 * rng.normal(size=(n, d)), encoding(rng, d), rng.normal(size=(k, d))
        membership = rng.dirichlet(np.ones(k), size=n) * rng.random((n, 1))  # rows need not sum to one
        membership[rng.random((n, k)) < 0.3] = 0.0
        weight = None if number % 2 else rng.choice([0.0, 0.25, 1.0, 3.0], size=n)
        found = mixture.mixture_gather(raw, *coded, weight, mean, membership, "pooled")
        apart = plain_mixture.mixture_gather(raw, *coded, weight, mean, membership)
        np.testing.assert_allclose(found[0], apart[0], rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(found[1], apart[1], rtol=1e-10, atol=1e-10)
        assert_same_scatter(found[2][0], apart[2].sum(axis=0))


@pytest.mark.parametrize("away", [1e3, 1e6])
def test_no_digits_are_lost_between_means_far_apart(mixture: ModuleType, away: float) -> None:
    """Pairs of components that overlap, the pairs `away` standard deviations apart: total less between would keep
    16 - 2 log10(away) digits of the scatter within."""
    rng = np.random.default_rng(6)
    d, k, n = 8, 6, 900
    mean = np.repeat(away * rng.normal(size=(k // 2, d)), 2, axis=0) + rng.normal(size=(k, d))
    raw = mean[rng.integers(k, size=n)] + rng.normal(size=(n, d))
    parts = mean, np.tril(0.2 * rng.normal(size=(1, d, d))) + np.eye(d), np.zeros(k)
    _, _, scatter, cost = mixture.mixture_step(raw, *nothing(d), None, *parts)
    membership = plain_mixture.memberships(
        plain_mixture.mixture_scores(raw, *nothing(d), *one_by_one(parts)), False
    )[0].astype(np.longdouble)
    differences = raw.astype(np.longdouble)[:, None, :] - mean
    exact = np.einsum("nk,nki,nkj->ij", membership, differences, differences).astype(float)
    assert (membership.max(axis=1) < 0.99).mean() > 0.1  # the memberships are soft
    spread = np.sqrt(np.diagonal(exact))
    assert (np.abs(scatter[0] - exact) <= 1e-9 * np.outer(spread, spread)).all()
    assert np.isfinite(cost).all()


def test_a_row_that_counts_nothing_changes_nothing(mixture: ModuleType) -> None:
    rng = np.random.default_rng(8)
    raw, parts = rng.normal(size=(100, 7)), tied(rng, 3, 7)
    weight = np.ones(100)
    raw[7], weight[7] = 1e160, 0.0
    with np.errstate(over="ignore"):
        found = mixture.mixture_step(raw, *nothing(7), weight, *parts)
    without = mixture.mixture_step(np.delete(raw, 7, axis=0), *nothing(7), None, *parts)
    for one, other in zip(found, without, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)

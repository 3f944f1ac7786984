"""Mixtures of products over columns: the compiled kernels against their NumPy twin, and both against what they mean."""

from __future__ import annotations

from itertools import product
from math import inf
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from ilk import kernels
from ilk.kernels import plain, plain_product

Array = NDArray[Any]

# (numeric columns, levels of the categorical columns, components)
SHAPES = list(product([0, 1, 5, 8, 13], [(), (2,), (1, 3, 7), (2,) * 10, (40, 1)], [1, 3, 8, 9, 20]))


@pytest.fixture
def products(path: ModuleType) -> ModuleType:
    """The module of product kernels to test, set to one instruction set."""
    return plain_product if path is plain else path


class Case:
    """A random table with missing cells, and components for it."""

    def __init__(
        self, seed: int, rows: int, numbers: int, levels: tuple[int, ...], k: int, missing=0.2
    ) -> None:
        rng = np.random.default_rng(seed)
        self.raw = rng.normal(size=(rows, numbers))
        self.raw[rng.random((rows, numbers)) < missing] = np.nan
        self.codes = None
        if levels:
            self.codes = np.column_stack([rng.integers(0, n, size=rows) for n in levels]).astype(np.int32)
            self.codes[rng.random(self.codes.shape) < missing] = -1
        self.encoding = (
            0.5,
            rng.normal(size=numbers),
            rng.uniform(0.5, 2, size=numbers) if seed % 2 else None,
        )
        self.level_start = np.cumsum([0, *levels])
        deviation = rng.uniform(0.3, 1.0, size=(k, numbers))
        self.mean, self.precision = rng.normal(size=(k, numbers)), deviation**-2
        self.log_norm = -np.log(deviation) - np.log(2 * np.pi) / 2
        shares = [rng.dirichlet(np.ones(n), size=k) for n in levels]
        self.log_level = np.log(np.hstack([np.empty((k, 0)), *shares]))
        self.log_mixing = np.log(rng.dirichlet(np.ones(k)))
        self.weight = rng.random(rows) * (rng.random(rows) > 0.1)

    @property
    def components(self) -> tuple[Array, ...]:
        return (self.log_mixing, self.mean, self.precision, self.log_norm, self.log_level, self.level_start)

    def scores(self, kernel: Any) -> Array:
        return kernel.product_scores(self.raw, *self.encoding, self.codes, *self.components)

    def step(self, kernel: Any, *rule: Any, weighted: bool = True) -> Any:
        weight = self.weight if weighted else None
        return kernel.product_step(self.raw, *self.encoding, self.codes, weight, *self.components, *rule)

    def sums(self, kernel: Any, membership: Array) -> Any:
        return kernel.product_sums(
            self.raw, *self.encoding, self.codes, membership, self.mean, self.level_start
        )


def assert_same(one: Any, other: Any, scale: float) -> None:
    for name, mine, theirs in zip(one._fields, one, other, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-13 * scale, err_msg=name)


@pytest.mark.parametrize("single", [False, True])
def test_all_kernels_mean_what_the_twin_means(products: ModuleType, single: bool) -> None:
    for seed, (numbers, levels, k) in enumerate(SHAPES):
        case = Case(seed, (0, 1, 47, 48, 97, 300)[seed % 6], numbers, levels, k)
        if single:
            case.raw = case.raw.astype(np.float32)
        expected = case.scores(plain_product)
        np.testing.assert_allclose(case.scores(products), expected, rtol=1e-12, atol=1e-12)
        for rule in [(False,), (True,)]:
            sums, cost, entropy = case.step(products, *rule)
            theirs = case.step(plain_product, *rule)
            assert_same(sums, theirs[0], len(case.raw))
            assert cost == pytest.approx(theirs[1], rel=1e-11, abs=1e-11)
            assert entropy == pytest.approx(theirs[2], rel=1e-9, abs=1e-10)
        membership = np.random.default_rng(seed).random(expected.shape)
        assert_same(case.sums(products, membership), case.sums(plain_product, membership), len(case.raw))


def test_scores_are_densities_and_entropy_is_entropy(products: ModuleType) -> None:
    case = Case(1, 200, 4, (3, 2), 3)
    power, centre, factor = case.encoding
    numbers = (case.raw * power - centre) * factor
    density = np.nan_to_num(norm.logpdf(numbers[:, None], case.mean, case.precision**-0.5)).sum(axis=2)
    for row in range(200):
        for column in range(2):
            if case.codes[row, column] >= 0:
                density[row] += case.log_level[:, case.level_start[column] + case.codes[row, column]]
    scores = density + case.log_mixing
    np.testing.assert_allclose(case.scores(products), scores, rtol=1e-12)
    told = (case.codes >= 0).any(axis=1) | ~np.isnan(case.raw).all(axis=1)
    weight, membership = case.weight * told, np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    sums, cost, entropy = case.step(products)
    assert cost == pytest.approx(-weight @ logsumexp(scores, axis=1), rel=1e-12)
    assert entropy == pytest.approx(-weight @ (membership * np.log(membership)).sum(axis=1), rel=1e-10)
    np.testing.assert_allclose(sums.weight, weight @ membership, rtol=1e-12)
    own = membership * weight[:, None]
    for column in range(2):
        for level in range(case.level_start[column + 1] - case.level_start[column]):
            expected = own[case.codes[:, column] == level].sum(axis=0)
            found = sums.counts[:, case.level_start[column] + level]
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)


def test_missing_cells_say_nothing(products: ModuleType) -> None:
    """A column that is missing throughout is as good as absent, and a row that is does not count."""
    case, fewer = Case(2, 150, 3, (4, 2), 5, 0.4), Case(2, 150, 3, (4, 2), 5, 0.4)
    case.raw[:, 1], case.codes[:, 0] = np.nan, -1
    kept = [0, 2]
    fewer.raw, fewer.codes = case.raw[:, kept], np.ascontiguousarray(case.codes[:, 1:])
    power, centre, factor = case.encoding
    fewer.encoding = (power, centre[kept], None if factor is None else factor[kept])
    for name in ("mean", "precision", "log_norm"):
        setattr(fewer, name, np.ascontiguousarray(getattr(case, name)[:, kept]))
    fewer.log_level = np.ascontiguousarray(case.log_level[:, 4:])
    fewer.level_start = np.array([0, 2])
    np.testing.assert_allclose(case.scores(products), fewer.scores(products), rtol=1e-13)
    one, two = case.step(products), fewer.step(products)
    assert one[1:] == pytest.approx(two[1:])
    empty = np.isnan(case.raw).all(axis=1) & (case.codes < 0).all(axis=1)
    assert empty.any()
    assert one[0].weight.sum() == pytest.approx(case.weight[~empty].sum())
    assert (one[0].observed[:, 1] == 0).all()
    assert (one[0].counts[:, :4] == 0).all()


def test_a_code_that_is_no_level_is_missing(products: ModuleType) -> None:
    case = Case(3, 100, 1, (3, 2), 2, missing=0.0)
    other = Case(3, 100, 1, (3, 2), 2, missing=0.0)
    case.codes[::3, 0], other.codes[::3, 0] = 3, -1
    case.codes[1::3, 1], other.codes[1::3, 1] = 2**31 - 1, -1
    np.testing.assert_array_equal(case.scores(products), other.scores(products))
    assert_same(case.step(products)[0], other.step(products)[0], 1.0)


@pytest.mark.parametrize("hard", [False, True])
def test_a_trimmed_step_is_that_of_the_rows_left(products: ModuleType, hard: bool) -> None:
    """The row at the limit is found again to the bit: its cost comes from `memberships` of the scores."""
    case = Case(4, 300, 3, (3, 5), 3)
    memberships = kernels.memberships if products is not plain_product else plain_product.memberships
    cost = memberships(case.scores(products), hard)[1]
    for row in np.argsort(cost)[[0, 150, 298, 299]]:
        found = case.step(products, hard, cost[row], 0.25)
        whole = case.weight
        case.weight = np.where(cost > cost[row], 0.0, np.where(cost == cost[row], 0.25 * whole, whole))
        expected = case.step(products, hard)
        case.weight = whole
        for one, other in zip(found[0], expected[0], strict=True):
            np.testing.assert_array_equal(one, other)
        assert found[1:] == expected[1:]


def test_an_impossible_row_costs_infinity_and_nothing_is_undefined(products: ModuleType) -> None:
    case = Case(5, 60, 2, (2,), 3, missing=0.0)
    case.log_level[:, 1] = -inf
    case.codes[:, 0] = 0
    case.codes[7, 0] = 1
    case.weight = np.ones(60)
    sums, cost, entropy = case.step(products)
    assert cost == inf
    assert np.isfinite(entropy)
    assert not any(np.isnan(part).any() for part in sums)
    assert sums.weight.sum() == pytest.approx(59)
    case.weight[7] = 0.0
    assert np.isfinite(case.step(products)[1])


def test_digits_survive_far_apart_components(products: ModuleType) -> None:
    """Squares are of differences to the own mean, so components 1e6 apart keep the digits of their spread."""
    case = Case(6, 400, 2, (2,), 4, missing=0.0)
    case.encoding = (1.0, np.zeros(2), None)
    case.mean = 1e6 * np.arange(4.0)[:, None] + np.zeros((4, 2))
    label = np.random.default_rng(0).integers(4, size=400)
    case.raw += case.mean[label]
    sums, cost, entropy = case.step(products, weighted=False)
    assert np.isfinite(cost)
    assert entropy == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_array_equal(sums.weight, np.bincount(label))
    for k in range(4):
        away = case.raw[label == k] - case.mean[k]
        np.testing.assert_allclose(sums.first[k], away.sum(axis=0), rtol=1e-11)
        np.testing.assert_allclose(sums.second[k], np.square(away).sum(axis=0), rtol=1e-12)


def test_any_layout_of_the_numbers_will_do(products: ModuleType) -> None:
    case = Case(7, 130, 5, (3,), 2)
    expected = case.step(products)
    for raw in (np.asfortranarray(case.raw), np.repeat(case.raw, 2, axis=0)[::2]):
        case.raw = raw
        assert_same(case.step(products)[0], expected[0], 1.0)


@pytest.mark.skipif(not kernels.COMPILED, reason="no compiled kernels")
def test_wrong_shapes_are_refused() -> None:
    for name, bad in {
        "mean": np.zeros((2, 1)),
        "precision": np.zeros((1, 2)),
        "log_level": np.zeros((2, 3)),
        "level_start": np.array([0, 2, 1]),
        "log_mixing": np.empty(0),
        "codes": np.zeros((10, 1), dtype=np.int32),
    }.items():
        case = Case(8, 10, 2, (2, 2), 2)
        setattr(case, name, bad)
        with pytest.raises(ValueError, match=r"component|level|codes"):
            case.scores(kernels)
    case = Case(8, 10, 2, (2, 2), 2)
    case.weight = np.ones(9)
    with pytest.raises(ValueError, match="one number per row"):
        case.step(kernels)

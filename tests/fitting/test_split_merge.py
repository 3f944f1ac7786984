"""Cuts of a component in two: they find two groups, and rounding does not choose among axes that are as long."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from ilk import kernels
from ilk.fitting.split_merge import two_means


def whitened(points, weight):
    """By their own covariance: the variance is 1 along every axis."""
    centred = points - np.average(points, axis=0, weights=weight)
    covariance = (centred * weight[:, None]).T @ centred / weight.sum()
    return centred @ np.linalg.inv(np.linalg.cholesky(covariance)).T


@pytest.fixture
def two_groups():
    """Two groups apart along a direction in which the table is not long, and which group a row is of."""
    draw = np.random.default_rng(0)
    group = draw.integers(0, 2, 400)
    points = draw.normal(size=(400, 5)) * [9, 5, 1, 4, 7]
    points[:, 2] += np.where(group, 4, -4)
    turn = np.linalg.qr(draw.normal(size=(5, 5)))[0]
    return points @ turn, group, draw.integers(1, 4, 400).astype(float)


def test_axes_as_long_as_each_other_are_cut_where_rows_are_flattest(two_groups):
    points, group, weight = two_groups
    half = two_means(whitened(points, weight), weight)
    assert max((half == group).mean(), (half != group).mean()) > 0.98


def test_no_rounding_chooses_the_axis(two_groups):
    points, _, weight = two_groups
    even = whitened(points, weight)
    first = two_means(even, weight)
    for seed in range(5):
        noise = 1 + 1e-13 * np.random.default_rng(seed).standard_normal(even.shape)
        other = two_means(even * noise, weight)
        assert np.array_equal(first, other) or np.array_equal(first, ~other)


def test_the_longest_axis_is_cut_where_there_is_one():
    draw = np.random.default_rng(1)
    points = draw.normal(size=(300, 3)) * [1, 10, 1]
    half = two_means(points, np.ones(300))
    assert abs(np.corrcoef(half, points[:, 1])[0, 1]) > 0.7


@pytest.mark.parametrize("structure", ["EEE", "VVV"])
def test_mixtures_from_many_starts_do_not_hang_on_the_last_digit(structure, monkeypatch):
    """As sums of another processor or a GPU differ: the same optimum."""
    draw = np.random.default_rng(2)
    X = np.repeat(draw.integers(1, 11, (60, 4)).astype(float), 20, axis=0)
    usual = ilk.GaussianMixture(2, structure=structure, prior="default", random_state=0).fit(X)
    for name in ("mixture_step", "mixture_gather"):
        monkeypatch.setattr(kernels, name, blurred(getattr(kernels, name), draw))
    other = ilk.GaussianMixture(2, structure=structure, prior="default", random_state=0).fit(X)
    assert other.fit_.cost == pytest.approx(usual.fit_.cost, rel=1e-9)
    assert [run.cost for run in other.fit_.starts] == pytest.approx(
        [run.cost for run in usual.fit_.starts], rel=1e-7
    )


def blurred(kernel, draw):
    """The kernel, whose sums differ by some last digits; scatters stay symmetric."""

    def run(*given, **named):
        count, shift, scatter, *cost = kernel(*given, **named)
        half = draw.standard_normal(scatter.shape)
        noise = half + half.swapaxes(-1, -2) if scatter.ndim == 3 else half
        return (
            count * (1 + 1e-14 * draw.standard_normal(count.shape)),
            shift * (1 + 1e-14 * draw.standard_normal(shift.shape)),
            scatter * (1 + 1e-14 * noise),
            *cost,
        )

    return run

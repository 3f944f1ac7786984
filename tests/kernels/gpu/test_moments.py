"""Scores and sums by the moments of a row, against densities and sums written out; no GPU is needed."""

from __future__ import annotations

import numpy as np
import pytest

from ilk.kernels import plain_mixture
from ilk.kernels.gpu.moments import MOST_TERMS, MomentPlan
from tests.kernels.gpu.test_mixture_on_card import components

SHAPES = [(8, 128), (7, 40), (2, 17), (1, 20), (5, 70)]


def moments_of(plan, x):
    """(rows, moments), as the kernel makes them."""
    whole = np.column_stack([x, np.ones(len(x))])
    found = np.zeros((len(x), plan.moments))
    for number, (i, j) in enumerate(plan.pairs):
        found[:, number] = whole[:, i] * whole[:, j]
    return found


@pytest.mark.parametrize(("d", "k"), SHAPES)
def test_a_pass_by_moments_is_that_of_the_cpu(d, k):
    x = np.random.default_rng(0).normal(size=(500, d))
    plan = MomentPlan(d, k, "float64")
    assert plan.fits
    mean, whiten, logs = components(x, k, False)
    table, constant = plan.coefficients(mean, whiten, logs)
    assert plan.terms(table, constant, float(np.abs(x).max())) < MOST_TERMS
    scores = moments_of(plan, x) @ table + constant
    expected = plain_mixture.mixture_scores(x, 1.0, np.zeros(d), None, mean, whiten, logs)
    assert np.allclose(scores[:, :k], expected, rtol=0, atol=1e-9)
    assert (scores[:, k:] == -np.inf).all()
    membership = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    sums = plan.sums(moments_of(plan, x).T @ membership, mean)
    step = plain_mixture.mixture_step(x, 1.0, np.zeros(d), None, None, mean, whiten, logs)
    for one, other in zip(sums, step[:3], strict=True):
        assert np.abs(one - other).max() <= 1e-11 * np.abs(other).max()


def test_lanes_read_their_coefficients():
    plan = MomentPlan(3, 20, "float64")
    table = np.arange(plan.moments * plan.pitch, dtype=float).reshape(plan.moments, plan.pitch)
    read = plan.fragments(table).reshape(plan.moments // 8, plan.pitch // 8, 32, 2)
    for step, tile, lane in ((0, 0, 0), (1, 2, 13), (0, 3, 31)):
        g, q = lane // 4, lane % 4  # B of m16n8k8: (q, g) and (q + 4, g)
        assert read[step, tile, lane, 0] == table[8 * step + q, 8 * tile + g]
        assert read[step, tile, lane, 1] == table[8 * step + q + 4, 8 * tile + g]


def test_far_means_and_narrow_components_are_left_to_differences():
    plan = MomentPlan(2, 20, "float64")
    mean, logs = np.full((20, 2), 0.5), np.zeros(20)
    for narrow, few in ((1e-2, True), (1e-4, False)):
        table, constant = plan.coefficients(mean, np.tile(np.eye(2) / narrow, (20, 1, 1)), logs)
        assert (plan.terms(table, constant, 1.0) < MOST_TERMS) == few


def test_what_it_is_made_for():
    assert not MomentPlan(9, 40, "float64").fits
    assert not MomentPlan(8, 129, "float64").fits
    assert not MomentPlan(8, 16, "float64").fits
    assert not MomentPlan(8, 128, "float64", 99 * 1024).fits  # more shared memory than there is

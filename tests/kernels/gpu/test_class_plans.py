"""Latent classes in whole numbers, in NumPy: bytes of log-probabilities, places of levels, thresholds."""

from __future__ import annotations

import numpy as np
import pytest

from ilk.kernels.gpu.class_plans import COMPONENTS, SHARE, ClassPlan

SHAPES = [(2, 4, 6, 8, 10, 12, 14, 16, 18, 20), (3, 32, 5), (2,), (32, 32, 32, 25)]


@pytest.mark.parametrize("levels", SHAPES)
def test_columns_are_dealt_to_lanes_with_room(levels):
    plan = ClassPlan(levels, 16)
    assert plan.fits
    assert sorted(column for lane in plan.dealt for column in lane) == list(range(len(levels)))
    for lane in plan.dealt:
        assert sum(levels[column] for column in lane) <= 32
    assert len(set(plan.slots.tolist())) == sum(levels)


@pytest.mark.parametrize("levels", SHAPES)
def test_a_mask_times_the_bytes_is_the_sum_of_the_levels(levels):
    """As the kernel multiplies: register j of a lane holds bit j, j + 8, .. of its mask."""
    plan, draw = ClassPlan(levels, 16), np.random.default_rng(0)
    table = draw.integers(-(2**27), 2**20, (COMPONENTS, sum(levels)))
    words = plan.digits(table).reshape(4, 4, 32, 4, 4).astype(np.int64)
    codes = np.array([draw.integers(0, n) for n in levels])
    start = np.concatenate([[0], np.cumsum(levels)])[:-1]
    mask = [sum(1 << int(plan.base[c] + codes[c]) for c in lane) for lane in plan.dealt]
    score = np.zeros(COMPONENTS, dtype=np.int64)
    for digit in range(3, -1, -1):
        score = score * 256
        for step in range(4):
            for lane in range(32):
                g, q = lane // 4, lane % 4
                for register in range(4):
                    bits = mask[q] >> (2 * step + (register >> 1)) & 0x01010101
                    hot = np.array([bits >> (8 * byte) & 1 for byte in range(4)])
                    score[g + 8 * (register & 1)] += int(words[digit, step, lane, register] @ hot)
    assert np.array_equal(score, table[:, start + codes].sum(axis=1))


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("levels", SHAPES)
def test_counts_are_differences_of_thresholds(levels, gaps):
    plan, draw, n = ClassPlan(levels, 3, gaps), np.random.default_rng(1), 200
    codes = np.column_stack([draw.integers(0, k, n) for k in levels])
    if gaps:
        codes[draw.random(codes.shape) < 0.2] = 255
    places = np.where(codes == 255, 64, codes + plan.base)
    shares = draw.random((n, COMPONENTS))
    above = np.zeros((plan.tiles * 8, COMPONENTS))
    for number, (pattern, offset) in enumerate(plan.limits[: len(plan.thresholds)].astype(np.int64)):
        hot = (
            places[:, offset // 128] + (pattern & 0xFF)
        ) & 0x80  # one of the four bytes that the kernel adds at once
        above[number] = (hot > 0) @ shares * SHARE
    weight, counts = plan.counts(above)
    assert np.allclose(weight, shares[:, :3].sum(axis=0))
    at = 0
    for column, k in enumerate(levels):
        for level in range(k):
            assert np.allclose(counts[:, at + level], shares[codes[:, column] == level, :3].sum(axis=0))
        at += k


def test_what_has_no_room_is_not_taken():
    assert not ClassPlan((33,), 2).fits
    assert not ClassPlan((30, 30, 30, 30, 30), 2).fits
    assert not ClassPlan((3, 4), 17).fits
    assert not ClassPlan((), 2).fits

"""What the kernels of the GPU read and write, against plain arithmetic in NumPy; no GPU is needed."""

from __future__ import annotations

from fractions import Fraction
from math import fsum

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ilk.kernels import pairs, plain
from ilk.kernels.gpu import layouts, plans
from ilk.kernels.gpu.layouts import Scaled
from ilk.table.condition import condition


def unblocked(image, n, d):
    """The inverse of `blocked`: what a product with the image means."""
    return image.reshape(d // 8, n // 8, 8, 8).transpose(1, 2, 0, 3).reshape(n, d)


def fragments(d, half=False):
    """The columns that lane q of a row holds along k, as the kernels read pieces of 16 bytes."""
    cells = 8 if half else 4
    place = np.empty(d, dtype=int)
    for step in range(d // 16):
        for q in range(4):
            if half:
                piece = 8 * (step // 4) + 2 * q + step // 2 % 2
                mine = 8 * piece + 4 * (step % 2) + np.arange(4)
            else:
                piece = 8 * (step >> 1) + 2 * q + (step & 1) if d % 32 == 0 else 4 * step + q
                mine = cells * piece + np.arange(4)
            # A fragment of 16 along k: a lane has places 2q, 2q + 1 and 8 + 2q, 9 + 2q.
            place[16 * step + np.array([2 * q, 2 * q + 1, 8 + 2 * q, 9 + 2 * q])] = mine
    return place


@pytest.mark.parametrize(
    ("d", "half"), [(16, False), (32, False), (48, False), (64, False), (128, False), (64, True)]
)
def test_places_are_the_columns_that_lanes_read(d, half):
    place = layouts.places(d, half)
    assert sorted(place) == list(range(d))
    assert np.array_equal(place, fragments(d, half))


@pytest.mark.parametrize(("d", "k"), [(16, 3), (32, 100), (64, 50)])
@pytest.mark.parametrize("terms", [1, 3])
def test_scores_of_the_image_are_distances(d, k, terms):
    generator = np.random.default_rng(0)
    points, x = generator.normal(size=(k, d)) * 9, generator.normal(size=(20, d)) * 9
    constant = 5.0
    image, limits = layouts.fused_image(points, terms, constant)
    n = max(16, plans.up(k, 8))
    parts = image.astype(np.float64).reshape(-1)
    wide = d * (2 if terms == 3 else 1)
    meant = sum(unblocked(part, n, d) for part in parts[: wide * n].reshape(-1, n * d))
    norms = unblocked(parts[wide * n :], n, 16)
    score = x[:, layouts.places(d)] @ meant.T + 16 * norms[:, :3].sum(axis=1)
    exact = np.square(points).sum(axis=1) - 2 * x @ points.T - constant
    away = np.sqrt(np.square(x[:, None] - points).sum(axis=2))
    assert (np.abs(score[:, :k] - exact) <= 2 * away * limits[1] + 1e-6 * np.abs(exact).max()).all()
    assert (score[:, k:] > exact.max()).all()


@pytest.mark.parametrize(("d", "k", "half"), [(64, 300, False), (128, 1000, False), (128, 130, True)])
@pytest.mark.parametrize("terms", [1, 3])
def test_chunks_of_centres_are_all_of_them(d, k, half, terms):
    points = np.random.default_rng(1).normal(size=(k, d)) * 5
    chunk, parts = (128, 1) if terms == 1 else (64, 2)
    image, norms, _ = layouts.large_image(points, terms, half, chunk)
    blocks = image.astype(np.float64).reshape(-1, parts, chunk * d)
    meant = np.concatenate([sum(unblocked(part, chunk, d) for part in block) for block in blocks])
    assert np.allclose(meant[:k], -2 * points[:, layouts.places(d, half)], atol=2e-2 if terms == 1 else 1e-5)
    assert not meant[k:].any()
    assert (norms[k:] == np.float32(1e30)).all()


def mma(sums, a, b):
    """`mma.m16n8k16`: registers of 32 lanes, a (32, 4, 2) and b (32, 2, 2) halves, added to sums (32, 4)."""
    lane = np.arange(32)
    g, q = lane // 4, lane % 4
    left, right = np.zeros((16, 16)), np.zeros((16, 8))
    for register in range(4):
        for half in range(2):
            left[g + 8 * (register % 2), 2 * q + half + 8 * (register // 2)] = a[:, register, half]
    for register in range(2):
        for half in range(2):
            right[2 * q + half + 8 * register, g] = b[:, register, half]
    product = left @ right
    for e in range(4):
        sums[:, e] += product[g + 8 * (e // 2), 2 * q + e % 2]


@pytest.mark.parametrize("d", [16, 32, 48, 128, 256])
@pytest.mark.parametrize("terms", [1, 3])
def test_words_of_the_image_are_the_operands_of_mma(d, terms):
    """As `kmeans_mma.cu` reads them: a word a lane of a block of 8 centres x 8 columns, pieces of 16 bytes of a row."""
    generator = np.random.default_rng(4)
    k, chunk, lane = 100, plans.MMA_CHUNK, np.arange(32)
    points, x = generator.normal(size=(k, d)) * 5, generator.normal(size=(16, d)).astype(np.float16)
    image, norms, _ = layouts.large_image(points, terms, False, chunk)
    words = image.reshape(2, 2 if terms == 3 else 1, -1, 64)  # chunks, parts, blocks of 128 bytes
    g, q, found = lane // 4, lane % 4, np.zeros((16, 2 * chunk))
    for c in range(2):
        for j in range(chunk // 8):
            sums = np.zeros((32, 4))
            for s in range(d // 16):
                piece = 8 * (s >> 1) + 2 * q + (s & 1) if d % 32 == 0 else 4 * s + q
                cells = 4 * piece[:, None] + np.arange(4)
                rows = np.stack([x[g + 8 * h][lane[:, None], cells] for h in range(2)], axis=1)  # lane, h, 4
                a = np.stack([rows[:, 0, :2], rows[:, 1, :2], rows[:, 0, 2:], rows[:, 1, 2:]], axis=1)
                for part in words[c]:
                    blocks = part[[2 * s * (chunk // 8) + j, (2 * s + 1) * (chunk // 8) + j]]
                    mma(sums, a, blocks.reshape(2, 32, 2).transpose(1, 0, 2))
            for e in range(4):
                found[g + 8 * (e // 2), c * chunk + 8 * j + 2 * q + e % 2] = sums[:, e]
    exact = -2 * x.astype(np.float64) @ points.T
    assert np.abs(found[:, :k] - exact).max() < (0.2 if terms == 1 else 1e-4)
    assert (norms[k:] > 1e29).all()


@pytest.mark.parametrize("kind", ["tiny", "few"])
def test_plain_tables_hold_centres_and_norms(kind):
    points = np.random.default_rng(2).normal(size=(9, 3 if kind == "tiny" else 8))
    plan = plans.KMeansPlan(kind, points.shape[1], 9, points.shape[1])
    table = layouts.plain_table(points, plan)
    d = points.shape[1]
    assert np.allclose(table[:9, :d], -2 * points)
    assert np.allclose(table[:9, d], np.square(points).sum(axis=1))
    assert (table[9:, d] == np.float32(1e30)).all()


# --- the bound: a row with one centre within it has that centre's label


def screened(x, points, terms, share):
    """Labels by f16 products as `kmeans_fused.cu` makes them, and whether the bound leaves a row open."""
    d = x.shape[1]
    order = layouts.places(d)
    found = layouts.split(points, order, 2 if terms == 3 else 1)
    values = x[:, order].astype(np.float32)
    high = values.astype(np.float16)
    low = (values - high.astype(np.float32)).astype(np.float16)
    one, two = high.astype(np.float32), low.astype(np.float32)
    a, b = found.high.astype(np.float32), found.low.astype(np.float32)
    score = one @ a.T
    if terms == 3:
        score = score + one @ b.T + two @ a.T
    constant = float(np.square(x.astype(np.float64)).sum() / len(x)) * share  # any is allowed
    image, limits = layouts.fused_image(points, terms, constant)
    k, n = len(points), max(16, plans.up(len(points), 8))
    norms = unblocked(image.astype(np.float32)[-16 * n :], n, 16)[:k, :3].sum(axis=1, dtype=np.float32)
    score = (score + np.float32(16) * norms).astype(np.float64)
    longest, error, _, norm_error = limits.astype(np.float64)
    steps = d // 16
    rounding = ((3 * steps + 7) if terms == 3 else (steps + 3)) * 2.0**-21
    square = np.square(values.astype(np.float64)).sum(axis=1)
    size = np.sqrt(square)
    off = size * (2.0**-21 if terms == 3 else 2.0**-11) + error + 4e-7
    least = score.min(axis=1)
    reach = size * (1 + (2.0**-21 if terms == 3 else 2.0**-11)) + 4e-7  # of the rows as they are rounded
    margin = 4.04 * off * (np.sqrt(np.maximum(least + reach**2 * 1.0001 + constant, 0)) + 2 * off)
    margin += rounding * ((2 * size + longest) * longest + constant) + norm_error
    limit = least + margin
    return score.argmin(axis=1), ((score <= limit[:, None]).sum(axis=1) > 1) | (limit >= 0)


tables = st.tuples(
    st.integers(0, 2**32 - 1),
    st.sampled_from([16, 32, 64]),
    st.integers(2, 40),
    st.sampled_from(["blobs", "ties", "far", "huge", "small", "line"]),
)


def made(seed, d, k, kind):
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(k, d))
    x = points[generator.integers(0, k, 300)] + generator.normal(size=(300, d))
    if kind == "ties":
        x, points = generator.integers(-2, 3, (300, d)) * 1.0, generator.integers(-2, 3, (k, d)) * 1.0
    elif kind == "far":
        x, points = x + 30, points + 30
    elif kind == "huge":
        x[3] *= 1e4
    elif kind == "small":
        x, points = x * 1e-6, points * 1e-6
        x[0, 0] = 1.0
    elif kind == "line":
        x, points = np.outer(x[:, 0], np.ones(d)), np.outer(points[:, 0], np.ones(d))
    lift = layouts.lift_of(max(float(np.abs(x).max()), float(np.abs(points).max())))
    return (x * lift).astype(np.float32), points * lift


@settings(max_examples=150, deadline=None)
@given(tables, st.sampled_from([1.0, 1e-2, 1e-4]))
@example(
    (213077, 16, 35, "line"), 1.0
)  # a row long beside its distances, whose rounding is along all centres
@pytest.mark.parametrize("terms", [1, 3])
def test_rows_within_no_bound_have_their_nearest_centre(terms, table, share):
    x, points = made(*table)
    label, is_open = screened(x, points, terms, share)
    distance = plain._squared_distances(x, points)
    sure = ~is_open
    assert np.array_equal(label[sure], distance.argmin(axis=1)[sure])


@settings(max_examples=150, deadline=None)
@given(tables)
def test_plain_floats_within_no_bound_have_their_nearest_centre(table):
    x, points = made(*table)
    d = x.shape[1]
    score = np.square(points).sum(axis=1).astype(np.float32) + np.zeros((len(x), 1), np.float32)
    for j in range(d):
        score = (score + x[:, [j]] * (-2 * points[:, j]).astype(np.float32)).astype(np.float32)
    two = np.partition(score.astype(np.float64), 1, axis=1)
    room = np.square(x.astype(np.float64)).sum(axis=1) + 2 * np.square(points).sum(axis=1).max()
    sure = two[:, 1] - two[:, 0] > layouts.tolerance(d) * room
    distance = plain._squared_distances(x, points)
    assert np.array_equal(score.argmin(axis=1)[sure], distance.argmin(axis=1)[sure])


# --- integers


def exact_sums(numbers, label, k):
    """Correctly rounded, by Shewchuk's sums."""
    columns = numbers.astype(np.float64).T
    return np.array([[fsum(column[label == one]) for column in columns] for one in range(k)])


CELLS = {
    "about zero": lambda draw: draw.normal(size=(900, 6)),
    "about centres": lambda draw: draw.normal(size=(900, 6)) + np.arange(6) * 3,
    "long tails": lambda draw: np.exp(draw.normal(size=(900, 6)) * 8),
    "other units": lambda draw: draw.normal(size=(900, 6)) * 10.0 ** np.arange(-9, 9, 3),
    "whole numbers": lambda draw: draw.integers(-3, 4, (900, 6)) * 1.0,
    "constant": lambda draw: np.full((900, 6), 0.1) + (np.arange(6) == 5) * draw.normal(size=(900, 1)),
    "one huge": lambda draw: np.where(np.arange(900)[:, None] == 7, 1e6, draw.normal(size=(900, 6))),
}


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(CELLS)))
@settings(max_examples=80, deadline=None)
@pytest.mark.parametrize("digits", [plans.Digits(12), plans.Digits(14), plans.Digits(16)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_integer_sums_are_exact(digits, dtype, seed, kind):
    draw = np.random.default_rng(seed)
    cells = np.clip(CELLS[kind](draw), -6e4, 6e4).astype(dtype)
    x, label = cells.astype(np.float32), draw.integers(0, 4, len(cells))
    encoding = condition(x)
    numbers = encoding.apply(x)
    largest = np.abs(numbers).max(axis=0).astype(np.float64)
    shift = (encoding.centre.astype(np.float32) / encoding.power).astype(np.float32)
    scaled = Scaled(shift, encoding.power * 8, 8.0)
    units = layouts.sum_units(scaled, largest, digits)
    in_units = numbers / units.back
    assert np.array_equal(x * units.scale + units.offset, in_units.astype(np.float32))
    assert (np.abs(in_units) < 2.0**digits.high_bits).all()
    whole, rest = layouts.integer_sums(x, label, 4, units)
    sums = pairs.round_pairs(layouts.encoded_sums(whole, rest, units))
    finest = np.abs(numbers, where=numbers != 0, out=np.ones_like(numbers)).min(axis=0)
    held = finest >= largest * 2.0**-38  # what the rests hold
    assert held.any()
    expected = exact_sums(numbers, label, 4)
    assert np.array_equal(sums[:, held], expected[:, held])
    assert np.allclose(sums, expected, rtol=0, atol=900 * 2.0**-61 * largest.max())


def in_parts(value):
    """As `kmeans_sums_any.cu` cuts a number below 2^14."""
    parts = []
    for part in range(plans.ANY_PARTS):
        parts.append(round(value))
        value = (value - parts[-1]) * (1 if part == plans.ANY_PARTS - 1 else 2**15)
    return parts, round(value * 2**32)


@given(st.lists(st.floats(-1.0, 1.0, exclude_min=True, exclude_max=True), min_size=1, max_size=50))
def test_parts_of_any_numbers_are_exact(numbers):
    lift = 2.0**14
    found = [in_parts(Fraction(number) * int(lift)) for number in numbers]
    parts = np.array([parts for parts, _ in found]).sum(axis=0)
    rest = np.array([sum(rest for _, rest in found)])
    total = layouts.from_parts(parts[:, None], rest, lift)[0]
    away = Fraction(total[0]) + Fraction(total[1]) - sum(map(Fraction, numbers))
    assert abs(away) <= len(numbers) * Fraction(2) ** -106 + abs(Fraction(total[0])) * Fraction(2) ** -104


def test_pairs_hold_any_whole_number():
    whole = np.array([2**62 + 1, -(2**61) - 7, 5])
    found = layouts.as_pairs(whole, 2.0**-10)
    for number, (high, low) in zip(whole.tolist(), (found * 2.0**10).tolist(), strict=True):
        assert int(high) + int(low) == number


def test_the_cost_follows_from_sums():
    generator = np.random.default_rng(5)
    x, centres = generator.normal(size=(400, 3)), generator.normal(size=(4, 3))
    sums, weight, cost = plain.nearest_step(x, 1.0, np.zeros(3), None, None, centres)
    squares = np.array([np.square(x).sum(), 0.0])
    found = layouts.cost_from_sums(squares, sums, np.stack([weight, np.zeros(4)], axis=1), centres)
    assert found.sum() == pytest.approx(cost.sum(), rel=1e-13)

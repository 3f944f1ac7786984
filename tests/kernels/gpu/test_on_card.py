"""K-means on a card against the CPU: the same labels, costs and sums, the same bits again."""

from __future__ import annotations

import numpy as np
import pytest

from ilk import kernels
from ilk.kernels.gpu import layouts, plans
from ilk.kernels.gpu.kmeans import DeviceKMeans
from ilk.kernels.gpu.nvrtc import Unavailable
from ilk.kernels.gpu.table import CellEncoding, DeviceKeys, DeviceTable
from ilk.table.condition import encoding_of, survey
from ilk.table.content import MISSING, key_offset, keys_of
from ilk.table.least_keys import drawn_places, least_keys

SHAPES = [
    *((2, 100), (1, 5), (3, 9), (4, 33), (2, 3000)),  # tiny
    *((16, 10), (8, 3), (10, 7), (32, 10), (5, 1)),  # few, two of them padded
    *((32, 100), (16, 40), (64, 50), (20, 60), (128, 20), (32, 200), (96, 40)),  # fused
    *((128, 1000), (64, 300), (100, 400), (64, 2500)),  # large
    *((129, 3), (200, 70), (300, 500)),  # slab by slab
]


def blobs(n, d, k, dtype, seed=0):
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(k, d)) * 3
    return (centres[generator.integers(0, k, n)] + generator.normal(size=(n, d))).astype(dtype)


def encoded(x, scale=None):
    facts = survey(x)
    found = encoding_of(x, facts, scale=scale)
    return CellEncoding(found.power, found.centre, found.factor)


def job_of(device, x, k, scale=None):
    encoding = encoded(x.astype(np.float32) if x.dtype == np.float16 else x, scale)
    return DeviceKMeans(DeviceTable(device, device.array(x, x.dtype)), encoding, k), encoding


def compare(device, x, centres_raw, *, weight=None, scale=None, kind=None):
    """One pass on both sides."""
    job, encoding = job_of(device, x, len(centres_raw), scale)
    assert kind is None or job.plan.kind == kind
    host = x.astype(np.float32) if x.dtype == np.float16 else x
    code = encoding.power, encoding.centre, encoding.factor
    centres = np.asarray(centres_raw, dtype=np.float64) * encoding.power - encoding.centre
    centres = centres if encoding.factor is None else centres * encoding.factor
    label, cost = kernels.nearest(host, *code, centres)
    placed = job.labels(centres)
    found = placed.fetch()
    assert np.array_equal(found, label), f"{(found != label).sum()} of {len(label)} labels differ"
    assert np.array_equal(job.row_costs(centres, placed).fetch(), cost)
    sums, weights, total = kernels.nearest_step(host, *code, weight, centres)
    on_card = None if weight is None else device.array(weight, np.float64)
    heaviest = 1.0 if weight is None else float(weight.max())
    first = job.step(centres, on_card, heaviest)
    assert np.array_equal(first[1], weights)
    mine, theirs = kernels.round_pairs(first[0]), kernels.round_pairs(sums)
    assert np.array_equal(mine, theirs), f"{(mine != theirs).sum()} of {mine.size} sums differ"
    assert first[2].sum() == pytest.approx(total.sum(), rel=1e-13)
    again = job.step(centres, on_card, heaviest)
    job.grid = 97
    other = job.step(centres, on_card, heaviest)
    for one, two, three in zip(first, again, other, strict=True):
        assert np.array_equal(one, two)
        assert np.array_equal(one, three)
    return job, centres, first, found


@pytest.mark.parametrize(("d", "k"), SHAPES)
def test_a_pass_is_that_of_the_cpu(device, d, k):
    x = blobs(70_001, d, k, np.float32)
    compare(device, x, x[:k])


@pytest.mark.parametrize(("d", "k"), [(2, 7), (16, 10), (20, 60), (32, 100), (100, 300), (17, 40)])
def test_float64(device, d, k):
    x = blobs(50_001, d, k, np.float64)
    compare(device, x, x[:k] + 0.01)


@pytest.mark.parametrize(("d", "k"), [(128, 300), (64, 500), (20, 60), (3, 5)])
def test_float16(device, d, k):
    x = blobs(50_001, d, k, np.float16)
    job, *_ = compare(device, x, x[:k])
    assert job.plan.half == (d % 64 == 0 and device.hopper)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "k"), [(2, 7), (32, 100), (100, 300), (20, 2000)])
def test_weights(device, d, k, dtype):
    x = blobs(50_001, d, min(k, 300), dtype)
    weight = np.random.default_rng(1).integers(0, 5, len(x)) / 4
    compare(device, x, x[:k], weight=weight)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3, 7, 16, 20, 32, 33, 128, 300])
def test_what_rows_say_has_the_bits_of_the_cpu(device, d, dtype):
    x = blobs(10_007, d, 5, dtype)
    x[::7, 0], x[1::7, -1] = -0.0, np.nan
    factors = np.random.default_rng(2).integers(1, 2**63, d, dtype=np.uint64) | np.uint64(1)
    given = 2.0**-5, factors, MISSING
    table = DeviceTable(device, device.array(x, x.dtype))
    host = x.astype(np.float32) if dtype == np.float16 else x
    found, sums = table.content_sums(*given), kernels.content_sums(host, *given)
    assert np.array_equal(found.fetch(), sums)
    places = drawn_places(DeviceKeys(table, found, key_offset(3)), 500)
    assert np.array_equal(places, least_keys(keys_of(sums, 3), None, 500))


def test_rows_that_say_the_same_are_drawn_by_the_card_as_by_the_cpu(device):
    x = np.repeat(blobs(50, 3, 5, np.float32), 200, axis=0)
    factors = np.random.default_rng(2).integers(1, 2**63, 3, dtype=np.uint64) | np.uint64(1)
    table, given = DeviceTable(device, device.array(x, x.dtype)), (1.0, factors, MISSING)
    for wanted in (1, 60, 9_000):
        places = drawn_places(DeviceKeys(table, table.content_sums(*given), key_offset(0)), wanted)
        assert np.array_equal(places, least_keys(keys_of(kernels.content_sums(x, *given), 0), None, wanted))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("d", "k"), [(2, 7), (16, 10), (32, 100), (100, 300)])
def test_trimming(device, d, k, weighted):
    x = blobs(50_001, d, k, np.float32)
    weight = np.random.default_rng(1).integers(0, 5, len(x)) / 4 if weighted else None
    job, encoding = job_of(device, x, k)
    code = encoding.power, encoding.centre, encoding.factor
    centres = x[:k].astype(np.float64) * encoding.power - encoding.centre
    limit = float(np.sort(kernels.nearest(x, *code, centres)[1])[45_000])
    expected = kernels.nearest_step(x, *code, weight, centres, limit, 0.25)
    on_card = None if weight is None else device.array(weight, np.float64)
    sums, weights, cost = job.trimmed_step(centres, on_card, 1.0, (limit, 0.25))
    assert np.array_equal(weights, expected[1])
    assert weights.sum() < len(x) if weight is None else weight.sum()
    assert np.array_equal(kernels.round_pairs(sums), kernels.round_pairs(expected[0]))
    assert cost.sum() == pytest.approx(expected[2].sum(), rel=1e-14)


@pytest.mark.parametrize(("d", "k"), [(3, 7), (16, 10), (32, 100), (100, 300)])
def test_standardised_columns(device, d, k):
    x = blobs(50_001, d, k, np.float32) * np.linspace(0.1, 30, d, dtype=np.float32)
    compare(device, x, x[:k], scale="standard")


@pytest.mark.parametrize(("d", "k"), [(2, 20), (16, 10), (32, 60), (128, 300)])
def test_ties_go_to_the_lowest_label(device, d, k):
    x = np.random.default_rng(3).integers(-2, 3, (50_001, d)).astype(np.float32)
    centres = x[:k].copy()
    centres[k // 2] = centres[1]
    compare(device, x, centres)


@pytest.mark.parametrize(("d", "k"), [(2, 20), (16, 10), (32, 60), (64, 300)])
def test_far_from_zero_and_one_huge_value(device, d, k):
    far = blobs(50_001, d, k, np.float32) + np.float32(1000)
    compare(device, far, far[:k])
    huge = blobs(50_001, d, k, np.float32)
    huge[77, 0] = 1e6
    compare(device, huge, huge[:k])


@pytest.mark.parametrize(("d", "k"), [(32, 60), (64, 300)])
def test_one_shapeless_cloud(device, d, k):
    x = np.random.default_rng(4).normal(size=(100_001, d)).astype(np.float32) * np.float32(1e-3)
    compare(device, x, x[:k] * np.float32(0.05))


@pytest.mark.parametrize(("d", "k"), [(32, 100), (16, 10), (128, 1000)])
def test_sums_have_the_bits_of_the_twin(device, d, k):
    x = blobs(70_001, d, k, np.float32)
    job, _, (sums, _, _), label = compare(device, x, x[:k])
    whole, rest = layouts.integer_sums(x, label, k, job._units)
    assert np.array_equal(layouts.encoded_sums(whole, rest, job._units), sums)


@pytest.mark.parametrize(("d", "k"), [(2, 20), (16, 10), (32, 60), (128, 300)])
def test_cells_of_many_digits(device, d, k):
    """Long tails, where most cells are small beside the largest of their column, and columns of other units."""
    draw = np.random.default_rng(6)
    tails = np.exp(3 * draw.normal(size=(50_001, d))).astype(np.float32)
    job, *_ = compare(device, tails, tails[:k])
    assert job._rests() is None
    units = draw.normal(size=(50_001, d)).astype(np.float32) * (10.0 ** np.linspace(-9, 3, d)).astype(
        np.float32
    )
    job, *_ = compare(device, units, units[:k])
    assert job._rests().shape[0] > 0


@pytest.mark.parametrize(("d", "k"), [(32, 60), (64, 300)])
def test_most_rows_of_one_centre(device, d, k):
    x = blobs(1_500_001, d, k, np.float32)
    far = x[:k].copy()
    far[1:] += 1000
    job, *_ = compare(device, x, far)
    assert job.plan.careful


def test_tensor_cores_of_the_card_are_used(device):
    kinds = {(d, k): job_of(device, blobs(5000, d, 5, np.float32), k)[0].plan.kind for d, k in SHAPES}
    assert kinds[32, 100] == ("fused" if device.hopper else "mma")
    assert kinds[128, 1000] == ("large" if device.hopper else "mma")
    assert kinds[2, 100] == "tiny"
    assert kinds[16, 10] == "few"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("d", "k"), [(1, 3), (7, 8), (32, 9), (200, 20)])
def test_distances_of_seeds_have_the_bits_of_the_cpu(device, d, k, dtype):
    x = blobs(5_003, d, k, dtype)
    host = x.astype(np.float32) if dtype == np.float16 else x
    for scale in (None, "standard"):
        encoding = encoded(host, scale)
        code = encoding.power, encoding.centre, encoding.factor
        points = np.random.default_rng(2).normal(size=(k, d))
        found = DeviceTable(device, device.array(x, dtype)).distances(encoding, points)
        assert np.array_equal(found, kernels.distances(host, *code, points))


def test_thousands_of_columns(device):
    x = blobs(4_500, 1_500, 7, np.float32)
    compare(device, x, x[:7])


def test_what_is_not_made_for_it_is_refused(device):
    with pytest.raises(Unavailable):
        job_of(device, blobs(plans.LEAST_ROWS - 1, 3, 2, np.float32), 2)

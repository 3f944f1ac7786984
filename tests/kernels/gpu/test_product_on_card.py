"""Products on a card against the CPU's kernels: sums, costs and labels to the digits of float64."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from ilk.kernels import plain_product
from ilk.kernels.gpu.nvrtc import Unavailable
from ilk.kernels.gpu.product import DeviceProduct
from ilk.kernels.gpu.product_plans import ProductPlan
from ilk.kernels.gpu.resident import Resident
from ilk.kernels.gpu.table import CellEncoding, DeviceTable
from ilk.kernels.plain_mixture import memberships

SHAPES = [
    (0, (11,) * 10, 16),
    (4, (2, 5, 3), 3),
    (6, (), 7),
    (3, (300, 2), 40),
    (1, (3,), 1),
    (0, (5000,), 5),
    (2, (70_000,), 2),
    (9, (4,) * 9, 33),
]


def table_of(device, n, columns, levels, dtype=np.float64, gaps=0.1):
    """Cells of which some are missing, in memory and on the card."""
    draw = np.random.default_rng(columns + len(levels))
    raw = (draw.normal(size=(n, columns)) * 3 + 5).astype(dtype)
    raw[draw.random(raw.shape) < gaps] = np.nan
    codes = np.column_stack([draw.integers(0, k, n) for k in levels]).astype(np.int32) if levels else None
    if codes is not None:
        codes[draw.random(codes.shape) < gaps] = -1
    resident = Resident(
        DeviceTable(device, device.array(raw, dtype)), lambda: raw, lambda why: pytest.fail(why)
    )
    return raw, codes, resident


def components(columns, levels, k, seed=1):
    """Components as `product_scores` takes them, in encoded units."""
    draw = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(levels)]).astype(np.int64)
    logs = np.log(draw.dirichlet(np.ones(max(int(start[-1]), 1)), k))[:, : int(start[-1])]
    mean, precision = draw.normal(size=(k, columns)), 0.5 + draw.random((k, columns))
    log_norm = -(np.log(2 * np.pi) - np.log(precision)) / 2
    return np.log(draw.dirichlet(np.ones(k))), mean, precision, log_norm, logs, start


ENCODING = 0.5


def code_of(columns, factor=None):
    return ENCODING, np.full(columns, 2.0), factor


def close(found, expected, room=1e-11):
    for one, other in zip(found, expected, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        scale = max(float(np.abs(other).max(initial=0.0)), 1e-300)
        assert one.shape == other.shape
        assert np.abs(one - other).max(initial=0.0) <= room * scale


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("columns", "levels", "k"), SHAPES)
def test_a_pass_is_that_of_the_cpu(device, columns, levels, k, dtype):
    raw, codes, resident = table_of(device, 9_013, columns, levels, dtype)
    given = codes, None, *components(columns, levels, k)
    found = resident._product_step(*code_of(columns), *given)
    expected = plain_product.product_step(raw, *code_of(columns), *given)
    close(found[0], expected[0])
    close(found[1:], expected[1:])
    again = resident._product_step(*code_of(columns), *given)
    for one, two in zip((*found[0], *found[1:]), (*again[0], *again[1:]), strict=True):
        assert np.array_equal(one, two)


@pytest.mark.parametrize(("columns", "levels", "k"), [(4, (2, 5, 3), 3), (0, (11,) * 10, 16)])
def test_weights_hard_memberships_trimming_and_factors(device, columns, levels, k):
    raw, codes, resident = table_of(device, 9_013, columns, levels)
    parts, factor = components(columns, levels, k), np.linspace(0.5, 2, columns)
    weight = np.random.default_rng(3).integers(0, 4, len(raw)) / 2
    scores = plain_product.product_scores(raw, *code_of(columns, factor), codes, *parts)
    middle = float(np.median(memberships(scores, False)[1]))
    for hard, limit in ((False, inf), (True, inf), (False, middle)):
        given = codes, weight, *parts, hard, limit, 0.5
        found = resident._product_step(*code_of(columns, factor), *given)
        expected = plain_product.product_step(raw, *code_of(columns, factor), *given)
        close(found[0], expected[0])
        close(found[1:], expected[1:])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("columns", "levels", "k"), [(5, (2, 5, 3), 3), (2, (), 40)])
def test_counts(device, columns, levels, k, dtype):
    raw, codes, resident = table_of(device, 9_013, columns, levels, dtype)
    counts = np.arange(columns) % 2 == 0
    draw = np.random.default_rng(6)
    events = draw.poisson(4, raw.shape)
    raw[:, counts] = np.where(np.isnan(raw), np.nan, events)[:, counts]
    resident.table.raw.fill(raw)
    logs, mean, precision, norm, *rest = components(columns, levels, k)
    rate = draw.random((k, int(counts.sum()))) * 9
    mean[:, counts], precision[:, counts], norm[:, counts] = 0, np.log(rate), -rate
    weight = draw.integers(0, 4, len(raw)) / 2
    for heft, hard in ((None, False), (weight, True)):
        given = codes, heft, logs, mean, precision, norm, *rest, hard
        found = resident._product_step(*code_of(columns), *given, counts=counts)
        expected = plain_product.product_step(raw, *code_of(columns), *given, counts=counts)
        close(found[0], expected[0])
        close(found[1:], expected[1:])
    given = codes, logs, mean, precision, norm, *rest
    label, top, cost = resident._product_labels(*code_of(columns), *given, counts=counts)
    scores = plain_product.product_scores(raw, *code_of(columns), *given, counts=counts)
    assert (label != scores.argmax(axis=1)).mean() < 1e-4
    close((top, cost), (scores.max(axis=1), memberships(scores, False)[1]))


def test_labels(device):
    raw, codes, resident = table_of(device, 9_013, 4, (2, 5, 3))
    parts = components(4, (2, 5, 3), 6)
    scores = plain_product.product_scores(raw, *code_of(4), codes, *parts)
    for hard in (False, True):
        label, top, cost = resident._product_labels(*code_of(4), codes, *parts, hard=hard)
        assert (label != scores.argmax(axis=1)).mean() < 1e-4
        close((top, cost), (scores.max(axis=1), memberships(scores, hard)[1]))


def test_chunks_change_nothing_but_rounding(device, monkeypatch):
    _, codes, resident = table_of(device, 30_013, 3, (4, 7))
    given = codes, None, *components(3, (4, 7), 5)
    one = resident._product_step(*code_of(3), *given)
    monkeypatch.setattr(ProductPlan, "chunk", property(lambda self: 4096))
    resident._jobs.clear()
    other = resident._product_step(*code_of(3), *given)
    close(other[0], one[0], 1e-13)


def test_too_many_components_are_refused(device):
    _, _, resident = table_of(device, 5000, 2, ())
    plan = ProductPlan(2, (), 600, "float64")
    with pytest.raises(Unavailable, match="600 components"):
        DeviceProduct(resident.table, CellEncoding(1.0, np.zeros(2)), plan, None)


@pytest.mark.parametrize("gaps", [0.0, 0.05])
@pytest.mark.parametrize(("levels", "k"), [((2, 4, 6, 8, 10, 12, 14, 16, 18, 20), 16), ((3, 32, 5), 4)])
def test_latent_classes_in_whole_numbers(device, levels, k, gaps, monkeypatch):
    monkeypatch.setattr("ilk.kernels.gpu.latent_classes.LEAST_ROWS", 4096)
    monkeypatch.setattr("ilk.kernels.gpu.latent_classes.LEAST_GAIN", -inf)
    raw, codes, resident = table_of(device, 50_013, 0, levels, gaps=gaps)
    codes[(codes < 0).all(axis=1), 0] = 0
    parts = components(0, levels, k)
    found = resident._product_step(*code_of(0), codes, None, *parts)
    job = next(iter(resident._jobs.values()))
    assert job._fast is not None
    assert job._fast.plan.gaps == bool(gaps)
    expected = plain_product.product_step(raw, *code_of(0), codes, None, *parts)
    assert np.abs(found[0].counts - expected[0].counts).max() <= 1e-6 * len(raw)
    assert np.abs(found[0].weight - expected[0].weight).max() <= 1e-6 * len(raw)
    assert found[1] == pytest.approx(expected[1], rel=1e-8)
    assert found[2] == pytest.approx(expected[2], rel=1e-5)
    again = resident._product_step(*code_of(0), codes, None, *parts)
    assert np.array_equal(found[0].counts, again[0].counts)
    assert found[1:] == again[1:]
    monkeypatch.setattr("ilk.kernels.gpu.latent_classes.LEAST_GAIN", inf)  # a pass that gains little: float64
    close(resident._product_step(*code_of(0), codes, None, *parts)[0], expected[0])

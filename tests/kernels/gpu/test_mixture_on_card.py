"""Mixtures on a card against the CPU's kernels: sums, costs and labels to the digits of float64."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from ilk.kernels import plain_mixture
from ilk.kernels.gpu.mixture import DeviceMixture
from ilk.kernels.gpu.nvrtc import Unavailable
from ilk.kernels.gpu.resident import Resident
from ilk.kernels.gpu.table import DeviceTable
from tests.kernels.gpu.test_on_card import blobs, encoded

SHAPES = [
    (32, 32),
    (2, 3),
    (8, 8),
    (16, 20),
    (20, 5),
    (7, 40),
    (8, 128),
    (5, 70),
    (2, 17),
    (64, 10),
    (33, 33),
    (100, 6),
    (128, 9),
    (129, 3),
    (200, 33),
    (500, 2),
    (1, 2),
]


def components(x, k, diagonal, seed=2):
    """Means, whitening and log weights of plausible components, in encoded units."""
    generator = np.random.default_rng(seed)
    d = x.shape[1]
    mean = x[:k] + 0.0
    if diagonal:
        whiten = (0.7 + generator.random((k, d))) / x.std(axis=0)
        return mean, whiten, np.log(whiten).sum(axis=1) - np.log(k)
    half = np.eye(d) + np.tril(generator.normal(size=(k, d, d))) * 0.2 / np.sqrt(d)
    whiten = half / x.std(axis=0)
    return mean, whiten, np.log(np.abs(np.einsum("kii->ki", whiten))).sum(axis=1) - np.log(k)


def table_of(device, n, d, k, dtype):
    x = blobs(n, d, k, dtype) + 5
    encoding = encoded(x)
    numbers = plain_mixture.encoded(x, encoding.power, encoding.centre, encoding.factor)
    resident = Resident(DeviceTable(device, device.array(x, dtype)), lambda: x, lambda why: pytest.fail(why))
    return x, (encoding.power, encoding.centre, encoding.factor), numbers, resident


def close(found, expected):
    for one, other in zip(found, expected, strict=True):
        scale = max(float(np.abs(other).max()), 1e-300)
        assert np.abs(one - other).max() <= 1e-11 * scale, np.abs(one - other).max() / scale


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(("d", "k"), SHAPES)
def test_a_pass_is_that_of_the_cpu(device, d, k, diagonal, dtype):
    x, code, numbers, resident = table_of(device, 20_011, d, k, dtype)
    mean, whiten, logs = components(numbers, k, diagonal)
    found = resident._mixture_step(*code, None, mean, whiten, logs)
    close(found[:3], plain_mixture.mixture_step(x, *code, None, mean, whiten, logs)[:3])
    again = resident._mixture_step(*code, None, mean, whiten, logs)
    for one, two in zip(found, again, strict=True):
        assert np.array_equal(one, two)


@pytest.mark.parametrize(
    ("d", "k", "diagonal"), [(8, 5, False), (32, 32, False), (16, 6, True), (150, 4, False)]
)
def test_weights_hard_memberships_and_trimming(device, d, k, diagonal):
    x, code, numbers, resident = table_of(device, 20_011, d, k, np.float64)
    mean, whiten, logs = components(numbers, k, diagonal)
    weight = np.random.default_rng(3).integers(0, 4, len(x)) / 2
    middle = float(np.median(plain_mixture.mixture_labels(x, *code, mean, whiten, logs)[2]))
    for hard, limit in ((False, inf), (True, inf), (False, middle)):
        given = weight, mean, whiten, logs, hard, limit, 0.5
        found, expected = resident._mixture_step(*code, *given), plain_mixture.mixture_step(x, *code, *given)
        close(found, expected)


@pytest.mark.parametrize(("d", "k"), [(8, 5), (32, 32), (200, 3)])
def test_tied_components_share_one_scatter(device, d, k):
    x, code, numbers, resident = table_of(device, 20_011, d, k, np.float64)
    mean, whiten, logs = components(numbers, k, False)
    given = None, mean, whiten[:1], logs
    close(resident._mixture_step(*code, *given), plain_mixture.mixture_step(x, *code, *given))


@pytest.mark.parametrize(
    ("d", "k", "diagonal"), [(8, 5, False), (32, 32, True), (2, 3, False), (150, 4, False)]
)
def test_labels_and_the_ending(device, d, k, diagonal):
    x, code, numbers, resident = table_of(device, 20_011, d, k, np.float32)
    mean, whiten, logs = components(numbers, k, diagonal)
    label, top, cost = resident._mixture_labels(*code, mean, whiten, logs)
    theirs = plain_mixture.mixture_labels(x, *code, mean, whiten, logs)
    assert (label != theirs[0]).mean() < 1e-4
    close((top, cost), theirs[1:])
    ending = resident._mixture_ending(*code, None, mean, whiten, logs, k)
    close(
        ending[1:2] + ending[3:],
        plain_mixture.mixture_ending(x, *code, None, mean, whiten, logs, k)[1:2] + ending[3:],
    )


@pytest.mark.parametrize("scatters", ["full", "diagonal", "pooled"])
@pytest.mark.parametrize("labelled", [True, False])
def test_sums_under_labels(device, scatters, labelled):
    d, k = 9, 4 if labelled else 1
    x, code, numbers, resident = table_of(device, 20_011, d, 4, np.float64)
    label = np.random.default_rng(4).integers(0, k, len(x)).astype(np.int32) if labelled else None
    given = None, numbers[:k], label, scatters
    close(resident._mixture_gather(*code, *given), plain_mixture.mixture_gather(x, *code, *given))


@pytest.mark.parametrize("d", [8, 150])
def test_chunks_change_nothing_but_rounding(device, monkeypatch, d):
    _, code, numbers, resident = table_of(device, 70_011, d, 4, np.float64)
    mean, whiten, logs = components(numbers, 4, False)
    one = resident._mixture_step(*code, None, mean, whiten, logs)
    monkeypatch.setattr("ilk.kernels.gpu.mixture_plans.MixtureLaunch.chunk", lambda self, n: 10_000)
    resident._jobs.clear()
    close(resident._mixture_step(*code, None, mean, whiten, logs), one)


def test_the_widest_tables_are_refused(device):
    x = blobs(5000, 4000, 2, np.float32)
    with pytest.raises(Unavailable):
        DeviceMixture(DeviceTable(device, device.array(x, x.dtype)), encoded(x), 2, False)

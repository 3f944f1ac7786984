"""Kernels that walk all blocks of a table: the bits of block after block, whoever does them."""

from __future__ import annotations

import multiprocessing
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ilk import kernels
from ilk.kernels import plain, plain_mixture
from ilk.kernels.pairs import Array, add_pairs
from tests.kernels.test_mixture import components, nothing

if not kernels.COMPILED:
    pytest.skip("no compiled kernels here", allow_module_level=True)
from ilk.kernels import compiled


def table(n: int = 1000, d: int = 3, k: int = 4) -> tuple[Array, Any]:
    rng = np.random.default_rng([n, d, k])
    return rng.normal(size=(n, d)), components(rng, k, d, diagonal=False)


def same_bits(one: Any, other: Any) -> bool:
    return all(np.array_equal(mine, theirs) for mine, theirs in zip(one, other, strict=True))


@pytest.mark.parametrize("part_rows", [1, 7, 333, 999, 1000, 5000])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_parts_are_added_in_their_order(part_rows: int, threads: int) -> None:
    raw, parts = table()
    weight = np.random.default_rng(1).random(len(raw))
    cuts = [slice(first, first + part_rows) for first in range(0, len(raw), part_rows)]
    alone = [compiled.mixture_step(raw[cut], *nothing(3), weight[cut], *parts) for cut in cuts]
    count, shift, scatter, costs = zip(*alone, strict=True)
    expected = (*(reduce(np.add, each) for each in (count, shift, scatter)), reduce(add_pairs, costs))
    rules = False, np.inf, 1.0
    found = compiled.mixture_step(raw, *nothing(3), weight, *parts, *rules, part_rows, threads)
    assert same_bits(found, expected)
    twin = plain_mixture.mixture_step(raw, *nothing(3), weight, *parts, *rules, part_rows, threads)
    for one, other in zip(found, twin, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("scatters", ["full", "diagonal", "pooled"])
@pytest.mark.parametrize("mixture", [plain_mixture, "compiled"])
def test_labels_are_memberships_of_one(mixture: ModuleType | str, scatters: str) -> None:
    module: Any = compiled if mixture == "compiled" else mixture
    raw, (mean, _, _) = table()
    label = np.random.default_rng(2).integers(4, size=len(raw)).astype(np.int32)
    membership = (label[:, None] == np.arange(4)).astype(float)
    for parts in ((None, 1), (300, 2)):
        found = module.mixture_gather(raw, *nothing(3), None, mean, label, scatters, *parts)
        expected = module.mixture_gather(raw, *nothing(3), None, mean, membership, scatters, *parts)
        assert same_bits(found, expected)
    everyone = module.mixture_gather(raw, *nothing(3), None, mean[:1], None)
    assert same_bits(everyone, module.mixture_gather(raw, *nothing(3), None, mean[:1], np.ones((1000, 1))))


def test_many_callers_at_once_get_the_same() -> None:
    raw, parts = table(20_000)

    def step(_: int) -> Any:
        return compiled.mixture_step(raw, *nothing(3), None, *parts, False, np.inf, 1.0, 500, 3)

    expected = step(0)
    with ThreadPoolExecutor(6) as pool:
        assert all(same_bits(found, expected) for found in pool.map(step, range(60)))


def threads_after_a_step(arguments: Any) -> tuple[Any, int]:
    found = compiled.mixture_step(*arguments)
    return found, len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not tell its threads")
def test_a_forked_child_has_threads_of_its_own() -> None:
    raw, parts = table(5000)
    rest = *nothing(3), None, *parts, False, np.inf, 1.0, 500, 3
    expected = compiled.mixture_step(raw, *rest)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        found, alone = pool.apply_async(threads_after_a_step, ((raw[:1], *rest),)).get(timeout=30)
        found, together = pool.apply_async(threads_after_a_step, ((raw, *rest),)).get(timeout=30)
    assert together == alone + 2
    assert same_bits(found, expected)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
def test_an_interrupt_ends_a_long_pass() -> None:
    row, parts = table(1, 20, 40)
    raw = np.broadcast_to(row, (20_000_000, 20))  # the same row again and again: half a minute and more
    rest = *nothing(20), None, *parts, False, np.inf, 1.0, 4096

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        began = time.process_time()
        with pytest.raises(KeyboardInterrupt):
            compiled.mixture_step(raw, *rest, 2)
        assert time.process_time() - began < 8
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    again, once = (compiled.mixture_step(raw[:20_000], *rest, threads) for threads in (2, 1))
    assert same_bits(again, once)


def test_parts_and_threads_must_be_positive() -> None:
    raw, parts = table()
    for bad in ((-1, 1), (10, 0)):
        with pytest.raises(ValueError, match="at least one row"):
            compiled.mixture_step(raw, *nothing(3), None, *parts, False, np.inf, 1.0, *bad)
    with pytest.raises(ValueError, match="memberships or labels"):
        compiled.mixture_gather(raw, *nothing(3), None, parts[0], None)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("n_labels", [4, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_end_of_a_fit_is_that_of_the_twin(hard: bool, n_labels: int, weighted: bool) -> None:
    raw, parts = table()
    raw[500:] = parts[0][0]  # labels that are not in every part
    weight = np.random.default_rng(3).choice([0.0, 0.5, 2.0], size=len(raw)) if weighted else None
    if weight is None:
        raw[17] = 1e160  # its square overflows: impossible under every component, its cost infinite
    with np.errstate(over="ignore", invalid="ignore"):
        twin = plain_mixture.mixture_ending(raw, *nothing(3), weight, *parts, n_labels, hard)
        cut = plain_mixture.mixture_ending(raw, *nothing(3), weight, *parts, n_labels, hard, 250)
        labels, top, _ = plain_mixture.mixture_labels(raw, *nothing(3), *parts)
    assert twin.label.tolist() == [label if label < n_labels else -1 for label in labels]
    if hard and weight is not None:
        assert twin.cost.sum() == pytest.approx(-(top @ weight), rel=1e-12)
    for part_rows, threads in ((None, 1), (250, 1), (250, 3), (7, 2)):
        found = compiled.mixture_ending(raw, *nothing(3), weight, *parts, n_labels, hard, part_rows, threads)
        for expected in (twin, cut):
            np.testing.assert_array_equal(found.label, expected.label)
            np.testing.assert_array_equal(found.first_row, expected.first_row)
            np.testing.assert_allclose(found.size, expected.size, rtol=1e-13)
            np.testing.assert_allclose(found.certainty, expected.certainty, rtol=1e-11)
            if weighted:
                np.testing.assert_allclose(found.cost.sum(), expected.cost.sum(), rtol=1e-11)


@pytest.mark.parametrize("limit", [np.inf, 2.0])
@pytest.mark.parametrize("threads", [1, 3])
def test_lloyds_parts_are_added_in_their_order(limit: float, threads: int) -> None:
    raw, (centres, _, _) = table()
    weight, part_rows = np.random.default_rng(1).integers(0, 3, size=len(raw)).astype(float), 130
    cuts = [slice(first, first + part_rows) for first in range(0, len(raw), part_rows)]
    alone = [compiled.nearest_step(raw[cut], *nothing(3), weight[cut], centres, limit, 0.5) for cut in cuts]
    sums, weights, costs = zip(*alone, strict=True)
    expected = reduce(add_pairs, sums), reduce(np.add, weights), reduce(add_pairs, costs)
    squares = np.full(2 * len(cuts), np.nan)
    for _ in range(2):  # the second time with the notes of the first
        rest = weight, centres, limit, 0.5, squares, part_rows, threads
        assert same_bits(compiled.nearest_step(raw, *nothing(3), *rest), expected)
    twin = plain.nearest_step(raw, *nothing(3), weight, centres, limit, 0.5, None, part_rows, threads)
    for one, other in zip(twin, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)

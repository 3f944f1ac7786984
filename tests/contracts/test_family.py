"""What every family promises, checked on each: halves add up, weights are repeats, cost never rises, ..."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ilk.engines.memory import MemoryRows
from ilk.families.base import KEEP_ALL
from ilk.families.centroid import Means, Medians
from ilk.families.opening import Dear, OpenMeans
from ilk.fitting.loop import Stop, run_starts
from ilk.table.block import Array, Block
from ilk.table.condition import encoding_of, survey

FAMILIES = [Means(), Medians(), OpenMeans(open_cost=0.01)]
SIZE = {"means": np.square, "medians": np.abs, "open means": np.square}
every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)


def block_of(X: Array, weight: Array | None = None) -> Block:
    facts = survey(X, weight=weight)
    return Block(X, encoding_of(X, facts, weight=weight), weight=weight, complete=facts.complete)


def part(block: Block, which: Array) -> Block:
    weight = None if block.weight is None else block.weight[which]
    return Block(
        block.raw[which], block.encoding, first_row=0, weight=weight, codes=None, complete=block.complete
    )


def tables(least: int = 6, missing: bool = False) -> st.SearchStrategy[Array]:
    """Small tables with ties, repeats and outliers."""
    cell = st.one_of(
        st.integers(-3, 3).map(float), st.floats(-10, 10, width=32), st.sampled_from([1e3, -1e3, 0.5])
    )
    if missing:
        cell = st.one_of(cell, st.just(np.nan))
    shape = st.tuples(st.integers(least, 24), st.integers(1, 4))
    found = shape.flatmap(lambda s: arrays(np.float64, s, elements=cell))
    return found.filter(lambda X: (~np.isnan(X)).any(axis=1).all())


def values(sums: Any) -> dict[str, Array]:
    return {k: value(v) for k, v in sums.items()}


def value(total: Any) -> Array:
    if isinstance(total, Dear):
        return np.column_stack([total.donor, total.cost, total.weight.value, np.nan_to_num(total.cells)])
    return np.asarray(total.value if hasattr(total, "value") else total)


@every_family
@settings(max_examples=50, deadline=None)
@given(X=tables(missing=True), split=st.integers(1, 5))
def test_halves_add_to_the_whole(family, X, split):
    block = block_of(X)
    params = family.start(np.nan_to_num(block.numbers[:3]))
    rows = np.arange(len(X))
    whole = family.step(params, block, KEEP_ALL)
    halves = family.step(params, part(block, rows[:split]), KEEP_ALL) + family.step(
        params, part(block, rows[split:]), KEEP_ALL
    )
    for name, total in values(whole.sums).items():
        assert np.array_equal(total, values(halves.sums)[name]), name
    assert whole.cost.value == halves.cost.value


@every_family
@settings(max_examples=50, deadline=None)
@given(X=tables(missing=True), data=st.data())
def test_an_integer_weight_is_a_repeated_row(family, X, data):
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X))))
    if times.sum() == 0:
        times[0] = 1
    block = block_of(X)
    weighted = Block(X, block.encoding, weight=times.astype(float), complete=block.complete)
    repeated = Block(np.repeat(X, times, axis=0), block.encoding, complete=block.complete)
    params = family.start(np.nan_to_num(block.numbers[:3]))
    for _ in range(family.n_phases):
        one = family.step(params, weighted, KEEP_ALL)
        two = family.step(params, repeated, KEEP_ALL)
        assert one.cost.value == two.cost.value
        params, other = family.update(params, one.sums), family.update(params, two.sums)
    assert np.array_equal(params.centre, other.centre)


@every_family
@settings(max_examples=40, deadline=None)
@given(X=tables(missing=True), seed=st.integers(0, 99))
def test_shuffled_rows_give_the_same_bits(family, X, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    block = block_of(X)
    params = family.start(np.nan_to_num(block.numbers[:3]))
    one, two = family.step(params, block, KEEP_ALL), family.step(params, part(block, order), KEEP_ALL)
    for name, total in values(one.sums).items():
        assert np.array_equal(total, values(two.sums)[name]), name


@every_family
@settings(max_examples=60, deadline=None)
@given(X=tables(missing=True), k=st.integers(1, 5), weighted=st.booleans())
def test_cost_never_rises(family, X, k, weighted):
    weight = np.linspace(0.5, 2.0, len(X)) if weighted else None
    facts = survey(X, weight=weight)
    encoding = encoding_of(X, facts, weight=weight)
    rows = MemoryRows(X, encoding, weight=weight, complete=facts.complete, threads=1)
    start = family.start(np.nan_to_num(rows.take(np.arange(k)).numbers))
    run = run_starts(rows, [family], [start], stop=Stop(max_passes=50))[0]
    cost = np.array([record.cost for record in run.trace])
    rounding = 1e-12 * cost[:-1] + 1e-30  # numbers are near 1, their rounding squared near 1e-32
    assert (np.diff(cost) <= rounding).all()
    assert run.reason != "pass limit"


@every_family
@settings(max_examples=40, deadline=None)
@given(X=tables())
def test_cost_agrees_with_its_definition(family, X):
    block = block_of(X)
    params = family.start(block.numbers[:3])
    difference = block.numbers[:, None, :] - params.centre
    size = SIZE[family.name](difference).sum(axis=2)
    assert np.allclose(family.cost(params, block), size, rtol=1e-13, atol=1e-300)
    label, cost = family.assign(params, block)
    assert np.allclose(cost, size.min(axis=1), rtol=1e-13, atol=1e-300)
    assert np.allclose(size[np.arange(len(X)), label], size.min(axis=1), rtol=1e-12, atol=1e-300)


@every_family
def test_components_can_be_permuted(family):
    block = block_of(np.random.default_rng(0).normal(size=(50, 3)))
    params = family.start(block.numbers[:4])
    order = np.array([2, 0, 3, 1])
    one, two = family.assign(params, block)[0], family.assign(family.select(params, order), block)[0]
    assert np.array_equal(order[two], one)


@every_family
def test_missing_cells_scale_the_distance_up(family):
    X = np.array([[1.0, np.nan], [3.0, 4.0], [0.0, 0.0]])
    block = block_of(X)
    params = family.start(np.zeros((1, 2)))
    cost = family.cost(params, block)[:, 0]
    size = SIZE[family.name]
    assert cost[0] == pytest.approx(2 * size(block.numbers[0, 0]))
    assert cost[1] == pytest.approx(size(block.numbers[1]).sum())


def test_medians_are_lower_weighted_medians():
    X = np.random.default_rng(2).normal(size=(41, 3))
    block = block_of(X)
    family = Medians()
    params = family.start(np.zeros((1, 3)))
    for _ in range(family.n_phases):
        params = family.update(params, family.step(params, block, KEEP_ALL).sums)
    assert np.array_equal(params.centre[0], np.median(block.numbers, axis=0))

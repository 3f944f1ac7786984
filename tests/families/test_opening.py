"""Opening components: what is proposed, what is accepted, and that the cost falls as it must."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilk.engines.memory import MemoryRows
from ilk.families.base import KEEP_ALL
from ilk.families.centroid import Centroids, Means
from ilk.families.opening import Dear, OpenMeans
from ilk.fitting.loop import run_starts
from ilk.table.block import Block, Encoding
from tests.contracts.test_family import tables, value


def block_of(X: np.ndarray, weight: np.ndarray | None = None) -> Block:
    return Block(X, Encoding(1.0, np.zeros(X.shape[1])), weight=weight, complete=not np.isnan(X).any())


def total_cost(family: OpenMeans, params: Centroids, block: Block) -> float:
    return float(block.weights @ family.assign(params, block)[1]) + family.penalty(params)


def stepped(family: OpenMeans, params: Centroids, block: Block) -> Centroids:
    return family.update(params, family.step(params, block, KEEP_ALL).sums)


def test_one_pass_by_hand():
    """Donor at 0 with rows 0, 1, 9 and 10: the last opens, 9 is within the open cost of it, the rest has mean 10/3."""
    block = block_of(np.array([[0.0], [1], [9], [10]]))
    family = OpenMeans(open_cost=4.0)
    after = stepped(family, family.start(np.zeros((1, 1))), block)
    assert after.centre.ravel() == pytest.approx([10 / 3, 10.0])
    assert after.weight.tolist() == [3.0, 1.0]


def test_a_component_whose_rows_all_leave_is_dropped():
    block = block_of(np.array([[-5.0], [5]]))
    family = OpenMeans(open_cost=4.0)
    after = stepped(family, family.start(np.zeros((1, 1))), block)
    assert sorted(after.centre.ravel().tolist()) == [-5.0, 5.0]


@pytest.mark.parametrize("weight", [[0.1, 0.2, 0.7], [1e-30, 1.0, 1e30]])
def test_rows_of_any_weight_leave_nothing_behind(weight):
    """Equal rows leave together, and what is left of their donor is nothing at all, not a rest of rounding."""
    X = np.array([[7.0], [7.0], [7.0]])
    family = OpenMeans(open_cost=0.0)
    after = stepped(family, family.start(np.zeros((1, 1))), block_of(X, np.array(weight)))
    assert after.centre.tolist() == [[7.0]]


def test_a_light_row_opens_only_if_that_pays():
    X, weight = np.array([[0.0], [3.0]]), np.array([1.0, 0.25])
    start = Means().start(np.zeros((1, 1)))
    dear = OpenMeans(open_cost=2.0)  # 9 > 2, and 9/4 > 2
    cheap = OpenMeans(open_cost=3.0)  # 9 > 3, but 9/4 < 3
    assert len(stepped(dear, start, block_of(X, weight)).centre) == 2
    assert len(stepped(cheap, start, block_of(X, weight)).centre) == 1


def test_a_missing_cell_of_an_opened_row_takes_its_place_from_the_donor():
    X = np.array([[0.0, 4.0], [0.0, 6.0], [50.0, np.nan]])
    family = OpenMeans(open_cost=100.0)
    after = stepped(family, family.start(np.array([[0.0, 5.0]])), block_of(X))
    assert after.centre.tolist() == [[0.0, 5.0], [50.0, 5.0]]


@settings(max_examples=100, deadline=None)
@given(X=tables(missing=True), open_cost=st.sampled_from([0.0, 0.5, 3.0, 50.0]), weighted=st.booleans())
def test_every_opening_lowers_the_cost(X, open_cost, weighted):
    """By at least what the rows opened save at the old centres; without an opening it does not rise."""
    block = block_of(X, np.linspace(0.3, 2.0, len(X)) if weighted else None)
    family = OpenMeans(open_cost=open_cost)
    params = family.start(np.nan_to_num(X[:2]))
    for _ in range(10):
        before, sums = total_cost(family, params, block), family.step(params, block, KEEP_ALL).sums
        opened = family._accepted(params, sums["dear"])
        gain = float((opened.weight.value * opened.cost - open_cost).sum())
        assert len(opened.cost) == 0 or gain > 0
        params = family.update(params, sums)
        assert total_cost(family, params, block) <= before - gain + 1e-9 * before + 1e-9


@settings(max_examples=50, deadline=None)
@given(X=tables(missing=True), data=st.data(), n_parts=st.integers(2, 5))
def test_proposals_of_any_parts_in_any_order_are_those_of_the_whole(X, data, n_parts):
    """Exactly: which rows are proposed depends neither on blocks nor on the order of the rows."""
    family = OpenMeans(open_cost=0.5)
    params = family.start(np.nan_to_num(X[:2]))
    order = np.array(data.draw(st.permutations(range(len(X)))))
    whole = family.step(params, block_of(X), KEEP_ALL).sums["dear"]
    blocks = [replace(block_of(X), raw=X[part]) for part in np.array_split(order, n_parts)]
    parts = [family.step(params, block, KEEP_ALL).sums["dear"] for block in blocks]
    added = parts[0]
    for one in parts[1:]:
        added = added + one
    assert np.array_equal(value(added), value(whole))
    assert isinstance(added, Dear)


@settings(max_examples=50, deadline=None)
@given(X=tables(), open_cost=st.sampled_from([0.0, 1.0, 20.0]), seed=st.integers(0, 99))
def test_a_whole_fit_does_not_depend_on_the_order_of_the_rows(X, open_cost, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    family = OpenMeans(open_cost=open_cost)
    fits = []
    for table in (X, X[order]):
        rows = MemoryRows(table, Encoding(1.0, np.zeros(X.shape[1])), threads=1)
        fits.append(run_starts(rows, [family], [family.start(X[:1])])[0])
    assert np.array_equal(fits[0].params.centre, fits[1].params.centre)
    assert [r.cost for r in fits[0].trace] == [r.cost for r in fits[1].trace]


def test_family_and_partial_travel():
    """Workers get the family and send back partials: both pickle."""
    block = block_of(np.random.default_rng(0).normal(size=(30, 2)))
    family = pickle.loads(pickle.dumps(OpenMeans(open_cost=1.0)))
    params = family.start(np.zeros((1, 2)))
    sent = pickle.loads(pickle.dumps(family.step(params, block, KEEP_ALL)))
    assert np.array_equal(family.update(params, sent.sums).centre, stepped(family, params, block).centre)

"""What every engine promises: the same bits, whatever the threads and the memory layout."""

from __future__ import annotations

import numpy as np
import pytest

from ilk.engines.memory import MemoryRows
from ilk.families.base import KEEP_ALL, Partial
from ilk.families.centroid import Means
from ilk.table.block import BLOCK_ROWS, Array, Block
from ilk.table.condition import encoding_of, survey

FAMILY = Means()


def rows_of(X: Array, threads: int, weight: Array | None = None) -> MemoryRows:
    facts = survey(X, weight=weight)
    return MemoryRows(
        X, encoding_of(X, facts, weight=weight), weight=weight, complete=facts.complete, threads=threads
    )


@pytest.fixture(scope="module")
def table() -> Array:
    return np.random.default_rng(0).normal(size=(5 * BLOCK_ROWS + 17, 5)) + 3.0


def one_step(params: object, block: Block) -> Partial:
    return FAMILY.step(params, block, KEEP_ALL)


def first_rows(_: object, block: Block) -> Array:
    return np.array([block.first_row, block.n_rows])


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_same_bits_for_any_number_of_threads(table, threads):
    alone, many = rows_of(table, 1), rows_of(table, threads)
    params = FAMILY.start(alone.sample(4, 0).numbers[:4])
    for _ in range(5):
        one, other = alone.reduce(one_step, params), many.reduce(one_step, params)
        assert np.array_equal(one.sums["total"].parts, other.sums["total"].parts)
        assert np.array_equal(one.cost.parts, other.cost.parts)


@pytest.mark.parametrize(
    "layout", [np.asfortranarray, lambda X: X[::-1][::-1], lambda X: np.repeat(X, 2, 0)[::2]]
)
def test_same_bits_for_any_memory_layout(table, layout):
    usual, other = rows_of(table, 2), rows_of(layout(table), 2)
    params = FAMILY.start(usual.sample(4, 0).numbers[:4])
    one, two = usual.reduce(one_step, params), other.reduce(one_step, params)
    assert np.array_equal(one.sums["total"].parts, two.sums["total"].parts)


def test_scan_keeps_the_order_of_rows(table):
    blocks = list(rows_of(table, 3).scan(first_rows, None))
    assert [b[0] for b in blocks] == [i * BLOCK_ROWS for i in range(6)]
    assert sum(b[1] for b in blocks) == len(table)


def test_a_sample_is_the_table_when_small_and_distinct_rows_when_not(table):
    rows = rows_of(table, 1)
    assert np.array_equal(rows.sample(10**6, 0).raw, table)
    sample = rows.sample(1000, 0)
    assert len(np.unique(sample.raw, axis=0)) == 1000
    assert np.array_equal(sample.raw, rows.sample(1000, 0).raw)
    assert not np.array_equal(sample.raw, rows.sample(1000, 1).raw)


def test_a_weighted_sample_draws_as_if_rows_were_repeated():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(3000, 2))
    weight = generator.integers(0, 4, size=3000).astype(float)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    plain, weighted = rows_of(repeated, 1), rows_of(X, 1, weight)
    ones = MemoryRows(repeated, weighted.encoding, weight=np.ones(len(repeated)))
    assert np.array_equal(weighted.sample(500, 3).raw, ones.sample(500, 3).raw)
    assert plain.n_rows == len(repeated)


def test_an_error_in_a_block_ends_the_pass(table):
    def fails(_: object, block: Block) -> Array:
        if block.first_row == 3 * BLOCK_ROWS:
            raise ZeroDivisionError
        return np.zeros(1)

    with pytest.raises(ZeroDivisionError):
        rows_of(table, 2).reduce(fails, None)

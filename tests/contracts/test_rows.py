"""What every engine promises: the same bits, whatever the threads, the memory layout and where the rows are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.engines.stream import StreamRows
from ilk.families.base import KEEP_ALL, Partial
from ilk.families.centroid import Means
from ilk.fitting.coreset import coreset
from ilk.fitting.weights import row_weights
from ilk.table.block import BLOCK_ROWS, Array, Block, block_rows
from ilk.table.condition import encoding_of, survey
from ilk.table.out_of_core.disk import DiskArray

FAMILY = Means()


def rows_of(X: Array, threads: int, weight: Array | None = None) -> MemoryRows:
    facts = survey(X, weight=weight)
    return MemoryRows(
        X, encoding_of(X, facts, weight=weight), weight=weight, complete=facts.complete, threads=threads
    )


def on_disk(X: Array, threads: int, weight: Array | None = None) -> StreamRows:
    """The same rows out of core; what is known of them is found on disk too."""
    raw = DiskArray(*X.shape, X.dtype)
    raw.write(0, X)
    heft = None
    if weight is not None:
        heft = DiskArray(len(X), None, weight.dtype)
        heft.write(0, weight)
    facts = survey(raw, weight=heft)
    encoding = encoding_of(raw, facts, weight=heft)
    return StreamRows(raw, encoding, weight=heft, complete=facts.complete, threads=threads)


ENGINES: dict[str, Callable[..., Rows]] = {"memory": rows_of, "stream": on_disk}


@pytest.fixture(params=sorted(ENGINES))
def engine(request):
    return ENGINES[request.param]


@pytest.fixture(scope="module")
def table() -> Array:
    return np.random.default_rng(0).normal(size=(5 * BLOCK_ROWS + 17, 5)) + 3.0


def one_step(params: object, block: Block) -> Partial:
    return FAMILY.step(params, block, KEEP_ALL)


def first_rows(_: object, block: Block) -> Array:
    return np.array([block.first_row, block.n_rows])


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_same_bits_for_any_number_of_threads(table, threads, engine):
    alone, many = rows_of(table, 1), engine(table, threads)
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


def test_scan_keeps_the_order_of_rows(table, engine):
    blocks = list(engine(table, 3).scan(first_rows, None))
    assert [b[0] for b in blocks] == list(range(0, len(table), block_rows(*table.shape)))
    assert len(blocks) == 8
    assert sum(b[1] for b in blocks) == len(table)


def test_a_sample_is_the_table_when_small_and_distinct_rows_when_not(table, engine):
    rows = engine(table, 1)
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


def test_every_engine_draws_the_same_rows(table, engine):
    weight = np.random.default_rng(2).integers(0, 3, len(table)) / 2
    for heft in (None, weight):
        mine, memory = engine(table, 2, heft), rows_of(table, 2, heft)
        assert np.array_equal(mine.sample(500, 7).raw, memory.sample(500, 7).raw)
        assert mine.sample(500, 7).weight is None
        some = np.array([3, len(table) - 1, 3, 0])
        assert np.array_equal(mine.take(some).numbers, memory.take(some).numbers)
        assert mine.weighted == (heft is not None)
        assert (
            row_weights(mine).total
            == row_weights(memory).total
            == (len(table) if heft is None else heft.sum())
        )


@pytest.mark.parametrize("weighted", [False, True])
def test_every_engine_has_the_same_coreset(table, engine, weighted):
    heft = np.random.default_rng(2).integers(0, 3, len(table)) / 2 if weighted else None
    mine, memory = (coreset(of(table, 2, heft), 500, 7) for of in (engine, rows_of))
    assert np.array_equal(mine.raw, memory.raw)
    assert np.array_equal(mine.weight, memory.weight)


def test_an_error_in_a_block_ends_the_pass(table, engine):
    def fails(_: object, block: Block) -> Array:
        if block.first_row == 3 * block_rows(*table.shape):
            raise ZeroDivisionError
        return np.zeros(1)

    with pytest.raises(ZeroDivisionError):
        engine(table, 2).reduce(fails, None)

"""The compiled update against its twin in NumPy: same groups, same figures, and a cost that never rises."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from ilk import kernels
from ilk.assorted.family import Assorted, Clusters
from ilk.assorted.sharing import ColumnCosts
from ilk.assorted.state import from_labels
from ilk.engines.memory import MemoryRows
from ilk.fitting.loop import Stop, run_starts
from ilk.table.block import Encoding

pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="the twin alone is there")

SIZES = (2, 3, 5)


def rows_of(draws: np.random.Generator, k: int, *, gaps: bool, weighted: bool, n: int = 300) -> MemoryRows:
    """Four numbers and three categories; some of each differ between clusters, some cells are missing."""
    z = draws.integers(0, k, n)
    raw = draws.normal(size=(n, 4)) + draws.normal(0, 2, (k, 4))[z] * [1, 1, 0, 0]
    codes = np.column_stack([draws.integers(0, size, n) for size in SIZES])
    codes[:, 1] = (codes[:, 1] * (draws.random(n) < 0.3) + z) % SIZES[1]
    if gaps:
        raw[draws.random(raw.shape) < 0.2] = np.nan
        codes[draws.random(codes.shape) < 0.2] = -1
    weight = draws.uniform(0.2, 3.0, n) if weighted else None
    encoding = Encoding(1.0, np.zeros(4))
    return MemoryRows(
        raw, encoding, weight=weight, codes=codes.astype(np.int32), complete=not gaps, threads=1
    )


def family_of(draws: np.random.Generator, sharing: str = "background") -> Assorted:
    share = np.concatenate([draws.dirichlet(np.ones(size)) for size in SIZES])
    columns = ColumnCosts(
        floor=np.full(4, 1e-4),
        level_start=np.concatenate([[0], np.cumsum(SIZES)]).astype(np.int64),
        share=share,
        penalty=draws.uniform(2.0, 7.0, 7),
    )
    return Assorted(columns, 300.0, sharing=sharing)


def close(one: Clusters, other: Clusters) -> bool:
    names = ("mixing", "mean", "variance", "log_level", "precision", "log_norm")
    return np.array_equal(one.group, other.group) and all(
        np.allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12) for name in names
    )


def both(monkeypatch: pytest.MonkeyPatch, work):
    """What the kernel gives, and what its twin does."""
    fast = work()
    with monkeypatch.context() as patched:
        patched.setattr(kernels, "COMPILED", False)
        return fast, work()


@pytest.mark.parametrize("k", range(1, 13))
@pytest.mark.parametrize(("gaps", "weighted"), [(False, False), (True, True)])
@pytest.mark.parametrize("sharing", ["background", "none"])
def test_the_kernel_gives_what_its_twin_does(k, gaps, weighted, sharing, monkeypatch):
    draws = np.random.default_rng(100 * k + gaps)
    for _ in range(5):
        rows, family = rows_of(draws, k, gaps=gaps, weighted=weighted), family_of(draws, sharing)
        label = draws.integers(0, k, rows.n_rows).astype(np.int32)
        label[:k] = np.arange(k)
        start = from_labels(rows, family.ungrouped, label, k)
        for _ in range(3):
            sums = rows.reduce(
                lambda state, block: state[0].step(state[1], block, None), (family, start)
            ).sums
            fast, slow = both(monkeypatch, partial(family.update, start, sums))
            assert fast.made is not None
            assert slow.made is None
            assert close(fast, slow)
            assert family.penalty(fast) == pytest.approx(family.penalty(slow), rel=1e-9)
            assert family.prior_cost(fast) == pytest.approx(family.prior_cost(slow), rel=1e-9, abs=1e-9)
            start = fast


def test_a_cluster_that_has_vanished_is_dropped_alike(monkeypatch):
    draws = np.random.default_rng(5)
    rows, family = rows_of(draws, 4, gaps=True, weighted=False), family_of(draws)
    label = draws.choice([0, 2, 3], rows.n_rows).astype(np.int32)  # no row in cluster 1
    blank = family.blank(4)
    membership = np.eye(4)[label]
    sums = rows.reduce(lambda state, block: _Gathered(family.gather(blank, block, membership)), None)
    fast, slow = both(monkeypatch, lambda: family.update(blank, sums))
    assert len(fast) == len(slow) == 3
    assert close(fast, slow)


class _Gathered(dict):
    """Sums of the only block."""


@pytest.mark.parametrize("sharing", ["background", "none"])
def test_a_column_no_cell_of_which_a_cluster_has_seen(sharing, monkeypatch):
    draws = np.random.default_rng(6)
    rows, family = rows_of(draws, 3, gaps=False, weighted=False), family_of(draws, sharing)
    label = draws.integers(0, 3, rows.n_rows).astype(np.int32)
    rows.raw[label == 1, 0], rows.codes[label == 1, 0] = np.nan, -1
    rows = MemoryRows(rows.raw, rows.encoding, codes=rows.codes, complete=False, threads=1)
    fast, slow = both(monkeypatch, lambda: from_labels(rows, family, label, 3))
    assert close(fast, slow)


def test_costs_of_other_columns_are_counted_anew():
    draws = np.random.default_rng(7)
    rows, family, other = rows_of(draws, 3, gaps=False, weighted=False), family_of(draws), family_of(draws)
    params = from_labels(rows, family, draws.integers(0, 3, rows.n_rows).astype(np.int32), 3)
    forgotten = family.select(params, [0, 1, 2])
    assert forgotten.made is None
    for one in (family, other):
        assert one.penalty(params) == pytest.approx(one.penalty(forgotten), rel=1e-12)


def test_the_cost_never_rises():
    draws = np.random.default_rng(8)
    for number in range(250):
        k = int(draws.integers(2, 10))
        rows = rows_of(draws, k, gaps=number % 2 == 0, weighted=number % 3 == 0, n=80)
        family = family_of(draws)
        starts = [
            from_labels(rows, family.ungrouped, draws.integers(0, k, 80).astype(np.int32), k)
            for _ in range(4)
        ]
        starts = [start for start in starts if len(start) == k]
        for run in run_starts(rows, [family] * len(starts), starts, stop=Stop(0.0, 25)):
            costs = [record.cost for record in run.trace]
            rises = np.diff(costs)
            assert (rises <= 1e-9 * abs(costs[0])).all()

"""Plans fit the card and never run over: pure functions, so no GPU is needed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ilk.kernels.gpu import plans

SHAPES = [
    (d, k)
    for d in (1, 2, 3, 4, 5, 8, 16, 20, 31, 32, 33, 64, 100, 128, 129, 784, 5000)
    for k in (1, 2, 7, 10, 100, 248, 249, 1000, 5000)
]


def builds(plan):
    yield plan.screen(True)
    yield plan.screen(False)
    if plan.kind == "fused":
        yield plan.screen(False, 3)
    settle = plan.settle(True)
    if settle is not None:
        yield settle
    yield plans.exact(plan, "float32", factor=False, labels=True)
    yield plans.sums(plan.wide, plan.k, plan.half)
    yield plans.sums_any(plan.columns, plan.k, "float64", factor=True, weighted=True)


@pytest.mark.parametrize(("d", "k"), SHAPES)
def test_every_plan_fits_the_card(d, k):
    plan = plans.kmeans_plan(d, k)
    assert plan is not None
    assert plan.wide >= d
    for build in builds(plan):
        assert build.shared <= 232_448, build
        assert build.threads <= 1024


def test_which_kernel_for_which_table():
    kinds = {
        shape: plans.kmeans_plan(*shape).kind
        for shape in ((2, 100), (16, 10), (32, 100), (32, 200), (128, 1000))
    }
    assert list(kinds.values()) == ["tiny", "few", "fused", "fused", "large"]
    assert plans.kmeans_plan(32, 100).screen(False).macros["WGS"] == 4
    assert plans.kmeans_plan(300, 100).kind == "mma"


def test_wide_tables_are_padded_as_far_as_their_kernel_reads():
    assert [plans.kmeans_plan(d, k).wide for d, k in ((3, 5), (5, 5), (20, 60), (100, 300))] == [
        3,
        8,
        32,
        128,
    ]


def test_halves_are_read_where_rows_are_whole_pieces():
    assert plans.kmeans_plan(128, 300, True).half
    assert not plans.kmeans_plan(100, 300, True).half


@pytest.mark.parametrize("kind", plans.HEADROOM)
def test_integers_do_not_run_over_between_writings(kind):
    plan = plans.KMeansPlan(kind, 16, 100, 16)
    for careful in (False, True):
        digits = replace(plan, careful=careful).digits
        assert 2 ** (digits.headroom + digits.high_bits) < 2**31
        assert 2 ** (digits.headroom + digits.low_bits - 1) < 2**31  # the low part is at most half a unit
    rows = 65_536 if kind in ("large", "mma") else plans.FLUSH_ROWS
    assert 2**digits.headroom >= rows  # of a careful plan: any number of them may be of one centre
    assert plan.may_run_over or 2**plan.digits.headroom >= rows
    assert plans.MOST_ROWS * 2**32 < 2**63  # rests: half a unit of the low part, 33 bits below it
    assert (
        plans.MOST_ROWS * 2 ** (digits.high_bits + digits.low_bits) <= 2**63
    )  # numbers are below 2^high_bits


def test_integers_of_any_numbers_do_not_run_over():
    assert 32_768 * 2 * 2**14 < 2**31  # a product and what it was rounded by, between writings
    assert plans.MOST_ROWS * 2 * 2**31 < 2**63


@pytest.mark.parametrize("n", [4096, 70_001, 10**8])
@pytest.mark.parametrize("grid", [97, 132])
@pytest.mark.parametrize(("d", "k"), [(32, 100), (64, 100), (32, 200)])
def test_stretches_hold_all_tiles(n, grid, d, k):
    plan = plans.kmeans_plan(d, k)
    screen, settle = plan.screen(False), plan.settle(False)
    cut = plans.stretches(n, grid, screen, settle)
    for rows, ctas, stretches, build in ((n, grid, cut.first, screen), (cut.room, 1, cut.second, settle)):
        groups = build.macros["WGS"]
        rounds = plans.FLUSH_ROWS // (64 * groups)
        assert stretches * rounds * groups * ctas * 64 >= rows
        assert rounds * groups * 64 <= plans.FLUSH_ROWS
    assert cut.room * grid * plans.LIST_SHARE >= n


def test_rows_of_a_list_fit_its_numbers():
    assert np.iinfo(np.int32).max >= plans.MOST_ROWS

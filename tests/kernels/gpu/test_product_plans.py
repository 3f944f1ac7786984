"""Plans of the kernels of products: every slot is gathered once, shared memory is enough, codes have room."""

from __future__ import annotations

import numpy as np
import pytest

from ilk.kernels.gpu.plans import SHARED_LIMIT
from ilk.kernels.gpu.product_plans import ProductPlan

SHAPES = [
    (0, (11,) * 10, 16),
    (10, (5, 3, 300), 40),
    (3, (), 1),
    (0, (70_000,), 5),
    (200, (2,) * 50, 7),
    (1, (2,), 500),
    (4, (255, 256, 1), 2),
]


@pytest.mark.parametrize(("columns", "levels", "k"), SHAPES)
def test_every_slot_belongs_to_one_block(columns, levels, k):
    plan = ProductPlan(columns, levels, k, "float64")
    assert plan.fits
    assert plan.k <= plan.pitch
    assert plan.lanes * plan.parts == plan.pitch
    found = np.concatenate([np.arange(begin, end) for begin, end, *_ in plan.cuts])
    assert np.array_equal(found, np.arange(plan.slots))
    build = plan.sums()
    assert build.shared + plan.warps * plan.lanes * 8 <= SHARED_LIMIT
    assert build.threads <= 1024
    for begin, end, first, last, low, high in plan.cuts:
        for slot in range(int(begin), int(end)):
            if slot < plan.start[-1]:
                column = int(np.searchsorted(plan.start, slot, "right")) - 1
                assert first <= column < last
            else:
                assert low <= (slot - plan.start[-1]) // 3 < high
                # the three of a number are together
        assert begin < plan.start[-1] or (begin - plan.start[-1]) % 3 == 0


@pytest.mark.parametrize(
    ("most", "name"), [(2, "u8"), (255, "u8"), (256, "u16"), (65_535, "u16"), (65_536, "u32")]
)
def test_codes_have_room_for_a_missing_one(most, name):
    plan = ProductPlan(0, (most,), 3, "float64")
    assert plan.code == name
    assert most - 1 < np.iinfo(plan.code_type).max


def test_too_many_components_are_not_taken():
    assert not ProductPlan(1, (), 513, "float64").fits
    assert ProductPlan(1, (), 512, "float64").fits

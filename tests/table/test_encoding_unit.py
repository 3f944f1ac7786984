"""The logarithm of the unit of a column, where the unit itself is beyond all doubles."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ilk.table.block import Encoding


def test_it_is_the_logarithm_of_the_unit():
    encoding = Encoding(2.0**-3, np.zeros(3), np.array([0.1, 1.0, 7e9]))
    assert (encoding.log_unit == np.log(encoding.unit)).all()


@pytest.mark.parametrize(("power", "factor"), [(2.0**900, 2.0**800), (2.0**-900, 2.0**-800)])
def test_it_is_there_where_the_unit_is_not(power, factor):
    exact = math.log2(power) + math.log2(factor)
    found = Encoding(power, np.zeros(2), np.array([factor, 1.0])).log_unit / math.log(2)
    assert found == pytest.approx([exact, math.log2(power)], rel=1e-15)

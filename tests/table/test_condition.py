"""Conditioning: exact, order-free, equivariant, and without a copy of the table."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ilk.errors import DataError, IlkWarning, UsageError
from ilk.table.block import BLOCK_ROWS
from ilk.table.condition import SHORT_DIGITS, condition, short, survey
from ilk.table.encode import encode_array


def three_groups(n_rows: int = 300, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0, 0], [6, 0, 0], [0, 6, 0]])
    return centres[np.arange(n_rows) % 3] + rng.normal(size=(n_rows, 3))


@pytest.mark.parametrize("factor", [1e-300, 1e-200, 1e-6, 1.0, 1e200, 1e300, 1e307])
@pytest.mark.badinput("A9")
@pytest.mark.badinput("A10")
def test_any_factor_gives_numbers_near_one(factor):
    x = three_groups() * factor
    encoding = condition(x)
    numbers = encoding.apply(x)
    assert np.isfinite(numbers).all()
    assert 0.1 < np.ptp(numbers, axis=0).max() <= (1.0 if factor < 1e307 else 4.0)
    np.testing.assert_allclose(encoding.undo(numbers), x, rtol=1e-12, atol=1e-14 * factor)


@pytest.mark.parametrize("exponent", [-1000, -300, 300, 1000])
def test_short_numbers_of_any_size(exponent):
    value = np.array([1 / 3, -0.7, 0.0])
    assert np.array_equal(short(np.ldexp(value, exponent)), np.ldexp(short(value), exponent))


@pytest.mark.parametrize("exponent", [-1000, -300, -1, 1, 300, 1000])
def test_power_of_two_is_exact(exponent):
    x = three_groups()
    scaled = np.ldexp(x, exponent)
    assert np.array_equal(condition(x).apply(x), condition(scaled).apply(scaled))


@pytest.mark.badinput("A10")
def test_subnormal_numbers():
    x = np.arange(12.0).reshape(6, 2) * 5e-324
    encoding = condition(x)
    assert np.isfinite(encoding.power)
    assert np.isfinite(1 / encoding.power)
    assert len(np.unique(encoding.apply(x)[:, 0])) == 6


@pytest.mark.badinput("A9")
def test_both_ends_of_the_range():
    top = np.finfo(float).max
    x = np.array([[top], [-top], [0.0]])
    numbers = condition(x).apply(x)
    assert np.isfinite(numbers).all()
    assert len(np.unique(numbers)) == 3


@pytest.mark.parametrize("offset", [1e6, 1e9, 1e12])
@pytest.mark.badinput("A11")
def test_offset_goes_away(offset):
    x = np.rint(three_groups() * 1024) / 1024
    shifted = x + offset
    back = shifted - offset  # what float64 kept of it
    encoding = condition(shifted)
    assert np.abs(encoding.apply(shifted)).max() < 2
    there = encoding.apply(shifted)
    here = (back * encoding.power) - (encoding.centre - offset * encoding.power)
    assert np.array_equal(there, here)


@pytest.mark.badinput("A11")
def test_exhausted_precision_is_said():
    x = 1e16 + np.array([[0.0], [2.0], [4.0]])
    with pytest.warns(IlkWarning, match="at most 3 distinct values"):
        condition(x)


@pytest.mark.badinput("A12")
def test_mixed_scales():
    x = three_groups()[:, :2] * [1e-9, 1e9]
    numbers = condition(x, scale="standard").apply(x)
    np.testing.assert_allclose(numbers.std(axis=0), 1, rtol=1e-9)


@pytest.mark.badinput("A13")
def test_float32_with_offset():
    x = (three_groups() + 1e4).astype(np.float32)
    encoding = condition(x)
    assert np.array_equal(encoding.centre.astype(np.float32).astype(float), encoding.centre)
    single = encoding.apply(x)
    assert single.dtype == np.float32
    double = x.astype(np.float64) * encoding.power - encoding.centre
    assert np.array_equal(single, double)


def test_integers_stay_short():
    x = np.random.default_rng(1).integers(0, 100, size=(500, 3)).astype(float)
    encoding = condition(x)
    scaled = encoding.apply(x) / encoding.power
    assert np.array_equal(scaled * 64, np.rint(scaled * 64))


def test_row_order_changes_nothing():
    x = three_groups(20_000)
    order = np.random.default_rng(3).permutation(len(x))
    one, other = condition(x, scale="standard"), condition(x[order], scale="standard")
    assert one.power == other.power
    assert np.array_equal(one.centre, other.centre)
    np.testing.assert_allclose(one.factor, other.factor, rtol=1e-13)


def test_far_outliers_of_a_long_table_in_any_order():
    """The rows whose medians are taken go by what they say where a column may have far outliers."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 2))
    x[::2500, 0] = 1e9
    centre = condition(x).centre
    assert abs(centre[0]) < 1
    for _ in range(3):
        assert np.array_equal(condition(rng.permutation(x)).centre, centre)


def test_weights_are_repeated_rows():
    x = three_groups(200)
    weight = np.random.default_rng(5).integers(0, 4, size=200)
    one = condition(x, weight=weight.astype(float), scale="standard")
    other = condition(np.repeat(x, weight, axis=0), scale="standard")
    assert one.power == other.power
    assert np.array_equal(one.centre, other.centre)
    np.testing.assert_allclose(one.factor, other.factor, rtol=1e-13)


@pytest.mark.badinput("A33")
def test_one_outlier_does_not_move_the_centre():
    x = three_groups() + 1e4
    x[7, 0] = 1e15
    encoding = condition(x)
    bulk = np.delete(encoding.apply(x)[:, 0], 7) / encoding.power
    assert np.abs(bulk).max() < 20


@pytest.mark.badinput("A5")
def test_constant_column_gets_factor_zero():
    x = three_groups()
    x[:, 1] = 0.1
    encoding = condition(x, scale="standard")
    numbers = encoding.apply(x)
    assert encoding.factor[1] == 0
    assert (numbers[:, 1] == 0).all()
    np.testing.assert_allclose(encoding.undo(numbers), x, rtol=1e-12, atol=1e-13)


@pytest.mark.badinput("A32")
def test_all_rows_identical():
    x = np.full((5, 2), 3.25)
    assert (condition(x).apply(x) == 0).all()


def test_far_constant_column_does_not_overflow():
    x = np.array([[1e300, 1e-300], [1e300, 2e-300]])
    assert np.isfinite(condition(x).apply(x)).all()


@pytest.mark.badinput("A2")
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused(value):
    x = three_groups(20_000)
    x[9000, 1] = value
    x[3, 1] = value
    with pytest.raises(DataError) as error:
        condition(x, names=["a", "b", "c"])
    assert error.value.code == "data-infinite"
    assert "2 in 'b'" in str(error.value)
    assert "row 3, 9000" in str(error.value)


@pytest.mark.badinput("A2")
def test_infinity_in_a_row_without_weight_is_refused():
    x = three_groups()
    x[5, 2] = np.inf
    weight = np.ones(len(x))
    weight[5] = 0
    with pytest.raises(DataError, match="infinite"):
        condition(x, weight=weight)


@pytest.mark.badinput("A1")
def test_missing_cells_are_left_out_of_the_sums():
    x = three_groups(20_000)
    x[::3, 0] = np.nan
    x[:, 2] = np.where(np.arange(len(x)) < BLOCK_ROWS, np.nan, x[:, 2])
    facts = survey(x)
    assert not facts.complete
    assert facts.missing.tolist() == np.isnan(x).sum(axis=0).tolist()
    np.testing.assert_allclose(facts.mean, np.nanmean(x, axis=0), rtol=1e-12, atol=1e-15)
    factor = condition(x, scale="standard").factor
    np.testing.assert_allclose(1 / factor, np.nanstd(x, axis=0) * condition(x).power, rtol=2.0**-SHORT_DIGITS)


def test_no_temporary_of_the_size_of_the_table():
    x = np.random.default_rng(0).normal(size=(50 * BLOCK_ROWS, 4))
    tracemalloc.start()
    encoded = encode_array(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert encoded.numbers is x
    assert peak < x.nbytes / 5


def test_unknown_scale():
    with pytest.raises(UsageError, match="standard"):
        condition(np.eye(3), scale="robust")


cells = st.one_of(
    st.just(np.nan),
    st.integers(-50, 50).map(float),
    st.floats(-1.5e308, 1.5e308, width=64),
)
tables = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=12), elements=cells)


@settings(max_examples=200, deadline=None)
@given(tables)
@pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")
def test_round_trip_of_any_table(x):
    encoding = condition(x)
    numbers = encoding.apply(x)
    assert not np.isinf(numbers).any()
    back = encoding.undo(numbers)
    assert np.array_equal(np.isnan(back), np.isnan(x))
    wide = np.nanmax(np.abs(np.where(np.isnan(x), 0, x)))
    np.testing.assert_allclose(back, x, rtol=1e-12, atol=1e-14 * wide)


@settings(max_examples=100, deadline=None)
@given(
    hnp.arrays(np.float64, (9, 2), elements=st.integers(-1000, 1000).map(float)),
    st.integers(-200, 200),
    st.randoms(use_true_random=False),
)
def test_equivariance_and_order(x, exponent, random):
    one = condition(x)
    scaled = np.ldexp(x, exponent)
    assert np.array_equal(one.apply(x), condition(scaled).apply(scaled)) or np.ptp(x) == 0
    order = list(range(9))
    random.shuffle(order)
    other = condition(x[order])
    assert one.power == other.power
    assert np.array_equal(one.centre, other.centre)

"""What is made of the columns of an assorted table: few values, atoms, scales, constants; and its log-Jacobians."""

from __future__ import annotations

import numpy as np
import pytest

from ilk.assorted.columns import assort
from ilk.assorted.growth import GrowthSearch
from ilk.assorted.problem import AssortedProblem, ModelOptions
from ilk.assorted.scales import SCALES, NumberColumns
from ilk.assorted.transform import TransformPlan
from ilk.engines.memory import MemoryRows
from ilk.errors import DataError
from ilk.table.condition import encoding_of, survey


def rows_of(raw, codes=None, weight=None) -> MemoryRows:
    facts = survey(raw, weight=weight)
    encoding = encoding_of(raw, facts, weight=weight)
    return MemoryRows(raw, encoding, weight=weight, codes=codes, complete=facts.complete, threads=1)


def plan_of(raw, codes=None, levels=(), weight=None, **options) -> tuple[TransformPlan, MemoryRows]:
    rows = rows_of(raw, codes, weight)
    return assort(rows, [f"x{j}" for j in range(raw.shape[1])], levels, **options), rows


@pytest.fixture
def raw():
    draws = np.random.default_rng(0)
    return np.column_stack(
        [
            draws.normal(50, 10, 200),
            draws.integers(0, 4, 200),
            np.where(draws.random(200) < 0.4, 0.0, draws.exponential(5, 200)),
            np.full(200, 3.0),
        ]
    )


def test_each_column_finds_its_treatment(raw):
    raw[3, 0] = np.nan
    plan, rows = plan_of(raw)
    assert plan.names == ("x0", "x2", "x1", "x2 is 0")
    assert plan.set_aside == (("x3", "constant"),)
    assert plan.categories[0].names == ("0", "1", "2", "3")
    words = plan.in_words((0, 2))
    assert words["x0"] == "as it is"
    assert words["x1"] == "4 values as categories"
    assert words["x2"].startswith("0 (")
    assert "logarithm of the distance above" in words["x2"]
    assert words["x3"] == "left out: constant"
    block = plan.treated(rows.take(np.arange(200)), (0, 0))
    zero = raw[:, 2] == 0
    assert np.array_equal(np.isnan(block.raw[:, 1]), zero)
    assert np.array_equal(block.codes[:, 1], zero)
    assert np.array_equal(block.codes[:, 0], raw[:, 1])
    assert np.isnan(block.raw[3, 0])
    assert plan.numbers[1].weight == (~zero).sum()


@pytest.mark.parametrize("scale", range(len(SCALES)))
def test_numbers_are_standardised_on_every_scale(raw, scale):
    weight = np.random.default_rng(1).uniform(0.2, 2, 200)
    plan, rows = plan_of(raw, weight=weight)  # centres and spreads have nine digits
    z = plan.treated(rows.take(np.arange(200)), (scale, scale)).raw
    for d in range(2):
        here = ~np.isnan(z[:, d])
        assert np.average(z[here, d], weights=weight[here]) == pytest.approx(0, abs=1e-8)
        assert np.average(z[here, d] ** 2, weights=weight[here]) == pytest.approx(1, rel=1e-8)
        values = plan.values(rows.take(np.arange(200)), plan.numbers[d])[here]
        assert plan.numbers[d].encoded(z[here, d], scale) == pytest.approx(values, abs=1e-8)


@pytest.mark.parametrize("scale", range(len(SCALES)))
def test_the_jacobian_is_that_of_the_users_units(raw, scale):
    """By differences of the standardised values of neighbouring cells."""
    plan, _ = plan_of(raw[:, :1])
    step = 1e-5
    inside = np.clip(raw[:, :1], raw[:, 0].min() + step, raw[:, 0].max() - step)
    two = [
        plan.treated(MemoryRows(x, rows_of(raw[:, :1]).encoding).take(np.arange(200)), (scale,)).raw[:, 0]
        for x in (inside - step, inside + step)
    ]
    slope = np.log((two[1] - two[0]) / (2 * step))
    assert plan.numbers[0].log_jacobian[scale] == pytest.approx(slope.sum(), rel=1e-4)
    rows = MemoryRows(inside, rows_of(raw[:, :1]).encoding)
    assert plan.log_slopes(rows.take(np.arange(200)), (scale,)) == pytest.approx(slope, abs=1e-4)


def test_new_values_are_held_to_the_range_of_the_table(raw):
    plan, rows = plan_of(raw[:, :1])
    far = MemoryRows(np.array([[-1e6], [raw[:, 0].min()]]), rows.encoding)
    low, least = plan.treated(far.take(np.arange(2)), (1,)).raw[:, 0]
    assert low == least
    assert plan.treated(far.take(np.arange(2)), (0,)).raw[0, 0] < -1000  # as it is, nothing is held


@pytest.mark.parametrize("scale", range(len(SCALES)))
def test_a_treated_block_gives_back_the_columns_of_the_table(raw, scale):
    raw[3, 0] = raw[4, 1] = raw[5, 2] = np.nan
    sex = np.random.default_rng(1).integers(0, 2, (len(raw), 1)).astype(np.int32)
    plan, rows = plan_of(raw, codes=sex, levels=[("sex", ("f", "m"))])
    block = rows.take(np.arange(len(raw)))
    own = plan.untreated(plan.treated(block, (scale,) * 2), (scale,) * 2, rows.encoding)
    np.testing.assert_allclose(own.raw[:, :2], block.numbers[:, [0, 2]], atol=1e-9)
    np.testing.assert_allclose(own.raw[:, 2] * 3, raw[:, 1])  # four values, the largest of which is 3
    np.testing.assert_array_equal(own.codes, sex)
    placed = plan.on_scales(own.raw, (scale,) * 2)
    np.testing.assert_allclose(placed[:, 0], plan.treated(block, (scale,) * 2).raw[:, 0], atol=1e-9)
    np.testing.assert_array_equal(placed[:, 1:], own.raw[:, 1:])  # a frequent 0 is on no scale


def test_two_values_have_no_between_and_stay_levels():
    raw = np.column_stack([np.tile([0.0, 1.0], 50), np.arange(100.0)])
    plan, rows = plan_of(raw)
    own = plan.untreated(plan.treated(rows.take(np.arange(100)), (0,)), (0,), rows.encoding)
    np.testing.assert_array_equal(own.codes[:, 0], raw[:, 0])
    assert own.raw.shape == (100, 1)


def test_levels_that_never_occur_are_no_levels():
    codes = np.array([[0], [2], [2], [-1]], dtype=np.int32)
    plan, rows = plan_of(np.empty((4, 0)), codes, [("c", ["a", "b", "c"])])
    assert plan.categories[0].names == ("a", "c")
    assert plan.treated(rows.take(np.arange(4)), ()).codes[:, 0].tolist() == [0, 1, 1, -1]
    new = MemoryRows(np.empty((1, 0)), rows.encoding, codes=np.array([[1]], dtype=np.int32))
    assert plan.treated(new.take(np.arange(1)), ()).codes.tolist() == [[-1]]


def test_missing_may_be_a_level():
    codes = np.array([[0], [1], [-1], [-1]], dtype=np.int32)
    plan, rows = plan_of(np.empty((4, 0)), codes, [("c", ["a", "b"])], missing="level")
    assert plan.categories[0].names == ("a", "b", "(missing)")
    assert plan.categories[0].weight == (1, 1, 2)
    assert plan.treated(rows.take(np.arange(4)), ()).codes[:, 0].tolist() == [0, 1, 2, 2]


def test_no_cell_is_denser_than_one_per_recording_step():
    raw = np.random.default_rng(2).integers(0, 40, 300)[:, None].astype(float)
    plan, _ = plan_of(raw)
    number = plan.numbers[0]
    least = number.least_variance(0) * raw.std() ** 2
    assert 1 / np.sqrt(2 * np.pi * least) == pytest.approx(1.0)  # the peak, per unit of the user


def test_a_sample_weighs_what_it_holds(raw):
    plan, _ = plan_of(raw)
    half = plan.weighing(0.5)
    assert half.total_weight == 100
    assert half.numbers[0].log_jacobian[2] == pytest.approx(plan.numbers[0].log_jacobian[2] / 2)
    assert half.numbers[0].least_variance(2) == pytest.approx(plan.numbers[0].least_variance(2))
    assert half.level_weight == pytest.approx(plan.level_weight / 2)


def test_a_table_that_does_not_vary_is_refused():
    with pytest.raises(DataError, match="no column varies"):
        plan_of(np.full((5, 2), 1.0))


def test_all_numbers_are_treated_at_once_as_each_on_its_own():
    """No work of numbers runs column by column in Python: their figures lie in arrays, computed once per plan."""
    draws = np.random.default_rng(0)
    raw = np.column_stack([draws.normal(size=300), np.exp(draws.normal(size=300)), draws.gamma(2, size=300)])
    raw[draws.random(raw.shape) < 0.1] = np.nan
    raw[draws.random(300) < 0.3, 2] = 0.0
    rows = rows_of(raw)
    plan = assort(rows, ["a", "b", "c"], [])
    assert plan.numbers[2].atom == 0.0
    block, scales = rows.take(np.arange(300)), (0, 1, 3)
    each = [
        number.standardised(plan.values(block, number), s)
        for number, s in zip(plan.numbers, scales, strict=True)
    ]
    np.testing.assert_allclose(plan.treated(block, scales).raw, np.column_stack(each), rtol=1e-13)
    least = [number.least_variance(s) for number, s in zip(plan.numbers, scales, strict=True)]
    np.testing.assert_allclose(plan.number_columns.least_variance(scales), least, rtol=1e-13)
    assert plan.number_columns.scale_costs is plan.number_columns.scale_costs


def test_what_scales_cost_is_known_once_for_a_plan(monkeypatch):
    """It was computed for every column of every scene, which is quadratic in the columns."""
    raw = np.exp(np.random.default_rng(1).normal(size=(80, 40)))
    rows = rows_of(raw)
    plan = assort(rows, [f"x{j}" for j in range(40)], [])
    made = []
    of = NumberColumns.of
    monkeypatch.setattr(NumberColumns, "of", lambda numbers: made.append(1) or of(numbers))
    scene = AssortedProblem.plain(rows, plan, ModelOptions())
    params = GrowthSearch(0).single(scene).params
    moved = scene.rescaled(params)
    assert moved is not None
    assert moved[0].family.offset != scene.family.offset
    assert len(made) == 1


def test_columns_of_many_values_are_known_at_once_as_one_by_one():
    draws = np.random.default_rng(5)
    raw = draws.normal(0, 1, (100, 24))
    raw[:, :6] = np.round(raw[:, :6] * np.arange(1, 7) * 2)
    for j in range(6, 18):  # one value in 12 to 23 rows: 15 may be an atom, 20 is one
        raw[: 6 + j, j] = 0.5
    raw[3, 18:20] = np.nan
    plain, _ = plan_of(draws.permuted(raw, axis=0))
    doubled, _ = plan_of(draws.permuted(raw, axis=0), weight=np.full(100, 2.0))
    assert [(n.name, n.atom) for n in plain.numbers] == [(n.name, n.atom) for n in doubled.numbers]
    assert [(c.name, c.names) for c in plain.categories] == [(c.name, c.names) for c in doubled.categories]
    assert [n.name for n in plain.numbers if n.atom is not None] == [f"x{j}" for j in range(14, 18)]

"""Facts of the groups: divergences against independent formulas, units, names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from ilk.report.clocks import bound_words
from ilk.report.facts import Described, decimals_of, describe
from ilk.report.figures import (
    count_text,
    few_cells,
    kilobytes,
    letter,
    score_text,
    seconds_text,
    share_text,
    value_text,
)

LABELS = np.array([0] * 60 + [1] * 40)


def number(values, name="x"):
    return Described(name, np.asarray(values, dtype=float))


def test_divergence_of_a_number_is_that_of_two_gaussians():
    values = np.random.default_rng(0).normal(size=100) * np.where(LABELS, 2.0, 0.5) + 3 * LABELS
    (fact,) = describe([number(values)], LABELS, 2)[1].facts
    mean, spread, whole_mean, whole = values[60:].mean(), values[60:].std(), values.mean(), values.std()
    grid = np.linspace(-40, 60, 400_001)

    def density(m, s):
        return np.exp(-((grid - m) ** 2) / (2 * s * s)) / (s * np.sqrt(2 * np.pi))

    p, q = density(mean, spread), density(whole_mean, whole)
    there = p > 1e-300
    expected = np.sum(p[there] * np.log(p[there] / q[there])) * (grid[1] - grid[0])
    assert fact.nats == pytest.approx(expected, rel=1e-6)
    assert (fact.value, fact.whole) == (pytest.approx(mean), pytest.approx(whole_mean))


def test_divergence_of_a_category_is_smoothed_by_one_row():
    codes = np.array([0] * 50 + [1] * 10 + [1] * 10 + [2] * 30)
    first, second = describe([Described("c", codes, ("a", "b", "c"))], LABELS, 2)
    whole = np.array([0.5, 0.2, 0.3])
    assert first.facts[0].nats == pytest.approx(entropy((np.array([50, 10, 0]) + whole) / 61, whole))
    assert (first.facts[0].category, first.facts[0].value, first.facts[0].whole) == ("a", 50 / 60, 0.5)
    assert (second.facts[0].category, second.facts[0].sign) == ("c", "up")


def test_a_fall_is_shown_only_where_it_is_clearly_larger():
    codes = np.array([0, 1, 2, 3] * 15 + [3] * 40)
    group = describe([Described("c", codes, ("a", "b", "c", "d"))], LABELS, 2)[0]
    assert (group.facts[0].category, group.facts[0].sign) == ("d", "down")


def test_facts_are_in_order_and_noise_tells_nothing():
    draws = np.random.default_rng(1)
    columns = [number(draws.normal(size=100), "noise"), number(draws.normal(size=100) + 9 * LABELS, "signal")]
    for group in describe(columns, LABELS, 2):
        assert [f.column for f in group.facts] == ["signal", "noise"]
        assert [f.distinctive for f in group.facts] == [True, False]


def test_what_rounding_leaves_of_a_zero_mean_is_not_shown():
    values = np.random.default_rng(2).normal(size=100) / 20
    values -= values.mean()  # some 1e-18 is left
    for group in describe([number(values)], LABELS, 2):
        assert group.facts[0].whole == 0.0


def test_weights_are_repeats():
    draws = np.random.default_rng(2)
    values, codes, weight = draws.normal(size=100), draws.integers(-1, 3, 100), draws.integers(1, 4, 100)
    again = np.repeat(np.arange(100), weight)
    columns = [number(values), Described("c", codes, ("a", "b", "c"))]
    repeated = [number(values[again]), Described("c", codes[again], ("a", "b", "c"))]
    one = describe(columns, LABELS, 2, weight=weight.astype(float))
    other = describe(repeated, LABELS[again], 2)
    for mine, theirs in zip(one, other, strict=True):
        assert mine.share == pytest.approx(theirs.share)
        for a, b in zip(mine.facts, theirs.facts, strict=True):
            assert (a.column, a.category, a.distinctive) == (b.column, b.category, b.distinctive)
            assert (a.nats, a.value, a.missing) == pytest.approx((b.nats, b.value, b.missing))


@pytest.mark.parametrize("unit", [1e-200, 1e-9, 1.0, 1e9, 1e200])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_scale_and_offset_change_no_divergence(unit, offset):
    values = np.random.default_rng(3).normal(size=100) + 4 * LABELS
    plain = describe([number(values)], LABELS, 2)[0].facts[0]
    moved = describe([number((values + offset) * unit)], LABELS, 2)[0].facts[0]
    assert moved.nats == pytest.approx(plain.nats, rel=1e-6)
    assert moved.sign == plain.sign == "down"
    assert np.isfinite(moved.value)


def test_missing_cells_and_blank_groups():
    values = np.where(LABELS, np.nan, np.arange(100.0))
    first, second = describe([number(values), Described("c", np.full(100, -1), ("a",))], LABELS, 2)
    assert {f.column: f.missing for f in second.facts} == {"x": 1.0, "c": 1.0}
    assert {f.value for f in second.facts} == {None}
    assert first.facts[-1].nats == 0.0


def test_a_category_that_a_group_lacks_altogether_tells_nothing_of_it():
    codes = np.where(LABELS, -1, np.arange(100) % 2)
    first, second = describe([Described("c", codes, ("a", "b"))], LABELS, 2)
    assert (second.facts[0].value, second.facts[0].missing, second.facts[0].distinctive) == (None, 1.0, False)
    assert first.facts[0].value == 0.5


def test_the_widest_numbers_that_there_are_have_finite_facts():
    largest = np.finfo(float).max
    first, second = describe([number(np.where(LABELS, largest, -largest))], LABELS, 2)
    assert (first.facts[0].value, second.facts[0].value) == (-largest, largest)
    assert (first.facts[0].sign, second.facts[0].sign) == ("down", "up")
    assert all(np.isfinite(group.facts[0].nats) for group in (first, second))


def test_constant_inside_a_group_is_finite():
    group = describe([number(np.where(LABELS, np.arange(100.0), 7.0))], LABELS, 2)[0]
    assert np.isfinite(group.facts[0].nats)
    assert group.facts[0].spread == 0


def test_names_of_groups():
    columns = [
        Described("island", np.where(LABELS, 1, 0), ("Biscoe", "Dream")),
        Described("wild", np.where(LABELS, 1, 0), ("no", "yes")),
        number(LABELS * 5 + np.arange(100) % 3 * 0.1, "size"),
    ]
    names = [g.name for g in describe(columns, LABELS, 2)]
    assert names == ["island = Biscoe, wild = no, low size", "island = Dream, wild = yes, high size"]
    # A level that several columns have says nothing without its column.
    twice = [Described(name, np.where(LABELS, 1, 0), ("rarely", "often")) for name in ("walks", "swims")]
    assert [g.name for g in describe(twice, LABELS, 2)] == [
        "walks = rarely, swims = rarely",
        "walks = often, swims = often",
    ]
    # Two groups alike in their first parts are told apart by the next.
    labels = np.repeat([0, 1, 2], 40)
    columns = [number((labels > 0) * 100.0 + np.arange(120) % 7, f"c{j}") for j in range(3)]
    columns.append(number(labels * 3.0 + np.arange(120) % 5 * 0.1, "last"))
    assert len({g.name for g in describe(columns, labels, 3)}) == 3
    same = describe([number(np.tile([1.0, 2.0], 50))], LABELS, 2)
    assert [g.name for g in same] == ["like the whole table"] * 2


@given(st.integers(0, 10**6))
def test_letters_are_all_different(number):
    assert letter(number) != letter(number + 1)
    assert letter(number).isupper()


def test_values_as_the_page_writes_them():
    assert value_text(1234567.0, 0) == "1,234,567"
    assert value_text(-0.04, 1) == "0.0"
    assert value_text(1.5e200) == "1.5e+200"
    assert value_text(float("inf")) == "∞"
    assert [told(None) for told in (value_text, share_text, score_text)] == ["–"] * 3
    assert [share_text(s) for s in (0.0002, 0.004, 0.9996)] == ["<0.1%", "0.4%", ">99%"]
    assert [kilobytes(n) for n in (1, 234_439, 9_999_999)] == ["1 kB", "234 kB", "10,000 kB"]
    assert [seconds_text(s) for s in (9.94, 9.96, 119.4, 120, 3725)] == [
        "9.9 s",
        "10 s",
        "119 s",
        "2 min 0 s",
        "62 min 5 s",
    ]
    assert decimals_of(np.array([1.25, 3.5]), 1.0) == 2
    assert decimals_of(np.array([0.123456789, 3.5]), 1.0) == 2
    assert decimals_of(np.array([1e9, 1e9 + 5]), 3.0) == 1


def described(labels, **columns):
    made = [
        Described(name, np.asarray(values, dtype=float))
        if not isinstance(values, tuple)
        else Described(name, np.asarray(values[1]), values[0])
        for name, values in columns.items()
    ]
    return describe(made, np.asarray(labels), int(max(labels)) + 1)


def test_a_group_between_others_is_in_the_middle():
    draws = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [100, 200, 40])
    orders = draws.normal(np.array([4.0, 14.0, 30.0])[labels], 1)
    assert [g.name for g in described(labels, orders=orders)] == [
        "low orders",
        "middle orders",
        "high orders",
    ]


def test_a_group_like_most_of_the_table_is_not_called_narrow():
    draws = np.random.default_rng(0)
    labels = np.repeat([0, 1], [930, 70])
    spend = draws.normal(np.array([10.0, 400.0])[labels], np.array([2.0, 100.0])[labels])
    first, second = described(labels, spend=spend)
    assert first.facts[0].sign == "down" or "spend" not in first.name
    assert "narrow" not in first.name
    assert second.name == "high spend"


def test_levels_carry_their_column():
    labels = np.repeat([0, 1], [50, 50])
    groups = described(labels, drive=(("rwd", "fwd"), labels), doors=(("two", "four"), labels))
    assert [g.name for g in groups] == ["drive = rwd, doors = two", "drive = fwd, doors = four"]


def test_facts_count_the_cells_they_rest_on():
    labels = np.repeat([0, 1], [50, 50])
    values = np.where(np.arange(100) < 40, np.nan, labels * 9.0 + np.arange(100) % 3)
    codes = np.where(np.arange(100) % 5 == 0, labels, -1)
    first, second = described(labels, x=values, c=(("a", "b"), codes))
    assert {f.column: f.cells for f in first.facts} == {"x": 10, "c": 10}
    assert {f.column: f.cells for f in second.facts} == {"x": 50, "c": 10}
    entry = next(f for f in first.to_dict()["facts"] if f["column"] == "x")
    assert few_cells(entry) == "of 10 known"
    assert few_cells({**entry, "missing": 0.2}) is None


def test_numbers_paste_into_other_programs():
    assert value_text(-1234567.5, 1) == "-1,234,567.5"
    assert score_text(-0.25) == "-.25"
    assert share_text(0.5) == "50%"
    assert count_text(8412).isascii()


def test_columns_looked_at_together_have_the_moments_of_each_alone():
    draws = np.random.default_rng(3)
    labels, heft = draws.integers(0, 3, 500), draws.integers(0, 4, 500).astype(float)
    values = draws.normal(0, 1, (7, 500)) * 10.0 ** np.arange(-9, 12, 3)[:, None] + 5.0
    values[2, 4:60] = np.nan
    values[3] = 1.25
    values[4, :2] = 1.7e308, -1.7e308
    columns = [number(row, f"x{j}") for j, row in enumerate(values)]
    together = [
        {fact.column: fact for fact in group.facts} for group in describe(columns, labels, 3, weight=heft)
    ]
    for column in columns:
        for g, group in enumerate(describe([column], labels, 3, weight=heft)):
            assert group.facts == (together[g][column.name],)
    for j in (0, 1, 2, 3, 5, 6):
        for g in range(3):
            mine = (labels == g) & ~np.isnan(values[j])
            mean = np.average(values[j, mine], weights=heft[mine])
            square = np.average((values[j, mine] - mean) ** 2, weights=heft[mine])
            fact = together[g][f"x{j}"]
            assert (fact.value, fact.spread) == (
                pytest.approx(mean),
                pytest.approx(np.sqrt(square), 1e-6, 1e-12),
            )


def test_hours_and_days_are_told_by_the_clock():
    hours = {"kind": "time", "origin": 0.25}  # days are cut at six in the morning
    days = {"kind": "date", "origin": 19_000.0}
    values = np.where(LABELS, 14.0, 2.0) + np.arange(100) % 3 * 0.1
    first, second = describe([Described("visit", values, clock=hours)], LABELS, 2)
    assert [first.name, second.name] == ["visit around 08:06", "visit around 20:06"]
    assert [bound_words(op, "20:30", hours) for op in ("at most", "above")] == [
        "from 06:00 to 20:30",
        "from 20:30 to 06:00",
    ]
    assert [bound_words(op, "2022-01-08", days) for op in ("at most", "above")] == [
        "until 2022-01-08",
        "after 2022-01-08",
    ]
    assert value_text(8.0, 0, days) == str(np.datetime64("1970-01-01") + 19_008)
    assert value_text(1e12, 0, days) == "1,000,000,000,000", "there is no such day"


def test_weekdays_that_rise_together_are_told_together():
    days = np.where(LABELS, 5 + np.arange(100) % 2, np.arange(100) % 5)
    second = describe(
        [Described("day", days, ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"), cyclic=True)], LABELS, 2
    )[1]
    assert (second.facts[0].category, second.facts[0].value) == ("Sa, Su", 1.0)

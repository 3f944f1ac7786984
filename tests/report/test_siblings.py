"""What tells a group from the one most like it, and the pairs of columns that show groups no single column shows."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

import ilk
from ilk.report.evidence import Evidence
from ilk.report.explanation import explanation, told_apart, without_rows
from ilk.report.facts import Described, describe
from ilk.report.page import page
from ilk.report.pairs import STEPS, pairs_of
from ilk.report.siblings import contrasts
from ilk.text.explain import group_text
from ilk.text.layout import Surface
from ilk.text.summary import render
from tests.report.conftest import stripes

DRAWS = np.random.default_rng(0)


def evidence_of(columns, labels, **more):
    k = int(labels.max()) + 1
    return Evidence(tuple(columns), labels, k, np.arange(len(labels)), **more), describe(
        columns, labels, k, **more
    )


@pytest.fixture(scope="module")
def four():
    """A is far from the others in x and y; B, C and D differ among themselves in z and in a level only."""
    labels = np.repeat(np.arange(4), 100)
    x = np.where(labels == 0, 20.0, 0.0) + DRAWS.normal(size=400)
    y = np.where(labels == 0, -20.0, 0.0) + DRAWS.normal(size=400)
    z = np.array([0.0, -1.5, 1.5, 1.5])[labels] + 0.5 * DRAWS.normal(size=400)
    doors = np.where(labels == 3, 1, 0)
    columns = [
        Described("x", x),
        Described("y", y),
        Described("z", z),
        Described("doors", doors, ("two", "four")),
    ]
    return evidence_of(columns, labels)


def test_the_sibling_is_the_group_most_like_it_and_what_differs_is_told(four):
    evidence, groups = four
    made = contrasts(evidence, groups)
    assert [made[1].group, made[2].group, made[3].group] == ["C", "D", "C"]
    assert [fact.column for fact in made[1].facts] == ["z"]
    (doors,) = made[3].facts
    assert (doors.column, doors.category, doors.value, doors.whole, doors.sign) == (
        "doors",
        "four",
        1.0,
        0.0,
        "up",
    )


def test_values_are_those_of_the_two_groups(four):
    evidence, groups = four
    fact = contrasts(evidence, groups)[1].facts[0]
    z = evidence.columns[2].values
    assert fact.value == pytest.approx(z[100:200].mean())
    assert fact.whole == pytest.approx(z[200:300].mean())
    one, other = z[100:200], z[200:300]
    both = one.var() + other.var()
    closed = (one.mean() - other.mean()) ** 2 / (4 * both) + log(both / (2 * one.std() * other.std())) / 2
    assert fact.nats == pytest.approx(closed)


def test_groups_do_not_open_with_the_same_two_facts(four):
    evidence, groups = four
    summary = {"groups": [group.to_dict() for group in told_apart(evidence, groups)]}
    from ilk.text.summary import _told

    opened = [tuple(str(pieces) for pieces in _told(group, 3)[:2]) for group in summary["groups"]]
    assert len(set(opened)) == 4


def test_equal_groups_are_not_told_apart():
    labels = np.arange(400) % 2
    evidence, groups = evidence_of([Described("x", DRAWS.normal(size=400))], labels)
    assert [made.facts for made in contrasts(evidence, groups)] == [(), ()]
    assert pairs_of(evidence, groups) == [None, None]


def test_weights_and_missing_cells_are_taken_as_elsewhere():
    labels = np.repeat([0, 1], 200)
    values = labels * 4.0 + DRAWS.normal(size=400)
    values[::3] = np.nan
    weight = DRAWS.integers(1, 4, 400).astype(float)
    evidence, groups = evidence_of([Described("x", values)], labels, weight=weight)
    (fact,) = contrasts(evidence, groups)[0].facts
    there = ~np.isnan(values)
    mine, other = there & (labels == 0), there & (labels == 1)
    assert fact.value == pytest.approx(np.average(values[mine], weights=weight[mine]))
    assert fact.whole == pytest.approx(np.average(values[other], weights=weight[other]))


def test_stripes_are_shown_by_the_two_columns_together():
    labels, table = stripes()
    evidence, groups = evidence_of([Described(name, values) for name, values in table.items()], labels)
    made = pairs_of(evidence, groups)
    assert [set(pair.columns) for pair in made] == [{"width", "height"}] * 3
    assert [pair.words.split()[0] for pair in made] in (["low", "middle", "high"], ["high", "middle", "low"])
    assert [group.name for group in told_apart(evidence, groups)] == [pair.words for pair in made]


def test_the_divergence_of_two_numbers_is_that_of_their_gaussians():
    labels, table = stripes()
    evidence, groups = evidence_of([Described(name, values) for name, values in table.items()], labels)
    pair = pairs_of(evidence, groups)[0]
    rows = np.column_stack([table[name] for name in pair.columns])
    mine, whole = np.cov(rows[labels == 0].T, bias=True), np.cov(rows.T, bias=True)
    shift, inverse = rows[labels == 0].mean(axis=0) - rows.mean(axis=0), np.linalg.inv(whole)
    scatter = np.linalg.slogdet(whole)[1] - np.linalg.slogdet(mine)[1]
    assert pair.nats == pytest.approx((np.trace(inverse @ mine) + shift @ inverse @ shift - 2 + scatter) / 2)


def test_a_cross_and_levels_that_only_go_together_are_found():
    labels = np.repeat([0, 1], 300)
    a = DRAWS.normal(size=600)
    b = np.where(labels == 0, a, -a) + DRAWS.normal(0, 0.1, 600)
    evidence, groups = evidence_of([Described("a", a), Described("b", b)], labels)
    assert {pair.words.split()[1] for pair in pairs_of(evidence, groups)} == {"rises", "falls"}
    first = DRAWS.integers(0, 2, 600)
    second = np.where(labels == 0, first, 1 - first)
    columns = [Described("wind", first, ("east", "west")), Described("rain", second, ("no", "yes"))]
    evidence, groups = evidence_of(columns, labels)
    words = [pair.words for pair in pairs_of(evidence, groups)]
    assert words[0] in ("wind = east with rain = no", "wind = west with rain = yes",
                        "rain = no with wind = east", "rain = yes with wind = west")  # fmt: skip


def test_groups_that_single_columns_show_have_no_pair(four):
    assert pairs_of(*four) == [None] * 4


def test_the_report_draws_the_pair_and_every_text_says_it(striped):
    summary = striped.summary()
    (pair,) = summary["pairs"]
    assert set(pair["columns"]) == {"width", "height"}
    assert pair["groups"] == ["A", "B", "C"]
    assert all(0 <= v <= STEPS for v in (*pair["points"]["x"], *pair["points"]["y"]))
    html = page(summary)
    assert 'id="pairs"' in html
    assert "Neither column alone shows" in html
    text = render(summary, Surface(width=100))
    assert "for its" in text
    assert "no clear difference" not in text
    assert "together: " in group_text(summary, "B", Surface(width=100))
    assert striped.model.names == tuple(group.name for group in striped.groups)


def test_without_rows_the_points_of_pairs_are_gone(striped):
    kept = without_rows(striped.summary())
    assert [pair["points"] for pair in kept["pairs"]] == [None]
    assert "Single rows are left out, as asked" in page(kept)


def test_a_result_that_is_loaded_has_contrasts_and_pairs(striped, tmp_path):
    from ilk.analysis.restore import _group

    for entry, group in zip(striped.summary()["groups"], striped.groups, strict=True):
        assert _group(entry) == group


def test_letters_carried_over_reach_the_contrast(penguins):
    again = ilk.cluster(penguins.table.arrow, match_to=penguins, ignore="target")
    letters = {group.letter for group in again.groups}
    assert all(group.unlike.group in letters - {group.letter} for group in again.groups)


def test_the_explanation_has_the_pairs_that_groups_name(four):
    evidence, groups = four
    assert explanation(evidence, told_apart(evidence, groups))["pairs"] == []


def test_a_pair_of_categories_is_drawn_level_by_level(levels_together):
    summary = levels_together.summary()
    (pair,) = summary["pairs"]
    levels = [axis["categories"] for axis in pair["axes"]]
    assert sorted(map(sorted, levels)) == [["a very long name of the west", "east"], ["no", "yes"]]
    places = np.array([pair["points"]["x"], pair["points"]["y"]]) * 2 // (STEPS + 1)
    group = np.array(pair["points"]["group"])
    for g in (0, 1):
        assert len({tuple(place) for place in places[:, group == g].T}) == 2, (
            "each group is in two of four fields"
        )
    assert not {tuple(p) for p in places[:, group == 0].T} & {tuple(p) for p in places[:, group == 1].T}
    html = page(summary)
    assert "Neither column alone shows" in html
    assert ">east</text>" in html


def test_a_pair_is_looked_for_only_where_both_columns_have_values():
    labels = np.repeat([0, 1], 200)
    first = DRAWS.integers(0, 2, 400)
    second = np.where(labels == 0, -1, 1 - first)
    columns = [Described("wind", first, ("east", "west")), Described("rain", second, ("no", "yes"))]
    evidence, groups = evidence_of(columns, labels)
    assert pairs_of(evidence, groups)[0] is None


def test_columns_without_values_and_without_spread_make_no_groups_unlike():
    labels = np.arange(400) % 2
    columns = [Described("blank", np.full(400, np.nan)), Described("same", np.full(400, 3.0))]
    evidence, groups = evidence_of(columns, labels)
    assert [made.facts for made in contrasts(evidence, groups)] == [(), ()]


def test_a_difference_below_the_smallest_number_is_not_told():
    labels = np.repeat([0, 1], 200)
    evidence, groups = evidence_of([Described("x", labels * 5e-324)], labels)
    assert groups[0].facts[0].whole_spread == 0.0
    assert [made.facts for made in contrasts(evidence, groups)] == [(), ()]

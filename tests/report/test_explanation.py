"""The parts of an explanation against independent calculations: bins, quantiles, rules, axes, medoids."""

from __future__ import annotations

import json
import warnings
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from ilk.report import exemplars, plane, profile, quality, rule
from ilk.report.evidence import SAMPLE_ROWS, Evidence, shared_out
from ilk.report.explanation import explanation, told_apart, without_rows
from ilk.report.facts import Described, describe
from ilk.report.summary import plain, truth_entry

DRAWS = np.random.default_rng(3)
N = 300
LABELS = np.repeat([0, 1, 2], [150, 100, 50])


def made(seed=0, n=N, labels=LABELS, **given):
    """Three groups: x parts the first, c the second, noise parts nothing."""
    draws = np.random.default_rng(seed)
    x = draws.normal(size=n) + 6 * (labels == 0)
    y = 2 * draws.normal(size=n) + x
    c = np.where(labels == 1, 0, draws.integers(1, 3, n))
    noise = draws.normal(size=n)
    x[5] = np.nan
    columns = (
        Described("x", x), Described("y", y), Described("c", c, ("red", "green", "blue")), Described("noise", noise),
    )  # fmt: skip
    return Evidence(columns, labels, 3, np.arange(n), **given)


def groups_of(evidence):
    return describe(evidence.columns, evidence.labels, evidence.k, weight=evidence.weight)


def told(evidence):
    return profile.profile(evidence, groups_of(evidence))


@given(st.lists(st.integers(0, 400), min_size=1, max_size=12), st.integers(1, 900))
def test_quotas_fill_the_sample_and_never_exceed_a_group(sizes, most):
    quotas = shared_out(np.array(sizes), most)
    assert (quotas <= sizes).all()
    assert quotas.sum() <= most
    assert quotas.sum() >= min(sum(sizes), most) - len(sizes)  # whole numbers may leave one a group over


def test_the_sample_stands_for_the_table():
    n = 40_000
    labels = np.repeat([0, 1], [39_900, 100])
    evidence = Evidence((Described("x", np.arange(n, dtype=float)),), labels, 2, np.arange(n))
    sample = evidence.sample
    assert len(sample.place) <= SAMPLE_ROWS
    assert (sample.label == 1).sum() == 100
    assert sample.heft.sum() == pytest.approx(n)
    assert sample.heft[sample.label == 1] == pytest.approx(1.0)


def test_bins_are_those_of_numpy():
    evidence = made()
    entry = next(e for e in told(evidence) if e["column"] == "y")["distribution"]
    values = evidence.columns[1].values
    counts, edges = np.histogram(values, bins=profile.BINS)
    assert entry["whole"] == counts.tolist()
    assert (entry["from"], entry["to"]) == (pytest.approx(edges[0]), pytest.approx(edges[-1]))
    for g in range(3):
        assert entry["groups"][g] == np.histogram(values[g == LABELS], bins=edges)[0].tolist()
    assert entry["middles"][2] == pytest.approx(
        np.quantile(values[LABELS == 2], [0.1, 0.9], method="inverted_cdf")
    )


def test_far_ends_are_left_out_of_the_bins_and_counted_in_the_outer_ones():
    values = np.append(DRAWS.normal(size=999), 1e6)
    evidence = Evidence((Described("x", values),), np.zeros(1000, dtype=int), 1, np.arange(1000))
    spread = told(evidence)[0]["distribution"]
    assert spread["clipped"]
    assert spread["high"] == 1e6
    assert spread["to"] < 10
    assert sum(spread["whole"]) == 1000


def test_levels_beyond_the_most_frequent_are_one():
    codes = np.repeat(np.arange(20), np.arange(1, 21))
    column = Described("c", codes, tuple(f"l{i}" for i in range(20)))
    evidence = Evidence((column,), np.zeros(len(codes), dtype=int), 1, np.arange(len(codes)))
    spread = told(evidence)[0]["distribution"]
    assert spread["categories"] == [f"l{i}" for i in range(12, 20)]
    assert spread["others"] == 12
    assert sum(spread["whole"]) == len(codes)
    assert spread["whole"][-1] == sum(range(1, 13))


def test_relevance_is_the_mean_divergence_over_the_rows():
    evidence = made()
    groups = groups_of(evidence)
    entries = {e["column"]: e for e in profile.profile(evidence, groups)}
    expected = sum(g.share * f.nats for g in groups for f in g.facts if f.column == "x")
    assert entries["x"]["relevance"] == pytest.approx(expected)
    assert entries["noise"]["distinctive_in"] == []
    assert "A" in entries["x"]["distinctive_in"]


def by_hand(terms, evidence):
    """Which rows meet a rule, row by row from its plain form."""
    columns = {c.name: c for c in evidence.columns}
    picked = []
    for i in range(evidence.n_rows):
        met = True
        for term in terms:
            column = columns[term["column"]]
            value = column.values[i]
            if column.levels is None:
                here = (
                    term["missing"]
                    if np.isnan(value)
                    else (value <= term["value"]) == (term["op"] == "at most")
                )
            else:
                here = term["missing"] if value < 0 else column.levels[value] in term["categories"]
            met = met and here
        picked.append(met)
    return np.array(picked)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_coverage_and_purity_are_counts_of_rows(seed):
    evidence = made(seed)
    for number, found in enumerate(rule.rules(evidence, groups_of(evidence))):
        assert 1 <= len(found.terms) <= rule.MOST_TERMS
        picked, mine = by_hand([vars(term) for term in found.terms], evidence), evidence.labels == number
        assert found.rows == picked.sum()
        assert found.coverage == pytest.approx((picked & mine).sum() / mine.sum())
        assert found.purity == pytest.approx((picked & mine).sum() / picked.sum())


def test_one_cut_is_the_best_of_all_cuts():
    draws = np.random.default_rng(0)
    values = np.round(draws.normal(size=200), 1)
    labels = (values + draws.normal(scale=0.5, size=200) > 0.4).astype(int)
    evidence = Evidence((Described("x", values),), labels, 2, np.arange(200))
    found = rule.rules(evidence, groups_of(evidence))[1]
    mine = labels == 1

    def f(picked):
        return 2 * (picked & mine).sum() / (picked.sum() + mine.sum())

    best = max(max(f(values > cut), f(values <= cut)) for cut in np.unique(values))
    assert len(found.terms) == 1
    assert found.f == pytest.approx(best)


def test_a_rule_finds_levels_and_lets_blanks_pass():
    labels = np.repeat([0, 1], [60, 40])
    codes = np.where(labels == 0, np.arange(100) % 2, 2)
    codes[:10] = -1
    evidence = Evidence((Described("c", codes, ("a", "b", "z")),), labels, 2, np.arange(100))
    first, second = rule.rules(evidence, groups_of(evidence))
    assert first.terms[0].categories == ("a", "b")
    assert first.terms[0].missing
    assert second.terms[0].categories == ("z",)
    assert (first.coverage, first.purity, second.purity) == (1.0, 1.0, 1.0)


def test_noise_has_no_rule():
    draws = np.random.default_rng(1)
    labels = draws.integers(0, 2, 400)
    evidence = Evidence((Described("x", draws.normal(size=400)),), labels, 2, np.arange(400))
    assert all(found is None or not found.distinctive for found in rule.rules(evidence, groups_of(evidence)))


def test_axes_are_those_of_a_singular_value_decomposition():
    draws = np.random.default_rng(4)
    values = draws.normal(size=(400, 4)) @ draws.normal(size=(4, 4)) + 100
    labels = np.repeat([0, 1], 200)
    columns = tuple(Described(f"x{j}", values[:, j]) for j in range(4))
    evidence = Evidence(columns, labels, 2, np.arange(400))
    drawn = plane.plane(evidence, plane.design(evidence, [c.name for c in columns]))
    z = (values - values.mean(axis=0)) / values.std(axis=0)
    u, s, _ = np.linalg.svd(z, full_matrices=False)
    assert drawn["method"] == "PCA"
    assert drawn["share"] == pytest.approx((s**2 / (s**2).sum())[:2])
    x, y = np.array(drawn["points"]["x"]), np.array(drawn["points"]["y"])
    assert abs(np.corrcoef(x, u[:, 0])[0, 1]) > 0.9999
    assert abs(np.corrcoef(y, u[:, 1])[0, 1]) > 0.9999
    for entry in drawn["loadings"]:
        column = z[:, int(entry["column"][1])]
        assert entry["x"] == pytest.approx(np.corrcoef(column, x)[0, 1], abs=1e-3)
    assert max(drawn["extent"]) == plane.STEPS


def test_variation_of_categories_alone_is_that_of_correspondence_analysis():
    """Two categories: the eigenvalues of their indicators are (1 ± s)/1 with s the singular values of the table."""
    draws = np.random.default_rng(5)
    a = draws.integers(0, 3, 500)
    b = np.where(draws.random(500) < 0.7, a, draws.integers(0, 3, 500))
    evidence = Evidence(
        (Described("a", a, ("p", "q", "r")), Described("b", b, ("s", "t", "u"))),
        np.zeros(500, int),
        1,
        np.arange(500),
    )
    drawn = plane.plane(evidence, plane.design(evidence, ["a", "b"]))
    p = np.zeros((3, 3))
    np.add.at(p, (a, b), 1 / 500)
    r, c = p.sum(axis=1), p.sum(axis=0)
    s = np.linalg.svd((p - np.outer(r, c)) / np.sqrt(np.outer(r, c)))[1]
    assert drawn["method"] == "MCA"
    assert drawn["share"] == pytest.approx((1 + s[:2]) / 4)


def test_an_ellipse_holds_nine_rows_in_ten():
    draws = np.random.default_rng(6)
    n = 4000
    values = draws.normal(size=(n, 2)) @ np.array([[2.0, 1.0], [0.0, 0.5]])
    columns = (Described("x", values[:, 0]), Described("y", values[:, 1]))
    labels = np.arange(n) % 2
    evidence = Evidence(columns, labels, 2, np.arange(n))
    drawn = plane.plane(evidence, plane.design(evidence, ["x", "y"]))
    ellipse = drawn["ellipses"][0]
    mine = np.array(drawn["points"]["group"]) == 0
    x, y = (
        np.array(drawn["points"]["x"])[mine] - ellipse["x"],
        np.array(drawn["points"]["y"])[mine] - ellipse["y"],
    )
    turn = np.radians(ellipse["angle"])
    along, across = x * np.cos(turn) + y * np.sin(turn), -x * np.sin(turn) + y * np.cos(turn)
    inside = (along / ellipse["long"]) ** 2 + (across / ellipse["short"]) ** 2 <= 1
    assert inside.mean() == pytest.approx(0.90, abs=0.02)


def test_the_first_typical_row_is_the_medoid():
    evidence = made()
    design = plane.design(evidence, ["x", "y", "c"])
    for g in range(3):
        mine = np.flatnonzero(g == LABELS)
        distance = cdist(design.values[mine], design.values[mine]).sum(axis=1)
        assert distance[mine == exemplars.medoids(evidence, design, g)[0]] == pytest.approx(distance.min())


def test_least_sure_rows_come_first_with_their_second_group():
    sure = np.linspace(0.99, 0.4, N)
    probabilities = np.zeros((N, 3))
    probabilities[np.arange(N), LABELS] = sure
    probabilities[np.arange(N), (LABELS + 1) % 3] = 1 - sure
    evidence = made(probabilities=probabilities)
    groups = groups_of(evidence)
    found = explanation(evidence, groups)
    assert [row["row"] for row in found["rows"]["least_certain"]] == list(range(N - 1, N - 21, -1))
    assert found["rows"]["least_certain"][0]["second"] == "A"
    assert found["rows"]["least_certain"][0]["second_probability"] == pytest.approx(0.6)
    assert found["row_counts"]["uncertain"] == (sure < 0.8).sum()
    expected = [probabilities[g == LABELS].mean(axis=0) for g in range(3)]
    assert np.array(found["overlap"]) == pytest.approx(np.array(expected))
    assert found["rows"]["groups"][1]["border"][0]["row"] == 249


def test_unusual_rows_say_what_is_unusual():
    evidence = made()
    evidence.columns[1].values[7] = 90.0
    novelty = np.zeros(N)
    novelty[[7, 8]] = 1.0
    evidence = Evidence(evidence.columns, LABELS, 3, np.arange(N), novelty=novelty)
    rows = explanation(evidence, groups_of(evidence))["rows"]["unusual"]
    assert rows[0]["row"] == 7
    assert rows[0]["because"]["column"] == "y"


def test_silhouettes_are_thinned_to_quantiles():
    value = np.linspace(1, -0.5, N)
    evidence = made(silhouette=(np.arange(N), value))
    found = quality.silhouettes(evidence, groups_of(evidence))
    assert [e["rows"] for e in found] == [150, 100, 50]
    assert sum(e["negative"] for e in found) == (value < 0).sum()
    assert all(e["values"] == sorted(e["values"], reverse=True) for e in found)
    many = np.tile(value, 20)
    labels = np.tile(LABELS, 20)
    evidence = Evidence(
        (Described("x", many),), labels, 3, np.arange(20 * N), silhouette=(np.arange(20 * N), many)
    )
    found = quality.silhouettes(evidence, groups_of(evidence))
    assert sum(len(e["values"]) for e in found) <= quality.MOST_BARS + 3


def test_whole_weights_are_repeats():
    weight = np.where(np.arange(N) % 3 == 0, 2, 1)
    weight[LABELS == 2] = 1
    weighted = made(weight=weight.astype(float))
    again = np.repeat(np.arange(N), weight)
    columns = tuple(Described(c.name, c.values[again], c.levels) for c in weighted.columns)
    repeated = Evidence(columns, LABELS[again], 3, again)
    one, two = (explanation(e, groups_of(e)) for e in (weighted, repeated))
    for a, b in zip(one["profile"], two["profile"], strict=True):
        assert a["column"] == b["column"]
        assert a["distribution"] == b["distribution"]
    for a, b in zip(one["rules"], two["rules"], strict=True):
        assert a.terms == b.terms
        assert a.purity == pytest.approx(b.purity)
    assert one["map"]["share"] == pytest.approx(two["map"]["share"])


def test_without_rows_nothing_of_a_row_is_left():
    evidence = made(ids=[f"person {i}" for i in range(N)])
    found = explanation(evidence, groups_of(evidence))
    assert found["rows"]["unusual"][0]["id"].startswith("person")
    bare = without_rows(found)
    assert bare["rows"] is None
    assert bare["map"]["points"] is None
    assert "person" not in str(bare)


def test_degenerate_tables_are_explained():
    one = Evidence((Described("x", np.array([1.0, 1.0])),), np.zeros(2, int), 1, np.arange(2))
    found = explanation(one, groups_of(one))
    assert found["map"] is None
    assert found["rules"] == [None]
    blank = Evidence(
        (Described("x", np.full(4, np.nan)), Described("c", np.full(4, -1), ())),
        np.array([0, 0, 1, 1]),
        2,
        np.arange(4),
    )
    found = explanation(blank, groups_of(blank))
    assert [e["distribution"] for e in found["profile"]] == [None, None]


def test_a_group_that_none_of_the_described_rows_has_is_left_out_of_the_map_and_has_no_rows():
    labels = np.where(LABELS == 2, 0, LABELS)
    evidence = made(labels=labels)
    found = explanation(evidence, groups_of(evidence))
    assert [ellipse is None for ellipse in found["map"]["ellipses"]] == [False, False, True]
    assert found["rows"]["groups"][2]["typical"] == []
    assert found["rules"][2] is None


def test_a_column_that_one_group_lacks_is_drawn_for_the_others():
    draws = np.random.default_rng(0)
    x = np.where(LABELS == 2, np.nan, draws.normal(size=N))
    codes = np.where(LABELS == 2, -1, LABELS)
    columns = (Described("x", x), Described("c", codes, ("a", "b")), Described("y", draws.normal(size=N)))
    evidence = Evidence(columns, LABELS, 3, np.arange(N))
    groups = told_apart(evidence, groups_of(evidence))
    by_name = {entry["column"]: entry["distribution"] for entry in profile.profile(evidence, groups)}
    assert sum(by_name["x"]["groups"][2]) == 0
    assert [middle is None for middle in by_name["x"]["middles"]] == [False, False, True]
    assert all(fact.column != "x" for fact in groups[2].unlike.facts), "what is not there is not compared"


def test_columns_that_no_bin_can_hold_have_no_distribution():
    """A range beyond all numbers, and whole numbers that are one as doubles."""
    largest = float(np.finfo(float).max)
    wide = Described("wide", np.where(LABELS == 0, -largest, largest))
    same = Described("same", 2**60 + (LABELS == 0).astype(np.int64))
    evidence = Evidence((wide, same), LABELS, 3, np.arange(N))
    assert [entry["distribution"] for entry in told(evidence)] == [None, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edges, _ = profile.edges_of(wide.values, -largest, largest)  # the axes of a picture need some
    assert (edges[0], edges[-1]) == (-largest, largest)
    assert np.isfinite(edges).all()
    assert (np.diff(edges / 2) > 0).all()


def test_a_level_that_all_rows_have_is_no_axis():
    columns = (*made().columns, Described("same", np.zeros(N, int), ("only", "never")))
    evidence = Evidence(columns, LABELS, 3, np.arange(N))
    assert {name for name, _ in plane.design(evidence, ["x", "same", "c"]).names} == {"x", "c"}


def test_a_column_that_is_blank_in_all_rows_a_condition_picks_adds_none_to_it():
    """Half of the first group is told by x, and has no z; z tells the others."""
    draws = np.random.default_rng(0)
    labels = np.repeat([0, 1], [100, 200])
    half = np.arange(300) < 50
    x = np.where(half, 9.0, 0.0)
    z = np.where(half, np.nan, np.where(labels == 0, 9.0, 0.0) + 0.1 * draws.normal(size=300))
    evidence = Evidence((Described("x", x), Described("z", z)), labels, 2, np.arange(300))
    found = rule.rules(evidence, groups_of(evidence))[0]
    assert [(term.column, term.op, term.missing) for term in found.terms] == [("z", "above", True)]
    assert found.f == 1.0


def test_a_cut_between_neighbouring_numbers_is_the_lower_one():
    low = 0.123456789012345
    high = float(np.nextafter(low, 1))
    assert rule.between(low, high, 1) == (low, 1)
    assert rule.between(1.0, 2.0, 0) == (1.0, 0)


def test_dates_of_single_rows_are_told_as_dates():
    days = np.array([0.0, 1.5, np.nan])
    column = Described("since", days, clock={"kind": "date", "origin": 19_000.0})
    evidence = Evidence((column,), np.zeros(3, int), 1, np.arange(3))
    cells = [exemplars.entry(evidence, i, groups_of(evidence), ["since"])["cells"][0] for i in range(3)]
    first = np.datetime64("1970-01-01") + 19_000
    assert cells[0] == str(first)
    assert cells[1].startswith(str(first + 1))
    assert "12:00" in cells[1]
    assert cells[2] is None


def test_a_row_without_an_id_is_named_by_its_number():
    evidence = made(ids=[None, *(f"person {i}" for i in range(1, N))])
    assert exemplars.entry(evidence, 0, groups_of(evidence), ["x"])["id"] is None


def test_a_summary_holds_what_json_can_and_nothing_else():
    found = {
        1: np.float32(0.5),
        "counts": np.arange(2),
        "none": [np.nan, np.float64("inf"), -np.inf],
        "view": MappingProxyType({"true": np.bool_(True), "text": "é"}),
        "record": Described("x", np.array([np.nan]), ("a",)),
    }
    made_plain = plain(found)
    assert json.loads(json.dumps(made_plain, allow_nan=False)) == made_plain
    assert made_plain["1"] == 0.5
    assert made_plain["counts"] == [0, 1]
    assert made_plain["none"] == [None, None, None]
    assert made_plain["view"] == {"true": True, "text": "é"}
    assert made_plain["record"]["values"] == [None]


@pytest.mark.parametrize("value", [0.25, -7.5, 1e-320])
def test_a_column_of_one_value_is_one_bin_around_it(value):
    edges, clipped = profile.edges_of(np.full(9, value), value, value)
    assert edges[0] < value < edges[1]
    assert (len(edges), clipped) == (2, False)


def test_classes_that_have_nothing_to_do_with_the_groups_are_not_compared_in_words():
    assert truth_entry(np.arange(120) % 2, np.repeat(["a", "b", "c"], 40), "kind")["finding"] == ""


def test_classes_that_share_groups_are_finer_than_them():
    found = truth_entry(np.repeat([0, 1], 60), np.repeat(["a", "b", "c", "d"], 30), "kind")
    assert found["finding"] == "groups are coarser than kind: classes share a group"

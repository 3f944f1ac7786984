"""`ilk.cluster` from Python: frames of every kind, roles of columns, what the result says."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ilk
from ilk.errors import DataError, UsageError
from ilk.families.covariance import STRUCTURES

DATA = Path(__file__).parents[1] / "data"


STRUCTURE_NAMES = [structure.name for structure in STRUCTURES]


def two_groups(n=60, seed=0):
    draws = np.random.default_rng(seed)
    first = draws.normal(0, 1, (n, 2))
    return np.vstack([first, draws.normal(8, 1, (n // 2, 2))])


def test_same_answer_from_every_container(tmp_path):
    X = two_groups()
    frame = pd.DataFrame(X, columns=["x0", "x1"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    containers = [
        X,
        X.tolist(),
        frame,
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
        tmp_path / "t.csv",
    ]
    results = [ilk.cluster(data) for data in containers]
    assert results[0].k == 2
    for result in results[1:]:
        assert np.array_equal(result.labels, results[0].labels)
        assert result.candidates[1].bic == results[0].candidates[1].bic


def test_mixtures_where_all_columns_are_numbers():
    result = ilk.cluster(two_groups())
    assert result.labels.tolist() == [0] * 60 + [1] * 30
    assert result.probabilities.shape == (90, 2)
    assert np.allclose(result.probabilities.sum(axis=1), 1)
    assert {c.structure for c in result.candidates if c.method == "gaussian"} == set(STRUCTURE_NAMES)
    assert "EII, 2 groups" in repr(result)
    back = result.assign(two_groups())
    assert back["probability"].to_pylist() == pytest.approx(result.probabilities.max(axis=1), abs=1e-4)


def test_result_has_the_promised_names():
    result = ilk.cluster(two_groups(), method="k-means")
    assert result.labels.tolist() == [0] * 60 + [1] * 30
    assert result.probabilities is None
    assert (result.k, result.components, len(result.groups)) == (2, 2, 2)
    assert [(c.method, c.structure, c.k) for c in result.candidates] == [
        ("k-means", None, k) for k in range(1, 10)
    ]
    assert pd.DataFrame(result.candidates).loc[1, "bic"] == result.candidates[1].bic
    assert result.verdict.word == "solid"
    assert result.warnings == ()
    assert result.summary()["groups"][0]["letter"] == "A"
    result.summary()["groups"].clear()
    assert len(result.summary()["groups"]) == 2
    assert json.loads(json.dumps(result.summary(), allow_nan=False)) == result.summary()
    assert isinstance(result, ilk.Result)
    text = repr(result)
    assert text.startswith("array           90 rows, 2 columns used (2 numeric)")
    assert "k-means, 2 groups" in text
    assert "\x1b" not in text


def test_roles_of_columns():
    X = two_groups()
    frame = pd.DataFrame(
        {"x": X[:, 0], "y": X[:, 1], "w": 1.0, "kind": ["a"] * 60 + ["b"] * 30, "n": range(90)}
    )
    result = ilk.cluster(frame, weight="w", truth="kind", id="n", ignore="y")
    roles = {c["name"]: c["role"] for c in result.summary()["table"]["columns"]}
    assert roles == {"x": "used", "y": "left out", "w": "weight", "kind": "truth", "n": "id"}
    assert result.summary()["truth"]["ari"] == 1.0
    assert result.summary()["truth"]["counts"] == [[60, 0], [0, 30]]


def test_whole_weights_are_repeated_rows():
    X = two_groups()
    weight = np.random.default_rng(1).integers(1, 4, len(X))
    weighted = pd.DataFrame(X, columns=["a", "b"]).assign(w=weight)
    repeated = pd.DataFrame(np.repeat(X, weight, axis=0), columns=["a", "b"])
    one, other = ilk.cluster(weighted, weight="w", k=3), ilk.cluster(repeated, k=3)
    assert np.array_equal(np.repeat(one.labels, weight), other.labels)
    assert one.candidates[1].bic == pytest.approx(other.candidates[1].bic, rel=1e-12)
    assert one.groups[0].share == pytest.approx(other.groups[0].share)
    for mine, theirs in zip(one.groups[0].facts, other.groups[0].facts, strict=True):
        assert mine.value == pytest.approx(theirs.value, rel=1e-9)


def test_row_order_and_offset_change_nothing_but_the_order():
    X = two_groups()
    order = np.random.default_rng(3).permutation(len(X))
    base = ilk.cluster(X)
    assert np.array_equal(ilk.cluster(X[order]).labels, base.labels[order])
    assert np.array_equal(ilk.cluster(X * 2.0**300 + 0.0).labels, base.labels)


def test_k_means_describes_categories_and_does_not_use_them():
    X = two_groups()
    colour = np.where(X[:, 0] > 4, "red", np.where(X[:, 1] > 0, "blue", "green"))
    result = ilk.cluster(pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "colour": colour}), method="k-means")
    assert np.array_equal(result.labels, ilk.cluster(X).labels)
    fact = next(f for f in result.groups[1].facts if f.column == "colour")
    assert (fact.category, fact.used, fact.sign, fact.value) == ("red", False, "up", 1.0)
    assert "colour: shown for the groups, not used by k-means" in repr(result)


def test_categories_and_blanks_go_into_the_assorted_model():
    draws = np.random.default_rng(0)
    kind = np.repeat(["a", "b"], [60, 30])
    level = np.where(draws.random(90) < 0.9, np.where(kind == "a", "left", "right"), "middle")
    table = pd.DataFrame(
        {"x": draws.normal(8 * (kind == "b")), "side": level, "noise": draws.normal(size=90)}
    )
    table.loc[::9, "x"] = np.nan
    table.loc[3, ["x", "noise"]] = np.nan  # a category alone is enough to be placed
    result = ilk.cluster(table)
    assert result.k == 2
    assert [c["method"] for c in result.summary()["candidates"]] == ["assorted"] * len(result.candidates)
    assert (result.labels == (kind == "b")).mean() > 0.97
    assert result.labels.min() >= 0
    placed = result.assign(table)
    assert (placed["group"] == np.array(["A", "B"])[result.labels]).all()
    np.testing.assert_allclose(placed["probability"], result.probabilities.max(axis=1), atol=1e-4)


def test_rows_without_a_usable_value_get_no_group():
    X = two_groups()
    X[7] = np.nan
    table = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "word": ["a", "b", "c"] * 30})
    result = ilk.cluster(table, method="k-means")
    assert result.labels[7] == -1
    ledger = result.summary()["table"]["ledger"]
    assert (ledger["read"], ledger["used"]) == (90, 89)
    with pytest.warns(ilk.errors.IlkWarning, match="get no group"):
        assert result.assign(pd.DataFrame({"x": [None], "y": [np.nan]}))["group"].isna().all()


def test_missing_cells_go_in_as_they_are():
    X = two_groups()
    X[::7, 0] = np.nan
    result = ilk.cluster(X)
    assert result.k == 2
    assert result.labels.tolist() == [0] * 60 + [1] * 30
    assert result.summary()["table"]["missing"]["worst"]["column"] == "x0"


def test_one_cloud_is_one_group():
    result = ilk.cluster(np.random.default_rng(0).normal(size=(300, 3)))
    assert result.k == 1
    assert result.verdict.word == "no clear groups"
    assert result.verdict.reasons[0].code == "one-group"
    best = {
        more: min(c["bic"] for c in result.summary()["candidates"] if c["bic"] and (c["k"] > 1) == more)
        for more in (False, True)
    }
    assert f"two or more groups raise the BIC by {best[True] - best[False]:.0f}" in result.verdict.sentence
    assert set(result.labels) == {0}
    assert result.assign(np.zeros((2, 3)))["second"].null_count == 2


def test_sharp_groups_that_bic_does_not_want_are_said():
    draws = np.random.default_rng(0)
    X = np.column_stack([np.repeat([0.0, 9.0, 18.0], 50) + draws.normal(size=150), draws.normal(size=150)])
    # A column of noise, standardised, hides the groups from few round Gaussians.
    result = ilk.cluster(X, k=range(1, 10), method="k-means")
    assert result.k == 1
    assert "silhouette-disagrees" in dict(result.warnings)
    assert ilk.cluster(X, method="k-means").k == 3  # many of them show the groups when they are merged
    assert ilk.cluster(X, scale=None, method="k-means").k == 3
    assert "silhouette-disagrees" not in dict(
        ilk.cluster(draws.normal(size=(200, 5)), method="k-means").warnings
    )


def test_few_distinct_rows_of_several_columns_are_the_groups():
    rows = [[0.5, 1.5, 0.5], [2.5, 0.5, 3.5], [4.5, 4.5, 0.5]]
    result = ilk.cluster(np.array(rows * 40))
    assert result.k == 3
    assert "exact-fit" in [code for code, _ in result.warnings]
    # In one column they are only its values.
    assert ilk.cluster(np.array([[1.5], [2.5], [3.5]] * 40)).k < 3


def test_large_tables_are_searched_on_a_sample(monkeypatch):
    import ilk.selection.search as search

    monkeypatch.setattr(search, "SEARCH_ROWS", 60)
    result = ilk.cluster(two_groups(), method="k-means")
    assert result.k == 2
    assert result.labels.tolist() == [0] * 60 + [1] * 30
    assert result.summary()["search"]["rows"] == 60
    assert "sampled-search" in [code for code, _ in result.warnings]


def test_an_interrupt_is_said(monkeypatch):
    import ilk.selection.search as search

    whole = search.fit_cell

    def stop(rows, recipe, k, seed, **options):
        if k == 3:
            raise KeyboardInterrupt
        return whole(rows, recipe, k, seed, **options)

    monkeypatch.setattr(search, "fit_cell", stop)
    with pytest.warns(ilk.errors.IlkWarning, match="interrupted"):
        result = ilk.cluster(two_groups(), method="k-means")
    assert result.interrupted
    assert result.k == 2


def test_a_table_too_small_to_search_is_one_group():
    result = ilk.cluster(np.array([[1.0, 2.5], [2.0, 3.5], [9.0, 1.5], [4.0, 4.5]]))
    assert result.k == 1
    assert "as asked" not in repr(result)
    assert (result.verdict.word, result.verdict.sentence) == (
        "not tested",
        "no other number of groups was tried",
    )


def test_budget_takes_the_best_so_far():
    result = ilk.cluster(two_groups(), budget=1e-9, method="k-means")
    assert {c.status for c in result.candidates[1:]} == {"did_not_start"}
    assert "time-limit" in [code for code, _ in result.warnings]


@pytest.mark.badinput("F10")
def test_callback_hears_of_every_candidate_and_its_failure_is_named():
    heard = []
    ilk.cluster(two_groups(), k=range(2, 5), callback=heard.append)
    fitting = [p for p in heard if p.stage == "fitting"]
    mixtures = [p for p in fitting if p.method == "gaussian"]
    assert [(p.done, p.total, p.k) for p in mixtures] == [(1, 4, 1), (2, 4, 2), (3, 4, 3), (4, 4, 4)]
    assert {(p.method, p.total) for p in fitting[4:]} <= {("assorted", 0)}  # whose end is not known
    assert [p.stage for p in heard if p.stage != "fitting"] == ["resampling", "describing"]

    def fail(progress):
        raise KeyError("mine")

    with pytest.raises(UsageError, match="the callback raised KeyError") as caught:
        ilk.cluster(two_groups(), callback=fail)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.badinput("A12")
def test_one_column_that_decides_alone_is_said():
    X = two_groups() * [1e-9, 1e9]
    assert "one-column-decides" in dict(ilk.cluster(X, scale=None).warnings)
    assert ilk.cluster(X).warnings == ()


@pytest.mark.badinput("B7")
@pytest.mark.parametrize("k", [0, -1, 2.5, "3", True, None, float("nan"), [], range(5, 2), [2, 2], [3, 2]])
def test_k_that_cannot_be(k):
    with pytest.raises(UsageError) as caught:
        ilk.cluster(two_groups(), k=k)
    assert caught.value.code == "bad-k"


def test_k_as_a_whole_float_or_numpy_number():
    assert ilk.cluster(two_groups(), k=3.0).k == ilk.cluster(two_groups(), k=np.int64(3)).k == 3


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"method": "k-modes"}, "bad-method"),
        ({"scale": "robust"}, "bad-scale"),
        ({"seed": -1}, "bad-seed"),
        ({"seed": True}, "bad-seed"),
        ({"budget": 0}, "bad-budget"),
        ({"budget": float("nan")}, "bad-budget"),
        ({"threads": 0}, "bad-threads"),
        ({"weight": "nope"}, "unknown-column"),
        ({"types": {"x0": "numbr"}}, "unknown-type"),
    ],
)
def test_options_that_cannot_be(options, code):
    with pytest.raises(UsageError) as caught:
        ilk.cluster(two_groups(), **options)
    assert caught.value.code == code


@pytest.mark.badinput("A2")
def test_infinite_cells_are_refused():
    X = two_groups()
    X[3, 1] = np.inf
    with pytest.raises(DataError, match="1 cell is infinite"):
        ilk.cluster(X)


def test_methods():
    X = two_groups()
    for method in ("k-means", "k-medians", "trimmed-k-means"):
        result = ilk.cluster(X, method=method, k=2)
        assert result.labels.tolist() == [0] * 60 + [1] * 30, method
        assert result.model.method == method


def test_no_warning_on_a_clean_table():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = ilk.cluster(DATA / "wine.csv", truth="target")
        result.assign(DATA / "wine.csv")


def test_as_many_groups_as_were_asked_for():
    draws = np.random.default_rng(0)
    large = np.repeat([False, True], 60)
    size = np.where(large, 320.0, 110.0) + draws.normal(0, 5, 120)
    table = pd.DataFrame({"size": size, "soil": np.where(large, "loam", "sand")})
    for k in (2, 3, 4):
        result = ilk.cluster(table, k=k)
        assert result.k == len(set(result.labels.tolist())) == k
        assert "as asked" in repr(result)


@pytest.mark.parametrize("k", [3, 3.0, [3.0]])
def test_fewer_groups_than_asked_for_are_not_as_asked(k):
    table = pd.DataFrame({"size": [1.0, 9.0] * 30, "soil": ["loam", "sand"] * 30})
    result = ilk.cluster(table, k=k)
    assert result.k == 2
    text = dict(result.warnings)["fewer-groups"]
    assert text == "3 groups were asked for and 2 found; the others were empty"
    assert "as asked" not in repr(result)

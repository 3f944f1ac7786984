"""`column_weights`: a weight of 2 is the column twice, a weight of 0 leaves it out; in every method that can."""

from __future__ import annotations

import json

import duckdb
import numpy as np
import pandas as pd
import pytest

import ilk
from ilk.errors import UsageError


@pytest.fixture
def table():
    draws = np.random.default_rng(0)
    n = 240
    a, b = np.arange(n) % 2, np.arange(n) // 2 % 2
    return pd.DataFrame(
        {
            "x": 5.0 * a + draws.normal(size=n),
            "y": 5.0 * b + draws.normal(size=n),
            "kind": np.array(["u", "v", "w"])[np.where(draws.random(n) < 0.8, a, draws.integers(0, 3, n))],
        }
    )


@pytest.mark.parametrize(
    ("method", "power"), [("k-means", 0.5), ("k-medians", 1.0), ("average-linkage", 0.5)]
)
def test_distances_are_those_of_scaled_columns(table, method, power):
    numbers = table[["x", "y"]]
    found = ilk.cluster(numbers, k=2, method=method, column_weights={"x": 3.5}, scale=None)
    scaled = ilk.cluster(numbers.assign(x=numbers["x"] * 3.5**power), k=2, method=method, scale=None)
    assert found.labels.tolist() == scaled.labels.tolist()
    standard = ilk.cluster(numbers, k=2, method=method, column_weights={"x": 30})
    assert ilk.measures.ari(standard.labels, np.arange(240) % 2) > 0.9
    other = ilk.cluster(numbers, k=2, method=method, column_weights={"y": 30})
    assert ilk.measures.ari(other.labels, np.arange(240) // 2 % 2) > 0.9


def test_a_column_of_the_assorted_model_twice(table):
    """The oracle: the column given twice, under types that keep ilk from counting it once."""
    twice = table.assign(again=table["x"])
    types = {"x": "numeric", "again": "numeric"}
    weighed = {"types": {"x": "numeric"}, "column_weights": {"x": 2}}
    for k in (2, 3, 4):
        oracle = ilk.cluster(twice, k=k, merge="none", method="assorted", types=types)
        found = ilk.cluster(table, k=k, merge="none", method="assorted", **weighed)
        assert found.labels.tolist() == oracle.labels.tolist()
        one, other = (result.summary()["chosen"]["bic"] for result in (found, oracle))
        assert one == pytest.approx(other, rel=1e-7)
    plain = ilk.cluster(table, k=4, merge="none", method="assorted", types={"x": "numeric"})
    assert plain.summary()["chosen"]["bic"] != pytest.approx(other, rel=1e-3)
    copies = table.assign(again=table["kind"])
    oracle = ilk.cluster(copies, method="assorted", types={"kind": "categorical", "again": "categorical"})
    found = ilk.cluster(table, method="assorted", types={"kind": "categorical"}, column_weights={"kind": 2})
    assert found.summary()["chosen"]["bic"] == pytest.approx(oracle.summary()["chosen"]["bic"], rel=1e-7)


def test_a_weighted_model_is_saved_and_exported(table, tmp_path, ilk):
    import ilk as package

    path = tmp_path / "rows.csv"
    table.to_csv(path, index=False)
    for method in ("assorted", "k-means"):
        run = tmp_path / f"{method}.ilk"
        ended = ilk("fit", path, "--method", method, "--column-weight", "x=3", "--k", "2", "-o", run)
        assert ended.exit_code == 0, ended.stderr
        assert "x counts 3 times" in " ".join(ended.stdout.split())
        summary = json.loads((run / "summary.json").read_text())
        assert "--column-weight x=3" in summary["reproduce"]["command"]
        assert "x counts 3 times" in (run / "report.html").read_text()
        assigned = package.load(run / "model.ilk").assign(table)["group"]
        stored = pd.read_csv(run / "assignments.csv")["group"]
        assert (assigned.to_numpy() == stored.to_numpy()).all()
        query = ilk("export", run, "--sql", "duckdb")
        assert query.exit_code == 0, query.stderr
        con = duckdb.connect()
        con.execute(f"create table data as select * from read_csv('{path}')")
        answer = con.execute(query.stdout.replace("input_table", "data")).df()
        column = next(name for name in answer.columns if name.startswith("group"))
        assert (answer[column].to_numpy() == stored.to_numpy()).all()


@pytest.mark.parametrize("method", ["auto", "assorted", "gaussian", "k-means", "spectral"])
def test_a_weight_of_0_leaves_a_column_out(table, method):
    numbers = table[["x", "y"]]
    found = ilk.cluster(numbers, k=2, method=method, column_weights={"y": 0, "x": 1})
    without = ilk.cluster(numbers, k=2, method=method, ignore="y")
    assert found.labels.tolist() == without.labels.tolist()
    assert found.summary()["chosen"] == without.summary()["chosen"]
    assert ("column-weights", "as asked, y is left out") in [tuple(w[:2]) for w in found.warnings]


def test_missing_values_are_compared_by_gower_which_weighs_nothing(table):
    table.loc[3, "x"] = np.nan
    with pytest.raises(UsageError, match="Gower"):
        ilk.cluster(table[["x", "y"]], k=2, method="average-linkage", column_weights={"x": 2})
    found = ilk.cluster(table[["x", "y"]], k=2, method="k-means", column_weights={"x": 30})
    assert ilk.measures.ari(found.labels, np.arange(240) % 2) > 0.9


def test_auto_takes_the_assorted_model(table):
    found = ilk.cluster(table[["x", "y"]], column_weights={"x": 2})
    assert found.summary()["chosen"]["method"] == "assorted"
    assert "column_weights={'x': 2}" in found.summary()["reproduce"]["python"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"column_weights": {"z": 2}}, "unknown-column"),
        ({"column_weights": {"x": -1}}, "bad-column_weights"),
        ({"column_weights": {"x": "much"}}, "bad-column_weights"),
        ({"column_weights": ["x"]}, "bad-column_weights"),
        ({"column_weights": {"x": 1.5}, "method": "assorted"}, "bad-column_weights"),
        ({"column_weights": {"x": 2}, "method": "gaussian"}, "weights-not-taken"),
        ({"column_weights": {"x": 2}, "method": "spectral"}, "weights-not-taken"),
        ({"column_weights": {"x": 2}, "method": "dirichlet-process"}, "weights-not-taken"),
    ],
)
def test_what_cannot_be_weighed_is_refused(table, options, code):
    with pytest.raises(UsageError) as refused:
        ilk.cluster(table, k=2, **options) if options.get("method") != "dirichlet-process" else ilk.cluster(
            table, **options
        )
    assert refused.value.code == code

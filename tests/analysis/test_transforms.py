"""`transforms`: methods see the logarithm, the rank or the value of a column; people read its own units."""

from __future__ import annotations

import json

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

import ilk
from ilk.errors import DataError, UsageError
from ilk.table.own_transforms import OwnTransform

METHODS = ["k-means", "gaussian", "assorted"]


@pytest.fixture
def table():
    draws = np.random.default_rng(0)
    group = np.arange(240) % 2
    return pd.DataFrame(
        {"income": np.exp(draws.normal(1.5 * group, 0.4) + 3), "age": draws.normal(40 + 6 * group, 2)}
    )


def same_groups(one, other):
    assert one.labels.tolist() == other.labels.tolist()
    assert one.summary()["chosen"]["bic"] == pytest.approx(other.summary()["chosen"]["bic"])


@pytest.mark.parametrize("method", METHODS)
def test_the_logarithm_is_that_of_a_column_made_before(table, method):
    found = ilk.cluster(table, k=2, method=method, transforms={"income": "log"})
    made = table.assign(income=np.log(table["income"]))
    same_groups(found, ilk.cluster(made, k=2, method=method, transforms={"income": "none"}))
    for number, letter in enumerate(found.model.letters):
        mine = found.labels == number
        assert found.profile.loc[("income", ""), letter] == pytest.approx(table["income"][mine].mean())
    assert ("transforms", "as asked, income by its logarithm") in [tuple(w[:2]) for w in found.warnings]


@pytest.mark.parametrize("method", METHODS)
def test_the_rank_is_that_of_a_column_made_before(table, method):
    table.loc[[3, 5, 8], "income"] = table["income"][2]  # ties share a rank
    found = ilk.cluster(table, k=2, method=method, transforms={"income": "rank"})
    ranks = (rankdata(table["income"]) - 0.5) / len(table)
    same_groups(
        found, ilk.cluster(table.assign(income=ranks), k=2, method=method, transforms={"income": "none"})
    )


def test_none_keeps_the_assorted_model_from_another_scale(table):
    free = ilk.cluster(table, method="assorted").summary()["table"]["treatment"]["income"]
    kept = ilk.cluster(table, method="assorted", transforms={"income": "none"})
    assert free != "as it is"
    assert kept.summary()["table"]["treatment"]["income"] == "as it is"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["log", "rank"])
def test_new_rows_are_seen_in_the_same_way(table, method, kind, tmp_path):
    found = ilk.cluster(table, k=2, method=method, transforms={"income": kind})
    found.save(tmp_path / "model.ilk")
    model = ilk.load(tmp_path / "model.ilk")
    assert model.transforms == found.model.transforms
    assert (model.assign(table)["group"].to_numpy() == found.letters).all()
    if kind == "log":  # a value without a logarithm is a missing one
        low, lost = table.head(20).copy(), table.head(20).copy()
        low["income"], lost["income"] = -1.0, np.nan
        assert model.assign(low)["group"].tolist() == model.assign(lost)["group"].tolist()
    beyond = table.head(2).assign(income=[1e-9, 1e9])
    assert model.assign(beyond)["group"].notna().all()


@pytest.mark.parametrize("method", METHODS)
def test_the_command_line_and_the_select(table, method, tmp_path, ilk):
    path, run = tmp_path / "rows.csv", tmp_path / "rows.ilk"
    table.to_csv(path, index=False)
    ended = ilk("fit", path, "--method", method, "--k", "2", "--transform", "income=log", "-o", run)
    assert ended.exit_code == 0, ended.stderr
    summary = json.loads((run / "summary.json").read_text())
    assert "--transform income=log" in summary["reproduce"]["command"]
    assert "transforms={'income': 'log'}" in summary["reproduce"]["python"]
    stored = pd.read_csv(run / "assignments.csv")["group"]
    query = ilk("export", run, "--sql", "duckdb")
    assert query.exit_code == 0, query.stderr
    con = duckdb.connect()
    con.execute(f"create table data as select * from read_csv('{path}')")
    answer = con.execute(query.stdout).df()
    assert (answer["group"].to_numpy() == stored.to_numpy()).all()
    assert ilk("export", run, "--json").exit_code == 2
    ended = ilk(
        "fit", path, "--method", method, "--k", "2", "--transform", "income=rank", "-o", run, "--force"
    )
    refused = ilk("export", run, "--sql", "duckdb")
    assert (ended.exit_code, refused.exit_code, "rank" in refused.stderr) == (0, 2, True)


def test_several_transforms_each_see_their_column(table):
    table = table.assign(size=np.sqrt(table["age"]))
    found = ilk.cluster(
        table, k=2, method="k-means", transforms={"income": "log", "age": "none", "size": "rank"}
    )
    made = table.assign(income=np.log(table["income"]), size=(rankdata(table["size"]) - 0.5) / len(table))
    same_groups(found, ilk.cluster(made, k=2, method="k-means"))


def test_ranks_of_many_values_are_known_by_their_quantiles():
    draws = np.random.default_rng(0)
    x = draws.lognormal(sigma=2, size=30_000)
    rank = OwnTransform.of("rank", x, None)
    assert len(rank.values) == len(rank.ranks) == 1_000
    assert np.abs(rank(x) - (rankdata(x) - 0.5) / len(x)).max() < 1 / 999


def test_a_table_larger_than_memory_is_not_transformed(table, tmp_path, monkeypatch):
    monkeypatch.setattr("ilk.table.out_of_core.memory_limit.LEAST", 0)
    table.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(UsageError, match="need all rows in memory") as refused:
        ilk.cluster(tmp_path / "t.parquet", k=2, transforms={"income": "log"}, memory=1000)
    assert refused.value.code == "transforms-in-parts"


@pytest.mark.parametrize(
    ("transforms", "code"),
    [
        ({"incom": "log"}, "unknown-column"),
        ({"income": "sqrt"}, "bad-transforms"),
        (["income"], "bad-transforms"),
        ({"kind": "log"}, "bad-transforms"),
        ({"age": "log"}, "not-positive"),
    ],
)
def test_what_cannot_be_transformed_is_refused(table, transforms, code):
    table.loc[7, "age"] = 0.0
    with pytest.raises((UsageError, DataError)) as refused:
        ilk.cluster(table.assign(kind=["a", "b"] * 120), k=2, transforms=transforms)
    assert refused.value.code == code

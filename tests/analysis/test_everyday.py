"""Tables of every day, given without an option: the answer that their README expects of each."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ilk
from ilk.measures.external import ari
from tests.conftest import OWN, SHARED


def everyday(name):
    found = [folder / "everyday" / name for folder in (OWN, SHARED) if (folder / "everyday" / name).exists()]
    if not found:
        pytest.skip("the shared tables are not here")
    return found[0]


def column(table, name):
    return np.asarray(table.column(name).to_pylist(), dtype=float)


def codes(result):
    return {code for code, _ in result.warnings}


@pytest.mark.slow
def test_segments_of_an_export():
    result = ilk.cluster(everyday("crm.csv"))
    truth = pd.read_csv(everyday("crm_truth.csv"))["_seg"].to_numpy()
    assert result.k == 3
    assert ari(truth, result.labels) > 0.95
    used = {c.name for c in result.model.schema.used}
    assert {"Annual Revenue", "Avg Discount", "Orders", "Signup Date", "Last Order"} <= used
    assert not {"Customer ID", "Company Name", "Notes", "Zip"} & used
    assert {"numbers-read", "dates-read", "truth-read"} <= codes(result)
    telling = {fact.column for group in result.groups for fact in group.facts[:3]}
    assert {"Annual Revenue", "Avg Discount", "Orders"} <= telling


def test_decimal_commas():
    results = [ilk.cluster(everyday(name)) for name in ("eu.csv", "eu_simple.csv")]
    assert [result.k for result in results] == [3, 3]
    assert results[0].labels.tolist() == results[1].labels.tolist()
    assert {"numbers-read", "encoding"} <= codes(results[0])


def test_answers_of_a_survey():
    result = ilk.cluster(everyday("likert.csv"))
    assert result.k == 2
    assert ari(pd.read_csv(everyday("likert_truth.csv"))["cls"].to_numpy(), result.labels) > 0.95
    assert "missing-codes" in codes(result)
    assert 99.0 in result.model.schema["Q1"].missing_codes
    assert -99.0 in result.model.schema["Age"].missing_codes
    assert result.model.schema["RespondentID"].kind == "left out"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rfm.csv", "rfm.xlsx", "shop.sqlite", "shop.duckdb"])
def test_important_customers_in_every_container(name):
    if name.endswith("xlsx"):
        pytest.importorskip("python_calamine")
    result = ilk.cluster(everyday(name))
    assert result.k == 2
    important = column(result.table, "frequency") > 40
    assert ari(important, result.labels) > 0.85


@pytest.mark.parametrize(
    ("name", "frequency"), [("rfm_array.json", "frequency"), ("nested.jsonl", "stats.f")]
)
def test_important_customers_of_a_few_rows_are_together(name, frequency):
    """Some 30 of 500 or 300 are no distinct group; a segment holds them."""
    result = ilk.cluster(everyday(name))
    important = column(result.table, frequency) > 42
    counts = np.bincount(result.finest()[important])
    assert counts.max() >= 0.9 * important.sum()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zips.csv", "null_zipf.csv"])
def test_hundreds_of_levels_make_no_groups(name):
    result = ilk.cluster(everyday(name))
    assert result.k == 1
    assert result.verdict.word == "no clear groups"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "k"), [("wide.csv", 3), ("baskets.csv", 4)])
def test_groups_of_many_columns(name, k):
    result = ilk.cluster(everyday(name), truth="cls")
    assert result.k == k
    assert result.summary()["truth"]["ari"] > 0.8


def test_repeated_rows_constants_and_codes():
    result = ilk.cluster(everyday("dups.csv"))
    assert result.k == 1
    assert {"missing-codes", "truth-read"} <= codes(result)
    assert result.model.schema["const"].reason == "constant"


@pytest.mark.slow
def test_a_series_of_hours():
    """Its load swings between day and night: groups of load, and none of the time itself."""
    result = ilk.cluster(everyday("time.csv"))
    assert "counts-rows" in codes(result)
    assert {c.name for c in result.model.schema.used} == {"load", "temp"}
    load = column(result.table, "load")
    assert all("load" in group.name for group in result.groups)
    assert result.k == 1 or ari(load > 10, result.labels) > 0.3

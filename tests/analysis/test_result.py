"""What a result gives to somebody who works on in Python: frames, letters, segments, rules in words, names."""

from __future__ import annotations

import csv
import sys

import numpy as np
import pandas as pd
import pytest

import ilk
from ilk.errors import ResourceError, UsageError


@pytest.fixture(scope="module")
def frame():
    draws = np.random.default_rng(0)
    group = np.repeat([0, 1], [60, 40])
    return pd.DataFrame(
        {
            "x": draws.normal(0, 1, 100) + 9 * group,
            "y": draws.normal(0, 1, 100),
            "kind": np.array(["red", "blue"])[group],
        },
        index=[f"row {i}" for i in range(100)],
    )


@pytest.fixture(scope="module")
def result(frame):
    return ilk.cluster(frame)


@pytest.fixture(scope="module")
def cloud():
    X = np.exp(np.random.default_rng(1).normal(size=(300, 2)))
    return ilk.cluster(X, k=range(1, 6), method="gaussian")


def test_a_frame_with_the_rows_and_the_index_of_the_user(frame, result):
    made = result.to_frame()
    assert made.index.equals(frame.index)
    assert made.columns.tolist() == [*frame, "group", "name", "probability", "second", "novelty"]
    pd.testing.assert_frame_equal(made[[*frame]], frame)
    assert made["group"].tolist() == result.letters.tolist() == ["A"] * 60 + ["B"] * 40
    names = {group.letter: group.name for group in result.groups}
    assert made["name"].tolist() == [names[letter] for letter in made["group"]]
    assert (made["second"] != made["group"]).all()
    assert made["probability"].between(0.5, 1).all()
    assert made["novelty"].between(0, 1).all()
    assert [*frame] == ["x", "y", "kind"], "the user's frame is not changed"


def test_a_frame_of_an_array_a_path_and_a_table_with_such_columns(frame, tmp_path):
    made = ilk.cluster(frame[["x", "y"]].to_numpy(), method="k-means", k=2).to_frame()
    assert made.columns.tolist() == ["x0", "x1", "group", "name", "second", "novelty"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert ilk.cluster(tmp_path / "t.csv").to_frame()["kind"].tolist() == frame["kind"].tolist()
    with pytest.warns(ilk.errors.IlkWarning, match="group is written as group_ilk"):
        made = ilk.cluster(frame.rename(columns={"y": "group"})).to_frame()
    assert {"group", "group_ilk"} <= {*made}


def test_a_row_without_values_has_no_letter(frame):
    lacking = frame[["x", "y"]].copy()
    lacking.iloc[3] = np.nan
    result = ilk.cluster(lacking, k=2)
    made = result.to_frame()
    assert result.labels[3] == -1
    assert result.letters[3] is None
    assert pd.isna(made.iloc[3][["group", "name", "probability", "second", "novelty"]]).all()
    assert made["group"].notna().sum() == 99


def test_groups_without_a_rule_have_letters_and_names(frame):
    made = ilk.cluster(frame[["x", "y"]], method="spectral", k=2).to_frame()
    assert made.columns.tolist() == ["x", "y", "group", "name"]


def test_profile_and_importance_are_frames(frame, result):
    profile = result.profile
    assert profile.index.names == ["column", "category"]
    assert profile.columns.tolist() == ["whole", "A", "B"]
    means = frame.groupby(result.labels)["x"].mean()
    assert profile.loc[("x", ""), ["A", "B"]].tolist() == pytest.approx(means.tolist())
    assert profile.loc[("x", ""), "whole"] == pytest.approx(frame["x"].mean())
    assert profile.loc[("kind", "red")].tolist() == pytest.approx([0.6, 1.0, 0.0])
    importance = result.importance
    assert importance.index.name == "column"
    assert importance.columns.tolist() == ["importance", "type", "used", "distinctive_in"]
    assert importance["importance"].is_monotonic_decreasing
    assert importance.index[-1] == "y"
    assert importance.loc["x", "distinctive_in"] == "A, B"


def test_without_pandas_a_frame_is_refused_with_what_to_install(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ResourceError, match=r"pip install pandas") as refused:
        _ = result.profile
    assert refused.value.code == "no-pandas"


def test_labels_agree_with_k_and_segments_are_told_apart(cloud):
    assert cloud.k == 1 < cloud.components == len(cloud.groups)
    assert set(cloud.labels) == {0}
    assert set(cloud.letters) == {"A"}
    assert set(cloud.segments) == set(range(cloud.components))
    made = cloud.to_frame()
    assert made.columns.tolist()[2:] == ["group", "segment", "name", "probability", "second", "novelty"]
    assert set(made["group"]) == {"A"}
    letters = np.array(cloud.model.letters)
    assert made["segment"].tolist() == letters[cloud.segments].tolist()
    again = cloud.assign(np.asarray(made[["x0", "x1"]])).to_pydict()
    assert set(again["group"]) == {"A"}
    assert again["segment"] == made["segment"].tolist()


def test_a_result_with_groups_has_no_segments(result, cloud):
    assert result.segments is None
    assert "segment" not in result.to_frame()


def test_segments_are_in_the_files_of_a_run_and_in_its_export(cloud, tmp_path):
    from ilk.analysis.folder import find_model
    from ilk.analysis.run_folder import write_run
    from ilk.export.dialects import dialect_of
    from ilk.export.sql import select

    write_run(cloud, str(tmp_path / "run.ilk"))
    with open(tmp_path / "run.ilk" / "assignments.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["group"] for row in rows} == {"A"}
    assert {row["segment"] for row in rows} == set(cloud.model.letters)
    model = find_model(str(tmp_path / "run.ilk"))
    assert model.segmented
    assert 'END AS "segment"' in select(model, dialect_of("duckdb"), "data")


def test_a_rule_is_a_sentence_with_its_data(result):
    rule = result.groups[0].rule
    assert str(rule) == repr(rule)
    assert "covers 100% of the group" in str(rule)
    assert "are A" in str(rule)
    assert rule.purity == 1.0
    assert rule.rows == 60
    assert rule.terms[0].column in ("x", "kind")
    assert result.groups[0].to_dict()["rule"]["terms"][0]["column"] == rule.terms[0].column


def test_given_names_reach_print_assign_assignments_and_report(frame, result, tmp_path):
    from ilk.analysis.folder import find_model
    from ilk.analysis.run_folder import write_run

    named = result.rename({"B": "the blue ones"})
    assert "the blue ones" in repr(named)
    assert "the blue ones" in named.assign(frame)["name"].tolist()
    assert "the blue ones" in named.to_frame()["name"].tolist()
    write_run(named, str(tmp_path / "run.ilk"))
    for file in ("assignments.csv", "report.html", "summary.json"):
        assert "the blue ones" in (tmp_path / "run.ilk" / file).read_text(encoding="utf-8"), file
    again = find_model(str(tmp_path / "run.ilk"))
    assert again.assign(frame)["name"].tolist().count("the blue ones") == 40
    assert "name" not in result.assign(frame), "names that were made of facts are not repeated in each row"
    with pytest.raises(UsageError, match="no group 'Q'"):
        result.rename({"Q": "nobody"})

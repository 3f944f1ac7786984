"""A run read back, and in Python what `ilk columns`, `compare` and `check` do."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

import ilk
from ilk.analysis.run_folder import write_run
from ilk.errors import DataError, IlkWarning, ModelFileError, UsageError


@pytest.fixture(scope="module")
def frame():
    draws = np.random.default_rng(0)
    group = np.repeat([0, 1], [60, 40])
    return pd.DataFrame(
        {
            "code": [f"c{i}" for i in range(100)],
            "x": draws.normal(0, 1, 100) + 9 * group,
            "y": draws.normal(0, 1, 100) - 7 * group,
            "kind": np.array(["red", "blue"])[group],
        }
    )


@pytest.fixture(scope="module")
def result(frame):
    return ilk.cluster(frame, id="code", k=2)


def test_a_folder_gives_the_result_back(result, tmp_path):
    named = result.rename({"B": "the blue ones"})
    write_run(named, str(tmp_path / "run.ilk"))
    with pytest.warns(IlkWarning, match="not in a run") as told:
        again = ilk.load(tmp_path / "run.ilk")
    assert told[0].message.code == "not-restored"
    assert np.array_equal(again.labels, result.labels)
    assert again.letters.tolist() == result.letters.tolist()
    assert (again.k, again.components, again.verdict) == (result.k, result.components, result.verdict)
    assert [g.to_dict() for g in again.groups] == [g.to_dict() for g in named.groups]
    assert str(again.groups[0].rule) == str(named.groups[0].rule)
    assert again.candidates == named.candidates
    assert list(again.warnings) == list(named.warnings)
    assert again.probabilities is None
    assert repr(again).startswith(repr(named).rstrip())
    pd.testing.assert_frame_equal(again.profile, named.profile)
    made = again.to_frame()
    assert made.columns.tolist() == ["row", "code", "group", "name", "probability", "second", "novelty"]
    assert made["code"].tolist() == [f"c{i}" for i in range(100)]
    np.testing.assert_allclose(again.placed.novelty, named.placed.novelty, atol=1e-4)
    again.report(tmp_path / "again.html")
    assert again.rename({"A": "red"}).model.names[0] == "red"
    assert ilk.compare(result, again)["ari"] == 1.0


@pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")
def test_segments_and_groups_without_a_rule_come_back(frame, tmp_path):
    X = np.exp(np.random.default_rng(1).normal(size=(300, 2)))
    cloud = ilk.cluster(X, k=range(1, 6), method="gaussian")
    write_run(cloud, str(tmp_path / "cloud.ilk"))
    again = ilk.load(tmp_path / "cloud.ilk")
    assert np.array_equal(again.segments, cloud.segments)
    assert set(again.labels) == {0}
    parted = ilk.cluster(frame[["x", "y"]], method="spectral", k=2)
    write_run(parted, str(tmp_path / "parted.ilk"), parquet=True)
    again = ilk.load(tmp_path / "parted.ilk")
    assert np.array_equal(again.labels, parted.labels)
    assert again.placed is None


def test_a_run_without_rows_says_that_labels_are_lost(result, tmp_path):
    write_run(result, str(tmp_path / "run.ilk"), rows=False)
    with pytest.warns(IlkWarning, match="written without rows"):
        again = ilk.load(tmp_path / "run.ilk")
    assert len(again.labels) == 0
    assert again.groups[0].rows == 60


@pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")
def test_a_damaged_run_is_refused(result, tmp_path):
    write_run(result, str(tmp_path / "run.ilk"))
    path = tmp_path / "run.ilk" / "assignments.csv"
    whole = path.read_text()
    path.write_text(whole.replace(",B,", ",Q,"))
    with pytest.raises(ModelFileError, match="name a group"):
        ilk.load(tmp_path / "run.ilk")
    path.write_text(whole.replace("code", "other", 1))
    with pytest.raises(ModelFileError, match="lack a column"):
        ilk.load(tmp_path / "run.ilk")
    path.write_text(whole)
    path = tmp_path / "run.ilk" / "summary.json"
    document = json.loads(path.read_text())
    for key in ("verdict", "candidates", "warnings"):
        path.write_text(json.dumps({**document, key: [7]}))
        with pytest.raises(ModelFileError, match="lacks something"):
            ilk.load(tmp_path / "run.ilk")


def test_columns_are_told_as_a_frame(frame):
    told = ilk.columns(frame, id="code", types={"y": "categorical"})
    assert told.index.tolist() == frame.columns.tolist()
    assert told["type"].to_dict() == {
        "code": "left out",
        "x": "numeric",
        "y": "categorical",
        "kind": "binary",
    }
    assert told.loc["code", "role"] == "id"
    with pytest.raises(UsageError, match="nothing"):
        ilk.columns(frame, ignore="nothing")


def test_results_runs_and_files_are_compared(result, frame, tmp_path):
    other = ilk.cluster(frame.iloc[::-1], id="code", k=2)
    by_id = ilk.compare(result, other)
    assert by_id["matched_by"] == "code"
    assert by_id["finding"] == "the same groups: no row moved"
    assert "finding" in repr(by_id)
    assert pickle.loads(pickle.dumps(by_id)) == by_id
    write_run(other, str(tmp_path / "other.ilk"))
    assert ilk.compare(result, tmp_path / "other.ilk")["ari"] == 1.0
    assert json.dumps(by_id)
    by_number = ilk.compare(result, ilk.cluster(frame, k=2))
    assert by_number["matched_by"] == "row"
    with pytest.warns(IlkWarning, match="matched by their number"):
        ilk.compare(result, ilk.cluster(frame.iloc[:90], k=2))
    with pytest.raises(UsageError, match="no run"):
        ilk.compare(result, 3)
    with pytest.raises(UsageError, match="no column 'nothing'"):
        ilk.compare(result, other, id="nothing")


def test_new_rows_are_checked(result, frame, tmp_path):
    assert ilk.check(result, frame)["verdict"]["word"] == "no drift"
    found = ilk.check(result.model, frame.assign(x=frame["x"] + 30))
    assert found["verdict"]["word"] == "drift"
    assert "drift" in repr(found)
    result.save(tmp_path / "model.ilk")
    assert ilk.check(tmp_path / "model.ilk", frame)["rows"] == 100
    with pytest.raises(DataError, match="no rows"):
        ilk.check(result, frame.iloc[:0])

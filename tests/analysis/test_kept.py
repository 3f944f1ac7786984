"""`ilk.cluster` with labels of some rows, and rows that are together or apart: kept in the answer, and said."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import ilk
from ilk.errors import UsageError


@pytest.fixture
def table():
    draws = np.random.default_rng(0)
    X = np.vstack(
        [draws.normal(0, 1, (60, 2)), draws.normal(4, 1, (40, 2)), draws.normal([0, 6], 1, (40, 2))]
    )
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["tag"] = None
    frame.loc[[0, 1, 70], "tag"] = "left"  # row 70 lies among the others
    frame.loc[[60, 61], "tag"] = "right"
    return frame


def test_labels_of_some_rows_are_kept_by_a_mixture(table, tmp_path):
    result = ilk.cluster(table, k=3, known="tag")
    assert len(set(result.labels[[0, 1, 70]])) == 1
    assert result.labels[60] == result.labels[61] != result.labels[0]
    assert result.summary()["chosen"]["method"] == "gaussian"
    names = [group.name for group in result.groups]
    assert names[result.labels[0]] == "left"
    assert names[result.labels[60]] == "right"
    assert result.verdict.word == "not tested"
    assert [w[1] for w in result.warnings if w[0] == "constraints-kept"] == [
        "2 labels of 5 rows were kept; components are not merged to groups"
    ]
    assert result.placed.group[70] == result.labels[70]
    assert "tag" not in [fact.column for fact in result.groups[0].facts]
    result.save(tmp_path / "model.ilk")
    assert ilk.load(tmp_path / "model.ilk").assign(table)["group"].nunique() == 3
    assert "known='tag'" in result.summary()["reproduce"]["python"]


def test_the_number_of_groups_is_found_with_labels_kept(table):
    result = ilk.cluster(table, known="tag", method="k-means")
    assert result.k == 3
    assert ilk.cluster(table[["a", "b"]], known=table["tag"], method="k-means").labels.tolist() == (
        result.labels.tolist()
    )


def test_pairs_are_kept_by_k_means(table):
    result = ilk.cluster(table[["a", "b"]], k=3, must_link=[(0, 70)], cannot_link=[(0, 1)])
    assert result.summary()["chosen"]["method"] == "k-means"
    assert result.labels[0] == result.labels[70] != result.labels[1]
    assert "--must-link 0,70 --cannot-link 0,1" in result.summary()["reproduce"]["command"]


def test_rows_without_a_value_are_counted_as_the_table_counts_them(table):
    table.loc[5, ["a", "b"]] = np.nan
    result = ilk.cluster(table[["a", "b"]], k=3, must_link=[(0, 70)], cannot_link=[(0, 1)], method="k-means")
    assert result.labels[0] == result.labels[70] != result.labels[1]
    with pytest.raises(UsageError, match="row 5"):
        ilk.cluster(table[["a", "b"]], k=3, must_link=[(5, 70)], method="k-means")


def test_what_cannot_be_kept_is_refused(table):
    for wrong, code in (
        ({"known": "tag", "method": "assorted"}, "not-with-constraints"),
        ({"cannot_link": [(0, 1)], "method": "gaussian"}, "not-with-constraints"),
        ({"known": "tug"}, "unknown-column"),
        ({"known": "tag", "k": 1}, "constraint-conflict"),
        ({"must_link": [(0, 1)], "cannot_link": [(1, 0)]}, "constraint-conflict"),
    ):
        with pytest.raises(UsageError) as refused:
            ilk.cluster(table, **wrong)
        assert refused.value.code == code


def test_the_command_line(ilk, table, tmp_path):
    table.to_csv(tmp_path / "rows.csv", index=False)
    ended = ilk("fit", "rows.csv", "--k", "3", "--known", "tag", "--must-link", "2,3", "--method", "k-means")
    assert ended.exit_code == 0, ended.stderr
    assert "constraints-kept" in ended.stdout
    summary = json.loads((tmp_path / "rows.ilk/summary.json").read_text())
    assert summary["reproduce"]["command"] == (
        "ilk fit rows.csv --known tag --must-link 2,3 --k 3 --method k-means"
    )
    assert ilk("fit", "rows.csv", "--must-link", "2-3", "--force").exit_code == 2

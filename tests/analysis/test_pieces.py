"""Pieces and groups as a user meets them: the result, the model file, new rows, the options."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import ilk
from ilk.errors import ModelFileError, UsageError


@pytest.fixture(scope="module")
def table():
    """Two groups, the first of them a skewed one that takes several Gaussian components; "auto" takes its logarithm."""
    draws = np.random.default_rng(0)
    skewed = np.column_stack([draws.exponential(1.0, 300), draws.normal(0, 0.3, 300)])
    return np.vstack([skewed, draws.normal([20, 3], [0.5, 0.3], (100, 2))])


@pytest.fixture(scope="module")
def result(table):
    return ilk.cluster(table, k=range(1, 6), method="gaussian")


def test_pieces_are_merged_to_groups(table, result):
    assert result.components > result.k == len(result.groups) == 2
    assert result.labels.tolist() == [0] * 300 + [1] * 100
    assert result.probabilities.shape == (400, 2)
    assert np.allclose(result.probabilities.sum(axis=1), 1)
    assert result.verdict.components == result.components
    assert f"{result.components} components -> 2 groups" in repr(result)
    assert "trust           solid: 2 groups, clearly separated" in repr(result)


def test_summary_holds_the_merge(result):
    summary = result.summary()
    merge = summary["merge"]
    assert merge["threshold"] == 0.40
    assert [level["groups"] for level in merge["path"]] == list(range(result.components, 1, -1))
    assert merge["path"][-1]["separation"] == pytest.approx(result.verdict.separation)
    assert sorted(piece for group in merge["groups"] for piece in group) == list(range(result.components))
    assert merge["separations"][0][0] is None
    assert merge["separations"][0][1] == merge["separations"][1][0] == result.verdict.separation
    weakest = merge["weakest"]
    assert weakest["pair"] == ["A", "B"]
    assert len(weakest["edges"]) == len(weakest["counts_a"]) + 1 == len(weakest["counts_b"]) + 1
    assert set(summary["verdict"]) == {
        "word", "separation", "icl_k", "stability_min", "stability_mean", "reasons", "sentence", "thresholds",
        "components", "merged",
    }  # fmt: skip
    groups = summary["groups"]
    assert groups[0]["nearest"] == {"group": "B", "separation": result.verdict.separation}
    assert min(g["stability"] for g in groups) == result.verdict.stability_min
    assert summary["chosen"]["k"] == 2
    assert summary["chosen"]["segments"] == 0
    json.dumps(summary, allow_nan=False)


def test_a_model_file_keeps_pieces_and_their_groups(table, result, tmp_path):
    result.save(tmp_path / "m.ilk")
    model = ilk.load(tmp_path / "m.ilk")
    assert model.group_of == result.model.group_of
    assert (model.k, len(model.params.mean)) == (2, result.components)
    placed = model.assign(pd.DataFrame(table, columns=["x0", "x1"]))
    assert placed["group"].tolist() == ["A"] * 300 + ["B"] * 100
    assert placed["second"].tolist() == ["B"] * 300 + ["A"] * 100
    assert placed["probability"].to_numpy() == pytest.approx(result.probabilities.max(axis=1), abs=1e-4)


@pytest.mark.parametrize("groups", [[0], [0, 1, 2, 3, 4, 5], "no", [0, 0.5], [True, False], [0, 2]])
def test_a_file_whose_groups_do_not_fit_is_refused(result, tmp_path, groups):
    from ilk import store
    from ilk.model.model import KIND

    tree = {**result.model._tree(), "groups": groups}
    store.save(tmp_path / "m.ilk", KIND, *store.flatten(tree))
    with pytest.raises(ModelFileError):
        ilk.load(tmp_path / "m.ilk")


def test_pieces_as_they_are(table, result):
    pieces = ilk.cluster(table, k=range(1, 6), method="gaussian", merge="none")
    assert pieces.k == pieces.components == result.components == len(pieces.groups)
    assert pieces.verdict.word == "weak"
    assert pieces.summary()["merge"]["threshold"] is None
    assert pieces.summary()["merge"]["path"][0]["groups"] == pieces.k
    asked = ilk.cluster(table, k=3)
    assert (asked.k, asked.components) == (3, 3)
    assert "3 groups as asked" in repr(asked)
    at_least = ilk.cluster(table, k=range(3, 6))
    assert at_least.k == 3
    with pytest.raises(UsageError, match='merge="all" is not known'):
        ilk.cluster(table, merge="all")


def test_slices_of_one_cloud_are_segments():
    X = np.exp(np.random.default_rng(1).normal(size=(300, 2)))
    result = ilk.cluster(X, k=range(1, 6), method="gaussian")
    assert result.components > result.k == 1
    assert len(result.groups) == result.components == len(set(result.segments))
    assert set(result.labels) == {0}
    assert result.probabilities.shape == (300, result.components)
    assert result.verdict.word == "no clear groups"
    assert {reason.code for reason in result.verdict.reasons} == {"not-separated"}
    summary = result.summary()
    assert summary["chosen"]["segments"] == result.components
    assert summary["groups"][0]["stability"] is None
    text = " ".join(repr(result).split())
    assert "trust no clear groups: the table looks like a single group (skewed: x0, x1)" in text
    assert f"{result.components} segments are given" in text
    assert f"{result.components} components -> 1 group" in text


def test_an_interrupt_of_the_resamples_leaves_the_groups(table, monkeypatch):
    import ilk.selection.grouping as grouping

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(grouping, "resampled", stop)
    with pytest.warns(ilk.errors.IlkWarning, match="interrupted"):
        result = ilk.cluster(table, k=range(1, 4))
    assert result.k == 2
    assert result.verdict.stability_min is None
    assert "was not measured" in result.verdict.sentence


def test_pieces_of_k_means_are_merged_too():
    draws = np.random.default_rng(0)
    X = np.vstack([draws.normal(0, [6, 0.5], (200, 2)), draws.normal([0, 30], [1, 1], (100, 2))])
    result = ilk.cluster(X, method="k-means", scale=None, k=range(1, 4))
    assert (result.components, result.k) == (3, 2)
    assert result.labels.tolist() == [0] * 200 + [1] * 100
    assert result.probabilities is None
    assert result.verdict.icl_k is None
    assert all(group.silhouette > 0.5 for group in result.groups)
    assert result.assign(X)["group"].to_pylist() == ["A"] * 200 + ["B"] * 100


def test_a_merge_that_is_stable_is_offered_where_groups_are_not():
    draws = np.random.default_rng(3)
    X = np.vstack([draws.normal(0, 1, (200, 5)), draws.normal(5, 1, (200, 5))])
    verdict = ilk.cluster(X, k=4, merge="none", method="gaussian").verdict
    assert verdict.word == "weak"
    assert verdict.stability_min < 0.5
    assert verdict.merged["groups"] == 2
    assert sorted(len(letters) for letters in verdict.merged["members"]) == [2, 2]
    assert min(verdict.merged["stability"]) > 0.95
    assert "merged to 2 groups (" in verdict.sentence
    assert re.search(r"as one\) all are stable \(mean Jaccard (1\.00|0\.9\d or more), ", verdict.sentence)
    assert ilk.cluster(X, k=2, method="gaussian").verdict.merged is None


def test_groups_that_dissolve_are_merged_where_the_merge_holds():
    """Two squares on their corners, as uniform as can be: mixtures need several components for each."""
    draws = np.random.default_rng(5)
    squares = draws.uniform(-1, 1, (800, 2)) @ np.array([[1, 1], [1, -1]]) / 2
    X = squares + np.repeat([[0.0, 0.0], [2.4, 0.0]], 400, axis=0)
    result = ilk.cluster(X, method="gaussian")
    assert (result.k, result.verdict.word) == (2, "fair")
    assert "finer-dissolved" in {reason.code for reason in result.verdict.reasons}
    assert min(group.stability for group in result.groups) > 0.95
    assert result.components > 2
    again = ilk.cluster(X, method="gaussian", k=2)
    assert again.labels.tolist() == result.labels.tolist()

"""What may be given to `ilk.cluster`: columns by name, weights as arrays, ranges as texts, results to match to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ilk
from ilk.errors import DataError, UsageError


@pytest.fixture(scope="module")
def frame():
    draws = np.random.default_rng(0)
    group = np.repeat([0, 1], [60, 40])
    return pd.DataFrame(
        {
            "x": draws.normal(0, 1, 100) + 9 * group,
            "y": draws.normal(0, 1, 100) - 7 * group,
            "z": draws.normal(0, 1, 100),
            "code": [f"c{i}" for i in range(100)],
        }
    )


def used(result):
    return [c["name"] for c in result.summary()["table"]["columns"] if c["role"] == "used"]


def test_only_the_columns_that_are_named_are_used(frame):
    result = ilk.cluster(frame, columns=["x", "z"], id="code", k=2)
    assert used(result) == ["x", "z"]
    assert result.summary()["options"]["columns"] == ["x", "z"]
    assert used(ilk.cluster(frame, columns="x", k=2)) == ["x"]
    assert "columns=['x', 'z']" in result.summary()["reproduce"]["python"]
    assert "--columns x --columns z" in result.summary()["reproduce"]["command"]
    assert set(result.assign(frame[["x", "z"]])["group"]) == {"A", "B"}


def test_columns_that_are_not_there_are_named_as_such(frame):
    with pytest.raises(
        UsageError, match=r"names a column that DataFrame lacks\. Did you mean 'x'"
    ) as refused:
        ilk.cluster(frame, columns=["X"])
    assert "columns=" in str(refused.value)
    assert "'x'" in str(refused.value)
    with pytest.raises(UsageError, match="columns"):
        ilk.cluster(frame, columns=[])


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
def test_weights_as_arrays_are_those_of_a_column(frame, kind):
    weight = np.arange(100) % 3 + 1
    by_name = ilk.cluster(frame.assign(w=weight), weight="w", k=2, method="k-means")
    given = ilk.cluster(frame, weight=kind(weight.tolist()), k=2, method="k-means")
    assert np.array_equal(by_name.labels, given.labels)
    assert [g.weight for g in by_name.groups] == [g.weight for g in given.groups]
    assert given.summary()["options"]["weight"] == "weight"
    assert given.to_frame().index.equals(frame.index)
    assert "w" not in used(given)
    assert len(given.assign(frame)) == 100


def test_weights_beside_a_column_of_that_name_and_an_array_of_numbers(frame):
    named = frame.rename(columns={"z": "weight"})
    result = ilk.cluster(named, weight=np.ones(100), k=2)
    assert result.summary()["options"]["weight"] == "weight_ilk"
    assert used(result) == ["x", "y", "weight"]
    result = ilk.cluster(frame[["x", "y"]].to_numpy(), weight=np.ones(100), weights_are="counts", k=2)
    assert result.labels.tolist() == [0] * 60 + [1] * 40


@pytest.mark.parametrize("wrong", [np.ones(7), np.ones((100, 2)), 3.0, ["a"] * 100, -np.ones(100)])
def test_weights_that_do_not_fit_are_refused(frame, wrong):
    with pytest.raises(DataError):
        ilk.cluster(frame, weight=wrong)


def test_a_range_of_k_as_it_is_typed(frame):
    result = ilk.cluster(frame[["x", "y"]], k="2..4", method="k-means")
    assert {c.k for c in result.candidates if c.status != "reference"} == {2, 3, 4}
    assert {c.k for c in ilk.select(frame[["x", "y"]], k="1..2", structures="EII").candidates} == {1, 2}
    for wrong in ("2..", "4..2", "many", "2"):
        with pytest.raises(UsageError, match="k="):
            ilk.cluster(frame, k=wrong)


def test_letters_of_a_result_of_a_model_and_of_a_file(frame, tmp_path):
    first = ilk.cluster(frame, k=2).rename({"A": "the many"})
    first.save(tmp_path / "model.ilk")
    later = frame.iloc[40:]
    for earlier in (first, first.model, tmp_path / "model.ilk", str(tmp_path / "model.ilk")):
        result = ilk.cluster(later, k=2, match_to=earlier)
        assert [(g.letter, g.rows) for g in result.groups] == [("B", 40), ("A", 20)]
        assert result.groups[1].name == "the many"
        assert "the many" in repr(result)
    with pytest.raises(UsageError, match="match_to") as refused:
        ilk.cluster(frame, match_to=3)
    assert refused.value.code == "bad-match_to"

"""`ilk.Clusterer` does what `ilk.cluster` does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ilk
from ilk.errors import UsageError


@pytest.fixture(scope="module")
def frame():
    draws = np.random.default_rng(0)
    group = np.repeat([0, 1], [60, 40])
    return pd.DataFrame(
        {
            "x": draws.normal(0, 1, 100) + 9 * group,
            "kind": np.array(["red", "blue"])[group],
            "y": np.where(np.arange(100) % 7 == 0, np.nan, draws.normal(0, 1, 100)),
        }
    )


def test_it_is_cluster(frame):
    model, result = ilk.Clusterer().fit(frame), ilk.cluster(frame)
    assert np.array_equal(model.labels_, result.labels)
    assert (model.n_clusters_, model.verdict_) == (result.k, result.verdict)
    assert np.array_equal(model.predict(frame), result.labels)
    np.testing.assert_allclose(model.predict_proba(frame), result.probabilities)
    assert np.array_equal(model.fit_transform(frame), model.predict_proba(frame))
    assert model.get_feature_names_out().tolist() == ["group_A", "group_B"]
    assert isinstance(model.result_, ilk.Result)


def test_new_rows_and_rows_without_values(frame):
    model = ilk.Clusterer(2).fit(frame)
    new = pd.DataFrame({"y": [0.0, np.nan], "x": [9.0, np.nan], "kind": ["blue", None]})
    with pytest.warns(ilk.errors.IlkWarning, match="get no group"):
        assert model.predict(new).tolist() == [1, -1]
    shares = model.predict_proba(new)
    assert shares[0].argmax() == 1
    assert np.isnan(shares[1]).all()


def test_in_a_pipeline_and_cloned(frame):
    X = frame[["x"]].assign(z=np.random.default_rng(1).normal(size=100)).to_numpy()
    line = make_pipeline(StandardScaler(), ilk.Clusterer("1..3", random_state=0)).fit(X)
    assert line.predict(X).tolist() == [0] * 60 + [1] * 40
    assert line[-1].labels_.tolist() == [0] * 60 + [1] * 40
    again = clone(line[-1])
    assert again.get_params() == line[-1].get_params()
    assert not hasattr(again, "labels_")
    shown = line.set_output(transform="pandas").transform(X)
    assert shown.columns.tolist() == ["group_A", "group_B"]


def test_segments_are_one_group():
    X = np.exp(np.random.default_rng(1).normal(size=(300, 2)))
    model = ilk.Clusterer("1..5", method="gaussian").fit(X)
    assert model.n_clusters_ == 1
    assert set(model.labels_) == set(model.predict(X)) == {0}
    assert model.result_.segments.max() > 0
    np.testing.assert_allclose(model.predict_proba(X), np.ones((300, 1)))
    assert model.transform(X).shape == (300, 1)
    assert model.get_feature_names_out().tolist() == ["group_A"]


def test_methods_without_probabilities_and_without_a_rule(frame):
    X = frame[["x"]].to_numpy()
    shares = ilk.Clusterer(2, method="k-means").fit(X).predict_proba(X)
    assert set(shares.ravel()) == {0.0, 1.0}
    model = ilk.Clusterer(2, method="spectral").fit(np.column_stack([X, X**2]))
    assert sorted(set(model.labels_)) == [0, 1]
    with pytest.raises(UsageError):
        model.predict(np.column_stack([X, X**2]))


def test_weights_and_options(frame):
    weight = np.arange(100) % 3 + 1
    model = ilk.Clusterer(2, columns=["x"]).fit(frame, sample_weight=weight)
    assert model.result_.groups[0].weight == weight[:60].sum()
    named = ilk.Clusterer(2, columns=["x"]).fit(frame.assign(w=weight), sample_weight="w")
    assert np.array_equal(named.labels_, model.labels_)
    again = ilk.Clusterer(2, match_to=model.result_.rename({"B": "far"})).fit(frame)
    assert again.result_.groups[1].name == "far"


@pytest.mark.parametrize(
    "asked",
    [
        {"column_weights": {"x": 2}},
        {"transforms": {"x": "rank"}},
        {"method": "k-means", "columns": ["x"], "known": np.where(np.arange(100) < 4, 0, -1)},
        {"method": "k-means", "columns": ["x"], "must_link": [(0, 99)]},
        {"method": "k-means", "columns": ["x"], "cannot_link": [(0, 1)]},
    ],
    ids=lambda asked: [*asked][-1],
)
def test_what_is_known_of_rows_and_columns(frame, asked):
    model = ilk.Clusterer(2, **asked).fit(frame)
    result = ilk.cluster(frame, k=2, **asked)
    assert (model.labels_ == result.labels).all()
    if "must_link" in asked:
        assert model.labels_[0] == model.labels_[99]
    if "cannot_link" in asked:
        assert model.labels_[0] != model.labels_[1]

"""Habits of scikit-learn: a function as `init`, n_init="auto", `n_jobs`, `verbose`, `random_state` of `cluster`."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import kmeans_plusplus

import ilk
from ilk.errors import UsageError

DRAWS = np.random.default_rng(5)
X = np.vstack([DRAWS.normal(place, 1, (40, 2)) for place in (0, 12, 24)])
CENTROIDS = (ilk.KMeans, ilk.KMedians, ilk.TrimmedKMeans)
WITH_THREADS = [
    ilk.KMeans(3), ilk.KMedians(3), ilk.TrimmedKMeans(3), ilk.DPMeans(50.0), ilk.BinaryDPMeans(binarize=5.0),
    ilk.CRAFT(20.0, max_iter=3), ilk.GaussianMixture(3), ilk.StudentMixture(3), ilk.LaplaceMixture(3),
    ilk.MixedMixture(3), ilk.AssortedMixture(3), ilk.DirichletProcessMixture(5),
]  # fmt: skip
by_name = pytest.mark.parametrize("model", WITH_THREADS, ids=lambda model: type(model).__name__)


def first_rows(X, n_clusters, random_state):
    return X[random_state.choice(len(X), n_clusters, replace=False)]


def theirs(X, n_clusters, random_state):
    return kmeans_plusplus(X, n_clusters, random_state=random_state)[0]


@pytest.mark.parametrize("kind", CENTROIDS)
@pytest.mark.parametrize("init", [first_rows, theirs])
def test_a_function_gives_the_starts(kind, init):
    called = []

    def counted(X, n_clusters, random_state):
        called.append((X.shape, n_clusters))
        return init(X, n_clusters, random_state)

    model = kind(3, init=counted, n_init=4, random_state=0).fit(X)
    assert called == [((120, 2), 3)] * 4
    assert len(model.fit_.starts) == 4
    again = kind(3, init=init, n_init=4, random_state=0).fit(X)
    np.testing.assert_array_equal(model.cluster_centers_, again.cluster_centers_)
    assert clone(model).init is counted


def test_a_function_sees_the_users_units_and_gives_centres_in_them():
    far = X * 1e-6 + 1e3
    model = ilk.KMeans(3, init=lambda X, k, random_state: X[[0, 40, 80]], max_iter=0, scale="standard").fit(
        far
    )
    np.testing.assert_allclose(model.cluster_centers_, far[[0, 40, 80]], rtol=1e-12)


@pytest.mark.parametrize(
    "made", [X[:2], X[:3, :1], np.full((3, 2), np.nan), np.zeros(120, dtype=int), "no centres"]
)
def test_what_a_function_gives_is_checked(made):
    with pytest.raises(UsageError) as refused:
        ilk.KMeans(3, init=lambda *_, **__: made).fit(X)
    assert refused.value.code == "bad-start"


def test_a_function_needs_rows_in_memory(tmp_path):
    import dask.dataframe as dd
    import pandas as pd

    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=2)
    with pytest.raises(UsageError) as refused:
        ilk.KMeans(3, init=first_rows).fit(frame)
    assert refused.value.code == "start-needs-memory"


@pytest.mark.parametrize(
    "model",
    [
        ilk.KMeans(3),
        ilk.TrimmedKMeans(3),
        ilk.GaussianMixture(3),
        ilk.MixedMixture(3),
        ilk.AssortedMixture(3),
    ],
)
def test_auto_is_the_default_number_of_starts(model):
    one = clone(model).set_params(random_state=0, n_init="auto").fit(X)
    other = clone(model).set_params(random_state=0).fit(X)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert len(one.fit_.starts) == len(other.fit_.starts)
    with pytest.raises(UsageError) as refused:
        model.set_params(n_init="many").fit(X)
    assert refused.value.code == "bad-n_init"


@by_name
def test_n_jobs_is_threads(model):
    one = clone(model).set_params(n_jobs=1).fit(X)
    other = clone(model).set_params(threads=1).fit(X)
    if "random_state" not in model.get_params():
        np.testing.assert_array_equal(one.labels_, other.labels_)
    clone(model).set_params(n_jobs=-1).fit(X)
    for options, code in (
        ({"n_jobs": 2, "threads": 2}, "threads-twice"),
        ({"n_jobs": 0}, "bad-n_jobs"),
        ({"n_jobs": True}, "bad-n_jobs"),
        ({"n_jobs": -2}, "bad-n_jobs"),
    ):
        with pytest.raises(UsageError) as refused:
            clone(model).set_params(**options).fit(X)
        assert refused.value.code == code


@by_name
def test_verbose_tells_of_each_pass(model, capsys):
    if "verbose" not in model.get_params():
        pytest.skip("has no passes to tell of")
    told = []
    model = clone(model).set_params(verbose=1, callback=told.append).fit(X)
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert len(lines) == len(told) > 0
    assert all(line.startswith(f"{type(model).__name__}: pass ") for line in lines)
    assert captured.out == ""
    clone(model).set_params(verbose=False, callback=None).fit(X)
    assert capsys.readouterr().err == ""
    with pytest.raises(UsageError) as refused:
        clone(model).set_params(verbose=-1).fit(X)
    assert refused.value.code == "bad-verbose"


def test_random_state_is_another_spelling_of_seed(capsys):
    table = {"a": X[:, 0], "b": X[:, 1]}
    one, other = ilk.cluster(table, k=3, seed=4), ilk.cluster(table, k=3, random_state=4, n_jobs=1, verbose=1)
    np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert other.summary()["reproduce"] == one.summary()["reproduce"]
    assert "ilk: fitting" in capsys.readouterr().err
    assert repr(ilk.select(X, k=3, seed=4, structures="EII")) == repr(
        ilk.select(X, k=3, random_state=4, seed=4, structures="EII", verbose=1)
    )
    assert "ilk: fitting" in capsys.readouterr().err
    for job in (ilk.cluster, ilk.select):
        for options, code in (
            ({"seed": 0, "random_state": 1}, "seed-twice"),
            ({"seed": 2, "random_state": np.random.default_rng(0)}, "seed-twice"),
            ({"threads": 1, "n_jobs": 1}, "threads-twice"),
            ({"verbose": -1}, "bad-verbose"),
            ({"verbose": "loud"}, "bad-verbose"),
        ):
            with pytest.raises(UsageError) as refused:
                job(X, k=3, **options)
            assert refused.value.code == code

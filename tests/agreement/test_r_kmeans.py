"""K-means against R 4.2.2 (stats::kmeans, Lloyd) from stored start rows, and its best of 300 starts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ilk
from tests.conftest import at_hand, golden, numeric_table

SETS = golden("r_kmeans_pam_silhouette")["sets"] | golden("r_made_tables")["sets"]
RUNS = [(name, run) for name, entry in SETS.items() for run in entry["runs"]]
LLOYD = [(name, run["K"], start) for name, run in RUNS for start in run["lloyd"]]


def table_name(case):
    return SETS[case[0]]["table"]


def table_of(name: str) -> np.ndarray:
    entry = SETS[name]
    X, _ = numeric_table(entry["table"])
    if entry["scaled"]:
        X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    return X


@pytest.mark.parametrize(
    ("name", "k", "run"),
    at_hand(LLOYD, table_name, name=lambda c: f"{c[0]}-{c[1]}-{'-'.join(map(str, c[2]['start_rows']))}"),
)
def test_lloyd_from_the_same_rows(name, k, run):
    X = table_of(name)
    model = ilk.KMeans(k, init=X[run["start_rows"]], n_init=1).fit(X)
    assert model.inertia_ == pytest.approx(run["within_ss"], rel=1e-9)
    if run["labels"] is None:
        assert sorted(run["sizes"]) == sorted(model.fit_.size.tolist())
    else:
        theirs = np.asarray(run["labels"])
        pairs = set(zip(model.labels_.tolist(), theirs.tolist(), strict=True))
        assert len(pairs) == len(set(theirs.tolist())) == len(set(model.labels_.tolist()))


@pytest.mark.parametrize(
    ("name", "run"), at_hand(RUNS, table_name, name=lambda case: f"{case[0]}-{case[1]['K']}")
)
def test_best_of_own_starts(name, run):
    X = table_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ilk.KMeans(run["K"], n_init=50, random_state=0).fit(X)
    assert model.inertia_ <= run["best_within_ss"] * 1.001

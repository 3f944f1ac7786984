"""The suite of Gagolewski by its own protocol: ilk is not below what others published, over the sets."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import at_hand

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "comparisons" / "gagolewski.py"))
SETS = sorted((EXAMPLE["SUITE"] / "data").glob("*.csv"))


PUBLISHED = [
    ("K-means", "published_scores.csv", "method", "sklearn_kmeans"),
    ("Gaussian mixtures", "published_scores.csv", "method", "sklearn_gm"),
    ("Gaussian mixtures", "mclust_scores.csv", "how", "G given"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "file", "column", "value"),
    at_hand(PUBLISHED, table=lambda _: "fcps_target", name=lambda case: f"{case[0]}-{case[3]}"),
)
def test_mean_over_the_sets_is_not_below_the_published_one(method, file, column, value):
    theirs, ours = EXAMPLE["published"](file, column, value), {}
    for path in SETS:
        X, references = EXAMPLE["read_set"](path.stem)
        for k, truths in EXAMPLE["by_k"](references).items():
            if (path.stem, k) in theirs:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    labels = EXAMPLE["METHODS"][method](X, k)
                ours[path.stem, k] = EXAMPLE["score"](labels, truths)
    means = [np.mean([*EXAMPLE["by_set"](figures).values()]) for figures in (ours, theirs)]
    assert len(ours) == len(theirs)
    assert means[0] >= means[1]

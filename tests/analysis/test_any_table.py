"""Whatever the table: a result that keeps its promises, or a refusal with a code. Nothing else."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import ilk
from ilk import kernels
from ilk.errors import IlkError, IlkWarning

COLUMNS = [
    lambda d, n: d.normal(size=n),
    lambda d, n: d.normal(size=n) * 10.0 ** d.integers(-300, 300),
    lambda d, n: d.normal(size=n) + 10.0 ** d.integers(0, 15),
    lambda d, n: d.integers(0, 3, n),
    lambda d, n: d.integers(-(2**62), 2**62, n),
    lambda d, n: d.integers(0, 2, n).astype(bool),
    lambda d, n: d.choice(["a", "b", "c"], n),
    lambda d, n: d.choice(["a", None], n),
    lambda d, n: np.full(n, 7.0),
    lambda d, n: np.full(n, np.nan),
    lambda d, n: np.where(d.random(n) < 0.7, np.nan, d.normal(size=n)),
    lambda d, n: np.array([f"id{i}" for i in range(n)]),
    lambda d, n: d.choice([np.inf, 1.0, 2.0], n),
    lambda d, n: d.standard_cauchy(n) ** 3,
    lambda d, n: pd.Categorical(d.choice(["u", "v", "w"], n), ordered=True),
    lambda d, n: pd.date_range("2020", periods=n),
    lambda d, n: np.repeat(d.normal(size=1), n) + d.integers(0, 2, n) * 1e-15,
]


def made(seed):
    """A table of odd columns, and options to match."""
    draws = np.random.default_rng(seed)
    n_rows = int(draws.choice([0, 1, 2, 3, 5, 8, 20, 60]))
    names = [f"c{j}" for j in range(draws.integers(0, 6))]
    if names and draws.random() < 0.1:
        names[0] = "group"
    frame = pd.DataFrame({name: COLUMNS[draws.integers(len(COLUMNS))](draws, n_rows) for name in names})
    frame["w"] = draws.integers(0, 3, n_rows)
    options = {
        "k": ["auto", 1, 2, 5, range(1, 4)][draws.integers(5)],
        "method": ["auto", "k-medians", "trimmed-k-means"][draws.choice(3, p=[0.8, 0.1, 0.1])],
        "scale": ["standard", None][draws.integers(2)],
        "weight": "w" if draws.random() < 0.3 else None,
        "truth": names[0] if names and draws.random() < 0.2 else None,
    }
    return frame, options


@pytest.mark.parametrize("seed", range(120 if kernels.COMPILED else 20))
def test_a_result_or_a_refusal(seed):
    frame, options = made(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", IlkWarning)
        try:
            result = ilk.cluster(frame, **options)
        except IlkError:
            return
        placed = result.assign(frame)
    json.dumps(result.summary(), allow_nan=False)
    assert repr(result)
    assert len({*result.labels} - {-1}) == result.k
    wanted = "group" if result.segments is None else "segment"
    group = next(name for name in (f"{wanted}_ilk", wanted) if name in placed)
    numbers = result.labels if result.segments is None else result.segments
    expected = [None if label < 0 else result.groups[label].letter for label in numbers]
    assert [None if pd.isna(letter) else letter for letter in placed[group]] == expected
    assert sum(g.rows for g in result.groups) == (result.labels >= 0).sum()
    ledger = result.summary()["table"]["ledger"]
    assert ledger["read"] == ledger["used"] + sum(part["count"] for part in ledger["set_aside"]) == len(frame)

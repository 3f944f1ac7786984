"""Groups amid factors that run through most columns: found in what is left, said, saved, and given to new rows."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import ilk
from ilk import store
from ilk.errors import ModelFileError, UsageError
from ilk.export.dialects import DUCKDB
from ilk.export.record import record
from ilk.export.sql import select
from ilk.model.model import KIND
from tests.assorted.test_dense_factors import amid_factors
from tests.assorted.test_screening import groups

N, FIRST = 180, 150


def table(raw: np.ndarray) -> dict[str, np.ndarray]:
    return {f"x{j}": column for j, column in enumerate(raw.T)}


@pytest.fixture(scope="module")
def amid():
    raw, label = amid_factors(1, n=N, q=10)
    return raw, label, ilk.cluster(table(raw[:FIRST]), seed=0, threads=1)


def test_groups_amid_factors_are_found_and_the_factors_said(amid, tmp_path):
    _, label, result = amid
    assert result.k == 3
    assert result.verdict.word in ("solid", "fair")
    assert adjusted_rand_score(label[:FIRST], result.labels) > 0.9
    text = dict(result.warnings)["factors-set-aside"]
    assert "3 factors that run through 80 columns were taken out" in text
    assert "factors-set-aside" in [entry["code"] for entry in result.summary()["warnings"]]
    assert "3 factors that run through" in " ".join(str(result).split())
    result.report(tmp_path / "r.html")
    assert "3 factors that run through" in (tmp_path / "r.html").read_text()


def test_new_rows_lose_their_factors_too(amid, tmp_path):
    raw, label, result = amid
    result.model.save(tmp_path / "m.ilk")
    again = ilk.load(tmp_path / "m.ilk")
    assert again.treat == result.model.treat
    placed = np.array(again.assign(table(raw))["group"])
    assert adjusted_rand_score(label, placed) > 0.9
    assert (placed[:FIRST] == result.letters).all()
    lost = raw.copy()
    lost[np.random.default_rng(0).random(raw.shape) < 0.2] = np.nan
    assert adjusted_rand_score(label, np.array(again.assign(table(lost))["group"])) > 0.7


def test_the_criteria_count_the_factors(amid):
    raw, _, result = amid
    factors = result.model.treat.factors
    chosen = next(one for one in result.candidates if one.parameters is not None)
    plain = ilk.cluster(table(raw[:FIRST]), k=1, seed=0, threads=1)
    assert chosen.parameters > factors.free_parameters == 3 * 80 - 3
    assert chosen.bic < min(one.bic for one in plain.candidates if one.bic is not None)


def test_an_export_says_that_it_cannot(amid):
    model = amid[2].model
    for write in (lambda: record(model), lambda: select(model, DUCKDB, "t")):
        with pytest.raises(UsageError, match="3 factors of 80 columns were taken out") as caught:
            write()
        assert caught.value.code == "not-exportable"


@pytest.mark.parametrize(
    "change",
    [
        lambda factors: factors.update(source=[*factors["source"][:-1], 80]),
        lambda factors: factors.update(source=factors["source"][::-1]),
        lambda factors: factors.update(mean=factors["mean"][1:]),
        lambda factors: factors.update(deviation=[0.0, *factors["deviation"][1:]]),
        lambda factors: factors.update(noise=[0.0, *factors["noise"][1:]]),
        lambda factors: factors.update(loading=[[1.0], *factors["loading"][1:]]),
        lambda factors: factors.update(loading=[[1e9] * 3, *factors["loading"][1:]]),
        lambda factors: factors.pop("noise"),
    ],
)
def test_factors_that_make_no_sense_are_refused(amid, tmp_path, change):
    tree = copy.deepcopy(amid[2].model._tree())
    factors = {name: list(value) for name, value in tree["treatment"]["factors"].items()}
    factors["loading"] = [list(row) for row in factors["loading"]]
    tree["treatment"]["factors"] = factors
    change(factors)
    store.save(tmp_path / "m.ilk", KIND, *store.flatten(tree))
    with pytest.raises(ModelFileError, match="treatment factors") as caught:
        ilk.load(tmp_path / "m.ilk")
    assert caught.value.code == "model-damaged"


def test_a_table_that_shows_groups_keeps_all_that_it_has():
    raw, label = groups(0, n=120, d=60, q=60, k=2, sd=1.0)  # in all columns: a dense axis that is groups
    result = ilk.cluster(table(raw), seed=0, threads=1)
    assert adjusted_rand_score(label, result.labels) == 1.0
    assert result.model.treat.factors is None
    assert "factors-set-aside" not in dict(result.warnings)


def test_factors_without_groups_are_no_groups():
    draws = np.random.default_rng(8)
    raw = draws.standard_normal((120, 3)) @ draws.standard_normal((3, 60)) + draws.standard_normal((120, 60))
    result = ilk.cluster(table(raw), seed=0, threads=1)
    assert result.k == 1 or result.verdict.word == "weak"
    assert result.model.treat.factors is None

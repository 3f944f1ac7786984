"""What every method promises, checked on each: fitted, saved, loaded, it assigns the same groups, is exported and told.

A method is one record of `methods.py`; a toy one, written in a module of its own, goes the whole way too.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ilk
from ilk.errors import UsageError
from ilk.export.dialects import DIALECTS
from ilk.export.record import record
from ilk.export.sql import select
from ilk.methods import METHODS, Method, names
from ilk.model.registry import FAMILIES, SavedFamily, register, saved
from tests.cli.conftest import blobs
from tests.cli.conftest import ilk as terminal
from tests.export.conftest import assigned, sql_labels

__all__ = ["blobs", "sql_labels", "terminal"]  # fixtures
pytestmark = pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")


def numbers() -> dict[str, Any]:
    """Three clear groups."""
    draws, group = np.random.default_rng(0), np.repeat([0, 1, 2], [24, 20, 16])
    return {
        "size": 9.0 * (group == 1) + draws.normal(size=60),
        "width": 9.0 * (group == 2) + draws.normal(size=60),
    }


def mixed() -> dict[str, Any]:
    """The same with categories that go with the groups, and blanks."""
    draws, group = np.random.default_rng(1), np.repeat([0, 1, 2], [24, 20, 16])
    kind = ["abc"[g] if draws.random() < 0.9 else "abc"[draws.integers(3)] for g in group]
    size = [None if draws.random() < 0.1 else float(x) for x in numbers()["size"]]
    return {**numbers(), "size": size, "kind": kind, "mark": ["uv"[int(g > 0)] for g in group]}


TABLES = {"numbers": numbers, "mixed": mixed}


def cases() -> list[tuple[str, str]]:
    """Every method with every table that it takes."""
    every = [(name, "numbers") for name in METHODS]
    return every + [(name, "mixed") for name, method in METHODS.items() if method.takes != "numbers"]


@functools.cache
def fitted(name: str, table: str) -> ilk.Result:
    if METHODS[name].search == "none":  # the groups come from elsewhere
        return ilk.describe(TABLES[table](), np.repeat([2, 0, 1], [24, 20, 16]))
    k = 3 if METHODS[name].k == "fixed" else "auto"
    return ilk.cluster(TABLES[table](), k=k, method=name)


every_case = pytest.mark.parametrize(("name", "table"), cases())


@every_case
def test_it_is_fitted_saved_and_loaded_and_assigns_the_same_groups(name, table, tmp_path):
    result, columns = fitted(name, table), pa.table(TABLES[table]())
    assert result.summary()["chosen"]["method"] == name
    result.save(tmp_path / "model.ilk")
    model = ilk.load(tmp_path / "model.ilk")
    model.save(tmp_path / "again.ilk")
    assert (tmp_path / "again.ilk").read_bytes() == (tmp_path / "model.ilk").read_bytes()
    assert (model.method, model.family, model.k) == (result.model.method, result.model.family, result.k)
    if not model.has_rule:
        with pytest.raises(UsageError) as refused:
            model.assign(columns)
        assert refused.value.code == "no-rule"
        return
    placed = model.assign(columns)
    assert placed["group"].to_pylist() == [model.letters[label] for label in result.labels]
    assert ("probability" in placed.column_names) == METHODS[name].soft
    assert (result.probabilities is not None) == METHODS[name].soft


@every_case
def test_it_is_exported_or_says_why_not(name, table, sql_labels):
    model, columns = fitted(name, table).model, pa.table(TABLES[table]())
    kind = saved(model.family)
    assert kind is not None
    if kind.formula is None:
        for write in (record, lambda model: select(model, DIALECTS["duckdb"], "data")):
            with pytest.raises(UsageError) as refused:
                write(model)
            assert refused.value.code == "not-exportable"
        return
    document = json.loads(json.dumps(record(model), allow_nan=False))
    assert (document["method"], document["family"]) == (model.method, model.family)
    assert len(document["components"]) == len(model.group_of)
    assert sql_labels(model, columns) == assigned(model, columns)
    for dialect in DIALECTS.values():
        assert "SELECT" in select(model, dialect, "data")


@every_case
def test_it_is_reported_and_told(name, table, tmp_path):
    result, method = fitted(name, table), METHODS[name]
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert (method.paper or f"Rows were grouped by {name}.") in page
    assert name in str(result)
    if method.search == "parts" and result.summary()["chosen"]["bic"] is None:
        assert ("it was asked for" if method.k == "fixed" else method.how_k) in page
    if method.search == "parts" and table == "mixed":
        assert method.mixed.split(":")[0] in " ".join(str(result).split())


def test_what_a_record_says_is_whole():
    for name, method in METHODS.items():
        assert name == method.name
        assert (method.search == "recipe") == (method.recipe is not None)
        assert (method.search == "parts") == bool(method.parts)
        assert (method.search in ("parts", "none")) == bool(method.how_k)
        if method.recipe is not None:
            assert method.recipe.name == name
            assert saved(method.recipe.family.name) is not None
        if method.search == "parts":
            assert callable(method.part)


def test_every_saved_family_is_that_of_a_method():
    """No record of a family that nothing makes, and none that is made without a record."""
    made = {fitted(name, table).model.family for name, table in cases()}
    for family in made:
        assert saved(family) is not None
    stems = {family if family in FAMILIES else family.partition(" ")[0] for family in made}
    assert FAMILIES.keys() - stems <= {"assorted", "assorted EEE", "assorted VVV"}
    assert any(family.startswith("assorted") for family in made)


# --- a method more --------------------------------------------------------------------------------------------

PARTS = '''
"""A toy: rows below and above the middle of the first column."""

from ilk.families.centroid import Means
from ilk.methods import Method, register
from ilk.paradigms.order import by_size
from ilk.selection.paradigms import Parting


def halves(material, k, most, seed):
    points = material.points
    first = points[:, 0]
    labels, order = by_size((first > (first.min() + first.max()) / 2).astype("int32"))
    centres = [points[labels == group].mean(axis=0) for group in range(labels.max() + 1)]
    return Parting(labels, family=Means(), params=Means().start(centres))


register(
    Method(
        name="toy",
        search="parts",
        takes="numbers",
        parts=f"{__name__}:halves",
        k="found",
        how_k="the two sides of the middle",
        when="two halves, for a test",
        paper="Rows were cut in two halves.",
    )
)
'''
RECIPE = '''
"""A toy: K-means that leaves out a fifth of the rows, and whose family has a name of its own."""

from dataclasses import dataclass

from ilk.families.centroid import Means
from ilk.fitting.restarts import Recipe
from ilk.methods import Method, register


@dataclass(frozen=True)
class Points(Means):
    name: str = "points"


recipe = Recipe("toy", Points(), trim=0.2)
register(Method(name="toy", search="recipe", takes="numbers", recipe=recipe, paper="Rows were grouped by a toy."))
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Write a module, import it, and forget it and what it registered in the end."""
    methods, families = dict(METHODS), dict(FAMILIES)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(text: str) -> Method:
        (tmp_path / "toy_method.py").write_text(text)
        importlib.import_module("toy_method")
        return METHODS["toy"]

    yield write
    for registry, before in ((METHODS, methods), (FAMILIES, families)):
        for name in registry.keys() - before.keys():
            del registry[name]
    sys.modules.pop("toy_method", None)


def test_a_method_more_is_one_record_and_one_function(toy, tmp_path, sql_labels):
    toy(PARTS)
    assert names()[-1] == "toy"
    result = ilk.cluster(numbers(), method="toy")
    assert (result.k, result.summary()["chosen"]["method"]) == (2, "toy")
    result.save(tmp_path / "toy.ilk")
    model = ilk.load(tmp_path / "toy.ilk")
    letters = [model.letters[label] for label in result.labels]
    assert model.assign(numbers())["group"].to_pylist() == letters
    assert sql_labels(model, numbers()) == letters
    assert len(record(model)["components"]) == 2
    result.report(tmp_path / "toy.html")
    page = (tmp_path / "toy.html").read_text()
    assert "Rows were cut in two halves. The number of groups is the two sides of the middle." in page
    with pytest.raises(UsageError, match="toy finds K itself"):
        ilk.cluster(numbers(), method="toy", k=3)


def test_a_method_more_at_the_terminal(toy, terminal, blobs):
    toy(PARTS)
    made = terminal("fit", blobs, "--method", "toy", "--output", "run")
    assert made.exit_code == 0, made.stderr
    assert "toy, 2 groups" in made.stdout
    assert terminal("assign", "run", blobs).exit_code == 0
    assert terminal("export", "run", "--json").exit_code == 0
    assert "two halves, for a test" in terminal("choose").stdout
    assert "Did you mean toy?" in terminal("fit", blobs, "--method", "toyy").stderr


def test_a_family_more_makes_a_model_by_its_record(toy, tmp_path, sql_labels):
    method = toy(RECIPE)
    with pytest.raises(UsageError, match="which has no record") as refused:
        ilk.cluster(numbers(), method="toy", k=3)
    assert refused.value.code == "family-not-registered"
    means = FAMILIES["means"]
    register(
        SavedFamily(
            name="points",
            family=lambda params, setting: method.recipe.family,
            tree=means.tree,
            read=means.read,
            formula="squares",
        )
    )
    result = ilk.cluster(numbers(), method="toy", k=3)
    result.report(tmp_path / "toy.html")
    assert "Rows were grouped by a toy." in (tmp_path / "toy.html").read_text()
    result.save(tmp_path / "toy.ilk")
    model = ilk.load(tmp_path / "toy.ilk")
    assert (model.family, model.k) == ("points", 3)
    letters = [model.letters[label] for label in result.labels]
    assert model.assign(numbers())["group"].to_pylist() == letters
    assert sql_labels(model, numbers()) == letters

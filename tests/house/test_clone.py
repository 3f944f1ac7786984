"""A clone proves itself: figures and tables are in the repository and named, and nothing else looks outside."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.conftest import OWN, SHARED, at_hand, numeric_table

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "agreement" / "golden"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_figures_are_small_and_named(path):
    assert path.stat().st_size < 300_000
    text = (GOLDEN / "README.md").read_text(encoding="utf-8")
    kind = next((k for k in ("mclust", "r_gower") if path.stem.startswith(f"{k}_")), None)
    assert (f"{kind}_<table>.json" if kind else path.name) in text
    assert kind is None or path.stem.removeprefix(f"{kind}_") in text


def test_every_table_has_a_licence_and_its_kinds():
    text = (OWN / "README.md").read_text(encoding="utf-8")
    kinds = json.loads((OWN / "manifest.json").read_text(encoding="utf-8"))
    names = {path.stem for path in OWN.glob("*.csv")}
    assert kinds.keys() == names
    assert not [name for name in names if name not in text]


def test_only_one_file_of_the_tests_looks_outside():
    word = "shar" + "ed"
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path != ROOT / "tests" / "conftest.py":
            assert f'"{word}" /' not in path.read_text(encoding="utf-8"), f"{path} has a path of its own"


def test_iris_is_that_of_r():
    if not (SHARED / "tables" / "iris.csv").exists():
        assert numeric_table("iris")[0].sum() == pytest.approx(2078.7)  # R: sum(iris[1:4])
        return
    lines = np.genfromtxt(SHARED / "tables" / "iris.csv", delimiter=",", dtype=str, skip_header=1)
    X, species = numeric_table("iris")
    np.testing.assert_array_equal(X, lines[:, :4].astype(float))
    np.testing.assert_array_equal(species, lines[:, 4])


def test_cases_without_their_table_are_one_that_says_so():
    here, absent = at_hand([("wine", 1), ("no such", 2), ("nor this", 3)], table=lambda case: case[0])
    assert here.values == ("wine", 1)
    assert not here.marks
    assert absent.marks[0].name == "skip"
    assert "(no such, nor this)" in absent.marks[0].args[0]


def test_the_citation_is_of_this_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (cited["cff-version"], cited["version"]) == ("1.2.0", PROJECT["version"])
    assert cited["license"] == PROJECT["license"]
    assert cited["repository-code"] == PROJECT["urls"]["Source"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.stem
)
def test_workflows_are_whole(path):
    read = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert read["permissions"] == {"contents": "read"}
    for job in read["jobs"].values():
        assert job["runs-on"]
        assert job["steps"]


def test_the_workflow_tries_the_oldest_and_the_newest_python():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text(encoding="utf-8"))["jobs"]
    named = [
        c.rsplit(" ", 1)[1]
        for c in PROJECT["classifiers"]
        if c.startswith("Programming Language :: Python :: 3.")
    ]
    assert jobs["linux"]["strategy"]["matrix"]["python"] == [named[0], named[-1]]
    assert PROJECT["requires-python"] == f">={named[0]}"

"""Docstrings of all public names: numpydoc's form, every parameter with its default, every attribute that a fit leaves,
examples that run, and all of them on the API page."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import io
import re
import sys
import warnings
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

import ilk
from ilk.documented import shown_default

numpydoc = pytest.importorskip("numpydoc.validate")
from numpydoc.docscrape import NumpyDocString  # noqa: E402
from numpydoc.docscrape_sphinx import SphinxDocString  # noqa: E402

ROOT = Path(__file__).parents[2]
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
NAMES = [name for name in ilk.__all__ if name not in ("__version__", "measures", "errors")]
CLASSES = [name for name in NAMES if inspect.isclass(getattr(ilk, name))]
ESTIMATORS = [name for name in CLASSES if issubclass(getattr(ilk, name), BaseEstimator)]
MEASURES = [f"measures.{name}" for name in ilk.measures.__all__]
ERRORS = ["errors.IlkError", "errors.IlkWarning"]  # the others are IlkErrors of one sentence
# Not asked for: where the text begins and ends, a second paragraph, examples and relatives of every method.
LEFT_OUT = {"GL01", "GL02", "ES01", "SA01", "EX01"}


def found(path: str):
    """What a dotted path below `ilk` leads to."""
    thing = ilk
    for name in path.split("."):
        thing = getattr(thing, name)
    return thing


def made_by_us(path: str) -> bool:
    """Data that users read and do not make: their fields are attributes, not parameters."""
    return dataclasses.is_dataclass(found(path)) and path != "Prior" and not path.endswith("Display")


def methods_of(path: str) -> list[str]:
    """Public methods and properties that are ours."""
    kind, ours = found(path), []
    for name in dir(kind) if inspect.isclass(kind) else ():
        body = inspect.getattr_static(kind, name)
        body = body.fget if isinstance(body, property) else getattr(body, "func", body)
        body = getattr(body, "__func__", body)
        if not name.startswith("_") and inspect.isfunction(body) and body.__module__.startswith("ilk"):
            ours.append(f"{path}.{name}")
    return ours


METHODS = [method for name in [*NAMES, *MEASURES] for method in methods_of(name)]
EVERYTHING = [*NAMES, *MEASURES, *ERRORS, *METHODS]


def sections(path: str) -> NumpyDocString:
    return NumpyDocString(inspect.getdoc(found(path)) or "")


def is_property(path: str) -> bool:
    return isinstance(found(path), (property, cached_property))


@pytest.mark.parametrize("path", EVERYTHING)
def test_numpydoc_has_nothing_to_say(path):
    left_out = LEFT_OUT | {"PR01"} if made_by_us(path) else LEFT_OUT
    assert [text for code, text in numpydoc.validate(f"ilk.{path}")["errors"] if code not in left_out] == []


@pytest.mark.parametrize("path", EVERYTHING)
def test_a_docstring_is_whole(path):
    text = inspect.getdoc(found(path))
    assert not re.search(r"\bas in `", text, flags=re.IGNORECASE)
    assert not re.search(r"^ *\{[\w/]+\}", text, flags=re.MULTILINE), "a shared entry is not filled in"


@pytest.mark.parametrize("path", EVERYTHING)
def test_the_site_can_show_it(path):
    """No stray reference or emphasis; roles and directives of Sphinx are not docutils' to know."""
    core, told = pytest.importorskip("docutils.core"), io.StringIO()
    text = f".. default-role:: literal\n\n{SphinxDocString(inspect.getdoc(found(path)))}"
    core.publish_doctree(text, settings_overrides={"warning_stream": told, "report_level": 2})
    sphinx_only = r"Unknown (interpreted text role|directive type)|No (role|directive) entry"
    lines = [line for line in told.getvalue().splitlines() if re.search(r"\((WARNING|ERROR)/", line)]
    assert [line for line in lines if not re.search(sphinx_only, line)] == []


def without(section: str, paths: list[str]) -> list[str]:
    return [path for path in paths if not sections(path)[section]]


def test_no_public_name_lacks_a_section():
    functions = [path for path in [*NAMES, *MEASURES] if not inspect.isclass(found(path))]
    made = [name for name in CLASSES if not made_by_us(name)]
    assert without("Parameters", [*made, *functions]) == []
    assert without("Attributes", [name for name in CLASSES if name != "Prior"]) == []
    assert without("Returns", functions) == []
    assert without("See Also", [*NAMES, *ERRORS]) == []
    assert without("Examples", [*NAMES, *MEASURES, *ERRORS]) == []


@pytest.mark.parametrize(
    "path", [path for path in EVERYTHING if not is_property(path) and not made_by_us(path)]
)
def test_defaults_are_those_of_the_signature(path):
    described = {p.name: p.type for p in sections(path)["Parameters"]}
    for name, parameter in inspect.signature(found(path)).parameters.items():
        if name != "self" and parameter.kind is not parameter.VAR_KEYWORD:
            optional = parameter.default is not parameter.empty
            told = described[name].rpartition("default=")
            assert bool(told[1]) == optional, name
            assert not optional or told[2] == shown_default(parameter.default), name


@pytest.fixture(scope="module")
def table():
    draws = np.random.default_rng(0)
    X = np.vstack([draws.normal(0, 1, (30, 3)), draws.normal(8, 1, (30, 3))])
    return pd.DataFrame(X, columns=["a", "b", "c"])


OPTIONS = {
    "BinaryDPMeans": {"binarize": 4.0},
    "CRAFT": {"open_cost": 20.0, "max_iter": 3},
    "DPMeans": {"open_cost": 50.0},
    "AssortedMixture": {"n_components": 2},
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_attributes_are_those_that_a_fit_leaves(name, table):
    model = found(name)(**OPTIONS.get(name, {}))
    for option in ("n_clusters", "n_components", "max_clusters", "max_components"):
        if isinstance(model.get_params().get(option), int):
            model.set_params(**{option: 2})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table)
    left = {attribute for attribute in vars(model) if attribute.endswith("_") and attribute[0] != "_"}
    assert {attribute.name for attribute in sections(name)["Attributes"]} == left


@pytest.mark.parametrize("path", [path for path in [*CLASSES, *MEASURES] if made_by_us(path)])
def test_attributes_are_fields_and_properties(path):
    fields = [field.name for field in dataclasses.fields(found(path)) if not field.name.startswith("_")]
    kind = found(path)
    told = [
        name
        for name in dir(kind)
        if isinstance(inspect.getattr_static(kind, name), (property, cached_property))
    ]
    assert {attribute.name for attribute in sections(path)["Attributes"]} == {*fields, *told}


@pytest.mark.parametrize("path", [*NAMES, *MEASURES, *ERRORS])
@pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")
def test_examples_run(path):
    if path.endswith("Display"):
        pytest.importorskip("matplotlib").use("Agg")
    module = sys.modules[found(path).__module__]
    example = doctest.DocTestParser().get_doctest(
        inspect.getdoc(found(path)), dict(vars(module)), path, None, 0
    )
    assert example.examples
    told: list[str] = []
    doctest.DocTestRunner().run(example, out=told.append)
    assert told == []


# What a name means wherever it is a parameter: how its description begins.
MEANINGS = {
    "budget": "Seconds for all of it, reading included",
    "min_size": "Smallest number of rows of a group",
    "max_size": "Largest number of rows of a group",
    "min_weight": "Smallest sum of weights of the rows of a component",
    "target_clusters": "Number of groups to aim at",
    "max_clusters": "Largest number of groups",
    "max_components": "Largest number of ",
    "n_clusters": "Number of groups",
    "n_init": "Number of starts",
    "max_iter": "Largest number of passes over the rows",
    "seed": "Seed of the ",
    "random_state": "Seed of the random draws|Another spelling of `seed`",
    "threads": "Number of threads",
    "n_jobs": "Another spelling of `threads`",
    "open_cost": "Cost of each group|Additional cost of each cluster",
    "scale": '"standard" divides each column by its standard deviation|Expected scatter',
}


@pytest.mark.parametrize("name", MEANINGS)
def test_a_parameter_has_one_meaning(name):
    told = {
        path: " ".join(entry.desc)
        for path in NAMES
        for entry in sections(path)["Parameters"]
        if entry.name == name
    }
    assert told
    assert {path: text for path, text in told.items() if not re.match(MEANINGS[name], text)} == {}


def test_sources_are_cited_by_name():
    for path in sorted((ROOT / "src").rglob("*.py")):
        assert not re.search(r"\bseed 00\d", path.read_text(encoding="utf-8"), flags=re.IGNORECASE), path


def test_the_page_lists_every_public_name():
    listed = re.findall(r"^   (\w+)$", API, flags=re.MULTILINE)
    assert sorted(listed) == sorted(NAMES)
    assert "automodule:: ilk.measures" in API
    assert "automodule:: ilk.errors" in API

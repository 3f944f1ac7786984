"""Docstrings of all public names: in numpydoc's form, with every parameter, and all of them on the API page."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import ilk

numpydoc = pytest.importorskip("numpydoc.validate")

API = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
NAMES = [name for name in ilk.__all__ if name not in ("__version__", "measures", "errors")]
# No docstring; sections numpydoc does not know or would put elsewhere; a summary that is not a sentence of its own.
FORM = {"GL08", "GL06", "GL07", "SS01", "SS03", "SS04"}
PARAMETERS = {"PR01", "PR02"}  # one that is not described, or is described and not there
OPTIONS_OF_OTHERS = {"DirichletProcessGaussian"}  # scikit-learn's own class underneath, which describes them
MADE_BY_US = {"Result", "Model", "LikelihoodRatioTest"}  # and displays: users read them, and do not make them


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_is_complete(name):
    made_by_us = name in MADE_BY_US or name.endswith("Display")
    checks = FORM if made_by_us or name in OPTIONS_OF_OTHERS else FORM | PARAMETERS
    assert [text for code, text in numpydoc.validate(f"ilk.{name}")["errors"] if code in checks] == []


def form_errors(path: str) -> list[str]:
    return [text for code, text in numpydoc.validate(path)["errors"] if code in FORM]


@pytest.mark.parametrize("name", NAMES)
def test_public_methods_have_docstrings(name):
    found = getattr(ilk, name)
    if not inspect.isclass(found):
        return
    for method, body in inspect.getmembers(found, callable):
        ours = (getattr(body, "__module__", "") or "").startswith("ilk")
        if ours and not method.startswith("_"):
            assert form_errors(f"ilk.{name}.{method}") == [], method


@pytest.mark.parametrize("name", ilk.measures.__all__)
def test_measures_have_docstrings(name):
    assert form_errors(f"ilk.measures.{name}") == []


def test_the_page_lists_every_public_name():
    listed = re.findall(r"^   (\w+)$", API, flags=re.MULTILINE)
    assert sorted(listed) == sorted(NAMES)
    assert "automodule:: ilk.measures" in API
    assert "automodule:: ilk.errors" in API

"""What an editor and a type checker see of `ilk`: every public name, with its types."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ilk

pytest.importorskip("mypy")

SOURCE = Path(ilk.__file__).resolve()
USER = """
import numpy as np

import ilk
from ilk import Candidate, Fit, Group, Model, Prior, Progress, Result, Search, Verdict, measures


def tell(progress: Progress) -> None:
    print(progress.done, progress.total)


X = np.zeros((9, 2))
model = ilk.KMeans(3, n_init="auto", n_jobs=1, verbose=0, random_state=0).fit(X)
result: Result = ilk.cluster(X, random_state=0, callback=tell)
first: Group = result.groups[0]
trust: Verdict = result.verdict
name: str = first.name
found: Search = ilk.select(X, k=range(1, 4))
best: Candidate = found.chosen
prior = Prior(np.zeros(2), np.eye(2), dof=4.0)
mixture = ilk.GaussianMixture(2, prior=prior).fit(X)
fit: Fit = mixture.fit_
agreement: float = measures.ari(model.labels_, mixture.labels_)
saved: Model = ilk.load("model.ilk")
try:
    ilk.AssortedMixture(budget=1.0).fit(X)
except ilk.errors.UsageError as refused:
    print(refused.code)

reveal_type(ilk.cluster)
reveal_type(result)
reveal_type(model)
reveal_type(model.labels_)
reveal_type(first.name)
reveal_type(mixture.bic())
"""
WRONG = """
import ilk

ilk.KMeens
ilk.KMeans(3, n_cluster=4)
ilk.cluster([[1.0]], sed=3)
"""


def imported() -> dict[str, str]:
    """Names that `__init__.py` imports for checkers, and from where."""
    found = {}
    for branch in ast.parse(SOURCE.read_text(encoding="utf-8")).body:
        if isinstance(branch, ast.If) and isinstance(branch.test, ast.Name):
            for node in branch.body:
                assert isinstance(node, ast.ImportFrom)
                found |= {alias.asname or alias.name: node.module or "" for alias in node.names}
    return found


def test_names_for_checkers_are_those_loaded_on_first_use():
    modules = dict.fromkeys(ilk._MODULES, "ilk")
    assert imported() == ilk._HOME | modules
    assert sorted(ilk.__all__) == sorted(["__version__", *imported()])
    assert dir(ilk) == sorted(ilk.__all__)


@pytest.mark.parametrize("name", ilk.__all__)
def test_every_name_is_there(name):
    assert getattr(ilk, name) is not None
    assert getattr(getattr(ilk, name), "__name__", name).rpartition(".")[2] == name


@pytest.fixture(scope="module")
def checked(tmp_path_factory) -> dict[str, list[str]]:
    """What mypy says of two scripts of a user."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "right.py").write_text(USER)
    (folder / "wrong.py").write_text(WRONG)
    strictly = ["--strict", "--follow-imports=silent", "--config-file=", "--no-error-summary"]
    told = subprocess.run(
        [sys.executable, "-m", "mypy", *strictly, "right.py", "wrong.py"],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(SOURCE.parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not told.stderr
    lines = told.stdout.splitlines()
    return {name: [line for line in lines if line.startswith(name)] for name in ("right.py", "wrong.py")}


def test_a_script_of_a_user_has_types(checked):
    assert [line for line in checked["right.py"] if ": error:" in line] == []
    revealed = [line.partition("Revealed type is ")[2].strip('"') for line in checked["right.py"]]
    cluster, *others = revealed
    assert cluster.startswith("def (data: Any, *, k: Any =, method: str =")
    names = [re.sub(r"[\w.]*\bilk\.[\w.]*\.", "", text) for text in (cluster.rpartition("-> ")[2], *others)]
    assert names == [
        "Result",
        "Result",
        "KMeans",
        "numpy.ndarray[tuple[Any, ...], numpy.dtype[Any]]",
        "str",
        "float",
    ]


def test_a_script_with_misspelt_names_is_refused(checked):
    errors = [line for line in checked["wrong.py"] if ": error:" in line]
    assert [line.rpartition("[")[2] for line in errors] == ["attr-defined]", "call-arg]", "call-arg]"]


def test_without_docstrings_everything_works():
    script = (
        "import ilk; print(ilk.KMeans.__doc__, ilk.KMeans(2, random_state=0).fit([[0.0], [1], [9]]).labels_)"
    )
    told = subprocess.run([sys.executable, "-OO", "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout == "None [0 0 1]\n"

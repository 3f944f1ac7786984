"""Fixtures shared by all tests: where tables are, clusters that run, and how many bad inputs were tried."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from tests.engines.clusters import Cluster, running

HERE = Path(__file__).parent
OWN = HERE / "data"
SHARED = HERE.parents[1] / "shared" / "data"
FOLDERS = (OWN, SHARED / "tables", SHARED / "gagolewski" / "data")


def find_table(name: str) -> Path | None:
    """Where a test table is: ours where its licence lets us keep it, else beside the checkout, if anywhere."""
    paths = (folder / f"{name}.csv" for folder in FOLDERS)
    return next((path for path in paths if path.exists()), None)


def absent(*names: str) -> str:
    """Why a test is skipped that needs tables which a clone has not."""
    return (
        f"needs tables that the repository does not hold ({', '.join(names)}), and ../shared/data is absent"
    )


def table_path(name: str) -> Path:
    """A test table as a file; a test that needs one which is not here is skipped."""
    return find_table(name) or pytest.skip(absent(name))


def at_hand(
    cases: Iterable[Any], table: Callable[[Any], str] = str, name: Callable[[Any], str] = str
) -> list[Any]:
    """The cases of a test whose tables are here; all that need other tables are one case, skipped, that names them."""
    cases = list(cases)
    here = [case for case in cases if table(case) == "iris" or find_table(table(case))]
    params = [pytest.param(*(case if isinstance(case, tuple) else (case,)), id=name(case)) for case in here]
    rest = [case for case in cases if case not in here]
    if rest:
        reason = absent(*dict.fromkeys(map(table, rest)))
        first = rest[0] if isinstance(rest[0], tuple) else (rest[0],)
        params.append(pytest.param(*first, id="absent", marks=pytest.mark.skip(reason)))
    return params


def numeric_table(name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """The columns of an all-numeric test table, and its target."""
    if name == "iris":  # scikit-learn has it, cell for cell
        iris = load_iris()
        return iris.data, iris.target_names[iris.target]
    with table_path(name).open(newline="") as file:
        header, *lines = list(csv.reader(file))
    target = header.index("target") if "target" in header else None
    cells = [[float(c) if c else np.nan for i, c in enumerate(line) if i != target] for line in lines]
    labels = None if target is None else np.array([line[target] for line in lines])
    return np.array(cells), labels


def golden(name: str) -> dict[str, Any]:
    """A file of figures computed by other programs; `tests/agreement/golden/README.md` says which."""
    return json.loads((HERE / "agreement" / "golden" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def cluster(request) -> Iterator[Cluster]:
    """A cluster on this machine, of the kind that a test is marked with; one at a time, each started once."""
    with running(request.param) as found:
        yield found


BAD_INPUTS: dict[str, int] = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.when == "call":
        report.bad_inputs = [str(m.args[0]) for m in item.iter_markers("badinput")]


def pytest_runtest_logreport(report):
    for name in getattr(report, "bad_inputs", ()):
        BAD_INPUTS[name] = BAD_INPUTS.get(name, 0) + 1


def pytest_terminal_summary(terminalreporter):
    if BAD_INPUTS:
        terminalreporter.write_line(
            f"bad inputs: {sum(BAD_INPUTS.values())} tried, of {len(BAD_INPUTS)} catalogued kinds"
        )


@pytest.fixture(scope="session")
def chromium():
    """A real browser, or a reason why there is none."""
    sync = pytest.importorskip("playwright.sync_api", reason="the page is not opened: pip install playwright")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("the page is not opened: install a browser with apt-get install -y chromium")
    with sync.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()

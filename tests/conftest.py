"""Fixtures shared by all tests: where tables are, clusters that run, and how many bad inputs were tried."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.engines.clusters import Cluster, running

HERE = Path(__file__).parent
OWN = HERE / "data"
SHARED = HERE.parents[1] / "shared" / "data"


def table_path(name: str) -> Path:
    """A test table: ours where its licence lets us keep it, else the one beside the checkout."""
    for folder in (OWN, SHARED / "tables"):
        if (folder / f"{name}.csv").exists():
            return folder / f"{name}.csv"
    pytest.skip(f"table {name} may not be copied into the project and ../shared/data is absent")


def numeric_table(name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """The columns of an all-numeric test table, and its target."""
    with table_path(name).open(newline="") as file:
        header, *lines = list(csv.reader(file))
    target = header.index("target") if "target" in header else None
    cells = [[float(c) if c else np.nan for i, c in enumerate(line) if i != target] for line in lines]
    labels = None if target is None else np.array([line[target] for line in lines])
    return np.array(cells), labels


def golden(name: str) -> dict:
    """A file of figures computed by other programs."""
    for folder in (HERE / "agreement" / "golden", SHARED / "golden"):
        if (folder / f"{name}.json").exists():
            return json.loads((folder / f"{name}.json").read_text())
    pytest.skip(f"golden figures {name} are absent")


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

"""The summary keeps its schema, and the page can be made of it, whatever the method and the table."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest

import ilk
from ilk.methods import names
from ilk.report.explanation import without_rows
from ilk.report.page import page
from tests.conftest import OWN
from tests.report.test_page import SCHEMA, read


def check(result):
    """As it is read back from the file, with and without what it says of single rows."""
    summary = json.loads(json.dumps(result.summary(), allow_nan=False))
    for document in (summary, without_rows(summary)):
        jsonschema.validate(document, SCHEMA)
        read(page(document))


QUICK = ("gaussian", "assorted", "k-means", "mean-shift", "spectral")  # one of each kind


@pytest.mark.parametrize(
    "method", [*QUICK, *(pytest.param(m, marks=pytest.mark.slow) for m in names() if m not in QUICK)]
)
def test_of_every_method(method):
    draws = np.random.default_rng(0)
    group = np.repeat([0, 1], [17, 13])
    check(ilk.cluster({"x": 9 * group + draws.normal(size=30), "y": draws.normal(size=30)}, method=method))


def test_of_one_group():
    draws = np.random.default_rng(1)
    for table in (draws.normal(size=(60, 2)), draws.exponential(size=(80, 1))):
        result = ilk.cluster({"x": table[:, 0], "y": table[:, -1]}, weight="y" if table.min() > 0 else None)
        assert result.k == 1
        check(result)


def test_of_groups_that_were_asked_for():
    draws = np.random.default_rng(2)
    table = {"x": draws.normal(size=50), "c": draws.choice(["a", "b"], 50)}
    check(ilk.cluster(table, k=3, min_size=5))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in OWN.glob("*.csv")))
def test_of_every_table(name):
    path = OWN / f"{name}.csv"
    columns = path.read_text(encoding="utf-8").split("\n", 1)[0].split(",")
    check(ilk.cluster(path, truth="target" if "target" in columns else None))

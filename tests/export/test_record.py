"""The JSON holds all that is needed: a program written from its description alone gives the same groups."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import multivariate_normal, norm

import ilk
from ilk.errors import UsageError
from ilk.export.record import record
from tests.export.conftest import assigned, gaussian_model, level_for_missing_model, with_blanks
from tests.export.test_sql import correlated_table, mixed_table

pytestmark = pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")


def place(document, row):
    """The group of a row (a mapping) by `docs/model-json.md`."""
    score = {"gaussian": gaussian, "assorted": assorted}.get(document["family"].split()[0], distance)
    cells = [value_of(document, cell, row) for cell in document["cells"]]
    if all(value is None for value in cells):
        return None
    pieces = [(piece["group"], score(document, piece, cells)) for piece in document["components"]]
    if score is distance:
        return max(pieces, key=lambda pair: pair[1])[0]
    groups = [g["letter"] for g in document["groups"]]
    totals = [np.logaddexp.reduce([s for g, s in pieces if g == letter]) for letter in groups]
    return groups[int(np.argmax(totals))]


def value_of(document, cell, row):
    value = row[cell["column"]]
    value = None if isinstance(value, float) and math.isnan(value) else value
    if cell["type"] == "0 or 1" or cell["type"] == "category":
        levels = cell.get("keys") or next(
            c["categories"] for c in document["columns"] if c["name"] == cell["column"]
        )
        text = str(value).lower() if isinstance(value, bool) else None if value is None else str(value)
        known = levels.index(text) if text in levels else None
        return len(levels) if known is None and cell.get("missing_is_a_category") else known
    if value is None:
        return None
    if cell["type"] == "value":
        return cell["keys"].index(value) if value in cell["keys"] else None
    if cell["type"] == "atom":
        return int(value == cell["keys"][1])
    if "scale" not in cell:
        return value
    if value == cell["atom"]:
        return None
    if cell["scale"] != "as it is":
        inside = min(max(value, cell["low"]), cell["high"])
        below = cell["scale"] == "log above low"
        gap = inside - cell["low"] if below else cell["high"] - inside
        value = math.log(gap / cell["deviation"] + cell["shift"]) * (1 if below else -1)
    return (value - cell["centre"]) / cell["spread"]


def distance(document, piece, cells):
    size = abs if document["family"] == "medians" else np.square
    scaled = [
        (x - centre) / cell["unit"]
        for x, centre, cell in zip(cells, piece["centre"], document["cells"], strict=True)
        if x is not None and cell["unit"] is not None
    ]
    return -sum(size(value) for value in scaled)


def gaussian(document, piece, cells):
    there = [i for i, x in enumerate(cells) if x is not None]
    mean, covariance = np.array(piece["mean"]), np.array(piece["covariance"])
    found = multivariate_normal(mean[there], covariance[np.ix_(there, there)], allow_singular=True)
    return math.log(piece["share"]) + found.logpdf([cells[i] for i in there])


def assorted(document, piece, cells):
    n_numbers = len(piece["mean"])
    if "covariance" in piece:
        numbers = cells[:n_numbers]
        total = (
            math.log(piece["share"]) if numbers == [None] * n_numbers else gaussian(document, piece, numbers)
        )
        return total + levels_of(piece, cells[n_numbers:])
    total = math.log(piece["share"])
    for x, mean, variance in zip(cells[:n_numbers], piece["mean"], piece["variance"], strict=True):
        total += 0 if x is None else norm.logpdf(x, mean, math.sqrt(variance))
    return total + levels_of(piece, cells[n_numbers:])


def levels_of(piece, codes):
    pairs = zip(codes, piece["categories"], strict=True)
    return sum(0 if code is None else math.log(shares[code]) for code, shares in pairs)


def equally_far(document, row, one, other):
    """Whether rounding decides between two groups of one centre each."""
    cells = [value_of(document, cell, row) for cell in document["cells"]]
    far = {piece["group"]: distance(document, piece, cells) for piece in document["components"]}
    return far[one] == pytest.approx(far[other], rel=1e-12)


def check(model, table):
    document = json.loads(json.dumps(record(model)))
    for row, group in zip(pa.table(table).to_pylist(), assigned(model, table), strict=True):
        mine = place(document, row)
        assert mine == group or (
            "centre" in document["components"][0] and equally_far(document, row, mine, group)
        )


@pytest.mark.parametrize("structure", ["VVV", "EEI"])
def test_gaussian(structure):
    model, columns = gaussian_model(structure, (0, 1, 0))
    check(model, with_blanks(columns))


@pytest.mark.parametrize("method", ["k-means", "k-medians"])
def test_centroids(method):
    table = {name: column for name, column in mixed_table().items() if name in ("skewed", "few", "flag")}
    check(ilk.cluster(pa.table(table), k=3, method=method).model, table)


def test_assorted():
    table = mixed_table()
    check(ilk.cluster(pa.table(table), k=3).model, table)


def test_numbers_in_one_block():
    table = correlated_table()
    check(ilk.cluster(pa.table(table), k=2).model, table)


@pytest.mark.parametrize("unit", [1e-200, 1e-158, 1e200])
def test_figures_beyond_those_of_a_double_are_refused(unit):
    """The square of such a unit is no number, or 0, by which nobody could place a row."""
    draws = np.random.default_rng(0)
    X = (draws.normal(size=(80, 2)) + 9 * (np.arange(80)[:, None] % 2)) * unit
    model = ilk.cluster(X, k=2, method="gaussian").model
    with pytest.raises(UsageError, match="too large or too small in the units of the table") as caught:
        record(model)
    assert caught.value.code == "not-exportable"


def test_small_units_are_written_as_long_as_their_squares_are_numbers():
    draws = np.random.default_rng(0)
    X = (draws.normal(size=(80, 2)) + 9 * (np.arange(80)[:, None] % 2)) * 1e-150
    check(ilk.cluster(X, k=2, method="gaussian").model, {"x0": X[:, 0], "x1": X[:, 1]})


def test_a_missing_cell_that_is_a_level_of_its_own():
    new = {"x": pa.array([None, None, 0.0, 4.0]), "soil": pa.array([None, "sand", "clay", None])}
    check(level_for_missing_model(), new)


def test_an_assorted_model_that_won_over_mixtures(sql_labels):
    """Its rows are in standard deviations before they are treated."""
    draws = np.random.default_rng(0)
    X = np.exp(np.vstack([draws.normal(0, 0.5, (120, 2)), draws.normal(3, 0.5, (80, 2))])) * [100, 0.1]
    result = ilk.cluster(X, threads=1, k=range(1, 4))
    assert (result.model.method, result.k) == ("assorted", 2)
    assert result.model.encoding.factor is not None
    document = json.loads(json.dumps(record(result.model)))
    table = {"x0": X[:, 0], "x1": X[:, 1]}
    letters = ["AB"[label] for label in result.labels]
    assert [place(document, dict(zip(table, map(float, row), strict=True))) for row in X] == letters
    assert sql_labels(result.model, table) == letters

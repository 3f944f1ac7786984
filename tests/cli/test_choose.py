"""`ilk choose`: the table of paradigms, and what it says of a table at hand; `ilk fit --method` for what it names."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ilk.analysis.choose import advise, entries
from ilk.analysis.job import Job
from ilk.methods import METHODS


def test_the_guide_names_every_paradigm(ilk):
    text = ilk("choose").stdout
    for entry in entries():
        assert entry.method in text
        assert entry.method in METHODS
    assert "Methods on similarities of pairs of rows" in text
    told = {entry["method"]: entry for entry in json.loads(ilk("choose", "--json").stdout)}
    assert (told["spectral"]["data"], told["mean-shift"]["k"], told["gaussian"]["membership"]) == (
        "similarities",
        "found",
        "soft",
    )


def test_a_table_with_levels_gets_the_assorted_model(ilk, blobs):
    text = ilk("choose", "blobs.csv", "--id", "code").stdout
    assert text.startswith(
        "blobs.csv       50 rows, 2 columns of numbers and 1 of categories, 0 missing values"
    )
    assert "use             assorted: categories or missing values" in text
    assert "mean-shift" in text.partition("not ")[2]
    assert text.splitlines()[-1] == "next            ilk fit blobs.csv"


def rings() -> np.ndarray:
    draws = np.random.default_rng(1)
    angle, outer = draws.uniform(0, 2 * np.pi, 300), np.arange(300) % 2
    radius = np.where(outer, 6.0, 3.0) + draws.normal(0, 0.1, 300)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def test_groups_that_wind_around_each_other_get_typical_cuts(ilk, tmp_path):
    np.savetxt(tmp_path / "rings.csv", rings(), delimiter=",", header="x,y", comments="")
    found = json.loads(ilk("choose", "rings.csv", "--json").stdout)
    assert [one["method"] for one in found["good"][:3]] == ["typical-cuts", "spectral", "gaussian"]
    assert "no straight line separates them" in found["good"][0]["why"]
    text = ilk("choose", "rings.csv").stdout
    assert text.splitlines()[-1] == "next            ilk fit rings.csv --method typical-cuts"
    assert ilk("fit", "rings.csv", "--method", "typical-cuts", "-q").exit_code == 0


@pytest.mark.parametrize("seed", range(3))
def test_one_cloud_does_not_wind(seed):
    X = np.random.default_rng(seed).normal(size=(200, 3))
    assert advise(Job(X)).good[0][0] == "gaussian"


def test_a_matrix_of_pairs_is_seen():
    X = rings()[:12]
    apart = np.sqrt(np.square(X[:, None] - X).sum(axis=2))
    assert "distances of pairs" in advise(Job(apart)).facts


def test_counts_are_seen():
    counts = np.random.default_rng(0).poisson(4, size=(60, 6)).astype(float)
    assert "information-bottleneck" in {method for method, _ in advise(Job(counts)).good}


def test_weights_leave_only_methods_that_take_them(ilk, blobs):
    text = ilk("choose", "blobs.csv", "--id", "code", "--ignore", "size", "--weight", "y").stdout
    assert "cannot use weights" in text
    assert "linkage:" not in text.partition("not ")[0]


def test_fit_writes_assignments_without_a_rule(ilk, blobs):
    assert (
        ilk(
            "fit", "blobs.csv", "--id", "code", "--ignore", "size", "--method", "spectral", "--k", "2"
        ).exit_code
        == 0
    )
    lines = (blobs.parent / "blobs.ilk" / "assignments.csv").read_text().splitlines()
    assert lines[0] == "row,code,group"
    assert (lines[1], lines[-1]) == ("0,r0,A", "49,s19,B")
    refused = ilk("assign", "blobs.ilk", "blobs.csv")
    assert refused.exit_code == 2
    assert "cannot assign new ones" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_number_of_groups_is_refused_where_it_is_found(ilk, blobs):
    refused = ilk("fit", "blobs.csv", "--method", "mean-shift", "--k", "3", "--ignore", "size")
    assert refused.exit_code == 2
    assert "mean-shift finds K itself" in refused.stderr

"""`ilk compare`: agreement, correspondence of groups, and rows that moved, in words and as JSON."""

from __future__ import annotations

import csv
import itertools
import json

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from ilk.measures.repeats import corresponding
from ilk.monitor.comparison import RunLabels, compare


def labels(groups, keys=None):
    groups = list(groups)
    return RunLabels("t", range(len(groups)) if keys is None else keys, groups)


@pytest.fixture
def runs(ilk, blobs):
    for k in (2, 3):
        assert (
            ilk(
                "fit", "blobs.csv", "--id", "code", "--method", "k-means", "--k", k, "-o", f"k{k}", "-q"
            ).exit_code
            == 0
        )
    return ilk


def test_correspondence_is_the_best_of_all_permutations():
    draws = np.random.default_rng(0)
    for _ in range(30):
        shared = draws.integers(0, 20, (4, 4))
        found = sum(shared[a, b] for a, b in corresponding(shared))
        best = max(shared[range(4), order].sum() for order in itertools.permutations(range(4)))
        assert found == best


def test_agreement_against_scikit_learn_and_moves_by_hand():
    draws = np.random.default_rng(1)
    one, two = draws.integers(0, 3, 200), draws.integers(0, 4, 200)
    found = compare(labels("ABC"[g] for g in one), labels("WXYZ"[g] for g in two))
    assert found["ari"] == pytest.approx(adjusted_rand_score(one, two), abs=1e-12)
    assert np.sum(found["counts"]) == found["rows"] == 200
    kept = sum(cell["rows"] for name in ("pairs", "joined", "split") for cell in found[name])
    assert found["moved"]["rows"] == sum(flow["rows"] for flow in found["moved"]["flows"]) == 200 - kept


def test_swapped_letters_are_the_same_groups():
    found = compare(labels("AABBC"), labels("BBCCA"))
    assert (found["ari"], found["moved"]["rows"]) == (1.0, 0)
    assert found["finding"] == "the same groups: no row moved"


def test_a_group_that_parts_is_no_row_that_moves():
    found = compare(labels("AAAAAABBBB"), labels("AAACCCBBBA"))
    assert [(c["first"], c["second"]) for c in found["split"]] == [("A", "C")]
    assert found["moved"]["flows"] == [{"from": "B", "to": "A", "rows": 1, "keys": [9]}]
    back = compare(labels("AAACCCBBBA"), labels("AAAAAABBBB"))
    assert [(c["first"], c["second"]) for c in back["joined"]] == [("C", "A")]


def test_rows_are_matched_by_key_in_any_order_and_rows_without_a_group_are_counted():
    found = compare(labels(["A", "A", "B", None], "wxyz"), labels(["B", "A", "A", "A", "C"], "yxwzq"))
    assert (found["rows"], found["without_group"], found["only_first"], found["only_second"]) == (3, 1, 0, 1)
    assert found["ari"] == 1.0


def test_two_runs_in_words(runs):
    result = runs("compare", "k2", "k3")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert "first           k2: 50 rows, 2 groups" in result.stdout
    assert "split from A; no row moved otherwise" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_as_json_and_every_row_in_a_file(runs, tmp_path):
    result = runs("compare", "k2", "k3", "--id", "code", "--json", "-o", "rows.csv")
    found = json.loads(result.stdout)
    assert found["matched_by"] == "code"
    assert {"ari", "nmi", "pairs", "joined", "split", "moved", "finding"} <= set(found)
    with (tmp_path / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["code", "first", "second", "moved"]
    assert len(rows) == 50
    assert runs("compare", "k2", "k3", "-o", "rows.csv").exit_code == 2  # not written over


def test_other_rows_are_said(runs, tmp_path):
    head, *rows = (tmp_path / "blobs.csv").read_text().splitlines()
    (tmp_path / "fewer.csv").write_text("\n".join([head, *rows[5:]]) + "\n")
    runs("fit", "fewer.csv", "--method", "k-means", "--ignore", "code", "--k", 2, "-q")
    by_number = runs("compare", "k2", "fewer.ilk")
    assert "caution [other-table]" in by_number.stderr
    assert "--id column" in by_number.stderr
    runs("fit", "fewer.csv", "--id", "code", "--method", "k-means", "--k", 2, "-q", "--force")
    assert (
        runs("compare", "k2", "fewer.ilk").stdout == runs("compare", "k2", "fewer.ilk", "--id", "code").stdout
    )
    matched = runs("compare", "k2", "fewer.ilk", "--id", "code")
    assert matched.stderr == ""
    assert "5 rows in the first only" in matched.stdout
    assert "finding         the same groups: no row moved" in matched.stdout


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("k2", "nowhere"), "no-file"),
        (("k2", "blobs.csv"), "unknown-column"),
        (("k2", "k3", "--id", "nothing"), "unknown-column"),
        (("k2", "k3", "--id", "group"), "id-repeated"),
    ],
)
def test_refusals(runs, args, code):
    result = runs("compare", *args)
    assert result.exit_code in (2, 3)
    assert result.stderr.startswith(f"error [{code}]")
    assert result.stdout == ""


def test_runs_without_a_row_in_common(runs, tmp_path):
    (tmp_path / "other.csv").write_text("code,group\nq1,A\nq2,B\n")
    result = runs("compare", "k2", "other.csv", "--id", "code")
    assert result.exit_code == 3
    assert "error [no-common-rows]" in result.stderr

"""`ilk explain`: groups and rows in words, from the folder of a run."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def run(ilk, blobs):
    assert ilk("fit", "blobs.csv", "--id", "code", "--ignore", "size", "-q").exit_code == 0
    return "blobs.ilk"


def test_all_groups(ilk, run):
    lines = ilk("explain", run).stdout
    assert "A               30 rows, 60" in lines
    assert "it picks are B" in lines


def test_one_group(ilk, run):
    text = ilk("explain", run, "b").stdout
    assert "▲ x is higher: 9.2 on average, 4.4 in the whole table" in text
    assert "in short" in text
    assert "typical         row " in text
    assert ilk("explain", run, "B").stdout == text


def test_one_row_with_its_cells(ilk, run):
    text = ilk("explain", run, "--row", "31", "--data", "blobs.csv").stdout
    assert text.startswith("row 31          is in B")
    assert "x 9.1: B 9.2, A 1.2, all 4.4" in text
    assert "--data FILE" in ilk("explain", run, "--row", "31").stdout
    assert json.loads(ilk("explain", run, "--row", "31", "--json").stdout)["group"] == "B"


def test_json_is_the_group_of_the_summary(ilk, run):
    group = json.loads(ilk("explain", run, "A", "--json").stdout)
    assert group["rule"]["purity"] == 1.0
    assert len(json.loads(ilk("explain", run, "--json").stdout)) == 2


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["blobs.ilk", "Z"], 2, "no group 'Z'. The groups are A, B"),
        (["nowhere"], 2, "there is no run nowhere"),
        (["blobs.ilk", "--row", "50"], 2, "Rows are counted from 0 to 49"),
        (["blobs.csv"], 6, "not the summary of a run"),
    ],
)
def test_refusals_say_what_to_do(ilk, run, args, code, said):
    result = ilk("explain", *args)
    assert result.exit_code == code
    assert said in result.stderr


def test_a_summary_of_another_version_is_refused(ilk, run, tmp_path):
    path = tmp_path / "blobs.ilk" / "summary.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "version": [1, 5]}))
    result = ilk("explain", run)
    assert result.exit_code == 6
    assert "version [1, 5]" in result.stderr


def test_a_run_without_rows_says_so(ilk, blobs, tmp_path):
    assert ilk("fit", "blobs.csv", "--id", "code", "--no-rows", "-q").exit_code == 0
    assert "typical" not in ilk("explain", "blobs.ilk", "A").stdout
    assert "r17" not in (tmp_path / "blobs.ilk" / "report.html").read_text(encoding="utf-8")
    assert "r17" not in (tmp_path / "blobs.ilk" / "summary.json").read_text(encoding="utf-8")
    result = ilk("explain", "blobs.ilk", "--row", "3")
    assert result.exit_code == 2
    assert "Fit without --no-rows first" in result.stderr


def test_groups_can_be_named(ilk, blobs):
    assert ilk("fit", "blobs.csv", "--name", "B=the tall ones", "-q").exit_code == 0
    assert "the tall ones" in ilk("explain", "blobs.ilk", "the tall ones").stdout
    for bad, said in (
        ("C=x", "no group 'C' among 2"),
        ("B", "Use GROUP=TEXT"),
        ("B= ", "Use GROUP=TEXT"),
        ("2=x", "Use GROUP=TEXT"),
    ):
        result = ilk("fit", "nowhere.csv", "--k", "2", "--name", bad)  # said before the table is read
        assert result.exit_code == 2
        assert said in result.stderr


def test_a_name_for_a_group_that_was_not_found_is_a_caution(ilk, blobs, tmp_path):
    result = ilk("fit", "blobs.csv", "--name", "Q=x", "--name", "b=the tall ones")
    assert result.exit_code == 0
    assert "unknown-group  there is no group 'Q', so a name for it is not used" in result.stdout
    assert "the tall ones:" in result.stdout
    written = (tmp_path / "blobs.ilk" / "assignments.csv").read_text()
    assert written.count("the tall ones") == 20
    assert "the tall ones" in ilk("assign", "blobs.ilk", "blobs.csv", "-q").stdout

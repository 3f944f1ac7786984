"""`ilk regroup` and `ilk open` as they are typed."""

from __future__ import annotations

import json
import sys

import pytest


@pytest.fixture
def fitted(ilk, blobs):
    assert ilk("fit", blobs, "-q", "--k", "2").exit_code == 0
    return "blobs.ilk"


def test_groups_get_names_and_colours(ilk, fitted):
    done = ilk(
        "regroup", fitted, "--name", "a=the <low> ones", "--colour", "A=3", "-o", "named.ilk", "--json"
    )
    assert done.exit_code == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["groups"][0]["name"], summary["colours"]) == ("the <low> ones", {"A": 3})
    assert "the <low> ones" in ilk("explain", "named.ilk", "A").stdout


def test_groups_are_merged_on_the_command_line(ilk, blobs):
    assert ilk("fit", blobs, "-q", "--k", "3", "--merge", "none").exit_code == 0
    done = ilk("regroup", "blobs.ilk", blobs, "--merge", "A,C", "-o", "two.ilk")
    assert done.exit_code == 0, done.stderr
    assert "merged by hand" in done.stdout
    assert ilk("assign", "two.ilk", blobs).exit_code == 0


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (["--name", "Z=x", "-o", "n.ilk"], "unknown-group"),
        (["--colour", "A=9", "-o", "n.ilk"], "bad-colour"),
        (["--colour", "A", "-o", "n.ilk"], "bad-colour"),
        (["--split", "A", "-o", "n.ilk"], "no-table"),
        (["--name", "A=x"], "output-exists"),
    ],
)
def test_refusals_say_what_to_do(ilk, fitted, given, code):
    done = ilk("regroup", fitted, *given)
    assert done.exit_code == 2
    assert f"error [{code}]" in done.stderr


def test_the_page_says_what_it_needs(ilk, blobs, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "uvicorn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = ilk("open", blobs, "--no-browser")
    assert done.exit_code == 2
    assert "pip install 'ilk[app]'" in done.stderr


def test_the_page_of_nothing_is_refused(ilk):
    pytest.importorskip("uvicorn")
    done = ilk("open", "nothing.csv", "--no-browser")
    assert done.exit_code == 2
    assert "error [no-file]" in done.stderr

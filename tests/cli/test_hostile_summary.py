"""Summaries, types files and run folders from anywhere; and nothing that acts on a terminal gets to one."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import shlex
import time

import numpy as np
import pytest
from click.testing import CliRunner

from ilk.analysis.run_folder import json_bytes
from ilk.cli.main import cli
from ilk.errors import ModelFileError, UsageError, acts, quoted, shown
from ilk.report.reading import read_summary
from ilk.text import explain
from ilk.text.layout import Surface, line
from tests.store.hostile import at, paths
from tests.store.test_hostile_models import special

SUMMARIES = int(os.environ.get("ILK_FUZZ_SUMMARIES", "600"))
VALUES = [
    None, True, 0, -1, 1, 10**30, 10**400, 1e308, 0.5, "", "x", "A", "\x1b[31mESC", "\u2028", "\u202e", "\x9b",
    "\ud800", [], {}, [[]], {"a": 1}, ["x"], [None], "<b>", [1, 2, 3], ["A", "B"],
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a mixed table."""
    folder = tmp_path_factory.mktemp("run")
    draws = np.random.default_rng(0)
    group = draws.integers(0, 3, 150)
    cells = zip(
        draws.normal(5 * group), draws.normal(-3 * group), np.array(["r", "g", "b"])[group], strict=True
    )
    (folder / "t.csv").write_text("a,b,c\n" + "".join(f"{a:.3f},{b:.3f},{c}\n" for a, b, c in cells))
    made = CliRunner().invoke(cli, ["fit", str(folder / "t.csv"), "-o", str(folder / "r"), "-q"])
    assert made.exit_code == 0
    return folder / "r"


def told(*args):
    """What a command says: no bug, and no character that acts."""
    made = CliRunner().invoke(cli, [str(arg) for arg in args])
    text = made.stdout + made.stderr
    assert made.exit_code in (0, 2, 3, 6), text
    assert not [c for c in text if c != "\n" and acts(c)], repr(text)
    return made


def mutated(document, draw):
    """A summary with a field or two changed or left out, most often one that is told."""
    made = copy.deepcopy(document)
    places = [p for p in paths(document) if p]
    near = [p for p in places if p[0] in ("groups", "rows", "chosen", "reproduce", "schema", "version")]
    for _ in range(draw.choice([1, 1, 2])):
        path = draw.choice(near if draw.random() < 0.9 else places)
        with contextlib.suppress(KeyError, IndexError, TypeError):  # an earlier change took it away
            parent = at(made, path[:-1])
            if draw.random() < 0.25:
                del parent[path[-1]]
            else:
                parent[path[-1]] = copy.deepcopy(draw.choice(VALUES))
    return made


def test_mutated_summaries_are_told_or_refused(run, tmp_path):
    draw, refused, surface = random.Random(SUMMARIES), 0, Surface()
    document = json.loads((run / "summary.json").read_text())
    path, placed, cells = (
        tmp_path / "summary.json",
        {"row": 3, "group": "A", "second": "B"},
        {"a": 1.0, "c": "r"},
    )
    for _ in range(SUMMARIES):
        path.write_text(json.dumps(mutated(document, draw)))
        try:
            summary = read_summary(str(path))
        except ModelFileError:
            refused += 1
            continue
        texts = [explain.overview(summary, surface), json_bytes(summary["groups"]).decode()]
        for group in summary["groups"]:
            texts.append(explain.group_text(summary, group["letter"], surface))
        with contextlib.suppress(UsageError):  # there may be no such group
            texts.append(explain.row_text(summary, placed, cells, surface))
        assert not [c for text in texts for c in text if c != "\n" and acts(c)]
    assert 0.1 * SUMMARIES < refused < SUMMARIES


def test_mutated_summaries_on_the_command_line(run, tmp_path):
    draw = random.Random(6)
    document = json.loads((run / "summary.json").read_text())
    (tmp_path / "assignments.csv").write_bytes((run / "assignments.csv").read_bytes())
    for _ in range(15):
        (tmp_path / "summary.json").write_text(json.dumps(mutated(document, draw)))
        for args in (["explain"], ["explain", "A"], ["explain", "--row", "3"], ["compare", tmp_path]):
            told(args[0], tmp_path, *args[1:])


WRONG = {
    "nothing": b"",
    "no JSON": b"{",
    "no Unicode": b'{"schema": "\xff"}',
    "deep": b"[" * 100_000,
    "another document": b'{"schema": "other"}',
    "no number": b'{"schema": "ilk-summary", "version": [NaN, 1]}',
    "no version": b'{"schema": "ilk-summary", "version": null}',
    "no groups": b'{"schema": "ilk-summary", "version": [2, 0]}',
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_summary_is_refused(tmp_path, what):
    (tmp_path / "summary.json").write_bytes(WRONG[what])
    for path in (tmp_path, tmp_path / "summary.json"):
        made = told("explain", path)
        assert made.exit_code == 6
        assert "error [not-a-summary]" in made.stderr


@pytest.mark.badinput("D16")
@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "loop"])
@pytest.mark.parametrize("name", ["summary.json", "model.ilk", "assignments.csv"])
def test_what_is_no_plain_file_in_a_run_is_refused_at_once(run, tmp_path, name, kind):
    for other in {"summary.json", "model.ilk", "assignments.csv"} - {name}:
        (tmp_path / other).write_bytes((run / other).read_bytes())
    special(tmp_path / name, kind)
    began = time.perf_counter()
    args = {
        "summary.json": ["explain", tmp_path],
        "model.ilk": ["export", tmp_path, "--json"],
        "assignments.csv": ["compare", tmp_path, tmp_path],
    }[name]
    assert told(*args).exit_code == 6
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize("name", ["summary.json", "model.ilk", "assignments.csv"])
def test_links_inside_a_run_are_refused(run, tmp_path, name):
    for one in ("summary.json", "model.ilk", "assignments.csv"):
        if one == name:
            (tmp_path / one).symlink_to(run / one)
        else:
            (tmp_path / one).write_bytes((run / one).read_bytes())
    args = {
        "summary.json": ["explain", tmp_path],
        "model.ilk": ["export", tmp_path, "--json"],
        "assignments.csv": ["explain", tmp_path, "--row", "3"],
    }[name]
    made = told(*args)
    assert made.exit_code == 6
    assert "link" in made.stderr or "plain file" in made.stderr


def test_a_table_and_a_run_may_be_named_by_a_link(run, tmp_path):
    (tmp_path / "t.csv").symlink_to(run.parent / "t.csv")
    (tmp_path / "r").symlink_to(run)
    assert told("explain", tmp_path / "r").exit_code == 0
    assert told("assign", tmp_path / "r", tmp_path / "t.csv").exit_code == 0


@pytest.mark.badinput("D16")
@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "loop"])
def test_a_types_file_that_is_no_plain_file_is_refused_at_once(run, tmp_path, kind):
    made = told("columns", run.parent / "t.csv", "--types", special(tmp_path / "types.toml", kind))
    assert made.exit_code == 2
    assert "error [types-file]" in made.stderr


def test_assignments_that_make_no_sense_are_refused(run, tmp_path):
    for one in ("summary.json", "model.ilk"):
        (tmp_path / one).write_bytes((run / one).read_bytes())
    for text in ("row,group,probability\n0,A,many\n1,A,few\n", "row,size\n0,3\n1,4\n"):
        (tmp_path / "assignments.csv").write_text(text)
        assert told("explain", tmp_path, "--row", "1").exit_code == 6


def test_names_of_files_and_arguments_do_not_act():
    odd = "a\x1b[31m\u2028\u202e\x9b.csv"
    for args in (
        ["fit", odd],
        ["explain", odd],
        ["export", odd, "--json"],
        [odd],
        ["fit", "x.csv", f"--{odd}"],
    ):
        assert told(*args).exit_code == 2


def test_text_of_a_table_does_not_act(tmp_path):
    rows = [f"{i % 7 + 9 * (i % 2)},\x1b[3{i % 2}m\x9b{i % 2}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["n\x1b[31m\u2028,c\u202e", *rows]) + "\n")
    run = tmp_path / "r"
    for args in (
        ["fit", tmp_path / "t.csv", "-o", run, "--name", "A=x\x1b[31m\u2029"],
        ["columns", tmp_path / "t.csv"],
        ["explain", run],
        ["explain", run, "A"],
        ["explain", run, "--row", "3", "--data", tmp_path / "t.csv"],
        ["check", run, tmp_path / "t.csv"],
        ["compare", run, run],
        ["judge", run, "--truth", "c\u202e", "--data", tmp_path / "t.csv"],
        ["choose", tmp_path / "t.csv"],
    ):
        assert told(*args).exit_code == 0


def test_commands_to_type_are_quoted():
    for name in ("a b", "it's", "$(reboot)", "x;y", "`z`", "-"):
        assert shlex.split(f"ilk explain {quoted(name)} A") == ["ilk", "explain", name, "A"]


def test_colours_are_ours_alone():
    surface = Surface(colour=True)
    (text,) = line("la\x1b[31mbel", [("wo\x1b[0mrd", "bold red")], surface)
    shown_text = surface.fit(f"{text}\nraw \x1b]0;title\x07 \x9b \u2028")
    assert shown_text.count("\x1b") == 4  # two pieces, painted and ended
    assert "\x1b[1;31mwo\\x1b[0mrd\x1b[0m" in shown_text
    assert not [c for c in shown_text.replace("\x1b", "") if c != "\n" and acts(c)]
    assert Surface().fit("\x1b[31mred\x1b[0m") == "\\x1b[31mred\\x1b[0m"


def test_ends_of_lines_are_shown():
    assert shown("a\u2028b\u2029c\x85d") == "a\\u2028b\\u2029c\\x85d"

"""A model file is data: whatever it says, it is refused in one sentence or gives an answer."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import ilk
from ilk import store
from ilk.errors import ModelFileError, UsageError
from ilk.model.model import KIND
from tests.store import hostile
from tests.store.ordeal import many

FILES = int(os.environ.get("ILK_FUZZ", "800"))


def test_hostile_files_are_refused_or_answered(tmp_path):
    tried = many(FILES, 7, tmp_path, hostile.bases())
    print(
        f"{tried.count} files, {tried.refused} refused, slowest {tried.slowest:.2f} s, {tried.grew / 2**20:.0f} MB"
    )
    assert not {told: times for told, (times, _) in tried.escaped.items()}
    assert tried.calls["assign"] > FILES / 10


def tree_of(name):
    packed = store.unpack(hostile.bases()[name].data)
    return store.restore(packed.document, packed.arrays)


def load(tmp_path, tree):
    store.save(tmp_path / "m.ilk", KIND, *store.flatten(tree), overwrite=True)
    return ilk.load(tmp_path / "m.ilk")


@pytest.mark.parametrize("name", hostile.NAMES)
def test_files_of_every_kind_are_read_as_they_were_written(tmp_path, name):
    base = hostile.bases()[name]
    (tmp_path / "m.ilk").write_bytes(base.data)
    ilk.load(tmp_path / "m.ilk").save(tmp_path / "again.ilk")
    assert (tmp_path / "again.ilk").read_bytes() == base.data


LETTERS = [
    "A' END AS \"group\" FROM ranked; CREATE TABLE owned AS SELECT 42 AS x; SELECT CASE WHEN TRUE THEN '",
    "A\nCREATE TABLE owned2 AS SELECT 43 AS x;\n--",
    "\x1b[31mRED\x1b]0;title\x07",
    "=cmd|' /C calc'!A0",
    "<img src=x>",
    "\u202e",
    "a",
    "Ä",
    "",
    "A" * 9,
]


@pytest.mark.badinput("C10")
@pytest.mark.parametrize("mark", LETTERS)
def test_letters_are_letters(tmp_path, mark):
    tree = tree_of("means")
    tree["letters"][0] = mark
    with pytest.raises(ModelFileError, match="entry letters of the model") as caught:
        load(tmp_path, tree)
    assert caught.value.code == "model-damaged"
    assert str(caught.value).isprintable()


def test_levels_of_a_truth_value_are_truth_values(tmp_path):
    tree = tree_of("assorted")
    flag = next(column for column in tree["schema"]["columns"] if column["name"] == "flag")
    flag["levels"][1] = (
        'true) then "flag" end as "flag" from read) select 1; create table owned3 as select 44; --'
    )
    with pytest.raises(ModelFileError, match="truth value"):
        load(tmp_path, tree)


SENSELESS = {
    "weights add up to 2": ("gaussian", ["parameters", "mixing"], lambda a: 2 * a),
    "no variance": ("gaussian", ["parameters", "log_variance"], lambda a: a - 1e4),
    "a variance too large": ("VVV", ["parameters", "log_variance"], lambda a: a + 1e3),
    "axes of another structure": ("EEE", ["parameters", "axes"], lambda a: np.stack([a] * 3)),
    "no axes": ("VVV", ["parameters", "axes"], lambda a: None),
    "a flat covariance": ("VVV", ["parameters", "log_variance"], lambda a: a - [[0, 60, 60]]),
    "a centre out of sight": ("means", ["parameters", "centre"], lambda a: a + 1e200),
    "a level that one lacks": (
        "process",
        ["parameters", "level"],
        lambda a: a * ([[0], *[[1]] * (len(a) - 1)]),
    ),
    "shares of levels that do not add up": ("soft", ["parameters", "given"], lambda a: a / 2),
    "a group without a component": ("means", ["groups"], lambda a: [0, 0, 0]),
    "no columns": ("means", ["schema", "columns"], lambda a: []),
    "rows without end": ("means", ["training", "rows"], lambda a: 10**400),
    "decimals without end": ("means", ["training", "columns", 0, "decimals"], lambda a: 10**6),
    "counts of other bins": ("means", ["training", "columns", 0, "counts"], lambda a: a[1:]),
    "edges that fall": ("means", ["training", "columns", 0, "edges"], lambda a: a[::-1].copy()),
    "options as a list": ("means", ["options"], lambda a: [1]),
    "a method with a bell": ("means", ["method"], lambda a: "k-means\x07"),
    "a name that is half a character": ("means", ["names", 0], lambda a: "\ud800"),
    "a deviation of nothing": ("cells", ["treatment", "numbers", 0, "deviation"], lambda a: 0.0),
    "no weight": ("cells", ["treatment", "numbers", 0, "weight"], lambda a: 0),
    "a scale from behind": ("cells", ["treatment", "scales"], lambda a: [-1] * len(a)),
    "keys out of order": ("cells", ["treatment", "categories", 0, "keys"], lambda a: a[::-1]),
    "weights of other levels": ("cells", ["treatment", "categories", 0, "weight"], lambda a: a[1:]),
    "sizes that cannot be added": ("means", ["sizes"], lambda a: a * 0 + 1.7e308),
}


@pytest.mark.badinput("H7")
@pytest.mark.parametrize("what", SENSELESS)
def test_senseless_fields_are_named(tmp_path, what):
    name, path, change = SENSELESS[what]
    tree = copy.deepcopy(tree_of(name))
    parent = hostile.at(tree, path[:-1])
    parent[path[-1]] = change(parent[path[-1]])
    with pytest.raises(ModelFileError, match=r"the entry .* of the model is not valid") as caught:
        load(tmp_path, tree)
    assert caught.value.code == "model-damaged"


def bomb(arrays, entry):
    """A file of a right model with more arrays, and in its document something made of them."""
    data = hostile.bases()["gaussian"].data
    length = int.from_bytes(data[8:16], "little")
    header, blob = json.loads(data[16 : 16 + length]), data[16 + length : -32]
    for name, dtype, count, size in arrays:
        header["arrays"].append({"dtype": dtype, "name": name, "shape": [count]})
        blob += bytes(count * size + -(count * size) % 64)
    header["document"]["x"] = entry
    return hostile.signed(header, blob)


BOMBS = {
    "flags": ([("zz", "u1", 2**21, 1)], [{"$flags": "zz"}] * 2000),
    "numbers": ([("zz", "i8", 2**17, 8)], [{"$numbers": "zz"}] * 20_000),
    "texts": ([("zy", "u1", 0, 1), ("zz", "i8", 2**17, 8)], [{"$texts": ["zy", "zz"]}] * 20_000),
    "arrays": ([("zz", "f8", 2**17, 8)], [{"$array": "zz"}] * 20_000),
    "lists": ([], [[]] * 300_000),
    "objects": ([], [{"a": 1}] * 120_000),
    "letters": ([("zy", "u1", 0, 1), ("zz", "i8", 2**18, 8)], {"$texts": ["zy", "zz"]}),
}
WEIGHED = """
import resource, sys, time, ilk, ilk.model.file
from ilk.errors import ModelFileError
for path in sys.argv[1:]:
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    try:
        ilk.load(path)
        code = "loaded"
    except ModelFileError as error:
        code = error.code
    took = time.perf_counter() - began
    print(code, took, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.badinput("H6")
def test_no_file_asks_for_more_than_a_little_memory(tmp_path):
    """In a process of its own, which has not needed memory before."""
    for what, parts in BOMBS.items():
        (tmp_path / f"{what}.ilk").write_bytes(bomb(*parts))
    done = subprocess.run(
        [sys.executable, "-c", WEIGHED, *(tmp_path / f"{what}.ilk" for what in BOMBS)],
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(ilk.__file__))},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    told = dict(zip(BOMBS, (line.split() for line in done.stdout.splitlines()), strict=True))
    assert {what: code for what, (code, _, _) in told.items()} == dict.fromkeys(BOMBS, "model-damaged") | {
        "letters": "loaded"  # named once: as large as the file says
    }
    assert sum(float(megabytes) for _, _, megabytes in told.values()) < 64
    assert max(float(seconds) for _, seconds, _ in told.values()) < 2  # one on a machine that is not busy


def test_a_level_for_every_row_takes_no_square_of_memory():
    """Levels were looked up in a matrix of levels by levels."""
    from ilk.paradigms.bottleneck import cells_as_levels

    code = np.array([[-1], [0], [2**19 - 1]], dtype=np.int32)
    made = cells_as_levels(np.empty((3, 0)), code, (), np.array([0, 2**19]))
    assert made.sum(axis=1).tolist() == [0.0, 1.0, 1.0]
    assert made[2, -1] == 1.0


@pytest.mark.badinput("D16")
@pytest.mark.parametrize("kind", ["fifo", "device", "socket", "folder", "loop", "empty"])
def test_what_is_no_plain_file_is_refused_at_once(tmp_path, kind):
    path = special(tmp_path / "m.ilk", kind)
    began = time.perf_counter()
    with pytest.raises(ModelFileError):
        ilk.load(path)
    assert time.perf_counter() - began < 1


def special(path, kind):
    """A path that is no plain file."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        import socket

        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.relpath(path))
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    else:
        path.touch()
    return path


def test_a_link_to_a_model_is_followed_where_the_user_names_it(tmp_path):
    (tmp_path / "m.ilk").write_bytes(hostile.bases()["means"].data)
    (tmp_path / "link.ilk").symlink_to(tmp_path / "m.ilk")
    assert ilk.load(tmp_path / "link.ilk").k == 3


def test_a_model_that_no_select_could_hold_is_not_exported(tmp_path):
    from ilk.export.dialects import DUCKDB
    from ilk.export.sql import select

    tree = tree_of("cells")
    column = next(c for c in tree["schema"]["columns"] if c["levels"])
    column["levels"][0] = "x" * 100_000
    hostile.more_groups(tree, 200)
    with pytest.raises(UsageError, match="characters") as caught:
        select(load(tmp_path, tree), DUCKDB, "data")
    assert caught.value.code == "not-exportable"

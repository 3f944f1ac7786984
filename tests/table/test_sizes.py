"""Large lines, large cells and many columns: read, typed and saved, not refused."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import ilk
from ilk import store
from ilk.errors import DataError, ModelFileError
from ilk.table.doubles import same_columns
from ilk.table.read import read
from ilk.table.schema import infer
from tests.store.hostile import edited

ROWS = "".join(f"{i},{i % 3}\n" for i in range(30))


@pytest.mark.badinput("D8")
@pytest.mark.parametrize(
    ("head", "n_rows"),
    [
        ("a,b\n1," + "x" * 300_000 + "\n", 31),
        ('a,b\n1,"' + "x\n" * 300_000 + '"\n', 31),
        ("a" * 300_000 + ",b\n", 30),
        ("a,b\n1," + "x" * 10_000_000 + "\n", 31),
    ],
    ids=["cell", "lines in a cell", "name", "beyond the usual line"],
)
def test_long_cells_are_read(tmp_path, head, n_rows):
    path = tmp_path / "long.csv"
    path.write_text(head + ROWS)
    before = csv.field_size_limit()
    table = read(str(path))
    assert (table.n_rows, table.n_columns) == (n_rows, 2)
    assert csv.field_size_limit() == before


@pytest.mark.badinput("D8")
def test_a_header_above_the_sample_is_read(tmp_path):
    path = tmp_path / "genes.csv"
    names = ",".join(f"ENSG{i:011d}" for i in range(11_000))
    lines = [",".join(str((i * j) % 7) for i in range(11_000)) for j in range(1, 3)]
    path.write_text("\n".join([names, *lines]) + "\n")
    assert read(str(path)).n_columns == 11_000


@pytest.mark.badinput("D21")
def test_numbers_and_text_that_json_has_and_a_table_has_not(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": ' + "9" * 4000 + ', "b": 1}\n' + '{"a": 1, "b": 2}\n' * 5)
    with pytest.raises(DataError, match="'a'") as caught:
        ilk.cluster(str(path))
    assert caught.value.code == "data-infinite"
    path.write_text('{"a\\ud800": "\\ud800", "b": 1}\n{"a\\ud800": "x", "b": 2}\n' * 5)
    table = read(str(path))
    assert table.names == ("a\\ud800", "b")
    assert set(table.column("a\\ud800").to_pylist()) == {"\\ud800", "x"}


def wide_tree(n):
    columns = [
        {
            "name": f"c{j}",
            "kind": "numeric",
            "levels": None,
            "note": "",
            "low": 0.5 * j,
            "distinct": j,
            "used": True,
        }
        for j in range(n)
    ]
    columns[3] = {
        "name": "ü\ud800",
        "kind": "categorical",
        "levels": ["a", "b"],
        "extra": {"deep": [1, [2.0]]},
    }
    training = [{"name": f"c{j}", "edges": np.arange(j % 5 + 1.0), "counts": [0.0, 1.0]} for j in range(n)]
    return {"schema": {"columns": columns}, "training": {"columns": training}}


def same(one, two):
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, two)
    return type(one) is type(two) and one == two


@pytest.mark.parametrize("n", [70, 3_000, 100_000])
def test_a_tree_of_many_columns_comes_back(n):
    tree = wide_tree(n)
    data = store.pack("model", *store.flatten(tree))
    back = store.unpack(data)
    assert same(tree, store.restore(back.document, back.arrays))
    assert data == store.pack(
        "model", *store.flatten(store.restore(back.document, store.unpack(data).arrays))
    )


def test_small_trees_are_written_as_before():
    assert "$list" not in json.dumps(store.flatten(wide_tree(70))[0])


def test_a_packed_list_that_lies_is_refused():
    data = store.pack("model", *store.flatten(wide_tree(3_000)))
    loop = {"of": "a0", "parts": {"lists": [0, "a1"]}}
    wrong = [None, 3, [], {}, "a0", [{"of": "a0"}], [{"of": "a0", "parts": {}}], [loop], [loop, 5], [None]]

    def put(value):
        def change(header):
            header["document"]["schema"]["columns"]["$list"] = value

        return change

    for value in wrong:
        found = store.unpack(edited(data, put(value)))
        with pytest.raises(ModelFileError):
            store.restore(found.document, found.arrays)


def test_many_columns_are_compared_in_no_time():
    draws = np.random.default_rng(0)
    cells = draws.normal(size=(20, 3_000))
    cells[:, 7] = 2 * cells[:, 5] + 1
    table = read({f"c{j}": cells[:, j] for j in range(3_000)})
    assert same_columns(table, infer(table), ()) == {"c7": "c5"}


@pytest.mark.slow
def test_a_model_of_many_columns_is_saved(tmp_path):
    draws = np.random.default_rng(0)
    cells = draws.normal(size=(20, 2_500)) + 5 * (np.arange(20) < 10)[:, None]
    table = {f"c{j}": cells[:, j] for j in range(2_500)}
    found = ilk.cluster(table, k=2, method="k-means")
    found.save(tmp_path / "m.ilk")
    assert ilk.load(tmp_path / "m.ilk").assign(table).equals(found.assign(table))

"""`ilk check`: drift in words, as JSON, and as an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import ilk as package
from ilk.errors import ModelFileError
from ilk.monitor.drift import check
from ilk.table.read import read

DATA = Path(__file__).parents[1] / "data"

pytestmark = pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")


def customers(n_rows, seed, *, share=0.4, shift=0.0, level="mail"):
    draws = np.random.default_rng(seed)
    side = draws.random(n_rows) < share
    return {
        "spend": draws.normal(np.where(side, 80, 20) + shift, 5).round(2),
        "visits": draws.normal(np.where(side, 9, 3), 1).round(2),
        "way": np.where(side, "shop", np.where(draws.random(n_rows) < 0.5, "web", level)),
    }


def write(table, path):
    names = list(table)
    lines = [",".join(names), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def run(ilk, tmp_path):
    write(customers(400, 0), tmp_path / "customers.csv")
    assert ilk("fit", "customers.csv", "--k", "2", "-q").exit_code == 0
    return ilk


def test_rows_of_the_same_kind_have_not_drifted(run, tmp_path):
    write(customers(300, 1), tmp_path / "new.csv")
    result = run("check", "customers.ilk", "new.csv", "--fail-on", "drift")
    assert result.exit_code == 0, result.stdout + result.stderr
    assert "verdict         no drift: the rows look like those the model was fitted on" in result.stdout
    assert "as before       3 columns" in result.stdout
    again = run("check", "customers.ilk", "customers.csv", "--json")
    found = json.loads(again.stdout)
    assert max(column["nats"] for column in found["columns"]) == 0
    assert [group["before"] for group in found["groups"]] == [group["now"] for group in found["groups"]]


def test_what_moved_is_named(run, tmp_path):
    write(customers(300, 2, share=0.6, shift=15, level="fax"), tmp_path / "new.csv")
    result = run("check", "customers.ilk", "new.csv", "--fail-on", "drift")
    assert result.exit_code == 4
    assert "verdict         drift: " in result.stdout
    assert "spend 71" in result.stdout
    assert "new categories  way: fax (" in result.stdout
    assert "changed" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert run("check", "customers.ilk", "new.csv").exit_code == 0  # without --fail-on it only says so
    found = json.loads(run("check", "customers.ilk", "new.csv", "--json").stdout)
    assert (found["schema"], found["verdict"]["word"]) == ("ilk-check", "drift")
    assert found["columns"][0]["moved"]
    assert found["columns"][0]["column"] in ("spend", "way")
    assert found["unseen"][0]["categories"] == ["fax"]
    for group in found["groups"]:
        assert group["low"] <= group["now"] <= group["high"]


def test_rows_unlike_any_are_counted(run, tmp_path):
    table = customers(300, 3)
    table["visits"][:60] = 30.0
    write(table, tmp_path / "new.csv")
    found = json.loads(run("check", "customers.ilk", "new.csv", "--json").stdout)
    assert found["novelty"]["moved"]
    assert found["novelty"]["beyond_all"] >= 60
    assert found["novelty"]["rows"] == [0, 1, 2, 3, 4]


def test_few_rows_are_said_to_be_few(run, tmp_path):
    write(customers(6, 4), tmp_path / "new.csv")
    text = " ".join(run("check", "customers.ilk", "new.csv").stdout.split())
    assert "only 6 rows: small changes cannot be seen" in text


def test_blanks_that_come_are_a_move(run, tmp_path):
    table = customers(300, 5)
    table["spend"] = [value if i % 2 else "" for i, value in enumerate(table["spend"])]
    write(table, tmp_path / "new.csv")
    result = run("check", "customers.ilk", "new.csv")
    assert "missing 50" in result.stdout


def test_weights_are_those_of_the_table():
    table = customers(400, 6)
    heavy = np.where(table["spend"] > 50, 3.0, 1.0)
    model = package.cluster(pa.table({**table, "w": heavy}), k=2, weight="w").model
    new = customers(400, 7)
    unweighted = check(model, read(pa.table({**new, "w": np.ones(400)})))
    weighted = check(model, read(pa.table({**new, "w": np.where(new["spend"] > 50, 3.0, 1.0)})))
    assert unweighted["verdict"]["word"] == "drift"
    assert weighted["verdict"]["word"] == "no drift"


def test_a_model_file_remembers_its_columns_and_an_old_one_does_not(run, tmp_path):
    from dataclasses import replace

    model = package.load(tmp_path / "customers.ilk" / "model.ilk")
    old = replace(model, training={"rows": 400, "source": "customers.csv"})
    old.save(tmp_path / "old.ilk")
    result = run("check", "old.ilk", "customers.csv")
    assert result.exit_code == 0
    assert "did not store the columns" in result.stdout
    bad = replace(model, training={**model.training, "columns": [{"name": "spend", "counts": "?"}]})
    with pytest.raises(ModelFileError, match="what the model stores"):
        check(bad, read(tmp_path / "customers.csv"))


@pytest.mark.parametrize(
    ("content", "exit_code", "code"),
    [
        ("spend,visits,way\n", 3, "no-rows"),
        ("spend,visits\n1,2\n3,4\n", 3, "absent-column"),
        ("spend,visits,way\nmuch,2,web\nlittle,3,web\n", 3, "type-changed"),
        (None, 2, "no-file"),
    ],
)
def test_refusals(run, tmp_path, content, exit_code, code):
    if content is not None:
        (tmp_path / "new.csv").write_text(content)
    result = run("check", "customers.ilk", "new.csv")
    assert result.exit_code == exit_code, result.stderr
    assert result.stderr.startswith(f"error [{code}]: ")
    assert result.stdout == ""


def test_absent_columns_may_be_taken_as_missing(run, tmp_path):
    table = customers(300, 8)
    del table["way"]
    write(table, tmp_path / "new.csv")
    result = run("check", "customers.ilk", "new.csv", "--absent", "missing")
    assert result.exit_code == 0, result.stderr
    assert "caution [absent-column]" in result.stderr
    assert "way" in result.stdout


def test_halves_of_one_table_have_not_drifted():
    """Of columns and shares none moves; a model of few rows does not call others unlike its own."""
    table = read(DATA / "wine.csv")
    columns = pa.table({name: table.column(name) for name in table.names if name != "target"})
    order = np.random.default_rng(3).permutation(table.n_rows)
    model = package.cluster(columns.take(order[:89]), k=3, method="gaussian").model
    found = check(model, read(columns.take(order[89:])))
    assert found["verdict"]["word"] == "no drift"
    assert not found["novelty"]["counted"]

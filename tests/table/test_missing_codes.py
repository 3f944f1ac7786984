"""Numbers that mean "no answer" are missing cells, columns that say the same count once; both are said and undone."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ilk
from ilk.export.dialects import DUCKDB
from ilk.export.sql import select
from ilk.measures.external import ari
from ilk.table.encode import encode, encode_new
from ilk.table.files import TextOptions
from ilk.table.out_of_core.text import read_text_pieces
from ilk.table.read import read
from ilk.table.schema import Schema, types_text
from ilk.table.understand import understand
from tests.conftest import OWN
from tests.table.tables import in_pieces

N = 400


def items(code, share=0.04, n_items=3, steps=(1, 2, 3, 4, 5), seed=0):
    """Columns of a survey, each with some cells that are the code."""
    draws = np.random.default_rng(seed)
    made = {f"q{j}": draws.choice(steps, N) for j in range(n_items)}
    for cells in made.values():
        cells[draws.random(N) < share] = code
    return made


def codes_of(table, **asked):
    schema = understand(read(table), **asked)
    return {c.name: c.missing_codes for c in schema.columns if c.missing_codes}


@pytest.mark.parametrize("code", [9, 99, 999, -1, -9, -99, 98, 88, -999])
def test_codes_of_items(code):
    table = items(code)
    assert codes_of(table) == {name: (float(code),) for name in table}


@pytest.mark.parametrize("code", [9, -1, -9])
def test_one_digit_is_no_evidence_in_one_column(code):
    assert codes_of(items(code, n_items=1)) == {}


def test_two_codes_and_two_sides():
    table = items(99)
    table["q0"][:9], table["q1"][:7] = 98, -99
    assert codes_of(table) == {"q0": (98.0, 99.0), "q1": (99.0, -99.0), "q2": (99.0,)}


def test_a_rare_code_counts_where_others_have_it():
    table = items(99)
    table["q3"] = np.where(np.arange(N) == 5, 99, np.arange(N) % 5 + 1)
    assert codes_of(table)["q3"] == (99.0,)
    assert codes_of({"q3": table["q3"]}) == {}


@pytest.mark.parametrize(
    ("name", "cells"),
    {
        "a scale that reaches 9": np.arange(N) % 9 + 1,
        "a scale that starts at -1": np.arange(N) % 5 - 1,
        "prices": np.where(np.arange(N) % 9 == 0, 999, np.arange(N) * 2),
        "ages": 18 + np.arange(N) % 82,
        "most are codes": np.where(np.arange(N) % 3 == 0, np.arange(N) % 5, 999),
        "counts with a tail": np.random.default_rng(1).poisson(3, N),
        "heavy tail": np.random.default_rng(2).standard_cauchy(N).round(),
        "infinite": np.where(
            np.arange(N) % 7 == 0, np.inf, np.where(np.arange(N) % 9 == 0, -1, np.arange(N) % 4 + 1)
        ),
        "two values": np.where(np.arange(N) % 2, 1, 99),
        "text": np.where(np.arange(N) % 9 == 0, "99", "1"),
    }.items(),
)
def test_numbers_that_are_numbers(name, cells):
    assert codes_of({"a": cells, "b": np.roll(cells, 7)}) == {}, name


def test_a_code_leaves_a_column_of_two_values():
    draws = np.random.default_rng(0)
    table = {f"g{j}": np.where(draws.random(N) < 0.05, 9, draws.choice([1, 2], N)) for j in range(2)}
    schema = understand(read(table))
    assert [(c.kind, c.levels, c.missing_codes) for c in schema.columns] == [
        ("binary", ("1", "2"), (9.0,))
    ] * 2
    encoded = encode(read(table), schema)
    kept = np.arange(N) if encoded.kept is None else encoded.kept
    np.testing.assert_array_equal(encoded.codes[:, 0] < 0, (table["g0"] == 9)[kept])
    assert encode_new(read(table), schema, encoded.encoding).warnings == ()


def test_said_counted_and_undone():
    table = {**items(99), "age": np.where(np.arange(N) % 40 == 0, -99, 20 + np.arange(N) % 50)}
    schema = understand(read(table))
    text = dict(schema.warnings)["missing-codes"]
    for name, code in (("q0", 99), ("q1", 99), ("q2", 99), ("age", -99)):
        n = int((table[name] == code).sum())
        assert f"'{name}' ({n} times)" in text
        assert schema[name].missing == n
    assert "99 in 'q0'" in text
    assert "-99 in 'age'" in text
    assert text.endswith('name the type: types={"q0": "numeric"}')
    assert codes_of(table, types={"q0": "numeric", "age": "numeric"}) == {"q1": (99.0,), "q2": (99.0,)}
    assert '# "q0" = "numeric"' in types_text(schema)
    assert Schema.from_dict(schema.to_dict()) == schema


def test_the_answer_is_that_of_blanks():
    """In memory, in pieces, from a NumPy array; `assign` and the SELECT know the codes, too."""
    group = np.arange(N) % 2
    draws = np.random.default_rng(0)
    table = {
        f"q{j}": np.clip((2 + 2 * group + draws.integers(-1, 2, N)), 1, 5).astype(float) for j in range(6)
    }
    table["size"] = 9.0 * group + draws.normal(size=N)
    blank = {name: cells.copy() for name, cells in table.items()}
    for name in [*table][:6]:
        at = draws.random(N) < 0.05
        table[name][at], blank[name][at] = 99, np.nan
    found, wanted = ilk.cluster(table), ilk.cluster(blank)
    assert found.k == 2
    np.testing.assert_array_equal(found.labels, wanted.labels)
    array = ilk.cluster(np.column_stack([*table.values()]))
    np.testing.assert_array_equal(array.labels, wanted.labels)
    group_of = found.assign(table)["group"].to_pylist()
    assert group_of == wanted.assign(blank)["group"].to_pylist()
    con = duckdb.connect()
    con.register("data", read(table).arrow)
    assert [row[-1] for row in con.sql(select(found.model, DUCKDB, "data")).fetchall()] == group_of


def test_in_pieces_as_in_memory(tmp_path):
    path = tmp_path / "t.csv"
    table = {**items(9), **{f"p{j}": cells for j, cells in enumerate(items(99, seed=1).values())}}
    table["same"] = table["p0"] * 3 - 1
    rows = [table, *zip(*table.values(), strict=True)]
    path.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    whole = understand(read(path))
    pieces = read_text_pieces(str(path), "t.csv", TextOptions())
    pieces.gather({}, 1)
    parts = understand(pieces)
    assert parts == whole
    assert [str(w) for w in parts.warnings] == [str(w) for w in whole.warnings]
    assert whole["p0"].missing_codes == (99.0,)


def test_codes_of_many_values_in_pieces_as_in_memory(tmp_path):
    ages = np.random.default_rng(0).integers(18, 90, 300)
    ages[::30] = -99
    table = pa.table({"age": ages, "x": np.arange(300) ** 0.5})
    pieces = in_pieces(table, tmp_path / "t.parquet", 60)
    pieces.gather({}, 1)
    assert understand(pieces)["age"].missing_codes == understand(read(table))["age"].missing_codes == (-99.0,)


def likert(n_rows=800):
    """Two kinds of people, twelve items with 99, gender with 9, age with -99, ids from 10001; and who is which."""
    draws = np.random.default_rng(0)
    kind = draws.choice(2, n_rows, p=[0.6, 0.4])
    middle = np.where(kind == 0, 2.0, 4.1)
    table = {"RespondentID": np.arange(10001, 10001 + n_rows)}
    for j in range(12):
        answer = np.clip(draws.normal(middle if j < 8 else 3, 0.8, n_rows).round(), 1, 5)
        table[f"Q{j + 1}"] = np.where(draws.random(n_rows) < 0.06, 99, answer).astype(int)
    table["Gender"] = draws.choice([1, 2, 9], n_rows, p=[0.5, 0.45, 0.05])
    table["Age"] = np.where(draws.random(n_rows) < 0.05, -99, draws.integers(18, 80, n_rows))
    return table, kind


def test_a_survey_without_an_option():
    table, kind = likert()
    blank = {
        name: np.where(np.isin(cells, [9, 99, -99]), np.nan, cells)
        for name, cells in table.items()
        if name != "RespondentID"
    }
    found, wanted = ilk.cluster(table), ilk.cluster(blank)
    np.testing.assert_array_equal(found.labels, wanted.labels)
    assert found.k == 2
    assert ari(found.labels, kind) >= 0.9
    schema = found.model.schema
    assert schema["RespondentID"].reason == "identifier: all different"
    assert (schema["Gender"].kind, schema["Gender"].missing_codes) == ("binary", (9.0,))


# --- columns that say the same


def same(table, **asked):
    return {c.name: c.reason for c in understand(read(table), **asked).columns if c.reason.startswith("says")}


def test_a_label_and_its_number():
    years = np.random.default_rng(0).integers(1, 17, N)
    table = {"education": [f"level {y}" for y in years], "x": np.arange(N) ** 0.5, "education_num": years}
    assert same(table) == {"education_num": "says the same as 'education'"}
    text = dict(understand(read(table)).warnings)["same-columns"]
    assert text.startswith("'education_num' says the same as 'education'")
    assert text.endswith('types={"education_num": "numeric"}')
    assert same(table, types={"education_num": "numeric"}) == {}
    assert same(table, ignore=["education"]) == {}


def test_units_and_codes_of_one_thing():
    draws = np.random.default_rng(0)
    celsius, sex = draws.normal(20, 5, N).round(3), draws.choice(["f", "m"], N)
    table = {
        "celsius": celsius,
        "fahrenheit": celsius * 1.8 + 32,
        "sex": sex,
        "male": np.where(sex == "m", 1, 0),
    }
    assert set(same(table)) == {"fahrenheit", "male"}
    assert set(same(pd.DataFrame(table).astype({"sex": "category"}))) == {"fahrenheit", "male"}


def test_the_same_thing_with_blanks_and_without_end():
    celsius = np.random.default_rng(0).normal(20, 5, 200).round(1)
    celsius[::9] = np.nan
    assert set(same({"celsius": celsius, "fahrenheit": celsius * 1.8 + 32})) == {"fahrenheit"}
    celsius[5] = np.inf  # refused later, with its row
    assert same({"celsius": celsius, "fahrenheit": celsius * 1.8 + 32}) == {}


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e300])
def test_numbers_of_any_size(size):
    x = np.random.default_rng(0).normal(size=N).round(1) * size
    assert set(same({"x": x, "y": -x, "z": np.roll(x, 1)})) <= {"y"}


def test_columns_that_are_like_each_other_and_not_the_same():
    draws = np.random.default_rng(0)
    x = draws.normal(size=N)
    table = {
        "x": x,
        "near": x + 0.02 * draws.normal(size=N),
        "curved": np.exp(x),
        "a": np.arange(N) % 3,
        "other way": np.array([5, 0, 9])[np.arange(N) % 3],
        "rare": np.where(np.arange(N) < 2, "y", "n"),
        "rare too": np.where(np.arange(N) < 2, 7, 8),
        "blanks": np.where(np.arange(N) % 50 == 0, np.nan, np.arange(N) % 3),
    }
    assert same(table) == {}


def test_real_tables():
    assert {
        name: same(OWN / f"{name}.csv")
        for name in ("credit_approval", "soybean_small", "wine", "zoo", "penguins")
    } == {
        "credit_approval": {"a5": "says the same as 'a4'"},
        "soybean_small": {"a27": "says the same as 'a26'"},
        "wine": {},
        "zoo": {},
        "penguins": {},
    }


def test_a_saved_model_knows_the_codes(tmp_path):
    result = ilk.cluster(items(99), k=2, seed=0)
    result.model.save(tmp_path / "m.ilk")
    again = ilk.load(tmp_path / "m.ilk")
    assert again.schema == result.model.schema
    assert again.schema["q0"].missing_codes == (99.0,)

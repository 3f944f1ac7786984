"""Typing of columns: the rules, the user's word over them, the types file, and real tables."""

from __future__ import annotations

import datetime
import json
import tomllib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ilk.errors import DataError, ModelFileError, UsageError
from ilk.table.encode import encode
from ilk.table.read import read
from ilk.table.schema import Schema, infer, read_types, types_text
from tests.conftest import OWN, SHARED, table_path

KINDS = [folder / "manifest.json" for folder in (SHARED, OWN)]
MANIFEST = {n: e for path in KINDS if path.exists() for n, e in json.loads(path.read_text()).items()}
N = 30
REAL = list(np.linspace(0.1, 7.3, N))


def only(values, **asked):
    """The info of column c (beside a real number column) and the codes of the warnings."""
    table = read(
        pa.table({"c": values, "x": REAL}) if not isinstance(values, list) else {"c": values, "x": REAL}
    )
    schema = infer(table, **asked)
    return schema["c"], [code for code, _ in schema.warnings]


RULES = {
    "real": (REAL, "numeric", []),
    "whole": (list(range(0, 2 * N, 2)), "numeric", []),
    "run": (list(range(N)), "numeric", ["looks-like-id"]),
    "few": ([i % 4 for i in range(N)], "numeric", ["few-values"]),
    "two": ([i % 2 for i in range(N)], "binary", []),
    "two-real": ([0.5 + i % 2 for i in range(N)], "numeric", []),
    "bool": ([i % 3 == 0 for i in range(N)], "binary", []),
    "text": ([("a", "b", "c")[i % 3] for i in range(N)], "categorical", []),
    "text-two": ([("a", "b")[i % 2] for i in range(N)], "binary", []),
    "id": ([f"row {i}" for i in range(N)], "left out", ["id-like"]),
    "many": ([f"row {i % 25}" for i in range(N)], "left out", ["id-like"]),
    "constant": ([3] * N, "left out", []),
    "constant-text": (["a"] * N, "left out", []),
    "missing": ([None] * N, "left out", ["all-missing"]),
    "date": ([datetime.date(2020, 1, 1 + i % 20) for i in range(N)], "left out", []),
    "date-text": ([f"2020-01-{1 + i % 20:02}" for i in range(N)], "left out", []),
    "duration": ([datetime.timedelta(i) for i in range(N)], "left out", []),
    "digits": ([str(i % 3) for i in range(N)], "categorical", ["digits-as-text"]),
    "dressed": ([f"1,{i % 3}00.5" for i in range(N)], "categorical", ["number-format"]),
    "dressed-many": ([f"{i},5" for i in range(N)], "left out", ["number-format"]),
    "percent": ([f"{i % 3} %" for i in range(N)], "categorical", ["number-format"]),
    "alike": ([("Yes", "yes ", "no")[i % 3] for i in range(N)], "categorical", ["look-alike-categories"]),
    "accents": (
        [("caf\u00e9", "cafe\u0301", "tea")[i % 3] for i in range(N)],
        "categorical",
        ["look-alike-categories"],
    ),
    "doubtful": ([("a", "b", "-")[i % 3] for i in range(N)], "categorical", ["doubtful-marks"]),
    "sentinel": ([-999.0 if i % 5 == 0 else v for i, v in enumerate(REAL)], "numeric", ["sentinel"]),
    "huge": ([2**60 + 3 * i for i in range(N)], "numeric", ["precision-lost"]),
}
CASES = {
    "A3": ["missing"],
    "A5": ["constant"],
    "A15": ["huge"],
    "A16": ["bool"],
    "A17": ["date", "date-text", "duration"],
    "A19": ["digits"],
    "A20": ["dressed", "dressed-many", "percent"],
    "A21": ["sentinel", "doubtful"],
    "A25": ["constant-text"],
    "A27": ["id", "many"],
    "A29": ["alike", "accents"],
}


@pytest.mark.parametrize("rule", RULES)
def test_rules(rule):
    values, kind, codes = RULES[rule]
    info, found = only(values)
    assert info.kind == kind
    assert found == codes
    assert info.reason


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(r, marks=pytest.mark.badinput(c), id=f"badinput[{c}-{r}]")
        for c, rs in CASES.items()
        for r in rs
    ],
)
def test_rules_of_the_catalogue(rule):
    test_rules(rule)


def test_ordered_category():
    sizes = pd.Categorical((["S", "M", "L"] * N)[:N], categories=["S", "M", "L", "XL"], ordered=True)
    schema = infer(read(pd.DataFrame({"c": sizes, "x": REAL})))
    assert schema["c"].kind == "ordinal"
    assert schema["c"].levels == ("S", "M", "L")
    enum = pl.Series((["S", "M", "L"] * N)[:N], dtype=pl.Enum(["S", "M", "L"]))
    assert infer(read(pl.DataFrame({"c": enum}))).columns[0].levels == ("S", "M", "L")


@pytest.mark.badinput("A24")
def test_zero_has_one_level():
    info, _ = only([0.0 if i % 3 else -0.0 if i % 2 else 1.0 for i in range(N)])
    assert info.levels == ("0", "1")


@pytest.mark.badinput("A26")
def test_level_seen_once_is_kept():
    info, _ = only(["rare"] + [("a", "b")[i % 2] for i in range(N - 1)])
    assert info.levels == ("a", "b", "rare")


@pytest.mark.badinput("A27")
def test_whole_number_identifier_is_left_out():
    table = read({"customer_id": [1000 + 7 * i for i in range(N)], "x": REAL})
    assert infer(table)["customer_id"].reason == "identifier: all different"


@pytest.mark.parametrize(
    ("values", "code"),
    [
        pytest.param(
            [1 if i % 2 else "a" for i in range(N)], "data-mixed", marks=pytest.mark.badinput("A22")
        ),
        pytest.param(
            [str(i) for i in range(N - 1)] + ["oops"], "data-mixed", marks=pytest.mark.badinput("A22")
        ),
        pytest.param([[1, 2]] * N, "unsupported-type", marks=pytest.mark.badinput("A23")),
        pytest.param([{"a": 1}] * N, "unsupported-type", marks=pytest.mark.badinput("A23")),
        pytest.param([1 + 2j] * N, "unsupported-type", marks=pytest.mark.badinput("A18")),
        pytest.param([b"x"] * N, "unsupported-type", marks=pytest.mark.badinput("A23")),
        pytest.param(
            [__import__("decimal").Decimal(i) for i in range(N)],
            "unsupported-type",
            marks=pytest.mark.badinput("A14"),
        ),
        pytest.param(pa.array([{"a": 1}] * N), "unsupported-type", marks=pytest.mark.badinput("D14")),
        pytest.param(pa.array([b"1"] * N), "unsupported-type", marks=pytest.mark.badinput("D14")),
    ],
)
def test_columns_that_are_refused_unless_ignored(values, code):
    with pytest.raises(DataError, match="'c'") as error:
        only(values)
    assert error.value.code == code
    assert "1+2j" not in str(error.value)
    assert only(values, ignore="c")[0].kind == "left out"


@pytest.mark.badinput("A22")
def test_mixed_text_names_kinds_counts_and_rows():
    with pytest.raises(DataError, match=r"29 numbers and 1 texts such as 'oops'.*rows 29 \(1 in all\)"):
        only([str(i) for i in range(N - 1)] + ["oops"])
    with pytest.raises(DataError, match=r"mixes number and text.*number: rows 1, 3.*text: rows 0, 2"):
        only([1 if i % 2 else "a" for i in range(N)])


def test_decimal_of_a_file_is_converted():
    info, codes = only(pa.array([i * 0.25 for i in range(N)]).cast(pa.decimal128(9, 2)))
    assert info.kind == "numeric"
    assert codes == ["decimal"]


@pytest.mark.badinput("B3")
def test_no_usable_column_lists_the_reasons():
    with pytest.raises(DataError, match="'a': constant; 'b': identifier") as error:
        infer(read({"a": [1, 1, 1], "b": ["x", "y", "z"]}))
    assert error.value.code == "no-columns"
    with pytest.raises(DataError, match="at least one column whose cells differ"):
        infer(read({"a": [1, 1, 1], "b": [None, None, None]}))
    with pytest.raises(DataError, match="list has no columns") as error:
        infer(read([[], []]))
    assert error.value.code == "no-columns"


def test_asked_kinds():
    assert only([i % 4 for i in range(N)], types={"c": "categorical"})[0].levels == ("0", "1", "2", "3")
    assert only([i % 4 for i in range(N)], types={"c": "ordinal"})[0].kind == "ordinal"
    assert only([str(i) for i in range(N)], types={"c": "numeric"})[0].kind == "numeric"
    assert only(["lo", "hi", "mid"] * 10, types={"c": ["lo", "mid", "hi"]})[0].levels == ("lo", "mid", "hi")
    assert only(["lo", "hi", "mid"] * 10, types={"c": "ignore"})[0].kind == "left out"
    assert only([1 if i % 2 else "a" for i in range(N)], types={"c": "categorical"})[0].levels == ("1", "a")
    assert only([True, None, False] * 10, types={"c": "numeric"})[0].distinct == 2
    digits = pa.array(["10", "+9", None] * 10).dictionary_encode()
    assert only(digits, types={"c": "numeric"})[0].distinct == 2
    info, codes = only([None] * N, types={"c": "numeric"})
    assert (info.kind, info.reason, codes) == ("left out", "all missing", ["all-missing"])
    info, _ = only(["a"] * N, types={"c": "categorical"})
    assert (info.kind, info.reason) == ("left out", "constant")


@pytest.mark.parametrize("cells", [[0, 1, -1], [1.0, 2.5, 3.0]])
def test_counts_are_whole_and_not_negative(cells):
    assert only([0, 1, 7] * 10, types={"c": "count"})[0].kind == "count"
    with pytest.raises(DataError, match="'c' holds numbers that are not counts") as error:
        only(cells * 10, types={"c": "count"})
    assert error.value.code == "not-counts"


@pytest.mark.parametrize(
    ("types", "error", "text"),
    [
        ({"d": "numeric"}, UsageError, "lacks"),
        ({"c": "nummeric"}, UsageError, "Did you mean 'numeric'"),
        ({"c": "binary"}, DataError, "3 categories, not two"),
        ({"c": "ordinal"}, DataError, "no order"),
        ({"c": "numeric"}, DataError, "30 cells are no numbers"),
        ({"c": ["lo", "hi"]}, DataError, "'mid'"),
        ({"c": ["lo", "lo"]}, UsageError, "different texts"),
    ],
)
def test_asked_kinds_that_cannot_be(types, error, text):
    with pytest.raises(error, match=text):
        only(["lo", "hi", "mid"] * 10, types=types)


def test_dates_as_numbers_when_asked():
    table = read({"when": [datetime.date(1970, 1, 1 + i) for i in range(20)]})
    schema = infer(table, types={"when": "numeric"})
    assert "days since 1970-01-01" in schema["when"].reason
    assert encode(table, schema).numbers[:, 0].tolist() == list(range(20))


@pytest.mark.badinput("A17")
def test_spans_and_times_of_day_as_numbers_when_asked():
    """In days, with a missing cell among them, and longer than a double holds every microsecond of."""
    cells = {
        "span": [datetime.timedelta(1), None, datetime.timedelta(200_000), datetime.timedelta(hours=6)],
        "clock": [datetime.time(6), datetime.time(12), None, datetime.time(18)],
        "day": [None, datetime.date(1970, 1, 3), datetime.date(1970, 1, 2), datetime.date(1969, 12, 31)],
    }
    table = read(cells)
    schema = infer(table, types=dict.fromkeys(cells, "numeric"))
    assert [c.reason for c in schema.columns] == [
        "as asked: days",
        "as asked: days",
        "as asked: days since 1970-01-01 UTC",
    ]
    np.testing.assert_array_equal(
        encode(table, schema).numbers,
        [[1, 0.25, np.nan], [np.nan, 0.5, 2], [200_000, np.nan, 1], [0.25, 0.75, -1]],
    )


@pytest.mark.badinput("A17")
def test_months_and_days_are_no_number():
    spans = pa.array([(1, i, 0) for i in range(N)], pa.month_day_nano_interval())
    info, _ = only(spans)
    assert (info.kind, info.reason) == (
        "left out",
        "months and days; write the part that matters as a number",
    )
    with pytest.raises(DataError, match="'c' was asked to be numeric and holds months and days") as error:
        only(spans, types={"c": "numeric"})
    assert error.value.code == "not-numeric"


def test_special_columns_are_not_used():
    table = read({"x": REAL, "w": REAL, "t": ["a", "b"] * 15, "name": [f"n{i}" for i in range(N)]})
    schema = infer(table, weight="w", truth="t", id="name")
    assert [c.name for c in schema.used] == ["x"]
    assert tomllib.loads(types_text(schema))["types"] == {"x": "numeric"}
    with pytest.raises(UsageError, match="Did you mean 'name'"):
        infer(table, id="nam")


def test_types_file_comes_back(tmp_path):
    sizes = pd.Categorical((["S", "M", "L"] * N)[:N], categories=["S", "M", "L"], ordered=True)
    odd = 'quo"te\\ \n\u202e'
    table = read(pd.DataFrame({odd: REAL, "size": sizes, "id": [f"n{i}" for i in range(N)]}))
    schema = infer(table)
    (tmp_path / "types.toml").write_text(types_text(schema), encoding="utf-8")
    assert read_types(tmp_path / "types.toml") == {odd: "numeric", "size": ["S", "M", "L"], "id": "ignore"}
    again = infer(table, types=tmp_path / "types.toml")
    assert [c.kind for c in again.columns] == [c.kind for c in schema.columns]
    assert "\u202e" not in types_text(schema)


@pytest.mark.parametrize(
    "text",
    [
        "[types]\na = 1",
        "a = 'numeric'",
        "[types]\na = 'x'\na = 'y'",
        "[types",
        "x" * 2**21,
        "a=" + "[" * 5000,
    ],
)
@pytest.mark.badinput("D21")
def test_bad_types_files(text, tmp_path):
    (tmp_path / "t.toml").write_text(text)
    with pytest.raises(UsageError) as error:
        read_types(tmp_path / "t.toml")
    assert error.value.code == "types-file"


def test_types_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read_types(tmp_path / "none.toml")


@pytest.mark.parametrize(
    "plain",
    [
        None,
        {},
        {"columns": [1]},
        {"columns": [{"name": "a", "kind": "odd", "reason": ""}]},
        {"columns": [{"name": "a", "kind": "binary", "reason": "", "levels": None}]},
        {"columns": [{"name": "a", "kind": "binary", "reason": "", "levels": ["x", "x"]}]},
        {"columns": [{"name": "a", "kind": "numeric", "reason": "", "missing": -1}]},
        {"columns": [{"name": "a", "kind": "numeric", "reason": ""}] * 2},
        {"columns": [], "weight": 3},
        {"columns": [{"name": "a", "kind": "numeric", "reason": "", "missing_codes": ["99"]}]},
        {"columns": [{"name": "a", "kind": "numeric", "reason": "", "missing_codes": [float("nan")]}]},
    ],
)
def test_schema_from_bad_data(plain):
    with pytest.raises(ModelFileError, match="schema"):
        Schema.from_dict(plain)


@pytest.mark.badinput("C10")
@pytest.mark.badinput("C11")
def test_odd_names_are_kept_and_escaped():
    names = ["😀", "a\x1b[31m", "\u202eabc", "x" * 10_000, "line\nbreak", "<script>", "zero\u200bwidth"]
    table = read(dict.fromkeys(names, REAL))
    schema = infer(table)
    assert [c.name for c in schema.columns] == names
    for line in schema.print_lines():
        assert line["column"].isprintable()
        assert len(line["column"]) <= 40


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_kinds_of_the_data_folder(name):
    """Kinds as in the manifest; digits that stand for categories are numeric with a warning."""
    entry = MANIFEST[name]
    table = read(table_path(name))
    assert table.n_rows == entry["rows"]
    schema = infer(table, truth=entry["label"])
    warned = " ".join(text for _, text in schema.warnings)
    for column in entry["columns"]:
        info = schema[column["name"]]
        wanted = "categorical" if column["kind"] == "nominal" else column["kind"]
        assert info.missing == column.get("missing", 0)
        if info.kind == "left out":
            assert info.reason == "constant"
        elif info.kind != wanted:
            assert (info.kind, wanted in ("categorical", "ordinal")) == ("numeric", True)
            assert "few-values" in [code for code, _ in schema.warnings] or "looks-like-id" in warned
        elif info.levels is not None:
            assert len(info.levels) == column["levels"]
    types = {
        c["name"]: "categorical"
        for c in entry["columns"]
        if c["kind"] in ("nominal",) and c.get("levels", 2) > 2
    }
    assert {c.kind for c in infer(table, types=types, truth=entry["label"]).used} <= {
        "numeric",
        "binary",
        "categorical",
    }

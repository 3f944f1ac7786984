"""The SELECT gives every row the group that `assign` gives it: every family, blanks, ties, hostile names."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import ilk
from ilk.errors import UsageError, acts
from ilk.export.dialects import DIALECTS, DUCKDB, SPARK, dialect_of, number
from ilk.export.record import record
from ilk.export.scores import weighted
from ilk.export.sql import select
from ilk.families.covariance import STRUCTURES
from ilk.table.read import read
from tests.conftest import at_hand, numeric_table, table_path
from tests.export.conftest import assigned, gaussian_model, level_for_missing_model, with_blanks

DATA = Path(__file__).parents[1] / "data"
UNFREE = ("acidity", "banknote_swiss", "diabetes_reaven", "faithful", "ruspini", "xclara")
HOSTILE = [
    'say "hi"', "it's", "back\\slash", "tick`tick", "two\nlines", "tab\t", "-- comment", "*/ end", " padded ",
    "'); drop table data; --", "group", "input", "given", "blank", "best", "piece_1", "p1_rest_1_1", "SELECT",
    "a.b", "größe", "日本", "{0}", "%s", "x" * 300,
]  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")


@pytest.mark.parametrize("structure", [s.name for s in STRUCTURES])
@pytest.mark.parametrize("group_of", [(0, 1, 2), (0, 1, 0)], ids=["groups", "merged"])
def test_gaussian_mixtures_of_every_structure(sql_labels, structure, group_of):
    model, columns = gaussian_model(structure, group_of)
    assert sql_labels(model, columns) == assigned(model, columns)
    gaps = with_blanks(columns)
    found = sql_labels(model, gaps)
    assert found == assigned(model, gaps)
    assert found[0] is None
    assert len(set(found)) == model.k + 1


@pytest.mark.parametrize("structure", ["VVV", "VVI"])
def test_one_and_many_columns(sql_labels, structure):
    for n_columns in (2, 4):
        model, columns = gaussian_model(structure, columns=n_columns)
        gaps = with_blanks(columns)
        assert sql_labels(model, gaps) == assigned(model, gaps)


@pytest.mark.parametrize("method", ["k-means", "k-medians", "trimmed-k-means"])
@pytest.mark.parametrize("scale", ["standard", None])
def test_centroids_with_two_level_columns_and_blanks(sql_labels, method, scale):
    table = read(DATA / "penguins.csv")
    result = ilk.cluster(table, k=4, method=method, scale=scale, truth="target", ignore="year")
    columns = {name: table.column(name) for name in table.names}
    assert sql_labels(result.model, columns) == assigned(result.model, columns)


def mixed_table(n_rows=400):
    """Numbers that call for a logarithm, that are often zero, of few values; levels, truth values, blanks."""
    draws = np.random.default_rng(5)
    side = draws.integers(0, 2, n_rows)
    often_zero = np.where(draws.random(n_rows) < 0.4, 0.0, draws.gamma(2.0, 3.0 + 9 * side))
    table = {
        "skewed": np.exp(draws.normal(2 + side, 0.8)),
        "mirrored": 100 - np.exp(draws.normal(1 + side, 0.7)),
        "often zero": often_zero,
        "few": draws.integers(0, 4, n_rows) + 2 * side,
        "level": np.array(["a", "b", "c'd"])[(draws.integers(0, 3, n_rows) + side) % 3],
        "flag": draws.random(n_rows) < 0.2 + 0.6 * side,
        "code": 1 + draws.integers(0, 2, n_rows),
    }
    gaps = {name: draws.random(n_rows) < 0.1 for name in table}
    return {name: pa.array(values.tolist(), mask=gaps[name]) for name, values in table.items()}


def test_assorted_tables(sql_labels):
    table = mixed_table()
    result = ilk.cluster(pa.table(table), k=3)
    assert result.model.treat is not None
    assert {c.kind for c in result.model.treat.plan.categories} == {"levels", "values", "atom"}
    assert max(result.model.treat.scales) > 0  # a logarithm is among the scales
    new = with_blanks({name: column.to_pylist() for name, column in table.items()})
    new["level"] = pa.array(
        ["new level" if i % 7 == 0 else v for i, v in enumerate(new["level"].to_pylist())]
    )
    new["skewed"] = pa.array(
        [None if v is None else 50 * v for v in new["skewed"].to_pylist()]
    )  # out of range
    assert sql_labels(result.model, new) == assigned(result.model, new)


def correlated_table(n_rows=120):
    """Two groups that correlated numbers tell apart, a level that knows a little, and blanks."""
    draws = np.random.default_rng(0)
    group = np.arange(n_rows) % 2
    along = draws.normal(0, 4, n_rows)
    table = {
        "long": 100 + along + draws.normal(0, 0.4, n_rows),
        "wide": along + 3 * group + draws.normal(0, 0.4, n_rows),
        "soil": np.where(draws.random(n_rows) < 0.7, np.array(["clay", "sand"])[group], "loam"),
    }
    gaps = {name: draws.random(n_rows) < 0.1 for name in table}
    return {name: pa.array(values.tolist(), mask=gaps[name]) for name, values in table.items()}


def test_numbers_in_one_block(sql_labels):
    table = correlated_table()
    result = ilk.cluster(pa.table(table), k=2)
    assert result.model.family == "assorted EEE"
    new = with_blanks({name: column.to_pylist() for name, column in table.items()})
    assert sql_labels(result.model, new) == assigned(result.model, new)


def test_a_missing_cell_that_is_a_level_of_its_own(sql_labels):
    """A row without any value has a group then; an unknown level is a missing cell."""
    model = level_for_missing_model()
    new = {
        "x": pa.array([None, None, 0.0, 4.0, None, 2.0]),
        "soil": pa.array([None, "sand", "clay", None, "peat", "peat"]),
    }
    found = sql_labels(model, new)
    assert found == assigned(model, new)
    assert set(found) == {"A", "B"}


def test_codes_for_missing_cells_are_blanks(sql_labels):
    draws = np.random.default_rng(0)
    side = np.arange(200) % 2
    table = {f"q{j}": 1 + draws.integers(0, 3, 200) + 2 * side for j in range(3)}
    for cells in table.values():
        cells[draws.random(200) < 0.1] = 99
    table["q0"][0] = table["q1"][0] = table["q2"][0] = 99
    for method in ("auto", "k-means"):
        model = ilk.cluster(pa.table(table), k=2, method=method).model
        assert {column.missing_codes for column in model.schema.used} == {(99.0,)}
        found = sql_labels(model, table)
        assert found == assigned(model, table)
        assert found[0] is None


def test_nan_is_a_blank(sql_labels):
    model, columns = gaussian_model("VVI")
    columns["x1"] = np.where(np.arange(len(columns["x1"])) % 3 == 0, np.nan, columns["x1"])
    assert sql_labels(model, columns) == assigned(model, columns)


def test_ties_go_to_the_first(sql_labels):
    table = {"x": [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0], "y": [0.5] * 6 + [0.25]}
    model = ilk.cluster(pa.table(table), k=2, method="k-means", scale=None).model
    new = {"x": [0.0, 0.0, -0.0], "y": [0.5, None, 0.5]}
    assert sql_labels(model, new) == assigned(model, new)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_and_levels_are_only_names_and_levels(sql_labels, name):
    side = np.arange(60) % 2
    table = {
        name: 3.0 * side + np.arange(60) % 7 * 0.1,
        "other": [f"{name}{i % 3}" if s else name for i, s in enumerate(side)],
        "plain": 5.0 * side + np.arange(60) % 5 * 0.1,
    }
    model = ilk.cluster(pa.table(table), k=2).model
    assert sql_labels(model, table) == assigned_group(model, table)


def test_levels_may_hold_any_character(sql_labels):
    levels = ["nul\x00l", "a\x01\x1fb", "\r\n", "", "'", "\u2028"]
    table = {"x": [float(i % 6) for i in range(60)], "level": [levels[i % 6] for i in range(60)]}
    model = ilk.cluster(pa.table(table), k=3).model
    assert sql_labels(model, table) == assigned(model, table)


@pytest.mark.parametrize("levels", [("no", "yes"), ("F", "T"), ("False", "True")])
def test_yes_and_no_that_the_database_holds_as_truth_values(sql_labels, levels):
    """DuckDB reads such columns of a text file as BOOLEAN; the rows are the same, and so are their groups."""
    side = np.arange(60) % 2
    flag = [None if i % 10 == 0 else bool(s) for i, s in enumerate(side)]
    text = [None if value is None else levels[value] for value in flag]
    table = {"x": 1.0 * side + np.arange(60) % 7 * 0.4, "flag": text}
    model = ilk.cluster(pa.table(table), k=2).model
    odd = {**table, "flag": [*text[:-1], "perhaps"]}
    assert sql_labels(model, table) == sql_labels(model, {**table, "flag": flag}) == assigned(model, table)
    assert sql_labels(model, odd) == assigned(model, odd)


def assigned_group(model, table):
    made = model.assign(pa.table(table))
    return made["group_ilk" if "group" in table else "group"].to_pylist()


def test_the_columns_of_the_table_stay_and_one_is_added():
    import duckdb

    model, columns = gaussian_model("VII")
    with duckdb.connect() as connection:
        connection.register("data", pa.table({**columns, "note": ["n"] * 180}))
        connection.execute('create schema s; create table s."my t" as select * from data')
        made = connection.sql(select(model, DUCKDB, "s.my t"))
        assert made.columns == ["x0", "x1", "x2", "note", "group"]
        assert len(made.fetchall()) == 180


def test_what_cannot_be_written_is_refused():
    model, _ = gaussian_model("VII")
    twice = ilk.cluster({"a": [1.0, 2, 8, 9], "A": [1.5, 2, 8, 9]}, k=2, method="k-means").model
    with pytest.raises(UsageError, match="'a' and 'A' have one name in SQL"):
        select(twice, DUCKDB, "data")
    nul = ilk.cluster({"a\x00": [1.0, 2, 8, 9]}, k=2, method="k-means").model
    with pytest.raises(UsageError, match="no way to write the column"):
        select(nul, DUCKDB, "data")
    side = np.arange(60) % 2
    euros = {"price": [f"{1 + 5 * s},{i % 10}0 €" for i, s in enumerate(side)], "x": 3.0 * side}
    with pytest.raises(UsageError, match="'price' is read as numbers, decimal comma, in €, which SQL"):
        select(ilk.cluster(euros, k=2).model, DUCKDB, "data")
    days = pa.array(np.arange(20), pa.int32()).cast(pa.date32())
    dated = ilk.cluster(pa.table({"day": days, "x": np.arange(20.0)}), k=2, types={"day": "numeric"})
    with pytest.raises(UsageError, match=r"the column 'day' holds date32"):
        select(dated.model, DUCKDB, "data")
    with pytest.raises(UsageError, match="'oracle' is not known"):
        dialect_of("oracle")
    mixed = {"x": [1.0, 2, 8, 9], "kind": ["a", "a", "b", "b"]}
    for method in ("information-bottleneck", "average-linkage"):
        with pytest.raises(UsageError, match=f"{method} has no formula per row"):
            select(ilk.cluster(mixed, k=2, method=method).model, DUCKDB, "data")
    noisy = replace(model, params=replace(model.params, noise_share=0.1))
    with pytest.raises(UsageError, match="no formula per row"):
        select(noisy, DUCKDB, "data")


def test_a_rank_among_the_rows_of_the_fit_is_refused():
    table = {"x": [1.0, 2.0, 8.0, 9.0] * 5, "y": np.arange(20.0)}
    model = ilk.cluster(table, k=2, method="k-means", transforms={"x": "rank"}).model
    with pytest.raises(UsageError, match="'x' is seen by its rank among the rows of the fit") as caught:
        select(model, DUCKDB, "data")
    assert caught.value.code == "not-exportable"
    with pytest.raises(UsageError, match="transforms that were asked for, which this format does not have"):
        record(model)


def test_a_category_of_numbers_that_is_no_number_is_refused(tmp_path):
    """As a file that somebody edited may hold it."""
    table = {"x": [1.0, 2.0, 8.0, 9.0] * 5, "code": [1, 1, 2, 2] * 5}
    model = ilk.cluster(table, k=2, method="k-means", types={"code": "binary"}).model
    columns = [replace(c, levels=("1", "two")) if c.name == "code" else c for c in model.schema.columns]
    replace(model, schema=replace(model.schema, columns=tuple(columns))).save(tmp_path / "m.ilk")
    with pytest.raises(UsageError, match="the category 'two' of the column 'code' is no number") as caught:
        select(ilk.load(tmp_path / "m.ilk"), DUCKDB, "data")
    assert caught.value.code == "not-exportable"


def test_a_component_too_narrow_for_a_double_is_refused():
    draws = np.random.default_rng(0)
    X = (draws.normal(size=(90, 2)) + 9 * (np.arange(90)[:, None] % 3)) * [1, 1e-140]
    fitted = ilk.GaussianMixture(3, structure="VVI", random_state=0).fit(X)
    params = fitted.fit_.params
    narrow = params.covariance.log_variance - [[0, 100]]  # as no fit, but a file of somebody else may have it
    params = replace(params, covariance=replace(params.covariance, log_variance=narrow))
    model = replace(gaussian_model("VVI", columns=2)[0], params=params, encoding=fitted._encoding)
    with pytest.raises(UsageError, match="so narrow that SQL cannot hold its precision") as caught:
        select(model, DUCKDB, "data")
    assert caught.value.code == "not-exportable"


@pytest.mark.parametrize("value", [0.1, -0.0, 5e-324, 1.7976931348623157e308, np.inf, -np.inf, np.nan])
def test_a_number_is_read_as_the_same_double(value):
    import duckdb

    with duckdb.connect() as connection:
        made = connection.sql(f"SELECT {number(value)} AS x, TYPEOF({number(value)}) AS t").fetchall()
    assert made[0][1] == "DOUBLE"
    assert (
        np.array([made[0][0]]).tobytes() == np.array([value]).tobytes() or np.isnan([value, made[0][0]]).all()
    )


@pytest.mark.parametrize("text", ["${spark.app.name}", "a\nb", "\u202e", "\U000e0041", "it's \\n", "日本"])
def test_a_text_for_spark_holds_no_character_that_acts(text):
    literal = SPARK.text(text)
    assert not any(acts(character) for character in literal)
    assert "${" not in literal
    inner = literal[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
    assert inner == text, "as a reader of escapes has it"


def test_columns_that_do_not_count_are_left_out_of_a_sum():
    assert weighted([0.0, -2.0, 0.5], ["a", "b", "c"]) == "-2.0e0 * b + 0.5e0 * c"
    assert weighted([0.0], ["a"]) == "0e0"


def test_the_select_reads_like_one():
    text = select(
        ilk.cluster(read(DATA / "votes.csv"), k=2, merge="none", truth="target").model, DUCKDB, "votes"
    )
    assert text.startswith("-- Groups of votes.csv: assorted, 2 groups (DuckDB).\n-- Every row gets")
    for part in ("read AS (  -- ", "cells AS (  -- ", "scores AS (  -- log of share", "ranked AS (  -- "):
        assert part in text
    assert 'FROM "votes" AS input' in text
    assert "WHEN piece_1 = best THEN 'A'" in text


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted([*DATA.glob("*.csv")]), ids=lambda path: path.stem)
def test_every_bundled_table(sql_labels, path):
    check_table(sql_labels, read(path))


@pytest.mark.slow
@pytest.mark.parametrize("name", at_hand(UNFREE))
def test_every_table_that_may_not_be_copied(sql_labels, name):
    check_table(sql_labels, read(table_path(name)))


@pytest.mark.slow
def test_iris_of_scikit_learn(sql_labels):
    X, species = numeric_table("iris")
    check_table(sql_labels, read({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "d": X[:, 3], "target": species}))


def check_table(sql_labels, table):
    truth = "target" if "target" in table.names else None
    model = ilk.cluster(table, truth=truth, budget=5).model
    columns = {name: table.column(name) for name in table.names}
    assert sql_labels(model, columns) == assigned(model, columns)


@pytest.mark.slow
def test_spark_gives_the_same_labels():
    pyspark = pytest.importorskip("pyspark.sql")
    gaussian, numbers = gaussian_model("VVE", (0, 1, 0), columns=2)
    table = mixed_table(80)
    assorted = ilk.cluster(pa.table(table), k=3).model
    gaps = with_blanks({name: values[::3] for name, values in numbers.items()})
    hostile = {
        "it's \\ `x`": [1.0, 1.1, 1.2, 8, 8.1, 8.2] * 5,
        "l": ["q'\\", "q'\\", "\n", "\n", "z", "z"] * 5,
    }
    odd = ilk.cluster(pa.table(hostile), k=2).model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = (
            pyspark.SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.codegen.wholeStage", "false")
            .getOrCreate()
        )
        try:
            for model, columns in ((gaussian, gaps), (assorted, table), (odd, hostile)):
                rows = [{**row, "the row": i} for i, row in enumerate(pa.table(columns).to_pylist())]
                session.createDataFrame(rows).createOrReplaceTempView("data")
                made = session.sql(select(model, SPARK, "data")).collect()
                found = [row["group"] for row in sorted(made, key=lambda row: row["the row"])]
                assert found == assigned(model, columns)
        finally:
            session.stop()


def test_every_dialect_is_on_the_command_line(tmp_path):
    from click.testing import CliRunner

    from ilk.cli.main import cli

    model, _ = gaussian_model("VII")
    model.save(tmp_path / "m.ilk")
    for name, dialect in DIALECTS.items():
        made = CliRunner().invoke(cli, ["export", str(tmp_path / "m.ilk"), "--sql", name, "--table", "t"])
        assert made.exit_code == 0
        assert made.stdout == select(model, dialect, "t")
    out = tmp_path / "m.json"
    assert (
        CliRunner().invoke(cli, ["export", str(tmp_path / "m.ilk"), "--json", "-o", str(out)]).exit_code == 0
    )
    assert json.loads(out.read_text())["schema"] == "ilk-model"
    for args in ([], ["--json", "--sql", "duckdb"]):
        refused = CliRunner().invoke(cli, ["export", str(tmp_path / "m.ilk"), *args])
        assert refused.exit_code == 2
        assert "error [what-to-export]" in refused.stderr


@pytest.mark.parametrize("n_columns", [2, 12])
def test_columns_that_ilk_named_are_those_that_duckdb_names(tmp_path, n_columns):
    """A header with an empty cell, and one that repeats a name."""
    import duckdb

    cells = np.random.default_rng(0).normal(size=(60, n_columns)) + 9 * (np.arange(60)[:, None] % 2)
    header = ["", *(["y"] * (n_columns - 1))]
    path = tmp_path / "empty.csv"
    path.write_text("\n".join(",".join(line) for line in [header, *cells.round(3).astype(str)]) + "\n")
    result = ilk.cluster(path, k=2)
    con = duckdb.connect()
    con.sql("create table data as select * from read_csv(?)", params=[str(path)])
    found = [row[-1] for row in con.sql(select(result.model, DUCKDB, "data")).fetchall()]
    assert found == result.assign(path)["group"].to_pylist()

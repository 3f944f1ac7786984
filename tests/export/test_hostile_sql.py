"""Whatever a model and its columns are called, its export is one SELECT that gives the right groups and no more."""

from __future__ import annotations

import os
import random
import warnings
from dataclasses import replace
from itertools import chain

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ilk
from ilk import store
from ilk.errors import UsageError
from ilk.export.dialects import DUCKDB, SPARK
from ilk.export.sql import select
from ilk.model.model import KIND
from ilk.table.schema import Schema
from tests.export.conftest import gaussian_model
from tests.store import hostile

FEW, MANY = int(os.environ.get("ILK_FUZZ_SQL", "25")), 500
EXPORTED = ("means", "medians", "binary", "gaussian", "pieces", "assorted", "cells", "EEE", "VVV")
STRANGE = [
    "it's", '"', '""', "`", "``", "'", "''", "\\", "\\'", "\\\\'", "--", "/*", "*/", ";", "a;b", "a.b", "a b", " a",
    "b ",     "'; CREATE TABLE owned AS SELECT 1; --", '"; CREATE TABLE owned AS SELECT 1; --', "`; DROP VIEW data; --",
    "x' OR '1'='1", "a\nb", "a\r\nCREATE TABLE owned AS SELECT 1;\n--", "\n", "\t", "\x01", "\x0b", "\x1b[31m", "\x7f",
    "\x85", "\x9b", "\u2028", "\u2029", "\u202e", "\u200b", "\ufeff", "\xa0", "é", "e\u0301", "İ", "ß", "日本", "😀",
    "\U000e0041", "$", "${", "${spark.app.name}", "${env:HOME}", "$$", "$a$", "{}", "{{x}}", "%s", "%", "?", ":p",
    "@v", "#", "given", "input", "read", "cells", "scores", "ranked", "best", "blank", "piece_1", "group",
    "p1_rest_1_1", "select", "E'\\n'", "U&'x'", "X'41'", "0x", "1", "1e5", "NaN", "null", "true", "x" * 300, "-- \\",
]  # fmt: skip
NAMES = [text for text in STRANGE if text == text.strip()]  # tables are read without blanks around names


def renamed(name: str, draw: random.Random):
    """A model with strange names, levels and notes, and rows that it knows by them."""
    base = hostile.bases()[name]
    packed = store.unpack(base.data)
    tree = store.restore(packed.document, packed.arrays)
    columns = tree["schema"]["columns"]
    new = dict(zip([c["name"] for c in columns], draw.sample(NAMES, len(columns)), strict=True))
    rows = base.rows.rename(columns=new)
    treatment = tree["treatment"] or {"numbers": (), "categories": (), "set_aside": ()}
    for column in columns:
        column["reason"] = column["note"] = draw.choice(STRANGE)
        column["name"] = new[column["name"]]
        if column["levels"] and column["type"] == "text":
            levels = dict(
                zip(column["levels"], sorted(draw.sample(STRANGE, len(column["levels"]))), strict=True)
            )
            column["levels"] = list(levels.values())
            rows[column["name"]] = rows[column["name"]].map(levels)
    for entry in tree["training"].get("columns", ()):
        entry["name"] = new[entry["name"]]
    for entry in (*treatment["numbers"], *treatment["categories"]):
        if entry.get("kind") == "atom":
            entry["of"] = new[entry["of"]]
            entry["name"] = f"{entry['of']} is {entry['keys'][1]:g}"
        else:
            entry["name"] = new[entry["name"]]
    tree["names"] = [draw.choice(STRANGE) for _ in tree["names"]]
    tree["training"]["source"] = draw.choice(STRANGE)
    return tree, rows


def models(path, count):
    """Models read from such files, and their rows."""
    draw = random.Random(0)
    for _ in range(count):
        tree, rows = renamed(draw.choice(EXPORTED), draw)
        path.write_bytes(store.pack(KIND, *store.flatten(tree)))
        yield ilk.load(path), rows


def written(model, dialect):
    """The SELECT; None where the model is refused, as it must be for names that SQL cannot hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return select(model, dialect, "data")
        except UsageError as error:
            if error.code != "not-exportable":
                raise
            return None


def labels(model, rows):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        placed = model.assign(rows)
    column = next(name for name in placed.columns if name.startswith("group"))
    return [None if pd.isna(value) else value for value in placed[column]]


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_duckdb_sees_one_select_and_the_right_groups(tmp_path, count):
    done = 0
    for model, rows in models(tmp_path / "m.ilk", count):
        text = written(model, DUCKDB)
        if text is None:
            continue
        (statement,) = duckdb.extract_statements(text)
        assert statement.type == duckdb.StatementType.SELECT
        with duckdb.connect() as connection:
            table = pa.Table.from_pandas(rows.assign(**{"the row": range(len(rows))}), preserve_index=False)
            connection.register("data", table)
            found = connection.sql(text).fetchall()
            left = connection.execute("select count(*) from duckdb_tables()").fetchone()
        assert left == (0,)
        place = rows.shape[1]
        assert [row[-1] for row in sorted(found, key=lambda row: row[place])] == labels(model, rows)
        done += 1
    assert done > 0.7 * count


def tables(count):
    """Models fitted to tables of strange names and categories, and those tables."""
    draw = random.Random(1)
    for number in range(count):
        rng = np.random.default_rng(number)
        group = rng.integers(0, 2, 40)
        one, other, third, fourth = draw.sample(NAMES, 4)
        few = draw.sample(STRANGE, 4)
        rows = pd.DataFrame(
            {
                one: rng.normal(size=40) + 6 * group,
                other: np.array(few)[group * 2 + rng.integers(0, 2, 40)],
                third: rng.normal(size=40) - 6 * group,
                fourth: rng.random(40) < 0.2 + 0.6 * group,
            }
        )
        method = draw.choice(["assorted", "k-means", "gaussian"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield ilk.cluster(rows, k=2, method=method).model, rows


@pytest.mark.parametrize("count", [FEW // 3, pytest.param(MANY, marks=pytest.mark.slow)])
def test_tables_of_strange_names_and_categories_are_one_select(count):
    done = 0
    for model, rows in tables(count):
        text = written(model, DUCKDB)
        if text is None:
            continue
        (statement,) = duckdb.extract_statements(text)
        assert statement.type == duckdb.StatementType.SELECT
        with duckdb.connect() as connection:
            connection.register("data", pa.Table.from_pandas(rows, preserve_index=False))
            found = connection.sql(text).fetchall()
            assert connection.execute("select count(*) from duckdb_tables()").fetchone() == (0,)
        assert sorted(str(row[-1]) for row in found) == sorted(map(str, labels(model, rows)))
        done += 1
    assert done > 0.7 * count


@pytest.fixture(scope="module")
def spark():
    pyspark = pytest.importorskip("pyspark.sql")
    session = (
        pyspark.SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.codegen.wholeStage", "false")
        .getOrCreate()
    )
    yield session
    session.stop()


QUERY = {"WithCTE", "UnresolvedWith", "Project", "CTERelationDef"}


@pytest.mark.slow
def test_spark_sees_one_query_and_the_right_groups(tmp_path, spark):
    parser = spark._jsparkSession.sessionState().sqlParser()
    done = []
    for model, rows in chain(models(tmp_path / "m.ilk", MANY), tables(MANY // 5)):
        text = written(model, SPARK)
        if text is None:
            continue
        assert "${" not in text
        plan = parser.parsePlan(text)
        assert plan.nodeName() in QUERY
        assert not plan.isStreaming()
        done.append((model, rows, text))
    assert len(done) > 0.6 * MANY
    for model, rows, text in done[::25]:
        listed = rows.assign(**{"the row": range(len(rows))})
        spark.createDataFrame(pa.Table.from_pandas(listed, preserve_index=False)).createOrReplaceTempView(
            "data"
        )
        found = spark.sql(text).collect()
        place = rows.shape[1]
        assert [row[-1] for row in sorted(found, key=lambda row: row[place])] == labels(model, rows)
        assert [table.name for table in spark.catalog.listTables()] == ["data"]


@pytest.mark.slow
def test_spark_puts_no_value_of_a_setting_into_a_text(spark):
    spark.conf.set("spark.ilk", "owned' AS x; --")
    for text in (
        "${spark.ilk}",
        "$${spark.ilk}",
        "${env:HOME}",
        "\\${spark.ilk}",
        "-- \\",
        "\U000e0041\u2028\x85\x00",
    ):
        assert spark.sql(f"{SPARK.comment(text)}SELECT {SPARK.text(text)} AS t").collect()[0]["t"] == text


def test_comments_are_lines():
    for dialect in (DUCKDB, SPARK):
        for text in STRANGE:
            line = dialect.comment(text)
            assert line.startswith("-- ")
            assert line.endswith("\n")
            assert len(line.splitlines()) == 1
            assert not line.endswith("\\\n")
    assert "${" not in SPARK.comment("${spark.app.name}")


@pytest.mark.parametrize("name", ["", "a\x00b", "\ud800"])
def test_names_that_no_statement_can_hold_are_refused(name):
    for dialect in (DUCKDB, SPARK):
        with pytest.raises(UsageError) as caught:
            dialect.name_of(name)
        assert caught.value.code == "not-exportable"
    with pytest.raises(UsageError):
        SPARK.name_of("${spark.app.name}")


def test_a_model_with_a_column_without_a_name_is_refused():
    model, _ = gaussian_model("VVV")
    odd = replace(model, schema=Schema.numbers(["", "b", "c"]))
    for dialect in (DUCKDB, SPARK):
        with pytest.raises(UsageError, match="no way to write the column ''") as caught:
            select(odd, dialect, "data")
        assert caught.value.code == "not-exportable"


def test_a_mark_is_quoted_wherever_it_comes_from():
    """Letters are checked when a file is read; the export does not rely on it."""
    mark = (
        "A' END AS \"group\" FROM ranked; CREATE TABLE owned AS SELECT 42 AS x; SELECT CASE WHEN TRUE THEN '"
    )
    model, columns = gaussian_model("VII")
    odd = replace(model, letters=(mark, "B\nCREATE TABLE owned AS SELECT 1;", "C"))
    (statement,) = duckdb.extract_statements(select(odd, DUCKDB, "data"))
    assert statement.type == duckdb.StatementType.SELECT
    with duckdb.connect() as connection:
        connection.register("data", pa.table(columns))
        assert mark in {row[-1] for row in connection.sql(select(odd, DUCKDB, "data")).fetchall()}
        assert connection.execute("select count(*) from duckdb_tables()").fetchone() == (0,)

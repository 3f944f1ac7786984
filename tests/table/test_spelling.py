"""Cells as people write them: what they are read as, what is said, how it is undone, and rows that come later."""

from __future__ import annotations

import datetime
import json
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ilk
from ilk.errors import DataError, UsageError
from ilk.export.dialects import dialect_of
from ilk.export.sql import select
from ilk.table.encode import encode, encode_new
from ilk.table.read import read
from ilk.table.schema import Schema
from ilk.table.spelling import Spelling, spelling_of
from ilk.table.understand import understand

N = 60
DRAWS = np.random.default_rng(3)
VALUES = np.round(np.exp(DRAWS.normal(6, 2, N)), 2) * np.where(np.arange(N) % 7 == 3, -1, 1)
VALUES[0] = 1234567.5
DAYS = pd.Timestamp("2020-02-03") + pd.to_timedelta(DRAWS.integers(0, 1500, N), unit="D")


def written(value, decimal, group, unit, side, negative):
    """A number as a program of some country writes it."""
    text = f"{abs(value):,.2f}".replace(",", "\0").replace(".", decimal).replace("\0", group)
    text = f"{unit}{text}" if side == "before" else f"{text}{unit}"
    if value >= 0:
        return text
    return f"({text})" if negative == "brackets" else f"-{text}"


MARKS = [(".", ","), (",", "."), (",", " "), (".", "'"), (",", "\u00a0"), (".", "")]
BEFORE, AFTER = ("$", "€ ", "CHF "), ("", " EUR", " %", "%", " kg", "h")
UNITS = [*((unit, "before") for unit in BEFORE), *((unit, "after") for unit in AFTER)]
NUMBERS = {
    f"{group!r}{decimal}{unit}-{negative}-{blank!r}": (decimal, group, unit, side, negative, blank)
    for ((decimal, group), (unit, side)), negative, blank in zip(
        product(MARKS, UNITS), ["minus", "brackets"] * 27, ["", "-", "n/a"] * 18, strict=True
    )
}
DATES = {
    "ISO": "%Y-%m-%d",
    "ISO with time": "%Y-%m-%d %H:%M:%S",
    "ISO with T": "%Y-%m-%dT%H:%MZ",
    "slashes": "%Y/%m/%d",
    "day first": "%d/%m/%Y",
    "month first": "%m/%d/%Y",
    "points": "%d.%m.%Y",
    "two digits": "%d.%m.%y",
    "month first with time": "%m/%d/%Y %I:%M %p",
    "named": "%d %b %Y",
    "named in full": "%B %d, %Y",
}


def typed(cells, **asked):
    table = read({"c": cells, "x": VALUES.tolist()})
    schema = understand(table, **asked)
    return table, schema, [code for code, _ in schema.warnings]


def numbers(table, schema):
    names = [column.name for column in schema.numeric]
    return encode(table, schema).numbers[:, names.index("c")]


@pytest.mark.parametrize("case", NUMBERS)
def test_dirty_numbers(case):
    decimal, group, unit, side, negative, blank = NUMBERS[case]
    cells = [written(v, decimal, group, unit, side, negative) for v in VALUES]
    cells[5] = cells[9] = blank
    expected = VALUES.copy()
    expected[[5, 9]] = np.nan
    table, schema, codes = typed(cells)
    assert schema["c"].kind == "numeric"
    np.testing.assert_array_equal(numbers(table, schema), expected)
    assert "numbers-read" in codes
    assert schema["c"].missing == 2
    assert schema["c"].type == "text"


@pytest.mark.parametrize("case", DATES)
def test_dirty_dates(case):
    cells = [*DAYS.strftime(DATES[case])]
    cells[4] = "n/a"
    table, schema, codes = typed(cells)
    expected = (DAYS - DAYS.min()).days.to_numpy(np.float64)
    expected[4] = np.nan
    np.testing.assert_allclose(numbers(table, schema), expected, atol=1e-9)
    assert "dates-read" in codes
    assert schema["c"].note == f"days since {DAYS.min():%Y-%m-%d}"


TRUTHS = {
    "English": (["yes", "no", "Y", "N", "y", ""], [1, 0, 1, 0, 1, -1]),
    "German": (["ja", "Nein", "JA", "nein", "n/a", "j"], [1, 0, 1, 0, -1, 1]),
    "French": (["oui", "non", "Oui", "NON"], [1, 0, 1, 0]),
    "mixed": (["TRUE", "false", "1", "0", "-99"], [1, 0, 1, 0, -1]),
}


@pytest.mark.parametrize("case", TRUTHS)
def test_dirty_truths(case):
    words, expected = TRUTHS[case]
    table, schema, codes = typed([words[i % len(words)] for i in range(N)])
    assert (schema["c"].kind, schema["c"].levels) == ("binary", ("no", "yes"))
    assert encode(table, schema).codes[: len(words), 0].tolist() == expected
    assert "truth-read" in codes


UNTOUCHED = {
    "postcodes": ([f"{501 + 97 * i:05}" for i in range(N)], "digits-as-text"),
    "ranges": ([("18-25", "26-35", "36-50")[i % 3] for i in range(N)], None),
    "codes": ([f"A{i % 9}" for i in range(N)], None),
    "sizes": ([f"{i % 4}{'xyz'[i % 3]}" for i in range(N)], "cells-not-read"),
    "currencies": ([f"{'$€'[i % 2]}{i}.5" for i in range(N)], "cells-not-read"),
    "marks": ([f"{i},5" if i % 2 else f"{i}.5" for i in range(N)], "cells-not-read"),
    "a word": (["see note", *(f"${i}.50" for i in range(1, N))], "cells-not-read"),
    "versions": ([f"{1 + i % 3}.{i % 10}.{100 + i}" for i in range(N)], None),
    "addresses": ([f"10.0.{i}.1" for i in range(N)], "cells-not-read"),
    "yes and no": ([("yes", "no")[i % 2] for i in range(N)], None),
    "words": ([("yes", "maybe", "no")[i % 3] for i in range(N)], None),
}


@pytest.mark.parametrize("case", UNTOUCHED)
def test_what_is_not_read_stays_text_and_is_said(case):
    cells, code = UNTOUCHED[case]
    _, schema, codes = typed(cells)
    assert schema["c"].written is None
    assert schema["c"].kind != "numeric"
    assert code is None or code in codes
    if code == "cells-not-read":
        assert any("'c'" in text for found, text in schema.warnings if found == code)


def test_units_that_are_one():
    assert spelling_of(["1 day", "2 days", "$5"][:2]).spelling == Spelling("number", unit="day")
    assert spelling_of(["$5", "7 USD", "3"]).spelling == Spelling("number", unit="$")
    assert spelling_of(["0", "3 kg", "5 KG"]).spelling is not None
    assert spelling_of(["12%", "0.5"]).fault


@pytest.mark.parametrize(
    ("cells", "expected", "sure"),
    [
        (["1,234", "5,678"], [1234, 5678], "doubt"),
        (["1,234", "999"], [1234, 999], "doubt"),
        (["1,234,567", "5,678"], [1234567, 5678], "decided"),
        (["0,125", "1,500"], [0.125, 1.5], "decided"),
        (["1,234", "5,6"], [1.234, 5.6], "decided"),
        (["1.234.567", "12"], [1234567, 12], "decided"),
        (["5-", "7.25"], [-5, 7.25], "decided"),
        (["−5.5", "1.5e3"], [-5.5, 1500], "decided"),
    ],
)
def test_marks_of_a_column(cells, expected, sure):
    found = spelling_of(cells)
    assert found.spelling.parsed(pa.array(cells)).to_pylist() == expected
    assert found.sure == sure


def test_the_file_decides_where_a_column_leaves_it_open(tmp_path):
    path = tmp_path / "eu.csv"
    lines = [f"{i},5;{i % 9 + 1}.{i:03};{i % 9 + 1}.000,25" for i in range(30)]
    path.write_text("a;b;c\n" + "\n".join(lines) + "\n")
    table = read(path)
    found = encode(table, understand(table))
    assert found.numbers[3].tolist() == [3.5, 4003.0, 4000.25]
    path.write_text("a;b\n" + "\n".join(f"x;{i % 9 + 1}.{i:03}" for i in range(30)) + "\n")
    table = read(path)  # nothing speaks for decimal commas
    assert table.column("b")[3].as_py() == 4.003


def test_day_or_month_is_decided_by_the_column_or_said():
    assert spelling_of(["01/02/2022", "13/02/2022"]).spelling.order == "dmy"
    assert spelling_of(["01/02/2022", "02/13/2022"]).spelling.order == "mdy"
    either = spelling_of(["01/02/2022", "03/04/2022"])
    assert (either.spelling.order, either.sure) == ("dmy", "doubt")
    assert spelling_of(["13/02/2022", "02/13/2022"]).fault
    cells = [f"{1 + i % 12:02}/{1 + i % 11:02}/2022" for i in range(N)]
    _, schema, _ = typed(cells)
    assert "another reading is as possible" in dict(schema.warnings)["dates-read"]


def test_dates_of_frames_are_days():
    frame = pd.DataFrame({"c": DAYS, "x": VALUES, "d": [d.date() for d in DAYS[::-1]]})
    schema = understand(read(frame))
    assert [column.kind for column in schema.columns] == ["numeric"] * 3
    assert schema["c"].type.startswith("timestamp")
    found = encode(read(frame), schema).numbers
    np.testing.assert_allclose(found[:, 0], (DAYS - DAYS.min()).days)


@pytest.mark.parametrize("step", [1, -3])
def test_times_that_count_the_rows_are_left_out(step):
    times = [datetime.datetime(2025, 1, 1) + step * datetime.timedelta(hours=i) for i in range(N)]
    epoch = [int(t.timestamp()) for t in times]
    cells = {
        "c": times,
        "text": [t.strftime("%d.%m.%Y %H:%M") for t in times],
        "e": epoch,
        "x": VALUES.tolist(),
    }
    schema = understand(read(cells))
    assert [column.name for column in schema.used] == ["x"]
    assert "'c', 'text', 'e'" in dict(schema.warnings)["counts-rows"]
    assert "dates-read" not in dict(schema.warnings)
    assert understand(read(cells), types={"text": "numeric"})["text"].kind == "numeric"
    only = understand(read({"c": times}))  # there is nothing else
    assert only["c"].kind == "numeric"


def test_every_reading_is_undone_by_a_type():
    for cells in ([f"${i % 5}.50" for i in range(N)], [("yes", "Y", "no")[i % 3] for i in range(N)]):
        table, schema, codes = typed(cells, types={"c": "categorical"})
        assert (schema["c"].kind, schema["c"].written) == ("categorical", None)
        assert set(schema["c"].levels) == set(cells)
        assert not {"numbers-read", "truth-read"} & set(codes)
        encode(table, schema)


def test_asked_for_numbers_reads_them():
    table, schema, _ = typed([f"{i % 4},5 kg" for i in range(N)], types={"c": "numeric"})
    assert numbers(table, schema)[1] == 1.5
    with pytest.raises(DataError, match="asked to be numeric"):
        typed([f"{i % 4},5 {'kg' if i % 2 else 'lb'}" for i in range(N)], types={"c": "numeric"})


def test_the_schema_carries_it():
    _, schema, _ = typed([f"{i},5 kg" for i in range(N)])
    plain = json.loads(json.dumps(schema.to_dict()))
    assert Schema.from_dict(plain) == schema
    for damage in ({"kind": "rune"}, {"origin": "now"}, {"decimal": ";"}, {"order": "ydm"}, {"more": 1}):
        entry = {**plain["columns"][0], "written": {**plain["columns"][0]["written"], **damage}}
        with pytest.raises(ilk.errors.ModelFileError):
            Schema.from_dict({**plain, "columns": [entry]})


def test_new_rows_are_read_as_the_old_or_refused():
    table, schema, _ = typed([f"{i}.{i:03},5 EUR" if i else "7 EUR" for i in range(N)])
    encoding = encode(table, schema).encoding

    def new(cells):
        return (
            encode_new(read({"c": cells, "x": [1.0] * len(cells)}), schema, encoding).numbers[:, 0].tolist()
        )

    assert new(["1.234", "5,25 €", None][:2]) == [1234.0, 5.25]
    assert new([3.5, 4.0]) == [3.5, 4.0]  # numbers are what they are
    with pytest.raises(DataError, match=r"1 cells of column 'c' are not written as numbers.*'\$5'"):
        new(["5 EUR", "$5"])


PRICES = [f"{i},5 EUR" for i in range(N)]
CLOCKS = [f"{8 + i % 9}:{i % 60:02}" for i in range(N)]
ANSWERS = [("yes", "Y", "no")[i % 3] for i in range(N)]
DAY_FIRST = [*DAYS.strftime("%d.%m.%Y")]


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (PRICES, pd.Categorical(["1,5 EUR", None, "2 EUR"]), [1.5, None, 2.0]),
        (PRICES, [None, None], [None, None]),
        (PRICES, [True, False, None], [1.0, 0.0, None]),
        (ANSWERS, [True, False, None], ["yes", "no", None]),
        (ANSWERS, [1, 0, 7], ["yes", "no", None]),
        (ANSWERS, ["JA", "n/a", "perhaps"], ["yes", None, None]),
    ],
    ids=["category", "nothing", "truth as number", "truth", "number as truth", "other words"],
)
def test_new_cells_of_other_types_are_what_they_say(old, new, wanted):
    table, schema, _ = typed(old)
    frame = pd.DataFrame({"c": new, "x": [1.0] * len(new)})
    made = encode_new(read(frame), schema, encode(table, schema).encoding)
    if schema["c"].levels is None:
        np.testing.assert_array_equal(made.numbers[:, 0], np.array(wanted, dtype=float))
    else:
        levels = [*schema["c"].levels, None]
        assert [levels[code] for code in made.codes[:, 0]] == wanted


def test_new_times_of_day_come_as_text_or_as_times():
    table, schema, _ = typed(CLOCKS)
    encoding = encode(table, schema).encoding

    def hours(cells):
        return encode_new(read({"c": cells, "x": [1.0] * len(cells)}), schema, encoding).numbers[:, 0]

    cells = ["9:30", "16:05", None]
    times = [datetime.time(9, 30), datetime.time(16, 5), None]
    np.testing.assert_array_equal(hours(times), hours(cells))
    assert hours(cells)[1] - hours(cells)[0] == pytest.approx(6 + 35 / 60)


@pytest.mark.parametrize(
    ("old", "new", "code", "text"),
    [
        (CLOCKS, [datetime.datetime(2024, 1, 1)], "type-changed", "'c' held times.*now holds timestamp"),
        (DAY_FIRST, [3.5], "type-changed", "'c' held dates.*now holds double"),
        (PRICES, [datetime.date(2024, 1, 1)], "type-changed", "'c' held numbers.*now holds date32"),
        (PRICES, [datetime.timedelta(1)], "type-changed", "'c' held numbers.*now holds duration"),
        (
            DAY_FIRST,
            ["02/13/2024"],
            "cells-not-read",
            "'c' are not written as dates, day first.*'02/13/2024'",
        ),
        (CLOCKS, ["25:00"], "cells-not-read", "'c' are not written as times of day.*'25:00'"),
    ],
)
def test_new_cells_that_say_something_else_are_refused(old, new, code, text):
    table, schema, _ = typed(old)
    with pytest.raises(DataError, match=text) as error:
        encode_new(read({"c": new, "x": [1.0]}), schema, encode(table, schema).encoding)
    assert error.value.code == code


def test_the_hour_is_that_of_the_clock_on_the_wall():
    frame = pa.array([datetime.datetime(2024, 7, 1, 12)]).cast(pa.timestamp("us", "Europe/Paris"))
    assert Spelling("date", part="hour").read(frame, "c").to_pylist() == [14.0]  # 12:00 UTC
    texts = pa.array(["2024-07-01 14:00+02:00"])
    assert Spelling("date", order="ymd", part="hour").read(texts, "c").to_pylist() == [14.0]


def test_zones_of_times_are_read():
    cells = ["2024-01-01T12:00+02:00", "2024-01-01T10:00Z", "2024-01-01T04:30-0530"]
    found = spelling_of(cells).spelling.parsed(pa.array(cells)).to_pylist()
    assert found == pytest.approx([found[0]] * 3)


def test_a_column_asked_for_by_its_categories_is_not_read():
    order = ["$1", "$5", "$20"]
    _, schema, codes = typed([order[i % 3] for i in range(N)], types={"c": order})
    assert (schema["c"].kind, schema["c"].levels, schema["c"].written) == ("ordinal", tuple(order), None)
    assert "numbers-read" not in codes


def test_columns_without_a_cell_are_not_read():
    _, schema, codes = typed(pa.nulls(N, pa.string()).to_pylist())
    assert (schema["c"].kind, schema["c"].reason) == ("left out", "all missing")
    assert "cells-not-read" not in codes


def test_epochs_that_stand_still_count_nothing():
    _, schema, codes = typed([1_700_000_000 + i % 3 for i in range(N)])
    assert schema["c"].used
    assert "counts-rows" not in codes


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Two kinds of shops, as a spreadsheet writes them."""
    draws = np.random.default_rng(0)
    n, kind = 400, np.arange(400) % 2
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(draws.integers(0, 40, n) + 300 * kind, unit="D")
    revenue = np.exp(draws.normal(6 + 3 * kind, 0.3))
    frame = pd.DataFrame(
        {
            "revenue": [f"{v:,.2f} €".translate(str.maketrans(",.", ".,")) for v in revenue],
            "rate": [f"{v:.0f}%" for v in 5 + 20 * kind + draws.normal(0, 2, n)],
            "since": start.strftime("%d.%m.%Y"),
            "active": np.where(
                draws.random(n) < 0.5, draws.choice(["yes", "Y"], n), draws.choice(["no", "n"], n)
            ),
        }
    )
    path = tmp_path_factory.mktemp("shop") / "shop.csv"
    frame.to_csv(path, sep=";", index=False)
    return path, kind


def test_a_model_reads_new_files_as_its_own(shop, tmp_path):
    path, kind = shop
    result = ilk.cluster(path, seed=1)
    assert result.k == 2
    assert len(set(zip(result.labels.tolist(), kind.tolist(), strict=True))) == 2
    codes = [code for code, _ in result.warnings]
    assert {"numbers-read", "dates-read", "truth-read"} <= set(codes)
    result.model.save(tmp_path / "m.ilk")
    model = ilk.load(tmp_path / "m.ilk")
    few = tmp_path / "few.csv"  # all cells are such that without the model they would be read in another way
    few.write_text("revenue;rate;since;active\n8.103;25;03.12.2024;1\n403;5;02.01.2024;0\n")
    placed = model.assign(few).to_pandas()
    assert placed["group"].tolist() == [model.letters[result.labels[1]], model.letters[result.labels[0]]]
    with pytest.raises(
        UsageError, match="'revenue' is read as numbers, decimal comma, in €, which SQL does not do"
    ):
        select(model, dialect_of("duckdb"), "data")
    assert ilk.cluster(pd.read_csv(path, sep=";"), seed=1).labels.tolist() == result.labels.tolist()


def test_words_for_yes_and_no_are_not_read_by_sql():
    cells = {"x": VALUES.tolist(), "active": [("yes", "Y", "no", "n")[i % 4] for i in range(N)]}
    model = ilk.cluster(cells, k=2, method="assorted").model
    with pytest.raises(UsageError, match="'active' is read as yes and no, which SQL does not do"):
        select(model, dialect_of("duckdb"), "data")


def test_tables_in_pieces_are_read_in_the_same_way(shop):
    path, _ = shop
    whole = ilk.cluster(path, seed=1)
    pieces = read_in_pieces(path)
    schema = understand(pieces)
    told = understand(read(path))
    assert [(c.kind, c.written, c.levels, c.missing) for c in schema.columns] == [
        (c.kind, c.written, c.levels, c.missing) for c in told.columns
    ]
    assert [code for code, _ in schema.warnings] == [code for code, _ in told.warnings]
    placed = whole.model.assign_table(
        read_in_pieces(path, as_text=("revenue", "rate", "since", "active"))
    ).to_pydict()
    assert placed["group"] == [whole.model.letters[label] for label in whole.labels]


def read_in_pieces(path, **reading):
    from ilk.table.files import TextOptions
    from ilk.table.out_of_core.text import read_text_pieces

    table = read_text_pieces(str(path), path.name, TextOptions(**reading))
    table.gather({}, 1)
    return table


@pytest.mark.parametrize("at_once", [1_000, 100_000])
def test_a_column_in_pieces_that_changes_its_writing_is_said(at_once, tmp_path, monkeypatch):
    """Also beyond the texts that are looked at."""
    monkeypatch.setattr("ilk.table.text.CUT_ROWS", at_once)
    path = tmp_path / "late.csv"
    lines = [f"${i}.5,{i}" for i in range(20_000)]
    path.write_text("c,x\n" + "\n".join(lines) + "\n5 bananas,1\n")
    schema = understand(read_in_pieces(path))
    assert schema["c"].written is None
    assert "'c'" in dict(schema.warnings)["cells-not-read"]

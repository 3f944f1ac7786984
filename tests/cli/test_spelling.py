"""Every text names an option as its reader would give it: typed on a command line, an argument in Python."""

from __future__ import annotations

import inspect
import json
import pickle
import re

import numpy as np
import pytest

import ilk as package
from ilk.analysis.job import Job
from ilk.engines.spark_errors import Refused
from ilk.errors import Caution, DataError, IlkError, IlkWarning, Option, UsageError, typed
from ilk.selection.k_range import NoRowsForGroups
from ilk.table.files import TextOptions

ARGUMENTS = sorted({*inspect.signature(Job).parameters, *inspect.signature(TextOptions).parameters, "absent"})
IN_PYTHON = re.compile(rf"\b({'|'.join(ARGUMENTS)})=(?!\w+(?:\s|$|'|;|,|\)))")
"""An argument with a value as Python has it; `--types year=categorical` and the like are typed."""
NUMBER_OF = re.compile(r"\b(k|max_rejects|threads|budget|min_size|max_size|seed)=")


def put(folder, name, text):
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)


def two_groups(n=60):
    draws = np.random.default_rng(3)
    return draws.normal(size=(n, 2)).round(2) + 9 * (np.arange(n)[:, None] % 2)


@pytest.fixture
def tables(tmp_path):
    """Files that are refused or read with a caution."""
    rows = [f"{x:.2f},{y:.2f}" for x, y in two_groups()]
    put(tmp_path, "good.csv", "x,y\n" + "\n".join(rows) + "\n")
    put(tmp_path, "ragged.csv", "x,y\n" + "\n".join(rows) + "\n1,2,3\n4,5,6\n")
    put(tmp_path, "latin.csv", ("näme,y\n" + "\n".join(rows) + "\n").encode("latin-1"))
    put(tmp_path, "wide.csv", "a,b,c,d\n" + "\n".join("1,2" for _ in rows) + "\n")
    put(tmp_path, "nul.csv", b"x,y\n1,\x00\n")
    cells = [f"{x},{'oops' if i == 7 else y}" for i, (x, y) in enumerate(two_groups())]
    put(tmp_path, "mixed.csv", "x,my y\n" + "\n".join(cells) + "\n")
    put(
        tmp_path, "words.csv", "w,v\n" + "\n".join(f"{'abc'[i % 3]},{'def'[i % 3]}" for i in range(40)) + "\n"
    )
    marks = [f"{'NA' if i % 9 == 0 else x},{y}" for i, (x, y) in enumerate(two_groups())]
    put(tmp_path, "marks.csv", "x,y\n" + "\n".join(marks) + "\n")
    codes = [f"{x},{i % 4},00{i % 7},{i + 1}" for i, (x, _) in enumerate(two_groups())]
    put(tmp_path, "codes.csv", "x,how many,digits,run\n" + "\n".join(codes) + "\n")
    four = [f"{x + 90 * (i // 2 % 2)},{y}" for i, (x, y) in enumerate(two_groups())]
    put(tmp_path, "four.csv", "x,y\n" + "\n".join(four) + "\n")
    comma = [f'{x};"{y:.2f}"'.replace(".", ",") for x, y in two_groups()]
    put(tmp_path, "comma.csv", "x;y\n" + "\n".join(comma) + "\n")
    return tmp_path


REFUSED = {
    "rows-rejected": (("fit", "ragged.csv"), ("--sep ';'", "--max-rejects 2")),
    "bad-encoding": (("fit", "latin.csv", "--encoding", "utf-8"), ("--encoding cp1252", "--encoding latin-1")),
    "nul-byte": (("fit", "nul.csv"), ("--encoding utf-16-le",)),
    "header-mismatch": (("fit", "wide.csv"), ("--sep ';'",)),
    "data-mixed": (("fit", "mixed.csv"), ("--missing oops", "--types 'my y=categorical'", "--ignore 'my y'")),
    "no-columns": (("fit", "words.csv", "--method", "k-means"), ("--types column=numeric",)),
    "bad-separator": (("fit", "good.csv", "--sep", "abcdefg"), ("--sep abcdefg",)),
    "unknown-column": (("fit", "good.csv", "--weight", "monye"), ("--weight monye names a column",)),
    "bad-size": (("fit", "good.csv", "--min-size", "9", "--max-size", "5"), ("--min-size 9 is above --max-size 5",)),
    "too-few-groups": (("fit", "good.csv", "--k", "2", "--max-size", "20"), ("--max-size 20", "--k 3 or more")),
    "bad-k": (("fit", "good.csv", "--k", "0"), ("--k 0",)),
    "k-not-taken": (("fit", "good.csv", "--method", "mean-shift", "--k", "2"), ()),
    "sizes-not-taken": (("fit", "good.csv", "--method", "spectral", "--min-size", "4"), ("--min-size 4",)),
    "weight-not-taken": (("fit", "good.csv", "--method", "spectral", "--weight", "y"), ("--weight y",)),
    "no-order": (("fit", "words.csv", "--types", "w=ordinal"), ("--types FILE",)),
}  # fmt: skip


def on_screen(text):
    """No argument as Python has it."""
    assert not IN_PYTHON.search(text), text
    assert not NUMBER_OF.search(text), text


@pytest.mark.parametrize("code", REFUSED)
def test_refusals_name_what_is_typed(ilk, tables, code):
    if code == "weight-not-taken":
        put(
            tables,
            "good.csv",
            "x,y\n" + "\n".join(f"{i % 2 * 9 + i / 90},{1 + i % 3}" for i in range(40)) + "\n",
        )
    arguments, words = REFUSED[code]
    result = ilk(*arguments)
    assert result.exit_code, result.stdout
    assert result.stderr.startswith(f"error [{code}]"), result.stderr
    for word in words:
        assert word in result.stderr
    on_screen(result.stderr)


@pytest.mark.parametrize("wrong", ["types", "ignore", "id", "truth", "weight"])
def test_a_name_that_no_column_has_blames_its_option(ilk, tables, wrong):
    given = "monye=numeric" if wrong == "types" else "monye"
    text = ilk("fit", "good.csv", f"--{wrong}", given).stderr
    assert f"--{wrong} {given} names a column that good.csv lacks" in text
    asked = {"types": {"monye": "numeric"}, "ignore": ["monye"]}.get(wrong, "monye")
    with pytest.raises(UsageError, match="names a column") as caught:
        package.cluster(tables / "good.csv", **{wrong: asked})
    assert str(caught.value).startswith(f"{Option(wrong, asked)} names")


NEAR = {"types": "Annual Revenu=numeric", "ignore": "annual revenue", "id": "AnnualRevenue", "truth": "anual revenue",
        "weight": "ANNUAL REVENUE", "columns": "annual_revenue"}  # fmt: skip


@pytest.mark.parametrize("wrong", NEAR)
def test_a_misspelled_column_is_found_before_the_fit_with_the_one_meant(ilk, tables, wrong, monkeypatch):
    rows = [f"{x:.2f},{y:.2f}" for x, y in two_groups()]
    put(tables, "sales.csv", "Annual Revenue,y\n" + "\n".join(rows) + "\n")

    def fitted(*_, **__):
        raise AssertionError("a fit began")

    monkeypatch.setattr("ilk.analysis.run._pieces", fitted)
    text = ilk("fit", "sales.csv", f"--{wrong}", NEAR[wrong]).stderr
    assert text.startswith("error [unknown-column]: --"), text
    assert "Did you mean 'Annual Revenue'?" in text
    name = NEAR[wrong].removesuffix("=numeric")
    asked = {"types": {name: "numeric"}, "ignore": [name], "columns": [name]}.get(wrong, name)
    with pytest.raises(UsageError, match="Did you mean 'Annual Revenue'") as caught:
        package.cluster(tables / "sales.csv", **{wrong: asked})
    assert str(caught.value).startswith(f"{Option(wrong, asked)} names")


def test_misspelled_types_and_names_are_found_before_the_fit(ilk, tables, monkeypatch):
    monkeypatch.setattr("ilk.analysis.run._pieces", None)
    assert "Did you mean 'numeric'?" in ilk("fit", "good.csv", "--types", "x=numerc").stderr
    assert "Did you mean B=newcomers?" in ilk("fit", "good.csv", "--name", "newcomers=b").stderr
    lost = ilk("fit", "good.csv", "--k", "2", "--name", "D=late").stderr
    assert "error [unknown-group]" in lost
    assert "from A to B" in lost


def test_a_column_that_is_absent(ilk, tables):
    assert ilk("fit", "good.csv", "--k", "2", "-q").exit_code == 0
    put(tables, "less.csv", "x\n1\n2\n")
    result = ilk("assign", "good.ilk", "less.csv")
    assert "--absent missing" in result.stderr
    on_screen(result.stderr)
    with pytest.raises(DataError, match='absent="missing"'):
        package.load(tables / "good.ilk" / "model.ilk").assign(tables / "less.csv")


CAUTIONS = {
    "missing-marks": (("marks.csv", "--k", "2"), "--missing NA"),
    "few-values": (("codes.csv", "--k", "2"), "--types 'how many=categorical'"),
    "looks-like-id": (("codes.csv", "--k", "2"), "--ignore run"),
    "digits-as-text": (("codes.csv", "--k", "2"), "--types digits=numeric"),
    "numbers-read": (("comma.csv", "--k", "2", "--types", "x=categorical"), "--types y=categorical"),
    "encoding": (("latin.csv", "--k", "2"), "--encoding cp1250"),
    "one-column-decides": (("codes.csv", "--method", "k-means", "--scale", "none", "--k", "2"), "--scale standard"),
    "k-at-limit": (("four.csv", "--method", "k-means", "--k", "1..3"), "--k 1..6"),
}  # fmt: skip


@pytest.mark.parametrize("code", CAUTIONS)
def test_cautions_name_what_is_typed(ilk, tables, code):
    (file, *rest), typed_text = CAUTIONS[code]
    result = ilk("fit", file, *rest)
    assert result.exit_code == 0, result.stderr
    summary = json.loads((tables / file.replace(".csv", ".ilk") / "summary.json").read_text())
    told = {warning["code"]: warning for warning in summary["warnings"]}
    assert code in told, told
    option = told[code]["options"][0]
    assert option["command_line"] == typed_text
    assert option["python"] in told[code]["text"]
    assert "--" not in told[code]["text"]
    screen = " ".join(result.stdout.split())
    assert typed_text in screen
    on_screen(screen)
    if code in ("missing-marks", "few-values", "looks-like-id", "digits-as-text"):
        looked = ilk("columns", file)
        assert typed_text in looked.stderr
        on_screen(looked.stderr)


@pytest.mark.parametrize(
    ("value", "python", "line"),
    [
        (range(1, 19), "x=range(1, 19)", "--x 1..18"),
        ({"it's": "categorical"}, """x={"it's": "categorical"}""", """--x 'it'"'"'s=categorical'"""),
        ({"a": ["low", "high"]}, 'x={"a": ["low", "high"]}', "--x FILE"),
        (["-", "?"], 'x=["-", "?"]', "--x - --x '?'"),
        ("\t", r'x="\t"', "--x '\t'"),
        ('"', """x='"'""", """--x '"'"""),
        ("", 'x=""', "--x ''"),
        (None, "x=None", "--x none"),
        (2.5, "x=2.5", "--x 2.5"),
    ],
)
def test_both_spellings(value, python, line):
    assert str(Option("x", value)) == python
    assert Option("x", value).typed() == line
    assert typed(f"give {python}, not y", [Option("x", value)]) == f"give {line}, not y"


OPTIONS = (Option("k", range(1, 9)), Option("types", {"a": "numeric"}), Option("threads", 0))


def test_errors_and_cautions_travel_with_their_options():
    error = UsageError(
        "bad-k", f"{OPTIONS[0]} is not", where="t.csv", do=f"Give {OPTIONS[1]}", options=OPTIONS
    )
    for kind in (error, DataError("a", "b", options=OPTIONS), NoRowsForGroups(5, 3)):
        there = pickle.loads(pickle.dumps(kind))
        assert (type(there), str(there), vars(there)) == (type(kind), str(kind), vars(kind))
    home = Refused.of(error).error()
    assert isinstance(home, UsageError)
    assert vars(home) == vars(error)
    caution = Caution("a", "k=2", [Option("k", 2)])
    there = pickle.loads(pickle.dumps(caution))
    assert (there, there.options, type(there)) == (caution, caution.options, Caution)
    warning = pickle.loads(pickle.dumps(IlkWarning("a", "b", OPTIONS)))
    assert (warning.code, warning.text, warning.options) == ("a", "b", OPTIONS)


IN_PYTHON_CALLS = [
    {"k": 0}, {"k": range(5, 2)}, {"k": "many"}, {"budget": -1}, {"scale": "big"}, {"method": "k-meens"},
    {"merge": "never"}, {"threads": 0}, {"weight": "monye"}, {"min_size": 9, "max_size": 5}, {"min_size": 0},
    {"types": {"monye": "numeric"}}, {"ignore": ["monye"]}, {"method": "spectral", "max_size": 30},
    {"method": "mean-shift", "k": 2}, {"k": 2, "max_size": 10}, {"types": {"x": "numbr"}},
]  # fmt: skip


@pytest.mark.parametrize("given", IN_PYTHON_CALLS, ids=str)
def test_python_never_hears_of_a_command_line(given):
    x, y = two_groups().T
    with pytest.raises(IlkError) as caught:
        package.cluster({"x": x, "y": y}, **given)
    text = str(caught.value)
    assert "--" not in text
    for option in caught.value.options:
        assert str(option) in text
        assert option.typed() in typed(text, caught.value.options)

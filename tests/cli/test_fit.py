"""`ilk fit` and `ilk demo` as a user meets them."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import shlex
from pathlib import Path

import pytest

from ilk import kernels

DATA = Path(__file__).parents[1] / "data"
TABLES = sorted(path.name for path in DATA.glob("*.csv"))


def test_fit_writes_a_folder_and_prints_the_groups(ilk, blobs, tmp_path):
    result = ilk("fit", "blobs.csv", "--truth", "size")
    assert result.exit_code == 0, result.stderr
    assert sorted(p.name for p in (tmp_path / "blobs.ilk").iterdir()) == [
        "assignments.csv",
        "fits.ilk",
        "model.ilk",
        "report.html",
        "summary.json",
    ]
    lines = result.stdout.splitlines()
    assert lines[0] == (
        "blobs.csv       50 rows, 2 columns used (2 numeric), 1 left out, 1 not used for fitting (size)"
    )
    assert "left out        code (identifier: all different)" in lines
    assert any(re.match("chosen          gaussian [EVI]{3}, 2 groups ", line) for line in lines)
    assert any(line.startswith("trust           solid: 2 groups, clearly separated") for line in lines)
    assert any(line.startswith("  A         30   60.0%") and "x 1.2 (4.4) ▼" in line for line in lines)
    assert (
        "truth           purity 1.00 (largest class .60), ARI 1.00, NMI 1.00 against size: groups match size"
        in lines
    )
    size = round((tmp_path / "blobs.ilk" / "report.html").stat().st_size / 1000)
    assert lines[-2:] == [
        f"wrote           blobs.ilk/ report.html ({size} kB) assignments.csv model.ilk fits.ilk summary.json",
        "next            ilk explain blobs.ilk B   ilk assign blobs.ilk new.csv",
    ]
    assert max(map(len, lines)) <= 100


def test_assignments_name_the_row(ilk, blobs, tmp_path):
    assert ilk("fit", "blobs.csv", "--id", "code", "--truth", "size", "-q").stdout == ""
    with (tmp_path / "blobs.ilk" / "assignments.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["row", "code", "size", "group", "probability", "second", "novelty"]
    assert {(r["size"], r["group"], r["second"]) for r in rows} == {("low", "A", "B"), ("high", "B", "A")}
    assert rows[49]["row"] == "49"
    assert all(0 <= float(r["novelty"]) <= 1 for r in rows)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_clustered(ilk, name):
    # Without a compiler a search takes a minute: the best of some seconds is an answer too.
    budget = [] if kernels.COMPILED else ["--budget", "3s"]
    known = ["--truth", "target"] if "target" in (DATA / name).read_text().partition("\n")[0] else []
    result = ilk("fit", DATA / name, *known, *budget)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""


def test_demo_says_what_it_does_and_can_be_run_again(ilk, tmp_path):
    first = ilk("demo")
    assert first.exit_code == 0, first.stderr
    assert first.stderr == (
        "$ ilk fit penguins.csv --truth species --types year=categorical\n"
        f"report: {tmp_path / 'penguins.ilk' / 'report.html'}\n"
    )
    assert "penguins.csv    344 rows, 7 columns used (4 numeric, 1 binary, 2 categorical)" in first.stdout
    assert ilk("demo").exit_code == 0
    # A folder of the user's own is not the demo's to write over.
    os.remove(tmp_path / "penguins.ilk" / "summary.json")
    assert ilk("demo").exit_code == 2


def test_same_seed_same_bytes_for_any_threads(ilk, tmp_path):
    for threads in (1, 2):
        ilk("fit", DATA / "penguins.csv", "-o", f"t{threads}", "--threads", threads, "-q")
    for name in ("model.ilk", "assignments.csv"):
        assert (tmp_path / "t1" / name).read_bytes() == (tmp_path / "t2" / name).read_bytes()


def test_parquet_in_parquet_out(ilk, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"x": [1.0, 1.1, 1.2, 8.0, 8.1], "y": [3.0, 3.3, 3.1, 9.0, 9.4]}), tmp_path / "t.parquet"
    )
    result = ilk("fit", "t.parquet", "--k", "2")
    assert result.exit_code == 0, result.stderr
    back = pq.read_table(tmp_path / "t.ilk" / "assignments.parquet")
    assert back.column_names == ["row", "group", "second", "novelty"]
    assert back["group"].to_pylist()[:5] == ["A", "A", "A", "B", "B"]


def test_options_reach_the_job(ilk, blobs, tmp_path):
    result = ilk(
        "fit", "blobs.csv", "--k", "2..4", "--method", "k-medians", "--scale", "none", "--ignore", "y",
        "--types", "size=ignore", "--seed", "7", "--budget", "1m", "--output", "here", "--no-rows", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    options = summary["options"]
    assert options["k"] == [2, 3, 4]
    assert (options["method"], options["scale"], options["seed"], options["budget"]) == (
        "k-medians",
        None,
        7,
        60,
    )
    assert {c["name"]: c["role"] for c in summary["table"]["columns"]} == {
        "code": "left out", "x": "used", "y": "left out", "size": "left out",
    }  # fmt: skip
    assert [c["k"] for c in summary["candidates"]] == [1, 2, 3, 4]
    assert summary["candidates"][0]["status"] == "reference"
    assert not (tmp_path / "here" / "assignments.csv").exists()


def test_sql_weight_and_text_options(ilk, tmp_path):
    (tmp_path / "w.csv").write_text("a;n\n" + "1,5;2\n1,6;1\n9,5;1\n9,7;3\n" * 5)
    options = ("--sep", ";", "--decimal", ",", "--weight", "n", "--k", "2")
    result = ilk("fit", "w.csv", *options, "--sql", "select * from data where a > 1", "--json")
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    assert summary["table"]["weight"] == 35
    assert [g["share"] for g in summary["groups"]] == [20 / 35, 15 / 35]
    assert "shares are by weight (n)" in ilk("fit", "w.csv", *options, "--force").stdout


def test_types_file_round_trip(ilk, tmp_path):
    assert ilk("columns", DATA / "penguins.csv", "-o", "types.toml").exit_code == 0
    text = (tmp_path / "types.toml").read_text().replace('"year" = "numeric"', '"year" = "ignore"')
    (tmp_path / "types.toml").write_text(text)
    summary = json.loads(ilk("fit", DATA / "penguins.csv", "--types", "types.toml", "--json").stdout)
    assert next(c["role"] for c in summary["table"]["columns"] if c["name"] == "year") == "left out"


def test_dry_run_writes_nothing(ilk, blobs, tmp_path):
    result = ilk("fit", "blobs.csv", "--dry-run")
    assert result.exit_code == 0
    assert "would try       assorted, K 1-9, 50 rows, 3 columns" in result.stdout
    assert "would write     blobs.ilk/" in result.stdout
    assert json.loads(ilk("fit", "blobs.csv", "--dry-run", "--json").stdout)["folder"] == "blobs.ilk"
    assert not (tmp_path / "blobs.ilk").exists()


def test_one_cloud_is_said_to_be_one(ilk):
    result = ilk("fit", DATA / "monk3_full.csv", "--ignore", "target")
    assert result.exit_code == 0
    assert "no clear groups: " in result.stdout
    assert "what sets it apart" not in result.stdout


KEYS = {
    "schema": str, "version": list, "null": str, "ilk": str, "source": str, "table": dict, "options": dict,
    "search": dict, "candidates": list, "chosen": dict, "verdict": dict, "groups": list, "warnings": list,
    "interrupted": bool, "files": list, "folder": str, "seconds": float,
}  # fmt: skip
GROUP = {"letter": str, "name": str, "rows": int, "weight": float, "share": float, "facts": list}
FACT = {
    "column": str,
    "type": str,
    "used": bool,
    "nats": float,
    "distinctive": bool,
    "sign": str,
    "decimals": int,
}
CANDIDATE = {"method": str, "k": int, "status": str, "n_starts": int, "seconds": float}


def has(document, keys):
    for key, kind in keys.items():
        assert isinstance(document[key], kind), key


@pytest.mark.badinput("E12")
@pytest.mark.parametrize("name", ["penguins.csv", "monk3_full.csv", "credit_approval.csv"])
def test_summary_is_valid_json_of_the_promised_shape(ilk, tmp_path, name):
    result = ilk("fit", DATA / name, "--truth", "target", "--json", "-o", "out")
    assert result.exit_code == 0, result.stderr

    def refuse(text):
        raise AssertionError(f"{text} is not JSON")

    summary = json.loads(result.stdout, parse_constant=refuse)
    assert json.loads((tmp_path / "out" / "summary.json").read_text(), parse_constant=refuse) == summary
    has(summary, KEYS)
    assert (summary["schema"], summary["version"]) == ("ilk-summary", [2, 4])
    for candidate in summary["candidates"]:
        has(candidate, CANDIDATE)
        assert candidate["bic"] is None or math.isfinite(candidate["bic"])
    for group in summary["groups"]:
        has(group, GROUP)
        for fact in group["facts"]:
            has(fact, FACT)
        assert [f["nats"] for f in group["facts"]] == sorted(
            (f["nats"] for f in group["facts"]), reverse=True
        )
    for warning in summary["warnings"]:
        assert set(warning) == {"code", "text", "options"}
        assert warning["code"].replace("-", "").isalnum()
    ledger = summary["table"]["ledger"]
    assert ledger["read"] == ledger["used"] + sum(p["count"] for p in ledger["set_aside"])
    assert sum(g["rows"] for g in summary["groups"]) == summary["table"]["rows_used"] == ledger["used"]
    assert summary["verdict"]["word"] in ("solid", "fair", "weak", "no clear groups")
    assert sum(map(sum, summary["truth"]["counts"])) == summary["truth"]["rows"]


def test_the_command_to_run_again_has_every_option_that_matters(ilk, blobs, tmp_path):
    query = "select * exclude (code) from data where x <> 1.2"
    first = ilk(
        "fit", "blobs.csv", "--sql", query, "--missing", "?", "--missing", "-", "--merge", "none", "-q"
    )
    assert first.exit_code == 0, first.stderr
    found = json.loads((tmp_path / "blobs.ilk" / "summary.json").read_text())
    assert found["table"]["rows"] == 44
    command = shlex.split(found["reproduce"]["command"])
    assert command[:2] == ["ilk", "fit"]
    assert "ilk.cluster(data, merge='none')" in found["reproduce"]["python"]
    again = ilk(*command[1:], "-o", "again", "-q")
    assert again.exit_code == 0, again.stderr
    for name in ("model.ilk", "assignments.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "blobs.ilk" / name).read_bytes()

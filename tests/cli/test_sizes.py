"""`--min-size`, `--max-size` and `--match-to` on the command line."""

from __future__ import annotations

import csv
import json
from collections import Counter

import pytest


def groups_of(folder):
    with (folder / "assignments.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_full_groups_hand_rows_on(ilk, blobs, tmp_path):
    result = ilk("fit", "blobs.csv", "--max-size", "26", "--json")
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    assert summary["sizing"]["moved"] == 4
    assert summary["sizing"]["moves"] == [{"from": "A", "to": "B", "rows": 4}]
    assert [w["code"] for w in summary["warnings"]].count("max-size") == 1
    assert "--max-size 26" in summary["reproduce"]["command"]
    assert "max_size=26" in summary["reproduce"]["python"]
    rows = groups_of(tmp_path / "blobs.ilk")
    assert Counter(row["group"] for row in rows) == {"A": 26, "B": 24}
    moved = [row for row in rows if row["group"] == "B" and int(row["row"]) < 30]
    assert {row["second"] for row in moved} == {"A"}  # their best group
    assert all(float(row["probability"]) < 0.5 for row in moved)
    # New rows get their best group.
    assert ilk("assign", "blobs.ilk", "blobs.csv", "-q").stdout.count(",A,1.0,B,") == 30


def test_small_groups_join(ilk, blobs):
    result = ilk("fit", "blobs.csv", "--method", "k-means", "--k", "3", "--min-size", "15")
    assert result.exit_code == 0, result.stderr
    assert "min-size  a group of " in result.stdout
    assert "was merged into" in result.stdout


def test_letters_and_names_of_an_earlier_run(ilk, blobs, tmp_path):
    ilk("fit", "blobs.csv", "--name", "A=the low ones", "-q")
    head, *rows = blobs.read_text().splitlines()
    (tmp_path / "later.csv").write_text("\n".join([head, *rows[20:]]) + "\n")  # the low ones are now fewer
    result = ilk("fit", "later.csv", "--match-to", "blobs.ilk")
    assert result.exit_code == 0, result.stderr
    assert "matched         to blobs.ilk: B, A as before" in result.stdout
    summary = json.loads((tmp_path / "later.ilk" / "summary.json").read_text())
    assert [(g["letter"], g["rows"]) for g in summary["groups"]] == [("B", 20), ("A", 10)]
    assert summary["groups"][1]["name"] == "the low ones"
    assert ilk("explain", "later.ilk", "A").stdout.startswith("A               the low ones")
    compared = ilk("compare", "blobs.ilk", "later.ilk", "--id", "code")
    assert compared.exit_code == 2  # neither run kept the id


@pytest.mark.parametrize(
    ("args", "exit_code", "code"),
    [
        (("--max-size", "0"), 2, "bad-size"),
        (("--min-size", "-3"), 2, "bad-size"),
        (("--min-size", "30", "--max-size", "20"), 2, "bad-size"),
        (("--min-size", "51"), 2, "bad-size"),
        (("--max-size", "10", "--k", "2"), 2, "too-few-groups"),
        (("--match-to", "nowhere"), 2, "no-run"),
        (("--match-to", "blobs.csv"), 6, "not-a-model"),
    ],
)
def test_refusals(ilk, blobs, args, exit_code, code):
    result = ilk("fit", "blobs.csv", *args)
    assert result.exit_code == exit_code, result.stderr
    assert result.stderr.startswith(f"error [{code}]: ")
    assert "Traceback" not in result.stderr
    assert "_size" not in result.stderr  # options as they are typed

"""Weights are counts of rows or those of a sample: by their size where nobody says, in memory and in pieces."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ilk
from ilk.analysis.job import Job
from ilk.analysis.prepare import prepare
from ilk.errors import DataError, IlkWarning, UsageError
from ilk.fitting.weights import row_weights
from ilk.table.out_of_core import memory_limit as room
from ilk.table.out_of_core.table import PieceTable
from ilk.table.weights import WeightFacts

N = 800


def survey(unit: float = 5_000.0, spread: float = 0.6) -> dict[str, Any]:
    """Two groups of persons; a row stands for some thousands, as whole numbers."""
    draws = np.random.default_rng(0)
    group = np.arange(N) % 2
    table = {f"x{j}": draws.normal(size=N) + 4.0 * group * (j < 2) for j in range(3)}
    return table | {"persons": np.maximum(1, (unit * draws.lognormal(0, spread, N)).round())}


def found(table: dict[str, Any], **asked: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IlkWarning)
        return ilk.cluster(table, **asked)


def facts(*weight: float) -> WeightFacts:
    return WeightFacts.of(np.array(weight, dtype=float))


@pytest.mark.parametrize(
    ("weight", "meaning"),
    [
        ((1, 2, 1, 3), "counts"),
        ((0, 0, 3), "counts"),
        ((118, 387, 4, 1667), "counts"),  # a table of counts: many on average, few in all
        ((100,) * 500, "counts"),
        ((101,) * 500, "sampling"),
        ((3_400_000, 83_000_000), "sampling"),  # inhabitants
        ((0.5, 1.5), "sampling"),
        ((1.0, 1.0, 1.5), "sampling"),
        ((1e-9, 2e-9), "sampling"),
    ],
)
def test_what_weights_are_taken_for(weight: tuple[float, ...], meaning: str) -> None:
    assert facts(*weight).meaning == meaning
    assert (facts(*weight).unit_as(None) == 1) == (facts(*weight).unit_as(meaning) == 1)
    assert facts(*weight).unit_as("counts") == 1


def test_persons_of_a_survey_keep_k_and_trust() -> None:
    table = survey()
    assert table["persons"].sum() > 1e6
    plain = found(table, ignore="persons")
    weighted = found(table, weight="persons")
    assert (plain.k, plain.verdict.word) == (weighted.k, weighted.verdict.word) == (2, plain.verdict.word)
    assert np.mean(plain.labels == weighted.labels) > 0.98
    text = dict(weighted.warnings)["sampling-weights"]
    effective = table["persons"].sum() ** 2 / (table["persons"] ** 2).sum()
    assert f"on {effective:,.0f} effective rows (Kish)" in text
    assert text.endswith('weights_are="counts"')
    assert weighted.summary()["table"]["weight"] == pytest.approx(table["persons"].sum())
    assert sum(group.weight for group in weighted.groups) == pytest.approx(table["persons"].sum())


def test_rows_and_persons_in_any_unit_are_the_same() -> None:
    """Thousands of persons, persons and shares: the same weights."""
    table = survey()
    usual = found(table, weight="persons")
    for unit in (2.0**-20, 2.0**10):
        again = found(table | {"persons": table["persons"] * unit}, weight="persons")
        np.testing.assert_array_equal(again.labels, usual.labels)
        assert again.verdict.word == usual.verdict.word


def test_the_word_of_the_user_counts() -> None:
    table = survey()
    table["persons"] = table["persons"].astype(int) % 3 + 1
    counted, sampled = (found(table, weight="persons", weights_are=w) for w in ("counts", "sampling"))
    rows = {w: prepare(Job(table, weight="persons", weights_are=w)).rows for w in ("counts", "sampling")}
    total, effective = table["persons"].sum(), table["persons"].sum() ** 2 / (table["persons"] ** 2).sum()
    assert row_weights(rows["counts"]).effective_rows == total
    assert row_weights(rows["sampling"]).total == pytest.approx(effective, rel=0.42)  # a power of two
    assert "sampling-weights" not in dict(counted.warnings) | dict(sampled.warnings)
    np.testing.assert_array_equal(found(table, weight="persons").labels, counted.labels)
    assert sampled.summary()["options"]["weights_are"] == "sampling"
    assert 'weights_are="sampling"' in sampled.summary()["reproduce"]["python"].replace("'", '"')
    assert "--weights-are sampling" in sampled.summary()["reproduce"]["command"]


def test_whole_weights_are_still_repeated_rows() -> None:
    table = {name: cells[:120] for name, cells in survey().items()}
    table["persons"] = np.arange(120) % 3 + 1
    once = found(table, weight="persons")
    again = found(
        {name: np.repeat(cells, table["persons"]) for name, cells in table.items()}, ignore="persons"
    )
    np.testing.assert_array_equal(np.repeat(once.labels, table["persons"]), again.labels)
    assert once.verdict.word == again.verdict.word


def test_refusals() -> None:
    table = survey()
    with pytest.raises(UsageError, match='weights_are="person" is not known'):
        ilk.cluster(table, weight="persons", weights_are="person")
    with pytest.raises(UsageError, match='weights_are="counts" was given, and no weights'):
        ilk.cluster(table, weights_are="counts")
    with pytest.raises(DataError, match="which is no number of rows"):
        ilk.cluster(table | {"persons": np.full(N, 2.0**50)}, weight="persons", weights_are="counts")


def test_in_pieces_as_in_memory(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "LEAST", 0)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(survey()), path, row_group_size=300)
    for meaning in (None, "counts"):
        whole = prepare(Job(path, weight="persons", weights_are=meaning))
        pieces = prepare(Job(path, weight="persons", weights_are=meaning, memory=10.0))
        assert isinstance(pieces.table, PieceTable)
        assert pieces.weight_unit == whole.weight_unit
        told = [dict(given.warnings).get("sampling-weights") for given in (whole, pieces)]
        assert told[0] == told[1]
        assert (told[0] is None) == (meaning is not None)


def test_on_the_command_line(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from ilk.cli.main import cli

    monkeypatch.chdir(tmp_path)
    table = survey()
    rows = [table, *zip(*(cells[:200] for cells in table.values()), strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    result = CliRunner().invoke(cli, ["fit", "t.csv", "--weight", "persons", "--k", "2"])
    assert result.exit_code == 0, result.stderr
    assert "if they count repeated rows: --weights-are counts" in " ".join(result.stdout.split())
    told = CliRunner().invoke(
        cli,
        ["fit", "t.csv", "--weight", "persons", "--k", "2", "--weights-are", "sampling", "--json", "--force"],
    )
    summary = json.loads(told.stdout)
    assert summary["options"]["weights_are"] == "sampling"
    assert "sampling-weights" not in [warning["code"] for warning in summary["warnings"]]

"""Dates and times as columns: described back as dates wherever a person reads; parts that come again."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import ilk
from ilk.analysis.prepare import Job, prepare
from ilk.cli.main import cli
from ilk.export.dialects import dialect_of
from ilk.export.sql import select
from ilk.report.figures import value_text
from ilk.table.read import read
from ilk.table.schema import Schema
from ilk.table.understand import understand

N = 400


@pytest.fixture(scope="module")
def shops(tmp_path_factory):
    """Two kinds of shops: those of January 2024 and those of November 2024."""
    draws, kind = np.random.default_rng(0), np.arange(N) % 2
    since = pd.Timestamp("2024-01-01") + pd.to_timedelta(draws.integers(0, 40, N) + 300 * kind, unit="D")
    frame = pd.DataFrame(
        {"revenue": np.exp(draws.normal(6 + 3 * kind, 0.3)).round(2), "since": since.strftime("%d.%m.%Y")}
    )
    path = tmp_path_factory.mktemp("shops") / "shops.csv"
    frame.to_csv(path, index=False)
    return path


def test_dates_are_told_as_dates_everywhere(shops, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(cli, ["fit", str(shops)]).stdout
    assert "since 2024-01-20 (2024-06-19) ▼" in told
    assert "since 2024-11-17 (2024-06-19) ▲" in told
    explained = CliRunner().invoke(cli, ["explain", "shops.ilk", "A"]).stdout
    assert "since is earlier: 2024-01-20 on average, 2024-06-19 in the whole table" in " ".join(
        explained.split()
    )
    assert "since 2024-01-2" in explained.split("typical")[1]
    page = (tmp_path / "shops.ilk" / "report.html").read_text()
    assert "2024-01-01 to 2024-12-05" in page
    assert "2024-01-20" in page
    result = ilk.load("shops.ilk")
    assert [g.name for g in result.groups] == ["low revenue, early since", "late since, high revenue"]
    assert result.profile.loc[("since", "")].tolist() == ["2024-06-19", "2024-01-20", "2024-11-17"]
    assert result.profile.loc[("revenue", ""), "A"] < 500
    later = pd.read_csv(shops).assign(since="03.05.2026")
    checked = CliRunner()
    later.to_csv("later.csv", index=False)
    assert "since 2026-05-03 on average, was 2024-06-19" in " ".join(
        checked.invoke(cli, ["check", "shops.ilk", "later.csv"]).stdout.split()
    )


def test_rules_have_days(shops):
    result = ilk.cluster(shops, columns=["since"], k=2)
    texts = [str(group.rule) for group in result.groups]
    assert texts[0].startswith("since until 2024-0")
    assert texts[1].startswith("since after 2024-0")
    term = result.groups[0].rule.terms[0]
    assert term.clock["kind"] == "date"
    assert json.loads(json.dumps(result.summary()))["groups"][0]["facts"][0]["clock"] == term.clock


@pytest.mark.parametrize("value", [1e300, -1e15, 4e6])
def test_days_that_no_calendar_has_are_numbers(value):
    assert "-" in value_text(3.0, 0, {"kind": "date", "origin": 18262.0})
    assert value_text(value, 0, {"kind": "date", "origin": 18262.0}) == value_text(value)


def visits(which, n=600, seed=0, *, apart=2.5):
    """Two kinds of visits over two or three years: they differ in amount and items, and in when they come."""
    draws, kind = np.random.default_rng(seed), np.arange(n) % 2
    days, hours = draws.integers(0, 730, n), draws.uniform(0, 24, n)
    if which == "hour":
        hours = (np.where(kind, 23.5, 13) + draws.normal(0, 2, n)) % 24
    elif which == "weekday":
        days = days // 7 * 7 + np.where(kind, draws.choice([5, 6], n), draws.integers(0, 5, n))
    start = pd.Timestamp("2022-01-03") + pd.to_timedelta(days, unit="D")
    if which == "month":
        month = np.where(kind, draws.choice([6, 7, 8], n), draws.choice([1, 2, 10, 11, 12], n))
        start = pd.to_datetime(
            {"year": draws.integers(2022, 2025, n), "month": month, "day": draws.integers(1, 29, n)}
        )
    frame = pd.DataFrame(
        {
            "when": start + pd.to_timedelta(hours.round(2), unit="h"),
            "amount": draws.normal(0, 1, n) + apart * kind,
            "items": draws.normal(0, 1, n) + apart * kind,
        }
    )
    return frame, kind


PARTS = {
    "hour": (["when", "amount", "items", "hour of when"], "hour of when around 23:"),
    "weekday": (["when", "amount", "items", "weekday of when"], "weekday of when = Sat, Sun"),
    "month": (["amount", "items", "month of when"], "month of when = Jun, Jul, Aug"),
}


@pytest.mark.parametrize("which", PARTS)
def test_parts_that_come_again_tell_groups_apart(which, tmp_path):
    frame, kind = visits(which)
    result = ilk.cluster(frame)
    used, name = PARTS[which]
    assert [c.name for c in result.model.schema.used] == used
    assert result.k == 2
    assert len(set(zip(result.labels.tolist(), kind.tolist(), strict=True))) == 2
    own = result.groups[int(result.labels[1])]
    assert name in own.name
    assert f"'{used[-1]}'" in dict(result.warnings)["date-parts"]
    result.save(tmp_path / "m.ilk")
    model = ilk.load(tmp_path / "m.ilk")
    placed = model.assign(frame)
    assert placed["group"].tolist() == result.letters.tolist()
    as_text = frame.assign(when=frame["when"].dt.strftime("%Y-%m-%d %H:%M:%S"))
    text_model = ilk.cluster(as_text).model
    assert [c.name for c in text_model.schema.used] == used
    assert (text_model.assign(as_text)["group"] == placed["group"]).mean() > 0.99
    with pytest.raises(ilk.errors.UsageError, match=f"'{used[-1]}' is made of 'when'|'when' holds timestamp"):
        select(model, dialect_of("duckdb"), "data")
    assert ilk.check(result, frame)["verdict"]["word"] == "no drift"
    with pytest.raises(ilk.errors.DataError, match="lacks 1 column of the model: 'when'"):
        model.assign(frame[["amount", "items"]])
    alone = ilk.cluster(frame, types={"when": "numeric"})
    assert [c.name for c in alone.model.schema.used] == ["when", "amount", "items"]


@pytest.mark.parametrize("seed", range(4))
def test_dates_that_say_nothing_have_no_parts(seed):
    frame, _ = visits("none", seed=seed)
    schema = prepare(Job(frame)).schema
    assert [c.name for c in schema.used] == ["when", "amount", "items"]


@pytest.mark.parametrize("seed", range(6))
def test_uniform_times_claim_no_groups(seed):
    frame, _ = visits("none", seed=seed, apart=0.0)
    result = ilk.cluster(frame)
    assert [c.name for c in result.model.schema.used] == ["when", "amount", "items"]
    assert result.verdict.word in ("no clear groups", "weak")


def test_times_of_day():
    draws, kind = np.random.default_rng(1), np.arange(N) % 2
    minutes = ((np.where(kind, 23.5, 13) + draws.normal(0, 1.5, N)) % 24 * 60).astype(int)
    texts = [f"{m // 60}:{m % 60:02}" for m in minutes]
    halves = [f"{(m // 60 - 1) % 12 + 1}:{m % 60:02} {'pm' if m >= 720 else 'am'}" for m in minutes]
    times = [datetime.time(m // 60, m % 60) for m in minutes]
    results = [
        ilk.cluster({"at": cells, "x": draws.normal(size=N) * 0}, k=2) for cells in (texts, halves, times)
    ]
    for result in results:
        assert result.labels.tolist() == results[0].labels.tolist()
        assert (np.bincount(result.labels[kind == 1], minlength=2).max()) > 0.98 * N / 2
        assert sorted(group.name.split(" around ")[0] for group in result.groups) == ["at", "at"]
        assert {group.name.split(" around ")[1][:2] for group in result.groups} <= {"12", "13", "23", "22"}
        assert "times-read" in dict(result.warnings)
        rule = str(result.groups[int(result.labels[1])].rule)
        assert rule.startswith("at from 1")
        assert " to 0" in rule
    model = results[0].model
    assert model.assign({"at": ["23:10", "12:50"], "x": [0.0, 0.0]})["group"].to_pylist() == [
        model.letters[results[0].labels[1]], model.letters[results[0].labels[0]],
    ]  # fmt: skip


def test_durations_are_no_times():
    schema = understand(read({"c": [f"{20 + i % 9}:{i % 60:02}" for i in range(60)], "x": [*range(60)]}))
    assert schema["c"].written is None


def test_a_damaged_part_is_refused():
    frame, _ = visits("weekday", 200)
    schema = ilk.cluster(frame, k=2).model.schema
    plain = json.loads(json.dumps(schema.to_dict()))
    assert Schema.from_dict(plain) == schema
    entry = next(c for c in plain["columns"] if c["source"])
    for damage in ({"source": 3}, {"written": {**entry["written"], "part": "year"}}):
        with pytest.raises(ilk.errors.ModelFileError):
            Schema.from_dict({**plain, "columns": [{**entry, **damage}]})

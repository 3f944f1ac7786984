"""Dates and times as columns: described back as dates wherever a person reads; parts that come again."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import ilk
from ilk.cli.main import cli
from ilk.report.figures import value_text

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
    assert "since is earlier: 2024-01-20 on average, 2024-06-19 in the whole table" in " ".join(explained.split())
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

"""Pages of summaries that lack something, or have much of it: what is not there is left out or said, never made up."""

from __future__ import annotations

import errno
import json
import os
import re

import numpy as np
import pytest

import ilk
from ilk.errors import ModelFileError, UsageError
from ilk.report.notebook import fragment
from ilk.report.page import page
from ilk.report.provenance import call, command
from ilk.report.reading import read_summary
from tests.report.test_page import read


def words_of(summary):
    return " ".join(" ".join(read(page(summary)).words).split())


def block(summary, number):
    """The words of one block of the page."""
    found = re.search(rf'<section[^>]* id="s{number}".*?</section>', page(summary), re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", found.group(0)).split())


def test_a_verdict_without_its_sentence_is_told_by_its_first_two_reasons(wine):
    summary = wine.summary()
    summary["verdict"].update(
        sentence=None,
        reasons=[{"code": "x", "text": f"the {n} reason"} for n in ("first", "second", "third")],
    )
    said = block(summary, 1)
    assert "The first reason. The second reason." in said
    assert "third reason" not in said


def test_cautions_beyond_five_are_folded(wine):
    summary = wine.summary()
    summary["warnings"] = [{"code": f"code-{i}", "text": f"beware of {i}"} for i in range(7)]
    text = page(summary)
    assert "2 more" in text
    assert re.search(r"<details.*?beware of 5.*?beware of 6.*?</details>", text, re.DOTALL)
    assert all(f"beware of {i}" in text for i in range(7))


def test_a_search_in_a_sample_says_so(wine):
    summary = wine.summary()
    summary["chosen"]["bic_all_rows"] = summary["chosen"]["bic"]
    summary["search"]["rows"] = 12_345
    assert "The search used a sample of 12,345 rows" in block(summary, 5)


def test_the_line_of_the_chosen_model_is_drawn_wherever_it_ranks(wine):
    """Six lines are drawn, those of lowest BIC; here the chosen one is behind all of them."""
    summary = wine.summary()
    assert len({cell["structure"] for cell in summary["candidates"]}) > 6
    chosen = summary["chosen"]["structure"]
    for cell in summary["candidates"]:
        if cell["structure"] == chosen and cell["bic"] is not None:
            cell["bic"] += 1e6
    assert chosen in re.search(r"BIC above the best.*?</svg>", page(summary), re.DOTALL).group(0)


def test_differences_of_bic_beyond_all_steps_have_an_axis(wine):
    summary = wine.summary()
    cell = next(c for c in summary["candidates"] if c["bic"] is not None and c["k"] == 1)
    cell["structure"], cell["bic"] = summary["chosen"]["structure"], cell["bic"] + 5e8
    assert "+10,000,000" in block(summary, 5)


def test_where_nothing_else_was_measured_the_starts_are_told_if_there_were_some(wine):
    summary = wine.summary()
    summary["verdict"].update(separation=None, stability_min=None, icl_k=None)
    for cell in summary["candidates"]:
        cell.update(n_starts=8, n_starts_at_best=3)
    assert "Starts that reached the best 3 of 8" in block(summary, 1)
    for cell in summary["candidates"]:
        cell["n_starts"] = None
    assert "Starts that reached the best" not in words_of(summary)


def test_lines_that_were_skipped_are_told(wine):
    summary = wine.summary()
    summary["table"]["ledger"]["skipped"] = [
        {"count": 3, "unit": "line", "reason": "they have too many cells"}
    ]
    assert "Skipped: 3 lines, they have too many cells." in block(summary, 8)


def test_a_group_like_the_whole_table_says_so(wine):
    summary = wine.summary()
    group = summary["groups"][0]
    group.update(pair=None, unlike=None, rule=None, nearest=None)
    for fact in group["facts"]:
        fact["distinctive"] = False
    card = re.search(r'<article[^>]* id="g0".*?</article>', page(summary), re.DOTALL).group(0)
    assert "No clear difference from the whole table." in card
    for absent in ("Most like", "In short", "least separated"):
        assert absent not in card


def test_a_group_without_described_rows_shows_none(wine):
    summary = wine.summary()
    summary["rows"]["groups"][0].update(typical=[], border=[])
    summary["rows"]["unusual"] = []
    summary["map"]["ellipses"][0] = None
    text = page(summary)
    assert "Typical and border rows" not in re.search(
        r'<article[^>]* id="g0".*?</article>', text, re.DOTALL
    ).group(0)
    assert "Typical and border rows" in re.search(
        r'<article[^>]* id="g1".*?</article>', text, re.DOTALL
    ).group(0)
    assert "Most unusual" not in block(summary, 7)
    assert len(re.findall("<ellipse ", text)) == len(summary["groups"]) - 1


def test_an_axis_that_no_column_stands_for_has_no_names_at_its_ends(wine):
    summary = wine.summary()
    for ends in summary["map"]["ends"]:
        ends.update(low=[], high=[])
    chart = re.search(r'<div id="map">.*?</svg>', page(summary), re.DOTALL).group(0)
    assert not set("←→↑↓") & set(chart)
    assert "axis 1:" in chart


def test_columns_without_values(wine):
    summary = wine.summary()
    first = summary["profile"][0]
    first["distribution"]["groups"][0] = [0] * len(first["distribution"]["groups"][0])
    assert "all missing" in block(summary, 3)
    for entry in summary["profile"]:
        entry["distribution"] = None
    assert "No column has a value to show." in block(summary, 3)


def test_silhouettes_and_stabilities_that_were_not_measured(wine):
    summary = wine.summary()
    assert "Silhouettes by group" in page(summary)
    for entry in summary["silhouettes"]:
        entry["values"] = []
    for number, group in enumerate(summary["groups"]):
        group["stability"] = None if number == 0 else 0.9
    assert block(summary, 6).count("too small to measure") == 1
    assert "Silhouettes by group" not in page(summary)


def test_a_page_without_how_it_was_made(wine):
    summary = wine.summary()
    assert "sha256" in block(summary, 9)
    summary["reproduce"]["fingerprint"] = None
    assert "sha256" not in block(summary, 9)
    assert "Command line" in block(summary, 9)
    summary["reproduce"] = None
    said = block(summary, 9)
    assert "Command line" not in said
    assert "Versions" not in said
    assert "Seed" in said


def test_colours_are_those_of_groups_that_are_there(wine):
    summary = wine.summary()
    plain = page(summary)
    summary["colours"] = {"Q": 3, "A": 99, "B": "red"}
    assert re.search("<style>.*?</style>", page(summary), re.DOTALL).group(0) == re.search(
        "<style>.*?</style>", plain, re.DOTALL
    ).group(0)
    summary["colours"] = {"A": 3}
    assert ".ilk .g0,.ilk.g0{--c:var(--g2);--on:var(--g2-on)}" in page(summary)


def test_a_picture_of_two_columns_whose_range_is_one_value(striped):
    summary = striped.summary()
    axis = summary["pairs"][0]["axes"][0]
    axis["from"] = axis["to"] = 3.0
    chart = re.search(r'<div id="pairs".*?</svg>', page(summary), re.DOTALL).group(0)
    assert re.search(r">3</text>", chart)
    assert "nan" not in chart


def test_many_groups_of_categories_are_a_table_of_greys():
    draws = np.random.default_rng(0)
    labels = np.repeat(np.arange(14), 40)
    table = {
        "soil": np.array(["clay", "sand"])[np.where(labels < 7, 0, draws.integers(0, 2, 560))],
        "size": labels * 5.0 + draws.normal(size=560),
        "depth": np.where(labels == 13, np.nan, draws.normal(size=560)),
    }
    summary = ilk.describe(table, labels).summary()
    heat = re.search(r'<table[^>]*class="heat".*?</table>', page(summary), re.DOTALL).group(0)
    assert re.search(r'data-tip="A, soil: (clay|sand) \d+% \(all \d+%\)"', heat)
    blank = next(
        group["letter"] for group in summary["groups"] if any(f["missing"] == 1 for f in group["facts"])
    )
    assert f'data-tip="{blank}, depth' not in heat
    assert f'data-tip="{blank}, size' in heat


def test_a_notebook_shows_one_group_without_a_table_and_groups_without_stability(wine):
    summary = wine.summary()
    assert '<th scope="col">stability</th>' in fragment(summary)
    for group in summary["groups"]:
        group["stability"] = None
    assert "stability</th>" not in fragment(summary)
    summary["groups"] = summary["groups"][:1]
    assert "<table>" not in fragment(summary)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"types": "my types.json"}, "--types 'my types.json'"),
        ({"types": {"year": "categorical"}}, "--types year=categorical"),
        ({"budget": 90.0}, "--budget 90s"),
        ({"scale": None}, "--scale none"),
        ({"known": None, "k": "auto"}, "--known COLUMN"),
        ({"transforms": {"income": "log"}, "k": "auto"}, "--transform income=log"),
        ({"must_link": [(1, 2)], "k": "auto"}, "--must-link 1,2"),
        ({"column_weights": {"my x": 2.0}, "k": "auto"}, "--column-weight 'my x=2'"),
        (
            {"reading": {"sep": ";", "missing": ["?", "n/a"]}, "k": "auto"},
            "--sep ';' --missing '?' --missing n/a",
        ),
    ],
)
def test_the_command_has_what_was_asked_for(options, said):
    assert command({"k": 3, "seed": 0, **options}, "a.csv").endswith(said)


def test_the_call_says_which_groups_were_known():
    assert "ilk.cluster('a.csv', known=known)" in call({"known": None}, "a.csv")
    assert "ilk.cluster('a.csv', known='class')" in call({"known": "class"}, "a.csv")


def test_the_call_says_that_columns_were_not_scaled():
    assert "ilk.cluster('a.csv', scale=None)" in call({"scale": None}, "a.csv")


def test_shares_by_weight_and_rows_set_aside_are_said(wine):
    summary = wine.summary()
    summary["options"]["weight"] = "people"
    summary["table"]["ledger"]["set_aside"] = [{"count": 2, "unit": "row", "reason": "without a weight"}]
    assert "Shares are by weight ( people )." in block(summary, 1)
    assert "Set aside: 2 rows without a weight." in block(summary, 8)


def test_another_number_than_that_of_lowest_bic_is_said_to_be_so(wine):
    summary = wine.summary()
    chosen = summary["chosen"]
    best = min((c for c in summary["candidates"] if c["bic"] is not None), key=lambda c: c["bic"])
    chosen.update(as_asked=True, k=best["k"] + 1, components=best["k"] + 1, bic=best["bic"] + 12.25)
    assert "12.2 below that of" in block(summary, 5)
    chosen["bic"] = None
    assert "It is lowest for" not in block(summary, 5)


def test_groups_of_few_rows_have_a_letter_on_the_map_and_no_ellipse(wine):
    summary = wine.summary()
    summary["map"]["ellipses"][0].update(long=0.0, short=0.0)
    chart = re.search(r'<div id="map">.*?</svg>', page(summary), re.DOTALL).group(0)
    assert chart.count("<ellipse ") == len(summary["groups"]) - 1
    assert chart.count(">A</text>") == 1


def test_a_short_list_of_rows_has_no_fold(wine):
    summary = wine.summary()
    for key in ("least_certain", "unusual", "nearer"):
        summary["rows"][key] = summary["rows"][key][:3]
    assert "The next" not in block(summary, 7)


def test_of_many_categories_the_four_that_differ_most_are_drawn():
    draws = np.random.default_rng(0)
    labels = np.repeat([0, 1], 300)
    towns = np.array([f"town {i}" for i in range(7)])
    town = np.where(labels == 0, draws.integers(0, 5, 600), draws.choice([0, 1, 2, 5, 6], 600))
    profile = block(
        ilk.describe({"town": towns[town], "x": labels + draws.normal(size=600)}, labels).summary(), 3
    )
    assert all(f"town {i}" in profile for i in (3, 4, 5, 6))
    assert "3 others" in profile


def test_twenty_groups_have_overlaps_by_pairs_and_columns_count_their_groups(wine):
    draws = np.random.default_rng(0)
    labels = np.repeat(np.arange(16), 30)
    table = {"x": labels % 4 * 9.0, "y": labels // 4 * 9.0, "z": (labels < 9) * 5.0}
    table = {name: values + draws.normal(size=480) for name, values in table.items()}
    summary = ilk.describe(table, labels).summary()
    for entry in summary["profile"]:
        entry["distinctive_in"] = [group["letter"] for group in summary["groups"][:9]]
    assert "9 of 16" in block(summary, 8)
    summary["overlap"] = np.eye(16).tolist()
    assert "No pair overlaps by more than 0.01." in block(summary, 6)
    summary["overlap"][2][5] = 0.25
    assert "C F 0.25" in block(summary, 6)


LYING = {
    "no JSON": lambda summary: "{",
    "too deep": lambda summary: "[" * 10_000,
    "a list": lambda summary: "[]",
    "another document": lambda summary: json.dumps({**summary, "schema": "x"}),
    "no groups": lambda summary: json.dumps({**summary, "groups": []}),
    "a letter twice": lambda summary: json.dumps({**summary, "groups": summary["groups"][:1] * 2}),
    "rows of other groups": lambda summary: json.dumps({**summary, "groups": summary["groups"][:1]}),
}


@pytest.mark.parametrize("lie", LYING.values(), ids=LYING)
def test_a_summary_that_lies_is_refused(wine, tmp_path, lie):
    path = tmp_path / "summary.json"
    path.write_text(json.dumps(wine.summary()))
    assert read_summary(str(path))["groups"] == json.loads(path.read_text())["groups"]
    path.write_text(lie(wine.summary()))
    with pytest.raises(ModelFileError) as caught:
        read_summary(str(path))
    assert caught.value.code == "not-a-summary"


def test_a_summary_that_is_not_there_of_another_version_or_unreadable(wine, tmp_path, monkeypatch):
    path = tmp_path / "summary.json"
    with pytest.raises(UsageError) as caught:
        read_summary(str(path))
    assert caught.value.code == "no-run"
    path.write_text(json.dumps({**wine.summary(), "version": [99, 0]}))
    with pytest.raises(ModelFileError, match=r"version \[99, 0\]") as caught:
        read_summary(str(path))
    assert caught.value.code == "summary-version"
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(ModelFileError, match="symbolic link"):
        read_summary(str(tmp_path / "link"), follow=False)

    def unreadable(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", unreadable)
    with pytest.raises(ModelFileError, match="Permission denied") as caught:
        read_summary(str(path))
    assert caught.value.code == "summary-unreadable"


def test_one_group_has_no_words_about_others(cloud):
    summary = cloud.summary()
    rows = block({**summary, "groups": summary["groups"][:1]}, 7)
    assert "Rows unlike the others." in rows
    assert "between groups" not in rows
    assert "distinguishes" not in block({**summary, "groups": summary["groups"][:1]}, 8)
    assert "a value, a group" not in page({**summary, "groups": summary["groups"][:1]})

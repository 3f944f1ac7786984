"""`ilk.describe`: the report, the verdict and the explanation for labels that came from elsewhere."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

import ilk
from ilk.errors import DataError, IlkWarning, UsageError
from tests.analysis.test_paradigms import mixed_table, three_groups


def test_labels_of_another_program_get_the_whole_answer(tmp_path):
    table, _ = three_groups(90)
    X = np.column_stack([*table.values()])
    found = KMeans(3, n_init=5, random_state=0).fit_predict(X)
    result = ilk.describe(table, found)
    assert ilk.measures.ari(result.labels, found) == 1.0
    assert (result.k, result.verdict.word) == (3, "not tested")
    assert result.verdict.separation > result.verdict.thresholds["separation"]
    assert result.verdict.stability_min is None
    assert "clearly separated" in result.verdict.sentence
    assert "stability is not known" in result.verdict.sentence
    own = ilk.cluster(table, k=3, method="k-means")
    assert [g.rows for g in result.groups] == [g.rows for g in own.groups]
    by_rows = {tuple(np.flatnonzero(own.labels == g)): one for g, one in enumerate(own.groups)}
    for number, group in enumerate(result.groups):
        same = by_rows[tuple(np.flatnonzero(result.labels == number))]
        assert [fact.value for fact in group.facts] == [fact.value for fact in same.facts]
        assert group.silhouette == pytest.approx(same.silhouette, abs=1e-12)
        assert group.rule is not None
    assert list(result.importance.index) == list(own.importance.index)
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Three groups, as given" in page
    assert "ilk.describe(data, labels)" in page
    assert "has no BIC" not in page


def test_halves_of_one_cloud_are_weak():
    draws = np.random.default_rng(0)
    X = draws.normal(size=(400, 2))
    result = ilk.describe(X, (X[:, 0] > 0).astype(int))
    assert result.verdict.word == "weak"
    assert result.verdict.reasons[0].code == "not-separated"


def test_groups_that_wind_around_each_other_are_not_weak():
    draws = np.random.default_rng(0)
    turn = draws.uniform(0, 2 * np.pi, 900)
    radius = np.concatenate([4 * np.sqrt(draws.random(600)), np.full(300, 6.0)])
    X = np.column_stack([radius * np.cos(turn), radius * np.sin(turn)])
    result = ilk.describe(X, np.repeat([0, 1], [600, 300]))
    assert "the gap between them" in result.verdict.sentence
    assert result.verdict.word == "not tested"


def test_names_are_the_labels_and_groups_go_by_size():
    table, truth = three_groups(60)
    labels = np.array(["gold", "silver", "tin"])[truth]
    result = ilk.describe(pd.DataFrame(table).assign(tier=labels), "tier")
    assert {group.name for group in result.groups} == {"gold", "silver", "tin"}
    for group in result.groups:
        assert (labels[result.labels == "ABC".index(group.letter)] == group.name).all()
    assert set(result.to_frame()["name"]) == {"gold", "silver", "tin"}
    assert [fact.column for fact in result.groups[0].facts].count("tier") == 0
    numbered = ilk.describe(table, truth)
    assert {group.name for group in numbered.groups} == {"label 0", "label 1", "label 2"}


def test_outliers_and_missing_labels_belong_to_no_group():
    table, truth = three_groups(60)
    labels = truth.astype(float)
    labels[[3, 5]] = -1
    labels[7] = np.nan
    result = ilk.describe(table, labels)
    assert np.flatnonzero(result.labels == -1).tolist() == [3, 5, 7]
    assert [caution[0] for caution in result.warnings] == ["rows-without-label"]
    assert result.summary()["table"]["ledger"]["set_aside"][0]["count"] == 3
    assert "label 0" in {group.name for group in result.groups}
    as_texts = np.array(["a", "b", "c"], dtype=object)[truth]
    as_texts[7] = None
    assert np.flatnonzero(ilk.describe(table, as_texts.tolist()).labels == -1).tolist() == [7]


def test_mixed_columns_with_blanks():
    table, truth = mixed_table()
    result = ilk.describe(table, truth)
    assert result.k == 3
    assert "Gower" in " ".join(str(result).split())
    assert all(group.silhouette > 0 for group in result.groups)


def test_a_weight_is_a_repeated_row():
    table, truth = three_groups(60)
    draws = np.random.default_rng(1)
    weight = draws.integers(1, 4, 60)
    heavy = ilk.describe({**table, "w": weight}, truth, weight="w")
    again = {name: np.repeat(values, weight) for name, values in table.items()}
    twice = ilk.describe(again, np.repeat(truth, weight))
    assert [g.weight for g in heavy.groups] == [g.weight for g in twice.groups]
    for one, other in zip(heavy.groups, twice.groups, strict=True):
        assert one.name == other.name
        assert one.silhouette == pytest.approx(other.silhouette, abs=1e-9)
        assert [f.value for f in one.facts] == pytest.approx([f.value for f in other.facts])


def test_it_is_saved_and_refuses_new_rows(tmp_path):
    table, truth = three_groups(60)
    result = ilk.describe(table, truth)
    result.save(tmp_path / "model.ilk")
    with pytest.raises(UsageError, match="the labels were given") as refused:
        ilk.load(tmp_path / "model.ilk").assign(table)
    assert refused.value.code == "no-rule"
    renamed = result.rename({"A": "ours"})
    assert renamed.groups[0].name == "ours"


def test_groups_rare_in_a_sample_are_measured():
    draws = np.random.default_rng(0)
    X = np.vstack([draws.normal(0, 1, (20_000, 2)), draws.normal(9, 1, (40, 2))])
    result = ilk.describe(X, np.repeat([0, 1], [20_000, 40]))
    assert result.verdict.separation > result.verdict.thresholds["separation"]
    assert [g.rows for g in result.groups] == [20_000, 40]


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        ([0, 1] * 29, "lengths-differ"),
        ([0] * 60, "one-group"),
        ([None] * 60, "one-group"),
        (np.linspace(0, 1, 60), "not-labels"),
        (list(range(60)), "not-labels"),
        ("no such column", "unknown-column"),
        (3, "bad-labels"),
    ],
)
def test_what_are_no_labels_is_refused(labels, code):
    table, _ = three_groups(60)
    with pytest.raises((DataError, UsageError)) as refused:
        ilk.describe(table, labels)
    assert refused.value.code == code


def test_the_command_line(ilk, tmp_path):
    table, truth = three_groups(60)
    frame = pd.DataFrame(table).assign(tier=np.array(["gold", "silver", "tin"])[truth])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    ended = ilk("describe", "rows.csv", "--labels", "tier", "--name", "A=mine")
    assert ended.exit_code == 0, ended.stderr
    assert "given labels, 3 groups" in ended.stdout
    assert "ilk assign" not in ended.stdout
    summary = json.loads((tmp_path / "rows.ilk/summary.json").read_text())
    assert summary["reproduce"]["command"] == "ilk describe rows.csv --labels tier"
    assert [group["name"] for group in summary["groups"]] == ["mine", "silver", "tin"]
    assert "silver" in (tmp_path / "rows.ilk/assignments.csv").read_text()
    assert "ilk assign" not in (tmp_path / "rows.ilk/report.html").read_text()
    ended = ilk("describe", "rows.csv", "--labels", "teir", "--force")
    assert (ended.exit_code, "--labels teir" in ended.stderr) == (2, True)


def test_a_run_of_labels_is_read_back_and_compared(ilk, tmp_path):
    import ilk as package

    table, truth = three_groups(60)
    pd.DataFrame(table).assign(tier=truth).to_csv(tmp_path / "rows.csv", index=False)
    assert ilk("describe", "rows.csv", "--labels", "tier").exit_code == 0
    assert ilk("fit", "rows.csv", "--ignore", "tier", "--k", "3", "-o", "own.ilk").exit_code == 0
    with pytest.warns(IlkWarning, match="not in a run"):
        back = package.load(tmp_path / "rows.ilk")
    assert {group.name for group in back.groups} == {"tier 0", "tier 1", "tier 2"}
    ended = ilk("compare", "rows.ilk", "own.ilk", "--json")
    assert json.loads(ended.stdout)["ari"] == 1.0

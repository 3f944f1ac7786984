"""Groups changed by hand: what is merged or split, that rules, probabilities and exports stay, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from ilk.analysis.run_folder import write_run
from ilk.errors import IlkError
from tests.conftest import OWN

CRM = OWN / "everyday" / "crm.csv"


@pytest.fixture(scope="module")
def crm(tmp_path_factory):
    """A run of crm.csv: more components than its 3 groups."""
    folder = tmp_path_factory.mktemp("runs") / "crm.ilk"
    result = ilk.cluster(CRM)
    assert result.k == 3
    assert list(result.model.group_of).count(0) > 1
    write_run(result, str(folder))
    return folder, result


def test_merged_groups_are_the_union_and_keep_the_rule(crm):
    folder, old = crm
    new = ilk.regroup(folder, CRM, merge="A,B")
    joined = np.isin(old.letters, ["A", "B"])
    assert sorted(group.rows for group in new.groups) == sorted([joined.sum(), (~joined).sum()])
    assert len(set(zip(joined, new.labels, strict=True))) == 2
    np.testing.assert_array_equal(np.asarray(new.assign(str(CRM))["group"]), new.letters)
    both = old.probabilities[:, :2].sum(axis=1)
    mine = new.probabilities[:, new.model.letters.index("A")]
    np.testing.assert_allclose(mine, both, atol=1e-9)
    assert "groups-changed" in [code for code, _ in new.warnings]


def test_a_group_of_several_components_is_split_between_them(crm):
    folder, old = crm
    new = ilk.regroup(folder, CRM, split="A")
    assert new.k == 4
    assert new.model.has_rule
    inside = old.letters == "A"
    assert set(new.letters[~inside]) == {"B", "C"}
    assert len(set(new.letters[inside])) == 2
    agree = np.mean(np.asarray(new.assign(str(CRM))["group"]) == new.letters)
    assert agree > 0.99  # a row at a border may be nearer to another group than to its own half


def test_a_group_of_one_component_is_divided_without_a_rule(tmp_path):
    draws, truth = np.random.default_rng(0), np.arange(90) % 3
    table = {"size": 9.0 * truth + draws.normal(size=90), "width": draws.normal(size=90)}
    old = ilk.cluster(table, k=3, method="k-means")
    write_run(old, str(tmp_path / "old.ilk"))
    new = ilk.regroup(tmp_path / "old.ilk", table, split="C")
    assert (new.k, new.model.has_rule) == (4, False)
    np.testing.assert_array_equal(new.letters[old.letters == "A"], "A")
    with pytest.raises(IlkError):
        new.assign(table)


def test_changes_follow_one_another(crm, tmp_path):
    folder, old = crm
    write_run(ilk.regroup(folder, CRM, split="A"), str(tmp_path / "one.ilk"))
    write_run(ilk.regroup(tmp_path / "one.ilk", CRM, names={"B": "middle"}), str(tmp_path / "two.ilk"))
    last = ilk.regroup(tmp_path / "two.ilk", CRM, merge=["A", "D"])
    assert sorted(group.rows for group in last.groups) == sorted(group.rows for group in old.groups)
    assert {group.letter: group.name for group in last.groups}["B"] == "middle"


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(
    "method",
    ["auto", "gaussian", "assorted", "k-means", "mean-shift", "dirichlet-process", "spectral", "hdbscan"],
)
def test_groups_of_every_sort_of_method_are_merged_and_split(method, mixed, tmp_path):
    draws, truth = np.random.default_rng(0), np.arange(90) % 3
    points = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])[truth] + draws.normal(size=(90, 2))
    table = {"size": points[:, 0], "width": points[:, 1]} | (
        {"mark": ["abc"[t] for t in truth]} if mixed else {}
    )
    old = ilk.cluster(table, method=method)
    assert sorted(group.rows for group in old.groups) == [30, 30, 30]
    write_run(old, str(tmp_path / "old.ilk"))
    merged = ilk.regroup(tmp_path / "old.ilk", table, merge="A,B")
    assert [group.rows for group in merged.groups] == [60, 30]
    assert merged.model.has_rule == old.model.has_rule
    split = ilk.regroup(tmp_path / "old.ilk", table, split="B")
    assert split.k == 4
    np.testing.assert_array_equal(np.sort([group.rows for group in split.groups])[2:], [30, 30])


def test_names_and_colours_need_no_table(crm, tmp_path):
    folder, old = crm
    new = ilk.regroup(folder, names={"A": "small"}, colours={"A": 4})
    write_run(new, str(tmp_path / "named.ilk"))
    assert new.groups[0].name == "small"
    assert ".g0{--c:var(--g3)" in (tmp_path / "named.ilk" / "report.html").read_text()
    np.testing.assert_array_equal(new.labels, old.labels)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"merge": "A,Z"}, "unknown-group"),
        ({"merge": "A"}, "bad-merge"),
        ({"merge": "A,B,C"}, "bad-merge"),
        ({"split": "Z"}, "unknown-group"),
        ({"merge": "A,B", "split": "C"}, "one-change"),
        ({"names": {"Z": "x"}}, "unknown-group"),
        ({"colours": {"A": 9}}, "bad-colour"),
    ],
)
def test_what_makes_no_sense_is_refused(crm, given, code):
    with pytest.raises(IlkError) as refused:
        ilk.regroup(crm[0], CRM, **given)
    assert refused.value.code == code


def test_the_table_of_the_run_is_needed(crm):
    with pytest.raises(IlkError) as lacking:
        ilk.regroup(crm[0], merge="A,B")
    assert lacking.value.code == "no-table"
    with pytest.raises(IlkError) as other:
        ilk.regroup(crm[0], {"x": [1.0, 2.0]}, merge="A,B")
    assert other.value.code == "other-table"

"""`ilk.cluster(method=NAME)` for the paradigms beside the loop: groups, verdict, report, model, and clear refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ilk
from ilk.errors import DataError, ModelFileError, ResourceError, UsageError
from ilk.measures import ari
from ilk.methods import by_search
from ilk.paradigms import distance
from ilk.paradigms.linkage import LINKAGES

PARADIGMS = by_search("parts")
RULED = {
    "mean-shift",
    "affinity-propagation",
    "dirichlet-process",
    "information-bottleneck",
    "deterministic-bottleneck",
}


def three_groups(n_rows: int = 60) -> tuple[dict, np.ndarray]:
    draws = np.random.default_rng(0)
    truth = np.arange(n_rows) % 3
    centre = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])[truth]
    points = centre + draws.normal(size=(n_rows, 2))
    return {"size": points[:, 0], "width": points[:, 1]}, truth


def mixed_table(n_rows: int = 60) -> tuple[dict, np.ndarray]:
    table, truth = three_groups(n_rows)
    table["size"][4] = np.nan
    kind = [None if i == 7 else "abc"[t] for i, t in enumerate(truth)]
    return {**table, "kind": kind, "grade": ["xyz"[t] for t in truth]}, truth


def test_every_paradigm_of_the_catalogue_has_a_part():
    assert all(callable(method.part) for method in PARADIGMS.values())
    assert {f"{linkage}-linkage" for linkage in LINKAGES} <= set(PARADIGMS)


@pytest.mark.parametrize("method", PARADIGMS)
def test_groups_of_numbers(method, tmp_path):
    table, truth = three_groups()
    k = 3 if PARADIGMS[method].k == "fixed" else "auto"
    result = ilk.cluster(table, k=k, method=method)
    assert ari(truth, result.labels) > 0.5
    if PARADIGMS[method].k == "fixed" and "bottleneck" not in method:  # two numbers say little in levels
        assert ari(truth, result.labels) == 1.0
        assert (result.k, result.verdict.word) == (3, "solid")
    assert result.summary()["chosen"]["method"] == method
    assert result.verdict.icl_k is None
    result.report(tmp_path / "report.html")
    assert method in (tmp_path / "report.html").read_text()
    result.save(tmp_path / "model.ilk")
    model = ilk.load(tmp_path / "model.ilk")
    if method in RULED:
        letters = model.assign(table).column("group").to_pylist()
        assert letters == [model.letters[label] for label in result.labels]
    else:
        with pytest.raises(UsageError, match="cannot assign new ones") as refused:
            model.assign(table)
        assert refused.value.code == "no-rule"


@pytest.mark.parametrize("method", [name for name, one in PARADIGMS.items() if one.takes == "anything"])
def test_groups_of_mixed_columns_with_blanks(method, tmp_path):
    table, truth = mixed_table()
    result = ilk.cluster(table, k=3 if PARADIGMS[method].k == "fixed" else "auto", method=method)
    assert all(len(np.unique(truth[result.labels == g])) == 1 for g in range(result.k))
    assert PARADIGMS[method].mixed.split(":")[0] in " ".join(str(result).split())
    soft = method in ("dirichlet-process", "information-bottleneck")
    assert (result.probabilities is not None) == soft
    if soft:
        np.testing.assert_allclose(result.probabilities.sum(axis=1), 1.0)
        np.testing.assert_array_equal(result.probabilities.argmax(axis=1), result.labels)
    if method in RULED and method != "affinity-propagation":  # its exemplars place numbers alone
        result.save(tmp_path / "model.ilk")
        placed = ilk.load(tmp_path / "model.ilk").assign(table)
        letters = placed.column("group").to_pylist()
        assert letters == [result.model.letters[label] for label in result.labels]
        assert ("probability" in placed.column_names) == soft
        alone = result.assign({name: column[:1] for name, column in table.items()})
        assert alone.slice(0, 1).equals(placed.slice(0, 1))
        empty = result.assign({name: [None] * 2 for name in table})
        assert empty.column("group").to_pylist() == [None, None]


@pytest.mark.parametrize("method", ["information-bottleneck", "deterministic-bottleneck"])
def test_levels_that_no_group_has_together_are_the_most_unusual(method):
    group = np.arange(40) % 2
    table = {
        "kind": ["ab"[g] for g in group],
        "grade": ["xy"[g] for g in group],
        "side": ["l", "l", "r", "r"] * 10,
    }
    both = {"grade": "binary"}  # says the same as kind, and is to be used
    placed = ilk.cluster(table, k=2, method=method, types=both).assign(
        {"kind": ["a", "a"], "grade": ["y", "x"], "side": ["l", "r"]}
    )
    strange, known = placed.to_pylist()
    assert strange["novelty"] == 1.0
    assert known["novelty"] < 1.0
    assert {known["group"], known["second"]} == {"A", "B"}


def is_drawn(result, path) -> bool:
    """Whether the report draws the sign that K was chosen by; K is where it is largest."""
    signs = dict(result.summary()["chosen"]["signs"])
    assert signs[result.k] == max(signs.values())
    result.report(path)
    return PARADIGMS[result.summary()["chosen"]["method"]].sign[1:] in path.read_text()


@pytest.mark.parametrize("method", ["spectral", "average-linkage", "information-bottleneck"])
def test_k_is_found(method, tmp_path):
    table, truth = mixed_table() if "bottleneck" in method else three_groups()
    result = ilk.cluster(table, method=method)
    assert ari(truth, result.labels) == 1.0
    assert "bottleneck" in method or is_drawn(result, tmp_path / "report.html")


def test_k_that_was_asked_for_has_no_sign():
    assert not ilk.cluster(three_groups()[0], k=2, method="spectral").summary()["chosen"]["signs"]


def test_rings_are_groups_that_no_straight_cut_parts(tmp_path):
    draws = np.random.default_rng(1)
    angle, truth = draws.uniform(0, 2 * np.pi, 300), np.arange(300) % 2
    radius = np.where(truth, 6.0, 3.0) + draws.normal(0, 0.1, 300)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    result = ilk.cluster(X, method="typical-cuts")
    assert ari(truth, result.labels) == 1.0
    assert result.verdict.word != "weak"
    assert is_drawn(result, tmp_path / "report.html")


def test_halves_of_one_cloud_are_not_trusted():
    X = np.random.default_rng(0).random((300, 2))
    assert ilk.cluster(X, k=2, method="spectral").verdict.word == "weak"


@pytest.mark.parametrize("method", ["spectral", "typical-cuts", "single-linkage", "affinity-propagation"])
def test_two_rows_are_enough(method):
    assert ilk.cluster({"x": [0.0, 1.0], "y": [0.0, 3.0]}, method=method).k >= 1


def test_rows_in_small_clusters_are_set_aside():
    table, truth = three_groups()
    far = {"size": [60.0, -70.0], "width": [80.0, 90.0]}
    both = {name: np.append(column, far[name]) for name, column in table.items()}
    result = ilk.cluster(both, k=3, method="single-linkage")
    np.testing.assert_array_equal(result.labels[-2:], -1)
    assert ari(truth, result.labels[:-2]) == 1.0
    assert "rows-in-small-groups" in {code for code, _ in result.warnings}


def saved(model, tmp_path, **changed):
    """The model with parts of its parameters changed, saved and read back."""
    path = tmp_path / "model.ilk"
    replace(model, params=replace(model.params, **changed)).save(path, overwrite=True)
    return ilk.load(path)


def test_model_files_that_make_no_sense_are_refused(tmp_path):
    process = ilk.cluster(mixed_table()[0], method="dirichlet-process").model
    for changed in ({"rate": 0 * process.params.rate}, {"level": process.params.level[:, 1:]}):
        with pytest.raises(ModelFileError, match="is not valid"):
            saved(process, tmp_path, **changed)
    levels = ilk.cluster(mixed_table()[0], k=3, method="information-bottleneck").model
    groups = levels.params.groups
    for changed in (
        {"knots": levels.params.knots[1:]},
        {"knots": tuple(knots[::-1] for knots in levels.params.knots)},
        {"groups": replace(groups, share=0 * groups.share)},
        {"groups": replace(groups, beta=float("inf"))},
    ):
        with pytest.raises(ModelFileError, match="is not valid"):
            saved(levels, tmp_path, **changed)


@pytest.mark.parametrize("method", ["mean-shift", "affinity-propagation", "dirichlet-process"])
def test_k_cannot_be_asked_of_methods_that_find_it(method):
    with pytest.raises(UsageError, match=f"{method} finds K itself") as refused:
        ilk.cluster(three_groups()[0], k=3, method=method)
    assert refused.value.code == "k-not-taken"


def test_weights_are_refused():
    table = {**three_groups()[0], "times": np.ones(60)}
    with pytest.raises(UsageError, match="counts every row once") as refused:
        ilk.cluster(table, weight="times", method="spectral")
    assert refused.value.code == "weight-not-taken"


def test_blanks_are_refused_by_methods_of_numbers():
    with pytest.raises(DataError, match="numbers without missing values") as refused:
        ilk.cluster(mixed_table()[0], method="mean-shift")
    assert refused.value.code == "missing-values"


def test_tables_too_long_for_all_pairs_are_refused(monkeypatch):
    monkeypatch.setattr(distance, "MOST_ROWS", 50)
    with pytest.raises(ResourceError, match="all pairs of rows: 60 rows") as refused:
        ilk.cluster(three_groups()[0], method="spectral")
    assert refused.value.code == "too-many-rows"

"""The fits of a search are kept: another K is shown without a fit, the same from memory and from the run folder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ilk
from ilk.analysis.folder import FITS
from ilk.analysis.job import Job
from ilk.analysis.other_k import Searched, at_k, glance_at_k, kept_ks, kept_models
from ilk.analysis.run import run_and_keep
from ilk.analysis.run_folder import write_run
from ilk.errors import ModelFileError, UsageError
from ilk.fitting.deadline import Deadline
from ilk.model.file import write_kept
from tests.conftest import OWN

TABLES = [
    (OWN / "everyday" / "crm.csv", {}),
    (OWN / "wine.csv", {"truth": "target"}),
    (OWN / "wine.csv", {"truth": "target", "method": "k-means"}),
    (OWN / "penguins.csv", {"truth": "target"}),
]


@pytest.fixture(scope="module", params=range(len(TABLES)), ids=["mixed", "gaussian", "k-means", "penguins"])
def made(request, tmp_path_factory):
    path, options = TABLES[request.param]
    result, findings = run_and_keep(Job(str(path), **options))
    models = kept_models(findings, result)
    folder = tmp_path_factory.mktemp("runs") / "table.ilk"
    write_run(result, str(folder), fits=models)
    return path, result, findings, models, folder


def test_every_number_of_groups_that_has_a_criterion_is_kept(made):
    _, result, findings, models, _ = made
    tried = {c.k for c in result.candidates if c.bic is not None and c.eligible}
    assert tried <= set(findings.search.kept)
    assert (
        len(models) >= len(tried) - 1
    )  # one that leaves a component without rows is no fit of so many groups
    assert all(model.k == k for k, model in models.items())


def test_an_answer_at_another_k_is_what_its_model_gives(made):
    path, result, findings, models, _ = made
    for k in sorted(models)[:4]:
        answer = at_k(Searched.of(findings), models[k], result.model)
        assert len(answer.groups) == k
        assert sum(group.rows for group in answer.groups) == findings.search.fit.n_rows
        cell = answer.summary()["chosen"]
        own = [c.bic for c in result.candidates if c.k == k and c.bic is not None]
        assert cell["bic"] == findings.search.kept[k].bic <= min(own) + 1e-9 * abs(min(own))
        again = answer.model.assign(path)
        assert again["group"].to_pylist() == answer.letters.tolist()
        if k > 1:
            assert answer.verdict.stability_min is not None


def test_kept_centres_cost_what_the_candidates_say():
    numbers = np.random.default_rng(0).normal(size=(300, 3)) + np.repeat(np.eye(3) * 9, 100, axis=0)
    result, findings = run_and_keep(Job(numbers, method="k-means", scale=None))
    for k, model in kept_models(findings, result).items():
        labels = at_k(Searched.of(findings), model, result.model).labels
        centres = np.array([numbers[labels == group].mean(axis=0) for group in range(k)])
        cost = np.square(numbers[:, None] - centres).sum(2).min(1).sum()
        (cell,) = [c for c in result.candidates if c.k == k]
        unit = findings.given.encoding.power
        assert cell.cost / unit**2 == pytest.approx(cost, rel=1e-9)


def test_the_run_folder_gives_the_same_answer(made):
    path, result, findings, models, folder = made
    k = max(k for k in models if k <= 4)
    assert kept_ks(folder) == tuple(sorted(models))
    read = ilk.regroup(folder, path, k=k)
    own = at_k(Searched.of(findings), models[k], result.model)
    assert read.letters.tolist() == own.letters.tolist()
    assert [group.name for group in read.groups] == [group.name for group in own.groups]
    assert read.verdict == own.verdict
    assert "fit-of-the-search" in [caution[0] for caution in read.warnings]


def test_a_run_without_fits_says_what_to_do(made, tmp_path):
    path, result, _, _, folder = made
    write_run(result, str(tmp_path / "bare.ilk"))
    with pytest.raises(UsageError, match=r"ilk fit TABLE --k 2") as told:
        ilk.regroup(tmp_path / "bare.ilk", path, k=2)
    assert told.value.code == "no-fit"
    with pytest.raises(UsageError) as told:
        ilk.regroup(folder, path, k=2, merge="A,B")
    assert told.value.code == "one-change"
    write_kept(tmp_path / "bare.ilk" / FITS, {"9999": result.model, "name": result.model})
    assert kept_ks(tmp_path / "bare.ilk") == (9999,)
    for k in (2, 9999):
        with pytest.raises(UsageError) as told:
            ilk.regroup(tmp_path / "bare.ilk", path, k=k)
        assert told.value.code == "no-fit"


def test_a_first_look_has_the_same_groups_and_no_word_of_stability(made):
    _, result, findings, models, _ = made
    for k in sorted(models)[1:4]:
        look = glance_at_k(Searched.of(findings), models[k], result.model)
        whole = at_k(Searched.of(findings), models[k], result.model)
        assert look.letters.tolist() == whole.letters.tolist()
        assert look.verdict.word in ("not tested", "weak", "no clear groups")
        assert look.verdict.stability_min is None
        assert "not-tested-yet" in [caution[0] for caution in look.warnings]
        assert "not-tested-yet" not in [caution[0] for caution in whole.warnings]


def test_fits_are_kept_where_there_is_time_for_them(tmp_path):
    numbers = np.random.default_rng(0).normal(size=(90, 2)) + np.repeat(np.eye(3, 2) * 9, 30, axis=0)
    result, findings = run_and_keep(Job(numbers))
    assert kept_models(findings, result)
    assert kept_models(findings, result.stopped()) == {}
    assert kept_models(replace(findings, clock=Deadline.after(0)), result) == {}
    assert kept_models(None, result) == {}


def test_a_file_of_fits_that_is_none_is_refused(made, tmp_path):
    path, result, _, _, _ = made
    write_run(result, str(tmp_path / "bare.ilk"))
    result.model.save(tmp_path / "bare.ilk" / FITS)  # a model, and no file of several
    assert kept_ks(tmp_path / "bare.ilk") == ()
    (tmp_path / "bare.ilk" / FITS).write_bytes(b"no model")
    with pytest.raises(ModelFileError):
        ilk.regroup(tmp_path / "bare.ilk", path, k=2)


def test_the_report_of_another_k_does_not_call_its_criterion_the_lowest(made):
    from ilk.report.blocks.choice import render
    from ilk.report.view import View

    _, result, findings, models, _ = made
    best = min(models, key=lambda k: findings.search.kept[k].bic)
    for k in sorted(models)[1:4]:
        told = str(render(View(at_k(Searched.of(findings), models[k], result.model).summary())))
        assert (f"It is lowest for {k} group" in told) == (k == best)

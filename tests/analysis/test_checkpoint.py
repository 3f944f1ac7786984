"""A run that was killed and goes on gives the bytes of one that nobody disturbed; what cannot go on is refused."""

from __future__ import annotations

import os
import signal
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import ilk
from ilk.cli.main import cli
from ilk.errors import UsageError
from ilk.fitting import recall
from ilk.store import journal
from ilk.store.record_file import RecordFile
from tests.torture.resume import CASES, OFTEN, Trial, content, dying, in_child, table

FEW = ("mixture", "assorted", "K-means, K open", "out of core")


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(journal, "PACE", OFTEN)
    monkeypatch.setattr(recall, "LEAST_CELLS", 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a child is forked to be killed")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in FEW else pytest.mark.slow) for n in CASES])
def test_a_killed_run_that_goes_on_gives_the_same_bytes(tmp_path, name):
    trial = Trial(tmp_path, name)
    real, resume = RecordFile.add, []
    for number in (1, 4, 12):
        RecordFile.add = dying(number)  # type: ignore[method-assign]
        try:
            code = trial.fit("work", resume, None)
        finally:
            RecordFile.add = real  # type: ignore[method-assign]
        assert code in (-signal.SIGKILL, 0)
        if code == 0:
            break
        assert (trial.home / "work" / "run.checkpoint").exists()
        resume = ["--resume"]
    else:
        assert trial.fit("work", resume, None) == 0
    assert resume, "it was killed at least once"
    assert os.listdir(trial.home / "work") == ["run"]
    found = content(trial.home / "work" / "run")
    assert [name for name in found if found[name] != trial.golden[name]] == []


def killed(path: Path, number: int = 6, **options) -> None:
    """A call of `cluster` that dies."""

    def work() -> int:
        journal.PACE, recall.LEAST_CELLS = OFTEN, 0
        RecordFile.add = dying(number)  # type: ignore[method-assign]
        ilk.cluster(table("numbers"), method="k-means", checkpoint=path, **options)
        return 0

    assert in_child(work, None) == -signal.SIGKILL


def test_the_same_call_goes_on_and_takes_the_file_away(tmp_path, often, monkeypatch):
    killed(tmp_path / "c")
    kept = len(RecordFile.found(str(tmp_path / "c")).places)
    assert kept
    plain = ilk.cluster(table("numbers"), method="k-means")
    journals = []
    real = journal.Journal.open
    monkeypatch.setattr(journal.Journal, "open", lambda self: journals.append(self) or real(self))
    found = ilk.cluster(table("numbers"), method="k-means", checkpoint=tmp_path / "c")
    assert journals[0].n_recalled > 0
    assert (found.labels == plain.labels).all()
    for name, result in (("found", found), ("plain", plain)):
        result.model.save(tmp_path / name)
    assert (tmp_path / "found").read_bytes() == (tmp_path / "plain").read_bytes()
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("fits", [1, 2])
def test_an_estimator_goes_on_with_the_same_bytes(tmp_path, often, fits):
    """Killed once or twice; the file is gone once it is fitted."""

    def model():
        return ilk.Clusterer(method="k-means", checkpoint=tmp_path / "c")

    def work() -> int:
        RecordFile.add = dying(6)  # type: ignore[method-assign]
        model().fit(table("numbers"))
        return 0

    for _ in range(fits):
        assert in_child(work, None) == -signal.SIGKILL
    assert RecordFile.found(str(tmp_path / "c")).places
    results = {
        "found": model().fit(table("numbers")),
        "plain": ilk.Clusterer(method="k-means").fit(table("numbers")),
    }
    for name, fitted in results.items():
        fitted.result_.model.save(tmp_path / name)
    assert (tmp_path / "found").read_bytes() == (tmp_path / "plain").read_bytes()
    assert (results["found"].labels_ == results["plain"].labels_).all()
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        (table("numbers", seed=1), {}, "the table differs"),
        (table("numbers"), {"seed": 1}, r"options differ \(seed\)"),
        (table("numbers"), {"k": 3}, r"options differ \(k\)"),
    ],
)
def test_another_table_or_other_options_are_refused(tmp_path, often, data, options, said):
    killed(tmp_path / "c")
    with pytest.raises(UsageError, match=said):
        ilk.cluster(data, method="k-means", checkpoint=tmp_path / "c", **options)
    assert (tmp_path / "c").exists()


def test_threads_and_memory_may_be_others(tmp_path, often):
    killed(tmp_path / "c", threads=1)
    ilk.cluster(table("numbers"), method="k-means", checkpoint=tmp_path / "c", threads=2, memory="1GB")
    assert not (tmp_path / "c").exists()


def test_a_budget_and_a_checkpoint_exclude_each_other(tmp_path):
    with pytest.raises(UsageError, match="a run with budget=5 cannot be continued"):
        ilk.cluster(table("numbers"), budget=5, checkpoint=tmp_path / "c")


def test_short_runs_leave_no_trace(tmp_path):
    ilk.cluster(table("numbers"), k=2, method="k-means", checkpoint=tmp_path / "c")
    assert os.listdir(tmp_path) == []


def test_a_disk_that_is_full_is_said_once_and_the_answer_is_there(tmp_path, often):
    with warnings.catch_warnings(record=True) as made:
        warnings.simplefilter("always")
        found = ilk.cluster(table("numbers"), k=2, method="k-means", checkpoint=tmp_path / "none" / "c")
    assert [w.message.code for w in made if w.category.__name__ == "IlkWarning"] == ["no-checkpoint"]
    assert len(found.groups) == 2


@pytest.mark.slow
def test_a_driver_that_died_on_dask_goes_on(tmp_path, monkeypatch):
    frames, dask = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask")
    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr("ilk.analysis.on_cluster.SAMPLE_ROWS", 2000)
    monkeypatch.setattr(recall, "LEAST_CELLS", 0)
    monkeypatch.setattr(journal, "PACE", OFTEN)

    def fit(name: str, number: int | None, **options) -> int:
        def work() -> int:
            if number is not None:
                RecordFile.add = dying(number)  # type: ignore[method-assign]
            dask.config.set(scheduler="threads")
            frame = frames.from_pandas(pandas.DataFrame(table("rows")), npartitions=4)
            ilk.cluster(frame, k=4, method="gaussian", threads=1, **options).model.save(tmp_path / name)
            return 0

        return in_child(work, None)

    assert fit("plain", None) == 0
    for number in (2, 12):
        assert fit("killed", number, checkpoint=tmp_path / "c") == -signal.SIGKILL
    assert fit("killed", None, checkpoint=tmp_path / "c") == 0
    assert (tmp_path / "killed").read_bytes() == (tmp_path / "plain").read_bytes()


# --- the command line


def test_a_run_that_died_once_its_folder_was_written_goes_on_too(tmp_path, monkeypatch):
    trial = Trial(tmp_path, "K-means, K open")
    monkeypatch.setattr(journal.Journal, "remove", lambda self: os.kill(os.getpid(), signal.SIGKILL))
    assert trial.fit("work", [], None) == -signal.SIGKILL
    monkeypatch.undo()
    assert {"run", "run.checkpoint"} <= {*os.listdir(trial.home / "work")}
    assert trial.fit("work", ["--resume"], None) == 0
    assert os.listdir(trial.home / "work") == ["run"]
    assert content(trial.home / "work" / "run") == trial.golden


@pytest.fixture
def killed_fit(tmp_path, monkeypatch):
    """A folder in which a fit was killed, and how to call the next."""
    trial = Trial(tmp_path, "K-means, K open")
    real = RecordFile.add
    RecordFile.add = dying(4)  # type: ignore[method-assign]
    try:
        assert trial.fit("work", [], None) == -signal.SIGKILL
    finally:
        RecordFile.add = real  # type: ignore[method-assign]
    monkeypatch.chdir(trial.home / "work")

    def fit(*more: str):
        args = [arg for arg in trial.options if arg != "-q"]
        return CliRunner().invoke(
            cli, ["fit", str(trial.data), "-o", "run", *args, *more], catch_exceptions=False
        )

    return fit


def test_an_unfinished_run_is_told_and_the_new_one_begins_anew(killed_fit):
    done = killed_fit()
    assert done.exit_code == 0
    assert "was not finished: --resume continues it" in done.stderr
    assert os.listdir() == ["run"], "and once it is done, nobody asks for the other"


def test_resume_says_what_it_continues(killed_fit):
    done = killed_fit("--resume")
    assert done.exit_code == 0
    assert "continuing the run of 20" in done.stderr
    assert not os.path.exists("run.checkpoint")
    assert killed_fit("--resume", "--force").exit_code == 0, "without a checkpoint it is a run like any other"


def test_resume_is_refused_with_other_options_and_with_a_budget(killed_fit):
    done = killed_fit("--resume", "--seed", "3")
    assert (done.exit_code, "options differ (seed)" in done.stderr) == (2, True)
    done = killed_fit("--resume", "--budget", "9s")
    assert (done.exit_code, "--budget" in done.stderr) == (2, True)
    assert os.path.exists("run.checkpoint")


def test_a_damaged_checkpoint_is_refused(killed_fit):
    Path("run.checkpoint").write_bytes(b"something else")
    done = killed_fit("--resume")
    assert (done.exit_code, "not a checkpoint of ilk" in done.stderr) == (2, True)


def test_a_run_that_was_stopped_goes_on_in_its_folder(killed_fit, monkeypatch):
    monkeypatch.setattr(journal, "PACE", replace(OFTEN, least=0.0))  # records enough on a fast machine too
    monkeypatch.setattr(recall, "LEAST_CELLS", 0)
    real, count = RecordFile.add, iter(range(3))

    def stopping(self: RecordFile, record) -> None:
        real(self, record)
        if next(count, None) is None:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored where tests run in the background
    monkeypatch.setattr(RecordFile, "add", stopping)
    try:
        done = killed_fit("--resume")
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.setattr(RecordFile, "add", real)
    assert done.exit_code == 130
    assert "the same command with --resume" in done.stderr
    assert killed_fit().exit_code == 2, "the folder is there"
    assert killed_fit("--resume").exit_code == 0
    assert sorted(os.listdir()) == ["run"]


def test_numbers_are_made_of_the_rows_and_their_encoding():
    from ilk.engines.memory import MemoryRows
    from ilk.table.block import Encoding

    raw = np.random.default_rng(0).normal(size=(50_000, 3))
    plain = Encoding(1.0, np.zeros(3))
    names = {
        recall.content_of(MemoryRows(cells, encoding, weight=weight, threads=threads))
        for cells, encoding, weight, threads in [
            (raw, plain, None, 1),
            (raw, plain, None, 2),
            (raw[::-1].copy(), plain, None, 1),
            (raw, Encoding(2.0, np.zeros(3)), None, 1),
            (raw, plain, np.ones(50_000), 1),
        ]
    }
    assert len(names) == 4

"""Ctrl-C at any moment: once a model was found there is an answer, and of a large table only a sample is told."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import ilk
import ilk.analysis.run
import ilk.analysis.run_folder
import ilk.analysis.shown
import ilk.cli.main
import ilk.selection.assorted
import ilk.selection.search
from ilk.analysis import on_cluster as afar
from ilk.assorted.growth import GrowthSearch as Growth
from ilk.fitting import loop
from ilk.fitting.interrupt import INSISTING, heard
from ilk.selection import finalists, mixtures, resampling, units
from ilk.selection import from_partition as parted
from ilk.selection import mixture_vs_assorted as contest

N = 240


@pytest.fixture
def mixed():
    draws = np.random.default_rng(0)
    label = np.repeat([0, 1], N // 2)
    return pd.DataFrame(
        {
            "size": 8.0 * label + draws.normal(size=N),
            "width": -5.0 * label + draws.normal(size=N),
            "colour": np.where(draws.random(N) < 0.1 + 0.8 * label, "red", "blue"),
            "count": draws.integers(1, 3, N),
        }
    )


@pytest.fixture
def numbers(mixed):
    return mixed[["size", "width"]].to_numpy()


@pytest.fixture(scope="module")
def workers():
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=1, dashboard_address=":0") as client:
        yield client


def stop_once(monkeypatch, holder, name, at=1):
    """The first call of a function, or the one of that number, is interrupted before it does anything."""
    whole, calls = getattr(holder, name), []

    def stopped(*args, **options):
        calls.append(name)
        if len(calls) == at:
            raise KeyboardInterrupt
        return whole(*args, **options)

    monkeypatch.setattr(holder, name, stopped)
    return calls


@pytest.mark.parametrize(
    ("holder", "name"),
    [
        (mixtures.Grid, "improve"),
        (mixtures.Grid, "join"),
        (finalists, "run_quick"),
        (units, "deviations_within"),
        (contest, "search_assorted"),
        (ilk.analysis.run, "group"),
        (ilk.analysis.run, "answer_of"),
    ],
)
def test_there_is_an_answer_whatever_was_interrupted(numbers, monkeypatch, holder, name):
    calls = stop_once(monkeypatch, holder, name)
    with pytest.warns(ilk.errors.IlkWarning, match="interrupted"):
        result = ilk.cluster(numbers, k=range(1, 4))
    assert calls
    assert result.interrupted
    assert [code for code, _ in result.warnings].count("interrupted") == 1
    assert result.k == 2
    assert len(np.unique(result.labels[: N // 2])) == 1 != len(np.unique(result.labels))


def test_passes_over_all_rows_of_a_mixed_table(mixed, monkeypatch):
    """The search is on a sample; what it found is the answer where the passes over all rows do not come to an end."""
    monkeypatch.setattr("ilk.selection.assorted.search_assorted.__kwdefaults__", {
        **ilk.selection.assorted.search_assorted.__kwdefaults__, "search_rows": N // 2,
    })  # fmt: skip
    whole = Growth.polished

    def stopped(search, scene, params):
        if scene.rows.n_rows == N:
            raise KeyboardInterrupt
        return whole(search, scene, params)

    monkeypatch.setattr(Growth, "polished", stopped)
    with pytest.warns(ilk.errors.IlkWarning, match="interrupted"):
        result = ilk.cluster(mixed, ignore="count", k=range(1, 4))
    assert result.k == 2
    assert len(result.labels) == N


@pytest.mark.parametrize("name", ["_silhouettes", "valley_matrix", "gap_between", "_returns"])
def test_groups_of_a_paradigm_are_kept(numbers, monkeypatch, name):
    calls = stop_once(monkeypatch, parted, name)
    with pytest.warns(ilk.errors.IlkWarning, match="interrupted"):
        result = ilk.cluster(numbers, k=2, method="single-linkage")
    assert calls
    assert result.interrupted
    assert result.verdict.stability_min is None
    assert "was not measured" in " ".join(reason.text for reason in result.verdict.reasons)
    assert len(np.unique(result.labels[: N // 2])) == 1 != len(np.unique(result.labels))


@pytest.mark.parametrize(
    ("holder", "name", "at", "origin"),
    [
        (afar, "_all_rows", 1, "the sample, too"),
        (afar, "run_starts", 1, "the sample, too"),
        (loop, "fill_vacant", 1, "the sample, too"),
        (loop, "fill_vacant", 2, "all rows"),
        (afar, "fit", 1, "the sample, too"),
    ],
)
def test_the_model_of_the_sample_of_a_frame_is_kept(numbers, workers, monkeypatch, holder, name, at, origin):
    frames = pytest.importorskip("dask.dataframe")
    monkeypatch.setattr(afar, "SAMPLE_ROWS", N // 2)
    whole = afar.ClusterFrame.polished

    def stopped(*args):
        stop_once(monkeypatch, holder, name, at)
        return whole(*args)

    monkeypatch.setattr(afar.ClusterFrame, "polished", stopped)
    native = frames.from_pandas(pd.DataFrame(numbers, columns=["size", "width"]), npartitions=2)
    with pytest.warns(ilk.errors.IlkWarning, match="interrupted"):
        result = ilk.cluster(native, k=2)
    assert result.interrupted
    assert result.verdict.stability_min is None
    assert f"the parameters come from {origin}." in dict(result.warnings)["sampled-frame"]
    placed = result.assign(native.compute())["group"].tolist()
    assert len(set(placed[: N // 2])) == 1 != len(set(placed))


@pytest.mark.parametrize("weight", [None, "count"])
def test_a_large_table_is_told_from_a_sample(mixed, monkeypatch, weight):
    mixed.loc[3, ["size", "width", "colour"]] = None  # a row that has no group
    monkeypatch.setattr(ilk.analysis.shown, "GLANCED_ROWS", 100)
    stop_once(monkeypatch, ilk.analysis.run, "answer_of")
    with pytest.warns(ilk.errors.IlkWarning, match="interrupted"):
        result = ilk.cluster(mixed, k=range(1, 4), weight=weight, ignore=[] if weight else "count")
    heft = np.ones(N) if weight is None else mixed["count"].to_numpy().astype(float)
    assert result.probabilities is None
    assert result.labels[3] == -1
    for number, group in enumerate(result.groups):
        assert group.rows == (result.labels == number).sum()
        assert group.weight == heft[result.labels == number].sum()
    assert result.summary()["reproduce"]["fingerprint"] is None
    assert "described-on-sample" in dict(result.warnings)


@pytest.mark.parametrize("weight", [None, "count"])
def test_a_group_that_the_sample_misses_is_told_by_its_own_rows(mixed, monkeypatch, weight):
    mixed.loc[110:113, ["size", "width"]] = 500.0
    mixed.loc[111, "count"] = 0  # counts for nothing where rows have weights
    monkeypatch.setattr(ilk.analysis.shown, "GLANCED_ROWS", 12)
    stop_once(monkeypatch, ilk.analysis.run, "answer_of")
    with pytest.warns(ilk.errors.IlkWarning, match="interrupted"):
        result = ilk.cluster(mixed, k=3, method="k-means", weight=weight, ignore=[] if weight else "count")
    smallest = result.groups[-1]
    assert smallest.rows == 4
    assert {fact.column: fact.value for fact in smallest.facts}["size"] == 500.0


def test_writing_is_done_once_more_without_the_assignments(mixed, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    mixed.to_csv("table.csv", index=False)
    monkeypatch.setattr(ilk.analysis.run_folder, "HURRIED_ROWS", 100)
    stop_once(monkeypatch, ilk.analysis.run_folder, "write_parts")
    done = CliRunner().invoke(ilk.cli.main.cli, ["fit", "table.csv", "--k", "1..3"])
    assert done.exit_code == 130
    assert "no time for the assignments of all rows; ilk assign table.ilk DATA gives them" in " ".join(
        done.stdout.split()
    )
    assert {path.name for path in tmp_path.joinpath("table.ilk").iterdir()} == {
        "report.html", "model.ilk", "summary.json",
    }  # fmt: skip
    summary = json.loads((tmp_path / "table.ilk" / "summary.json").read_bytes())
    assert summary["interrupted"]
    assigned = CliRunner().invoke(ilk.cli.main.cli, ["assign", "table.ilk", "table.csv", "-o", "-"])
    assert assigned.exit_code == 0
    assert len(assigned.stdout.splitlines()) == N + 1


def test_a_small_table_keeps_its_assignments(mixed, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    mixed.to_csv("table.csv", index=False)
    stop_once(monkeypatch, ilk.analysis.run_folder, "page")
    done = CliRunner().invoke(ilk.cli.main.cli, ["fit", "table.csv", "--k", "1..3"])
    assert done.exit_code == 130
    assert (tmp_path / "table.ilk" / "assignments.csv").exists()


def test_letters_are_carried_over_by_the_rows_of_the_sample(mixed, monkeypatch):
    """The rows that are described are compared with the earlier run, and no others."""
    before = ilk.cluster(mixed, k=2, method="k-means", ignore="count").rename({"A": "first", "B": "second"})
    monkeypatch.setattr(ilk.analysis.shown, "GLANCED_ROWS", 60)
    stop_once(monkeypatch, ilk.analysis.run, "answer_of")
    with pytest.warns(ilk.errors.IlkWarning, match="interrupted"):
        result = ilk.cluster(mixed, k=2, method="k-means", ignore="count", match_to=before.model)
    assert [group.name for group in result.groups] == ["first", "second"]
    assert [entry["letter"] for entry in result.summary()["matching"]["kept"]] == ["A", "B"]


@pytest.fixture
def signals():
    """SIGINT as a terminal has it; those who run tests in several processes have it ignored there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _signal_at(stage: str | None, number: int):
    """A callback that sends SIGINT at the first event of a stage, or at some event of the search."""
    seen = []

    def callback(progress):
        seen.append(progress)
        if len(seen) == number or (stage is not None and progress.stage == stage):
            os.kill(os.getpid(), signal.SIGINT)

    return callback


@pytest.mark.parametrize(("stage", "number"), [("resampling", 0), ("describing", 0), (None, 2), (None, 4)])
def test_a_signal_is_heard_at_every_stage(signals, stage, number):
    draws = np.random.default_rng(0)
    X = np.vstack([draws.normal(centre, 1, (60, 3)) for centre in (0, 6, 12)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = ilk.cluster(X, callback=_signal_at(stage, number))
    assert result.interrupted
    assert not heard()


def test_a_signal_whose_exception_is_caught_on_its_way_is_heard(signals, monkeypatch):
    """The loop keeps what it has reached and returns; nobody may take a resample that was cut short for a whole one."""
    refitted = resampling._refitted

    def cut_short(*given):
        if given[-1] == 2:
            with contextlib.suppress(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)
        return refitted(*given)

    monkeypatch.setattr(resampling, "_refitted", cut_short)
    draws = np.random.default_rng(0)
    X = np.vstack([draws.normal(centre, 1, (60, 3)) for centre in (0, 6, 12)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = ilk.cluster(X, threads=1)
    assert result.interrupted
    assert result.verdict.word == "not tested"
    assert result.verdict.stability_min is None


def signal_in(monkeypatch, holder, name):
    """The first call of a function gets a signal while it works, with nobody near to take the exception."""
    whole, calls = getattr(holder, name), []

    def sent(*given, **options):
        calls.append(name)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)
        return whole(*given, **options)

    monkeypatch.setattr(holder, name, sent)
    return calls


@pytest.mark.parametrize(
    ("holder", "name", "options"),
    [
        (mixtures.Grid, "candidate", {}),  # after the search, before its end
        (mixtures, "decide", {}),
        (finalists, "finish", {}),
        (ilk.analysis.run, "better", {}),
        (ilk.analysis.run, "_with_its_end", {}),
        (ilk.selection.search, "scored", {"method": "k-means"}),
        (ilk.selection.search, "end_of_search", {"method": "k-means"}),
        (mixtures, "decide", {"k": 4}),
    ],
)
def test_a_signal_between_two_stages_keeps_what_was_found(
    signals, numbers, monkeypatch, holder, name, options
):
    calls = signal_in(monkeypatch, holder, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = ilk.cluster(numbers, threads=1, **options)
    assert calls
    assert result.interrupted
    assert "no-mixture" not in dict(result.warnings)
    assert result.components == options.get("k", result.components)
    assert not heard()


def test_a_signal_in_the_search_of_a_mixed_table_once_it_has_ended(signals, mixed, monkeypatch):
    calls = signal_in(monkeypatch, ilk.selection.assorted, "_as_search")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = ilk.cluster(mixed, ignore="count", threads=1)
    assert calls
    assert result.interrupted
    assert result.k == 2


def test_before_anything_was_found_a_signal_ends_the_run(signals, numbers, monkeypatch):
    signal_in(monkeypatch, units, "searched")
    with pytest.raises(KeyboardInterrupt):
        ilk.cluster(numbers, threads=1)
    assert not heard()


def test_the_search_of_a_given_k_keeps_that_k(signals, numbers, monkeypatch):
    """The first K of a search is one, and nobody asked for it."""
    fill = mixtures.Grid.fill

    def stopped(grid, k, *given, **options):
        if k == 4 and not heard():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)
        return fill(grid, k, *given, **options)

    monkeypatch.setattr(mixtures.Grid, "fill", stopped)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = ilk.cluster(numbers, threads=1, k=4, method="gaussian", merge="none")
    assert result.interrupted
    assert result.components == 4


def test_who_insists_is_let_out(signals, numbers, monkeypatch):
    def never(*_):
        for _ in range(INSISTING):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)
        raise AssertionError("still here")

    monkeypatch.setattr(mixtures, "decide", never)
    with pytest.raises(KeyboardInterrupt):
        ilk.cluster(numbers, threads=1)


def test_runs_within_runs_and_in_threads_leave_signals_as_they_were(signals, numbers):
    def inner(progress):
        if progress.stage == "resampling":
            ilk.cluster(numbers[:40], k=2, threads=1)

    def another():
        ilk.cluster(numbers[:40], k=2, threads=1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        thread = threading.Thread(target=another)
        thread.start()
        ilk.cluster(numbers, threads=1, callback=inner)
        thread.join()
        assert ilk.cluster(numbers, threads=1, callback=_signal_at("describing", 0)).interrupted
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

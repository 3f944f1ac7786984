"""The benchmarks run, on tiny tables, and tell what they measured; nothing here asserts a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("threadpoolctl")

from benchmarks import __main__ as command
from benchmarks import contest, gauge, kmeans, memory, mixture, peers, requirement, tables, time_to_answer
from benchmarks.catalogue import BENCHMARKS
from benchmarks.contest import Answer, Case, Contender, Score, Setting

ROOT = Path(__file__).parents[2]


def run(*arguments: str, folder: Path, **environment: str) -> tuple[str, list[dict]]:
    """What a run printed and what it wrote."""
    told = subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments, "--results", str(folder)],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stdout + told.stderr
    (written,) = folder.glob("*.jsonl")
    return told.stdout, [json.loads(line) for line in written.read_text().splitlines()]


def test_tables_are_looked_for_beside_the_checkout():
    """Whatever folder a benchmark is run in."""
    for file in sorted((ROOT / "benchmarks").glob("*.py")):
        assert 'Path("..' not in file.read_text(), file.name


def test_tables_are_full_unless_asked_otherwise():
    assert command.parsed([]).size == "full"
    assert command.parsed(["--quick"]).size == "quick"
    assert command.parsed(["kmeans", "--size", "tiny"]).size == "tiny"
    with pytest.raises(SystemExit):
        command.parsed(["nothing"])


@pytest.mark.slow
def test_kmeans_with_its_peers_and_memory(tmp_path):
    printed, lines = run("kmeans", "--size", "tiny", "--rounds", "2", "--case", "A float64", folder=tmp_path)
    scores = {line["contender"]: line for line in lines if line["kind"] == "score"}
    assert {"ilk", "ilk, 2 threads", "scikit-learn"} <= scores.keys()
    for score in scores.values():
        assert score["passes"] == kmeans.PASSES
        assert score["objective"] == pytest.approx(scores["ilk"]["objective"], rel=1e-6)
        assert score["extra_bytes"] is not None
        assert score["failure"] is None
    assert len(scores["ilk"]["seconds"]) == 2
    verdicts = [line for line in lines if line["kind"] == "verdict"]
    assert {line["word"] for line in verdicts} <= {"small table", "not measured"}
    assert "Requirements" in printed
    for absent in (line for line in lines if line["kind"] == "absent"):
        assert f"{absent['contender']}: not installed" in printed


@pytest.mark.slow
def test_the_other_benchmarks(tmp_path):
    names = ["seeding", "silhouette", "mixture", "selection", "mixed"]
    printed, lines = run(
        *names, "--size", "tiny", "--rounds", "1", "--no-memory",
        "--case", "B", "--case", "2e4", "--case", "1e5x2 k=5 VVV", "--case", "1e3x4", folder=tmp_path,
    )  # fmt: skip
    scores = [line for line in lines if line["kind"] == "score"]
    assert {"seeding", "silhouette", "selection", "mixed"} <= {line["benchmark"] for line in scores}
    assert all(line["failure"] is None for line in scores)
    differences = [line["difference"] for line in scores if line["benchmark"] == "silhouette"]
    assert max(d for d in differences if d is not None) < 1e-9
    assert mixture.absence() is None or mixture.absence() in printed


def test_a_run_names_versions_and_no_machine(tmp_path):
    _, lines = run("mixture", "--size", "tiny", "--case", "none", folder=tmp_path)
    facts = lines[0]
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["machine"]["processors"] >= 1
    assert os.uname().nodename not in json.dumps(facts)


def test_peers_that_are_absent_are_a_line(monkeypatch):
    monkeypatch.setattr(kmeans, "installed", lambda peer: False)
    setting = kmeans.build("A", "float32", "tiny")
    assert [contender.name for contender in setting.contenders] == ["ilk", "ilk, 2 threads"]
    assert set(setting.absent.values()) == {peers.NOT_INSTALLED}
    assert "faiss: not installed" in command.report.case_table(
        setting, [Score(contender.name) for contender in setting.contenders]
    )


def setting_of(*contenders: Contender, passes: int | None = None) -> Case:
    return Case("made", lambda size: Setting(contenders, 1000, passes=passes), rounds=3)


def contender(name: str, answer: Answer, most_rounds: int | None = None) -> Contender:
    return Contender(name, lambda: None, lambda fitted: answer, most_rounds)


def test_rounds_take_turns_and_spare_the_slow():
    case = setting_of(contender("ilk", Answer(1.0)), contender("slow", Answer(1.0), most_rounds=1))
    _, (ours, slow) = contest.compete(case, "tiny")
    assert (len(ours.seconds), len(slow.seconds)) == (3, 1)
    assert len(slow.ratios(ours)) == 1


def test_another_number_of_passes_is_a_failure():
    case = setting_of(contender("ilk", Answer(1.0, 20)), contender("lazy", Answer(1.0, 19)), passes=20)
    _, (ours, lazy) = contest.compete(case, "tiny")
    assert ours.failure is None
    assert "19 passes instead of 20" in lazy.failure


def test_ratios_and_verdicts():
    ours = Score("ilk", [1.0, 2.0], [1.0, 2.0], Answer(10.0, result_bytes=300), extra_bytes=380)
    more = Score("ilk, 2 threads", [0.5, 1.0], [1.0, 2.0], Answer(10.0))
    peer = Score("peer", [3.0, 4.0], [3.0, 4.0], Answer(8.0))
    assert more.ratios(ours) == [2.0, 2.0]
    assert peer.ratios(ours) == [3.0, 2.0]
    assert peer.best_ratio(ours) == 3.0
    promises = [
        requirement.Requirement("speed", "case", "peer", "times", least=2.5),
        requirement.Requirement("speed", "case", "peer", "times", least=2.6),
        requirement.Requirement("threads", "case", "ilk, 2 threads", "times", least=1.7),
        requirement.Requirement("memory", "case", "ilk", "% of data", most=10.0),
        requirement.Requirement("objective", "case", "peer", "objective excess", most=0.0),
        requirement.Requirement("nobody", "case", "absent", "times", least=1.0),
        requirement.Requirement("elsewhere", "another case", "peer", "times", least=1.0),
    ]
    played = {"case": (Setting([], 1000), [ours, more, peer])}
    words = [verdict.word for verdict in requirement.judge(promises, played, full_size=True)]
    assert words == ["PASS", "short", "PASS", "PASS", "short", "not measured"]


def test_what_a_pass_costs_comes_from_two_fits():
    ours = Score("ilk", [9.0] * 3, [3.0, 2.0, 9.0], Answer(1.0), shorter_processor_seconds=[1.0, 1.0, 8.0])
    peer = Score("peer", [9.0] * 3, [30.0, 40.0, 31.0], Answer(1.0), shorter_processor_seconds=[11.0] * 3)
    promise = requirement.Requirement("speed", "case", "peer", "times per pass", least=10.0)
    setting = Setting([], 1000, passes=6, fewer_passes=2)
    (verdict,) = requirement.judge([promise], {"case": (setting, [ours, peer])}, full_size=True)
    assert (verdict.value, verdict.word) == (pytest.approx((31 - 11) / (3 - 1)), "PASS")
    ours.shorter_processor_seconds = [3.0] * 3  # no time is left for the passes
    (verdict,) = requirement.judge([promise], {"case": (setting, [ours, peer])}, full_size=True)
    assert verdict.word == "not measured"


def test_the_shorter_fit_is_timed_and_its_passes_checked():
    fit = {"fit": lambda: 6, "answer": lambda passes: Answer(1.0, passes)}
    good, lazy = (Contender(name, **fit, shorter=lambda n=n: n) for name, n in (("ilk", 2), ("lazy", 1)))
    case = Case("made", lambda size: Setting([good, lazy], 1000, passes=6, fewer_passes=2), rounds=3)
    _, (ours, theirs) = contest.compete(case, "tiny")
    assert len(ours.shorter_processor_seconds) == len(ours.processor_seconds) == 3
    assert "1 passes instead of 2" in theirs.failure


def test_a_fit_that_goes_on_where_the_last_one_ended_is_found_out():
    left = iter([6, 6, 4])  # of the passes: the tiny one, then round by round
    moved = Contender("ilk", lambda: next(left), lambda n: Answer(1.0, n), shorter=lambda: 2)
    case = Case("made", lambda size: Setting([moved], 1000, passes=6, fewer_passes=2), rounds=2)
    _, (score,) = contest.compete(case, "tiny")
    assert "4 passes instead of 6" in score.failure


def test_a_second_thread_is_worth_something():
    assert 0.0 < gauge.second_thread() < 10.0


def test_memory_is_that_of_the_call_alone():
    before = np.ones(4_000_000)  # resident already, so not counted
    counted = memory.measured(lambda: np.ones(2_000_000).sum())
    assert 12e6 < counted < 24e6
    assert before.nbytes == 32e6


def test_every_requirement_names_a_case_and_a_figure():
    for benchmark in BENCHMARKS.values():
        cases = {case.name for case in benchmark.cases}
        for promise in benchmark.requirements:
            assert promise.case in cases
            assert promise.figure in requirement.FIGURES
            assert (promise.least is None) != (promise.most is None)


def test_the_mixture_start_is_the_partition():
    rows, _ = tables.groups(500, 3, 2, 2.0, "float64")
    label = (rows[:, 0] > 0).astype(int)
    task = mixture.Task(rows, label, 2, "VVV", "made")
    start = mixture.start_of(task)
    assert start["means_init"][1] == pytest.approx(rows[label == 1].mean(axis=0))
    one = np.linalg.inv(start["precisions_init"][0])
    assert one == pytest.approx(np.cov(rows[label == 0].T, bias=True))


def test_two_answers_to_a_table_are_told_in_a_line():
    then = {"cpu": 2.0, "k": 3, "pieces": 3, "word": "fair", "bic": 100.0}
    now = {**then, "cpu": 0.5, "word": "solid", "bic": 90.0}
    line = time_to_answer.line_of("made-1", [then, now])
    assert "4.00x" in line
    assert line.endswith("word was fair, BIC -10.0")
    assert "same K 1, same word 0, BIC lower by more than 2 in 1, higher in 0" in time_to_answer.totals(
        [(then, now)]
    )


def test_an_answer_of_this_checkout_beside_itself(capsys):
    time_to_answer.main(["made-21", "--before", str(ROOT / "src")])
    told = capsys.readouterr().out
    assert "same K 1, same word 1" in told


def test_shared_tables_are_skipped_with_a_reason(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(time_to_answer, "DATA", tmp_path)
    time_to_answer.main(["penguins"])
    assert "skipped: no shared tables beside the checkout" in capsys.readouterr().out

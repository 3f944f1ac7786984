"""A budget is the time of the whole run, on a clock that these tests turn: what there was no time for is said."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ilk
import ilk.analysis.run
import ilk.analysis.shown

N, LATE = 240, 1e6


class Clock:
    """A clock that stands until it is turned."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("ilk.fitting.deadline.time.monotonic", made)
    return made


@pytest.fixture
def numbers():
    draws = np.random.default_rng(0)
    return np.vstack([draws.normal(centre, 1, (N // 3, 2)) for centre in (0, 8, 16)])


def clustered(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ilk.cluster(data, threads=1, **options)


def turned_at(clock, stage, number=1):
    """A callback that turns the clock beyond every budget as a stage begins, or at its progress of that number."""
    told = []

    def callback(progress):
        told.append(progress.stage)
        if told.count(stage) == number:
            clock.now = LATE

    return callback


def caution(result):
    return next(one for one in result.warnings if one[0] == "time-limit")


def test_a_clock_that_stands_ends_nothing(clock, numbers):
    result = clustered(numbers, budget=1)
    assert result.k == 3
    assert result.verdict.word == "solid"
    assert "time-limit" not in dict(result.warnings)


@pytest.mark.parametrize(("method", "at"), [("auto", 2), ("k-means", 2), ("gaussian", 2)])
def test_a_search_ended_by_time_says_where_it_stopped(clock, numbers, method, at):
    result = clustered(numbers, budget=10, method=method, callback=turned_at(clock, "fitting", at))
    assert result.components == 2
    assert result.verdict.word in ("not tested", "weak")
    told = caution(result)
    assert "stopped at K=2 before K=3 to 9" in told[1]
    assert [str(option) for option in told.options] == ["budget=40"]
    assert result.summary()["search"]["ended_by"] == "time"


def test_the_search_leaves_time_for_the_rest(clock, numbers):
    """Most of the budget is the search's, and what then is left is there for resamples."""

    told = []

    def callback(progress):
        told.append(progress.stage)
        clock.now = 8.0 if len(told) >= 4 else 0.0  # after the fourth K

    result = clustered(numbers, budget=10, k=range(1, 9), callback=callback)
    assert result.k == 3
    assert "stopped at K=3 before K=5 to 8" in caution(result)[1]
    assert result.verdict.word == "solid"
    assert result.verdict.stability_min > 0.9


def test_resamples_ended_by_time_are_not_counted(clock, numbers):
    result = clustered(numbers, budget=10, callback=turned_at(clock, "resampling"))
    assert result.k == 3
    assert result.verdict.word == "not tested"
    assert result.verdict.stability_min is None
    assert "stability was not tested" in caution(result)[1]
    assert "stopped at" not in caution(result)[1]


def test_groups_are_told_from_a_sample_where_there_is_no_time_for_all_rows(clock, numbers, monkeypatch):
    monkeypatch.setattr(ilk.analysis.shown, "GLANCED_ROWS", N // 2)
    result = clustered(numbers, budget=10, callback=turned_at(clock, "describing"))
    assert result.k == 3
    assert result.verdict.word == "solid"  # all that was asked of the time was done
    assert "described-on-sample" in dict(result.warnings)
    assert sum(group.rows for group in result.groups) == N


def test_reading_counts(clock, numbers, monkeypatch):
    prepare = ilk.analysis.run.prepare

    def slow(job):
        clock.now = LATE
        return prepare(job)

    monkeypatch.setattr(ilk.analysis.run, "prepare", slow)
    result = clustered(numbers, budget=10)
    assert result.components == 1
    assert "stopped at K=1 before K=2 to 9" in caution(result)[1]


@pytest.mark.parametrize("method", ["auto", "gaussian", "k-means"])
@pytest.mark.parametrize("k", [2, 4, range(3, 6)])
def test_whatever_was_asked_for_there_is_an_answer_without_any_time(numbers, method, k):
    result = clustered(numbers, budget=1e-9, method=method, k=k)
    asked = [k] if isinstance(k, int) else [*k]
    assert result.components in asked
    assert "no-mixture" not in dict(result.warnings)
    assert np.isfinite([one.bic for one in result.candidates if one.eligible]).all()
    assert caution(result)


def test_a_paradigm_beside_the_loop_is_not_resampled_without_time(clock, numbers, monkeypatch):
    result = clustered(numbers, k=3, method="single-linkage", budget=1)
    assert result.verdict.stability_min is not None
    from ilk.selection import from_partition

    drawn, stream = [], from_partition.stream

    def late(*given):
        drawn.append(given)
        clock.now = LATE
        return stream(*given)

    monkeypatch.setattr(from_partition, "stream", late)
    result = clustered(numbers, k=3, method="single-linkage", budget=1)
    assert len(drawn) == 1
    assert result.k == 3
    assert result.verdict.stability_min is None
    assert "stability was not tested" in caution(result)[1]

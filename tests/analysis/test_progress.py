"""`progress`: a bar, silence, or a function of the caller's, beside the callback that was there before."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

import ilk

SIZES = {"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}


def test_a_file_gets_one_line_a_stage(capsys):
    ilk.cluster(SIZES, k=2, progress=True)
    assert capsys.readouterr().err.splitlines() == [
        "ilk: reading",
        "ilk: fitting",
        "ilk: resampling",
        "ilk: describing",
    ]


@pytest.mark.parametrize("progress", [None, False])
def test_nothing_is_said_unasked(capsys, progress):
    ilk.cluster(SIZES, k=2, progress=progress)
    ilk.Clusterer(2, progress=progress).fit(SIZES)
    assert capsys.readouterr().err == ""


def test_a_terminal_has_a_bar_that_is_gone_in_the_end(monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", stream)
    ilk.cluster(SIZES, k=2, progress=True)
    assert "fitting" in stream.getvalue()
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().split("\r")[-2].strip() == ""


def test_a_function_and_the_callback_are_told_the_same():
    one, other = [], []
    ilk.cluster(SIZES, k=2, progress=one.append, callback=other.append)
    assert one == other
    assert {report.stage for report in one} == {"fitting", "resampling", "describing"}
    more = []
    ilk.select([[0.0], [1.0], [2.0], [7.0]], k=2, structures="E", progress=more.append)
    ilk.Clusterer(2, progress=more.append).fit(SIZES)
    assert isinstance(more[0], ilk.Progress)


def test_in_a_notebook_the_bar_is_shown_unasked(capsys, monkeypatch):
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    ilk.cluster(SIZES, k=2)
    assert "fitting" in capsys.readouterr().err


def test_another_answer_is_refused():
    with pytest.raises(ilk.errors.UsageError, match='progress="bar"'):
        ilk.cluster(SIZES, k=2, progress="bar")

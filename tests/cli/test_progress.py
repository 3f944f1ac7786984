"""The line of progress: every stage is named, time goes on while nothing is reported, and nothing is left behind."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ilk.selection.progress import Progress
from ilk.text import progress as meter
from ilk.text.layout import Surface

DATA = Path(__file__).parents[1] / "data"


def made() -> tuple[meter.Meter, io.StringIO]:
    stream = io.StringIO()
    return meter.Meter(stream, Surface(width=80)), stream


def test_stages_in_their_order():
    line, stream = made()
    with line:
        line(Progress(done=1, total=4, method="gaussian", k=1, best_bic=99.0, seconds=0.5))
        line(Progress(done=7, total=0, method="assorted", k=0, best_bic=98.0, seconds=1.5))
        line(
            Progress(done=4, total=4, method="gaussian", k=3, best_bic=97.0, seconds=2.0, stage="resampling")
        )
        line.now("writing")
    lines = written(stream)
    assert [text.split("  ")[0] for text in lines] == [
        "reading",
        "fitting",
        "fitting",
        "resampling",
        "writing",
    ]
    assert "K 1 gaussian" in lines[1]
    assert "1/4  best BIC 99" in lines[1]
    assert "7 passes" in lines[2]
    assert gone(stream)


def written(stream: io.StringIO) -> list[str]:
    """What a reader saw: the line as it was rewritten, without repeats."""
    lines = [text.strip() for text in stream.getvalue().split("\r") if text.strip()]
    return [text for i, text in enumerate(lines) if i == 0 or text != lines[i - 1]]


def gone(stream: io.StringIO) -> bool:
    """Whether nothing is left on the line."""
    *_, last, after = stream.getvalue().split("\r")
    return not last.strip() and after == ""


def test_time_goes_on_while_nothing_is_reported(monkeypatch):
    monkeypatch.setattr(meter, "TICK", 0.01)
    monkeypatch.setattr(meter, "SILENCE", 0.02)
    line, stream = made()
    with line:
        end = time.monotonic() + 20
        while stream.getvalue().count("reading") < 3 and time.monotonic() < end:
            time.sleep(0.01)
    assert stream.getvalue().count("reading") >= 3
    at_the_end = stream.getvalue()
    time.sleep(0.05)
    assert stream.getvalue() == at_the_end  # the clock has stopped
    assert gone(stream)


def test_into_a_file_goes_one_line_a_stage(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with meter.Meter() as line:
        for done in range(1, 200):
            line(Progress(done=done, total=200, method="gaussian", k=1, best_bic=99.0, seconds=0.5))
        line(
            Progress(done=4, total=4, method="gaussian", k=3, best_bic=97.0, seconds=2.0, stage="describing")
        )
    assert stream.getvalue().splitlines() == ["ilk: reading", "ilk: fitting", "ilk: describing"]


def test_without_utf8_the_bar_is_plain():
    stream = io.StringIO()
    with meter.Meter(stream, Surface(width=80, encoding="ascii")) as line:
        line(Progress(done=3, total=4, method="gaussian", k=1, best_bic=-99.5, seconds=0.5))
    assert stream.getvalue().isascii()
    assert "###" in stream.getvalue()


def test_a_stream_that_is_closed_ends_the_line_and_not_the_run():
    stream = io.StringIO()
    with meter.Meter(stream, Surface(width=80)) as line:
        stream.close()
        line(Progress(done=3, total=4, method="gaussian", k=1, best_bic=99.0, seconds=0.5))
        line.now("writing")


@pytest.fixture
def mixed_table(tmp_path):
    """Numbers and categories in four groups; the search takes far longer than the interrupt waits."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draws = np.random.default_rng(0)
    group = draws.integers(0, 4, 60_000)
    table = {f"n{j}": draws.normal(size=4)[group] * 2 + draws.normal(size=len(group)) for j in range(8)}
    for j in range(4):
        table[f"c{j}"] = np.array(list("abc"))[(group + draws.integers(0, 2, len(group))) % 3]
    pq.write_table(pa.table(table), tmp_path / "mixed.parquet")
    return tmp_path / "mixed.parquet"


@pytest.mark.skipif(os.name == "nt", reason="a signal to a process of its own")
def test_interrupt_of_a_mixed_table_writes_what_was_found(mixed_table):
    """Once passes are reported there is a model, and Ctrl-C gives it with the code of an interrupt."""
    script = (
        "import os, signal, sys, ilk.cli.main, ilk.selection.assorted as assorted\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored where tests run in the background
        "tell = assorted.told\n"
        "def stop(callback, progress):\n"
        "    if progress.done == 40:\n"
        "        print('interrupting', file=sys.stderr, flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    tell(callback, progress)\n"
        "assorted.told = stop\n"
        "ilk.cli.main.cli.main(['fit', 'mixed.parquet'])\n"
    )
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=mixed_table.parent, env={**os.environ, "PYTHONPATH": source},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 128 + signal.SIGINT, done.stderr
    assert "interrupted; the best so far is in mixed.ilk" in done.stderr
    for name in ("report.html", "model.ilk", "summary.json", "assignments.parquet"):
        assert (mixed_table.parent / "mixed.ilk" / name).exists()

"""Every way to end: exit codes, one or two lines of what, where and what to do, no traceback."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ilk import errors
from ilk.analysis import run as job

DATA = Path(__file__).parents[1] / "data"


def refused(result, exit_code, code):
    """A refusal in the promised form."""
    assert result.exit_code == exit_code, (result.stdout, result.stderr)
    assert result.stdout == ""
    assert result.stderr.startswith(f"error [{code}]: ")
    assert result.stderr.count("\n") <= 2
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.badinput("B1")
@pytest.mark.parametrize("content", ["", "a,b\n"])
def test_no_rows(ilk, tmp_path, content):
    (tmp_path / "t.csv").write_text(content)
    refused(ilk("fit", "t.csv"), 3, "no-rows")


@pytest.mark.badinput("B2")
def test_one_row_is_one_group(ilk, tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": 1.5, "b": 2.5}\n')
    result = ilk("fit", "t.jsonl", "--types", "a=numeric", "--types", "b=numeric", "--k", "1")
    assert result.exit_code == 0, result.stderr
    assert "1 group" in result.stdout


@pytest.mark.badinput("B3")
def test_no_usable_column_lists_why(ilk, tmp_path):
    (tmp_path / "t.csv").write_text("id,word,same\n" + "".join(f"k{i},{'abc'[i % 3]},x\n" for i in range(30)))
    text = refused(ilk("fit", "t.csv", "--method", "k-means"), 3, "no-columns")
    for reason in ("'id': identifier", "'word': categorical", "'same': constant"):
        assert reason in text


@pytest.mark.badinput("B4")
def test_fewer_rows_than_groups(ilk, blobs):
    text = refused(ilk("fit", "blobs.csv", "--k", "51"), 3, "fewer-rows-than-groups")
    assert "50 rows" in text
    assert "51 groups" in text


@pytest.mark.badinput("B5")
def test_as_many_groups_as_rows(ilk, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1.5,2\n3.5,4\n5.5,7\n")
    result = ilk("fit", "t.csv", "--k", "3")
    assert result.exit_code == 0, result.stderr
    assert "exact-fit" in result.stdout


@pytest.mark.badinput("B6")
def test_fewer_distinct_rows_than_groups(ilk, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "1.5,2.5\n3.5,4.5\n2.5,1.5\n" * 10)
    result = ilk("fit", "t.csv", "--k", "5")
    assert result.exit_code == 0, result.stderr
    assert "fewer-distinct-rows" in result.stdout
    assert "3 groups" in result.stdout


@pytest.mark.badinput("B7")
@pytest.mark.parametrize("k", ["0", "-1", "2.5", "three", "1e9", "", "True"])
def test_k_that_cannot_be(ilk, blobs, k):
    result = ilk("fit", "blobs.csv", f"--k={k}")
    assert result.exit_code == 2
    assert "not a number of groups" in result.stderr


@pytest.mark.badinput("B8")
def test_k_range_reversed_or_above_the_rows(ilk, blobs):
    refused(ilk("fit", "blobs.csv", "--k", "9..2"), 2, "bad-k")
    result = ilk("fit", "blobs.csv", "--k", "48..52")
    assert result.exit_code == 0, result.stderr
    assert "k-trimmed" in result.stdout


@pytest.mark.badinput("B13")
@pytest.mark.parametrize("weights", [[-1, 1], ["", 1], [0, 0], ["inf", 1], ["1e-200", "1e200"], ["x", "y"]])
def test_weights_that_cannot_be(ilk, tmp_path, weights):
    rows = "".join(f"{i % 7}.5,{weights[i % 2]}\n" for i in range(20))
    (tmp_path / "t.csv").write_text("a,w\n" + rows)
    result = ilk("fit", "t.csv", "--weight", "w")
    assert result.exit_code == 3, (result.stdout, result.stderr)
    assert re.match(r"error \[(bad-weight|data-infinite|data-mixed)\]: ", result.stderr)


@pytest.mark.badinput("B18")
def test_assigning_no_rows(ilk, blobs, tmp_path):
    ilk("fit", "blobs.csv", "-q")
    (tmp_path / "none.csv").write_text("code,x,y,size\n")
    result = ilk("assign", "blobs.ilk", "none.csv", "-q")
    assert (result.exit_code, result.stdout) == (0, "row,group,probability,second,novelty\n"), result.stderr


def test_usage(ilk, blobs):
    for args in (
        ["fit"],
        ["fit", "blobs.csv", "--kk", "3"],
        ["nothing"],
        ["fit", "blobs.csv", "--scale", "big"],
    ):
        result = ilk(*args)
        assert result.exit_code == 2
        assert "Usage" in result.stderr
    refused(ilk("fit", "missing.csv"), 2, "no-file")
    refused(ilk("fit", "blobs.csv", "--truth", "sise"), 2, "unknown-column")
    assert "Did you mean 'size'" in ilk("fit", "blobs.csv", "--truth", "sise").stderr
    refused(ilk("fit", "blobs.csv", "--method", "k-modes"), 2, "bad-method")
    assert "Did you mean single-linkage?" in ilk("fit", "blobs.csv", "--method", "Single linkage").stderr
    refused(ilk("fit", "blobs.csv", "--types", "x=numerical"), 2, "unknown-type")
    refused(ilk("fit", "blobs.csv", "--threads", "0"), 2, "bad-threads")
    refused(ilk("fit", "blobs.csv", "--sql", "drop table data"), 2, "bad-sql")
    refused(ilk("assign", "nothing.ilk", "blobs.csv"), 2, "no-run")
    assert ilk("fit", "blobs.csv", "--budget", "soon").exit_code == 2


@pytest.mark.badinput("E1")
def test_an_earlier_run_is_not_written_over(ilk, blobs, tmp_path):
    assert ilk("fit", "blobs.csv", "-q").exit_code == 0
    before = {p.name: p.read_bytes() for p in (tmp_path / "blobs.ilk").iterdir()}
    refused(ilk("fit", "blobs.csv", "--k", "3"), 2, "output-exists")
    assert {p.name: p.read_bytes() for p in (tmp_path / "blobs.ilk").iterdir()} == before
    assert ilk("fit", "blobs.csv", "--k", "1", "--force", "-q").exit_code == 0
    assert (tmp_path / "blobs.ilk" / "model.ilk").read_bytes() != before["model.ilk"]
    (tmp_path / "out.csv").write_text("mine")
    refused(ilk("assign", "blobs.ilk", "blobs.csv", "-q", "-o", "out.csv"), 2, "output-exists")
    assert (tmp_path / "out.csv").read_text() == "mine"


def test_the_lock_of_a_dead_writer_goes_with_the_refusal(ilk, blobs, tmp_path):
    """Killed when the folder was whole: nothing of it is missing, and only the lock is left."""
    assert ilk("fit", "blobs.csv", "--k", "3", "-o", "run", "-q").exit_code == 0
    lock = tmp_path / ".run.lock"
    lock.write_text("4194304\n")
    refused(ilk("fit", "blobs.csv", "--k", "3", "-o", "run"), 2, "output-exists")
    assert not lock.exists()


@pytest.mark.badinput("E2")
def test_links_and_the_input_itself_are_not_written(ilk, blobs, tmp_path):
    (tmp_path / "target").mkdir()
    (tmp_path / "blobs.ilk").symlink_to("target")
    refused(ilk("fit", "blobs.csv", "--force"), 2, "output-is-link")
    refused(ilk("fit", "blobs.csv", "-o", "blobs.csv", "--force"), 2, "output-is-input")
    assert ilk("fit", "blobs.csv", "-q", "-o", "run").exit_code == 0
    text = blobs.read_text()
    refused(ilk("assign", "run", "blobs.csv", "-o", "blobs.csv", "--force"), 2, "output-is-input")
    (tmp_path / "link.csv").symlink_to("blobs.csv")
    refused(ilk("assign", "run", "blobs.csv", "-q", "-o", "link.csv", "--force"), 2, "output-is-input")
    assert blobs.read_text() == text


def test_folder_that_cannot_be_written(ilk, blobs, monkeypatch, tmp_path):
    (tmp_path / "closed").mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    if os.geteuid() == 0:  # root writes everywhere, so it is told what others are
        mkdir = os.mkdir

        def closed(path, *given, **named):
            if "closed" in str(path):
                raise PermissionError(13, "Permission denied", str(path))
            return mkdir(path, *given, **named)

        monkeypatch.setattr(os, "mkdir", closed)
    refused(ilk("fit", "blobs.csv", "-o", "closed/run"), 5, "write-failed")


def test_no_space_left_is_a_resource_limit(ilk, blobs, monkeypatch, tmp_path):
    from ilk.store.atomic import Calls

    def full(self, handle, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Calls, "write", full)
    refused(ilk("fit", "blobs.csv"), 5, "write-failed")
    assert [path.name for path in tmp_path.iterdir()] == ["blobs.csv"]


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (errors.NoModelError, 4),
        (errors.ResourceError, 5),
        (errors.ModelFileError, 6),
        (errors.EngineError, 7),
    ],
)
def test_exit_codes_of_the_error_family(ilk, blobs, monkeypatch, error, exit_code):
    def fail(*args, **options):
        raise error("the-code", "What it is", where="here", do="Do this")

    monkeypatch.setattr(job, "_searched", fail)
    result = ilk("fit", "blobs.csv")
    assert result.exit_code == exit_code
    assert result.stderr == "error [the-code]: What it is (here). Do this.\n"


def test_a_bug_is_ours_and_shows_no_data(ilk, blobs, monkeypatch):
    def fail(*args, **options):
        raise ValueError("secret cell 42")

    monkeypatch.setattr(job, "_searched", fail)
    result = ilk("fit", "blobs.csv")
    text = refused(result, 1, "bug")
    assert "a bug in ilk" in text
    assert "secret" not in text
    assert isinstance(ilk("fit", "blobs.csv", "--debug").exception, ValueError)


def test_out_of_memory(ilk, blobs, monkeypatch):
    def fail(*args, **options):
        raise MemoryError

    monkeypatch.setattr(job, "_searched", fail)
    refused(ilk("fit", "blobs.csv"), 5, "out-of-memory")


def test_debug_raises_the_refusal_itself(ilk, blobs):
    assert isinstance(ilk("fit", "missing.csv", "--debug").exception, errors.UsageError)


def test_damaged_model_file(ilk, blobs, tmp_path):
    ilk("fit", "blobs.csv", "-q")
    path = tmp_path / "blobs.ilk" / "model.ilk"
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    refused(ilk("assign", "blobs.ilk", "blobs.csv"), 6, "model-damaged")
    path.write_bytes(b"PK\x03\x04" + whole)
    refused(ilk("assign", "blobs.ilk", "blobs.csv"), 6, "not-a-model")


@pytest.fixture
def large(tmp_path):
    """A table without groups, searched up to K = 9."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = np.random.default_rng(0).normal(size=(3_000, 6))
    pq.write_table(pa.table({f"c{j}": numbers[:, j] for j in range(6)}), tmp_path / "large.parquet")
    return tmp_path / "large.parquet"


@pytest.mark.badinput("F1")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    ("method", "holder", "part"), [("k-means", "search", "fit_cell"), ("gaussian", "mixtures.Grid", "fill")]
)
def test_interrupted_run_writes_the_best_so_far(tmp_path, large, method, holder, part, number, code):
    script = (
        "import os, signal, sys, ilk.cli.main, ilk.selection.search, ilk.selection.mixtures\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored where tests run in the background
        f"whole = ilk.selection.{holder}.{part}\n"
        "def stopped(*args, **options):\n"
        "    if 4 in [a for a in args if isinstance(a, int)]:\n"
        f"        os.kill(os.getpid(), signal.Signals({int(number)}))\n"
        "    return whole(*args, **options)\n"
        f"ilk.selection.{holder}.{part} = stopped\n"
        f"ilk.cli.main.cli.main(['fit', 'large.parquet', '--method', {method!r}])\n"
    )
    source = str(Path(__file__).parents[2] / "src")
    began = time.monotonic()
    made = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env={**os.environ, "PYTHONPATH": source},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert made.returncode == code, made.stderr
    assert "interrupted; the best so far is in large.ilk" in made.stderr
    assert "caution         interrupted" in made.stdout
    assert (tmp_path / "large.ilk" / "model.ilk").exists()
    assert time.monotonic() - began < 60


def test_interrupt_before_anything_is_found(ilk, blobs, monkeypatch, tmp_path):
    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(job, "_searched", stop)
    result = ilk("fit", "blobs.csv")
    assert result.exit_code == 130
    assert result.stderr.strip() == "interrupted; nothing was written"
    assert not (tmp_path / "blobs.ilk").exists()


@pytest.mark.badinput("E10")
def test_broken_pipe_is_quiet(tmp_path, blobs, shell):
    assert shell("fit", "blobs.csv", "--truth", "size", "-q").returncode == 0
    rows = "".join(f"{i % 9}.5,{i % 7}.25\n" for i in range(60_000))
    (tmp_path / "many.csv").write_text("x,y\n" + rows)
    source = str(Path(__file__).parents[2] / "src")
    made = subprocess.run(
        f"{sys.executable} -m ilk.cli.main assign blobs.ilk many.csv -q | head -n 1",
        shell=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True,
    )  # fmt: skip
    assert made.stdout == "row,group,probability,second,novelty\n"
    assert made.stderr == ""

"""Standard streams that are full or closed, a temporary folder that is, and folders that must not be written."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile

import pytest

import ilk.analysis.run_folder
import ilk.table.scratch as scratches
from ilk.errors import ResourceError
from tests.cli.conftest import environment

FIT = ("fit", "blobs.csv", "--method", "k-means", "--k", "2")


def run(tmp_path, redirect, *args):
    """`ilk ARGS` of a shell, with a redirection."""
    line = f'exec "$0" -m ilk.cli.main "$@" {redirect}'
    return subprocess.run(
        ["sh", "-c", line, sys.executable, *args],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")


def test_a_full_standard_output_is_a_resource_limit(tmp_path, blobs):
    done = run(tmp_path, ">/dev/full", *FIT)
    assert done.returncode == 5
    assert "standard output could not be written: No space left" in done.stderr
    assert "The run is in blobs.ilk" in done.stderr
    assert len(os.listdir(tmp_path / "blobs.ilk")) == 5


def test_help_to_a_full_standard_output(tmp_path):
    done = run(tmp_path, ">/dev/full", "--help")
    assert done.returncode == 5
    assert "[bug]" not in done.stderr


def test_closed_streams_do_not_stop_a_run(tmp_path, blobs):
    done = run(tmp_path, ">&- 2>&-", *FIT, "-q")
    assert done.returncode == 0
    assert len(os.listdir(tmp_path / "blobs.ilk")) == 5


def test_a_closed_standard_output_is_told(tmp_path):
    done = run(tmp_path, ">&-", "choose")
    assert done.returncode == 5
    assert "standard output could not be written: it is closed" in done.stderr


def test_a_closed_standard_input_is_told(tmp_path):
    done = run(tmp_path, "<&-", "fit", "-")
    assert done.returncode == 2
    assert "standard input is closed" in done.stderr


@pytest.mark.parametrize("packed", [False, True])
def test_a_full_temporary_folder_is_not_blamed_on_the_table(ilk, blobs, monkeypatch, packed):
    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(scratches, "open", lambda *a, **k: full(a), raising=False)
    args = ["fit", "-"]
    if packed:
        import gzip

        (blobs.parent / "b.csv.gz").write_bytes(gzip.compress(blobs.read_bytes()))
        args = ["fit", "b.csv.gz"]
    done = ilk(*args, input=blobs.read_bytes())
    assert done.exit_code == 5
    assert "disk-full" in done.stderr
    assert "temporary files is full" in done.stderr


def test_left_temporary_folders_are_cleared_and_held_ones_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "ilk-dead").mkdir()
    (tmp_path / "ilk-dead" / scratches.MARK).write_bytes(b"")
    (tmp_path / "ilk-dead" / "stream").write_bytes(b"a piped table")
    (tmp_path / "ilk-other").mkdir()  # not ours: no mark in it
    monkeypatch.setattr(scratches, "_cleared", [])
    with scratches.scratch() as one:
        monkeypatch.setattr(scratches, "_cleared", [])
        with scratches.scratch():
            assert os.path.isdir(one)
    assert os.listdir(tmp_path) == ["ilk-other"]


def test_a_second_interrupt_while_writing_says_what_is_true(ilk, blobs, monkeypatch, tmp_path):
    real, calls = ilk_page(), []

    def page(*args):
        calls.append(1)
        if len(calls) <= 2:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr("ilk.analysis.run_folder.page", page)
    done = ilk(*FIT)
    assert done.exit_code == 130
    assert "nothing was written" in done.stderr
    assert os.listdir(tmp_path) == ["blobs.csv"]


def ilk_page():
    return ilk.analysis.run_folder.page


def test_rights_are_known_before_the_fit(ilk, blobs, monkeypatch, tmp_path):
    def never(job):
        raise AssertionError("fitted")

    monkeypatch.setattr("ilk.analysis.run.run", never)
    monkeypatch.setattr("ilk.store.folder._lock", _denied)
    done = ilk(*FIT)
    assert done.exit_code == 5
    assert "cannot be written: Permission denied" in done.stderr
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.html").symlink_to(tmp_path / "victim")
    done = ilk(*FIT, "-o", "out", "--force")
    assert done.exit_code == 2
    assert "output-is-link" in done.stderr


def _denied(path, folder):
    raise PermissionError(errno.EACCES, "Permission denied")


def test_no_room_before_the_fit(ilk, blobs, monkeypatch):
    monkeypatch.setattr(ilk_folder(), "LEAST_BYTES", 1 << 62)
    done = ilk(*FIT)
    assert done.exit_code == 5
    assert "disk-full" in done.stderr


def ilk_folder():
    return ilk.analysis.run_folder


def test_the_refusal_of_a_temporary_folder_names_it(monkeypatch):
    assert "TMPDIR" in str(scratches.no_room(OSError(errno.EDQUOT, "Quota")))
    assert isinstance(scratches.no_room(OSError(errno.EACCES, "no")), ResourceError)

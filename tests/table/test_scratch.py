"""Temporary folders: gone at the end, left ones cleared away, and failures that name the folder and not the table."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile

import pytest

from ilk.errors import ResourceError
from ilk.table import scratch
from ilk.table.read import read


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder for temporary files, in which nobody has looked for left ones yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(scratch, "_cleared", [])
    return tmp_path


def failing(number):
    def call(*_, **__):
        raise OSError(number, os.strerror(number))

    return call


def left(folder, name="ilk-left"):
    """A folder as a process leaves it that was killed."""
    (folder / name).mkdir()
    (folder / name / scratch.MARK).touch()
    (folder / name / "copy.csv").write_text("a\n1\n")
    return folder / name


def test_a_folder_is_there_and_gone(folder):
    with scratch.scratch() as made:
        assert os.path.dirname(made) == str(folder)
        assert os.listdir(made) == [scratch.MARK]
    assert os.listdir(folder) == []


def test_left_folders_are_cleared_and_held_ones_stay(folder):
    dead, held, other = left(folder), left(folder, "ilk-held"), left(folder, "other")
    linked = left(folder, "ilk-linked")
    os.link(linked / scratch.MARK, folder / "mark")  # perhaps a trap
    (folder / "ilk-unmarked").mkdir()
    with open(held / scratch.MARK) as mark:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with scratch.scratch():
            assert not dead.exists()
            assert held.exists()
    assert other.exists()
    assert linked.exists()
    assert (folder / "ilk-unmarked").exists()


def test_left_folders_are_looked_for_once(folder):
    with scratch.scratch():
        dead = left(folder)
    with scratch.scratch():
        assert dead.exists()


def test_folders_of_other_users_stay(folder, monkeypatch):
    dead = left(folder)
    monkeypatch.setattr(os, "getuid", lambda: dead.stat().st_uid + 1)
    with scratch.scratch():
        assert dead.exists()


def test_a_system_without_locks_clears_nothing(folder, monkeypatch):
    dead = left(folder)
    monkeypatch.setattr(scratch, "fcntl", None)
    with scratch.scratch() as made:
        assert os.path.isdir(made)
    assert os.listdir(folder) == [dead.name]


def test_a_folder_that_cannot_be_marked_serves(folder, monkeypatch):
    monkeypatch.setattr(os, "open", failing(errno.EMFILE))
    with scratch.scratch() as made:
        monkeypatch.undo()
        assert os.listdir(made) == []
    assert not os.path.exists(made)


@pytest.mark.parametrize(
    ("number", "code", "text"),
    [
        (errno.ENOSPC, "disk-full", "the folder for temporary files is full"),
        (errno.EROFS, "write-failed", "the folder for temporary files cannot be written"),
    ],
)
def test_a_folder_that_cannot_be_made(folder, number, code, text, monkeypatch):
    path = folder / "t.csv"
    path.write_text("a,b\n1,2\n")
    monkeypatch.setattr(tempfile, "mkdtemp", failing(number))
    with pytest.raises(ResourceError, match=text) as error:
        read(path)
    assert error.value.code == code
    assert str(folder) in str(error.value)
    assert "TMPDIR" in str(error.value)


def test_copies_that_cannot_be_written(folder):
    with pytest.raises(ResourceError, match="is full") as error, scratch.spool("/dev/full") as out:
        out.write(b"1")
    assert error.value.code == "disk-full"
    with pytest.raises(ResourceError, match="cannot be written") as error, scratch.spool(str(folder)):
        pass
    assert error.value.code == "write-failed"


def test_no_folder_at_all(folder, monkeypatch):
    """Where none of the usual places can be written there is none to name."""
    monkeypatch.setattr(tempfile, "gettempdir", failing(errno.ENOENT))
    with pytest.raises(ResourceError) as error, scratch.room():
        raise OSError(errno.ENOSPC, "full")
    assert (error.value.code, error.value.where) == ("disk-full", "")

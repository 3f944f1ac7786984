"""A folder written at one stroke: old or new after every failing call and every death, one writer, nothing left."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys

import pytest

import ilk.store.folder as folders
from ilk.errors import IlkError, ResourceError, UsageError
from ilk.store import write_atomically
from ilk.store.folder import Claim, claimed

OWN = ("a", "b", "c")
OLD, NEW = {"a": b"old a", "b": b"old b"}, {"a": b"new a", "c": b"new c"}
CALLS = (
    "mkdir",
    "rename",
    "replace",
    "unlink",
    "rmdir",
    "chmod",
    "listdir",
    "fsync",
    "open",
    "close",
    "stat",
)


class Died(BaseException):
    """The process is gone."""


def make(target):
    for name, content in NEW.items():
        write_atomically(target / name, content)


def files(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} if folder.is_dir() else None


def start(tmp_path, old=True):
    folder = tmp_path / "run"
    if old:
        folder.mkdir()
        for name, content in OLD.items():
            (folder / name).write_bytes(content)
    return folder


def put(folder, force=True):
    with claimed(str(folder), OWN) as claim:
        claim.write(make, force=force)


@pytest.fixture(params=["exchange", "renames", "inside"])
def way(request, monkeypatch, tmp_path):
    """Each way to put the files in their place."""
    if request.param == "renames":
        monkeypatch.setattr(folders, "exchange", _no_exchange)
    if request.param == "inside":
        monkeypatch.setattr(folders, "_fixed", os.path.isdir)
    return request.param


def _no_exchange(one, two):
    raise OSError(errno.ENOSYS, "none here")


@pytest.mark.badinput("E5")
def test_new_takes_the_place_of_old_and_nothing_else_is_left(tmp_path, way):
    folder = start(tmp_path)
    put(folder)
    assert files(folder) == NEW
    assert os.listdir(tmp_path) == ["run"]


def test_what_is_not_ours_is_carried_over(tmp_path, way):
    folder = start(tmp_path)
    (folder / "notes.txt").write_text("mine")
    (folder / "plots").mkdir()
    (folder / "plots" / "one").write_text("x")
    folder.chmod(0o750)
    put(folder)
    assert files(folder) == {**NEW, "notes.txt": b"mine"}
    assert (folder / "plots" / "one").read_text() == "x"
    assert folder.stat().st_mode & 0o777 == 0o750
    assert os.listdir(tmp_path) == ["run"]


class Failing:
    """`os` with its calls numbered: the one with the number `at` raises, and after a death all later ones do."""

    def __init__(self, at, fault):
        self.at, self.fault, self.seen = at, fault, 0

    def __getattr__(self, name):
        real = getattr(os, name)
        return self._counted(real) if name in CALLS else real

    def _counted(self, real):
        def call(*arguments, **named):
            self.seen += 1
            dead = isinstance(self.fault, Died) and self.seen > self.at
            if dead or self.seen == self.at + 1:
                if real is os.close:
                    os.close(*arguments)
                raise self.fault
            return real(*arguments, **named)

        return call


def attempts(tmp_path, monkeypatch, fault, old):
    """The folder after each call failed in turn, until none does."""
    for at in range(200):
        home = tmp_path / str(at)
        home.mkdir()
        folder = start(home, old)
        failing = Failing(at, fault)
        with monkeypatch.context() as patched:
            patched.setattr(folders, "os", failing)
            if patched and not failing.__dict__.get("exchanged"):
                real = folders.exchange
                patched.setattr(folders, "exchange", failing._counted(real))
            try:
                put(folder)
                error = None
            except (IlkError, OSError, Died) as raised:
                error = raised
        yield folder, error
        if failing.seen <= at:
            return
    raise AssertionError("too many calls")


@pytest.mark.badinput("E4")
@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO, errno.EACCES], ids=errno.errorcode.get)
def test_each_call_failed_in_turn_leaves_old_or_new(tmp_path, monkeypatch, fault, old):
    before, outcomes = OLD if old else None, set()
    for folder, error in attempts(tmp_path, monkeypatch, OSError(fault, os.strerror(fault)), old):
        assert error is None or isinstance(error, IlkError)
        found = files(folder)
        assert found == (NEW if error is None or error.code == "not-durable" else before), error
        outcomes.add(None if error is None else error.code)
        put(folder)  # the next run works, and clears away what was left
        assert files(folder) == NEW
        assert os.listdir(folder.parent) == ["run"]
    assert {None, "write-failed"} <= outcomes


@pytest.mark.badinput("E5")
@pytest.mark.parametrize("old", [True, False])
def test_death_at_each_call_leaves_old_or_new_and_the_next_run_clears_up(tmp_path, monkeypatch, old):
    states = set()
    for folder, _ in attempts(tmp_path, monkeypatch, Died(), old):
        found = files(folder)
        assert found in (OLD if old else None, NEW)
        states.add(found is NEW or found == NEW)
        put(folder)
        assert files(folder) == NEW
        assert os.listdir(folder.parent) == ["run"]
    assert states == {True, False}


def test_death_between_two_renames_is_undone_by_the_next_writer(tmp_path):
    folder = start(tmp_path)
    folder.rename(tmp_path / ".run.0123.old")
    (tmp_path / ".run.0123.new").mkdir()
    (tmp_path / ".run.0123.new" / "a").write_bytes(b"half")
    with claimed(str(folder), OWN):
        assert files(folder) == OLD
    assert os.listdir(tmp_path) == ["run"]


def test_a_folder_that_appeared_meanwhile_is_kept(tmp_path, way):
    folder = tmp_path / "run"
    with claimed(str(folder), OWN) as claim:
        start(tmp_path)
        with pytest.raises(UsageError) as caught:
            claim.write(make, force=False)
    assert caught.value.code == "output-exists"
    assert files(folder) == OLD
    assert os.listdir(tmp_path) == ["run"]


def test_the_current_folder_is_kept_unless_it_may_be_overwritten(tmp_path, monkeypatch):
    folder = start(tmp_path)
    monkeypatch.chdir(folder)
    with pytest.raises(UsageError) as caught:
        put(folder, force=False)
    assert caught.value.code == "output-exists"
    assert files(folder) == OLD
    put(folder)
    assert files(folder) == NEW
    assert os.listdir(tmp_path) == ["run"]


def test_what_dead_writers_left_is_cleared_and_what_others_made_is_not(tmp_path):
    folder = start(tmp_path)
    (folder / "notes.txt").write_text("mine")
    for name in (".run.0123.new", ".run.backup"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_bytes(b"half")
    (tmp_path / ".run.0123.new" / "notes.txt").write_text("of another time")
    put(folder)
    assert files(folder) == {**NEW, "notes.txt": b"mine"}
    assert files(tmp_path / ".run.backup") == {"a": b"half"}
    assert files(tmp_path / ".run.0123.new") == {"notes.txt": b"of another time"}, (
        "nothing of the user is lost"
    )


@pytest.mark.badinput("E3")
def test_a_folder_without_the_right_to_write_is_refused_before_any_work(tmp_path, monkeypatch):
    folder = start(tmp_path)
    real = os.access  # root may write everywhere
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(folder) and real(path, mode))
    with (
        pytest.raises(
            ResourceError, match="the output folder cannot be written: Permission denied"
        ) as caught,
        claimed(str(folder), OWN),
    ):
        pytest.fail("work was begun")
    assert caught.value.code == "write-failed"
    assert files(folder) == OLD


@pytest.mark.badinput("E6")
def test_a_second_writer_is_refused_and_the_first_goes_on(tmp_path):
    folder = start(tmp_path)
    with claimed(str(folder), OWN) as first:
        with (
            pytest.raises(ResourceError, match=f"another run is writing.*process {os.getpid()}") as caught,
            claimed(str(folder), OWN),
        ):
            pass
        assert caught.value.code == "output-in-use"
        first.write(make, force=True)
    assert files(folder) == NEW
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.badinput("E6")
def test_the_lock_of_a_dead_process_does_not_hold(tmp_path):
    folder = start(tmp_path)
    code = (
        "import os, signal, sys\nfrom ilk.store.folder import claimed\n"
        "with claimed(sys.argv[1], ('a',)):\n os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / ".run.lock").exists()
    put(folder)
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.badinput("E3")
def test_room_and_rights_are_known_before(tmp_path):
    with (
        pytest.raises(ResourceError, match="MB are free") as caught,
        claimed(str(tmp_path / "a"), OWN, 2**62),
    ):
        pass
    assert caught.value.code == "disk-full"
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ResourceError, match="cannot be made"), claimed(str(tmp_path / "file" / "a"), OWN):
        pass
    assert os.listdir(tmp_path) == ["file"]


def test_folders_above_go_again_when_nothing_is_written(tmp_path):
    with contextlib.suppress(KeyError), claimed(str(tmp_path / "x" / "y" / "run"), OWN):
        raise KeyError
    assert os.listdir(tmp_path) == []
    put(tmp_path / "x" / "y" / "run")
    assert files(tmp_path / "x" / "y" / "run") == NEW


@pytest.mark.badinput("E2")
@pytest.mark.parametrize(("kind", "code"), [("link", "output-is-link"), ("folder", "output-not-plain")])
def test_what_stands_in_the_way_is_told_before(tmp_path, kind, code):
    (tmp_path / "a").write_bytes(b"old a")
    folders.check_writable(str(tmp_path), OWN)
    if kind == "link":
        (tmp_path / "b").symlink_to(tmp_path / "elsewhere")
    else:
        (tmp_path / "b").mkdir()
    with pytest.raises(UsageError, match="b in the output folder is") as caught:
        folders.check_writable(str(tmp_path), OWN)
    assert caught.value.code == code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_the_folder_is_whole(tmp_path, monkeypatch, number):
    def raised(*_):
        raise KeyboardInterrupt

    before = signal.signal(number, raised)
    real = Claim._commit

    def signalled(self, staged, force):
        os.kill(os.getpid(), number)
        real(self, staged, force)

    monkeypatch.setattr(Claim, "_commit", signalled)
    folder = start(tmp_path)
    try:
        with claimed(str(folder), OWN) as claim, pytest.raises(KeyboardInterrupt):
            claim.write(make, force=True)
    finally:
        signal.signal(number, before)
    assert claim.written
    assert files(folder) == NEW
    assert os.listdir(tmp_path) == ["run"]


def test_a_name_of_any_length_has_a_lock(tmp_path):
    put(tmp_path / ("x" * 250))
    assert os.listdir(tmp_path) == ["x" * 250]

"""What file systems do seldom: no locks, no exchange of folders, files that grow or are gone; and lists that lie."""

from __future__ import annotations

import errno
import io
import os
from collections import namedtuple
from contextlib import nullcontext
from enum import Enum

import numpy as np
import pytest

import ilk.store.folder as folders
from ilk.errors import ModelFileError, ResourceError
from ilk.store import atomic, objects, plain_file, record_file, tree
from ilk.store.folder import claimed

fcntl = pytest.importorskip("fcntl", reason="Windows has no locks of this kind")
OWN = ("a", "b")


def failing(number: int):
    def call(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return call


def put(folder, text="new"):
    with claimed(str(folder), OWN) as claim:
        claim.write(lambda target: [(target / name).write_text(text) for name in OWN], force=True)


def texts(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS])
def test_a_file_system_without_locks_is_written_all_the_same(tmp_path, monkeypatch, number):
    monkeypatch.setattr(folders.fcntl, "flock", failing(number))
    put(tmp_path / "run")
    assert texts(tmp_path / "run") == {"a": "new", "b": "new"}
    (tmp_path / "c").touch()
    os.close(record_file.opened_alone(str(tmp_path / "c")))


class Windows:
    """The calls of a system that opens no folders and has no locks."""

    name = "nt"

    def __getattr__(self, name: str):
        return getattr(os, name)


@pytest.fixture
def windows(monkeypatch):
    for module in (atomic, folders, record_file):
        monkeypatch.setattr(module, "fcntl", None)
        monkeypatch.setattr(module, "os", Windows())


def test_windows_writes_files_and_folders_and_leaves_no_temporaries(tmp_path, windows):
    atomic.write_atomically(tmp_path / "file", b"one")
    atomic.write_atomically(tmp_path / "file", b"two", overwrite=True)
    assert (tmp_path / "file").read_bytes() == b"two"
    (tmp_path / "run").mkdir()
    put(tmp_path / "run", "over an empty folder")
    put(tmp_path / "run", "over files")
    assert texts(tmp_path / "run") == {"a": "over files", "b": "over files"}
    os.close(record_file.opened_alone(str(tmp_path / "file")))
    assert sorted(os.listdir(tmp_path)) == ["file", "run"]


def test_windows_cannot_tell_whose_temporaries_are_left_and_keeps_them(tmp_path, windows):
    (tmp_path / f"{atomic.START}whose{atomic.END}").write_text("x")
    atomic.clear_stale(str(tmp_path))
    assert os.listdir(tmp_path) == [f"{atomic.START}whose{atomic.END}"]


def test_macos_lets_folders_change_places_by_its_own_call(tmp_path, monkeypatch):
    put(tmp_path / "run", "old")

    class Library:
        def renamex_np(self, one: bytes, two: bytes, how: int) -> int:
            asked.append(how)
            os.rename(two, two + b".aside")
            os.rename(one, two)
            os.rename(two + b".aside", one)
            return 0

    asked: list[int] = []
    monkeypatch.setattr(folders.sys, "platform", "darwin")
    monkeypatch.setattr(folders.ctypes, "CDLL", lambda *_, **__: Library())
    put(tmp_path / "run")
    assert asked == [2], "RENAME_SWAP of stdio.h"
    assert texts(tmp_path / "run") == {"a": "new", "b": "new"}
    assert os.listdir(tmp_path) == ["run"]


def test_a_lock_that_its_owner_takes_away_meanwhile_is_taken_anew(tmp_path, monkeypatch):
    real, locks = fcntl.flock, []

    def flock(handle: int, how: int) -> None:
        if not locks:
            os.unlink(tmp_path / ".run.lock")
        locks.append(handle)
        real(handle, how)

    monkeypatch.setattr(folders.fcntl, "flock", flock)
    with claimed(str(tmp_path / "run"), OWN):
        assert (tmp_path / ".run.lock").read_text() == f"{os.getpid()}\n", "others see the lock that is held"
    assert os.listdir(tmp_path) == []


def test_a_lock_that_fails_otherwise_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(folders.fcntl, "flock", failing(errno.EIO))
    with pytest.raises((OSError, ResourceError)):
        put(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_folders_that_cannot_be_exchanged_are_renamed_and_put_back_on_failure(tmp_path, monkeypatch):
    put(tmp_path / "run", "old")
    monkeypatch.setattr(folders, "exchange", failing(errno.ENOSYS))
    real = os.rename

    def no_second(one, two):
        if str(one).endswith(folders.NEW) and os.path.basename(two) == "run":
            if not os.path.exists(two):
                raise OSError(errno.EIO, "EIO")
            raise OSError(errno.ENOTEMPTY, "ENOTEMPTY")
        real(one, two)

    with monkeypatch.context() as broken:
        broken.setattr(os, "rename", no_second)
        with pytest.raises((OSError, ResourceError)):
            put(tmp_path / "run")
    assert texts(tmp_path / "run") == {"a": "old", "b": "old"}
    put(tmp_path / "run")
    assert texts(tmp_path / "run") == {"a": "new", "b": "new"}
    assert os.listdir(tmp_path) == ["run"]


def test_an_exchange_that_fails_for_another_reason_is_told(tmp_path, monkeypatch):
    put(tmp_path / "run", "old")
    monkeypatch.setattr(folders, "exchange", failing(errno.EIO))
    with pytest.raises((OSError, ResourceError)):
        put(tmp_path / "run")
    assert texts(tmp_path / "run") == {"a": "old", "b": "old"}


def test_exchange_says_what_the_system_says(tmp_path):
    with pytest.raises(OSError) as told:
        folders.exchange(str(tmp_path / "none"), str(tmp_path / "nothing"))
    assert told.value.errno == errno.ENOENT


@pytest.mark.parametrize(("number", "told"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_disk_that_cannot_say_that_names_are_kept(tmp_path, monkeypatch, number, told):
    monkeypatch.setattr(os, "fsync", failing(number))
    if told:
        with pytest.raises(ResourceError, match="could not say that it is safe"):
            folders._sync(str(tmp_path), str(tmp_path))
    else:
        folders._sync(str(tmp_path), str(tmp_path))


def test_temporaries_of_the_dead_go_and_those_of_the_living_stay(tmp_path):
    names = [f"{atomic.START}{who}{atomic.END}" for who in ("dead", "living")]
    for name in (*names, "other"):
        (tmp_path / name).write_text("x")
    with (tmp_path / names[1]).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        atomic.clear_stale(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == sorted([names[1], "other"])


def test_a_temporary_that_was_taken_away_is_not_held(tmp_path, monkeypatch):
    with (tmp_path / "t").open("w") as file:
        assert atomic._held(file.fileno(), str(tmp_path / "t"))
        assert not atomic._held(file.fileno(), str(tmp_path / "gone"))
        monkeypatch.setattr(os, "lstat", failing(errno.EACCES))
        assert atomic._held(file.fileno(), str(tmp_path / "t")), "nobody can tell, and it is ours"


def test_a_file_of_all_the_bytes_that_are_allowed_is_read(tmp_path):
    (tmp_path / "full").write_bytes(b"x" * 9)
    assert plain_file.plain_bytes(tmp_path / "full", 9) == b"x" * 9


def test_files_that_grow_and_documents_of_many_lists_are_refused(monkeypatch):
    monkeypatch.setattr(plain_file, "opened", lambda *_, **__: nullcontext((io.BytesIO(b"x" * 50), None)))
    with pytest.raises(plain_file.NotPlain, match="more than 9 bytes"):
        plain_file.plain_bytes("a file that had 9 bytes a moment ago", 9)
    with pytest.raises(ValueError, match="more than 3 lists"):
        plain_file.check_nesting(b"[[],[],[],[]]", 9, 3)


class Colour(Enum):
    RED = 1


Pair = namedtuple("Pair", "one two")


def test_enums_and_scalars_have_keys_and_strangers_are_not_kept():
    assert objects.key_of(Colour.RED) == objects.key_of(Colour.RED)
    assert objects.key_of(np.float64(1.0)) != objects.key_of(1)
    for stranger in (Colour.RED, Pair(1, 2), object()):
        with pytest.raises(objects.Unkept):
            objects.encoded(stranger)
    assert objects.decoded(objects.encoded([np.float32(2.5)])) == [np.float32(2.5)]


@pytest.mark.parametrize(
    ("names", "arrays", "told"),
    [
        (["a"], {"a": np.zeros(1, np.uint8)}, "without its two arrays"),
        (["a", "b"], {"a": np.zeros(1), "b": np.zeros(1, np.int64)}, "of another type"),
    ],
)
def test_lists_of_text_that_lie_are_refused(names, arrays, told):
    with pytest.raises(ModelFileError, match=told):
        tree.restore({"x": {"$texts": names}}, arrays)

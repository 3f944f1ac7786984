"""Every save leaves the old file or the new one: each call failed, each prefix, each lost write."""

from __future__ import annotations

import contextlib
import doctest
import errno
import itertools
import os
import stat
import threading
from pathlib import Path

import pytest

import ilk.store.atomic as atomic
from ilk.errors import IlkError, ResourceError, UsageError
from ilk.store.atomic import Calls, write_atomically

OLD, NEW = b"old content " * 100, b"new content " * 5000
FAULTS = [
    errno.ENOSPC,
    errno.EIO,
    errno.EINTR,
    errno.EMFILE,
    errno.ENOMEM,
    errno.EACCES,
    errno.EROFS,
    errno.EDQUOT,
]


class Died(BaseException):
    """The process is gone: no later call has any effect."""


class Traced(Calls):
    """Real calls, numbered; the one with number `at` raises, and after `Died` so do all later ones."""

    def __init__(self, at: int, fault: BaseException) -> None:
        self.at, self.fault, self.done = at, fault, []

    def _step(self, name, *arguments):
        dead = isinstance(self.fault, Died) and len(self.done) >= self.at
        if dead or len(self.done) == self.at:
            self.done.append((name, "failed"))
            if name == "close":  # As the system does: a handle is gone even when closing it fails.
                os.close(*arguments)
            raise self.fault
        self.done.append((name, *arguments))
        return getattr(Calls, name)(self, *arguments)


def _forwarded(name):
    return lambda self, *arguments: self._step(name, *arguments)


for _name in (
    "lstat",
    "open_folder",
    "create",
    "chmod",
    "write",
    "fsync",
    "close",
    "replace",
    "link",
    "unlink",
):
    setattr(Traced, _name, _forwarded(_name))


def in_pieces(file):
    for start in range(0, len(NEW), 7000):
        file.write(NEW[start : start + 7000])
        file.flush()


def n_calls(folder: Path, content, overwrite: bool) -> int:
    calls = Traced(10**9, OSError())
    write_atomically(folder / "probe", content, overwrite=overwrite, calls=calls)
    return len(calls.done) + 1


def outcome(path: Path, content, calls: Calls) -> IlkError | None:
    try:
        write_atomically(path, content, overwrite=True, calls=calls)
    except IlkError as error:
        return error
    return None


@pytest.fixture
def handles(tmp_path):
    """No file of the folder stays open; other threads of the process may open what they like."""
    yield
    if os.path.isdir("/proc/self/fd"):
        held = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
        assert not [name for name in held if name.startswith(str(tmp_path))]


@pytest.mark.badinput("E4")
@pytest.mark.parametrize("content", [NEW, in_pieces], ids=["bytes", "function"])
@pytest.mark.parametrize("fault", FAULTS, ids=errno.errorcode.get)
def test_each_call_failed_in_turn_keeps_the_old_file(tmp_path, handles, fault, content):
    path = tmp_path / "model.ilk"
    last = n_calls(tmp_path, content, True) + 2
    failures = 0
    for at in range(last):
        path.write_bytes(OLD)
        calls = Traced(at, OSError(fault, os.strerror(fault)))
        error = outcome(path, content, calls)
        if error is not None:
            failures += 1
            assert os.strerror(fault) in str(error)
        assert path.read_bytes() == (NEW if error is None or error.code == "not-durable" else OLD)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["model.ilk", "probe"], calls.done
    assert failures >= 7


@pytest.mark.badinput("E4")
@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
def test_each_call_failed_in_turn_without_an_old_file(tmp_path, handles, fault):
    for at in range(n_calls(tmp_path, in_pieces, True) + 3):
        path = tmp_path / f"model{at}.ilk"
        calls = Traced(at, OSError(fault, os.strerror(fault)))
        try:
            write_atomically(path, in_pieces, calls=calls)
        except ResourceError:
            assert not path.exists() or path.read_bytes() == NEW
        else:
            assert path.read_bytes() == NEW
    # The last thing that can fail is taking the temporary file away; then one is left, and nothing else.
    left = [p for p in tmp_path.iterdir() if p.name.startswith(".ilk-")]
    assert len(left) <= 1


@pytest.mark.badinput("E5")
@pytest.mark.parametrize("overwrite", [True, False])
def test_death_after_each_call_leaves_old_or_new(tmp_path, overwrite):
    states = set()
    for at in range(n_calls(tmp_path, in_pieces, True) + 3):
        path = tmp_path / f"model{at}.ilk"
        if overwrite:
            path.write_bytes(OLD)
        with contextlib.suppress(Died):
            write_atomically(path, in_pieces, overwrite=overwrite, calls=Traced(at, Died()))
        found = path.read_bytes() if path.exists() else None
        assert found in ({OLD, NEW} if overwrite else {None, NEW})
        states.add(found)
    assert len(states) == 2


@pytest.mark.badinput("E5")
@pytest.mark.parametrize("overwrite", [True, False])
def test_power_loss_at_each_call_with_every_loss_of_unsynced_data(tmp_path, overwrite):
    """A disk may keep any 512-byte prefix of unsynced bytes and any subset of unsynced renames."""
    path = tmp_path / "model.ilk"
    if overwrite:
        path.write_bytes(OLD)
    calls = Traced(10**9, OSError())
    write_atomically(path, in_pieces, overwrite=overwrite, calls=calls)
    n_states = 0
    for length in range(len(calls.done) + 1):
        for found in disk_states(calls.done[:length], OLD if overwrite else None):
            n_states += 1
            assert found in ({OLD, NEW} if overwrite else {None, NEW})
    assert n_states >= 20


def disk_states(done, old, new=NEW):
    """What the target may hold after power loss, on a disk that forgets what was not synced."""
    written, safe_bytes, moved, move_safe = 0, 0, False, False
    for name, *arguments in done:
        if name == "write":
            written += len(arguments[1])
        elif name == "fsync" and not moved:
            safe_bytes = written
        elif name in ("replace", "link"):
            moved = True
        elif name == "fsync":
            move_safe = True
    if not move_safe:
        yield old
    if moved:
        yield from (new[:kept] for kept in itertools.chain(range(safe_bytes, written, 512), [written]))


def test_the_crash_model_sees_a_missing_fsync():
    done = [("write", 3, NEW), ("replace", "a", "b")]
    assert b"" in set(disk_states(done, OLD))


@pytest.mark.badinput("E1")
def test_an_existing_file_is_kept(tmp_path):
    path = tmp_path / "model.ilk"
    path.write_bytes(OLD)
    with pytest.raises(UsageError, match=r"exists already .*model.ilk.*overwrite") as caught:
        write_atomically(path, NEW)
    assert caught.value.code == "output-exists"
    assert path.read_bytes() == OLD


@pytest.mark.badinput("E1")
def test_a_file_that_appears_during_the_save_is_kept(tmp_path):
    path = tmp_path / "model.ilk"

    def content(file):
        file.write(NEW)
        path.write_bytes(OLD)

    with pytest.raises(UsageError, match="exists already"):
        write_atomically(path, content)
    assert path.read_bytes() == OLD
    assert [p.name for p in tmp_path.iterdir()] == ["model.ilk"]


def test_file_systems_without_links_and_folder_syncs_work_too(tmp_path):
    class Plain(Calls):
        def link(self, source, target):
            raise OSError(errno.EPERM, "no links here")

        def fsync(self, handle):
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, "no folder sync here")

    write_atomically(tmp_path / "a", NEW, calls=Plain())
    assert (tmp_path / "a").read_bytes() == NEW
    with pytest.raises(UsageError, match="exists already"):
        write_atomically(tmp_path / "a", OLD, calls=Plain())


@pytest.mark.badinput("E2")
def test_a_link_is_not_written_through(tmp_path):
    (tmp_path / "real").write_bytes(OLD)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="symbolic link"):
            write_atomically(tmp_path / "link", NEW, overwrite=overwrite)
    assert (tmp_path / "real").read_bytes() == OLD


@pytest.mark.badinput("E2")
def test_a_hard_link_keeps_the_other_name(tmp_path):
    (tmp_path / "a").write_bytes(OLD)
    os.link(tmp_path / "a", tmp_path / "b")
    write_atomically(tmp_path / "b", NEW, overwrite=True)
    assert (tmp_path / "a").read_bytes() == OLD
    assert (tmp_path / "b").read_bytes() == NEW


@pytest.mark.badinput("E7")
def test_a_planted_temporary_link_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic.secrets, "token_hex", lambda n: "guessed")
    (tmp_path / "victim").write_bytes(OLD)
    (tmp_path / ".ilk-guessed.tmp").symlink_to(tmp_path / "victim")
    with pytest.raises(ResourceError, match="temporary file is taken"):
        write_atomically(tmp_path / "model.ilk", NEW)
    assert (tmp_path / "victim").read_bytes() == OLD
    assert (tmp_path / ".ilk-guessed.tmp").is_symlink()
    assert not (tmp_path / "model.ilk").exists()


@pytest.mark.badinput("E3")
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("missing/model.ilk", "No such file or directory"),
        ("file/model.ilk", "Not a directory"),
        ("x" * 300, "File name too long"),
        ("folder", "names a folder"),
        ("folder/", "names a folder"),
        ("pipe", "not a plain file"),
    ],
)
def test_bad_paths_say_why(tmp_path, path, text):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match=text):
        write_atomically(f"{tmp_path}/{path}", NEW, overwrite=True)


@pytest.mark.badinput("E3")
def test_a_real_size_limit_is_a_resource_error(tmp_path):
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        with pytest.raises(ResourceError, match="File too large"):
            write_atomically(tmp_path / "a", NEW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("mine")], ids=["interrupt", "error"])
def test_an_error_of_the_content_function_passes_through(tmp_path, error, handles):
    def content(file):
        file.write(b"half")
        raise error

    with pytest.raises(type(error)):
        write_atomically(tmp_path / "a", content)
    assert list(tmp_path.iterdir()) == []


def test_no_memory_is_a_resource_error(tmp_path):
    def content(file):
        raise MemoryError

    with pytest.raises(ResourceError, match="memory ran out"):
        write_atomically(tmp_path / "a", content)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.badinput("E6")
def test_a_temporary_that_is_taken_away_is_made_again_and_not_for_ever(tmp_path, handles):
    class Cleared(Calls):
        """Another process takes the first files for those of a dead writer, before they can be locked."""

        def __init__(self, n_taken):
            self.left = n_taken

        def create(self, path):
            handle = super().create(path)
            if self.left:
                self.left -= 1
                os.unlink(path)
            return handle

    write_atomically(tmp_path / "a", NEW, calls=Cleared(2))
    assert (tmp_path / "a").read_bytes() == NEW
    with pytest.raises(ResourceError, match="the name for the temporary file is taken") as caught:
        write_atomically(tmp_path / "a", OLD, overwrite=True, calls=Cleared(99))
    assert caught.value.code == "temporary-taken"
    assert (tmp_path / "a").read_bytes() == NEW
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_short_writes_are_continued_and_empty_ones_refused(tmp_path):
    class Short(Calls):
        step = 7

        def write(self, handle, data):
            return super().write(handle, bytes(data[: self.step]))

    write_atomically(tmp_path / "a", NEW[:1000], calls=Short())
    assert (tmp_path / "a").read_bytes() == NEW[:1000]
    stuck = Short()
    stuck.step = 0
    with pytest.raises(ResourceError, match="nothing was written"):
        write_atomically(tmp_path / "b", NEW, calls=stuck)


def test_modes(tmp_path):
    path = tmp_path / "a"
    mask = os.umask(0o027)
    try:
        write_atomically(path, OLD)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    write_atomically(path, NEW, overwrite=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


@pytest.mark.badinput("E6")
def test_two_writers_at_once_leave_one_whole_file(tmp_path):
    path = tmp_path / "a"
    contents = [bytes([65 + i]) * 200_000 for i in range(4)]
    threads = [
        threading.Thread(target=write_atomically, args=(path, content), kwargs={"overwrite": True})
        for content in contents
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_bare_file_name_and_terminal_codes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_atomically("plain", NEW)
    assert Path("plain").read_bytes() == NEW
    with pytest.raises(UsageError) as caught:
        write_atomically("no\x1b[31m/x", NEW)
    assert "\x1b" not in str(caught.value)


def test_examples():
    assert doctest.testmod(atomic).failed == 0

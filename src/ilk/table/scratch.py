"""Temporary folders for copies of what is read: held while they are used, cleared away once their owner is dead."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator

from ilk.errors import ResourceError, shown
from ilk.store.atomic import reason

try:
    import fcntl
except ImportError:  # Windows: what a dead process left stays there
    fcntl = None  # type: ignore[assignment]

PREFIX, MARK = "ilk-", ".held-by-ilk"
_cleared: list[bool] = []


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    """An empty folder that is gone at the end."""
    try:
        folder = tempfile.mkdtemp(prefix=PREFIX)
    except OSError as error:
        raise no_room(error) from None
    held = None
    try:
        with contextlib.suppress(OSError):  # without the mark it is never taken for a left one
            held = os.open(os.path.join(folder, MARK), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            if fcntl is not None:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _cleared:
            _cleared.append(True)
            clear_left(os.path.dirname(folder))
        yield folder
    finally:
        if held is not None:
            os.close(held)
        shutil.rmtree(folder, ignore_errors=True)


def clear_left(where: str) -> None:
    """Take away the folders of this user that nobody holds any more."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError), os.scandir(where) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _clear_if_left(entry.path)


def _clear_if_left(folder: str) -> None:
    if os.lstat(folder).st_uid != os.getuid():
        return
    handle = os.open(os.path.join(folder, MARK), os.O_WRONLY | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_uid == os.getuid() and os.fstat(handle).st_nlink == 1:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


@contextlib.contextmanager
def spool(path: str) -> Iterator[_Spool]:
    """A new file in such a folder; where it cannot be written the temporary folder is to blame, not what is read."""
    out = _Spool(path)
    try:
        yield out
    finally:
        out.close()


class _Spool:
    """A file whose failures are refusals."""

    def __init__(self, path: str) -> None:
        try:
            self._file = open(path, "wb", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise no_room(error) from None

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise no_room(error) from None

    def close(self) -> None:
        self._file.close()


@contextlib.contextmanager
def room() -> Iterator[None]:
    """Around what writes to a temporary file and does nothing else."""
    try:
        yield
    except OSError as error:
        raise no_room(error) from None


def no_room(error: OSError) -> ResourceError:
    """The temporary folder cannot be written."""
    try:
        where = shown(tempfile.gettempdir(), 200)
    except OSError:  # none of the usual places can be written
        where = ""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return ResourceError(
        "disk-full" if full else "write-failed",
        "the folder for temporary files " + ("is full" if full else f"cannot be written: {reason(error)}"),
        where=where,
        do="Make room there, or name another folder: TMPDIR",
    )

"""Writing a file so that the path holds the old content or the new one, never a mixture.

Steps: open the folder, create a temporary file in it (O_EXCL), write, fsync, close, rename over the path (or
link to it, where no file may be overwritten), fsync the folder. Every system call goes through `Calls`, so that
tests can fail each of them in turn and stop after each of them. A temporary file is locked until it has its place:
one that nobody holds is of a dead writer, and the next save into its folder takes it away.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import stat
from collections.abc import Callable
from typing import IO, cast

from ilk.errors import IlkError, ResourceError, UsageError, shown
from ilk.store.deferred import deferred

try:
    import fcntl
except ImportError:  # Windows: nothing is held there, and nothing cleared away
    fcntl = None  # type: ignore[assignment]

Content = bytes | bytearray | memoryview | Callable[[IO[bytes]], object]

BUFFER_BYTES = 1 << 20  # One write call per MiB: few calls, little memory.
NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
NO_FOLDER_SYNC = {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EBADF}
BAD_PATH = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}
PATH_CHARACTERS = 200
START, END = ".ilk-", ".tmp"  # of the names of temporary files
ATTEMPTS = 5


class Calls:
    """The system calls a save makes; a test gives its own to fail or stop at any of them."""

    def lstat(self, path: str) -> os.stat_result:
        return os.lstat(path)

    def open_folder(self, path: str) -> int:
        return os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))

    def create(self, path: str) -> int:
        flags = (
            os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
        )
        return os.open(path, flags, 0o666)

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(path, mode)

    def write(self, handle: int, data: bytes | memoryview) -> int:
        return os.write(handle, data)

    def fsync(self, handle: int) -> None:
        os.fsync(handle)

    def close(self, handle: int) -> None:
        os.close(handle)

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)

    def link(self, source: str, target: str) -> None:
        os.link(source, target, follow_symlinks=False)

    def unlink(self, path: str) -> None:
        os.unlink(path)


CALLS = Calls()


def write_atomically(
    path: str | os.PathLike[str], content: Content, *, overwrite: bool = False, calls: Calls = CALLS
) -> None:
    """Write `content`, bytes or a function that writes to the open file it is given, to `path` at one stroke.

    The file has the mode that the user's mask gives, or that of the file it replaces. A link is never written
    through. After any failure the old file is as it was and no temporary file is left.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
    >>> write_atomically(path, b"one")
    >>> write_atomically(path, lambda file: file.write(b"two"), overwrite=True)
    >>> path.read_bytes()
    b'two'
    """
    target = os.fspath(path)
    try:
        _clear_once(os.path.dirname(target) or ".")
        mode = _mode_of_old(target, overwrite, calls)
        _Save(target, mode, overwrite, calls).run(content)
    except MemoryError:
        raise ResourceError(
            "out-of-memory",
            "memory ran out while writing",
            where=_where(target),
            do="The old file, if any, is as it was; free memory and try again",
        ) from None
    except OSError as error:
        raise _refusal(target, error) from error


class _Save:
    """One save under way: knows which handles and which temporary file it has to give back."""

    def __init__(self, target: str, mode: int | None, overwrite: bool, calls: Calls) -> None:
        self.target, self.mode, self.overwrite, self.calls = target, mode, overwrite, calls
        self.folder = os.path.dirname(target) or "."
        self.temporary = ""
        self.temporary_made = False
        self.handle: int | None = None
        self.holding: int | None = None  # keeps the lock when the file is closed
        self.folder_handle: int | None = None

    def run(self, content: Content) -> None:
        calls = self.calls
        try:
            if os.name == "posix":
                # Opened first: a lack of handles must show before anything is changed.
                self.folder_handle = calls.open_folder(self.folder)
            self.handle = handle = self._create()
            if self.mode is not None:
                calls.chmod(self.temporary, self.mode)
            _write_all(content, handle, calls)
            calls.fsync(handle)
            with deferred():  # or who is told that nothing was written is told wrong
                self._close_file()
                self._move()
                self._sync_folder()
        finally:
            self._give_back()

    def _create(self) -> int:
        for _ in range(ATTEMPTS):
            self.temporary = os.path.join(self.folder, f"{START}{secrets.token_hex(8)}{END}")
            try:
                handle = self.calls.create(self.temporary)
            except FileExistsError:
                # The name is random: somebody planted a file or a link there.
                raise _taken(self.temporary) from None
            self.temporary_made = True
            if _held(handle, self.temporary):
                with contextlib.suppress(OSError):
                    self.holding = os.dup(handle)
                return handle
            self.calls.close(handle)  # another process took it for one of a dead writer
        raise _taken(self.temporary)

    def _move(self) -> None:
        if self.overwrite:
            self.calls.replace(self.temporary, self.target)
            self.temporary_made = False
            return
        try:
            # Unlike a rename, a link cannot overwrite a file that another process made in the meantime.
            self.calls.link(self.temporary, self.target)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            _mode_of_old(self.target, False, self.calls)
            self.calls.replace(self.temporary, self.target)
            self.temporary_made = False

    def _sync_folder(self) -> None:
        if self.folder_handle is None:
            return
        try:
            self.calls.fsync(self.folder_handle)
        except OSError as error:
            if error.errno not in NO_FOLDER_SYNC:
                raise ResourceError(
                    "not-durable",
                    f"the file is written, but the system could not say that it is safe: {reason(error)}",
                    where=_where(self.target),
                    do="Look at the disk and write it again",
                ) from error

    def _close_file(self) -> None:
        if self.handle is not None:
            handle, self.handle = self.handle, None
            self.calls.close(handle)

    def _give_back(self) -> None:
        """Runs after success and failure alike; what fails here must not hide the first error."""
        with contextlib.suppress(OSError):
            self._close_file()
        if self.temporary_made:
            with contextlib.suppress(OSError):
                self.calls.unlink(self.temporary)
        if self.holding is not None:
            with contextlib.suppress(OSError):
                os.close(self.holding)
        if self.folder_handle is not None:
            with contextlib.suppress(OSError):
                self.calls.close(self.folder_handle)


class _Sink(io.RawIOBase):
    """The raw end of the file that a content function writes to; after `drop` it swallows what is left."""

    def __init__(self, handle: int, calls: Calls) -> None:
        super().__init__()
        self.target: tuple[int, Calls] | None = (handle, calls)

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        view = memoryview(cast(bytes, data)).cast("B")
        if self.target is None:
            return len(view)
        handle, calls = self.target
        written = calls.write(handle, view)
        if written == 0 and len(view):
            raise OSError(errno.EIO, "nothing was written")
        return written

    def drop(self) -> None:
        self.target = None


def _write_all(content: Content, handle: int, calls: Calls) -> None:
    sink = _Sink(handle, calls)
    file = io.BufferedWriter(sink, BUFFER_BYTES)
    try:
        if callable(content):
            content(cast(IO[bytes], file))
        else:
            file.write(content)
        file.flush()
    finally:
        # Python flushes again when it forgets the file; by then the handle may belong to somebody else.
        sink.drop()
        file.close()


def _mode_of_old(target: str, overwrite: bool, calls: Calls) -> int | None:
    """Permission bits of the file at `target`, None if there is none; refuses what must not be replaced."""
    if not os.path.basename(target):
        raise UsageError(
            "output-is-folder",
            "the output path names a folder",
            where=_where(target),
            do="Give the path of a file",
        )
    try:
        old = calls.lstat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(old.st_mode):
        raise UsageError(
            "output-is-link",
            "the output path is a symbolic link",
            where=_where(target),
            do="Give the path of the file itself, or remove the link",
        )
    if stat.S_ISDIR(old.st_mode):
        raise UsageError(
            "output-is-folder",
            "the output path names a folder",
            where=_where(target),
            do="Give the path of a file",
        )
    if not stat.S_ISREG(old.st_mode):
        raise UsageError(
            "output-not-plain",
            "the output path is not a plain file",
            where=_where(target),
            do="Give the path of a plain file",
        )
    if not overwrite:
        raise _exists(target)
    return stat.S_IMODE(old.st_mode)


def _held(handle: int, path: str) -> bool:
    """Mark the file as one under way; False where it is gone already."""
    if fcntl is None:
        return True
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def clear_stale(folder: str) -> None:
    """Take away the temporary files that dead writers left in a folder; those of the living are held."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if (
                entry.name.startswith(START)
                and entry.name.endswith(END)
                and entry.is_file(follow_symlinks=False)
            ):
                with contextlib.suppress(OSError):
                    handle = os.open(entry.path, os.O_RDWR | os.O_NOFOLLOW)
                    try:
                        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        os.unlink(entry.path)
                    finally:
                        os.close(handle)


_cleared: set[str] = set()


def _clear_once(folder: str) -> None:
    """Once for a folder: those with many files take long to list."""
    place = os.path.abspath(folder)
    if place not in _cleared:
        _cleared.add(place)
        clear_stale(place)


def _taken(path: str) -> ResourceError:
    return ResourceError(
        "temporary-taken",
        "the name for the temporary file is taken",
        where=_where(path),
        do="See who else writes to this folder, and try again",
    )


def _exists(target: str) -> UsageError:
    return UsageError(
        "output-exists",
        "the output file exists already",
        where=_where(target),
        do="Choose another path, or ask to overwrite it",
    )


def _refusal(target: str, error: OSError) -> IlkError:
    if error.errno == errno.EEXIST:
        return _exists(target)
    if error.errno in BAD_PATH:
        return UsageError(
            "no-folder",
            f"the file cannot be made: {reason(error)}",
            where=_where(target),
            do="Make the folder first, or choose another path",
        )
    return ResourceError(
        "write-failed",
        f"the file could not be written: {reason(error)}",
        where=_where(target),
        do="The old file, if any, is as it was; make room or get the rights and try again",
    )


def reason(error: OSError) -> str:
    name = errno.errorcode.get(error.errno or 0, "no number")
    return f"{error.strerror or type(error).__name__} ({name})"


def _where(target: str) -> str:
    return shown(target, PATH_CHARACTERS)

"""Writing a folder of files at one stroke: it holds the old files or the new ones, never a mixture.

All files are written to a folder beside it, `.NAME.TOKEN.new`, which then changes places with the old one in a single
call (renameat2 on Linux, renamex_np on macOS). While a writer is at work it holds `.NAME.lock` beside the folder; the
system lets the lock of a dead process go, and the next writer clears away what that one left. Files in the folder
that are not ours are carried over.

Where a folder cannot change places (it is a mount point or the current folder, or the folder above it cannot be
written) the files are made inside it and moved one after the other; that takes microseconds, and is not one stroke.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import IO

from ilk.errors import ResourceError, UsageError, shown
from ilk.store.atomic import NO_FOLDER_SYNC, clear_stale, reason
from ilk.store.deferred import deferred

try:
    import fcntl
except ImportError:  # Windows: no lock is taken there
    fcntl = None  # type: ignore[assignment]

NEW, OLD, LOCK = ".new", ".old", ".lock"
NAME_BYTES = 200  # of the 255 that a name may have
SWAP = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
NO_SWAP = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP}
FIXED = {errno.EBUSY, errno.EXDEV, errno.EPERM, errno.EACCES}  # this folder cannot be moved
NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}
TAKEN = {errno.EEXIST, errno.ENOTEMPTY}


class Claim:
    """A folder that this process alone writes to."""

    def __init__(self, folder: str, own: Sequence[str]) -> None:
        self.folder, self.own = folder, own
        self.path = os.path.abspath(folder)
        self.inside = _fixed(self.path)
        self.around = self.path if self.inside else os.path.dirname(self.path)
        self.stem = os.path.join(self.around, _stem(os.path.basename(self.path)))
        self.written = False

    def write(self, make: Callable[[Path], None], *, force: bool) -> None:
        """Have `make` write the files to an empty folder, and put them in the place of the old ones."""
        staged = f"{self.stem}.{secrets.token_hex(8)}{NEW}"
        try:
            os.mkdir(staged)
            try:
                make(Path(staged))
                with deferred():
                    self._commit(staged, force)
                    self.written = True
                    _sync(self.path if self.inside else self.around, self.folder)
            finally:
                self._clear(staged)
        except OSError as error:
            raise ResourceError(
                "write-failed",
                f"the output folder could not be written: {reason(error)}",
                where=shown(self.folder, 200),
                do="What was there is as it was; make room or get the rights and try again",
            ) from error

    def _commit(self, staged: str, force: bool) -> None:
        try:
            if not self.inside:
                return self._change_places(staged, force)
        except OSError as error:
            if error.errno in TAKEN:
                raise _exists(self.folder) from None
            if error.errno not in FIXED or not os.path.isdir(self.path):
                raise
        return self._move_files(staged, force)

    def _change_places(self, staged: str, force: bool) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.chmod(staged, stat.S_IMODE(os.stat(self.path).st_mode))
        try:
            if os.name == "nt" and os.path.isdir(self.path):
                os.rmdir(self.path)
            os.rename(staged, self.path)  # over nothing, or over an empty folder
        except OSError as error:
            if not force or error.errno not in TAKEN:
                raise
            self._swap(staged)

    def _swap(self, staged: str) -> None:
        try:
            exchange(staged, self.path)
        except OSError as error:
            if error.errno not in NO_SWAP:
                raise
            aside = staged.removesuffix(NEW) + OLD  # put back by the next writer, should this one die here
            os.rename(self.path, aside)
            try:
                os.rename(staged, self.path)
            except OSError:
                os.rename(aside, self.path)
                raise
            os.rename(aside, staged)

    def _move_files(self, staged: str, force: bool) -> None:
        """One after the other, as they are named in `own`."""
        if not force and any(os.path.lexists(os.path.join(self.path, name)) for name in self.own):
            raise _exists(self.folder)
        made = os.listdir(staged)
        for name in self.own:
            if name in made:
                os.replace(os.path.join(staged, name), os.path.join(self.path, name))
            else:
                Path(self.path, name).unlink(missing_ok=True)

    def _clear(self, left: str) -> None:
        """Take a folder away, and what is not ours in it into the one it was made for; what fails is left for later."""
        with contextlib.suppress(OSError):
            for name in os.listdir(left):
                inner, kept = os.path.join(left, name), os.path.join(self.path, name)
                if name in self.own or (name.startswith(".ilk-") and name.endswith(".tmp")):
                    os.unlink(inner)
                elif os.path.isdir(self.path) and not os.path.lexists(kept):
                    os.rename(inner, kept)
            os.rmdir(left)

    def clear_left(self) -> None:
        """Finish what dead writers of this folder have left."""
        start = os.path.basename(self.stem) + "."
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(self.around)):
                left = os.path.join(self.around, name)
                if not name.startswith(start) or os.path.islink(left) or not os.path.isdir(left):
                    continue
                if name.endswith(OLD) and not os.path.lexists(self.path):
                    os.rename(left, self.path)
                elif name.endswith((NEW, OLD)):
                    self._clear(left)
        clear_stale(self.path)


@contextlib.contextmanager
def claimed(folder: str, own: Sequence[str], least_bytes: int = 0) -> Iterator[Claim]:
    """Hold a folder for writing: refused where another process does, or where it could not be written."""
    above = os.path.dirname(os.path.abspath(folder))
    made = _make_above(above, folder)
    try:
        claim = Claim(folder, own)
        with _locked(claim.stem + LOCK, folder):
            _check_room(claim.around, folder, least_bytes)
            claim.clear_left()
            yield claim
    finally:
        for one in made:
            with contextlib.suppress(OSError):
                os.rmdir(one)  # fails where it holds something, as it should


def check_writable(folder: str, own: Collection[str]) -> None:
    """Refuse a folder in which something stands in the way of our files, before any work."""
    for name in own:
        path = os.path.join(folder, name)
        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
            link = os.path.islink(path)
            raise UsageError(
                "output-is-link" if link else "output-not-plain",
                f"{name} in the output folder is {'a symbolic link' if link else 'not a plain file'}",
                where=shown(path, 200),
                do="Remove it, or choose another folder: --output DIR",
            )


def exchange(one: str, two: str) -> None:
    """Let two folders change places in one call of the system; an OSError where there is no such call."""
    library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    names = os.fsencode(one), os.fsencode(two)
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(*names, SWAP)  # type: ignore[union-attr]
    elif hasattr(library, "renameat2"):
        here = -100  # AT_FDCWD
        failed = library.renameat2(here, names[0], here, names[1], SWAP)  # type: ignore[union-attr]
    else:
        raise OSError(errno.ENOSYS, "no call to exchange folders")
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _fixed(path: str) -> bool:
    """Whether a folder is there and cannot change places with another."""
    if not os.path.isdir(path):
        return False
    with contextlib.suppress(OSError):
        real, here = os.path.realpath(path), os.path.realpath(os.getcwd())
        if here == real or here.startswith(real.rstrip(os.sep) + os.sep):
            return True
    return os.path.ismount(path) or not os.access(os.path.dirname(path), os.W_OK | os.X_OK)


def _stem(name: str) -> str:
    long = len(os.fsencode(name)) > NAME_BYTES
    return f".ilk-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}" if long else f".{name}"


def _make_above(above: str, folder: str) -> list[str]:
    """Make the folders above; those that were made, the innermost first."""
    made = []
    missing = above
    while not os.path.lexists(missing):
        made.append(missing)
        missing = os.path.dirname(missing)
    try:
        os.makedirs(above, exist_ok=True)
    except OSError as error:
        raise ResourceError(
            "write-failed",
            f"the output folder cannot be made: {error.strerror}",
            where=shown(folder, 200),
            do="Choose another: --output DIR",
        ) from None
    return made


def _check_room(around: str, folder: str, least_bytes: int) -> None:
    if os.path.isdir(folder) and not os.access(folder, os.W_OK | os.X_OK):
        raise _no_rights(folder, os.strerror(errno.EACCES))
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(around).free
        if free < least_bytes:
            raise ResourceError(
                "disk-full",
                f"{free / 2**20:.1f} MB are free and the run needs about {least_bytes / 2**20:.1f} MB",
                where=shown(folder, 200),
                do="Make room, or choose another folder: --output DIR",
            )


@contextlib.contextmanager
def _locked(path: str, folder: str) -> Iterator[None]:
    """Hold the lock; the file is taken away at the end, and one that a dead process left is used again."""
    try:
        file = _lock(path, folder)
    except OSError as error:
        raise _no_rights(folder, reason(error)) from None
    try:
        yield
    finally:
        try:
            with contextlib.suppress(OSError):
                os.unlink(path)
        finally:
            with contextlib.suppress(OSError):
                file.close()


def _lock(path: str, folder: str) -> IO[bytes]:
    while True:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        file = os.fdopen(os.open(path, flags, 0o644), "r+b", buffering=0)
        try:
            if not _take(file):
                owner = file.read(20).decode("ascii", "replace").strip()
                raise ResourceError(
                    "output-in-use",
                    "another run is writing to the output folder"
                    + (f": process {shown(owner)}" if owner else ""),
                    where=shown(folder, 200),
                    do="Wait for it to end, or choose another folder: --output DIR",
                )
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                    file.truncate(0)
                    file.write(b"%d\n" % os.getpid())
                    return file
        except BaseException:
            file.close()
            raise
        file.close()  # its owner took it away between our two calls


def _take(file: IO[bytes]) -> bool:
    """Whether the lock is ours; where the file system knows no locks it is."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
    return True


def _sync(around: str, folder: str) -> None:
    """Ask the disk to keep the names; the folder is written, whatever it says."""
    if os.name != "posix":
        return
    try:
        handle = os.open(around, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in NO_FOLDER_SYNC:
            raise ResourceError(
                "not-durable",
                f"the run is written, but the system could not say that it is safe: {reason(error)}",
                where=shown(folder, 200),
                do="Look at the disk and write it again",
            ) from error


def _no_rights(folder: str, why: str) -> ResourceError:
    return ResourceError(
        "write-failed",
        f"the output folder cannot be written: {why}",
        where=shown(folder, 200),
        do="Get the rights, or choose another: --output DIR",
    )


def _exists(folder: str) -> UsageError:
    return UsageError(
        "output-exists",
        "the output folder exists already",
        where=shown(folder, 200),
        do="Overwrite it with --force, or choose another with --output DIR",
    )

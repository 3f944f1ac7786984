"""A file of records that grows: what a crash tears off at its end is dropped, what was there before is whole.

After 16 bytes of magic come records: 8 bytes of length, 32 of a key, 1 mark, 32 of SHA-256 over these and the body,
then the body. The first record tells what the file is about. A record with the key of an earlier one takes its place;
once such dead records are most of the file it is written anew at one stroke.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable
from typing import IO

from ilk.errors import ResourceError, shown
from ilk.store.atomic import write_atomically
from ilk.store.plain_file import NotPlain, opened

try:
    import fcntl
except ImportError:  # Windows: nobody is kept out
    fcntl = None  # type: ignore[assignment]

MAGIC = b"\x89ilk checkpoint\n"
KEY = 32
FRONT = 8 + KEY + 1  # length, key, mark
DIGEST = 32
MOST_BYTES = 1 << 40
SPARE = 1 << 24  # bytes of dead records, before the file is written anew

Record = tuple[bytes, bytes, bytes]
"""Key, mark, body."""


class RecordFile:
    """The records of a file that this process holds, by key."""

    def __init__(self, path: str, about: bytes) -> None:
        self.path, self.about = path, about
        self.handle: int | None = None
        self.places: dict[bytes, tuple[int, int, bytes]] = {}  # first byte, length, mark
        self.end = self._live = 0

    @classmethod
    def found(cls, path: str) -> RecordFile:
        """A file that is there, as far as it is whole; nothing is changed, and nobody kept out."""
        made = cls(path, b"")
        with opened(path, MOST_BYTES, follow=False) as (file, size):
            if file.read(len(MAGIC)) != MAGIC:
                raise NotPlain("this is not a checkpoint of ilk")
            made.end = len(MAGIC)
            while made._read_one(file, size):
                pass
        if made.end == len(MAGIC):
            raise NotPlain("its beginning is damaged")
        return made

    def _read_one(self, file: IO[bytes], size: int) -> bool:
        front = _all(file, FRONT)
        length = int.from_bytes(front[:8], "little")
        if len(front) < FRONT or length > size - self.end - FRONT - DIGEST:
            return False
        digest, body = _all(file, DIGEST), _all(file, length)
        if hashlib.sha256(front + body).digest() != digest:
            return False
        if self.end == len(MAGIC):
            self.about = body
            self.end += FRONT + DIGEST + length
        else:
            self._note(front[8:-1], front[-1:], length)
        return True

    def hold(self) -> None:
        """Take a file that was found for this process, and drop what was torn off at its end."""
        self.handle = opened_alone(self.path)
        os.ftruncate(self.handle, self.end)

    def begin(self, records: Iterable[Record]) -> None:
        """A new file in the place of the one that may be there."""
        with contextlib.suppress(FileNotFoundError):
            os.close(opened_alone(self.path))  # refused where another process holds it
        self._write([*records])

    def value(self, key: bytes, mark: bytes) -> bytes | None:
        """The body of a record."""
        place = self.places.get(key)
        if self.handle is None or place is None or place[2] != mark:
            return None
        os.lseek(self.handle, place[0], os.SEEK_SET)  # no pread: Windows has none
        pieces, missing = [], place[1]
        while missing and (piece := os.read(self.handle, missing)):
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def add(self, record: Record) -> None:
        """Append a record; where that fails the file is as it was."""
        assert self.handle is not None
        data, written = _packed(*record), 0
        try:
            os.lseek(self.handle, self.end, os.SEEK_SET)
            while written < len(data):
                written += os.write(self.handle, data[written:])
        except OSError:
            os.ftruncate(self.handle, self.end)
            raise
        self._note(record[0], record[1], len(record[2]))
        if self.end > 2 * self._live + SPARE:
            self._write(
                [(key, mark, self.value(key, mark) or b"") for key, (*_, mark) in self.places.items()]
            )

    def _write(self, records: list[Record]) -> None:
        front = _packed(bytes(KEY), b"\0", self.about)
        write_atomically(self.path, b"".join([MAGIC, front, *(_packed(*r) for r in records)]), overwrite=True)
        os.chmod(self.path, 0o600)
        self.close()
        self.handle = opened_alone(self.path)
        self.places, self._live, self.end = {}, 0, len(MAGIC) + len(front)
        for key, mark, body in records:
            self._note(key, mark, len(body))

    def _note(self, key: bytes, mark: bytes, length: int) -> None:
        old = self.places.get(key)
        self._live += length - (0 if old is None else old[1])
        self.places[key] = self.end + FRONT + DIGEST, length, mark
        self.end += FRONT + DIGEST + length

    def sync(self) -> None:
        """Ask the disk to keep what was written."""
        assert self.handle is not None
        os.fsync(self.handle)

    def close(self) -> None:
        """Let the file go."""
        handle, self.handle = self.handle, None
        if handle is not None:
            with contextlib.suppress(OSError):
                os.close(handle)


def opened_alone(path: str) -> int:
    """A handle on a file that no other process holds."""
    flags = (
        os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    )
    handle = os.open(path, flags)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise ResourceError(
            "checkpoint-in-use",
            "another run writes to this checkpoint",
            where=shown(path, 200),
            do="Wait for it to end, or give another path",
        ) from None
    except OSError:  # a file system without locks
        pass
    return handle


def _packed(key: bytes, mark: bytes, body: bytes) -> bytes:
    front = len(body).to_bytes(8, "little") + key + mark
    return b"".join([front, hashlib.sha256(front + body).digest(), body])


def _all(file: IO[bytes], length: int) -> bytes:
    pieces, missing = [], length
    while missing and (piece := file.read(missing)):
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)

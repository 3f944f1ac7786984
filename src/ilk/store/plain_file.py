"""Small files read whole: plain files only, never waited for, never more than a limit; and JSON of bounded depth."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, NoReturn

# A string (closed, or running to the end) is skipped whole; brackets outside strings give the depth.
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+\\?(?:"|\Z)', re.DOTALL)
NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class NotPlain(Exception):
    """A path that is no plain file, or a file too large; `what` says which."""

    def __init__(self, what: str, *, too_large: bool = False) -> None:
        self.what, self.too_large = what, too_large
        super().__init__(what)


@contextmanager
def opened(
    path: str | os.PathLike[str], most: int, *, follow: bool = True
) -> Iterator[tuple[IO[bytes], int]]:
    """A plain file and its size; a device, a pipe, a folder or a link (unless `follow`) is refused, not waited for."""

    def opener(name: str, flags: int) -> int:
        flags |= getattr(os, "O_NONBLOCK", 0) | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
        return os.open(name, flags)

    if not follow and os.path.islink(path):
        raise NotPlain("this is a symbolic link")
    with _open(path, opener) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise NotPlain("this is not a plain file")
        if status.st_size > most:
            raise NotPlain(f"the file has {status.st_size} bytes, more than {most}", too_large=True)
        yield file, status.st_size


def _open(path: str | os.PathLike[str], opener: Callable[[str, int], int]) -> IO[bytes]:
    try:
        return open(path, "rb", buffering=0, opener=opener)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):  # sockets, and devices without a driver
            raise NotPlain("this is not a plain file") from None
        raise


def plain_bytes(path: str | os.PathLike[str], most: int, *, follow: bool = True) -> bytes:
    """The content of a plain file of at most so many bytes."""
    with opened(path, most, follow=follow) as (file, _):
        pieces, left = [], most + 1  # a file may grow while it is read
        while left and (piece := file.read(left)):
            pieces.append(piece)
            left -= len(piece)
    if not left:
        raise NotPlain(f"the file has more than {most} bytes", too_large=True)
    return b"".join(pieces)


def check_nesting(data: bytes, deepest: int, most: int) -> None:
    """Raise ValueError where JSON is nested deeper, or has more lists and objects, than allowed."""
    depth = count = 0
    for bracket in STRING.sub(b"", data).translate(None, NO_BRACKET):
        step = STEPS[bracket]
        depth, count = depth + step, count + (step > 0)
        if depth > deepest:
            raise ValueError(f"it is nested more than {deepest} deep")
        if count > most:
            raise ValueError(f"it has more than {most} lists and objects")


def parsed(text: str, **hooks: Any) -> Any:
    """JSON as the standard has it: no NaN, no infinity, no number that would become one."""
    return json.loads(text, parse_constant=_no_constant, parse_float=_finite, **hooks)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value

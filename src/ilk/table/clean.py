"""Text files made plain before they are cut: unpacked, UTF-8, one kind of line end, no NUL bytes."""

from __future__ import annotations

import codecs
import csv
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ilk.errors import Caution, DataError, Option, ResourceError, UsageError, shown
from ilk.table.scratch import spool

MAX_LINE_BYTES = 256 * 2**20
_CHUNK = 4 * 2**20
_LIMIT = threading.Lock()
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class TextFacts:
    """What a pass over the clean bytes tells: lines, how many of them are blank, and the bytes of the longest."""

    lines: int
    blank: int
    longest: int = 0


def clean(path: str, folder: str, name: str, encoding: str | None) -> str:
    """The path of a UTF-8 file with plain line ends: the file itself where it is one, else a copy."""
    with open(path, "rb") as stream:
        head = stream.read(4)
    found = next((codec for bom, codec in _BOMS if head.startswith(bom)), None)
    try:
        codec = codecs.lookup(encoding).name if encoding else "utf-8"
    except LookupError:
        given = Option("encoding", shown(encoding))
        raise UsageError("bad-encoding", f"{given} is not known", options=[given]) from None
    if found is not None and (encoding is None or codec.startswith("utf")):
        codec = found
    if codec == "utf-8" and not _has_returns(path):
        link = os.path.join(folder, "table.csv")  # DuckDB would take [ ] * ? in a name for a pattern
        os.symlink(os.path.abspath(path), link)
        return link
    target = os.path.join(folder, "clean.csv")
    _transcode(path, target, codec, name)
    return target


def plain_text(
    path: str, folder: str, name: str, encoding: str | None
) -> tuple[str, TextFacts, list[Caution]]:
    """As `clean`, with what a pass over the bytes tells; a file of single bytes that is not UTF-8 is read as cp1252."""
    try:
        plain = clean(path, folder, name, encoding)
        return plain, scan(plain, name), []
    except DataError as error:
        if error.code != "bad-encoding" or encoding is not None or not _is_single_byte(path):
            raise
    target = os.path.join(folder, "western.csv")
    _transcode(path, target, "cp1252", name)
    option = Option("encoding", "cp1250")
    text = f"{name} is not UTF-8 and was read as cp1252 (Western European); to name another: {option}"
    return target, scan(target, name), [Caution("encoding", text, [option])]


def _is_single_byte(path: str) -> bool:
    """Whether the first letters beyond ASCII are no UTF-8: one that has such letters and a fault is damaged."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open(path, "rb") as stream:
        if stream.read(4).startswith(tuple(bom for bom, _ in _BOMS)):
            return False
        stream.seek(0)
        while chunk := stream.read(_CHUNK):
            try:
                if not decoder.decode(chunk).isascii():
                    return False
            except UnicodeDecodeError as error:
                return error.object[: error.start].isascii()
    return False  # cut in the middle of a letter


def _has_returns(path: str) -> bool:
    with open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            if b"\r" in chunk:
                return True
    return False


def _transcode(path: str, target: str, codec: str, name: str) -> None:
    decoder = codecs.getincrementaldecoder(codec)()
    offset, held = 0, ""
    with open(path, "rb") as stream, spool(target) as out:
        while chunk := stream.read(_CHUNK):
            pending = len(decoder.getstate()[0])
            try:
                text = held + decoder.decode(chunk)
            except UnicodeDecodeError as error:
                raise _bad_bytes(name, codec, offset - pending + error.start) from None
            held = "\r" if text.endswith("\r") else ""
            plain = text[: len(text) - len(held)].replace("\r\n", "\n").replace("\r", "\n")
            out.write(plain.encode("utf-8", "surrogatepass"))
            offset += len(chunk)
        if decoder.getstate()[0]:
            raise _bad_bytes(name, codec, offset - len(decoder.getstate()[0]))
        out.write(b"\n" if held else b"")


def _bad_bytes(name: str, codec: str, offset: int) -> DataError:
    usual = [Option("encoding", other) for other in ("cp1252", "latin-1") if other != codec]
    return DataError(
        "bad-encoding",
        f"{name} is not {codec.removesuffix('-sig')} text",
        where=f"first bad byte at offset {offset}",
        do=f"Name its encoding, often {' or '.join(map(str, usual))}",
        options=usual,
    )


def scan(path: str, name: str) -> TextFacts:
    """One pass over the bytes: refuse NUL, broken UTF-8 and endless lines; count the lines."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset = lines = blank = since = most = 0
    last = b"\n"
    with open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            if (at := chunk.find(b"\0")) >= 0:
                option = Option("encoding", "utf-16-le")
                raise DataError(
                    "nul-byte",
                    f"{name} holds a NUL byte",
                    where=f"offset {offset + at}",
                    do=f"Not a text file, or UTF-16 without its mark: then give {option}",
                    options=[option],
                )
            pending = len(decoder.getstate()[0])
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as error:
                raise _bad_bytes(name, "utf-8", offset - pending + error.start) from None
            longest, since = _longest(chunk, since, name, lines)
            most = max(most, longest)
            lines += chunk.count(b"\n")
            joined = last + chunk
            blank += len(re.findall(rb"\n(?=\n)", joined))
            offset, last = offset + len(chunk), joined[-1:]
    if decoder.getstate()[0]:
        raise _bad_bytes(name, "utf-8", offset - len(decoder.getstate()[0]))
    return TextFacts(lines + (last != b"\n"), blank, most)


def _longest(chunk: bytes, since: int, name: str, lines: int) -> tuple[int, int]:
    """The longest line so far of this chunk, and the bytes since its last line end; one above the cap is refused."""
    parts = chunk.split(b"\n")
    longest = max(since + len(parts[0]), max((len(p) for p in parts[1:]), default=0))
    if longest > MAX_LINE_BYTES:
        raise ResourceError(
            "field-too-long",
            f"{name} has a line of more than {MAX_LINE_BYTES:,} bytes",
            where=f"after line {lines}",
            do="Check for an unclosed quote or a wrong line end",
        )
    return longest, since + len(parts[0]) if len(parts) == 1 else len(parts[-1])


@contextmanager
def any_length() -> Iterator[None]:
    """Fields of any length for Python's own reader, which knows one limit for all."""
    with _LIMIT:
        before = csv.field_size_limit(MAX_LINE_BYTES)
        try:
            yield
        finally:
            csv.field_size_limit(before)

"""The model file: a JSON header and plain arrays, nothing that can run.

    8 bytes    magic
    8 bytes    length of the header, little-endian
    header     JSON in ASCII: arrays, document, kind, version; spaces up to a multiple of 64
    arrays     little-endian, C order, in the order of the header, zeros up to a multiple of 64 after each
    32 bytes   SHA-256 of everything before

Arrays follow one another, so none can overlap and no byte is unaccounted for. Every size is checked against
the size of the file before memory is asked for. The digest shows damage, not who wrote the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ilk.errors import ModelFileError, UsageError, shown, warn
from ilk.store.atomic import CALLS, Calls, write_atomically
from ilk.store.plain_file import NotPlain, check_nesting, opened, parsed

Array = NDArray[Any]

MAGIC = b"\x89ilk\r\n\x1a\n"  # As in PNG: shows a transfer as text, and no text file starts so.
VERSION = (1, 0)
ALIGNMENT = 64
DIGEST_BYTES = 32
MAX_HEADER_BYTES = 1 << 20
MAX_DEPTH = 16  # A product of families nests its parameters about ten deep.
MAX_CONTAINERS = 1 << 16  # lists and objects in the header; a column takes about six
MAX_ARRAYS = 4096
MAX_DIMENSIONS = 8
MAX_NAME_CHARACTERS = 200
MAX_ELEMENTS = 1 << 48  # Far above any model, and far below where a product of sizes could wrap round.
MAX_FILE_BYTES = 1 << 34
DTYPES = {"f8": "<f8", "f4": "<f4", "i8": "<i8", "i4": "<i4", "u1": "|u1"}
NAMES = {np.dtype(code): name for name, code in DTYPES.items()}
KEYS = {"arrays", "document", "kind", "version"}
FOREIGN = {
    b"PK\x03\x04": "a zip archive (npz, skops, xlsx)",
    b"\x93NUMPY": "a NumPy array",
    b"\x89HDF": "an HDF5 file",
    b"\x80": "a Python pickle",
    b"\x1f\x8b": "a gzip file",
    b"PAR1": "a Parquet file",
    b"{": "a JSON file",
}


@dataclass(frozen=True)
class Contents:
    """What a model file holds: its kind, its format version, a JSON document and named arrays."""

    kind: str
    version: tuple[int, int]
    document: dict[str, Any]
    arrays: dict[str, Array]


@dataclass(frozen=True)
class _ArrayEntry:
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def pack(kind: str, document: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """The bytes of a model file; the same content gives the same bytes.

    >>> packed = unpack(pack("demo", {"k": 2}, {"mean": np.zeros((2, 3))}))
    >>> packed.kind, packed.document, packed.arrays["mean"].shape
    ('demo', {'k': 2}, (2, 3))
    """
    plain = {name: _plain(name, arrays[name]) for name in sorted(arrays)}
    header = {
        "arrays": [
            {"dtype": NAMES[array.dtype], "name": name, "shape": list(array.shape)}
            for name, array in plain.items()
        ],
        "document": dict(document),
        "kind": kind,
        "version": list(VERSION),
    }
    front = _header_bytes(header)
    pieces = [MAGIC, len(front).to_bytes(8, "little"), front]
    for array in plain.values():
        pieces += [array.tobytes(), bytes(_padding(array.nbytes))]
    body = b"".join(pieces)
    return body + hashlib.sha256(body).digest()


def unpack(data: bytes) -> Contents:
    """What the bytes of a model file hold; refuses anything that `pack` did not write.

    >>> unpack(b"no model")
    Traceback (most recent call last):
    ilk.errors.ModelFileError: this is not a model file of ilk. Give a file that ilk saved.
    """
    return _FileReader(io.BytesIO(data).read, len(data), "").run()


def save(
    path: str | os.PathLike[str],
    kind: str,
    document: Mapping[str, Any],
    arrays: Mapping[str, Array],
    *,
    overwrite: bool = False,
    calls: Calls = CALLS,
) -> None:
    """Pack and write at one stroke: after a failure the old file is as it was."""
    write_atomically(path, pack(kind, document, arrays), overwrite=overwrite, calls=calls)


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_FILE_BYTES, follow: bool = True) -> Contents:
    """Read a model file: one open, one pass, nothing but JSON and plain arrays; a link only if `follow`."""
    where = shown(os.fspath(path), MAX_NAME_CHARACTERS)
    try:
        with opened(path, max_bytes, follow=follow) as (file, size):
            return _FileReader(file.read, size, where).run()
    except FileNotFoundError:
        raise UsageError(
            "no-such-file", "There is no such file", where=where, do="Give the path of a model file"
        ) from None
    except NotPlain as error:
        raise _refused("model-too-large" if error.too_large else "not-a-model", error.what, where) from None
    except OSError as error:
        raise _refused("model-unreadable", f"the file cannot be read: {error.strerror}", where) from error


class _FileReader:
    """One walk through a file of known size; `read(n)` gives the next bytes, at most n of them."""

    def __init__(self, read: Callable[[int], bytes], size: int, where: str) -> None:
        self.read, self.size, self.where = read, size, where
        self.front_bytes = 0
        self.digest = hashlib.sha256()

    def run(self) -> Contents:
        header = self._header()
        version = self._version(header.get("version"))
        entries = self._entries(header.get("arrays"))
        kind, document = header.get("kind"), header.get("document")
        if not isinstance(kind, str) or not isinstance(document, dict):
            self._fail("the header lacks its type or its document")
        arrays = {entry.name: self._array(entry) for entry in entries}
        if self._take(DIGEST_BYTES, last=True) != self.digest.digest() or self.read(1):
            self._fail("the digest does not fit: the file was changed or damaged")
        unknown = sorted(header.keys() - KEYS)
        if unknown and version <= VERSION:
            self._fail(f"the header has a field {shown(unknown[0])} that this version does not know")
        if unknown:
            left_out = ", ".join(shown(key) for key in unknown[:5])
            versions = f"version {_dotted(version)}, this program writes {_dotted(VERSION)}"
            warn("model-newer", f"the model file has {versions}; left out: {left_out}.", depth=4)
        return Contents(kind, version, document, arrays)

    def _take(self, n_bytes: int, *, last: bool = False) -> bytes:
        pieces, missing = [], n_bytes
        while missing and (piece := self.read(missing)):
            pieces.append(piece)
            missing -= len(piece)
        if missing:
            self._fail("the file is cut short")
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if not last:
            self.digest.update(data)
        return data

    def _header(self) -> dict[str, Any]:
        magic = self._take(len(MAGIC)) if self.size >= len(MAGIC) else self.read(len(MAGIC))
        if magic != MAGIC:
            looks = next(
                (f", it looks like {kind}" for start, kind in FOREIGN.items() if magic.startswith(start)), ""
            )
            raise ModelFileError(
                "not-a-model",
                f"this is not a model file of ilk{looks}",
                where=self.where,
                do="Give a file that ilk saved",
            )
        length = int.from_bytes(self._take(8), "little")
        if length > MAX_HEADER_BYTES or length % ALIGNMENT != ALIGNMENT - 16:
            self._fail(f"a header of {length} bytes is not allowed")
        self.front_bytes = 16 + length
        if self.front_bytes + DIGEST_BYTES > self.size:
            self._fail("the file is cut short")
        return self._parsed(self._take(length))

    def _parsed(self, data: bytes) -> dict[str, Any]:
        if len(data) - len(data.rstrip(b" ")) >= ALIGNMENT or not data.startswith(b"{"):
            self._fail("the header is not laid out as it should be")
        try:
            check_nesting(data, MAX_DEPTH, MAX_CONTAINERS)
            header = parsed(data.decode("ascii"), object_pairs_hook=_without_repeats)
        except ValueError as error:
            self._fail(f"the header is not valid: {shown(error, 80)}")
        return dict(header)

    def _version(self, version: Any) -> tuple[int, int]:
        if not isinstance(version, list) or len(version) != 2 or not all(_is_count(part) for part in version):
            self._fail("the header lacks its version")
        major, minor = version
        if major > VERSION[0]:
            raise ModelFileError(
                "model-newer",
                f"the model file has version {major}.{minor}, this program reads up to {VERSION[0]}",
                where=self.where,
                do="Install a newer ilk, or save the model again with this one",
            )
        if major < 1:
            self._fail("there is no version 0")
        return major, minor

    def _entries(self, rows: Any) -> list[_ArrayEntry]:
        if not isinstance(rows, list) or len(rows) > MAX_ARRAYS:
            self._fail(f"the header lacks its list of arrays, or lists more than {MAX_ARRAYS}")
        entries = [self._entry(row) for row in rows]
        names = [entry.name for entry in entries]
        if any(b <= a for a, b in pairwise(names)):
            self._fail("the arrays are not in order, or one is there twice")
        total = sum(entry.n_bytes + _padding(entry.n_bytes) for entry in entries)
        left = self.size - DIGEST_BYTES - self.front_bytes
        if total != left:
            self._fail(f"the arrays should take {total} bytes, the file has {left} for them")
        return entries

    def _entry(self, row: Any) -> _ArrayEntry:
        if not isinstance(row, dict) or row.keys() != {"dtype", "name", "shape"}:
            self._fail("an array is not described as it should be")
        name, dtype, shape = row["name"], row["dtype"], row["shape"]
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARACTERS:
            self._fail("an array has no proper name")
        if not isinstance(dtype, str) or dtype not in DTYPES:
            self._fail(f"the array {shown(name)} is of a type that is not allowed: {shown(dtype)}")
        if (
            not isinstance(shape, list)
            or len(shape) > MAX_DIMENSIONS
            or not all(_is_count(side) for side in shape)
        ):
            self._fail(f"the array {shown(name)} has no proper shape")
        # Empty sides do not count here: NumPy multiplies the others even when the array has no element.
        if math.prod(side for side in shape if side) > MAX_ELEMENTS:
            self._fail(f"the array {shown(name)} is too large")
        return _ArrayEntry(name, np.dtype(DTYPES[dtype]), tuple(shape))

    def _array(self, entry: _ArrayEntry) -> Array:
        raw = self._take(entry.n_bytes)
        if any(self._take(_padding(entry.n_bytes))):
            self._fail(f"the bytes after the array {shown(entry.name)} are not zero")
        # Copied: an array of its own is writable, aligned and native on every machine.
        flat = np.frombuffer(raw, dtype=entry.dtype).astype(entry.dtype.newbyteorder("="))
        return flat.reshape(entry.shape)

    def _fail(self, what: str) -> NoReturn:
        raise _refused("model-damaged", what, self.where)


def _refused(code: str, what: str, where: str) -> ModelFileError:
    return ModelFileError(
        code, what, where=where, do="Get a new copy of the file, or fit and save the model again"
    )


def _plain(name: str, array: Array) -> Array:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARACTERS:
        raise UsageError(
            "array-name",
            f"{shown(name)} is no name for an array",
            do=f"Use 1 to {MAX_NAME_CHARACTERS} characters",
        )
    little = array.dtype.newbyteorder("<") if isinstance(array, np.ndarray) else None
    if little not in NAMES:
        kind = getattr(array, "dtype", type(array).__name__)
        raise UsageError(
            "array-type",
            f"an array of type {kind} cannot be saved",
            where=f"array {shown(name)}",
            do=f"Convert it to one of {', '.join(DTYPES)}",
        )
    if array.ndim > MAX_DIMENSIONS or math.prod(side for side in array.shape if side) > MAX_ELEMENTS:
        raise UsageError(
            "array-shape",
            f"an array of shape {array.shape} cannot be saved",
            where=f"array {shown(name)}",
            do=f"Use at most {MAX_DIMENSIONS} dimensions",
        )
    return array.astype(little, order="C", copy=False)


def _header_bytes(header: dict[str, Any]) -> bytes:
    if len(header["arrays"]) > MAX_ARRAYS:
        raise UsageError(
            "too-many-arrays",
            f"{len(header['arrays'])} arrays are more than {MAX_ARRAYS}",
            do="Stack the small ones",
        )
    _check_document(header["document"], depth=2)
    try:
        text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(
            "document-unsupported",
            f"the document cannot be saved: {shown(error, 80)}",
            do="Use text, whole and finite numbers, lists and dictionaries; flatten() does it",
        ) from None
    data = text.encode("ascii")
    data += b" " * _padding(16 + len(data))
    if len(data) > MAX_HEADER_BYTES:
        raise UsageError(
            "document-too-large",
            f"the document takes {len(data)} bytes, {MAX_HEADER_BYTES} are allowed",
            do="Keep long lists as arrays; flatten() does it",
        )
    return data


def _check_document(value: Any, depth: int) -> None:
    """Refuses what would come back changed: keys that are not text, and nesting that cannot be read."""
    if not isinstance(value, (dict, list, tuple)):
        return
    if depth > MAX_DEPTH:
        raise UsageError(
            "document-too-deep",
            f"the document is nested more than {MAX_DEPTH - 1} deep",
            do="Use fewer nested parts",
        )
    if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
        raise UsageError("document-key", "The document has a key that is not text", do="Use text as keys")
    for item in value.values() if isinstance(value, dict) else value:
        _check_document(item, depth + 1)


def _padding(n_bytes: int) -> int:
    return -n_bytes % ALIGNMENT


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found

"""Pieces of a run that a checkpoint keeps: their result is found again by what went into them, and by the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from ilk.engines.base import Rows
from ilk.store.journal import Piece, active
from ilk.store.objects import key_of
from ilk.table.block import Block, is_sparse

Result = TypeVar("Result")

LEAST_CELLS = 20_000  # of rows times columns times starts; less is done again sooner than it is found
_contents: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()


def recall(name: str, rows: Rows, inputs: Any, work: Callable[[], Result]) -> Result:
    """What `work` gives from the `inputs` and the rows; from the checkpoint where it was done before."""
    return under_way(name, rows, inputs, lambda _: work())


def recall_by(name: str, content: Callable[[], bytes], inputs: Any, work: Callable[[], Result]) -> Result:
    """As `recall`, for work on something else than rows, which has a name for its `content`."""
    journal = active()
    return work() if journal is None else journal.recall(name, inputs, lambda _: work(), content)


def under_way(name: str, rows: Rows, inputs: Any, work: Callable[[Piece], Result]) -> Result:
    """As `recall`, for work that can tell where it is and go on from there."""
    journal = active()
    if journal is None or rows.n_rows * max(rows.n_columns, 1) * _n_starts(inputs) < LEAST_CELLS:
        return work(Piece())
    return journal.recall(name, inputs, work, lambda: content_of(rows))


def _n_starts(inputs: Any) -> int:
    """The longest list among the inputs."""
    return max([1, *(len(part) for part in inputs if isinstance(part, list))])


def content_of(rows: Rows) -> bytes:
    """A short name for the cells of the rows, in their order, and how they are encoded; asked for once a table."""
    if rows not in _contents:
        cells = rows.reduce(_visit_content, None).total
        _contents[rows] = key_of(rows.n_rows, rows.n_columns, rows.encoding, cells)
    return _contents[rows]


@dataclass(frozen=True)
class _Content:
    """The sum of the digests of blocks, each with its place."""

    total: int

    def __add__(self, other: _Content) -> _Content:
        return _Content((self.total + other.total) % 2**64)


def _visit_content(_: None, block: Block) -> _Content:
    digest = blake2b(f"{block.first_row} {block.n_rows}".encode(), digest_size=8)
    for cells in (block.raw, block.codes, block.weight):
        parts: Any = (cells.data, cells.indices, cells.indptr) if is_sparse(cells) else (cells,)  # type: ignore[union-attr]
        for part in parts:
            digest.update(b"none" if part is None else np.ascontiguousarray(part).data)
    return _Content(int.from_bytes(digest.digest(), "little"))

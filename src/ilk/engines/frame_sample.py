"""A sample of a frame on a cluster, drawn by what its rows say: the same in whatever order and parts they come.

One pass brings a key of content per row, 8 bytes each; a second brings the rows whose keys were drawn, one of each
content, which then stands there as often as it was drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ilk.engines.frames import Frame
from ilk.engines.packed import Pack, PackLayout
from ilk.table.block import Array, Block
from ilk.table.content import arrow_keys
from ilk.table.least_keys import least_keys

KEYS = PackLayout("float64", 0, 2)


def sampled(frame: Frame, n_rows: int, n_wanted: int, seed: int) -> Any:
    """`n_wanted` of the `n_rows` rows of a frame as an Arrow table; all in their order where there are no more."""
    if n_rows <= n_wanted:
        return frame.picked(None)
    rows = frame.rows(frame.schema.names, _KeyPacker(seed), KEYS, None)
    keys = np.concatenate([*rows.scan(_visit_keys, None)])
    content, times = np.unique(keys[least_keys(keys, None, n_wanted)], return_counts=True)
    few = frame.picked(_Pick(seed, content))
    found, first = np.unique(arrow_keys(few, seed), return_index=True)
    places = np.searchsorted(found, content)
    return few.take(pa.array(np.repeat(first[places], times)))


@dataclass(frozen=True)
class _KeyPacker:
    """Packs the keys of rows, as two codes each."""

    seed: int

    def __call__(self, table: Any) -> Pack:
        keys = arrow_keys(table, self.seed)
        return Pack(np.empty((len(keys), 0)), None, keys.view(np.int32).reshape(-1, 2))


def _visit_keys(_: None, block: Block) -> Array:
    assert block.codes is not None
    return np.ascontiguousarray(block.codes, dtype=np.int32).view(np.uint64)[:, 0]


@dataclass(frozen=True)
class _Pick:
    """The rows of an Arrow table that have one of these keys, the first of each."""

    seed: int
    content: Array

    def __call__(self, table: Any) -> Array:
        found, first = np.unique(arrow_keys(table, self.seed), return_index=True)
        return np.sort(first[np.isin(found, self.content)])

"""Which of all rows are drawn, when each has a key made of what it says.

A row that the table has once stays if its draw u is among the largest. Equal rows have one draw, and so a row that
stands there `c` times, or weighs `c`, has the keys (1 - u) / c, (2 - u) / c, ...: of the n least keys of all rows it
has its share of n to within one, whatever the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ilk.table.block import Array
from ilk.table.content import evenly

ROWS_PER_BUCKET = 1
FEWEST_BUCKETS, MOST_BUCKETS = 10, 24  # as powers of two
SLACK = 6.0  # square roots of the rows wanted, by which a first guess of the largest key lies above it


class KeyedRows(Protocol):
    """Keys of the content of rows, wherever they lie; the first bits of a key name its bucket."""

    @property
    def n_rows(self) -> int: ...

    def bucket_weights(self, bits: int) -> Array:
        """The weight of each bucket."""
        ...

    def reaching(self, bits: int, least: Array) -> tuple[Array, Array, Array | None]:
        """Places of the rows whose key is at least the `least` of its bucket, in order, their keys and weights."""
        ...


def least_keys(keys: Array, weight: Array | None, n_wanted: int) -> Array:
    """Places of the draws among all `keys` of content, in the order of these; equal keys share their weight.

    >>> least_keys(np.repeat(np.arange(4, dtype=np.uint64) << np.uint64(60), 5), None, 8) // 5
    array([0, 0, 1, 1, 2, 2, 3, 3])
    """
    return drawn_places(_KeysInMemory(keys, weight), n_wanted)


def drawn_places(rows: KeyedRows, n_wanted: int) -> Array:
    """The same of keys wherever they lie."""
    bits = int(np.clip(np.log2(max(rows.n_rows // ROWS_PER_BUCKET, 1)), FEWEST_BUCKETS, MOST_BUCKETS))
    most = rows.bucket_weights(bits)  # no row weighs more than its bucket
    total = float(most.sum())
    largest = (n_wanted + SLACK * n_wanted**0.5 + SLACK) / total
    while True:
        # A row of weight w has a key up to `largest` where its draw is at least 1 - w * largest.
        reached = np.maximum(1.0 - largest * most - 2.0**-50, 0.0) * 2.0**64
        place, key, weight = rows.reaching(bits, reached.astype(np.uint64))
        drawn = _WeighedContents.of(key, weight, place)
        if drawn.count(largest) >= n_wanted:
            return drawn.least(n_wanted, largest)
        largest *= 2.0


class _KeysInMemory:
    def __init__(self, keys: Array, weight: Array | None) -> None:
        self.keys, self.weight = keys, weight
        self.n_rows = len(keys)

    def bucket_weights(self, bits: int) -> Array:
        self._bucket = (self.keys >> np.uint64(64 - bits)).astype(np.int32)
        return np.bincount(self._bucket, self.weight, 1 << bits)

    def reaching(self, bits: int, least: Array) -> tuple[Array, Array, Array | None]:
        able = np.flatnonzero(self.keys >= least[self._bucket])
        return able, self.keys[able], None if self.weight is None else self.weight[able]


@dataclass(frozen=True)
class _WeighedContents:
    """Different keys of content in order, each with its weight and the places of its rows."""

    draw: Array
    weight: Array
    first: Array  # of the places of each content
    place: Array
    apart: bool  # each place is drawn once

    @classmethod
    def of(cls, key: Array, weight: Array | None, place: Array) -> _WeighedContents:
        order = np.argsort(key, kind="stable") if weight is None else np.lexsort((weight, key))
        _, first = np.unique(key[order], return_index=True)
        ends = np.append(first[1:], len(order))
        heft = (ends - first).astype(np.float64)
        if weight is not None:
            heft = np.add.reduceat(weight[order], first) if len(order) else heft
            # A row that does not count comes before those that do.
            first = ends - 1
        return cls(1.0 - evenly(key[order[first]]), heft, first, place[order], weight is None)

    def times(self, largest: float) -> Array:
        """How many keys of each content are at most `largest`."""
        return np.asarray(np.maximum(np.floor(largest * self.weight - self.draw) + 1, 0).astype(np.int64))

    def count(self, largest: float) -> int:
        return int(self.times(largest).sum())

    def least(self, n_wanted: int, largest: float) -> Array:
        """Places of the `n_wanted` least keys, of which there are no fewer up to `largest`."""
        times = self.times(largest)
        content = np.repeat(np.arange(len(times)), times)
        copy = np.arange(len(content)) - np.repeat(np.cumsum(times) - times, times)
        key = (copy + self.draw[content]) / self.weight[content]
        chosen = np.sort(np.lexsort((content, key))[:n_wanted])
        content, copy = content[chosen], copy[chosen]
        return np.asarray(self.place[self.first[content] + (copy if self.apart else 0)])

"""Rows drawn in one pass over any engine: every row draws a key, and those of largest key stay.

With log(u) / worth as the key this is an exact draw by worth without replacement (Efraimidis and Spirakis 2006) that
needs no total and merges over blocks. The draw u of a row is made of its cells: the same rows are drawn on every
engine, in any order. Equal rows are one, with the weight of all of them; what they are worth together has to be known
before the pass, and is for those that count for much (`Repeats`). Of the others each is worth what one row is; all stay
or none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk.engines.base import Rows
from ilk.random import stream
from ilk.table.block import Array, Block, stacked
from ilk.table.content import content_keys, evenly, spread

MOST_REPEATS = 1 << 16  # contents whose weight is known before a pass: of at least this part of the table
BUCKETS = 20  # as a power of two
NEAR = 4  # times the rows wanted that are looked at first, for equal rows are one
WEIGHT_BITS = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Repeats:
    """Contents that many rows share, by the keys of `seed`, in order, what they weigh together, and their squares."""

    seed: int
    key: Array
    weight: Array
    square: Array

    @classmethod
    def of(cls, rows: Rows, seed: int) -> Repeats:
        """One pass over the rows, of which 8 bytes a row are kept; 16 where they have weights."""
        keys, weight = np.empty(rows.n_rows, np.uint64), np.empty(rows.n_rows if rows.weighted else 0)
        done = 0
        for key, heft in rows.scan(_visit_keys, seed):
            here = slice(done, done + len(key))
            keys[here], done = key, here.stop
            if heft is not None:
                weight[here] = heft
        return cls(seed, *_heaviest(keys, weight if rows.weighted else None))

    def totals(self, key: Array, own: Array) -> tuple[Array, Array, Array]:
        """What rows of these keys weigh with their equals, and the sum of squares, where that is known; and where."""
        if not len(self.key):
            return own, own * own, np.zeros(len(key), dtype=bool)
        place = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        known = self.key[place] == key
        return np.where(known, self.weight[place], own), np.where(known, self.square[place], own * own), known


def _visit_keys(seed: int, block: Block) -> tuple[Array, Array | None]:
    return content_keys(block, seed), block.weight


def _heaviest(keys: Array, weight: Array | None) -> tuple[Array, Array, Array]:
    """The keys that at least two rows have, with at least one of `MOST_REPEATS` parts of the weight; that weight, and
    the sum of squares."""
    bucket = (keys >> np.uint64(64 - BUCKETS)).astype(np.int32)
    rows = np.bincount(bucket, minlength=1 << BUCKETS)
    most = rows if weight is None else np.bincount(bucket, weight, 1 << BUCKETS)
    least = float(most.sum()) / MOST_REPEATS
    able = np.flatnonzero(((most >= least) & (rows > 1))[bucket])
    found, inverse, count = np.unique(keys[able], return_inverse=True, return_counts=True)
    heft: Array = count.astype(np.float64)
    square: Array = heft
    if weight is not None:
        order = np.lexsort((weight[able], inverse))  # so that a sum does not depend on where the rows stand
        own, group = weight[able][order], inverse[order]
        heft, square = (np.bincount(group, values, len(found)) for values in (own, own * own))
    kept = (heft >= least) & (count > 1)
    return found[kept], heft[kept], square[kept]


@dataclass(frozen=True)
class Draws:
    """What names the draws of a pass."""

    repeats: Repeats
    purpose: str
    indices: tuple[int, ...] = ()

    def of(self, key: Array) -> Array:
        """Draws above 0 and below 1 of rows with these keys of content."""
        name = stream(self.repeats.seed, self.purpose, *self.indices).integers(1, 2**63, dtype=np.uint64)
        return evenly(spread(key ^ name))


@dataclass(frozen=True, kw_only=True)
class Reservoir:
    """The different rows of largest key, with their cells as the user gave them; `key` falls, ties by `name`."""

    key: Array
    name: Array  # the same for equal rows
    worth: Array
    weight: Array  # of all equal rows met
    square: Array  # the sum of the squares of their weights
    known: Array  # whether these are of all there are
    raw: Array
    codes: Array | None
    n_wanted: int

    @classmethod
    def of(cls, block: Block, worth: Array, draws: Draws, n_wanted: int) -> Reservoir:
        """Of the rows of one block, by what each unit of their weight is worth; a row of no worth is never drawn."""
        content, own = content_keys(block, draws.repeats.seed), block.weights
        weight, square, known = draws.repeats.totals(content, own)
        worth = worth * weight
        key = np.full(block.n_rows, -np.inf)
        np.divide(np.log(draws.of(content)), worth, out=key, where=(worth > 0) & (own > 0))
        name = content
        if block.weight is not None:  # rows of one content that weigh differently have different keys
            name = np.where(known, content, content + own.view(np.uint64) * WEIGHT_BITS)
        rows, weight, square = _largest(key, name, (weight, square), known, n_wanted)
        return cls(
            key=key[rows],
            name=name[rows],
            worth=worth[rows],
            weight=weight,
            square=square,
            known=known[rows],
            raw=block.raw[rows],
            codes=None if block.codes is None else block.codes[rows],
            n_wanted=n_wanted,
        )

    def __add__(self, other: Reservoir) -> Reservoir:
        other = other._above(self)
        if not len(other.key):
            return self

        def both(name: str) -> Array:
            return np.append(getattr(self, name), getattr(other, name))

        key, name, known = both("key"), both("name"), both("known")
        sums = both("weight"), both("square")
        rows, weight, square = _largest(key, name, sums, known, self.n_wanted)
        codes = None
        if self.codes is not None and other.codes is not None:
            codes = stacked([self.codes, other.codes])[rows]
        return Reservoir(
            key=key[rows],
            name=name[rows],
            worth=both("worth")[rows],
            weight=weight,
            square=square,
            known=known[rows],
            raw=stacked([self.raw, other.raw])[rows],
            codes=codes,
            n_wanted=self.n_wanted,
        )

    def _above(self, full: Reservoir) -> Reservoir:
        """Only the rows that can be among the largest beside those of another, which may have all that are wanted;
        equal rows have one key, so that all of them stay or none."""
        if len(full.key) < self.n_wanted:
            return self
        there = self.key >= full.key[-1]
        if there.all():
            return self
        names = ("key", "name", "worth", "weight", "square", "known", "raw")
        kept: dict[str, Any] = {name: getattr(self, name)[there] for name in names}
        return Reservoir(
            **kept, codes=None if self.codes is None else self.codes[there], n_wanted=self.n_wanted
        )


def _largest(
    key: Array, name: Array, sums: tuple[Array, Array], known: Array, n_wanted: int
) -> tuple[Array, Array, Array]:
    """The places of the `n_wanted` largest keys of different names, the largest first, and the sums of each name: those
    of all its places, or of one where they are known already."""
    for n_near in (min(len(key), NEAR * n_wanted), len(key)):
        least = np.partition(key, len(key) - n_near)[len(key) - n_near] if n_near else np.inf
        near = np.flatnonzero((key >= least) & (key > -np.inf))
        near = near[np.lexsort((name[near], -key[near]))]
        _, first, inverse = np.unique(name[near], return_index=True, return_inverse=True)
        if len(first) >= n_wanted:
            break
    chosen = np.argsort(first)[:n_wanted]
    rows = near[first[chosen]]
    weight, square = (
        np.where(known[rows], values[rows], np.bincount(inverse, values[near], len(first))[chosen])
        for values in sums
    )
    return rows, weight, square

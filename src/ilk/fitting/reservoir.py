"""Rows drawn in one pass over any engine: every row draws a key, and those of largest key stay.

With log(u) / worth as the key this is an exact draw by worth without replacement (Efraimidis and Spirakis 2006) that
needs no total and merges over blocks. Every row has its own place in the stream of draws: the same rows are drawn on
every engine, whatever the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilk.random import stream
from ilk.table.block import Array, Block, stacked


@dataclass(frozen=True, kw_only=True)
class Reservoir:
    """The rows of largest key, with their cells as the user gave them; `key` falls, ties by row number."""

    key: Array
    row: Array
    worth: Array
    weight: Array
    raw: Array
    codes: Array | None
    n_wanted: int

    @classmethod
    def of(cls, block: Block, worth: Array, draws: Array, n_wanted: int) -> Reservoir:
        """Of the rows of one block; a row of no worth is never drawn."""
        able = np.flatnonzero(worth > 0)
        key = np.log(draws[able]) / worth[able]
        best = np.lexsort((able, -key))[:n_wanted]
        rows = able[best]
        codes = None if block.codes is None else block.codes[rows]
        return cls(
            key=key[best],
            row=rows + block.first_row,
            worth=worth[rows],
            weight=block.weights[rows],
            raw=block.raw[rows],
            codes=codes,
            n_wanted=n_wanted,
        )

    def __add__(self, other: Reservoir) -> Reservoir:
        key, row = np.append(self.key, other.key), np.append(self.row, other.row)
        order = np.lexsort((row, -key))[: self.n_wanted]
        codes = None
        if self.codes is not None and other.codes is not None:
            codes = stacked([self.codes, other.codes])[order]
        return Reservoir(
            key=key[order],
            row=row[order],
            worth=np.append(self.worth, other.worth)[order],
            weight=np.append(self.weight, other.weight)[order],
            raw=stacked([self.raw, other.raw])[order],
            codes=codes,
            n_wanted=self.n_wanted,
        )


def draws_for(block: Block, seed: int, purpose: str, *indices: int) -> Array:
    """The draws of the rows of a block in a stream that has one for every row of the table."""
    return draws_of(stream(seed, purpose, *indices), block.first_row, block.n_rows)


def draws_of(draws: np.random.Generator, first: int, n: int) -> Array:
    """The draws from number `first` on of a fresh stream; Philox makes four with each step of its counter.

    >>> whole = stream(0, "example").random(20)
    >>> bool((draws_of(stream(0, "example"), 7, 9) == whole[7:16]).all())
    True
    """
    draws.bit_generator.advance(first // 4)  # type: ignore[attr-defined]
    return draws.random(n + first % 4)[first % 4 :]

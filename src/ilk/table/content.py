"""What a row says, as one number: rows are drawn by it, and so alike in whatever order they come.

Cells count by their value: -0.0 is 0.0, every NaN is the same, a float32 is the double of its value, and a change of
all units by one power of two changes nothing. Weights do not count: two equal rows and one of weight 2 say the same.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

from ilk import kernels
from ilk.kernels.plain import bits_of
from ilk.random import stream
from ilk.table.block import Array, Block, is_sparse

Unsigned = np.uint64
MISSING = 0x7FF8_0000_0000_0001  # no number of a table has these bits


def content_keys(block: Block, seed: int) -> Array:
    """A number of 64 bits per row: the same for equal rows, else (but for odds of 2^-64) another, evenly spread."""
    n_codes = 0 if block.codes is None else block.codes.shape[1]
    mix = column_factors(block.n_columns + n_codes)
    key = _of_numbers(block, mix[: block.n_columns])
    if block.codes is not None:
        key = key + _of_codes(block.codes, mix[block.n_columns :])
    return keys_of(key, seed)


def arrow_keys(table: Any, seed: int) -> Array:
    """The same for the cells of an Arrow table, of whatever types: numbers by value, texts and others by what they
    say."""
    key = np.zeros(table.num_rows, dtype=Unsigned)
    for column, factor in zip(table.columns, column_factors(table.num_columns), strict=True):
        key += _arrow_bits(column) * factor
    return keys_of(key, seed)


def _arrow_bits(column: Any) -> Array:
    kind, types = column.type, pa.types
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        numbers = np.array(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
        return bits_of(numbers, 1.0, MISSING)
    if types.is_temporal(kind) and not types.is_interval(kind):
        whole = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.int64())
        bits = whole.fill_null(MISSING).to_numpy().view(Unsigned)
        return np.asarray(bits ^ (bits >> Unsigned(32)))
    return _said(column)


def _said(column: Any) -> Array:
    """Of texts, and of cells of other types by how they are written; every different one is looked at once."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        column = pa.array([None if cell is None else repr(cell) for cell in column.to_pylist()], pa.string())
    coded = column.dictionary_encode()
    parts = coded.chunks if isinstance(coded, pa.ChunkedArray) else [coded]
    found = [np.empty(0, dtype=Unsigned)]
    for part in parts:
        words = np.array([*map(_word, part.dictionary.to_pylist()), MISSING], dtype=Unsigned)
        found.append(words[part.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)])
    return np.concatenate(found)


def _word(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def column_factors(n: int) -> Array:
    """What the bits of each of `n` columns are multiplied by."""
    return np.asarray(stream(0, "content").integers(1, 2**63, size=n, dtype=Unsigned) | Unsigned(1))


def keys_of(sums: Array, seed: int) -> Array:
    """Keys of rows, from the sums of the bits of their cells."""
    return spread(sums + Unsigned(key_offset(seed)))


def key_offset(seed: int) -> int:
    """What a seed adds to the sums of the bits of cells; below 2^63."""
    return int(stream(seed, "content").integers(1, 2**63, dtype=Unsigned))


def spread(key: Array) -> Array:
    """Every bit of a number of 64 bits over all of them, one to one (the last step of SplitMix64, Steele and others
    2014)."""
    key = (key ^ (key >> Unsigned(30))) * Unsigned(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> Unsigned(27))) * Unsigned(0x94D049BB133111EB)
    return np.asarray(key ^ (key >> Unsigned(31)))


def evenly(key: Array) -> Array:
    """Keys as numbers above 0 and below 1.

    >>> evenly(np.array([0, 2**63], dtype=np.uint64)).tolist()
    [1.1102230246251565e-16, 0.5000000000000001]
    """
    return np.asarray(((key >> Unsigned(12)).astype(np.float64) + 0.5) * 2.0**-52)


def _of_numbers(block: Block, mix: Array) -> Array:
    raw: Any = block.raw
    if is_sparse(raw):
        return _row_totals(raw, bits_of(raw.data, block.encoding.power, MISSING) * mix[raw.indices])
    return kernels.content_sums(np.asarray(raw), block.encoding.power, mix, MISSING)


def _of_codes(codes: Any, mix: Array) -> Array:
    if is_sparse(codes):
        return _row_totals(codes, codes.data.astype(np.int64).view(Unsigned) * mix[codes.indices])
    return np.asarray((codes.astype(np.int64).view(Unsigned) * mix).sum(axis=1, dtype=Unsigned))


def _row_totals(cells: Any, terms: Array) -> Array:
    """Sums of the stored terms of each row, modulo 2^64: a cell that is not stored is 0, and adds nothing."""
    reached = np.concatenate([np.zeros(1, dtype=Unsigned), np.cumsum(terms, dtype=Unsigned)])
    return np.asarray(reached[cells.indptr[1:]] - reached[cells.indptr[:-1]])

"""The name of the content of a table: the same for the same cells however Arrow holds them."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest

from ilk.table.fingerprint import _add, fingerprint
from ilk.table.read import read


def by_texts(cells):
    """The digest of a chunk of texts, one text after the other in Python."""
    digest = hashlib.sha256()
    texts = ["" if text is None else text for text in cells.to_pylist()]
    digest.update(np.packbits(np.array([text is None for text in cells.to_pylist()], dtype=bool)).tobytes())
    digest.update(np.array([len(text.encode()) for text in texts], dtype=np.int64).tobytes())
    digest.update("".join(texts).encode())
    return digest.hexdigest()


@pytest.mark.parametrize(
    "texts", [["red", "", "grün", None, "red"], ["", ""], [None, None, "a"], ["ab" * 50] * 9, []]
)
def test_texts_are_read_where_they_lie(texts):
    plain = pa.array(texts, type=pa.large_string())
    held = (
        plain,
        plain.cast(pa.string()),
        plain.dictionary_encode(),
        pa.concat_arrays([plain[:1], plain])[1:],
    )
    for cells in held if texts else (plain,):
        digest = hashlib.sha256()
        _add(digest, cells)
        if len(cells) == len(texts):
            assert digest.hexdigest() == by_texts(plain)


def test_columns_that_cannot_be_used_count_by_their_name():
    odd = {"x": [1.5, 2.5], "deep": [[1], [2]]}
    assert fingerprint(read(odd)) == fingerprint(read({**odd, "deep": [[3], [4]]}))
    assert fingerprint(read(odd)) != fingerprint(read({"x": odd["x"], "other": odd["deep"]}))


def test_every_type_of_cells_that_can_be_left_out_has_one():
    spans = pa.array([(1, 2, 3), None, (0, 0, 1)], pa.month_day_nano_interval())
    table, other = (
        pa.table({"span": cells, "x": [1.5, 2.5, 4.0]}) for cells in (spans, spans.take([2, 1, 0]))
    )
    assert fingerprint(read(table)) == fingerprint(read(table.slice(0)))
    assert fingerprint(read(table)) != fingerprint(read(other))


def test_cuts_and_kinds_of_memory_change_nothing():
    words = ["a", "bcd", "", "bcd", "é"] * 7
    whole = pa.table({"word": words, "number": np.arange(35.0)})
    coded = whole.set_column(0, "word", pa.array(words).dictionary_encode())
    assert fingerprint(read(whole)) == fingerprint(read(coded))
    other = whole.set_column(0, "word", pa.array([*words[:-1], "e"]))
    assert fingerprint(read(whole)) != fingerprint(read(other))

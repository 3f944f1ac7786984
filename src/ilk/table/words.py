"""Free text as numbers: how far each text speaks of a topic, by its words.

A topic is a column. Its weights were found at the fit (`paradigms/topics.py`); here texts are counted, so that new rows
get the same numbers:

    tf-idf    x_w = (1 + log count_w) idf_w for each known word w, of length 1
    topic     sum over words of weight_w x_w
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ilk.table.columns import Column

WORD = re.compile(r"[^\W\d_]{2,}")
"""Two letters or more, of any alphabet."""
MOST_WORDS = 1000
"""Of one column."""
NAMED = 3
"""Words by which a topic is called."""
OPPOSED = 0.5
"""Of the strongest weight: from here on words against a topic are named, too."""


def words_of(text: str) -> list[str]:
    """The words of a text, in small letters.

    >>> words_of("Late, item #3 broken!")
    ['late', 'item', 'broken']
    """
    return WORD.findall(text.casefold())


@dataclass(frozen=True)
class Topic:
    """The words that are known, their inverse document frequencies, and their weights in one topic."""

    words: tuple[str, ...]
    idf: tuple[float, ...]
    weights: tuple[float, ...]

    @classmethod
    def from_dict(cls, plain: Any) -> Topic | None:
        """A topic from plain data that may come from anywhere, None where it is none."""
        if not isinstance(plain, dict) or set(plain) != {"words", "idf", "weights"}:
            return None
        words, idf, weights = (plain[key] for key in ("words", "idf", "weights"))
        good = all(isinstance(part, list) and 0 < len(part) <= MOST_WORDS for part in (words, idf, weights))
        good = good and len(words) == len(idf) == len(weights) == len(set(map(str, words)))
        good = good and all(isinstance(word, str) and len(word) <= 200 for word in words)
        good = good and all(type(v) in (int, float) and abs(v) < 1e6 for v in (*idf, *weights))
        if not good:
            return None
        return cls(tuple(words), tuple(map(float, idf)), tuple(map(float, weights)))

    def to_dict(self) -> dict[str, Any]:
        return {name: list(part) for name, part in asdict(self).items()}

    @cached_property
    def poles(self) -> tuple[str, str]:
        """The strongest words of the topic, and those that speak against it where they are about as strong.

        >>> Topic(("broken", "great", "late"), (1.0, 1.0, 1.0), (0.8, -0.5, 0.3)).poles
        ('broken, late', 'great')
        """
        weights = np.array(self.weights)
        high, low = (
            ", ".join(self.words[j] for j in np.argsort(-side, kind="stable")[:NAMED] if side[j] > 0)
            for side in (weights, -weights)
        )
        return high, low if -weights.min() >= OPPOSED * weights.max() else ""

    @cached_property
    def _known(self) -> dict[str, tuple[float, float]]:
        return {word: (i, w) for word, i, w in zip(self.words, self.idf, self.weights, strict=True)}

    def numbers(self, column: Column) -> Column:
        """How far each text speaks of the topic; null where there is no text.

        >>> topic = Topic(("broken", "late"), (1.0, 1.0), (1.0, 0.0))
        >>> topic.numbers(pa.array(["Broken, broken!", "fine", None])).to_pylist()
        [1.0, 0.0, None]
        """
        if pa.types.is_null(column.type):
            return pa.nulls(len(column), pa.float64())
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        texts = encoded.dictionary.cast(pa.large_string()).to_pylist()
        values = pa.array([self._of(text) for text in texts], pa.float64())
        return values.take(encoded.indices)

    def _of(self, text: str | None) -> float | None:
        if text is None:
            return None
        counts = Counter(word for word in words_of(text) if word in self._known)
        parts = [(self._known[word], 1.0 + math.log(count)) for word, count in counts.items()]
        length = math.sqrt(sum((often * idf) ** 2 for (idf, _), often in parts))
        return (
            float(np.round(sum(often * idf * w for (idf, w), often in parts) / length, 12)) if length else 0.0
        )

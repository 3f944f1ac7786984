"""What an explanation is made from: plain arrays of the rows used, and one fixed sample of them.

Whatever is drawn or searched row by row (map, medoids, rules) looks at the sample only, so that its cost and
the size of the page do not grow with the table. The sample takes small groups whole; `heft` gives each row of
it the weight of the rows it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ilk.random import stream
from ilk.report.facts import Array, Described

SAMPLE_ROWS = 5_000


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows that stand for the table: their places, groups, and the weight each stands for."""

    place: Array
    label: Array
    heft: Array


@dataclass(frozen=True, eq=False)
class Evidence:
    """The rows used: columns in the user's units, group numbers, and what is known of each row.

    `probabilities` is (rows, k) or None; `second` the next group, `novelty` how unusual a row is in its group.
    `silhouette` holds places of rows and their values. `row_numbers` and `ids` name the rows for the reader.
    """

    columns: tuple[Described, ...]
    labels: Array
    k: int
    row_numbers: Array
    _: KW_ONLY
    weight: Array | None = None
    probabilities: Array | None = None
    second: Array | None = None
    novelty: Array | None = None
    silhouette: tuple[Array, Array] | None = None
    ids: Sequence[Any] | None = None
    seed: int = 0
    threads: int = 1  # that may look at columns of all rows

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @cached_property
    def heft(self) -> Array:
        return np.ones(self.n_rows) if self.weight is None else np.asarray(self.weight, dtype=np.float64)

    @cached_property
    def sure(self) -> Array | None:
        """The probability of each row's own group."""
        if self.probabilities is None:
            return None
        own: Array = self.probabilities[np.arange(self.n_rows), np.maximum(self.labels, 0)]
        return own

    @cached_property
    def next_group(self) -> Array | None:
        """The second group of each row, -1 for none."""
        if self.k < 2:
            return None
        if self.probabilities is None:
            return self.second
        others = self.probabilities.copy()
        others[np.arange(self.n_rows), np.maximum(self.labels, 0)] = -1.0
        return np.asarray(others.argmax(axis=1))

    @cached_property
    def sample(self) -> Sample:
        """At most `SAMPLE_ROWS` rows that have weight and a group, in row order."""
        there = (self.labels >= 0) & (self.heft > 0)
        sizes = np.bincount(self.labels[there], minlength=self.k)
        quotas = shared_out(sizes, SAMPLE_ROWS)
        draws, taken = stream(self.seed, "explain"), []
        for g in range(self.k):
            mine = np.flatnonzero(there & (self.labels == g))
            if quotas[g] < len(mine):
                mine = draws.choice(mine, quotas[g], replace=False)
            taken.append(mine)
        place = np.sort(np.concatenate(taken)) if taken else np.empty(0, dtype=np.int64)
        label = self.labels[place]
        stands_for = np.divide(sizes, np.maximum(quotas, 1))
        return Sample(place, label, self.heft[place] * stands_for[label])


def shared_out(sizes: Array, most: int) -> Array:
    """Rows to take of each group, `most` in all: what small groups leave over goes to the larger ones.

    >>> shared_out(np.array([100, 40, 3]), 60).tolist()
    [29, 28, 3]
    """
    quotas = np.zeros(len(sizes), dtype=np.int64)
    left, waiting = most, len(sizes)
    for g in np.argsort(sizes, kind="stable"):
        quotas[g] = min(int(sizes[g]), left // waiting)
        left, waiting = left - quotas[g], waiting - 1
    return quotas

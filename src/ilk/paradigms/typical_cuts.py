"""Typical cuts: edges of the neighbour graph that random partitions cut more often than not.

The partitions are drawn from a Potts model on the graph by the algorithm of Swendsen and Wang: neighbours of one spin
are held together with probability 1 - exp(-strength / temperature), and each set that hangs together draws a new spin.
Between the cold (all rows in one set) and the hot (every row alone) lies a range of temperatures in which dense regions
hold together and the thin ones between them do not. Blatt, Wiseman and Domany (1996), Physical Review Letters 76, 3251;
Gdalyahu, Weinshall and Werman (2001), IEEE PAMI 23, 1053, whose typical cut is the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ilk.paradigms.distance import neighbour_graph
from ilk.random import stream
from ilk.table.block import Array

N_SPINS = 20  # of the Potts model; Blatt, Wiseman and Domany use 20
N_SAMPLES, N_BURNED = 60, 15  # sweeps at each temperature that count, and before them
N_TEMPERATURES = 24
COLDEST, HOTTEST = 0.002, 0.3  # of the mean strength of an edge times the mean number of neighbours


@dataclass(frozen=True, eq=False)
class Partition:
    """The typical cut at one temperature: `labels` of all rows, of which `n_clusters` have enough rows to count."""

    temperature: float
    labels: Array
    n_clusters: int


def typical_cuts(matrix: Array, n_neighbors: int, min_size: int, seed: int) -> list[Partition]:
    """The typical cuts of the rows at a ladder of temperatures, the coldest first.

    Strength of an edge: exp(-distance^2 / (2 a^2)) / mean number of neighbours, `a` the mean distance of neighbours.
    """
    n_rows = len(matrix)
    first, second = neighbour_graph(matrix, n_neighbors)
    if not len(first):
        return [Partition(COLDEST, np.zeros(n_rows, dtype=np.int32), 1)]
    length = matrix[first, second]
    scale = float(length.mean()) or 1.0
    strength = np.exp(-np.square(length / scale) / 2) * n_rows / (2 * len(first))
    ladder = np.geomspace(COLDEST, HOTTEST, N_TEMPERATURES)
    made = []
    for number, temperature in enumerate(ladder):
        draws = stream(seed, "typical cuts", number)
        together = _together(n_rows, first, second, 1 - np.exp(-strength / temperature), draws)
        labels = _typical(n_rows, first, second, together, min_size)
        made.append(Partition(float(temperature), labels, int(labels.max()) + 1))
    return made


def chosen(partitions: list[Partition], n_clusters: int | None) -> Partition:
    """Of the longest run of temperatures with one number of clusters, the middle one.

    With `n_clusters` the run must have that many, or the nearest number there is. A single cluster is a legal answer:
    a cloud without thin regions is held together over the widest range. The colder of equally long runs is taken.
    """
    runs = _runs(partitions)
    counts = {run[0].n_clusters for run in runs}
    nearest = None if n_clusters is None else min(counts, key=lambda count: (abs(count - n_clusters), count))
    best = max((run for run in runs if nearest in (None, run[0].n_clusters)), key=len)
    return best[len(best) // 2]


def lasting(partitions: list[Partition]) -> dict[int, int]:
    """Per number of clusters, the temperatures in its longest run: where this is largest is the number `chosen`."""
    runs = _runs(partitions)
    return {
        count: max(len(run) for run in runs if run[0].n_clusters == count)
        for count in sorted({run[0].n_clusters for run in runs})
    }


def _runs(partitions: list[Partition]) -> list[list[Partition]]:
    """Neighbouring temperatures with one number of clusters."""
    return [list(run) for _, run in groupby(partitions, key=lambda partition: partition.n_clusters)]


def _together(n_rows: int, first: Array, second: Array, hold: Array, draws: np.random.Generator) -> Array:
    """Per edge, the share of the samples in which its two rows were in one set."""
    spin = np.zeros(n_rows, dtype=np.int64)
    total = np.zeros(len(first))
    for sweep in range(N_BURNED + N_SAMPLES):
        held = (spin[first] == spin[second]) & (draws.random(len(first)) < hold)
        part = _parts(n_rows, first[held], second[held])
        spin = draws.integers(N_SPINS, size=int(part.max()) + 1)[part]
        if sweep >= N_BURNED:
            total += part[first] == part[second]
    return total / N_SAMPLES


def _typical(n_rows: int, first: Array, second: Array, together: Array, min_size: int) -> Array:
    """Rows joined by edges that most samples keep; sets of fewer than `min_size` rows then go, set by set, where their
    strongest edge leads. All in one where no set is large enough."""
    kept = together > 0.5
    part = _parts(n_rows, first[kept], second[kept])
    size = np.bincount(part)
    if not (size >= min_size).any():
        return np.zeros(n_rows, dtype=np.int32)
    for edge in np.argsort(-together, kind="stable"):
        one, other = part[first[edge]], part[second[edge]]
        if one != other and min(size[one], size[other]) < min_size:
            small, large = (one, other) if size[one] < size[other] else (other, one)
            part[part == small] = large
            size[large] += size[small]
            size[small] = 0
    return np.unique(part, return_inverse=True)[1].astype(np.int32)


def _parts(n_rows: int, first: Array, second: Array) -> Array:
    """The sets of rows that edges hang together, numbered by their first rows: the roots of two ends are hung under the
    lesser until no edge has two. SciPy takes four times as long for a few hundred rows."""
    root = np.arange(n_rows)
    while True:
        one, other = root[first], root[second]
        apart = one != other
        if not apart.any():
            return (np.cumsum(root == np.arange(n_rows)) - 1)[root].astype(np.int32)
        np.minimum.at(root, np.maximum(one, other), np.minimum(one, other))
        first, second = first[apart], second[apart]
        while (root[root] != root).any():
            root = root[root]

"""Hierarchical clustering: SciPy's tree, and a cut of it in which clusters of few rows do not count."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from ilk.errors import UsageError
from ilk.paradigms.distance import EUCLIDEAN, Distances
from ilk.table.block import Array

Linkage = Literal["average", "single", "complete", "weighted", "ward", "centroid", "median"]
LINKAGES: tuple[Linkage, ...] = ("average", "single", "complete", "weighted", "ward", "centroid", "median")
OF_CENTRES = ("ward", "centroid", "median")  # defined by squared Euclidean distances


@dataclass(frozen=True, eq=False)
class TreeCut:
    """`labels` of the clusters that count, from 0, and -1 for the rows of the others; `gap` is the range of heights at
    which as many count."""

    labels: Array
    n_clusters: int
    gap: float


def tree_of(distances: Distances, method: str) -> Array:
    """Merges (rows - 1, 4) as SciPy has them."""
    if method in OF_CENTRES and distances.kind != EUCLIDEAN:
        raise UsageError(
            "bad-linkage",
            f"{method} linkage is for Euclidean distances of numbers, and these are {distances.kind} ones",
            do="Choose single, complete, average or weighted",
        )
    if len(distances.matrix) < 2:
        return np.zeros((0, 4))
    return np.asarray(linkage(squareform(distances.matrix, checks=False), cast(Linkage, method)))


def cuts(tree: Array, most: int, min_size: int = 1) -> list[TreeCut]:
    """The tree cut from the top: one cut for each number of counted clusters up to `most` that can be had.

    The cluster that was merged last is undone first. The highest cut with a number of counted clusters is taken, in
    which the fewest rows are in clusters that do not count.
    """
    n_rows = len(tree) + 1
    size = np.concatenate([np.ones(n_rows), tree[:, 3]])
    height = np.concatenate([np.zeros(n_rows), tree[:, 2]])
    parts = {2 * n_rows - 2}
    dearest = [(-height[-1], 2 * n_rows - 2)]  # clusters that can be undone
    counts, n_counted = {1: frozenset(parts)}, 1
    reached, left = {1: np.inf}, {1: 0.0}
    while dearest and n_counted <= most:
        cost, node = heapq.heappop(dearest)
        if node < n_rows:
            break
        children = [int(child) for child in tree[node - n_rows, :2]]
        before = n_counted
        n_counted += sum(int(size[child] >= min_size) for child in children) - int(size[node] >= min_size)
        parts = (parts - {node}) | set(children)
        for child in children:
            heapq.heappush(dearest, (-height[child], child))
        if n_counted != before:
            left[before] = max(left.get(before, 0.0), -cost)
            if n_counted not in counts and 0 < n_counted <= most:
                counts[n_counted], reached[n_counted] = frozenset(parts), -cost
    made = []
    for count, nodes in sorted(counts.items()):
        gap = reached[count] - left.get(count, 0.0) if count > 1 else 0.0
        made.append(TreeCut(_labels(tree, nodes, size, min_size), count, float(gap)))
    return made


def cut_at(tree: Array, n_clusters: int, min_size: int = 1) -> TreeCut:
    """As many counted clusters as asked for, or the next smaller number that can be had."""
    return cuts(tree, n_clusters, min_size)[-1]


def longest_lived(possible: list[TreeCut]) -> TreeCut:
    """The cut whose number of clusters survives the widest range of heights; never a single cluster if two can be."""
    return max(possible, key=lambda cut: cut.gap)


def _labels(tree: Array, nodes: frozenset[int], size: Array, min_size: int) -> Array:
    n_rows = len(tree) + 1
    label_of = np.full(2 * n_rows - 1, -1, dtype=np.int32)
    counted = [node for node in sorted(nodes) if size[node] >= min_size]
    for number, node in enumerate(counted):
        label_of[node] = number
    inside = np.zeros(2 * n_rows - 1, dtype=bool)
    inside[list(nodes)] = True
    for node in range(2 * n_rows - 2, n_rows - 1, -1):  # parents come after their children
        if inside[node]:
            for child in tree[node - n_rows, :2].astype(int):
                label_of[child], inside[child] = label_of[node], True
    return label_of[:n_rows]

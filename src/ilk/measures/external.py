"""Judging a partition by known classes, from a table of counts in exact whole numbers.

Every measure takes `labels, truth`, or one `Contingency`, or a table of counts (groups, classes) alone.
Rows without a truth are left out and counted in `Contingency.n_left_out`. A label such as -1 is a group
like any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ilk.errors import DataError, ResourceError, UsageError
from ilk.measures.labels import MISSING, Labels, codes_of, complete_codes, same_length

Array = NDArray[Any]

MATRIX_CELLS = 10**8  # A matrix form above this (0.8 GB) is refused; the totals need the filled cells only.
AVERAGES: dict[str, Callable[[float, float], float]] = {
    "arithmetic": lambda a, b: (a + b) / 2,
    "geometric": lambda a, b: math.sqrt(a * b),
    "min": min,
    "max": max,
}


@dataclass(frozen=True)
class Contingency:
    """How many rows each group shares with each class: the filled cells only, in exact whole numbers."""

    cluster: Array
    klass: Array
    count: Array
    cluster_names: list[Any]
    class_names: list[Any]
    n_left_out: int = 0

    @cached_property
    def cluster_sizes(self) -> Array:
        return _sums(self.cluster, self.count, len(self.cluster_names))

    @cached_property
    def class_sizes(self) -> Array:
        return _sums(self.klass, self.count, len(self.class_names))

    @property
    def n_rows(self) -> int:
        return int(self.count.sum())

    @property
    def table(self) -> Array:
        """Counts (groups, classes)."""
        return self.spread(self.count)

    def spread(self, values: Array) -> Array:
        """A matrix (groups, classes) of values given for the filled cells, 0 elsewhere."""
        shape = len(self.cluster_names), len(self.class_names)
        if shape[0] * shape[1] > MATRIX_CELLS:
            raise ResourceError(
                "table-too-large",
                f"a matrix of {shape[0]} groups and {shape[1]} classes is too large",
                do="Use the totals, which need the filled cells only",
            )
        matrix = np.zeros(shape, dtype=values.dtype)
        matrix[self.cluster, self.klass] = values
        return matrix


def contingency(labels: Labels | Contingency, truth: Labels | None = None) -> Contingency:
    """Counts of rows by group and class.

    >>> found = contingency([0, 0, 1, 1], ["x", "y", "y", None])
    >>> found.table.tolist(), found.n_left_out
    ([[1, 1], [0, 1]], 1)
    """
    if isinstance(labels, Contingency):
        return labels
    if truth is None:
        return _from_table(labels)
    clusters, cluster_names = complete_codes(labels)
    classes, class_names = codes_of(truth, "truth")
    same_length(len(clusters), len(classes), "labels", "truth")
    known = classes != MISSING
    if not known.any():
        raise DataError("truth-missing", "no row has a true class", do="Give at least one row its class")
    key = clusters[known] * len(class_names) + classes[known]
    cells, counts = _cells_and_counts(key, len(cluster_names) * len(class_names))
    cluster, klass = np.divmod(cells, len(class_names))
    kept, cluster = np.unique(cluster, return_inverse=True)
    names = [cluster_names[code] for code in kept]
    return Contingency(cluster, klass, counts.astype(np.int64), names, class_names, int((~known).sum()))


def _cells_and_counts(key: Array, n_cells: int) -> tuple[Array, Array]:
    """Which cells are filled and by how many rows; counted in a full table where that is the smaller one."""
    if n_cells > key.size + 1000:
        return np.unique(key, return_counts=True)
    counts = np.bincount(key)
    cells = np.flatnonzero(counts)
    return cells, counts[cells]


def _from_table(table: Any) -> Contingency:
    counts = np.asarray(table)
    if counts.ndim != 2:
        raise UsageError(
            "no-truth",
            "there is no truth to compare with",
            do="Give the labels and the truth, or a table of counts (groups, classes)",
        )
    exact = [int(c) if _is_whole(c) else -1 for c in counts.ravel().tolist()]
    if not exact or min(exact) < 0 or not 0 < sum(exact) < 2**63:
        raise DataError(
            "bad-counts",
            "a table of counts holds whole numbers from 0, one above 0 at least",
            do="Count the rows of each group and class",
        )
    cells: Array = np.array(exact, dtype=np.int64).reshape(counts.shape)
    cluster, klass = np.nonzero(cells)
    count = cells[cluster, klass]
    cluster_names, cluster = np.unique(cluster, return_inverse=True)
    class_names, klass = np.unique(klass, return_inverse=True)
    return Contingency(cluster, klass, count, cluster_names.tolist(), class_names.tolist())


def _is_whole(number: Any) -> bool:
    return isinstance(number, int) or (isinstance(number, float) and number.is_integer())


def entropy_per_cluster(labels: Labels | Contingency, truth: Labels | None = None) -> Array:
    """Bits of each group: `-sum_j p_ij log2 p_ij`, 0 for a pure group.

    >>> entropy_per_cluster([0, 0, 1], ["x", "y", "x"]).tolist()
    [1.0, 0.0]
    """
    found = contingency(labels, truth)
    share = _share(found)
    # Adding 0.0 turns the -0.0 of a pure cluster into 0.0.
    return _sums(found.cluster, -share * np.log2(share), len(found.cluster_names)) + 0.0


def entropy(labels: Labels | Contingency, truth: Labels | None = None) -> float:
    """Bits on average, groups weighted by their size (Shannon entropy of the classes in a group).

    >>> entropy([0, 0, 1, 1], ["x", "y", "x", "x"])
    0.5
    """
    found = contingency(labels, truth)
    return math.fsum(found.cluster_sizes / found.n_rows * entropy_per_cluster(found))


def precision_matrix(labels: Labels | Contingency, truth: Labels | None = None) -> Array:
    """Share `m_ij / m_i` of group i that is of class j."""
    found = contingency(labels, truth)
    return found.spread(_share(found))


def recall_matrix(labels: Labels | Contingency, truth: Labels | None = None) -> Array:
    """Share `m_ij / m_j` of class j that is in group i."""
    found = contingency(labels, truth)
    return found.spread(_recall(found))


def f_measure_matrix(labels: Labels | Contingency, truth: Labels | None = None) -> Array:
    """`2 P R / (P + R)` of every group and class, 0 where both are 0.

    >>> f_measure_matrix([0, 0, 1], ["x", "x", "y"]).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    found = contingency(labels, truth)
    return found.spread(_f(found))


def precision(labels: Labels | Contingency, truth: Labels | None = None) -> float:
    """Precision of each group for its largest class, weighted by group size: the same as `purity`.

    >>> precision([0, 0, 0, 1], ["x", "x", "y", "y"])
    0.75
    """
    return purity(labels, truth)


def recall(labels: Labels | Contingency, truth: Labels | None = None) -> float:
    """Recall of each group for its largest class, weighted by group size; the better recall among equals.

    >>> recall([0, 0, 1, 1], ["x", "x", "x", "x"])
    0.5
    """
    found = contingency(labels, truth)
    count, share = found.count, _recall(found)
    # Sorted by cluster, count and recall, the last cell of each cluster is the one asked for.
    order = np.lexsort((share, count, found.cluster))
    last = order[np.append(np.flatnonzero(np.diff(found.cluster[order])), order.size - 1)]
    return math.fsum(found.cluster_sizes[found.cluster[last]] / found.n_rows * share[last])


def f_measure(labels: Labels | Contingency, truth: Labels | None = None) -> float:
    """The best group's F of each class, weighted by class size: `sum_j m_j / m max_i F_ij`.

    >>> f_measure([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    """
    found = contingency(labels, truth)
    best = np.zeros(len(found.class_names))
    np.maximum.at(best, found.klass, _f(found))
    return math.fsum(found.class_sizes / found.n_rows * best)


def purity(labels: Labels | Contingency, truth: Labels | None = None) -> float:
    """Share of the rows that are of the largest class of their group: `sum_i max_j m_ij / m`.

    >>> purity([0, 0, 0, 1], ["x", "x", "y", "y"])
    0.75
    """
    found = contingency(labels, truth)
    largest = np.zeros(len(found.cluster_names), dtype=np.int64)
    np.maximum.at(largest, found.cluster, found.count)
    return int(largest.sum()) / found.n_rows


def ari(labels: Labels | Contingency, truth: Labels | None = None) -> float:
    """Adjusted Rand index, pair counts in Python's whole numbers: exact for any number of rows.

    `(pairs - expected) / ((of_clusters + of_classes) / 2 - expected)`, with
    `expected = of_clusters of_classes / all` (Hubert and Arabie 1985); 1 where nothing can differ.

    >>> ari([0, 0, 1, 1], ["y", "y", "x", "x"])
    1.0
    """
    found = contingency(labels, truth)
    both, of_clusters, of_classes = (_pairs(c) for c in (found.count, found.cluster_sizes, found.class_sizes))
    every = found.n_rows * (found.n_rows - 1) // 2
    over = 2 * (every * both - of_clusters * of_classes)
    under = every * (of_clusters + of_classes) - 2 * of_clusters * of_classes
    return over / under if under else 1.0


def nmi(labels: Labels | Contingency, truth: Labels | None = None, *, average: str = "arithmetic") -> float:
    """Mutual information over the average of the two entropies, in [0, 1]; 1 if both have one group only.

    The arithmetic average is scikit-learn's and equals the V-measure; `geometric` is the CRAFT paper's.

    >>> nmi([0, 0, 1, 1], ["x", "x", "y", "y"]), nmi([0, 1, 0, 1], ["x", "x", "y", "y"])
    (1.0, 0.0)
    """
    if average not in AVERAGES:
        raise UsageError(
            "bad-average", f"average={average!r} is not known", do=f"Use one of {', '.join(AVERAGES)}"
        )
    found = contingency(labels, truth)
    if len(found.cluster_names) == len(found.class_names) == 1:
        return 1.0
    of_clusters, of_classes = _bits(found.cluster_sizes), _bits(found.class_sizes)
    shared = (of_clusters + of_classes - variation_of_information(found)) / 2
    whole = AVERAGES[average](of_clusters, of_classes)
    return min(1.0, max(0.0, shared / whole)) if whole > 0 else 0.0


def variation_of_information(labels: Labels | Contingency, truth: Labels | None = None) -> float:
    """Bits that one partition lacks of the other and back, a distance: `H(U|V) + H(V|U)` (Meila 2007).

    >>> variation_of_information([0, 0, 1, 1], [1, 1, 0, 0]), variation_of_information([0, 0], [0, 1])
    (0.0, 1.0)
    """
    found = contingency(labels, truth)
    lost = np.log2(_share(found)) + np.log2(_recall(found))
    return max(0.0, -math.fsum(found.count / found.n_rows * lost))


@dataclass(frozen=True)
class Stability:
    """Agreement of a partition with its repeats: mean ARI, and per group the mean of the best Jaccard."""

    cluster_names: list[Any]
    jaccard: Array
    ari: float


def jaccard_per_cluster(labels: Labels | Contingency, other: Labels | None = None) -> Array:
    """For each group, the best `shared / together` with a group of the other partition.

    >>> jaccard_per_cluster([0, 0, 1, 1], [0, 0, 0, 1]).tolist()
    [0.6666666666666666, 0.5]
    """
    found = contingency(labels, other)
    together = found.cluster_sizes[found.cluster] + found.class_sizes[found.klass] - found.count
    best = np.zeros(len(found.cluster_names))
    np.maximum.at(best, found.cluster, found.count / together)
    return best


def stability(labels: Labels, repeats: list[Labels] | tuple[Labels, ...] | Array) -> Stability:
    """How well the groups are recovered in repeats: partitions of the same rows after the table was perturbed.

    A row that a repeat left out has a missing label there; a group without any other row counts 0 there.

    >>> stability([0, 0, 1, 1], [[5, 5, 7, 7], [5, 5, 5, 7]]).jaccard.round(3).tolist()
    [0.833, 0.75]
    """
    if len(repeats) == 0:
        raise UsageError(
            "no-repeats", "there are no repeats to compare with", do="Give at least one clustering"
        )
    _, names = complete_codes(labels)
    place = {name: code for code, name in enumerate(names)}
    total, aris = np.zeros(len(names)), []
    for repeat in repeats:
        found = contingency(labels, repeat)
        total[[place[name] for name in found.cluster_names]] += jaccard_per_cluster(found)
        aris.append(ari(found))
    return Stability(names, total / len(repeats), math.fsum(aris) / len(aris))


def corresponding(shared: Array) -> list[tuple[int, int]]:
    """Pairs (row, column) of a table of shared rows that together share most, each group in one pair at most.

    >>> corresponding(np.array([[5, 4], [4, 0]]))
    [(0, 1), (1, 0)]
    """
    ones, others = linear_sum_assignment(shared, maximize=True)
    return [(int(a), int(b)) for a, b in zip(ones, others, strict=True) if shared[a, b] > 0]


def _sums(groups: Array, values: Array, n_groups: int) -> Array:
    total = np.zeros(n_groups, dtype=values.dtype)
    np.add.at(total, groups, values)
    return total


def _share(found: Contingency) -> Array:
    return found.count / found.cluster_sizes[found.cluster]


def _recall(found: Contingency) -> Array:
    return found.count / found.class_sizes[found.klass]


def _f(found: Contingency) -> Array:
    """`2 P R / (P + R) = 2 m_ij / (m_i + m_j)`; only filled cells are here, so it is never 0 / 0."""
    return np.asarray(2 * found.count / (found.cluster_sizes[found.cluster] + found.class_sizes[found.klass]))


def _pairs(counts: Array) -> int:
    return sum(count * (count - 1) // 2 for count in counts.tolist())


def _bits(sizes: Array) -> float:
    share = sizes / sizes.sum()
    return -math.fsum(share * np.log2(share))

"""Judging a clustering by known classes, from a table of counts in exact whole numbers.

Every measure takes `labels, truth`, or one `Contingency`, or a table of counts (groups, classes) alone.
Rows without a truth are left out and counted in `Contingency.n_left_out`. A label such as -1 is a cluster
like any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilk.errors import UsageError
from ilk.measures.counts import Contingency, contingency, sums_of
from ilk.measures.labels import Labels
from ilk.measures.texts import documented

Array = NDArray[Any]

AVERAGES: dict[str, Callable[[float, float], float]] = {
    "arithmetic": lambda a, b: (a + b) / 2,
    "geometric": lambda a, b: math.sqrt(a * b),
    "min": min,
    "max": max,
}


@documented
def entropy_per_cluster(labels: Labels | Contingency, truth: Labels | None = None) -> Array:
    """Return the entropy of the classes in each cluster, in bits: `-sum_j p_ij log2 p_ij`.

    Parameters
    ----------
    {labels/truth} {truth}

    Returns
    -------
    array of shape (n_clusters,)
        Entropies; 0 for a pure cluster.

    Examples
    --------
    >>> entropy_per_cluster([0, 0, 1], ["x", "y", "x"]).tolist()
    [1.0, 0.0]
    """
    found = contingency(labels, truth)
    share = _share(found)
    # Adding 0.0 turns the -0.0 of a pure cluster into 0.0.
    return sums_of(found.cluster, -share * np.log2(share), len(found.cluster_names)) + 0.0


@documented
def entropy(labels: Labels | Contingency, truth: Labels | None = None) -> float:
    """Return the mean entropy of the classes in a cluster, in bits, clusters weighted by their size.

    The lecture slides "How to evaluate clusters produced by k-means or hierarchical clustering?" have it without
    the minus sign.

    Parameters
    ----------
    {labels/truth} {truth}

    Returns
    -------
    float
        The mean entropy; 0 where all clusters are pure.

    Examples
    --------
    >>> entropy([0, 0, 1, 1], ["x", "y", "x", "x"])
    0.5
    """
    found = contingency(labels, truth)
    return math.fsum(found.cluster_sizes / found.n_rows * entropy_per_cluster(found))


@documented
def precision_matrix(labels: Labels | Contingency, truth: Labels | None = None) -> Array:
    """Return the share `m_ij / m_i` of cluster i that is of class j.

    Parameters
    ----------
    {labels/truth} {truth}

    Returns
    -------
    array of shape (n_clusters, n_classes)
        Shares.

    Examples
    --------
    >>> precision_matrix([0, 0, 1], ["x", "y", "y"]).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    found = contingency(labels, truth)
    return found.spread(_share(found))


@documented
def recall_matrix(labels: Labels | Contingency, truth: Labels | None = None) -> Array:
    """Return the share `m_ij / m_j` of class j that is in cluster i.

    Parameters
    ----------
    {labels/truth} {truth}

    Returns
    -------
    array of shape (n_clusters, n_classes)
        Shares.

    Examples
    --------
    >>> recall_matrix([0, 0, 1], ["x", "y", "y"]).tolist()
    [[1.0, 0.5], [0.0, 0.5]]
    """
    found = contingency(labels, truth)
    return found.spread(_recall(found))


@documented
def f_measure_matrix(labels: Labels | Contingency, truth: Labels | None = None) -> Array:
    """Return `2 P R / (P + R)` of every cluster and class, 0 where both are 0.

    Parameters
    ----------
    {labels/truth} {truth}

    Returns
    -------
    array of shape (n_clusters, n_classes)
        F measures.

    Examples
    --------
    >>> f_measure_matrix([0, 0, 1], ["x", "x", "y"]).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    found = contingency(labels, truth)
    return found.spread(_f(found))


@documented
def precision(labels: Labels | Contingency, truth: Labels | None = None) -> float:
    """Return the precision of each cluster for its largest class, weighted by cluster size: the same as `purity`.

    Parameters
    ----------
    {labels/truth} {truth}

    Returns
    -------
    float
        A share between 0 and 1.

    Examples
    --------
    >>> precision([0, 0, 0, 1], ["x", "x", "y", "y"])
    0.75
    """
    return purity(labels, truth)


@documented
def recall(labels: Labels | Contingency, truth: Labels | None = None) -> float:
    """Return the recall of each cluster for its largest class, weighted by cluster size.

    Parameters
    ----------
    {labels/truth} {truth}

    Returns
    -------
    float
        A share between 0 and 1; of classes of equal size in a cluster the better recall counts.

    Examples
    --------
    >>> recall([0, 0, 1, 1], ["x", "x", "x", "x"])
    0.5
    """
    found = contingency(labels, truth)
    count, share = found.count, _recall(found)
    # Sorted by cluster, count and recall, the last cell of each cluster is the one asked for.
    order = np.lexsort((share, count, found.cluster))
    last = order[np.append(np.flatnonzero(np.diff(found.cluster[order])), order.size - 1)]
    return math.fsum(found.cluster_sizes[found.cluster[last]] / found.n_rows * share[last])


@documented
def f_measure(labels: Labels | Contingency, truth: Labels | None = None) -> float:
    """Return the best cluster's F of each class, weighted by class size: `sum_j m_j / m max_i F_ij`.

    Parameters
    ----------
    {labels/truth} {truth}

    Returns
    -------
    float
        A number between 0 and 1.

    Examples
    --------
    >>> f_measure([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    """
    found = contingency(labels, truth)
    best = np.zeros(len(found.class_names))
    np.maximum.at(best, found.klass, _f(found))
    return math.fsum(found.class_sizes / found.n_rows * best)


@documented
def purity(labels: Labels | Contingency, truth: Labels | None = None) -> float:
    """Return the share of the rows that are of the largest class of their cluster: `sum_i max_j m_ij / m`.

    Parameters
    ----------
    {labels/truth} {truth}

    Returns
    -------
    float
        A share between 0 and 1.

    Examples
    --------
    >>> purity([0, 0, 0, 1], ["x", "x", "y", "y"])
    0.75
    """
    found = contingency(labels, truth)
    largest = np.zeros(len(found.cluster_names), dtype=np.int64)
    np.maximum.at(largest, found.cluster, found.count)
    return int(largest.sum()) / found.n_rows


@documented
def ari(labels: Labels | Contingency, truth: Labels | None = None) -> float:
    """Return the adjusted Rand index, exact for any number of rows.

    `(pairs - expected) / ((of_clusters + of_classes) / 2 - expected)`, with `expected = of_clusters of_classes /
    all`, in whole numbers of pairs.

    Parameters
    ----------
    {labels/truth} {truth}

    Returns
    -------
    float
        1 for the same partition, and where nothing can differ; about 0 for partitions by chance.

    References
    ----------
    Hubert and Arabie (1985). Comparing partitions. Journal of Classification 2, 193-218.

    Examples
    --------
    >>> ari([0, 0, 1, 1], ["y", "y", "x", "x"])
    1.0
    """
    found = contingency(labels, truth)
    both, of_clusters, of_classes = (_pairs(c) for c in (found.count, found.cluster_sizes, found.class_sizes))
    every = found.n_rows * (found.n_rows - 1) // 2
    over = 2 * (every * both - of_clusters * of_classes)
    under = every * (of_clusters + of_classes) - 2 * of_clusters * of_classes
    return over / under if under else 1.0


@documented
def nmi(labels: Labels | Contingency, truth: Labels | None = None, *, average: str = "arithmetic") -> float:
    """Return the normalised mutual information: mutual information over the average of the two entropies.

    The arithmetic average is scikit-learn's and equals the V-measure; the geometric one is the CRAFT paper's (Garg,
    Rudin and Jaakkola, AISTATS 2016).

    Parameters
    ----------
    {labels/truth} {truth}
    average : "arithmetic", "geometric", "min" or "max", default="arithmetic"
        Which average of the two entropies.

    Returns
    -------
    float
        A number in [0, 1]; 1 if both have one group only.

    Examples
    --------
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


@documented
def variation_of_information(labels: Labels | Contingency, truth: Labels | None = None) -> float:
    """Return the bits that one partition lacks of the other and back, a distance: `H(U|V) + H(V|U)`.

    Parameters
    ----------
    {labels/truth} {truth}

    Returns
    -------
    float
        Bits; 0 for the same partition.

    References
    ----------
    Meilă (2007). Comparing clusterings: an information based distance. Journal of Multivariate Analysis 98, 873-895.

    Examples
    --------
    >>> variation_of_information([0, 0, 1, 1], [1, 1, 0, 0]), variation_of_information([0, 0], [0, 1])
    (0.0, 1.0)
    """
    found = contingency(labels, truth)
    lost = np.log2(_share(found)) + np.log2(_recall(found))
    return max(0.0, -math.fsum(found.count / found.n_rows * lost))


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

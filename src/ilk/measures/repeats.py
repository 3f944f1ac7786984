"""How stable clusters are over repeats of a clustering."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilk.errors import UsageError
from ilk.measures.counts import Contingency, contingency
from ilk.measures.external import ari
from ilk.measures.labels import Labels, complete_codes
from ilk.measures.texts import documented

Array = NDArray[Any]


@dataclass(frozen=True)
class Stability:
    """Agreement of a clustering with its repeats.

    Attributes
    ----------
    cluster_names : list
        Names of the clusters.
    jaccard : array of shape (n_clusters,)
        For each cluster the mean over repeats of the best Jaccard similarity.
    ari : float
        Mean adjusted Rand index.

    See Also
    --------
    stability : Makes it.

    Examples
    --------
    >>> stability([0, 0, 1, 1], [[5, 5, 7, 7]])
    Stability(cluster_names=[0, 1], jaccard=array([1., 1.]), ari=1.0)
    """

    cluster_names: list[Any]
    jaccard: Array
    ari: float


@documented
def jaccard_per_cluster(labels: Labels | Contingency, other: Labels | None = None) -> Array:
    """Return for each cluster the best Jaccard similarity, `shared / together`, with a cluster of the other partition.

    Parameters
    ----------
    {labels/truth}
    other : None or array of shape (n_rows,), default=None
        The other partition; rows whose label is missing there are left out.

    Returns
    -------
    array of shape (n_clusters,)
        Similarities between 0 and 1.

    Examples
    --------
    >>> jaccard_per_cluster([0, 0, 1, 1], [0, 0, 0, 1]).tolist()
    [0.6666666666666666, 0.5]
    """
    found = contingency(labels, other)
    together = found.cluster_sizes[found.cluster] + found.class_sizes[found.klass] - found.count
    best = np.zeros(len(found.cluster_names))
    np.maximum.at(best, found.cluster, found.count / together)
    return best


@documented
def stability(labels: Labels, repeats: list[Labels] | tuple[Labels, ...] | Array) -> Stability:
    """Return how stable the clusters are over repeats: clusterings of the same rows after the table was perturbed.

    Parameters
    ----------
    {labels}
    repeats : sequence of arrays of shape (n_rows,)
        Clusterings. A row that a repeat left out has a missing label there; a cluster without any other row counts
        0 there.

    Returns
    -------
    Stability
        Mean agreement, in all and for each cluster.

    References
    ----------
    Hennig (2007). Cluster-wise assessment of cluster stability. Computational Statistics and Data Analysis 52,
    258-271.

    Examples
    --------
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
    from scipy.optimize import linear_sum_assignment  # a sixth of a second to import, and seldom needed

    ones, others = linear_sum_assignment(shared, maximize=True)
    return [(int(a), int(b)) for a, b in zip(ones, others, strict=True) if shared[a, b] > 0]
